// Package session holds the logical sessions of a deployment: the newest transaction number of
// each, what its retryable writes did, and the transaction that it is in.
package session

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// maxSessions bounds how many logical sessions a data set remembers; the server's own bound.
const maxSessions = 1_000_000

// Timeout is how long a session lives that nobody uses.
const Timeout = 30 * time.Minute

// ID identifies a logical session: the client's UUID and the digest of its user (specification:
// driver sessions).
type ID struct {
	ID  [16]byte
	UID [32]byte
}

// Append appends the id as an element of a document.
func (id ID) Append(dst []byte, key string) []byte {
	at, dst := bson.BeginDocumentElement(dst, key)
	dst = bson.AppendBinary(dst, "id", bson.BinaryUUID, id.ID[:])
	dst = bson.AppendBinary(dst, "uid", bson.BinaryGeneric, id.UID[:])
	return bson.EndDocument(dst, at)
}

// noUser is the digest of no user at all, as in deployments without authentication.
var noUser = sha256.Sum256(nil)

// refreshEvery is how often a server looks through its sessions: it forgets those that their
// clients have ended, and those that nobody has used for the timeout (logicalSessionRefreshMillis).
const refreshEvery = 5 * time.Minute

// Session is a logical session with what the server remembers of it: the newest transaction number,
// what its retryable write did, or the transaction it is in.
type Session struct {
	ID ID

	Mu    *Lock // held while a command has the session checked out
	State State

	use     sync.Mutex // guards what follows
	lastUse time.Time
	ended   time.Time // when its client said that it does not need it any more; zero: it did not
	number  int64     // of the retryable write that stmts are of
	stmts   map[int32]Statement
}

// Document returns what $listLocalSessions tells about the session.
func (s *Session) Document() bson.Raw {
	s.use.Lock()
	defer s.use.Unlock()
	at, doc := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendDateTime(s.ID.Append(doc, "_id"), "lastUse", bson.NewDateTime(s.lastUse)), at)
}

// State is what a session knows of its newest transaction number.
type State struct {
	TxnNumber int64 // -1: none yet
	Phase     Phase
	Txn       *Txn // of the phases other than retryable
}

// Record notes what a statement of the retryable write with this number did. The session need not
// be checked out: a shard keeps the records of what mongoses write there.
func (s *Session) Record(number int64, stmt int32, st Statement) {
	s.use.Lock()
	defer s.use.Unlock()
	if s.stmts == nil || number != s.number {
		s.number, s.stmts = number, map[int32]Statement{}
	}
	s.stmts[stmt] = st
}

// Recorded returns what a statement of the retryable write with this number did.
func (s *Session) Recorded(number int64, stmt int32) (Statement, bool) {
	s.use.Lock()
	defer s.use.Unlock()
	if number != s.number {
		return Statement{}, false
	}
	st, ok := s.stmts[stmt]
	return st, ok
}

// LastWrite returns the number of the newest retryable write and the time of its last statement,
// except for those that undone tells of; zero if there is none.
func (s *Session) LastWrite(undone func(ts bson.Timestamp) bool) (number int64, last bson.Timestamp) {
	s.use.Lock()
	defer s.use.Unlock()
	for _, st := range s.stmts {
		if st.TS.Compare(last) > 0 && !undone(st.TS) {
			last = st.TS
		}
	}
	return s.number, last
}

// Phase is where a session's newest transaction number stands.
type Phase int

const (
	RetryableWrite Phase = iota
	TxnInProgress
	TxnCommitted
	TxnAborted
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

// Catalog holds the logical sessions of a data set. Safe for concurrent use.
type Catalog struct {
	mu     sync.Mutex
	undone []span // by rollbacks
	byID   map[ID]*Session
	next   time.Time // when to look through them again
}

// NewCatalog returns an empty catalog.
func NewCatalog() *Catalog {
	return &Catalog{byID: map[ID]*Session{}}
}

// Use returns the session, which is made when it is not known, and notes that it was used. One that
// nobody has used for the session timeout is a new one. gone are the sessions that have ended since
// the last call, with their transactions.
func (c *Catalog) Use(id ID, now time.Time) (s *Session, gone []*Session, err error) {
	c.mu.Lock()
	gone = c.refreshLocked(now)
	s = c.byID[id]
	if s != nil && s.Expired(now) && s.Mu.TryLock() {
		s.Abort()
		s.Mu.Unlock()
		delete(c.byID, id)
		s, gone = nil, append(gone, s)
	}
	if s == nil {
		if len(c.byID) >= maxSessions {
			c.expireLocked(now)
		}
		if len(c.byID) >= maxSessions {
			c.mu.Unlock()
			return nil, gone, srverr.New(srverr.TooManyLogicalSessions, "cannot add session into the cache")
		}
		s = &Session{ID: id, Mu: newLock(), State: State{TxnNumber: -1}}
		c.byID[id] = s
	}
	c.mu.Unlock()
	s.use.Lock()
	s.lastUse, s.ended = now, time.Time{}
	s.use.Unlock()
	return s, gone, nil
}

// Find returns the session, nil if it is not known.
func (c *Catalog) Find(id ID) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[id]
}

// End notes that a client does not need the sessions any more. They are forgotten when the server
// looks through its sessions the next time, with what they still do.
func (c *Catalog) End(ids []ID, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if s := c.byID[id]; s != nil {
			s.use.Lock()
			s.ended = now
			s.use.Unlock()
		}
	}
}

// refreshLocked forgets the sessions that had ended or expired when the server last had to look
// through them, and returns them.
func (c *Catalog) refreshLocked(now time.Time) (gone []*Session) {
	if c.next.IsZero() {
		c.next = now.Add(refreshEvery)
	}
	if now.Before(c.next) {
		return nil
	}
	last := c.next.Add(now.Sub(c.next).Truncate(refreshEvery))
	c.next = last.Add(refreshEvery)
	for id, s := range c.byID {
		s.use.Lock()
		ended := !s.ended.IsZero() && !s.ended.After(last)
		s.use.Unlock()
		if (ended || s.Expired(last)) && s.Mu.TryLock() {
			s.Abort()
			s.Mu.Unlock()
			delete(c.byID, id)
			gone = append(gone, s)
		}
	}
	return gone
}

// Expired reports whether nobody has used the session for the session timeout.
func (s *Session) Expired(now time.Time) bool {
	s.use.Lock()
	defer s.use.Unlock()
	return now.Sub(s.lastUse) > Timeout && !s.lastUse.IsZero()
}

// expireLocked forgets the sessions that nobody has used for the session timeout.
func (c *Catalog) expireLocked(now time.Time) {
	for id, s := range c.byID {
		if s.Expired(now) && s.Mu.TryLock() {
			if s.State.Phase != TxnInProgress {
				delete(c.byID, id)
			}
			s.Mu.Unlock()
		}
	}
}

// All returns the sessions that match.
func (c *Catalog) All(match func(ID) bool) []*Session {
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

// Abort aborts the open transaction, if there is one. The session is checked out.
func (s *Session) Abort() {
	if s.State.Phase != TxnInProgress {
		return
	}
	s.State.Phase = TxnAborted
	s.State.Txn.End(false)
}

// NewID returns a random id without a user.
func NewID() ID {
	id := ID{UID: noUser}
	rand.Read(id.ID[:])
	id.ID[6] = id.ID[6]&0x0f | 0x40
	id.ID[8] = id.ID[8]&0x3f | 0x80
	return id
}

// Digest returns the digest of a user that a value holds.
func Digest(b []byte) (digest [32]byte, err error) {
	if len(b) != len(digest) {
		return digest, srverr.New(srverr.UnsupportedFormat, "Unsupported SHA256Block hash length: %d", len(b))
	}
	return [32]byte(b), nil
}

// ParseID reads an lsid document; context names it in errors, needUID makes uid a required field.
func ParseID(v release.Version, doc bson.Raw, context string, needUID bool) (ID, error) {
	id := ID{UID: noUser}
	var hasID, hasUID bool
	seen := map[string]bool{}
	for k, e := range doc.All() {
		field := context + "." + k
		if seen[k] {
			return id, srverr.New(40413, "BSON field '%s' is a duplicate field", field)
		}
		seen[string([]byte(k))] = true
		if (e.Type == bson.TypeNull || e.Type == bson.TypeUndefined) && (k == "id" || k == "uid") {
			continue
		}
		switch k {
		case "id":
			b, err := BinaryField(v, e, field, bson.BinaryUUID)
			if err != nil {
				return id, err
			}
			if len(b) != 16 {
				return id, srverr.New(srverr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
			}
			copy(id.ID[:], b)
			hasID = true
		case "uid":
			b, err := BinaryField(v, e, field, bson.BinaryGeneric)
			if err != nil {
				return id, err
			}
			if id.UID, err = Digest(b); err != nil {
				return id, err
			}
			hasUID = true
		default:
			return id, args.UnknownField(field)
		}
	}
	if !hasID {
		return id, args.MissingField(context + ".id")
	}
	if needUID && !hasUID {
		return id, args.MissingField(context + ".uid")
	}
	return id, nil
}

var subtypeNames = map[byte]string{
	bson.BinaryGeneric: "general", bson.BinaryFunction: "function", bson.BinaryOld: "binary(deprecated)",
	bson.BinaryUUIDOld: "UUID(deprecated)", bson.BinaryUUID: "UUID", bson.BinaryMD5: "MD5",
	bson.BinaryEncrypted: "encrypt",
}

// BinaryField returns the bytes of a binary value of this subtype.
func BinaryField(version release.Version, v bson.RawValue, field string, subtype byte) ([]byte, error) {
	if v.Type != bson.TypeBinary {
		return nil, args.WrongType(field, v.Type, "binData")
	}
	if len(v.Value) < 5 || v.Value[4] != subtype {
		got := "general"
		if len(v.Value) >= 5 {
			got = subtypeNames[v.Value[4]]
		}
		binary := "binData"
		if !version.AtLeast(5, 0) {
			binary = "bindData" // sic
		}
		return nil, srverr.New(srverr.TypeMismatch, "BSON field '%s' is the wrong %s type '%s', expected type '%s'",
			field, binary, got, subtypeNames[subtype])
	}
	return v.Value[5:], nil
}

// Document returns the id as a document: {id, uid}.
func (id ID) Document() bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendBinary(doc, "id", bson.BinaryUUID, id.ID[:])
	doc = bson.AppendBinary(doc, "uid", bson.BinaryGeneric, id.UID[:])
	return bson.EndDocument(doc, at)
}

// AbortAll aborts every open transaction, as a step-down does.
func (c *Catalog) AbortAll() {
	for _, s := range c.All(func(ID) bool { return true }) {
		s.Mu.Lock()
		s.Abort()
		s.Mu.Unlock()
	}
}
