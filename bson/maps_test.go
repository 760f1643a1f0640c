package bson

import (
	"reflect"
	"testing"
)

type namedMap[T any] map[string]T

type itself struct{}

func (itself) MarshalBSON() ([]byte, error) { return Marshal(M{"a": 1, "b": 2}) }

type coded struct{ a, b int }

// TestAppendValueMaps: the documents of random order are found by what is encoded, whatever type it
// has and wherever it stands, and nothing else is.
func TestAppendValueMaps(t *testing.T) {
	var iface any = map[string]int{"a": 1, "b": 2}
	named := namedMap[int8]{"a": 1, "b": 2}
	pointer := &named
	type keyName string
	type inline struct {
		X    int            `bson:"x"`
		Rest map[string]int `bson:",inline"`
	}
	codecs, err := NewCodecs(CodecFor(func(dst []byte, c coded) (Type, []byte, error) {
		out, err := MarshalAppend(dst, M{"a": c.a, "b": c.b})
		return TypeEmbeddedDocument, out, err
	}, func(RawValue) (coded, error) { return coded{}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		v     any
		paths []string
	}{
		{iface, []string{""}}, {&iface, []string{""}}, {named, []string{""}}, {pointer, []string{""}}, {&pointer, []string{""}},
		{M{"a": 1, "b": 2}, []string{""}}, {map[keyName]any{"a": 1, "b": 2}, []string{""}}, {map[int]int{1: 1, 2: 2}, []string{""}},
		{inline{1, map[string]int{"a": 1, "b": 2}}, []string{""}}, {&inline{1, map[string]int{"a": 1, "b": 2}}, []string{""}},
		{D{{"x", D{{"y", M{"a": 1, "b": 2}}}}}, []string{"x.y"}}, {D{{"x", A{1, named, D{}}}}, []string{"x.1"}},
		{D{{"x", []any{iface}}, {"y", struct{ Z *namedMap[int8] }{pointer}}}, []string{"x.0", "y.z"}},
		{M{"x": M{"a": 1, "b": 2}}, []string{"x"}}, {map[string]M{"x": {"a": 1, "b": 2}}, []string{"x"}},
		{inline{1, map[string]int{"a": 1}}, nil}, {M{"a": 1}, nil}, {namedMap[any]{"a": D{{"b", 1}, {"c", 2}}}, nil}, {M{}, nil}, {M(nil), nil}, {nil, nil},
		{D{{"a", 1}, {"b", 2}}, nil}, {struct{ A, B int }{1, 2}, nil}, {itself{}, nil}, {&itself{}, nil}, {D{{"x", itself{}}}, nil},
		{coded{1, 2}, nil}, {D{{"x", &coded{1, 2}}}, nil}, {"text", nil}, {[]int{1, 2}, nil},
	} {
		for _, before := range []string{"", "some bytes"} {
			o := Options{}
			if i >= 20 {
				o.Codecs = codecs
			}
			out, maps, err := o.AppendValueMaps([]byte(before), "k", c.v)
			if err != nil {
				t.Fatalf("%T: %v", c.v, err)
			}
			plain, err := o.AppendValue([]byte(before), "k", c.v)
			if err != nil || len(plain) != len(out) {
				t.Errorf("%T: AppendValue appends %d bytes, %v, AppendValueMaps %d", c.v, len(plain), err, len(out))
			}
			found := map[int]string{}
			var walk func(at int, typ Type, path string)
			walk = func(at int, typ Type, path string) {
				if typ != TypeEmbeddedDocument && typ != TypeArray {
					return
				}
				found[at] = path
				end := at + int(uint32(out[at])|uint32(out[at+1])<<8|uint32(out[at+2])<<16)
				pos := at + 4
				for key, v := range Raw(out[at:end]).All() {
					sub := key
					if path != "" {
						sub = path + "." + key
					}
					walk(pos+1+len(key)+1, v.Type, sub)
					pos += 1 + len(key) + 1 + len(v.Value)
				}
			}
			walk(len(before)+3, Type(out[len(before)]), "")
			var paths []string
			for _, at := range maps {
				path, ok := found[at]
				if !ok {
					t.Errorf("%T: no document begins at %d", c.v, at)
				}
				paths = append(paths, path)
			}
			if !reflect.DeepEqual(paths, c.paths) {
				t.Errorf("%T: maps at %q, want %q", c.v, paths, c.paths)
			}
		}
	}
	if _, _, err := (Options{}).AppendValueMaps(nil, "k", make(chan int)); err == nil {
		t.Error("no error for a channel")
	}
}
