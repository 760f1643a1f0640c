package server

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Time series collections. The documents are stored as they are, not in buckets; what clients can
// see of buckets is what a measurement looks like when it is read, and which updates and deletes
// are possible.

// seriesFields returns the names of the time and the meta field; the latter may be empty.
func seriesFields(c *store.Coll) (timeField, metaField string) {
	spec := bson.Raw(c.Raw.Lookup("timeseries").Value)
	return bsondoc.MustString(spec.Lookup("timeField")), bsondoc.MustString(spec.Lookup("metaField"))
}

// measurement checks a document that is to be inserted and returns it as it will be read: the time
// and the meta field come first.
func (r *Request) measurement(c *store.Coll, doc bson.Raw) (bson.Raw, error) {
	if r.InTxn() {
		return nil, srverr.New(srverr.OperationNotSupportedInTransaction, "Cannot insert into a time-series collection in a multi-document transaction: %s", c.NS)
	}
	timeField, metaField := seriesFields(c)
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

// onlyMeta reports whether all fields that a filter or an update names are the meta field or lie in
// it.
func onlyMeta(doc bson.Raw, meta string) bool {
	for k, v := range doc.All() {
		switch {
		case strings.HasPrefix(k, "$"):
			switch v.Type {
			case bson.TypeArray:
				for e := range bson.Raw(v.Value).Values() {
					if e.Type == bson.TypeEmbeddedDocument && !onlyMeta(e.Value, meta) {
						return false
					}
				}
			case bson.TypeEmbeddedDocument:
				if k == "$expr" || !onlyMeta(v.Value, meta) {
					return false
				}
			}
		case meta == "" || k != meta && !strings.HasPrefix(k, meta+"."):
			return false
		}
	}
	return true
}

// checkSeriesUpdate refuses the updates that a time series collection does not take.
func (r *Request) checkSeriesUpdate(c *store.Coll, op *UpdateOp) error {
	bad := func(format string, args ...any) error { return srverr.New(srverr.InvalidOptions, format, args...) }
	_, meta := seriesFields(c)
	switch {
	case r.InTxn():
		return srverr.New(srverr.OperationNotSupportedInTransaction, "Cannot perform a multi-document transaction write on a time-series collection: %s", c.NS)
	case op.upsert:
		return bad("Cannot perform an upsert on a time-series collection")
	case op.findAndModify, !op.multi:
		return bad("Cannot perform a non-multi update on a time-series collection")
	case op.update.IsReplacement() || op.update.IsPipeline():
		return bad("Cannot perform an update on a time-series collection using a pipeline update")
	case meta == "":
		return bad("Cannot perform an update on a time-series collection that does not have a metaField")
	case !onlyMeta(op.Q, meta):
		return bad("Cannot perform an update on a time-series collection when querying on a field that is not the metaField '%s'", meta)
	case !onlyMeta(op.u.Value, meta):
		return bad("Cannot perform an update on a time-series collection which updates a field that is not the metaField '%s'", meta)
	}
	return nil
}

// checkSeriesDelete does the same for deletes, which since 7.0 may be any.
func (r *Request) checkSeriesDelete(c *store.Coll, op *deleteOp) error {
	_, meta := seriesFields(c)
	switch {
	case r.InTxn():
		return srverr.New(srverr.OperationNotSupportedInTransaction, "Cannot perform a multi-document transaction write on a time-series collection: %s", c.NS)
	case r.Node.cfg.Version.AtLeast(7, 0):
		return nil
	case op.one || op.findAndModify:
		return srverr.New(srverr.IllegalOperation, "Cannot perform a delete with a non-multi delete on a time-series collection")
	case !onlyMeta(op.Q, meta):
		return srverr.New(srverr.InvalidOptions, "Cannot perform a delete on a time-series collection when querying on a field that is not the metaField '%s'", meta)
	}
	return nil
}
