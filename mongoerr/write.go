package mongoerr

import (
	"fmt"
	"strings"

	"allium/bson"
)

// A WriteError is the error of one statement of a write.
type WriteError struct {
	Index   int      // of the statement or document, in the order in which the user gave them
	Code    int32    // the server's error code
	Message string   // its errmsg
	Details bson.Raw // its errInfo, for example what a validator found, or nil
	Raw     bson.Raw // the whole element of writeErrors
}

// Error returns the index, the code and the message.
func (e *WriteError) Error() string {
	return oneLine(fmt.Sprintf("write %d: error %d: %s", e.Index, e.Code, e.Message))
}

// Is makes errors.Is(err, ErrDuplicateKey) true for the codes of a duplicate key.
func (e *WriteError) Is(target error) bool {
	return target == ErrDuplicateKey && isDuplicateKey(e.Code)
}

// DuplicateKey returns the key pattern of the unique index and the duplicate key, as the server
// sent them. ok is false for other errors and for servers before 4.4, which send neither.
func (e *WriteError) DuplicateKey() (pattern, key bson.Raw, ok bool) {
	return duplicateKey(e.Code, e.Raw)
}

// DuplicateKey is WriteError.DuplicateKey for commands such as findAndModify.
func (e *ServerError) DuplicateKey() (pattern, key bson.Raw, ok bool) {
	return duplicateKey(e.Code, e.Raw)
}

func duplicateKey(code int32, raw bson.Raw) (pattern, key bson.Raw, ok bool) {
	if !isDuplicateKey(code) {
		return nil, nil, false
	}
	pattern, ok1 := raw.Lookup("keyPattern").Document()
	key, ok2 := raw.Lookup("keyValue").Document()
	return pattern, key, ok1 && ok2
}

// A WriteConcernError reports that a write was applied, but not acknowledged as its write concern
// demands.
type WriteConcernError struct {
	Code    int32    // the server's error code
	Name    string   // its codeName
	Message string   // its errmsg
	Details bson.Raw // its errInfo, with the write concern of the command, or nil
	Labels           // the reply's errorLabels, and those that the specifications make the driver add
	Addr    string   // the server that answered
	Raw     bson.Raw // the whole writeConcernError document
	// TopologyVersion is the reply's, nil if there is none. It orders the error among the replies
	// of the server.
	TopologyVersion bson.Raw
}

// Error returns the name, the code and the message.
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

// A BulkWriteError collects the errors of a write of many statements.
type BulkWriteError struct {
	// WriteErrors are the errors of statements, by index.
	WriteErrors []*WriteError
	// WriteConcernErrors are the write concern errors, at most one per command.
	WriteConcernErrors []*WriteConcernError
	Labels             // the labels of the replies
	// Err is an error that ended the write early, nil if none did.
	Err error
}

// Error returns the first error and how many more there are.
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
