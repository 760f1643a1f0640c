package bson_test

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"allium/bson"
)

// TestDecodedValuesOwnTheirMemory writes over the bytes that values were decoded from, as the
// driver does with the buffers of replies.
func TestDecodedValuesOwnTheirMemory(t *testing.T) {
	type inner struct {
		R bson.Raw
		V bson.RawValue
		B []byte
		X bson.Binary
		S string
		A any
		Y any
		L []bson.Raw
	}
	src := bson.D{{Key: "r", Value: bson.D{{Key: "a", Value: "one"}}}, {Key: "v", Value: "two"}, {Key: "b", Value: []byte("three")}, {Key: "x", Value: bson.Binary{Subtype: 5, Data: []byte("four")}},
		{Key: "s", Value: "five"}, {Key: "a", Value: bson.D{{Key: "k", Value: "six"}}}, {Key: "y", Value: bson.Binary{Data: []byte("seven")}}, {Key: "l", Value: bson.A{bson.D{{Key: "q", Value: "eight"}}}}}
	data, err := bson.Marshal(src)
	if err != nil {
		t.Fatal(err)
	}
	var v inner
	var d bson.D
	if err := bson.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if err := bson.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	v1, err1 := bson.Marshal(v)
	d1, err2 := bson.Marshal(d)
	for i := range data {
		data[i] = 0xEE
	}
	v2, err3 := bson.Marshal(v)
	d2, err4 := bson.Marshal(d)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || string(v1) != string(v2) || string(d1) != string(d2) {
		t.Fatal("aliased", err1, err2, err3, err4)
	}
}

// TestPartsOfDecodedValuesSurvive keeps one small part of each of many documents, lets the garbage
// collector take the rest, and fills the memory that becomes free. The decoder puts many values
// into one allocation: each must keep it alive.
func TestPartsOfDecodedValuesSurvive(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	type leaf struct {
		S string
		P *int64
		Q *string
	}
	type doc struct {
		ID    bson.ObjectID
		Leafs []*leaf
		M     map[string]any
		Any   any
	}
	text := func(i int) string { return fmt.Sprintf("text number %d", i) }
	const n = 3000
	var strs []*string
	var numbers []*int64
	var anys []any
	for i := range n {
		data, err := bson.Marshal(bson.D{
			{Key: "id", Value: bson.NewObjectID()}, {Key: "m", Value: bson.M{"k": bson.A{text(i), float64(i), int64(i) + 1000}}},
			{Key: "leafs", Value: bson.A{bson.D{{Key: "s", Value: "x"}}, bson.D{{Key: "s", Value: text(i)}, {Key: "p", Value: int64(i)}, {Key: "q", Value: text(i)}}}},
			{Key: "any", Value: bson.D{{Key: "a", Value: bson.A{bson.D{{Key: "b", Value: text(i)}}, int64(i) + 1000}}, {Key: "pad", Value: strings.Repeat("pad", i%50)}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var d doc
		if err := bson.Unmarshal(data, &d); err != nil {
			t.Fatal(err)
		}
		clear(data)
		inner, _ := d.Any.(bson.D).Lookup("a", "0")
		number, _ := d.Any.(bson.D).Lookup("a", "1")
		strs, numbers = append(strs, &d.Leafs[1].S, d.Leafs[1].Q), append(numbers, d.Leafs[1].P)
		anys = append(anys, d.M["k"].(bson.A)[i%3], inner, number)
		if i%500 == 0 {
			runtime.GC()
		}
	}
	runtime.GC()
	for i := range n {
		want := []any{text(i), float64(i), int64(i) + 1000}[i%3]
		if *strs[2*i] != text(i) || *strs[2*i+1] != text(i) || *numbers[i] != int64(i) || anys[3*i] != want ||
			!reflect.DeepEqual(anys[3*i+1], any(bson.D{{Key: "b", Value: text(i)}})) || anys[3*i+2] != any(int64(i)+1000) {
			t.Fatalf("document %d: got %q %q %d %v %v %v", i, *strs[2*i], *strs[2*i+1], *numbers[i], anys[3*i], anys[3*i+1], anys[3*i+2])
		}
	}
}
