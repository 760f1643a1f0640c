package bsondoc

import (
	"bytes"
	"testing"

	"allium/bson"
)

// Append makes of names and values what package bson appends one by one, and takes nothing else.
func TestAppend(t *testing.T) {
	id, doc := bson.NewObjectID(), Single("x", Int32Value(1))
	at, want := bson.BeginDocument(nil)
	want = bson.AppendNull(want, "null")
	want = bson.AppendString(want, "string", "s")
	want = bson.AppendBool(want, "bool", true)
	want = bson.AppendInt32(want, "int", -1)
	want = bson.AppendInt64(want, "long", 1<<40)
	want = bson.AppendDouble(want, "double", 2)
	want = bson.AppendDocument(want, "document", doc)
	want = bson.AppendDateTime(want, "date", 3)
	want = bson.AppendTimestamp(want, "timestamp", bson.Timestamp{T: 4, I: 5})
	want = bson.AppendObjectID(want, "id", id)
	want = AppendStrings(want, "strings", []string{"a", "b"})
	want = bson.AppendRawValue(want, "value", ArrayValue(DateValue(6), TimestampValue(bson.Timestamp{T: 7})))
	want = bson.EndDocument(want, at)
	got := Of("null", nil, "string", "s", "bool", true, "int", int32(-1), "long", int64(1<<40), "double", 2.0,
		"document", doc, "date", bson.DateTime(3), "timestamp", bson.Timestamp{T: 4, I: 5}, "id", id,
		"strings", []string{"a", "b"}, "value", ArrayValue(DateValue(6), TimestampValue(bson.Timestamp{T: 7})))
	if !bytes.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, bson.Raw(want))
	}
	defer func() {
		if recover() == nil {
			t.Error("an int, which is neither of BSON's integers, was taken")
		}
	}()
	Of("n", 1)
}

// Items takes apart what ArrayValue puts together.
func TestItems(t *testing.T) {
	list := []bson.RawValue{Int64Value(1), StringValue("a"), BoolValue(true), DoubleValue(0.5), DocumentValue(Of())}
	got := Items(ArrayValue(list...))
	if len(got) != len(list) {
		t.Fatalf("%d items", len(got))
	}
	for i := range list {
		if !got[i].Equal(list[i]) {
			t.Errorf("item %d is %v", i, got[i])
		}
	}
}
