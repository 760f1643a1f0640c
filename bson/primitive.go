package bson

// The types of BSON that are little more than a name, among them the deprecated ones.

import (
	"encoding/json"
	"errors"
	"fmt"
)

// JavaScript is BSON JavaScript code.
type JavaScript string

// CodeWithScope is BSON JavaScript code with the variables it sees (deprecated). The scope is a
// document: a D, an M, a Raw, a struct, ...; nil stands for an empty one.
type CodeWithScope struct {
	Code  JavaScript
	Scope any
}

// Symbol is the deprecated BSON symbol type. The server compares it as a string.
type Symbol string

// DBPointer is the deprecated BSON DBPointer type. It is not a DBRef.
type DBPointer struct {
	DB      string // the namespace, "database.collection"
	Pointer ObjectID
}

// Undefined is the deprecated BSON undefined value.
type Undefined struct{}

// Null is the BSON null value, for where a nil interface cannot stand.
type Null struct{}

// MinKey sorts before, MaxKey after every other value.
type (
	MinKey struct{}
	MaxKey struct{}
)

// String returns c as Code("...", scope).
func (c CodeWithScope) String() string {
	scope := "<nil>"
	if c.Scope != nil {
		scope = relaxed(c.Scope)
	}
	return fmt.Sprintf("Code(%q, %s)", string(c.Code), scope)
}

// String returns p as DBPointer("...", ObjectID("...")).
func (p DBPointer) String() string { return fmt.Sprintf("DBPointer(%q, %v)", p.DB, p.Pointer) }

// IsZero reports whether p has neither namespace nor ObjectID.
func (p DBPointer) IsZero() bool { return p == DBPointer{} }

// String returns "undefined".
func (Undefined) String() string { return "undefined" }

// String returns "null".
func (Null) String() string { return "null" }

// String returns "MinKey".
func (MinKey) String() string { return "MinKey" }

// String returns "MaxKey".
func (MaxKey) String() string { return "MaxKey" }

// MarshalJSON returns c as Extended JSON.
func (c CodeWithScope) MarshalJSON() ([]byte, error) { return MarshalExtJSON(c, false) }

// UnmarshalJSON reads what MarshalJSON returns, with the scope as a D.
func (c *CodeWithScope) UnmarshalJSON(text []byte) error {
	return unmarshalExtJSONOf(text, c, func(v RawValue) (got CodeWithScope, ok bool) {
		err := v.Unmarshal(&got)
		return got, err == nil
	})
}

// MarshalJSON returns p as Extended JSON.
func (p DBPointer) MarshalJSON() ([]byte, error) {
	return marshalExtJSONOf(TypeDBPointer, append(AppendStringValue(nil, p.DB), p.Pointer[:]...))
}

// UnmarshalJSON reads what MarshalJSON returns.
func (p *DBPointer) UnmarshalJSON(text []byte) error {
	return unmarshalExtJSONOf(text, p, RawValue.DBPointer)
}

// MarshalJSON returns null.
func (Null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// MarshalJSON returns {"$undefined":true}.
func (Undefined) MarshalJSON() ([]byte, error) { return marshalExtJSONOf(TypeUndefined, nil) }

// MarshalJSON returns {"$minKey":1}.
func (MinKey) MarshalJSON() ([]byte, error) { return marshalExtJSONOf(TypeMinKey, nil) }

// MarshalJSON returns {"$maxKey":1}.
func (MaxKey) MarshalJSON() ([]byte, error) { return marshalExtJSONOf(TypeMaxKey, nil) }

// UnmarshalJSON reads null.
func (*Null) UnmarshalJSON(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil || v != nil {
		return fmt.Errorf("bson: decode JSON %s into bson.Null: it is not null", clip(string(text)))
	}
	return nil
}

// UnmarshalJSON reads what MarshalJSON returns.
func (u *Undefined) UnmarshalJSON(text []byte) error {
	return unmarshalExtJSONOf(text, u, isType[Undefined](TypeUndefined))
}

// UnmarshalJSON reads what MarshalJSON returns.
func (k *MinKey) UnmarshalJSON(text []byte) error {
	return unmarshalExtJSONOf(text, k, isType[MinKey](TypeMinKey))
}

// UnmarshalJSON reads what MarshalJSON returns.
func (k *MaxKey) UnmarshalJSON(text []byte) error {
	return unmarshalExtJSONOf(text, k, isType[MaxKey](TypeMaxKey))
}

func isType[T any](want Type) func(RawValue) (T, bool) {
	return func(v RawValue) (t T, ok bool) { return t, v.Type == want }
}

func marshalExtJSONOf(t Type, value []byte) ([]byte, error) {
	return AppendExtJSONValue(nil, RawValue{Type: t, Value: value}, false)
}

var errWrongExtJSON = errors.New("another type of value")

// wrongJSON returns the error of JSON that does not fit into a variable: what would fit, of the
// types that come in requests.
func wrongJSON(into any) error {
	switch into.(type) {
	case *ObjectID:
		return errors.New("want a string of 24 hexadecimal digits")
	case *UUID:
		return errors.New("want a string of the form 00112233-4455-6677-8899-aabbccddeeff")
	case *Decimal128:
		return errors.New("want a number, or a string that is one")
	case *DateTime:
		return errors.New("want a time as RFC 3339 has it")
	}
	return errWrongExtJSON
}

// unmarshalExtJSONOf reads Extended JSON of one type for an UnmarshalJSON method. As encoding/json
// wants it, null changes nothing.
func unmarshalExtJSONOf[T any](text []byte, into *T, get func(RawValue) (T, bool)) error {
	v, err := ParseExtJSONValue(text)
	if err != nil {
		return err
	}
	if v.Type == TypeNull {
		return nil
	}
	got, ok := get(v)
	if !ok {
		return fmt.Errorf("bson: decode JSON %s into %T: %w", clip(string(text)), *into, wrongJSON(into))
	}
	*into = got
	return nil
}
