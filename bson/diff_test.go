package bson_test

import (
	"errors"
	"strings"
	"testing"

	"allium/bson"
)

func doc(kv ...any) bson.D {
	d := bson.D{}
	for i := 0; i < len(kv); i += 2 {
		d = append(d, bson.E{Key: kv[i].(string), Value: kv[i+1]})
	}
	return d
}

func TestDiff(t *testing.T) {
	elements, anyOrder := bson.DiffOptions{ArrayElements: true}, bson.DiffOptions{AnyOrder: true}
	type inner struct {
		A *int `bson:",omitempty"`
		B *int `bson:",omitempty"`
	}
	type model struct {
		ID      int      `bson:"_id"`
		Name    string   `bson:",omitempty"`
		Primary bool     `bson:",omitempty"`
		Tags    []string `bson:",omitempty"`
		In      inner
		M       map[string]int `bson:",omitempty"`
	}
	for _, c := range []struct {
		name          string
		before, after any
		opts          []bson.DiffOptions
		want          string
	}{
		{"nothing", doc("a", 1), doc("a", 1), nil, `{}`},
		{"set, new, gone", doc("a", 1, "b", 2), doc("a", 3, "c", 4), nil, `{"$set":{"a":3,"c":4},"$unset":{"b":""}}`},
		{"type alone", doc("a", int32(1)), doc("a", int64(1)), nil, `{"$set":{"a":1}}`},
		{"null is not missing", doc("a", nil), doc(), nil, `{"$unset":{"a":""}}`},
		{"missing is not null", doc(), doc("a", nil), nil, `{"$set":{"a":null}}`},
		{"inside", doc("a", doc("b", 1, "c", 2)), doc("a", doc("b", 1, "c", 3)), nil, `{"$set":{"a.c":3}}`},
		{"the last inside", doc("a", doc("b", 1)), doc("a", doc()), nil, `{"$unset":{"a.b":""}}`},
		{"document to number", doc("a", doc("b", 1)), doc("a", 1), nil, `{"$set":{"a":1}}`},
		{"document to array", doc("a", doc("0", 1)), doc("a", bson.A{2}), nil, `{"$set":{"a":[2]}}`},
		{"number as a key", doc("a", doc("0", 1)), doc("a", doc("0", 2)), nil, `{"$set":{"a.0":2}}`},
		{"number as a key at the top", doc("0", 1), doc("0", 2), nil, `{"$set":{"0":2}}`},
		{"dot inside", doc("a", doc("b.c", 1, "d", 1)), doc("a", doc("b.c", 2, "d", 1)), nil, `{"$set":{"a":{"b.c":2,"d":1}}}`},
		{"dot that stays", doc("a", doc("b.c", 1, "d", 1)), doc("a", doc("b.c", 1, "d", 2)), nil, `{"$set":{"a.d":2}}`},
		{"dollar inside", doc("a", doc("$b", 1)), doc("a", doc("$b", 2)), nil, `{"$set":{"a":{"$b":2}}}`},
		{"dollar that goes", doc("a", doc("$b", 1, "c", 1)), doc("a", doc("c", 1)), nil, `{"$set":{"a":{"c":1}}}`},
		{"empty key inside", doc("a", doc("", 1)), doc("a", doc("", 2)), nil, `{"$set":{"a":{"":2}}}`},
		{"dot deep inside", doc("a", doc("b", doc("c.d", 1), "x", 1)), doc("a", doc("b", doc("c.d", 2), "x", 2)), nil, `{"$set":{"a.b":{"c.d":2},"a.x":2}}`},
		{"dot that stays at the top", doc("a.b", 1, "c", 1), doc("a.b", 1, "c", 2), nil, `{"$set":{"c":2}}`},
		{"key twice inside", doc("a", doc("b", 1, "b", 2)), doc("a", doc("b", 1, "b", 3)), nil, `{"$set":{"a":{"b":1,"b":3}}}`},
		{"order at the top", doc("a", 1, "b", 2), doc("b", 2, "a", 1), nil, `{}`},
		{"order inside", doc("a", doc("b", 1, "c", 2)), doc("a", doc("c", 2, "b", 1)), nil, `{"$set":{"a":{"c":2,"b":1}}}`},
		{"order inside does not matter", doc("a", doc("b", 1, "c", 2)), doc("a", doc("c", 2, "b", 3)), []bson.DiffOptions{anyOrder}, `{"$set":{"a.b":3}}`},
		{"new key at the end", doc("a", doc("z", 1)), doc("a", doc("z", 1, "b", 2, "c", 3)), nil, `{"$set":{"a.b":2,"a.c":3}}`},
		{"new key at the front", doc("a", doc("z", 1)), doc("a", doc("b", 2, "z", 1)), nil, `{"$set":{"a":{"b":2,"z":1}}}`},
		{"new keys not in order", doc("a", doc("z", 1)), doc("a", doc("z", 1, "c", 3, "b", 2)), nil, `{"$set":{"a":{"z":1,"c":3,"b":2}}}`},
		{"array as a whole", doc("a", bson.A{1, 2}), doc("a", bson.A{1, 3}), nil, `{"$set":{"a":[1,3]}}`},
		{"element", doc("a", bson.A{1, 2}), doc("a", bson.A{1, 3}), []bson.DiffOptions{elements}, `{"$set":{"a.1":3}}`},
		{"in an element", doc("a", bson.A{doc("b", 1, "c", 1)}), doc("a", bson.A{doc("b", 2, "c", 1)}), []bson.DiffOptions{elements}, `{"$set":{"a.0.b":2}}`},
		{"array in an array", doc("a", bson.A{bson.A{1}}), doc("a", bson.A{bson.A{2}}), []bson.DiffOptions{elements}, `{"$set":{"a.0.0":2}}`},
		{"longer array", doc("a", bson.A{1}), doc("a", bson.A{2, 3}), []bson.DiffOptions{elements}, `{"$set":{"a.0":2,"a.1":3}}`},
		{"shorter array", doc("a", bson.A{1, 2, 3}), doc("a", bson.A{1}), []bson.DiffOptions{elements}, `{"$push":{"a":{"$each":[],"$slice":1}}}`},
		{"shorter and other array", doc("a", bson.A{1, 2, 3}), doc("a", bson.A{2}), []bson.DiffOptions{elements}, `{"$set":{"a":[2]}}`},
		{"shorter array in an element that is set", doc("a", bson.A{bson.A{1, 2}, 5, 6}), doc("a", bson.A{bson.A{1}, 7}), []bson.DiffOptions{elements}, `{"$set":{"a":[[1],7]}}`},
		{"empty array", doc("a", bson.A{1}), doc("a", bson.A{}), []bson.DiffOptions{elements}, `{"$set":{"a":[]}}`},
		{"structs", model{1, "x", true, []string{"a"}, inner{A: new(1)}, nil}, model{ID: 1}, nil, `{"$unset":{"name":"","primary":"","tags":"","in.a":""}}`},
		{"struct to map", model{ID: 1, Name: "x"}, bson.M{"_id": 1, "name": "y", "in": bson.M{}}, nil, `{"$set":{"name":"y"}}`},
		{"maps have no order", bson.M{"a": bson.M{"x": 1, "y": 2, "z": 3}}, bson.M{"a": bson.M{"z": 3, "y": 2, "x": 1}}, nil, `{}`},
		{"maps in an array", bson.M{"a": bson.A{bson.M{"x": 1, "y": 2, "z": 3}}}, bson.M{"a": bson.A{bson.M{"z": 3, "y": 2, "x": 1}}}, nil, `{}`},
		{"map gets a key", model{ID: 1, M: map[string]int{"c": 1, "d": 2}}, model{ID: 1, M: map[string]int{"a": 0, "c": 1, "d": 2}}, nil, `{"$set":{"m.a":0}}`},
	} {
		for range 3 { // maps
			got, err := bson.Diff(c.before, c.after, c.opts...)
			if err != nil || got.String() != c.want {
				t.Errorf("%s: %v, %v, want %s", c.name, got, err, c.want)
			}
		}
	}
}

func TestDiffRefuses(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after any
		noPath        bool
		want          string
	}{
		{"id", doc("_id", 1), doc("_id", 2), false, "the _id differs"},
		{"no id", doc("_id", 1), doc(), false, "the _id differs"},
		{"dot at the top", doc("a.b", 1), doc("a.b", 2), true, `key "a.b" differs`},
		{"dollar at the top", doc(), doc("$a", 2), true, `key "$a" differs`},
		{"dollar that goes", doc("$a", 1), doc(), true, `key "$a" differs`},
		{"key twice", doc("a", 1, "a", 2), doc("a", 1), true, `key "a" differs`},
		{"no document", 5, doc(), false, "not a document"},
		{"not to be encoded", doc(), doc("a", make(chan int)), false, "encode"},
	} {
		update, err := bson.Diff(c.before, c.after)
		if err == nil || errors.Is(err, bson.ErrNoPath) != c.noPath || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %q", c.name, update, err, c.want)
		}
	}
}

// TestDiffSharesNothing: the update stays as it is when the documents change.
func TestDiffSharesNothing(t *testing.T) {
	after, err := bson.Marshal(doc("a", "text"))
	if err != nil {
		t.Fatal(err)
	}
	update, err := bson.Diff(doc(), bson.Raw(after))
	if err != nil {
		t.Fatal(err)
	}
	clear(after)
	if update.String() != `{"$set":{"a":"text"}}` {
		t.Errorf("%v", update)
	}
}
