package consistency

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"allium/event"
)

// ReadMode says which members of a replica set may be read from. The empty ReadMode is Primary.
type ReadMode string

// The modes of a read preference.
const (
	Primary          ReadMode = "primary"          // the primary only
	PrimaryPreferred ReadMode = "primaryPreferred" // the primary, or a secondary while there is no primary
	Secondary        ReadMode = "secondary"        // a secondary only
	// a secondary, or the primary while there is no suitable secondary
	SecondaryPreferred ReadMode = "secondaryPreferred"
	Nearest            ReadMode = "nearest" // any member, the nearest ones by network latency first
)

// ReadPreference says which members of a replica set may be read from. The zero value and nil mean
// the primary. Do not change it while it is in use.
type ReadPreference struct {
	// Mode chooses between the primary and the secondaries.
	Mode ReadMode
	// TagSets are tried in order until one is contained in the tags of at least one member. An
	// empty tag set matches every member; without any tag set, tags do not matter.
	TagSets []event.TagSet
	// MaxStaleness excludes secondaries that lag behind the primary by more than this, as the
	// driver estimates. It is sent in whole seconds. With a replica set it must be at least 90
	// seconds, and at least 10 seconds more than the heartbeat interval. Zero and negative
	// durations: staleness does not matter.
	MaxStaleness time.Duration
	// Hedge makes a mongos send reads to two members and use the first reply. Nil leaves it to the
	// server.
	//
	// Deprecated: servers from 8.0 on ignore it.
	Hedge *bool
}

// Validate returns an error if the mode is unknown or if the primary is combined with settings that
// choose among secondaries.
func (rp *ReadPreference) Validate() error {
	if rp == nil {
		return nil
	}
	switch rp.Mode {
	case "", Primary:
	case PrimaryPreferred, Secondary, SecondaryPreferred, Nearest:
		return nil
	default:
		return fmt.Errorf(
			"read preference has mode %q, want primary, primaryPreferred, secondary, secondaryPreferred or nearest",
			string(rp.Mode))
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

// String returns the mode and all other parts that are set, for example
//
//	ReadPreference secondary, tag sets [{dc: ny} {}], maxStalenessSeconds 120
func (rp *ReadPreference) String() string {
	mode := Primary
	if rp != nil && rp.Mode != "" {
		mode = rp.Mode
	}
	var b strings.Builder
	b.WriteString("ReadPreference " + string(mode))
	if rp == nil {
		return b.String()
	}
	if len(rp.TagSets) > 0 {
		fmt.Fprintf(&b, ", tag sets %v", rp.TagSets)
	}
	if rp.MaxStaleness > 0 {
		fmt.Fprintf(&b, ", maxStalenessSeconds %d", int64((rp.MaxStaleness+time.Second-1)/time.Second))
	}
	if rp.Hedge != nil {
		fmt.Fprintf(&b, ", hedge %v", *rp.Hedge)
	}
	return b.String()
}
