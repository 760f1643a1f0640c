package exec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strconv"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/logging"
	"allium/internal/session"
	"allium/internal/wire"
	"allium/mongoerr"
	"allium/tracing"
)

// The attributes of the specification OpenTelemetry.
const (
	attrSystem           = "db.system.name"
	attrNamespace        = "db.namespace"
	attrCollection       = "db.collection.name"
	attrOperation        = "db.operation.name"
	attrOperationSummary = "db.operation.summary"
	attrCommand          = "db.command.name"
	attrQuerySummary     = "db.query.summary"
	attrQueryText        = "db.query.text"
	attrStatusCode       = "db.response.status_code"
	attrAddress          = "server.address"
	attrPort             = "server.port"
	attrTransport        = "network.transport"
	attrServerConnection = "db.mongodb.server_connection_id"
	attrDriverConnection = "db.mongodb.driver_connection_id"
	attrCursor           = "db.mongodb.cursor_id"
	attrSession          = "db.mongodb.lsid"
	attrTransaction      = "db.mongodb.txn_number"
	attrMessage          = "exception.message"
	attrType             = "exception.type"
	attrStack            = "exception.stacktrace"
)

var systemName = tracing.Attribute{Key: attrSystem, Value: "mongodb"}

// summary returns the name of a span: what is done, and to which database or collection.
func summary(what, db, coll string) string {
	if coll != "" {
		return what + " " + db + "." + coll
	}
	return what + " " + db
}

// target appends the attributes that name a database, and a collection unless the database is
// admin.
func target(attrs []tracing.Attribute, db, coll string) []tracing.Attribute {
	if db != "" {
		attrs = append(attrs, tracing.Attribute{Key: attrNamespace, Value: db})
	}
	if coll != "" {
		attrs = append(attrs, tracing.Attribute{Key: attrCollection, Value: coll})
	}
	return attrs
}

// adminDB is the database whose commands are about no collection.
const adminDB = "admin"

// collectionIn returns coll, "" if db is admin.
func collectionIn(db, coll string) string {
	if db == adminDB {
		return ""
	}
	return coll
}

// operationName returns what the specification calls the operation that a command is sent for.
func operationName(cmd command.Command) string {
	switch c := cmd.(type) {
	case *command.Run:
		switch {
		case c.OpensCursor:
			return "runCursorCommand"
		case c.Name() == mapReduce:
			return mapReduce
		}
		return "runCommand"
	case *command.Named:
		switch c.Command {
		case "create":
			return "createCollection"
		case "drop":
			return "dropCollection"
		}
	}
	return cmd.Name()
}

// mapReduce is an operation of the specification's list that the driver has no method for: running
// the command is the operation.
const mapReduce = "mapReduce"

// operationCollection returns the collection that an operation is about, "" if there is none.
func operationCollection(cmd command.Command) string {
	if run, ok := cmd.(*command.Run); ok && run.Name() == mapReduce {
		return commandCollection(cmd, run.Doc)
	}
	return command.Collection(cmd)
}

// joined is the key under which a context holds that the commands run with it belong to an
// operation whose span has begun.
type joined struct{}

// beginSpan begins the span of an operation, and returns the context in which it is the current
// one. The span is nil if the operation is a part of another one, which has a span.
func (r *run) beginSpan(ctx context.Context) (context.Context, tracing.Span) {
	if is, _ := ctx.Value(joined{}).(bool); is {
		// What others do with the context, such as a cipher that looks for keys, is not part of it.
		return context.WithValue(ctx, joined{}, false), nil
	}
	var txn *session.Transaction
	if r.inTxn || r.op.EndsTransaction {
		txn = r.op.Session.Transaction()
	}
	return r.x.beginSpan(ctx, txn, operationName(r.op.Command), r.op.DB, operationCollection(r.op.Command))
}

// beginSpan begins the span of an operation that may be part of a transaction.
func (x *Executor) beginSpan(ctx context.Context, txn *session.Transaction, name, db,
	coll string) (context.Context, tracing.Span) {
	if txn != nil {
		ctx = x.inTransaction(ctx, txn)
	}
	coll = collectionIn(db, coll)
	title := summary(name, db, coll)
	attrs := target(append(make([]tracing.Attribute, 0, 5), systemName), db, coll)
	attrs = append(attrs, tracing.Attribute{Key: attrOperation, Value: name},
		tracing.Attribute{Key: attrOperationSummary, Value: title})
	return x.Tracer.Start(ctx, tracing.Begin{Name: title, Attributes: attrs})
}

// endSpan ends the span of the operation.
func (r *run) endSpan(span tracing.Span, res *Result, err error) {
	if err == nil && r.op.WriteErrors && res.Reply != nil {
		err = writeOutcome(res, r.op)
	}
	if err == nil && res.Reply != nil && r.op.Command.Traits().OpensCursor {
		// The caller finds this when it takes the cursor over.
		_, err = command.ParseCursor(res.Reply, command.FirstBatch)
	}
	if c, ok := r.op.Command.(*command.Run); ok && err != nil && wire.Sensitive(c.Doc) {
		err = redact(err)
	}
	endSpan(span, err)
}

// writeOutcome returns the first error that the reply to a write reports although it says ok: 1.
func writeOutcome(res *Result, op *Op) error {
	list, err := res.WriteErrors(op)
	switch {
	case err != nil:
		return err
	case len(list) > 0:
		return list[0]
	}
	return res.Unconfirmed()
}

func endSpan(span tracing.Span, err error) {
	defer span.End()
	if err != nil {
		recordError(span, err)
	}
}

// recordError records an error with the attributes of an exception.
func recordError(span tracing.Span, err error) {
	span.SetAttributes(tracing.Attribute{Key: attrMessage, Value: err.Error()},
		tracing.Attribute{Key: attrType, Value: fmt.Sprintf("%T", err)},
		tracing.Attribute{Key: attrStack, Value: string(debug.Stack())})
	span.RecordError(err)
}

// Operation runs an operation of several commands in a span: those that run with the context that
// it hands on. Without a tracer there is none.
func (x *Executor) Operation(ctx context.Context, s *session.Session, name, db, coll string,
	run func(context.Context) error) error {
	ctx, span := x.operationSpan(ctx, s, name, db, coll)
	if span == nil {
		return run(ctx)
	}
	err := errUnwound // unless run returns
	defer func() { endSpan(span, err) }()
	err = run(ctx)
	return err
}

func (x *Executor) operationSpan(ctx context.Context, s *session.Session, name, db,
	coll string) (context.Context, tracing.Span) {
	if x.Tracer == nil || ctx == nil {
		return ctx, nil
	}
	var txn *session.Transaction
	if s != nil {
		if err := s.Enter(); err != nil {
			return ctx, nil // the first command returns it
		}
		defer s.Leave()
		if t := s.Transaction(); t.Running() {
			txn = t
		}
	}
	ctx, span := x.beginSpan(ctx, txn, name, db, coll)
	return context.WithValue(ctx, joined{}, true), span
}

// inTxnSpan is the key under which a context holds the span of the transaction that its current
// span is, or is somewhere below of.
type inTxnSpan struct{}

// inTransaction returns ctx with the span of a transaction as its current one, unless the current
// one is below it already. The span begins with the first operation of the transaction at the
// latest, at the time when the transaction was started: StartTransaction has no context that would
// tell its parent.
func (x *Executor) inTransaction(ctx context.Context, txn *session.Transaction) context.Context {
	if txn.Span == nil {
		begun, span := x.Tracer.Start(ctx, tracing.Begin{Name: "transaction", Time: txn.Started,
			Attributes: []tracing.Attribute{systemName}})
		ctx, txn.Span = begun, &session.TransactionSpan{Span: span}
	} else if s, _ := ctx.Value(inTxnSpan{}).(*session.TransactionSpan); s == txn.Span {
		return ctx
	} else {
		ctx = txn.Span.Within(ctx)
	}
	return context.WithValue(ctx, inTxnSpan{}, txn.Span)
}

// InTransaction returns ctx with the span of the session's transaction, which has just been
// started, as its current one. Without a tracer it returns ctx.
func (x *Executor) InTransaction(ctx context.Context, s *session.Session) context.Context {
	if x.Tracer == nil || s.Enter() != nil {
		return ctx
	}
	defer s.Leave()
	return x.inTransaction(ctx, s.Transaction())
}

// endTransactionSpan ends the span of a transaction after its first commit, or after its abort. A
// commit that is repeated is still nested in it.
func (x *Executor) endTransactionSpan(ctx context.Context, txn *session.Transaction) {
	if x.Tracer == nil || txn.Span != nil && txn.Span.Ended {
		return
	}
	x.inTransaction(ctx, txn)
	txn.Span.Ended = true
	txn.Span.End()
}

// startSpan begins the span of a command, within that of its operation.
func (t *trace) startSpan(r *run, msg *wire.Msg) {
	i := &t.info
	coll := collectionIn(i.DatabaseName, commandCollection(r.op.Command, msg.Body))
	attrs := target(append(make([]tracing.Attribute, 0, 16), systemName), i.DatabaseName, coll)
	add := func(key string, value any) { attrs = append(attrs, tracing.Attribute{Key: key, Value: value}) }
	add(attrCommand, i.CommandName)
	add(attrQuerySummary, summary(i.CommandName, i.DatabaseName, coll))
	if host, port, err := net.SplitHostPort(i.Addr); err == nil {
		add(attrAddress, host)
		if n, err := strconv.ParseInt(port, 10, 64); err == nil {
			add(attrPort, n)
		}
		add(attrTransport, "tcp")
	} else { // the path of a Unix domain socket
		add(attrAddress, i.Addr)
		add(attrTransport, "unix")
	}
	add(attrDriverConnection, i.DriverConnectionID)
	if i.ServerConnectionID != nil {
		add(attrServerConnection, *i.ServerConnectionID)
	}
	if id, ok := msg.Body.Lookup("lsid", "id").Binary(); ok && len(id.Data) == len(bson.UUID{}) {
		add(attrSession, bson.UUID(id.Data).String())
	}
	if n, ok := msg.Body.Lookup("txnNumber").AsInt64(); ok {
		add(attrTransaction, n)
	}
	if id := usedCursor(i.CommandName, msg.Body); id != 0 {
		add(attrCursor, id)
	}
	if limit := r.x.QueryTextMaxLength; limit > 0 {
		add(attrQueryText, logging.Document(withoutCommon(whole(*msg)), limit))
	}
	t.ctx, t.span = r.x.Tracer.Start(t.ctx, tracing.Begin{Name: i.CommandName, Attributes: attrs})
}

// endSpan ends the span of a command. err is nil if it succeeded.
func (t *trace) endSpan(reply bson.Raw, err error) {
	if t.span == nil {
		return
	}
	defer endSpan(t.span, err)
	if err != nil {
		if e, ok := errors.AsType[*mongoerr.ServerError](err); ok {
			t.span.SetAttributes(tracing.Attribute{Key: attrStatusCode, Value: strconv.Itoa(int(e.Code))})
		}
	} else if id, ok := reply.Lookup("cursor", "id").AsInt64(); ok && id != 0 {
		t.span.SetAttributes(tracing.Attribute{Key: attrCursor, Value: id})
	}
}

// usedCursor returns the cursor that a command names, 0 if it names none.
func usedCursor(name string, body bson.Raw) int64 {
	var id int64
	switch name {
	case "getMore":
		id, _ = body.Lookup("getMore").AsInt64()
	case "killCursors":
		id, _ = body.Lookup("cursors", "0").AsInt64()
	}
	return id
}

// withCollection are the commands whose first field is a collection. What other commands have there
// may be the name of a user or of a role.
var withCollection = map[string]bool{
	"aggregate": true, "autoCompact": true, "cleanupStructuredEncryptionData": true, "collMod": true, "collStats": true,
	"compact":                         true,
	"compactStructuredEncryptionData": true, "convertToCapped": true, "count": true, "create": true,
	"createIndexes":       true,
	"createSearchIndexes": true, "delete": true, "distinct": true, "drop": true, "dropIndexes": true,
	"dropSearchIndex": true,
	"find":            true, "findAndModify": true, "insert": true, "killCursors": true, "listIndexes": true,
	"mapReduce":      true,
	"planCacheClear": true, "reIndex": true, "update": true, "updateSearchIndex": true, "validate": true,
}

// commandCollection returns the collection that a command is about, "" if there is none.
func commandCollection(cmd command.Command, body bson.Raw) string {
	run, ok := cmd.(*command.Run)
	if !ok {
		return command.Collection(cmd)
	}
	name, field := run.Name(), ""
	switch {
	case name == "getMore":
		field = "collection"
	case withCollection[name]:
		field = name
	}
	coll, _ := body.Lookup(field).StringValue()
	return coll
}

// withoutCommon returns a command without the fields that the query text leaves out.
func withoutCommon(doc bson.Raw) bson.Raw {
	start, dst := bson.BeginDocument(make([]byte, 0, len(doc)))
	for key, v := range doc.All() {
		switch key {
		case "lsid", "$db", "$clusterTime", "signature":
		default:
			dst = bson.AppendRawValue(dst, key, v)
		}
	}
	return bson.EndDocument(dst, start)
}
