package store

import (
	"encoding/binary"
	"math"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
)

// Collation turns strings into bytes that compare as the strings do under the collation.
type Collation interface {
	AppendKey(dst, s []byte) []byte
}

// Key encodings: bytes.Compare (and so the tree's string order) puts them into the order of
// bson.Compare. Each value starts with the byte of its kind and its encoding is never a prefix of
// another one, so that values can follow each other in compound keys and a descending field is
// simply inverted.
const (
	kindEnd = 0x01 // of a document or array; below every kind
	kindMin = 0x02
)

// keyKind is a type's place in the order of values.
func keyKind(t bson.Type) byte {
	switch t {
	case bson.TypeMinKey:
		return kindMin
	case 0, bson.TypeUndefined:
		return 0x08
	case bson.TypeNull:
		return 0x0c
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		return 0x10
	case bson.TypeString, bson.TypeSymbol:
		return 0x14
	case bson.TypeEmbeddedDocument:
		return 0x18
	case bson.TypeArray:
		return 0x1c
	case bson.TypeBinary:
		return 0x20
	case bson.TypeObjectID:
		return 0x24
	case bson.TypeBoolean:
		return 0x28
	case bson.TypeDateTime:
		return 0x2c
	case bson.TypeTimestamp:
		return 0x30
	case bson.TypeRegex:
		return 0x34
	case bson.TypeDBPointer:
		return 0x38
	case bson.TypeJavaScript:
		return 0x3c
	case bson.TypeCodeWithScope:
		return 0x40
	}
	return 0xf0 // MaxKey
}

// AppendKey appends the encoding of one value. coll may be nil.
func AppendKey(dst []byte, v bson.RawValue, coll Collation, descending bool) []byte {
	at := len(dst)
	dst = appendValueKey(append(dst, keyKind(v.Type)), v, coll)
	if descending {
		for i := at; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

func appendValueKey(dst []byte, v bson.RawValue, coll Collation) []byte {
	switch v.Type {
	case bson.TypeInt32:
		n, _ := v.Int32()
		return append(appendDoubleKey(dst, float64(n)), 0)
	case bson.TypeDouble:
		f, _ := v.Double()
		return append(appendDoubleKey(dst, f), 0)
	case bson.TypeInt64:
		return appendInt64Key(dst, v)
	case bson.TypeDecimal128:
		return appendDecimalKey(dst, v)
	case bson.TypeString, bson.TypeSymbol:
		s := v.Value[4 : len(v.Value)-1]
		if coll != nil {
			at := len(dst)
			dst = append(dst, coll.AppendKey(nil, s)...) // dst can thus be on the stack of a caller
			return escape(dst, at)
		}
		return appendEscaped(dst, s)
	case bson.TypeJavaScript:
		return appendEscaped(dst, v.Value[4:len(v.Value)-1])
	case bson.TypeEmbeddedDocument:
		for k, e := range bson.Raw(v.Value).All() {
			dst = append(dst, keyKind(e.Type))
			dst = append(append(dst, k...), 0)
			dst = appendValueKey(dst, e, coll)
		}
		return append(dst, kindEnd)
	case bson.TypeArray:
		for e := range bson.Raw(v.Value).Values() {
			dst = appendValueKey(append(dst, keyKind(e.Type)), e, coll)
		}
		return append(dst, kindEnd)
	case bson.TypeBinary, bson.TypeDBPointer:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(v.Value)))
		return append(dst, v.Value[4:]...)
	case bson.TypeObjectID, bson.TypeBoolean:
		return append(dst, v.Value...)
	case bson.TypeDateTime:
		d, _ := v.DateTime()
		return binary.BigEndian.AppendUint64(dst, uint64(d)^1<<63)
	case bson.TypeTimestamp:
		ts, _ := v.Timestamp()
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, ts.T), ts.I)
	case bson.TypeRegex:
		return append(dst, v.Value...) // two strings with a NUL after each
	case bson.TypeCodeWithScope:
		code, scope, _ := v.CodeWithScope()
		dst = appendEscaped(dst, []byte(code))
		return appendValueKey(dst, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: scope}, coll)
	}
	return dst
}

// appendEscaped appends a string that may contain NUL bytes and ends with one.
func appendEscaped(dst, s []byte) []byte {
	for _, c := range s {
		dst = append(dst, c)
		if c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 0)
}

// escape is appendEscaped for what was appended from at on.
func escape(dst []byte, at int) []byte {
	for _, c := range dst[at:] {
		if c == 0 {
			return appendEscaped(dst[:at], append([]byte(nil), dst[at:]...))
		}
	}
	return append(dst, 0, 0)
}

// A number starts with the greatest double that is not greater, in eight bytes. What follows is 0
// if that is the number itself, else 1 and the decimal digits of the whole number: enough to tell
// apart the integers and decimals between two neighbouring doubles.

func appendDoubleKey(dst []byte, f float64) []byte {
	if math.IsNaN(f) {
		return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	if f == 0 {
		f = 0 // -0 is 0
	}
	bits := math.Float64bits(f)
	if bits>>63 != 0 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(dst, bits)
}

func appendInt64Key(dst []byte, v bson.RawValue) []byte {
	n, _ := v.Int64()
	if f := float64(n); n > -1<<53 && n < 1<<53 {
		return append(appendDoubleKey(dst, f), 0)
	}
	return appendExactKey(dst, v, float64(n), bson.NewDecimal128FromInt64(n))
}

func appendDecimalKey(dst []byte, v bson.RawValue) []byte {
	d, _ := v.Decimal128()
	switch {
	case d.IsNaN():
		return append(appendDoubleKey(dst, math.NaN()), 0)
	case d.IsInf(1):
		return append(appendDoubleKey(dst, math.Inf(1)), 0)
	case d.IsInf(-1):
		return append(appendDoubleKey(dst, math.Inf(-1)), 0)
	}
	f := d.Float64()
	if math.IsInf(f, 1) {
		f = math.MaxFloat64
	}
	return appendExactKey(dst, v, f, d)
}

// appendExactKey appends a number of which f is the nearest double.
func appendExactKey(dst []byte, v bson.RawValue, f float64, d bson.Decimal128) []byte {
	c := bson.Compare(bsondoc.DoubleValue(f), v)
	for c > 0 {
		f = math.Nextafter(f, math.Inf(-1))
		c = bson.Compare(bsondoc.DoubleValue(f), v)
	}
	dst = appendDoubleKey(dst, f)
	if c == 0 {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	coefficient, exponent, err := d.BigInt()
	if err != nil {
		return dst
	}
	negative := coefficient.Sign() < 0
	digits := coefficient.Abs(coefficient).Append(nil, 10)
	exponent += len(digits)
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	at := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, uint16(exponent+1<<15))
	dst = append(append(dst, digits...), 0)
	if negative {
		for i := at; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}
