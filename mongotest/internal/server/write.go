package server

import (
	"errors"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/idl"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/validation"
)

// What insert, update and delete have in common: their arguments, their replies, and the checks on
// what is stored.

// writeSpec are the arguments of a write command.
type writeSpec struct {
	NS      string
	ordered bool
	bypass  bool // bypassDocumentValidation
	stmt    int32
	hasStmt bool
	stmts   []int32 // not nil if given
	Let     bson.Raw

	docs    []bson.Raw // of an insert
	Updates []UpdateOp
	Deletes []deleteOp
}

// writeStruct describes a write command: what all of them take, and more.
func writeStruct(name string, required []string, more map[string]idl.Field) *idl.Struct {
	t := &idl.Struct{Name: name, Required: required, Fields: map[string]idl.Field{
		"ordered":                  {Kind: idl.SafeBool, Strict: idl.Bool},
		"bypassDocumentValidation": {Kind: idl.SafeBool},
		"stmtId":                   {Kind: idl.Int},
		"stmtIds":                  {Kind: idl.Ints},
		"isTimeseriesNamespace":    {Kind: idl.SafeBool, Gated: true},
		"collectionUUID":           {Kind: idl.Any, Gated: true},
		"encryptionInformation":    {Kind: idl.Object, Gated: true},
		"bypassEmptyTsReplacement": {Kind: idl.SafeBool, Gated: true},
		"includeQueryStatsMetrics": {Kind: idl.SafeBool, Gated: true},
	}}
	for k, f := range more {
		t.Fields[k] = f
	}
	return t
}

// set takes one of the shared arguments.
func (w *writeSpec) set(r *Request, k string, v bson.RawValue) {
	switch k {
	case "ordered":
		w.ordered = v.AsBool()
	case "bypassDocumentValidation":
		w.bypass = v.AsBool()
	case "bypassEmptyTsReplacement":
		r.keepStamps = v.AsBool()
	case "stmtId":
		w.stmt, _ = v.Int32()
		w.hasStmt = true
	case "stmtIds":
		w.stmts = []int32{}
		for e := range bson.Raw(v.Value).Values() {
			n, _ := e.Int32()
			w.stmts = append(w.stmts, n)
		}
	case "let":
		w.Let = v.Value
	}
}

// check checks what a field must have inside.
func (w *writeSpec) check(r *Request, t *idl.Struct, k string, v bson.RawValue) error {
	if k == "runtimeConstants" {
		return r.CheckRuntimeConstants(t.Path(k), v.Value)
	}
	return nil
}

// parseWrite reads a write command into the request. operations are told the field that the
// statements are in.
func parseWrite(t *idl.Struct, operations func(r *Request, w *writeSpec, field string, v bson.RawValue) error) func(r *Request) error {
	field := t.Required[0]
	return func(r *Request) error {
		w := &writeSpec{ordered: true}
		count := 0
		err := t.ParseCommand(r, func(k string, v bson.RawValue) error {
			if k != field {
				w.set(r, k, v)
				return w.check(r, t, k, v)
			}
			err := operations(r, w, k, v)
			count = len(w.docs) + len(w.Updates) + len(w.Deletes)
			return err
		})
		if err != nil {
			return err
		}
		if w.NS, err = r.Collection(srverr.BadValue); err != nil {
			return err
		}
		r.Writes = w
		return w.checkCount(count)
	}
}

// statement returns the id of the i-th statement of a retryable write.
func (w *writeSpec) statement(i int) int32 {
	if i < len(w.stmts) {
		return w.stmts[i]
	}
	return w.stmt + int32(i)
}

func (w *writeSpec) checkCount(n int) error {
	if n < 1 || n > MaxWriteBatchSize {
		return srverr.New(srverr.InvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.", MaxWriteBatchSize, n)
	}
	if w.stmts != nil && w.hasStmt {
		return srverr.New(srverr.InvalidOptions, "May not specify both stmtId and stmtIds in write command")
	}
	if w.stmts != nil && len(w.stmts) != n {
		return srverr.New(srverr.InvalidLength, "Number of statement ids must match the number of batch entries")
	}
	return nil
}

// writeError is the failure of one statement.
type writeError struct {
	index int
	err   *srverr.Error
}

// appendWriteErrors appends writeErrors, unless there are none.
func (r *Request) appendWriteErrors(dst []byte, list []writeError) []byte {
	if len(list) == 0 {
		return dst
	}
	at, dst := bson.BeginArrayElement(dst, "writeErrors")
	size := 0
	for i, e := range list {
		one, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i))
		d = bson.AppendInt32(d, "index", int32(e.index))
		d = bson.AppendInt32(d, "code", e.err.Code)
		for k, v := range e.err.Extra.All() {
			d = bson.AppendRawValue(d, k, v)
		}
		msg := e.err.Msg
		if size > 1<<20 {
			msg = "" // as the server does to keep the reply small
		}
		size += len(msg)
		d = bson.AppendString(d, "errmsg", msg)
		dst = bson.EndDocument(d, one)
	}
	return bson.EndDocument(dst, at)
}

// stops reports whether an error ends the whole command rather than one statement of it.
func (r *Request) stops(err *srverr.Error) bool {
	switch err.Code {
	case srverr.NotWritablePrimary, srverr.InterruptedAtShutdown, srverr.InterruptedDueToReplStateChange, srverr.PrimarySteppedDown,
		srverr.NotPrimaryOrSecondary, srverr.NotPrimaryNoSecondaryOk:
		return true
	}
	return r.hangUp || r.InTxn() && r.transient(err.Code, false)
}

// Writable returns the collection to write to, which is made if it does not exist and make is set.
func (r *Request) Writable(tx *store.Tx, ns string, make bool) (*store.Coll, error) {
	if strings.HasPrefix(ns, "local.") && r.IsRetryable() {
		return nil, srverr.New(srverr.IllegalOperation, "retryable writes is not supported for unreplicated ns: %s", ns)
	}
	c := tx.Coll(ns)
	if c == nil {
		if !make {
			return nil, nil
		}
		return r.CreateImplicitly(tx, ns)
	}
	if c.View {
		return nil, srverr.New(srverr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	return c, nil
}

// CreateImplicitly makes a collection because something is to be written to it.
func (r *Request) CreateImplicitly(tx *store.Tx, ns string) (*store.Coll, error) {
	db, _ := namespace.Split(ns)
	if strings.IndexByte(db, '$') >= 0 {
		return nil, srverr.New(17320, "cannot do createCollection on namespace with a $ in it: %s", ns)
	}
	if err := CheckDatabaseCase(tx.State(), db); err != nil {
		return nil, err
	}
	if err := checkViews(tx.State(), db); err != nil {
		return nil, err
	}
	r.Node.data.AddDatabase(db)
	return tx.Create(ns, store.Settings{}, store.IDIndex(nil, IDIndexSpec(nil)))
}

// checkViews refuses to go on in a database whose system.views a client has spoilt.
func checkViews(st *store.State, db string) error {
	views := st.Coll(db + ".system.views")
	if views == nil {
		return nil
	}
	for scan := store.NewScan(views, false, nil); ; {
		_, doc, ok := scan.Next()
		if !ok {
			return nil
		}
		id, isText := doc.Lookup("_id").StringValue()
		_, hasSource := doc.Lookup("viewOn").StringValue()
		if !isText || !strings.HasPrefix(id, db+".") || !hasSource || doc.Lookup("pipeline").Type != bson.TypeArray {
			return srverr.New(srverr.InvalidViewDefinition, "Invalid view definition detected in the view catalog. "+
				"Remove the invalid view manually to prevent disallowing any further usage of the view catalog.")
		}
	}
}

// CheckDatabaseCase refuses a database whose name differs from that of another one in case only.
func CheckDatabaseCase(st *store.State, db string) error {
	for _, name := range st.Databases() {
		if name == db {
			return nil
		}
		if strings.EqualFold(name, db) {
			return srverr.New(srverr.DatabaseDifferCase, "db already exists with different case already have: [%s] trying to create [%s]", name, db)
		}
	}
	return nil
}

// IDIndexSpec returns the _id index's entry in listIndexes.
func IDIndexSpec(collation bson.Raw) bson.Raw { return IDIndexOf(2, collation) }

func IDIndexOf(version int32, collation bson.Raw) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendInt32(doc, "v", version)
	key, doc := bson.BeginDocumentElement(doc, "key")
	doc = bson.EndDocument(bson.AppendInt32(doc, "_id", 1), key)
	doc = bson.AppendString(doc, "name", "_id_")
	if collation != nil {
		doc = bson.AppendDocument(doc, "collation", collation)
	}
	return bson.EndDocument(doc, at)
}

// wellFormed reports whether a document is BSON but for strings that are not UTF-8, as the server
// stores them.
func wellFormed(doc bson.Raw, depth int) bool {
	if _, rest, err := bson.ReadDocument(doc); err != nil || len(rest) > 0 || depth == 0 {
		return false
	}
	for b := doc.Elements(); len(b) > 0; {
		_, v, rest, err := bson.ReadElement(b)
		if err != nil {
			return false
		}
		switch v.Type {
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			if !wellFormed(v.Value, depth-1) {
				return false
			}
		case bson.TypeCodeWithScope:
			if _, scope, ok := v.CodeWithScope(); !ok || !wellFormed(scope, depth-1) {
				return false
			}
		}
		b = rest
	}
	return true
}

// Prepare checks a document that is to be inserted and returns a copy of it as it is stored: with
// an _id in front, and zero timestamps at the top filled in.
func (r *Request) Prepare(doc bson.Raw) (bson.Raw, error) {
	if len(doc) > MaxBSONObjectSize {
		return nil, srverr.New(srverr.BadValue, "object to insert too large. size in bytes: %d, max size: %d", len(doc), MaxBSONObjectSize)
	}
	if err := doc.Validate(); err != nil && !wellFormed(doc, bson.DefaultMaxDepth) {
		return nil, srverr.New(srverr.InvalidBSON, "%v", err)
	}
	dollars := r.Node.cfg.Version.AtLeast(5, 0)
	inOrder, hasID, stamps := true, false, false
	n := 0
	for k, v := range doc.All() {
		if (v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray) && nesting(v.Value, maxStoredNesting) >= maxStoredNesting {
			return nil, srverr.New(srverr.Overflow, "cannot insert document because it exceeds %d levels of nesting", maxStoredNesting)
		}
		switch {
		case k == "_id":
			if hasID {
				return nil, srverr.New(srverr.BadValue, "can't have multiple _id fields in one document")
			}
			hasID, inOrder = true, n == 0
			if err := r.checkID(v); err != nil {
				return nil, err
			}
		case k != "" && k[0] == '$' && !dollars:
			return nil, srverr.New(srverr.BadValue, "Document can't have $ prefixed field names: %s", k)
		case r.stamps(v):
			stamps = true
		}
		n++
	}
	if hasID && inOrder && !stamps {
		return append(make(bson.Raw, 0, len(doc)), doc...), nil
	}
	at, out := bson.BeginDocument(make([]byte, 0, len(doc)+17))
	if hasID {
		out = bson.AppendRawValue(out, "_id", doc.Lookup("_id"))
	} else {
		out = bson.AppendObjectID(out, "_id", bson.NewObjectID())
	}
	for k, v := range doc.All() {
		switch {
		case k == "_id":
		case r.stamps(v):
			out = bson.AppendTimestamp(out, k, r.Node.data.Clock.Tick())
		default:
			out = bson.AppendRawValue(out, k, v)
		}
	}
	return bson.EndDocument(out, at), nil
}

// maxStoredNesting is how deep an inserted document may nest.
const maxStoredNesting = 180

// stamps reports whether the server puts the time in place of a field at the top of a document: of
// a timestamp of zero, unless the command says otherwise.
func (r *Request) stamps(v bson.RawValue) bool {
	ts, ok := v.Timestamp()
	return ok && ts.IsZero() && !r.keepStamps
}

// checkID refuses values that cannot be an _id.
func (r *Request) checkID(v bson.RawValue) error {
	switch v.Type {
	case bson.TypeRegex, bson.TypeUndefined:
		return srverr.New(srverr.BadValue, "can't use a %s for _id", bsontext.TypeName(v.Type))
	case bson.TypeArray:
		return srverr.New(srverr.BadValue, "can't use an array for _id")
	case bson.TypeEmbeddedDocument:
		return checkStorable(v.Value)
	}
	return nil
}

// checkStorable refuses names that start with a dollar, except those of a DBRef.
func checkStorable(doc bson.Raw) error {
	for k, v := range doc.All() {
		if k != "" && k[0] == '$' && k != "$ref" && k != "$id" && k != "$db" {
			return srverr.New(srverr.DollarPrefixedFieldName, "%s is not valid for storage.", k)
		}
		if v.Type == bson.TypeEmbeddedDocument {
			if err := checkStorable(v.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// IsBlocked returns the error that makes a write wait for a transaction, if it is one.
func IsBlocked(err error) bool {
	var b *store.Blocked
	return errors.As(err, &b)
}

// Validate checks a document before it is stored. old is the version that it replaces, nil for an
// insert.
func (r *Request) Validate(c *store.Coll, doc, old bson.Raw, bypass bool) error {
	if c.TimeSeries && old == nil {
		field, _ := c.Raw.Lookup("timeseries", "timeField").StringValue()
		if doc.Lookup(field).Type != bson.TypeDateTime {
			return srverr.New(srverr.BadValue, "'%s' must be present and contain a valid BSON UTC datetime value", field)
		}
	}
	v, ok := c.Check.(*validation.Validator)
	if !ok || bypass {
		return nil
	}
	var parse func(filter bson.Raw) (*query.Filter, error)
	if r.Node.cfg.Version.AtLeast(5, 0) { // errors have details
		parse = func(filter bson.Raw) (*query.Filter, error) {
			return query.ParseFilter(filter, r.FullOptions("", nil, nil))
		}
	}
	return v.Check(doc, old, parse)
}
