package session

import (
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"allium/bson"
	"allium/stats"
)

// ServerSession is a session as the server knows it. Its id is made up by the driver; the server
// learns of it with the first command that carries it.
type ServerSession struct {
	// ID is the lsid document, {id: UUID}.
	ID bson.Raw
	// TxnNumber is the number of the last transaction or retryable write on this session.
	TxnNumber int64

	lastUse time.Time
	dirty   bool
}

// newServerSession makes a session up: a version 4 UUID (RFC 4122, section 4.4).
func newServerSession() *ServerSession {
	var u [16]byte
	rand.Read(u[:]) // never fails (crypto/rand)
	u[6] = u[6]&0x0F | 0x40
	u[8] = u[8]&0x3F | 0x80
	start, doc := bson.BeginDocument(make([]byte, 0, 30))
	doc = bson.AppendBinary(doc, "id", bson.BinaryUUID, u[:])
	return &ServerSession{ID: bson.EndDocument(doc, start), lastUse: time.Now()}
}

// Touch notes that the session's id is being sent to a server.
func (s *ServerSession) Touch() { s.lastUse = time.Now() }

// MarkDirty notes that a network error hit a command of this session, so that what the server knows
// of it is in doubt: a dirty session is not used again.
func (s *ServerSession) MarkDirty() { s.dirty = true }

// Dirty reports whether MarkDirty was called.
func (s *ServerSession) Dirty() bool { return s.dirty }

// expired reports whether the server may have forgotten the session now, or will within a minute. A
// timeout of nil means that sessions do not expire, as behind a load balancer, where the driver
// does not learn it.
func (s *ServerSession) expired(now time.Time, timeoutMinutes *int64) bool {
	if timeoutMinutes == nil {
		return false
	}
	return now.Sub(s.lastUse) > time.Duration(*timeoutMinutes-1)*time.Minute
}

// Pool keeps server sessions for reuse, the last one used first. It is safe for concurrent use.
type Pool struct {
	// Left, if not nil, is called with a session that has ended while a server may have its
	// transaction open: its caller had no time left for the abort, or a listener failed. It is also
	// called with one that stands for a transaction which its session has left (LeaveTransaction).
	// Nobody else can use the session. Left must not wait; Finish has to be called for the session
	// once.
	Left func(*Session)

	mu    sync.Mutex
	stack []*ServerSession
	inUse int // got and not put back
	// open are the sessions with an open transaction, which the client ends when it is closed.
	open map[*Session]struct{}
}

// noteOpen notes whether the session has an open transaction.
func (p *Pool) noteOpen(s *Session, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !open:
		delete(p.open, s)
	case p.open == nil:
		p.open = map[*Session]struct{}{s: {}}
	default:
		p.open[s] = struct{}{}
	}
}

// Open returns the sessions that have an open transaction.
func (p *Pool) Open() []*Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.open))
}

// Stats returns how many sessions are in use, and how many are kept.
func (p *Pool) Stats() stats.Sessions {
	p.mu.Lock()
	defer p.mu.Unlock()
	return stats.Sessions{InUse: p.inUse, Pooled: len(p.stack)}
}

// Get returns a server session that is not about to expire, touched. timeoutMinutes is the
// deployment's logicalSessionTimeoutMinutes, nil if it has none.
func (p *Pool) Get(timeoutMinutes *int64) *ServerSession {
	now := time.Now()
	p.mu.Lock()
	p.inUse++
	for n := len(p.stack); n > 0; n = len(p.stack) {
		s := p.stack[n-1]
		p.stack[n-1] = nil
		p.stack = p.stack[:n-1]
		if !s.expired(now, timeoutMinutes) {
			p.mu.Unlock()
			s.lastUse = now
			return s
		}
	}
	p.mu.Unlock()
	return newServerSession()
}

// lend returns s as it is now, for what is left to do with its id while others use s. What Put gets
// of it is dropped.
func (p *Pool) lend(s *ServerSession) *ServerSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse++
	return &ServerSession{ID: s.ID, TxnNumber: s.TxnNumber, lastUse: s.lastUse, dirty: true}
}

// Put gives a server session back. It drops a dirty or expired one, and those at the old end of the
// stack that have expired meanwhile.
func (p *Pool) Put(s *ServerSession, timeoutMinutes *int64) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse--
	stale := 0
	for stale < len(p.stack) && p.stack[stale].expired(now, timeoutMinutes) {
		stale++
	}
	if stale > 0 {
		n := copy(p.stack, p.stack[stale:])
		clear(p.stack[n:])
		p.stack = p.stack[:n]
	}
	if !s.dirty && !s.expired(now, timeoutMinutes) {
		p.stack = append(p.stack, s)
	}
}

// Drain empties the pool and returns the ids that it held, for endSessions.
func (p *Pool) Drain() []bson.Raw {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]bson.Raw, len(p.stack))
	for i, s := range p.stack {
		ids[i] = s.ID
	}
	p.stack = nil
	return ids
}
