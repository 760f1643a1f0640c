package server

import (
	"math"
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/srverr"
)

// DefaultWriteConcern is what applies when the client gives none: majority since 5.0.
func (n *Node) DefaultWriteConcern() replica.WriteConcern {
	if c := n.data.defaults.Load(); c != nil && c.Write != nil {
		return *c.Write
	}
	if n.cfg.Version.AtLeast(5, 0) && n.set != nil && n.set.MajorityByDefault() {
		return replica.WriteConcern{Mode: "majority", NamedMode: true, Provenance: "implicitDefault"}
	}
	return replica.WriteConcern{W: 1, Provenance: "implicitDefault"}
}

var provenances = map[string]bool{
	"clientSupplied": true, "implicitDefault": true, "customDefault": true, "getLastErrorDefaults": true,
	"internalWriteDefault": true,
}

// parseWriteConcern reads the command's writeConcern, and rejects one on a command that takes none.
func (r *Request) parseWriteConcern() error {
	if !r.Cmd.WriteConcern || r.Cmd.NoWriteConcern != nil && r.Cmd.NoWriteConcern(r) {
		if !r.writeConcern.IsZero() {
			return srverr.New(srverr.InvalidOptions, "Command does not support writeConcern")
		}
		return nil
	}
	if err := r.readWriteConcern(); err != nil {
		return err
	}
	if r.InTxn() && r.Cmd.Txn != TxnEnds && !r.writeConcern.IsZero() && !bson.Raw(r.writeConcern.Value).IsEmpty() {
		return srverr.New(srverr.InvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	}
	return nil
}

// readWriteConcern reads a writeConcern.
func (r *Request) readWriteConcern() error {
	v := r.writeConcern
	if v.IsZero() {
		r.WC = r.Node.DefaultWriteConcern()
		return nil
	}
	if v.Type != bson.TypeEmbeddedDocument && r.Routing != nil && r.Cmd.OpTime && !r.Version().AtLeast(5, 0) {
		// Its parser of batched writes is the first to see it.
		return srverr.New(10065, "invalid parameter: expected an object (writeConcern)")
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return srverr.New(srverr.TypeMismatch, "\"writeConcern\" had the wrong type. Expected object, found %s",
			bsontext.TypeName(v.Type))
	}
	doc := bson.Raw(v.Value)
	if doc.IsEmpty() {
		r.WC = r.Node.DefaultWriteConcern()
		return nil
	}
	wc := replica.WriteConcern{W: 1, Provenance: "clientSupplied"}
	fsync, parsed := false, r.Version().AllParsed()
	for k, v := range doc.All() {
		switch k {
		case "w":
			switch {
			case v.IsNumber():
				n, _ := args.NumberOf(v)
				if n < 0 || n > 50 || parsed && isNaN(v) {
					return srverr.New(srverr.FailedToParse, "w has to be a non-negative number and not greater than 50")
				}
				wc.W = int32(n)
			case v.Type == bson.TypeString:
				wc.Mode, _ = v.StringValue()
				wc.NamedMode = true
				if wc.Mode == "$majority" {
					wc.Mode = "majority"
				}
			case args.IsNull(v):
				wc.NamedMode = parsed && r.Node.role == Standalone // as if it were ""
			case v.Type == bson.TypeEmbeddedDocument && r.Version().AtLeast(5, 0):
				if err := checkTags(v.Value); parsed && err != nil {
					return err
				}
			default:
				return srverr.New(srverr.FailedToParse, "w has to be a number or a string")
			}
		case "j", "fsync":
			if parsed && args.IsNull(v) {
				continue
			}
			if !v.IsNumber() && v.Type != bson.TypeBoolean && parsed {
				return args.WrongFlag(r.Version(), "writeConcern", k, v)
			}
			if !v.IsNumber() && v.Type != bson.TypeBoolean {
				return srverr.New(srverr.FailedToParse, "%s must be numeric or a boolean value", k)
			}
			if k == "j" {
				wc.J, wc.HasJ = v.AsBool(), true
			} else {
				fsync = v.AsBool()
			}
		case "wtimeout":
			wc.Wtimeout, _ = args.NumberOf(v)
			if parsed && wc.Wtimeout > math.MaxInt32 {
				return srverr.New(srverr.FailedToParse, "wtimeout must be less than or equal to %d", math.MaxInt32)
			}
			wc.Wtimeout = min(max(wc.Wtimeout, 0), math.MaxInt32)
		case "wElectionId", "wOpTime", "getLastError":
		case "provenance":
			if args.IsNull(v) {
				continue
			}
			s, ok := v.StringValue()
			if !ok {
				return args.WrongType("WriteConcernOptions::parse.provenance", v.Type, "string")
			}
			if !provenances[s] {
				return srverr.New(srverr.BadValue,
					"Enumeration value '%s' for field 'WriteConcernOptions::parse.provenance' is not a valid value.", s)
			}
			wc.Provenance = s
		default:
			if parsed {
				return args.UnknownField("writeConcern." + k)
			}
			return srverr.New(srverr.FailedToParse, "unrecognized write concern field: %s", k)
		}
	}
	if wc.J && fsync {
		return srverr.New(srverr.FailedToParse, "fsync and j options cannot be used together")
	}
	if r.Node.role == Standalone {
		switch {
		case wc.NamedMode && wc.Mode != "majority" && (wc.Mode != "" || parsed):
			return srverr.New(srverr.BadValue,
				"cannot use non-majority 'w' mode %s when a host is not a member of a replica set", wc.Mode)
		case !wc.NamedMode && wc.W > 1:
			return srverr.New(srverr.BadValue, "cannot use 'w' > 1 when a host is not replicated")
		}
	}
	r.WC = wc
	return nil
}

// checkTags checks a w that names tags, and how many members have to have each.
func checkTags(doc bson.Raw) error {
	if doc.IsEmpty() {
		return srverr.New(srverr.FailedToParse, "tagged write concern requires tags to be specified")
	}
	for k, v := range doc.All() {
		if !v.IsNumber() {
			return srverr.New(srverr.FailedToParse, "tags must be numeric values, found: %s", bsontext.Element(k, v))
		}
	}
	return nil
}

func isNaN(v bson.RawValue) bool {
	if d, ok := v.Decimal128(); ok {
		return d.IsNaN()
	}
	f, _ := v.Double()
	return f != f
}

// waitWriteConcern waits until the client's last write satisfies the write concern, and appends a
// writeConcernError if it does not in time. An error means that the command was interrupted.
func (r *Request) waitWriteConcern(dst []byte) (out []byte, code int32, err error) {
	n := r.Node
	if r.Routing != nil {
		return r.Routing.waitWriteConcern(dst)
	}
	if n.set == nil {
		return dst, 0, nil
	}
	if !r.wrote {
		// A write that changed nothing, or was tried again after it had been applied, may rest on
		// what others wrote: its write concern waits for everything there is, as the server's
		// does.
		r.Wrote(n.data.newest())
	}
	target := r.Conn.client.LastOp
	wcErr, err := n.set.WaitReplication(r, n, target, &r.WC)
	if err != nil {
		if r.hangUp {
			return dst, 0, err
		}
		wcErr = srverr.From(err)
	}
	if wcErr == nil {
		return dst, 0, nil
	}
	at, dst := bson.BeginDocumentElement(dst, "writeConcernError")
	dst = bson.AppendInt32(dst, "code", wcErr.Code)
	dst = bson.AppendString(dst, "codeName", n.CodeName(wcErr.Code))
	dst = bson.AppendString(dst, "errmsg", wcErr.Msg)
	info, dst := bson.BeginDocumentElement(dst, "errInfo")
	if wcErr.Code == srverr.WriteConcernFailed {
		dst = bson.AppendBool(dst, "wtimeout", true)
	}
	dst = r.WC.Append(dst, "writeConcern")
	dst = bson.EndDocument(dst, info)
	return bson.EndDocument(dst, at), wcErr.Code, nil
}

// readConcern is a parsed readConcern.
type readConcern struct {
	level  string // empty: not given
	opTime bool   // afterOpTime is given
	after  bson.Timestamp
	at     bson.Timestamp
	given  bool // any field of it
}

var readLevels = map[string]bool{"local": true, "majority": true, "linearizable": true, "available": true,
	"snapshot": true}

// parseReadConcern reads and checks the command's readConcern.
func (r *Request) parseReadConcern() error {
	v := r.readConcern
	if v.IsZero() {
		return nil
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return srverr.New(srverr.FailedToParse, "readConcern field should be an object")
	}
	rc, parsed := &r.rc, r.Version().AllParsed()
	var hasAfter, hasAt bool
	for k, v := range bson.Raw(v.Value).All() {
		if parsed && k == "level" && args.IsNull(v) {
			continue
		}
		wrong := func(want string) error {
			if parsed {
				return args.WrongType("readConcern."+k, v.Type, want)
			}
			return srverr.New(srverr.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", k, want,
				bsontext.TypeName(v.Type))
		}
		ts, isTS := v.Timestamp()
		switch k {
		case "level":
			s, ok := v.StringValue()
			if !ok {
				return wrong("string")
			}
			if !readLevels[s] && parsed {
				return srverr.New(srverr.BadValue,
					"Enumeration value '%s' for field 'readConcern.level' is not a valid value.", s)
			}
			if !readLevels[s] {
				return srverr.New(srverr.FailedToParse,
					"readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'")
			}
			rc.level = s
		case "afterOpTime":
			if v.Type != bson.TypeEmbeddedDocument {
				return wrong("object")
			}
			rc.opTime = true
		case "afterClusterTime":
			if !isTS {
				return wrong("timestamp")
			}
			rc.after, hasAfter = ts, true
		case "atClusterTime":
			if !isTS {
				return wrong("timestamp")
			}
			rc.at, hasAt = ts, true
		case "provenance":
			if args.IsNull(v) {
				continue
			}
			s, ok := v.StringValue()
			if !ok {
				return args.WrongType("ReadConcernArgs::parse.provenance", v.Type, "string")
			}
			if !provenances[s] {
				return srverr.New(srverr.BadValue,
					"Enumeration value '%s' for field 'ReadConcernArgs::parse.provenance' is not a valid value.", s)
			}
			continue
		case "$$waitLastStableRecoveryTimestamp", "allowTransactionTableSnapshot":
		default:
			if parsed {
				return args.UnknownField("readConcern." + k)
			}
			return srverr.New(srverr.InvalidOptions, "Unrecognized option in readConcern: %s", k)
		}
		rc.given = true
	}
	level := rc.level
	if level == "" {
		level = "local"
	}
	bad := func(text string) error { return srverr.New(srverr.InvalidOptions, "%s", text) }
	switch {
	case hasAfter && rc.opTime:
		return bad("Can not specify both afterClusterTime and afterOpTime")
	case hasAfter && hasAt:
		return bad("Can not specify both afterClusterTime and atClusterTime")
	case hasAfter && level != "majority" && level != "local" && level != "snapshot":
		return bad("afterClusterTime field can be set only if level is equal to majority, local, or snapshot")
	case hasAt && level != "snapshot":
		return bad("atClusterTime field can be set only if level is equal to snapshot")
	case hasAfter && rc.after.T == 0:
		return bad("afterClusterTime cannot be a null timestamp")
	case hasAt && rc.at.T == 0:
		return bad("atClusterTime cannot be a null timestamp")
	}
	return nil
}

// checkReadConcern checks that the command allows its read concern.
func (r *Request) checkReadConcern() error {
	rc := &r.rc
	if rc.level != "" && r.Cmd.CheckConcern != nil && !r.InTxn() {
		if err := r.Cmd.CheckConcern(r, rc.level); err != nil {
			return srverr.From(err).Prefix("Command " + r.Cmd.Name + " does not support { readConcern: { level: \"" +
				rc.level + "\", provenance: \"clientSupplied\" } } :: caused by :: ")
		}
	}
	if r.startTxn {
		switch rc.level {
		case "", "local", "majority", "snapshot":
		default:
			if r.Routing != nil {
				return srverr.New(srverr.InvalidOptions,
					"The first command in a transaction cannot specify a readConcern level other than local, majority, or snapshot")
			}
			return srverr.New(srverr.InvalidOptions,
				"The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction")
		}
	} else if rc.level != "" && rc.level != "local" && !r.Cmd.ReadConcern && !r.InTxn() {
		return srverr.New(
			srverr.InvalidOptions, "Command %s does not support { readConcern: { level: \"%s\", provenance: \"clientSupplied\" } } :: caused by :: read concern not supported", r.Cmd.Name, rc.level)
	}
	if rc.level == "snapshot" && !r.InTxn() && !(r.Version().AtLeast(5, 0) && r.Cmd.Snapshot) {
		if r.Version().AtLeast(5, 0) {
			return srverr.New(srverr.InvalidOptions,
				"Command %s does not support { readConcern: { level: \"snapshot\", provenance: \"clientSupplied\" } } :: caused by :: read concern not supported", r.Cmd.Name)
		}
		if r.Routing != nil {
			if !rc.at.IsZero() {
				return srverr.New(srverr.InvalidOptions,
					"read concern snapshot is not supported with atClusterTime on mongos")
			}
			return srverr.New(srverr.InvalidOptions,
				"read concern snapshot is only supported in a multi-statement transaction")
		}
		return srverr.New(srverr.InvalidOptions, "read concern level snapshot is only valid in a transaction")
	}
	if r.InTxn() && !r.startTxn && rc.given {
		return srverr.New(srverr.InvalidOptions, "Only the first command in a transaction may specify a readConcern")
	}
	if !rc.after.IsZero() && (r.Cmd.NoAuth || r.Cmd.NoAfterTime) {
		return srverr.New(srverr.InvalidOptions, "afterClusterTime is not allowed for this command")
	}
	return nil
}

// waitReadConcern waits until the node has what the read concern asks for.
func (r *Request) waitReadConcern() error {
	rc, n := &r.rc, r.Node
	if !rc.given {
		return nil
	}
	if n.role == Standalone {
		if !rc.after.IsZero() && r.Version().AllParsed() {
			return srverr.New(srverr.IllegalOperation,
				"Cannot specify afterClusterTime readConcern without replication enabled")
		}
		if rc.level == "linearizable" || rc.level == "snapshot" || !rc.after.IsZero() || rc.opTime {
			return srverr.New(srverr.NotAReplicaSet, "node needs to be a replica set member to use read concern")
		}
		return nil
	}
	if rc.level == "linearizable" && n.set != nil && !n.IsPrimary() {
		return srverr.New(srverr.NotWritablePrimary, "cannot satisfy linearizable read concern on non-primary node")
	}
	for _, t := range []struct {
		name string
		ts   bson.Timestamp
	}{{"afterClusterTime", rc.after}, {"atClusterTime", rc.at}} {
		if now := n.data.Clock.Last(); t.ts.Compare(now) > 0 {
			return srverr.New(srverr.InvalidOptions,
				"readConcern %s value must not be greater than the current clusterTime. Requested clusterTime: { ts: Timestamp(%d, %d) }; current clusterTime: { ts: Timestamp(%d, %d) }", t.name, t.ts.T, t.ts.I, now.T, now.I)
		}
	}
	if n.set == nil {
		return nil
	}
	after := rc.after
	if rc.at.Compare(after) > 0 {
		after = rc.at
	}
	if !after.IsZero() {
		if err := n.set.WaitApplied(r, n, after, rc.level == "majority" || rc.level == "snapshot"); err != nil {
			return err
		}
	}
	if rc.level == "linearizable" {
		wc := &replica.WriteConcern{Mode: "majority", NamedMode: true}
		wcErr, err := n.set.WaitReplication(r, n, n.set.Applied(n).TS, wc)
		if err == nil && wcErr != nil {
			err = wcErr
		}
		return err
	}
	return nil
}

// maxTime parses maxTimeMS into the deadline.
func (r *Request) maxTime() error {
	if r.Cmd.Continues {
		return nil
	}
	ms, err := r.defaultMaxTime(), error(nil)
	if !r.maxTimeMS.IsZero() {
		if ms, err = r.Cmd.MaxTime.Parse(r.maxTimeMS, r.Version()); err != nil {
			return err
		}
	}
	if ms > 0 {
		if _, ok := r.Fault("maxTimeAlwaysTimeOut"); ok {
			return ErrMaxTime()
		}
		from := r.start
		if r.blocked {
			from = time.Now() // the fail point's time does not count
		}
		r.deadline = from.Add(time.Duration(ms) * time.Millisecond)
	}
	return nil
}

// MaxTime is what a command says of maxTimeMS if that is one of its own arguments. The zero value
// is for others.
type MaxTime struct {
	Of       string // what errors call the command
	Positive bool   // less than nothing is an error of the argument
	Optional bool   // null says that there is none
}

// Parse reads maxTimeMS.
func (m MaxTime) Parse(v bson.RawValue, version release.Version) (int64, error) {
	if version.AllParsed() {
		return m.parse(v, version)
	}
	since50 := version.AtLeast(5, 0)
	if !v.IsNumber() {
		absent := v.Type == bson.TypeNull || v.Type == bson.TypeUndefined
		switch {
		case since50 && m.Optional && absent:
			return 0, nil
		case since50 && m.Of != "" && !absent:
			return 0, args.WrongNumber(version, m.Of, "maxTimeMS", v)
		}
		return 0, srverr.New(srverr.BadValue, "maxTimeMS must be a number")
	}
	n, _ := args.NumberOf(v)
	if since50 && m.Positive && n < 0 {
		return 0, args.TooSmall(version, "maxTimeMS", 0, n)
	}
	if since50 && (n < 0 || n > math.MaxInt32) && !version.AtLeast(7, 0) {
		return 0, srverr.New(srverr.BadValue, "%d value for maxTimeMS is out of range", n)
	}
	if since50 && (n < 0 || n > math.MaxInt32) {
		return 0, srverr.New(srverr.BadValue, "%d value for maxTimeMS is out of range [0, %d]", n, math.MaxInt32)
	}
	if f, ok := v.Double(); ok && f != math.Trunc(f) {
		return 0, srverr.New(srverr.BadValue, "maxTimeMS has non-integral value")
	}
	if n < 0 || n > math.MaxInt32 {
		return 0, srverr.New(srverr.BadValue, "maxTimeMS is out of range")
	}
	return n, nil
}

// parse reads maxTimeMS as an argument whose definition has its bounds.
func (m MaxTime) parse(v bson.RawValue, version release.Version) (int64, error) {
	if args.IsNull(v) {
		return 0, nil
	}
	if !v.IsNumber() {
		return 0, args.WrongNumber(version, m.Of, "maxTimeMS", v)
	}
	n, err := args.ExactLong("maxTimeMS", v)
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, args.TooSmall(version, "maxTimeMS", 0, n)
	case n > math.MaxInt32:
		return 0, args.TooLarge(version, "maxTimeMS", math.MaxInt32, n)
	}
	return n, nil
}

// DefaultConcerns are what setDefaultRWConcern has set. The value is not changed once it is
// published.
type DefaultConcerns struct {
	Read  string // level; empty: none
	Write *replica.WriteConcern
	Set   bson.Timestamp
	Wall  bson.DateTime
}

// Defaults returns what setDefaultRWConcern has set, nil if that is nothing.
func (d *Data) Defaults() *DefaultConcerns { return d.defaults.Load() }

// SetDefaults publishes what setDefaultRWConcern sets.
func (d *Data) SetDefaults(c *DefaultConcerns) { d.defaults.Store(c) }

// ParseReadConcern reads a read concern document that is not the command's own, and returns its
// level.
func (n *Node) ParseReadConcern(v bson.RawValue) (level string, err error) {
	probe := Request{Node: n, generic: generic{readConcern: v}}
	err = probe.parseReadConcern()
	return probe.rc.level, err
}

// ParseWriteConcern reads a write concern document with the rules of the command's own.
func (r *Request) ParseWriteConcern(v bson.RawValue) (replica.WriteConcern, error) {
	saved, savedWC := r.writeConcern, r.WC
	defer func() { r.writeConcern, r.WC = saved, savedWC }()
	r.writeConcern = v
	err := r.readWriteConcern()
	return r.WC, err
}
