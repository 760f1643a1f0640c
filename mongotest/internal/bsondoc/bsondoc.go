// Package bsondoc builds BSON documents and values for replies.
package bsondoc

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"allium/bson"
)

// Builder builds a document in B.
type Builder struct{ B []byte }

// Str appends a string.
func (d *Builder) Str(k, v string) *Builder {
	d.B = bson.AppendString(d.B, k, v)
	return d
}

// Doc appends a document.
func (d *Builder) Doc(k string, v bson.Raw) *Builder {
	d.B = bson.AppendDocument(d.B, k, v)
	return d
}

// Flag appends a boolean.
func (d *Builder) Flag(k string, v bool) *Builder {
	d.B = bson.AppendBool(d.B, k, v)
	return d
}

// Value appends a value that is encoded already.
func (d *Builder) Value(k string, t bson.Type, v []byte) *Builder {
	d.B = bson.AppendRawValue(d.B, k, bson.RawValue{Type: t, Value: v})
	return d
}

// Append appends elements, given as names and values in turn. A value has the type of package bson
// that it is to have, or is a string, a boolean, an int32, an int64, a float64, a list of strings,
// or nil for null.
func Append(dst []byte, elements ...any) []byte {
	for i := 0; i < len(elements); i += 2 {
		key := elements[i].(string)
		switch v := elements[i+1].(type) {
		case nil:
			dst = bson.AppendNull(dst, key)
		case string:
			dst = bson.AppendString(dst, key, v)
		case bool:
			dst = bson.AppendBool(dst, key, v)
		case int32:
			dst = bson.AppendInt32(dst, key, v)
		case int64:
			dst = bson.AppendInt64(dst, key, v)
		case float64:
			dst = bson.AppendDouble(dst, key, v)
		case bson.Raw:
			dst = bson.AppendDocument(dst, key, v)
		case bson.RawValue:
			dst = bson.AppendRawValue(dst, key, v)
		case bson.DateTime:
			dst = bson.AppendDateTime(dst, key, v)
		case bson.Timestamp:
			dst = bson.AppendTimestamp(dst, key, v)
		case bson.ObjectID:
			dst = bson.AppendObjectID(dst, key, v)
		case []string:
			dst = AppendStrings(dst, key, v)
		default:
			panic(fmt.Sprintf("bsondoc: element %s is a %T", key, v))
		}
	}
	return dst
}

// Of returns the document of the elements, given as Append has them.
func Of(elements ...any) bson.Raw {
	at, dst := bson.BeginDocument(nil)
	return bson.EndDocument(Append(dst, elements...), at)
}

// Build returns the document that f describes.
func Build(f func(d *Builder)) bson.Raw {
	at, b := bson.BeginDocument(nil)
	d := Builder{b}
	f(&d)
	return bson.EndDocument(d.B, at)
}

// Copy returns a copy of a document, nil for nil.
func Copy(b bson.Raw) bson.Raw {
	if b == nil {
		return nil
	}
	return append(bson.Raw(nil), b...)
}

// CopyValue returns the value in memory of its own: what outlives its request must not hold on to
// the rest of the message.
func CopyValue(v bson.RawValue) bson.RawValue {
	return bson.RawValue{Type: v.Type, Value: bytes.Clone(v.Value)}
}

// OrEmpty returns the document, or an empty one in place of nil.
func OrEmpty(doc bson.Raw) bson.Raw {
	if doc == nil {
		return bson.Raw("\x05\x00\x00\x00\x00")
	}
	return doc
}

// FirstElement returns the first element of a document, zero values if it is empty.
func FirstElement(doc bson.Raw) (string, bson.RawValue) {
	for k, v := range doc.All() {
		return k, v
	}
	return "", bson.RawValue{}
}

// MustString returns a string, empty for a value of another type.
func MustString(v bson.RawValue) string {
	s, _ := v.StringValue()
	return s
}

// AppendShortest appends a number as an int32 if it is small, as the server shows sizes.
func AppendShortest(dst []byte, key string, n int64) []byte {
	if n > -1<<31 && n < 1<<31 {
		return bson.AppendInt32(dst, key, int32(n))
	}
	return bson.AppendInt64(dst, key, n)
}

// AppendStrings appends an array of strings.
func AppendStrings(dst []byte, key string, list []string) []byte {
	at, dst := bson.BeginArrayElement(dst, key)
	for i, s := range list {
		dst = bson.AppendStringValue(bson.AppendIndexHeader(dst, bson.TypeString, i), s)
	}
	return bson.EndDocument(dst, at)
}

// SortedKeys returns the keys of a map in their order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Int64Value returns an int64.
func Int64Value(n int64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, n)}
}

// DoubleValue returns a double.
func DoubleValue(f float64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, f)}
}

// BoolValue returns a boolean.
func BoolValue(b bool) bson.RawValue {
	return bson.RawValue{Type: bson.TypeBoolean, Value: bson.AppendBoolValue(nil, b)}
}

// StringValue returns a string.
func StringValue(s string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, s)}
}

// UUIDString returns a UUID as text.
func UUIDString(id [16]byte) string {
	s := hex.EncodeToString(id[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// Base64String returns bytes in standard Base64.
func Base64String(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// Itoa returns a number in decimal.
func Itoa(n int32) string { return strconv.Itoa(int(n)) }

// AppendDocuments appends an array of documents.
func AppendDocuments(dst []byte, key string, list [][]byte) []byte {
	at, dst := bson.BeginArrayElement(dst, key)
	for i, doc := range list {
		dst = append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, i), doc...)
	}
	return bson.EndDocument(dst, at)
}

// Int32Value returns an int32.
func Int32Value(n int32) bson.RawValue {
	return bson.RawValue{Type: bson.TypeInt32, Value: binary.LittleEndian.AppendUint32(nil, uint32(n))}
}

// Single returns a document of one element.
func Single(key string, v bson.RawValue) bson.Raw {
	at, dst := bson.BeginDocument(make([]byte, 0, len(v.Value)+len(key)+7))
	return bson.EndDocument(bson.AppendRawValue(dst, key, v), at)
}

// Without returns a document that has all fields of another one but one.
func Without(doc bson.Raw, field string) bson.Raw {
	return Build(func(d *Builder) {
		for k, v := range doc.All() {
			if k != field {
				d.B = bson.AppendRawValue(d.B, k, v)
			}
		}
	})
}

// DocumentValue returns a document as a value.
func DocumentValue(doc bson.Raw) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
}

// ArrayValue returns an array of the items.
func ArrayValue(items ...bson.RawValue) bson.RawValue {
	start, dst := bson.BeginDocument(nil)
	for i, v := range items {
		dst = append(bson.AppendIndexHeader(dst, v.Type, i), v.Value...)
	}
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(dst, start)}
}

// Items returns the items of an array, or the values of a document.
func Items(v bson.RawValue) []bson.RawValue {
	var list []bson.RawValue
	for e := range bson.Raw(v.Value).Values() {
		list = append(list, e)
	}
	return list
}

// DateValue returns a date, given in milliseconds.
func DateValue(ms int64) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDateTime, Value: bson.AppendInt64Value(nil, ms)}
}

// TimestampValue returns a timestamp.
func TimestampValue(ts bson.Timestamp) bson.RawValue {
	return bson.RawValue{Type: bson.TypeTimestamp, Value: bson.AppendTimestampValue(nil, ts)}
}

// SetPath returns a copy of doc with the value at a path of documents; what stands in its way is
// replaced, arrays included. A missing value removes the field.
func SetPath(doc bson.Raw, path []string, v bson.RawValue) bson.Raw {
	start, dst := bson.BeginDocument(make([]byte, 0, len(doc)+len(v.Value)+32))
	done := false
	for key, old := range doc.All() {
		if key != path[0] || done {
			dst = bson.AppendRawValue(dst, key, old)
			continue
		}
		done = true
		dst = appendPath(dst, path, old, v)
	}
	if !done {
		dst = appendPath(dst, path, bson.RawValue{}, v)
	}
	return bson.EndDocument(dst, start)
}

func appendPath(dst []byte, path []string, old, v bson.RawValue) []byte {
	if len(path) > 1 {
		sub, ok := old.Document()
		if !ok {
			if v.Type == 0 {
				if old.Type == 0 {
					return dst
				}
				return bson.AppendRawValue(dst, path[0], old)
			}
			sub = OrEmpty(nil)
		}
		return bson.AppendDocument(dst, path[0], SetPath(sub, path[1:], v))
	}
	if v.Type == 0 {
		return dst
	}
	return bson.AppendRawValue(dst, path[0], v)
}
