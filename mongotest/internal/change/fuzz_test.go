package change

import (
	"strings"
	"testing"

	"allium/bson"
)

// FuzzToken reads any document as a resume token of a client's, and writes tokens of any parts:
// what was written is read as the same place, and tokens are ordered as their text is.
func FuzzToken(f *testing.F) {
	key, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}})
	if err != nil {
		f.Fatal(err)
	}
	event := &Token{Ts: bson.Timestamp{T: 5, I: 1}, Event: true, Index: 3, Fragment: 2, Key: key}
	mark := &Token{Ts: bson.Timestamp{T: 1 << 31}}
	f.Add([]byte(event.Document()), uint32(5), uint32(1), 0, byte(0))
	f.Add([]byte(mark.Document()), uint32(0), uint32(7), 70000, byte(7))
	f.Add([]byte{}, uint32(0), uint32(0), 1, byte(2))
	f.Fuzz(func(t *testing.T, data []byte, ts, inc uint32, index int, flags byte) {
		if doc := bson.Raw(data); doc.Validate() == nil {
			read, err := ParseToken(doc)
			_ = TokenText(doc)
			if err == nil && read.Event {
				again, err := ParseToken(read.Document())
				if err != nil || again.Ts != read.Ts || again.Index != read.Index || again.Fragment != read.Fragment || again.Uuid != read.Uuid {
					t.Fatalf("%+v becomes %+v, %v", read, again, err)
				}
			}
		}
		tok := Token{Ts: bson.Timestamp{T: ts, I: inc}, Event: flags&1 != 0}
		if tok.Event {
			tok.Index, tok.Invalidate, tok.Uuid = index&0xFFFFFF, flags&2 != 0, [16]byte{flags}
			if flags&4 != 0 {
				tok.Fragment = 1 + index&0xFFFF
			}
			if flags&8 != 0 && bson.Raw(data).Validate() == nil {
				tok.Key = bson.Raw(data)
			}
		}
		doc := tok.Document()
		if err := doc.Validate(); err != nil {
			t.Fatalf("%+v is written as no BSON: %v", tok, err)
		}
		read, err := ParseToken(doc)
		read.Key = tok.Key // which is not read
		if err != nil || read.Ts != tok.Ts || read.Event != tok.Event || read.Index != tok.Index || read.Invalidate != tok.Invalidate || read.Uuid != tok.Uuid || read.Fragment != tok.Fragment {
			t.Fatalf("%+v is read as %+v, %v", tok, read, err)
		}
		later := tok
		later.Ts.I++
		if inc+1 != 0 && strings.Compare(text(doc), text(later.Document())) >= 0 {
			t.Fatalf("%v is not before %v", doc, later.Document())
		}
		if tok.Before(tok.Ts, tok.Index, tok.Invalidate) != (!tok.Event || tok.Fragment > 0 && !tok.Invalidate) {
			t.Fatalf("%+v is on the wrong side of its own event", tok)
		}
	})
}

func text(doc bson.Raw) string {
	s, _ := doc.Lookup("_data").StringValue()
	return s
}
