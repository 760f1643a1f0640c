package command

import (
	"allium/bson"
	"allium/consistency"
)

// AppendWriteConcern appends a write concern under the key "writeConcern".
func AppendWriteConcern(dst []byte, w *consistency.WriteConcern) []byte {
	start, dst := bson.BeginDocumentElement(dst, "writeConcern")
	switch v := w.W.(type) {
	case string:
		dst = bson.AppendString(dst, "w", v)
	case int:
		dst = bson.AppendInt32(dst, "w", int32(v))
	}
	f := fields{dst: dst}
	f.flag("j", w.Journal)
	if w.Timeout > 0 {
		f.int64("wtimeout", max(w.Timeout.Milliseconds(), 1)) // 0 would mean no bound
	}
	return bson.EndDocument(f.dst, start)
}

// TakesAfterClusterTime reports whether a write command takes a read concern, which can only be an
// afterClusterTime (specification: Read and Write Concern, "afterClusterTime").
func TakesAfterClusterTime(name string) bool {
	switch name {
	case "insert", "update", "findAndModify", "delete", "bulkWrite", "create", "createIndexes", "drop", "dropDatabase",
		"dropIndexes":
		return true
	}
	return false
}
