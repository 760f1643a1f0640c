package server

import (
	"strconv"

	"allium/bson"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// Arguments as the server's generated parsers read them: a table says which fields there are and of
// which types, and everything about errors follows from that: unknown, duplicate and missing
// fields, wrong types, null for "not given". Some commands of older servers have parsers written by
// hand, each with errors of its own; they are in the commands' files.

// idlKind is what a field takes.
type idlKind uint8

const (
	idlAny      idlKind = iota // anything; null is a value like others
	idlBool                    // a boolean
	idlSafeBool                // a boolean or a number
	idlInt                     // an int32
	idlLong                    // an int64
	idlNumber                  // any number, cut to an int64
	idlString
	idlObject
	idlObjects // an array of documents
	idlInts    // an array of int32
	idlDate
	idlTimestamp
)

var idlTypes = [...]string{
	idlBool: "bool", idlSafeBool: "[bool, long, int, decimal, double']", idlInt: "int", idlLong: "long",
	idlNumber: "[long, int, decimal, double']", idlString: "string", idlObject: "object", idlDate: "date", idlTimestamp: "timestamp",
}

// idlField is a field of an idlStruct.
type idlField struct {
	kind  idlKind
	since release.Version // zero: in every version
	until release.Version // before this one; zero: no end
	// strict is the type before version 5.0, if that took less; idlAny: the same.
	strict idlKind
}

// idlStruct describes a command, or a document within a command.
type idlStruct struct {
	name     string // as errors show it: "update", "update.updates"
	fields   map[string]idlField
	required []string // in the order in which they are missed
	// lax takes fields that are not in the table, as some parsers of commands do before version
	// 5.0.
	lax bool
}

func (t *idlStruct) path(field string) string { return t.name + "." + field }

// parseCommand reads the request: its body, whose first element is the command itself, and its
// document sequences. set is called with every field that is given, of the right type.
func (t *idlStruct) parseCommand(r *Request, set func(k string, v bson.RawValue) error) error {
	return t.parseBody(r, r.Body, set)
}

// parseBody is parseCommand with a copy of the body, for what outlives the command.
func (t *idlStruct) parseBody(r *Request, body bson.Raw, set func(k string, v bson.RawValue) error) error {
	var seen idlSeen
	first := true
	for k, v := range body.All() {
		if first {
			first = false
			continue
		}
		if err := t.element(r, k, v, true, &seen, set); err != nil {
			return err
		}
	}
	for _, s := range r.Sequences {
		f, ok := t.field(r, s.ID)
		if !ok || f.kind != idlObjects {
			return arg.UnknownField(t.path(s.ID))
		}
		if !seen.add(s.ID) {
			return srverr.New(40413, "BSON field '%s' is a duplicate field", t.path(s.ID))
		}
		if err := set(s.ID, bson.RawValue{}); err != nil {
			return err
		}
	}
	return t.missing(&seen)
}

// parse reads a document within a command.
func (t *idlStruct) parse(r *Request, doc bson.Raw, set func(k string, v bson.RawValue) error) error {
	var seen idlSeen
	for k, v := range doc.All() {
		if err := t.element(r, k, v, false, &seen, set); err != nil {
			return err
		}
	}
	return t.missing(&seen)
}

func (t *idlStruct) missing(seen *idlSeen) error {
	for _, k := range t.required {
		if !seen.has(k) {
			return arg.MissingField(t.path(k))
		}
	}
	return nil
}

func (t *idlStruct) field(r *Request, k string) (idlField, bool) {
	f, ok := t.fields[k]
	if !ok || f == (idlField{}) {
		return f, ok
	}
	v := r.Node.cfg.Version
	if f.strict != idlAny && !v.AtLeast(5, 0) {
		f.kind = f.strict
	}
	return f, v.AtLeastPatch(f.since) && (f.until.Major == 0 || !v.AtLeastPatch(f.until))
}

func (t *idlStruct) element(r *Request, k string, v bson.RawValue, command bool, seen *idlSeen, set func(string, bson.RawValue) error) error {
	f, ok := t.field(r, k)
	if !ok {
		if command && r.generic(k) || t.lax {
			return nil
		}
		return arg.UnknownField(t.path(k))
	}
	given, err := f.kind.check(r, t.name, k, v)
	if err != nil || !given {
		return err
	}
	if !seen.add(k) {
		return srverr.New(40413, "BSON field '%s' is a duplicate field", t.path(k))
	}
	return set(k, v)
}

// check checks the type of a value. given is false for null where that means that there is none.
func (kind idlKind) check(r *Request, within, name string, v bson.RawValue) (given bool, err error) {
	null := v.Type == bson.TypeNull || v.Type == bson.TypeUndefined
	ok := false
	switch kind {
	case idlAny:
		return true, nil
	case idlBool:
		ok = v.Type == bson.TypeBoolean
	case idlSafeBool:
		ok = v.Type == bson.TypeBoolean || v.IsNumber()
	case idlInt:
		ok = v.Type == bson.TypeInt32
	case idlLong:
		ok = v.Type == bson.TypeInt64
	case idlNumber:
		ok = v.IsNumber()
	case idlString:
		ok = v.Type == bson.TypeString
	case idlObject:
		ok = v.Type == bson.TypeEmbeddedDocument
	case idlDate:
		ok = v.Type == bson.TypeDateTime
	case idlTimestamp:
		ok = v.Type == bson.TypeTimestamp
	case idlObjects:
		return kind.checkArray(r, within, name, v, idlObject)
	case idlInts:
		return kind.checkArray(r, within, name, v, idlInt)
	}
	switch {
	case null:
		return false, nil
	case ok:
		return true, nil
	case kind == idlSafeBool || kind == idlNumber:
		return false, arg.WrongTypes(within+"."+name, v.Type, idlTypes[kind])
	}
	return false, arg.WrongType(within+"."+name, v.Type, idlTypes[kind])
}

// checkArray checks an array and the types of its elements. Before version 5.0 a document did as
// well, if its fields were called like those of an array.
func (kind idlKind) checkArray(r *Request, within, name string, v bson.RawValue, element idlKind) (given bool, err error) {
	old := !r.Node.cfg.Version.AtLeast(5, 0)
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
		want := idlTypes[element]
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

// documents returns the documents of an idlObjects field: of the array, or of the document sequence
// if there is one.
func (r *Request) documents(field string, v bson.RawValue) []bson.Raw {
	var list []bson.Raw
	if v.Type != 0 {
		for e := range bson.Raw(v.Value).Values() {
			if e.Type == bson.TypeEmbeddedDocument { // null is skipped
				list = append(list, e.Value)
			}
		}
		return list
	}
	seq, _ := r.Sequence(field)
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

// idlSeen is a small set of field names.
type idlSeen struct {
	n    int
	few  [8]string
	more []string
}

func (s *idlSeen) has(k string) bool {
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
func (s *idlSeen) add(k string) bool {
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
var runtimeConstants = &idlStruct{name: "internalRuntimeConstants", required: []string{"localNow", "clusterTime"}, fields: map[string]idlField{
	"localNow": {kind: idlDate}, "clusterTime": {kind: idlTimestamp}, "jsScope": {kind: idlObject}, "isMapReduce": {kind: idlBool},
}}

func (r *Request) checkRuntimeConstants(name string, doc bson.Raw) error {
	constants := *runtimeConstants
	constants.name = name
	return constants.parse(r, doc, func(string, bson.RawValue) error { return nil })
}
