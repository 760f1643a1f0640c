package topology

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"allium/bson"
	"allium/event"
)

// ReadMode says which members of a replica set may be read from.
type ReadMode uint8

// The modes of a read preference.
const (
	Primary            ReadMode = iota // the primary only
	PrimaryPreferred                   // the primary, or a secondary while there is no primary
	Secondary                          // a secondary only
	SecondaryPreferred                 // a secondary, or the primary while there is no suitable secondary
	Nearest                            // any of them, by network latency
)

var modeNames = [...]string{"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"}

// String returns the mode as it is sent and as it stands in connection strings, for example "secondaryPreferred".
func (m ReadMode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("ReadMode(%d)", uint8(m))
}

// ParseReadMode reads a mode as it stands in a connection string; upper and lower case do not matter.
func ParseReadMode(s string) (ReadMode, error) {
	for i, name := range modeNames {
		if strings.EqualFold(s, name) {
			return ReadMode(i), nil
		}
	}
	return 0, fmt.Errorf("read preference mode %q is none of %s", s, strings.Join(modeNames[:], ", "))
}

// ReadPreference says which servers are suitable for reading (specification: Server Selection, Read Preference). The
// zero value and nil mean the primary. It must not be changed once it is in use.
type ReadPreference struct {
	Mode ReadMode
	// TagSets are tried in order until one is contained in the tags of at least one member; none at all means that tags
	// do not matter. An empty tag set matches every member.
	TagSets []event.TagSet
	// MaxStaleness leaves out secondaries that lag behind the primary by more than this, in the driver's estimate. It is
	// sent in whole seconds. Zero and negative durations mean that staleness does not matter. With a replica set it must
	// be at least 90 seconds, and at least 10 seconds more than the heartbeat interval.
	MaxStaleness time.Duration
	// Hedge makes a mongos send reads to two members and take the first answer.
	//
	// Deprecated: servers from 8.0 on ignore it.
	Hedge *bool
}

const (
	smallestMaxStaleness = 90 * time.Second
	idleWritePeriod      = 10 * time.Second
)

// Validate returns an error if the parts of the read preference contradict each other.
func (rp *ReadPreference) Validate() error {
	if rp == nil {
		return nil
	}
	if int(rp.Mode) >= len(modeNames) {
		return fmt.Errorf("read preference has the unknown mode %v", rp.Mode)
	}
	if rp.Mode != Primary {
		return nil
	}
	switch {
	case slices.ContainsFunc(rp.TagSets, func(s event.TagSet) bool { return len(s) > 0 }):
		return errors.New("read preference primary must not be combined with tag sets")
	case rp.MaxStaleness > 0:
		return errors.New("read preference primary must not be combined with maxStalenessSeconds")
	case rp.Hedge != nil:
		return errors.New("read preference primary must not be combined with hedge")
	}
	return nil
}

// validateFor returns an error if the read preference cannot be used with this topology.
func (rp *ReadPreference) validateFor(kind event.TopologyKind, heartbeat time.Duration) error {
	if err := rp.Validate(); err != nil {
		return err
	}
	if rp == nil || rp.MaxStaleness <= 0 || kind != event.ReplicaSetNoPrimary && kind != event.ReplicaSetWithPrimary {
		return nil
	}
	if least := max(smallestMaxStaleness, heartbeat+idleWritePeriod); rp.MaxStaleness < least {
		return fmt.Errorf("maxStalenessSeconds is %v, must be at least %v with heartbeatFrequencyMS %v",
			rp.MaxStaleness.Seconds(), least.Seconds(), heartbeat.Milliseconds())
	}
	return nil
}

// Readable reports whether the topology has a server that suits the read preference.
func (rp *ReadPreference) Readable(t *event.TopologyDescription) bool {
	if t.Kind == event.LoadBalanced {
		return true
	}
	var buf [stackServers]*event.ServerDescription
	return len(appendSuitable(buf[:0], t, &Selection{ReadPreference: rp})) > 0
}

// mode is Primary for nil.
func (rp *ReadPreference) mode() ReadMode {
	if rp == nil {
		return Primary
	}
	return rp.Mode
}

// simple reports whether nothing matters but the primary.
func (rp *ReadPreference) simple() bool {
	return rp == nil || rp.Mode == Primary && len(rp.TagSets) == 0 && rp.MaxStaleness <= 0 && rp.Hedge == nil
}

// staleSeconds rounds up, so that less than a second is not sent as 0.
func (rp *ReadPreference) staleSeconds() int64 {
	return int64((rp.MaxStaleness + time.Second - 1) / time.Second)
}

// AppendDocument appends the read preference as an element of a command, usually "$readPreference".
func (rp *ReadPreference) AppendDocument(dst []byte, key string) []byte {
	at, dst := bson.BeginDocumentElement(dst, key)
	dst = bson.AppendString(dst, "mode", rp.mode().String())
	if rp != nil {
		if len(rp.TagSets) > 0 {
			arr, d := bson.BeginArrayElement(dst, "tags")
			for i, set := range rp.TagSets {
				d = bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, i)
				var doc int
				doc, d = bson.BeginDocument(d)
				for _, name := range slices.Sorted(maps.Keys(set)) {
					d = bson.AppendString(d, name, set[name])
				}
				d = bson.EndDocument(d, doc)
			}
			dst = bson.EndDocument(d, arr)
		}
		if rp.MaxStaleness > 0 {
			dst = bson.AppendInt64(dst, "maxStalenessSeconds", rp.staleSeconds())
		}
		if rp.Hedge != nil {
			hedge, d := bson.BeginDocumentElement(dst, "hedge")
			dst = bson.EndDocument(bson.AppendBool(d, "enabled", *rp.Hedge), hedge)
		}
	}
	return bson.EndDocument(dst, at)
}

// String names all parts that are set, for example
//
//	ReadPreference secondary, tag sets [{dc: ny} {}], maxStalenessSeconds 120
func (rp *ReadPreference) String() string {
	var b strings.Builder
	b.WriteString("ReadPreference " + rp.mode().String())
	if rp == nil {
		return b.String()
	}
	if len(rp.TagSets) > 0 {
		fmt.Fprintf(&b, ", tag sets %v", rp.TagSets)
	}
	if rp.MaxStaleness > 0 {
		fmt.Fprintf(&b, ", maxStalenessSeconds %d", rp.staleSeconds())
	}
	if rp.Hedge != nil {
		fmt.Fprintf(&b, ", hedge %v", *rp.Hedge)
	}
	return b.String()
}
