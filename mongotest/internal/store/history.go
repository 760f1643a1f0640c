package store

import (
	"runtime/debug"
	"slices"
	"sort"
	"time"

	"allium/bson"
)

// MaxLogBytes is the size of the change log: the oplog's.
const MaxLogBytes = 64 << 20

// The past is kept in three forms: states, for reads at a time; pinned states, for those who have
// read at a time and may do so again; and the change log. Each is bounded by what it keeps from
// being freed, and by age: what was written last may be a lot, what lies back some seconds only a
// little, and states older than the window are forgotten. The change log stays as it is for some
// minutes, since a change stream that was cut off comes back to it. A timer sees to that when
// nothing is written any more.
const (
	keepStates    = 1000
	maxLogEntries = 100_000
	maxHistory    = 64 << 20
	maxPinned     = 256 << 20

	settled        = 10 * time.Second // after which the past is to be small
	settledLogAge  = 5 * time.Minute  // the same for the change log
	settledLog     = 4 << 20
	settledHistory = 4 << 20
	defaultWindow  = 5 * time.Minute

	// perState and perChange are what a state and a change cost beside the documents: copies of
	// tree nodes.
	perState  = 2 << 10
	perChange = 128

	// giveBack is how much must have become free for the runtime to be asked to return it.
	giveBack = 64 << 20
)

// past is a state of the history, without the change log.
type past struct {
	ts    bson.Timestamp // of the last change
	first bson.Timestamp // of the first change since the state before
	colls tree[string, *Coll]
	wall  int64 // when it became the newest, milliseconds since 1970
	// freed is how many bytes all writes up to then had taken out of the newest state. The
	// difference of two is what the older one keeps from being freed.
	freed int64
}

func (p *past) state() *State { return &State{TS: p.ts, colls: p.colls} }

// stateOf returns the last state that is not after ts, nil if there is none.
func (s *Store) stateOf(ts bson.Timestamp) *State {
	i := s.stateAt(ts)
	if i < 0 {
		return nil
	}
	return s.history[i].state()
}

// stateAt returns the position of the last state that is not after ts, -1 if there is none.
func (s *Store) stateAt(ts bson.Timestamp) int {
	return sort.Search(len(s.history), func(i int) bool { return s.history[i].ts.Compare(ts) > 0 }) - 1
}

// held returns how much the state at a position of the history keeps from being freed.
func (s *Store) held(i int) int64 { return s.history[len(s.history)-1].freed - s.history[i].freed }

// remember adds the newest state to the history.
func (s *Store) remember(st *State, first bson.Timestamp, freed int64) {
	s.freed += perState + freed
	s.history = append(s.history, past{ts: st.TS, first: first, colls: st.colls, wall: s.opts.Now().UnixMilli(),
		freed: s.freed})
	if len(s.history) > 2*keepStates || s.held(0) > maxHistory {
		s.trimHistory(false)
	}
	s.pins = slices.DeleteFunc(s.pins, func(p pin) bool { return s.freed-p.freed > maxPinned })
	s.arm(settled)
}

// trimHistory forgets the oldest states, as far as nobody needs them. at rest tells that nothing
// has been written for a while.
func (s *Store) trimHistory(rest bool) {
	n := len(s.history)
	cut := max(n-keepStates, 0)
	for cut < n-1 && s.held(cut) > maxHistory/2 {
		cut++
	}
	if rest {
		now := s.opts.Now()
		old, idle := now.Add(-s.window()).UnixMilli(), now.Add(-settled).UnixMilli()
		// A state was the newest until the next one came.
		for cut < n-1 && (s.history[cut+1].wall <= old ||
			s.history[cut+1].wall <= idle && s.held(cut) > settledHistory) {
			cut++
		}
	}
	if s.opts.KeepSince != nil {
		if ts, ok := s.opts.KeepSince(); ok {
			cut = min(cut, max(s.stateAt(ts), 0))
		}
	}
	if cut > 0 {
		s.history = append([]past(nil), s.history[cut:]...)
	}
}

func (s *Store) window() time.Duration {
	if s.opts.Window != nil {
		return s.opts.Window()
	}
	return defaultWindow
}

// addToLog adds entries to a change log and returns it. What is added stays whole, be it ever so
// much: no change stream has had a chance to see it.
func (s *Store) addToLog(log, entries []*Entry) []*Entry {
	log = append(log, entries...)
	for _, e := range entries {
		s.logSize += e.size()
	}
	if len(log) > maxLogEntries || s.logSize > MaxLogBytes {
		added := 0
		for _, e := range entries {
			added += e.size()
		}
		log = s.trimLog(log, max(maxLogEntries/2, len(entries)), max(MaxLogBytes/2, added))
	}
	return log
}

// trimLog drops the oldest entries of a change log until it is small enough. What was committed at
// one time stays together, since a stream that has seen a part of it would miss the rest.
func (s *Store) trimLog(log []*Entry, entries, bytes int) []*Entry {
	cut, size := len(log), 0
	for cut > 0 && len(log)-cut < entries && size <= bytes {
		cut--
		size += log[cut].size()
	}
	if size > bytes && cut < len(log)-1 {
		size -= log[cut].size()
		cut++
	}
	for cut > 0 && cut < len(log) && log[cut-1].TS == log[cut].TS {
		cut--
		size += log[cut].size()
	}
	if cut == 0 {
		return log
	}
	s.logSize = size
	return append([]*Entry{trimmed(log[cut-1].TS)}, log[cut:]...)
}

// prefix returns the part of a change log up to a time. What is appended to it does not touch the
// rest.
func prefix(log []*Entry, ts bson.Timestamp) []*Entry {
	n := sort.Search(len(log), func(i int) bool { return log[i].TS.Compare(ts) > 0 })
	return log[:n:n]
}

// arm starts the timer that makes the past small, unless it runs.
func (s *Store) arm(wait time.Duration) {
	if s.timer == nil && !s.closed {
		s.timer = time.AfterFunc(wait, func() { s.Settle() })
	}
}

// Settle forgets what is too old, by the clock as it is now. A store does so by itself when there
// is anything to forget; a test that moves the clock calls it.
func (s *Store) Settle() {
	s.mu.Lock()
	much := s.settle()
	s.mu.Unlock()
	if much {
		debug.FreeOSMemory()
	}
}

// settle is Settle. It reports whether much has become free and nothing is written at the moment.
func (s *Store) settle() (much bool) {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if s.closed {
		return false
	}
	st, now := s.latest.Load(), s.opts.Now()
	wait := time.Duration(0)
	again := func(d time.Duration) {
		if d = max(d, settled); wait == 0 || d < wait {
			wait = d
		}
	}
	if len(s.history) > 1 {
		s.trimHistory(true)
	}
	if n := len(s.history); n > 1 {
		next := s.window()
		if s.held(0) > settledHistory {
			next = settled
		}
		again(time.UnixMilli(s.history[1].wall).Add(next).Sub(now))
	}
	if s.logSize > settledLog {
		if age := now.Sub(st.log[len(st.log)-1].Wall()); age < settledLogAge {
			again(settledLogAge - age)
		} else {
			next := *st
			next.log = s.trimLog(st.log, maxLogEntries, settledLog)
			s.latest.Store(&next)
			if s.group != nil {
				s.group.refresh() // or it holds what was the newest
			}
		}
	}
	s.pins = slices.DeleteFunc(s.pins, func(p pin) bool { return !now.Before(p.until) })
	for _, p := range s.pins {
		again(p.until.Sub(now))
	}
	if busy := s.edit != s.quiet; busy {
		s.quiet = s.edit
		if s.freed-s.returned > giveBack {
			again(settled)
		}
	} else if much = s.freed-s.returned > giveBack; much {
		s.returned = s.freed
	}
	if wait > 0 {
		s.arm(wait)
	}
	return much
}

// Close ends what the store does by itself. It can be used, but forgets nothing of its past any
// more unless that becomes large.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
