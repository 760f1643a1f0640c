package bson

import (
	"errors"
	"math"
	"reflect"
	"time"

	"allium/bson"
)

// mgoSettings are what a registry in the manner of the driver mgo does otherwise than its settings
// say.
type mgoSettings struct{ on, respectNil bool }

func (m mgoSettings) apply(o *bson.Options) {
	if !m.on {
		return
	}
	if !m.respectNil {
		o.NilSliceAsNull, o.NilMapAsNull, o.NilBytesAsNull = false, false, false
	}
	o.BinaryAsBytes, o.ClearMaps, o.ClearStructs, o.OmitEmptyStructs = true, true, true, true
}

// getter is implemented by types that mgo encodes as another value.
type getter interface{ GetBSON() (any, error) }

// setter is implemented by types that mgo leaves to decode themselves.
type setter interface{ SetBSON(raw RawValue) error }

// NewMgoRegistry returns a registry that encodes and decodes as the driver mgo does: nil slices and
// maps are empty, documents become M in variables of type any, and methods GetBSON and SetBSON are
// called.
func NewMgoRegistry() *Registry { return newMgoRegistry(false) }

// NewRespectNilValuesMgoRegistry is NewMgoRegistry with nil slices and maps as null.
func NewRespectNilValuesMgoRegistry() *Registry { return newMgoRegistry(true) }

func newMgoRegistry(respectNil bool) *Registry {
	r := NewRegistry()
	r.mgo = mgoSettings{on: true, respectNil: respectNil}
	r.RegisterInterfaceEncoder(reflect.TypeFor[getter](), ValueEncoderFunc(encodeGetter))
	r.RegisterInterfaceDecoder(reflect.TypeFor[setter](), ValueDecoderFunc(decodeSetter))
	for _, kind := range []reflect.Kind{reflect.Uint, reflect.Uint32} {
		r.RegisterKindEncoder(kind, ValueEncoderFunc(encodeSmallUint))
	}
	r.RegisterKindDecoder(reflect.String, ValueDecoderFunc(decodeStringOfID))
	for t, goType := range map[Type]reflect.Type{
		TypeInt32:    reflect.TypeFor[int](),
		TypeDateTime: reflect.TypeFor[time.Time](),
		TypeArray:    reflect.TypeFor[[]any](), TypeEmbeddedDocument: reflect.TypeFor[M](),
	} {
		r.RegisterTypeMapEntry(t, goType)
	}
	return r
}

// method returns what implements one of the interfaces: the value, or its address.
func method[T any](v reflect.Value) (T, bool) {
	if x, ok := v.Interface().(T); ok {
		// The method of a pointer says what a nil pointer is; that of a value cannot be called.
		return x, v.Kind() != reflect.Pointer || !v.IsNil() || !v.Type().Elem().Implements(reflect.TypeFor[T]())
	}
	if !v.CanAddr() {
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		v = p.Elem()
	}
	x, ok := v.Addr().Interface().(T)
	return x, ok
}

func encodeGetter(ec EncodeContext, vw ValueWriter, val reflect.Value) error {
	g, ok := method[getter](val)
	if !ok {
		return vw.WriteNull()
	}
	x, err := g.GetBSON()
	if err != nil {
		return err
	}
	if x == nil {
		return vw.WriteNull()
	}
	enc, err := ec.LookupEncoder(reflect.TypeOf(x))
	if err != nil {
		return err
	}
	return enc.EncodeValue(ec, vw, reflect.ValueOf(x))
}

func decodeSetter(dc DecodeContext, vr ValueReader, val reflect.Value) error {
	t, data, err := readWhole(vr)
	if err != nil {
		return err
	}
	if val.Kind() == reflect.Pointer && val.Type().Implements(reflect.TypeFor[setter]()) {
		if val.IsNil() {
			val.Set(reflect.New(val.Type().Elem()))
		}
		val = val.Elem()
	}
	err = val.Addr().Interface().(setter).SetBSON(RawValue{Type: t, Value: append([]byte{}, data...), r: dc.Registry})
	if errors.Is(err, ErrMgoSetZero) {
		val.SetZero()
		return nil
	}
	return err
}

func encodeSmallUint(_ EncodeContext, vw ValueWriter, val reflect.Value) error {
	switch n := val.Uint(); {
	case n <= math.MaxInt32:
		return vw.WriteInt32(int32(n))
	case n <= math.MaxInt64:
		return vw.WriteInt64(int64(n))
	default:
		return reason{val.Type().String() + " overflows int64", nil}
	}
}

// decodeStringOfID decodes an ObjectID into a string as its twelve bytes, and all else as usual.
func decodeStringOfID(dc DecodeContext, vr ValueReader, val reflect.Value) error {
	if vr.Type() == TypeObjectID {
		id, err := vr.ReadObjectID()
		val.SetString(string(id[:]))
		return err
	}
	return defaultDecode(dc, vr, val)
}
