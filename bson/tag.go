package bson

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// structField is one key of a struct: a field of its own or of a struct that is inline in it.
type structField struct {
	key       string
	index     []int // as in reflect.VisibleFields: one number per struct
	typ       reflect.Type
	hops      []hop
	offset    uintptr
	flags     flags
	omitEmpty bool
	structs   bool // omitEmpty takes structs, too
	omitZero  bool
	lenient   bool
	inlineMap bool
}

// tag is a parsed bson tag.
type tag struct {
	key                 string
	skip, inline        bool
	lenient             bool
	omitEmpty, omitZero bool
	flags               flags
}

// parseTag parses the tag of a field. Options that are not known are left alone: tags are shared
// with others. An option without a comma before it, as in bson:"inline", is the key and an option:
// the official driver takes it so, and documents are stored like that.
func parseTag(f reflect.StructField, cfg *config) tag {
	s, ok := f.Tag.Lookup("bson")
	if !ok && !strings.Contains(string(f.Tag), ":") {
		s = string(f.Tag) // the whole tag, an old habit
	}
	if !ok && s == "" && cfg.JSONTags {
		s = f.Tag.Get("json")
	}
	if s == "-" {
		return tag{skip: true}
	}
	key, options, _ := strings.Cut(s, ",")
	t := tag{key: key, omitEmpty: cfg.OmitEmpty, omitZero: cfg.OmitZero}
	for option := range strings.SplitSeq(s, ",") {
		switch option {
		case "omitempty":
			t.omitEmpty = true
		case "minsize":
			t.flags |= flagMinSize
		case "truncate":
			t.flags |= flagTruncate
		case "inline":
			t.inline = true
		}
	}
	for option := range strings.SplitSeq(options, ",") { // those of this package alone
		switch option {
		case "omitzero":
			t.omitZero = true
		case "lenient":
			t.lenient = true
		}
	}
	if t.key == "" {
		t.key = strings.ToLower(f.Name)
	}
	return t
}

// structFields returns the keys of t in the order of its fields, inline ones where they stand. Of
// two fields with one key the one that is less deep inline wins; at the same depth it is an error.
// shadowed is a key that won in this way, or "".
func structFields(t reflect.Type, cfg *config) (out []structField, shadowed string, err error) {
	var all []structField
	if err := collectFields(&all, t, cfg, nil, structField{}); err != nil {
		return nil, "", err
	}
	best := make(map[string]int, len(all)) // depth
	for _, f := range all {
		if d, ok := best[f.key]; !f.inlineMap && (!ok || len(f.index) < d) {
			best[f.key] = len(f.index)
		}
	}
	seen := make(map[string]bool, len(all))
	maps := 0
	for _, f := range all {
		switch {
		case f.inlineMap:
			if maps++; maps > 1 {
				return nil, "", fmt.Errorf("struct has more than one inline map")
			}
		case len(f.index) > best[f.key]:
			shadowed = f.key
			continue
		case seen[f.key]:
			return nil, "", keyTwice(f.key)
		default:
			seen[f.key] = true
		}
		out = append(out, f)
	}
	return out, shadowed, nil
}

func keyTwice(key string) error { return fmt.Errorf("struct has the key %q twice", key) }

// collectFields adds the fields of t, which lies at where. outer are the structs that it is inline
// in.
func collectFields(out *[]structField, t reflect.Type, cfg *config, outer []reflect.Type, where structField) error {
	if slices.Contains(outer, t) {
		return fmt.Errorf("struct %s is inline in itself", t)
	}
	outer = append(slices.Clip(outer), t)
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() && !sf.Anonymous {
			continue
		}
		tag := parseTag(sf, cfg)
		if tag.skip {
			continue
		}
		f := structField{
			key: tag.key, typ: sf.Type, hops: where.hops, offset: where.offset + sf.Offset,
			index: append(slices.Clip(where.index), i),
			flags: tag.flags, omitEmpty: tag.omitEmpty, structs: cfg.OmitEmptyStructs,
			omitZero: tag.omitZero, lenient: tag.lenient || where.lenient,
		}
		if !sf.IsExported() {
			// The exported fields of an unexported embedded struct are reachable, it itself is not.
			if !tag.inline {
				continue
			}
			if t := sf.Type; t.Kind() != reflect.Struct &&
				(t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct) {
				return fmt.Errorf(
					"embedded field %s has the tag inline and is not exported: want a struct or a pointer to one",
					sf.Name)
			}
		}
		if strings.IndexByte(f.key, 0) >= 0 {
			return fmt.Errorf("key of field %s %w", sf.Name, errNUL)
		}
		if !tag.inline {
			*out = append(*out, f)
			continue
		}
		f.flags = 0 // as with the official driver: what is inline has tags of its own
		kind := sf.Type.Kind()
		switch {
		case kind == reflect.Map:
			f.inlineMap = true
			*out = append(*out, f)
		case kind == reflect.Struct:
			if err := collectFields(out, sf.Type, cfg, outer, f); err != nil {
				return err
			}
		case kind == reflect.Pointer && sf.Type.Elem().Kind() == reflect.Struct:
			f.hops = append(slices.Clip(f.hops), hop{offset: f.offset, elem: sf.Type.Elem(), exported: sf.IsExported()})
			f.offset = 0
			if err := collectFields(out, sf.Type.Elem(), cfg, outer, f); err != nil {
				return err
			}
		default:
			return fmt.Errorf("field %s has the tag inline: want a struct, a pointer to one or a map", sf.Name)
		}
	}
	return nil
}

// omitter returns the function that tells when to leave out f; nil for never. copies tells that it
// calls a method with a pointer receiver.
func omitter(f structField) (omit func(p ptr) bool, copies bool) {
	var empty, zero func(p ptr) bool
	if f.omitEmpty {
		empty, copies = emptiness(f.typ, f.structs)
	}
	if f.omitZero {
		var c bool
		zero, c = zeroness(f.typ)
		copies = copies || c
	}
	switch {
	case empty == nil:
		return zero, copies
	case zero == nil:
		return empty, copies
	}
	return func(p ptr) bool { return empty(p) || zero(p) }, copies
}

// emptiness returns what omitempty asks: of pointers and interfaces only whether they are nil, as
// encoding/json does, so that a pointer to a zero is kept. Other values are asked by their own
// IsZero, as the official driver does; one of its uses is an _id that is not set yet. Structs
// without one are never empty, or with structs if all their exported fields are zero.
func emptiness(t reflect.Type, structs bool) (empty func(p ptr) bool, copies bool) {
	switch t.Kind() {
	case reflect.Pointer:
		return func(p ptr) bool { return p.elem().isNil() }, false
	case reflect.Interface:
		return func(p ptr) bool { return p.value(t).IsNil() }, false
	}
	if zero, copies := ownZeroness(t); zero != nil {
		return zero, copies
	}
	switch t.Kind() {
	case reflect.String:
		return func(p ptr) bool { return *at[string](p) == "" }, false
	case reflect.Slice:
		return func(p ptr) bool { _, n := p.slice(); return n == 0 }, false
	case reflect.Map:
		return func(p ptr) bool { return p.value(t).Len() == 0 }, false
	case reflect.Array:
		if t.Len() == 0 {
			return func(ptr) bool { return true }, false
		}
		return nil, false
	case reflect.Struct:
		if structs {
			return func(p ptr) bool { return exportedZero(p.value(t)) }, false
		}
		return nil, false
	}
	return plainZeroness(t), false
}

// exportedZero reports whether all exported fields of a struct are zero.
func exportedZero(v reflect.Value) bool {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Type.Kind() == reflect.Struct && (f.IsExported() || f.Anonymous):
			if !exportedZero(v.Field(i)) {
				return false
			}
		case f.IsExported() && !v.Field(i).IsZero():
			return false
		}
	}
	return true
}

// zeroness returns what omitzero asks, which is what encoding/json asks.
func zeroness(t reflect.Type) (zero func(p ptr) bool, copies bool) {
	if zero, copies = ownZeroness(t); zero != nil {
		return zero, copies
	}
	return plainZeroness(t), false
}

// ownZeroness returns the IsZero of the type's own, nil if it has none.
func ownZeroness(t reflect.Type) (zero func(p ptr) bool, copies bool) {
	kind := t.Kind()
	switch {
	case t == reflect.TypeFor[time.Time]():
		return func(p ptr) bool { return at[time.Time](p).IsZero() }, false
	case kind == reflect.Pointer && t.Implements(typeZeroer):
		return func(p ptr) bool { return p.elem().isNil() || p.value(t).Interface().(zeroer).IsZero() }, false
	case kind == reflect.Interface && t.Implements(typeZeroer):
		return func(p ptr) bool {
			v := p.value(t)
			return v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() ||
				v.Interface().(zeroer).IsZero()
		}, false
	case kind != reflect.Pointer && kind != reflect.Interface && reflect.PointerTo(t).Implements(typeZeroer):
		return func(p ptr) bool { return p.value(t).Addr().Interface().(zeroer).IsZero() }, !t.Implements(typeZeroer)
	}
	return nil, false
}

// plainZeroness returns whether a value is the zero value of its type.
func plainZeroness(t reflect.Type) func(p ptr) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return func(p ptr) bool { return p.elem().isNil() }
	case reflect.String:
		return func(p ptr) bool { return *at[string](p) == "" }
	case reflect.Bool:
		return func(p ptr) bool { return !*at[bool](p) }
	case reflect.Int64, reflect.Uint64:
		return func(p ptr) bool { return *at[uint64](p) == 0 }
	}
	return func(p ptr) bool { return p.value(t).IsZero() }
}
