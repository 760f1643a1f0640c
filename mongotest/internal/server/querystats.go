package server

import (
	"container/list"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
)

// What a node remembers of the queries that it has run: $queryStats. Queries of the same shape that
// come from the same kind of client with the same options are one entry.

// The parameters that decide what is recorded. Nothing is, unless one of the first two is set.
const (
	queryStatsRate   = "internalQueryStatsRateLimit"  // queries a second; -1: all
	queryStatsSample = "internalQueryStatsSampleRate" // the share of queries, from 0 to 1; goes before the rate
	queryStatsSize   = "internalQueryStatsCacheSize"  // bytes, with a unit or as a share of the machine's memory
)

// queryStats are the statistics of a node. The zero value records nothing. Safe for concurrent use.
type queryStats struct {
	on atomic.Bool // anything is recorded

	mu      sync.Mutex
	rate    int64
	sample  float64
	sized   bool      // most is known
	most    int64     // bytes of entries
	second  time.Time // in which so many were recorded
	count   int64
	size    int64
	recent  list.List // of *queryEntry, the one that was used last at the front
	entries map[string]*list.Element
}

// queryEntry is what is known of queries with a common key.
type queryEntry struct {
	key         bson.Raw
	hash        string // of the shape
	count       int64
	last        int64 // microseconds
	figures     [len(queryFigures)]figure
	traits      [len(queryTraits)][2]int64 // how often a trait was there, and how often it was not
	first, seen time.Time
}

// The figures of a query, in the order of an entry.
const (
	figureKeys = iota
	figureDocs
	figureBytes
	figureReadTime
	figureWorking
	figureTotal
	figureFirst
	figureReturned
)

var queryFigures = [...]string{"keysExamined", "docsExamined", "bytesRead", "readTimeMicros", "workingTimeMillis",
	"totalExecMicros", "firstResponseExecMicros", "docsReturned"}

var queryTraits = [...]string{"hasSortStage", "usedDisk", "fromMultiPlanner", "fromPlanCache"}

// figure sums up one number of all queries of an entry.
type figure struct {
	sum, max, min int64
	squares       big.Int
}

func (f *figure) add(n int64, first bool) {
	f.sum += n
	f.max = max(f.max, n)
	if f.min = min(f.min, n); first {
		f.min = n
	}
	square := big.NewInt(n)
	f.squares.Add(&f.squares, square.Mul(square, square))
}

func (f *figure) append(dst []byte, name string) []byte {
	at, dst := bson.BeginDocumentElement(dst, name)
	dst = bson.AppendInt64(dst, "sum", f.sum)
	dst = bson.AppendInt64(dst, "max", f.max)
	dst = bson.AppendInt64(dst, "min", f.min)
	squares, err := bson.NewDecimal128FromBigInt(&f.squares, 0)
	if err != nil { // more digits than the type has
		squares = bson.NewDecimal128FromInt64(0)
	}
	return bson.EndDocument(bson.AppendDecimal128(dst, "sumOfSquares", squares), at)
}

// configure notes the value of a parameter, if it is one of those that decide what is recorded.
func (q *queryStats) configure(name string, v bson.RawValue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch name {
	case queryStatsRate:
		q.rate = int64(float(v))
	case queryStatsSample:
		q.sample = float(v)
	case queryStatsSize:
		text, _ := v.StringValue()
		q.most, q.sized = sizeOf(text)
		q.shrinkLocked()
		return
	default:
		return
	}
	q.on.Store(q.rate != 0 || q.sample > 0)
}

// sizeOf reads a number of bytes: 10MB, 1.5GB, or 1%, of the machine's memory.
func sizeOf(text string) (n int64, ok bool) {
	for _, unit := range []struct {
		name string
		size float64
	}{{"%", float64(TotalMemory()) / 100}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}} {
		if number, has := strings.CutSuffix(strings.ToUpper(text), unit.name); has {
			f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			return int64(f * unit.size), err == nil && f >= 0 && (unit.name != "%" || f <= 100)
		}
	}
	return 0, false
}

// chosen reports whether the query that begins to be counted is one of those that are recorded.
func (q *queryStats) chosen(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.sample > 0:
		return q.sample >= 1 || rand.Float64() < q.sample
	case q.rate < 0:
		return true
	}
	if now.Sub(q.second) >= time.Second {
		q.second, q.count = now, 0
	}
	q.count++
	return q.count <= q.rate
}

// overhead is about how many bytes an entry takes beside its key.
const overhead = 512

// shrinkLocked forgets the entries that nothing was added to for the longest time, until the others
// have room.
func (q *queryStats) shrinkLocked() {
	if !q.sized {
		q.most, q.sized = sizeOf("1%")
	}
	for q.size > q.most && q.recent.Len() > 0 {
		e := q.recent.Remove(q.recent.Back()).(*queryEntry)
		q.size -= int64(2*len(e.key)) + overhead
		delete(q.entries, string(e.key))
	}
}

// queryRun is a query that is recorded when it is done: with its command, or with its cursor.
type queryRun struct {
	node *Node
	key  bson.Raw
	hash string
	// stream tells that it is a change stream, each command of which is recorded by itself.
	stream   bool
	exec     time.Duration // that its commands took together
	first    time.Duration // that the first one took
	keys     int64
	docs     int64
	returned int64
	traits   [len(queryTraits)]bool
}

// newRun returns what is recorded of the query that a command is, nil if nothing is.
func (r *Request) newRun() *queryRun {
	q := &r.Node.queryStats
	if !q.on.Load() || r.Cmd == nil || r.Cmd.Shape == nil || r.within != nil || r.Body.Lookup("explain").AsBool() ||
		!r.Body.Lookup("encryptionInformation").IsZero() || !q.chosen(r.start) {
		return nil
	}
	shape, ok := r.Cmd.Shape(r)
	if !ok {
		return nil
	}
	return &queryRun{node: r.Node, key: r.statsKey(shape), hash: query.ShapeHash(shape), stream: r.ChangeStream}
}

// add adds what a command did for the query.
func (x *queryRun) add(r *Request) {
	took := time.Since(r.start)
	if x.exec == 0 {
		x.first = took
	}
	x.exec += took
	keys, docs := r.examined()
	x.keys, x.docs = x.keys+keys, x.docs+docs
	for _, s := range r.scans {
		p := s.Plan()
		x.traits[0] = x.traits[0] || p.Blocks()
		x.traits[2] = x.traits[2] || p.Trial != nil
		x.traits[3] = x.traits[3] || p.From != nil
	}
}

// record adds the query to the entry of its key.
func (x *queryRun) record() {
	q, now := &x.node.queryStats, x.node.data.Clock.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.entries[string(x.key)]
	if at == nil {
		if q.entries == nil {
			q.entries = map[string]*list.Element{}
		}
		at = q.recent.PushFront(&queryEntry{key: x.key, hash: x.hash, first: now})
		q.entries[string(x.key)] = at
		q.size += int64(2*len(x.key)) + overhead
	}
	q.recent.MoveToFront(at)
	e := at.Value.(*queryEntry)
	for i, n := range [...]int64{figureKeys: x.keys, figureDocs: x.docs, figureBytes: 0, figureReadTime: 0,
		figureWorking: x.exec.Milliseconds(), figureTotal: x.exec.Microseconds(), figureFirst: x.first.Microseconds(),
		figureReturned: x.returned} {
		e.figures[i].add(n, e.count == 0)
	}
	for i, has := range x.traits {
		if has {
			e.traits[i][0]++
		} else {
			e.traits[i][1]++
		}
	}
	e.count++
	e.last, e.seen = x.exec.Microseconds(), now
	q.shrinkLocked()
}

// recordQuery records a query whose command left no cursor. reply is the reply's document, which is
// still open.
func (n *Node) recordQuery(r *Request, reply []byte, err error) {
	if !n.queryStats.on.Load() || err != nil || r.counted {
		return
	}
	x := r.newRun()
	if x == nil {
		return
	}
	doc := bson.Raw(bson.EndDocument(append([]byte(nil), reply...), 0))
	list := doc.Lookup("cursor", "firstBatch")
	if list.IsZero() {
		list = doc.Lookup("values") // of distinct
	}
	for range bson.Raw(list.Value).Values() {
		x.returned++
	}
	x.add(r)
	x.record()
}

// countOpened begins to count the query of a cursor that stays open.
func (r *Request) countOpened(c *Cursor) {
	if !r.Node.queryStats.on.Load() {
		return
	}
	r.counted = true
	if c.query = r.newRun(); c.query != nil {
		c.countCommand(r)
	}
}

// countCommand adds a command on the cursor to its query.
func (c *Cursor) countCommand(r *Request) {
	x := c.query
	x.add(r)
	if x.stream {
		all := c.docs.Load()
		x.returned = all - c.counted
		c.counted = all
		x.first = x.exec
		x.record()
		x.exec, x.keys, x.docs = 0, 0, 0
	}
}

// close ends the cursor, and with it its query.
func (c *Cursor) close() {
	c.Iterator.Close()
	x := c.query
	if x == nil {
		return
	}
	if x.returned = c.docs.Load(); x.stream {
		x.returned, x.first = 0, 0
	}
	x.record()
}

// statsKey returns what the statistics of a query are kept by.
func (r *Request) statsKey(shape bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		put := func(name string, v bson.RawValue) {
			if !v.IsZero() {
				d.B = bson.AppendRawValue(d.B, name, v)
			}
		}
		// typed puts the type of a value in its place.
		typed := func(name string, v bson.RawValue) {
			if !v.IsZero() {
				d.B = bson.AppendRawValue(d.B, name, query.LiteralShape(v))
			}
		}
		d.Doc("queryShape", shape)
		typed("comment", r.Body.Lookup("comment"))
		if doc, ok := r.readConcern.Document(); ok {
			d.Doc("readConcern", bsondoc.Build(func(d *bsondoc.Builder) {
				for k, v := range doc.All() {
					if k != "level" && k != "provenance" {
						v = query.LiteralShape(v)
					}
					d.B = bson.AppendRawValue(d.B, k, v)
				}
			}))
		}
		put("readPreference", r.readPreference)
		put("apiVersion", r.apiVersion)
		put("apiStrict", r.apiStrict)
		put("apiDeprecationErrors", r.apiDeprecation)
		if meta := r.Conn.client.metadata; meta != nil {
			d.Doc("client", meta)
		}
		d.Str("collectionType", r.collectionType())
		hint := r.Body.Lookup("hint")
		if doc, ok := hint.Document(); ok {
			d.Doc("hint", bsondoc.Build(func(d *bsondoc.Builder) {
				for k, v := range doc.All() {
					d.B = bson.AppendRawValue(d.B, k, query.LiteralShape(v))
				}
			}))
		} else {
			typed("hint", hint)
		}
		typed("batchSize", r.Body.Lookup("batchSize"))
		if size := r.Body.Lookup("cursor", "batchSize"); !size.IsZero() {
			d.Doc("cursor", bsondoc.Build(func(d *bsondoc.Builder) {
				d.B = bson.AppendRawValue(d.B, "batchSize", query.LiteralShape(size))
			}))
		}
		typed("maxTimeMS", r.maxTimeMS)
		typed("noCursorTimeout", r.Body.Lookup("noCursorTimeout"))
		put("allowPartialResults", r.Body.Lookup("allowPartialResults"))
	})
}

// collectionType says what kind of collection a query reads.
func (r *Request) collectionType() string {
	if r.ChangeStream {
		return "changeStream"
	}
	if r.Arg().Type != bson.TypeString {
		return "virtual"
	}
	ns := r.Namespace()
	c := r.Node.Store().Latest().Coll(ns)
	switch {
	case c == nil:
		if _, ok := r.Node.SystemDocuments(ns); !ok {
			return "nonExistent"
		}
	case c.TimeSeries:
		return "timeseries"
	case c.View:
		return "view"
	}
	return "collection"
}

// QueryStats returns the entries as $queryStats shows them, with their keys as show makes them.
func (n *Node) QueryStats(show func(key bson.Raw) bson.Raw) (docs []bson.Raw) {
	q := &n.queryStats
	now := n.data.Clock.Now()
	examined := n.cfg.Version.AtLeast(8, 0)
	q.mu.Lock()
	defer q.mu.Unlock()
	for at := q.recent.Front(); at != nil; at = at.Next() {
		e := at.Value.(*queryEntry)
		docs = append(docs, bsondoc.Build(func(d *bsondoc.Builder) {
			key := show(e.key)
			sum := sha256.Sum256(key)
			d.Doc("key", key).Str("keyHash", base64.StdEncoding.EncodeToString(sum[:]))
			if examined {
				d.Str("queryShapeHash", e.hash)
			}
			d.Doc("metrics", e.metrics(examined))
			d.B = bson.AppendTimestamp(d.B, "asOf", bson.Timestamp{T: uint32(now.Unix())})
		}))
	}
	return docs
}

// metrics returns what is known of the queries. Versions before 8.0 do not tell what they looked
// at. The manual shows what is true of some queries as a boolean, but clients of servers read how
// often it was true.
func (e *queryEntry) metrics(examined bool) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendInt64(d.B, "lastExecutionMicros", e.last)
		d.B = bson.AppendInt64(d.B, "execCount", e.count)
		for i, name := range queryFigures {
			if i == figureTotal && examined {
				for k, trait := range queryTraits {
					d.Doc(trait, bsondoc.Of("true", e.traits[k][0], "false", e.traits[k][1]))
				}
			}
			if i >= figureTotal || examined {
				d.B = e.figures[i].append(d.B, name)
			}
		}
		d.B = bson.AppendDateTime(d.B, "firstSeenTimestamp", bson.NewDateTime(e.first))
		d.B = bson.AppendDateTime(d.B, "latestSeenTimestamp", bson.NewDateTime(e.seen))
	})
}
