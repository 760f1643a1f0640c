package bench

import (
	"reflect"
	"testing"

	"allium/bench/internal/nullserver"
	"allium/bson"
)

// TestValues: the values of a floor are those that the driver decodes.
func TestValues(t *testing.T) {
	doc := bson.D{
		{Key: "_id", Value: nullserver.FileID}, {Key: "s", Value: "text"}, {Key: "empty", Value: ""}, {Key: "n", Value: int32(-5)}, {Key: "l", Value: int64(-1) << 40},
		{Key: "d", Value: 2.5}, {Key: "b", Value: true}, {Key: "null", Value: nil}, {Key: "when", Value: bson.DateTime(1_700_000_000_000)},
		{Key: "inner", Value: bson.D{{Key: "list", Value: bson.A{"a", int32(1), bson.D{}, bson.A{}}}}},
	}
	reply := func(first any) bson.Raw {
		data, err := bson.Marshal(bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: bson.A{nullserver.NewSample(), first}}, {Key: "id", Value: int64(0)}}}, {Key: "ok", Value: 1.0}})
		if err != nil {
			t.Fatal(err)
		}
		return append(make(bson.Raw, 0, 2*len(data)), data...)
	}
	documentValues(reply(doc))
	if !reflect.DeepEqual(kept, doc) {
		t.Errorf("got %v, want %v", kept, doc)
	}
	sampleValues(reply(nullserver.NewSample()))
	want := newSample[bson.ObjectID]()
	want.ID = nullserver.FileID
	if got := kept.(*ourSample); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}
