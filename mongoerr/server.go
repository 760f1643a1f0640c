package mongoerr

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"allium/bson"
	"allium/internal/errcode"
)

// A ServerError is a server's reply to a command that failed: its ok field is not 1.
type ServerError struct {
	Code    int32  // the server's error code, 0 if it sent none
	Name    string // its codeName, for example "NotWritablePrimary"
	Message string // its errmsg
	Labels         // its errorLabels, and those that the specifications make the driver add
	Command string // the name of the command that failed
	// Namespace is the collection that the command was about, as in "app.users", or its database;
	// it is empty for commands about the deployment.
	Namespace string
	Addr      string   // the server that answered
	Raw       bson.Raw // the whole reply
	// Wrapped is a further cause, if the driver knows one, for example the errors of earlier
	// attempts.
	Wrapped error
}

// Error returns the command, the server and the error on one line, for example
//
//	find app.users on localhost:27017: NotWritablePrimary (10107): not primary
//
// Line breaks and control characters that the server sent are escaped; the fields hold them as they
// came.
func (e *ServerError) Error() string {
	var b strings.Builder
	b.WriteString(subject(e.Command, e.Namespace, e.Addr))
	if code := codeText(e.Code, e.Name); code != "" {
		b.WriteString(code + ": ")
	}
	if e.Message == "" {
		b.WriteString("server sent no message")
	} else {
		b.WriteString(e.Message)
	}
	b.WriteString(details(e.Raw.Lookup("errInfo")))
	return oneLine(b.String())
}

// codeText returns the code and its name, "" if there is neither. Statements of a write and older
// servers send no name.
func codeText(code int32, name string) string {
	if name == "" {
		name = errcode.Name(code)
	}
	switch {
	case name != "" && code != 0:
		return fmt.Sprintf("%s (%d)", name, code)
	case name != "":
		return name
	case code != 0:
		return fmt.Sprintf("error %d", code)
	}
	return ""
}

// maxDetails is how much of what a server sent beside an error its text holds, in bytes.
const maxDetails = 600

// details returns what a server sent beside an error, such as what a validator found, to be
// appended to a text.
func details(info bson.RawValue) string {
	doc, ok := info.Document()
	if !ok || len(doc) <= emptyDocument {
		return ""
	}
	s := doc.String()
	if len(s) > maxDetails {
		end := maxDetails
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "..."
	}
	return "; details: " + s
}

// emptyDocument is the length of a document without fields.
const emptyDocument = 5

// Unwrap returns e.Wrapped.
func (e *ServerError) Unwrap() error { return e.Wrapped }

// Is makes errors.Is(err, ErrDuplicateKey) true for the codes of a duplicate key.
func (e *ServerError) Is(target error) bool {
	return target == ErrDuplicateKey && isDuplicateKey(e.Code)
}

// isDuplicateKey reports whether a server uses this code for a duplicate key.
func isDuplicateKey(code int32) bool { return errcode.Is(code, errcode.Duplicate) }
