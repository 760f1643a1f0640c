package golden

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"allium/bson"
)

// element is one field of a document.
type element struct {
	key string
	val bson.RawValue
}

func elements(doc bson.Raw) []element {
	var list []element
	for k, v := range doc.All() {
		list = append(list, element{strings.Clone(k), v})
	}
	return list
}

// Diff says where a reply differs from the recorded one; it is empty when they agree. {"$any":
// type} in the recording matches every value of that type. The order of a reply's own fields does
// not count, nor do $clusterTime and operationTime.
func Diff(want, got bson.Raw) string {
	return diffFields(topLevel(want), topLevel(got), "")
}

func topLevel(doc bson.Raw) []element {
	list := slices.DeleteFunc(elements(doc), func(e element) bool {
		return e.key == "$clusterTime" || e.key == "operationTime"
	})
	slices.SortStableFunc(list, func(a, b element) int { return strings.Compare(a.key, b.key) })
	return list
}

func diffFields(want, got []element, path string) string {
	for i, w := range want {
		if i >= len(got) {
			return fmt.Sprintf("%s: no field %s", path, w.key)
		}
		if w.key != got[i].key {
			return fmt.Sprintf("%s: field %s instead of %s (%s)", path, got[i].key, w.key, show(got[i].val))
		}
		if d := diffValue(w.val, got[i].val, join(path, w.key)); d != "" {
			return d
		}
	}
	if len(got) > len(want) {
		return fmt.Sprintf("%s: extra field %s (%s)", path, got[len(want)].key, show(got[len(want)].val))
	}
	return ""
}

func diffValue(want, got bson.RawValue, path string) string {
	if name, ok := anyType(want); ok {
		if n := typeName(got); n != name {
			return fmt.Sprintf("%s: want any %s, got %s (%s)", path, name, show(got), n)
		}
		return ""
	}
	if want.Type != got.Type {
		return fmt.Sprintf("%s: want %s (%s), got %s (%s)", path, show(want), want.Type, show(got), got.Type)
	}
	switch want.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return diffFields(elements(want.Value), elements(got.Value), path)
	}
	if !same(want, got) {
		return fmt.Sprintf("%s: want %s, got %s", path, show(want), show(got))
	}
	return ""
}

// anyType returns the type that a placeholder stands for.
func anyType(v bson.RawValue) (string, bool) {
	if v.Type != bson.TypeEmbeddedDocument {
		return "", false
	}
	list := elements(v.Value)
	if len(list) != 1 || list[0].key != "$any" {
		return "", false
	}
	return list[0].val.StringValue()
}

func same(a, b bson.RawValue) bool {
	if x, ok := a.Double(); ok {
		if y, ok := b.Double(); ok && math.IsNaN(x) && math.IsNaN(y) {
			return true
		}
	}
	return a.Type == b.Type && bytes.Equal(a.Value, b.Value)
}

// typeName returns the name that recordings use for a value's type.
func typeName(v bson.RawValue) string {
	switch v.Type {
	case bson.TypeNull:
		return "null"
	case bson.TypeCodeWithScope:
		return "code with scope"
	}
	return v.Type.String()
}

func show(v bson.RawValue) string {
	at, doc := bson.BeginDocument(nil)
	doc = bson.EndDocument(bson.AppendRawValue(doc, "v", v), at)
	j, err := bson.MarshalExtJSON(bson.Raw(doc), false)
	if err != nil {
		return err.Error()
	}
	s := strings.TrimSuffix(strings.TrimPrefix(string(j), `{"v":`), "}")
	if len(s) > 600 {
		s = s[:600] + "..."
	}
	return s
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// lookup returns the value at a dotted path.
func lookup(doc bson.Raw, path string) bson.RawValue {
	if path == "" {
		return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	}
	return doc.Lookup(strings.Split(path, ".")...)
}

// sortArrays returns the document with the arrays at these paths sorted by their elements' Extended
// JSON.
func sortArrays(doc bson.Raw, paths []string) bson.Raw {
	for _, p := range paths {
		doc = rewrite(doc, p, func(v bson.RawValue) bson.RawValue {
			if v.Type != bson.TypeArray {
				return v
			}
			list := elements(v.Value)
			slices.SortStableFunc(list, func(a, b element) int {
				return strings.Compare(canonical(a.val), canonical(b.val))
			})
			at, out := bson.BeginDocument(nil)
			for i, e := range list {
				out = append(bson.AppendIndexHeader(out, e.val.Type, i), e.val.Value...)
			}
			return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(out, at)}
		})
	}
	return doc
}

func canonical(v bson.RawValue) string {
	at, doc := bson.BeginDocument(nil)
	doc = bson.EndDocument(bson.AppendRawValue(doc, "", v), at)
	j, err := bson.MarshalExtJSON(bson.Raw(doc), true)
	if err != nil {
		return err.Error()
	}
	return string(j)
}

// rewrite returns a copy of the document with the value at the path replaced by f of it.
func rewrite(doc bson.Raw, path string, f func(bson.RawValue) bson.RawValue) bson.Raw {
	head, rest, deeper := strings.Cut(path, ".")
	at, out := bson.BeginDocument(nil)
	for k, v := range doc.All() {
		switch {
		case k != head:
		case !deeper:
			v = f(v)
		case v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray:
			v.Value = rewrite(v.Value, rest, f)
		}
		out = bson.AppendRawValue(out, k, v)
	}
	return bson.EndDocument(out, at)
}

// volatile are the fields that differ from one server or run to the next.
var volatile = map[string]bool{
	"$clusterTime": true, "operationTime": true, "electionId": true, "opTime": true, "localTime": true,
	"topologyVersion": true, "connectionId": true, "lastWrite": true, "wallTime": true, "uuid": true,
	"host": true, "me": true, "primary": true, "hosts": true, "$configServerState": true, "$gleStats": true,
	"lastCommittedOpTime": true, "recoveryToken": true, "clusterTime": true, "postBatchResumeToken": true, "ui": true,
	"writtenTo": true,
}

// Normalize returns what to record of a reply, given that of a second run: what is volatile, to be
// ignored, or differs becomes {"$any": type}.
func Normalize(a, b bson.Raw, ignore []string) bson.Raw {
	v := normalizeValue(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: a},
		bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: b}, "", ignore)
	return v.Value
}

func normalizeDocument(a, b bson.Raw, path string, ignore []string) bson.Raw {
	other := elements(b)
	at, out := bson.BeginDocument(nil)
	i := 0
	for k, v := range a.All() {
		out = bson.AppendRawValue(out, k, normalizeValue(v, other[i].val, join(path, k), ignore))
		i++
	}
	return bson.EndDocument(out, at)
}

func normalizeValue(a, b bson.RawValue, path string, ignore []string) bson.RawValue {
	last := path[strings.LastIndexByte(path, '.')+1:]
	inBatch := strings.Contains(path, "firstBatch") || strings.Contains(path, "nextBatch")
	if slices.Contains(ignore, path) || volatile[last] && !inBatch || a.Type != b.Type {
		return anyOf(a)
	}
	if a.Type == bson.TypeEmbeddedDocument || a.Type == bson.TypeArray {
		x, y := elements(a.Value), elements(b.Value)
		if !slices.EqualFunc(x, y, func(x, y element) bool { return x.key == y.key }) {
			return anyOf(a)
		}
		return bson.RawValue{Type: a.Type, Value: normalizeDocument(a.Value, b.Value, path, ignore)}
	}
	if !same(a, b) {
		return anyOf(a)
	}
	return a
}

func anyOf(v bson.RawValue) bson.RawValue {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "$any", typeName(v))
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(doc, at)}
}
