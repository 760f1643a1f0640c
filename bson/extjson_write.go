package bson

// The Extended JSON writer: it turns encoded BSON straight into text.

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// extJSONWriter appends Extended JSON. It refuses what Raw.Validate refuses, so that no hostile
// document becomes malformed text.
type extJSONWriter struct {
	canonical bool
	levels    int // how deep documents and arrays may nest
}

var errNotUTF8 = errors.New("bson: string is not valid UTF-8")

// document appends a document that lies in depth documents and arrays.
func (w extJSONWriter) document(dst []byte, doc Raw, depth int) ([]byte, error) {
	body, err := w.open(doc, &depth)
	if err != nil {
		return dst, err
	}
	dst = append(dst, '{')
	for first := true; len(body) > 0; first = false {
		key, v, rest, err := readElement(body)
		if err != nil {
			return dst, err
		}
		body = rest
		if !first {
			dst = append(dst, ',')
		}
		if dst, err = appendQuoted(dst, key); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = w.value(dst, v, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (w extJSONWriter) array(dst []byte, array Raw, depth int) ([]byte, error) {
	body, err := w.open(array, &depth)
	if err != nil {
		return dst, err
	}
	dst = append(dst, '[')
	for first := true; len(body) > 0; first = false {
		key, v, rest, err := readElement(body)
		if err != nil {
			return dst, err
		}
		if !utf8.Valid(key) {
			return dst, errNotUTF8
		}
		body = rest
		if !first {
			dst = append(dst, ',')
		}
		if dst, err = w.value(dst, v, depth); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// open checks the frame of a document and goes one level down.
func (w extJSONWriter) open(doc Raw, depth *int) (body []byte, err error) {
	doc, rest, err := ReadDocument(doc)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("bson: %d bytes after the document", len(rest))
	}
	if *depth++; *depth > w.levels {
		return nil, fmt.Errorf("bson: documents nest deeper than %d levels", w.levels)
	}
	return doc.body(), nil
}

// value appends a value whose frame readElement has checked.
func (w extJSONWriter) value(dst []byte, v RawValue, depth int) ([]byte, error) {
	var err error
	switch v.Type {
	case TypeString:
		return appendQuotedValue(dst, v.Value)
	case TypeInt32:
		n, _ := v.Int32()
		if w.canonical {
			dst = append(dst, `{"$numberInt":"`...)
			return append(strconv.AppendInt(dst, int64(n), 10), `"}`...), nil
		}
		return strconv.AppendInt(dst, int64(n), 10), nil
	case TypeInt64:
		n, _ := v.Int64()
		if w.canonical {
			dst = append(dst, `{"$numberLong":"`...)
			return append(strconv.AppendInt(dst, n, 10), `"}`...), nil
		}
		return strconv.AppendInt(dst, n, 10), nil
	case TypeDouble:
		f, _ := v.Double()
		return w.double(dst, f), nil
	case TypeEmbeddedDocument:
		return w.document(dst, v.Value, depth)
	case TypeArray:
		return w.array(dst, v.Value, depth)
	case TypeObjectID:
		dst = append(dst, `{"$oid":"`...)
		return append(hex.AppendEncode(dst, v.Value), `"}`...), nil
	case TypeBoolean:
		switch v.Value[0] {
		case 0:
			return append(dst, "false"...), nil
		case 1:
			return append(dst, "true"...), nil
		}
		return dst, fmt.Errorf("bson: boolean is 0x%02X, want 0 or 1", v.Value[0])
	case TypeDateTime:
		d, _ := v.DateTime()
		return w.dateTime(dst, d), nil
	case TypeNull:
		return append(dst, "null"...), nil
	case TypeBinary:
		return w.binary(dst, v)
	case TypeDecimal128:
		d, _ := v.Decimal128()
		return append(d.append(append(dst, `{"$numberDecimal":"`...)), `"}`...), nil
	case TypeTimestamp:
		ts, _ := v.Timestamp()
		dst = strconv.AppendUint(append(dst, `{"$timestamp":{"t":`...), uint64(ts.T), 10)
		dst = strconv.AppendUint(append(dst, `,"i":`...), uint64(ts.I), 10)
		return append(dst, "}}"...), nil
	case TypeRegex:
		return w.regex(dst, v)
	case TypeJavaScript:
		if dst, err = appendQuotedValue(append(dst, `{"$code":`...), v.Value); err != nil {
			return dst, err
		}
		return append(dst, '}'), nil
	case TypeCodeWithScope:
		return w.codeWithScope(dst, v, depth)
	case TypeSymbol:
		if dst, err = appendQuotedValue(append(dst, `{"$symbol":`...), v.Value); err != nil {
			return dst, err
		}
		return append(dst, '}'), nil
	case TypeDBPointer:
		if dst, err = appendQuotedValue(append(dst, `{"$dbPointer":{"$ref":`...),
			v.Value[:len(v.Value)-12]); err != nil {
			return dst, err
		}
		dst = append(dst, `,"$id":{"$oid":"`...)
		return append(hex.AppendEncode(dst, v.Value[len(v.Value)-12:]), `"}}}`...), nil
	case TypeMinKey:
		return append(dst, `{"$minKey":1}`...), nil
	case TypeMaxKey:
		return append(dst, `{"$maxKey":1}`...), nil
	case TypeUndefined:
		return append(dst, `{"$undefined":true}`...), nil
	}
	return dst, fmt.Errorf("bson: no such element type: 0x%02X", byte(v.Type))
}

func (w extJSONWriter) double(dst []byte, f float64) []byte {
	finite := !math.IsNaN(f) && !math.IsInf(f, 0)
	if finite && !w.canonical {
		return appendDouble(dst, f)
	}
	dst = append(dst, `{"$numberDouble":"`...)
	switch {
	case finite:
		dst = appendDouble(dst, f)
	case f > 0:
		dst = append(dst, "Infinity"...)
	case f < 0:
		dst = append(dst, "-Infinity"...)
	default:
		dst = append(dst, "NaN"...)
	}
	return append(dst, `"}`...)
}

func (w extJSONWriter) dateTime(dst []byte, d DateTime) []byte {
	if !w.canonical && d >= 0 && d <= endOfYear9999 {
		dst = d.appendRFC3339(append(dst, `{"$date":"`...))
		return append(dst, `"}`...)
	}
	dst = append(dst, `{"$date":{"$numberLong":"`...)
	return append(strconv.AppendInt(dst, int64(d), 10), `"}}`...)
}

func (w extJSONWriter) binary(dst []byte, v RawValue) ([]byte, error) {
	data, subtype := v.Value[5:], v.Value[4]
	if subtype == BinaryOld {
		if len(data) < 4 || int(int32(binary.LittleEndian.Uint32(data))) != len(data)-4 {
			return dst, errors.New("bson: old binary: inner length does not match")
		}
		data = data[4:]
	}
	const digits = "0123456789abcdef"
	dst = append(dst, `{"$binary":{"base64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	dst = append(dst, `","subType":"`...)
	return append(dst, digits[subtype>>4], digits[subtype&15], '"', '}', '}'), nil
}

func (w extJSONWriter) regex(dst []byte, v RawValue) ([]byte, error) {
	nul := bytes.IndexByte(v.Value, 0)
	dst, err := appendQuoted(append(dst, `{"$regularExpression":{"pattern":`...), v.Value[:nul])
	if err != nil {
		return dst, err
	}
	options := v.Value[nul+1 : len(v.Value)-1]
	if !slices.IsSorted(options) {
		options = []byte(sortOptions(string(options)))
	}
	dst, err = appendQuoted(append(dst, `,"options":`...), options)
	return append(dst, "}}"...), err
}

func (w extJSONWriter) codeWithScope(dst []byte, v RawValue, depth int) ([]byte, error) {
	code, scope, ok := v.codeAndScope()
	if !ok {
		return dst, errors.New("bson: malformed code with scope")
	}
	dst, err := appendQuoted(append(dst, `{"$code":`...), code)
	if err != nil {
		return dst, err
	}
	if dst, err = w.document(append(dst, `,"$scope":`...), scope, depth); err != nil {
		return dst, err
	}
	return append(dst, '}'), nil
}

// appendQuotedValue appends the value of a string: its length, its bytes, a NUL.
func appendQuotedValue(dst, value []byte) ([]byte, error) {
	return appendQuoted(dst, value[4:len(value)-1])
}

// escaped tells for each byte what follows its backslash in JSON: 'u' for \u00XX, and 0 if it
// stands for itself.
var escaped = func() (t [256]byte) {
	for c := range 0x20 {
		t[c] = 'u'
	}
	t['\b'], t['\f'], t['\n'], t['\r'], t['\t'] = 'b', 'f', 'n', 'r', 't'
	t['"'], t['\\'] = '"', '\\'
	return t
}()

// appendQuoted appends text as a JSON string.
func appendQuoted(dst, text []byte) ([]byte, error) {
	dst = append(dst, '"')
	allASCII := true
	for i := 0; ; i++ {
		end, ascii := plainRun(text, i)
		allASCII = allASCII && ascii
		dst = append(dst, text[i:end]...)
		if end == len(text) {
			break
		}
		c := text[end]
		i = end
		dst = append(dst, '\\', escaped[c])
		if escaped[c] == 'u' {
			const digits = "0123456789abcdef"
			dst = append(dst, '0', '0', digits[c>>4], digits[c&15])
		}
	}
	if !allASCII && !utf8.Valid(text) {
		return dst, errNotUTF8
	}
	return append(dst, '"'), nil
}

// appendDouble appends f as Extended JSON writes doubles: the shortest digits that give f again,
// always with a point, and with an exponent for what is large or small. f must be finite.
func appendDouble(dst []byte, f float64) []byte {
	a := math.Abs(f)
	if a < 1e15 && a == math.Trunc(a) {
		if math.Signbit(f) {
			dst = append(dst, '-')
		}
		return append(strconv.AppendUint(dst, uint64(a), 10), '.', '0')
	}
	if a >= 1e-5 && a < 1e15 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'E', -1, 64)
	for i := start; i < len(dst); i++ {
		switch dst[i] {
		case '.':
			return dst
		case 'E':
			dst = append(dst, 0, 0)
			copy(dst[i+2:], dst[i:])
			dst[i], dst[i+1] = '.', '0'
			return dst
		}
	}
	return dst
}
