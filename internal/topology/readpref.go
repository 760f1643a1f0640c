package topology

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/event"
)

const (
	smallestMaxStaleness = 90 * time.Second
	idleWritePeriod      = 10 * time.Second
)

// ReadMode returns the mode of a read preference, which may be nil.
func ReadMode(rp *consistency.ReadPreference) consistency.ReadMode {
	if rp == nil || rp.Mode == "" {
		return consistency.Primary
	}
	return rp.Mode
}

// validateFor returns an error if the read preference cannot be used with this topology.
func validateFor(rp *consistency.ReadPreference, kind event.TopologyKind, heartbeat time.Duration) error {
	if err := rp.Validate(); err != nil {
		return err
	}
	if rp == nil || rp.MaxStaleness <= 0 || kind != event.ReplicaSetNoPrimary && kind != event.ReplicaSetWithPrimary {
		return nil
	}
	if least := max(smallestMaxStaleness, heartbeat+idleWritePeriod); rp.MaxStaleness < least {
		return fmt.Errorf("maxStalenessSeconds is %v, must be at least %v with heartbeatFrequencyMS %v",
			rp.MaxStaleness.Truncate(time.Millisecond).Seconds(), least.Seconds(), heartbeat.Milliseconds())
	}
	return nil
}

// Readable reports whether the topology has a server that suits the read preference.
func Readable(t *event.TopologyDescription, rp *consistency.ReadPreference) bool {
	if t.Kind == event.LoadBalanced {
		return true
	}
	var buf [stackServers]*event.ServerDescription
	return len(appendSuitable(buf[:0], t, &Selection{ReadPreference: rp})) > 0
}

// primaryOnly reports whether the read preference allows only the primary.
func primaryOnly(rp *consistency.ReadPreference) bool {
	return ReadMode(rp) == consistency.Primary &&
		(rp == nil || len(rp.TagSets) == 0 && rp.MaxStaleness <= 0 && rp.Hedge == nil)
}

// AppendReadPreference appends a read preference as an element of a command, usually
// "$readPreference".
func AppendReadPreference(dst []byte, key string, rp *consistency.ReadPreference) []byte {
	at, dst := bson.BeginDocumentElement(dst, key)
	dst = bson.AppendString(dst, "mode", string(ReadMode(rp)))
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
			// Rounded up, so that less than a second is not sent as 0.
			dst = bson.AppendInt64(dst, "maxStalenessSeconds", int64((rp.MaxStaleness+time.Second-1)/time.Second))
		}
		if rp.Hedge != nil {
			hedge, d := bson.BeginDocumentElement(dst, "hedge")
			dst = bson.EndDocument(bson.AppendBool(d, "enabled", *rp.Hedge), hedge)
		}
	}
	return bson.EndDocument(dst, at)
}
