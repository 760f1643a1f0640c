package encryption

import (
	"errors"

	"allium/internal/crypt"
	"allium/internal/fle/analysis"
)

// RefusedError says why a command is refused before anything is sent, or what is wrong with a
// schema, whether the program has configured it or the server has it, for errors.As. It holds no
// value of the command.
type RefusedError struct {
	Command   string // the command's name, empty for a schema
	Namespace string // of the collection
	Path      string // of the field, or empty
	Operator  string // of the filter, update, expression or pipeline, or empty
	Reason    string // what is wrong
	Instead   string // what would work, or empty

	text string
}

// Error returns all parts in one line.
func (e *RefusedError) Error() string { return e.text }

// refused returns err as programs see it.
func refused(err error) error {
	if e, ok := errors.AsType[*crypt.FieldsError](err); ok {
		return &RefusedError{Namespace: e.Namespace, Reason: e.Reason, text: err.Error()}
	}
	e, ok := errors.AsType[*analysis.Error](err)
	if !ok {
		return err
	}
	return &RefusedError{Command: e.Command, Namespace: e.Namespace, Path: e.Path, Operator: e.Operator,
		Reason: e.Reason, Instead: e.Instead, text: err.Error()}
}
