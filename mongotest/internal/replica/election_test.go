package replica

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"allium/bson"
	"allium/mongotest/internal/clock"
)

// process is a member's process that has nothing to interrupt.
type process struct{ addr string }

func (p *process) Addr() string                { return p.addr }
func (p *process) Started() time.Time          { return time.Time{} }
func (p *process) BumpTopology()               {}
func (p *process) InterruptPrimaryWork(Waiter) {}

// past is a history that nobody reads.
type past struct{ clock clock.Clock }

func (p *past) Now() time.Time               { return p.clock.Now() }
func (p *past) Tick() bson.Timestamp         { return p.clock.Tick() }
func (p *past) NotifyCommit(bson.Timestamp)  {}
func (p *past) RollBack(_, _ bson.Timestamp) {}
func (p *past) AbortTransactions()           {}

// Whatever happens to the members of a set: there is never more than one primary, there is one if a
// majority is connected and a member can be elected, terms only grow, nobody is ahead of the newest
// write, and what a majority had is never lost.
func TestElections(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		history := &past{}
		s := New("rs", history)
		var nodes []Peer
		for i := range 3 + r.IntN(3) {
			m := MemberConfig{Priority: float64(r.IntN(3)), Votes: 1}
			if i == 0 {
				m.Priority = 1
			}
			if i == 2 && r.IntN(3) == 0 {
				m = MemberConfig{Votes: 1, Arbiter: true}
			}
			n := &process{fmt.Sprintf("localhost:%d", 27017+i)}
			s.Add(n, m)
			nodes = append(nodes, n)
		}
		if !s.Elect() {
			t.Fatal("no primary at the start")
		}
		var safe bson.Timestamp // a majority had this
		term := int64(0)
		held := map[Peer]bool{}
		for step := range 200 {
			n := nodes[r.IntN(len(nodes))]
			switch r.IntN(9) {
			case 0:
				s.Down(n)
			case 1, 2:
				s.Up(n)
			case 3:
				s.Isolate(n)
			case 4, 5:
				s.Join(n)
			case 6:
				s.StepDown(nil, n, 0, 0, true)
			case 7:
				if held[n] {
					s.Release(n)
				} else {
					s.Hold(n)
				}
				held[n] = !held[n]
			case 8:
				s.StepUp(n)
			}
			if s.Primary() != nil && r.IntN(2) == 0 {
				s.Wrote(history.Tick())
			}
			s.Mu.Lock()
			primaries, electable := 0, false
			for _, m := range s.members {
				if m.state == StatePrimary {
					primaries++
					if m != s.primary || !m.connected() {
						t.Errorf("seed %d, step %d: a member takes itself for the primary", seed, step)
					}
				}
				if m.applied.compare(s.newest) > 0 {
					t.Errorf("seed %d, step %d: a member is ahead of the newest write", seed, step)
				}
				electable = electable || m.state == StateSecondary && m.connected() && m.Priority > 0 && !time.Now().Before(m.ineligible) && s.wouldElectLocked(m)
			}
			all, connected := s.votes()
			switch {
			case primaries > 1:
				t.Errorf("seed %d, step %d: %d primaries", seed, step, primaries)
			case primaries == 0 && s.primary != nil:
				t.Errorf("seed %d, step %d: the primary is none", seed, step)
			case primaries == 1 && connected <= all/2:
				t.Errorf("seed %d, step %d: a primary without a majority", seed, step)
			case primaries == 0 && connected > all/2 && electable:
				t.Errorf("seed %d, step %d: no primary although there could be one", seed, step)
			}
			if s.Term < term {
				t.Errorf("seed %d, step %d: the term goes back", seed, step)
			}
			if term = s.Term; s.committed.TS.Compare(safe) < 0 {
				t.Errorf("seed %d, step %d: a write that a majority had is lost: %v after %v", seed, step, s.committed.TS, safe)
			}
			safe = s.committed.TS
			s.Mu.Unlock()
			if t.Failed() {
				t.FailNow()
			}
		}
		s.Close()
	}
}
