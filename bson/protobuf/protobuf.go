// Package protobuf has a codec for messages of protocol buffers. It stores them as documents that
// servers can query, sort and compute with:
//
//	set, err := bson.NewCodecs(protobuf.Messages(protobuf.Options{}))
//	client, err := allium.Open(uri, allium.ClientOptions{BSON: &bson.Options{Codecs: set}})
//
// The form is that of ProtoJSON, protobuf's own mapping to JSON, with BSON's types where it has
// better ones:
//
//	protobuf                                BSON
//	message, group                          document
//	repeated field                          array
//	map                                     document, by the keys in order
//	int32, sint32, sfixed32                 32-bit integer
//	int64, sint64, sfixed64, uint32         64-bit integer
//	uint64, fixed64                         64-bit integer, or Decimal128 for what is beyond
//	float, double                           double
//	bytes                                   binary
//	enum                                    string, the value's name; a number if it has none
//	google.protobuf.Timestamp               date: milliseconds, what is finer is lost
//	google.protobuf.Duration                64-bit integer: nanoseconds, as for time.Duration
//	google.protobuf.DoubleValue etc.        the value itself
//	google.protobuf.Struct                  document
//	google.protobuf.ListValue               array
//	google.protobuf.Value                   null, boolean, double, string, document or array
//	google.protobuf.FieldMask               string, the paths with commas between
//	google.protobuf.Any                     document of the message, with its type as "@type"
//	extension                               a field with the name "[full.name]"
//
// Fields that are not set are left out. Fields that a document has and its message has not, such as
// _id, are passed over, and so are fields of a message that its program does not know: they are
// lost when it is stored.
//
// The package is a module of its own, so that only those depend on protobuf who import it.
package protobuf

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"allium/bson"
)

// Options say how messages are stored. The zero value is ready to use.
type Options struct {
	// Name returns the key of a field. The default is its JSON name, customerId for customer_id.
	// Fields are read by this key alone. Name may be called by several goroutines at once, and is
	// asked about once for each field.
	//
	// A message becomes the document of a collection most easily if one of its fields is the _id:
	//
	//	Name: func(f protoreflect.FieldDescriptor) string {
	//		if f.Name() == "id" {
	//			return "_id"
	//		}
	//		return f.JSONName()
	//	}
	Name func(f protoreflect.FieldDescriptor) string

	// DefaultValues also stores zero values of fields without presence: numbers, strings, booleans
	// and enums of proto3 without "optional", and empty lists and maps. By default they are left
	// out, and a filter {qty: 0} does not find them.
	DefaultValues bool

	// EnumNumbers stores enums as their numbers. By default, their names are stored. Both are read.
	EnumNumbers bool

	// AllowPartial allows messages of proto2 whose required fields are not set. By default they are
	// errors, when they are stored and when they are read.
	AllowPartial bool

	// Resolver finds the types of extensions and of what an Any holds. The default is
	// protoregistry.GlobalTypes, the types that are linked into the program.
	Resolver interface {
		protoregistry.MessageTypeResolver
		protoregistry.ExtensionTypeResolver
	}
}

// Messages returns the codec of all messages: what implements proto.Message by its pointer. It is
// safe for concurrent use.
//
// What does not fit is an error that names the field: another type, a number beyond the field's
// range or that is not whole, an enum's name that there is not, a nesting of more than
// bson.DefaultMaxDepth levels. A message that does not decode stays as it was.
func Messages(o Options) bson.Codec {
	if o.Resolver == nil {
		o.Resolver = protoregistry.GlobalTypes
	}
	c := &codec{Options: o}
	return bson.CodecWhere(isMessage, func(dst []byte, v any) (bson.Type, []byte, error) {
		m := v.(proto.Message)
		if err := c.whole(m); err != nil {
			return 0, dst, err
		}
		return c.appendMessage(dst, m.ProtoReflect(), 0)
	}, func(v bson.RawValue, into any) error {
		m := into.(proto.Message)
		if m.ProtoReflect().Descriptor() == nil {
			return fmt.Errorf("a zero %T has no fields: use dynamicpb.NewMessage", m)
		}
		read := m.ProtoReflect().New()
		if err := c.readMessage(v, read, 0); err != nil {
			return err
		}
		if err := c.whole(read.Interface()); err != nil {
			return err
		}
		// Nothing changes if it does not decode.
		proto.Reset(m)
		read.Range(func(f protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			m.ProtoReflect().Set(f, value)
			return true
		})
		return nil
	})
}

// isMessage reports whether the pointer of a type is a message. A struct that embeds a message has
// its methods, and is none.
func isMessage(t reflect.Type) (is bool) {
	if !reflect.PointerTo(t).Implements(reflect.TypeFor[proto.Message]()) {
		return false
	}
	defer func() {
		if recover() != nil { // what is embedded is an interface, which is nil
			is = false
		}
	}()
	m := reflect.New(t).Interface().(proto.Message)
	return reflect.TypeOf(m.ProtoReflect().Interface()) == reflect.TypeOf(m)
}

type codec struct {
	Options
	names sync.Map // protoreflect.MessageDescriptor -> *names
}

// whole reports the required fields that are not set.
func (c *codec) whole(m proto.Message) error {
	if c.AllowPartial {
		return nil
	}
	return proto.CheckInitialized(m)
}

// names are the keys of a message's fields.
type names struct {
	of     map[protoreflect.FieldNumber]string
	fields map[string]protoreflect.FieldDescriptor
	err    error
}

func (c *codec) namesOf(d protoreflect.MessageDescriptor) (*names, error) {
	known, ok := c.names.Load(d)
	if !ok {
		known, _ = c.names.LoadOrStore(d, c.newNames(d))
	}
	n := known.(*names)
	return n, n.err
}

func (c *codec) newNames(d protoreflect.MessageDescriptor) *names {
	n := &names{
		of:     make(map[protoreflect.FieldNumber]string, d.Fields().Len()),
		fields: make(map[string]protoreflect.FieldDescriptor, d.Fields().Len()),
	}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		name := f.JSONName()
		if c.Name != nil {
			name = c.Name(f)
		}
		if err := validKey(name); err != nil {
			n.err = &fieldError{path: string(f.Name()), err: err}
		}
		if other, twice := n.fields[name]; twice {
			n.err = fmt.Errorf("the fields %s and %s of %s have the same key %q",
				other.Name(), f.Name(), d.FullName(), name)
		}
		n.of[f.Number()], n.fields[name] = name, f
	}
	return n
}

// fieldError says in which field of a message something did not fit.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return "field " + e.path + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// in puts an error into a field, or into an element of one: key or [index].
func in(key string, err error) error {
	inner, ok := errors.AsType[*fieldError](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return &fieldError{strings.Clone(key), err} // keys share the documents' memory
	case strings.HasPrefix(inner.path, "["):
		return &fieldError{key + inner.path, inner.err}
	}
	return &fieldError{key + "." + inner.path, inner.err}
}

var errDepth = fmt.Errorf("more than %d levels", bson.DefaultMaxDepth)
