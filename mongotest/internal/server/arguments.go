package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// parseDB finds the command's name and its database.
func (r *Request) parseDB() error {
	if !r.legacy { // OP_QUERY names the database outside of the command
		r.dbSeen, r.dbTwice = false, false // a stream of replies parses its request for each of them
	}
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
		return srverr.New(srverr.InvalidNamespace, "'.' is an invalid character in a database name")
	}
	return nil
}

// dbName returns the name as a string; a connection's commands mostly are on one database.
func (c *Conn) dbName(b []byte) string {
	if c.lastDB != string(b) {
		c.lastDB = string(b)
	}
	return c.lastDB
}

// ValidDBName reports whether a database can have this name.
func ValidDBName(db string) bool {
	return db != "" && len(db) < 64 && !strings.ContainsAny(db, "/\\. \"\x00")
}

func checkDBName(db string) error {
	if !ValidDBName(db) {
		return srverr.New(srverr.InvalidNamespace, "Invalid database name: '%s'", db)
	}
	return nil
}

// parseArgs reads the arguments that every command takes.
func (r *Request) parseArgs() error {
	if r.dbTwice {
		return srverr.New(40413, "BSON field 'OperationSessionInfo.$db' is a duplicate field")
	}
	for k, v := range r.Body.All() {
		switch k {
		case "lsid":
			r.lsid = v
		case "txnNumber":
			if v.Type == bson.TypeNull {
				continue
			}
			if r.txnNumber, r.hasTxnNumber = v.Int64(); !r.hasTxnNumber {
				return wrongType("OperationSessionInfo.txnNumber", v.Type, "long")
			}
		case "autocommit", "startTransaction":
			if v.Type == bson.TypeNull {
				continue
			}
			b, ok := v.Boolean()
			if !ok {
				return wrongType("OperationSessionInfo."+k, v.Type, "bool")
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

// checkDuplicates refuses a command with the same field twice.
func (r *Request) checkDuplicates() error {
	var few [24]string
	keys := few[:0]
	for k := range r.Body.All() {
		if len(keys) < cap(few) {
			for _, seen := range keys {
				if seen == k {
					return srverr.New(srverr.FailedToParse, "Parsed command object contains duplicate top level key: %s", k)
				}
			}
		}
		keys = append(keys, k)
	}
	if len(keys) > cap(few) {
		seen := map[string]bool{}
		for _, k := range keys {
			if seen[k] {
				return srverr.New(srverr.FailedToParse, "Parsed command object contains duplicate top level key: %s", k)
			}
			seen[k] = true
		}
	}
	return nil
}

// metadata reads $readPreference and $clusterTime.
func (r *Request) metadata() error {
	if !r.readPreference.IsZero() {
		ok, err := parseReadPreference(r.readPreference)
		if err != nil {
			return err
		}
		r.optedIn = ok
	}
	if r.clusterTime.IsZero() || r.Node.role == Standalone {
		return nil
	}
	return r.gossip()
}

// gossip takes over the client's $clusterTime.
func (r *Request) gossip() error {
	v := r.clusterTime
	if v.Type != bson.TypeEmbeddedDocument {
		return srverr.New(10065, "invalid parameter: expected an object ($clusterTime)")
	}
	missing := func(name string) error {
		return srverr.New(srverr.NoSuchKey, "Missing expected field \"%s\"", name)
	}
	wrong := func(name, want string, v bson.RawValue) error {
		return srverr.New(srverr.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", name, want, bsontext.TypeName(v.Type))
	}
	doc := bson.Raw(v.Value)
	ct := doc.Lookup("clusterTime")
	ts, ok := ct.Timestamp()
	if ct.IsZero() {
		return missing("clusterTime")
	}
	if !ok {
		return wrong("clusterTime", "timestamp", ct)
	}
	sig := doc.Lookup("signature")
	if sig.IsZero() {
		return missing("signature")
	}
	if sig.Type != bson.TypeEmbeddedDocument {
		return wrong("signature", "object", sig)
	}
	hash, key := bson.Raw(sig.Value).Lookup("hash"), bson.Raw(sig.Value).Lookup("keyId")
	switch {
	case hash.IsZero():
		return missing("hash")
	case hash.Type != bson.TypeBinary:
		return wrong("hash", "binData", hash)
	case key.IsZero():
		return missing("keyId")
	case !key.IsNumber():
		return srverr.New(srverr.TypeMismatch, "Expected field \"keyId\" to have numeric type, but found %s", bsontext.TypeName(key.Type))
	case len(hash.Value) != 25:
		return srverr.New(srverr.UnsupportedFormat, "Unsupported SHA1Block hash length: %d", len(hash.Value)-5)
	}
	limit := r.Node.data.Clock.Now().Unix() + r.Node.intParameter("maxAcceptableLogicalClockDriftSecs")
	if int64(ts.T) > limit {
		return srverr.New(srverr.ClusterTimeFailsRateLimiter, "New cluster time, %d, is too far from this node's wall clock time, %d.", ts.T, r.Node.data.Clock.Now().Unix())
	}
	r.Node.data.Clock.Advance(ts)
	return nil
}

// checkPrimary refuses what the member cannot do in its state.
func (r *Request) checkPrimary() error {
	n := r.Node
	if n.set == nil || r.Cmd.Where == Anywhere && !r.InTxn() || r.legacy && r.Cmd.Where == Anywhere {
		return nil
	}
	state := n.state()
	if state == statePrimary || r.Cmd.Where == Anywhere {
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
		if state != stateSecondary {
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
	var id SessionID
	has := !r.lsid.IsZero() && r.lsid.Type != bson.TypeNull
	if has {
		if r.lsid.Type != bson.TypeEmbeddedDocument {
			return wrongType("OperationSessionInfo.lsid", r.lsid.Type, "object")
		}
		var err error
		if id, err = parseLSID(r.lsid.Value, "OperationSessionInfo.lsid", false); err != nil {
			return err
		}
	}
	if r.Cmd.NoAuth {
		switch {
		case r.autocommit != nil:
			return srverr.New(srverr.OperationNotSupportedInTransaction, "This command is not supported in transactions")
		case r.hasTxnNumber:
			return srverr.New(50889, "It is illegal to provide a txnNumber for this command")
		}
	}
	if r.hasStartTxn && r.autocommit == nil {
		return invalid("'startTransaction' field requires 'autocommit' field to also be specified")
	}
	if r.Cmd.NoAuth {
		r.hasStartTxn, r.startTxn = false, false
		return nil
	}
	if has {
		if r.Node.cfg.Auth {
			id.UID = r.Conn.userDigest(id.UID)
		}
		s, err := r.useSession(id)
		if err != nil {
			return err
		}
		r.Session = s
	} else if r.hasTxnNumber {
		return invalid("Transaction number requires a session ID to also be specified")
	}
	if r.hasTxnNumber {
		if r.Node.role == Standalone {
			return srverr.New(srverr.IllegalOperation, "Transaction numbers are only allowed on a replica set member or mongos")
		}
		if r.txnNumber < 0 {
			return invalid("Transaction number cannot be negative")
		}
	}
	if r.autocommit != nil {
		if !r.hasTxnNumber {
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

// validateSession checks that the command goes with its transaction number.
func (r *Request) validateSession() error {
	c := r.Cmd
	if r.IsRetryable() && !c.Retryable {
		return srverr.New(srverr.NotARetryableWriteCommand, "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false was not provided, and %s is not a retryable write command.", r.Name)
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
	case c.Txn == TxnOK && r.DB == "config":
		return not("Cannot run command against the config database in a transaction.")
	case c.Txn == TxnOK && (r.DB == "local" || r.DB == "admin" && !c.AdminOnly && c.Name != "getMore"): // bulkWrite and its results are of admin
		return not("Cannot run command against the '%s' database in a transaction.", r.DB)
	case r.startTxn && c.Name == "commitTransaction":
		return not("Cannot start a transaction with a commit")
	case r.startTxn && c.Name == "abortTransaction":
		return not("Cannot start a transaction with an abort")
	}
	return nil
}

// parseReadPreference reports whether the read preference lets a secondary answer.
func parseReadPreference(v bson.RawValue) (secondary bool, err error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return false, srverr.New(srverr.TypeMismatch, "$readPreference has incorrect type: expected object but got %s", bsontext.TypeName(v.Type))
	}
	doc := bson.Raw(v.Value)
	m := doc.Lookup("mode")
	if m.IsZero() {
		return false, srverr.New(srverr.NoSuchKey, "Missing expected field \"mode\"")
	}
	mode, ok := m.StringValue()
	if !ok {
		return false, srverr.New(srverr.TypeMismatch, "\"mode\" had the wrong type. Expected string, found %s", bsontext.TypeName(m.Type))
	}
	switch mode {
	case "primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest":
	default:
		return false, srverr.New(srverr.BadValue, "Could not parse $readPreference mode '%s'. Only the modes 'primary', 'primaryPreferred', 'secondary', 'secondaryPreferred', and 'nearest' are supported. :: caused by :: Enumeration value '%s' for field 'mode' is not a valid value.", mode, mode)
	}
	return mode != "primary", checkReadPreference(doc, mode)
}

// minMaxStaleness is the least maxStalenessSeconds (specification: max staleness).
const minMaxStaleness = 90

// checkReadPreference checks what comes with the mode.
func checkReadPreference(doc bson.Raw, mode string) error {
	bad := func(text string) error { return srverr.New(srverr.BadValue, "%s", text) }
	if tags := doc.Lookup("tags"); !tags.IsZero() {
		if tags.Type != bson.TypeArray {
			return srverr.New(srverr.TypeMismatch, "\"tags\" had the wrong type. Expected array, found %s", bsontext.TypeName(tags.Type))
		}
		for t := range bson.Raw(tags.Value).Values() {
			if mode == "primary" && !bson.Raw(t.Value).IsEmpty() {
				return bad("Only empty tags are allowed with primary read preference")
			}
		}
	}
	v := doc.Lookup("maxStalenessSeconds")
	if v.IsZero() {
		return nil
	}
	if !v.IsNumber() {
		return srverr.New(srverr.TypeMismatch, "Expected field \"maxStalenessSeconds\" to have numeric type, but found %s", bsontext.TypeName(v.Type))
	}
	n, exact := v.AsInt64()
	switch {
	case !exact:
		return srverr.New(srverr.BadValue, "Expected field \"maxStalenessSeconds\" to have a value exactly representable as a 64-bit integer, but found %s", bsontext.Element("maxStalenessSeconds", v))
	case n < 0:
		return bad("maxStalenessSeconds must be a non-negative integer")
	case n > 0 && n < minMaxStaleness:
		return srverr.New(srverr.MaxStalenessOutOfRange, "maxStalenessSeconds value can not be less than %d", minMaxStaleness)
	case n > 0 && mode == "primary":
		return bad("maxStalenessSeconds can not be set for the primary mode")
	}
	return nil
}
