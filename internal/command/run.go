package command

import (
	"errors"
	"fmt"
	"strings"

	"allium/bson"
	"allium/mongoerr"
)

// Run is a command that the user wrote, already encoded.
type Run struct {
	Doc bson.Raw
	// OpensCursor says that the user expects a cursor.
	OpensCursor bool
}

// NewRun encodes a command and checks that it is one: a document with at least one element, whose
// key is the command's name.
func NewRun(o *bson.Options, cmd any) (*Run, error) {
	if IsNil(cmd) {
		return nil, mongoerr.ErrNilDocument
	}
	dst, err := appendPlaced(o, nil, "", cmd, placeCommand, "")
	if err != nil {
		return nil, err
	}
	if t := bson.Type(dst[0]); t != bson.TypeEmbeddedDocument {
		return nil, fmt.Errorf("a %T is a BSON %s, want a document", cmd, t)
	}
	doc := bson.Raw(dst[2:])
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
