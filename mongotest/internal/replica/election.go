package replica

import (
	"time"

	"allium/mongotest/internal/srverr"
)

// A step-down goes as on a real server: new writes wait, running writes and those that wait for
// their write concern are interrupted and answered while the member's state and topologyVersion are
// still the old ones, then the state changes. A client may thus read of a write that was applied
// and of an error that is older than what its monitor knows next.

// beginStepDownLocked makes new writes on the member wait until endStepDownLocked.
func (m *member) beginStepDownLocked() { m.stepping++ }

// endStepDownLocked lets the writes go on that beginStepDownLocked holds back: they see the
// member's state as it is now.
func (s *Set) endStepDownLocked(m *member) {
	m.stepping--
	s.progressLocked()
}

// lostPrimaryLocked notes that there is no primary. The next election waits for the set's election
// delay.
func (s *Set) lostPrimaryLocked() {
	if s.primary != nil && s.primary.state == StatePrimary {
		s.primary.state = StateSecondary
	}
	s.primary = nil
	s.lead.Store(nil)
	if s.electTimer != nil {
		s.electTimer.Stop()
		s.electTimer = nil
	}
	if s.electionDelay > 0 {
		s.electAfter = time.Now().Add(s.electionDelay)
		s.electTimer = time.AfterFunc(s.electionDelay, func() { s.Elect() })
	}
}

// SetElectionDelay sets how long the set stays without a primary before it elects another one.
func (s *Set) SetElectionDelay(d time.Duration) {
	s.Mu.Lock()
	s.electionDelay = d
	s.Mu.Unlock()
}

// barLocked keeps a member from being elected for a while; after that it stands for election if
// there is no primary.
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

// StepDown makes the primary give up its place for the period. Unless forced, an electable
// secondary must have all of its writes, for which it waits up to catchUp.
func (s *Set) StepDown(r Waiter, n Peer, period, catchUp time.Duration, force bool) error {
	s.Mu.Lock()
	if s.primary == nil || s.primary.node != n {
		s.Mu.Unlock()
		return srverr.New(srverr.NotWritablePrimary, "not primary so can't step down")
	}
	m := s.primary
	m.beginStepDownLocked()
	s.Mu.Unlock()
	n.InterruptPrimaryWork(r)
	ready := func() bool {
		have := 0
		electable := false
		for _, m := range s.members {
			if m.hasData() && m.connected() && m.applied == s.newest {
				have += m.Votes
				electable = electable || m.state == StateSecondary && m.Priority > 0
			}
		}
		return electable && have >= s.writeMajority()
	}
	ok := true
	var err error
	if r != nil {
		ok, err = s.wait(r, max(catchUp, time.Nanosecond), ready)
	}
	if err == nil && !ok && !force {
		err = srverr.New(srverr.ExceededTimeLimit,
			"No electable secondaries caught up as of %s. Please use the replSetStepDown command with the argument {force: true} to force node to step down.", s.data.Now().UTC().Format("2006-01-02T15:04:05.000-0700"))
	}
	s.Mu.Lock()
	stepped := err == nil && s.primary == m
	if stepped {
		s.lostPrimaryLocked()
		s.barLocked(m, period)
		s.bumpLocked()
	}
	s.endStepDownLocked(m)
	s.Mu.Unlock()
	if stepped {
		s.Elect()
	}
	return err
}

// Freeze keeps a secondary from being elected; zero ends that.
func (s *Set) Freeze(n Peer, period time.Duration) {
	s.Mu.Lock()
	s.barLocked(s.find(n), period)
	s.Mu.Unlock()
	if period == 0 {
		s.Elect()
	}
}

// wouldElectLocked reports whether a member would get the votes of a majority: nobody votes for one
// that has less than the voter.
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
func (s *Set) StepUp(n Peer) error {
	s.Mu.Lock()
	m := s.find(n)
	if m.state != StateSecondary || m.Priority <= 0 || !m.connected() || !s.wouldElectLocked(m) {
		s.Mu.Unlock()
		return srverr.New(srverr.CommandFailed, "Election failed.")
	}
	old := s.primary
	if old != nil {
		s.deposeLocked(old)
	}
	ok := s.electLocked(m) && s.primary == m
	if !ok {
		s.electLocked(nil) // the old primary has given up its place
	}
	s.Mu.Unlock()
	if !ok {
		return srverr.New(srverr.CommandFailed, "Election failed.")
	}
	return nil
}

// Down takes a node out of the set because its process has ended. The others elect a new primary if
// it was one.
func (s *Set) Down(n Peer) {
	s.Mu.Lock()
	m := s.find(n)
	if m.state == stateDown {
		s.Mu.Unlock()
		return
	}
	was := s.primary == m
	if was {
		s.lostPrimaryLocked()
	}
	m.state = stateDown
	m.holds++
	if was {
		s.bumpLocked()
	} else {
		s.progressLocked() // what the others' hello says stays the same
	}
	s.Mu.Unlock()
	if was {
		s.data.AbortTransactions()
		s.Elect()
		return
	}
	s.checkMajority()
}

// Hang takes a node out of the set because its process does not answer the others any more, though
// it has not ended. What only a primary may do is interrupted, as it is when the process runs again
// and finds that there is another primary; Up brings it back.
func (s *Set) Hang(n Peer) {
	s.Mu.Lock()
	m := s.primary
	if m == nil || m.node != n {
		s.Mu.Unlock()
		s.Down(n)
		return
	}
	m.beginStepDownLocked()
	s.Mu.Unlock()
	n.InterruptPrimaryWork(nil)
	s.Down(n)
	s.Mu.Lock()
	s.endStepDownLocked(m)
	s.Mu.Unlock()
}

// checkMajority makes the primary step down if it does not reach a majority any more.
func (s *Set) checkMajority() {
	s.Mu.Lock()
	m := s.primary
	all, connected := s.votes()
	if m == nil || connected > all/2 {
		s.Mu.Unlock()
		return
	}
	s.deposeLocked(m)
	s.Mu.Unlock()
	s.Elect() // somebody may have come back meanwhile
}

// deposeLocked makes m, the primary, a secondary, and ends what only a primary may do. It releases
// the lock while the interrupted commands end.
func (s *Set) deposeLocked(m *member) {
	m.beginStepDownLocked()
	s.Mu.Unlock()
	m.node.InterruptPrimaryWork(nil)
	s.Mu.Lock()
	if s.primary == m {
		s.lostPrimaryLocked()
		s.bumpLocked()
	}
	s.endStepDownLocked(m)
}

// Up brings a node back whose process has started again.
func (s *Set) Up(n Peer) {
	s.Mu.Lock()
	m := s.find(n)
	if m.state != stateDown {
		s.Mu.Unlock()
		return
	}
	m.state = StateSecondary
	if m.Arbiter {
		m.state = stateArbiter
	}
	s.releaseLocked(m)
	s.bumpLocked()
	s.Mu.Unlock()
	s.Elect()
}

// Isolate cuts a node off from the other members; clients still reach it. A primary steps down.
func (s *Set) Isolate(n Peer) {
	s.Mu.Lock()
	m := s.find(n)
	if m.isolated {
		s.Mu.Unlock()
		return
	}
	was := s.primary == m
	if was {
		m.beginStepDownLocked()
		s.Mu.Unlock()
		n.InterruptPrimaryWork(nil)
		s.Mu.Lock()
		if s.primary == m {
			s.lostPrimaryLocked()
		}
		s.endStepDownLocked(m)
	}
	if !m.isolated {
		m.isolated = true
		m.holds++
	}
	s.bumpLocked()
	s.Mu.Unlock()
	if was {
		s.Elect()
		return
	}
	s.checkMajority()
}

// Join ends Isolate.
func (s *Set) Join(n Peer) {
	s.Mu.Lock()
	m := s.find(n)
	if !m.isolated {
		s.Mu.Unlock()
		return
	}
	m.isolated = false
	s.releaseLocked(m)
	s.bumpLocked()
	s.Mu.Unlock()
	s.Elect()
}

// Single reports whether the set has one member alone, which nobody can take the place of.
func (s *Set) Single() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return len(s.members) == 1
}

// Primary returns the node that takes writes, or nil.
func (s *Set) Primary() Peer {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.primary == nil {
		return nil
	}
	return s.primary.node
}

// Close stops the set's timers.
func (s *Set) Close() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, m := range s.members {
		if m.stepTimer != nil {
			m.stepTimer.Stop()
		}
		if m.applyTimer != nil {
			m.applyTimer.Stop()
		}
	}
	if s.electTimer != nil {
		s.electTimer.Stop()
	}
}
