package bson

// What leads from one document to another.

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DiffOptions say how Diff looks at arrays and at the order of keys.
type DiffOptions struct {
	// ArrayElements makes Diff change the elements of arrays that differ, by their index, and cut
	// and extend arrays. Without it an array that differs is set as a whole. Elements that somebody
	// else inserts or removes meanwhile shift the others: use it with a version in the filter.
	ArrayElements bool
	// AnyOrder leaves the order of keys alone, as decoding into structs and maps does. Without it a
	// document inside the documents is set as a whole if its keys would end up in another order.
	AnyOrder bool
}

// ErrNoPath is what an error of Diff wraps if no update with operators leads to the document: a key
// that differs and that paths cannot name stands at the top, as it is empty, has a dot, begins with
// a dollar sign, or is there twice. The document must be replaced.
var ErrNoPath = errors.New("no path can name the key")

// Diff returns the update that makes the document after of the document before: the fields that
// have another value, another type or are new under $set, those that are gone under $unset. It is
// empty, and no update that servers take, if there is no difference. Documents inside are compared
// field by field. One in which something differs that no path can name, such as a key with a dot,
// is set as a whole.
//
// A field that is null is not the same as one that is missing. The order of keys does not matter at
// the top, where updates cannot change it, nor in maps; see DiffOptions.AnyOrder for documents.
//
// before and after are anything that Marshal takes. It is an error if their _id differ. Values in
// the update share no memory with the arguments.
func Diff(before, after any, opts ...DiffOptions) (D, error) {
	return Options{}.Diff(before, after, opts...)
}

// Diff is the function Diff with these options.
func (o Options) Diff(before, after any, opts ...DiffOptions) (D, error) {
	var d differ
	if len(opts) > 0 {
		d.opts = opts[len(opts)-1]
	}
	var err error
	if d.before, err = o.diffed(before); err != nil {
		return nil, err
	}
	if d.after, err = o.diffed(after); err != nil {
		return nil, err
	}
	if err := d.top(); err != nil {
		return nil, fmt.Errorf("bson: diff: %w", err)
	}
	update := make(D, 0, 3)
	for _, part := range []struct {
		op     string
		fields D
	}{{"$set", d.set}, {"$unset", d.unset}, {"$push", d.push}} {
		if len(part.fields) > 0 {
			update = append(update, E{part.op, part.fields})
		}
	}
	return update, nil
}

// diffed is one of the documents that are compared. Its maps are sorted by key.
type diffed struct {
	b    []byte
	maps map[int]bool // where documents begin that were maps
}

func (o Options) diffed(v any) (diffed, error) {
	b, maps, err := o.AppendValueMaps(nil, "", v)
	if err != nil {
		return diffed{}, err
	}
	if t := Type(b[0]); t != TypeEmbeddedDocument {
		return diffed{}, fmt.Errorf("bson: diff: a %T becomes a BSON %s, not a document", v, t)
	}
	const value = 2 // behind the type and the empty key
	if len(maps) == 0 {
		return diffed{b: b[value:]}, nil
	}
	random := make(map[int]bool, len(maps))
	for _, at := range maps {
		random[at] = true
	}
	d := diffed{maps: make(map[int]bool, len(maps))}
	d.b, err = d.sorted(nil, b, value, random)
	return d, err
}

// sorted appends the document or array at a place of src with those documents in it sorted by key
// that begin where random says.
func (d *diffed) sorted(dst, src []byte, at int, random map[int]bool) ([]byte, error) {
	fields, err := elementsOf(src, at)
	if err != nil {
		return dst, err
	}
	if random[at] {
		slices.SortStableFunc(fields, func(a, b diffField) int { return strings.Compare(a.key, b.key) })
		d.maps[len(dst)] = true
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, f := range fields {
		dst = append(append(append(dst, byte(f.v.Type)), f.key...), 0)
		if f.v.Type == TypeEmbeddedDocument || f.v.Type == TypeArray {
			if dst, err = d.sorted(dst, src, f.at, random); err != nil {
				return dst, err
			}
			continue
		}
		dst = append(dst, f.v.Value...)
	}
	return EndDocument(dst, start), nil
}

// diffField is an element of a document.
type diffField struct {
	key string
	v   RawValue
	at  int // where its value begins
}

// elementsOf returns the elements of the document or array at a place of b.
func elementsOf(b []byte, at int) ([]diffField, error) {
	doc, _, err := ReadDocument(b[at:])
	if err != nil {
		return nil, err
	}
	fields := make([]diffField, 0, 16)
	pos := at + 4
	for rest := doc.Elements(); len(rest) > 0; {
		var f diffField
		if f.key, f.v, rest, err = ReadElement(rest); err != nil {
			return nil, err
		}
		f.at = pos + 1 + len(f.key) + 1
		pos = f.at + len(f.v.Value)
		fields = append(fields, f)
	}
	return fields, nil
}

// differ is the state of one comparison.
type differ struct {
	opts             DiffOptions
	before, after    diffed
	set, unset, push D
}

// top compares the documents themselves.
func (d *differ) top() error {
	before, after, err := d.elements(0, 0)
	if err != nil {
		return err
	}
	oldID, newID := Raw(d.before.b).Lookup("_id"), Raw(d.after.b).Lookup("_id")
	if !oldID.Equal(newID) {
		return errors.New("the _id differs: no update changes it")
	}
	key, err := d.fields("", before, after)
	if err == nil && key != nil {
		err = fmt.Errorf("key %q differs at the top: %w", *key, ErrNoPath)
	}
	return err
}

func (d *differ) elements(before, after int) (a, b []diffField, err error) {
	if a, err = elementsOf(d.before.b, before); err == nil {
		b, err = elementsOf(d.after.b, after)
	}
	return a, b, err
}

// fields adds what leads from the fields of one document to those of another, both on a path that
// ends with a dot. It returns the key that prevents it, if there is one.
func (d *differ) fields(path string, before, after []diffField) (key *string, err error) {
	old, key := byKey(before)
	now, twice := byKey(after)
	if key == nil {
		key = twice
	}
	if key != nil {
		if slices.EqualFunc(before, after, func(a, b diffField) bool { return a.key == b.key && a.v.Equal(b.v) }) {
			return nil, nil
		}
		return key, nil
	}
	for i, f := range before {
		if now.find(f.key, i) >= 0 {
			continue
		}
		if !nameable(f.key) {
			return &f.key, nil
		}
		d.unset = append(d.unset, E{path + f.key, ""})
	}
	for i, f := range after {
		was := old.find(f.key, i)
		if was >= 0 && before[was].v.Equal(f.v) {
			continue
		}
		if !nameable(f.key) {
			return &f.key, nil
		}
		if was >= 0 {
			err = d.value(path+f.key, before[was], f)
		} else {
			d.whole(path+f.key, f.v)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// keyIndex finds the fields of a document by their keys.
type keyIndex struct {
	fields []diffField
	byKey  map[string]int // nil if there are few
}

// fewFields is how many fields are faster to look through than to put into a map.
const fewFields = 24

// byKey returns the index of a document, or a key that is there twice.
func byKey(fields []diffField) (x keyIndex, twice *string) {
	x.fields = fields
	if len(fields) > fewFields {
		x.byKey = make(map[string]int, len(fields))
	}
	for i := range fields {
		key := &fields[i].key
		if x.byKey == nil {
			if slices.ContainsFunc(fields[:i], func(f diffField) bool { return f.key == *key }) {
				return x, key
			}
			continue
		}
		if _, there := x.byKey[*key]; there {
			return x, key
		}
		x.byKey[*key] = i
	}
	return x, nil
}

// find returns where a key is, or -1. It looks at near first.
func (x *keyIndex) find(key string, near int) int {
	if near < len(x.fields) && x.fields[near].key == key {
		return near
	}
	if x.byKey == nil {
		return slices.IndexFunc(x.fields, func(f diffField) bool { return f.key == key })
	}
	if i, ok := x.byKey[key]; ok {
		return i
	}
	return -1
}

// nameable reports whether a path can have the key.
func nameable(key string) bool {
	return key != "" && key[0] != '$' && !strings.Contains(key, ".")
}

// whole sets a path to a value.
func (d *differ) whole(path string, v RawValue) {
	d.set = append(d.set, E{path, RawValue{Type: v.Type, Value: bytes.Clone(v.Value)}})
}

// value adds what leads from one value on a path to another, which differs.
func (d *differ) value(path string, before, after diffField) error {
	sets, unsets, pushes := len(d.set), len(d.unset), len(d.push)
	done, err := false, error(nil)
	switch {
	case before.v.Type != after.v.Type:
	case after.v.Type == TypeEmbeddedDocument:
		done, err = d.document(path, before.at, after.at)
	case after.v.Type == TypeArray && d.opts.ArrayElements:
		done, err = d.array(path, before.at, after.at)
	}
	if err == nil && !done {
		d.set, d.unset, d.push = d.set[:sets], d.unset[:unsets], d.push[:pushes]
		d.whole(path, after.v)
	}
	return err
}

// document adds what leads from one document inside to another, and reports whether it does.
func (d *differ) document(path string, beforeAt, afterAt int) (bool, error) {
	before, after, err := d.elements(beforeAt, afterAt)
	if err != nil || !d.opts.AnyOrder && !d.after.maps[afterAt] && !keepsOrder(before, after) {
		return false, err
	}
	key, err := d.fields(path+".", before, after)
	return key == nil, err
}

// keepsOrder reports whether the keys of a document stand as in after once an update has removed
// those that are gone and added those that are new. Servers append new fields in the order of their
// names; of several of which one is a number the order is not for us to say.
func keepsOrder(before, after []diffField) bool {
	has := func(list []diffField, key string) bool {
		return slices.ContainsFunc(list, func(f diffField) bool { return f.key == key })
	}
	var left, added []string
	for _, f := range before {
		if has(after, f.key) {
			left = append(left, f.key)
		}
	}
	numbers := false
	for _, f := range after {
		if !has(before, f.key) {
			added = append(added, f.key)
			numbers = numbers || strings.Trim(f.key, "0123456789") == ""
		}
	}
	if numbers && len(added) > 1 {
		return false
	}
	slices.Sort(added)
	return slices.EqualFunc(append(left, added...), after, func(key string, f diffField) bool { return key == f.key })
}

// array adds what leads from one array to another, and reports whether it does.
func (d *differ) array(path string, beforeAt, afterAt int) (bool, error) {
	before, after, err := d.elements(beforeAt, afterAt)
	if err != nil || len(after) == 0 || len(before) == 0 {
		return false, err
	}
	changed := 0
	for i, f := range after {
		if i < len(before) && before[i].v.Equal(f.v) {
			continue
		}
		changed++
		if at := path + "." + strconv.Itoa(i); i < len(before) {
			err = d.value(at, before[i], f)
		} else {
			d.whole(at, f.v)
		}
		if err != nil {
			return false, err
		}
	}
	if len(after) < len(before) {
		if changed > 0 { // an update cannot change elements and cut the array
			return false, nil
		}
		d.push = append(d.push, E{path, D{{"$each", A{}}, {"$slice", len(after)}}})
	}
	return true, nil
}
