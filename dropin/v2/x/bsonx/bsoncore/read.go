package bsoncore

import (
	"bytes"
	"encoding/binary"
	"math"
	"time"

	"allium/bson"
)

// The functions that read return the value at the start of src, what is behind it, and whether
// there was one; if not, all of src is left.

// ReadType reads a type's byte.
func ReadType(src []byte) (Type, []byte, bool) {
	if len(src) < 1 {
		return 0, src, false
	}
	return Type(src[0]), src[1:], true
}

// ReadKey reads a key and its null byte.
func ReadKey(src []byte) (string, []byte, bool) {
	key, rem, ok := ReadKeyBytes(src)
	return string(key), rem, ok
}

// ReadKeyBytes is ReadKey without a copy.
func ReadKeyBytes(src []byte) ([]byte, []byte, bool) {
	n := bytes.IndexByte(src, 0)
	if n < 0 {
		return nil, src, false
	}
	return src[:n], src[n+1:], true
}

// ReadHeader reads an element's type and key.
func ReadHeader(src []byte) (t Type, key string, rem []byte, ok bool) {
	t, rem, ok = ReadType(src)
	if !ok {
		return 0, "", src, false
	}
	if key, rem, ok = ReadKey(rem); !ok {
		return 0, "", src, false
	}
	return t, key, rem, true
}

// ReadHeaderBytes is ReadHeader without a copy: the header is type and key without the null byte.
func ReadHeaderBytes(src []byte) (header []byte, rem []byte, ok bool) {
	if len(src) < 1 {
		return nil, src, false
	}
	key, rem, ok := ReadKeyBytes(src[1:])
	if !ok {
		return nil, src, false
	}
	return src[:1+len(key)+1], rem, true
}

// ReadLength reads a length, and says that there is none if it is negative.
func ReadLength(src []byte) (int32, []byte, bool) {
	l, rem, ok := ReadInt32(src)
	return l, rem, ok && l >= 0
}

// ReserveLength appends room for a length, and returns where it is.
func ReserveLength(dst []byte) (int32, []byte) {
	return int32(len(dst)), append(dst, 0, 0, 0, 0)
}

// UpdateLength writes a length to where ReserveLength has made room.
func UpdateLength(dst []byte, index, length int32) []byte {
	binary.LittleEndian.PutUint32(dst[index:], uint32(length))
	return dst
}

// readValue returns the bytes of the value of type t at the start of src.
func readValue(src []byte, t Type) ([]byte, []byte, bool) {
	n := valueLength(src, t)
	if n < 0 || n > len(src) {
		return nil, src, false
	}
	return src[:n:n], src[n:], true
}

// valueLength returns how long the value of type t at the start of src is by what it says itself,
// -1 if it says nothing that can be.
func valueLength(src []byte, t Type) int {
	switch t {
	case TypeNull, TypeUndefined, TypeMinKey, TypeMaxKey:
		return 0
	case TypeBoolean:
		return 1
	case TypeInt32:
		return 4
	case TypeDouble, TypeDateTime, TypeTimestamp, TypeInt64:
		return 8
	case TypeObjectID:
		return 12
	case TypeDecimal128:
		return 16
	case TypeRegex:
		_, rem, ok := ReadKeyBytes(src)
		if ok {
			_, rem, ok = ReadKeyBytes(rem)
		}
		if !ok {
			return -1
		}
		return len(src) - len(rem)
	}
	l, _, ok := ReadLength(src)
	if !ok {
		return -1
	}
	switch t {
	case TypeString, TypeJavaScript, TypeSymbol:
		return 4 + int(l)
	case TypeBinary:
		return 4 + 1 + int(l)
	case TypeDBPointer:
		return 4 + int(l) + 12
	case TypeEmbeddedDocument, TypeArray, TypeCodeWithScope:
		if l < 4 {
			return -1
		}
		return int(l)
	}
	return -1
}

// ReadValue reads a value of type t.
func ReadValue(src []byte, t Type) (Value, []byte, bool) {
	data, rem, ok := readValue(src, t)
	if !ok {
		return Value{}, src, false
	}
	return Value{Type: t, Data: data}, rem, true
}

// ReadElement reads an element.
func ReadElement(src []byte) (Element, []byte, bool) {
	header, rem, ok := ReadHeaderBytes(src)
	if !ok {
		return nil, src, false
	}
	data, rem, ok := readValue(rem, Type(src[0]))
	if !ok {
		return nil, src, false
	}
	return src[:len(header)+len(data)], rem, true
}

// framed reads a document or an array by its length alone.
func framed(src []byte) ([]byte, []byte, bool) {
	l, _, ok := ReadLength(src)
	if !ok || l < 4 || int(l) > len(src) {
		return nil, src, false
	}
	return src[:l], src[l:], true
}

// ReadDocument reads a document. Its elements are not looked at.
func ReadDocument(src []byte) (doc Document, rem []byte, ok bool) { return framed(src) }

// ReadArray reads an array. Its values are not looked at.
func ReadArray(src []byte) (arr Array, rem []byte, ok bool) { return framed(src) }

// ReadDouble reads a double.
func ReadDouble(src []byte) (float64, []byte, bool) {
	bits, rem, ok := readUint64(src)
	return math.Float64frombits(bits), rem, ok
}

func readUint64(src []byte) (uint64, []byte, bool) {
	if len(src) < 8 {
		return 0, src, false
	}
	return binary.LittleEndian.Uint64(src), src[8:], true
}

func readUint32(src []byte) (uint32, []byte, bool) {
	if len(src) < 4 {
		return 0, src, false
	}
	return binary.LittleEndian.Uint32(src), src[4:], true
}

// ReadString reads a string.
func ReadString(src []byte) (string, []byte, bool) {
	l, rem, ok := ReadLength(src)
	if !ok || l < 1 || int(l) > len(rem) {
		return "", src, false
	}
	return string(rem[:l-1]), rem[l:], true
}

// ReadJavaScript reads JavaScript code.
func ReadJavaScript(src []byte) (js string, rem []byte, ok bool) { return ReadString(src) }

// ReadSymbol reads a symbol.
func ReadSymbol(src []byte) (symbol string, rem []byte, ok bool) { return ReadString(src) }

// ReadBinary reads a binary value, without the length that subtype 2 repeats.
func ReadBinary(src []byte) (subtype byte, bin []byte, rem []byte, ok bool) {
	l, rem, ok := ReadLength(src)
	if !ok || len(rem) < 1 || int(l) > len(rem)-1 {
		return 0, nil, src, false
	}
	subtype, bin, rem = rem[0], rem[1:1+l], rem[1+l:]
	if subtype == bson.BinaryOld {
		inner, data, ok := ReadLength(bin)
		if !ok || int(inner) > len(data) {
			return 0, nil, src, false
		}
		bin = data[:inner]
	}
	return subtype, bin, rem, true
}

// ReadObjectID reads an ObjectID.
func ReadObjectID(src []byte) ([12]byte, []byte, bool) {
	if len(src) < 12 {
		return [12]byte{}, src, false
	}
	return [12]byte(src[:12]), src[12:], true
}

// ReadBoolean reads a boolean.
func ReadBoolean(src []byte) (bool, []byte, bool) {
	if len(src) < 1 {
		return false, src, false
	}
	return src[0] == 1, src[1:], true
}

// ReadDateTime reads a datetime, in milliseconds.
func ReadDateTime(src []byte) (int64, []byte, bool) { return ReadInt64(src) }

// ReadTime reads a datetime.
func ReadTime(src []byte) (time.Time, []byte, bool) {
	ms, rem, ok := ReadDateTime(src)
	if !ok {
		return time.Time{}, src, false
	}
	return time.UnixMilli(ms), rem, true
}

// ReadRegex reads a regular expression.
func ReadRegex(src []byte) (pattern, options string, rem []byte, ok bool) {
	pattern, rem, ok = ReadKey(src)
	if !ok {
		return "", "", src, false
	}
	if options, rem, ok = ReadKey(rem); !ok {
		return "", "", src, false
	}
	return pattern, options, rem, true
}

// ReadDBPointer reads a dbPointer.
func ReadDBPointer(src []byte) (ns string, oid [12]byte, rem []byte, ok bool) {
	ns, rem, ok = ReadString(src)
	if !ok {
		return "", oid, src, false
	}
	if oid, rem, ok = ReadObjectID(rem); !ok {
		return "", oid, src, false
	}
	return ns, oid, rem, true
}

// ReadCodeWithScope reads JavaScript code and the variables that it sees.
func ReadCodeWithScope(src []byte) (code string, scope []byte, rem []byte, ok bool) {
	l, _, ok := ReadLength(src)
	if !ok || l < 4 || int(l) > len(src) {
		return "", nil, src, false
	}
	code, inner, ok := ReadString(src[4:l])
	if !ok {
		return "", nil, src, false
	}
	if scope, inner, ok = framed(inner); !ok || len(inner) > 0 {
		return "", nil, src, false
	}
	return code, scope, src[l:], true
}

func readCodeWithScope(src []byte) (code string, scope Document, rem []byte, ok bool) {
	return ReadCodeWithScope(src)
}

// ReadInt32 reads a 32-bit integer.
func ReadInt32(src []byte) (int32, []byte, bool) {
	n, rem, ok := readUint32(src)
	return int32(n), rem, ok
}

// ReadInt64 reads a 64-bit integer.
func ReadInt64(src []byte) (int64, []byte, bool) {
	n, rem, ok := readUint64(src)
	return int64(n), rem, ok
}

// ReadTimestamp reads a timestamp.
func ReadTimestamp(src []byte) (t, i uint32, rem []byte, ok bool) {
	n, rem, ok := readUint64(src)
	return uint32(n >> 32), uint32(n), rem, ok
}

// ReadDecimal128 reads a decimal's high and low 64 bits.
func ReadDecimal128(src []byte) (high uint64, low uint64, rem []byte, ok bool) {
	if len(src) < 16 {
		return 0, 0, src, false
	}
	return binary.LittleEndian.Uint64(src[8:]), binary.LittleEndian.Uint64(src), src[16:], true
}
