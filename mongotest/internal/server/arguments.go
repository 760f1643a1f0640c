package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

// parseDB finds the command's name and its database.
func (r *Request) parseDB() error {
	first := true
	for k, v := range r.Body.All() {
		if first {
			first = false
			if c := table[k]; c != nil && c.Name == k {
				r.Name = c.Name // spares a copy of the key
			} else {
				r.Name = strings.Clone(k)
			}
		}
		if k != "$db" || r.legacy {
			continue
		}
		if r.dbSeen {
			r.dbTwice = true
			continue
		}
		s, ok := v.StringBytes()
		if !ok {
			return srverr.New(13111, "wrong type for field ($db) %s != string", bsontext.TypeName(v.Type))
		}
		r.DB, r.dbSeen = r.Conn.dbName(s), true
	}
	if !r.dbSeen {
		return srverr.New(40571, "OP_MSG requests require a $db argument")
	}
	if strings.IndexByte(r.DB, 0) >= 0 {
		return srverr.New(srverr.InvalidNamespace, "namespaces cannot have embedded null characters")
	}
	if strings.IndexByte(r.DB, '.') >= 0 {
		switch name, _ := bsondoc.FirstElement(r.Body); name {
		case "count", "findAndModify", "findandmodify", "killCursors":
			if r.Routing != nil { // these look at the name themselves
				return namespace.CheckDB(r.DB)
			}
		}
		if r.Version().AtLeast(7, 0) {
			return srverr.New(srverr.InvalidNamespace, "'.' is an invalid character in a db name: %s", r.DB)
		}
		return srverr.New(srverr.InvalidNamespace, "'.' is an invalid character in a database name")
	}
	return nil
}

// checkDB checks the database's name. What continues says itself what it thinks of an empty one.
func (r *Request) checkDB() error {
	if r.DB == "" && r.Cmd.Continues {
		return nil
	}
	if len(r.DB) > 63 && r.Version().AtLeast(7, 0) {
		return srverr.New(srverr.InvalidNamespace, "db name must be at most 63 characters, found: %d", len(r.DB))
	}
	err := namespace.CheckDB(r.DB)
	if err != nil && r.Version().AtLeast(7, 0) && r.Cmd.Needs.of != nil {
		// They parse the name of the collection first, and the database's with it.
		for _, n := range r.Cmd.Needs.of(r, r.Body) {
			if n.DB == r.DB && n.Coll != "" {
				return namespace.Check(n.DB, n.Coll)
			}
		}
	}
	return err
}

// dbName returns the name as a string; a connection's commands mostly are on one database.
func (c *Conn) dbName(b []byte) string {
	if c.lastDB != string(b) {
		c.lastDB = string(b)
	}
	return c.lastDB
}

// parseArgs reads the arguments that every command takes.
func (r *Request) parseArgs() error {
	if r.dbTwice {
		return srverr.New(40413, "BSON field 'OperationSessionInfo.$db' is a duplicate field")
	}
	parsed := r.Version().AllParsed()
	for k, v := range r.Body.All() {
		if parsed {
			if skip, err := r.parseGeneric(k, v); skip || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		switch k {
		case "lsid":
			r.lsid = v
		case "txnNumber":
			if args.IsNull(v) {
				continue
			}
			if r.TxnNumber, r.HasTxnNumber = v.Int64(); !r.HasTxnNumber {
				return args.WrongType("OperationSessionInfo.txnNumber", v.Type, "long")
			}
		case "autocommit", "startTransaction":
			if args.IsNull(v) {
				continue
			}
			b, ok := v.Boolean()
			if !ok {
				return args.WrongType("OperationSessionInfo."+k, v.Type, "bool")
			}
			if k == "autocommit" {
				r.autocommit = &b
			} else {
				r.startTxn, r.hasStartTxn = b, true
			}
		case "$clusterTime":
			r.clusterTime = v
		case "$readPreference":
			r.readPreference = v
		case "$queryOptions":
			if v.Type != bson.TypeEmbeddedDocument {
				return srverr.New(srverr.FailedToParse, "Failed to parse: %s. '%s' field must be of BSON type object.",
					bsontext.Element(k, v), k)
			}
		case "readConcern":
			r.readConcern = v
		case "writeConcern":
			r.writeConcern = v
		case "maxTimeMS":
			r.maxTimeMS = v
		case "$maxTimeMS":
			return srverr.New(srverr.InvalidOptions, "no such command option $maxTimeMs; use maxTimeMS instead")
		case "maxTimeMSOpOnly":
			return srverr.New(srverr.InvalidOptions, "Can not specify maxTimeMSOpOnly for non internal clients")
		case "comment":
			r.comment = v
		case "shardVersion", "$audit", "$client", "$configServerState", "tracking_info":
			r.internal = true
		case "$oplogQueryData":
			r.oplogQuery = true
		case "help":
			r.help = v.AsBool()
		case "apiVersion":
			r.apiVersion = v
		case "apiStrict":
			r.apiStrict = v
		case "apiDeprecationErrors":
			r.apiDeprecation = v
		}
	}
	return nil
}

// parseGeneric checks the type of an argument that every command takes, as servers do that read
// these with the command's own. An argument that is null is not given: skip.
func (r *Request) parseGeneric(k string, v bson.RawValue) (skip bool, err error) {
	switch k {
	case "readConcern", "writeConcern", "maxTimeMS":
	default:
		return false, nil
	}
	if args.IsNull(v) {
		return true, nil
	}
	if k != "maxTimeMS" && v.Type != bson.TypeEmbeddedDocument {
		return false, args.WrongType(r.structName()+"."+k, v.Type, "object")
	}
	if k == "maxTimeMS" {
		_, err = MaxTime{Of: r.structName()}.Parse(v, r.Version())
	}
	return false, err
}

// structName is what errors about the arguments that every command takes call the command.
func (r *Request) structName() string {
	if r.Cmd.Struct != "" {
		return r.Cmd.Struct
	}
	return r.Cmd.Name
}

// checkDuplicates refuses a command with the same field twice. The parser of the session's
// arguments is the first to see them all.
func (r *Request) checkDuplicates() error {
	var few [24]string
	keys := few[:0]
	for k := range r.Body.All() {
		if len(keys) < cap(few) {
			for _, seen := range keys {
				if seen == k && k != "lastKnownCommittedOpTime" { // getMore itself looks at that first
					return srverr.New(40413, "BSON field 'OperationSessionInfo.%s' is a duplicate field", k)
				}
			}
		}
		keys = append(keys, k)
	}
	if len(keys) > cap(few) {
		seen := map[string]bool{}
		for _, k := range keys {
			if seen[k] {
				return srverr.New(40413, "BSON field 'OperationSessionInfo.%s' is a duplicate field", k)
			}
			seen[k] = true
		}
	}
	return nil
}

// waitStepDown holds back what only a primary may do while the member is about to step down.
func (r *Request) waitStepDown() error {
	s := r.Node.set
	if s == nil || r.Cmd.Where != OnPrimary && !r.InTxn() || r.Cmd.Name == "replSetStepDown" {
		return nil
	}
	return s.WaitStepDown(r, r.Node)
}

// checkPrimary rejects what the member cannot do in its state.
func (r *Request) checkPrimary() error {
	n := r.Node
	if n.set == nil || r.Cmd.Where == Anywhere && !r.InTxn() {
		return nil
	}
	state := n.set.State(n)
	if state == replica.StatePrimary || r.Cmd.Where == Anywhere {
		return nil
	}
	if r.DB == "local" {
		return nil
	}
	modern := n.cfg.Version.AtLeast(5, 0)
	if r.Cmd.Where == OptIn && !r.InTxn() {
		if !r.optedIn {
			msg := "not master and slaveOk=false"
			if modern {
				msg = "not primary and secondaryOk=false"
			}
			return srverr.New(srverr.NotPrimaryNoSecondaryOk, "%s", msg)
		}
		if state != replica.StateSecondary {
			return srverr.New(srverr.NotPrimaryOrSecondary, "node is not in primary or recovering state")
		}
		return nil
	}
	msg := "not master"
	if modern {
		msg = "not primary"
	}
	return srverr.New(srverr.NotWritablePrimary, "%s", msg)
}

// sessionArgs checks lsid, txnNumber, autocommit and startTransaction and finds the session.
func (r *Request) sessionArgs() error {
	invalid := func(text string) error { return srverr.New(srverr.InvalidOptions, "%s", text) }
	var id session.ID
	has := !r.lsid.IsZero() && r.lsid.Type != bson.TypeNull && r.lsid.Type != bson.TypeUndefined
	if has {
		if r.lsid.Type != bson.TypeEmbeddedDocument {
			return args.WrongType("OperationSessionInfo.lsid", r.lsid.Type, "object")
		}
		var err error
		if id, err = session.ParseID(r.Version(), r.lsid.Value, "OperationSessionInfo.lsid", false); err != nil {
			return err
		}
	}
	if r.Cmd.NoAuth {
		switch {
		case r.autocommit != nil:
			return srverr.New(srverr.OperationNotSupportedInTransaction,
				"This command is not supported in transactions")
		case r.HasTxnNumber:
			return srverr.New(50889, "It is illegal to provide a txnNumber for this command")
		}
	}
	if r.hasStartTxn && r.autocommit == nil {
		return invalid("'startTransaction' field requires 'autocommit' field to also be specified")
	}
	if r.Cmd.NoAuth {
		r.hasStartTxn, r.startTxn = false, false
		if !has || !r.Cmd.UsesSession || !r.Version().AllParsed() || r.Node.cfg.Auth && r.Conn.user == nil {
			return nil
		}
	}
	if has {
		s, err := r.UseSession(r.OwnSession(id))
		if err != nil {
			return err
		}
		r.Session = s
	} else if r.HasTxnNumber {
		return invalid("Transaction number requires a session ID to also be specified")
	}
	if r.HasTxnNumber {
		if r.Node.role == Standalone {
			return srverr.New(srverr.IllegalOperation,
				"Transaction numbers are only allowed on a replica set member or mongos")
		}
		if r.TxnNumber < 0 {
			return invalid("Transaction number cannot be negative")
		}
	}
	if r.autocommit != nil {
		if !r.HasTxnNumber {
			return invalid("'autocommit' field requires a transaction number to also be specified")
		}
		if *r.autocommit {
			return invalid("Specifying autocommit=true is not allowed.")
		}
	}
	if r.hasStartTxn && !r.startTxn {
		return invalid("Specifying startTransaction=false is not allowed.")
	}
	return nil
}

// validateSession checks that the command may have its transaction number.
func (r *Request) validateSession() error {
	c := r.Cmd
	if r.IsRetryable() && !c.Retryable {
		return srverr.New(srverr.NotARetryableWriteCommand,
			"txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and %s is not a retryable write command.", r.Name)
	}
	if !r.InTxn() {
		return nil
	}
	not := func(format string, args ...any) error {
		return srverr.New(srverr.OperationNotSupportedInTransaction, format, args...)
	}
	switch {
	case c.Name == "count":
		return not("Cannot run 'count' in a multi-document transaction. Please see http://dochub.mongodb.org/core/transaction-count for a recommended alternative.")
	case c.Txn == NoTxn:
		return not("Cannot run '%s' in a multi-document transaction.", r.Name)
	case c.Txn != TxnEnds && r.DB == "config":
		return not("Cannot run command against the config database in a transaction.")
	// bulkWrite and its results are of admin
	case c.Txn != TxnEnds && (r.DB == "local" || r.DB == "admin" && !c.AdminOnly && !c.Continues):
		return not("Cannot run command against the '%s' database in a transaction.", r.DB)
	case r.startTxn && c.Name == "commitTransaction":
		return not("Cannot start a transaction with a commit")
	case r.startTxn && c.Name == "abortTransaction":
		return not("Cannot start a transaction with an abort")
	}
	return nil
}
