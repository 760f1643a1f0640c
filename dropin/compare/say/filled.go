package say

import "reflect"

// Filled returns a value of a type for a number: the same for the same number, but for pointers,
// and not zero but for a pointer to zero. An interface with methods is nil.
func Filled(t reflect.Type, n int64) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case v.CanInt():
		v.SetInt(n)
	case v.CanUint():
		v.SetUint(uint64(n))
	case v.CanFloat():
		v.SetFloat(float64(n))
	}
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(n%2 == 1)
	case reflect.String:
		v.SetString("xyz"[:n])
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, int(n), int(n)))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		for i := range n {
			v.SetMapIndex(Filled(t.Key(), i), reflect.Zero(t.Elem()))
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		if t.Elem().Kind() != reflect.Struct {
			v.Elem().Set(Filled(t.Elem(), n))
		}
	case reflect.Interface:
		if t.NumMethod() == 0 {
			v.Set(reflect.ValueOf(n))
		}
	case reflect.Struct:
		for f, field := range v.Fields() {
			if f.IsExported() {
				field.Set(Filled(f.Type, n))
			}
		}
	}
	return v
}
