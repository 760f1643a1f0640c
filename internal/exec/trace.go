package exec

import (
	"context"
	"strings"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/pool"
	"allium/internal/wire"
)

// trace publishes the events of one command (specification: Command Logging and Monitoring). A nil trace publishes
// nothing: it is only made when somebody listens.
type trace struct {
	ctx       context.Context
	monitor   *event.CommandMonitor
	info      event.CommandInfo
	started   time.Time
	sensitive bool
}

// traceStart publishes that a command is about to be sent.
func (r *run) traceStart(ctx context.Context, c *pool.Conn, m *message, msg []byte) *trace {
	name := r.op.Command.Name()
	t := &trace{ctx: ctx, monitor: r.x.Monitor, started: time.Now(), info: event.CommandInfo{
		CommandName:        name,
		DatabaseName:       r.op.DB,
		RequestID:          int64(m.id),
		OperationID:        r.operationID,
		Addr:               r.addr,
		DriverConnectionID: c.ID,
		ServerConnectionID: m.hello.ServerConnectionID,
		ServiceID:          m.hello.ServiceID,
	}}
	cmd := emptyDocument
	parsed, err := wire.ParseMsg(msg)
	if err == nil {
		t.sensitive = sensitive(name, parsed.Body)
	}
	if t.monitor.Started == nil {
		return t
	}
	if err == nil && !t.sensitive {
		cmd = whole(parsed)
	}
	t.monitor.Started(ctx, &event.CommandStarted{CommandInfo: t.info, Command: cmd})
	return t
}

func (t *trace) succeeded(reply bson.Raw) {
	if t == nil || t.monitor.Succeeded == nil {
		return
	}
	switch {
	case t.sensitive:
		reply = emptyDocument
	case reply == nil: // a write that asked for no answer
		reply = acknowledged
	}
	t.monitor.Succeeded(t.ctx, &event.CommandSucceeded{CommandInfo: t.info, Duration: time.Since(t.started), Reply: reply})
}

func (t *trace) failed(err error) {
	if t == nil || t.monitor.Failed == nil {
		return
	}
	t.monitor.Failed(t.ctx, &event.CommandFailed{CommandInfo: t.info, Duration: time.Since(t.started), Failure: err})
}

var (
	emptyDocument = bson.Raw{5, 0, 0, 0, 0}
	acknowledged  = func() bson.Raw {
		start, dst := bson.BeginDocument(nil)
		return bson.EndDocument(bson.AppendInt32(dst, "ok", 1), start)
	}()
)

// whole returns a command as one document, its document sequences as arrays behind the fields of the body.
func whole(m wire.Msg) bson.Raw {
	if len(m.Sequences) == 0 {
		return m.Body
	}
	size := len(m.Body)
	for _, s := range m.Sequences {
		size += len(s.Docs) + 64
	}
	dst := append(make([]byte, 0, size), m.Body[:len(m.Body)-1]...)
	for _, s := range m.Sequences {
		at, d := bson.BeginArrayElement(dst, s.ID)
		i := 0
		for docs := s.Docs; len(docs) > 0; i++ {
			doc, rest, err := bson.ReadDocument(docs)
			if err != nil {
				break
			}
			d = append(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, i), doc...)
			docs = rest
		}
		dst = bson.EndDocument(d, at)
	}
	return bson.EndDocument(dst, 0)
}

// sensitive reports whether a command carries credentials, so that events and logs must not show it.
func sensitive(name string, body bson.Raw) bool {
	switch strings.ToLower(name) {
	case "authenticate", "saslstart", "saslcontinue", "getnonce", "createuser", "updateuser",
		"copydbgetnonce", "copydbsaslstart", "copydb":
		return true
	case "hello", "ismaster":
		return !body.Lookup("speculativeAuthenticate").IsZero()
	}
	return false
}
