package bson

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"allium/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
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
	if enc := r.encoder(valueType); enc != nil {
		return enc, nil
	}
	if !hasForm(valueType) && !implements(valueType, r.marshalers()...) {
		return nil, errNoEncoder{Type: valueType}
	}
	return ValueEncoderFunc(defaultEncode), nil
}

// LookupDecoder returns how variables of a type are decoded.
func (r *Registry) LookupDecoder(valueType reflect.Type) (ValueDecoder, error) {
	if valueType == nil {
		return nil, errors.New("cannot perform a decoder lookup on <nil>")
	}
	if dec := r.decoder(valueType); dec != nil {
		return dec, nil
	}
	if !hasForm(valueType) && !implements(valueType, r.unmarshalers()...) {
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

func implements(t reflect.Type, ifaces ...reflect.Type) bool {
	return slices.ContainsFunc(ifaces, func(iface reflect.Type) bool {
		return t.Implements(iface) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(iface)
	})
}

// encoder returns the registered way to encode a type, nil if there is none.
func (r *Registry) encoder(t reflect.Type) ValueEncoder {
	if enc := r.typeEncoders[t]; enc != nil {
		return enc
	}
	if r.isKnown(t) {
		return nil
	}
	if enc, found := byInterface(t, r.marshalers(), r.ifaceEncoders); found {
		return enc
	}
	return r.kindEncoders[t.Kind()]
}

// decoder is encoder for decoding.
func (r *Registry) decoder(t reflect.Type) ValueDecoder {
	if dec := r.typeDecoders[t]; dec != nil {
		return dec
	}
	if r.isKnown(t) || r.dialect != nil && t == r.dialect.Any[TypeEmbeddedDocument] {
		return nil
	}
	if dec, found := byInterface(t, r.unmarshalers(), r.ifaceDecoders); found {
		return dec
	}
	return r.kindDecoders[t.Kind()]
}

// byInterface returns what is registered for an interface that t implements. If t has one of the
// methods that encode or decode, it is what is registered for the first of those, or nothing.
func byInterface[C any](t reflect.Type, methods []reflect.Type, registered []forInterface[C]) (codec C, found bool) {
	for _, method := range methods {
		if implements(t, method) {
			for _, c := range registered {
				if c.iface == method {
					return c.codec, true
				}
			}
			return codec, true
		}
	}
	for _, c := range registered {
		if implements(t, c.iface) {
			return c.codec, true
		}
	}
	return codec, false
}

// way returns how the registry encodes and decodes with these settings, as of now.
func (r *Registry) way(s settings) *way {
	if w := r.ways.last.Load(); w != nil && w.settings == s {
		return w
	}
	if w, ok := r.ways.of.Load(s); ok {
		r.ways.last.Store(w.(*way))
		return w.(*way)
	}
	w := &way{registry: r, settings: s}
	if r.dialect != nil && (s.DocumentM || s.DocumentMap) {
		s.DocumentM, s.DocumentMap, s.Documents = false, false, r.dialect.M
	}
	if s.Documents == nil {
		s.Documents = r.documents
	}
	o := optionsOf(s)
	o.ObjectIDAsHex = o.ObjectIDAsHex || r.dialect != nil
	types := typesOfAny
	if len(r.typeMap) > 0 || r.dialect != nil {
		types = maps.Clone(typesOfAny)
		if r.dialect != nil {
			maps.Copy(types, r.dialect.Any)
		}
		for t, goType := range r.typeMap {
			switch {
			case t == TypeNull, t == 0:
			case t == TypeEmbeddedDocument && (s.DocumentM || s.DocumentMap || goType == reflect.TypeFor[D]()):
			default:
				types[t] = goType
			}
		}
	}
	if s.Documents != nil {
		types[TypeEmbeddedDocument] = s.Documents
	} else if s.Ancestor != nil {
		types[TypeEmbeddedDocument] = s.Ancestor
	}
	w.types = types
	w.documents, w.inherits = types[TypeEmbeddedDocument], s.Documents == nil
	r.mgo.apply(&o)
	var err error
	if o.Types, err = bson.NewTypeMap(types); err != nil {
		panic(err) // null was left out, and there is no nil
	}
	if o.Codecs, err = bson.NewCodecs(bson.CodecBy(w.lookup)); err != nil {
		panic(err) // there is one codec
	}
	w.options = o
	kept, _ := r.ways.of.LoadOrStore(s, w)
	return kept.(*way)
}

// lookup finds the functions for a type: registered ones, and those for the package's own types.
func (w *way) lookup(t reflect.Type) (enc bson.EncodeFunc, dec bson.DecodeFunc) {
	if own := ownTypes[t]; own != nil {
		enc, dec = own(w)
	}
	if dec == nil && decodesDocuments(t, w.registry.unmarshalers()[0]) {
		dec = decodeMethod
	}
	if d := w.registry.dialect; d != nil {
		enc, dec = w.inDialect(d, t, enc, dec)
	}
	if t == w.settings.Except {
		return enc, dec
	}
	if w.holdsAny(t) {
		if w.registry.typeEncoders[typeAny] != nil && t != typeAny {
			enc = w.encodeBy(ValueEncoderFunc(w.encodeHeld))
		}
		if w.looksInside() {
			dec = w.decodeHeld
		}
	}
	if t.Kind() == reflect.Interface && t.NumMethod() > 0 {
		dec = func(v bson.RawValue, into reflect.Value) error {
			if isNull(v.Type) {
				return errNoDecoder{Type: t}
			}
			return w.decodePlain(v, into)
		}
	}
	if e := w.registry.encoder(t); e != nil {
		enc = w.encodeBy(e)
	}
	if d := w.registry.decoder(t); d != nil {
		dec = w.decodeBy(d)
	}
	return enc, dec
}

// decodesDocuments reports whether a type has a method UnmarshalBSON, and none for values.
func decodesDocuments(t, values reflect.Type) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false
	}
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[Unmarshaler]()) && !p.Implements(values)
}

// decodeMethod calls UnmarshalBSON with the bytes of a value, of whatever type it is.
func decodeMethod(v bson.RawValue, into reflect.Value) error {
	var data []byte // nil for a null
	if !isNull(v.Type) {
		data = append([]byte{}, v.Value...)
	}
	return into.Addr().Interface().(Unmarshaler).UnmarshalBSON(data)
}

// inDialect is lookup for what a dialect does otherwise.
func (w *way) inDialect(d *coding.Dialect, t reflect.Type, enc bson.EncodeFunc,
	dec bson.DecodeFunc) (bson.EncodeFunc, bson.DecodeFunc) {
	if own := d.Own[t]; own != nil {
		return own(w)
	}
	if w.isContainer(t) {
		return enc, func(v bson.RawValue, into reflect.Value) error {
			err := w.inside(t).options.UnmarshalValue(v, into.Addr().Interface())
			if e, ok := err.(*bson.DecodeError); ok && e.Path == "" {
				named := *e
				named.GoType = t // Allium says D or M for all of their kind
				return &named
			}
			return err
		}
	}
	if e, d := d.Methods(w, t); e != nil || d != nil {
		if e != nil {
			enc = e
		}
		if d != nil {
			dec = d
		}
	}
	return enc, dec
}

// isContainer reports whether documents in variables of type any in a t become others than they do
// by w itself.
func (w *way) isContainer(t reflect.Type) bool {
	return w.inherits && t != w.documents && w.registry.dialect.Inherits(t)
}

// inside returns what decodes the inside of a container.
func (w *way) inside(t reflect.Type) *way {
	if in, ok := w.containers.Load(t); ok {
		return in.(*way)
	}
	s := w.settings
	s.Ancestor, s.Except = t, nil
	in := w.registry.way(s)
	w.containers.Store(t, in)
	return in
}

func (w *way) encodeBy(enc ValueEncoder) bson.EncodeFunc {
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		vw := valueWriter{buf: dst, first: len(dst), state: atValue}
		if err := enc.EncodeValue(EncodeContext{w.registry, w.settings}, &vw, v); err != nil {
			return 0, dst, err
		}
		if vw.state != atEnd {
			return 0, dst, errNothingWritten
		}
		return vw.written, vw.buf, nil
	}
}

var errNothingWritten = errors.New("the ValueEncoder wrote no value")

func (w *way) decodeBy(dec ValueDecoder) bson.DecodeFunc {
	return func(v bson.RawValue, into reflect.Value) error {
		if into.Kind() == reflect.Pointer && into.IsNil() {
			into.Set(reflect.New(into.Type().Elem())) // as in a field: decoders set what is behind it
		}
		return dec.DecodeValue(DecodeContext{w.registry, w.settings}, &valueReader{t: v.Type, data: v.Value}, into)
	}
}

// except returns the settings for a value of type t itself, for which something is registered that
// leaves the rest to the default way, and would be called again.
func except(s settings, t reflect.Type, registered bool) settings {
	s.Except = nil
	if registered {
		s.Except = t
	}
	return s
}

// defaultEncode is the ValueEncoder of what nothing is registered for, and what a registered one
// may call for the same value.
func defaultEncode(ec EncodeContext, vw ValueWriter, val reflect.Value) error {
	r := ec.Registry
	if r == nil {
		r = defaultRegistry
	}
	if !val.IsValid() {
		return vw.WriteNull()
	}
	s := except(ec.settings, val.Type(), r.encoder(val.Type()) != nil)
	t, data, err := r.way(s).MarshalInside(val.Interface())
	if err != nil {
		return err
	}
	return writeValue(vw, t, data)
}

// defaultDecode is defaultEncode for decoding.
func defaultDecode(dc DecodeContext, vr ValueReader, val reflect.Value) error {
	r := dc.Registry
	if r == nil {
		r = defaultRegistry
	}
	if !val.CanSet() {
		return ValueDecoderError{Name: "DecodeValue", Received: val}
	}
	t, data, err := readWhole(vr)
	if err != nil {
		return err
	}
	s := except(dc.settings, val.Type(), r.decoder(val.Type()) != nil)
	return r.way(s).UnmarshalInside(t, data, val.Addr().Interface())
}

func (r *Registry) marshal(s settings, val any) ([]byte, error) { return r.way(s).Marshal(val) }

func (r *Registry) marshalValue(s settings, val any) (Type, []byte, error) {
	return r.way(s).MarshalValue(val)
}

func (r *Registry) unmarshal(s settings, t Type, data []byte, val any) error {
	return r.way(s).Unmarshal(t, data, val)
}

// Marshal implements coding.Way.
func (w *way) Marshal(val any) ([]byte, error) {
	switch v := val.(type) {
	case D:
		if v == nil {
			return nil, notDocument(TypeNull)
		}
	case Raw:
		if err := frame(v); err != nil {
			return nil, err
		}
	case bsoncore.Document:
		if err := frame(v); err != nil {
			return nil, err
		}
	case bsoncore.Array:
		return nil, notDocument(TypeArray)
	case nil:
		return nil, errNoEncoder{}
	}
	val, err := w.whole(val)
	if err != nil {
		return nil, err
	}
	doc, err := w.options.Marshal(val)
	if err == nil {
		return doc, nil
	}
	if v, valueErr := w.options.MarshalValue(val); valueErr == nil && v.Type != TypeEmbeddedDocument {
		return nil, notDocument(v.Type)
	}
	return nil, encodeError(err)
}

// whole returns the document that a value makes of itself where it is in no other document,
// although its type also has a method for values inside of one. Otherwise it returns val.
func (w *way) whole(val any) (any, error) {
	m, ok := val.(Marshaler)
	if !ok || !reflect.TypeOf(val).Implements(w.registry.marshalers()[0]) {
		return val, nil
	}
	if v := reflect.ValueOf(val); v.Kind() == reflect.Pointer && v.IsNil() {
		return val, nil
	}
	doc, err := m.MarshalBSON()
	if err != nil {
		return nil, err
	}
	return Raw(doc), frame(doc)
}

// MarshalValue implements coding.Way.
func (w *way) MarshalValue(val any) (Type, []byte, error) {
	val, err := w.whole(val)
	if err != nil {
		return 0, nil, err
	}
	return w.MarshalInside(val)
}

// MarshalInside implements coding.Way.
func (w *way) MarshalInside(val any) (Type, []byte, error) {
	if val == nil {
		return 0, nil, errNoEncoder{}
	}
	v, err := w.options.MarshalValue(val)
	if err != nil {
		return 0, nil, encodeError(err)
	}
	return v.Type, v.Value, nil
}

// Unmarshal implements coding.Way. A type with methods for documents and for values gets a document
// that is in no other by the former.
func (w *way) Unmarshal(t Type, data []byte, val any) error {
	u, ok := val.(Unmarshaler)
	if !ok || t != TypeEmbeddedDocument || !reflect.TypeOf(val).Implements(w.registry.unmarshalers()[0]) {
		return w.UnmarshalInside(t, data, val)
	}
	if reflect.ValueOf(val).IsNil() {
		return ErrDecodeToNil
	}
	if err := framed(data); err != nil {
		return err
	}
	return u.UnmarshalBSON(slices.Clone(data))
}

// UnmarshalInside implements coding.Way.
func (w *way) UnmarshalInside(t Type, data []byte, val any) error {
	v := reflect.ValueOf(val)
	switch {
	case v.Kind() != reflect.Pointer && v.Kind() != reflect.Map:
		return fmt.Errorf("argument to Decode must be a pointer or a map, but got %v", v)
	case v.IsNil():
		return ErrDecodeToNil
	}
	if t == TypeEmbeddedDocument {
		if err := framed(data); err != nil {
			return err
		}
		if v, ok := val.(*any); ok && w.registry.dialect != nil {
			return w.unmarshalAny(data, v)
		}
	}
	if w.registry.dialect != nil && v.Kind() == reflect.Pointer && w.isContainer(v.Type().Elem()) {
		w = w.inside(v.Type().Elem())
	}
	if err := w.options.UnmarshalValue(bson.RawValue{Type: t, Value: data}, val); err != nil {
		return w.decodeError(err)
	}
	return nil
}

// unmarshalAny decodes a document that is in no other. In a dialect what it becomes is registered
// for the type zero.
func (w *way) unmarshalAny(data []byte, into *any) error {
	t := w.documents
	if w.inherits {
		if t = w.registry.typeMap[0]; t == nil {
			t = w.registry.dialect.Any[TypeEmbeddedDocument]
		}
	}
	doc := reflect.New(t)
	if err := w.Unmarshal(TypeEmbeddedDocument, data, doc.Interface()); err != nil {
		return err
	}
	*into = doc.Elem().Interface()
	return nil
}

// Options implements coding.Way.
func (w *way) Options() *bson.Options { return &w.options }
