package args

import (
	"slices"
	"strconv"
	"strings"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// kind is what a field takes.
type kind uint8

const (
	anything kind = iota // null is a value like others
	boolean
	safeBool // a boolean or a number
	int32s
	int64s
	number // any number, cut to an int64
	text
	object
	array
	either  // a document or an array
	hint    // a string or a document
	objects // an array of documents
	ints    // an array of int32
	strs    // an array of strings
	list    // an array whose elements are read elsewhere
	date
	timestamp
)

var kindNames = [...]string{
	boolean: "bool", safeBool: "[bool, long, int, decimal, double']", int32s: "int", int64s: "long",
	number: "[long, int, decimal, double']", // sic
	text:   "string", object: "object", array: "array", objects: "array", ints: "array", strs: "array", list: "array",
	date: "date", timestamp: "timestamp",
}

// String returns what errors say that the kind wants.
func (k kind) String() string { return kindNames[k] }

// types is what errors of a version say that the kind wants, if that are several types.
func (k kind) types(version release.Version) string {
	switch {
	case !version.AllParsed():
		return k.String()
	case k == safeBool:
		return "[int, decimal, long, bool, double]'"
	}
	return "[decimal, int, double, long]'"
}

// isArray reports whether the elements of an array are checked as well.
func (k kind) isArray() bool { return k == objects || k == ints || k == strs || k == list }

// takes reports whether a value has the kind's type. Elements of arrays are not looked at.
func (k kind) takes(v bson.RawValue) bool {
	switch k {
	case anything:
		return true
	case boolean:
		return v.Type == bson.TypeBoolean
	case safeBool:
		return v.Type == bson.TypeBoolean || v.IsNumber()
	case int32s:
		return v.Type == bson.TypeInt32
	case int64s:
		return v.Type == bson.TypeInt64
	case number:
		return v.IsNumber()
	case text:
		return v.Type == bson.TypeString
	case object:
		return v.Type == bson.TypeEmbeddedDocument
	case either:
		return v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray
	case hint:
		return v.Type == bson.TypeString || v.Type == bson.TypeEmbeddedDocument
	case date:
		return v.Type == bson.TypeDateTime
	case timestamp:
		return v.Type == bson.TypeTimestamp
	}
	return v.Type == bson.TypeArray
}

// check checks the type of a value that is not null as a generated parser does.
func (k kind) check(version release.Version, within, name string, v bson.RawValue) error {
	switch {
	case k == objects:
		return checkArray(version, within, name, v, object)
	case k == ints:
		return checkArray(version, within, name, v, int32s)
	case k == strs:
		return checkArray(version, within, name, v, text)
	case k == list:
		return checkArray(version, within, name, v, anything)
	case k.takes(v):
		return nil
	case k == safeBool || k == number:
		return WrongTypes(within+"."+name, v.Type, k.types(version))
	}
	return WrongType(within+"."+name, v.Type, k.String())
}

// CheckDocuments checks that a value is an array of documents, or something that the version takes
// for one.
func CheckDocuments(from Source, within, name string, v bson.RawValue) error {
	if IsNull(v) && from.Version().AtLeast(5, 0) {
		return nil
	}
	return checkArray(from.Version(), within, name, v, object)
}

// IsNull reports whether a value is null or undefined, which definitions take for one.
func IsNull(v bson.RawValue) bool { return v.Type == bson.TypeNull || v.Type == bson.TypeUndefined }

// checkArray checks an array and the types of its elements. Before version 5.0 a document did as
// well, if its fields were called like those of an array. Null is no array.
func checkArray(version release.Version, within, name string, v bson.RawValue, element kind) error {
	old := !version.AtLeast(5, 0)
	switch {
	case v.Type == bson.TypeArray || old && v.Type == bson.TypeEmbeddedDocument:
	case old || IsNull(v):
		return NoObject(name)
	default:
		return WrongType(within+"."+name, v.Type, "array")
	}
	i := 0
	for k, e := range bson.Raw(v.Value).All() {
		if k != indexName(i) {
			if n, err := strconv.Atoi(k); err != nil || n < 0 {
				return srverr.New(40422, "BSON array field '%s' has an invalid value '%s' for an array field name.",
					within+"."+name, k)
			}
			return srverr.New(
				40423, "BSON array field '%s' has a non-sequential value '%s' for an array field name, expected value '%d'.", within+"."+name, k, i)
		}
		want := element.String()
		if element != anything && !IsNull(e) && bsontext.TypeName(e.Type) != want {
			return WrongType(within+"."+name+"."+k, e.Type, want)
		}
		i++
	}
	return nil
}

var smallIndexes = [...]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

func indexName(i int) string {
	if i < len(smallIndexes) {
		return smallIndexes[i]
	}
	return strconv.Itoa(i)
}

// when says which versions have a field.
type when uint8

const (
	always when = iota
	listed      // those of the table of package release
	since50
	before50
)

// rule is what a field takes, and when.
type rule struct {
	kind     kind
	when     when
	before   kind // what it took before version 5.0, if differs
	differs  bool
	only50   bool   // a boolean alone since version 5.0
	typed    kind   // what a definition has it take where all arguments have one (release.AllParsed)
	optional bool   // null says that there is none, although it would be a value
	must     bool   // null is a wrong type
	kept     bool   // the value itself is kept, which lies in the message
	says     *words // what is said of a wrong type, if not as a generated parser says it
	old      *words // likewise, before version 5.0
	now      *words // likewise, since version 5.0
}

// words are the error of a value of a wrong type.
type words struct {
	code   int32
	format string // with two verbs for the field and the type that it has, or one for the field
}

func (w *words) error(k string, v bson.RawValue) error {
	values := []any{k, bsontext.TypeName(v.Type)}
	return srverr.New(w.code, w.format, values[:min(strings.Count(w.format, "%"), len(values))]...)
}

// Value is what a field is given.
type Value struct {
	bson.RawValue
	Name string // of the field
	From Source
}

// Long is the value as a number, 0 if it is none.
func (v Value) Long() int64 { return longOf(v.RawValue) }

// Field is an argument in a Table: what it takes, which versions have it, and where it goes. The
// zero Field takes anything and keeps nothing.
type Field[T any] struct {
	rule
	set func(q *T, v Value) error
}

// The constructors are told where the value goes; nil: it is checked, and not kept.

func bind[T, V any](k kind, to func(*T) *V, read func(v bson.RawValue) V) Field[T] {
	f := Field[T]{rule: rule{kind: k}}
	if to != nil {
		f.set = func(q *T, v Value) error {
			*to(q) = read(v.RawValue)
			return nil
		}
	}
	return f
}

// Any takes anything; null is a value like others.
func Any[T any](to func(*T) *bson.RawValue) Field[T] { return bind(anything, to, valueOf).Kept() }

// Truth takes anything for a boolean.
func Truth[T any](to func(*T) *bool) Field[T] { return bind(anything, to, bson.RawValue.AsBool) }

// Bool takes a boolean.
func Bool[T any](to func(*T) *bool) Field[T] { return bind(boolean, to, bson.RawValue.AsBool) }

// SafeBool takes a boolean or a number.
func SafeBool[T any](to func(*T) *bool) Field[T] { return bind(safeBool, to, bson.RawValue.AsBool) }

// AnyNumber takes anything; what is no number is 0.
func AnyNumber[T any](to func(*T) *int64) Field[T] { return bind(anything, to, longOf) }

// Flag is a SafeBool with the error of ExtractBool.
func Flag[T any](to func(*T) *bool) Field[T] { return SafeBool(to).Says(notFlag.code, notFlag.format) }

// Int takes an int32.
func Int[T any](to func(*T) *int32) Field[T] {
	return bind(int32s, to, func(v bson.RawValue) int32 { n, _ := v.Int32(); return n })
}

// Long takes an int64.
func Long[T any](to func(*T) *int64) Field[T] { return bind(int64s, to, longOf) }

// Number takes any number and cuts it to an int64.
func Number[T any](to func(*T) *int64) Field[T] { return bind(number, to, longOf) }

// String takes a string.
func String[T any](to func(*T) *string) Field[T] { return bind(text, to, bsondoc.MustString) }

// Object takes a document.
func Object[T any](to func(*T) *bson.Raw) Field[T] { return bind(object, to, rawOf).Kept() }

// AnyObject takes a document or an array.
func AnyObject[T any](to func(*T) *bson.Raw) Field[T] {
	return bind(either, to, rawOf).Kept().Says(10065, noObject)
}

// Array takes an array of anything.
func Array[T any](to func(*T) *bson.RawValue) Field[T] { return bind(array, to, valueOf).Kept() }

// Timestamp takes a timestamp.
func Timestamp[T any](to func(*T) *bson.RawValue) Field[T] { return bind(timestamp, to, valueOf) }

// UUID takes the UUID of a collection. Before version 8.1, where the errors are not known, what is
// none is left unread.
func UUID[T any](of string, to func(*T) *[]byte) Field[T] {
	return Any[T](nil).Then(func(q *T, v Value) error {
		path := of + "." + v.Name
		b, ok := v.Binary()
		switch {
		case ok && b.Subtype == bson.BinaryUUID && len(b.Data) == 16:
			if to != nil {
				*to(q) = b.Data
			}
			return nil
		case !v.From.Version().AllParsed() || IsNull(v.RawValue):
			return nil
		case !ok:
			return WrongType(path, v.Type, "binData")
		case b.Subtype != bson.BinaryUUID:
			return WrongType(path, v.Type, "UUID")
		}
		return srverr.New(srverr.InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")
	})
}

// Hint takes an index name or a key pattern.
func Hint[T any](to func(*T) *bson.RawValue) Field[T] {
	return bind(hint, to, valueOf).Kept().Says(srverr.FailedToParse, "Hint must be a string or an object")
}

// Objects takes an array of documents, or a document sequence.
func Objects[T any](to func(*T) *[]bson.Raw) Field[T] {
	f := bind[T, any](objects, nil, nil).Kept()
	if to != nil {
		f.set = func(q *T, v Value) error {
			list := to(q)
			*list = v.AppendDocuments((*list)[:0])
			return nil
		}
	}
	return f
}

// Ints takes an array of int32.
func Ints[T any](to func(*T) *[]int32) Field[T] {
	return bind(ints, to, func(v bson.RawValue) []int32 {
		list := []int32{}
		for e := range bson.Raw(v.Value).Values() {
			n, _ := e.Int32()
			list = append(list, n)
		}
		return list
	})
}

// List takes an array of anything, whose elements are read elsewhere.
func List[T any](to func(*T) *bson.RawValue) Field[T] { return bind(list, to, valueOf).Kept() }

// Strings takes an array of strings.
func Strings[T any](to func(*T) *bson.RawValue) Field[T] { return bind(strs, to, valueOf) }

func valueOf(v bson.RawValue) bson.RawValue { return v }

func rawOf(v bson.RawValue) bson.Raw { return v.Value }

func longOf(v bson.RawValue) int64 { n, _ := NumberOf(v); return n }

// The methods return the field with one property more.

// Gated is for what is there in the versions alone that the table of package release says.
func (f Field[T]) Gated() Field[T] { f.when = listed; return f }

// Since50 is for what is there since version 5.0.
func (f Field[T]) Since50() Field[T] { f.when = since50; return f }

// Before50 is for what was there before version 5.0.
func (f Field[T]) Before50() Field[T] { f.when = before50; return f }

// Strict is for what took a boolean alone before version 5.0.
func (f Field[T]) Strict() Field[T] { f.before, f.differs = boolean, true; return f }

// Loose is for what took anything before version 5.0.
func (f Field[T]) Loose() Field[T] { f.before, f.differs = anything, true; return f }

// Kept has the value copied in a table with Copy.
func (f Field[T]) Kept() Field[T] { f.kept = true; return f }

// Optional has null say that there is no value, where it would be one, or a wrong type.
func (f Field[T]) Optional() Field[T] { f.optional = true; return f }

// Must has null be a wrong type.
func (f Field[T]) Must() Field[T] { f.must = true; return f }

// Says has a wrong type, also null, answered in other words: format may have a verb for the field's
// name, and one for the type that it has.
func (f Field[T]) Says(code int32, format string) Field[T] { f.says = &words{code, format}; return f }

// Old has a wrong type answered in other words before version 5.0.
func (f Field[T]) Old(code int32, format string) Field[T] { f.old = &words{code, format}; return f }

// Now has a wrong type, also null, answered in other words since version 5.0.
func (f Field[T]) Now(code int32, format string) Field[T] { f.now = &words{code, format}; return f }

// Flag50 is for what is a boolean and nothing else since version 5.0, and has an error of its own.
func (f Field[T]) Flag50() Field[T] {
	f.now, f.only50 = &words{srverr.TypeMismatch, "Field '%s' should be a boolean value, but found: %s"}, true
	return f
}

// Typed is for what a definition checks where servers have one for all arguments
// ([release.Version.AllParsed]), and code before: a wrong type is answered as others are, and null
// says that there is no value.
func (f Field[T]) Typed() Field[T] {
	f.typed = f.kind
	if f.kind == either {
		f.typed = object
	}
	return f
}

// TypedBool is Typed for what has to be a boolean there.
func (f Field[T]) TypedBool() Field[T] { f.typed = boolean; return f }

// TypedFlag is Typed for what has to be a boolean or a number there.
func (f Field[T]) TypedFlag() Field[T] { f.typed = safeBool; return f }

// TypedObject is Typed for what has to be a document there.
func (f Field[T]) TypedObject() Field[T] { f.typed = object; return f }

// TypedNumber is Typed for what has to be a number there.
func (f Field[T]) TypedNumber() Field[T] { f.typed = number; return f }

// AtLeast refuses smaller numbers since version 5.0.
func (f Field[T]) AtLeast(least int64) Field[T] {
	return f.Then(func(_ *T, v Value) error {
		if n := v.Long(); n < least && v.From.Version().AtLeast(5, 0) {
			return TooSmall(v.From.Version(), v.Name, least, n)
		}
		return nil
	})
}

// AtMost refuses greater numbers since version 5.0.
func (f Field[T]) AtMost(most int64) Field[T] {
	return f.Then(func(_ *T, v Value) error {
		if n := v.Long(); n > most && v.From.Version().AtLeast(5, 0) {
			return TooLarge(v.From.Version(), v.Name, most, n)
		}
		return nil
	})
}

// Then has more done after the value is kept.
func (f Field[T]) Then(then func(q *T, v Value) error) Field[T] {
	set := f.set
	if f.set = then; set != nil {
		f.set = func(q *T, v Value) error {
			if err := set(q, v); err != nil {
				return err
			}
			return then(q, v)
		}
	}
	return f
}

// OneOf takes some strings alone; format is the error for another, and what is no string is the
// empty one.
func (f Field[T]) OneOf(format string, values ...string) Field[T] {
	return f.Says(srverr.BadValue, strings.TrimSuffix(format, "%s")).Then(func(_ *T, v Value) error {
		if s := bsondoc.MustString(v.RawValue); !slices.Contains(values, s) {
			return srverr.New(srverr.BadValue, format, s)
		}
		return nil
	})
}

// Note has it noted that there is a value.
func (f Field[T]) Note(given func(*T) *bool) Field[T] {
	return f.Then(func(q *T, _ Value) error { *given(q) = true; return nil })
}

// Within is a field of a U that has a T.
func Within[U, T any](f Field[T], to func(*U) *T) Field[U] {
	g := Field[U]{rule: f.rule}
	if f.set != nil {
		g.set = func(q *U, v Value) error { return f.set(to(q), v) }
	}
	return g
}

// Documents returns the documents of an array of documents, or of the document sequence of the
// field's name if there is one.
func (v Value) Documents() []bson.Raw { return v.AppendDocuments(nil) }

// AppendDocuments appends what Documents returns to a list.
func (v Value) AppendDocuments(list []bson.Raw) []bson.Raw {
	if v.Type != 0 {
		for e := range bson.Raw(v.Value).Values() {
			if e.Type == bson.TypeEmbeddedDocument { // null is skipped
				list = append(list, e.Value)
			}
		}
		return list
	}
	var seq []byte
	_, sequences := v.From.Message()
	if i := slices.IndexFunc(sequences, func(s wire.Sequence) bool { return s.ID == v.Name }); i >= 0 {
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
