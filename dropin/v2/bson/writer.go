package bson

import (
	"encoding/binary"
	"errors"
	"io"

	"allium/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// A ValueWriter writes a value.
type ValueWriter interface {
	WriteArray() (ArrayWriter, error)
	WriteBinary(b []byte) error
	WriteBinaryWithSubtype(b []byte, btype byte) error
	WriteBoolean(bool) error
	WriteCodeWithScope(code string) (DocumentWriter, error)
	WriteDBPointer(ns string, oid ObjectID) error
	WriteDateTime(dt int64) error
	WriteDecimal128(Decimal128) error
	WriteDouble(float64) error
	WriteInt32(int32) error
	WriteInt64(int64) error
	WriteJavascript(code string) error
	WriteMaxKey() error
	WriteMinKey() error
	WriteNull() error
	WriteObjectID(ObjectID) error
	WriteRegex(pattern, options string) error
	WriteString(string) error
	WriteDocument() (DocumentWriter, error)
	WriteSymbol(symbol string) error
	WriteTimestamp(t, i uint32) error
	WriteUndefined() error
}

// A DocumentWriter writes the elements of a document: a key, and then its value.
type DocumentWriter interface {
	WriteDocumentElement(string) (ValueWriter, error)
	WriteDocumentEnd() error
}

// An ArrayWriter writes the values of an array.
type ArrayWriter interface {
	WriteArrayElement() (ValueWriter, error)
	WriteArrayEnd() error
}

// writerState is what a valueWriter expects next.
type writerState uint8

const (
	atTop     writerState = iota // a document
	atValue                      // a value that stands alone
	atElement                    // the value of the element that was begun
	inside                       // an element, or the end of what is open
	atEnd                        // nothing: the value is there
)

var writerStates = [...]string{atTop: "TopLevel", atValue: "Value", atElement: "Element", inside: "Document",
	atEnd: "End"}

// A valueWriter writes BSON into a buffer.
type valueWriter struct {
	buf     []byte
	first   int // where in buf its own bytes begin
	state   writerState
	written Type // the type of the value that stands alone
	header  int  // where in buf the type of the element is that was begun
	open    []openValue
	flush   func(doc []byte) error // gets each document that a writer of documents has written
}

// openValue is a document, array or code with scope that is not finished.
type openValue struct {
	t     Type
	start int // where in buf its length is
	scope int // of code with scope: where the length of the scope is
	next  int // of an array: the index of the next value
	top   bool
}

// NewDocumentWriter returns a ValueWriter that writes documents to w, each with one Write.
func NewDocumentWriter(w io.Writer) ValueWriter {
	return &valueWriter{flush: func(doc []byte) error {
		_, err := w.Write(doc)
		return err
	}}
}

// NewExtJSONValueWriter returns a ValueWriter that writes documents to w as Extended JSON, each on
// a line of its own.
func NewExtJSONValueWriter(w io.Writer, canonical, escapeHTML bool) ValueWriter {
	return &valueWriter{flush: func(doc []byte) error {
		text, err := extJSON(doc, canonical, escapeHTML)
		if err == nil {
			_, err = w.Write(append(text, '\n'))
		}
		return err
	}}
}

// begin makes room for a value of type t.
func (vw *valueWriter) begin(name string, t Type) error {
	switch vw.state {
	case atValue:
		vw.written = t
	case atElement:
		vw.buf[vw.header] = byte(t)
	case atTop:
		if t == TypeEmbeddedDocument {
			return nil
		}
		fallthrough
	default:
		return TransitionError{name: name, positions: []string{"Element", "Value"}, at: writerStates[vw.state]}
	}
	return nil
}

// done is called behind a value.
func (vw *valueWriter) done() {
	if len(vw.open) == 0 {
		vw.state = atEnd
	} else {
		vw.state = inside
	}
}

// scalar writes a value that is made of its bytes alone.
func (vw *valueWriter) scalar(name string, t Type, appendTo func(dst []byte) []byte) error {
	if err := vw.begin(name, t); err != nil {
		return err
	}
	if appendTo != nil {
		vw.buf = appendTo(vw.buf)
	}
	vw.done()
	return nil
}

// enter begins a document or an array.
func (vw *valueWriter) enter(name string, t Type) error {
	if err := vw.begin(name, t); err != nil {
		return err
	}
	vw.open = append(vw.open, openValue{t: t, start: len(vw.buf), top: vw.state == atTop})
	vw.buf = append(vw.buf, 0, 0, 0, 0)
	vw.state = inside
	return nil
}

// leave ends the value that was begun last.
func (vw *valueWriter) leave(name string, types ...Type) error {
	last := len(vw.open) - 1
	if vw.state != inside || last < 0 {
		return TransitionError{name: name, positions: []string{"Document"}, at: writerStates[vw.state]}
	}
	o := vw.open[last]
	fits := false
	for _, t := range types {
		fits = fits || o.t == t
	}
	if !fits {
		return TransitionError{name: name, positions: []string{types[0].String()}, at: o.t.String()}
	}
	vw.buf = append(vw.buf, 0)
	if o.t == TypeCodeWithScope {
		binary.LittleEndian.PutUint32(vw.buf[o.scope:], uint32(len(vw.buf)-o.scope))
	}
	binary.LittleEndian.PutUint32(vw.buf[o.start:], uint32(len(vw.buf)-o.start))
	vw.open = vw.open[:last]
	if !o.top {
		vw.done()
		return nil
	}
	doc := vw.buf[o.start:]
	vw.buf, vw.state = vw.buf[:o.start], atTop
	return vw.flush(doc)
}

func (vw *valueWriter) WriteDocument() (DocumentWriter, error) {
	return vw, vw.enter("WriteDocument", TypeEmbeddedDocument)
}

func (vw *valueWriter) WriteArray() (ArrayWriter, error) {
	return vw, vw.enter("WriteArray", TypeArray)
}

func (vw *valueWriter) WriteCodeWithScope(code string) (DocumentWriter, error) {
	if err := vw.enter("WriteCodeWithScope", TypeCodeWithScope); err != nil {
		return nil, err
	}
	vw.buf = bson.AppendStringValue(vw.buf, code)
	vw.open[len(vw.open)-1].scope = len(vw.buf)
	vw.buf = append(vw.buf, 0, 0, 0, 0)
	return vw, nil
}

var errNullInKey = errors.New("BSON element key cannot contain null bytes")

func (vw *valueWriter) WriteDocumentElement(key string) (ValueWriter, error) {
	if vw.state != inside || vw.open[len(vw.open)-1].t == TypeArray {
		return nil, TransitionError{name: "WriteDocumentElement", positions: []string{"TopLevel", "Document"},
			at: writerStates[vw.state]}
	}
	for i := range len(key) {
		if key[i] == 0 {
			return nil, errNullInKey
		}
	}
	vw.header, vw.state = len(vw.buf), atElement
	vw.buf = bson.AppendHeader(vw.buf, 0, key)
	return vw, nil
}

func (vw *valueWriter) WriteDocumentEnd() error {
	return vw.leave("WriteDocumentEnd", TypeEmbeddedDocument, TypeCodeWithScope)
}

func (vw *valueWriter) WriteArrayElement() (ValueWriter, error) {
	if vw.state != inside || vw.open[len(vw.open)-1].t != TypeArray {
		return nil, TransitionError{name: "WriteArrayElement", positions: []string{"Array"}, at: writerStates[vw.state]}
	}
	o := &vw.open[len(vw.open)-1]
	vw.header, vw.state = len(vw.buf), atElement
	vw.buf = bson.AppendIndexHeader(vw.buf, 0, o.next)
	o.next++
	return vw, nil
}

func (vw *valueWriter) WriteArrayEnd() error { return vw.leave("WriteArrayEnd", TypeArray) }

func (vw *valueWriter) WriteBinary(b []byte) error {
	return vw.WriteBinaryWithSubtype(b, TypeBinaryGeneric)
}

func (vw *valueWriter) WriteBinaryWithSubtype(b []byte, btype byte) error {
	return vw.scalar("WriteBinaryWithSubtype", TypeBinary, func(dst []byte) []byte {
		return bson.AppendBinaryValue(dst, btype, b)
	})
}

func (vw *valueWriter) WriteBoolean(b bool) error {
	return vw.scalar("WriteBoolean", TypeBoolean, func(dst []byte) []byte { return bson.AppendBoolValue(dst, b) })
}

func (vw *valueWriter) WriteDBPointer(ns string, oid ObjectID) error {
	return vw.scalar("WriteDBPointer", TypeDBPointer, func(dst []byte) []byte {
		return append(bson.AppendStringValue(dst, ns), oid[:]...)
	})
}

func (vw *valueWriter) WriteDateTime(dt int64) error {
	return vw.scalar("WriteDateTime", TypeDateTime, func(dst []byte) []byte { return bson.AppendInt64Value(dst, dt) })
}

func (vw *valueWriter) WriteDecimal128(d Decimal128) error {
	return vw.scalar("WriteDecimal128", TypeDecimal128, func(dst []byte) []byte {
		return bson.AppendDecimal128Value(dst, d.decimal())
	})
}

func (vw *valueWriter) WriteDouble(f float64) error {
	return vw.scalar("WriteDouble", TypeDouble, func(dst []byte) []byte { return bson.AppendDoubleValue(dst, f) })
}

func (vw *valueWriter) WriteInt32(n int32) error {
	return vw.scalar("WriteInt32", TypeInt32, func(dst []byte) []byte { return bson.AppendInt32Value(dst, n) })
}

func (vw *valueWriter) WriteInt64(n int64) error {
	return vw.scalar("WriteInt64", TypeInt64, func(dst []byte) []byte { return bson.AppendInt64Value(dst, n) })
}

func (vw *valueWriter) WriteJavascript(code string) error {
	return vw.scalar("WriteJavascript", TypeJavaScript, func(dst []byte) []byte {
		return bson.AppendStringValue(dst, code)
	})
}

func (vw *valueWriter) WriteMaxKey() error { return vw.scalar("WriteMaxKey", TypeMaxKey, nil) }
func (vw *valueWriter) WriteMinKey() error { return vw.scalar("WriteMinKey", TypeMinKey, nil) }
func (vw *valueWriter) WriteNull() error   { return vw.scalar("WriteNull", TypeNull, nil) }
func (vw *valueWriter) WriteUndefined() error {
	return vw.scalar("WriteUndefined", TypeUndefined, nil)
}

func (vw *valueWriter) WriteObjectID(id ObjectID) error {
	return vw.scalar("WriteObjectID", TypeObjectID, func(dst []byte) []byte { return append(dst, id[:]...) })
}

func (vw *valueWriter) WriteRegex(pattern, options string) error {
	value, err := alliumValue(nil, bson.Regex{Pattern: pattern, Options: options})
	if err != nil {
		return err
	}
	return vw.scalar("WriteRegex", TypeRegex, func(dst []byte) []byte { return append(dst, value...) })
}

func (vw *valueWriter) WriteString(s string) error {
	return vw.scalar("WriteString", TypeString, func(dst []byte) []byte { return bson.AppendStringValue(dst, s) })
}

func (vw *valueWriter) WriteSymbol(symbol string) error {
	return vw.scalar("WriteSymbol", TypeSymbol, func(dst []byte) []byte { return bson.AppendStringValue(dst, symbol) })
}

func (vw *valueWriter) WriteTimestamp(t, i uint32) error {
	return vw.scalar("WriteTimestamp", TypeTimestamp, func(dst []byte) []byte {
		return bson.AppendTimestampValue(dst, bson.Timestamp{T: t, I: i})
	})
}

// writeValue writes a value that is encoded already.
func writeValue(vw ValueWriter, t Type, data []byte) error {
	own, ok := vw.(*valueWriter)
	if !ok {
		return copyValue(vw, RawValue{Type: t, Value: data})
	}
	if err := own.begin(methodOf[t], t); err != nil {
		return err
	}
	if own.state == atTop {
		if err := frame(data); err != nil {
			return err
		}
		return own.flush(data)
	}
	own.buf = append(own.buf, data...)
	own.done()
	return nil
}

// copyValue writes a value to a writer of the program's, part by part.
func copyValue(vw ValueWriter, v RawValue) error {
	if err := v.Validate(); err != nil {
		return err
	}
	switch v.Type {
	case TypeDouble:
		return vw.WriteDouble(v.Double())
	case TypeString:
		return vw.WriteString(v.StringValue())
	case TypeEmbeddedDocument:
		dw, err := vw.WriteDocument()
		if err != nil {
			return err
		}
		return copyElements(dw, v.Value)
	case TypeArray:
		aw, err := vw.WriteArray()
		if err != nil {
			return err
		}
		values, err := RawArray(v.Value).Values()
		if err != nil {
			return err
		}
		for _, v := range values {
			ew, err := aw.WriteArrayElement()
			if err != nil {
				return err
			}
			if err := copyValue(ew, v); err != nil {
				return err
			}
		}
		return aw.WriteArrayEnd()
	case TypeBinary:
		subtype, data := v.Binary()
		return vw.WriteBinaryWithSubtype(data, subtype)
	case TypeUndefined:
		return vw.WriteUndefined()
	case TypeObjectID:
		return vw.WriteObjectID(v.ObjectID())
	case TypeBoolean:
		return vw.WriteBoolean(v.Boolean())
	case TypeDateTime:
		return vw.WriteDateTime(v.DateTime())
	case TypeNull:
		return vw.WriteNull()
	case TypeRegex:
		return vw.WriteRegex(v.Regex())
	case TypeDBPointer:
		return vw.WriteDBPointer(v.DBPointer())
	case TypeJavaScript:
		return vw.WriteJavascript(v.JavaScript())
	case TypeSymbol:
		return vw.WriteSymbol(v.Symbol())
	case TypeCodeWithScope:
		code, scope, ok := v.CodeWithScopeOK()
		if !ok {
			return errMalformed
		}
		dw, err := vw.WriteCodeWithScope(code)
		if err != nil {
			return err
		}
		return copyElements(dw, scope)
	case TypeInt32:
		return vw.WriteInt32(v.Int32())
	case TypeTimestamp:
		return vw.WriteTimestamp(v.Timestamp())
	case TypeInt64:
		return vw.WriteInt64(v.Int64())
	case TypeDecimal128:
		return vw.WriteDecimal128(v.Decimal128())
	case TypeMinKey:
		return vw.WriteMinKey()
	case TypeMaxKey:
		return vw.WriteMaxKey()
	}
	return errInvalidRawValue(v.Type)
}

func copyElements(dw DocumentWriter, doc []byte) error {
	elems, err := bsoncore.Document(doc).Elements()
	if err != nil {
		return err
	}
	for _, e := range elems {
		ew, err := dw.WriteDocumentElement(e.Key())
		if err != nil {
			return err
		}
		if err := copyValue(ew, valueOf(e.Value())); err != nil {
			return err
		}
	}
	return dw.WriteDocumentEnd()
}
