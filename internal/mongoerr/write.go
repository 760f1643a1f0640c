package mongoerr

import (
	"fmt"
	"strings"

	"allium/bson"
)

// WriteError is one statement of a write that the server refused.
type WriteError struct {
	Index   int      // of the statement or document, in the order in which the user gave them
	Code    int32    // the server's error code
	Message string   // its errmsg
	Details bson.Raw // its errInfo, for example what a validator found, or nil
	Raw     bson.Raw // the whole element of writeErrors
}

// Error gives index, code and message.
func (e *WriteError) Error() string {
	return oneLine(fmt.Sprintf("write %d: error %d: %s", e.Index, e.Code, e.Message))
}

// Is makes errors.Is(err, ErrDuplicateKey) true for the codes of a duplicate key.
func (e *WriteError) Is(target error) bool {
	return target == ErrDuplicateKey && IsDuplicateKeyCode(e.Code)
}

// DuplicateKey returns the index pattern and the key that the unique index already holds, as the server sent
// them; ok is false for other errors and for servers before 4.4, which do not send them.
func (e *WriteError) DuplicateKey() (pattern, key bson.Raw, ok bool) {
	return duplicateKey(e.Code, e.Raw)
}

// DuplicateKey is WriteError.DuplicateKey for commands such as findAndModify.
func (e *ServerError) DuplicateKey() (pattern, key bson.Raw, ok bool) {
	return duplicateKey(e.Code, e.Raw)
}

func duplicateKey(code int32, raw bson.Raw) (pattern, key bson.Raw, ok bool) {
	if !IsDuplicateKeyCode(code) {
		return nil, nil, false
	}
	pattern, ok1 := raw.Lookup("keyPattern").Document()
	key, ok2 := raw.Lookup("keyValue").Document()
	return pattern, key, ok1 && ok2
}

// NewWriteError copies one element of a writeErrors array; base is added to its index.
func NewWriteError(raw bson.Raw, base int) *WriteError {
	raw = append(bson.Raw(nil), raw...)
	e := &WriteError{Raw: raw}
	i, _ := raw.Lookup("index").AsInt64()
	code, _ := raw.Lookup("code").AsInt64()
	e.Index, e.Code = int(i)+base, int32(code)
	e.Message, _ = raw.Lookup("errmsg").StringValue()
	e.Details, _ = raw.Lookup("errInfo").Document()
	return e
}

// WriteConcernError says that a write was applied, but that the server could not confirm the write concern.
type WriteConcernError struct {
	Code    int32    // the server's error code
	Name    string   // its codeName
	Message string   // its errmsg
	Details bson.Raw // its errInfo, which says what write concern was asked for, or nil
	Labels           // the reply's errorLabels, and those that the specifications make the driver add
	Addr    string   // the server that answered
	Raw     bson.Raw // the whole writeConcernError document
	// TopologyVersion is the reply's, nil if there is none. It orders the error among what is known of the server.
	TopologyVersion bson.Raw
}

// Error gives code, name and message.
func (e *WriteConcernError) Error() string {
	var b strings.Builder
	b.WriteString("write concern")
	if e.Addr != "" {
		b.WriteString(" on " + e.Addr)
	}
	switch {
	case e.Name != "":
		fmt.Fprintf(&b, ": %s (%d)", e.Name, e.Code)
	case e.Code != 0:
		fmt.Fprintf(&b, ": error %d", e.Code)
	}
	b.WriteString(": " + e.Message)
	return oneLine(b.String())
}

// NewWriteConcernError copies the writeConcernError of a reply, or returns nil if there is none. One that is not a document is an
// error, too: whatever it says, the write concern was not confirmed.
func NewWriteConcernError(addr string, reply bson.Raw) *WriteConcernError {
	v := reply.Lookup("writeConcernError")
	if v.IsZero() || v.Type == bson.TypeNull {
		return nil
	}
	raw, ok := v.Document()
	if !ok {
		return &WriteConcernError{Addr: addr, Message: fmt.Sprintf("server's writeConcernError is a %s, want a document", v.Type)}
	}
	raw = append(bson.Raw(nil), raw...)
	e := &WriteConcernError{Raw: raw, Addr: addr, Labels: Strings(reply.Lookup("errorLabels"))}
	if version, ok := reply.Lookup("topologyVersion").Document(); ok {
		e.TopologyVersion = append(bson.Raw(nil), version...)
	}
	code, _ := raw.Lookup("code").AsInt64()
	e.Code = int32(code)
	e.Name, _ = raw.Lookup("codeName").StringValue()
	e.Message, _ = raw.Lookup("errmsg").StringValue()
	e.Details, _ = raw.Lookup("errInfo").Document()
	for _, l := range Strings(raw.Lookup("errorLabels")) {
		e.AddLabel(l)
	}
	return e
}

// BulkWriteError collects the errors of a write of many statements.
type BulkWriteError struct {
	// WriteErrors are the statements that the server refused, by index.
	WriteErrors []*WriteError
	// WriteConcernErrors are the write concern errors, one per command at the most.
	WriteConcernErrors []*WriteConcernError
	Labels             // the labels of the replies
	// Err is an error that ended the write early, nil if none did.
	Err error
}

// Error gives the first error and how many there are.
func (e *BulkWriteError) Error() string {
	all := e.Unwrap()
	if len(all) == 0 {
		return "bulk write failed"
	}
	s := "bulk write: " + all[0].Error()
	if n := len(all) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more errors)", n)
	}
	return oneLine(s)
}

// Unwrap returns all errors, the one that ended the write first.
func (e *BulkWriteError) Unwrap() []error {
	var all []error
	if e.Err != nil {
		all = append(all, e.Err)
	}
	for _, w := range e.WriteErrors {
		all = append(all, w)
	}
	for _, w := range e.WriteConcernErrors {
		all = append(all, w)
	}
	return all
}
