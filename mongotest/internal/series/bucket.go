package series

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/column"
	"allium/mongotest/internal/query"
	"allium/mongotest/internal/store"
)

// Buckets are made for each reader out of the measurements, in the order in which these came, by
// the server's rules. A bucket that is inserted or updated becomes the measurements that it holds.
// It is kept beside them as it was written, and shown like that until one of them changes.
//
// Buckets have three layouts: 1 has a document with the values of each field; 2 has compressed
// columns, in the order of time; 3 has them in the order in which the measurements came. From 5.2
// on buckets become compressed when they are closed, from 8.0 on they always are.

// The server's bounds of a bucket.
const (
	maxBucketCount = 1000
	maxBucketBytes = 125 << 10
)

// bucket holds measurements of one meta value, near each other in time.
type bucket struct {
	id       bson.ObjectID
	shard    byte
	meta     bson.RawValue
	from     int64 // milliseconds: the earliest time that belongs to it, rounded
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

func (x *rawBucket) closed() bool {
	return x != nil && x.doc.Lookup("control", "closed").AsBool()
}

// sumOf tells sets of measurements apart.
func sumOf(rows []measurement) (sum uint64) {
	for _, row := range rows {
		h := fnv.New64a()
		h.Write(row.doc)
		sum += h.Sum64()
	}
	return sum
}

// shardOf returns the shard's number in front of a record id of a sharded collection.
func shardOf(c *store.Coll, rid string) byte {
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

// fill distributes the measurements of the collection over buckets.
func (x *Buckets) fill() {
	c := x.Source
	say := spansOf(c.Raw.Lookup("timeseries").Value)
	span, rounding := say.span*1000, cmp.Or(say.rounding, say.coarse().rounding)*1000
	reopens := x.version.AtLeast(6, 0)
	byMeta, written := map[string][]*bucket{}, map[*rawBucket]*bucket{}
	var shard byte
	for scan := store.NewScan(c, false, nil); ; {
		x.work.Do(1)
		rid, doc, ok := scan.Next()
		if !ok {
			return
		}
		if s := shardOf(c, rid); s != shard { // each has its own
			shard = s
			clear(byMeta)
			clear(written)
		}
		var meta bson.RawValue
		if x.metaField != "" {
			meta = doc.Lookup(x.metaField)
		}
		key := string(store.AppendKey(nil, meta, nil, false))
		at, _ := doc.Lookup(x.timeField).DateTime()
		t := int64(at)
		raw, _ := c.Tag(rid).(*rawBucket)
		b := written[raw]
		list := byMeta[key]
		for i := len(list) - 1; i >= 0 && b == nil && raw == nil; i-- {
			one := list[i]
			if one.raw != nil && rid <= one.raw.since[shard] {
				continue // it was there before, in another bucket
			}
			if !one.full && t >= one.from && t < one.from+span && x.takes(one, doc) {
				b = one
			} else if !reopens {
				break // only the last one is open
			}
		}
		if b == nil {
			b = &bucket{shard: shard, meta: meta, raw: raw, from: t - (t%rounding+rounding)%rounding}
			if raw != nil {
				b.id, _ = raw.doc.Lookup("_id").ObjectID()
				b.from = int64(b.id.Timestamp().Unix()) * 1000
				if low, ok := raw.doc.Lookup("control", "min", x.timeField).DateTime(); ok {
					b.from = int64(low)
				}
				written[raw] = b
			} else {
				b.id = newID(c, b.from, rid)
			}
			if len(list) > 0 {
				list[len(list)-1].over = true
			}
			byMeta[key], x.list = append(list, b), append(x.list, b)
		}
		x.add(b, rid, doc)
	}
}

// newID returns a bucket's _id, which begins with the bucket's start in seconds. The rest stays the
// same for as long as the measurement that came first does.
func newID(c *store.Coll, from int64, first string) (id bson.ObjectID) {
	binary.BigEndian.PutUint32(id[:], uint32(from/1000))
	h := fnv.New64a()
	h.Write(c.UUID[:])
	h.Write([]byte(first))
	h.Sum(id[:4])
	return id
}

// takes reports whether the types of a measurement's fields match those in the bucket. Values of
// different types have no common bounds.
func (x *Buckets) takes(b *bucket, doc bson.Raw) bool {
	for k, v := range doc.All() {
		if k == x.timeField || k == x.metaField {
			continue
		}
		for _, m := range b.min {
			if m.key == k && m.v.Type != v.Type && !(m.v.IsNumber() && v.IsNumber()) {
				return false
			}
		}
	}
	return true
}

func (x *Buckets) add(b *bucket, rid string, doc bson.Raw) {
	b.rows = append(b.rows, measurement{rid, doc})
	b.bytes += len(doc)
	b.full = len(b.rows) >= maxBucketCount || b.bytes >= maxBucketBytes || b.raw.closed()
	for k, v := range doc.All() {
		if k == x.metaField && x.metaField != "" {
			continue
		}
		low := v
		if k == x.timeField {
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

// layout returns the layout that a bucket has at the server version, and puts its measurements in
// order if it is the one in the order of time.
func (x *Buckets) layout(b *bucket) int32 {
	v := x.version
	if !v.AtLeast(5, 2) || !v.AtLeast(8, 0) && !b.full && !b.over {
		return 1
	}
	byTime := func(one, other measurement) int {
		t, _ := one.doc.Lookup(x.timeField).DateTime()
		u, _ := other.doc.Lookup(x.timeField).DateTime()
		return cmp.Compare(t, u)
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

// document returns a bucket as the server keeps it.
func (x *Buckets) document(b *bucket) bson.Raw {
	layout := x.layout(b)
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.Value("_id", bson.TypeObjectID, b.id[:])
		d.Doc("control", bsondoc.Build(func(d *bsondoc.Builder) {
			d.Value("version", bson.TypeInt32, bson.AppendInt32Value(nil, layout))
			d.Doc("min", boundsOf(b.min))
			d.Doc("max", boundsOf(b.max))
			if layout > 1 {
				d.Value("count", bson.TypeInt32, bson.AppendInt32Value(nil, int32(len(b.rows))))
			}
			if b.raw.closed() {
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
					d.Value(field.key, bson.TypeBinary,
						bson.AppendBinaryValue(nil, bson.BinaryColumn, column.Encode(values)))
				} else {
					d.Doc(field.key, numbered(values))
				}
			}
		}))
	})
}

// numbered returns values by their position, without those that are missing.
func numbered(values []bson.RawValue) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		for i, v := range values {
			if v.Type != 0 {
				d.Value(strconv.Itoa(i), v.Type, v.Value)
			}
		}
	})
}
