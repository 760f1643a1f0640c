// Package option reads the optional last argument that public operations have.
package option

import "fmt"

// One returns the one element of an optional argument, or its zero value.
func One[T any](opts []T) (o T, err error) {
	switch len(opts) {
	case 0:
	case 1:
		o = opts[0]
	default:
		err = fmt.Errorf("%d option structs given, want at most one", len(opts))
	}
	return o, err
}
