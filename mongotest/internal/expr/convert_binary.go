package expr

// Conversions of binary values: to and from strings (server 8.0 and later), numbers (8.1), arrays
// (8.3).

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// binaryFormats are the ways of writing bytes as text. Each function reports whether it can.
var binaryFormats = map[string]struct {
	encode func(b bson.Binary) (string, bool)
	decode func(s string) ([]byte, bool)
}{
	"base64": {
		func(b bson.Binary) (string, bool) { return base64.StdEncoding.EncodeToString(b.Data), true },
		func(s string) ([]byte, bool) { return decoded(base64.StdEncoding.Strict().DecodeString(s)) },
	},
	"base64url": {
		func(b bson.Binary) (string, bool) { return base64.RawURLEncoding.EncodeToString(b.Data), true },
		func(s string) ([]byte, bool) {
			return decoded(base64.RawURLEncoding.Strict().DecodeString(strings.TrimRight(s, "=")))
		},
	},
	"hex": {
		func(b bson.Binary) (string, bool) { return strings.ToUpper(hex.EncodeToString(b.Data)), true },
		func(s string) ([]byte, bool) { return decoded(hex.DecodeString(s)) },
	},
	"utf8": {
		func(b bson.Binary) (string, bool) { return string(b.Data), utf8.Valid(b.Data) },
		func(s string) ([]byte, bool) { return []byte(s), true },
	},
	"uuid": {
		func(b bson.Binary) (string, bool) {
			return uuidText(b.Data), b.Subtype == bson.BinaryUUID && len(b.Data) == 16
		},
		func(s string) ([]byte, bool) {
			b, ok := decoded(hex.DecodeString(strings.ReplaceAll(s, "-", "")))
			return b, ok && len(b) == 16 && s[8] == '-' && uuidText(b) == strings.ToLower(s)
		},
	},
}

func decoded(b []byte, err error) ([]byte, bool) { return b, err == nil }

// uuidText writes 16 bytes as a UUID; others as they come.
func uuidText(b []byte) string {
	h := hex.EncodeToString(b)
	if len(b) != 16 {
		return h
	}
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// binaryFormat reads the argument 'format'; "" stands for a missing one.
func (c *convert) binaryFormat(st *State) (string, error) {
	if c.format == nil {
		return "", nil
	}
	v, err := c.format.eval(st)
	if err != nil || nullish(v) {
		return "", err
	}
	if !isString(v) {
		return "", srverr.New(4341114, "$convert requires that 'format' be a string, found: %s with value %s",
			typeName(v), bsontext.Value(v))
	}
	name := text(v)
	if _, ok := binaryFormats[name]; !ok && name != "auto" {
		return "", srverr.New(4341125, "Invalid 'format' argument for $convert: %s", name)
	}
	return name, nil
}

// convertBinary converts from or to a binary value, and strings.
func (c *convert) convertBinary(st *State, v bson.RawValue, to bson.Type, sub bson.RawValue) (bson.RawValue, error) {
	format, err := c.binaryFormat(st)
	if err != nil {
		return missing, err
	}
	if format == "" && (v.Type == bson.TypeString || to == bson.TypeString) {
		return missing, srverr.New(4341115, "Format must be speficied when converting from '%s' to '%s'", typeName(v),
			bsontext.TypeName(to))
	}
	b, isBinary := v.Binary()
	if isBinary && to == bson.TypeString {
		if format == "auto" {
			format = "base64"
			if b.Subtype == bson.BinaryUUID && len(b.Data) == 16 {
				format = "uuid"
			}
		}
		b.Data = v.Value[5:] // of the old subtype with the length that it repeats
		s, ok := binaryFormats[format].encode(b)
		switch {
		case !ok:
			return missing, conversionFailure("BinData does not represent a valid %s value", format)
		case len(s) >= maxString && format == "utf8":
			return missing, srverr.New(16493, "$convert: a string of %d bytes is longer than %d", len(s), maxString)
		case len(s) >= maxString:
			return missing, conversionFailure("Resulting string exceeds maximum size (%d bytes)"+noOnError, maxString)
		}
		return bsondoc.StringValue(s), nil
	}
	subtype, err := binarySubtype(sub)
	if err != nil {
		return missing, err
	}
	if isBinary {
		if b.Subtype != subtype {
			return missing, conversionFailure("Conversions between different BinData subtypes are not supported")
		}
		return v, nil
	}
	if format == "auto" {
		return missing, conversionFailure("Unsupported 'format' argument for $convert: auto")
	}
	if (format == "uuid") != (subtype == bson.BinaryUUID) {
		return missing, conversionFailure("Only the UUID subtype (4) is allowed with the UUID format")
	}
	data, ok := binaryFormats[format].decode(text(v))
	if !ok {
		return missing, conversionFailure("Input string '%s' is not a valid %s value", text(v), format)
	}
	return binaryValue(subtype, data), nil
}

// fits refuses a string that no value can hold.
func fits(v bson.RawValue) error {
	if v.Type == bson.TypeString && len(v.Value)-5 >= maxString {
		return srverr.New(16493, "Tried to create string longer than 16MB")
	}
	return nil
}

// maxString is the length that a string may not have.
const maxString = 16 << 20

func binaryValue(subtype byte, data []byte) bson.RawValue {
	return bson.RawValue{Type: bson.TypeBinary, Value: bson.AppendBinaryValue(nil, subtype, data)}
}

// splitTarget takes {type, subtype} as the argument 'to' apart (server 8.0 and later).
func splitTarget(to bson.RawValue) (kind, subtype bson.RawValue, err error) {
	doc := bson.Raw(to.Value)
	if kind = doc.Lookup("type"); kind.Type == 0 {
		return kind, missing, srverr.New(srverr.FailedToParse, "Missing 'type' parameter to $convert.to")
	}
	return kind, doc.Lookup("subtype"), nil
}

// binarySubtype reads to.subtype, which is 0 if it is not there.
func binarySubtype(v bson.RawValue) (byte, error) {
	switch {
	case v.Type == 0:
		return 0, nil
	case !v.IsNumber():
		return 0, srverr.New(4341108, "$convert's 'subtype' argument must be a number, but is %s", typeName(v))
	case !integral(v):
		return 0, srverr.New(4341106, "In $convert, numeric 'subtype' argument is not an integer")
	}
	n := toLong(v)
	if n < 0 || n > 255 || n > int64(bson.BinaryVector) && n < 128 {
		return 0, srverr.New(4341107, "In $convert, numeric value for 'subtype' does not correspond to a BinData type: %s",
			bsontext.Value(v))
	}
	return byte(n), nil
}

// bytesInOrder reads the argument 'byteOrder'.
func (c *convert) bytesInOrder(st *State) (interface {
	binary.ByteOrder
	binary.AppendByteOrder
}, error) {
	if c.byteOrder == nil {
		return binary.LittleEndian, nil
	}
	v, err := c.byteOrder.eval(st)
	if err != nil || nullish(v) {
		return binary.LittleEndian, err
	}
	if !isString(v) {
		return nil, srverr.New(9130001, "$convert requires that 'byteOrder' be a string, found: %s with value %s",
			typeName(v), bsontext.Value(v))
	}
	switch text(v) {
	case "little":
		return binary.LittleEndian, nil
	case "big":
		return binary.BigEndian, nil
	}
	return nil, srverr.New(9130002, "Invalid 'byteOrder' argument for $convert: %s", text(v))
}

// convertBytes converts between a number and the bytes that it has.
func (c *convert) convertBytes(st *State, v bson.RawValue, to bson.Type, sub bson.RawValue) (bson.RawValue, error) {
	order, err := c.bytesInOrder(st)
	if err != nil {
		return missing, err
	}
	unsupported := conversionFailure("Unsupported conversion from %s to %s"+noOnError, typeName(v),
		bsontext.TypeName(to))
	if to == bson.TypeBinary {
		subtype, err := binarySubtype(sub)
		if err != nil {
			return missing, err
		}
		switch v.Type {
		case bson.TypeInt32:
			return binaryValue(subtype, order.AppendUint32(nil, uint32(toLong(v)))), nil
		case bson.TypeInt64:
			return binaryValue(subtype, order.AppendUint64(nil, uint64(toLong(v)))), nil
		case bson.TypeDouble:
			return binaryValue(subtype, order.AppendUint64(nil, math.Float64bits(toDouble(v)))), nil
		}
		return missing, unsupported
	}
	data := v.Value[5:] // with the second length that those of subtype 2 have
	var n int64
	switch size := len(data); {
	case to == bson.TypeDecimal128:
		return missing, unsupported
	case size == 4 && to == bson.TypeDouble:
		return bsondoc.DoubleValue(float64(math.Float32frombits(order.Uint32(data)))), nil
	case size == 8 && to == bson.TypeDouble:
		return bsondoc.DoubleValue(math.Float64frombits(order.Uint64(data))), nil
	case size == 1 && to != bson.TypeDouble:
		n = int64(int8(data[0]))
	case size == 2 && to != bson.TypeDouble:
		n = int64(int16(order.Uint16(data)))
	case size == 4:
		n = int64(int32(order.Uint32(data)))
	case size == 8 && to == bson.TypeInt64:
		n = int64(order.Uint64(data))
	default:
		return missing, conversionFailure("Failed to convert '%s' to %s"+noOnError+" because of invalid length: %d",
			bsontext.Value(v), bsontext.TypeName(to), size)
	}
	if to == bson.TypeInt32 {
		return bsondoc.Int32Value(int32(n)), nil
	}
	return bsondoc.Int64Value(n), nil
}

// convertVector converts between a vector and the array of its elements: booleans are packed bits,
// integers of a byte INT8, doubles FLOAT32.
func convertVector(v, sub bson.RawValue) (bson.RawValue, error) {
	if v.Type == bson.TypeBinary {
		b, _ := v.Binary()
		x, err := b.Vector()
		if err != nil {
			return missing, conversionFailure("Failed to convert a BinData to an array"+noOnError+": %v", err)
		}
		at, dst := bson.BeginDocument(nil)
		for i := range x.Len() {
			switch key, packed := strconv.Itoa(i), x.Packed(); x.Type() {
			case bson.VectorPackedBit:
				dst = bson.AppendBool(dst, key, packed[i/8]&(0x80>>(i%8)) != 0)
			case bson.VectorInt8:
				dst = bson.AppendInt32(dst, key, int32(int8(packed[i])))
			case bson.VectorFloat32:
				f := math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))
				dst = bson.AppendDouble(dst, key, float64(f))
			}
		}
		return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, at)}, nil
	}
	subtype, err := binarySubtype(sub)
	if err != nil {
		return missing, err
	}
	if sub.Type != 0 && subtype != bson.BinaryVector {
		return missing, conversionFailure("Only the vector subtype (9) is allowed for arrays" + noOnError)
	}
	var bits []bool
	var small []int8
	var floats []float32
	var kind bson.Type
	for key, item := range bson.Raw(v.Value).All() {
		if kind == 0 {
			kind = item.Type
		}
		n := toLong(item)
		switch {
		case item.Type != kind:
			return missing, conversionFailure("An array of values of several types is no vector" + noOnError)
		case kind == bson.TypeBoolean:
			bits = append(bits, item.AsBool())
		case kind == bson.TypeDouble:
			floats = append(floats, float32(toDouble(item)))
		case (kind == bson.TypeInt32 || kind == bson.TypeInt64) && n == int64(int8(n)):
			small = append(small, int8(n))
		default:
			return missing, conversionFailure("No vector can have the element %s: %s"+noOnError, key,
				bsontext.Value(item))
		}
	}
	x := bson.NewBitVector(bits)
	switch kind {
	case bson.TypeDouble:
		x = bson.NewFloat32Vector(floats)
	case bson.TypeInt32, bson.TypeInt64:
		x = bson.NewInt8Vector(small)
	}
	data := append([]byte{byte(x.Type()), byte(x.Padding())}, x.Packed()...)
	return binaryValue(bson.BinaryVector, data), nil
}
