package bson

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Codecs is an immutable set of codecs for Go types, for Options.Codecs. They come before
// everything that the package knows about a type, methods like MarshalBSONValue included. Make a
// set once and reuse it: what is compiled for it is cached for good.
type Codecs struct {
	types map[reflect.Type]*userCodec
	rules []*userCodec // those for many types: for interfaces, by a predicate, by a look-up
}

// Codec is how values of one Go type, or of many, are encoded and decoded; CodecFor, CodecWhere and
// CodecBy make one.
type Codec struct{ user *userCodec }

type userCodec struct {
	t      reflect.Type                                  // nil: for the types that match
	encode func(dst []byte, p ptr) (Type, []byte, error) // p: variable of type t
	decode func(v RawValue, p ptr) error                 // p: variable of type t

	// For a type t that is an interface, and its implementations.
	encodeAny func(dst []byte, v any) (Type, []byte, error)
	decodeAny func(v RawValue) (any, error)

	// For all types that match. The functions get pointers.
	match      func(t reflect.Type) bool
	encodeAt   func(dst []byte, v any) (Type, []byte, error)
	decodeInto func(v RawValue, into any) error

	lookup func(t reflect.Type, addressable bool) (EncodeFunc, DecodeFunc)

	union   *union       // of the type t, which is its interface, or
	variant UnionVariant // the one whose type t is
}

// CodecFor returns a codec for the Go type T. If T is a pointer type, it also is the codec of what
// it points to.
//
// encode appends the BSON value (without a key; see AppendStringValue and its siblings) to dst and
// returns its type and the extended slice. decode makes a T of a value, whose bytes it must copy if
// it keeps them. A nil pointer or interface becomes null and back without them. Either function may
// be nil: then that direction stays as it is without the codec.
//
// If T is an interface type, the codec is for variables of type T and, if it encodes, for every
// type that implements T, itself or by its pointer, and has no codec of its own. A variable of such
// a type decodes if decode returns a value of that type or a pointer to one. If decode returns
// another type or is nil, it is an error, unless the type has methods like UnmarshalBSON or is not
// made of other values: it was encoded in a form that it cannot be read from. Where decode needs to
// know the type, such as for all messages of a library, use CodecWhere.
func CodecFor[T any](encode func(dst []byte, v T) (Type, []byte, error), decode func(v RawValue) (T, error)) Codec {
	u := &userCodec{t: reflect.TypeFor[T]()}
	if encode != nil {
		u.encode = func(dst []byte, p ptr) (Type, []byte, error) { return encode(dst, *at[T](p)) }
		u.encodeAny = func(dst []byte, v any) (Type, []byte, error) { return encode(dst, v.(T)) }
	}
	if decode != nil {
		u.decode = func(v RawValue, p ptr) error {
			x, err := decode(v)
			if err == nil {
				*at[T](p) = x
			}
			return err
		}
		u.decodeAny = func(v RawValue) (any, error) { return decode(v) }
	}
	return Codec{u}
}

// CodecWhere returns a codec for all types for which match is true and which have no codec of their
// own: in struct fields, slices, maps and interfaces, behind pointers, and at the top. match is
// asked once for each type that is met, and never for a pointer or an interface: these are followed
// to what they lead to.
//
// encode gets a pointer to the value, and appends the BSON value as for CodecFor. decode gets a
// pointer to the variable, which it sets; it must copy the bytes of v if it keeps them. A nil
// pointer becomes null and back without them. None of the functions may be nil: NewCodecs refuses
// that.
func CodecWhere(match func(t reflect.Type) bool, encode func(dst []byte, v any) (Type, []byte, error),
	decode func(v RawValue, into any) error) Codec {
	return Codec{&userCodec{match: match, encodeAt: encode, decodeInto: decode}}
}

// EncodeFunc appends the BSON value of v, without a key, to dst and returns its type and the
// extended slice.
type EncodeFunc func(dst []byte, v reflect.Value) (Type, []byte, error)

// DecodeFunc sets the variable into, which can be set, to what v stands for. It must copy the bytes
// of v if it keeps them.
type DecodeFunc func(v RawValue, into reflect.Value) error

// CodecBy returns a codec for all types that lookup has functions for: for libraries that know at
// run time only, from a reflect.Type, how a type is encoded. lookup is asked once for each type
// that is met, pointers and interfaces included, and must not use this package's codecs itself. A
// direction without a function stays as it is without the codec.
//
// The functions get everything: nil pointers and interfaces, and nulls.
func CodecBy(lookup func(t reflect.Type) (EncodeFunc, DecodeFunc)) Codec {
	return CodecByAddress(func(t reflect.Type, _ bool) (EncodeFunc, DecodeFunc) { return lookup(t) })
}

// CodecByAddress is CodecBy for functions that depend on whether a value has an address, as
// Options.MethodsByAddress says: with that option, lookup is also asked for the values that have
// none. These are copied into a variable, which is what the function gets.
func CodecByAddress(lookup func(t reflect.Type, addressable bool) (EncodeFunc, DecodeFunc)) Codec {
	return Codec{&userCodec{lookup: lookup}}
}

// NewCodecs returns the set of these codecs. Two codecs for one type are an error. Of several that
// are for many types, the first one that fits a type is used.
func NewCodecs(codecs ...Codec) (*Codecs, error) { return (*Codecs)(nil).With(codecs...) }

// With returns a set of the codecs of c, which may be nil, and these behind them. Two codecs for
// one type are an error.
func (c *Codecs) With(codecs ...Codec) (*Codecs, error) {
	if c == nil {
		c = &Codecs{}
	}
	c = &Codecs{types: maps.Clone(c.types), rules: slices.Clone(c.rules)}
	if c.types == nil {
		c.types = make(map[reflect.Type]*userCodec, len(codecs))
	}
	for i := 0; i < len(codecs); i++ {
		u := codecs[i].user
		if u != nil && u.union != nil && u.variant.t == nil {
			if err := u.union.check(u.t); err != nil {
				return nil, fmt.Errorf("bson: new codecs: %w", err)
			}
			codecs = slices.Clip(codecs)
			for _, v := range u.union.variants {
				codecs = append(codecs, Codec{&userCodec{t: v.t, union: u.union, variant: v}})
			}
		}
		switch {
		case u == nil:
			return nil, fmt.Errorf("bson: new codecs: zero Codec")
		case u.lookup != nil:
			c.rules = append(c.rules, u)
			continue
		case u.t == nil && (u.match == nil || u.encodeAt == nil || u.decodeInto == nil):
			return nil, fmt.Errorf(
				"bson: new codecs: a function of CodecWhere is nil: it needs a predicate and both directions")
		case u.t == nil:
			c.rules = append(c.rules, u)
			continue
		case c.types[u.t] != nil:
			return nil, fmt.Errorf("bson: new codecs: two codecs for %s", u.t)
		}
		c.types[u.t] = u
		if u.t.Kind() == reflect.Interface && u.encode != nil {
			c.rules = append(c.rules, u)
		}
	}
	return c, nil
}

// use puts the user's codec for the type of tc, if there is one, before what else is known of it.
func (c *Codecs) use(tc *typeCodec, cfg *config, fl flags) {
	if c == nil {
		return
	}
	t := tc.t
	indirect := t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface
	if u := c.types[t]; u != nil {
		switch {
		case u.union == nil:
			tc.useOwn(u)
		case u.variant.t == nil:
			tc.useUnion(u.union, fl)
		default:
			tc.useVariant(u.union, u.variant, cfg)
		}
		return
	}
	if !indirect {
		if u := c.types[reflect.PointerTo(t)]; u != nil {
			tc.useOfPointer(u)
			return
		}
	}
	for _, u := range c.rules {
		switch {
		case u.lookup != nil:
			if enc, dec := u.lookup(t, fl&flagCopied == 0); enc != nil || dec != nil {
				tc.useFuncs(enc, dec)
				return
			}
		case t.Kind() == reflect.Interface:
		case u.match == nil:
			if t.Implements(u.t) || !indirect && reflect.PointerTo(t).Implements(u.t) {
				tc.useOfInterface(u)
				return
			}
		case !indirect && u.match(t):
			tc.useWhere(u)
			return
		}
	}
}

// useOwn uses a codec for exactly this type.
func (tc *typeCodec) useOwn(u *userCodec) {
	tc.op, tc.elem = opCall, nil
	if u.encode != nil {
		tc.shape, tc.copies = ShapeValue, false
		tc.enc = userEncoder(tc.t, u.encode)
	}
	if u.decode != nil {
		tc.dec = userDecoder(tc.t, u.decode)
	}
}

// useOfPointer uses the codec for pointers to this type.
func (tc *typeCodec) useOfPointer(u *userCodec) {
	t := tc.t
	tc.op = opCall
	if u.encodeAny != nil {
		tc.shape, tc.copies = ShapeValue, true
		tc.enc = userEncoder(t, func(dst []byte, p ptr) (Type, []byte, error) {
			return u.encodeAny(dst, p.value(t).Addr().Interface())
		})
	}
	if u.decodeAny != nil {
		tc.dec = userDecoder(t, func(v RawValue, p ptr) error { return u.assign(v, p, t) })
	}
}

// useOfInterface uses the codec for an interface that this type implements, itself or by its
// pointer.
func (tc *typeCodec) useOfInterface(u *userCodec) {
	t := tc.t
	tc.op, tc.elem, tc.shape = opCall, nil, ShapeValue
	tc.copies = !t.Implements(u.t)
	byAddress := tc.copies
	tc.enc = userEncoder(t, func(dst []byte, p ptr) (Type, []byte, error) {
		v := p.value(t)
		if byAddress {
			v = v.Addr()
		}
		return u.encodeAny(dst, v.Interface())
	})
	switch {
	case u.decodeAny != nil:
		tc.dec = userDecoder(t, func(v RawValue, p ptr) error { return u.assign(v, p, t) })
	case !decodesItself(t):
		tc.dec = userDecoder(t, func(RawValue, ptr) error {
			return fmt.Errorf("the codec for %s encodes the type and does not decode it: use CodecWhere", u.t)
		})
	}
}

// useWhere uses a codec that matches this type.
func (tc *typeCodec) useWhere(u *userCodec) {
	t := tc.t
	tc.op, tc.copies, tc.shape = opCall, true, ShapeValue
	tc.enc = userEncoder(t, func(dst []byte, p ptr) (Type, []byte, error) {
		return u.encodeAt(dst, p.value(t).Addr().Interface())
	})
	tc.dec = userDecoder(t, func(v RawValue, p ptr) error { return u.decodeInto(v, p.value(t).Addr().Interface()) })
}

// useFuncs uses the functions that a look-up found for this type. Either may be nil.
func (tc *typeCodec) useFuncs(enc EncodeFunc, dec DecodeFunc) {
	t := tc.t
	tc.op = opCall
	if enc != nil {
		tc.elem, tc.copies, tc.shape = nil, true, ShapeValue
		tc.enc = checkedEncoder(t, func(dst []byte, p ptr) (Type, []byte, error) { return enc(dst, p.value(t)) })
	}
	if dec != nil {
		tc.dec = framedDecoder(t, func(v RawValue, p ptr) error { return dec(v, p.value(t)) })
	}
}

// encodes reports whether a user's codec encodes values of type t.
func (c *Codecs) encodes(t reflect.Type) bool {
	tc := &typeCodec{t: t}
	if u := c.types[t]; u != nil && u.union != nil {
		return true
	}
	c.use(tc, nil, 0)
	return tc.enc != nil
}

// decodes is encodes for decoding.
func (c *Codecs) decodes(t reflect.Type) bool {
	tc := &typeCodec{t: t}
	if u := c.types[t]; u != nil && u.union != nil {
		return true
	}
	c.use(tc, nil, 0)
	return tc.dec != nil
}

// assign decodes a value, and sets the variable of type t at p to it or to what it points to.
func (u *userCodec) assign(v RawValue, p ptr, t reflect.Type) error {
	x, err := u.decodeAny(v)
	if err != nil {
		return err
	}
	to, from := p.value(t), reflect.ValueOf(x)
	switch {
	case !from.IsValid() || from.Kind() == reflect.Pointer && from.IsNil():
		to.SetZero()
	case from.Type() == t:
		to.Set(from)
	case from.Type() == reflect.PointerTo(t):
		to.Set(from.Elem())
	case t.Kind() == reflect.Pointer && from.Type() == t.Elem():
		to.Set(reflect.New(t.Elem()))
		to.Elem().Set(from)
	default:
		return fmt.Errorf("the codec for %s made a %s of it: use CodecWhere if it must know the type", u.t, from.Type())
	}
	return nil
}

// decodesItself reports whether a type has methods to decode itself, or is not made of other
// values, so that a value of another form does not fit. What it points to counts for a pointer.
func decodesItself(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, ok := basicCodecs(t, 0); ok {
		return true
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Array:
	default:
		return true
	}
	pt := reflect.PointerTo(t)
	opaque := t.Kind() == reflect.Struct && !hasExportedField(t)
	return pt.Implements(typeValueUnmarshaler) || pt.Implements(typeUnmarshaler) ||
		opaque && pt.Implements(typeTextUnmarshaler)
}
