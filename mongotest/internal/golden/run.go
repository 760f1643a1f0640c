package golden

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/bsondoc"
)

// Runner runs cases against a deployment.
type Runner struct {
	Topology string   // replicaset, standalone, standalone-auth, sharded
	Nodes    []string // host:port; all members of a replica set, all mongoses
	// Admin, if set, is called for the connection that empties the databases before each case, to
	// authenticate it.
	Admin func(run func(cmd bson.Raw) (bson.Raw, error)) error
	// Dial, if set, opens the connections: those of a deployment in memory. In a testing/synctest
	// bubble no time limit of a recording depends on how busy the machine is.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// replyTimeout bounds the wait for a reply.
const replyTimeout = 20 * time.Second

// socket is a connection of a case.
type socket struct {
	nc      net.Conn
	pending func() // reads the reply of a background step
}

func (r *Runner) dial(addr string) (*socket, error) {
	dial := r.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	}
	nc, err := dial(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &socket{nc: nc}, nil
}

func (k *socket) run(cmd bson.Raw) (bson.Raw, error) {
	if err := k.send(cmd, nil, 0, false); err != nil {
		return nil, err
	}
	return k.read()
}

// send writes a command as OP_MSG or OP_QUERY.
func (k *socket) send(cmd, sequences bson.Raw, flags int64, query bool) error {
	var msg []byte
	if query {
		db := "admin"
		at, doc := bson.BeginDocument(nil)
		for key, v := range cmd.All() {
			if key == "$db" {
				db, _ = v.StringValue()
				continue
			}
			doc = bson.AppendRawValue(doc, key, v)
		}
		doc = bson.EndDocument(doc, at)
		msg = wire.AppendHeader(msg, wire.NextRequestID(), 0, wire.OpQuery)
		msg = append(msg, 0, 0, 0, 0)
		msg = append(msg, db+".$cmd\x00"...)
		msg = append(msg, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff)
		msg = append(msg, doc...)
	} else {
		msg = wire.AppendMsg(msg, wire.NextRequestID(), 0, wire.Flags(flags))
		msg = append(msg, cmd...)
		for id, docs := range sequences.All() {
			var at int
			at, msg = wire.BeginSequence(msg, id)
			for d := range bson.Raw(docs.Value).Values() {
				msg = append(msg, d.Value...)
			}
			msg = wire.EndSequence(msg, at)
		}
	}
	k.nc.SetDeadline(time.Now().Add(replyTimeout))
	_, err := k.nc.Write(wire.FinishMessage(msg, 0))
	return err
}

// read reads a reply of either kind.
func (k *socket) read() (bson.Raw, error) {
	k.nc.SetDeadline(time.Now().Add(replyTimeout))
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(k.nc, head); err != nil {
		return nil, err
	}
	h, err := wire.ParseHeader(head, wire.DefaultMaxMessageSize)
	if err != nil {
		return nil, err
	}
	msg := append(head, make([]byte, int(h.Length)-wire.HeaderLen)...)
	if _, err := io.ReadFull(k.nc, msg[wire.HeaderLen:]); err != nil {
		return nil, err
	}
	switch h.OpCode {
	case wire.OpReply:
		const fixed = wire.HeaderLen + 20
		if len(msg) < fixed {
			return nil, errors.New("OP_REPLY is too short")
		}
		doc, _, err := bson.ReadDocument(msg[fixed:])
		return doc, err
	case wire.OpMsg:
		m, err := wire.ParseMsg(msg)
		return m.Body, err
	}
	return nil, fmt.Errorf("reply has operation code %d", h.OpCode)
}

// target returns the address that a step's "on" stands for. It asks the nodes who is primary.
func (r *Runner) target(on string) (string, error) {
	switch {
	case on == "mongos1" && len(r.Nodes) > 0:
		return r.Nodes[0], nil
	case on == "mongos2" && len(r.Nodes) > 1:
		return r.Nodes[1], nil
	case r.Topology != "replicaset":
		return r.Nodes[0], nil
	}
	field := "ismaster"
	if on == "secondary" {
		field = "secondary"
	}
	hello := document(element{"isMaster", bsondoc.Int32Value(1)}, element{"$db", bsondoc.StringValue("admin")})
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		for _, n := range r.Nodes {
			k, err := r.dial(n)
			if err != nil {
				continue
			}
			reply, err := k.run(hello)
			k.nc.Close()
			if err == nil && reply.Lookup(field).AsBool() {
				return n, nil
			}
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("no node answers %s: true", field)
		}
	}
}

// reset empties the databases that the cases use.
func (r *Runner) reset() error {
	addr, err := r.target("")
	if err != nil {
		return err
	}
	k, err := r.dial(addr)
	if err != nil {
		return err
	}
	defer k.nc.Close()
	if r.Admin != nil {
		if err := r.Admin(k.run); err != nil {
			return err
		}
	}
	majority := document(element{"w", bsondoc.StringValue("majority")})
	for _, cmd := range []bson.Raw{
		document(element{"killAllSessions", bson.RawValue{Type: bson.TypeArray, Value: document()}},
			element{"$db", bsondoc.StringValue("admin")}),
		document(element{"dropDatabase", bsondoc.Int32Value(1)}, element{"$db", bsondoc.StringValue("golden")},
			element{"writeConcern", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: majority}}),
		document(element{"dropDatabase", bsondoc.Int32Value(1)}, element{"$db", bsondoc.StringValue("golden2")}),
	} {
		if _, err := k.run(cmd); err != nil {
			return fmt.Errorf("empty the databases: %w", err)
		}
	}
	return nil
}

// run is the state of one case.
type run struct {
	*Runner
	sockets map[string]*socket
	saved   map[string]bson.RawValue
	replies []bson.Raw
	late    error // of a background step
}

// Run runs a case and returns the replies, one per step (nil where there is none).
func (r *Runner) Run(c Case) ([]bson.Raw, error) {
	if err := r.reset(); err != nil {
		return nil, err
	}
	x := &run{Runner: r, sockets: map[string]*socket{}, saved: map[string]bson.RawValue{},
		replies: make([]bson.Raw, len(c.Steps))}
	defer func() {
		for _, k := range x.sockets {
			k.nc.Close()
		}
	}()
	err := x.steps(c.Steps)
	for _, s := range c.Cleanup {
		if _, e := x.step(s, -1); e != nil && err == nil {
			err = fmt.Errorf("cleanup: %w", e)
		}
	}
	if err == nil {
		err = x.late
	}
	return x.replies, err
}

func (x *run) steps(steps []Step) error {
	for i, s := range steps {
		reply, err := x.step(s, i)
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if !s.Background {
			x.replies[i] = reply
		}
	}
	for _, k := range x.sockets {
		if k.pending != nil {
			k.pending()
		}
	}
	return nil
}

// socketFor returns the step's socket, after reading what is still owed on it.
func (x *run) socketFor(s Step) (*socket, string, error) {
	name := s.Conn
	if name == "" {
		name = "a"
	}
	key := name + "@" + s.On
	if k := x.sockets[key]; k != nil && k.pending != nil {
		k.pending()
	}
	if k := x.sockets[key]; k != nil {
		return k, key, nil
	}
	addr, err := x.target(s.On)
	if err != nil {
		return nil, key, err
	}
	k, err := x.dial(addr)
	if err != nil {
		return nil, key, err
	}
	x.sockets[key] = k
	return k, key, nil
}

func (x *run) step(s Step, i int) (bson.Raw, error) {
	time.Sleep(time.Duration(s.SleepMS) * time.Millisecond)
	if len(s.Command) <= 5 {
		return document(), nil
	}
	k, key, err := x.socketFor(s)
	if err != nil {
		return nil, err
	}
	cmd, err := x.substitute(s.Command)
	if err != nil {
		return nil, err
	}
	sequences, err := x.substitute(s.Sequences)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	send := func() error { return k.send(cmd, sequences, s.Flags, s.Query) }
	finish := func(reply bson.Raw, err error) (bson.Raw, error) {
		if err != nil {
			delete(x.sockets, key)
			k.nc.Close()
			if s.Closed {
				return document(element{"$closed", bsondoc.BoolValue(true)}), nil
			}
			return nil, err
		}
		ms := time.Since(start).Milliseconds()
		if ms < s.MinMS || s.MaxMS > 0 && ms > s.MaxMS {
			return nil, fmt.Errorf("reply after %d ms, want %d to %d", ms, s.MinMS, s.MaxMS)
		}
		reply = sortArrays(reply, s.Sorted)
		for name, path := range s.Save.All() {
			p, _ := path.StringValue()
			x.saved[strings.Clone(name)] = lookup(reply, p)
		}
		return reply, nil
	}
	err = send()
	if err == nil && wire.Flags(s.Flags)&wire.MoreToCome != 0 {
		return document(element{"$none", bsondoc.BoolValue(true)}), nil
	}
	if s.Background {
		k.pending = func() {
			k.pending = nil
			var reply bson.Raw
			if err == nil {
				reply, err = k.read()
			}
			reply, err := finish(reply, err)
			if err != nil && x.late == nil {
				x.late = fmt.Errorf("background step %d: %w", i, err)
			}
			if i >= 0 {
				x.replies[i] = reply
			}
		}
		return nil, nil
	}
	var reply bson.Raw
	if err == nil {
		reply, err = k.read()
	}
	for range 40 {
		if err != nil || s.Until == "" || !reply.Lookup("errmsg").IsZero() || !isEmpty(lookup(reply, s.Until)) {
			break
		}
		time.Sleep(50 * time.Millisecond)
		if err = send(); err == nil {
			reply, err = k.read()
		}
	}
	return finish(reply, err)
}

// substitute returns the document with $ref, $session, $big and $nest filled in.
func (x *run) substitute(doc bson.Raw) (bson.Raw, error) {
	if doc == nil {
		return nil, nil
	}
	at, out := bson.BeginDocument(nil)
	for key, v := range doc.All() {
		if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			filled, ok, err := x.placeholder(v)
			if err != nil {
				return nil, err
			}
			if ok {
				v = filled
			} else if v.Value, err = x.substitute(v.Value); err != nil {
				return nil, err
			}
		}
		out = bson.AppendRawValue(out, key, v)
	}
	return bson.EndDocument(out, at), nil
}

func (x *run) placeholder(v bson.RawValue) (bson.RawValue, bool, error) {
	list := elements(v.Value)
	if v.Type != bson.TypeEmbeddedDocument || len(list) != 1 {
		return v, false, nil
	}
	name, _ := list[0].val.StringValue()
	n, _ := list[0].val.AsInt64()
	switch list[0].key {
	case "$big":
		return bsondoc.StringValue(strings.Repeat("x", int(n))), true, nil
	case "$nest":
		in := bsondoc.Int32Value(1)
		for ; n > 0; n-- {
			in = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: document(element{"a", in})}
		}
		return in, true, nil
	case "$ref":
		saved, ok := x.saved[name]
		if !ok {
			return v, false, fmt.Errorf("nothing saved as %q", name)
		}
		if saved.IsZero() { // the reply had no such field
			saved = bson.RawValue{Type: bson.TypeNull}
		}
		return saved, true, nil
	case "$session":
		key := "session:" + name
		if _, ok := x.saved[key]; !ok {
			id := make([]byte, 16)
			rand.Read(id)
			at, doc := bson.BeginDocument(nil)
			doc = bson.EndDocument(bson.AppendBinary(doc, "id", bson.BinaryUUID, id), at)
			x.saved[key] = bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
		}
		return x.saved[key], true, nil
	}
	return v, false, nil
}

func isEmpty(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return bson.Raw(v.Value).IsEmpty()
	}
	return v.IsZero() || v.Type == bson.TypeNull
}

func document(list ...element) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	for _, e := range list {
		doc = bson.AppendRawValue(doc, e.key, e.val)
	}
	return bson.EndDocument(doc, at)
}

// Compare returns where the replies of a run differ from the recorded ones, "" if nowhere.
func Compare(c Case, replies []bson.Raw) string {
	for i, s := range c.Steps {
		if s.Quiet || s.Reply == nil {
			continue
		}
		if d := Diff(s.Reply, replies[i]); d != "" {
			if msg, ok := replies[i].Lookup("errmsg").StringValue(); ok {
				d += " (errmsg: " + msg + ")"
			}
			return fmt.Sprintf("step %d: %s", i, d)
		}
	}
	return ""
}
