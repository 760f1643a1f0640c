package cluster

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/work"
)

// analyzeShardKey: what a shard key would do with the documents of a collection, and with the
// queries that were sampled.

// analyzeSpec are the arguments of analyzeShardKey.
type analyzeSpec struct {
	key             bson.RawValue
	rate            bson.RawValue // sampleRate
	size            int64         // sampleSize
	hasSize         bool
	characteristics bool // keyCharacteristics
	distribution    bool // readWriteDistribution
}

var analyzeArgs = &args.Table[analyzeSpec]{Name: "analyzeShardKey", Required: []string{"key"},
	Value: args.String[analyzeSpec](nil), Fields: map[string]args.Field[analyzeSpec]{
		"key":                   args.Any(func(q *analyzeSpec) *bson.RawValue { return &q.key }),
		"keyCharacteristics":    args.SafeBool(func(q *analyzeSpec) *bool { return &q.characteristics }),
		"readWriteDistribution": args.SafeBool(func(q *analyzeSpec) *bool { return &q.distribution }),
		"sampleRate": args.Any(func(q *analyzeSpec) *bson.RawValue { return &q.rate }).Then(func(_ *analyzeSpec,
			v args.Value) error {
			if !v.IsNumber() {
				return args.WrongNumber(v.From.Version(), "analyzeShardKey", v.Name, v.RawValue)
			}
			if f := asDouble(v.RawValue); !(f > 0 && f <= 1) {
				return srverr.New(srverr.BadValue,
					"BSON field '%s' value must be > 0 and <= 1, actual value '%v'", v.Name, f)
			}
			return nil
		}),
		"sampleSize": args.Number(func(q *analyzeSpec) *int64 {
			return &q.size
		}).AtLeast(1).Note(func(q *analyzeSpec) *bool { return &q.hasSize }),
	}}

func runAnalyzeShardKey(r *server.Request, dst []byte) ([]byte, error) {
	q := analyzeSpec{characteristics: true, distribution: true}
	if err := analyzeArgs.ParseCommand(r, &q); err != nil {
		return dst, err
	}
	key, err := keyArg(analyzeArgs.Name, q.key)
	if err != nil {
		return dst, err
	}
	if err := checkShardKey(key, false); err != nil {
		return dst, err
	}
	switch {
	case !q.characteristics && !q.distribution:
		return dst, srverr.New(srverr.InvalidOptions,
			"Cannot set both 'keyCharacteristics' and 'readWriteDistribution' to false")
	case !q.rate.IsZero() && q.hasSize:
		return dst, srverr.New(srverr.InvalidOptions, "Cannot set both 'sampleRate' and 'sampleSize'")
	}
	c, err := analyzed(r)
	if err != nil {
		return dst, err
	}
	a := &analysis{r: r, c: c, meta: sharding.New(key, false, false, 0, 1, 0), steps: r.Meter()}
	a.read()
	if q.characteristics {
		if dst, err = a.characteristics(dst, &q); err != nil {
			return dst, err
		}
	}
	if q.distribution {
		return a.distribution(dst)
	}
	return dst, nil
}

// analysis is what is found out about a key.
type analysis struct {
	r     *server.Request
	c     *store.Coll
	meta  *sharding.Metadata // of the key, as if the collection had been sharded by it
	steps *work.Meter
	docs  []keyed // by key, and by record where keys are equal, as in an index
	bytes int64
	total int64
	own   int64 // documents that are no orphans
}

// keyed is a document's place by a key, and in the collection.
type keyed struct {
	key    []bson.RawValue
	plain  bson.Raw // the key, with what is hashed as it is
	record int
}

// read reads the keys of the documents. Those with an array at the key can have no place.
func (a *analysis) read() {
	have := sharding.Of(a.c)
	part := func(c *store.Coll, shard int) {
		for scan := store.NewScan(c, false, nil); ; {
			a.steps.Do(1)
			_, doc, ok := scan.Next()
			if !ok {
				return
			}
			a.total, a.bytes = a.total+1, a.bytes+int64(len(doc))
			if have == nil || have.ShardOf(doc) == shard {
				a.own++
			}
			if key, err := a.meta.KeyOf(doc); err == nil {
				a.docs = append(a.docs, keyed{key, a.plain(doc), len(a.docs)})
			}
		}
	}
	if have == nil {
		part(a.c, 0)
	} else {
		for i := range a.r.Node.Data().Shards() {
			if c := a.c.Part(i); c != nil {
				part(c, i)
			}
		}
	}
	slices.SortStableFunc(a.docs, work.Counting(a.steps, func(x, y keyed) int {
		return sharding.CompareKeys(x.key, y.key)
	}))
}

// plain returns a document's key with its own values.
func (a *analysis) plain(doc bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for _, path := range a.meta.Paths() {
			v := doc.Lookup(strings.Split(path, ".")...)
			if v.Type == 0 {
				v = bson.RawValue{Type: bson.TypeNull}
			}
			d.B = bson.AppendRawValue(d.B, path, v)
		}
	})
}

// supports reports whether an index can tell the characteristics of a key: it begins with the key's
// fields, each of which may be hashed.
func supports(key bson.Raw, x *store.Index) bool {
	if x.Partial != nil || x.Sparse || x.Collation != nil || x.Wild != nil || x.Multikey {
		return false
	}
	var fields []string
	for k, v := range x.Pattern.All() {
		n, ok := args.NumberOf(v)
		s, _ := v.StringValue()
		if !(ok && n == 1 || s == "hashed") {
			break
		}
		fields = append(fields, k)
	}
	i := 0
	for k := range key.All() {
		if i >= len(fields) || fields[i] != k {
			return false
		}
		i++
	}
	return true
}

// characteristics appends what the documents tell of the key: nothing, if no index has it.
func (a *analysis) characteristics(dst []byte, q *analyzeSpec) ([]byte, error) {
	has := slices.ContainsFunc(a.c.Indexes(), func(x store.Index) bool { return supports(a.meta.Key, &x) })
	clustered := a.c.Clustered && len(a.meta.Fields) == 1 && a.meta.Fields[0].Path == "_id"
	switch {
	case !has && !clustered && !q.distribution:
		return dst, srverr.New(srverr.IllegalOperation,
			"Cannot analyze the characteristics of a shard key that does not have a supporting index")
	case !has && !clustered:
		return dst, nil
	case a.total == 0:
		return dst, srverr.New(srverr.IllegalOperation,
			"Cannot analyze the characteristics of a shard key for an empty collection")
	}
	unique := slices.ContainsFunc(a.c.Indexes(), func(x store.Index) bool {
		return (x.Unique || x.IsID) && sameFields(a.meta.Key, x.Pattern)
	}) || clustered
	docs := a.sampled(q)
	type value struct {
		doc bson.Raw
		n   int64
	}
	var values []value
	for i, d := range docs {
		if i == 0 || sharding.CompareKeys(docs[i-1].key, d.key) != 0 {
			values = append(values, value{doc: d.plain})
		}
		values[len(values)-1].n++
	}
	at, d := bson.BeginDocumentElement(dst, "keyCharacteristics")
	d = bson.AppendInt64(d, "numDocsTotal", a.total)
	if a.c.Sharded() {
		d = bson.AppendInt64(d, "numOrphanDocs", a.total-a.own)
	}
	d = bsondoc.Append(d, "avgDocSizeBytes", a.bytes/a.total, "numDocsSampled", int64(len(docs)), "isUnique", unique,
		"numDistinctValues", int64(len(values)))
	slices.SortStableFunc(values, func(x, y value) int { return cmp.Compare(y.n, x.n) })
	most := int(a.r.Node.IntParameter(server.CommonValues))
	var common [][]byte
	for _, v := range values[:min(most, len(values))] {
		common = append(common, bsondoc.Build(func(d *bsondoc.Builder) {
			if len(v.doc) > 15<<20/most {
				d.Str("value", "truncated")
			} else {
				d.Doc("value", v.doc)
			}
			d.B = bson.AppendInt64(d.B, "frequency", v.n)
		}))
	}
	d = bsondoc.AppendDocuments(d, "mostCommonValues", common)
	d = bson.AppendDocument(d, "monotonicity", a.monotonicity(len(values)))
	return bson.EndDocument(d, at), nil
}

// sameFields reports whether an index has exactly the fields of a key.
func sameFields(key, pattern bson.Raw) bool {
	names := func(doc bson.Raw) (list []string) {
		for k := range doc.All() {
			list = append(list, k)
		}
		return list
	}
	return slices.Equal(names(key), names(pattern))
}

// sampled returns as many documents as are to be looked at, spread evenly.
func (a *analysis) sampled(q *analyzeSpec) []keyed {
	n := a.r.Node.IntParameter(server.CharacteristicSize)
	switch {
	case q.hasSize:
		n = q.size
	case !q.rate.IsZero():
		n = int64(math.Ceil(asDouble(q.rate) * float64(a.total)))
	}
	all := int64(len(a.docs))
	if n >= all {
		return a.docs
	}
	docs := make([]keyed, n)
	for i := range docs {
		docs[i] = a.docs[int64(i)*all/n]
	}
	return docs
}

// monotonicity tells whether documents came in the order of their keys: how well the places of the
// documents by key and in the collection go together.
func (a *analysis) monotonicity(distinct int) bson.Raw {
	if hashed, first := a.meta.Hashed(); a.c.Clustered || hashed && !first {
		return bsondoc.Of("type", "unknown")
	}
	coefficient := 0.0
	if n := float64(len(a.docs)); distinct > 1 {
		mean := (n - 1) / 2
		var both, squares float64
		for i, d := range a.docs {
			x, y := float64(i)-mean, float64(d.record)-mean
			both, squares = both+x*y, squares+x*x
		}
		coefficient = both / squares // both are the numbers from 0 to n-1
	}
	kind := "not monotonic"
	threshold, _ := a.r.Node.Parameter(server.MonotonicThreshold)
	if distinct > 1 && math.Abs(coefficient) >= asDouble(threshold) {
		kind = "monotonic"
	}
	return bsondoc.Of("recordIdCorrelationCoefficient", coefficient, "type", kind)
}

// spread sums up where queries of one kind would go.
type spread struct {
	commands []string // in the order of the reply
	count    map[string]int64
	total    int64
	reach    [3]int64
	ranges   []int64
}

// add adds a query.
func (s *spread) add(name string, meta *sharding.Metadata, f *query.Filter) {
	simple := f.SimpleCollation()
	s.total++
	s.count[name]++
	s.reach[meta.Reach(f, simple)]++
	for _, i := range meta.Target(f, simple) {
		s.ranges[i]++
	}
}

// percent returns a part of all queries.
func (s *spread) percent(n int64) float64 {
	if s.total == 0 {
		return 0
	}
	return 100 * float64(n) / float64(s.total)
}

// append appends what the queries of a kind have in common.
func (s *spread) append(d []byte, kind string) []byte {
	d = bson.AppendDocument(d, "sampleSize", bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendInt64(d.B, "total", s.total)
		for _, name := range s.commands {
			d.B = bson.AppendInt64(d.B, name, s.count[name])
		}
	}))
	for i, reach := range []string{"SingleShard", "MultiShard", "ScatterGather"} {
		d = bson.AppendDouble(d, "percentageOf"+reach+kind, s.percent(s.reach[i]))
	}
	at, d := bson.BeginArrayElement(d, "num"+kind+"ByRange")
	for i, n := range s.ranges {
		d = bson.AppendInt64Value(bson.AppendIndexHeader(d, bson.TypeInt64, i), n)
	}
	return bson.EndDocument(d, at)
}

// distribution appends how the sampled queries would be spread.
func (a *analysis) distribution(dst []byte) ([]byte, error) {
	meta := a.meta.Divided(a.ranges())
	newSpread := func(commands ...string) *spread {
		return &spread{commands: commands, count: map[string]int64{}, ranges: make([]int64, len(meta.Chunks))}
	}
	reads := newSpread("find", "aggregate", "count", "distinct")
	writes := newSpread("update", "delete", "findAndModify")
	var moves, single, multi int64
	data := a.r.Node.Data()
	for _, x := range data.Sampler().List(a.c.NS, data.Clock.Now()) {
		if x.UUID != a.c.UUID {
			continue
		}
		a.steps.Do(1)
		w := sampledQuery(&x)
		f, err := a.filter(&w)
		if err != nil {
			continue // it could not be read any more
		}
		if slices.Contains(reads.commands, x.Command) {
			reads.add(x.Command, meta, f)
			continue
		}
		writes.add(x.Command, meta, f)
		if _, exact := meta.KeyIn(f); !exact && w.multi {
			multi++
		} else if !exact {
			single++
		}
		if a.changesKey(&w, f) {
			moves++
		}
	}
	at, d := bson.BeginDocumentElement(dst, "readDistribution")
	dst = bson.EndDocument(reads.append(d, "Reads"), at)
	at, d = bson.BeginDocumentElement(dst, "writeDistribution")
	d = writes.append(d, "Writes")
	d = bsondoc.Append(d, "percentageOfShardKeyUpdates", writes.percent(moves),
		"percentageOfSingleWritesWithoutShardKey", writes.percent(single),
		"percentageOfMultiWritesWithoutShardKey", writes.percent(multi))
	return bson.EndDocument(d, at), nil
}

// ranges returns the keys that divide the documents into about as many parts of a size as there are
// to be ranges.
func (a *analysis) ranges() (at [][]bson.RawValue) {
	n := int(a.r.Node.IntParameter(server.KeyRanges))
	for i := 1; i < n; i++ {
		key := a.meta.Pad(nil, sharding.MinKey)
		if len(a.docs) > 0 {
			key = a.docs[i*len(a.docs)/n].key
		}
		last := a.meta.Pad(nil, sharding.MinKey)
		if len(at) > 0 {
			last = at[len(at)-1]
		}
		if sharding.CompareKeys(last, key) < 0 {
			at = append(at, key)
		}
	}
	return at
}

// sampledParts are what decides where a query goes, and what it does there.
type sampledParts struct {
	filter, collation, let bson.Raw
	update                 bson.RawValue
	multi                  bool
}

// sampledQuery takes a sample apart.
func sampledQuery(x *server.Sample) (p sampledParts) {
	doc := func(from bson.Raw, path ...string) bson.Raw {
		d, _ := from.Lookup(path...).Document()
		return d
	}
	p.let = doc(x.Cmd, "let")
	switch x.Command {
	case "update":
		s := doc(x.Cmd, "updates", "0")
		p.filter, p.collation = doc(s, "q"), doc(s, "collation")
		p.update, p.multi = s.Lookup("u"), s.Lookup("multi").AsBool()
	case "delete":
		s := doc(x.Cmd, "deletes", "0")
		limit, _ := args.NumberOf(s.Lookup("limit"))
		p.filter, p.collation, p.multi = doc(s, "q"), doc(s, "collation"), limit == 0
	case "findAndModify":
		p.filter, p.collation, p.update = doc(x.Cmd, "query"), doc(x.Cmd, "collation"), x.Cmd.Lookup("update")
	default:
		p.filter, p.collation = doc(x.Cmd, "filter"), doc(x.Cmd, "collation")
	}
	return p
}

// filter parses the filter of a sample.
func (a *analysis) filter(p *sampledParts) (*query.Filter, error) {
	collation := a.c.Collation
	if len(p.collation) > 5 {
		var err error
		if collation, err = query.ParseCollation(a.r.Version(), p.collation); err != nil {
			return nil, err
		}
	}
	return query.ParseFilter(bsondoc.OrEmpty(p.filter), a.r.FullOptions(a.c.NS, collation, p.let))
}

// changesKey reports whether an update gives documents another key: it replaces them, or changes a
// field of the key, or what that lies in. To set what the filter asks for changes nothing.
func (a *analysis) changesKey(p *sampledParts, f *query.Filter) bool {
	stages := []bson.RawValue{p.update}
	if p.update.Type == bson.TypeArray {
		stages = bsondoc.Items(p.update)
	}
	for _, s := range stages {
		doc, _ := s.Document()
		if first, _ := bsondoc.FirstElement(doc); first != "" && !strings.HasPrefix(first, "$") {
			return slices.ContainsFunc(a.meta.Paths(), func(path string) bool {
				return a.sets(f, path, path, doc.Lookup(strings.Split(path, ".")...))
			})
		}
		for name, v := range doc.All() {
			for _, path := range a.meta.Paths() {
				if a.touches(f, path, name, v) {
					return true
				}
			}
		}
	}
	return false
}

// touches reports whether a modifier, or a stage, changes a field of the key.
func (a *analysis) touches(f *query.Filter, path, name string, v bson.RawValue) bool {
	switch fields, isDoc := v.Document(); {
	case name == "$setOnInsert":
	case name == "$unset" && !isDoc: // a stage
		list := []bson.RawValue{v}
		if v.Type == bson.TypeArray {
			list = bsondoc.Items(v)
		}
		for _, item := range list {
			if field, ok := item.StringValue(); ok && overlap(field, path) {
				return true
			}
		}
	case name == "$replaceWith" || name == "$replaceRoot":
		return true
	default:
		for field, v := range fields.All() {
			to, _ := v.StringValue()
			switch {
			case name == "$set" && a.sets(f, path, field, v), name != "$set" && overlap(field, path),
				name == "$rename" && overlap(to, path):
				return true
			}
		}
	}
	return false
}

// sets reports whether setting a field changes one of the key.
func (a *analysis) sets(f *query.Filter, path, field string, v bson.RawValue) bool {
	was, exact := f.Exact([]string{path})
	return overlap(field, path) && !(exact && field == path && query.Compare(was[0], v, nil) == 0)
}

// overlap reports whether one of two paths is the other, or lies in it.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}
