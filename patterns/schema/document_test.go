package schema

import (
	"reflect"
	"slices"
	"testing"
)

// Each option that collections and indexes are created with is compared and exported, too, or
// belongs to the operation alone. The driver's list of what is sent stands elsewhere, so that one
// that is new there must not be forgotten here.
func TestNoOptionIsForgotten(t *testing.T) {
	complete(t, createOptions, "Comment", "Timeout", "WriteConcern")
	complete(t, indexOptions)
	complete(t, searchOptions)
	complete(t, collationOptions)
}

func complete[T any](t *testing.T, options []setting[T], others ...string) {
	t.Helper()
	var declared T
	v := reflect.ValueOf(&declared).Elem()
	var known []uintptr
	for _, o := range options {
		known = append(known, reflect.ValueOf(o.at(&declared)).Pointer())
	}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if has := slices.Contains(known, v.Field(i).Addr().Pointer()); has == slices.Contains(others, name) {
			t.Errorf("%T: %s is an option of a schema: %v", declared, name, has)
		}
	}
}
