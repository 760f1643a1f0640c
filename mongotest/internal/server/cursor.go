package server

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"allium/bson"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

const (
	// defaultBatch is how many documents the first batch holds when the client does not say.
	defaultBatch = 101
	// cursorTimeout is how long a cursor may lie idle.
	cursorTimeout = 10 * time.Minute
	// maxCursors bounds how many cursors a node keeps for its clients.
	maxCursors = 100_000
)

// cursor is a query whose results are fetched batch by batch. It is used by one command at a time.
type cursor struct {
	id  int64
	ns  string
	it  pipeline.Iterator
	run *running
	// stash is a document that did not fit into the last batch.
	stash bson.Raw

	session   *session.Session // that made it; nil: none
	api       string           // the Stable API\'s parameters of the command that made it
	txnNumber int64            // of the transaction that the cursor belongs to; -1: none
	atTime    bson.Timestamp   // of the snapshot that it reads; zero: whatever is the newest

	tailable  bool
	awaitData bool
	noTimeout bool
	created   time.Time
	// wait returns a channel that is closed when a tailable cursor may have something new.
	wait func() <-chan struct{}
	// token returns postBatchResumeToken of a change stream's cursor.
	token func() bson.Raw
	// place returns postBatchResumeToken of a cursor that was asked to tell where its scan stands.
	place func() bson.Raw

	// Guarded by the table's mutex.
	busy    bool
	killed  bool
	lastUse time.Time
}

// running is what the iterators of a cursor know of the command that pulls from them at the moment.
type running struct {
	r     *Request
	tick  int
	state *store.State
	scans []*scanIter
	// stream is the source of a change stream's pipeline.
	stream *changeStream
	splits bool // and splits large events
}

// check is called for every document; now and then it looks whether the command has to end.
func (x *running) check() error {
	if x.tick++; x.tick%128 == 0 {
		return x.interrupted()
	}
	return nil
}

// interrupted returns the error that ends the command.
func (x *running) interrupted() error {
	if x.r == nil {
		return nil
	}
	return x.r.Check()
}

// cursorTable holds a node's open cursors. Safe for concurrent use.
type cursorTable struct {
	mu   sync.Mutex
	byID map[int64]*cursor
}

// add gives the cursor an id and keeps it.
func (t *cursorTable) add(c *cursor, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = map[int64]*cursor{}
	}
	if len(t.byID) >= maxCursors {
		t.expireLocked(now)
		if len(t.byID) >= maxCursors {
			return srverr.New(srverr.ExceededMemoryLimit, "too many open cursors: %d", len(t.byID))
		}
	}
	for c.id == 0 || t.byID[c.id] != nil {
		c.id = rand.Int64N(1<<63-1) + 1
	}
	c.lastUse = now
	t.byID[c.id] = c
	return nil
}

// expireLocked closes the cursors that nobody has used for the cursor timeout.
func (t *cursorTable) expireLocked(now time.Time) {
	for id, c := range t.byID {
		if !c.busy && !c.noTimeout && now.Sub(c.lastUse) > cursorTimeout {
			delete(t.byID, id)
			c.it.Close()
		}
	}
}

// checkOut takes a cursor for a command.
func (t *cursorTable) checkOut(id int64, now time.Time) (*cursor, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byID[id]
	if c != nil && !c.busy && !c.noTimeout && now.Sub(c.lastUse) > cursorTimeout {
		delete(t.byID, id)
		c.it.Close()
		c = nil
	}
	switch {
	case c == nil || c.killed:
		return nil, srverr.New(srverr.CursorNotFound, "cursor id %d not found", id)
	case c.busy:
		return nil, srverr.New(srverr.CursorInUse, "cursor id %d is already in use", id)
	}
	c.busy = true
	return c, nil
}

// killSessions closes the cursors of the matching sessions; one that is in use is closed when its
// command ends.
func (t *cursorTable) killSessions(match func(session.ID) bool) {
	t.mu.Lock()
	var closing []*cursor
	for id, c := range t.byID {
		switch {
		case c.session == nil || !match(c.session.ID):
		case c.busy:
			c.killed = true
		default:
			delete(t.byID, id)
			closing = append(closing, c)
		}
	}
	t.mu.Unlock()
	for _, c := range closing {
		c.it.Close()
	}
}

// checkIn gives a cursor back; one that is done, or was killed meanwhile, is closed.
func (t *cursorTable) checkIn(c *cursor, done bool, now time.Time) {
	if c.atTime.IsZero() {
		c.run.rest()
	}
	t.mu.Lock()
	c.busy = false
	c.lastUse = now
	done = done || c.killed
	if done {
		delete(t.byID, c.id)
	}
	t.mu.Unlock()
	c.run.r = nil
	if done {
		c.it.Close()
	}
}

// killed reports whether a cursor that is in use was killed meanwhile.
func (t *cursorTable) killed(c *cursor) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.killed
}

// kill closes the cursors that match and returns how many there were. One that is in use goes when
// its command is done.
func (t *cursorTable) kill(match func(*cursor) bool) int {
	t.mu.Lock()
	var dead []*cursor
	n := 0
	for id, c := range t.byID {
		if !match(c) {
			continue
		}
		n++
		c.killed = true
		if !c.busy {
			delete(t.byID, id)
			dead = append(dead, c)
		}
	}
	t.mu.Unlock()
	for _, c := range dead {
		c.it.Close()
	}
	return n
}

// batch is how much of a cursor a reply may take.
type batch struct {
	field string // "firstBatch" or "nextBatch"
	limit int64  // documents; -1: as many as fit
	n     int64
	end   bool // the cursor has nothing more
	idle  bool // a tailable cursor has nothing at the moment
}

// fill appends a batch as an array.
func (c *cursor) fill(dst []byte, b *batch) ([]byte, error) {
	at, dst := bson.BeginArrayElement(dst, b.field)
	start := len(dst)
	for b.limit < 0 || b.n < b.limit {
		doc := c.stash
		if doc == nil {
			var err error
			doc, err = c.it.Next()
			if errors.Is(err, pipeline.ErrWait) {
				b.idle = true
				break
			}
			if err != nil {
				return dst, err
			}
			if doc == nil {
				b.end = true
				break
			}
		}
		if b.n > 0 && len(dst)-start+len(doc) > MaxBSONObjectSize {
			c.stash = doc
			break
		}
		c.stash = nil
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, int(b.n)), doc...)
		b.n++
	}
	// Since 5.0, a limit that is reached with the last document of a full batch does not close the
	// cursor, but in a data lake it does.
	cfg := c.run.r.Node.cfg
	if e, ok := c.it.(interface{ Ended() bool }); ok && c.stash == nil && e.Ended() && (cfg.DataLake || !cfg.Version.AtLeast(5, 0)) {
		b.end = true
	}
	return bson.EndDocument(dst, at), nil
}

// appendToken appends postBatchResumeToken, if the cursor has one.
func (c *cursor) appendToken(dst []byte) []byte {
	token := c.token
	if token == nil {
		token = c.place
	}
	if token != nil {
		if t := token(); t != nil {
			dst = bson.AppendDocument(dst, "postBatchResumeToken", t)
		}
	}
	return dst
}

// appendCursor appends the reply of a command that makes a cursor: its first batch, and the
// cursor's id if there is more. limit is the batch size, -1 for the default. single ends the cursor
// after the first batch.
func (r *Request) appendCursor(dst []byte, c *cursor, limit int64, single bool) ([]byte, error) {
	c.run.r = r
	if limit < 0 {
		limit = defaultBatch
	}
	b := batch{field: "firstBatch", limit: limit}
	at, dst := bson.BeginDocumentElement(dst, "cursor")
	dst, err := c.fill(dst, &b)
	if err != nil {
		c.it.Close()
		return dst, err
	}
	dst = c.appendToken(dst)
	if b.end && (!c.tailable || c.token != nil) || single {
		c.it.Close()
	} else {
		if err := r.keepCursor(c); err != nil {
			return dst, err
		}
	}
	dst = bson.AppendInt64(dst, "id", c.id)
	dst = bson.AppendString(dst, "ns", c.ns)
	return bson.EndDocument(r.appendAtTime(dst), at), nil
}

// appendEmptyCursor appends the reply of a query on a collection that does not exist.
func (r *Request) appendEmptyCursor(dst []byte, ns string) []byte {
	at, dst := bson.BeginDocumentElement(dst, "cursor")
	name := func() {
		dst = bson.AppendInt64(dst, "id", 0)
		dst = bson.AppendString(dst, "ns", ns)
	}
	if r.Node.role != Mongos {
		name()
	}
	list, d := bson.BeginArrayElement(dst, "firstBatch")
	dst = bson.EndDocument(d, list)
	if r.Node.role == Mongos {
		name()
	}
	return bson.EndDocument(r.appendAtTime(dst), at)
}

// AppendListCursor appends a cursor's first batch in the order of the fields that listCommands
// have.
func AppendListCursor(dst []byte, ns string, id int64, docs func([]byte) []byte) []byte {
	at, dst := bson.BeginDocumentElement(dst, "cursor")
	dst = bson.AppendInt64(dst, "id", id)
	dst = bson.AppendString(dst, "ns", ns)
	list, dst := bson.BeginArrayElement(dst, "firstBatch")
	dst = bson.EndDocument(docs(dst), list)
	return bson.EndDocument(dst, at)
}

// keepCursor keeps a cursor for later commands and gives it its id.
func (r *Request) keepCursor(c *cursor) error {
	c.created, c.session, c.atTime, c.api = r.start, r.Session, r.atTime, r.apiText()
	if r.Txn != nil {
		c.txnNumber = r.Txn.Number
	}
	c.run.r = nil
	if r.atTime.IsZero() {
		c.run.rest()
	}
	if err := r.Node.cursors.add(c, time.Now()); err != nil {
		c.it.Close()
		return err
	}
	if r.Node.cfg.DataLake {
		c.ns = cursorNS(c.id)
	}
	return nil
}

// newCursor returns a cursor for the results of the command.
func (r *Request) newCursor(ns string, it pipeline.Iterator, run *running) *cursor {
	c := &cursor{ns: ns, it: it, run: run, txnNumber: -1}
	run.r = r
	return c
}

// KeepDocuments keeps a cursor with the documents that have no room in the first batch of a
// listing, and returns its id.
func (r *Request) KeepDocuments(ns string, docs []bson.Raw) (id int64, err error) {
	c := r.newCursor(ns, pipeline.FromSlice(docs), &running{})
	err = r.keepCursor(c)
	return c.id, err
}
