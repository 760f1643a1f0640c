package bson

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"allium/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// A ValueReader reads a value. A method that is not for the value's type fails.
type ValueReader interface {
	Type() Type
	Skip() error

	ReadArray() (ArrayReader, error)
	ReadBinary() (b []byte, btype byte, err error)
	ReadBoolean() (bool, error)
	ReadDocument() (DocumentReader, error)
	ReadCodeWithScope() (code string, dr DocumentReader, err error)
	ReadDBPointer() (ns string, oid ObjectID, err error)
	ReadDateTime() (int64, error)
	ReadDecimal128() (Decimal128, error)
	ReadDouble() (float64, error)
	ReadInt32() (int32, error)
	ReadInt64() (int64, error)
	ReadJavascript() (code string, err error)
	ReadMaxKey() error
	ReadMinKey() error
	ReadNull() error
	ReadObjectID() (ObjectID, error)
	ReadRegex() (pattern, options string, err error)
	ReadString() (string, error)
	ReadSymbol() (symbol string, err error)
	ReadTimestamp() (t, i uint32, err error)
	ReadUndefined() error
}

// A DocumentReader reads the elements of a document, and ErrEOD behind the last.
type DocumentReader interface {
	ReadElement() (string, ValueReader, error)
}

// An ArrayReader reads the values of an array, and ErrEOA behind the last.
type ArrayReader interface {
	ReadValue() (ValueReader, error)
}

// A valueReader reads a value out of its bytes. At the top of a stream it gets them first.
type valueReader struct {
	t    Type
	data []byte
	// fill, if not nil, is what gets the next value of a stream.
	fill func() (Type, []byte, error)
	full bool // fill was called, and nothing has read the value yet
	err  error
}

// NewDocumentReader returns a ValueReader that reads one document after the other.
func NewDocumentReader(r io.Reader) ValueReader {
	return &valueReader{t: TypeEmbeddedDocument, fill: func() (Type, []byte, error) {
		doc, err := ReadDocument(r)
		if errors.Is(err, bsoncore.ErrInvalidLength) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errInvalidLength
		}
		return TypeEmbeddedDocument, doc, err
	}}
}

// NewExtJSONValueReader returns a ValueReader that reads one document of Extended JSON after the
// other, or another value that stands alone. It reads ahead. Both forms are read, whatever
// canonicalOnly says, but dates and binaries in forms from before version 2 only without it.
func NewExtJSONValueReader(r io.Reader, canonicalOnly bool) (ValueReader, error) {
	if r == nil {
		return nil, ErrNilReader
	}
	s := &jsonStream{r: r, relaxed: !canonicalOnly}
	return &valueReader{fill: s.next}, nil
}

// A jsonStream reads values of Extended JSON.
type jsonStream struct {
	r    io.Reader
	docs *bson.ExtJSONDecoder // of a stream of documents
	any  bool                 // something was read

	relaxed bool // dates and binaries may have forms from before version 2
}

func (s *jsonStream) next() (Type, []byte, error) {
	if s.docs == nil {
		if s.any {
			return 0, nil, io.EOF
		}
		s.any = true
		start, err := s.start()
		if err != nil {
			return 0, nil, err
		}
		if start[len(start)-1] != '{' {
			return s.alone(start)
		}
		s.docs = bson.NewExtJSONDecoder(io.MultiReader(bytes.NewReader(start), s.r))
		s.docs.LegacyValues = s.relaxed
	}
	doc, err := s.docs.Next()
	if err != nil {
		return 0, nil, jsonError(err)
	}
	return TypeEmbeddedDocument, doc, nil
}

// start reads as far as the first byte that is no white space.
func (s *jsonStream) start() ([]byte, error) {
	var read []byte
	one := make([]byte, 1)
	for {
		if _, err := io.ReadFull(s.r, one); err != nil {
			if errors.Is(err, io.EOF) {
				err = errNoJSON
			}
			return nil, err
		}
		read = append(read, one[0])
		if bytes.IndexByte([]byte(" \t\r\n"), one[0]) < 0 {
			return read, nil
		}
	}
}

// alone reads a value that is no document.
func (s *jsonStream) alone(start []byte) (Type, []byte, error) {
	rest, err := io.ReadAll(s.r)
	if err != nil {
		return 0, nil, err
	}
	v, err := bson.ParseExtJSONValue(append(start, rest...))
	if err != nil {
		return 0, nil, jsonError(err)
	}
	return v.Type, v.Value, nil
}

var errNoJSON = errors.New("positioned on invalid, but attempted to read embedded document")

// jsonError is an error of reading Extended JSON, around ErrInvalidJSON.
func jsonError(err error) error {
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	var e *bson.ExtJSONError
	if !errors.As(err, &e) {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrInvalidJSON
	}
	return fmt.Errorf("%w; %w", ErrInvalidJSON, e)
}

// get makes sure that the value is there.
func (vr *valueReader) get() error {
	if vr.fill != nil && !vr.full {
		t, data, err := vr.fill()
		if err != nil {
			return err
		}
		vr.t, vr.data, vr.full = t, data, true
	}
	return nil
}

// value returns the value if it is of type t. What is read is behind the reader.
func (vr *valueReader) value(t Type) (RawValue, error) {
	if err := vr.get(); err != nil {
		return RawValue{}, err
	}
	if vr.t != t {
		return RawValue{}, fmt.Errorf("positioned on %s, but attempted to read %s", vr.t, t)
	}
	vr.full = false
	v := RawValue{Type: t, Value: vr.data}
	return v, v.Validate()
}

func (vr *valueReader) Type() Type {
	if vr.fill != nil && vr.t != TypeEmbeddedDocument {
		_ = vr.get() // the next call that reads says the error
	}
	return vr.t
}

func (vr *valueReader) Skip() error {
	err := vr.get()
	vr.full = false
	return err
}

func (vr *valueReader) ReadArray() (ArrayReader, error) {
	v, err := vr.value(TypeArray)
	if err != nil {
		return nil, err
	}
	return newElementReader(v.Value)
}

func (vr *valueReader) ReadDocument() (DocumentReader, error) {
	v, err := vr.value(TypeEmbeddedDocument)
	if err != nil {
		return nil, err
	}
	return newElementReader(v.Value)
}

func (vr *valueReader) ReadCodeWithScope() (code string, dr DocumentReader, err error) {
	v, err := vr.value(TypeCodeWithScope)
	if err != nil {
		return "", nil, err
	}
	code, scope, ok := v.CodeWithScopeOK()
	if !ok {
		return "", nil, errMalformed
	}
	dr, err = newElementReader(scope)
	return code, dr, err
}

// read reads a value of type t with the getter that returns whether the value is whole.
func read[T any](vr *valueReader, t Type, get func(v RawValue) (T, bool)) (T, error) {
	v, err := vr.value(t)
	if err != nil {
		return *new(T), err
	}
	x, ok := get(v)
	if !ok {
		return *new(T), errMalformed
	}
	return x, nil
}

func (vr *valueReader) ReadBinary() (b []byte, btype byte, err error) {
	bin, err := read(vr, TypeBinary, func(v RawValue) (Binary, bool) {
		subtype, data, ok := v.BinaryOK()
		return Binary{subtype, append([]byte{}, data...)}, ok
	})
	return bin.Data, bin.Subtype, err
}

func (vr *valueReader) ReadBoolean() (bool, error) {
	return read(vr, TypeBoolean, RawValue.BooleanOK)
}

func (vr *valueReader) ReadDBPointer() (ns string, oid ObjectID, err error) {
	p, err := read(vr, TypeDBPointer, func(v RawValue) (DBPointer, bool) {
		db, id, ok := v.DBPointerOK()
		return DBPointer{db, id}, ok
	})
	return p.DB, p.Pointer, err
}

func (vr *valueReader) ReadDateTime() (int64, error) {
	return read(vr, TypeDateTime, RawValue.DateTimeOK)
}

func (vr *valueReader) ReadDecimal128() (Decimal128, error) {
	return read(vr, TypeDecimal128, RawValue.Decimal128OK)
}

func (vr *valueReader) ReadDouble() (float64, error) { return read(vr, TypeDouble, RawValue.DoubleOK) }
func (vr *valueReader) ReadInt32() (int32, error)    { return read(vr, TypeInt32, RawValue.Int32OK) }
func (vr *valueReader) ReadInt64() (int64, error)    { return read(vr, TypeInt64, RawValue.Int64OK) }

func (vr *valueReader) ReadJavascript() (code string, err error) {
	return read(vr, TypeJavaScript, RawValue.JavaScriptOK)
}

func (vr *valueReader) ReadObjectID() (ObjectID, error) {
	return read(vr, TypeObjectID, RawValue.ObjectIDOK)
}

func (vr *valueReader) ReadRegex() (pattern, options string, err error) {
	r, err := read(vr, TypeRegex, func(v RawValue) (Regex, bool) {
		pattern, options, ok := v.RegexOK()
		return Regex{pattern, options}, ok
	})
	return r.Pattern, r.Options, err
}

func (vr *valueReader) ReadString() (string, error) {
	return read(vr, TypeString, RawValue.StringValueOK)
}

func (vr *valueReader) ReadSymbol() (symbol string, err error) {
	return read(vr, TypeSymbol, RawValue.SymbolOK)
}

func (vr *valueReader) ReadTimestamp() (t, i uint32, err error) {
	ts, err := read(vr, TypeTimestamp, func(v RawValue) (Timestamp, bool) {
		t, i, ok := v.TimestampOK()
		return Timestamp{t, i}, ok
	})
	return ts.T, ts.I, err
}

func (vr *valueReader) empty(t Type) error {
	_, err := vr.value(t)
	return err
}

func (vr *valueReader) ReadMaxKey() error    { return vr.empty(TypeMaxKey) }
func (vr *valueReader) ReadMinKey() error    { return vr.empty(TypeMinKey) }
func (vr *valueReader) ReadNull() error      { return vr.empty(TypeNull) }
func (vr *valueReader) ReadUndefined() error { return vr.empty(TypeUndefined) }

// An elementReader reads the elements of a document or the values of an array.
type elementReader struct {
	rest  []byte
	child valueReader
}

func newElementReader(doc []byte) (*elementReader, error) {
	length, rest, ok := bsoncore.ReadLength(doc)
	if !ok || int(length) != len(doc) || length < 5 {
		return nil, errMalformed
	}
	return &elementReader{rest: rest[:len(rest)-1]}, nil
}

func (er *elementReader) next(end error) (string, *valueReader, error) {
	if len(er.rest) == 0 {
		return "", nil, end
	}
	e, rest, ok := bsoncore.ReadElement(er.rest)
	if !ok {
		return "", nil, errMalformed
	}
	er.rest = rest
	v := e.Value()
	er.child = valueReader{t: Type(v.Type), data: v.Data}
	return e.Key(), &er.child, nil
}

func (er *elementReader) ReadElement() (string, ValueReader, error) {
	key, vr, err := er.next(ErrEOD)
	if err != nil {
		return "", nil, err
	}
	return key, vr, nil
}

func (er *elementReader) ReadValue() (ValueReader, error) {
	_, vr, err := er.next(ErrEOA)
	if err != nil {
		return nil, err
	}
	return vr, nil
}

// readWhole reads a value of any type, and encodes it if the reader is the program's.
func readWhole(vr ValueReader) (Type, []byte, error) {
	if own, ok := vr.(*valueReader); ok {
		if err := own.get(); err != nil {
			return 0, nil, err
		}
		own.full = false
		return own.t, own.data, nil
	}
	vw := &valueWriter{state: atValue}
	if err := copyRead(vw, vr); err != nil {
		return 0, nil, err
	}
	return vw.written, vw.buf, nil
}

// copyRead writes what a reader of the program's reads.
func copyRead(vw ValueWriter, vr ValueReader) error {
	switch t := vr.Type(); t {
	case TypeDouble:
		return pass(vr.ReadDouble, vw.WriteDouble)
	case TypeString:
		return pass(vr.ReadString, vw.WriteString)
	case TypeEmbeddedDocument, 0:
		dr, err := vr.ReadDocument()
		if err != nil {
			return err
		}
		dw, err := vw.WriteDocument()
		if err != nil {
			return err
		}
		return copyReadElements(dw, dr)
	case TypeArray:
		ar, err := vr.ReadArray()
		if err != nil {
			return err
		}
		aw, err := vw.WriteArray()
		if err != nil {
			return err
		}
		for {
			er, err := ar.ReadValue()
			if errors.Is(err, ErrEOA) {
				return aw.WriteArrayEnd()
			}
			if err != nil {
				return err
			}
			ew, err := aw.WriteArrayElement()
			if err != nil {
				return err
			}
			if err := copyRead(ew, er); err != nil {
				return err
			}
		}
	case TypeBinary:
		b, subtype, err := vr.ReadBinary()
		if err != nil {
			return err
		}
		return vw.WriteBinaryWithSubtype(b, subtype)
	case TypeUndefined:
		return either(vr.ReadUndefined(), vw.WriteUndefined)
	case TypeObjectID:
		return pass(vr.ReadObjectID, vw.WriteObjectID)
	case TypeBoolean:
		return pass(vr.ReadBoolean, vw.WriteBoolean)
	case TypeDateTime:
		return pass(vr.ReadDateTime, vw.WriteDateTime)
	case TypeNull:
		return either(vr.ReadNull(), vw.WriteNull)
	case TypeRegex:
		pattern, options, err := vr.ReadRegex()
		if err != nil {
			return err
		}
		return vw.WriteRegex(pattern, options)
	case TypeDBPointer:
		ns, id, err := vr.ReadDBPointer()
		if err != nil {
			return err
		}
		return vw.WriteDBPointer(ns, id)
	case TypeJavaScript:
		return pass(vr.ReadJavascript, vw.WriteJavascript)
	case TypeSymbol:
		return pass(vr.ReadSymbol, vw.WriteSymbol)
	case TypeCodeWithScope:
		code, dr, err := vr.ReadCodeWithScope()
		if err != nil {
			return err
		}
		dw, err := vw.WriteCodeWithScope(code)
		if err != nil {
			return err
		}
		return copyReadElements(dw, dr)
	case TypeInt32:
		return pass(vr.ReadInt32, vw.WriteInt32)
	case TypeTimestamp:
		t, i, err := vr.ReadTimestamp()
		if err != nil {
			return err
		}
		return vw.WriteTimestamp(t, i)
	case TypeInt64:
		return pass(vr.ReadInt64, vw.WriteInt64)
	case TypeDecimal128:
		return pass(vr.ReadDecimal128, vw.WriteDecimal128)
	case TypeMinKey:
		return either(vr.ReadMinKey(), vw.WriteMinKey)
	case TypeMaxKey:
		return either(vr.ReadMaxKey(), vw.WriteMaxKey)
	default:
		return errInvalidRawValue(t)
	}
}

func copyReadElements(dw DocumentWriter, dr DocumentReader) error {
	for {
		key, er, err := dr.ReadElement()
		if errors.Is(err, ErrEOD) {
			return dw.WriteDocumentEnd()
		}
		if err != nil {
			return err
		}
		ew, err := dw.WriteDocumentElement(key)
		if err != nil {
			return err
		}
		if err := copyRead(ew, er); err != nil {
			return err
		}
	}
}

func pass[T any](read func() (T, error), write func(T) error) error {
	x, err := read()
	if err != nil {
		return err
	}
	return write(x)
}

func either(err error, write func() error) error {
	if err != nil {
		return err
	}
	return write()
}
