package cursor

import (
	"bytes"
	"strings"
	"testing"

	"allium/bson"
)

// fragment makes a fragment of an event with a field of this size.
func fragment(t *testing.T, n, of int, key string, size int) bson.Raw {
	t.Helper()
	start, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "_id", "token")
	doc = bson.AppendBinary(doc, key, 0, make([]byte, size))
	start2, part := bson.BeginDocument(nil)
	part = bson.EndDocument(bson.AppendInt64(bson.AppendInt64(part, "fragment", int64(n)), "of", int64(of)), start2)
	return bson.EndDocument(bson.AppendDocument(doc, "splitEvent", part), start)
}

// TestSplitEventIsBounded: an event of the largest parts is joined; fragments without end are an
// error before they have taken much more memory than that.
func TestSplitEventIsBounded(t *testing.T) {
	const size = 16<<20 - 1000
	parts := []string{"fullDocument", "fullDocumentBeforeChange", "updateDescription", "more"}
	var e splitEvent
	for i, key := range parts {
		whole, err := e.join(fragment(t, i+1, len(parts), key, size))
		if err != nil {
			t.Fatal(err)
		}
		if last := i == len(parts)-1; (whole != nil) != last || last && len(whole) < len(parts)*size {
			t.Fatalf("after part %d: %d bytes", i, len(whole))
		}
	}
	e = splitEvent{}
	part := fragment(t, 1, 1<<20, "a", size)
	at := bytes.Index(part, []byte("fragment\x00")) + len("fragment\x00")
	for n := 1; ; n++ {
		part[at] = byte(n)
		_, err := e.join(part)
		if err != nil {
			if !strings.Contains(err.Error(), "128 MiB") || len(e.doc) != 0 {
				t.Errorf("%v, %d bytes kept", err, len(e.doc))
			}
			break
		}
		if len(e.doc) > maxSplitEvent {
			t.Fatalf("%d bytes after %d fragments", len(e.doc), n)
		}
	}
}
