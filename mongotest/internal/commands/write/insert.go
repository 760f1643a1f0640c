package write

import (
	"cmp"
	"errors"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/series"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

func init() {
	server.Register(&server.Command{
		Name: "insert", Needs: server.NeedsBy("insert on the collection", needsOfInsert), API: server.V1,
		Txn: server.TxnOK, Sequences: true,
		WriteConcern: true, OpTime: true, Retryable: true,
		Mongos: server.OnMongos{Documents: true, WriteErrors: server.ConcernOfAll, Reply: replyOfMongos},
		Parse:  parseWrite(insertArgs, newInserts), Run: runInsert,
	})
}

var insertArgs = writeTable("insert", []string{"documents"}, sameBatch, map[string]args.Field[batch]{
	"documents": args.Objects(func(w *batch) *[]bson.Raw { return &w.docs }),
})

// newInserts returns a batch with the place of a document.
func newInserts() *batch {
	w := &batch{}
	w.docs = w.firstDoc[:0]
	return w
}

// insertChunk is how many documents are inserted before others get a turn.
const insertChunk = 256

// insertChunkBytes is the size of documents at which a chunk ends, as in the server, which commits
// large documents one by one: what counts commits counts them so.
const insertChunkBytes = 256 << 10

func runInsert(r *server.Request, dst []byte) ([]byte, error) {
	if _, ok := r.Fault("failAllInserts"); ok {
		return dst, srverr.New(srverr.InternalError, "failAllInserts failpoint active!")
	}
	w := batchOf(r)
	if err := namespace.CheckWritable(r.Version(), w.ns); err != nil {
		return dst, err
	}
	if err := checkShardKeys(r, w.ns, w.docs); err != nil {
		return dst, err
	}
	n, errs, err := insert(r, w, w.docs)
	if err != nil {
		return dst, err
	}
	dst = bson.AppendInt32(dst, "n", n)
	return appendWriteErrors(dst, errs), nil
}

// checkShardKeys refuses a whole insert because of one document without a place, as a mongos before
// 5.0 does.
func checkShardKeys(r *server.Request, ns string, list []bson.Raw) error {
	if r.Routing == nil || r.Version().AtLeast(5, 0) {
		return nil
	}
	for {
		x, err := r.Route(r.Node.Store().Latest().Coll(ns), ns)
		if err == nil {
			return haveKeys(x.Table, list)
		}
		if err := r.Routing.Retarget(err); err != nil {
			return err
		}
	}
}

// haveKeys reports which of some documents has no place by the table, nil: that of a collection
// that is not sharded.
func haveKeys(s *sharding.Metadata, list []bson.Raw) error {
	if s == nil {
		return nil
	}
	for _, doc := range list {
		if _, err := s.KeyOf(doc); err != nil {
			return err
		}
	}
	return nil
}

// insert inserts documents one by one and returns how many it could.
func insert(r *server.Request, w *batch, list []bson.Raw) (n int32, errs []writeError, err error) {
	x := &insertion{r: r, w: w}
	if x.order = timeOrder(r, w.ns, list); x.order != nil {
		sorted := make([]bson.Raw, len(list))
		for i, k := range x.order {
			sorted[i] = list[k]
		}
		list = sorted
	}
	for at := 0; at < len(list); {
		if err := x.some(list[:at+chunk(list[at:])], at); err != nil {
			return n, x.errs, err
		}
		at += x.done
		n = int32(at)
		if x.stop {
			w.skipped = len(list) - at - 1
			break
		}
		if err := r.Check(); err != nil {
			return n, x.errs, err
		}
	}
	failed := int32(len(x.errs))
	if w.ordered || failed == 0 || r.Spoilt() {
		return n, x.errs, nil
	}
	return n - failed, x.errs, nil
}

// chunk returns how many of some documents are committed at once.
func chunk(list []bson.Raw) int {
	size := 0
	for i, doc := range list[:min(len(list), insertChunk)] {
		if size += len(doc); size >= insertChunkBytes {
			return i + 1
		}
	}
	return min(len(list), insertChunk)
}

// timeOrder returns the places of measurements in the order in which a time series collection
// stores those of one insert: that of their times. It is nil for other documents, and for versions
// before 8.1, of which it is not known.
func timeOrder(r *server.Request, ns string, list []bson.Raw) []int {
	if len(list) < 2 || !r.Version().AllParsed() {
		return nil
	}
	c := r.Node.Store().Latest().Coll(ns)
	if c == nil || !c.TimeSeries || r.BucketSource(r.Node.Store().Latest(), ns) != nil {
		return nil
	}
	field, _ := series.Fields(c)
	order, times := make([]int, len(list)), make([]int64, len(list))
	for i, doc := range list {
		at, ok := doc.Lookup(field).DateTime()
		if !ok {
			return nil // it is refused, and what comes after it in an ordered insert is not stored
		}
		order[i], times[i] = i, int64(at)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(times[a], times[b]) })
	return order
}

// insertion is an insert in progress.
type insertion struct {
	r     *server.Request
	w     *batch
	errs  []writeError
	order []int // the places of the documents in the command; nil: they are in its order

	// The chunk.
	list     []bson.Raw
	from     int  // its first document in list; it goes to the end
	failures int  // there were before it
	done     int  // documents that it has dealt with
	stop     bool // an ordered batch has met an error; its document is not counted
	inserted []insertedDoc
}

// place returns the place in the command of a document of the list.
func (x *insertion) place(i int) int {
	if x.order == nil {
		return i
	}
	return x.order[i]
}

// some inserts the documents of the list from one on.
func (x *insertion) some(list []bson.Raw, from int) error {
	x.list, x.from, x.failures = list, from, len(x.errs)
	err := x.r.Write(x.write)
	if err == nil {
		for _, d := range x.inserted {
			rememberAt(x.r, d.stmt, executedWrite{kind: session.StatementInsert, id: d.id}, d.shard)
		}
		return nil
	}
	var refused *server.FailedCommit
	if !errors.As(err, &refused) {
		return err
	}
	x.errs = x.errs[:x.failures]
	if len(list)-from > 1 {
		// As the server does, which then inserts the documents of a chunk one by one.
		return x.some(list[:from+1], from)
	}
	if x.r.Stops(refused.Cause) {
		return err
	}
	x.errs = append(x.errs, writeError{x.place(from), refused.Cause})
	x.done, x.stop = 1, false
	if x.w.ordered {
		x.done, x.stop = 0, true
	}
	return nil
}

// write inserts the chunk.
func (x *insertion) write(tx *store.Tx) error {
	r, w := x.r, x.w
	x.done, x.stop, x.inserted, x.errs = 0, false, x.inserted[:0], x.errs[:x.failures]
	var c *store.Coll
	var buckets *series.Buckets
	var route server.Route
	for i := x.from; i < len(x.list); i++ {
		stmt := w.statement(x.place(i))
		if _, ok := recall(r, stmt); ok {
			x.done++
			continue
		}
		tx.Statement(storeStatement(r, stmt))
		doc, err := r.Prepare(x.list[i])
		if err == nil && c == nil {
			if source := r.BucketSource(tx, w.ns); source != nil {
				if buckets == nil {
					buckets, err = beginBucketInsert(r, source, w.ns)
				}
				if err == nil {
					err = buckets.Insert(tx, doc, r, w.bypass)
				}
				if err == nil {
					if r.IsRetryable() {
						x.inserted = append(x.inserted, insertedDoc{stmt, doc.Lookup("_id"), source.Shard()})
					}
					x.done++
					continue
				}
			} else {
				if c, err = r.Writable(tx, w.ns, true); err == nil {
					route, err = r.Route(c, w.ns)
				}
				if err == nil {
					err = route.ReachUnsharded(c)
				}
				if err != nil {
					c = nil // the next document tries again
				}
			}
		}
		if err == nil && c.TimeSeries {
			if r.InTxn() {
				err = insertInTxn(c)
			} else {
				doc, err = series.Measurement(c, doc)
			}
		}
		shard := 0
		if err == nil {
			shard = c.Shard()
		}
		if s := route.Table; err == nil && s != nil {
			if shard, err = s.PlaceOf(w.ns, doc); err == nil {
				r.Routing.Targeted([]int{shard})
				err = route.Reach(shard)
			}
		}
		var hidden *concealed
		if err == nil {
			doc, hidden, err = conceal(r, tx, c, nil, doc, w.bypass)
		}
		if err == nil {
			err = r.Validate(c, doc, nil, w.bypass)
		}
		if err == nil {
			c, err = tx.Insert(c, doc)
		}
		if err == nil {
			err = hidden.write(r, tx)
		}
		if err == nil {
			if r.IsRetryable() {
				x.inserted = append(x.inserted, insertedDoc{stmt, doc.Lookup("_id"), shard})
			}
			x.done++
			continue
		}
		if server.IsBlocked(err) || server.IsStale(err) {
			if x.done == 0 {
				return err
			}
			return nil // publish what there is, then wait, or ask for the table
		}
		e := srverr.From(err)
		if r.Stops(e) {
			return e
		}
		x.errs = append(x.errs, writeError{x.place(i), e})
		if r.SpoilTxn() || w.ordered {
			x.stop = true
			return nil
		}
		x.done++
	}
	if c != nil && !c.Capped && !c.TimeSeries && len(x.errs) == x.failures && !r.InTxn() {
		tx.JoinInserts()
	}
	return nil
}

// insertedDoc is a document that a retryable insert has inserted.
type insertedDoc struct {
	stmt  int32
	id    bson.RawValue
	shard int
}
