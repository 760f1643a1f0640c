package protobuf

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"allium/bson"
)

// wanted is the error of a value of another type.
func wanted(what string, v bson.RawValue) error {
	return fmt.Errorf("want %s, and not %v", what, v.Type)
}

// readMessage sets the fields of an empty message, which lies depth levels deep.
func (c *codec) readMessage(v bson.RawValue, m protoreflect.Message, depth int) error {
	if depth >= bson.DefaultMaxDepth {
		return errDepth
	}
	if form := formOf(m.Descriptor()); form != nil {
		return form.read(c, v, m, depth)
	}
	doc, ok := v.Document()
	if !ok {
		return wanted("a document", v)
	}
	return c.readFields(doc, m, depth)
}

func (c *codec) readFields(doc bson.Raw, m protoreflect.Message, depth int) error {
	n, err := c.namesOf(m.Descriptor())
	if err != nil {
		return err
	}
	for key, v := range doc.All() {
		f, ok := n.fields[key]
		if !ok {
			f, ok = c.extension(key, m.Descriptor())
		}
		if !ok {
			continue
		}
		if err := c.readField(v, f, m, depth); err != nil {
			return in(key, err)
		}
	}
	return nil
}

// extension returns the extension of a message whose key it is.
func (c *codec) extension(key string, of protoreflect.MessageDescriptor) (protoreflect.FieldDescriptor, bool) {
	name, ok := strings.CutPrefix(key, "[")
	if !ok {
		return nil, false
	}
	name, ok = strings.CutSuffix(name, "]")
	if !ok || of.ExtensionRanges().Len() == 0 {
		return nil, false
	}
	t, err := c.Resolver.FindExtensionByName(protoreflect.FullName(name))
	if err != nil || t.TypeDescriptor().ContainingMessage().FullName() != of.FullName() {
		return nil, false
	}
	return t.TypeDescriptor(), true
}

func isNull(v bson.RawValue) bool { return v.Type == bson.TypeNull || v.Type == bson.TypeUndefined }

// readsNull reports whether null is a value of a field, and does not mean that it is not set.
func readsNull(f protoreflect.FieldDescriptor) bool {
	return f.Kind() == protoreflect.EnumKind && f.Enum().FullName() == nullValue ||
		f.Kind() == protoreflect.MessageKind && f.Message().FullName() == "google.protobuf.Value"
}

func (c *codec) readField(v bson.RawValue, f protoreflect.FieldDescriptor, m protoreflect.Message, depth int) error {
	if isNull(v) && (f.IsList() || f.IsMap() || !readsNull(f)) {
		m.Clear(f)
		return nil
	}
	if one := f.ContainingOneof(); one != nil {
		if other := m.WhichOneof(one); other != nil && other != f {
			return fmt.Errorf("only one field of %s may be set, and %s is", one.Name(), other.Name())
		}
	}
	value := m.NewField(f)
	var err error
	switch {
	case f.IsList():
		err = c.readList(v, f, value.List(), depth+1)
	case f.IsMap():
		err = c.readMap(v, f, value.Map(), depth+1)
	default:
		value, err = c.readValue(v, f, value, depth+1)
	}
	if err == nil {
		m.Set(f, value)
	}
	return err
}

func (c *codec) readList(v bson.RawValue, f protoreflect.FieldDescriptor, into protoreflect.List, depth int) error {
	array, ok := v.Array()
	if !ok {
		return wanted("an array", v)
	}
	for v := range array.Values() {
		value, err := c.readValue(v, f, into.NewElement(), depth+1)
		if err != nil {
			return in("["+strconv.Itoa(into.Len())+"]", err)
		}
		into.Append(value)
	}
	return nil
}

func (c *codec) readMap(v bson.RawValue, f protoreflect.FieldDescriptor, into protoreflect.Map, depth int) error {
	doc, ok := v.Document()
	if !ok {
		return wanted("a document", v)
	}
	for name, v := range doc.All() {
		key, err := readKey(name, f.MapKey().Kind())
		if err != nil {
			return err
		}
		value, err := c.readValue(v, f.MapValue(), into.NewValue(), depth+1)
		if err != nil {
			return in(name, err)
		}
		into.Set(key, value)
	}
	return nil
}

// readKey returns the key of a map, which may be a boolean, a number or a string.
func readKey(name string, kind protoreflect.Kind) (protoreflect.MapKey, error) {
	var v any
	var err error
	switch kind {
	case protoreflect.BoolKind:
		if v = name == "true"; name != "true" && name != "false" {
			err = strconv.ErrSyntax
		}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		var n int64
		n, err = strconv.ParseInt(name, 10, 32)
		v = int32(n)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		v, err = strconv.ParseInt(name, 10, 64)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		var n uint64
		n, err = strconv.ParseUint(name, 10, 32)
		v = uint32(n)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		v, err = strconv.ParseUint(name, 10, 64)
	default:
		v = strings.Clone(name) // it shares the document's memory
		if !utf8.ValidString(name) {
			err = errUTF8
		}
	}
	if err != nil {
		if number, ok := errors.AsType[*strconv.NumError](err); ok {
			err = number.Err // the rest of its text is of the function
		}
		return protoreflect.MapKey{}, fmt.Errorf("the key %q is no %v: %w", name, kind, err)
	}
	return protoreflect.ValueOf(v).MapKey(), nil
}

// readValue returns one value of a field, or of a list or map. A message is read into empty.
func (c *codec) readValue(v bson.RawValue, f protoreflect.FieldDescriptor, empty protoreflect.Value, depth int) (
	protoreflect.Value, error) {
	switch kind := f.Kind(); kind {
	case protoreflect.BoolKind:
		b, ok := v.Boolean()
		if !ok {
			return empty, wanted("a boolean", v)
		}
		return protoreflect.ValueOfBool(b), nil
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		n, err := readInt(v, math.MinInt32, math.MaxInt32)
		return protoreflect.ValueOfInt32(int32(n)), err
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		n, err := readInt(v, math.MinInt64, math.MaxInt64)
		return protoreflect.ValueOfInt64(n), err
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		n, err := readInt(v, 0, math.MaxUint32)
		return protoreflect.ValueOfUint32(uint32(n)), err
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		n, err := readUint(v)
		return protoreflect.ValueOfUint64(n), err
	case protoreflect.FloatKind:
		x, err := readFloat(v)
		if err == nil && math.Abs(x) > math.MaxFloat32 && !math.IsInf(x, 0) {
			err = fmt.Errorf("%v is beyond the range of a float", x)
		}
		return protoreflect.ValueOfFloat32(float32(x)), err
	case protoreflect.DoubleKind:
		x, err := readFloat(v)
		return protoreflect.ValueOfFloat64(x), err
	case protoreflect.StringKind:
		s, err := readString(v)
		return protoreflect.ValueOfString(s), err
	case protoreflect.BytesKind:
		b, ok := v.Binary()
		if !ok {
			return empty, wanted("a binary", v)
		}
		return protoreflect.ValueOfBytes(bytes.Clone(b.Data)), nil
	case protoreflect.EnumKind:
		n, err := readEnum(v, f.Enum())
		return protoreflect.ValueOfEnum(n), err
	default: // protoreflect.MessageKind, protoreflect.GroupKind
		return empty, c.readMessage(v, empty.Message(), depth)
	}
}

func readString(v bson.RawValue) (string, error) {
	s, ok := v.StringValue()
	if !ok {
		return "", wanted("a string", v)
	}
	if !utf8.ValidString(s) {
		return "", errUTF8
	}
	return s, nil
}

func readEnum(v bson.RawValue, e protoreflect.EnumDescriptor) (protoreflect.EnumNumber, error) {
	if isNull(v) && e.FullName() == nullValue {
		return 0, nil
	}
	if name, ok := v.StringValue(); ok {
		value := e.Values().ByName(protoreflect.Name(name))
		if value == nil {
			return 0, fmt.Errorf("%s has no %q", e.FullName(), name)
		}
		return value.Number(), nil
	}
	if !v.IsNumber() {
		return 0, wanted("the name of a value of "+string(e.FullName()), v)
	}
	n, err := readInt(v, math.MinInt32, math.MaxInt32)
	number := protoreflect.EnumNumber(n)
	if err == nil && e.IsClosed() && e.Values().ByNumber(number) == nil {
		err = fmt.Errorf("%s has no %d", e.FullName(), number)
	}
	return number, err
}

// readInt returns a whole number of any type.
func readInt(v bson.RawValue, smallest, largest int64) (int64, error) {
	n, ok := v.AsInt64()
	if !ok {
		if _, err := wholeNumber(v); err != nil {
			return 0, err
		}
	}
	if !ok || n < smallest || n > largest {
		return 0, fmt.Errorf("%v is not between %d and %d", v, smallest, largest)
	}
	return n, nil
}

func readUint(v bson.RawValue) (uint64, error) {
	n, err := wholeNumber(v)
	if err == nil && !n.IsUint64() {
		err = fmt.Errorf("%v is not between 0 and %d", v, uint64(math.MaxUint64))
	}
	if err != nil {
		return 0, err
	}
	return n.Uint64(), nil
}

// wholeNumber returns a whole number of any type.
func wholeNumber(v bson.RawValue) (*big.Int, error) {
	if n, ok := v.Int32(); ok {
		return big.NewInt(int64(n)), nil
	}
	if n, ok := v.Int64(); ok {
		return big.NewInt(n), nil
	}
	if x, ok := v.Double(); ok && x == math.Trunc(x) && !math.IsInf(x, 0) {
		n, _ := big.NewFloat(x).Int(nil)
		return n, nil
	}
	if d, ok := v.Decimal128(); ok {
		if n, exponent, err := d.BigInt(); err == nil {
			power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
			if exponent >= 0 {
				return n.Mul(n, power), nil
			}
			if n, rest := n.QuoRem(n, power, new(big.Int)); rest.Sign() == 0 {
				return n, nil
			}
		}
	}
	if v.IsNumber() {
		return nil, fmt.Errorf("want a whole number, and not %v", v)
	}
	return nil, wanted("a number", v)
}

// readFloat returns a number of any type. A whole number that no double is, is an error.
func readFloat(v bson.RawValue) (float64, error) {
	if x, ok := v.Double(); ok {
		return x, nil
	}
	if n, ok := v.Int32(); ok {
		return float64(n), nil
	}
	if n, ok := v.Int64(); ok {
		x := float64(n)
		if exact, _ := big.NewFloat(x).Int64(); exact != n || x >= math.MaxInt64 {
			return 0, fmt.Errorf("%d is no double", n)
		}
		return x, nil
	}
	if d, ok := v.Decimal128(); ok {
		return d.Float64(), nil
	}
	return 0, wanted("a number", v)
}
