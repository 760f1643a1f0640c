package server

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"allium/bson"
	"allium/mongotest/internal/srverr"
)

// maxSessions bounds how many logical sessions a data set remembers; the server's own bound.
const maxSessions = 1_000_000

// SessionID identifies a logical session: the client's UUID and the digest of its user (specification: driver sessions).
type SessionID struct {
	ID  [16]byte
	UID [32]byte
}

func (id SessionID) append(dst []byte, key string) []byte {
	at, dst := bson.BeginDocumentElement(dst, key)
	dst = bson.AppendBinary(dst, "id", bson.BinaryUUID, id.ID[:])
	dst = bson.AppendBinary(dst, "uid", bson.BinaryGeneric, id.UID[:])
	return bson.EndDocument(dst, at)
}

// noUser is the digest of no user at all, as in deployments without authentication.
var noUser = sha256.Sum256(nil)

// Session is a logical session with what the server remembers of it: the newest transaction number, what its
// retryable write did, or the transaction it is in.
type Session struct {
	ID SessionID

	mu    sync.Mutex // held while a command has the session checked out
	state sessionState

	use     sync.Mutex // guards lastUse
	lastUse time.Time
}

// document returns what $listLocalSessions tells about the session.
func (s *Session) document() bson.Raw {
	s.use.Lock()
	defer s.use.Unlock()
	at, doc := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendDateTime(s.ID.append(doc, "_id"), "lastUse", bson.NewDateTime(s.lastUse)), at)
}

type sessionState struct {
	txnNumber int64 // -1: none yet
	phase     txnPhase
	txn       *Txn // of the phases other than retryable
	stmts     map[int32]Statement
}

// txnPhase is where a session's newest transaction number stands.
type txnPhase int

const (
	retryableWrite txnPhase = iota
	txnInProgress
	txnCommitted
	txnAborted
)

// Statement is what one statement of a retryable write did, kept so that a retry can be answered.
type Statement struct {
	Kind  StatementKind
	TS    bson.Timestamp
	Reply bson.Raw // what the command needs to answer again
}

// StatementKind says which kind of write a statement was; a retry of another kind is an error.
type StatementKind byte

// The kinds of statements.
const (
	StatementInsert StatementKind = 'i'
	StatementUpdate StatementKind = 'u'
	StatementUpsert StatementKind = 'n'
	StatementDelete StatementKind = 'd'
)

// sessionCatalog holds the logical sessions of a data set. Safe for concurrent use.
type sessionCatalog struct {
	mu   sync.Mutex
	byID map[SessionID]*Session
}

func newSessionCatalog() *sessionCatalog {
	return &sessionCatalog{byID: map[SessionID]*Session{}}
}

// use returns the session, which is made when it is not known, and notes that it was used. One that nobody has used for the
// session timeout is a new one; old is then the session that has ended, with its transaction.
func (c *sessionCatalog) use(id SessionID, now time.Time) (s, old *Session, err error) {
	c.mu.Lock()
	s = c.byID[id]
	if s != nil && s.expired(now) && s.mu.TryLock() {
		s.abort()
		s.mu.Unlock()
		delete(c.byID, id)
		s, old = nil, s
	}
	if s == nil {
		if len(c.byID) >= maxSessions {
			c.expireLocked(now)
		}
		if len(c.byID) >= maxSessions {
			c.mu.Unlock()
			return nil, old, srverr.New(srverr.TooManyLogicalSessions, "cannot add session into the cache")
		}
		s = &Session{ID: id, state: sessionState{txnNumber: -1}}
		c.byID[id] = s
	}
	c.mu.Unlock()
	s.use.Lock()
	s.lastUse = now
	s.use.Unlock()
	return s, old, nil
}

// expired reports whether nobody has used the session for the session timeout.
func (s *Session) expired(now time.Time) bool {
	s.use.Lock()
	defer s.use.Unlock()
	return now.Sub(s.lastUse) > SessionTimeout && !s.lastUse.IsZero()
}

// expireLocked forgets the sessions that nobody has used for the session timeout.
func (c *sessionCatalog) expireLocked(now time.Time) {
	for id, s := range c.byID {
		if s.expired(now) && s.mu.TryLock() {
			if s.state.phase != txnInProgress {
				delete(c.byID, id)
			}
			s.mu.Unlock()
		}
	}
}

// all returns the sessions that match.
func (c *sessionCatalog) all(match func(SessionID) bool) []*Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*Session
	for id, s := range c.byID {
		if match(id) {
			list = append(list, s)
		}
	}
	return list
}

// useSession returns the session with this id for a command. The cursors of one that has expired end.
func (r *Request) useSession(id SessionID) (*Session, error) {
	s, old, err := r.Node.data.sessions.use(id, r.Node.data.Clock.Now())
	if old != nil {
		r.Node.cursors.kill(func(c *cursor) bool { return c.session == old })
	}
	return s, err
}

// killSessions ends what the matching sessions do: operations, transactions and cursors.
func (r *Request) killSessions(match func(SessionID) bool) {
	n := r.Node
	n.killOperations(func(o *opInfo) bool { return o.session != nil && o.op != r.op && match(o.session.ID) },
		srverr.New(srverr.Interrupted, "operation was interrupted"))
	for _, s := range n.data.sessions.all(match) {
		s.mu.Lock()
		s.abort()
		s.mu.Unlock()
	}
	n.cursors.killSessions(match)
}

// abort aborts the open transaction, if there is one. The session is checked out.
func (s *Session) abort() {
	if s.state.phase != txnInProgress {
		return
	}
	s.state.phase = txnAborted
	s.state.txn.end(false)
}

func newSessionID() SessionID {
	id := SessionID{UID: noUser}
	rand.Read(id.ID[:])
	id.ID[6] = id.ID[6]&0x0f | 0x40
	id.ID[8] = id.ID[8]&0x3f | 0x80
	return id
}

// parseLSID reads an lsid document; context names it in errors, needUID makes uid a required field.
func parseLSID(doc bson.Raw, context string, needUID bool) (SessionID, error) {
	id := SessionID{UID: noUser}
	var hasID, hasUID bool
	seen := map[string]bool{}
	for k, v := range doc.All() {
		field := context + "." + k
		if seen[k] {
			return id, srverr.New(40413, "BSON field '%s' is a duplicate field", field)
		}
		seen[string([]byte(k))] = true
		if v.Type == bson.TypeNull && (k == "id" || k == "uid") {
			continue
		}
		switch k {
		case "id":
			b, err := binaryField(v, field, bson.BinaryUUID)
			if err != nil {
				return id, err
			}
			if len(b) != 16 {
				return id, srverr.New(srverr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
			}
			copy(id.ID[:], b)
			hasID = true
		case "uid":
			b, err := binaryField(v, field, bson.BinaryGeneric)
			if err != nil {
				return id, err
			}
			if len(b) != 32 {
				return id, srverr.New(srverr.UnsupportedFormat, "Unsupported SHA256Block hash length: %d", len(b))
			}
			copy(id.UID[:], b)
			hasUID = true
		default:
			return id, unknownField(field)
		}
	}
	if !hasID {
		return id, missingField(context + ".id")
	}
	if needUID && !hasUID {
		return id, missingField(context + ".uid")
	}
	return id, nil
}

var subtypeNames = map[byte]string{
	bson.BinaryGeneric: "general", bson.BinaryFunction: "function", bson.BinaryOld: "binary(deprecated)",
	bson.BinaryUUIDOld: "UUID(deprecated)", bson.BinaryUUID: "UUID", bson.BinaryMD5: "MD5", bson.BinaryEncrypted: "encrypt",
}

// binaryField returns the bytes of a binary value of this subtype.
func binaryField(v bson.RawValue, field string, subtype byte) ([]byte, error) {
	if v.Type != bson.TypeBinary {
		return nil, wrongType(field, v.Type, "binData")
	}
	if len(v.Value) < 5 || v.Value[4] != subtype {
		got := "general"
		if len(v.Value) >= 5 {
			got = subtypeNames[v.Value[4]]
		}
		return nil, srverr.New(srverr.TypeMismatch, "BSON field '%s' is the wrong bindData type '%s', expected type '%s'", field, got, subtypeNames[subtype])
	}
	return v.Value[5:], nil
}
