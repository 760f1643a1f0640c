package replica

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// busyProcess is a member's process whose interrupted work takes a while, or has an effect.
type busyProcess struct {
	process
	interrupted func()
}

func (p *busyProcess) InterruptPrimaryWork(Waiter) { p.interrupted() }

// A member that asks for votes while the primary is interrupted may lose them meanwhile: the last
// write of the old primary reaches another one first. The primary has given up its place by then,
// and somebody must get it.
func TestStepUpThatFailsLeavesAPrimary(t *testing.T) {
	history := &past{}
	s := New("rs", history)
	var nodes []*busyProcess
	for i := range 3 {
		n := &busyProcess{process{fmt.Sprintf("localhost:%d", 27017+i)}, func() {}}
		s.Add(n, MemberConfig{Priority: 1, Votes: 1})
		nodes = append(nodes, n)
	}
	defer s.Close()
	if !s.Elect() {
		t.Fatal("no primary at the start")
	}
	primary := s.Primary().(*busyProcess)
	candidate := nodes[0]
	if candidate == primary {
		candidate = nodes[1]
	}
	primary.interrupted = func() {
		s.Hold(candidate)
		s.Wrote(history.Tick())
	}
	if err := s.StepUp(candidate); err == nil {
		t.Error("a member was elected that had less than the others")
	}
	if s.Primary() == nil {
		t.Error("there is no primary, and nobody stands for election")
	}
}

// Once nothing happens any more and no time limit is left to pass, a set has a primary if a member
// can be elected: whatever was done to its members, at once or in turn, with members that lag, that
// are barred for a while, and that take their time to give up their work.
func TestSetsComeToRest(t *testing.T) {
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) { comesToRest(t, seed) })
		if t.Failed() {
			return
		}
	}
}

func comesToRest(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 11))
	var mu sync.Mutex
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
	history := &past{}
	var clock sync.Mutex
	s := New("rs", history)
	write := func() {
		clock.Lock()
		defer clock.Unlock()
		if s.Primary() != nil {
			s.Wrote(history.Tick())
		}
	}
	s.SetElectionDelay([]time.Duration{0, 50 * time.Millisecond}[draw(2)])
	lag := []time.Duration{0, 20 * time.Millisecond}[draw(2)]
	var nodes []Peer
	for i := range 3 + draw(3) {
		n := &busyProcess{process{fmt.Sprintf("localhost:%d", 27017+i)}, func() {
			for range draw(3) {
				time.Sleep(time.Duration(draw(15)) * time.Millisecond)
				write()
			}
		}}
		s.Add(n, MemberConfig{Priority: 1, Votes: 1})
		s.SetLag(n, lag+time.Duration(draw(3))*time.Millisecond)
		nodes = append(nodes, n)
	}
	defer s.Close()
	s.Elect()
	time.Sleep(time.Second)
	held := map[Peer]bool{}
	var work sync.WaitGroup
	for hand := range 2 {
		work.Go(func() {
			for range 1 + draw(8) {
				n := nodes[draw(len(nodes))]
				switch draw(10) {
				case 0:
					s.Down(n)
				case 1:
					s.Up(n)
				case 2:
					s.Isolate(n)
				case 3:
					s.Join(n)
				case 4:
					_ = s.StepDown(nil, n, time.Duration(draw(1000))*time.Millisecond, 0, true)
				case 5:
					s.Hang(n)
				case 6:
					s.Freeze(n, time.Duration(draw(1000))*time.Millisecond)
				case 7:
					if hand == 0 { // who holds, releases
						if held[n] {
							s.Release(n)
						} else {
							s.Hold(n)
						}
						held[n] = !held[n]
					}
				default:
					_ = s.StepUp(n)
				}
				for range draw(3) {
					write()
				}
				time.Sleep(time.Duration(draw(40)) * time.Millisecond)
			}
		})
	}
	work.Wait()
	time.Sleep(time.Minute)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var able []*member
	for _, m := range s.members {
		if m.stepping != 0 {
			t.Errorf("seed %d: writes wait for %d step-downs of a member that are over", seed, m.stepping)
		}
		if m.state == StateSecondary && m.connected() && s.wouldElectLocked(m) {
			able = append(able, m)
		}
	}
	all, connected := s.votes()
	if s.primary == nil && connected > all/2 && len(able) > 0 {
		t.Errorf("seed %d: no primary at rest, though %d of %d votes are connected and %s would be elected", seed, connected, all, able[0].node.Addr())
	}
	if s.primary != nil && (s.primary.state != StatePrimary || connected <= all/2) {
		t.Errorf("seed %d: the primary is %v, with %d of %d votes", seed, s.primary.state, connected, all)
	}
}
