package bson

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"unicode/utf8"
)

// Raw is an encoded document (or array): its bytes, length first, NUL last. It is read in place:
// nothing is decoded before it is needed.
//
// The methods of Raw and RawValue never panic, whatever the bytes; Validate tells whether the whole
// document is well-formed. What they return shares the document's memory: do not write to it while
// that is in use.
type Raw []byte

// RawValue is an encoded value: its type and the bytes that follow the element's key. The zero
// RawValue stands for "no value".
type RawValue struct {
	Type  Type
	Value []byte
}

var errTruncated = errors.New("bson: document ends early")

// ReadDocument cuts the first document off b and returns it with what follows. It checks the outer
// length and terminator only.
func ReadDocument(b []byte) (doc Raw, rest []byte, err error) {
	if len(b) < 5 {
		return nil, b, errTruncated
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < 5 {
		return nil, b, fmt.Errorf("bson: document length %d, want at least 5", n)
	}
	if n > len(b) {
		return nil, b, fmt.Errorf("bson: document length %d, only %d bytes left", n, len(b))
	}
	if b[n-1] != 0 {
		return nil, b, errors.New("bson: document does not end with a NUL byte")
	}
	return Raw(b[:n:n]), b[n:], nil
}

// body returns the elements between the length and the terminator, or nil if the frame is broken.
func (r Raw) body() []byte {
	if len(r) < 5 {
		return nil
	}
	n := int(int32(binary.LittleEndian.Uint32(r)))
	if n < 5 || n > len(r) || r[n-1] != 0 {
		return nil
	}
	return r[4 : n-1]
}

// All iterates over the elements in their order. It ends early where the bytes stop making sense.
// The keys share the document's memory.
func (r Raw) All() iter.Seq2[string, RawValue] {
	return func(yield func(string, RawValue) bool) {
		b := r.body()
		for len(b) > 0 {
			key, v, rest, err := readElement(b)
			if err != nil || !yield(viewString(key), v) {
				return
			}
			b = rest
		}
	}
}

// Values iterates over the values alone: use it for arrays.
func (r Raw) Values() iter.Seq[RawValue] {
	return func(yield func(RawValue) bool) {
		b := r.body()
		for len(b) > 0 {
			_, v, rest, err := readElement(b)
			if err != nil || !yield(v) {
				return
			}
			b = rest
		}
	}
}

// Lookup returns the value at the path, one key per level; in arrays a key is an index in decimal.
// It returns the zero RawValue if there is none.
func (r Raw) Lookup(path ...string) RawValue {
	v := RawValue{Type: TypeEmbeddedDocument, Value: r}
	for _, key := range path {
		if v.Type != TypeEmbeddedDocument && v.Type != TypeArray {
			return RawValue{}
		}
		v = Raw(v.Value).find(key)
	}
	return v
}

func (r Raw) find(key string) RawValue {
	b := r.body()
	for len(b) > 0 {
		k, v, rest, err := readElement(b)
		if err != nil {
			return RawValue{}
		}
		if string(k) == key {
			return v
		}
		b = rest
	}
	return RawValue{}
}

// IsEmpty reports whether the document has no elements.
func (r Raw) IsEmpty() bool { return len(r.body()) == 0 }

// readElement reads one element of a document's body. Only the element's own frame is checked.
func readElement(b []byte) (key []byte, v RawValue, rest []byte, err error) {
	t := Type(b[0])
	k, _ := cstringLen(b[1:])
	if k < 0 {
		return nil, v, nil, errKeyEnd
	}
	key, b = b[1:1+k], b[k+2:]
	n, err := valueSize(t, b)
	if err != nil {
		return key, v, nil, err
	}
	return key, RawValue{Type: t, Value: b[:n:n]}, b[n:], nil
}

// valueSize returns how many bytes of b the value of type t takes.
func valueSize(t Type, b []byte) (int, error) {
	n := 0
	switch t {
	case TypeUndefined, TypeNull, TypeMinKey, TypeMaxKey:
		return 0, nil
	case TypeBoolean:
		n = 1
	case TypeInt32:
		n = 4
	case TypeDouble, TypeDateTime, TypeTimestamp, TypeInt64:
		n = 8
	case TypeObjectID:
		n = 12
	case TypeDecimal128:
		n = 16
	case TypeString, TypeJavaScript, TypeSymbol, TypeDBPointer:
		if len(b) < 4 {
			return 0, errTruncated
		}
		l := int(int32(binary.LittleEndian.Uint32(b)))
		if l < 1 || l > len(b)-4 {
			return 0, fmt.Errorf("bson: %s length %d, only %d bytes left", t, l, len(b)-4)
		}
		if b[4+l-1] != 0 {
			return 0, fmt.Errorf("bson: %s does not end with a NUL byte", t)
		}
		n = 4 + l
		if t == TypeDBPointer {
			n += 12
		}
	case TypeEmbeddedDocument, TypeArray:
		if len(b) < 5 {
			return 0, errTruncated
		}
		n = int(int32(binary.LittleEndian.Uint32(b)))
		if n < 5 || n > len(b) {
			return 0, fmt.Errorf("bson: %s length %d, only %d bytes left", t, n, len(b))
		}
		if b[n-1] != 0 {
			return 0, fmt.Errorf("bson: %s does not end with a NUL byte", t)
		}
	case TypeCodeWithScope:
		if len(b) < 4 {
			return 0, errTruncated
		}
		n = int(int32(binary.LittleEndian.Uint32(b)))
		if n < 14 || n > len(b) {
			return 0, fmt.Errorf("bson: %s length %d, only %d bytes left", t, n, len(b))
		}
	case TypeBinary:
		if len(b) < 5 {
			return 0, errTruncated
		}
		l := int(int32(binary.LittleEndian.Uint32(b)))
		if l < 0 || l > len(b)-5 {
			return 0, fmt.Errorf("bson: binary length %d, only %d bytes left", l, len(b)-5)
		}
		n = 5 + l
	case TypeRegex:
		pattern, _ := cstringLen(b)
		if pattern >= 0 {
			if options, _ := cstringLen(b[pattern+1:]); options >= 0 {
				return pattern + 1 + options + 1, nil
			}
		}
		return 0, errors.New("bson: regex is not terminated")
	default:
		return 0, fmt.Errorf("bson: no such element type: 0x%02X", byte(t))
	}
	if n > len(b) {
		return 0, errTruncated
	}
	return n, nil
}

// DefaultMaxDepth is how deep documents and arrays may nest; the outermost document is the first
// level.
const DefaultMaxDepth = 200

// Validate checks the whole document: every length and terminator, every type, UTF-8 in keys and
// strings, and nesting no deeper than DefaultMaxDepth. It does not recurse. The error is a
// *DecodeError with the path.
func (r Raw) Validate() error { return r.ValidateDepth(DefaultMaxDepth) }

// ValidateDepth is Validate for documents that nest no deeper than depth levels.
func (r Raw) ValidateDepth(depth int) error {
	doc, rest, err := ReadDocument(r)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%d bytes after the document", len(rest))
	}
	if err == nil && depth < 1 {
		err = errTooDeep
	}
	if err != nil {
		return &DecodeError{BSONType: TypeEmbeddedDocument, Err: err}
	}
	// What is left of the enclosing documents. The first levels need no allocation.
	var first [32][]byte
	stack := first[:0]
	b := doc.body()
	for {
		for len(b) == 0 {
			if len(stack) == 0 {
				return nil
			}
			b, stack = stack[len(stack)-1], stack[:len(stack)-1]
		}
		k, ascii := cstringLen(b[1:])
		if k < 0 {
			return doc.invalid(b, Type(b[0]), errKeyEnd)
		}
		t, v := Type(b[0]), b[k+2:]
		if !ascii && !utf8.Valid(b[1:1+k]) {
			return doc.invalid(b, t, fmt.Errorf("key %w", errUTF8))
		}
		n := int(fixedSizes[t])
		if n == variableSize {
			if n, err = valueSize(t, v); err != nil {
				return doc.invalid(b, t, err)
			}
		} else if n > len(v) {
			return doc.invalid(b, t, errTruncated)
		}
		inner, err := checkValue(t, v[:n])
		if err != nil {
			return doc.invalid(b, t, err)
		}
		if inner == nil {
			b = v[n:]
			continue
		}
		if len(stack)+2 > depth {
			return doc.invalid(b, t, errTooDeep)
		}
		stack = append(stack, v[n:])
		b = inner.body()
	}
}

// checkValue checks what valueSize does not. For values with a document or array in them it returns
// that.
func checkValue(t Type, v []byte) (inner Raw, err error) {
	ok := true
	switch t {
	case TypeString, TypeJavaScript, TypeSymbol:
		ok = validText(v[4 : len(v)-1])
	case TypeDBPointer:
		ok = validText(v[4 : len(v)-13])
	case TypeRegex:
		ok = validText(v)
	case TypeBoolean:
		if v[0] > 1 {
			return nil, errBoolean(v[0])
		}
	case TypeBinary:
		if v[4] == BinaryOld && (len(v) < 9 || int64(int32(binary.LittleEndian.Uint32(v[5:]))) != int64(len(v)-9)) {
			return nil, errOldBinary
		}
	case TypeCodeWithScope:
		code, scope, whole := RawValue{Type: t, Value: v}.CodeWithScope()
		if !whole {
			return nil, errors.New("lengths do not match")
		}
		inner, ok = v[len(v)-len(scope):], utf8.ValidString(code)
	case TypeEmbeddedDocument, TypeArray:
		inner = v
	}
	if !ok {
		return nil, errUTF8
	}
	return inner, nil
}

// invalid returns the error for the element at the start of b, which is a part of r. It finds its
// path by walking down to it. Slices of one array differ in capacity by how far they start from
// each other.
func (r Raw) invalid(b []byte, t Type, reason error) error {
	target := cap(r) - cap(b) // where the element starts
	err := &DecodeError{BSONType: t, Err: reason}
	var path []string
	body := []byte(r[4 : len(r)-1])
	for len(body) > 0 && cap(r)-cap(body) <= target {
		at := cap(r) - cap(body)
		k, _ := cstringLen(body[1:])
		if k < 0 {
			break
		}
		key := strings.ToValidUTF8(string(body[1:1+k]), "\uFFFD")
		if at == target {
			path = append(path, key)
			break
		}
		bt, v := Type(body[0]), body[k+2:]
		n, sizeErr := valueSize(bt, v)
		if sizeErr != nil {
			break
		}
		if end := cap(r) - cap(v) + n; target >= end {
			body = v[n:]
			continue
		}
		// The element lies inside.
		path = append(path, key)
		start := 4
		if bt == TypeCodeWithScope {
			code, _ := stringBytes(v[4:])
			start += 4 + 4 + len(code) + 1
		}
		body = v[start : n-1]
	}
	err.Path = strings.Join(path, ".")
	return err
}

// IsZero reports whether v stands for "no value".
func (v RawValue) IsZero() bool { return v.Type == 0 && v.Value == nil }

// IsNumber reports whether v is a double, an integer or a decimal.
func (v RawValue) IsNumber() bool {
	switch v.Type {
	case TypeDouble, TypeInt32, TypeInt64, TypeDecimal128:
		return true
	}
	return false
}

// Double returns the value of a double. Like every accessor it reports false if v has another type.
func (v RawValue) Double() (float64, bool) {
	if v.Type != TypeDouble || len(v.Value) < 8 {
		return 0, false
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(v.Value)), true
}

// StringBytes returns the bytes of a string, without copying them.
func (v RawValue) StringBytes() ([]byte, bool) {
	if v.Type != TypeString {
		return nil, false
	}
	return stringBytes(v.Value)
}

// StringValue returns a copy of the value of a string.
func (v RawValue) StringValue() (string, bool) {
	b, ok := v.StringBytes()
	return string(b), ok
}

// Symbol returns the value of a symbol.
func (v RawValue) Symbol() (Symbol, bool) {
	if v.Type != TypeSymbol {
		return "", false
	}
	b, ok := stringBytes(v.Value)
	return Symbol(b), ok
}

// JavaScript returns the value of JavaScript code.
func (v RawValue) JavaScript() (JavaScript, bool) {
	if v.Type != TypeJavaScript {
		return "", false
	}
	b, ok := stringBytes(v.Value)
	return JavaScript(b), ok
}

func stringBytes(b []byte) ([]byte, bool) {
	if len(b) < 5 {
		return nil, false
	}
	l := int(int32(binary.LittleEndian.Uint32(b)))
	if l < 1 || l > len(b)-4 {
		return nil, false
	}
	return b[4 : 4+l-1], true
}

// Document returns the value of an embedded document.
func (v RawValue) Document() (Raw, bool) {
	if v.Type != TypeEmbeddedDocument {
		return nil, false
	}
	return Raw(v.Value), true
}

// Array returns the value of an array, whose keys are the indexes in decimal.
func (v RawValue) Array() (Raw, bool) {
	if v.Type != TypeArray {
		return nil, false
	}
	return Raw(v.Value), true
}

// Binary returns the value of a binary, without copying its bytes. For subtype 2 they come without
// the inner length, which must be right.
func (v RawValue) Binary() (Binary, bool) {
	if v.Type != TypeBinary || len(v.Value) < 5 {
		return Binary{}, false
	}
	sub, data := v.Value[4], v.Value[5:]
	if sub == BinaryOld {
		if len(data) < 4 || int64(int32(binary.LittleEndian.Uint32(data))) != int64(len(data)-4) {
			return Binary{}, false
		}
		data = data[4:]
	}
	return Binary{Subtype: sub, Data: data}, true
}

// ObjectID returns the value of an ObjectID.
func (v RawValue) ObjectID() (ObjectID, bool) {
	if v.Type != TypeObjectID || len(v.Value) < 12 {
		return NilObjectID, false
	}
	return ObjectID(v.Value[:12]), true
}

// Boolean returns the value of a boolean, whose byte must be 0 or 1.
func (v RawValue) Boolean() (value, ok bool) {
	if v.Type != TypeBoolean || len(v.Value) < 1 || v.Value[0] > 1 {
		return false, false
	}
	return v.Value[0] != 0, true
}

// DateTime returns the value of a UTC datetime.
func (v RawValue) DateTime() (DateTime, bool) {
	if v.Type != TypeDateTime || len(v.Value) < 8 {
		return 0, false
	}
	return DateTime(binary.LittleEndian.Uint64(v.Value)), true
}

// Regex returns the value of a regular expression.
func (v RawValue) Regex() (Regex, bool) {
	if v.Type != TypeRegex {
		return Regex{}, false
	}
	n, _ := cstringLen(v.Value)
	if n < 0 {
		return Regex{}, false
	}
	options := v.Value[n+1:]
	m, _ := cstringLen(options)
	if m < 0 {
		return Regex{}, false
	}
	return Regex{Pattern: string(v.Value[:n]), Options: string(options[:m])}, true
}

// DBPointer returns the value of a DBPointer.
func (v RawValue) DBPointer() (DBPointer, bool) {
	if v.Type != TypeDBPointer {
		return DBPointer{}, false
	}
	b, ok := stringBytes(v.Value)
	if !ok || len(v.Value) < 4+len(b)+1+12 {
		return DBPointer{}, false
	}
	return DBPointer{DB: string(b), Pointer: ObjectID(v.Value[4+len(b)+1:][:12])}, true
}

// CodeWithScope returns the value of JavaScript code with scope.
func (v RawValue) CodeWithScope() (code string, scope Raw, ok bool) {
	b, scope, ok := v.codeAndScope()
	return string(b), scope, ok
}

// codeAndScope is CodeWithScope without a copy of the code.
func (v RawValue) codeAndScope() (code []byte, scope Raw, ok bool) {
	if v.Type != TypeCodeWithScope || len(v.Value) < 14 {
		return nil, nil, false
	}
	code, ok = stringBytes(v.Value[4:])
	if !ok || v.Value[8+len(code)] != 0 {
		return nil, nil, false
	}
	scope, rest, err := ReadDocument(v.Value[4+4+len(code)+1:])
	if err != nil || len(rest) != 0 {
		return nil, nil, false
	}
	return code, scope, true
}

// Int32 returns the value of a 32-bit integer.
func (v RawValue) Int32() (int32, bool) {
	if v.Type != TypeInt32 || len(v.Value) < 4 {
		return 0, false
	}
	return int32(binary.LittleEndian.Uint32(v.Value)), true
}

// Int64 returns the value of a 64-bit integer.
func (v RawValue) Int64() (int64, bool) {
	if v.Type != TypeInt64 || len(v.Value) < 8 {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(v.Value)), true
}

// AsInt64 returns a number of any type as an int64 if it is a whole one: servers return counts in
// any numeric type.
func (v RawValue) AsInt64() (int64, bool) {
	switch v.Type {
	case TypeInt32:
		n, ok := v.Int32()
		return int64(n), ok
	case TypeInt64:
		return v.Int64()
	case TypeDouble:
		f, ok := v.Double()
		if !ok || f != math.Trunc(f) || f < -(1<<63) || f >= 1<<63 {
			return 0, false
		}
		return int64(f), true
	case TypeDecimal128:
		d, ok := v.Decimal128()
		if !ok {
			return 0, false
		}
		return d.Int64()
	}
	return 0, false
}

// AsBool returns the value of v as a condition on the server: false for no value, null, undefined,
// false and numbers that are zero, else true.
func (v RawValue) AsBool() bool {
	switch v.Type {
	case 0, TypeNull, TypeUndefined:
		return false
	case TypeBoolean:
		b, _ := v.Boolean()
		return b
	case TypeInt32:
		n, _ := v.Int32()
		return n != 0
	case TypeInt64:
		n, _ := v.Int64()
		return n != 0
	case TypeDouble:
		f, _ := v.Double()
		return f != 0
	case TypeDecimal128:
		d, _ := v.Decimal128()
		return d.Sign() != 0 || d.IsNaN()
	}
	return true
}

// Timestamp returns the value of a timestamp.
func (v RawValue) Timestamp() (Timestamp, bool) {
	if v.Type != TypeTimestamp || len(v.Value) < 8 {
		return Timestamp{}, false
	}
	return Timestamp{I: binary.LittleEndian.Uint32(v.Value), T: binary.LittleEndian.Uint32(v.Value[4:])}, true
}

// Decimal128 returns the value of a decimal.
func (v RawValue) Decimal128() (Decimal128, bool) {
	if v.Type != TypeDecimal128 || len(v.Value) < 16 {
		return Decimal128{}, false
	}
	return Decimal128{lo: binary.LittleEndian.Uint64(v.Value), hi: binary.LittleEndian.Uint64(v.Value[8:])}, true
}
