package failure

import (
	"fmt"

	"allium/bson"
	"allium/mongoerr"
)

// NewServerError copies a reply whose ok is not 1, and reads the failure out of it.
func NewServerError(command, addr string, reply bson.Raw) *mongoerr.ServerError {
	reply = append(bson.Raw(nil), reply...)
	e := &mongoerr.ServerError{Command: command, Addr: addr, Raw: reply}
	for key, v := range reply.All() {
		switch key {
		case "code":
			if n, ok := v.AsInt64(); ok {
				e.Code = int32(n)
			}
		case "codeName":
			e.Name, _ = v.StringValue()
		case "errmsg":
			e.Message, _ = v.StringValue()
		case "$err": // what servers answered to legacy opcodes
			if e.Message == "" {
				e.Message, _ = v.StringValue()
			}
		case "errorLabels":
			e.Labels = Strings(v)
		}
	}
	return e
}

// Strings returns the strings of an array of strings, and nil for anything else.
func Strings(v bson.RawValue) []string {
	arr, ok := v.Array()
	if !ok {
		return nil
	}
	var out []string
	for el := range arr.Values() {
		if s, ok := el.StringValue(); ok {
			out = append(out, s)
		}
	}
	return out
}

// NewWriteError copies one element of a writeErrors array; base is added to its index.
func NewWriteError(raw bson.Raw, base int) *mongoerr.WriteError {
	raw = append(bson.Raw(nil), raw...)
	e := &mongoerr.WriteError{Raw: raw}
	i, _ := raw.Lookup("index").AsInt64()
	code, _ := raw.Lookup("code").AsInt64()
	e.Index, e.Code = int(i)+base, int32(code)
	e.Message, _ = raw.Lookup("errmsg").StringValue()
	e.Details, _ = raw.Lookup("errInfo").Document()
	return e
}

// NewWriteConcernError copies the writeConcernError of a reply, or returns nil if there is none.
// One that is not a document is an error, too: whatever it says, the write concern was not
// confirmed.
func NewWriteConcernError(addr string, reply bson.Raw) *mongoerr.WriteConcernError {
	v := reply.Lookup("writeConcernError")
	if v.IsZero() || v.Type == bson.TypeNull {
		return nil
	}
	raw, ok := v.Document()
	if !ok {
		return &mongoerr.WriteConcernError{Addr: addr,
			Message: fmt.Sprintf("server's writeConcernError is a %s, want a document", v.Type)}
	}
	raw = append(bson.Raw(nil), raw...)
	e := &mongoerr.WriteConcernError{Raw: raw, Reply: append(bson.Raw(nil), reply...), Addr: addr,
		Labels: Strings(reply.Lookup("errorLabels"))}
	if version, ok := reply.Lookup("topologyVersion").Document(); ok {
		e.TopologyVersion = append(bson.Raw(nil), version...)
	}
	code, _ := raw.Lookup("code").AsInt64()
	e.Code = int32(code)
	e.Name, _ = raw.Lookup("codeName").StringValue()
	e.Message, _ = raw.Lookup("errmsg").StringValue()
	e.Details, _ = raw.Lookup("errInfo").Document()
	for _, l := range Strings(raw.Lookup("errorLabels")) {
		AddTo(&e.Labels, l)
	}
	return e
}
