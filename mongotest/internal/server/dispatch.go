package server

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// dispatch runs the request and appends the reply's document to dst.
func (n *Node) dispatch(r *Request, dst []byte) (out []byte) {
	base := len(dst)
	at, dst := bson.BeginDocument(dst)
	dst, err := n.run(r, dst)
	n.profile(r, dst[base:], err)
	n.recordQuery(r, dst[base:], err)
	r.sample(err)
	n.count(r, err != nil)
	n.note(r)
	switch {
	case err != nil:
		extra := append([]byte(nil), dst[base+4:]...) // the writeConcernError of a failed command
		at, dst = bson.BeginDocument(dst[:base])
		dst = append(dst, extra...)
		dst = n.appendError(r, dst, srverr.From(err))
	default:
		if r.IntegerOK {
			dst = bson.AppendInt32(dst, "ok", 1)
		} else {
			dst = bson.AppendDouble(dst, "ok", 1)
		}
		dst = r.appendLabels(dst, 0, nil)
		if n.cfg.Version.AtLeast(4, 4) {
			dst = n.appendVersionFor(dst, r.wcCode)
		}
	}
	dst = r.Routing.appendRecovery(dst)
	if !r.finds {
		dst = n.appendTimes(r, dst)
	}
	if r.op != nil {
		r.Conn.end(r)
	}
	return bson.EndDocument(dst, at)
}

// step is one of the things that happen to a request before its command runs. An error is the
// reply; done ends the request without running the command.
type step struct {
	name string
	run  func(r *Request) (done bool, err error)
}

// check is a step that can only fail.
func check(name string, run func(r *Request) error) step {
	return step{name, func(r *Request) (bool, error) { return false, run(r) }}
}

// steps are what every request goes through, in the server's order: which of several errors a
// client sees depends on it.
var steps []step

func init() {
	steps = []step{
		check("message", (*Request).validateMessage),
		check("OP_QUERY", (*Request).checkQuery),
		check("database", (*Request).parseDB),
		check("command", (*Request).findCommand),
		check("data lake", (*Request).refuseInDataLake),
		check("flavour", (*Request).refuseInFlavour),
		check("authorization", (*Request).authorize),
		check("sequences", (*Request).checkSequences),
		check("parse", (*Request).parse),
		check("arguments", (*Request).parseArgs),
		{"help", (*Request).answerHelp},
		check("metadata", (*Request).metadata),
		check("API version", (*Request).checkAPI),
		check("duplicates", (*Request).checkDuplicates),
		check("session arguments", (*Request).sessionArgs),
		check("begin", (*Request).begin),
		check("early hello", (*Request).noteEarlyHello),
		check("failCommand", (*Request).failCommand),
		check("database name", (*Request).checkDB),
		check("session", (*Request).validateSession),
		check("step-down", (*Request).waitStepDown),
		check("primary", (*Request).checkPrimary),
		check("maxTimeMS", (*Request).maxTime),
		check("read concern", (*Request).parseReadConcern),
		check("read concern of the command", (*Request).checkReadConcern),
		{"route", (*Request).routeTxn},
		check("write concern", (*Request).parseWriteConcern),
	}
}

// run takes the request through the steps and runs its command. After an error dst holds only what
// belongs into the reply nevertheless.
func (n *Node) run(r *Request, dst []byte) (out []byte, err error) {
	start := len(dst)
	defer func() {
		if v := recover(); work.Ended(v) != nil {
			out, err = dst[:start], work.Ended(v)
		} else if v != nil {
			out, err = dst[:start], srverr.New(srverr.InternalError, "%s", n.panicked(v))
		}
		r.checkIn()
	}()
	for _, s := range steps {
		if done, err := s.run(r); done || err != nil {
			return append(dst, r.answer...), err
		}
	}
	for tries := 0; ; tries++ {
		dst, err = n.invoke(r, dst)
		x := r.Routing
		if x != nil && x.startsOver && err != nil && !r.hangUp {
			if err = r.Check(); err == nil {
				x.redo()
				tries--
				dst = dst[:start]
				continue
			}
		}
		if r.hangUp && r.Cmd.WriteConcern {
			return dst, err
		}
		if err != nil {
			dst = dst[:start]
		}
		if !r.Cmd.WriteConcern {
			return dst, err
		}
		dst, err = n.acknowledge(r, dst, start, err)
		if x == nil || !x.undone || tries == shardRetries {
			return dst, err
		}
		x.redo()
		dst = dst[:start]
	}
}

// acknowledge waits for the write concern of a command that takes one, and appends what its reply
// says of that. A command that failed is waited for, too: it may have written something before.
func (n *Node) acknowledge(r *Request, dst []byte, start int, runErr error) ([]byte, error) {
	if r.Cmd.OpTime && runErr == nil {
		if r.WC.Unacknowledged() {
			return dst[:start], nil
		}
		dst = n.appendOpTime(r, dst)
	}
	if e, ok := r.failWriteConcern(); ok {
		if e.Type != bson.TypeEmbeddedDocument {
			return dst[:start], srverr.New(10065, "invalid parameter: expected an object (writeConcernError)")
		}
		code, _ := args.NumberOf(bson.Raw(e.Value).Lookup("code"))
		r.wcCode = int32(code)
		return bson.AppendRawValue(dst, "writeConcernError", e), runErr
	}
	if r.InTxn() && r.Cmd.Txn != TxnEnds || r.NoWrite {
		return dst, runErr
	}
	dst, code, err := r.waitWriteConcern(dst)
	if err != nil {
		return dst, err
	}
	r.wcCode = code
	return dst, runErr
}

// findCommand finds the command by its name.
func (r *Request) findCommand() error {
	n := r.Node
	r.Cmd = n.Lookup(r.Name)
	switch {
	case r.Cmd == nil && r.Routing != nil:
		return srverr.New(srverr.CommandNotFound, "no such cmd: %s%s", r.Name,
			n.cfg.Version.NotBuiltNote(release.Command, r.Name))
	case r.Cmd == nil:
		return srverr.New(srverr.CommandNotFound, "no such command: '%s'%s", r.Name,
			n.cfg.Version.NotBuiltNote(release.Command, r.Name))
	case r.Cmd.AdminOnly && r.DB != "admin" && r.Cmd.Txn == NoTxn && r.Version().AllParsed() &&
		r.Body.Lookup("autocommit").Type == bson.TypeBoolean: // which is looked at first
		return srverr.New(srverr.OperationNotSupportedInTransaction,
			"Cannot run '%s' in a multi-document transaction.", r.Name)
	case r.Cmd.AdminOnly && r.DB != "admin":
		return srverr.New(srverr.Unauthorized, "%s may only be run against the admin database.", r.Cmd.Name)
	}
	return nil
}

// checkSequences refuses document sequences where the command takes none.
func (r *Request) checkSequences() error {
	if len(r.Sequences) > 0 && !r.Cmd.Sequences {
		return srverr.New(40472, "The %s command does not support document sequences.", r.Cmd.Name)
	}
	return nil
}

// parse lets the command check what it checks first.
func (r *Request) parse() error {
	if r.Cmd.Parse == nil {
		return nil
	}
	return r.Cmd.Parse(r)
}

// answerHelp answers a request for the command's help.
func (r *Request) answerHelp() (done bool, err error) {
	if r.help {
		r.answer = bson.AppendString(nil, "help", "help for: "+r.Cmd.Name+" "+r.Cmd.HelpText())
	}
	return r.help, nil
}

// begin makes the request an operation that can be seen and killed.
func (r *Request) begin() error {
	r.Conn.begin(r)
	return nil
}

// noteEarlyHello notes what the client says of itself where fail points can ask for that already.
func (r *Request) noteEarlyHello() error {
	if (r.Cmd.Name == "hello" || r.Cmd.Name == "isMaster") && r.NotesClientEarly() {
		return r.NoteClient()
	}
	return nil
}

// routeTxn lets a mongos answer what concerns the whole of a transaction.
func (r *Request) routeTxn() (done bool, err error) {
	if r.Routing != nil && r.InTxn() {
		return r.Routing.beginTxn()
	}
	return false, nil
}

// invoke runs the command itself, in its session if it has a transaction number.
func (n *Node) invoke(r *Request, dst []byte) (out []byte, err error) {
	x := r.Routing
	if x != nil && x.routed != nil {
		defer func() { x.endTxn(err) }()
	}
	if r.HasTxnNumber {
		if err := r.checkOut(); err != nil {
			if x != nil && !r.InTxn() && r.Writes != nil {
				start := len(dst)
				return x.reshape(r.Writes.AppendFailed(dst, err), start), nil
			}
			return dst, err
		}
		refused := r.systemCollection()
		if refused == nil {
			refused = r.checkTxnConcern()
		}
		if refused != nil {
			r.failTxn()
			return dst, refused
		}
		defer func() {
			if err != nil || r.spoilt {
				r.failTxn()
			}
		}()
	}
	if err := r.waitReadConcern(); err != nil {
		return dst, err
	}
	if err := r.Check(); err != nil {
		return dst, err
	}
	if r.DB == "config" {
		if err := r.ShowConfig(); err != nil {
			return dst, err
		}
	}
	if x == nil {
		return r.Cmd.Run(r, dst)
	}
	if err := x.reachConfig(); err != nil {
		return dst, err
	}
	return x.run(dst)
}

// appendOpTime appends what replies to writes carry on a replica set member.
func (n *Node) appendOpTime(r *Request, dst []byte) []byte {
	if n.set == nil {
		return dst
	}
	// While nothing that replicates has been written, there is no term.
	return n.set.AppendOpTime(dst, r.Conn.client.LastOp, r.DB == "local")
}

// appendError appends the elements of a failed command's reply.
func (n *Node) appendError(r *Request, dst []byte, e *srverr.Error) []byte {
	if r.finds {
		return r.appendQueryError(dst, e)
	}
	dst = n.appendVersionFor(dst, e.Code)
	dst = bson.AppendDouble(dst, "ok", 0)
	dst = bson.AppendString(dst, "errmsg", e.Msg)
	if e.Code != 0 {
		dst = bson.AppendInt32(dst, "code", e.Code)
		dst = bson.AppendString(dst, "codeName", n.CodeName(e.Code))
	}
	for k, v := range e.Extra.All() {
		dst = bson.AppendRawValue(dst, k, v)
	}
	if ms := n.IntParameter(baseBackoff); ms > 0 && r.overloaded(e.Labels) {
		dst = bson.AppendInt32(dst, "baseBackoffMS", int32(ms))
	}
	return r.appendLabels(dst, e.Code, e.Labels)
}

// overloaded reports whether the reply will have the label of a server that sheds load.
func (r *Request) overloaded(own []string) bool {
	const label = "SystemOverloadedError"
	if !r.hasLabels {
		return slices.Contains(own, label)
	}
	for _, v := range r.failLabels.All() {
		if s, _ := v.StringValue(); s == label {
			return true
		}
	}
	return false
}

// appendVersionFor appends the topologyVersion, if a member answers this code, by which clients
// tell news from what they know.
func (n *Node) appendVersionFor(dst []byte, code int32) []byte {
	// Errors of a shutdown tell it only while the server is about to shut down, which takes no time
	// here.
	if n.role != Member || !n.Streams() || !notPrimaryCodes[code] {
		return dst
	}
	tv, _ := n.TopologyVersion()
	return tv.Append(dst)
}

// appendLabels appends errorLabels, unless there are none.
func (r *Request) appendLabels(dst []byte, code int32, own []string) []byte {
	if r.hasLabels {
		if r.failLabels.IsEmpty() {
			return dst
		}
		return bson.AppendArray(dst, "errorLabels", r.failLabels)
	}
	labels := r.labels(code, own)
	if len(labels) == 0 {
		return dst
	}
	return bsondoc.AppendStrings(dst, "errorLabels", labels)
}

func (n *Node) CodeName(code int32) string {
	if n.cfg.Version.AtLeast(8, 0) {
		return srverr.NameSince80(code)
	}
	if n.cfg.Version.AtLeast(5, 0) {
		return srverr.Name(code)
	}
	return srverr.NameBefore50(code)
}

// Nothing succeeds: for commands about what a deployment in memory does not have.
func Nothing(r *Request, dst []byte) ([]byte, error) { return dst, nil }

// OnlyOnShards refuses what only shards do for each other.
func OnlyOnShards(r *Request, dst []byte) ([]byte, error) {
	return dst, srverr.New(srverr.NoShardingEnabled, "Cannot accept sharding commands if not started with --shardsvr")
}
