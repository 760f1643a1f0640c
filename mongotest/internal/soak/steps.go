package soak

import (
	"slices"
	"strings"

	"allium/bson"
)

type (
	d = bson.D
	a = bson.A
)

// e is an element.
func e(k string, v any) bson.E { return bson.E{Key: k, Value: v} }

// steps are what workers do, each as often as its weight says.
var steps = []struct {
	name   string
	weight int
	run    func(w *worker) error
}{
	{"insert", 20, (*worker).insert}, {"find", 20, (*worker).find}, {"update", 15, (*worker).update},
	{"remove", 5, (*worker).remove}, {"aggregate", 8, (*worker).aggregate},
	{"unwind", 4, (*worker).unwind}, {"transaction", 4, (*worker).transaction}, {"watch", 2, (*worker).watch},
	{"script", 2, (*worker).script}, {"large", 1, (*worker).large}, {"drop", 1, (*worker).drop},
	{"index", 1, (*worker).index}, {"leave", 2, (*worker).leave}, {"out", 1, (*worker).out},
	{"heavy", 1, (*worker).heavy},
}

func (w *worker) step() error {
	sum := 0
	for _, s := range steps {
		sum += s.weight
	}
	n := w.rng.IntN(sum)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			if slices.Contains(w.without, s.name) {
				return nil
			}
			return s.run(w)
		}
	}
	return nil
}

// coll is one of a few collections.
func (w *worker) coll() string { return [...]string{"a", "b", "c"}[w.rng.IntN(3)] }

// do sends a command whose reply does not matter.
func (w *worker) do(cmd d) error {
	_, err := w.command(cmd)
	return err
}

func (w *worker) insert() error {
	var docs a
	for range 1 + w.rng.IntN(50) {
		docs = append(docs, d{e("_id", bson.NewObjectID()), e("n", w.rng.IntN(1000)), e("g", w.rng.IntN(10)),
			e("s", strings.Repeat("x", w.rng.IntN(500))),
			e("list", a{1, 2, w.rng.IntN(5)}), e("sub", d{e("x", w.rng.IntN(100))})})
	}
	return w.do(d{e("insert", w.coll()), e("documents", docs)})
}

func (w *worker) find() error {
	return w.do(d{e("find", w.coll()), e("filter", d{e("n", d{e("$gte", w.rng.IntN(1000))})}), e("sort", d{e("n", 1)}),
		e("limit", 20), e("singleBatch", true)})
}

func (w *worker) update() error {
	u := d{e("$inc", d{e("n", 1)}), e("$set", d{e("s", strings.Repeat("y", w.rng.IntN(500)))})}
	return w.do(d{e("update", w.coll()), e("updates",
		a{d{e("q", d{e("g", w.rng.IntN(10)), e("n", d{e("$lt", 50)})}), e("u", u), e("multi", true)}})})
}

// remove keeps the collections small.
func (w *worker) remove() error {
	return w.do(d{e("delete", w.coll()), e("deletes", a{d{e("q", d{e("g", w.rng.IntN(10))}), e("limit", 0)}})})
}

func (w *worker) aggregate() error {
	return w.do(d{e("aggregate", w.coll()), e("pipeline", a{
		d{e("$match", d{e("n", d{e("$lt", 500)})})},
		d{e("$group", d{e("_id", "$g"), e("sum", d{e("$sum", "$n")}), e("all", d{e("$push", "$sub")})})},
		d{e("$lookup", d{e("from", w.coll()), e("localField", "_id"), e("foreignField", "n"), e("as", "same")})},
		d{e("$sort", d{e("sum", -1)})},
	}), e("cursor", d{})})
}

func (w *worker) unwind() error {
	return w.do(d{e("aggregate", w.coll()), e("pipeline", a{
		d{e("$limit", 50)}, d{e("$set", d{e("r", d{e("$range", a{0, 200})})})}, d{e("$unwind", "$r")},
		d{e("$unwind", "$list")}, d{e("$count", "n")},
	}), e("cursor", d{})})
}

// transaction changes two collections, and commits or aborts.
func (w *worker) transaction() error {
	w.txn++
	id := bson.NewObjectID()
	lsid := d{e("id", bson.Binary{Subtype: bson.BinaryUUID, Data: append(id[:], 0, 0, 0, 0)})}
	in := func(cmd d, first bool) (bson.Raw, error) {
		cmd = append(cmd, e("lsid", lsid), e("txnNumber", w.txn), e("autocommit", false))
		if first {
			cmd = append(cmd, e("startTransaction", true))
		}
		return w.command(cmd)
	}
	if reply, err := in(d{e("insert", w.coll()), e("documents", a{d{e("_id", bson.NewObjectID()), e("n", 1)}})},
		true); err != nil || !reply.Lookup("ok").AsBool() {
		return err
	}
	if reply, err := in(d{e("update", w.coll()), e("updates",
		a{d{e("q", d{e("n", 1)}), e("u", d{e("$inc", d{e("n", 1)})})}})}, false); err != nil ||
		!reply.Lookup("ok").AsBool() {
		return err
	}
	end := [...]string{"commitTransaction", "abortTransaction"}[w.rng.IntN(2)]
	db := w.db
	w.db = "admin"
	_, err := in(d{e(end, 1)}, false)
	w.db = db
	return err
}

// watch opens a change stream, reads from it once and closes it.
func (w *worker) watch() error {
	reply, err := w.command(d{e("aggregate", 1), e("pipeline", a{d{e("$changeStream", d{})}}), e("cursor", d{})})
	if err != nil {
		return err
	}
	id, ok := reply.Lookup("cursor", "id").Int64()
	if !ok || id == 0 {
		return nil
	}
	if err := w.do(d{e("getMore", id), e("collection", "$cmd.aggregate"), e("maxTimeMS", 20)}); err != nil {
		return err
	}
	return w.do(d{e("killCursors", "$cmd.aggregate"), e("cursors", a{id})})
}

func (w *worker) script() error {
	return w.do(d{e("find", w.coll()), e("filter",
		d{e("n", d{e("$lt", 100)}), e(
			"$where", "for (var i = 0, s = 0; i < 1000; i++) s += i; return s + this.n > 499550")}), e("limit", 5),
		e("singleBatch", true)})
}

// large inserts a document of 10 MB and deletes it.
func (w *worker) large() error {
	id := bson.NewObjectID()
	if err := w.do(d{e("insert", "large"),
		e("documents", a{d{e("_id", id), e("s", strings.Repeat("z", 10<<20))}})}); err != nil {
		return err
	}
	return w.do(d{e("delete", "large"), e("deletes", a{d{e("q", d{e("_id", id)}), e("limit", 1)}})})
}

func (w *worker) drop() error {
	if w.rng.IntN(5) == 0 {
		return w.do(d{e("dropDatabase", 1)})
	}
	return w.do(d{e("drop", w.coll())})
}

func (w *worker) index() error {
	return w.do(d{e("createIndexes", w.coll()),
		e("indexes", a{d{e("key", d{e("g", 1), e("n", 1)}), e("name", "g_1_n_1")}})})
}

// leave opens a cursor and closes the connection instead of reading from it.
func (w *worker) leave() error {
	reply, err := w.command(d{e("find", w.coll()), e("batchSize", 1)})
	if err != nil {
		return err
	}
	w.conn.Close()
	w.conn = nil
	if id, _ := reply.Lookup("cursor", "id").Int64(); id != 0 && w.rng.IntN(2) == 0 {
		return w.do(d{e("killCursors", w.coll()), e("cursors", a{id})})
	}
	return nil
}

func (w *worker) out() error {
	return w.do(d{e("aggregate", w.coll()), e("pipeline",
		a{d{e("$limit", 100)}, d{e("$project", d{e("n", 1)})}, d{e("$out", "out")}}), e("cursor", d{})})
}

// heavy begins what would take long, and has a limit on its time: a pattern that backtracks, a sort
// and an update of a large array, a join of each with each.
func (w *worker) heavy() error {
	large := d{e("$range", a{0, 300_000})}
	limit := e("maxTimeMS", 100)
	switch w.rng.IntN(4) {
	case 0:
		return w.do(d{e("find", w.coll()), e("filter", d{e("s", d{e("$regex", "(x+x+)+z")})}), e("singleBatch", true),
			limit})
	case 1:
		return w.do(d{e("aggregate", w.coll()), e("pipeline",
			a{d{e("$limit", 10)}, d{e("$project", d{e("n",
				d{e("$size", d{e("$setUnion", a{d{e("$reverseArray", large)}})})})})}}), e("cursor", d{}), limit})
	case 2:
		return w.do(d{e("update", w.coll()), e("updates",
			a{d{e("q", d{}), e("u", d{e("$addToSet", d{e("list", d{e("$each", numbers(3000))})})})}}), limit})
	}
	return w.do(d{e("aggregate", w.coll()), e("pipeline",
		a{d{e("$set", d{e("r", large)})}, d{e("$unwind", "$r")}, d{e("$sort", d{e("r", -1)})},
			d{e("$skip", 1_000_000)}}), e("cursor", d{}), limit})
}

func numbers(n int) (list a) {
	for i := range n {
		list = append(list, -i)
	}
	return list
}
