package command

import (
	"errors"
	"strings"

	"allium/bson"
)

// Run is a command that the user wrote, already encoded.
type Run struct {
	Doc bson.Raw
	// OpensCursor says that the user expects a cursor.
	OpensCursor bool
}

// NewRun checks that doc is a command: a document with at least one element, whose key is the
// command's name.
func NewRun(doc bson.Raw) (*Run, error) {
	if err := doc.Validate(); err != nil {
		return nil, err
	}
	if doc.IsEmpty() {
		return nil, errors.New("command document is empty: its first key must be the command's name")
	}
	return &Run{Doc: doc}, nil
}

// Name implements Command.
func (c *Run) Name() string {
	for key := range c.Doc.All() {
		return strings.Clone(key)
	}
	return ""
}

// AppendBody implements Command.
func (c *Run) AppendBody(dst []byte, t *Target) ([]byte, error) {
	return append(dst, c.Doc[4:len(c.Doc)-1]...), nil
}
