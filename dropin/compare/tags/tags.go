// Package tags compares what the tags of a struct's fields mean. It makes a struct for each
// combination of a tag and a type, and tells what it is encoded as and what a document does to it.
package tags

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

type inner struct{ X, G int64 }

// parts are what stands before, between and behind the commas of a tag.
var parts = []string{"", "x", "-", "inline", "omitempty", "minsize", "truncate", " inline", "Inline", "other"}

// values are of the types that options are for, and of some that they are not for.
var values = []any{
	int64(1), 2.5, "text", inner{3, 4}, &inner{5, 6}, map[string]int64{"m": 7}, map[string]inner{"n": {8, 9}},
	[]int64{10},
}

// Probe tells what each combination does.
func Probe(encode func(v any) ([]byte, error), decode func(doc []byte, v any) error,
	say func(what string, values ...any)) {
	document := map[string]any{
		"x": 1.5, "g": 2, "f": 3.5, "-": 4, " inline": 5, "Inline": 6, "other": 7,
		"inline": map[string]any{"x": 8}, "omitempty": 9, "minsize": 10.5, "truncate": 11.5, "m": 12,
	}
	for _, tag := range texts() {
		for _, v := range values {
			t := reflect.StructOf([]reflect.StructField{
				{Name: "F", Type: reflect.TypeOf(v), Tag: tag},
				{Name: "G", Type: reflect.TypeFor[int64](), Tag: `bson:"last"`},
			})
			what := fmt.Sprintf("%s of %T", tag, v)
			full := reflect.New(t)
			full.Elem().Field(0).Set(reflect.ValueOf(v))
			for _, p := range []reflect.Value{full, reflect.New(t)} {
				data, err := encode(p.Interface())
				say(what+", encoded", fmt.Sprintf("%x", data), err != nil)
			}
			var decoded []any
			for _, key := range slices.Sorted(maps.Keys(document)) {
				p := reflect.New(t)
				one, err := encode(map[string]any{key: document[key]})
				if err == nil {
					err = decode(one, p.Interface())
				}
				if err != nil {
					decoded = append(decoded, key+": an error")
				} else if text, _ := json.Marshal(p.Interface()); string(text) != string(zero(t)) {
					decoded = append(decoded, key+": "+string(text))
				}
			}
			say(what+", decoded", decoded...)
		}
	}
}

// zero returns what a struct of a type is without a value.
func zero(t reflect.Type) []byte {
	text, _ := json.Marshal(reflect.New(t).Interface())
	return text
}

// texts returns the tags: of one and two parts, of the whole tag and of the one named bson.
func texts() (all []reflect.StructTag) {
	add := func(text string) {
		all = append(all, reflect.StructTag(`bson:"`+text+`"`), reflect.StructTag(text))
	}
	for _, first := range parts {
		add(first)
		for _, second := range parts {
			add(first + "," + second)
		}
	}
	return append(all, `bson:"inline,omitempty,minsize"`, `bson:"omitempty,minsize,inline"`, `json:"inline"`)
}
