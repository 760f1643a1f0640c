package bson

import "reflect"

// ShapeKind says what values of a Go type consist of once they are encoded.
type ShapeKind uint8

// The kinds of shape. A value has a form of its own: a number, a string, a datetime, what methods
// or a codec of the program's make of it, or a D. A struct becomes a document with a key for each
// of Shape.Fields, a map one whose keys are the map's, and a list an array of its elements. A
// pointer has the shape of what it points to.
const (
	ShapeValue ShapeKind = iota
	ShapeStruct
	ShapeMap
	ShapeList
	ShapePointer
)

// Shape is what becomes of the values of a Go type.
type Shape struct {
	// Kind says what the other fields are about.
	Kind ShapeKind
	// Fields are the fields of a struct in the order in which they are encoded.
	Fields []ShapeField
}

// ShapeField is a field of a struct type that is encoded.
type ShapeField struct {
	// Key is the field's key in the document. An inline map has none.
	Key string
	// Index leads to the field, as in reflect.Value.FieldByIndex: it has one number, and one more
	// for each struct that the field is inline in.
	Index []int
	// Type is the field's Go type.
	Type reflect.Type
	// InlineMap says that the field is a map whose entries are keys of the document itself.
	InlineMap bool
	// Optional says that the key is left out for some values: omitempty, omitzero, or a struct that
	// is inline by a pointer, which may be nil.
	Optional bool
}

// ShapeOf returns what becomes of values of the type t. It is for libraries that need to know which
// keys a type has and where, and asks what Marshal asks: tags, methods and codecs. The error is
// that of a struct type which cannot be encoded, such as one with a key twice.
func ShapeOf(t reflect.Type) (Shape, error) { return defaultConfig.shapeOf(t) }

// ShapeOf is the function ShapeOf with these options.
func (o Options) ShapeOf(t reflect.Type) (Shape, error) { return o.config().shapeOf(t) }

func (c *config) shapeOf(t reflect.Type) (Shape, error) {
	s := Shape{Kind: c.codec(t, c.flags()).shape}
	if s.Kind != ShapeStruct {
		return s, nil
	}
	fields, _, err := structFields(t, c)
	if err != nil {
		return Shape{}, &EncodeError{GoType: t, Err: err}
	}
	s.Fields = make([]ShapeField, len(fields))
	for i, f := range fields {
		s.Fields[i] = ShapeField{Key: f.key, Index: f.index, Type: f.typ, InlineMap: f.inlineMap,
			Optional: f.omitEmpty || f.omitZero || len(f.hops) > 0}
		if f.inlineMap {
			s.Fields[i].Key = ""
		}
	}
	return s, nil
}

// basicShape returns the shape of a type that has a codec of the package's own.
func basicShape(t reflect.Type) ShapeKind {
	switch t {
	case reflect.TypeFor[M]():
		return ShapeMap
	case reflect.TypeFor[A]():
		return ShapeList
	}
	return ShapeValue
}
