package topology

import (
	"slices"
	"time"

	"allium/consistency"
	"allium/event"
)

// stackServers is how many servers a selection looks at without allocating memory.
const stackServers = 16

// Selector narrows down the suitable servers for an operation. It returns those of servers that it
// accepts, in any order, and must not change the descriptions. It is called on the goroutine of the
// operation.
type Selector func(servers []*event.ServerDescription) []*event.ServerDescription

// Selection is what an operation asks for when it needs a server.
type Selection struct {
	// Write asks for a server that takes writes; the read preference does not matter then.
	Write bool
	// ReadPreference says where to read from. Nil: the primary.
	ReadPreference *consistency.ReadPreference
	// WritesResults marks a read that writes its results, an aggregation with $out or $merge. The
	// read preference counts for it only if all servers can do that on a secondary (wire version
	// 13); otherwise it goes to the primary.
	WritesResults bool
	// Addr asks for this very server, as long as it is known: that of a pinned transaction or of an
	// open cursor.
	Addr string
	// Deprioritized are servers that failed this operation before. They are used only if no other
	// one is suitable.
	Deprioritized []string

	// Timeout bounds the wait for a suitable server in addition to the context. Zero: the client's
	// serverSelectionTimeoutMS; negative: the context only.
	Timeout time.Duration

	// Operation and OperationID name the operation in log messages.
	Operation   string
	OperationID int64

	// Waited is set by Select: how long it waited for a suitable server, 0 if there was one. A
	// Selection therefore belongs to one call at a time.
	Waited time.Duration
	// Primary is set by Select if WritesResults had it select by the primary's read preference: not
	// all servers that are known could write on a secondary. It is the preference to send then.
	Primary bool
	// Expired is set by Select if the time for the selection, not the context, ended it.
	Expired bool
}

// String describes the selection for log messages and errors.
func (s *Selection) String() string {
	switch {
	case s.Addr != "":
		return "an operation on " + s.Addr
	case s.Write:
		return "writing"
	}
	return "query with " + s.ReadPreference.String()
}

// appendSuitable appends the suitable servers of a topology for an operation that names none: those
// that are left when the deprioritized servers are put aside, or if there are none, those among all
// servers (specification: Server Selection, server selection algorithm, step 3).
func appendSuitable(dst []*event.ServerDescription, t *event.TopologyDescription,
	sel *Selection) []*event.ServerDescription {
	if len(sel.Deprioritized) > 0 {
		if out := appendAllowed(dst, t, sel, sel.Deprioritized); len(out) > len(dst) {
			return out
		}
	}
	return appendAllowed(dst, t, sel, nil)
}

// appendAllowed appends the suitable servers that are not among the excluded ones.
func appendAllowed(dst []*event.ServerDescription, t *event.TopologyDescription, sel *Selection,
	excluded []string) []*event.ServerDescription {
	f := filter{t: t, excluded: excluded}
	if t.Kind != event.ReplicaSetNoPrimary && t.Kind != event.ReplicaSetWithPrimary {
		return f.append(dst, usable(t.Kind))
	}
	rp := sel.ReadPreference
	mode := ReadMode(rp)
	if sel.Write || sel.Primary {
		mode = consistency.Primary
	}
	switch mode {
	case consistency.PrimaryPreferred:
		if out := f.append(dst, kinds(event.RSPrimary)); len(out) > len(dst) {
			return out
		}
		return f.eligible(dst, rp, kinds(event.RSSecondary))
	case consistency.Secondary:
		return f.eligible(dst, rp, kinds(event.RSSecondary))
	case consistency.SecondaryPreferred:
		if out := f.eligible(dst, rp, kinds(event.RSSecondary)); len(out) > len(dst) {
			return out
		}
		return f.append(dst, kinds(event.RSPrimary))
	case consistency.Nearest:
		return f.eligible(dst, rp, kinds(event.RSPrimary, event.RSSecondary))
	}
	return f.append(dst, kinds(event.RSPrimary))
}

// secondariesWrite reports whether every server that is known can write the results of an
// aggregation even if it is a secondary, or none is known yet.
func secondariesWrite(t *event.TopologyDescription) bool {
	if t.Kind == event.LoadBalanced {
		return true // load balancers came with servers that can
	}
	for _, s := range t.Servers {
		if s.DataBearing() && s.MaxWireVersion < 13 {
			return false
		}
	}
	return true
}

// kindSet is a set of kinds of servers.
type kindSet uint16

const anyKnown = ^kindSet(1 << event.UnknownServer)

func kinds(list ...event.ServerKind) kindSet {
	var set kindSet
	for _, k := range list {
		set |= 1 << k
	}
	return set
}

func (set kindSet) has(k event.ServerKind) bool { return set&(1<<k) != 0 }

// usable are the kinds of servers that operations use in a kind of topology. In a replica set the
// operation narrows them down.
func usable(kind event.TopologyKind) kindSet {
	switch kind {
	case event.Single:
		return anyKnown
	case event.LoadBalanced:
		return kinds(event.LoadBalancer)
	case event.Sharded:
		return kinds(event.Mongos)
	case event.ReplicaSetNoPrimary, event.ReplicaSetWithPrimary:
		return kinds(event.RSPrimary, event.RSSecondary)
	}
	return 0
}

// filter picks servers out of a topology.
type filter struct {
	t        *event.TopologyDescription
	excluded []string
}

// append appends the servers of some kinds.
func (f *filter) append(dst []*event.ServerDescription, set kindSet) []*event.ServerDescription {
	for _, s := range f.t.Servers {
		if set.has(s.Kind) && !slices.Contains(f.excluded, s.Addr) {
			dst = append(dst, s)
		}
	}
	return dst
}

// eligible appends the servers of some kinds that are not too stale and have the right tags.
func (f *filter) eligible(dst []*event.ServerDescription, rp *consistency.ReadPreference,
	set kindSet) []*event.ServerDescription {
	n := len(dst)
	dst = f.append(dst, set)
	if rp.MaxStaleness > 0 {
		dst = f.fresh(dst, n, rp.MaxStaleness)
	}
	if len(rp.TagSets) == 0 {
		return dst
	}
	for _, tags := range rp.TagSets {
		kept := dst[:n] // nothing is overwritten before the first one that matches
		for _, s := range dst[n:] {
			if s.Tags.Contains(tags) {
				kept = append(kept, s)
			}
		}
		if len(kept) > n {
			return kept
		}
	}
	return dst[:n]
}

// fresh keeps those of dst[n:] that are not staler than limit. The estimate (specification: Max
// Staleness) is made against the primary, or while there is none against the secondary with the
// latest write; whether those are excluded does not matter.
func (f *filter) fresh(dst []*event.ServerDescription, n int, limit time.Duration) []*event.ServerDescription {
	primary := f.t.Primary()
	latest := time.Unix(0, 0)
	for _, s := range f.t.Servers {
		if s.Kind == event.RSSecondary && lastWrite(s).After(latest) {
			latest = s.LastWriteDate
		}
	}
	kept := dst[:n]
	for _, s := range dst[n:] {
		staleness := time.Duration(0)
		switch {
		case s.Kind != event.RSSecondary:
		case primary != nil:
			staleness = s.LastUpdate.Sub(lastWrite(s)) - primary.LastUpdate.Sub(lastWrite(primary)) +
				s.HeartbeatInterval
		default:
			staleness = latest.Sub(lastWrite(s)) + s.HeartbeatInterval
		}
		if staleness <= limit {
			kept = append(kept, s)
		}
	}
	return kept
}

// lastWrite treats an unknown last write as one long ago, within what a
// time.Duration can span.
func lastWrite(s *event.ServerDescription) time.Time {
	if s.LastWriteDate.IsZero() {
		return time.Unix(0, 0)
	}
	return s.LastWriteDate
}

// inWindow keeps the servers within the latency window: those whose average round trip time exceeds
// the shortest one by no more than threshold.
func inWindow(servers []*event.ServerDescription, threshold time.Duration) []*event.ServerDescription {
	if len(servers) < 2 {
		return servers
	}
	least := servers[0].AverageRTT
	for _, s := range servers[1:] {
		least = min(least, s.AverageRTT)
	}
	kept := servers[:0]
	for _, s := range servers {
		if s.AverageRTT-least <= threshold {
			kept = append(kept, s)
		}
	}
	return kept
}

// pickTwo returns two different random positions below n, which is at least 2. random returns a
// number below its argument.
func pickTwo(n int, random func(int) int) (int, int) {
	i, j := random(n), random(n-1)
	if j >= i {
		j++
	}
	return i, j
}
