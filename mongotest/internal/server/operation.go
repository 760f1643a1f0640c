package server

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

// operation is a running command as killOp can reach it.
type operation struct {
	id     int32
	done   chan struct{} // closed when the operation is killed
	reason atomic.Pointer[error]
	ended  chan struct{} // closed when a killed operation has its reply; nil unless killOperations killed it
}

// kill ends the operation with this error; only the first one counts.
func (o *operation) kill(err error) {
	if o.reason.CompareAndSwap(nil, &err) {
		close(o.done)
	}
}

func (o *operation) err() error {
	if p := o.reason.Load(); p != nil {
		return *p
	}
	return nil
}

// opInfo is what currentOp shows of a running command. Guarded by its connection's mutex.
type opInfo struct {
	op      *operation
	cmd     *Command
	name    string
	db      string
	body    bson.Raw // lies in the connection's buffer: copy what has to live longer
	session *session.Session
	inTxn   bool
	started time.Time
}

// begin notes that the connection runs a command.
func (c *Conn) begin(r *Request) {
	op := c.spare
	c.spare = nil
	if op == nil {
		op = &operation{done: make(chan struct{})}
	}
	op.id = c.node.lastOp.Add(1)
	r.op = op
	c.mu.Lock()
	c.running = opInfo{op: op, cmd: r.Cmd, name: r.Name, db: r.DB, body: r.Body, session: r.Session, inTxn: r.InTxn(),
		started: r.start}
	c.mu.Unlock()
}

func (c *Conn) end(r *Request) {
	r.endWatch()
	c.mu.Lock()
	c.running = opInfo{}
	if r.op.ended != nil {
		close(r.op.ended)
	}
	c.mu.Unlock()
	if r.op.reason.Load() == nil {
		c.spare = r.op
	}
	r.op = nil
}

// Busy reports whether a command runs that ends by itself, unlike a hello or a getMore that waits
// for news.
func (n *Node) Busy() bool {
	n.mu.Lock()
	conns := slices.Collect(maps.Keys(n.conns))
	n.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		op, cmd := c.running.op, c.running.cmd
		c.mu.Unlock()
		if op != nil && cmd.Name != "hello" && cmd.Name != "isMaster" && cmd.Name != "getMore" {
			return true
		}
	}
	return false
}

// KillOp kills the operation with this number, if it still runs.
func (n *Node) KillOp(id int64) {
	n.killOperations(func(o *opInfo) bool {
		return int64(o.op.id) == id
	}, srverr.New(srverr.Interrupted, "operation was interrupted"))
}

// killOperations kills the matching operations of the node and returns them.
func (n *Node) killOperations(match func(*opInfo) bool, reason error) (killed []*operation) {
	n.mu.Lock()
	conns := make([]*Conn, 0, len(n.conns))
	for c := range n.conns {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.mu.Lock()
		if c.running.op != nil && match(&c.running) {
			o := c.running.op
			if o.ended == nil {
				o.ended = make(chan struct{})
			}
			o.kill(reason)
			killed = append(killed, o)
		}
		c.mu.Unlock()
	}
	return killed
}

// Connections returns how many clients are connected, and how many ever were.
func (n *Node) Connections() (current int, created int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns), n.lastConn.Load()
}

// maxShownOp is how long a command may be that currentOp shows as it is when it is to shorten long
// ones.
const maxShownOp = 1 << 10

// CurrentOps returns the running operations as currentOp and $currentOp show them, with idle also
// the connections that have none. With short, long commands are cut.
func (n *Node) CurrentOps(idle, short bool) []bson.Raw {
	n.mu.Lock()
	conns := make([]*Conn, 0, len(n.conns))
	for c := range n.conns {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	var list []bson.Raw
	for _, c := range conns {
		c.mu.Lock()
		switch {
		case c.running.op != nil:
			list = append(list, c.appendOp(short))
		case idle:
			at, dst := c.beginOp(false)
			list = append(list, bson.EndDocument(dst, at))
		}
		c.mu.Unlock()
	}
	return list
}

// InactiveTransactions returns what currentOp shows of sessions whose transactions are open while
// no command of theirs runs. They are where transactions run: not at a secondary.
func (n *Node) InactiveTransactions() []bson.Raw {
	if n.set != nil && !n.IsPrimary() {
		return nil
	}
	now := n.data.Clock.Now()
	limit := time.Duration(n.IntParameter("transactionLifetimeLimitSeconds")) * time.Second
	var list []bson.Raw
	for _, s := range n.data.Sessions().All(func(session.ID) bool { return true }) {
		if !s.Mu.TryLock() {
			continue // a command has it
		}
		if txn := s.State.Txn; s.State.Phase == session.TxnInProgress && txn != nil {
			open := time.Since(txn.Started)
			started := now.Add(-open)
			list = append(list, bsondoc.Build(func(d *bsondoc.Builder) {
				d.Str("type", "idleSession")
				d.Str("host", n.addr)
				d.Str("desc", "inactive transaction")
				d.B = s.ID.Append(d.B, "lsid")
				d.Flag("active", false)
				d.Doc("transaction", bsondoc.Build(func(d *bsondoc.Builder) {
					d.Doc("parameters", bsondoc.Build(func(d *bsondoc.Builder) {
						d.B = bson.AppendInt64(d.B, "txnNumber", txn.Number)
						d.Flag("autocommit", false)
						if txn.Level != "" {
							d.Doc("readConcern", bsondoc.Single("level", bsondoc.StringValue(txn.Level)))
						}
					}))
					d.B = bson.AppendTimestamp(d.B, "readTimestamp", txn.ReadTime)
					d.Str("startWallClockTime", operationTime(started))
					d.B = bson.AppendInt64(d.B, "timeOpenMicros", open.Microseconds())
					d.Str("expiryTime", operationTime(started.Add(limit)))
				}))
				d.Flag("waitingForLock", false)
			}))
		}
		s.Mu.Unlock()
	}
	return list
}

// operationTime writes a time as currentOp does.
func operationTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-07:00") }

// beginOp begins a document of currentOp with what there is to tell of a connection. Its mutex is
// held.
func (c *Conn) beginOp(active bool) (int, []byte) {
	at, dst := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "type", "op")
	dst = bson.AppendString(dst, "host", c.node.addr)
	dst = bson.AppendString(dst, "desc", "conn"+bsondoc.Itoa(c.id))
	dst = bson.AppendInt32(dst, "connectionId", c.id)
	dst = bson.AppendString(dst, "client", c.nc.RemoteAddr().String())
	if c.client.appName != "" {
		dst = bson.AppendString(dst, "appName", c.client.appName)
	}
	if c.client.metadata != nil {
		dst = bson.AppendDocument(dst, "clientMetadata", c.client.metadata)
	}
	dst = bson.AppendBool(dst, "active", active)
	dst = bson.AppendString(dst, "currentOpTime", operationTime(c.node.data.Clock.Now()))
	return at, dst
}

// appendOp describes the connection's operation. The connection's mutex is held.
func (c *Conn) appendOp(short bool) bson.Raw {
	o := &c.running
	ran := time.Since(o.started)
	at, dst := c.beginOp(true)
	dst = bson.AppendInt32(dst, "opid", o.op.id)
	dst = bson.AppendInt64(dst, "secs_running", int64(ran.Seconds()))
	dst = bson.AppendInt64(dst, "microsecs_running", ran.Microseconds())
	if o.session != nil {
		dst = o.session.ID.Append(dst, "lsid")
	}
	dst = bson.AppendString(dst, "op", opKind(o.cmd.Name))
	ns := o.db + ".$cmd"
	var cursor int64
	for _, v := range o.body.All() {
		if s, ok := v.StringValue(); ok {
			ns = o.db + "." + s
		}
		if cursor, _ = v.Int64(); o.cmd.Name == "getMore" && cursor != 0 {
			if s, ok := o.body.Lookup("collection").StringValue(); ok {
				ns = o.db + "." + s
			}
		}
		break
	}
	dst = bson.AppendString(dst, "ns", ns)
	command := shown(o.body)
	if short {
		command = shortenedTo(command, maxShownOp)
	}
	dst = bson.AppendDocument(dst, "command", command)
	if o.cmd.Name == "getMore" {
		dst = c.node.appendBusyCursor(dst, cursor, int64(o.op.id))
	}
	if o.op.err() != nil {
		dst = bson.AppendBool(dst, "killPending", true)
	}
	return bson.EndDocument(dst, at)
}
