package exec

import (
	"context"
	"errors"
	"strings"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/command"
	"allium/internal/conn"
	"allium/internal/errcode"
	"allium/internal/failure"
	"allium/internal/pool"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/mongoerr"
)

// attempt makes one attempt: it selects a server, checks a connection out, sends the command and
// reads the reply. The result of a command that succeeded but for its write concern comes with a
// *mongoerr.WriteConcernError.
func (r *run) attempt(ctx context.Context) (Result, stage, error) {
	srv, err := r.choose(ctx)
	if err != nil {
		return Result{}, stageSelect, r.phase(ctx, mongoerr.PhaseSelection, err)
	}
	r.addr = srv.Addr()
	r.flight.server.Store(srv)
	r.flight.phase.Store(&phaseCheckout)
	c, err := r.checkOut(ctx, srv)
	if err != nil {
		if t, ok := errors.AsType[*mongoerr.TimeoutError](err); ok {
			r.tells.checkout += t.Elapsed
		}
		if b, ok := r.op.Command.(command.Batch); ok {
			r.mixed = !b.Retryable(b.Count()) // no message was built that would tell
		}
		return Result{}, stageCheckOut, r.phase(ctx, mongoerr.PhaseCheckout, err)
	}
	r.wireVersion = c.Hello().MaxWireVersion
	r.conn, r.server = c, srv
	res, stage, err := r.exchange(ctx, srv, c)
	if reauthenticationRequired(err) && c.Mechanism() != "" {
		// Whether the operation may be retried does not matter (specification: Authentication,
		// "Reauthentication").
		r.talking = true
		err = c.Reauthenticate(ctx)
		r.talking = false
		if err != nil {
			srv.HandleReauthError(c, err)
		} else {
			res, stage, err = r.exchange(ctx, srv, c)
		}
	}
	if stage == stageSent && !r.unwritten {
		r.sent = true
	}
	r.pin(c, err)
	keep := r.op.Conn == c || r.txnConn() == c
	if err == nil && !keep && (r.op.KeepConn && c.Hello().Kind == event.LoadBalancer && hasOpenCursor(res.Reply) ||
		r.op.Exhaust && c.Streaming()) {
		c.Pin(pool.ForCursor)
		res.Conn, keep = c, true
	}
	if r.inTxn && c.Owed() {
		r.op.Session.Transaction().KeepLate(c)
		keep = true
	}
	if !keep && r.op.KeepLate && c.Owed() {
		c.Pin(pool.ForCursor)
		r.late, keep = c, true
	}
	r.conn = nil
	if !keep {
		c.Return()
	}
	return res, stage, err
}

// reauthenticationRequired reports whether a server wants the connection to be authenticated again.
func reauthenticationRequired(err error) bool {
	e, ok := err.(*mongoerr.ServerError)
	return ok && e.Code == errcode.ReauthenticationRequired
}

// phase makes err a TimeoutError if the context has ended.
func (r *run) phase(ctx context.Context, phase mongoerr.Phase, err error) error {
	var t *mongoerr.TimeoutError
	if ctx.Err() == nil || errors.As(err, &t) {
		return err
	}
	if !errors.Is(err, ctx.Err()) {
		err = failure.Join(ctx.Err(), err)
	}
	return &mongoerr.TimeoutError{Phase: phase, Elapsed: time.Since(r.started), Addr: r.addr, Wrapped: err}
}

// choose returns where the operation goes: to its cursor's server, to its transaction's, or to one
// that is selected. It keeps the description that the server was selected by, whose round trip time
// counts (specification: Client Side Operations Timeout, "Command Execution").
func (r *run) choose(ctx context.Context) (*topology.Server, error) {
	op := r.op
	if op.Server != nil {
		r.selected = op.Server.Description()
		return op.Server, nil
	}
	sel := topology.Selection{Operation: op.Command.Name(), Write: op.Kind == Write, ReadPreference: op.ReadPreference,
		WritesResults: op.OutputStage,
		Deprioritized: r.avoid, OperationID: r.operationID}
	if r.inTxn || op.EndsTransaction {
		sel.Write = true
		if p := op.Session.Transaction().Pinned(); p != nil {
			sel.Addr = p.Mongos
		} else if op.EndsTransaction && r.attempts == 0 {
			sel.Addr = r.formerMongos()
		}
	}
	if op.set() {
		r.selecting = time.Now()
	}
	r.flight.phase.Store(&phaseSelection)
	srv, selected, err := r.x.Topology.Select(ctx, &sel)
	r.primary = sel.Primary
	r.tells.selection += sel.Waited
	if err == nil {
		r.selected = selected
	}
	if sel.Expired && op.set() { // (specification: Client Side Operations Timeout, "Errors")
		err = &mongoerr.TimeoutError{Phase: mongoerr.PhaseSelection, Source: mongoerr.SourceServerSelection,
			Wrapped: err}
	}
	return srv, err
}

// formerMongos returns the address of the mongos that a transaction to abort was pinned to, "" if
// there is none or it cannot be reached. The transaction may be no longer pinned to it (When to
// unpin), but no other mongos knows of it.
func (r *run) formerMongos() string {
	addr := r.op.Session.Transaction().Mongos()
	if end, ok := r.op.Command.(*command.EndTransaction); addr == "" || !ok || end.Commit {
		return ""
	}
	for _, s := range r.x.Topology.Description().Servers {
		if s.Addr == addr && s.Kind == event.Mongos {
			return addr
		}
	}
	return ""
}

// checkOut returns the connection that the operation is pinned to, or checks one out.
func (r *run) checkOut(ctx context.Context, srv *topology.Server) (*pool.Conn, error) {
	if c := r.pinnedConn(); c != nil {
		if r.op.late() || r.op.Behind {
			return c, nil
		}
		return c, c.Drain(ctx) // an operation before may have ended without its reply
	}
	if !r.op.set() {
		c, err := srv.CheckOut(ctx)
		return r.checkedOut(c), err
	}
	// What selection has left of its time is the checkout's (specification: Client Side Operations
	// Timeout, "Server Selection").
	limit := r.x.SelectionTimeout
	if limit > 0 && !r.selecting.IsZero() {
		limit = max(limit-time.Since(r.selecting), 1)
	}
	var timeout time.Duration
	if r.op.Timeout != nil {
		timeout = *r.op.Timeout
	}
	c, err := srv.CheckOutWithin(ctx, limit, timeout)
	return r.checkedOut(c), err
}

// checkedOut notes how long the operation has waited for a connection, which is nil if it got none.
func (r *run) checkedOut(c *pool.Conn) *pool.Conn {
	if c != nil {
		r.tells.checkout += c.Waited
	}
	return c
}

// pinnedConn returns the connection that the operation's cursor or transaction is pinned to, or
// nil.
func (r *run) pinnedConn() *pool.Conn {
	if r.op.Conn != nil {
		return r.op.Conn
	}
	return r.txnConn()
}

func (r *run) txnConn() *pool.Conn {
	if r.inTransaction() {
		if p := r.op.Session.Transaction().Pinned(); p != nil {
			return p.Conn
		}
	}
	return nil
}

// exchange sends the command over c, unless its reply comes by itself, and judges the reply.
func (r *run) exchange(ctx context.Context, srv *topology.Server, c *pool.Conn) (Result, stage, error) {
	m := message{run: r, hello: c.Hello()}
	msg, err := m.build()
	if err != nil {
		if errors.Is(err, errNoTimeLeft) {
			return Result{}, stageBuild, &mongoerr.TimeoutError{Phase: mongoerr.PhaseCommand,
				Elapsed: time.Since(r.started), Addr: r.addr, Wrapped: err}
		}
		return Result{}, stageBuild, err
	}
	defer r.exchanged(msg)
	r.flight.phase.Store(&phaseCommand)
	tr := r.traceStart(ctx, c, &m, msg)
	moved := r.inTransaction() && r.op.Session.Transaction().Sending()
	r.unwritten = false
	limit := r.x.SocketTimeout
	if r.op.set() {
		limit = 0
	}
	c.SetTimeout(limit)
	r.talking, r.reply = true, nil
	if m.unacknowledged {
		err := c.Send(ctx, msg)
		r.talking = false
		if err != nil {
			srv.HandleError(c, err)
			tr.failed(err)
			return Result{}, stageSent, err
		}
		tr.succeeded(nil)
		return Result{Server: srv}, stageSent, nil
	}
	if r.inTxn {
		r.op.Session.Transaction().Use(c)
		defer r.op.Session.Transaction().Use(nil)
	}
	var reply *conn.Reply
	switch {
	case r.op.streamed():
		reply, err = c.Receive(ctx)
	case r.op.late():
		reply, err = c.Late(ctx)
	case r.op.Behind:
		reply, err = c.RoundTripBehind(ctx, msg)
	default:
		reply, err = c.RoundTrip(ctx, msg)
	}
	r.talking = false
	if err != nil {
		r.unwritten = unwritten(c, err)
		if moved && r.unwritten {
			r.op.Session.Transaction().NotSent()
		}
		if m.session != nil {
			m.session.MarkDirty()
		}
		srv.HandleError(c, err)
		tr.failed(err)
		return Result{}, stageSent, err
	}
	r.reply = reply.Body
	err = r.judge(srv, c, &m, reply, tr)
	concern, _ := err.(*mongoerr.WriteConcernError)
	if err != nil && concern == nil {
		r.reply = nil
		reply.Release()
		return Result{}, stageSent, err
	}
	return Result{Reply: reply.Body, Server: srv, Concern: concern, reply: reply}, stageSent, err
}

// unwritten reports whether a round trip over c that ended in err has written nothing: time was up
// before, or the connection had broken.
func unwritten(c *pool.Conn, err error) bool {
	if failure.OutOfTime(err) {
		return c.Alive() && !c.Owed()
	}
	e, ok := errors.AsType[*mongoerr.ConnectionError](err)
	return ok && !e.Sent
}

// inTransaction reports whether the command belongs to a transaction, or ends it.
func (r *run) inTransaction() bool { return r.inTxn || r.op.EndsTransaction }

// judge reads what every reply may hold, passes it to sessions, clock and topology, and returns the
// error that the reply reports, if any.
func (r *run) judge(srv *topology.Server, c *pool.Conn, m *message, reply *conn.Reply, tr *trace) error {
	var (
		ok, concern, refused bool
		times                session.ReplyTimes
	)
	for key, v := range reply.Body.All() {
		switch key {
		case "ok":
			ok = saysOK(v)
		case "$clusterTime":
			times.ClusterTime, _ = v.Document()
		case "operationTime":
			times.OperationTime, _ = v.Timestamp()
		case "recoveryToken":
			times.RecoveryToken, _ = v.Document()
		case "atClusterTime":
			times.SnapshotTime, _ = v.Timestamp()
		case "cursor":
			if s := r.op.Session; s != nil && s.Options().Snapshot {
				times.SnapshotTime, _ = bson.Raw(v.Value).Lookup("atClusterTime").Timestamp()
			}
		case "writeConcernError":
			concern = true
		case "writeErrors", "nErrors":
			refused = true
		}
	}
	if times.ClusterTime != nil {
		r.x.Clock.AdvanceRaw(times.ClusterTime)
	}
	if s := r.op.Session; s != nil {
		s.Observe(times)
		if refused && r.inTxn {
			if list, err := writeErrors(reply.Body, r.op, r.addr); err != nil {
				s.Transaction().Answered(err)
			} else if len(list) > 0 {
				s.Transaction().Answered(list[0])
			}
		}
	}
	if ok && refused && !r.op.WriteErrors {
		if err := r.refusal(reply.Body); err != nil {
			tr.succeeded(reply.Body)
			return err
		}
	}
	if ok && !concern {
		tr.succeeded(reply.Body)
		return nil
	}
	if !ok {
		e := failure.NewServerError(r.op.Command.Name(), r.addr, reply.Body)
		r.serverLabels(&e.Labels, e.Code, m)
		r.explain(e)
		srv.HandleError(c, e)
		tr.failed(e)
		return e
	}
	tr.succeeded(reply.Body)
	e := failure.NewWriteConcernError(r.addr, reply.Body)
	if e == nil {
		return nil
	}
	if m.hello.Kind != event.Mongos {
		r.serverLabels(&e.Labels, e.Code, m)
	}
	srv.HandleError(c, e)
	return e
}

// saysOK reports whether a reply's field ok is 1, or true.
func saysOK(v bson.RawValue) bool {
	if b, isBool := v.Boolean(); isBool {
		return b
	}
	n, _ := v.AsInt64()
	return n == 1
}

// serverLabels adds RetryableWriteError to the errors of servers before 4.4, which do not label
// them themselves.
func (r *run) serverLabels(l *mongoerr.Labels, code int32, m *message) {
	if m.hello.MaxWireVersion < 9 && errcode.Is(code, errcode.RetryableWrite) && r.retryableWrite() {
		failure.AddTo(l, mongoerr.LabelRetryableWrite)
	}
}

// noRetryableWrites is the code of Amazon DocumentDB and Azure Cosmos DB for a write with a
// transaction number.
const noRetryableWrites = 301

// explain replaces the message of a storage engine without retryable writes by that of the
// specification Retryable Writes, which says what to do.
func (r *run) explain(e *mongoerr.ServerError) {
	if e.Code == errcode.IllegalOperation && strings.HasPrefix(e.Message, "Transaction numbers") && r.txnNumber != 0 {
		e.Message = "This MongoDB deployment does not support retryable writes. Please add retryWrites=false to your connection string."
	} else if e.Code == errcode.IllegalOperation && strings.HasPrefix(e.Message, "Transaction numbers") && r.inTxn {
		e.Message += "; a standalone server has no transactions: start it as a replica set, which may have one member"
	} else if e.Code == errcode.IllegalOperation || e.Code == noRetryableWrites {
		if said := strings.ToLower(e.Message); strings.Contains(said, "retryable writes are not supported") &&
			!strings.Contains(said, "retrywrites=false") {
			e.Message += "; add retryWrites=false to the connection string" // what servers of others say
		}
	}
}

// hasOpenCursor reports whether a reply opened a cursor that is not exhausted.
func hasOpenCursor(reply bson.Raw) bool {
	id, ok := reply.Lookup("cursor", "id").AsInt64()
	return ok && id != 0
}

// pin ties a transaction of a sharded cluster or behind a load balancer to where its first command
// went.
func (r *run) pin(c *pool.Conn, err error) {
	if !r.inTxn || r.op.Session.Transaction().Pinned() != nil ||
		mongoerr.HasLabel(err, mongoerr.LabelTransientTransaction) || failure.Network(err) {
		return
	}
	switch c.Hello().Kind {
	case event.Mongos:
		r.op.Session.Transaction().PinTo(session.Pin{Mongos: r.addr})
	case event.LoadBalancer:
		c.Pin(pool.ForTransaction)
		r.op.Session.Transaction().PinTo(session.Pin{Conn: c})
	}
}
