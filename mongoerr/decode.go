package mongoerr

import (
	"fmt"
	"strings"

	"allium/bson"
)

// A DecodeError says that a document which the server sent does not decode as its Go type. What was
// asked of the server was done: a FindOneAndUpdate that ends with it has changed the document.
//
// It does not end the iteration of a cursor or a change stream: the next call of Next goes on
// behind the document. The error holds what a program needs to set the document aside.
type DecodeError struct {
	// Command is the command that the document is from, or "cursor".
	Command string
	// Namespace is the collection or database that was read, as "db.collection". For an event of a
	// change stream it is that of the change.
	Namespace string
	// Index says which of the operation's documents or values it is, from 0. It is -1 if there is
	// one at the most.
	Index int64
	// Document is the document as the server sent it; for a change stream, the whole event. It is
	// nil for a value that Distinct found.
	Document bson.Raw
	// Value is the value that Distinct found, zero for a document.
	Value bson.RawValue
	// ResumeToken is the token of an event of a change stream, which a new stream can resume after.
	// Nil for everything else.
	ResumeToken bson.Raw
	// Wrapped is the reason, a *bson.DecodeError or the error of a method or codec of the
	// program's.
	Wrapped error
}

// Error says which document does not decode, and why. Of the document itself it has an _id that is
// an ObjectID or an integer, and nothing else, since errors are logged.
func (e *DecodeError) Error() string {
	var b strings.Builder
	b.WriteString(e.Command)
	if e.Namespace != "" {
		b.WriteString(" " + oneLine(e.Namespace))
	}
	b.WriteString(": decode " + e.what())
	if e.Index >= 0 {
		fmt.Fprintf(&b, " %d", e.Index)
	}
	if id := e.id(); id != "" {
		b.WriteString(" with _id " + id)
	}
	b.WriteString(": ")
	if e.Wrapped != nil {
		b.WriteString(oneLine(e.Wrapped.Error()))
	}
	return b.String()
}

func (e *DecodeError) what() string {
	switch {
	case e.ResumeToken != nil:
		return "event"
	case e.Document == nil:
		return "value"
	}
	return "document"
}

// id returns the document's _id as text, or "".
func (e *DecodeError) id() string {
	id := e.Document.Lookup("_id")
	if e.ResumeToken != nil {
		id = e.Document.Lookup("documentKey", "_id")
	}
	if oid, ok := id.ObjectID(); ok {
		return oid.Hex()
	}
	switch id.Type {
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := id.AsInt64()
		return fmt.Sprint(n)
	}
	return ""
}

// Unwrap returns the reason.
func (e *DecodeError) Unwrap() error { return e.Wrapped }

// DecodeErrors are the errors of a call that returns many documents or values, such as All and
// Distinct: one for each that does not decode, in the order in which they came. There is at least
// one. The call has returned all others.
type DecodeErrors []*DecodeError

// Error is that of the first one, and says how many more there are.
func (e DecodeErrors) Error() string {
	switch len(e) {
	case 0:
		return "no document failed to decode"
	case 1:
		return e[0].Error()
	case 2:
		return fmt.Sprintf("%v (and 1 more does not decode)", e[0])
	}
	return fmt.Sprintf("%v (and %d more do not decode)", e[0], len(e)-1)
}

// Unwrap returns the errors.
func (e DecodeErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i := range e {
		errs[i] = e[i]
	}
	return errs
}
