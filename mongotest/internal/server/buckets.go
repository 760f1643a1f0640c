package server

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/column"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/store"
	"allium/mongotest/internal/validation"
)

// The buckets of time series collections, as system.buckets.X and reads with rawData show them.
// They are made for each reader out of the measurements, in the order in which these came, by the
// server's rules. A bucket that is inserted or updated becomes the measurements that it holds. It
// is kept beside them as it was written, and shown like that until one of them changes.
//
// Buckets have three layouts: 1 has a document with the values of each field; 2 has compressed
// columns, in the order of time; 3 has them in the order in which the measurements came. From 5.2
// on buckets become compressed when they are closed, from 8.0 on they always are.

const bucketPrefix = "system.buckets."

// The server's bounds of a bucket.
const (
	maxBucketCount = 1000
	maxBucketBytes = 125 << 10
)

// catalog tells the collections of a state, or of a writer.
type catalog interface {
	Coll(ns string) *store.Coll
}

// BucketSource returns the time series collection whose buckets a namespace names, or nil.
func (r *Request) BucketSource(st catalog, ns string) *store.Coll {
	db, name := namespace.Split(ns)
	if of, ok := strings.CutPrefix(name, bucketPrefix); ok {
		if c := st.Coll(namespace.Join(db, of)); c != nil && c.TimeSeries && st.Coll(ns) == nil {
			return c
		}
		return nil
	}
	if r.rawData() {
		if c := st.Coll(ns); c != nil && c.TimeSeries {
			return c
		}
	}
	return nil
}

// rawData reports whether the command works on buckets. Versions without the argument have refused
// it before.
func (r *Request) rawData() bool { return r.Body.Lookup("rawData").AsBool() }

// NamesBuckets reports whether a collection's name is that of the buckets of a time series.
func NamesBuckets(coll string) bool { return strings.HasPrefix(coll, bucketPrefix) }

// ShowBuckets returns the state with the buckets of a namespace, if it names some.
func (r *Request) ShowBuckets(st *store.State, ns string) *store.State {
	source := r.BucketSource(st, ns)
	if source == nil {
		return st
	}
	uuid := source.UUID
	uuid[0] ^= 0xff
	return st.With(r.Buckets(source, ns).Coll)
}

// ListsBuckets reports whether listCollections shows the collections of buckets, as servers do
// whose time series collections are views.
func (r *Request) ListsBuckets() bool {
	return r.Node.cfg.Version.Has(release.Reply, "listCollections.system.buckets")
}

// DescribeBuckets is the entry of a collection of buckets in listCollections.
func DescribeBuckets(c *store.Coll, nameOnly bool) bson.Raw {
	return bsondoc.Build(func(b *bsondoc.Builder) {
		b.Str("name", bucketPrefix+c.Name)
		b.Str("type", "collection")
		if nameOnly {
			return
		}
		b.Doc("options", bucketOptions(c))
		b.Doc("info", bsondoc.Build(func(b *bsondoc.Builder) {
			b.Flag("readOnly", false)
			uuid := c.UUID
			uuid[0] ^= 0xff
			b.Value("uuid", bson.TypeBinary, bson.AppendBinaryValue(nil, bson.BinaryUUID, uuid[:]))
		}))
	})
}

// bucketOptions are the options of a collection of buckets: among others what buckets look like.
func bucketOptions(c *store.Coll) bson.Raw {
	timeField, _ := SeriesFields(c)
	object := func(more func(b *bsondoc.Builder)) bson.Raw {
		return bsondoc.Build(func(b *bsondoc.Builder) {
			b.Str("bsonType", "object")
			if more != nil {
				more(b)
			}
		})
	}
	typed := func(t string) bson.Raw { return bsondoc.Single("bsonType", bsondoc.StringValue(t)) }
	requires := func(names ...string) bson.RawValue {
		var list []bson.RawValue
		for _, n := range names {
			list = append(list, bsondoc.StringValue(n))
		}
		return bsondoc.ArrayValue(list...)
	}
	bound := object(func(b *bsondoc.Builder) {
		b.Value("required", bson.TypeArray, requires(timeField).Value)
		b.Doc("properties", bsondoc.Single(timeField, bsondoc.DocumentValue(typed("date"))))
	})
	schema := object(func(b *bsondoc.Builder) {
		b.Value("required", bson.TypeArray, requires("_id", "control", "data").Value)
		b.Doc("properties", bsondoc.Build(func(b *bsondoc.Builder) {
			b.Doc("_id", typed("objectId"))
			b.Doc("control", object(func(b *bsondoc.Builder) {
				b.Value("required", bson.TypeArray, requires("version", "min", "max").Value)
				b.Doc("properties", bsondoc.Build(func(b *bsondoc.Builder) {
					b.Doc("version", typed("number"))
					b.Doc("min", bound)
					b.Doc("max", bound)
					b.Doc("closed", typed("bool"))
					b.Doc("count", typed("number"))
				}))
			}))
			b.Doc("data", object(nil))
			b.Doc("meta", bsondoc.Build(func(*bsondoc.Builder) {}))
		}))
		b.Flag("additionalProperties", false)
	})
	return bsondoc.Build(func(b *bsondoc.Builder) {
		b.Doc("validator", bsondoc.Single("$jsonSchema", bsondoc.DocumentValue(schema)))
		b.Flag("clusteredIndex", true)
		for k, v := range c.Raw.All() {
			if k == "timeseries" || k == "expireAfterSeconds" || k == "collation" {
				b.Value(k, v.Type, v.Value)
			}
		}
	})
}

// bucket holds measurements of one meta value, near each other in time.
type bucket struct {
	meta     bson.RawValue
	first    string // record of the measurement that came first
	from     int64  // milliseconds: the earliest time that belongs to it, rounded
	rows     []measurement
	bytes    int
	min, max []bound
	full     bool
	over     bool       // a later one has taken its place
	raw      *rawBucket // nil: nobody has written it as a bucket
}

// measurement is one with its record.
type measurement struct {
	rid string
	doc bson.Raw
}

// rawBucket is what is kept beside the measurements of a bucket that was written as one.
type rawBucket struct {
	doc bson.Raw // as it was written
	sum uint64   // of the measurements that it had then
	// since is the last record of each shard then. Earlier measurements belong to other buckets.
	since map[byte]string
}

func (x *rawBucket) id() (id bson.ObjectID) {
	id, _ = x.doc.Lookup("_id").ObjectID()
	return id
}

func (x *rawBucket) closed() bool { return x.doc.Lookup("control", "closed").AsBool() }

// sumOf tells sets of measurements apart.
func sumOf(rows []measurement) (sum uint64) {
	for _, row := range rows {
		h := fnv.New64a()
		h.Write(row.doc)
		sum += h.Sum64()
	}
	return sum
}

// shardOfRecord returns the shard's number in front of a record id of a sharded collection.
func shardOfRecord(c *store.Coll, rid string) byte {
	if c.Sharded() {
		return rid[0]
	}
	return 0
}

// bound is the least or the greatest value of a field.
type bound struct {
	key string
	v   bson.RawValue
}

// bucketSpan returns how long a bucket is and what its beginning is rounded to, in milliseconds.
func bucketSpan(c *store.Coll) (span, rounding int64) {
	spec := bson.Raw(c.Raw.Lookup("timeseries").Value)
	seconds, _ := spec.Lookup("bucketMaxSpanSeconds").AsInt64()
	if n, ok := spec.Lookup("bucketRoundingSeconds").AsInt64(); ok {
		return seconds * 1000, n * 1000
	}
	rounding = 60
	switch g, _ := spec.Lookup("granularity").StringValue(); g {
	case "minutes":
		rounding = 3600
	case "hours":
		rounding = 86400
	}
	return seconds * 1000, rounding * 1000
}

// Buckets are those of a time series collection at one moment.
type Buckets struct {
	Coll *store.Coll // shows them
	list []*bucket
	at   map[bson.ObjectID]int
}

// Buckets returns the buckets of a time series collection, as a collection of this name.
func (r *Request) Buckets(source *store.Coll, ns string) *Buckets {
	timeField, _ := SeriesFields(source)
	list := r.fillBuckets(source)
	docs := make([]bson.Raw, len(list))
	for i, b := range list {
		if b.raw != nil && sumOf(b.rows) == b.raw.sum {
			docs[i] = b.raw.doc
		} else {
			docs[i] = b.document(source, r.layout(b, timeField), timeField)
		}
	}
	return newBuckets(source, ns, list, docs)
}

// HiddenBuckets is Buckets with an empty collection, for those who insert buckets.
func (r *Request) HiddenBuckets(source *store.Coll, ns string) *Buckets {
	return newBuckets(source, ns, r.fillBuckets(source), nil)
}

func newBuckets(source *store.Coll, ns string, list []*bucket, docs []bson.Raw) *Buckets {
	x := &Buckets{list: list, at: make(map[bson.ObjectID]int, len(list))}
	for i, b := range list {
		x.at[b.id(source)] = i
	}
	uuid := source.UUID
	uuid[0] ^= 0xff
	options := bucketOptions(source)
	schema := options.Lookup("validator")
	set := store.Settings{Raw: options, Clustered: true, Collation: source.Collation}
	set.Check = &validation.Validator{Spec: schema.Value, Level: "strict", Action: "error"}
	x.Coll = store.NewDerived(ns, uuid, set, docs)
	return x
}

// fillBuckets distributes the measurements of a collection over buckets.
func (r *Request) fillBuckets(c *store.Coll) []*bucket {
	timeField, metaField := SeriesFields(c)
	span, rounding := bucketSpan(c)
	reopens := r.Node.cfg.Version.AtLeast(6, 0)
	byMeta, written := map[string][]*bucket{}, map[*rawBucket]*bucket{}
	var all []*bucket
	var shard byte
	steps := r.Meter()
	for scan := store.NewScan(c, false, nil); ; {
		steps.Do(1)
		rid, doc, ok := scan.Next()
		if !ok {
			break
		}
		if s := shardOfRecord(c, rid); s != shard { // each has its own
			shard = s
			clear(byMeta)
			clear(written)
		}
		var meta bson.RawValue
		if metaField != "" {
			meta = doc.Lookup(metaField)
		}
		key := string(store.AppendKey(nil, meta, nil, false))
		at, _ := doc.Lookup(timeField).DateTime()
		t := int64(at)
		raw, _ := c.Tag(rid).(*rawBucket)
		b := written[raw]
		list := byMeta[key]
		for i := len(list) - 1; i >= 0 && b == nil && raw == nil; i-- {
			one := list[i]
			if one.raw != nil && rid <= one.raw.since[shard] {
				continue // it was there before, in another bucket
			}
			if !one.full && t >= one.from && t < one.from+span && one.takes(doc, timeField, metaField) {
				b = one
			} else if !reopens {
				break // only the last one is open
			}
		}
		if b == nil {
			from := t - (t%rounding+rounding)%rounding
			if raw != nil {
				from = int64(raw.id().Timestamp().Unix()) * 1000
				if low, ok := raw.doc.Lookup("control", "min", timeField).DateTime(); ok {
					from = int64(low)
				}
			}
			b = &bucket{meta: meta, first: rid, from: from, raw: raw}
			if len(list) > 0 {
				list[len(list)-1].over = true
			}
			byMeta[key], all = append(list, b), append(all, b)
			if raw != nil {
				written[raw] = b
			}
		}
		b.add(rid, doc, timeField, metaField)
	}
	return all
}

// takes reports whether the types of a measurement's fields match those in the bucket. Values of
// different types have no common bounds.
func (b *bucket) takes(doc bson.Raw, timeField, metaField string) bool {
	for k, v := range doc.All() {
		if k == timeField || k == metaField {
			continue
		}
		for _, m := range b.min {
			if m.key == k && !sameKind(m.v, v) {
				return false
			}
		}
	}
	return true
}

func sameKind(a, b bson.RawValue) bool {
	return a.Type == b.Type || a.IsNumber() && b.IsNumber()
}

func (b *bucket) add(rid string, doc bson.Raw, timeField, metaField string) {
	b.rows = append(b.rows, measurement{rid, doc})
	b.bytes += len(doc)
	b.full = len(b.rows) >= maxBucketCount || b.bytes >= maxBucketBytes || b.raw != nil && b.raw.closed()
	for k, v := range doc.All() {
		if k == metaField && metaField != "" {
			continue
		}
		low := v
		if k == timeField {
			low = bson.RawValue{Type: bson.TypeDateTime, Value: binary.LittleEndian.AppendUint64(nil, uint64(b.from))}
		}
		b.min = extend(b.min, k, low, -1)
		b.max = extend(b.max, k, v, 1)
	}
}

// extend moves the bound of a field, sign -1 for the least value and 1 for the greatest.
func extend(list []bound, key string, v bson.RawValue, sign int) []bound {
	for i := range list {
		if list[i].key == key {
			list[i].v = extreme(list[i].v, v, sign)
			return list
		}
	}
	return append(list, bound{key, v})
}

// extreme is the lesser or greater of two values; documents and arrays are looked at element by
// element.
func extreme(a, b bson.RawValue, sign int) bson.RawValue {
	if a.Type != b.Type || a.Type != bson.TypeEmbeddedDocument && a.Type != bson.TypeArray {
		if query.Compare(a, b, nil)*sign >= 0 {
			return a
		}
		return b
	}
	var list []bound
	for _, doc := range []bson.Raw{a.Value, b.Value} {
		for k, v := range doc.All() {
			list = extend(list, k, v, sign)
		}
	}
	return bson.RawValue{Type: a.Type, Value: boundsOf(list)}
}

func boundsOf(list []bound) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for _, x := range list {
			d.Value(x.key, x.v.Type, x.v.Value)
		}
	})
}

// id returns a bucket's _id, which begins with the bucket's start in seconds. The rest stays the
// same for as long as the measurement that came first does.
func (b *bucket) id(c *store.Coll) bson.ObjectID {
	if b.raw != nil {
		return b.raw.id()
	}
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[:], uint32(b.from/1000))
	h := fnv.New64a()
	h.Write(c.UUID[:])
	h.Write([]byte(b.first))
	h.Sum(id[:4])
	return id
}

// layout returns the layout that a bucket has at the node's version, and puts its measurements in
// order if it is the one in the order of time.
func (r *Request) layout(b *bucket, timeField string) int32 {
	v := r.Node.cfg.Version
	if !v.AtLeast(5, 2) || !v.AtLeast(8, 0) && !b.full && !b.over {
		return 1
	}
	byTime := func(x, y measurement) int {
		tx, _ := x.doc.Lookup(timeField).DateTime()
		ty, _ := y.doc.Lookup(timeField).DateTime()
		return cmp.Compare(tx, ty)
	}
	switch sorted := slices.IsSortedFunc(b.rows, byTime); {
	case sorted:
	case v.AtLeast(8, 0):
		return 3
	default:
		slices.SortStableFunc(b.rows, byTime)
	}
	return 2
}

func (b *bucket) document(c *store.Coll, layout int32, timeField string) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		id := b.id(c)
		d.Value("_id", bson.TypeObjectID, id[:])
		d.Doc("control", bsondoc.Build(func(d *bsondoc.Builder) {
			d.Value("version", bson.TypeInt32, bson.AppendInt32Value(nil, layout))
			d.Doc("min", boundsOf(b.min))
			d.Doc("max", boundsOf(b.max))
			if layout > 1 {
				d.Value("count", bson.TypeInt32, bson.AppendInt32Value(nil, int32(len(b.rows))))
			}
			if b.raw != nil && b.raw.closed() {
				d.Flag("closed", true)
			}
		}))
		if b.meta.Type != 0 {
			d.Value("meta", b.meta.Type, b.meta.Value)
		}
		d.Doc("data", bsondoc.Build(func(d *bsondoc.Builder) {
			values := make([]bson.RawValue, len(b.rows))
			for _, field := range b.min {
				for i, row := range b.rows {
					values[i] = row.doc.Lookup(field.key)
				}
				if layout > 1 {
					d.Value(field.key, bson.TypeBinary, bson.AppendBinaryValue(nil, bson.BinaryColumn, column.Encode(values)))
					continue
				}
				d.Doc(field.key, bsondoc.Build(func(d *bsondoc.Builder) {
					for i, v := range values {
						if v.Type != 0 {
							d.Value(strconv.Itoa(i), v.Type, v.Value)
						}
					}
				}))
			}
		}))
	})
}
