package replica

import "time"

// Replication lag: a member that applies writes later than the primary does, because it is
// configured so (secondaryDelaySecs) or because a test wants it. All members read one store, so
// applying is moving a position.

// delayedApply is a position that a member gets to when its delay has passed.
type delayedApply struct {
	at   OpTime
	wall time.Time
	due  time.Time
}

// delayOf returns how much later than the primary a member applies writes.
func (s *Set) delayOf(m *member) time.Duration {
	if m == s.primary {
		return 0
	}
	return m.Delay + m.lag
}

// SetLag makes a node apply writes that much later whenever it is a secondary. What waits to be
// applied keeps its time, unless there is no lag any more.
func (s *Set) SetLag(n Peer, lag time.Duration) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	m := s.find(n)
	m.lag = lag
	if m.hasData() && m.holds == 0 && s.delayOf(m) == 0 {
		m.pending = nil
		m.applied, m.wall = s.newest, s.newestWall
		s.commitLocked()
	}
}

// applyLaterLocked lets a member get to the newest write when its delay has passed.
func (s *Set) applyLaterLocked(m *member) {
	if m.applied == s.newest || len(m.pending) > 0 && m.pending[len(m.pending)-1].at == s.newest {
		return
	}
	m.pending = append(m.pending, delayedApply{s.newest, s.newestWall, time.Now().Add(s.delayOf(m))})
	if len(m.pending) == 1 {
		s.armLocked(m)
	}
}

func (s *Set) armLocked(m *member) {
	m.applyTimer = time.AfterFunc(time.Until(m.pending[0].due), func() { s.applyDue(m) })
}

// applyDue applies what is due.
func (s *Set) applyDue(m *member) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if m.holds > 0 {
		m.pending = nil // release brings the member up to date
	}
	now := time.Now()
	n := 0
	for ; n < len(m.pending) && !m.pending[n].due.After(now); n++ {
		if p := m.pending[n]; m.applied.compare(p.at) < 0 {
			m.applied, m.wall = p.at, p.wall
		}
	}
	m.pending = m.pending[n:]
	if len(m.pending) > 0 {
		s.armLocked(m)
	}
	if n > 0 {
		s.commitLocked()
	}
}

// catchUpLocked lets a member that is about to become primary take over what others have that it
// reaches, as a new primary does before it takes writes. One that is held back does not.
func (s *Set) catchUpLocked(m *member) {
	m.pending = nil
	if m.holds > 0 {
		return
	}
	for _, other := range s.members {
		if other.hasData() && other.connected() && other.applied.compare(m.applied) > 0 {
			m.applied, m.wall = other.applied, other.wall
		}
	}
}
