package bson_test

import (
	"testing"

	"allium/bson"
)

// TestDecodedValuesOwnTheirMemory writes over the bytes that values were decoded from, as the driver does with the buffers of
// replies.
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
