package write

import (
	"allium/bson"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
	"strings"
)

// The updates and deletes that time series collections take.

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
		case meta == "" || k != meta && !strings.HasPrefix(k, meta+"."):
			return false
		}
	}
	return true
}

// checkSeriesUpdate refuses the updates that a time series collection does not take.
func checkSeriesUpdate(r *server.Request, c *store.Coll, op *updateOp) error {
	bad := func(format string, args ...any) error { return srverr.New(srverr.InvalidOptions, format, args...) }
	_, meta := server.SeriesFields(c)
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
	case !OnlyMeta(op.Q, meta):
		return bad("Cannot perform an update on a time-series collection when querying on a field that is not the metaField '%s'", meta)
	case !OnlyMeta(op.u.Value, meta):
		return bad("Cannot perform an update on a time-series collection which updates a field that is not the metaField '%s'", meta)
	}
	return nil
}

// checkSeriesDelete does the same for deletes, which since 7.0 may be any.
func checkSeriesDelete(r *server.Request, c *store.Coll, op *deleteOp) error {
	_, meta := server.SeriesFields(c)
	switch {
	case r.InTxn():
		return srverr.New(srverr.OperationNotSupportedInTransaction, "Cannot perform a multi-document transaction write on a time-series collection: %s", c.NS)
	case r.Node.Config().Version.AtLeast(7, 0):
		return nil
	case op.one || op.findAndModify:
		return srverr.New(srverr.IllegalOperation, "Cannot perform a non-multi delete on a time-series collection")
	case !OnlyMeta(op.Q, meta):
		return srverr.New(srverr.InvalidOptions, "Cannot perform a delete on a time-series collection when querying on a field that is not the metaField '%s'", meta)
	}
	return nil
}
