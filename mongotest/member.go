package mongotest

import (
	"time"

	"allium/mongotest/internal/replica"
)

// Member describes a member of a replica set. The zero value is an ordinary one: priority 1, one
// vote.
type Member struct {
	Priority *float64          // nil: 1. The eligible member with the greatest priority becomes primary
	NoVote   bool              // does not count for majorities; its priority must be 0
	Hidden   bool              // not shown by hello; its priority must be 0
	Arbiter  bool              // votes, has no data
	Delay    time.Duration     // how much later it applies writes; its priority must be 0
	Tags     map[string]string // for read preferences and write concerns
}

func (m Member) config() replica.MemberConfig {
	c := replica.MemberConfig{Priority: 1, Votes: 1, Hidden: m.Hidden, Arbiter: m.Arbiter, Delay: m.Delay, Tags: m.Tags}
	if m.Hidden || m.NoVote || m.Delay > 0 || m.Arbiter {
		c.Priority = 0
	}
	if m.Priority != nil {
		c.Priority = *m.Priority
	}
	if m.NoVote {
		c.Votes = 0
	}
	return c
}
