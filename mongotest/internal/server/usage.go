package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/store"
)

// usage is what commands did on the collections of a node since they were made, as top and
// $collStats show it. The zero value has seen none. Safe for concurrent use.
type usage struct {
	byColl sync.Map // collUsage by usageKey
}

// spent is how many commands there were, and how many microseconds they took.
type spent struct {
	count, micros atomic.Int64
	times         [len(latencyBounds)]atomic.Int64
}

// latencyBounds are where the parts of a histogram of latencies begin, in microseconds: each is
// twice the one before it, with one more half way from 2 ms to 2 s.
var latencyBounds = [...]int64{0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
	24576, 32768, 49152, 65536, 98304, 131072, 196608, 262144, 393216, 524288, 786432, 1048576, 1572864, 2097152,
	4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824}

func (s *spent) add(micros int64) {
	s.count.Add(1)
	s.micros.Add(micros)
	i, exact := slices.BinarySearch(latencyBounds[:], max(micros, 0))
	if !exact {
		i--
	}
	s.times[i].Add(1)
}

// collUsage is what commands did on a collection.
type collUsage struct {
	reads, writes, others                              spent // by what they do to it
	queries, getMores, inserts, updates, removes, runs spent // by what they are
	scans, tailable                                    atomic.Int64
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
	if !c.Continues {
		for _, s := range r.scans {
			tailable := s.Plan().Tailable()
			s.Plan().Root.Walk(func(s *planner.Stage) {
				if s.Name != "COLLSCAN" {
					return
				}
				u.scans.Add(1)
				if tailable {
					u.tailable.Add(1)
				}
			})
		}
	}
}

// Scans is how often commands began to go through all of a collection, and how many of these were
// with a tailable cursor.
func (n *Node) Scans(c *store.Coll) (all, tailable int64) {
	if c == nil {
		return 0, 0
	}
	u := n.usageOf(c)
	return u.scans.Load(), u.tailable.Load()
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
func (n *Node) AppendLatencies(dst []byte, c *store.Coll, histograms bool) []byte {
	u := new(collUsage)
	if c != nil {
		u = n.usageOf(c)
	}
	for _, part := range []struct {
		name string
		of   *spent
	}{{"reads", &u.reads}, {"writes", &u.writes}, {"commands", &u.others}, {"transactions", new(spent)}} {
		at := len(dst)
		dst = appendSpent(dst, part.name, "latency", "ops", part.of.micros.Load(), part.of.count.Load())
		if histograms {
			dst = part.of.appendHistogram(dst, at+len(part.name)+2)
		}
	}
	return dst
}

// appendHistogram adds the parts of a histogram that have anything to the document that began at a
// place and has just ended.
func (s *spent) appendHistogram(dst []byte, at int) []byte {
	list, dst := bson.BeginArrayElement(dst[:len(dst)-1], "histogram")
	n := 0
	for i := range s.times {
		if count := s.times[i].Load(); count > 0 {
			one, d := bson.BeginDocument(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, n))
			d = bson.AppendInt64(bson.AppendInt64(d, "micros", latencyBounds[i]), "count", count)
			dst = bson.EndDocument(d, one)
			n++
		}
	}
	return bson.EndDocument(bson.EndDocument(dst, list), at)
}

func appendSpent(dst []byte, name, took, times string, micros, count int64) []byte {
	at, dst := bson.BeginDocumentElement(dst, name)
	dst = bson.AppendInt64(dst, took, micros)
	return bson.EndDocument(bson.AppendInt64(dst, times, count), at)
}
