package bson

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// UnionVariant is a type that values of a Union may have; Variant makes one.
type UnionVariant struct {
	name    string
	t       reflect.Type // not a pointer
	pointer bool         // decoded as a pointer to t
}

// Variant returns the variant of a union whose values have the Go type V, a struct or a pointer to
// one, and are called name in documents.
func Variant[V any](name string) UnionVariant {
	v := UnionVariant{name: name, t: reflect.TypeFor[V]()}
	if v.t.Kind() == reflect.Pointer {
		v.t, v.pointer = v.t.Elem(), true
	}
	return v
}

// union is an interface type with its variants.
type union struct {
	key      string
	variants []UnionVariant
}

// Union returns a codec for the interface type I, whose values have one of a few types: a field
// with this key, the first of the document, says which.
//
//	bson.Union[Shape]("kind", bson.Variant[Circle]("circle"), bson.Variant[*Square]("square"))
//
// It holds in both directions and in every place: in fields, slices, maps, behind pointers, and at
// the top. The variants have the field also where their own type is the variable's, as that of a
// collection of circles. There a document without it is decoded all the same; one with another name
// is an error. A nil is null. A value of another type, a name that no variant has and a document
// without the field are errors.
//
// The variants are encoded as they are without the codec, and must become documents. A variant may
// have a field with the key itself, if that is the name. NewCodecs refuses a union whose I is no
// interface, whose variants do not implement it, or which has a type, a name or no key twice.
func Union[I any](key string, variants ...UnionVariant) Codec {
	return Codec{&userCodec{t: reflect.TypeFor[I](), union: &union{key, slices.Clone(variants)}}}
}

// check returns what is wrong with a union for the type t.
func (u *union) check(t reflect.Type) error {
	switch {
	case t.Kind() != reflect.Interface:
		return fmt.Errorf("union of %s, which is not an interface", t)
	case u.key == "" || strings.IndexByte(u.key, 0) >= 0:
		return fmt.Errorf("union of %s has the key %q", t, u.key)
	case len(u.variants) == 0:
		return fmt.Errorf("union of %s has no variants", t)
	}
	for i, v := range u.variants {
		of := v.t
		if v.pointer {
			of = reflect.PointerTo(v.t)
		}
		if !of.Implements(t) {
			return fmt.Errorf("union of %s: %s does not implement it", t, of)
		}
		for _, other := range u.variants[:i] {
			if other.name == v.name || other.t == v.t {
				return fmt.Errorf("union of %s has %q twice", t, v.name)
			}
		}
	}
	return nil
}

// named returns the variant with this name.
func (u *union) named(name string) (UnionVariant, error) {
	names := make([]string, len(u.variants))
	for i, v := range u.variants {
		if v.name == name {
			return v, nil
		}
		names[i] = strconv.Quote(v.name)
	}
	return UnionVariant{}, fmt.Errorf("%s is %q, want one of %s", u.key, clip(name), strings.Join(names, ", "))
}

// useUnion makes tc, which is the codec of the interface, that of a union.
func (tc *typeCodec) useUnion(u *union, fl flags) {
	t, enc := tc.t, tc.enc
	tc.enc = func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		if v := p.value(t); !v.IsNil() {
			of := v.Elem().Type()
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			if !slices.ContainsFunc(u.variants, func(v UnionVariant) bool { return v.t == of }) {
				return 0, dst, &EncodeError{GoType: of, Err: fmt.Errorf("it is no variant of the union of %s", t)}
			}
		}
		return enc(e, dst, p)
	}
	tc.dec = func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt == TypeNull || bt == TypeUndefined {
			p.value(t).SetZero()
			return 0, nil
		}
		name, ok, err := u.nameIn(bt, b)
		if err == nil && !ok {
			err = fmt.Errorf("the document has no string %q, which says what it is", u.key)
		}
		var v UnionVariant
		if err == nil {
			v, err = u.named(name)
		}
		if err != nil {
			return 0, decodeErr(bt, t, err)
		}
		made := reflect.New(v.t)
		n, err := d.cfg.codec(v.t, fl).decoder()(d, bt, b, pointerOf(made))
		if err != nil {
			return 0, err
		}
		if !v.pointer {
			made = made.Elem()
		}
		p.value(t).Set(made)
		return n, nil
	}
}

// nameIn returns what a value says of itself.
func (u *union) nameIn(bt Type, b []byte) (name string, ok bool, err error) {
	if bt != TypeEmbeddedDocument {
		return "", false, errNotDocument
	}
	n, err := valueSize(bt, b)
	if err != nil {
		return "", false, err
	}
	s, ok := Raw(b[:n]).Lookup(u.key).StringBytes()
	return string(s), ok, nil
}

// useVariant makes tc, the codec of the variant's type, write the name and read it.
func (tc *typeCodec) useVariant(u *union, v UnionVariant, cfg *config) {
	enc, dec := tc.enc, tc.dec
	tc.op = opCall
	header := append(append([]byte{byte(TypeString)}, u.key...), 0)
	header = AppendStringValue(header, v.name)
	tc.enc = func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		start, maps := len(dst), 0
		if e.maps != nil {
			maps = len(*e.maps)
		}
		bt, out, err := enc(e, dst, p)
		if err == nil && bt != TypeEmbeddedDocument {
			err = fmt.Errorf("a variant of a union becomes a BSON %s, not a document", bt)
		}
		if err != nil {
			return 0, dst, encodeErr(v.t, err)
		}
		if own := Raw(out[start:]).Lookup(u.key); !own.IsZero() {
			if s, ok := own.StringBytes(); !ok || string(s) != v.name {
				return 0, dst, &EncodeError{GoType: v.t, Err: fmt.Errorf("its %s is %s, want %q", u.key, own, v.name)}
			}
			return bt, out, nil
		}
		out = slices.Insert(out, start+4, header...)
		binary.LittleEndian.PutUint32(out[start:], uint32(len(out)-start))
		if e.maps != nil {
			for i := maps; i < len(*e.maps); i++ { // what lies in the document has moved
				if (*e.maps)[i] > start {
					(*e.maps)[i] += len(header)
				}
			}
		}
		return bt, out, nil
	}
	strict := false // the field is unknown to the type
	if cfg.DisallowUnknownFields && tc.shape == ShapeStruct {
		fields, _, err := structFields(v.t, cfg)
		strict = err == nil && !slices.ContainsFunc(fields, func(f structField) bool {
			return f.key == u.key || f.inlineMap
		})
	}
	tc.dec = func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		name, ok, err := u.nameIn(bt, b)
		switch {
		case err != nil || !ok:
			return dec(d, bt, b, p) // a null, or what the type itself says to it
		case name != v.name:
			return 0, &DecodeError{BSONType: bt, GoType: v.t,
				Err: fmt.Errorf("%s is %q, want %q", u.key, clip(name), v.name)}
		case !strict:
			return dec(d, bt, b, p)
		}
		n, err := valueSize(bt, b)
		if err != nil {
			return 0, decodeErr(bt, v.t, err)
		}
		_, err = dec(d, bt, without(Raw(b[:n]), u.key), p)
		return n, err
	}
}

// without returns a document without a key.
func without(doc Raw, key string) Raw {
	start, out := BeginDocument(make([]byte, 0, len(doc)))
	for k, v := range doc.All() {
		if k != key {
			out = AppendRawValue(out, k, v)
		}
	}
	return EndDocument(out, start)
}
