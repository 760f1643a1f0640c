package server

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Time series collections. The documents are stored as they are, not in buckets; what clients can
// see of buckets is what a measurement looks like when it is read, and which updates and deletes
// are possible.

// SeriesFields returns the names of the time and the meta field; the latter may be empty.
func SeriesFields(c *store.Coll) (timeField, metaField string) {
	spec := bson.Raw(c.Raw.Lookup("timeseries").Value)
	return bsondoc.MustString(spec.Lookup("timeField")), bsondoc.MustString(spec.Lookup("metaField"))
}

// Measurement checks a document that is to be inserted and returns it as it will be read: the time
// and the meta field come first.
func (r *Request) Measurement(c *store.Coll, doc bson.Raw) (bson.Raw, error) {
	if r.InTxn() {
		return nil, srverr.New(srverr.OperationNotSupportedInTransaction, "Cannot insert into a time-series collection in a multi-document transaction: %s", c.NS)
	}
	timeField, metaField := SeriesFields(c)
	at := doc.Lookup(timeField)
	if at.Type != bson.TypeDateTime {
		return nil, srverr.New(srverr.BadValue, "'%s' must be present and contain a valid BSON UTC datetime value", timeField)
	}
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendRawValue(d.B, timeField, at)
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
