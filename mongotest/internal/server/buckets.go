package server

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// The buckets of time series collections, as system.buckets.X and reads with rawData show them: in
// the first version of their layout, which is not compressed. They are made for each reader out of
// the measurements, in the order in which these came, by the server's rules. A bucket that is
// inserted becomes the measurements that it holds.

const bucketPrefix = "system.buckets."

// The server's bounds of a bucket.
const (
	maxBucketCount = 1000
	maxBucketBytes = 125 << 10
)

// BucketSource returns the time series collection whose buckets a namespace names, or nil.
func (r *Request) BucketSource(st *store.State, ns string) *store.Coll {
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
	return st.With(store.NewDerived(ns, uuid, store.Settings{Raw: bucketOptions(source), Clustered: true, Collation: source.Collation}, r.buckets(source)))
}

// CheckBucketWrite refuses to change buckets: there are measurements only.
func (r *Request) CheckBucketWrite(st *store.State, ns string) error {
	if c := r.BucketSource(st, ns); c != nil {
		return srverr.New(srverr.CommandNotSupported, "mongotest cannot update or delete the buckets of %s: change its measurements", c.NS)
	}
	return nil
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
	from     int64 // milliseconds: the earliest time that belongs to it, rounded
	rows     []bson.Raw
	bytes    int
	min, max []bound
	number   int // among all
	full     bool
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

// buckets returns the documents of a time series collection's buckets.
func (r *Request) buckets(c *store.Coll) []bson.Raw {
	timeField, metaField := SeriesFields(c)
	span, rounding := bucketSpan(c)
	reopens := r.Node.cfg.Version.AtLeast(6, 0)
	byMeta := map[string][]*bucket{}
	var all []*bucket
	for scan := store.NewScan(c, false, nil); ; {
		_, doc, ok := scan.Next()
		if !ok {
			break
		}
		var meta bson.RawValue
		if metaField != "" {
			meta = doc.Lookup(metaField)
		}
		key := string(store.AppendKey(nil, meta, nil, false))
		at, _ := doc.Lookup(timeField).DateTime()
		t := int64(at)
		var b *bucket
		list := byMeta[key]
		for i := len(list) - 1; i >= 0 && b == nil; i-- {
			if one := list[i]; !one.full && t >= one.from && t < one.from+span && one.takes(doc, timeField, metaField) {
				b = one
			} else if !reopens {
				break // only the last one is open
			}
		}
		if b == nil {
			from := t - (t%rounding+rounding)%rounding
			b = &bucket{meta: meta, from: from, number: len(all)}
			byMeta[key], all = append(list, b), append(all, b)
		}
		b.add(doc, timeField, metaField)
	}
	docs := make([]bson.Raw, 0, len(all))
	for _, b := range all {
		docs = append(docs, b.document(c, timeField, metaField))
	}
	return docs
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

func (b *bucket) add(doc bson.Raw, timeField, metaField string) {
	b.rows = append(b.rows, doc)
	b.bytes += len(doc)
	b.full = len(b.rows) >= maxBucketCount || b.bytes >= maxBucketBytes
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

// id returns a bucket's _id, which begins with the bucket's start in seconds.
func (b *bucket) id(c *store.Coll) bson.ObjectID {
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[:], uint32(b.from/1000))
	h := fnv.New64a()
	h.Write(c.UUID[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(b.number)))
	h.Sum(id[:4])
	return id
}

func (b *bucket) document(c *store.Coll, timeField, metaField string) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		id := b.id(c)
		d.Value("_id", bson.TypeObjectID, id[:])
		d.Doc("control", bsondoc.Build(func(d *bsondoc.Builder) {
			d.Value("version", bson.TypeInt32, bson.AppendInt32Value(nil, 1))
			d.Doc("min", boundsOf(b.min))
			d.Doc("max", boundsOf(b.max))
		}))
		if b.meta.Type != 0 {
			d.Value("meta", b.meta.Type, b.meta.Value)
		}
		d.Doc("data", bsondoc.Build(func(d *bsondoc.Builder) {
			for _, column := range b.min {
				d.Doc(column.key, bsondoc.Build(func(d *bsondoc.Builder) {
					for i, row := range b.rows {
						if v := row.Lookup(column.key); v.Type != 0 {
							d.Value(strconv.Itoa(i), v.Type, v.Value)
						}
					}
				}))
			}
		}))
	})
}

// InsertBucket inserts the measurements that a bucket holds.
func (r *Request) InsertBucket(tx *store.Tx, source *store.Coll, doc bson.Raw, bypass bool) error {
	timeField, metaField := SeriesFields(source)
	if v, _ := doc.Lookup("control", "version").AsInt64(); v != 1 {
		return srverr.New(srverr.CommandNotSupported, "mongotest reads buckets of version 1 only, not of version %s: insert the measurements", doc.Lookup("control", "version"))
	}
	data, ok := doc.Lookup("data").Document()
	times, hasTimes := data.Lookup(timeField).Document()
	if !ok || !hasTimes {
		return srverr.New(srverr.DocumentValidationFailure, "Document failed validation")
	}
	c := source
	for i := range times.All() {
		row, err := r.Prepare(bsondoc.Build(func(d *bsondoc.Builder) {
			for k, column := range data.All() {
				if v := bson.Raw(column.Value).Lookup(i); column.Type == bson.TypeEmbeddedDocument && v.Type != 0 {
					d.Value(k, v.Type, v.Value)
				}
			}
			if meta := doc.Lookup("meta"); metaField != "" && meta.Type != 0 {
				d.Value(metaField, meta.Type, meta.Value)
			}
		}))
		if err == nil {
			row, err = r.Measurement(c, row)
		}
		if err == nil {
			err = r.Validate(c, row, nil, bypass)
		}
		if err == nil {
			c, err = tx.Insert(c, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
