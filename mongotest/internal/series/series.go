// Package series has what is special about time series collections: which measurements they take,
// and the buckets in which the server keeps these.
//
// The store has the measurements as they are read, not in buckets. Those who read buckets get them
// made out of the measurements, and a bucket that is written becomes the measurements that it
// holds.
package series

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Fields returns the names of the time and the meta field; the latter may be empty.
func Fields(c *store.Coll) (timeField, metaField string) {
	return fieldsOf(c.Raw.Lookup("timeseries").Value)
}

func fieldsOf(spec bson.Raw) (timeField, metaField string) {
	return bsondoc.MustString(spec.Lookup("timeField")), bsondoc.MustString(spec.Lookup("metaField"))
}

// CheckTime refuses a measurement without a time.
func CheckTime(c *store.Coll, doc bson.Raw) error {
	timeField, _ := Fields(c)
	if doc.Lookup(timeField).Type != bson.TypeDateTime {
		return srverr.New(srverr.BadValue, "'%s' must be present and contain a valid BSON UTC datetime value",
			timeField)
	}
	return nil
}

// Measurement checks a document that is to be inserted and returns it as it will be read: the time
// and the meta field come first.
func Measurement(c *store.Coll, doc bson.Raw) (bson.Raw, error) {
	if err := CheckTime(c, doc); err != nil {
		return nil, err
	}
	timeField, metaField := Fields(c)
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendRawValue(d.B, timeField, doc.Lookup(timeField))
		if meta := doc.Lookup(metaField); metaField != "" && meta.Type != 0 {
			d.B = bson.AppendRawValue(d.B, metaField, meta)
		}
		for k, v := range doc.All() {
			if k != timeField && (metaField == "" || k != metaField) {
				d.B = bson.AppendRawValue(d.B, k, v)
			}
		}
	}), nil
}

// OnlyMeta reports whether all fields that a filter or an update names are the meta field or lie in
// it.
func OnlyMeta(doc bson.Raw, meta string) bool {
	for k, v := range doc.All() {
		switch {
		case strings.HasPrefix(k, "$"):
			switch v.Type {
			case bson.TypeArray:
				for e := range bson.Raw(v.Value).Values() {
					if e.Type == bson.TypeEmbeddedDocument && !OnlyMeta(e.Value, meta) {
						return false
					}
				}
			case bson.TypeEmbeddedDocument:
				if k == "$expr" || !OnlyMeta(v.Value, meta) {
					return false
				}
			}
		default:
			if _, ok := belowMeta(k, meta); !ok {
				return false
			}
		}
	}
	return true
}

// belowMeta returns what follows the meta field in a path, with its dot; ok is false if the path
// leads elsewhere.
func belowMeta(path, meta string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, meta)
	return rest, ok && meta != "" && (rest == "" || rest[0] == '.')
}
