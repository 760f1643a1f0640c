package server

import (
	"bytes"
	"slices"
	"strconv"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/column"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// What becomes of buckets that are written as such: see buckets.go.

// unreadable is the error for a bucket that the server would store, and then could not read.
func unreadable(c *store.Coll, format string, args ...any) error {
	e := srverr.New(srverr.CommandNotSupported, format, args...)
	return e.Prefix("mongotest cannot find the measurements in this bucket of " + c.NS + ": write measurements instead of buckets :: caused by :: ")
}

// bucketColumn is a field of the measurements in a bucket: its values by the measurement's name in
// the time field's column, which is its number.
type bucketColumn struct {
	field  string
	values map[string]bson.RawValue
}

// bucketColumns returns the columns of a bucket that somebody writes, and the names of its
// measurements.
func bucketColumns(c *store.Coll, doc bson.Raw, timeField string) (columns []bucketColumn, names []string, err error) {
	version, _ := doc.Lookup("control", "version").AsInt64()
	if version < 1 || version > 3 {
		return nil, nil, unreadable(c, "its control.version is %s", doc.Lookup("control", "version"))
	}
	data, _ := doc.Lookup("data").Document()
	for k, v := range data.All() {
		x := bucketColumn{field: k, values: map[string]bson.RawValue{}}
		var order []string
		add := func(name string, v bson.RawValue) {
			if order = append(order, name); v.Type != 0 {
				x.values[name] = v
			}
		}
		if b, isColumn := v.Binary(); isColumn && b.Subtype == bson.BinaryColumn && version > 1 {
			list, err := column.Decode(b.Data)
			if err != nil {
				return nil, nil, unreadable(c, "the compressed values of '%s': %v", k, err)
			}
			for i, v := range list {
				add(strconv.Itoa(i), v)
			}
		} else if doc, isDoc := v.Document(); isDoc && version == 1 {
			for i, v := range doc.All() {
				add(i, v)
			}
		} else {
			return nil, nil, unreadable(c, "data.%s does not have the form of control.version %d", k, version)
		}
		if columns = append(columns, x); k == timeField {
			names = order
		}
	}
	if len(names) == 0 {
		return nil, nil, unreadable(c, "data.%s has no values", timeField)
	}
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for _, x := range columns {
		for name, v := range x.values {
			switch {
			case !known[name]:
				return nil, nil, unreadable(c, "data.%s has a value '%s' without a time", x.field, name)
			case x.field == timeField && v.Type != bson.TypeDateTime:
				return nil, nil, unreadable(c, "data.%s has a value '%s' that is not a date", x.field, name)
			}
		}
	}
	for _, x := range columns {
		if x.field == timeField && len(x.values) < len(names) {
			return nil, nil, unreadable(c, "data.%s lacks values", timeField)
		}
	}
	return columns, names, nil
}

// unpack returns the measurements that a bucket holds.
func (r *Request) unpack(c *store.Coll, doc bson.Raw, bypass bool) ([]bson.Raw, error) {
	timeField, metaField := SeriesFields(c)
	columns, names, err := bucketColumns(c, doc, timeField)
	if err != nil {
		return nil, err
	}
	rows := make([]bson.Raw, len(names))
	steps := r.Meter()
	for i, name := range names {
		steps.Do(1 + len(columns))
		row, err := r.Prepare(bsondoc.Build(func(d *bsondoc.Builder) {
			for _, x := range columns {
				if v := x.values[name]; v.Type != 0 {
					d.Value(x.field, v.Type, v.Value)
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
		if err != nil {
			return nil, err
		}
		rows[i] = row
	}
	return rows, nil
}

// BucketTable returns where the measurements of a sharded time series collection are, by the fields
// of its buckets; nil: it is not sharded. whole is false if a bucket may be on several shards,
// because the key has the time in it.
func BucketTable(source *store.Coll, s *sharding.Metadata) (_ *sharding.Metadata, whole bool) {
	if s == nil {
		return nil, true
	}
	timeField, metaField := SeriesFields(source)
	whole = true
	return s.Renamed(func(path string) string {
		switch {
		case path == timeField:
			whole = false
			return "control.min." + timeField
		case metaField != "" && path == metaField:
			return "meta"
		case metaField != "" && len(path) > len(metaField) && path[:len(metaField)+1] == metaField+".":
			return "meta" + path[len(metaField):]
		}
		return path
	}), whole
}

// InsertBucket inserts the measurements that a bucket holds. others are the buckets that there are.
// It returns the collection afterwards.
func (r *Request) InsertBucket(tx *store.Tx, source *store.Coll, others *Buckets, doc bson.Raw, bypass bool) (c *store.Coll, err error) {
	id, _ := doc.Lookup("_id").ObjectID()
	if _, taken := others.at[id]; taken {
		return source, others.Coll.Duplicate(doc.Lookup("_id"))
	}
	c, err = r.writeBucket(tx, source, others, nil, doc, bypass)
	if err == nil {
		others.at[id] = -1
	}
	return c, err
}

// UpdateBucket makes the measurements of the bucket with an _id those of its new form. It returns
// the collection afterwards.
func (r *Request) UpdateBucket(tx *store.Tx, source *store.Coll, all *Buckets, doc bson.Raw, bypass bool) (*store.Coll, error) {
	return r.writeBucket(tx, source, all, all.of(doc).rows, doc, bypass)
}

// of returns the bucket that a document shows.
func (x *Buckets) of(doc bson.Raw) *bucket {
	id, _ := doc.Lookup("_id").ObjectID()
	return x.list[x.at[id]]
}

// writeBucket puts the measurements of a bucket in the place of others.
func (r *Request) writeBucket(tx *store.Tx, source *store.Coll, all *Buckets, old []measurement, doc bson.Raw, bypass bool) (c *store.Coll, err error) {
	c = source
	if err := r.Validate(all.Coll, doc, nil, bypass); err != nil {
		return c, err
	}
	rows, err := r.unpack(c, doc, bypass)
	if err != nil {
		return c, err
	}
	for _, row := range rows { // all are written, or none is
		if err := tx.Fits(c, row); err != nil {
			return c, err
		}
	}
	raw := &rawBucket{doc: bytes.Clone(doc), since: map[byte]string{}}
	tx.Tag(raw)
	defer tx.Tag(nil)
	var same []string
	for i, row := range rows {
		switch {
		case i >= len(old):
			c, err = tx.Insert(c, row)
		case bytes.Equal(row, old[i].doc):
			same = append(same, old[i].rid)
		case row.Lookup("_id").Equal(old[i].doc.Lookup("_id")):
			c, err = tx.Update(c, old[i].rid, old[i].doc, row, true, nil)
		default:
			if c, err = tx.Delete(c, old[i].rid, old[i].doc); err == nil {
				c, err = tx.Insert(c, row)
			}
		}
		if err != nil {
			return c, err
		}
		raw.sum += sumOf([]measurement{{doc: row}})
	}
	for _, m := range old[min(len(rows), len(old)):] {
		if c, err = tx.Delete(c, m.rid, m.doc); err != nil {
			return c, err
		}
	}
	if len(same) > 0 {
		c = tx.Retag(c, same)
	}
	if rid, _, ok := c.Last(); ok && !c.Sharded() {
		raw.since[0] = rid
	}
	if s := sharding.Of(c); s != nil {
		for _, shard := range s.Shards() {
			if part := c.Part(shard); part != nil {
				if rid, _, ok := part.Last(); ok {
					raw.since[byte(shard)] = string([]byte{byte(shard)}) + rid
				}
			}
		}
	}
	return c, nil
}

// DeleteBucket deletes the measurements of a bucket. It returns the collection afterwards.
func (r *Request) DeleteBucket(tx *store.Tx, source *store.Coll, all *Buckets, doc bson.Raw) (c *store.Coll, err error) {
	c = source
	for _, m := range all.of(doc).rows {
		if c, err = tx.Delete(c, m.rid, m.doc); err != nil {
			return c, err
		}
	}
	return c, nil
}

// On reports whether the bucket that a document shows is on one of some shards; nil: on any.
func (x *Buckets) On(shards []int, source *store.Coll, doc bson.Raw) bool {
	return shards == nil || slices.Contains(shards, int(shardOfRecord(source, x.of(doc).first)))
}
