package bson

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"allium/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A DecodeError is the error for a value in a document that does not decode.
type DecodeError struct {
	keys    []string
	wrapped error
}

// Error says where and why.
func (de *DecodeError) Error() string {
	if len(de.keys) == 0 {
		return de.wrapped.Error()
	}
	return "error decoding key " + strings.Join(de.keys, ".") + ": " + de.wrapped.Error()
}

// Unwrap returns the reason.
func (de *DecodeError) Unwrap() error { return de.wrapped }

// Keys returns the keys on the way to the value, the outermost first.
func (de *DecodeError) Keys() []string { return de.keys }

// The errors for what is not there.
type (
	errNoEncoder      = coding.ErrNoEncoder
	errNoDecoder      = coding.ErrNoDecoder
	errNoTypeMapEntry = coding.ErrNoTypeMapEntry
)

// A TransitionError is the error for what cannot be read or written at this place.
type TransitionError struct {
	name      string   // the method that was called
	positions []string // where it can be
	at        string   // where it was
	reads     bool
}

// Error says what was called, and where.
func (te TransitionError) Error() string {
	verb := "write"
	if te.reads {
		verb = "read"
	}
	if te.name == "" {
		return " can only  while positioned on a but is positioned on a Unknown"
	}
	what := ""
	if te.name == "WriteArray" {
		what = " a Array"
	}
	return fmt.Sprintf("%s can only %s%s while positioned on a %s but is positioned on a %s",
		te.name, verb, what, strings.Join(te.positions, " or "), te.at)
}

// methodOf is the method of a ValueWriter for each type.
var methodOf = map[Type]string{
	TypeDouble: "WriteDouble", TypeString: "WriteString", TypeEmbeddedDocument: "WriteDocument",
	TypeArray:  "WriteArray",
	TypeBinary: "WriteBinaryWithSubtype", TypeUndefined: "WriteUndefined", TypeObjectID: "WriteObjectID",
	TypeBoolean:  "WriteBoolean",
	TypeDateTime: "WriteDateTime", TypeNull: "WriteNull", TypeRegex: "WriteRegex", TypeDBPointer: "WriteDBPointer",
	TypeJavaScript: "WriteJavascript", TypeSymbol: "WriteSymbol", TypeCodeWithScope: "WriteCodeWithScope",
	TypeInt32:     "WriteInt32",
	TypeTimestamp: "WriteTimestamp", TypeInt64: "WriteInt64", TypeDecimal128: "WriteDecimal128",
	TypeMaxKey: "WriteMaxKey", TypeMinKey: "WriteMinKey",
}

// notDocument is the error for a value at the top that is no document.
func notDocument(t Type) error { return notAtTop(methodOf[t]) }

// notAtTop is the error for a method of a ValueWriter that writes no document at the top.
func notAtTop(method string) error {
	return TransitionError{name: method, positions: []string{"Element", "Value"}, at: "TopLevel"}
}

var errMalformed = bsoncore.InsufficientBytesError{}

func errInvalidRawValue(t Type) error {
	return fmt.Errorf("the RawValue Type specifies an invalid BSON type: %#x", byte(t))
}

// frame reports whether the bytes of a Raw are one document.
func frame(r []byte) error {
	length, _, ok := bsoncore.ReadLength(r)
	switch {
	case len(r) < 4:
		return fmt.Errorf("couldn't read length from src, not enough bytes. length=%d", len(r))
	case !ok || int(length) != len(r):
		return fmt.Errorf("length of the document is %d, but there are %d bytes", length, len(r))
	}
	return bsoncore.Document(r).Validate()
}

// A reason is an error in the words of the official driver, around ours.
type reason struct {
	text string
	err  error
}

func (r reason) Error() string { return r.text }
func (r reason) Unwrap() error { return r.err }

// cannotDecode is the error for a value that does not fit into a type.
func cannotDecode(t Type, into reflect.Type, d *coding.Dialect) error {
	return fmt.Errorf("cannot decode %s into %s", t, target(t, into, d))
}

// target names a type as the errors do.
func target(from Type, t reflect.Type, d *coding.Dialect) string {
	if d != nil {
		if name := d.Name(from, t); name != "" {
			return name
		}
	}
	switch t {
	case nil:
		return "<nil>"
	case reflect.TypeFor[D]():
		return "a D"
	case reflect.TypeFor[ObjectID]():
		return "an ObjectID"
	case reflect.TypeFor[time.Time]():
		return "a time.Time"
	case reflect.TypeFor[[]byte]():
		return "a []byte"
	case reflect.TypeFor[Undefined]():
		return "an Undefined"
	case reflect.TypeFor[DateTime](), reflect.TypeFor[JavaScript](), reflect.TypeFor[Symbol]():
		return "a " + t.Name()
	case reflect.TypeFor[Raw](), reflect.TypeFor[RawValue](), reflect.TypeFor[bsoncore.Document](),
		reflect.TypeFor[bsoncore.Array]():
		return "a " + t.String()
	}
	if _, ok := ownTypes[t]; ok {
		return "a " + t.Name()
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer type"
	case reflect.Float32, reflect.Float64:
		return "a float32 or float64 type"
	case reflect.String:
		return "a string type"
	case reflect.Bool:
		return "a boolean"
	case reflect.Pointer:
		return target(from, t.Elem(), d)
	case reflect.Slice:
		return "a slice"
	case reflect.Array:
		return "an array"
	}
	return "a " + t.String()
}

// decodeError is an error of decoding in the official driver's words.
func (w *way) decodeError(err error) error {
	var e *bson.DecodeError
	if !errors.As(err, &e) {
		return err
	}
	inner := e.Err
	if nested, ok := inner.(*DecodeError); ok && e.Path == "" {
		return nested
	}
	switch text := inner.Error(); {
	case strings.HasPrefix(text, "an interface with methods needs ") && e.GoType != nil:
		inner = errNoDecoder{Type: e.GoType}
	case text == "type has no BSON form" && w.registry.dialect != nil:
		inner = errNoDecoder{Type: e.GoType}
	case text == "types do not fit" && e.GoType != nil:
		inner = reason{misfit(e.BSONType, e.GoType, w.registry.dialect), e}
	case strings.HasSuffix(text, " is out of range") && e.GoType != nil:
		inner = reason{strings.TrimSuffix(text, " is out of range") + " overflows " + e.GoType.String(), e}
	case strings.HasSuffix(text, " would lose precision"):
		inner = reason{"float64 can only be truncated to a lower precision type when truncation is enabled", e}
	case strings.HasPrefix(text, "array has ") && e.GoType != nil && e.GoType.Kind() == reflect.Array:
		n, _, _ := strings.Cut(strings.TrimPrefix(text, "array has "), " ")
		inner = reason{fmt.Sprintf("more elements returned in array than can fit inside %s, got %s elements", e.GoType,
			n), e}
	case strings.HasPrefix(text, "binary has the subtype ") && e.GoType != nil:
		var subtype byte
		_, _ = fmt.Sscanf(text, "binary has the subtype 0x%02X:", &subtype)
		name := e.GoType.String()
		if e.GoType.Kind() == reflect.Slice {
			name = "[]byte"
		}
		inner = reason{fmt.Sprintf(
			"only binary values with subtype 0x00 or 0x02 can be decoded into %s, but got subtype %d", name, subtype),
			e}
	}
	if e.Path == "" {
		return inner
	}
	return under(strings.Split(e.Path, "."), inner)
}

// under returns an error about what is at some keys.
func under(keys []string, err error) *DecodeError {
	if nested, ok := err.(*DecodeError); ok {
		return &DecodeError{keys: append(keys, nested.keys...), wrapped: nested.wrapped}
	}
	return &DecodeError{keys: keys, wrapped: err}
}

// misfit is the text for a value that is of a type that does not fit.
func misfit(t Type, goType reflect.Type, d *coding.Dialect) string {
	kind := goType.Kind()
	switch {
	case t == TypeObjectID && kind == reflect.String && goType != reflect.TypeFor[Symbol]() &&
		goType != reflect.TypeFor[JavaScript]():
		return "decoding an object ID into a string is not supported by default (set Decoder.ObjectIDAsHexString to enable decoding as a hexadecimal string)"
	case t == TypeEmbeddedDocument && (kind == reflect.Slice && goType != reflect.TypeFor[[]byte]() ||
		kind == reflect.Array && goType != reflect.TypeFor[ObjectID]()):
		return "cannot decode document into " + goType.String()
	case t == TypeString && kind == reflect.Slice && goType != reflect.TypeFor[[]byte]() &&
		goType != reflect.TypeFor[D]():
		return "SliceDecodeValue can only decode a string into a byte array, got " + elemName(goType)
	case t == TypeBinary && kind == reflect.Slice && goType != reflect.TypeFor[[]byte]() &&
		goType != reflect.TypeFor[D]():
		return "SliceDecodeValue can only decode a binary into a byte array, got binary"
	case t == TypeBinary && kind == reflect.Array && goType != reflect.TypeFor[ObjectID]():
		return "ArrayDecodeValue can only be used to decode binary into a byte array, got binary"
	}
	return cannotDecode(t, goType, d).Error()
}

func elemName(t reflect.Type) string {
	return strings.ReplaceAll(t.Elem().String(), "interface {}", "interface {}")
}

// encodeError is an error of encoding in the official driver's words.
func encodeError(err error) error {
	var e *bson.EncodeError
	if !errors.As(err, &e) {
		return err
	}
	switch text := e.Err.Error(); {
	case text == "type has no BSON form":
		return errNoEncoder{Type: e.GoType}
	case strings.HasSuffix(text, " is out of range"):
		return reason{strings.TrimSuffix(text, " is out of range") + " overflows int64", e}
	case strings.HasPrefix(text, "key ") && strings.HasSuffix(text, " contains a NUL byte"):
		return errNullInKey
	case text == "contains a NUL byte":
		return errNullInRegex
	case strings.HasSuffix(text, " cannot be the key of a document"):
		return reason{"unsupported key type: " + strings.TrimSuffix(text, " cannot be the key of a document"), e}
	case strings.HasPrefix(text, "struct has the key ") && strings.HasSuffix(text, " twice"):
		var key string
		_, _ = fmt.Sscanf(text, "struct has the key %q twice", &key)
		return errors.New("struct " + e.GoType.String() + " has duplicated key " + key)
	}
	return e.Err
}

// framed is the error for a document that is not as long as it says.
func framed(data []byte) error {
	length, _, ok := bsoncore.ReadLength(data)
	switch {
	case len(data) < 4:
		return io.EOF
	case !ok || int(length) != len(data):
		return errInvalidLength
	}
	return nil
}

var errNullInRegex = errors.New("BSON regex values cannot contain null bytes")

var errInvalidLength = errors.New("invalid document length")
