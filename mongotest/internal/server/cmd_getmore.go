package server

import (
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/srverr"
)

func init() {
	Register(&Command{Name: "getMore", Where: Anywhere, Txn: TxnOK, ReadConcern: true, Snapshot: true, NoAfterTime: true, Run: runGetMore})
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
}

func (q *getMoreSpec) parse(r *Request) error {
	idl := r.Node.cfg.Version.AtLeast(5, 0)
	q.batchSize = -1
	first, hasColl, hasBatch := true, false, false
	for k, v := range r.Body.All() {
		if first {
			first = false
			if v.Type != bson.TypeInt64 {
				if idl {
					return arg.WrongType("getMore.getMore", v.Type, "long")
				}
				return srverr.New(srverr.TypeMismatch, "Field 'getMore' must be of type long in: %s", bsontext.Document(r.Body))
			}
			q.id, _ = v.Int64()
			continue
		}
		switch k {
		case "collection":
			s, ok := v.StringValue()
			if !ok {
				if idl {
					return arg.WrongType("getMore.collection", v.Type, "string")
				}
				return srverr.New(srverr.TypeMismatch, "Field 'collection' must be of type string in: %s", bsontext.Document(r.Body))
			}
			q.coll, hasColl = s, true
		case "batchSize":
			if !v.IsNumber() {
				if idl {
					return arg.WrongTypes("getMore.batchSize", v.Type, "[long, int, decimal, double']")
				}
				return srverr.New(srverr.TypeMismatch, "Field 'batchSize' must be a number in: %s", bsontext.Document(r.Body))
			}
			q.batchSize = arg.CastNumber(v)
			if q.batchSize < 0 && idl {
				return srverr.New(srverr.BadValue, "BSON field 'batchSize' value must be >= 0, actual value '%d'", q.batchSize)
			}
			hasBatch = true
		case "maxTimeMS":
			n, err := parseMaxTimeMS(v)
			if err != nil {
				return err
			}
			q.maxTime, q.hasTime = time.Duration(n)*time.Millisecond, n > 0
		case "term":
			if v.Type != bson.TypeInt64 {
				if idl {
					return arg.WrongType("getMore.term", v.Type, "long")
				}
				return srverr.New(srverr.TypeMismatch, "Field 'term' must be of type NumberLong in: %s", bsontext.Document(r.Body))
			}
		case "lastKnownCommittedOpTime":
			if v.Type != bson.TypeEmbeddedDocument {
				return srverr.New(srverr.TypeMismatch, "\"lastKnownCommittedOpTime\" had the wrong type. Expected object, found %s", bsontext.TypeName(v.Type))
			}
			if err := checkOpTime(r.Body, k); err != nil {
				return err
			}
		default:
			if !r.Generic(k) {
				if idl {
					return arg.UnknownField("getMore." + k)
				}
				return srverr.New(srverr.FailedToParse, "Failed to parse: %s. Unrecognized field '%s'.", bsontext.Document(r.Body), k)
			}
		}
	}
	switch {
	case !hasColl && idl:
		return arg.MissingField("getMore.collection")
	case !hasColl && r.Node.role == Mongos:
		return srverr.New(srverr.FailedToParse, "Field 'collection' missing in: %s", bsontext.Document(r.Body))
	case !hasColl:
		return srverr.New(srverr.FailedToParse, "Field 'collection' missing in: %s", bsontext.Document(r.Body))
	case q.coll == "" || r.DB == "":
		return srverr.New(srverr.InvalidNamespace, "Invalid namespace for getMore: %s.%s", r.DB, q.coll)
	case q.id == 0 && !idl:
		return srverr.New(srverr.BadValue, "Cursor id for getMore must be non-zero")
	case hasBatch && q.batchSize <= 0 && !idl:
		return srverr.New(srverr.BadValue, "Batch size for getMore must be positive, but received: %d", q.batchSize)
	}
	if q.batchSize == 0 {
		q.batchSize = -1
	}
	return nil
}

func runGetMore(r *Request, dst []byte) ([]byte, error) {
	var q getMoreSpec
	if err := q.parse(r); err != nil {
		return dst, err
	}
	t := &r.Node.cursors
	c, err := t.checkOut(q.id, time.Now())
	if err != nil {
		if r.Node.role == Mongos && srverr.CodeOf(err) == srverr.CursorNotFound {
			r.found = byRouter
			err = srverr.New(srverr.CursorNotFound, "Cursor not found (namespace: '%s', id: %d).", namespace.Join(r.DB, q.coll), q.id)
		}
		return dst, err
	}
	done := false
	defer func() { t.checkIn(c, done, time.Now()) }()
	if err := r.ownsCursor(c); err != nil {
		return dst, err
	}
	if err := r.sameAPI("getMore", c.api, "cursor-creating command"); err != nil {
		return dst, err
	}
	if ns := namespace.Join(r.DB, q.coll); ns != c.ns {
		return dst, srverr.New(srverr.Unauthorized, "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.ns)
	}
	if q.hasTime && !c.awaitData && !r.Node.cfg.Version.AtLeast(5, 0) {
		return dst, srverr.New(srverr.BadValue, "cannot set maxTimeMS on getMore command for a non-awaitData cursor")
	}
	c.run.r = r
	r.ChangeStream = c.token != nil
	if data, ok := r.Fault("failGetMoreAfterCursorCheckout"); ok {
		done = true
		code := int32(srverr.InternalError)
		if n, ok := data.Lookup("errorCode").AsInt64(); ok {
			code = int32(n)
		}
		if needsExtraInfo[code] {
			return dst, srverr.New(40671, "Missing required extra info for error code %s", r.Node.codeName(code))
		}
		return dst, srverr.New(code, "Hit the 'failGetMoreAfterCursorCheckout' failpoint")
	}
	out, end, err := r.getMore(dst, c, &q)
	done = end || err != nil
	return out, err
}

// ownsCursor checks that the cursor was made in the session and the transaction that the command
// runs in.
func (r *Request) ownsCursor(c *cursor) error {
	const prefix = "Cannot run getMore on cursor %d, which was "
	if r.Node.role == Mongos && c.session != r.Session {
		if c.session == nil {
			return srverr.New(50799, prefix+"not created in a session, in session %s", c.id, r.Session.ID)
		}
		if r.Session == nil {
			return srverr.New(50800, prefix+"created in session %s, without an lsid", c.id, c.session.ID)
		}
		return srverr.New(50801, prefix+"created in session %s, in session %s", c.id, c.session.ID, r.Session.ID)
	}
	switch {
	case c.session == nil && r.Session != nil:
		return srverr.New(50736, prefix+"not created in a session, in session %s", c.id, r.Session.ID)
	case c.session != nil && r.Session == nil:
		return srverr.New(50737, prefix+"created in session %s, without an lsid", c.id, c.session.ID)
	case c.session != r.Session:
		return srverr.New(50738, prefix+"created in session %s, in session %s", c.id, c.session.ID, r.Session.ID)
	case c.txnNumber < 0 && r.InTxn():
		return srverr.New(50739, prefix+"not created in a transaction, in transaction %d", c.id, r.txnNumber)
	case c.txnNumber >= 0 && !r.InTxn():
		return srverr.New(50740, prefix+"created in transaction %d, without a txnNumber", c.id, c.txnNumber)
	case c.txnNumber >= 0 && c.txnNumber != r.txnNumber:
		return srverr.New(50741, prefix+"created in transaction %d, in transaction %d", c.id, c.txnNumber, r.txnNumber)
	}
	return nil
}

// getMore appends the next batch. A cursor with awaitData waits for documents.
func (r *Request) getMore(dst []byte, c *cursor, q *getMoreSpec) (out []byte, end bool, err error) {
	base := len(dst)
	var until time.Time
	for {
		var changed <-chan struct{}
		if c.awaitData && c.wait != nil {
			changed = c.wait()
		}
		if r.atTime = c.atTime; r.atTime.IsZero() {
			st, err := r.Snapshot()
			if err != nil {
				return dst, false, err
			}
			if err := c.run.advance(st); err != nil {
				return dst, false, err
			}
		}
		b := batch{field: "nextBatch", limit: q.batchSize}
		at, body := bson.BeginDocumentElement(dst[:base], "cursor")
		if body, err = c.fill(body, &b); err != nil {
			return dst, false, err
		}
		if b.n == 0 && b.idle && changed != nil {
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
				if r.Node.cursors.killed(c) {
					return dst, false, srverr.New(srverr.CursorKilled, "operation was interrupted")
				}
				if woken {
					continue
				}
			}
		}
		body = c.appendToken(body)
		end = b.end && (!c.tailable || c.token != nil)
		id := c.id
		if end {
			id = 0
		}
		body = bson.AppendInt64(body, "id", id)
		body = r.appendAtTime(bson.AppendString(body, "ns", c.ns))
		if !end && r.Flags&wire.ExhaustAllowed != 0 && (r.Node.role != Mongos || r.Node.cfg.Version.AtLeast(7, 1)) {
			r.More, r.streamOf = true, c.id
		}
		return bson.EndDocument(body, at), end, nil
	}
}
