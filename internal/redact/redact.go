// Package redact prints structs of options so that no secret is in the text, whatever the verb.
//
// Package fmt does not ask a field's methods once it meets a verb that does not suit a pointer: %s
// of a struct that holds a pointer to options prints what the pointer leads to field by field, as
// it lies in memory. A type that redacts a field of its own is therefore not enough; the struct
// around it needs a Format method.
package redact

import (
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Text is what stands for a secret that is set.
const Text = "***"

// Mask returns what is shown of a secret: nothing of it, only whether there is one.
func Mask(secret string) string {
	if secret == "" {
		return ""
	}
	return Text
}

// Fields prints the exported fields of a struct as %+v does, except that pointers are followed into
// values of this module, and that functions, interfaces and structs of other modules are only said
// to be there. Values that format themselves do so.
func Fields(w io.Writer, v any) { fields(w, reflect.ValueOf(v), false) }

// SetFields is Fields without the fields that have their zero value.
func SetFields(w io.Writer, v any) { fields(w, reflect.ValueOf(v), true) }

func fields(w io.Writer, v reflect.Value, setOnly bool) {
	sep := "{"
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || setOnly && v.Field(i).IsZero() {
			continue
		}
		io.WriteString(w, sep+f.Name+":")
		value(w, v.Field(i), setOnly)
		sep = " "
	}
	if sep == "{" {
		io.WriteString(w, sep)
	}
	io.WriteString(w, "}")
}

func value(w io.Writer, v reflect.Value, setOnly bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Func:
		if v.IsNil() {
			io.WriteString(w, "<nil>")
			return
		}
	}
	inside := v
	if v.Kind() == reflect.Interface {
		inside = v.Elem()
	}
	switch inside.Interface().(type) {
	case fmt.Formatter, fmt.Stringer:
		if ours(inside.Type()) || inside.Type().PkgPath() == "time" {
			fmt.Fprintf(w, "%v", inside.Interface())
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		value(w, v.Elem(), setOnly)
	case reflect.Struct:
		if !ours(v.Type()) {
			io.WriteString(w, "set")
			return
		}
		fields(w, v, setOnly)
	case reflect.Interface:
		if k := inside.Kind(); inside.Type().PkgPath() != "" || k > reflect.Float64 && k != reflect.String {
			io.WriteString(w, "set")
			return
		}
		fmt.Fprintf(w, "%v", v.Interface())
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		io.WriteString(w, "set")
	default:
		fmt.Fprintf(w, "%v", v.Interface())
	}
}

// ours reports whether a type, or what it points to, is one of this module.
func ours(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == module || strings.HasPrefix(t.PkgPath(), module+"/")
}

var module, _, _ = strings.Cut(reflect.TypeFor[marker]().PkgPath(), "/")

type marker struct{}
