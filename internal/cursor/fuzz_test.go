package cursor

import (
	"bytes"
	"testing"

	"allium/bson"
)

// FuzzSplit cuts any document into fragments, as a server splits a large event: joined again they
// are the document. Any other documents between them are an error, or an event of their own.
func FuzzSplit(f *testing.F) {
	event, err := bson.Marshal(bson.D{{Key: "operationType", Value: "insert"}, {Key: "fullDocument", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "ns", Value: bson.D{{Key: "db", Value: "d"}}}})
	if err != nil {
		f.Fatal(err)
	}
	fragment, err := bson.Marshal(bson.D{{Key: "_id", Value: bson.D{{Key: "_data", Value: "8"}}}, {Key: "splitEvent", Value: bson.D{{Key: "fragment", Value: 1}, {Key: "of", Value: 2}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(event), []byte(fragment), byte(1))
	f.Add([]byte(fragment), []byte(event), byte(200))
	f.Add([]byte{}, []byte{5, 0, 0, 0, 0}, byte(0))
	f.Fuzz(func(t *testing.T, doc, odd []byte, cut byte) {
		var e splitEvent
		for range 3 { // what no server sends
			whole, err := e.join(odd)
			if err == nil && whole == nil && e.next == 0 || e.next > 3 {
				t.Fatalf("neither an event nor a fragment: %d", e.next)
			}
		}
		whole := bson.Raw(doc)
		if whole.Validate() != nil || !whole.Lookup("_id").IsZero() || !whole.Lookup("splitEvent").IsZero() {
			return
		}
		// The elements before the cut are the first fragment, the others the second.
		var parts [2][]byte
		n := 0
		for key, v := range whole.All() {
			at := 0
			if n >= int(cut) {
				at = 1
			}
			parts[at] = bson.AppendRawValue(parts[at], key, v)
			n++
		}
		e = splitEvent{}
		for i, elements := range parts {
			start, part := bson.BeginDocument(nil)
			part = append(part, elements...)
			at, part := bson.BeginDocumentElement(part, "splitEvent")
			part = bson.AppendInt32(bson.AppendInt32(part, "fragment", int32(i+1)), "of", 2)
			part = bson.EndDocument(bson.EndDocument(part, at), start)
			got, err := e.join(part)
			switch {
			case err != nil:
				t.Fatal(err)
			case i == 0 && got != nil:
				t.Fatal("an event after its first fragment")
			case i == 1 && !bytes.Equal(got, whole):
				t.Fatalf("joined %v, want %v", got, whole)
			}
		}
	})
}
