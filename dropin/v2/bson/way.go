package bson

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"allium/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

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
	if o.Codecs, err = bson.NewCodecs(bson.CodecByAddress(w.lookup)); err != nil {
		panic(err) // there is one codec
	}
	w.options = o
	kept, _ := r.ways.of.LoadOrStore(s, w)
	return kept.(*way)
}

// lookup finds the functions for a type whose values have an address, or have none: registered
// ones, and those for the package's own types.
func (w *way) lookup(t reflect.Type, addressable bool) (enc bson.EncodeFunc, dec bson.DecodeFunc) {
	enc, dec = w.unregistered(t, addressable)
	if e, _ := w.registry.encoder(t, addressable); e != nil {
		enc = w.encodeBy(e, addressable)
	}
	if d := w.registry.decoder(t); d != nil {
		dec = w.decodeBy(d)
	}
	return enc, dec
}

// unregistered is lookup without what is registered for the type itself.
func (w *way) unregistered(t reflect.Type, addressable bool) (enc bson.EncodeFunc, dec bson.DecodeFunc) {
	enc, dec = w.own(t, addressable)
	if w.holdsAny(t) {
		if w.registry.typeEncoders[typeAny] != nil && t != typeAny {
			enc = w.encodeBy(ValueEncoderFunc(w.encodeHeld), addressable)
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
	return enc, dec
}

// own is lookup for types of the package's and for methods.
func (w *way) own(t reflect.Type, addressable bool) (enc bson.EncodeFunc, dec bson.DecodeFunc) {
	if own := ownTypes[t]; own != nil {
		enc, dec = own(w)
	}
	if dec == nil && decodesDocuments(t, w.registry.unmarshalers()[0]) {
		dec = decodeMethod
	}
	if t.Kind() == reflect.Pointer {
		enc = pointerMethod(t)
	}
	if d := w.registry.dialect; d != nil {
		enc, dec = w.inDialect(d, t, addressable, enc, dec)
	}
	return enc, dec
}

// pointerMethod returns what encodes pointers by the method that a type of them has. It is called
// for nil, too, unless it is a method of what the pointer leads to.
func pointerMethod(t reflect.Type) bson.EncodeFunc {
	for _, iface := range marshalers {
		if !t.Implements(iface) {
			continue
		}
		nilIsNull := t.Elem().Implements(iface)
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			if nilIsNull && v.IsNil() {
				return TypeNull, dst, nil
			}
			switch m := v.Interface().(type) {
			case ValueMarshaler:
				of, data, err := m.MarshalBSONValue()
				return Type(of), append(dst, data...), err
			default:
				doc, err := m.(Marshaler).MarshalBSON()
				return TypeEmbeddedDocument, append(dst, doc...), err
			}
		}
	}
	return nil
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
func (w *way) inDialect(d *coding.Dialect, t reflect.Type, addressable bool, enc bson.EncodeFunc,
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
	if e, d := d.Methods(w, t, addressable); e != nil || d != nil {
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
	s.Ancestor = t
	in := w.registry.way(s)
	w.containers.Store(t, in)
	return in
}

// encodeBy encodes values by a ValueEncoder. Those that have no address there have none for it.
func (w *way) encodeBy(enc ValueEncoder, addressable bool) bson.EncodeFunc {
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		if !addressable {
			v = withoutAddress(v)
		}
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

// withoutAddress returns a copy of a variable's value.
func withoutAddress(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Interface {
		return reflect.ValueOf(v.Interface())
	}
	in := reflect.New(reflect.ArrayOf(1, v.Type())).Elem() // or else it were what the interface holds
	in.Index(0).Set(v)
	return reflect.ValueOf(in.Interface()).Index(0)
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
	t, data, err := r.way(ec.settings).MarshalDefault(val)
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
	return r.way(dc.settings).UnmarshalDefault(t, data, val)
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
	val, err := whole(val)
	if err != nil {
		return nil, err
	}
	doc, err := w.options.Marshal(val)
	if err == nil {
		return doc, nil
	}
	if v, valueErr := w.options.MarshalValue(val); valueErr == nil && v.Type != TypeEmbeddedDocument {
		if reflect.TypeOf(val).Implements(w.registry.marshalers()[0]) {
			return nil, notAtTop("WriteValueBytes")
		}
		return nil, notDocument(v.Type)
	}
	return nil, encodeError(err)
}

// whole returns the document that a value makes of itself where it is in no other document,
// whatever is registered for its type and whichever methods it has for values inside of one.
// Otherwise it returns val.
func whole(val any) (any, error) {
	m, ok := val.(Marshaler)
	if !ok || isNilPointer(val) {
		return val, nil
	}
	doc, err := m.MarshalBSON()
	if err != nil {
		return nil, err
	}
	return Raw(doc), frame(doc)
}

func isNilPointer(val any) bool {
	v := reflect.ValueOf(val)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// MarshalValue implements coding.Way.
func (w *way) MarshalValue(val any) (Type, []byte, error) {
	if val != nil && reflect.TypeOf(val).Implements(w.registry.marshalers()[0]) {
		var err error
		if val, err = whole(val); err != nil {
			return 0, nil, err
		}
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

// MarshalDefault implements coding.Way.
func (w *way) MarshalDefault(v reflect.Value) (t Type, data []byte, err error) {
	if enc, _ := w.unregistered(v.Type(), v.CanAddr()); enc != nil {
		if !v.CanAddr() {
			variable := reflect.New(v.Type()).Elem()
			variable.Set(v)
			v = variable
		}
		t, data, err = enc(nil, v)
	} else {
		t, data, err = w.options.AppendDefault(nil, v)
	}
	if err != nil {
		return 0, nil, encodeError(err)
	}
	return t, data, nil
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

// UnmarshalDefault implements coding.Way.
func (w *way) UnmarshalDefault(t Type, data []byte, into reflect.Value) error {
	if w.registry.decoder(into.Type()) == nil {
		return w.UnmarshalInside(t, data, into.Addr().Interface())
	}
	if t == TypeEmbeddedDocument {
		if err := framed(data); err != nil {
			return err
		}
	}
	if w.registry.dialect != nil && w.isContainer(into.Type()) {
		w = w.inside(into.Type())
	}
	v := bson.RawValue{Type: t, Value: data}
	_, dec := w.unregistered(into.Type(), true)
	switch {
	case into.Type() == typeAny:
		dec = w.decodeByTable
	case dec == nil:
		dec = w.decodePlain
	}
	if err := dec(v, into); err != nil {
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
