package protobuf

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"allium/bson"
)

// form is how a message of google.protobuf is stored that is more than its fields.
type form interface {
	append(c *codec, dst []byte, m protoreflect.Message, depth int) (bson.Type, []byte, error)
	read(c *codec, v bson.RawValue, m protoreflect.Message, depth int) error
}

type (
	timestampForm struct{}
	durationForm  struct{}
	wrapperForm   struct{}
	structForm    struct{}
	listForm      struct{}
	valueForm     struct{} // a google.protobuf.Value is the one of its fields that is set
	maskForm      struct{}
	anyForm       struct{}
)

// formOf returns the form of a message, or nil: it is stored by its fields.
func formOf(d protoreflect.MessageDescriptor) form {
	if d.FullName().Parent() != "google.protobuf" {
		return nil
	}
	switch d.Name() {
	case "Timestamp":
		return timestampForm{}
	case "Duration":
		return durationForm{}
	case "BoolValue", "Int32Value", "Int64Value", "UInt32Value", "UInt64Value", "FloatValue", "DoubleValue",
		"StringValue", "BytesValue":
		return wrapperForm{}
	case "Struct":
		return structForm{}
	case "ListValue":
		return listForm{}
	case "Value":
		return valueForm{}
	case "FieldMask":
		return maskForm{}
	case "Any":
		return anyForm{}
	}
	return nil
}

// field returns the field of a message of google.protobuf by its number.
func field(m protoreflect.Message, n protoreflect.FieldNumber) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByNumber(n)
}

// secondsAndNanos returns the fields of a Timestamp or a Duration.
func secondsAndNanos(m protoreflect.Message) (seconds, nanos int64) {
	return m.Get(field(m, 1)).Int(), m.Get(field(m, 2)).Int()
}

func setSecondsAndNanos(m protoreflect.Message, seconds, nanos int64) {
	if seconds != 0 {
		m.Set(field(m, 1), protoreflect.ValueOfInt64(seconds))
	}
	if nanos != 0 {
		m.Set(field(m, 2), protoreflect.ValueOfInt32(int32(nanos)))
	}
}

// A Timestamp lies in the years 1 to 9999.
var (
	firstTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	lastTime  = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - 1
)

func (timestampForm) append(_ *codec, dst []byte, m protoreflect.Message, _ int) (bson.Type, []byte, error) {
	seconds, nanos := secondsAndNanos(m)
	if seconds < firstTime || seconds > lastTime || nanos < 0 || nanos >= int64(time.Second) {
		return 0, dst, fmt.Errorf("%d seconds and %d nanoseconds are no Timestamp", seconds, nanos)
	}
	return bson.TypeDateTime, bson.AppendInt64Value(dst, seconds*1000+nanos/int64(time.Millisecond)), nil
}

func (timestampForm) read(_ *codec, v bson.RawValue, m protoreflect.Message, _ int) error {
	var t time.Time
	if date, ok := v.DateTime(); ok {
		t = time.UnixMilli(int64(date))
	} else if text, ok := v.StringValue(); ok {
		var err error
		if t, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return fmt.Errorf("want a date: %w", err)
		}
	} else {
		return wanted("a date", v)
	}
	if t.Unix() < firstTime || t.Unix() > lastTime {
		return fmt.Errorf("the date %v is not in the years 1 to 9999 of a Timestamp", v)
	}
	setSecondsAndNanos(m, t.Unix(), int64(t.Nanosecond()))
	return nil
}

func (durationForm) append(_ *codec, dst []byte, m protoreflect.Message, _ int) (bson.Type, []byte, error) {
	seconds, nanos := secondsAndNanos(m)
	if nanos <= -int64(time.Second) || nanos >= int64(time.Second) || seconds < 0 && nanos > 0 ||
		seconds > 0 && nanos < 0 {
		return 0, dst, fmt.Errorf("%d seconds and %d nanoseconds are no Duration", seconds, nanos)
	}
	const most = math.MaxInt64 / int64(time.Second)
	total := seconds*int64(time.Second) + nanos
	if seconds < -most || seconds > most || seconds > 0 && total < 0 || seconds < 0 && total > 0 {
		return 0, dst, fmt.Errorf("%d seconds are more nanoseconds than 64 bits count", seconds)
	}
	return bson.TypeInt64, bson.AppendInt64Value(dst, total), nil
}

func (durationForm) read(_ *codec, v bson.RawValue, m protoreflect.Message, _ int) error {
	var d time.Duration
	if text, ok := v.StringValue(); ok {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("want a number of nanoseconds: %w", err)
		}
	} else {
		n, err := readInt(v, math.MinInt64, math.MaxInt64)
		if err != nil {
			return err
		}
		d = time.Duration(n)
	}
	setSecondsAndNanos(m, int64(d/time.Second), int64(d%time.Second))
	return nil
}

func (wrapperForm) append(c *codec, dst []byte, m protoreflect.Message, depth int) (bson.Type, []byte, error) {
	return c.appendValue(dst, field(m, 1), m.Get(field(m, 1)), depth)
}

func (wrapperForm) read(c *codec, v bson.RawValue, m protoreflect.Message, depth int) error {
	value, err := c.readValue(v, field(m, 1), m.NewField(field(m, 1)), depth)
	if err == nil {
		m.Set(field(m, 1), value)
	}
	return err
}

func (structForm) append(c *codec, dst []byte, m protoreflect.Message, depth int) (bson.Type, []byte, error) {
	dst, err := c.appendMap(dst, field(m, 1), m.Get(field(m, 1)).Map(), depth)
	return bson.TypeEmbeddedDocument, dst, err
}

func (structForm) read(c *codec, v bson.RawValue, m protoreflect.Message, depth int) error {
	return c.readMap(v, field(m, 1), m.Mutable(field(m, 1)).Map(), depth)
}

func (listForm) append(c *codec, dst []byte, m protoreflect.Message, depth int) (bson.Type, []byte, error) {
	list := m.Get(field(m, 1)).List()
	dst, err := array(dst, list.Len(), func(dst []byte, i int) (bson.Type, []byte, error) {
		return c.appendValue(dst, field(m, 1), list.Get(i), depth+1)
	})
	return bson.TypeArray, dst, err
}

func (listForm) read(c *codec, v bson.RawValue, m protoreflect.Message, depth int) error {
	return c.readList(v, field(m, 1), m.Mutable(field(m, 1)).List(), depth)
}

func (valueForm) append(c *codec, dst []byte, m protoreflect.Message, depth int) (bson.Type, []byte, error) {
	f := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if f == nil {
		return 0, dst, errors.New("a google.protobuf.Value without a value")
	}
	return c.appendValue(dst, f, m.Get(f), depth)
}

func (valueForm) read(c *codec, v bson.RawValue, m protoreflect.Message, depth int) error {
	var name protoreflect.Name
	switch v.Type {
	case bson.TypeNull, bson.TypeUndefined:
		name = "null_value"
	case bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		name = "number_value"
	case bson.TypeString:
		name = "string_value"
	case bson.TypeBoolean:
		name = "bool_value"
	case bson.TypeEmbeddedDocument:
		name = "struct_value"
	case bson.TypeArray:
		name = "list_value"
	default:
		return fmt.Errorf("a google.protobuf.Value has no %v", v.Type)
	}
	f := m.Descriptor().Fields().ByName(name)
	value, err := c.readValue(v, f, m.NewField(f), depth)
	if err == nil {
		m.Set(f, value)
	}
	return err
}

func (maskForm) append(_ *codec, dst []byte, m protoreflect.Message, _ int) (bson.Type, []byte, error) {
	list := m.Get(field(m, 1)).List()
	paths := make([]string, list.Len())
	for i := range paths {
		if paths[i] = list.Get(i).String(); paths[i] == "" || strings.Contains(paths[i], ",") {
			return 0, dst, fmt.Errorf("%q is no path of a FieldMask", paths[i])
		}
	}
	return appendString(dst, strings.Join(paths, ","))
}

func (maskForm) read(_ *codec, v bson.RawValue, m protoreflect.Message, _ int) error {
	text, err := readString(v)
	if err != nil || text == "" {
		return err
	}
	list := m.Mutable(field(m, 1)).List()
	for path := range strings.SplitSeq(text, ",") {
		if path == "" {
			return fmt.Errorf("%q is no FieldMask", text)
		}
		list.Append(protoreflect.ValueOfString(path))
	}
	return nil
}

// The keys of an Any: the type of its message, and the message itself where it is no document.
const typeKey, valueKey = "@type", "value"

func (anyForm) append(c *codec, dst []byte, m protoreflect.Message, depth int) (bson.Type, []byte, error) {
	url, packed := m.Get(field(m, 1)).String(), m.Get(field(m, 2)).Bytes()
	dst, err := document(dst, func(dst []byte) ([]byte, error) {
		if url == "" && len(packed) == 0 {
			return dst, nil
		}
		t, err := c.Resolver.FindMessageByURL(url)
		if err != nil {
			return dst, fmt.Errorf("the type of an Any, %q: %w", url, err)
		}
		held := t.New()
		o := proto.UnmarshalOptions{Resolver: c.Resolver, AllowPartial: c.AllowPartial}
		if err := o.Unmarshal(packed, held.Interface()); err != nil {
			return dst, err
		}
		dst, err = element(dst, typeKey, func(dst []byte) (bson.Type, []byte, error) { return appendString(dst, url) })
		if err != nil {
			return dst, err
		}
		if formOf(held.Descriptor()) == nil {
			if depth+1 >= bson.DefaultMaxDepth {
				return dst, errDepth
			}
			return c.appendFields(dst, held, depth)
		}
		return element(dst, valueKey, func(dst []byte) (bson.Type, []byte, error) {
			return c.appendMessage(dst, held, depth+1)
		})
	})
	return bson.TypeEmbeddedDocument, dst, err
}

func (anyForm) read(c *codec, v bson.RawValue, m protoreflect.Message, depth int) error {
	doc, ok := v.Document()
	if !ok {
		return wanted("a document", v)
	}
	if doc.IsEmpty() {
		return nil
	}
	url, ok := doc.Lookup(typeKey).StringValue()
	if !ok {
		return fmt.Errorf("a google.protobuf.Any without %q", typeKey)
	}
	t, err := c.Resolver.FindMessageByURL(url)
	if err != nil {
		return fmt.Errorf("the type of an Any, %q: %w", url, err)
	}
	held := t.New()
	if formOf(held.Descriptor()) == nil {
		err = c.readFields(doc, held, depth)
	} else if value := doc.Lookup(valueKey); value.IsZero() {
		err = fmt.Errorf("a google.protobuf.Any of %s without %q", held.Descriptor().FullName(), valueKey)
	} else {
		err = in(valueKey, c.readMessage(value, held, depth+1))
	}
	if err != nil {
		return err
	}
	packed, err := (proto.MarshalOptions{Deterministic: true, AllowPartial: c.AllowPartial}).Marshal(held.Interface())
	if err != nil {
		return err
	}
	m.Set(field(m, 1), protoreflect.ValueOfString(url))
	m.Set(field(m, 2), protoreflect.ValueOfBytes(packed))
	return nil
}
