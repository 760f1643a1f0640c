package bson

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A ValueEncoder writes a Go value as BSON.
type ValueEncoder interface {
	EncodeValue(EncodeContext, ValueWriter, reflect.Value) error
}

// A ValueDecoder reads BSON into a variable, which can be set.
type ValueDecoder interface {
	DecodeValue(DecodeContext, ValueReader, reflect.Value) error
}

// A ValueEncoderFunc is a function that is a ValueEncoder.
type ValueEncoderFunc func(EncodeContext, ValueWriter, reflect.Value) error

// EncodeValue calls fn.
func (fn ValueEncoderFunc) EncodeValue(ec EncodeContext, vw ValueWriter, val reflect.Value) error {
	return fn(ec, vw, val)
}

// A ValueDecoderFunc is a function that is a ValueDecoder.
type ValueDecoderFunc func(DecodeContext, ValueReader, reflect.Value) error

// DecodeValue calls fn.
func (fn ValueDecoderFunc) DecodeValue(dc DecodeContext, vr ValueReader, val reflect.Value) error {
	return fn(dc, vr, val)
}

// An EncodeContext is what a ValueEncoder is given: the registry, for what is in its value.
type EncodeContext struct {
	*Registry

	settings settings
}

// A DecodeContext is what a ValueDecoder is given: the registry, for what is in its value.
type DecodeContext struct {
	*Registry

	settings settings
}

// A ValueEncoderError is the error for a value that a ValueEncoder is not for.
type ValueEncoderError struct {
	Name     string
	Types    []reflect.Type
	Kinds    []reflect.Kind
	Received reflect.Value
}

// Error says what it is for, and what it got.
func (vee ValueEncoderError) Error() string {
	return fmt.Sprintf("%s can only encode valid %s, but got %s", vee.Name, wanted(vee.Types, vee.Kinds),
		received(vee.Received))
}

// A ValueDecoderError is the error for a variable that a ValueDecoder is not for.
type ValueDecoderError struct {
	Name     string
	Types    []reflect.Type
	Kinds    []reflect.Kind
	Received reflect.Value
}

// Error says what it is for, and what it got.
func (vde ValueDecoderError) Error() string {
	got := received(vde.Received)
	if !vde.Received.CanSet() {
		got = "unsettable " + got
	}
	return fmt.Sprintf("%s can only decode valid and settable %s, but got %s", vde.Name, wanted(vde.Types, vde.Kinds),
		got)
}

func wanted(types []reflect.Type, kinds []reflect.Kind) string {
	text := ""
	for _, t := range types {
		if text != "" {
			text += ", "
		}
		text += coding.TypeName(t)
	}
	for _, k := range kinds {
		if text != "" {
			text += ", "
		}
		text += k.String()
	}
	return text
}

func received(v reflect.Value) string {
	if !v.IsValid() {
		return "invalid"
	}
	return v.Type().String()
}

// A Registry has the program's ways to encode and decode Go types: for types, for those that
// implement an interface, and for kinds, in this order; before the latter two come the types that
// the package knows and methods like MarshalBSON, unless their interface is the registered one.
// What no registered way is for is encoded and decoded as without a registry.
//
// Registering while the registry is in use by others is not safe.
type Registry struct {
	typeEncoders  map[reflect.Type]ValueEncoder
	typeDecoders  map[reflect.Type]ValueDecoder
	ifaceEncoders []forInterface[ValueEncoder]
	ifaceDecoders []forInterface[ValueDecoder]
	kindEncoders  map[reflect.Kind]ValueEncoder
	kindDecoders  map[reflect.Kind]ValueDecoder
	typeMap       map[Type]reflect.Type // those that were registered
	mgo           mgoSettings
	dialect       *coding.Dialect // nil for that of this version
	documents     reflect.Type    // with a dialect: of documents in variables of type any, wherever

	ways *ways // made of what is registered so far
}

// ways are the functions of a registry.
type ways struct {
	of   sync.Map            // settings -> *way
	last atomic.Pointer[way] // most programs use one
}

// forInterface is what is registered for types that implement an interface.
type forInterface[C any] struct {
	iface reflect.Type
	codec C
}

// defaultRegistry is what is used without one.
var defaultRegistry = NewRegistry()

// NewRegistry returns a registry without the program's own ways.
func NewRegistry() *Registry { return &Registry{ways: new(ways)} }

// ready prepares r for a registration.
func (r *Registry) ready() {
	r.ways = new(ways)
	if r.typeEncoders == nil {
		r.typeEncoders, r.typeDecoders = map[reflect.Type]ValueEncoder{}, map[reflect.Type]ValueDecoder{}
		r.kindEncoders, r.kindDecoders = map[reflect.Kind]ValueEncoder{}, map[reflect.Kind]ValueDecoder{}
		r.typeMap = map[Type]reflect.Type{}
	}
}

// RegisterTypeEncoder says how values of exactly this type are encoded. For an interface these are
// the variables of that type.
func (r *Registry) RegisterTypeEncoder(valueType reflect.Type, enc ValueEncoder) {
	r.ready()
	r.typeEncoders[valueType] = enc
}

// RegisterTypeDecoder says how variables of exactly this type are decoded.
func (r *Registry) RegisterTypeDecoder(valueType reflect.Type, dec ValueDecoder) {
	r.ready()
	r.typeDecoders[valueType] = dec
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
	r.ready()
	r.ifaceEncoders = register(r.ifaceEncoders, iface, enc)
}

// RegisterInterfaceDecoder says how variables are decoded that implement an interface, themselves
// or by their pointer. It panics if the type is no interface.
func (r *Registry) RegisterInterfaceDecoder(iface reflect.Type, dec ValueDecoder) {
	mustBeInterface("RegisterInterfaceDecoder", iface)
	r.ready()
	r.ifaceDecoders = register(r.ifaceDecoders, iface, dec)
}

// register adds a codec for an interface, or puts it in the place of the one that is there.
func register[C any](all []forInterface[C], iface reflect.Type, codec C) []forInterface[C] {
	for i := range all {
		if all[i].iface == iface {
			all[i].codec = codec
			return all
		}
	}
	return append(all, forInterface[C]{iface, codec})
}

// RegisterKindEncoder says how values of a kind are encoded.
func (r *Registry) RegisterKindEncoder(kind reflect.Kind, enc ValueEncoder) {
	r.ready()
	r.kindEncoders[kind] = enc
}

// RegisterKindDecoder says how variables of a kind are decoded.
func (r *Registry) RegisterKindDecoder(kind reflect.Kind, dec ValueDecoder) {
	r.ready()
	r.kindDecoders[kind] = dec
}

// RegisterTypeMapEntry says what values of a BSON type become in variables of type any. Null stays
// nil.
func (r *Registry) RegisterTypeMapEntry(bt Type, rt reflect.Type) {
	r.ready()
	r.typeMap[bt] = rt
}

// typesOfTable are the types that values become in variables of type any, unless the registry says
// otherwise.
var typesOfTable = map[Type]reflect.Type{
	TypeDouble: reflect.TypeFor[float64](), TypeString: reflect.TypeFor[string](),
	TypeEmbeddedDocument: reflect.TypeFor[D](),
	TypeArray:            reflect.TypeFor[A](), TypeObjectID: reflect.TypeFor[ObjectID](),
	TypeBoolean:  reflect.TypeFor[bool](),
	TypeDateTime: reflect.TypeFor[DateTime](), TypeJavaScript: reflect.TypeFor[JavaScript](),
	TypeSymbol: reflect.TypeFor[Symbol](),
	TypeInt32:  reflect.TypeFor[int32](), TypeInt64: reflect.TypeFor[int64](),
}

// LookupTypeMapEntry returns the Go type that values of a BSON type become in variables of type
// any.
func (r *Registry) LookupTypeMapEntry(bt Type) (reflect.Type, error) {
	if t := r.typeOfAny(bt); t != nil {
		return t, nil
	}
	return nil, errNoTypeMapEntry{Type: bt}
}

// typeOfAny returns what values of a BSON type become in a variable of type any, nil for those that
// become nothing.
func (r *Registry) typeOfAny(bt Type) reflect.Type {
	tables := []map[Type]reflect.Type{r.typeMap, nil, typesOfAny, typesOfTable}
	if r.dialect != nil {
		tables[1] = r.dialect.Any
	}
	for _, table := range tables {
		if t := table[bt]; t != nil {
			return t
		}
	}
	return nil
}

// LookupEncoder returns how values of a type are encoded.
func (r *Registry) LookupEncoder(valueType reflect.Type) (ValueEncoder, error) {
	if valueType == nil {
		return nil, errNoEncoder{}
	}
	enc, byAddress := r.encoder(valueType, true)
	if enc == nil {
		if !hasForm(valueType) && !implements(valueType, true, r.marshalers()...) {
			return nil, errNoEncoder{Type: valueType}
		}
		return ValueEncoderFunc(defaultEncode), nil
	}
	if !byAddress {
		return enc, nil
	}
	return ValueEncoderFunc(func(ec EncodeContext, vw ValueWriter, v reflect.Value) error {
		if v.CanAddr() {
			return enc.EncodeValue(ec, vw, v)
		}
		if enc, _ := r.encoder(valueType, false); enc != nil {
			return enc.EncodeValue(ec, vw, v)
		}
		return defaultEncode(ec, vw, v)
	}), nil
}

// LookupDecoder returns how variables of a type are decoded.
func (r *Registry) LookupDecoder(valueType reflect.Type) (ValueDecoder, error) {
	if valueType == nil {
		return nil, errors.New("cannot perform a decoder lookup on <nil>")
	}
	if dec := r.decoder(valueType); dec != nil {
		return dec, nil
	}
	if !hasForm(valueType) && !implements(valueType, true, r.unmarshalers()...) {
		return nil, errNoDecoder{Type: valueType}
	}
	return ValueDecoderFunc(defaultDecode), nil
}

// hasForm reports whether values of a type's kind have a BSON form.
func hasForm(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.Uintptr, reflect.UnsafePointer:
		return false
	}
	return true
}

var (
	marshalers   = []reflect.Type{reflect.TypeFor[ValueMarshaler](), reflect.TypeFor[Marshaler]()}
	unmarshalers = []reflect.Type{reflect.TypeFor[ValueUnmarshaler](), reflect.TypeFor[Unmarshaler]()}
)

func (r *Registry) marshalers() []reflect.Type {
	if r.dialect != nil {
		return r.dialect.Marshalers
	}
	return marshalers
}

func (r *Registry) unmarshalers() []reflect.Type {
	if r.dialect != nil {
		return r.dialect.Unmarshalers
	}
	return unmarshalers
}

// isKnown reports whether values of a type are encoded and decoded in a way of their own.
func (r *Registry) isKnown(t reflect.Type) bool {
	return knownTypes[t] || ownTypes[t] != nil || r.dialect != nil && r.dialect.Own[t] != nil
}

// implements reports whether a type implements one of these interfaces, or if its values have an
// address, its pointer does.
func implements(t reflect.Type, addressable bool, ifaces ...reflect.Type) bool {
	return slices.ContainsFunc(ifaces, func(iface reflect.Type) bool {
		return t.Implements(iface) ||
			addressable && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(iface)
	})
}

// encoder returns the registered way to encode values of a type that have an address, or have none,
// nil if there is none. byAddress is true if the type's pointer, but not the type, implements what
// it is for, so that the way may be another for values that have no address.
func (r *Registry) encoder(t reflect.Type, addressable bool) (enc ValueEncoder, byAddress bool) {
	if enc := r.typeEncoders[t]; enc != nil {
		return enc, false
	}
	if r.isKnown(t) {
		return nil, false
	}
	enc, found, byAddress := byInterface(t, addressable, r.marshalers(), r.ifaceEncoders)
	if found {
		return enc, byAddress
	}
	return r.kindEncoders[t.Kind()], false
}

// decoder is encoder for decoding.
func (r *Registry) decoder(t reflect.Type) ValueDecoder {
	if dec := r.typeDecoders[t]; dec != nil {
		return dec
	}
	if r.isKnown(t) || r.dialect != nil && t == r.dialect.Any[TypeEmbeddedDocument] {
		return nil
	}
	if dec, found, _ := byInterface(t, true, r.unmarshalers(), r.ifaceDecoders); found {
		return dec
	}
	return r.kindDecoders[t.Kind()]
}

// byInterface returns what is registered for an interface that t implements. If t has one of the
// methods that encode or decode, it is what is registered for the first of those, or nothing.
func byInterface[C any](t reflect.Type, addressable bool, methods []reflect.Type,
	registered []forInterface[C]) (codec C, found, byAddress bool) {
	for _, method := range methods {
		if implements(t, addressable, method) {
			for _, c := range registered {
				if c.iface == method {
					codec = c.codec
				}
			}
			return codec, true, !t.Implements(method)
		}
	}
	for _, c := range registered {
		if implements(t, addressable, c.iface) {
			return c.codec, true, !t.Implements(c.iface)
		}
	}
	return codec, false, false
}
