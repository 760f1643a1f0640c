package exec

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/logging"
	"allium/internal/pool"
	"allium/internal/wire"
	"allium/mongoerr"
	"allium/tracing"
)

// trace publishes the events and writes the log messages of one command (specification: Command
// Logging and Monitoring). A nil trace does nothing: it is only made when somebody listens.
type trace struct {
	ctx       context.Context
	monitor   *event.CommandMonitor // never nil
	log       *logging.Logger       // nil if nothing is logged
	info      event.CommandInfo
	started   time.Time
	sensitive bool
	span      tracing.Span // nil without a tracer, and of a sensitive command
	ended     bool         // its end has been told, or is about to be
}

var noMonitor event.CommandMonitor

// traceStart tells that a command is about to be sent.
func (r *run) traceStart(ctx context.Context, c *pool.Conn, m *message, msg []byte) *trace {
	logs := r.x.Log.Enabled(ctx, logging.Command, slog.LevelDebug)
	if r.x.Monitor == nil && !logs && r.x.Tracer == nil {
		return nil
	}
	name := r.op.Command.Name()
	t := &trace{ctx: ctx, monitor: &noMonitor, started: time.Now(), info: event.CommandInfo{
		CommandName:        name,
		DatabaseName:       r.op.DB,
		RequestID:          int64(m.id),
		OperationID:        r.operationID,
		Addr:               r.addr,
		DriverConnectionID: c.ID,
		ServerConnectionID: m.hello.ServerConnectionID,
		ServiceID:          m.hello.ServiceID,
	}}
	if r.x.Monitor != nil {
		t.monitor = r.x.Monitor
	}
	if logs {
		t.log = r.x.Log
	}
	r.trace = t
	parsed, err := wire.ParseMsg(msg)
	if err == nil {
		t.sensitive = wire.Sensitive(parsed.Body)
	}
	cmd := emptyDocument
	if err == nil && !t.sensitive && (t.monitor.Started != nil || t.log != nil) {
		cmd = whole(parsed)
	}
	defer t.logStarted(cmd)
	defer t.tellStarted(ctx, cmd)
	if err == nil && r.x.Tracer != nil && !t.sensitive {
		t.startSpan(r, &parsed)
	}
	return t
}

// What follows tells the tracer, the listener and the log of a beginning or an end, in this order,
// and the later ones by defer: each is told even if one before panics or ends the goroutine.

func (t *trace) tellStarted(ctx context.Context, cmd bson.Raw) {
	if t.monitor.Started != nil {
		t.monitor.Started(ctx, &event.CommandStarted{CommandInfo: t.info, Command: cmd})
	}
}

func (t *trace) logStarted(cmd bson.Raw) {
	if t.log != nil {
		t.message("Command started", slog.String("command", t.log.Document(cmd)))
	}
	t.started = time.Now() // what listeners do is no part of the command's duration
}

// message writes a log message with the fields that all have in common.
func (t *trace) message(text string, more ...slog.Attr) {
	i := &t.info
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("commandName", i.CommandName), slog.String("databaseName", i.DatabaseName),
		slog.Int64("requestId", i.RequestID), slog.Int64("operationId", i.OperationID),
		slog.Int64("driverConnectionId", i.DriverConnectionID))
	attrs = logging.Server(attrs, i.Addr)
	if i.ServerConnectionID != nil {
		attrs = append(attrs, slog.Int64("serverConnectionId", *i.ServerConnectionID))
	}
	if i.ServiceID != nil {
		attrs = append(attrs, slog.String("serviceId", i.ServiceID.Hex()))
	}
	t.log.Log(t.ctx, logging.Command, slog.LevelDebug, text, append(attrs, more...)...)
}

func (t *trace) succeeded(reply bson.Raw) {
	if t == nil {
		return
	}
	t.ended = true
	d := time.Since(t.started)
	told := reply
	switch {
	case t.sensitive:
		told = emptyDocument
	case reply == nil: // a write that asked for no answer
		told = acknowledged
	}
	defer t.logSucceeded(d, told)
	defer t.tellSucceeded(d, told)
	t.endSpan(reply, nil)
}

func (t *trace) tellSucceeded(d time.Duration, reply bson.Raw) {
	if t.monitor.Succeeded != nil {
		t.monitor.Succeeded(t.ctx, &event.CommandSucceeded{CommandInfo: t.info, Duration: d, Reply: reply})
	}
}

func (t *trace) logSucceeded(d time.Duration, reply bson.Raw) {
	if t.log != nil {
		t.message("Command succeeded", logging.Millis("durationMS", d), slog.String("reply", t.log.Document(reply)))
	}
}

func (t *trace) failed(err error) {
	if t == nil {
		return
	}
	t.ended = true
	d := time.Since(t.started)
	told := err
	if t.sensitive {
		told = redact(err)
	}
	defer t.logFailed(d, told)
	defer t.tellFailed(d, told)
	t.endSpan(nil, err)
}

func (t *trace) tellFailed(d time.Duration, err error) {
	if t.monitor.Failed != nil {
		t.monitor.Failed(t.ctx, &event.CommandFailed{CommandInfo: t.info, Duration: d, Failure: err})
	}
}

func (t *trace) logFailed(d time.Duration, err error) {
	if t.log == nil {
		return
	}
	attrs := []slog.Attr{logging.Millis("durationMS", d), slog.String("failure", err.Error())}
	if e, ok := errors.AsType[*mongoerr.ServerError](err); ok && e.Raw != nil {
		attrs = append(attrs, slog.String("reply", t.log.Document(e.Raw)))
	}
	t.message("Command failed", attrs...)
}

// redact leaves of a server's error only what holds no secret.
func redact(err error) error {
	e, ok := errors.AsType[*mongoerr.ServerError](err)
	if !ok {
		return err
	}
	return &mongoerr.ServerError{Code: e.Code, Name: e.Name, Labels: e.Labels, Command: e.Command, Addr: e.Addr,
		Message: "REDACTED"}
}

var (
	emptyDocument = bson.Raw{5, 0, 0, 0, 0}
	acknowledged  = func() bson.Raw {
		start, dst := bson.BeginDocument(nil)
		return bson.EndDocument(bson.AppendInt32(dst, "ok", 1), start)
	}()
)

// whole returns a command as one document, its document sequences as arrays behind the fields of
// the body.
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
