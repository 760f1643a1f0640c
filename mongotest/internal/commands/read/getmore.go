package read

import (
	"strings"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "getMore", Help: "retrieve more results from an existing cursor",
		Needs: server.NeedsBy("find on the collection of the cursor", needsOfGetMore), API: server.V1, DataLake: true,
		Where: server.Anywhere,
		Txn:   server.TxnOK, Continues: true, Sequences: true, ReadConcern: true, Snapshot: true, NoAfterTime: true,
		Mongos: server.OnMongos{Reply: batchOfMongos}, Run: runGetMore,
	})
}

// defaultAwait is how long a getMore on an awaitData cursor waits for documents when the client
// does not say.
const defaultAwait = time.Second

type getMoreSpec struct {
	id        int64
	coll      string
	batchSize int64 // -1: not given
	maxTime   time.Duration
	hasTime   bool
	hasColl   bool
	hasBatch  bool
}

var (
	getMoreArgs = &args.Table[getMoreSpec]{Name: "getMore", Required: []string{"collection"},
		Value: args.Long(func(q *getMoreSpec) *int64 { return &q.id }),
		Fields: map[string]args.Field[getMoreSpec]{
			"collection": args.String(func(q *getMoreSpec) *string {
				return &q.coll
			}).Note(func(q *getMoreSpec) *bool { return &q.hasColl }),
			"batchSize": args.Number[getMoreSpec](nil).Note(func(q *getMoreSpec) *bool {
				return &q.hasBatch
			}).Then(setBatchSize),
			"maxTimeMS": args.Any[getMoreSpec](nil).Then(setAwait),
			"term":      args.Long[getMoreSpec](nil),
			"lastKnownCommittedOpTime": args.Any[getMoreSpec](nil).Then(func(_ *getMoreSpec, v args.Value) error {
				body, _ := v.From.Message()
				return server.CheckOpTime(body, v.Name)
			}),
		}, Old: &args.Old{
			Unknown: args.Unrecognized,
			Wrong: func(from args.Source, k string, _ bson.RawValue, want string) error {
				switch k {
				case "batchSize":
					want = "a number"
				case "term":
					want = "of type NumberLong"
				default:
					want = "of type " + want
				}
				body, _ := from.Message()
				return srverr.New(srverr.TypeMismatch, "Field '%s' must be %s in: %s", k, want, bsontext.Document(body))
			},
		}}
)

func setBatchSize(q *getMoreSpec, v args.Value) error {
	if !v.From.Version().AtLeast(5, 0) {
		q.batchSize = args.CastNumber(v.RawValue)
		return nil
	}
	if q.batchSize = v.Long(); q.batchSize < 0 {
		return args.TooSmall(v.From.Version(), "batchSize", 0, q.batchSize)
	}
	return nil
}

// setAwait takes how long to wait. From 5.0 on no time at all is a time, too: such a getMore does
// not wait.
func setAwait(q *getMoreSpec, v args.Value) error {
	if v.From.Version().AllParsed() && args.IsNull(v.RawValue) {
		return nil
	}
	n, err := server.MaxTime{Of: "getMore", Optional: true}.Parse(v.RawValue, v.From.Version())
	q.maxTime, q.hasTime = time.Duration(n)*time.Millisecond, n > 0 || v.From.Version().AtLeast(5, 0)
	return err
}

func (q *getMoreSpec) parse(r *server.Request) error {
	q.batchSize = -1
	if err := getMoreArgs.ParseCommand(r, q); err != nil {
		return err
	}
	old := !r.Version().AtLeast(5, 0)
	switch {
	case !q.hasColl:
		return srverr.New(srverr.FailedToParse, "Field 'collection' missing in: %s", bsontext.Document(r.Body))
	case q.coll == "" && !old:
		return srverr.New(srverr.InvalidNamespace, "Collection names cannot be empty")
	case q.coll == "" || r.DB == "":
		return srverr.New(srverr.InvalidNamespace, "Invalid namespace for getMore: %s.%s", r.DB, q.coll)
	case strings.IndexByte(q.coll, 0) >= 0:
		return srverr.New(srverr.InvalidNamespace, "Invalid namespace specified '%s.%s'", r.DB, q.coll)
	case q.id == 0 && old:
		return srverr.New(srverr.BadValue, "Cursor id for getMore must be non-zero")
	case q.hasBatch && q.batchSize <= 0 && old:
		return srverr.New(srverr.BadValue, "Batch size for getMore must be positive, but received: %d", q.batchSize)
	}
	if q.batchSize == 0 {
		q.batchSize = -1
	}
	return nil
}

// needsOfGetMore: whoever could open a cursor without a collection may go on.
func needsOfGetMore(r *server.Request, body bson.Raw) []account.Need {
	coll := bsondoc.MustString(body.Lookup("collection"))
	if strings.HasPrefix(coll, "$cmd.") {
		return nil
	}
	return []account.Need{{Action: "find", DB: r.DB, Coll: coll}}
}

func batchOfMongos(_ *server.Request, reply bson.Raw, dst []byte) []byte {
	cursor := bson.Raw(reply.Lookup("cursor").Value)
	at, dst := bson.BeginDocumentElement(dst, "cursor")
	for _, k := range []string{"id", "ns", "nextBatch", "postBatchResumeToken", "atClusterTime"} {
		if v := cursor.Lookup(k); !v.IsZero() {
			dst = bson.AppendRawValue(dst, k, v)
		}
	}
	return bson.EndDocument(dst, at)
}

func runGetMore(r *server.Request, dst []byte) ([]byte, error) {
	var q getMoreSpec
	if err := q.parse(r); err != nil {
		r.Routing.Found(server.ByRouter)
		return dst, err
	}
	t := r.Node.Cursors()
	c, err := t.CheckOut(q.id, time.Now())
	if err != nil {
		if r.Routing != nil && srverr.CodeOf(err) == srverr.CursorNotFound {
			r.Routing.Found(server.ByRouter)
			err = srverr.New(srverr.CursorNotFound, "Cursor not found (namespace: '%s', id: %d).",
				namespace.Join(r.DB, q.coll), q.id)
		}
		return dst, err
	}
	done := false
	defer func() { t.CheckIn(c, done, time.Now()) }()
	if err := ownsCursor(r, c); err != nil {
		return dst, err
	}
	if err := r.SameAPI("getMore", c.API, "cursor-creating command"); err != nil {
		return dst, err
	}
	if ns := namespace.Join(r.DB, q.coll); ns != c.NS {
		return dst, srverr.New(srverr.Unauthorized,
			"Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.NS)
	}
	if q.hasTime && !c.AwaitData {
		return dst, srverr.New(srverr.BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	c.Run.Request = r
	r.Continue(c)
	r.ChangeStream = c.Token != nil
	if err := r.ReadOn(c); err != nil {
		done = true
		return dst, err
	}
	if data, ok := r.Fault("failGetMoreAfterCursorCheckout"); ok {
		done = true
		code := int32(srverr.InternalError)
		if n, ok := data.Lookup("errorCode").AsInt64(); ok {
			code = int32(n)
		}
		if server.NeedsExtraInfo[code] {
			return dst, srverr.New(40671, "Missing required extra info for error code %s", r.Node.CodeName(code))
		}
		return dst, srverr.New(code, "Hit the 'failGetMoreAfterCursorCheckout' failpoint")
	}
	after, err := r.BoundByCursor(c)
	if err != nil {
		done = true
		return dst, err
	}
	defer after()
	out, end, err := getMore(r, dst, c, &q)
	done = end || err != nil
	return out, err
}

// ownsCursor checks that the cursor was made in the session and the transaction that the command
// runs in.
func ownsCursor(r *server.Request, c *server.Cursor) error {
	if err := r.Owns(c); err != nil {
		return err
	}
	const prefix = "Cannot run getMore on cursor %d, which was "
	if r.Routing != nil && c.Session != r.Session {
		if c.Session == nil {
			return srverr.New(50799, prefix+"not created in a session, in session %s", c.ID, r.Session.ID)
		}
		if r.Session == nil {
			return srverr.New(50800, prefix+"created in session %s, without an lsid", c.ID, c.Session.ID)
		}
		return srverr.New(50801, prefix+"created in session %s, in session %s", c.ID, c.Session.ID, r.Session.ID)
	}
	switch {
	case c.Session == nil && r.Session != nil:
		return srverr.New(50736, prefix+"not created in a session, in session %s", c.ID, r.Session.ID)
	case c.Session != nil && r.Session == nil:
		return srverr.New(50737, prefix+"created in session %s, without an lsid", c.ID, c.Session.ID)
	case c.Session != r.Session:
		return srverr.New(50738, prefix+"created in session %s, in session %s", c.ID, c.Session.ID, r.Session.ID)
	case c.TxnNumber < 0 && r.InTxn():
		return srverr.New(50739, prefix+"not created in a transaction, in transaction %d", c.ID, r.TxnNumber)
	case c.TxnNumber >= 0 && !r.InTxn():
		return srverr.New(50740, prefix+"created in transaction %d, without a txnNumber", c.ID, c.TxnNumber)
	case c.TxnNumber >= 0 && c.TxnNumber != r.TxnNumber:
		return srverr.New(50741, prefix+"created in transaction %d, in transaction %d", c.ID, c.TxnNumber, r.TxnNumber)
	}
	return nil
}

// getMore appends the next batch. A cursor with awaitData waits for documents.
func getMore(r *server.Request, dst []byte, c *server.Cursor, q *getMoreSpec) (out []byte, end bool, err error) {
	base := len(dst)
	var until time.Time
	for {
		var changed <-chan struct{}
		if c.AwaitData && c.Wait != nil {
			changed = c.Wait()
		}
		if r.AtTime = c.AtTime; r.AtTime.IsZero() {
			st, err := r.Snapshot()
			if err != nil {
				return dst, false, err
			}
			if err := c.Run.Advance(st); err != nil {
				return dst, false, err
			}
		}
		b := server.Batch{Field: "nextBatch", Limit: q.batchSize}
		at, body := bson.BeginDocumentElement(dst[:base], "cursor")
		if body, err = c.Fill(body, &b); err != nil {
			return dst, false, err
		}
		if b.N == 0 && b.Idle && changed != nil {
			if until.IsZero() {
				wait := defaultAwait
				if q.hasTime {
					wait = q.maxTime
				}
				until = time.Now().Add(wait)
			}
			if left := time.Until(until); left > 0 {
				woken, err := r.Wait(changed, left)
				if err != nil {
					return dst, false, err
				}
				if r.Node.Cursors().Killed(c) {
					return dst, false, srverr.New(srverr.CursorKilled, "operation was interrupted")
				}
				if woken {
					continue
				}
			}
		}
		body = c.AppendToken(body)
		end = b.End && (!c.Tailable || c.Token != nil)
		id := c.ID
		if end {
			id = 0
		}
		body = bson.AppendInt64(body, "id", id)
		body = r.AppendAtTime(bson.AppendString(body, "ns", c.NS))
		if !end && r.Flags&wire.ExhaustAllowed != 0 && (r.Routing == nil || r.Version().AtLeast(7, 1)) {
			r.More, r.StreamOf = true, c.ID
		}
		return bson.EndDocument(body, at), end, nil
	}
}
