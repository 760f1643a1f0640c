package server

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

const (
	// defaultBatch is how many documents the first batch holds when the client does not say.
	defaultBatch = 101
	// cursorMonitor is the time between two looks for cursors that are idle for too long.
	cursorMonitor = time.Minute
	// maxCursors bounds how many cursors a node keeps for its clients.
	maxCursors = 100_000
)

// Cursor is a query whose results are fetched batch by batch. It is used by one command at a time.
type Cursor struct {
	ID       int64
	NS       string
	Iterator pipeline.Iterator
	Run      *Running
	// Stash is a document that did not fit into the last batch.
	Stash bson.Raw

	Session   *session.Session // that made it; nil: none
	origin    bson.Raw         // the command that made it
	owner     [32]byte         // the digest of the user who made it, where users log in
	API       string           // the Stable API's parameters of the command that made it
	TxnNumber int64            // of the transaction that the cursor belongs to; -1: none
	AtTime    bson.Timestamp   // of the snapshot that it reads; zero: whatever is the newest

	Pipeline  *PipelineOutput // of an aggregation; else nil
	docs      atomic.Int64    // that were returned
	left      time.Duration   // what its command left of its maxTimeMS; 0: there is no limit
	batches   atomic.Int64    // that they came in
	Relay     *Relay          // how a mongos passes it on, if it has got it from one shard; or nil
	Tailable  bool
	AwaitData bool
	NoTimeout bool
	created   time.Time
	query     *queryRun // what is recorded of it when it ends; nil: nothing
	counted   int64     // of docs, those of commands that are recorded
	reading   *reading  // nil: its first batch is its last
	// Wait returns a channel that is closed when a tailable cursor may have something new.
	Wait func() <-chan struct{}
	// Token returns postBatchResumeToken of a change stream's cursor.
	Token func() bson.Raw
	// Place returns postBatchResumeToken of a cursor that was asked to tell where its scan stands.
	Place func() bson.Raw

	// Guarded by the table's mutex.
	busy    bool
	Killed  bool
	lastUse time.Time
}

// Running is what the iterators of a cursor know of the command that pulls from them at the moment.
type Running struct {
	Request *Request
	State   *store.State
	Scans   []*planner.ScanIter
	// Stream is the source of a change stream's pipeline: of package read. nil: it is none.
	Stream any
	Splits bool // and splits large events
	// Of a pipeline: its limit, -1 without one, and whether it is nothing but a query.
	Limit int64
	Plain bool
	Relay *Relay // of a pipeline that one shard does alone; or nil
}

// Open returns an iterator over a plan's documents, which the cursor keeps at its state.
func (x *Running) Open(p *planner.Plan, ns string) pipeline.Iterator {
	it, scan := p.Open(x, ns)
	x.Scans = append(x.Scans, scan)
	if x.Request != nil {
		x.Request.planned(scan)
	}
	return it
}

// Interrupted returns the error that ends the command.
func (x *Running) Interrupted() error {
	if x.Request == nil {
		return nil
	}
	return x.Request.Check()
}

// rest releases the state that the cursor has read while it waits for its next getMore: an
// abandoned cursor must not keep deleted documents in memory. Snapshots keep their state.
func (x *Running) rest() {
	for _, s := range x.Scans {
		if s.Coll().Derived() {
			return
		}
	}
	x.State = nil
	for _, s := range x.Scans {
		s.Rest()
	}
}

// Advance moves the scans of a cursor on to a newer state.
func (x *Running) Advance(st *store.State) error {
	x.State = st
	for _, s := range x.Scans {
		if s.Coll().Derived() { // made for this cursor
			continue
		}
		c := st.Coll(s.NS)
		if c == nil || c.UUID != s.Coll().UUID {
			return errGone(st, s.NS, s.Coll().UUID)
		}
		if index, ok := s.Reset(c); !ok {
			return srverr.New(srverr.QueryPlanKilled, "query plan killed :: index '%s' dropped", index)
		}
		if record, lost := s.Lost(); lost && c.Capped {
			return srverr.New(srverr.CappedPositionLost,
				"CollectionScan died due to position in capped collection being deleted. Last seen record id: RecordId(%d)", record)
		}
	}
	return nil
}

// errGone returns the error of a cursor whose collection has been dropped or has another name by
// now.
func errGone(st *store.State, ns string, uuid [16]byte) (err error) {
	id := bsondoc.UUIDString(uuid)
	err = srverr.New(srverr.QueryPlanKilled, "collection dropped. UUID %s", id)
	st.Colls("", func(c *store.Coll) bool {
		if c.UUID == uuid {
			err = srverr.New(srverr.QueryPlanKilled, "collection renamed from '%s' to '%s'. UUID %s", ns, c.NS, id)
		}
		return c.UUID != uuid
	})
	return err
}

// cursorTable holds a node's open cursors. Safe for concurrent use.
type cursorTable struct {
	node  *Node
	mu    sync.Mutex
	byID  map[int64]*Cursor
	timer *time.Timer // looks for idle cursors; nil: there are none
}

// add gives the cursor an id and keeps it.
func (t *cursorTable) add(c *Cursor, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = map[int64]*Cursor{}
	}
	if len(t.byID) >= maxCursors {
		t.expireLocked(now)
		if len(t.byID) >= maxCursors {
			return srverr.New(srverr.ExceededMemoryLimit, "too many open cursors: %d", len(t.byID))
		}
	}
	for c.ID == 0 || t.byID[c.ID] != nil {
		c.ID = rand.Int64N(1<<63-1) + 1
	}
	c.lastUse = now
	t.byID[c.ID] = c
	if t.timer == nil {
		t.timer = time.AfterFunc(cursorMonitor, t.monitor)
	}
	return nil
}

// timeout is how long a cursor may be idle that belongs to no session.
func (t *cursorTable) timeout() time.Duration {
	return time.Duration(t.node.IntParameter("cursorTimeoutMillis")) * time.Millisecond
}

// idle reports whether a cursor is idle for too long. One of a session stays as long as the
// session.
func (t *cursorTable) idle(c *Cursor, now time.Time, timeout time.Duration) bool {
	switch {
	case c.busy:
		return false
	case c.Session != nil:
		return c.Session.Expired(t.node.data.Clock.Now())
	}
	return !c.NoTimeout && now.Sub(c.lastUse) > timeout
}

// monitor closes the cursors that are idle for too long, now and then, while there are any.
func (t *cursorTable) monitor() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked(time.Now())
	if t.timer = nil; len(t.byID) > 0 && !t.node.Stopped() {
		t.timer = time.AfterFunc(cursorMonitor, t.monitor)
	}
}

// stop ends the monitor.
func (t *cursorTable) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// expireLocked closes the cursors that are idle for too long.
func (t *cursorTable) expireLocked(now time.Time) {
	timeout := t.timeout()
	for id, c := range t.byID {
		if t.idle(c, now, timeout) {
			delete(t.byID, id)
			c.close()
		}
	}
}

// CheckOut takes a cursor for a command.
func (t *cursorTable) CheckOut(id int64, now time.Time) (*Cursor, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byID[id]
	if c != nil && t.idle(c, now, t.timeout()) {
		delete(t.byID, id)
		c.close()
		c = nil
	}
	switch {
	case c == nil || c.Killed:
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
	var closing []*Cursor
	for id, c := range t.byID {
		switch {
		case c.Session == nil || !match(c.Session.ID):
		case c.busy:
			c.Killed = true
		default:
			delete(t.byID, id)
			closing = append(closing, c)
		}
	}
	t.mu.Unlock()
	for _, c := range closing {
		c.close()
	}
}

// CheckIn gives a cursor back; one that is done, or was killed meanwhile, is closed.
func (t *cursorTable) CheckIn(c *Cursor, done bool, now time.Time) {
	if c.query != nil && c.Run.Request != nil {
		c.countCommand(c.Run.Request)
	}
	if c.AtTime.IsZero() {
		c.Run.rest()
	}
	t.mu.Lock()
	c.busy = false
	c.lastUse = now
	done = done || c.Killed
	if done {
		delete(t.byID, c.ID)
	}
	t.mu.Unlock()
	c.Run.Request = nil
	if done {
		c.close()
	}
}

// OfOthers reports whether one of the cursors is another user's than the request's.
func (t *cursorTable) OfOthers(r *Request, ids []int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(ids, func(id int64) bool {
		return t.byID[id] != nil && t.byID[id].owner != r.ownDigest()
	})
}

// Killed reports whether a cursor that is in use was killed meanwhile.
func (t *cursorTable) Killed(c *Cursor) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.Killed
}

// Kill closes the cursors that match and returns how many there were. One that is in use goes when
// its command is done.
func (t *cursorTable) Kill(match func(*Cursor) bool) int {
	t.mu.Lock()
	var dead []*Cursor
	n := 0
	for id, c := range t.byID {
		if !match(c) {
			continue
		}
		n++
		c.Killed = true
		if !c.busy {
			delete(t.byID, id)
			dead = append(dead, c)
		}
	}
	t.mu.Unlock()
	for _, c := range dead {
		c.close()
	}
	return n
}

// Batch is how much of a cursor a reply may take.
type Batch struct {
	Field string // "firstBatch" or "nextBatch"
	Limit int64  // documents; -1: as many as fit
	N     int64
	End   bool // the cursor has nothing more
	Idle  bool // a tailable cursor has nothing at the moment
}

// TooLarge is the error of a document that no reply can have.
func TooLarge(doc bson.Raw) error {
	first := ""
	for k, v := range doc.All() {
		first = bsontext.Element(k, v)
		break
	}
	return srverr.New(srverr.BSONObjectTooLarge,
		"BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB) First element: %s",
		len(doc), len(doc), MaxInternalBSONSize, first)
}

// Fill appends a batch as an array.
func (c *Cursor) Fill(dst []byte, b *Batch) ([]byte, error) {
	at, dst := bson.BeginArrayElement(dst, b.Field)
	start := len(dst)
	for b.Limit < 0 || b.N < b.Limit {
		doc := c.Stash
		if doc == nil {
			var err error
			doc, err = c.Iterator.Next()
			if errors.Is(err, pipeline.ErrWait) {
				b.Idle = true
				break
			}
			if err != nil {
				return dst, err
			}
			if doc == nil {
				b.End = true
				break
			}
			if len(doc) > MaxInternalBSONSize {
				return dst, TooLarge(doc)
			}
		}
		if b.N > 0 && len(dst)-start+len(doc) > MaxBSONObjectSize {
			c.Stash = doc
			break
		}
		c.Stash = nil
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, int(b.N)), doc...)
		b.N++
	}
	c.docs.Add(b.N)
	c.batches.Add(1)
	// Since 5.0, a limit that is reached with the last document of a full batch does not close the
	// cursor, but in a data lake it does.
	cfg := c.Run.Request.Node.cfg
	if e, ok := c.Iterator.(interface{ Ended() bool }); ok && c.Stash == nil && e.Ended() &&
		(cfg.DataLake || !cfg.Version.AtLeast(5, 0)) {
		b.End = true
	}
	if c.Pipeline != nil && b.Field == "nextBatch" && !b.End && c.Stash == nil && !cfg.Version.AtLeast(5, 0) {
		if err := c.lookAhead(b); err != nil {
			return dst, err
		}
	}
	return bson.EndDocument(dst, at), nil
}

// PipelineOutput tells when a pipeline has nothing more.
type PipelineOutput struct {
	pipeline.Iterator
	Left  int64 // until the limit of a plain pipeline; -1: there is none
	Plain bool  // the server runs the pipeline as a query
}

// Next returns the next document.
func (o *PipelineOutput) Next() (bson.Raw, error) {
	doc, err := o.Iterator.Next()
	if doc != nil && o.Left > 0 {
		o.Left--
	}
	return doc, err
}

// lookAhead finds out whether an aggregation has come to its end with the last document of a batch
// of getMore: before 5.0 the server closes its cursor then. The first batch does not look ahead.
func (c *Cursor) lookAhead(b *Batch) (err error) {
	if c.Pipeline.Plain {
		b.End = c.Pipeline.Left == 0 // a query knows no other end before it has run into it
		return nil
	}
	c.Stash, err = c.Iterator.Next()
	b.End = c.Stash == nil && err == nil
	return err
}

// AppendToken appends postBatchResumeToken, if the cursor has one.
func (c *Cursor) AppendToken(dst []byte) []byte {
	token := c.Token
	if token == nil {
		token = c.Place
	}
	if token != nil {
		if t := token(); t != nil {
			dst = bson.AppendDocument(dst, "postBatchResumeToken", t)
		}
	}
	return dst
}

// AppendCursor appends the reply of a command that makes a cursor: its first batch, and the
// cursor's id if there is more. limit is the batch size, -1 for the default. single ends the cursor
// after the first batch.
func (r *Request) AppendCursor(dst []byte, c *Cursor, limit int64, single bool) ([]byte, error) {
	c.Run.Request = r
	if limit < 0 {
		limit = defaultBatch
	}
	b := Batch{Field: "firstBatch", Limit: limit}
	at, dst := bson.BeginDocumentElement(dst, "cursor")
	start := len(dst)
	dst, err := c.Fill(dst, &b)
	if err != nil {
		c.Iterator.Close()
		return dst, err
	}
	dst = c.AppendToken(dst)
	if b.End && (!c.Tailable || c.Token != nil) || single {
		c.Iterator.Close()
	} else {
		if err := r.keepCursor(c); err != nil {
			return dst, err
		}
	}
	var results []byte
	ns := c.NS
	if c.Relay != nil {
		if c.ID == 0 && !c.Relay.Own {
			ns = c.Relay.NS
		} else {
			results, dst = bytes.Clone(dst[start:]), dst[:start]
		}
	}
	dst = bson.AppendInt64(dst, "id", c.ID)
	dst = bson.AppendString(dst, "ns", ns)
	return bson.EndDocument(r.AppendAtTime(append(dst, results...)), at), nil
}

// Relay says how a mongos passes on the cursor of an aggregation that one shard has done alone. A
// cursor that stays open is announced anew, with its id before the batch; so is one that is
// exhausted if Own is set. Every other reply is the shard's, with the namespace that it knows.
type Relay struct {
	NS  string
	Own bool
}

// AppendEmptyCursor appends the reply of a query on a collection that does not exist.
func (r *Request) AppendEmptyCursor(dst []byte, ns string) []byte {
	at, dst := bson.BeginDocumentElement(dst, "cursor")
	name := func() {
		dst = bson.AppendInt64(dst, "id", 0)
		dst = bson.AppendString(dst, "ns", ns)
	}
	if r.Routing == nil {
		name()
	}
	list, d := bson.BeginArrayElement(dst, "firstBatch")
	dst = bson.EndDocument(d, list)
	if r.Routing != nil {
		name()
	}
	return bson.EndDocument(r.AppendAtTime(dst), at)
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
func (r *Request) keepCursor(c *Cursor) error {
	if r.Node.Profiled() || len(r.Body) <= maxProfiled { // a longer one would be cut for $currentOp alone
		c.origin = shortened(bsondoc.Copy(shown(r.Body)))
	}
	c.created, c.Session, c.AtTime, c.API = r.start, r.Session, r.AtTime, r.apiText()
	c.owner = r.ownDigest()
	if r.Txn != nil {
		c.TxnNumber = r.Txn.Number
	}
	if !r.deadline.IsZero() {
		c.left = max(time.Until(r.deadline), time.Nanosecond)
	}
	c.Run.Request = nil
	if r.AtTime.IsZero() {
		c.Run.rest()
	}
	r.countOpened(c)
	c.reading = &reading{r.rc.level, r.optedIn, r.preference, r.Routing.sources()}
	if err := r.Node.cursors.add(c, time.Now()); err != nil {
		c.Iterator.Close()
		return err
	}
	if r.Node.cfg.DataLake {
		c.NS = cursorNS(c.ID)
	}
	return nil
}

// BoundByCursor gives a getMore the time that the command that made the cursor, and the getMores
// before, have left. A cursor that awaits data has none to give. The returned function notes what
// is left after it.
func (r *Request) BoundByCursor(c *Cursor) (after func(), err error) {
	if c.left == 0 || c.AwaitData {
		return func() {}, nil
	}
	if _, ok := r.Fault("maxTimeAlwaysTimeOut"); ok {
		return nil, ErrMaxTime()
	}
	r.deadline = time.Now().Add(c.left)
	return func() { c.left = max(time.Until(r.deadline), time.Nanosecond) }, nil
}

// NewCursor returns a cursor for the results of the command.
func (r *Request) NewCursor(ns string, it pipeline.Iterator, run *Running) *Cursor {
	c := &Cursor{NS: ns, Iterator: it, Run: run, TxnNumber: -1}
	run.Request = r
	return c
}

// KeepDocuments keeps a cursor with the documents that have no room in the first batch of a
// listing, and returns its id.
func (r *Request) KeepDocuments(ns string, docs []bson.Raw) (id int64, err error) {
	c := r.NewCursor(ns, pipeline.FromSlice(docs), &Running{})
	err = r.keepCursor(c)
	return c.ID, err
}

// CursorOption has a field set the batch size that a cursor's options give, if they do.
func CursorOption[T any](f args.Field[T], batchSize func(*T) *int64) args.Field[T] {
	return f.Then(func(q *T, v args.Value) error {
		if v.Type == bson.TypeEmbeddedDocument && v.From.Version().AtLeast(5, 0) {
			return cursorArgs.Parse(v.From, v.Value, batchSize(q))
		}
		return parseCursorOption(v.RawValue, batchSize(q))
	})
}

// cursorArgs are a cursor's options.
var cursorArgs = &args.Table[int64]{Name: "cursor", Fields: map[string]args.Field[int64]{
	"batchSize": args.Number(func(n *int64) *int64 { return n }).AtLeast(0),
}}

// parseCursorOption is what servers before 5.0 do, and sets the batch size that a cursor's options
// give, if they do.
func parseCursorOption(v bson.RawValue, batchSize *int64) error {
	doc, ok := v.Document()
	if !ok {
		return srverr.New(srverr.TypeMismatch, "cursor field must be missing or an object")
	}
	for k, v := range doc.All() {
		if k != "batchSize" {
			return srverr.New(srverr.BadValue, "cursor object can't contain fields other than batchSize")
		}
		if !v.IsNumber() {
			return srverr.New(srverr.TypeMismatch, "cursor.batchSize must be a number")
		}
		if *batchSize = args.CastNumber(v); *batchSize < 0 {
			return srverr.New(srverr.BadValue, "cursor.batchSize must not be negative")
		}
	}
	return nil
}

// IdleCursors describes the node's open cursors that no command uses, as $currentOp shows them.
func (n *Node) IdleCursors() []bson.Raw {
	t := &n.cursors
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []bson.Raw
	for _, id := range slices.Sorted(maps.Keys(t.byID)) {
		c := t.byID[id]
		if c.busy || c.Killed {
			continue
		}
		at, dst := bson.BeginDocument(nil)
		dst = bson.AppendString(dst, "type", "idleCursor")
		dst = bson.AppendString(dst, "host", n.addr)
		dst = bson.AppendString(dst, "ns", c.NS)
		if c.Session != nil {
			dst = c.Session.ID.Append(dst, "lsid")
		}
		dst = c.appendTo(dst, 0)
		list = append(list, bson.EndDocument(dst, at))
	}
	return list
}

// appendBusyCursor appends what currentOp shows of the cursor that a getMore works on, if there is
// one of this id.
func (n *Node) appendBusyCursor(dst []byte, id, op int64) []byte {
	t := &n.cursors
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byID[id]
	if c == nil {
		return dst
	}
	return c.appendTo(dst, op)
}

// appendTo appends the cursor as currentOp shows it; op is the operation that works on it, 0: none.
// The table's mutex is held.
func (c *Cursor) appendTo(dst []byte, op int64) []byte {
	at, dst := bson.BeginDocumentElement(dst, "cursor")
	dst = bson.AppendInt64(dst, "cursorId", c.ID)
	dst = bson.AppendDateTime(dst, "createdDate", bson.NewDateTime(c.created))
	dst = bson.AppendDateTime(dst, "lastAccessDate", bson.NewDateTime(c.lastUse))
	dst = bson.AppendInt64(dst, "nDocsReturned", c.docs.Load())
	dst = bson.AppendInt64(dst, "nBatchesReturned", c.batches.Load())
	dst = bson.AppendBool(dst, "noCursorTimeout", c.NoTimeout)
	dst = bson.AppendBool(dst, "tailable", c.Tailable)
	dst = bson.AppendBool(dst, "awaitData", c.AwaitData)
	if c.origin != nil {
		dst = bson.AppendDocument(dst, "originatingCommand", shortened(c.origin))
	}
	if op != 0 {
		dst = bson.AppendInt64(dst, "operationUsingCursorId", op)
	}
	return bson.EndDocument(dst, at)
}
