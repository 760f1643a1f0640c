package replica

import "allium/bson"

// WriteConcern is a parsed writeConcern (specification: read and write concern).
type WriteConcern struct {
	W          int32  // number of nodes, when mode is empty
	Mode       string // "majority" or a mode of the configuration
	NamedMode  bool
	J          bool
	HasJ       bool
	Wtimeout   int64
	Provenance string
}

// Unacknowledged reports whether the client does not want to know the outcome.
func (wc *WriteConcern) Unacknowledged() bool {
	return (wc.NamedMode && wc.Mode == "" || !wc.NamedMode && wc.W == 0) && !wc.J
}

// Append appends the write concern as errInfo shows it.
func (wc *WriteConcern) Append(dst []byte, key string) []byte {
	at, dst := bson.BeginDocumentElement(dst, key)
	if wc.NamedMode {
		dst = bson.AppendString(dst, "w", wc.Mode)
	} else {
		dst = bson.AppendInt32(dst, "w", wc.W)
	}
	if wc.HasJ {
		dst = bson.AppendBool(dst, "j", wc.J)
	}
	dst = bson.AppendInt32(dst, "wtimeout", int32(wc.Wtimeout))
	if wc.Provenance != "" {
		dst = bson.AppendString(dst, "provenance", wc.Provenance)
	}
	return bson.EndDocument(dst, at)
}
