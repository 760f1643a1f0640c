package description

import (
	"fmt"
	"math"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/mongo/readpref"
)

// A ServerSelector chooses servers of a deployment.
type ServerSelector interface {
	SelectServer(Topology, []Server) ([]Server, error)
}

// A ServerSelectorFunc is a function that is a ServerSelector.
type ServerSelectorFunc func(Topology, []Server) ([]Server, error)

// SelectServer calls ssf.
func (ssf ServerSelectorFunc) SelectServer(t Topology, s []Server) ([]Server, error) {
	return ssf(t, s)
}

// CompositeSelector chooses by one selector after the other.
func CompositeSelector(selectors []ServerSelector) ServerSelector {
	return ServerSelectorFunc(func(t Topology, servers []Server) (_ []Server, err error) {
		for _, s := range selectors {
			if servers, err = s.SelectServer(t, servers); err != nil {
				return nil, err
			}
		}
		return servers, nil
	})
}

// LatencySelector chooses the servers that are at most so much slower than the fastest.
func LatencySelector(latency time.Duration) ServerSelector {
	return ServerSelectorFunc(func(t Topology, servers []Server) ([]Server, error) {
		if latency < 0 || t.Kind == LoadBalanced || len(servers) < 2 {
			return servers, nil
		}
		least := time.Duration(math.MaxInt64)
		for _, s := range servers {
			if s.AverageRTTSet {
				least = min(least, s.AverageRTT)
			}
		}
		if least == math.MaxInt64 {
			return servers, nil
		}
		return only(servers, func(s Server) bool { return s.AverageRTTSet && s.AverageRTT <= least+latency }), nil
	})
}

// WriteSelector chooses servers that take writes.
func WriteSelector() ServerSelector {
	return ServerSelectorFunc(func(t Topology, servers []Server) ([]Server, error) {
		if t.Kind == Single || t.Kind == LoadBalanced {
			return servers, nil
		}
		return only(servers, func(s Server) bool {
			return s.Kind == Mongos || s.Kind == RSPrimary || s.Kind == Standalone
		}), nil
	})
}

// ReadPrefSelector chooses servers by a read preference.
func ReadPrefSelector(rp *readpref.ReadPref) ServerSelector { return readSelector(rp, false) }

// OutputAggregateSelector is ReadPrefSelector for aggregations that write: unless all servers are
// of version 5.0 or newer it chooses the primary.
func OutputAggregateSelector(rp *readpref.ReadPref) ServerSelector { return readSelector(rp, true) }

const wireVersion50 = 13

func readSelector(rp *readpref.ReadPref, writes bool) ServerSelector {
	return ServerSelectorFunc(func(t Topology, servers []Server) ([]Server, error) {
		if d, ok := rp.MaxStaleness(); ok && (t.Kind == ReplicaSetNoPrimary || t.Kind == ReplicaSetWithPrimary) {
			if d < 90*time.Second {
				return nil, fmt.Errorf("max staleness (%s) must be greater than or equal to 90s", d)
			}
			for _, s := range servers {
				if least := s.HeartbeatInterval + 10*time.Second; d < least {
					return nil, fmt.Errorf(
						"max staleness (%s) must be greater than or equal to the heartbeat interval (%s) plus idle write period (%s)", d, s.HeartbeatInterval, 10*time.Second)
				}
			}
		}
		switch t.Kind {
		case Single, LoadBalanced:
			return servers, nil
		case Sharded:
			return only(servers, func(s Server) bool { return s.Kind == Mongos }), nil
		case ReplicaSetNoPrimary, ReplicaSetWithPrimary:
			if writes && slices.ContainsFunc(servers, func(s Server) bool {
				return s.available() && (s.WireVersion == nil || s.WireVersion.Max < wireVersion50)
			}) {
				return suited(readpref.Primary(), servers), nil
			}
			return suited(rp, servers), nil
		}
		return nil, nil
	})
}

// suited returns the members of a replica set that suit a read preference.
func suited(rp *readpref.ReadPref, servers []Server) []Server {
	primary := only(servers, func(s Server) bool { return s.Kind == RSPrimary })
	secondaries := fresh(rp, servers, only(servers, func(s Server) bool { return s.Kind == RSSecondary }))
	secondaries = tagged(rp, secondaries)
	switch rp.Mode() {
	case readpref.PrimaryMode:
		return primary
	case readpref.PrimaryPreferredMode:
		if len(primary) > 0 {
			return primary
		}
		return secondaries
	case readpref.SecondaryPreferredMode:
		if len(secondaries) > 0 {
			return secondaries
		}
		return primary
	case readpref.SecondaryMode:
		return secondaries
	case readpref.NearestMode:
		near := only(servers, func(s Server) bool { return s.Kind == RSPrimary || s.Kind == RSSecondary })
		return tagged(rp, fresh(rp, servers, near))
	}
	return nil
}

// tagged returns the servers with the first of the sets of tags that any server has.
func tagged(rp *readpref.ReadPref, servers []Server) []Server {
	sets := rp.TagSets()
	if len(sets) == 0 {
		return servers
	}
	for _, set := range sets {
		if chosen := only(servers, func(s Server) bool { return s.Tags.ContainsAll(set) }); len(chosen) > 0 {
			return chosen
		}
	}
	return nil
}

// fresh returns those of the servers that are not too far behind.
func fresh(rp *readpref.ReadPref, all, servers []Server) []Server {
	limit, ok := rp.MaxStaleness()
	if !ok || limit <= 0 {
		return servers
	}
	var newest Server
	hasPrimary := false
	for _, s := range all {
		if s.Kind == RSPrimary {
			newest, hasPrimary = s, true
		}
	}
	if !hasPrimary {
		for _, s := range all {
			if s.Kind == RSSecondary && s.LastWriteTime.After(newest.LastWriteTime) {
				newest = s
			}
		}
	}
	return only(servers, func(s Server) bool {
		if s.Kind == RSPrimary {
			return true
		}
		behind := newest.LastWriteTime.Sub(s.LastWriteTime) + s.HeartbeatInterval
		if hasPrimary {
			behind = s.LastUpdateTime.Sub(s.LastWriteTime) - newest.LastUpdateTime.Sub(newest.LastWriteTime) +
				s.HeartbeatInterval
		}
		return behind <= limit
	})
}

func only(servers []Server, want func(Server) bool) []Server {
	chosen := []Server{}
	for _, s := range servers {
		if want(s) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}
