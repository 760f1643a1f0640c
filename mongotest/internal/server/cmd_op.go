package server

import (
	"math"
	"strconv"
	"strings"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "currentOp", AdminOnly: true, Where: Anywhere, Run: runCurrentOp})
	register(&Command{Name: "killOp", AdminOnly: true, Where: Anywhere, Run: runKillOp})
}

// currentOps returns the running operations that match, as currentOp and $currentOp show them.
func (n *Node) currentOps(match func(*opInfo) bool) []bson.Raw {
	n.mu.Lock()
	conns := make([]*Conn, 0, len(n.conns))
	for c := range n.conns {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	var list []bson.Raw
	for _, c := range conns {
		c.mu.Lock()
		if c.running.op != nil && match(&c.running) {
			list = append(list, c.appendOp())
		}
		c.mu.Unlock()
	}
	return list
}

// CurrentOps returns the running operations, for $currentOp.
func (n *Node) CurrentOps() []bson.Raw {
	return n.currentOps(func(*opInfo) bool { return true })
}

// appendOp describes the connection's operation. The connection's mutex is held.
func (c *Conn) appendOp() bson.Raw {
	o := &c.running
	ran := time.Since(o.started)
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
	dst = bson.AppendBool(dst, "active", true)
	dst = bson.AppendString(dst, "currentOpTime", c.node.data.Clock.Now().UTC().Format("2006-01-02T15:04:05.000-07:00"))
	dst = bson.AppendInt32(dst, "opid", o.op.id)
	dst = bson.AppendInt64(dst, "secs_running", int64(ran.Seconds()))
	dst = bson.AppendInt64(dst, "microsecs_running", ran.Microseconds())
	if o.session != nil {
		dst = o.session.ID.Append(dst, "lsid")
	}
	dst = bson.AppendString(dst, "op", opKind(o.cmd.Name))
	ns := o.db + ".$cmd"
	for _, v := range o.body.All() {
		if s, ok := v.StringValue(); ok {
			ns = o.db + "." + s
		}
		break
	}
	dst = bson.AppendString(dst, "ns", ns)
	if secret[o.cmd.Name] {
		start, d := bson.BeginDocumentElement(dst, "command")
		dst = bson.EndDocument(d, start)
	} else {
		dst = bson.AppendDocument(dst, "command", o.body)
	}
	if o.op.err() != nil {
		dst = bson.AppendBool(dst, "killPending", true)
	}
	return bson.EndDocument(dst, at)
}

func opKind(name string) string {
	switch name {
	case "insert", "update":
		return name
	case "delete":
		return "remove"
	case "find":
		return "query"
	case "getMore":
		return "getmore"
	}
	return "command"
}

func runCurrentOp(r *Request, dst []byte) ([]byte, error) {
	// Fields that are no options are a filter.
	first := true
	f, err := query.ParseFilter(bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range r.Body.All() {
			if !first && !r.generic(k) && k != "$all" && k != "$ownOps" && k != "$truncateOps" && k != "allUsers" {
				d.B = bson.AppendRawValue(d.B, k, v)
			}
			first = false
		}
	}), r.fullOptions(r.DB, nil, nil))
	if err != nil {
		return dst, err
	}
	at, dst := bson.BeginArrayElement(dst, "inprog")
	i := 0
	for _, o := range r.Node.CurrentOps() {
		match, err := f.Match(o)
		if err != nil {
			return dst, err
		}
		if match {
			dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), o...)
			i++
		}
	}
	return bson.EndDocument(dst, at), nil
}

func runKillOp(r *Request, dst []byte) ([]byte, error) {
	v := r.Body.Lookup("op")
	if s, ok := v.StringValue(); ok && r.Node.role == Mongos {
		return r.killShardOp(dst, s)
	}
	switch {
	case v.IsZero():
		return dst, srverr.New(srverr.NoSuchKey, "Missing expected field \"op\"")
	case !v.IsNumber():
		return dst, srverr.New(srverr.TypeMismatch, "Expected field \"op\" to have numeric type, but found %s", bsontext.TypeName(v.Type))
	}
	id, exact := v.AsInt64()
	if !exact {
		return dst, srverr.New(srverr.BadValue, "Expected field \"op\" to have a value exactly representable as a 64-bit integer, but found %s", bsontext.Element("op", v))
	}
	if id < math.MinInt32 || id > math.MaxInt32 {
		return dst, srverr.New(26823, "invalid op : %d. Op ID cannot be represented with 32 bits", id)
	}
	r.Node.killOperations(func(o *opInfo) bool { return int64(o.op.id) == id }, srverr.New(srverr.Interrupted, "operation was interrupted"))
	if r.Node.role == Mongos {
		return dst, nil
	}
	return bson.AppendString(dst, "info", "attempting to kill op"), nil
}

// killShardOp answers a mongos's killOp of an operation on a shard ("shard:id"), which runs none of
// its own.
func (r *Request) killShardOp(dst []byte, op string) ([]byte, error) {
	shard, text, ok := strings.Cut(op, ":")
	id, err := strconv.ParseInt(text, 10, 32)
	if !ok || err != nil {
		return dst, srverr.New(srverr.BadValue, "The op argument to killOp must be of the format shardid:opid but found \"%s\"", op)
	}
	if r.Node.data.shardNumber(shard) < 0 {
		return dst, srverr.New(srverr.ShardNotFound, "Shard %s does not exist", shard)
	}
	dst = bson.AppendString(dst, "shard", shard)
	return bson.AppendInt32(dst, "shardid", int32(id)), nil
}
