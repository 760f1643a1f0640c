// Package option reads the optional last arguments that public operations have.
package option

import "reflect"

// Merge returns what a call's option structs say together: of each field the last value that is
// set, which is one that is not zero. Structs in fields are merged likewise, unless they have
// unexported fields.
func Merge[T any](opts []T) T {
	switch len(opts) {
	case 0:
		var zero T
		return zero
	case 1:
		return opts[0]
	}
	return mergeAll(append([]T(nil), opts...)) // a copy, as what is read by reflection is on the heap
}

func mergeAll[T any](opts []T) T {
	merged := reflect.ValueOf(&opts[0]).Elem()
	for i := range opts[1:] {
		merge(merged, reflect.ValueOf(&opts[i+1]).Elem())
	}
	return opts[0]
}

func merge(dst, src reflect.Value) {
	for i := range src.NumField() {
		switch f := src.Field(i); {
		case f.IsZero():
		case f.Kind() == reflect.Struct && open(f.Type()):
			merge(dst.Field(i), f)
		default:
			dst.Field(i).Set(f)
		}
	}
}
