// Package replica is a replica set: its members and their states, elections and step-downs, how
// far each member has got, write concerns, and what replies tell of it all. It knows nothing of
// commands or connections: a member is a [Peer], a command that waits a [Waiter].
package replica

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// OpTime is a place in the history of a replica set: the write's timestamp and the term it was made
// in.
type OpTime struct {
	TS   bson.Timestamp
	Term int64
}

func (o OpTime) compare(other OpTime) int {
	switch {
	case o.Term < other.Term:
		return -1
	case o.Term > other.Term:
		return 1
	}
	return o.TS.Compare(other.TS)
}

// Append appends the time as an element of a document.
func (o OpTime) Append(dst []byte, key string) []byte {
	at, dst := bson.BeginDocumentElement(dst, key)
	dst = bsondoc.Append(dst, "ts", o.TS, "t", o.Term)
	return bson.EndDocument(dst, at)
}

// MemberConfig is a member's entry in the replica set's configuration.
type MemberConfig struct {
	Priority float64
	Votes    int
	Hidden   bool
	Arbiter  bool
	Delay    time.Duration // secondaryDelaySecs: the member stays that far behind
	Tags     map[string]string
}

// State is a member's replication state, numbered as replSetGetStatus does.
type State int32

const (
	StatePrimary   State = 1
	StateSecondary State = 2
	stateArbiter   State = 7
	stateDown      State = 8
)

// String returns the state as replSetGetStatus names it.
func (s State) String() string {
	switch s {
	case StatePrimary:
		return "PRIMARY"
	case StateSecondary:
		return "SECONDARY"
	case stateArbiter:
		return "ARBITER"
	}
	return "(not reachable/healthy)"
}

// member is a replica set's view of one of its nodes. Guarded by the set's mutex.
type member struct {
	*MemberConfig
	id      int32
	node    Peer
	state   State
	applied OpTime
	wall    time.Time // when applied was written
	// holds counts the reasons why the member does not apply writes: a test, a fail point, being
	// down or cut off.
	holds       int
	lag         time.Duration // a secondary applies writes that much later
	pending     []delayedApply
	applyTimer  *time.Timer // for the first of pending
	isolated    bool
	stepping    int       // step-downs under way: writes wait
	ineligible  time.Time // not to be elected before this time: after a step-down or replSetFreeze
	stepTimer   *time.Timer
	electedAt   time.Time
	electedTime OpTime
}

func (m *member) hasData() bool { return !m.Arbiter }

// connected reports whether the other members reach it.
func (m *member) connected() bool { return m.state != stateDown && !m.isolated }

// Peer is a process that is a member. Two are the same if they are equal.
type Peer interface {
	Addr() string
	Started() time.Time
	// BumpTopology tells streaming clients that the next hello differs. It must not call the set.
	BumpTopology()
	// InterruptPrimaryWork ends what only a primary may do, running writes and open transactions,
	// but for one command, and returns when the interrupted commands have their replies.
	InterruptPrimaryWork(except Waiter)
}

// Waiter is a command that waits: Wait blocks until ready is closed, or until the timeout has
// passed (0: none), when it returns false. It is an error if the command has to end.
type Waiter interface {
	Wait(ready <-chan struct{}, timeout time.Duration) (bool, error)
}

// History is what the members have in common: the clock, the store, the transactions.
type History interface {
	Now() time.Time
	Tick() bson.Timestamp
	NotifyCommit(ts bson.Timestamp) // the majority's commit point has moved
	// RollBack undoes the writes after the one time and before the other: a new primary, which was
	// elected at the latter, never had them. It must not wait for a command.
	RollBack(after, before bson.Timestamp)
	AbortTransactions()
}

// Set is a replica set: its members, who is primary, and how far everybody has got. Safe for
// concurrent use.
//
// All members read one store; a member that is held back sees it as of its position. There are no
// timers while nothing happens: an event (a write, a kill, a step-down) moves every position that
// it can move.
//
// Lock order: Set.mu before Node.mu and Conn.mu.
type Set struct {
	name string
	id   bson.ObjectID
	data History

	Mu         sync.Mutex
	version    int32
	Term       int64
	electionID bson.ObjectID
	members    []*member
	primary    *member
	newest     OpTime // the primary's newest write
	newestWall time.Time
	committed  OpTime // known to a majority
	commitWall time.Time
	modes      map[string]map[string]int // settings.getLastErrorModes
	waiters    int

	electionDelay time.Duration
	electAfter    time.Time     // no election before this time, but by StepUp
	electTimer    *time.Timer   // nil: none is due
	progress      chan struct{} // closed when a position or the primary changes, if somebody waits

	// lead is the primary for those who must not wait for the mutex: writers that hold the store's
	// lock. A new primary is there once it has undone what it never had.
	lead atomic.Pointer[lead]

	// behind is set while some member or the commit point is not at the newest write, so that reads
	// have to look at positions and the store has to keep old versions.
	behind atomic.Bool
	oldest atomic.Uint64 // while behind: the oldest position that somebody may read at
	told   atomic.Uint64 // newest.TS; behind says what became of that write
	terms  atomic.Int64  // Term; what a new primary never had is gone before
}

// lead is a primary and its term.
type lead struct {
	node Peer
	term int64
}

// New returns a replica set without members.
func New(name string, h History) *Set {
	return &Set{name: name, id: bson.NewObjectID(), data: h, version: 1, progress: make(chan struct{})}
}

// Name returns the set's name.
func (s *Set) Name() string { return s.name }

// Add adds a member; it starts as a secondary, or as an arbiter.
func (s *Set) Add(n Peer, cfg MemberConfig) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	state := StateSecondary
	if cfg.Arbiter {
		state = stateArbiter
	}
	s.members = append(s.members, &member{MemberConfig: &cfg, id: int32(len(s.members)), node: n, state: state})
}

// find returns the entry of a node.
func (s *Set) find(n Peer) *member {
	for _, m := range s.members {
		if m.node == n {
			return m
		}
	}
	return nil
}

// IsPrimary reports whether the node takes writes.
func (s *Set) IsPrimary(n Peer) bool {
	l := s.lead.Load()
	return l != nil && l.node == n
}

// Lead returns the primary and its term, nil if there is none. It never waits.
func (s *Set) Lead() (n Peer, term int64) {
	if l := s.lead.Load(); l != nil {
		return l.node, l.term
	}
	return nil, 0
}

// State returns the node's replication state.
func (s *Set) State(n Peer) State {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.find(n).state
}

// votes returns how many votes there are, and how many of them the connected members have.
func (s *Set) votes() (all, connected int) {
	for _, m := range s.members {
		all += m.Votes
		if m.connected() {
			connected += m.Votes
		}
	}
	return all, connected
}

// writeMajority returns how many data-bearing voters a majority write needs.
func (s *Set) writeMajority() int {
	all, data := 0, 0
	for _, m := range s.members {
		all += m.Votes
		if m.hasData() {
			data += m.Votes
		}
	}
	return min(all/2+1, data)
}

// MajorityByDefault reports whether the implicit default write concern is majority: not where
// arbiters could make it hang.
func (s *Set) MajorityByDefault() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	all, data := 0, 0
	for _, m := range s.members {
		all += m.Votes
		if m.hasData() {
			data += m.Votes
		}
	}
	return data > all/2 && (all == data || data > all/2+1) || all == data
}

// Elect makes the most suitable member primary, if there is none and a majority of the votes is
// connected. It reports whether there is a primary now. Without it nobody takes writes.
func (s *Set) Elect() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.electLocked(nil)
}

// electLocked elects the candidate, or the best member. What the others have that it never had is
// undone before it takes its first write.
func (s *Set) electLocked(candidate *member) bool {
	if s.primary != nil {
		return true
	}
	all, connected := s.votes()
	now := time.Now()
	if connected <= all/2 || candidate == nil && now.Before(s.electAfter) {
		return false
	}
	best := candidate
	for _, m := range s.members {
		if candidate != nil || m.state != StateSecondary || !m.connected() || m.Priority <= 0 ||
			now.Before(m.ineligible) {
			continue
		}
		if best == nil || m.applied.compare(best.applied) > 0 ||
			m.applied == best.applied && m.Priority > best.Priority {
			best = m
		}
	}
	if best == nil || !s.wouldElectLocked(best) {
		return false
	}
	s.catchUpLocked(best)
	s.Term++
	best.state = StatePrimary
	s.primary = best
	s.electionID = bson.ObjectID{0x7f, 0xff, 0xff, 0xff}
	binary.BigEndian.PutUint64(s.electionID[4:], uint64(s.Term))
	best.electedAt = s.data.Now()
	best.electedTime = OpTime{s.data.Tick(), s.Term}
	if best.applied.compare(s.newest) < 0 {
		for _, m := range s.members {
			if m.applied.compare(best.applied) > 0 {
				m.applied, m.wall = best.applied, best.wall
			}
			m.pending = nil
		}
		if s.committed.compare(best.applied) > 0 {
			s.committed, s.commitWall = best.applied, best.wall
		}
		s.data.RollBack(best.applied.TS, best.electedTime.TS)
	}
	s.terms.Store(s.Term)
	s.lead.Store(&lead{best.node, s.Term})
	s.wroteLocked(best.electedTime.TS)
	s.bumpLocked()
	return true
}

// bumpLocked tells all members' streaming clients and everybody who waits that something has
// changed.
func (s *Set) bumpLocked() {
	for _, m := range s.members {
		if m.state != stateDown {
			m.node.BumpTopology()
		}
	}
	s.progressLocked()
}

func (s *Set) progressLocked() {
	if s.waiters > 0 {
		close(s.progress)
		s.progress = make(chan struct{})
	}
}

// Wrote tells the set that the primary has written up to ts. The store calls it after the write is
// visible.
func (s *Set) Wrote(ts bson.Timestamp) {
	s.Mu.Lock()
	s.wroteLocked(ts)
	s.Mu.Unlock()
}

// Show tells the set that a reader has come upon a write at ts, perhaps before the writer could
// tell of it: Behind and positions take it into account from now on. It waits only if the set did
// not know of the write.
func (s *Set) Show(ts bson.Timestamp) {
	if pack(ts) > s.told.Load() {
		s.Wrote(ts)
	}
}

// Terms returns the newest term. Only at the beginning of a term does a write go that was there. It
// never waits.
func (s *Set) Terms() int64 { return s.terms.Load() }

func pack(ts bson.Timestamp) uint64 { return uint64(ts.T)<<32 | uint64(ts.I) }

func (s *Set) wroteLocked(ts bson.Timestamp) {
	if ts.Compare(s.newest.TS) > 0 {
		s.newest, s.newestWall = OpTime{ts, s.Term}, s.data.Now()
	}
	for _, m := range s.members {
		switch {
		case !m.hasData() || m.holds > 0 && m != s.primary: // a primary has what it writes itself
		case s.delayOf(m) > 0:
			s.applyLaterLocked(m)
		default:
			m.applied, m.wall = s.newest, s.newestWall
		}
	}
	s.commitLocked()
}

// commitLocked moves the commit point to the newest position that a majority has.
func (s *Set) commitLocked() {
	need := s.writeMajority()
	best, wall := s.committed, s.commitWall
	behind := false
	oldest := s.newest.TS
	for _, candidate := range s.members {
		if !candidate.hasData() {
			continue
		}
		if candidate.applied != s.newest {
			behind = true
			if candidate.applied.TS.Compare(oldest) < 0 {
				oldest = candidate.applied.TS
			}
		}
		if candidate.applied.compare(best) <= 0 {
			continue
		}
		have := 0
		for _, m := range s.members {
			if m.hasData() && m.Votes > 0 && m.applied.compare(candidate.applied) >= 0 {
				have++
			}
		}
		if have >= need {
			best, wall = candidate.applied, candidate.wall
		}
	}
	if s.committed != best {
		s.committed, s.commitWall = best, wall
		s.data.NotifyCommit(best.TS)
	}
	s.oldest.Store(pack(oldest))
	s.behind.Store(behind)
	s.told.Store(pack(s.newest.TS))
	s.progressLocked()
}

// Hold stops a member from applying writes until Release is called as often.
func (s *Set) Hold(n Peer) {
	s.Mu.Lock()
	s.find(n).holds++
	s.Mu.Unlock()
}

// Release ends Hold: the member catches up.
func (s *Set) Release(n Peer) {
	s.Mu.Lock()
	s.releaseLocked(s.find(n))
	s.Mu.Unlock()
	s.Elect() // it may be up to date now
}

func (s *Set) releaseLocked(m *member) {
	if m.holds--; m.holds > 0 || !m.hasData() {
		return
	}
	if s.delayOf(m) > 0 {
		s.applyLaterLocked(m)
		return
	}
	m.applied, m.wall = s.newest, s.newestWall
	s.commitLocked()
}

// Applied returns how far a node has got.
func (s *Set) Applied(n Peer) OpTime {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.find(n).applied
}

// View is where a read sees the data.
type View struct {
	At bson.Timestamp
	// Newest is set for one that sees whatever is there, whether others have it or not.
	Newest bool
	// All is set if At is that of the newest write that the set knows of.
	All bool
}

// Has reports whether the read sees all writes up to a time. One that was only heard of has no
// write, and no member ever gets there.
func (v View) Has(ts bson.Timestamp) bool { return v.Newest || v.All || v.At.Compare(ts) >= 0 }

// View returns where a read of this level sees the data on the node.
func (s *Set) View(n Peer, level string) View {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	m := s.find(n)
	at := m.applied
	if level != "majority" && level != "snapshot" {
		return View{At: at.TS, Newest: m == s.primary, All: at == s.newest}
	}
	if s.committed.compare(at) < 0 {
		at = s.committed
	}
	return View{At: at.TS, All: at == s.newest}
}

// wait blocks until ok reports true, which is asked under the lock whenever something has changed.
func (s *Set) wait(r Waiter, timeout time.Duration, ok func() bool) (bool, error) {
	end := time.Now().Add(timeout)
	s.Mu.Lock()
	if ok() {
		s.Mu.Unlock()
		return true, nil
	}
	s.waiters++
	defer func() {
		s.Mu.Lock()
		s.waiters--
		s.Mu.Unlock()
	}()
	for {
		progress := s.progress
		s.Mu.Unlock()
		left := time.Duration(0)
		if timeout > 0 {
			if left = time.Until(end); left <= 0 {
				return false, nil
			}
		}
		if more, err := r.Wait(progress, left); err != nil || !more {
			return false, err
		}
		s.Mu.Lock()
		if ok() {
			s.Mu.Unlock()
			return true, nil
		}
	}
}

// WaitApplied waits until the node (or the commit point) has got to ts.
func (s *Set) WaitApplied(r Waiter, n Peer, ts bson.Timestamp, majority bool) error {
	// A time that was only heard of has no write; the primary writes nothing for it, it just is
	// there.
	_, err := s.wait(r, 0, func() bool {
		m := s.find(n)
		at := m.applied
		if majority && s.committed.compare(at) < 0 {
			at = s.committed
		}
		return at.TS.Compare(ts) >= 0 || at == s.newest
	})
	return err
}

// AwaitPrimary waits until there is a primary; it reports false after the timeout.
func (s *Set) AwaitPrimary(r Waiter, timeout time.Duration) (bool, error) {
	return s.wait(r, timeout, func() bool { return s.primary != nil })
}

// WaitReplication waits until ts satisfies the write concern. It returns what goes into
// writeConcernError.
func (s *Set) WaitReplication(r Waiter, n Peer, ts bson.Timestamp, wc *WriteConcern) (*srverr.Error, error) {
	s.Mu.Lock()
	check, wcErr := s.concernCheck(ts, wc)
	done := check == nil || check()
	term := s.Term
	s.Mu.Unlock()
	if wcErr != nil || done {
		return wcErr, nil
	}
	lost := false
	ok, err := s.wait(r, time.Duration(wc.Wtimeout)*time.Millisecond, func() bool {
		lost = s.Term != term || s.primary == nil || s.primary.node != n
		return lost || check()
	})
	switch {
	case err != nil:
		return nil, err
	case lost && !s.checkLocked(check):
		return srverr.New(srverr.PrimarySteppedDown, "Primary stepped down while waiting for replication"), nil
	case !ok:
		return srverr.New(srverr.WriteConcernFailed, "waiting for replication timed out"), nil
	}
	return nil, nil
}

// HasMajority reports whether a majority has a write of this term already.
func (s *Set) HasMajority(term int64, ts bson.Timestamp) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Term == term && s.primary != nil && s.committed.TS.Compare(ts) >= 0
}

// AwaitWrite is WaitReplication for a mongos, which wrote to the set at ts in this term. lost is
// true if the term has ended meanwhile: the write may have been rolled back. timeout bounds the
// wait instead of the write concern's; 0: none.
func (s *Set) AwaitWrite(r Waiter, term int64, ts bson.Timestamp, wc *WriteConcern,
	timeout time.Duration) (wcErr *srverr.Error, lost bool, err error) {
	s.Mu.Lock()
	check, wcErr := s.concernCheck(ts, wc)
	over := func() bool { return s.Term != term || s.primary == nil }
	lost = over()
	done := wcErr != nil || check == nil || !lost && check()
	s.Mu.Unlock()
	if done {
		return wcErr, false, nil
	}
	if lost {
		return nil, true, nil
	}
	ok, err := s.wait(r, timeout, func() bool {
		lost = over()
		return lost || check()
	})
	switch {
	case err != nil:
		return nil, false, err
	case !ok:
		return srverr.New(srverr.WriteConcernFailed, "waiting for replication timed out"), false, nil
	}
	return nil, lost, nil
}

func (s *Set) checkLocked(check func() bool) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return check()
}

// has reports whether the member has the write at ts.
func (m *member) has(ts bson.Timestamp) bool { return m.hasData() && m.applied.TS.Compare(ts) >= 0 }

// KnowsMode reports whether a write concern may have this mode.
func (s *Set) KnowsMode(name string) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return name == "majority" || s.modes[name] != nil
}

// concernCheck returns what to ask for the write concern, nil if it is satisfied anyway, or an
// error if it never can be.
func (s *Set) concernCheck(ts bson.Timestamp, wc *WriteConcern) (func() bool, *srverr.Error) {
	switch {
	case wc.NamedMode && wc.Mode == "majority":
		return func() bool { return s.committed.TS.Compare(ts) >= 0 }, nil
	case wc.NamedMode && wc.Mode != "":
		tags := s.modes[wc.Mode]
		if tags == nil {
			return nil, srverr.New(srverr.UnknownReplWriteConcern,
				"No write concern mode named '%s' found in replica set configuration", wc.Mode)
		}
		return func() bool {
			for tag, need := range tags {
				values := map[string]bool{}
				for _, m := range s.members {
					if v, ok := m.Tags[tag]; ok && m.has(ts) {
						values[v] = true
					}
				}
				if len(values) < need {
					return false
				}
			}
			return true
		}, nil
	case wc.W > 1:
		bearing := 0
		for _, m := range s.members {
			if m.hasData() {
				bearing++
			}
		}
		if int(wc.W) > bearing {
			return nil, srverr.New(srverr.UnsatisfiableWriteConcern, "Not enough data-bearing nodes")
		}
		return func() bool {
			n := 0
			for _, m := range s.members {
				if m.has(ts) {
					n++
				}
			}
			return n >= int(wc.W)
		}, nil
	}
	return nil, nil
}
