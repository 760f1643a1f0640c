package series

import (
	"bytes"
	"strconv"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/column"
	"allium/mongotest/internal/sharding"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// What becomes of buckets that are written as such.

// unreadable is the error for a bucket that the server would store, and then could not read.
func unreadable(c *store.Coll, format string, args ...any) error {
	e := srverr.New(srverr.CommandNotSupported, format, args...)
	return e.Prefix("mongotest cannot find the measurements in this bucket of " + c.NS +
		": write measurements instead of buckets :: caused by :: ")
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

// Checks are what a command does with each document that it stores.
type Checks interface {
	// Prepare checks a document that is to be inserted and returns a copy with an _id.
	Prepare(doc bson.Raw) (bson.Raw, error)
	// Validate applies the validator of a collection.
	Validate(c *store.Coll, doc, old bson.Raw, bypass bool) error
}

// unpack returns the measurements that a bucket holds.
func (x *Buckets) unpack(doc bson.Raw, checks Checks) ([]bson.Raw, error) {
	columns, names, err := bucketColumns(x.Source, doc, x.timeField)
	if err != nil {
		return nil, err
	}
	rows := make([]bson.Raw, len(names))
	for i, name := range names {
		x.work.Do(1 + len(columns))
		row, err := checks.Prepare(bsondoc.Build(func(d *bsondoc.Builder) {
			for _, col := range columns {
				if v := col.values[name]; v.Type != 0 {
					d.Value(col.field, v.Type, v.Value)
				}
			}
			if meta := doc.Lookup("meta"); x.metaField != "" && meta.Type != 0 {
				d.Value(x.metaField, meta.Type, meta.Value)
			}
		}))
		if err == nil {
			rows[i], err = Measurement(x.Source, row)
		}
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Insert inserts the measurements that a bucket holds.
func (x *Buckets) Insert(tx *store.Tx, doc bson.Raw, checks Checks, bypass bool) error {
	id, _ := doc.Lookup("_id").ObjectID()
	if _, taken := x.at[id]; taken {
		return x.none.Duplicate(doc.Lookup("_id"))
	}
	err := x.write(tx, nil, doc, checks, bypass)
	if err == nil {
		x.at[id] = -1
	}
	return err
}

// Update makes the measurements of the bucket with an _id those of its new form.
func (x *Buckets) Update(tx *store.Tx, doc bson.Raw, checks Checks, bypass bool) error {
	return x.write(tx, x.of(doc).rows, doc, checks, bypass)
}

// Delete deletes the measurements of the bucket that a document of Coll shows.
func (x *Buckets) Delete(tx *store.Tx, doc bson.Raw) error { return x.remove(tx, x.of(doc).rows) }

func (x *Buckets) remove(tx *store.Tx, rows []measurement) (err error) {
	for _, m := range rows {
		if x.Source, err = tx.Delete(x.Source, m.rid, m.doc); err != nil {
			return err
		}
	}
	return nil
}

// write puts the measurements of a bucket in the place of others.
func (x *Buckets) write(tx *store.Tx, old []measurement, doc bson.Raw, checks Checks, bypass bool) error {
	if err := checks.Validate(x.none, doc, nil, bypass); err != nil {
		return err
	}
	rows, err := x.unpack(doc, checks)
	if err != nil {
		return err
	}
	for _, row := range rows { // all are written, or none is
		if err := tx.Fits(x.Source, row); err != nil {
			return err
		}
	}
	raw := &rawBucket{doc: bytes.Clone(doc), since: map[byte]string{}}
	tx.Tag(raw)
	defer tx.Tag(nil)
	var same []string
	for i, row := range rows {
		switch {
		case i >= len(old):
			x.Source, err = tx.Insert(x.Source, row)
		case bytes.Equal(row, old[i].doc):
			same = append(same, old[i].rid)
		case row.Lookup("_id").Equal(old[i].doc.Lookup("_id")):
			x.Source, err = tx.Update(x.Source, old[i].rid, old[i].doc, row, true, nil)
		default:
			if err = x.remove(tx, old[i:i+1]); err == nil {
				x.Source, err = tx.Insert(x.Source, row)
			}
		}
		if err != nil {
			return err
		}
		raw.sum += sumOf([]measurement{{doc: row}})
	}
	if err := x.remove(tx, old[min(len(rows), len(old)):]); err != nil {
		return err
	}
	if len(same) > 0 {
		x.Source = tx.Retag(x.Source, same)
	}
	c := x.Source
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
	return nil
}
