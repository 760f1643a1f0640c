package bson

import (
	"bytes"
	"errors"
	"fmt"
)

// DBRef refers to a document in another collection by convention: it is an embedded document with
// the keys $ref, $id and, optionally, $db. The server does not follow it by itself. It is not
// related to DBPointer.
//
// As a field's type, it is encoded with its keys in the order that the convention asks for, and
// decoded from any order. In a variable of type any, a document stays a document; use ParseDBRef.
// The default options are used for what is in ID and Extra.
type DBRef struct {
	Collection string // $ref
	ID         any    // $id: the _id of the document, of any type
	Database   string // $db; empty, as without one, for the database of the document that refers
	Extra      D      // further elements, in their order
}

var errNotDBRef = errors.New("bson: document is no DBRef")

// ParseDBRef returns the DBRef in a document, whose keys may be in any order. It is an error if
// $ref or $id is missing, or if $ref or $db is not a string.
func ParseDBRef(doc Raw) (DBRef, error) {
	var ref DBRef
	err := ref.UnmarshalBSON(doc)
	return ref, err
}

// D returns ref as a document: $ref, $id, $db if it is not empty, and Extra.
func (ref DBRef) D() D {
	d := make(D, 0, 3+len(ref.Extra))
	d = append(d, E{"$ref", ref.Collection}, E{"$id", ref.ID})
	if ref.Database != "" {
		d = append(d, E{"$db", ref.Database})
	}
	return append(d, ref.Extra...)
}

// IsZero reports whether ref is the zero value.
func (ref DBRef) IsZero() bool {
	return ref.Collection == "" && ref.ID == nil && ref.Database == "" && ref.Extra == nil
}

// String returns ref as relaxed Extended JSON.
func (ref DBRef) String() string { return ref.D().String() }

// MarshalBSON implements Marshaler.
func (ref DBRef) MarshalBSON() ([]byte, error) { return Marshal(ref) }

// checkExtra refuses further elements that would be taken for others.
func (ref *DBRef) checkExtra() error {
	for _, e := range ref.Extra {
		if e.Key == "$ref" || e.Key == "$id" || e.Key == "$db" {
			return fmt.Errorf("%s among the extra elements", e.Key)
		}
	}
	return nil
}

// UnmarshalBSON implements Unmarshaler.
func (ref *DBRef) UnmarshalBSON(data []byte) error {
	var got DBRef
	seen := map[string]bool{}
	if err := Raw(data).Validate(); err != nil {
		return err
	}
	for key, v := range Raw(data).All() {
		ok := true
		switch key {
		case "$ref":
			got.Collection, ok = v.StringValue()
		case "$db":
			got.Database, ok = v.StringValue()
		case "$id":
			if err := v.Unmarshal(&got.ID); err != nil {
				return err
			}
		default:
			var value any
			if err := v.Unmarshal(&value); err != nil {
				return err
			}
			got.Extra = append(got.Extra, E{string([]byte(key)), value}) // a key that does not share memory with data
			continue
		}
		if !ok {
			return fmt.Errorf("%w: %s is a %s, not a string", errNotDBRef, key, v.Type)
		}
		if seen[key] {
			return fmt.Errorf("%w: it has %s twice", errNotDBRef, key)
		}
		seen[key] = true
	}
	for _, key := range []string{"$ref", "$id"} {
		if !seen[key] {
			return fmt.Errorf("%w: it has no %s", errNotDBRef, key)
		}
	}
	*ref = got
	return nil
}

// MarshalJSON returns ref as a JSON object, as D.MarshalJSON does.
func (ref DBRef) MarshalJSON() ([]byte, error) { return ref.D().MarshalJSON() }

// UnmarshalJSON reads an object of JSON or Extended JSON. As usual in encoding/json, null changes
// nothing.
func (ref *DBRef) UnmarshalJSON(text []byte) error {
	if string(bytes.TrimSpace(text)) == "null" {
		return nil
	}
	doc, err := ParseExtJSON(text)
	if err != nil {
		return err
	}
	return ref.UnmarshalBSON(doc)
}
