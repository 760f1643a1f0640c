package bsoncodec

import (
	"errors"
	"fmt"
	"reflect"

	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/internal/dialect"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// ErrNilType is the error of LookupDecoder for no type.
//
// Deprecated: it is not returned any more.
var ErrNilType = errors.New("cannot perform a decoder lookup on <nil>")

// ErrNotPointer is not returned any more.
//
// Deprecated: LookupDecoder takes any type.
var ErrNotPointer = errors.New("non-pointer provided to LookupDecoder")

// ErrNotInterface is what registering an interface panics with for a type that is none.
//
// Deprecated: it is not returned any more.
var ErrNotInterface = errors.New("The provided type is not an interface")

// A Registry has the program's ways to encode and decode Go types: for types, for those that
// implement an interface, and for kinds, in this order; before the latter two come the types that
// the driver knows and methods like MarshalBSON. What no registered way is for is encoded and
// decoded as without a registry.
//
// Registering while the registry is in use by others is not safe.
type Registry struct {
	behind *bson.Registry
	// encodes and decodes say whether the lookups find what the driver has by itself.
	encodes, decodes bool
}

// NewRegistry returns a registry in which lookups find nothing. The driver's own ways stand behind
// it all the same.
func NewRegistry() *Registry {
	return &Registry{behind: coding.NewRegistry(dialect.Of).(*bson.Registry)}
}

// plain is the registry of a context without one.
var plain = func() *Registry {
	r := NewRegistry()
	r.encodes, r.decodes = true, true
	return r
}()

func init() {
	dialect.Registry = func(registry any) *bson.Registry {
		if r := registry.(*Registry); r != nil {
			return r.behind
		}
		return nil
	}
	dialect.Settings = func(context any) (any, coding.Settings) {
		switch c := context.(type) {
		case EncodeContext:
			return c.Registry, c.all()
		case DecodeContext:
			return c.Registry, c.all()
		}
		panic("not a context")
	}
}

// An encoderOf is a ValueEncoder of this version for the registry of version 2.
type encoderOf struct {
	registry *Registry
	enc      ValueEncoder
}

func (e encoderOf) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	s := coding.SettingsOf(ec)
	return e.enc.EncodeValue(EncodeContext{Registry: e.registry, MinSize: s.IntMinSize, settings: s}, vw, val)
}

// A decoderOf is an encoderOf for decoding.
type decoderOf struct {
	registry *Registry
	dec      ValueDecoder
}

func (d decoderOf) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	s := coding.SettingsOf(dc)
	return d.dec.DecodeValue(DecodeContext{Registry: d.registry, Truncate: s.Truncate, Ancestor: s.Ancestor,
		settings: s}, vr, val)
}

// RegisterTypeEncoder says how values of exactly this type are encoded. For an interface these are
// the variables of that type.
func (r *Registry) RegisterTypeEncoder(valueType reflect.Type, enc ValueEncoder) {
	r.behind.RegisterTypeEncoder(valueType, encoderOf{r, enc})
}

// RegisterTypeDecoder says how variables of exactly this type are decoded.
func (r *Registry) RegisterTypeDecoder(valueType reflect.Type, dec ValueDecoder) {
	r.behind.RegisterTypeDecoder(valueType, decoderOf{r, dec})
}

// RegisterKindEncoder says how values of a kind are encoded.
func (r *Registry) RegisterKindEncoder(kind reflect.Kind, enc ValueEncoder) {
	r.behind.RegisterKindEncoder(kind, encoderOf{r, enc})
}

// RegisterKindDecoder says how variables of a kind are decoded.
func (r *Registry) RegisterKindDecoder(kind reflect.Kind, dec ValueDecoder) {
	r.behind.RegisterKindDecoder(kind, decoderOf{r, dec})
}

func mustBeInterface(method string, iface reflect.Type) {
	if iface.Kind() != reflect.Interface {
		panic(fmt.Errorf("%s expects a type with kind reflect.Interface, got type %s with kind %s", method, iface,
			iface.Kind()))
	}
}

// RegisterInterfaceEncoder says how values are encoded that implement an interface, themselves or
// by their pointer. It panics if the type is no interface.
func (r *Registry) RegisterInterfaceEncoder(iface reflect.Type, enc ValueEncoder) {
	mustBeInterface("RegisterInterfaceEncoder", iface)
	r.behind.RegisterInterfaceEncoder(iface, encoderOf{r, enc})
}

// RegisterInterfaceDecoder says how variables are decoded that implement an interface, themselves
// or by their pointer. It panics if the type is no interface.
func (r *Registry) RegisterInterfaceDecoder(iface reflect.Type, dec ValueDecoder) {
	mustBeInterface("RegisterInterfaceDecoder", iface)
	r.behind.RegisterInterfaceDecoder(iface, decoderOf{r, dec})
}

// RegisterTypeMapEntry says what values of a BSON type become in variables of type any. Null stays
// nil. The type zero stands for documents that are in no other.
func (r *Registry) RegisterTypeMapEntry(bt bsontype.Type, rt reflect.Type) {
	r.behind.RegisterTypeMapEntry(bt, rt)
}

// LookupEncoder returns how values of a type are encoded, or ErrNoEncoder.
func (r *Registry) LookupEncoder(valueType reflect.Type) (ValueEncoder, error) {
	if valueType == nil {
		return nil, ErrNoEncoder{}
	}
	registered, byAddress := coding.Encoder(r.behind, valueType, true)
	e, ok := registered.(encoderOf)
	switch {
	case !ok && (!r.encodes || !coding.HasForm(r.behind, valueType, true)):
		return nil, ErrNoEncoder{Type: valueType}
	case !ok:
		return ValueEncoderFunc(encode), nil
	case !byAddress:
		return e.enc, nil
	}
	return ValueEncoderFunc(func(ec EncodeContext, vw bsonrw.ValueWriter, v reflect.Value) error {
		if v.CanAddr() {
			return e.enc.EncodeValue(ec, vw, v)
		}
		other, _ := coding.Encoder(r.behind, valueType, false)
		if e, ok := other.(encoderOf); ok {
			return e.enc.EncodeValue(ec, vw, v)
		}
		return encode(ec, vw, v)
	}), nil
}

// LookupDecoder returns how variables of a type are decoded, or ErrNoDecoder.
func (r *Registry) LookupDecoder(valueType reflect.Type) (ValueDecoder, error) {
	if valueType == nil {
		return nil, ErrNilType
	}
	if d, ok := coding.Decoder(r.behind, valueType).(decoderOf); ok {
		return d.dec, nil
	}
	if !r.decodes || !coding.HasForm(r.behind, valueType, false) {
		return nil, ErrNoDecoder{Type: valueType}
	}
	return ValueDecoderFunc(decode), nil
}

// LookupTypeMapEntry returns what values of a BSON type become in variables of type any, or
// ErrNoTypeMapEntry.
func (r *Registry) LookupTypeMapEntry(bt bsontype.Type) (reflect.Type, error) {
	t := coding.TypeOfAny(r.behind, bt)
	if t == nil && bt == 0 && r.decodes {
		t = coding.TypeOfAny(r.behind, bsontype.EmbeddedDocument)
	}
	if t == nil {
		return nil, ErrNoTypeMapEntry{Type: bt}
	}
	return t, nil
}

// A RegistryBuilder makes a Registry.
//
// Deprecated: use Registry.
type RegistryBuilder struct{ registry *Registry }

// NewRegistryBuilder returns a builder of a registry as NewRegistry's.
//
// Deprecated: use NewRegistry.
func NewRegistryBuilder() *RegistryBuilder { return &RegistryBuilder{NewRegistry()} }

// RegisterCodec registers an encoder and a decoder of a type.
func (rb *RegistryBuilder) RegisterCodec(t reflect.Type, codec ValueCodec) *RegistryBuilder {
	rb.registry.RegisterTypeEncoder(t, codec)
	rb.registry.RegisterTypeDecoder(t, codec)
	return rb
}

// RegisterTypeEncoder is Registry.RegisterTypeEncoder.
func (rb *RegistryBuilder) RegisterTypeEncoder(t reflect.Type, enc ValueEncoder) *RegistryBuilder {
	rb.registry.RegisterTypeEncoder(t, enc)
	return rb
}

// RegisterHookEncoder is Registry.RegisterInterfaceEncoder.
func (rb *RegistryBuilder) RegisterHookEncoder(t reflect.Type, enc ValueEncoder) *RegistryBuilder {
	rb.registry.RegisterInterfaceEncoder(t, enc)
	return rb
}

// RegisterTypeDecoder is Registry.RegisterTypeDecoder.
func (rb *RegistryBuilder) RegisterTypeDecoder(t reflect.Type, dec ValueDecoder) *RegistryBuilder {
	rb.registry.RegisterTypeDecoder(t, dec)
	return rb
}

// RegisterHookDecoder is Registry.RegisterInterfaceDecoder.
func (rb *RegistryBuilder) RegisterHookDecoder(t reflect.Type, dec ValueDecoder) *RegistryBuilder {
	rb.registry.RegisterInterfaceDecoder(t, dec)
	return rb
}

// RegisterEncoder registers an encoder of a type, or of an interface.
func (rb *RegistryBuilder) RegisterEncoder(t reflect.Type, enc ValueEncoder) *RegistryBuilder {
	if isInterface(t) {
		return rb.RegisterHookEncoder(t, enc)
	}
	return rb.RegisterTypeEncoder(t, enc)
}

// RegisterDecoder registers a decoder of a type, or of an interface.
func (rb *RegistryBuilder) RegisterDecoder(t reflect.Type, dec ValueDecoder) *RegistryBuilder {
	if isInterface(t) {
		return rb.RegisterHookDecoder(t, dec)
	}
	return rb.RegisterTypeDecoder(t, dec)
}

// isInterface reports whether a type is an interface with methods.
func isInterface(t reflect.Type) bool { return t.Kind() == reflect.Interface && t.NumMethod() > 0 }

// RegisterDefaultEncoder is Registry.RegisterKindEncoder.
func (rb *RegistryBuilder) RegisterDefaultEncoder(kind reflect.Kind, enc ValueEncoder) *RegistryBuilder {
	rb.registry.RegisterKindEncoder(kind, enc)
	return rb
}

// RegisterDefaultDecoder is Registry.RegisterKindDecoder.
func (rb *RegistryBuilder) RegisterDefaultDecoder(kind reflect.Kind, dec ValueDecoder) *RegistryBuilder {
	rb.registry.RegisterKindDecoder(kind, dec)
	return rb
}

// RegisterTypeMapEntry is Registry.RegisterTypeMapEntry.
func (rb *RegistryBuilder) RegisterTypeMapEntry(bt bsontype.Type, rt reflect.Type) *RegistryBuilder {
	rb.registry.RegisterTypeMapEntry(bt, rt)
	return rb
}

// Build returns the registry.
func (rb *RegistryBuilder) Build() *Registry { return rb.registry }

// encode is the ValueEncoder of what nothing is registered for.
func encode(ec EncodeContext, vw bsonrw.ValueWriter, val reflect.Value) error {
	return ec.encode(vw, val, nil)
}

// decode is the ValueDecoder of what nothing is registered for.
func decode(dc DecodeContext, vr bsonrw.ValueReader, val reflect.Value) error {
	if !val.CanSet() {
		return ValueDecoderError{Name: "DecodeValue", Received: val}
	}
	return dc.decode(vr, val, nil)
}
