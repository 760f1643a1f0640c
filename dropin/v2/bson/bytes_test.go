package bson

import (
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// TestCoreTypes: documents and arrays of package bsoncore are documents and arrays, not binaries,
// where they stand in others.
func TestCoreTypes(t *testing.T) {
	doc := bsoncore.NewDocumentBuilder().AppendInt32("a", 1).Build()
	array := bsoncore.NewArrayBuilder().AppendString("x").Build()
	type holds struct {
		Doc   bsoncore.Document
		Array bsoncore.Array
	}
	data, err := Marshal(holds{doc, array})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"doc": {"a": {"$numberInt":"1"}},"array": ["x"]}`; Raw(data).String() != want {
		t.Errorf("encoded %s, want %s", Raw(data), want)
	}
	var back holds
	if err := Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, holds{doc, array}) {
		t.Errorf("decoded %v, %v", back, err)
	}
	if _, err := Marshal(D{{Key: "d", Value: bsoncore.Document{1, 2}}}); err == nil {
		t.Error("a broken document was encoded")
	}
	var wrong struct{ Doc bsoncore.Array }
	if err := Unmarshal(data, &wrong); err == nil {
		t.Error("a document was decoded into an array")
	}
}

// seen keeps what its method was given.
type seen struct{ data []byte }

func (s *seen) UnmarshalBSON(data []byte) error {
	s.data = data
	return nil
}

// TestUnmarshalBSONOfValues: a method UnmarshalBSON is called for values of all types, with their
// bytes; for a null there are none.
func TestUnmarshalBSONOfValues(t *testing.T) {
	for _, c := range []struct {
		v    any
		want []byte
	}{
		{int32(7), []byte{7, 0, 0, 0}}, {"s", []byte{2, 0, 0, 0, 's', 0}}, {nil, nil},
		{D{}, []byte{5, 0, 0, 0, 0}}, {A{}, []byte{5, 0, 0, 0, 0}},
	} {
		data, err := Marshal(D{{Key: "f", Value: c.v}})
		if err != nil {
			t.Fatal(err)
		}
		into := struct{ F seen }{seen{[]byte("before")}}
		if err := Unmarshal(data, &into); err != nil || !reflect.DeepEqual(into.F.data, c.want) {
			t.Errorf("%v: the method was given %v, %v; want %v", c.v, into.F.data, err, c.want)
		}
	}
}

// TestInlineDuplicates: with the setting, a field that hides one which is inline is an error.
func TestInlineDuplicates(t *testing.T) {
	type inner struct{ A int }
	type outer struct {
		A     int
		Inner inner `bson:",inline"`
	}
	w := new(valueWriterTo)
	enc := NewEncoder(NewDocumentWriter(w))
	if err := enc.Encode(outer{}); err != nil {
		t.Errorf("without the setting: %v", err)
	}
	enc.ErrorOnInlineDuplicates()
	if err := enc.Encode(outer{}); err == nil || err.Error() != "struct bson.outer has duplicated key a" {
		t.Errorf("with the setting: %v", err)
	}
}

// valueWriterTo takes what is written.
type valueWriterTo struct{}

func (*valueWriterTo) Write(p []byte) (int, error) { return len(p), nil }
