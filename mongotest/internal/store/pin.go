package store

import (
	"slices"
	"time"

	"allium/bson"
)

// maxPins bounds how many old states are kept because somebody has read a snapshot of them.
const maxPins = 1000

// pin is a state that stays readable for a while, although the history may not reach back to it any
// more.
type pin struct {
	ts    bson.Timestamp
	state *State
	freed int64 // when it was the newest: see past
	until time.Time
}

// Pin returns the state as of a time, as At does, and keeps it readable at exactly this time for
// the period from now on. Of more than a thousand times the one that was read longest ago is
// forgotten, and so are those that keep more than 256 MB.
func (s *Store) Pin(ts bson.Timestamp, period time.Duration) (*State, bool) {
	if s.opts.Tick == nil {
		return s.Latest(), true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pin(ts, period)
}

func (s *Store) pin(ts bson.Timestamp, period time.Duration) (*State, bool) {
	if s.shards != nil {
		return s.joinAt(func(shard *Store) *State {
			st, _ := shard.pin(ts, period)
			return st
		})
	}
	now := s.opts.Now()
	s.pins = slices.DeleteFunc(s.pins, func(p pin) bool { return !now.Before(p.until) })
	p := pin{ts: ts, until: now.Add(period)}
	if i := slices.IndexFunc(s.pins, func(p pin) bool { return p.ts == ts }); i >= 0 {
		p.state, p.freed = s.pins[i].state, s.pins[i].freed
		s.pins = slices.Delete(s.pins, i, i+1)
	} else if i := s.stateAt(ts); i >= 0 {
		p.state, p.freed = s.history[i].state(), s.history[i].freed
	} else {
		return nil, false
	}
	if len(s.pins) >= maxPins {
		s.pins = slices.Delete(s.pins, 0, 1)
	}
	s.pins = append(s.pins, p)
	s.arm(settled)
	return p.state, true
}
