package read

import (
	"math"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "count", Timeless: true,
		Help: "count objects in collection", Needs: server.OnColl("find"), API: server.V1,
		DataLake: true, Where: server.OptIn,
		Sequences: true, ReadConcern: true, Mongos: server.OnMongos{Reply: countOfShards}, Shape: countShape,
		Unsettable: true, Run: runCount, DefaultMaxTime: server.Always,
	})
}

// countSpec are the arguments of count.
type countSpec struct {
	ns                string
	uuid              []byte // collectionUUID; nil: any
	filter, collation bson.Raw
	hint              bson.RawValue
	limit, skip       int64
	zeroLimit         bool // the limit is given, and 0
}

func (q *countSpec) parse(r *server.Request) (err error) {
	if q.ns, err = r.Readable(srverr.InvalidNamespace); err != nil {
		return err
	}
	if err := countArgs.ParseCommand(r, q); err != nil {
		return err
	}
	r.Expect(q.ns, q.uuid)
	return nil
}

var countArgs = &args.Table[countSpec]{Name: "count", Fields: map[string]args.Field[countSpec]{
	"query":     args.Object(func(q *countSpec) *bson.Raw { return &q.filter }),
	"collation": args.Object(func(q *countSpec) *bson.Raw { return &q.collation }),
	"hint":      args.Hint(func(q *countSpec) *bson.RawValue { return &q.hint }),
	"limit": countField(func(q *countSpec, v args.Value) (err error) {
		if q.limit, err = countNumber(v.Name, v.RawValue); err == nil && q.limit == math.MinInt64 {
			err = srverr.New(srverr.BadValue, "limit value for count cannot be min long")
		}
		q.limit = max(q.limit, -q.limit)
		q.zeroLimit = q.limit == 0
		return err
	}),
	"skip": countField(func(q *countSpec, v args.Value) (err error) {
		if v.From.Version().AllParsed() {
			if q.skip = v.Long(); !v.IsNumber() {
				return args.WrongNumber(v.From.Version(), "count", v.Name, v.RawValue)
			} else if q.skip < 0 {
				return args.TooSmall(v.From.Version(), v.Name, 0, q.skip)
			}
			return nil
		}
		if q.skip, err = countNumber(v.Name, v.RawValue); err == nil && q.skip < 0 {
			err = srverr.New(srverr.FailedToParse, "Expected a positive number in: %s",
				bsontext.Element(v.Name, v.RawValue))
		}
		return err
	}),
	"fields": {}, "queryOptions": args.Object[countSpec](nil), "comment": args.String[countSpec](nil).Gated(),
	"maxTimeMS":                args.Any[countSpec](nil).Gated(),
	"encryptionInformation":    args.Object[countSpec](nil).Gated(),
	"collectionUUID":           args.UUID("count", func(q *countSpec) *[]byte { return &q.uuid }).Gated(),
	"includeQueryStatsMetrics": args.SafeBool[countSpec](nil).Gated(),
}}

// countField takes a number. Since version 5.0 null is none.
func countField(set func(q *countSpec, v args.Value) error) args.Field[countSpec] {
	return args.Any[countSpec](nil).Then(func(q *countSpec, v args.Value) error {
		if args.IsNull(v.RawValue) && v.From.Version().AtLeast(5, 0) &&
			!(v.Name == "limit" && v.From.Version().AllParsed()) {
			return nil
		}
		return set(q, v)
	})
}

// countFailed is an error of a shard's count.
func countFailed(r *server.Request, err error) error {
	return r.Routing.FromShard(err, "failed on: "+server.ShardName(r.Routing.FirstShard()))
}

func runCount(r *server.Request, dst []byte) ([]byte, error) {
	var q countSpec
	if err := q.parse(r); err != nil {
		return dst, err
	}
	ns, filter, collation, hint, limit, skip := q.ns, q.filter, q.collation, q.hint, q.limit, q.skip
	st, err := r.Snapshot(ns)
	if err != nil {
		return dst, err
	}
	c := st.Coll(ns)
	if c != nil && c.View {
		if q.zeroLimit && r.Version().AllParsed() { // which the $limit that it becomes may not be
			return dst, srverr.New(15958, "the limit must be positive")
		}
		return countView(r, dst, ns, filter, collation, hint, skip, limit)
	}
	// A mongos reads the query only to find the shards of a sharded collection.
	parsed := func(err error) error {
		if c != nil && c.Sharded() {
			return err
		}
		return countFailed(r, err)
	}
	coll, err := r.CollationOf(collation, c)
	if err != nil {
		return dst, parsed(err)
	}
	op := server.Selection{Q: bsondoc.OrEmpty(filter), Collation: collation, Hint: hint, Coll: coll}
	if err := op.Parse(r, ns, c); err != nil {
		return dst, parsed(err)
	}
	route, err := r.Route(c, ns)
	if err != nil {
		return dst, err
	}
	var n int64
	count := func(_ string, doc bson.Raw, _ int) (bool, error) {
		if route.Table != nil {
			addCount(r, route.Table.ShardOf(doc), 1)
		}
		if skip > 0 {
			skip--
			return true, nil
		}
		n++
		return limit == 0 || n < limit, nil
	}
	switch {
	case c == nil:
		docs, _ := r.Node.SystemDocuments(ns)
		for _, doc := range docs {
			ok, err := op.Filter.Match(doc)
			if err != nil {
				return dst, err
			}
			if !ok {
				continue
			}
			if more, _ := count("", doc, 0); !more {
				break
			}
		}
	case op.Filter.MatchesAll() && hint.Type == 0 && route.Table == nil:
		r.Quick("RECORD_STORE_FAST_COUNT", 0, 0)
		n = max(c.Count()-skip, 0)
		if limit > 0 {
			n = min(n, limit)
		}
	case op.Filter.MatchesAll() && hint.Type == 0 && skip == 0 && limit == 0:
		// Every shard knows how many documents it has, without looking which ones belong to it.
		shards := route.Table.Shards()
		if err := route.Reach(shards...); err != nil {
			return dst, countFailed(r, err)
		}
		for _, i := range shards {
			addCount(r, i, 0)
			if part := c.Part(i); part != nil {
				addCount(r, i, int(part.Count()))
				n += part.Count()
			}
		}
	default:
		sh := route.Table
		if sh != nil {
			shards := sh.Target(op.Filter, op.Coll == nil)
			r.Routing.Targeted(shards)
			for _, i := range shards {
				addCount(r, i, 0)
			}
		}
		op.Counts = !op.Filter.MatchesAll()
		if err := op.Candidates(r, c, count); err != nil {
			return dst, countFailed(r, err)
		}
	}
	if x := r.Routing; x != nil && c != nil && x.ShardCounts == nil {
		addCount(r, x.FirstShard(), int(n))
	}
	return appendCount(dst, n), nil
}

// addCount notes on a mongos how many documents a shard counts.
func addCount(r *server.Request, shard, n int) {
	x := r.Routing
	if x == nil {
		return
	}
	if x.ShardCounts == nil {
		x.ShardCounts = map[int]int{}
	}
	x.ShardCounts[shard] += n
}

// countOfShards adds what each shard has counted.
func countOfShards(r *server.Request, reply bson.Raw, dst []byte) []byte {
	at, dst := bson.BeginDocumentElement(dst, "shards")
	for i := range r.Node.Data().Shards() {
		if n, ok := r.Routing.ShardCounts[i]; ok {
			dst = bson.AppendInt32(dst, server.ShardName(i), int32(n))
		}
	}
	return append(bson.EndDocument(dst, at), reply.Elements()...)
}

func appendCount(dst []byte, n int64) []byte {
	if n > math.MaxInt32 {
		return bson.AppendInt64(dst, "n", n)
	}
	return bson.AppendInt32(dst, "n", int32(n))
}

// countNumber reads limit or skip, which must be whole numbers.
func countNumber(k string, v bson.RawValue) (int64, error) {
	if !v.IsNumber() {
		return 0, srverr.New(srverr.BadValue, "%s value is not a valid number", k)
	}
	return args.ExactLong(k, v)
}

// countView counts the documents of a view.
func countView(r *server.Request, dst []byte, ns string, filter, collation bson.Raw, hint bson.RawValue, skip,
	limit int64) ([]byte, error) {
	q := aggregateSpec{ns: ns, batchSize: -1, hint: hint, collation: collation}
	if filter != nil {
		q.stages = append(q.stages,
			bsondoc.Single("$match", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: filter}))
	}
	if skip > 0 {
		q.stages = append(q.stages, bsondoc.Single("$skip", bsondoc.Int64Value(skip)))
	}
	if limit > 0 {
		q.stages = append(q.stages, bsondoc.Single("$limit", bsondoc.Int64Value(limit)))
	}
	n, err := countResults(r, &q)
	if err != nil {
		return dst, err
	}
	r.IntegerOK = !r.Version().AllParsed()
	return appendCount(dst, n), nil
}

func countResults(r *server.Request, q *aggregateSpec) (n int64, err error) {
	err = eachResult(r, q, func(bson.Raw) error {
		n++
		return nil
	})
	return n, err
}

// eachResult runs a pipeline and calls f with every result.
func eachResult(r *server.Request, q *aggregateSpec, f func(bson.Raw) error) error {
	it, _, err := openAggregate(r, q)
	if err != nil {
		return err
	}
	defer it.Close()
	return drain(it, f)
}

func drain(it pipeline.Iterator, f func(bson.Raw) error) error {
	for {
		doc, err := it.Next()
		if err != nil || doc == nil {
			return err
		}
		if err := f(doc); err != nil {
			return err
		}
	}
}
