package server

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/failpoint"
	"allium/mongotest/internal/srverr"
)

// fire returns the data of a fail point if it is set, matches, and its mode says that it is its
// turn.
func (n *Node) fire(name string, match func(data bson.Raw) bool) (bson.Raw, bool) {
	return n.faults.Fire(name, match)
}

// FailCommand sets the failCommand fail point on the nodes, which count times and skip together.
func FailCommand(nodes []*Node, data bson.Raw, times, skip int) {
	p := failpoint.New(data, times, skip)
	for _, n := range nodes {
		n.SetFailPoint("failCommand", p)
	}
}

// ClearFailCommand switches failCommand off.
func (n *Node) ClearFailCommand() { n.SetFailPoint("failCommand", &failpoint.Point{}) }

// failTransactionalWrite lets the onPrimaryTransactionalWrite fail point have its way when a
// retryable write is about to be published (specification: unified test format, fail points): it
// closes the connection, unless closeConnection is false, and undoes the write if it returns an
// error.
func (r *Request) failTransactionalWrite() error {
	if !r.IsRetryable() {
		return nil
	}
	data, ok := r.Fault("onPrimaryTransactionalWrite")
	if !ok {
		return nil
	}
	if v := data.Lookup("closeConnection"); v.IsZero() || v.AsBool() {
		r.hangUp = true
	}
	code, ok := data.Lookup("failBeforeCommitExceptionCode").AsInt64()
	if !ok {
		return nil
	}
	return &FailedCommit{srverr.New(
		int32(code), "Failing write for %s:%d due to failpoint. The write must not be reflected.", r.Session.ID,
		r.TxnNumber)}
}

// FailedCommit is the error of a write that a fail point undid.
type FailedCommit struct{ Cause *srverr.Error }

func (f *FailedCommit) Error() string { return f.Cause.Error() }
func (f *FailedCommit) Unwrap() error { return f.Cause }

// FailAll fails every statement of a kind while its fail point is on: failAllUpdates,
// failAllRemoves.
func (r *Request) FailAll(point string) error {
	if _, ok := r.Fault(point); ok {
		return srverr.New(srverr.InternalError, "%s failpoint active!", point)
	}
	return nil
}

// Fault returns the data of a fail point that commands ask for by name, if it fires now.
func (r *Request) Fault(name string) (bson.Raw, bool) { return r.Node.fire(name, nil) }

// failCommand lets the failCommand fail point have its way before the command runs.
func (r *Request) failCommand() error {
	var block time.Duration
	var closeIt, fails bool
	var code int32
	data, ok := r.Node.fire("failCommand", func(data bson.Raw) bool {
		if !r.failCommandMatches(data) {
			return false
		}
		block, closeIt, fails, code = 0, false, false, 0
		if b, ok := data.Lookup("closeConnection").Boolean(); ok {
			closeIt = b
		}
		if v := data.Lookup("errorCode"); v.IsNumber() {
			if n, exact := v.AsInt64(); exact {
				code, fails = int32(n), true
			}
		}
		if b, ok := data.Lookup("blockConnection").Boolean(); ok && b {
			ms, _ := args.NumberOf(data.Lookup("blockTimeMS"))
			block = max(time.Duration(ms)*time.Millisecond, 0)
			return true
		}
		return closeIt || fails
	})
	if !ok {
		return nil
	}
	if v := data.Lookup("errorLabels"); v.Type == bson.TypeArray {
		r.overrideLabels(v.Value)
	}
	if v, blocks := data.Lookup("blockConnection").Boolean(); blocks && v {
		ms := data.Lookup("blockTimeMS")
		if !ms.IsNumber() {
			return srverr.New(srverr.InvalidOptions, "must specify 'blockTimeMS' when 'blockConnection' is true")
		}
		if n, _ := args.NumberOf(ms); n < 0 {
			return srverr.New(srverr.InvalidOptions, "'blockTimeMS' must be non-negative")
		}
		if block > 0 {
			r.blocked = true
			if _, err := r.Wait(nil, block); err != nil {
				return err
			}
		}
	}
	switch {
	case closeIt:
		r.hangUp = true
		return srverr.New(50985, "Failing %s due to 'failCommand' failpoint", r.Name)
	case fails && NeedsExtraInfo[code]:
		return srverr.New(40671, "Missing required extra info for error code %s", r.Node.CodeName(code))
	case fails:
		return r.Node.failedCommand(code)
	}
	return nil
}

// failSessionLookup lets failCommand fail the find by which a member of an old server reads what it
// has written down of a session that it sees for the first time.
func (r *Request) failSessionLookup() error {
	if r.Version().AtLeast(5, 0) || r.Node.role != Member {
		return nil
	}
	inner := r.Nested()
	inner.Cmd, inner.Name, inner.DB = table["find"], "find", "config"
	inner.Body = bsondoc.Build(func(d *bsondoc.Builder) { d.Str("find", "transactions") })
	code := int32(0)
	_, ok := r.Node.fire("failCommand", func(data bson.Raw) bool {
		n, exact := data.Lookup("errorCode").AsInt64()
		code = int32(n)
		return exact && inner.failCommandMatches(data)
	})
	if !ok {
		return nil
	}
	return r.Node.failedCommand(code)
}

// failedCommand is the error that failCommand answers with.
func (n *Node) failedCommand(code int32) *srverr.Error {
	how := "via"
	if !n.cfg.Version.AtLeast(4, 9) {
		how = "due to"
	}
	return srverr.New(code, "Failing command %s 'failCommand' failpoint", how)
}

// NeedsExtraInfo are the codes whose errors carry more than a message, so that a fail point cannot
// make them.
var NeedsExtraInfo = map[int32]bool{
	srverr.DuplicateKey: true, srverr.StaleConfig: true, srverr.StaleDbVersion: true,
	srverr.CannotImplicitlyCreateCollection: true, srverr.MultipleErrorsOccurred: true,
	srverr.ShardInvalidatedForTargeting:             true,
	srverr.CommandOnShardedViewNotSupportedOnMongod: true, srverr.JSInterpreterFailureWithStack: true,
	srverr.WouldChangeOwningShard: true, srverr.DocumentValidationFailure: true,
}

// failWriteConcern returns the writeConcernError that failCommand gives the command's reply.
func (r *Request) failWriteConcern() (bson.RawValue, bool) {
	data, ok := r.Node.fire("failCommand", func(data bson.Raw) bool {
		return !data.Lookup("writeConcernError").IsZero() && r.failCommandMatches(data)
	})
	if !ok {
		return bson.RawValue{}, false
	}
	if v := data.Lookup("errorLabels"); v.Type == bson.TypeArray {
		r.overrideLabels(v.Value)
	}
	return data.Lookup("writeConcernError"), true
}

func (r *Request) overrideLabels(list bson.Raw) {
	r.hasLabels, r.failLabels = true, bsondoc.Copy(list)
}

// failCommandMatches reports whether the fail point is for this command and client.
func (r *Request) failCommandMatches(data bson.Raw) bool {
	if r.Cmd.Name == "configureFailPoint" {
		return false
	}
	if v := data.Lookup("appName"); !v.IsZero() {
		if s, _ := v.StringValue(); s != r.appName() {
			return false
		}
	}
	if v := data.Lookup("threadName"); !v.IsZero() { // a server calls a thread as its connection
		if s, _ := v.StringValue(); s != "conn"+bsondoc.Itoa(r.Conn.id) {
			return false
		}
	}
	if v := data.Lookup("namespace"); !v.IsZero() {
		if s, _ := v.StringValue(); s != r.Namespace() {
			return false
		}
	}
	if data.Lookup("failAllCommands").AsBool() {
		return true
	}
	list := data.Lookup("failCommands")
	if list.Type != bson.TypeArray && list.Type != bson.TypeEmbeddedDocument {
		return false
	}
	for v := range bson.Raw(list.Value).Values() {
		s, ok := v.StringValue()
		if ok && table[s] == r.Cmd {
			return true
		}
	}
	return false
}

// appName returns the client's application name. Since 4.4.7, that of a first hello is known before
// the hello runs; the recordings are from an earlier 4.4.
func (r *Request) appName() string {
	if c := &r.Conn.client; c.sawHello || !r.Version().AtLeast(5, 0) {
		return c.appName
	}
	name, _ := r.Body.Lookup("client", "application", "name").StringValue()
	return name
}

// Namespace returns the collection that the command is about, "db.collection" or the database
// alone.
func (r *Request) Namespace() string {
	v := r.Arg()
	if r.Cmd != nil && (r.Cmd.Continues || r.Cmd.Name == "explain") {
		v = r.Body.Lookup("collection")
	}
	if s, ok := v.StringValue(); ok {
		return r.join(s)
	}
	return r.DB
}

// SetFailPoint sets a fail point and returns how often it had fired on the node before.
func (n *Node) SetFailPoint(name string, p *failpoint.Point) int64 {
	stops := (name == "stopReplProducer" || name == "rsSyncApplyStop") && n.set != nil
	on := p.On()
	count, held := n.faults.Set(name, p, stops)
	switch {
	case !stops || held == on:
	case on:
		n.set.Hold(n)
	default:
		n.set.Release(n)
	}
	return count
}
