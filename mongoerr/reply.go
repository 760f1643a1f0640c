package mongoerr

import (
	"fmt"
	"strings"

	"allium/bson"
)

// A ReplyError says that a server's reply is not as it should be: a field is missing, its value has
// another type, or it says what cannot be. No server of MongoDB sends such a reply, but what stands
// in its place may. Whether the command was done is not known.
type ReplyError struct {
	Field string    // the path of the field, such as "cursor.id"
	Type  bson.Type // the type of its value, 0 if the field is missing
	Want  string    // what it should be, such as "a number"
	// Contradiction says in place of Type and Want what cannot be.
	Contradiction string
	// WriteErrors are the errors of a reply that says of a statement which was not sent, or twice
	// of one, that it has failed.
	WriteErrors []*WriteError
}

// Error names the field, and says what is wrong with it.
func (e *ReplyError) Error() string {
	switch {
	case e.Contradiction != "":
		return "server's reply " + e.Contradiction
	case e.Type == 0:
		return fmt.Sprintf("server's reply has no %s, want %s", e.Field, e.Want)
	}
	return fmt.Sprintf("server's reply has %s that is %s, want %s", article(e.Field), article(e.Type.String()), e.Want)
}

// article puts "a" or "an" before a word.
func article(word string) string {
	if word != "" && strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// Unwrap returns the errors of WriteErrors.
func (e *ReplyError) Unwrap() []error {
	errs := make([]error, len(e.WriteErrors))
	for i, w := range e.WriteErrors {
		errs[i] = w
	}
	return errs
}

// Is makes errors.Is(err, ErrNoCursor) true for a reply without the document of a cursor.
func (e *ReplyError) Is(target error) bool { return target == ErrNoCursor && e.Field == "cursor" }
