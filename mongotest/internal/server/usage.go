package server

import (
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/store"
)

// usage is what commands did on the collections of a node since they were made, as top and
// $collStats show it. The zero value has seen none. Safe for concurrent use.
type usage struct {
	byColl sync.Map // collUsage by usageKey
}

// spent is how many commands there were, and how many microseconds they took.
type spent struct{ count, micros atomic.Int64 }

func (s *spent) add(micros int64) {
	s.count.Add(1)
	s.micros.Add(micros)
}

// collUsage is what commands did on a collection.
type collUsage struct {
	reads, writes, others                              spent // by what they do to it
	queries, getMores, inserts, updates, removes, runs spent // by what they are
}

// note counts a command that has run.
func (n *Node) note(r *Request) {
	c := r.Cmd
	if c == nil || r.op == nil || n.role == Mongos {
		return
	}
	coll := n.Store().Latest().Coll(r.Namespace())
	if coll == nil {
		return
	}
	u := n.usageOf(coll)
	micros := time.Since(r.start).Microseconds()
	switch {
	case c.OpTime || r.Writes != nil:
		u.writes.add(micros)
	case c.ReadConcern || c.Continues:
		u.reads.add(micros)
	default:
		u.others.add(micros)
	}
	kind := &u.runs
	switch c.Name {
	case "find":
		kind = &u.queries
	case "getMore":
		kind = &u.getMores
	case "insert":
		kind = &u.inserts
	case "update":
		kind = &u.updates
	case "delete":
		kind = &u.removes
	}
	kind.add(micros)
}

func (n *Node) usageOf(c *store.Coll) *collUsage {
	v, ok := n.usage.byColl.Load(usageKey(c))
	if !ok {
		v, _ = n.usage.byColl.LoadOrStore(usageKey(c), &collUsage{})
	}
	return v.(*collUsage)
}

// usageKey is what tells collections apart, of which a view has no UUID.
func usageKey(c *store.Coll) any {
	if c.View {
		return c.NS
	}
	return c.UUID
}

// AppendTop appends what commands did on each collection that they have touched, in the form of
// top.
func (n *Node) AppendTop(dst []byte) []byte {
	st := n.Store().Latest()
	for _, db := range st.Databases() {
		st.Colls(db, func(c *store.Coll) bool {
			v, ok := n.usage.byColl.Load(usageKey(c))
			if !ok {
				return true
			}
			u := v.(*collUsage)
			at, doc := bson.BeginDocumentElement(dst, c.NS)
			total := [2]int64{u.reads.micros.Load() + u.writes.micros.Load() + u.others.micros.Load(),
				u.reads.count.Load() + u.writes.count.Load() + u.others.count.Load()}
			doc = appendSpent(doc, "total", "time", "count", total[0], total[1])
			for _, part := range []struct {
				name string
				of   *spent
			}{{"readLock", &u.reads}, {"writeLock", &u.writes}, {"queries", &u.queries}, {"getmore", &u.getMores},
				{"insert", &u.inserts},
				{"update", &u.updates}, {"remove", &u.removes}, {"commands", &u.runs}} {
				doc = appendSpent(doc, part.name, "time", "count", part.of.micros.Load(), part.of.count.Load())
			}
			dst = bson.EndDocument(doc, at)
			return true
		})
	}
	return dst
}

// AppendLatencies appends what commands took on a collection, in the form of $collStats. One
// that is not stored, nil, has none.
func (n *Node) AppendLatencies(dst []byte, c *store.Coll) []byte {
	u := new(collUsage)
	if c != nil {
		u = n.usageOf(c)
	}
	for _, part := range []struct {
		name string
		of   *spent
	}{{"reads", &u.reads}, {"writes", &u.writes}, {"commands", &u.others}, {"transactions", new(spent)}} {
		dst = appendSpent(dst, part.name, "latency", "ops", part.of.micros.Load(), part.of.count.Load())
	}
	return dst
}

func appendSpent(dst []byte, name, took, times string, micros, count int64) []byte {
	at, dst := bson.BeginDocumentElement(dst, name)
	dst = bson.AppendInt64(dst, took, micros)
	return bson.EndDocument(bson.AppendInt64(dst, times, count), at)
}
