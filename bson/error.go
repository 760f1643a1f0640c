package bson

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// An EncodeError reports why a Go value could not be encoded.
type EncodeError struct {
	Path   string       // where in the document: keys and indexes, joined with dots; empty for the value itself
	GoType reflect.Type // the type of the value at Path; nil if there is none
	Err    error        // the reason
}

// Error says what could not be encoded, where, and why.
func (e *EncodeError) Error() string { return describe("encode", e.Path, e.GoType, " from ", e.Err) }

// Unwrap returns the reason.
func (e *EncodeError) Unwrap() error { return e.Err }

// A DecodeError reports why BSON could not be decoded into a Go value.
type DecodeError struct {
	Path     string       // where in the document: keys and indexes, joined with dots; empty for the document itself
	BSONType Type         // the type of the BSON value at Path
	GoType   reflect.Type // the type that it was to become; nil if there is none
	Err      error        // the reason
}

// Error says what could not be decoded into what, where, and why.
func (e *DecodeError) Error() string {
	what := "decode"
	if e.BSONType != 0 {
		what = "decode " + e.BSONType.String()
	}
	return describe(what, e.Path, e.GoType, " into ", e.Err)
}

// Unwrap returns the reason.
func (e *DecodeError) Unwrap() error { return e.Err }

func describe(what, path string, t reflect.Type, preposition string, reason error) string {
	var b strings.Builder
	b.WriteString("bson: ")
	b.WriteString(what)
	if path != "" {
		b.WriteString(" at ")
		b.WriteString(strconv.Quote(path))
	}
	if t != nil {
		b.WriteString(preposition)
		b.WriteString(t.String())
	}
	b.WriteString(": ")
	b.WriteString(strings.TrimPrefix(reason.Error(), "bson: "))
	return b.String()
}

// The reasons that more than one place gives.
var (
	errTooDeep     = errors.New("nests too deep (is the value cyclic?)")
	errNUL         = errors.New("contains a NUL byte")
	errUTF8        = errors.New("is not valid UTF-8")
	errMalformed   = errors.New("value is malformed")
	errNotDocument = errors.New("is not a document")
	errWrongType   = errors.New("types do not fit")
	errUnsupported = errors.New("type has no BSON form")
)

func errOverflow(v any) error { return fmt.Errorf("%v is out of range", v) }
func errInexact(v any) error  { return fmt.Errorf("%v would lose precision", v) }

// encodeErr makes err an *EncodeError for a value of type t, if it is not one already.
func encodeErr(t reflect.Type, err error) error {
	if _, ok := err.(*EncodeError); ok {
		return err
	}
	return &EncodeError{GoType: t, Err: err}
}

// decodeErr makes err a *DecodeError, if it is not one already.
func decodeErr(bt Type, t reflect.Type, err error) error {
	if _, ok := err.(*DecodeError); ok {
		return err
	}
	return &DecodeError{BSONType: bt, GoType: t, Err: err}
}

// under puts key before the path of an error from inside the element with that key. The errors are
// fresh ones, made on the way down, so that they can be completed on the way up.
func under(key string, err error) error {
	key = strings.ToValidUTF8(key, "\uFFFD")
	switch e := err.(type) {
	case *EncodeError:
		e.Path = joinPath(key, e.Path)
		return e
	case *DecodeError:
		e.Path = joinPath(key, e.Path)
		return e
	}
	return err
}

func underIndex(i int, err error) error { return under(strconv.Itoa(i), err) }

func joinPath(key, path string) string {
	if path == "" {
		return key
	}
	return key + "." + path
}
