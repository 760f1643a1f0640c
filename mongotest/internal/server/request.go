package server

import (
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// Request is one command while it runs. It belongs to the goroutine of its connection and is used
// again for the next command: nothing may keep it, nor Body and Sequences, which lie in the
// connection's read buffer.
type Request struct {
	Node      *Node
	Conn      *Conn
	Cmd       *Command
	Name      string // the command as the client spelt it
	DB        string
	Body      bson.Raw
	Sequences []wire.Sequence

	// Routing is how a mongos takes the command to the shards; nil: the node is none.
	Routing *Routing

	nowIs *bson.DateTime // see now

	generic
	parsed
	sessionState
	concerns
	interrupts
	reads
	transport
	outcome
	kept
}

// kept is what the next command of the connection uses again.
type kept struct {
	meter *work.Meter // see Meter; nil: nobody has asked for it
	ns    string      // see join
}

// parsed is what Parse has made of the commands that the steps before Run look into.
type parsed struct {
	Writes      Statements // of an insert, update or delete: of package write
	Changes     Changes    // what updates there are in the command
	Pipeline    any        // an aggregate: of package read
	MapReduce   bool       // the pipeline that runs is made of a mapReduce
	Scope       bson.Raw   // of the functions of a mapReduce
	validator   ownValidator
	TextPayload bool      // of SASL: it is base64 in a string
	NewUUID     *[16]byte // that a create gives its collection; nil: a new one
}

// Statements is what the steps around an insert, update or delete know of its statements.
type Statements interface {
	// Count returns how many there are of each kind.
	Count() (inserts, updates, deletes int)
	// AppendFailed appends the elements of a reply in which every statement has failed that would
	// have run.
	AppendFailed(dst []byte, err error) []byte
}

// sessionState is the session and the transaction that the command runs in.
type sessionState struct {
	Session    *session.Session // nil: none
	Txn        *session.Txn     // the multi-document transaction that the command runs in
	checkedOut bool
	spoilt     bool     // a write in the transaction failed: see SpoilTxn
	SessionDoc bson.Raw // the session, as the change log names it; nil: not asked for yet
}

// reads is what the command, or the statement of it that runs, does to find its documents and with
// them, for the profiler.
type reads struct {
	scans  []*planner.ScanIter
	first  [2]*planner.ScanIter // where scans begins
	quick  quick
	before quick // what a cursor's scans had looked at before this command
	keys   store.KeyCounts
	effect Effect
	origin bson.Raw // the command that made the cursor which this one reads
	told   bool     // the profiler was told of each statement
	// counted tells that a cursor stays open, with which the query is recorded.
	counted bool
}

// quick is what was done without a plan.
type quick struct {
	summary    string // as the profiler calls it; empty: nothing
	stage      string // as execStats calls it, if that is another name
	keys, docs int64
}

// Effect is what a statement did. Its zero value tells of nothing.
type Effect struct {
	Kind                        string // update or remove; empty: it is none of these
	Matched, Modified, Upserted int64
	Deleted                     int64
}

// planned notes a scan that the command has opened.
func (r *reads) planned(s *planner.ScanIter) {
	if r.scans == nil {
		r.scans = r.first[:0]
	}
	r.scans = append(r.scans, s)
}

// Quick notes that documents were found without a plan, and how many keys and documents were looked
// at.
func (r *reads) Quick(summary string, keys, docs int64) {
	r.quick = quick{summary: summary, keys: keys, docs: docs}
}

// QuickByID notes that one document, or none, was found by its _id.
func (r *Request) QuickByID(found int64) {
	r.Quick("IDHACK", found, found)
	if !r.Version().AtLeast(8, 0) {
		return
	}
	const express = "EXPRESS_IXSCAN { _id: 1 }"
	switch r.Cmd.Name {
	case "find":
		r.quick.summary = express
	case "update":
		r.quick.summary = express + ",EXPRESS_UPDATE"
	case "delete":
		r.quick.summary = express + ",EXPRESS_DELETE"
	default:
		return
	}
	r.quick.stage = "EXPRESS_IXSCAN"
}

// Did notes what a statement did.
func (r *reads) Did(e Effect) { r.effect = e }

// Continue notes that the command goes on with a cursor's scans.
func (r *reads) Continue(c *Cursor) {
	r.scans, r.origin = c.Run.Scans, c.origin
	r.before.keys, r.before.docs = r.examined()
}

// examined returns how many keys and documents were looked at.
func (r *reads) examined() (keys, docs int64) {
	keys, docs = r.quick.keys, r.quick.docs
	for _, s := range r.scans {
		k, d := s.Examined()
		keys, docs = keys+k, docs+d
	}
	return keys - r.before.keys, docs - r.before.docs
}

// concerns are what the command asks of its reads and writes.
type concerns struct {
	rc      readConcern
	AtTime  bson.Timestamp // of the snapshot that is read outside of transactions; zero: none
	WC      replica.WriteConcern
	optedIn bool // the read preference allows secondaries

	preference replica.ReadPreference // of a command of a mongos that opted in
}

// interrupts are what can end a command before it is done: see Check.
type interrupts struct {
	start    time.Time
	deadline time.Time // from maxTimeMS; zero: none
	op       *operation
	checks   int             // calls of Check
	gone     <-chan struct{} // closed when the client has hung up; nil: nobody watches
	unwatch  func()          // ends the watch
	blocked  bool            // by a fail point, before the command began
	within   *Request        // the command that runs this one, and ends it; nil: a client sent it
}

// transport is how the message came, and how its reply goes.
type transport struct {
	Flags wire.Flags
	legacyQuery
	compressed bool
	compressor wire.CompressorID

	More      bool            // an exhaust command has more replies to come
	StreamOf  int64           // the cursor whose batches they are; 0: none
	Streamed  TopologyVersion // what the last hello of a stream said
	Streaming bool
	hangUp    bool // close the connection instead of answering
}

// outcome is what the command leaves for the reply, beside the elements that Run appends.
type outcome struct {
	writing bool // the command is in the middle of a write and must not wait
	wrote   bool // the command wrote something: see Wrote
	// NoWrite is set by a command that takes a write concern but wrote nothing that one could wait
	// for.
	NoWrite bool
	// KeepStamps is bypassEmptyTsReplacement: timestamps of zero are stored as they are.
	KeepStamps bool
	// ChangeStream is set by commands on a change stream's cursor: their errors get labels of their
	// own.
	ChangeStream bool

	answer     []byte   // the reply of a step that ends the request
	IntegerOK  bool     // ok is an integer: the command was answered by another one
	failLabels bson.Raw // labels that a fail point gives the reply, instead of the computed ones
	hasLabels  bool
	// expectedUUID is what the collection expectedNS must have; nil: any.
	expectedNS   string
	expectedUUID []byte
	wcCode       int32 // code of the writeConcernError in the reply
}

// generic are the arguments that every command takes.
type generic struct {
	dbSeen         bool
	dbTwice        bool
	hasStartTxn    bool
	lsid           bson.RawValue
	TxnNumber      int64
	HasTxnNumber   bool
	autocommit     *bool
	startTxn       bool
	readConcern    bson.RawValue
	writeConcern   bson.RawValue
	readPreference bson.RawValue
	maxTimeMS      bson.RawValue
	comment        bson.RawValue
	internal       bool // has an argument of internalArgs
	oplogQuery     bool // $oplogQueryData
	help           bool
	clusterTime    bson.RawValue
	apiVersion     bson.RawValue
	apiStrict      bson.RawValue
	apiDeprecation bson.RawValue
}

func (r *Request) reset(c *Conn) {
	*r = Request{Node: c.node, Conn: c, Routing: c.routing, kept: r.kept, interrupts: interrupts{start: time.Now()}}
	r.Routing.reset(r)
}

// again prepares the request for the next reply of a stream: its command runs once more, as if it
// had just come in.
func (r *Request) again() {
	*r = Request{Node: r.Node, Conn: r.Conn, Routing: r.Routing, Body: r.Body, Sequences: r.Sequences,
		kept: r.kept, interrupts: interrupts{start: time.Now()}, transport: transport{
			Flags: r.Flags, compressed: r.compressed, compressor: r.compressor, StreamOf: r.StreamOf,
			Streamed:  r.Streamed,
			Streaming: r.Streaming,
		}}
	r.Routing.reset(r)
}

// endStream closes the cursor whose batches are streamed, because its connection ends.
func (r *Request) endStream() {
	if r.StreamOf != 0 {
		r.Node.cursors.Kill(func(c *Cursor) bool { return c.ID == r.StreamOf })
	}
}

// Arg returns the command's own value: the first element of the body.
func (r *Request) Arg() bson.RawValue {
	for _, v := range r.Body.All() {
		return v
	}
	return bson.RawValue{}
}

// Message returns what the client sent.
func (r *Request) Message() (body bson.Raw, sequences []wire.Sequence) { return r.Body, r.Sequences }

// Version returns the version that the node behaves as.
func (r *Request) Version() release.Version { return r.Node.cfg.Version }

// Router reports whether the node is a mongos.
func (r *Request) Router() bool { return r.Routing != nil }

// Generic reports whether every command of the node's version takes this argument.
func (r *Request) Generic(field string) bool { return args.Generic(r.Version(), field) }

// Wrote notes that the client wrote something at ts: what a write concern waits for, and what
// operationTime says.
func (r *Request) Wrote(ts bson.Timestamp) {
	r.wrote = true
	if ts.Compare(r.Conn.client.LastOp) > 0 {
		r.Conn.client.LastOp = ts
	}
}

// NoteChange makes a change outside of the store count as a write.
func (r *Request) NoteChange() {
	if r.Node.role == Standalone {
		return
	}
	ts := r.Node.data.Clock.Tick()
	r.Node.data.Wrote(ts)
	r.Wrote(ts)
}

// Check returns the error that ends the command if it was killed, ran out of time, or the node
// stops. Long loops call it now and then.
func (r *Request) Check() error {
	if r.within != nil {
		return r.within.Check() // which alone watches the client
	}
	if !r.deadline.IsZero() && !time.Now().Before(r.deadline) {
		return ErrMaxTime()
	}
	if r.op != nil {
		if err := r.op.err(); err != nil {
			return err
		}
	}
	select {
	case <-r.Node.shutdownChan():
		r.hangUp = true
		return srverr.New(srverr.InterruptedAtShutdown, "interrupted at shutdown")
	default:
	}
	return r.checkClient()
}

// Meter returns a meter whose loops end with the command. It is that of all commands of the
// connection: what outlives the command, as a cursor does, has one of its own.
func (r *Request) Meter() *work.Meter {
	if r.meter == nil {
		r.meter = work.New(r.Check)
	}
	return r.meter
}

// watchAfter is how often a command calls Check until it looks whether its client is still there:
// most end before.
const watchAfter = 32

// checkClient returns the error that ends a command whose client has hung up.
func (r *Request) checkClient() error {
	if r.checks++; r.checks == watchAfter && r.Conn != nil && r.op != nil {
		gone := make(chan struct{})
		r.gone, r.unwatch = gone, r.Conn.watch(func() { close(gone) })
	}
	select {
	case <-r.gone:
		r.hangUp = true
		return srverr.New(srverr.ClientDisconnect, "client disconnected")
	default:
		return nil
	}
}

// endWatch ends the watch that checkClient has begun.
func (r *Request) endWatch() {
	if r.unwatch != nil {
		r.unwatch()
		r.unwatch = nil
	}
}

func ErrMaxTime() error { return srverr.New(srverr.MaxTimeMSExpired, "operation exceeded time limit") }

// Wait blocks until ready is closed (or can be received from), or until the timeout has passed (0:
// no timeout; it then returns false), or until the command has to end, which is an error.
func (r *Request) Wait(ready <-chan struct{}, timeout time.Duration) (bool, error) {
	if r.within != nil {
		return r.within.Wait(ready, timeout)
	}
	select {
	case <-ready:
		return true, nil
	default:
	}
	if err := r.Check(); err != nil {
		return false, err
	}
	var timeoutC, deadlineC <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		timeoutC = t.C
	}
	if !r.deadline.IsZero() {
		t := time.NewTimer(time.Until(r.deadline))
		defer t.Stop()
		deadlineC = t.C
	}
	r.endWatch()
	gone := make(chan struct{})
	shutdown := r.Node.shutdownChan()
	stop := r.Conn.watch(func() { close(gone) })
	defer stop()
	select {
	case <-ready:
		return true, nil
	case <-timeoutC:
		return false, nil
	case <-deadlineC:
		return false, ErrMaxTime()
	case <-gone:
		r.hangUp = true
		return false, srverr.New(srverr.ClientDisconnect, "client disconnected")
	case <-r.op.done:
		return false, r.op.err()
	case <-shutdown:
		r.hangUp = true
		return false, srverr.New(srverr.InterruptedAtShutdown, "interrupted at shutdown")
	}
}
