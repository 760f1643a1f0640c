package protobuf

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"allium/bson"
)

var (
	errNUL  = errors.New("a key with a zero byte")
	errUTF8 = errors.New("a text that is not UTF-8")
)

func validKey(key string) error {
	switch {
	case strings.IndexByte(key, 0) >= 0:
		return errNUL
	case !utf8.ValidString(key):
		return errUTF8
	}
	return nil
}

// element appends an element, whose value value appends and whose type it returns.
func element(dst []byte, key string, value func(dst []byte) (bson.Type, []byte, error)) ([]byte, error) {
	if err := validKey(key); err != nil {
		return dst, in(strconv.Quote(key), err)
	}
	at := len(dst)
	t, dst, err := value(bson.AppendHeader(dst, bson.TypeNull, key))
	if err != nil {
		return dst, in(key, err)
	}
	dst[at] = byte(t)
	return dst, nil
}

// document appends a document or an array, whose elements elements appends.
func document(dst []byte, elements func(dst []byte) ([]byte, error)) ([]byte, error) {
	at := len(dst)
	dst, err := elements(append(dst, 0, 0, 0, 0))
	if err != nil {
		return dst, err
	}
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at))
	return dst, nil
}

// array appends an array of n elements.
func array(dst []byte, n int, value func(dst []byte, i int) (bson.Type, []byte, error)) ([]byte, error) {
	return document(dst, func(dst []byte) ([]byte, error) {
		for i := range n {
			at := len(dst)
			t, more, err := value(bson.AppendIndexHeader(dst, bson.TypeNull, i), i)
			if err != nil {
				return dst, in("["+strconv.Itoa(i)+"]", err)
			}
			dst = more
			dst[at] = byte(t)
		}
		return dst, nil
	})
}

// appendMessage appends a message, which lies depth levels deep.
func (c *codec) appendMessage(dst []byte, m protoreflect.Message, depth int) (bson.Type, []byte, error) {
	if depth >= bson.DefaultMaxDepth {
		return 0, dst, errDepth
	}
	if form := formOf(m.Descriptor()); form != nil {
		return form.append(c, dst, m, depth)
	}
	dst, err := document(dst, func(dst []byte) ([]byte, error) { return c.appendFields(dst, m, depth) })
	return bson.TypeEmbeddedDocument, dst, err
}

func (c *codec) appendFields(dst []byte, m protoreflect.Message, depth int) ([]byte, error) {
	n, err := c.namesOf(m.Descriptor())
	if err != nil {
		return dst, err
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) && !(c.DefaultValues && !f.HasPresence()) {
			continue
		}
		if dst, err = c.appendField(dst, n.of[f.Number()], f, m.Get(f), depth); err != nil {
			return dst, err
		}
	}
	// Extensions are none of the message's own fields. Their order is that of their numbers.
	var extensions []protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if f.IsExtension() {
			extensions = append(extensions, f)
		}
		return true
	})
	slices.SortFunc(extensions, func(a, b protoreflect.FieldDescriptor) int {
		return cmp.Compare(a.Number(), b.Number())
	})
	for _, f := range extensions {
		if dst, err = c.appendField(dst, extensionKey(f), f, m.Get(f), depth); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func extensionKey(f protoreflect.FieldDescriptor) string { return "[" + string(f.FullName()) + "]" }

func (c *codec) appendField(dst []byte, key string, f protoreflect.FieldDescriptor, v protoreflect.Value, depth int) (
	[]byte, error) {
	return element(dst, key, func(dst []byte) (bson.Type, []byte, error) {
		switch {
		case f.IsList():
			list := v.List()
			dst, err := array(dst, list.Len(), func(dst []byte, i int) (bson.Type, []byte, error) {
				return c.appendValue(dst, f, list.Get(i), depth+2)
			})
			return bson.TypeArray, dst, err
		case f.IsMap():
			dst, err := c.appendMap(dst, f, v.Map(), depth+1)
			return bson.TypeEmbeddedDocument, dst, err
		}
		return c.appendValue(dst, f, v, depth+1)
	})
}

// appendMap appends a map, by its keys in order: documents are the same if messages are.
func (c *codec) appendMap(dst []byte, f protoreflect.FieldDescriptor, m protoreflect.Map, depth int) ([]byte, error) {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, compareKeys)
	return document(dst, func(dst []byte) (_ []byte, err error) {
		for _, k := range keys {
			dst, err = element(dst, k.String(), func(dst []byte) (bson.Type, []byte, error) {
				return c.appendValue(dst, f.MapValue(), m.Get(k), depth+1)
			})
			if err != nil {
				return dst, err
			}
		}
		return dst, nil
	})
}

// compareKeys orders booleans, numbers and strings.
func compareKeys(a, b protoreflect.MapKey) int {
	switch x := a.Interface().(type) {
	case bool:
		return strings.Compare(a.String(), b.String())
	case int32, int64:
		return cmp.Compare(a.Int(), b.Int())
	case uint32, uint64:
		return cmp.Compare(a.Uint(), b.Uint())
	case string:
		return strings.Compare(x, b.String())
	}
	return 0
}

// appendValue appends one value of a field, or of a list or map.
func (c *codec) appendValue(dst []byte, f protoreflect.FieldDescriptor, v protoreflect.Value, depth int) (
	bson.Type, []byte, error) {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return bson.TypeBoolean, bson.AppendBoolValue(dst, v.Bool()), nil
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return bson.TypeInt32, bson.AppendInt32Value(dst, int32(v.Int())), nil
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return bson.TypeInt64, bson.AppendInt64Value(dst, v.Int()), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return appendUint(dst, v.Uint())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return bson.TypeDouble, bson.AppendDoubleValue(dst, v.Float()), nil
	case protoreflect.StringKind:
		return appendString(dst, v.String())
	case protoreflect.BytesKind:
		return bson.TypeBinary, bson.AppendBinaryValue(dst, 0, v.Bytes()), nil
	case protoreflect.EnumKind:
		return c.appendEnum(dst, f.Enum(), v.Enum())
	default: // protoreflect.MessageKind, protoreflect.GroupKind
		return c.appendMessage(dst, v.Message(), depth)
	}
}

func appendUint(dst []byte, n uint64) (bson.Type, []byte, error) {
	if n <= math.MaxInt64 {
		return bson.TypeInt64, bson.AppendInt64Value(dst, int64(n)), nil
	}
	d, err := bson.NewDecimal128FromBigInt(new(big.Int).SetUint64(n), 0)
	return bson.TypeDecimal128, bson.AppendDecimal128Value(dst, d), err
}

func appendString(dst []byte, s string) (bson.Type, []byte, error) {
	if !utf8.ValidString(s) { // proto2 allows it
		return 0, dst, errUTF8
	}
	return bson.TypeString, bson.AppendStringValue(dst, s), nil
}

const nullValue = "google.protobuf.NullValue"

func (c *codec) appendEnum(dst []byte, e protoreflect.EnumDescriptor, n protoreflect.EnumNumber) (
	bson.Type, []byte, error) {
	if e.FullName() == nullValue {
		return bson.TypeNull, dst, nil
	}
	value := e.Values().ByNumber(n)
	if c.EnumNumbers || value == nil {
		return bson.TypeInt32, bson.AppendInt32Value(dst, int32(n)), nil
	}
	return bson.TypeString, bson.AppendStringValue(dst, string(value.Name())), nil
}
