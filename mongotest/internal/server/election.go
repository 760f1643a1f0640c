package server

import (
	"time"

	"allium/mongotest/internal/srverr"
)

// stepDownLocked makes the primary a secondary that is not elected again before the period has passed.
func (s *Set) stepDownLocked(period time.Duration) {
	m := s.primary
	s.primary = nil
	if m.state == statePrimary {
		m.state = stateSecondary
	}
	s.barLocked(m, period)
	s.bumpLocked()
}

// barLocked keeps a member from being elected for a while; after that it stands for election if there is no primary.
func (s *Set) barLocked(m *member, period time.Duration) {
	if m.stepTimer != nil {
		m.stepTimer.Stop()
		m.stepTimer = nil
	}
	m.ineligible = time.Now().Add(period)
	if period > 0 {
		m.stepTimer = time.AfterFunc(period, func() { s.Elect() })
	}
}

// StepDown makes the primary give up its place for the period. Unless forced, an electable secondary must have all of its
// writes, for which it waits up to catchUp. Another member is elected at once if one can be.
func (s *Set) StepDown(r *Request, n *Node, period, catchUp time.Duration, force bool) error {
	s.mu.Lock()
	if s.primary == nil || s.primary.node != n {
		s.mu.Unlock()
		return srverr.New(srverr.NotWritablePrimary, "not primary so can't step down")
	}
	s.mu.Unlock()
	ready := func() bool {
		have := 0
		electable := false
		for _, m := range s.members {
			if m.hasData() && m.connected() && m.applied == s.newest {
				have += m.Votes
				electable = electable || m.state == stateSecondary && m.Priority > 0
			}
		}
		return electable && have >= s.writeMajority()
	}
	ok := true
	if r != nil {
		var err error
		if ok, err = s.wait(r, max(catchUp, time.Nanosecond), ready); err != nil {
			return err
		}
	}
	if !ok && !force {
		return srverr.New(srverr.ExceededTimeLimit, "No electable secondaries caught up as of %s. Please use the replSetStepDown command with the argument {force: true} to force node to step down.", s.data.Clock.Now().UTC().Format("2006-01-02T15:04:05.000-0700"))
	}
	s.mu.Lock()
	if s.primary == nil || s.primary.node != n {
		s.mu.Unlock()
		return nil
	}
	s.stepDownLocked(period)
	s.mu.Unlock()
	n.interruptPrimaryWork(r)
	s.Elect()
	return nil
}

// interruptPrimaryWork ends what only a primary may do: running writes and open transactions.
func (n *Node) interruptPrimaryWork(except *Request) {
	n.killOperations(func(o *opInfo) bool {
		return (except == nil || o.op != except.op) && (o.cmd.Where == OnPrimary && o.cmd.Name != "replSetStepDown" || o.inTxn)
	}, srverr.New(srverr.InterruptedDueToReplStateChange, "operation was interrupted"))
	n.data.abortAllTxns()
}

// Freeze keeps a secondary from being elected; zero ends that.
func (s *Set) Freeze(n *Node, period time.Duration) {
	s.mu.Lock()
	s.barLocked(s.find(n), period)
	s.mu.Unlock()
	if period == 0 {
		s.Elect()
	}
}

// wouldElectLocked reports whether a member would get the votes of a majority: nobody votes for one that has less than the voter.
func (s *Set) wouldElectLocked(candidate *member) bool {
	all, votes := 0, 0
	for _, m := range s.members {
		all += m.Votes
		if m.connected() && (!m.hasData() || m.applied.compare(candidate.applied) <= 0) {
			votes += m.Votes
		}
	}
	return votes > all/2
}

// StepUp makes a node primary, as replSetStepUp does.
func (s *Set) StepUp(n *Node) error {
	s.mu.Lock()
	m := s.find(n)
	if m.state != stateSecondary || m.Priority <= 0 || !m.connected() || !s.wouldElectLocked(m) {
		s.mu.Unlock()
		return srverr.New(srverr.CommandFailed, "Election failed.")
	}
	var old *Node
	if s.primary != nil {
		old = s.primary.node
		s.stepDownLocked(0)
	}
	rollback, ok := s.electLocked(m)
	s.mu.Unlock()
	s.afterElection(rollback)
	if old != nil {
		old.interruptPrimaryWork(nil)
	}
	if !ok {
		return srverr.New(srverr.CommandFailed, "Election failed.")
	}
	return nil
}

// Down takes a node out of the set because its process has ended. The others elect a new primary if it was one.
func (s *Set) Down(n *Node) {
	s.mu.Lock()
	m := s.find(n)
	if m.state == stateDown {
		s.mu.Unlock()
		return
	}
	was := s.primary == m
	m.state = stateDown
	m.holds++
	s.lostLocked(was)
	s.mu.Unlock()
	if was {
		n.data.abortAllTxns()
		s.Elect()
	}
}

// Up brings a node back whose process has started again.
func (s *Set) Up(n *Node) {
	s.mu.Lock()
	m := s.find(n)
	if m.state != stateDown {
		s.mu.Unlock()
		return
	}
	m.state = stateSecondary
	if m.Arbiter {
		m.state = stateArbiter
	}
	s.releaseLocked(m)
	s.bumpLocked()
	s.mu.Unlock()
	s.Elect()
}

// lostLocked handles that a member cannot be reached any more: without a majority the primary steps down.
func (s *Set) lostLocked(wasPrimary bool) {
	if wasPrimary {
		s.primary = nil
	}
	all, connected := s.votes()
	if s.primary != nil && connected <= all/2 {
		s.primary.state = stateSecondary
		s.primary = nil
	}
	s.bumpLocked()
}

// Isolate cuts a node off from the other members; clients still reach it. A primary steps down.
func (s *Set) Isolate(n *Node) {
	s.mu.Lock()
	m := s.find(n)
	if m.isolated {
		s.mu.Unlock()
		return
	}
	m.isolated = true
	m.holds++
	was := s.primary == m
	if was {
		m.state = stateSecondary
	}
	before := s.primary
	s.lostLocked(was)
	lost := before != nil && s.primary == nil
	s.mu.Unlock()
	if lost {
		before.node.interruptPrimaryWork(nil)
		s.Elect()
	}
}

// Join ends Isolate.
func (s *Set) Join(n *Node) {
	s.mu.Lock()
	m := s.find(n)
	if !m.isolated {
		s.mu.Unlock()
		return
	}
	m.isolated = false
	s.releaseLocked(m)
	s.bumpLocked()
	s.mu.Unlock()
	s.Elect()
}

// Hold stops a member from applying writes until Release is called as often.
func (s *Set) Hold(n *Node) { s.hold(n) }

// Release ends Hold: the member catches up.
func (s *Set) Release(n *Node) { s.release(n) }

// Primary returns the node that takes writes, or nil.
func (s *Set) Primary() *Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.primary == nil {
		return nil
	}
	return s.primary.node
}

// Close stops the set's timers.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if m.stepTimer != nil {
			m.stepTimer.Stop()
		}
	}
}
