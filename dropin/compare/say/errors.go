package say

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Errors is what a program asks of an error besides its type and its text.
type Errors struct {
	// Types are the types that it looks for with errors.As: Type[T] of each.
	Types []reflect.Type
	// Is are the errors that it looks for with errors.Is.
	Is []error
	// Asks are questions to functions of the driver.
	Asks []Ask
}

// An Ask is a function of the driver that says something about errors.
type Ask struct {
	Name string
	Of   func(error) bool
}

// labels and codes are those that are looked for: they tell errors apart in programs.
var (
	labels = []string{"TransientTransactionError", "RetryableWriteError", "NetworkError",
		"UnknownTransactionCommitResult", "NoWritesPerformed", "SystemOverloadedError", "RetryableError"}
	codes = []int{0, 11000}
)

// Text says of what type an error is, and what can be asked of it.
func (e *Errors) Text(err error) string {
	text := fmt.Sprintf("%T %q", err, err.Error())
	for _, t := range e.Types {
		target := reflect.New(t)
		if errors.As(err, target.Interface()) {
			text += " " + t.Name() + fields(target.Elem())
		}
	}
	var labeled interface {
		error
		HasErrorLabel(string) bool
	}
	if errors.As(err, &labeled) {
		for _, l := range labels {
			if labeled.HasErrorLabel(l) {
				text += " label:" + l
			}
		}
	}
	var server interface {
		error
		HasErrorCode(int) bool
		HasErrorMessage(string) bool
		HasErrorCodeWithMessage(int, string) bool
	}
	if errors.As(err, &server) {
		for _, c := range codes {
			if server.HasErrorCode(c) {
				text += fmt.Sprint(" code:", c)
			}
		}
		text += fmt.Sprintf(" server{%t %t}", server.HasErrorMessage("dup"),
			server.HasErrorCodeWithMessage(11000, "E11000"))
	}
	var coded interface {
		error
		ErrorCodes() []int
	}
	if errors.As(err, &coded) {
		text += fmt.Sprint(" codes:", coded.ErrorCodes())
	}
	for _, s := range e.Is {
		if errors.Is(err, s) {
			text += " is:" + s.Error()
		}
	}
	for _, a := range e.Asks {
		if a.Of(err) {
			text += " " + a.Name
		}
	}
	return text
}

// fields are the values of a struct's exported fields. Of bytes it says whether there are any: a
// document of the server has times in it.
func fields(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		return "nil"
	case v.Kind() == reflect.Pointer:
		return "&" + fields(v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return fmt.Sprint("bytes:", v.Len() > 0)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = fields(v.Index(i))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case v.Kind() == reflect.Interface && !v.IsNil():
		if err, ok := v.Interface().(error); ok {
			return fmt.Sprintf("%q", err.Error())
		}
		return fmt.Sprintf("%T", v.Interface())
	case v.Kind() != reflect.Struct:
		return fmt.Sprintf("%+v", v)
	}
	var parts []string
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && f.Anonymous {
			parts = append(parts, fields(v.Field(i)))
		} else if f.IsExported() {
			parts = append(parts, f.Name+":"+fields(v.Field(i)))
		}
	}
	return "{" + strings.Join(parts, " ") + "}"
}
