// Package idl reads the arguments of commands as the server's generated parsers do: a table says
// which fields there are and of which types, and everything about errors follows from that:
// unknown, duplicate and missing fields, wrong types, null for "not given". Some commands of older
// servers have parsers written by hand, each with errors of its own; they are in the commands'
// files.
package idl

import (
	"slices"
	"strconv"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// Kind is what a field takes.
type Kind uint8

const (
	Any      Kind = iota // anything; null is a value like others
	Bool                 // a boolean
	SafeBool             // a boolean or a number
	Int                  // an int32
	Long                 // an int64
	Number               // any number, cut to an int64
	String
	Object
	Objects // an array of documents
	Ints    // an array of int32
	Date
	Timestamp
)

var typeNames = [...]string{
	Bool: "bool", SafeBool: "[bool, long, int, decimal, double']", Int: "int", Long: "long",
	Number: "[long, int, decimal, double']", String: "string", Object: "object", Date: "date", Timestamp: "timestamp",
}

// Field is a field of a Struct.
type Field struct {
	Kind  Kind
	Gated bool // not in every version: the table of package release says in which
	// Strict is the type before version 5.0, if that took less; Any: the same.
	Strict Kind
}

// Source is the command that arguments are read from.
type Source interface {
	Version() release.Version // the version that the server behaves as
	Message() (body bson.Raw, sequences []wire.Sequence)
}

// Struct describes a command, or a document within a command.
type Struct struct {
	Name     string // as errors show it: "update", "update.updates"
	Fields   map[string]Field
	Required []string // in the order in which they are missed
	// Lax takes fields that are not in the table, as some parsers of commands do before version
	// 5.0.
	Lax bool
}

func (t *Struct) Path(field string) string { return t.Name + "." + field }

// ParseCommand reads the request: its body, whose first element is the command itself, and its
// document sequences. set is called with every field that is given, of the right type.
func (t *Struct) ParseCommand(from Source, set func(k string, v bson.RawValue) error) error {
	body, _ := from.Message()
	return t.ParseBody(from, body, set)
}

// ParseBody is ParseCommand with a copy of the body, for what outlives the command.
func (t *Struct) ParseBody(from Source, body bson.Raw, set func(k string, v bson.RawValue) error) error {
	var seen seenFields
	first := true
	for k, v := range body.All() {
		if first {
			first = false
			continue
		}
		if err := t.element(from, k, v, true, &seen, set); err != nil {
			return err
		}
	}
	_, sequences := from.Message()
	for _, s := range sequences {
		f, ok := t.field(from, s.ID)
		if !ok || f.Kind != Objects {
			return arg.UnknownField(t.Path(s.ID))
		}
		if !seen.add(s.ID) {
			return srverr.New(40413, "BSON field '%s' is a duplicate field", t.Path(s.ID))
		}
		if err := set(s.ID, bson.RawValue{}); err != nil {
			return err
		}
	}
	return t.missing(&seen)
}

// Parse reads a document within a command.
func (t *Struct) Parse(from Source, doc bson.Raw, set func(k string, v bson.RawValue) error) error {
	var seen seenFields
	for k, v := range doc.All() {
		if err := t.element(from, k, v, false, &seen, set); err != nil {
			return err
		}
	}
	return t.missing(&seen)
}

func (t *Struct) missing(seen *seenFields) error {
	for _, k := range t.Required {
		if !seen.has(k) {
			return arg.MissingField(t.Path(k))
		}
	}
	return nil
}

func (t *Struct) field(from Source, k string) (Field, bool) {
	f, ok := t.Fields[k]
	if !ok || f == (Field{}) {
		return f, ok
	}
	v := from.Version()
	if f.Strict != Any && !v.AtLeast(5, 0) {
		f.Kind = f.Strict
	}
	return f, !f.Gated || v.Has(release.Argument, t.Name+"."+k)
}

func (t *Struct) element(from Source, k string, v bson.RawValue, command bool, seen *seenFields, set func(string, bson.RawValue) error) error {
	f, ok := t.field(from, k)
	if !ok {
		if command && Generic(from.Version(), k) || t.Lax {
			return nil
		}
		return arg.UnknownField(t.Path(k))
	}
	given, err := f.Kind.Check(from, t.Name, k, v)
	if err != nil || !given {
		return err
	}
	if !seen.add(k) {
		return srverr.New(40413, "BSON field '%s' is a duplicate field", t.Path(k))
	}
	return set(k, v)
}

// Check checks the type of a value. given is false for null where that means that there is none.
func (kind Kind) Check(from Source, within, name string, v bson.RawValue) (given bool, err error) {
	null := v.Type == bson.TypeNull || v.Type == bson.TypeUndefined
	ok := false
	switch kind {
	case Any:
		return true, nil
	case Bool:
		ok = v.Type == bson.TypeBoolean
	case SafeBool:
		ok = v.Type == bson.TypeBoolean || v.IsNumber()
	case Int:
		ok = v.Type == bson.TypeInt32
	case Long:
		ok = v.Type == bson.TypeInt64
	case Number:
		ok = v.IsNumber()
	case String:
		ok = v.Type == bson.TypeString
	case Object:
		ok = v.Type == bson.TypeEmbeddedDocument
	case Date:
		ok = v.Type == bson.TypeDateTime
	case Timestamp:
		ok = v.Type == bson.TypeTimestamp
	case Objects:
		return kind.checkArray(from, within, name, v, Object)
	case Ints:
		return kind.checkArray(from, within, name, v, Int)
	}
	switch {
	case null:
		return false, nil
	case ok:
		return true, nil
	case kind == SafeBool || kind == Number:
		return false, arg.WrongTypes(within+"."+name, v.Type, typeNames[kind])
	}
	return false, arg.WrongType(within+"."+name, v.Type, typeNames[kind])
}

// checkArray checks an array and the types of its elements. Before version 5.0 a document did as
// well, if its fields were called like those of an array.
func (kind Kind) checkArray(from Source, within, name string, v bson.RawValue, element Kind) (given bool, err error) {
	old := !from.Version().AtLeast(5, 0)
	switch {
	case v.Type == bson.TypeArray || old && v.Type == bson.TypeEmbeddedDocument:
	case old:
		return false, srverr.New(10065, "invalid parameter: expected an object (%s)", name)
	case v.Type == bson.TypeNull || v.Type == bson.TypeUndefined:
		return false, nil
	default:
		return false, arg.WrongType(within+"."+name, v.Type, "array")
	}
	i := 0
	for k, e := range bson.Raw(v.Value).All() {
		if k != indexName(i) {
			if n, err := strconv.Atoi(k); err != nil || n < 0 {
				return false, srverr.New(40422, "BSON array field '%s' has an invalid value '%s' for an array field name.", within+"."+name, k)
			}
			return false, srverr.New(40423, "BSON array field '%s' has a non-sequential value '%s' for an array field name, expected value '%d'.", within+"."+name, k, i)
		}
		want := typeNames[element]
		if e.Type != bson.TypeNull && e.Type != bson.TypeUndefined && bsontext.TypeName(e.Type) != want {
			return false, arg.WrongType(within+"."+name+"."+k, e.Type, want)
		}
		i++
	}
	return true, nil
}

var smallIndexes = [...]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

func indexName(i int) string {
	if i < len(smallIndexes) {
		return smallIndexes[i]
	}
	return strconv.Itoa(i)
}

// Documents returns the documents of an Objects field: of the array, or of the document
// sequence if there is one.
func Documents(from Source, field string, v bson.RawValue) []bson.Raw {
	return AppendDocuments(nil, from, field, v)
}

// AppendDocuments appends what Documents returns to a list.
func AppendDocuments(list []bson.Raw, from Source, field string, v bson.RawValue) []bson.Raw {
	if v.Type != 0 {
		for e := range bson.Raw(v.Value).Values() {
			if e.Type == bson.TypeEmbeddedDocument { // null is skipped
				list = append(list, e.Value)
			}
		}
		return list
	}
	var seq []byte
	_, sequences := from.Message()
	if i := slices.IndexFunc(sequences, func(s wire.Sequence) bool { return s.ID == field }); i >= 0 {
		seq = sequences[i].Docs
	}
	for len(seq) > 0 {
		doc, rest, err := bson.ReadDocument(seq)
		if err != nil {
			return list // cannot be: the message was validated
		}
		list = append(list, doc)
		seq = rest
	}
	return list
}

// seenFields is a small set of field names.
type seenFields struct {
	n    int
	few  [8]string
	more []string
}

func (s *seenFields) has(k string) bool {
	for _, x := range s.few[:s.n] {
		if x == k {
			return true
		}
	}
	for _, x := range s.more {
		if x == k {
			return true
		}
	}
	return false
}

// add reports whether the name is new.
func (s *seenFields) add(k string) bool {
	if s.has(k) {
		return false
	}
	if s.n < len(s.few) {
		s.few[s.n] = k
		s.n++
	} else {
		s.more = append(s.more, k)
	}
	return true
}

// runtimeConstants is what a mongos of 4.x sends along, so that $$NOW is the same on all shards.
var runtimeConstants = &Struct{Name: "internalRuntimeConstants", Required: []string{"localNow", "clusterTime"}, Fields: map[string]Field{
	"localNow": {Kind: Date}, "clusterTime": {Kind: Timestamp}, "jsScope": {Kind: Object}, "isMapReduce": {Kind: Bool},
}}

// CheckRuntimeConstants checks the runtime constants that a command has under this name.
func CheckRuntimeConstants(from Source, name string, doc bson.Raw) error {
	constants := *runtimeConstants
	constants.Name = name
	return constants.Parse(from, doc, func(string, bson.RawValue) error { return nil })
}
