package bson

import (
	"encoding"
	"fmt"
	"reflect"
)

// A typeCodec is how variables of one Go type are encoded and decoded, compiled once per type,
// flags and Options.
type typeCodec struct {
	t      reflect.Type
	enc    encFunc
	dec    decFunc
	op     op         // if not opCall, what enc and dec do, for struct programs to do in line
	elem   *typeCodec // of pointers: what they point to
	shape  ShapeKind  // what enc makes
	copies bool       // encoding may call methods with pointer receivers on the variable or parts of it
}

// encFunc appends the value of the variable at p to dst, without a key, and returns its type.
type encFunc func(e *encoder, dst []byte, p ptr) (Type, []byte, error)

// decFunc decodes the value of type t at the start of b into the variable at p and returns how many
// bytes it took. b ends with the enclosing document's last element.
type decFunc func(d *decoder, t Type, b []byte, p ptr) (int, error)

// op is a basic operation that struct programs do without a call.
type op uint8

const (
	opCall op = iota
	opString
	opBool
	opInt // int: encoded by size
	opInt32
	opInt64
	opFloat64
	opObjectID
	opTime
)

// opTypes are the BSON types that ops write.
var opTypes = [...]Type{
	opString: TypeString, opBool: TypeBoolean, opInt32: TypeInt32, opInt64: TypeInt64, opFloat64: TypeDouble,
	opObjectID: TypeObjectID, opTime: TypeDateTime,
}

// encoder returns enc, or while the codec is still being compiled (the type is recursive) a
// function that will call it.
func (tc *typeCodec) encoder() encFunc {
	if tc.enc != nil {
		return tc.enc
	}
	return func(e *encoder, dst []byte, p ptr) (Type, []byte, error) { return tc.enc(e, dst, p) }
}

// decoder is encoder for dec.
func (tc *typeCodec) decoder() decFunc {
	if tc.dec != nil {
		return tc.dec
	}
	return func(d *decoder, t Type, b []byte, p ptr) (int, error) { return tc.dec(d, t, b, p) }
}

// codec returns the codec for t, which it compiles if nobody has yet.
func (c *config) codec(t reflect.Type, fl flags) *typeCodec {
	if tc, ok := c.cache[fl].Load(t); ok {
		return tc.(*typeCodec)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cm := compiler{cfg: c, building: make(map[codecKey]*typeCodec)}
	tc := cm.codec(t, fl)
	cm.publish()
	return tc
}

// defaultCodec returns the codec for t that there is without one of Codecs for t itself. For what
// is in a t they count.
func (c *config) defaultCodec(t reflect.Type, fl flags) *typeCodec {
	if c.Codecs == nil {
		return c.codec(t, fl)
	}
	key := codecKey{t, fl}
	if tc, ok := c.defaults.Load(key); ok {
		return tc.(*typeCodec)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cm := compiler{cfg: c, building: make(map[codecKey]*typeCodec)}
	tc := &typeCodec{t: t}
	cm.compileDefault(tc, fl)
	cm.publish()
	c.defaults.Store(key, tc)
	return tc
}

// publish lets others see what was compiled: only now is every codec complete, recursive ones too.
func (cm *compiler) publish() {
	for key, tc := range cm.building {
		cm.cfg.cache[key.flags].Store(key.t, tc)
	}
}

// A compiler compiles the codec of one type and of those that it is made of.
type compiler struct {
	cfg      *config
	building map[codecKey]*typeCodec
}

func (cm *compiler) codec(t reflect.Type, fl flags) *typeCodec {
	if tc, ok := cm.cfg.cache[fl].Load(t); ok {
		return tc.(*typeCodec)
	}
	key := codecKey{t, fl}
	if tc := cm.building[key]; tc != nil {
		return tc
	}
	tc := &typeCodec{t: t}
	cm.building[key] = tc
	cm.compile(tc, fl)
	return tc
}

var (
	typeAny              = reflect.TypeFor[any]()
	typeByte             = reflect.TypeFor[byte]() // alone: a type of its own, as for an enumeration, makes an array
	typeE                = reflect.TypeFor[E]()
	typeMarshaler        = reflect.TypeFor[Marshaler]()
	typeUnmarshaler      = reflect.TypeFor[Unmarshaler]()
	typeValueMarshaler   = reflect.TypeFor[ValueMarshaler]()
	typeValueUnmarshaler = reflect.TypeFor[ValueUnmarshaler]()
	typeTextMarshaler    = reflect.TypeFor[encoding.TextMarshaler]()
	typeTextUnmarshaler  = reflect.TypeFor[encoding.TextUnmarshaler]()
	typeZeroer           = reflect.TypeFor[zeroer]()
)

// compile fills in tc. The order is the package's precedence: the user's codecs, the basic types,
// methods, and what the kind of the type says.
func (cm *compiler) compile(tc *typeCodec, fl flags) {
	cm.compileDefault(tc, fl)
	cm.cfg.Codecs.use(tc, cm.cfg, fl)
}

// compileDefault is compile without the user's codecs for the type itself.
func (cm *compiler) compileDefault(tc *typeCodec, fl flags) {
	t := tc.t
	if b, ok := basicCodecs(t, fl); ok {
		tc.enc, tc.dec, tc.op = b.enc, b.dec, b.op
		tc.shape = basicShape(t)
	} else {
		cm.compileKind(tc, fl)
		cm.useMethods(tc, fl)
	}
}

// compileKind fills in tc by the kind of the type.
func (cm *compiler) compileKind(tc *typeCodec, fl flags) {
	t := tc.t
	switch t.Kind() {
	case reflect.Struct:
		cm.compileStruct(tc, fl)
	case reflect.Pointer:
		cm.compilePointer(tc, fl)
	case reflect.Interface:
		tc.enc, tc.dec = interfaceCodec(t, fl)
	case reflect.Slice:
		cm.compileSlice(tc, fl)
	case reflect.Array:
		cm.compileArray(tc, fl)
	case reflect.Map:
		cm.compileMap(tc, fl)
	default:
		if k, ok := kindCodecs(t, fl); ok {
			tc.enc, tc.dec, tc.op = k.enc, k.dec, k.op
			return
		}
		tc.fail(errUnsupported)
	}
}

// fail makes every use of the codec fail, for a type that cannot be encoded or decoded: it may lie
// in a struct whose field is never set.
func (tc *typeCodec) fail(err error) {
	t := tc.t
	tc.enc = func(_ *encoder, dst []byte, _ ptr) (Type, []byte, error) {
		return 0, dst, &EncodeError{GoType: t, Err: err}
	}
	tc.dec = func(_ *decoder, bt Type, _ []byte, _ ptr) (int, error) {
		return 0, &DecodeError{BSONType: bt, GoType: t, Err: err}
	}
}

// useMethods puts the type's own methods, if it has some, before what its kind says. Methods of a
// pointer receiver count: everything is encoded by its address, unless the flags say that a program
// would not have one. Pointers and interfaces are left to what they point to or hold.
func (cm *compiler) useMethods(tc *typeCodec, fl flags) {
	t := tc.t
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return
	}
	pt := reflect.PointerTo(t)
	opaque := t.Kind() == reflect.Struct && !hasExportedField(t)
	for _, m := range []struct {
		iface reflect.Type
		when  bool
		enc   encFunc
	}{
		{typeValueMarshaler, true, encValueMarshaler(t)},
		{typeMarshaler, true, encMarshaler(t)},
		{typeTextMarshaler, opaque, encTextMarshaler(t)},
	} {
		if m.when && (t.Implements(m.iface) || fl&flagCopied == 0 && pt.Implements(m.iface)) {
			tc.enc, tc.shape, tc.op, tc.copies = m.enc, ShapeValue, opCall, !t.Implements(m.iface)
			break
		}
	}
	switch {
	case pt.Implements(typeValueUnmarshaler):
		tc.dec, tc.op = decValueUnmarshaler(t), opCall
	case pt.Implements(typeUnmarshaler):
		tc.dec, tc.op = decUnmarshaler(t), opCall
	case opaque && pt.Implements(typeTextUnmarshaler):
		tc.dec, tc.op = decTextUnmarshaler(t), opCall
	}
}

func hasExportedField(t reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			return true
		}
	}
	return false
}

func (cm *compiler) compilePointer(tc *typeCodec, fl flags) {
	// A type like `type P *P` never reaches a value.
	seen := map[reflect.Type]bool{}
	for t := tc.t; t.Kind() == reflect.Pointer; t = t.Elem() {
		if seen[t] {
			tc.fail(fmt.Errorf("pointer type points to itself"))
			return
		}
		seen[t] = true
	}
	elem := cm.codec(tc.t.Elem(), fl&^flagCopied)
	tc.elem, tc.shape = elem, ShapePointer
	sliceType := reflect.SliceOf(elem.t)
	enc, dec := elem.encoder(), elem.decoder()
	tc.enc = func(e *encoder, dst []byte, p ptr) (Type, []byte, error) {
		q := p.elem()
		if q.isNil() {
			return TypeNull, dst, nil
		}
		return enc(e, dst, q)
	}
	tc.dec = func(d *decoder, bt Type, b []byte, p ptr) (int, error) {
		if bt == TypeNull || bt == TypeUndefined {
			p.setElem(ptr{})
			return 0, nil
		}
		q := p.elem()
		if !q.isNil() {
			return dec(d, bt, b, q)
		}
		q = d.newElem(elem, sliceType)
		n, err := dec(d, bt, b, q)
		if err == nil {
			p.setElem(q)
		}
		return n, err
	}
}
