package option

import "reflect"

// Copy returns a copy of options, or of one, that has nothing in common with v that a program could
// change later: pointers, slices and maps are copied with what they hold. What only its own package
// can copy is copied by its method Clone, with what its exported fields hold, or stays shared:
// structs with unexported fields, functions and what interfaces hold that any package can
// implement.
func Copy[T any](v T) T {
	if reflect.ValueOf(&v).Elem().IsZero() { // what most are, at no cost
		return v
	}
	return deep(v)
}

func deep[T any](v T) T { return copied(reflect.ValueOf(&v).Elem()).Interface().(T) }

func copied(v reflect.Value) reflect.Value {
	t := v.Type()
	switch t.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		if m, ok := t.MethodByName("Clone"); ok && m.Type.NumIn() == 1 && m.Type.NumOut() == 1 && m.Type.Out(0) == t {
			c := v.MethodByName("Clone").Call(nil)[0]
			if t.Elem().Kind() == reflect.Struct {
				for i := range t.Elem().NumField() { // that of tls.Config is a shallow copy
					if f := c.Elem().Field(i); f.CanSet() {
						f.Set(copied(f))
					}
				}
			}
			return c
		}
		if t.Elem().Kind() == reflect.Struct && !open(t.Elem()) {
			return v
		}
		c := reflect.New(t.Elem())
		c.Elem().Set(copied(v.Elem()))
		return c.Convert(t)
	case reflect.Struct:
		if !open(t) {
			return v
		}
		c := reflect.New(t).Elem()
		for i := range t.NumField() {
			c.Field(i).Set(copied(v.Field(i)))
		}
		return c
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeSlice(t, v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(copied(v.Index(i)))
		}
		return c
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeMapWithSize(t, v.Len())
		for iter := v.MapRange(); iter.Next(); {
			c.SetMapIndex(iter.Key(), copied(iter.Value()))
		}
		return c
	case reflect.Interface:
		// Of an interface that only its own package implements, the values are ours.
		if v.IsNil() || !sealed(t) || v.Elem().Kind() != reflect.Struct {
			return v
		}
		c := reflect.New(t).Elem()
		c.Set(copied(v.Elem()))
		return c
	}
	return v
}

// sealed reports whether an interface type has a method that is not exported.
func sealed(t reflect.Type) bool {
	for i := range t.NumMethod() {
		if !t.Method(i).IsExported() {
			return true
		}
	}
	return false
}

// open reports whether all fields of a struct type are exported.
func open(t reflect.Type) bool {
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return false
		}
	}
	return true
}
