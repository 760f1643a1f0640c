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
	// Reply is the server's whole reply to a write of a single statement, or to a command that is
	// no write, which may have labels. It is nil for other writes.
	Reply bson.Raw
	// Command is the command that the statement was sent in, Namespace the collection that it was
	// for, as in "app.users", and Addr the server that answered.
	Command, Namespace, Addr string
}

// Error returns the command, the index if it is not 0, the code, the message and the details, for
// example
//
//	insert app.users on localhost:27017: DuplicateKey (11000): E11000 duplicate key error ...
func (e *WriteError) Error() string {
	s := subject(e.Command, e.Namespace, e.Addr)
	if e.Index > 0 || s == "" {
		return oneLine(s + e.statement())
	}
	return oneLine(s + e.text())
}

// statement returns what is said of one statement among many.
func (e *WriteError) statement() string { return fmt.Sprintf("write %d: %s", e.Index, e.text()) }

func (e *WriteError) text() string {
	s := e.Message
	if code := codeText(e.Code, ""); code != "" {
		s = code + ": " + s
	}
	if e.Details == nil {
		return s
	}
	return s + details(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: e.Details})
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
	// Command is the command that was applied, and Namespace the collection that it was about.
	Command, Namespace string
	Raw                bson.Raw // the whole writeConcernError document
	// Reply is the server's whole reply.
	Reply bson.Raw
	// TopologyVersion is the reply's, nil if there is none. It orders the error among the replies
	// of the server.
	TopologyVersion bson.Raw
}

// Error returns the command, the server, the code and the message, for example
//
//	insert app.users on localhost:27017: write concern: UnsatisfiableWriteConcern (100): Not
//	enough data-bearing nodes
func (e *WriteConcernError) Error() string {
	s := subject(e.Command, e.Namespace, e.Addr) + "write concern"
	if e.Command == "" && e.Addr != "" {
		s += " on " + e.Addr
	}
	if code := codeText(e.Code, e.Name); code != "" {
		s += ": " + code
	}
	return oneLine(s + ": " + e.Message)
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

// maxErrors is how many errors the text of a BulkWriteError holds.
const maxErrors = 5

// Error returns the first five errors and how many more there are. What several statements have in
// common stands once:
//
//	bulk write: insert app.users on localhost:27017: write 0: DuplicateKey (11000): ...; write 3:
//	...
func (e *BulkWriteError) Error() string {
	all := e.Unwrap()
	if len(all) == 0 {
		return "bulk write failed"
	}
	var b strings.Builder
	b.WriteString("bulk write: ")
	last := ""
	for i, err := range all[:min(len(all), maxErrors)] {
		if i > 0 {
			b.WriteString("; ")
		}
		w, ok := err.(*WriteError)
		if !ok {
			b.WriteString(err.Error())
			last = ""
			continue
		}
		if s := subject(w.Command, w.Namespace, w.Addr); s != last {
			b.WriteString(s)
			last = s
		}
		b.WriteString(w.statement())
	}
	switch n := len(all) - maxErrors; {
	case n == 1:
		b.WriteString("; and 1 more error")
	case n > 1:
		fmt.Fprintf(&b, "; and %d more errors", n)
	}
	return oneLine(b.String())
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
