// Package write has the commands that write documents: insert, update, delete, findAndModify,
// bulkWrite and applyOps, and those that compact the state collections of encrypted collections.
// Each file of a command has its arguments first, then what it does, then its reply. statement.go
// has the statements that the commands have in common, and batch.go their lists.
package write

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// batch are the arguments of an insert, update or delete.
type batch struct {
	ns      string
	uuid    []byte // collectionUUID, that the collection must have; nil: any
	ordered bool
	bypass  bool // bypassDocumentValidation
	stamps  bool // bypassEmptyTsReplacement
	hasStmt bool
	stmt    int32
	stmts   []int32 // not nil if given
	let     bson.Raw

	docs    []bson.Raw // of an insert
	updates []updateOp
	deletes []deleteOp

	skipped int // statements behind the one whose error has ended an ordered batch

	firstDoc [1]bson.Raw // where the list of documents or of statements begins
}

// Count returns how many statements of each kind have run, or been tried.
func (w *batch) Count() (inserts, updates, deletes int) {
	run := func(n int) int { return max(0, n-w.skipped) }
	return run(len(w.docs)), run(len(w.updates)), run(len(w.deletes))
}

// AppendFailed makes of an error that a shard gives the whole command the errors of its statements.
func (w *batch) AppendFailed(dst []byte, err error) []byte {
	n := len(w.docs) + len(w.updates) + len(w.deletes)
	if w.ordered {
		n = 1
	}
	var errs []writeError
	for i := range n {
		errs = append(errs, writeError{i, srverr.From(err)})
	}
	if len(w.updates) > 0 {
		dst = bson.AppendInt32(dst, "nModified", 0)
	}
	return appendWriteErrors(bson.AppendInt32(dst, "n", 0), errs)
}

// batchOf returns the statements of a request that parseWrite has read.
func batchOf(r *server.Request) *batch { return r.Writes.(*batch) }

// writeTable describes a write command: what all of them take, and more. A T has a batch.
func writeTable[T any](name string, required []string, to func(*T) *batch,
	more map[string]args.Field[T]) *args.Table[T] {
	t := &args.Table[T]{Name: name, Required: required, Fields: more}
	for k, f := range map[string]args.Field[batch]{
		"ordered":                  args.Bool(func(w *batch) *bool { return &w.ordered }),
		"bypassDocumentValidation": args.SafeBool(func(w *batch) *bool { return &w.bypass }),
		"bypassEmptyTsReplacement": args.SafeBool(func(w *batch) *bool { return &w.stamps }).Gated(),
		"stmtId": args.Int(func(w *batch) *int32 {
			return &w.stmt
		}).Note(func(w *batch) *bool { return &w.hasStmt }),
		"stmtIds":                  args.Ints(func(w *batch) *[]int32 { return &w.stmts }),
		"isTimeseriesNamespace":    args.SafeBool[batch](nil).Gated(),
		"collectionUUID":           args.UUID(name, func(w *batch) *[]byte { return &w.uuid }).Gated(),
		"encryptionInformation":    args.Object[batch](nil).Gated(),
		"includeQueryStatsMetrics": args.SafeBool[batch](nil).Gated(),
	} {
		t.Fields[k] = args.Within(f, to)
	}
	return t
}

func sameBatch(w *batch) *batch { return w }

// letOf takes the variables of a statement.
func letOf(w *batch) *bson.Raw { return &w.let }

// withRoom returns what makes a batch with the place of a statement, since most have no more.
func withRoom[T any](list func(w *batch) *[]T) func() *batch {
	return func() *batch {
		w := &struct {
			batch
			first [1]T
		}{}
		*list(&w.batch) = w.first[:0]
		return &w.batch
	}
}

// parseStatements reads the statements of an argument.
func parseStatements[T any](w *batch, v args.Value, to *[]T, entry *args.Table[T]) error {
	docs := v.AppendDocuments(w.firstDoc[:0])
	*to = slices.Grow(*to, len(docs))[:len(docs)]
	for i, doc := range docs {
		if err := entry.Parse(v.From, doc, &(*to)[i]); err != nil {
			return err
		}
	}
	return nil
}

// parseWrite reads a write command into the request.
func parseWrite(t *args.Table[batch], make func() *batch) func(r *server.Request) error {
	return func(r *server.Request) (err error) {
		w := make()
		w.ordered = true
		if err := t.ParseCommand(r, w); err != nil {
			return err
		}
		if w.ns, err = r.Collection(srverr.BadValue); err != nil {
			return err
		}
		r.Writes, r.KeepStamps = w, w.stamps
		r.Expect(w.ns, w.uuid)
		return w.checkCount(len(w.docs) + len(w.updates) + len(w.deletes))
	}
}

// statement returns the id of the i-th statement of a retryable write.
func (w *batch) statement(i int) int32 {
	if i < len(w.stmts) {
		return w.stmts[i]
	}
	return w.stmt + int32(i)
}

func (w *batch) checkCount(n int) error {
	if n < 1 || n > server.MaxWriteBatchSize {
		return srverr.New(srverr.InvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.",
			server.MaxWriteBatchSize, n)
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
func appendWriteErrors(dst []byte, list []writeError) []byte {
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

// replyOfMongos makes of a reply that of a mongos, whose errors have their names and no details.
func replyOfMongos(r *server.Request, reply bson.Raw, dst []byte) []byte {
	for k, v := range reply.All() {
		switch k {
		case "opTime", "electionId":
		case "writeErrors":
			at, list := bson.BeginArrayElement(dst, k)
			for i, e := range bson.Raw(v.Value).All() {
				doc, _ := e.Document()
				list = bson.AppendDocument(list, i, writeErrorOfMongos(r.Node, doc))
			}
			dst = bson.EndDocument(list, at)
		default:
			dst = bson.AppendRawValue(dst, k, v)
		}
	}
	return dst
}

func writeErrorOfMongos(n *server.Node, e bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for k, v := range e.All() {
			switch k {
			case "keyPattern", "keyValue", "codeName":
			case "code":
				code, _ := args.NumberOf(v)
				d.B = bson.AppendInt32(d.B, "code", int32(code))
				d.Str("codeName", n.CodeName(int32(code)))
			default:
				d.B = bson.AppendRawValue(d.B, k, v)
			}
		}
	})
}
