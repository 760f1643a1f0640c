package bson

import (
	"fmt"
	"reflect"
)

// Codecs is an immutable set of codecs for Go types, for Options.Codecs. They come before
// everything that the package knows about a type, methods like MarshalBSONValue included. Make a
// set once and reuse it: what is compiled for it is cached for good.
type Codecs struct {
	types      map[reflect.Type]*userCodec
	interfaces []*userCodec // for interface types: every type that implements one is encoded with it
}

// Codec is how values of one Go type are encoded and decoded; CodecFor makes one.
type Codec struct{ user *userCodec }

type userCodec struct {
	t         reflect.Type
	encode    func(dst []byte, p ptr) (Type, []byte, error) // p: variable of type t
	decode    func(v RawValue, p ptr) error                 // p: variable of type t
	encodeAny func(dst []byte, v any) (Type, []byte, error) // for types that implement t, an interface
}

// CodecFor returns a codec for the Go type T.
//
// encode appends the BSON value (without a key; see AppendStringValue and its siblings) to dst and
// returns its type and the extended slice. A nil pointer or interface becomes null without it.
// decode makes a T of a value, whose bytes it must copy if it keeps them. Either function may be
// nil: then that direction stays as it is without the codec.
//
// If T is an interface type, encode is used for every type that implements it and has no codec of
// its own, and decode for variables of type T.
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
	}
	return Codec{u}
}

// NewCodecs returns the set of these codecs. Two codecs for one type are an error.
func NewCodecs(codecs ...Codec) (*Codecs, error) {
	c := &Codecs{types: make(map[reflect.Type]*userCodec, len(codecs))}
	for _, codec := range codecs {
		u := codec.user
		if u == nil {
			return nil, fmt.Errorf("bson: new codecs: zero Codec")
		}
		if c.types[u.t] != nil {
			return nil, fmt.Errorf("bson: new codecs: two codecs for %s", u.t)
		}
		c.types[u.t] = u
		if u.t.Kind() == reflect.Interface {
			c.interfaces = append(c.interfaces, u)
		}
	}
	return c, nil
}

// lookup returns the user's codec for values of type t, or nil. byInterface tells that it is one
// for an interface type that t implements.
func (c *Codecs) lookup(t reflect.Type) (u *userCodec, byInterface bool) {
	if c == nil {
		return nil, false
	}
	if u := c.types[t]; u != nil {
		return u, false
	}
	if t.Kind() != reflect.Interface {
		for _, u := range c.interfaces {
			if u.encode != nil && t.Implements(u.t) {
				return u, true
			}
		}
	}
	return nil, false
}
