package wire

import (
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"allium/bson"
)

func emptyDoc() bson.Raw {
	start, doc := bson.BeginDocument(nil)
	return bson.EndDocument(doc, start)
}

func withSequence(id string, docs ...bson.Raw) []byte {
	msg := append(AppendMsg(nil, 7, 3, 0), emptyDoc()...)
	at, msg := BeginSequence(msg, id)
	for _, doc := range docs {
		msg = append(msg, doc...)
	}
	return FinishMessage(EndSequence(msg, at), 0)
}

func TestParseMsg(t *testing.T) {
	m, err := ParseMsg(withSequence("documents", emptyDoc(), emptyDoc()))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Body) != 5 || len(m.Sequences) != 1 || m.Sequences[0].ID != "documents" || len(m.Sequences[0].Docs) != 10 {
		t.Errorf("%+v", m)
	}
	sum := AppendChecksum(append(AppendMsg(nil, 7, 3, ChecksumPresent), emptyDoc()...), 0)
	if m, err := ParseMsg(sum); err != nil || m.Flags != ChecksumPresent {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestParseMsgErrors(t *testing.T) {
	edit := func(msg []byte, f func([]byte)) []byte { f(msg); return msg }
	plain := func() []byte { return FinishMessage(append(AppendMsg(nil, 7, 3, 0), emptyDoc()...), 0) }
	tests := []struct {
		name string
		msg  []byte
		want string
	}{
		{"empty", nil, "too short"},
		{"header only", plain()[:HeaderLen], "too short"},
		{"unknown required flag", edit(plain(), func(b []byte) { b[HeaderLen] |= 1 << 3 }), "unknown required flag"},
		{"no body", plain()[:HeaderLen+4], "no body"},
		{"two bodies", append(append(plain(), 0), emptyDoc()...), "two bodies"},
		{"unknown kind", append(plain(), 2), "unknown kind 2"},
		{"body cut", plain()[:HeaderLen+4+3], "body"},
		{"bad checksum", edit(plain(), func(b []byte) { b[HeaderLen] |= 1 }), "checksum"},
		{"too short for a checksum", edit(plain()[:HeaderLen+6], func(b []byte) { b[HeaderLen] |= 1 }), "too short for its checksum"},
		{"sequence cut", append(plain(), 1, 9, 0), "ends early"},
		{"sequence length over the message", append(plain(), 1, 99, 0, 0, 0, 'a', 0), "length 99"},
		{"sequence length negative", append(plain(), 1, 0xff, 0xff, 0xff, 0xff, 'a', 0), "length -1"},
		{"sequence without identifier", append(plain(), 1, 6, 0, 0, 0, 'a', 'b'), "no identifier"},
		{"sequence with half a document", append(plain(), 1, 9, 0, 0, 0, 'a', 0, 5, 0, 0), `sequence "a"`},
		{"sequence twice", append(withSequence("a"), withSequence("a")[HeaderLen+4+1+5:]...), `two document sequences "a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseMsg(tt.msg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// Empty sections cost a byte each of the sender's: their number is bounded, and a reply has none.
func TestManySequences(t *testing.T) {
	msg := append(AppendMsg(nil, 7, 3, 0), emptyDoc()...)
	var at int
	for i := range maxSequences + 1 {
		if i == maxSequences {
			if m, err := ParseMsg(FinishMessage(msg, 0)); err != nil || len(m.Sequences) != maxSequences {
				t.Errorf("%d sequences: %v", len(m.Sequences), err)
			}
		}
		at, msg = BeginSequence(msg, strconv.Itoa(i))
		msg = EndSequence(msg, at)
	}
	if _, err := ParseMsg(FinishMessage(msg, 0)); err == nil || !strings.Contains(err.Error(), "more than 16") {
		t.Errorf("too many: %v", err)
	}
	if _, err := ParseReply(msg); err == nil || !strings.Contains(err.Error(), "is a reply") {
		t.Errorf("reply: %v", err)
	}
}

func TestParseHeader(t *testing.T) {
	b := FinishMessage(AppendHeader(nil, 1, 2, OpMsg), 0)
	if h, err := ParseHeader(b, 100); err != nil || h != (Header{Length: 16, RequestID: 1, ResponseTo: 2, OpCode: OpMsg}) {
		t.Errorf("%+v, %v", h, err)
	}
	for length, want := range map[int32]string{-1: "shorter", 15: "shorter", 101: "over the limit"} {
		binary.LittleEndian.PutUint32(b, uint32(length))
		if _, err := ParseHeader(b, 100); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("length %d: %v, want %q", length, err, want)
		}
	}
	if _, err := ParseHeader(b[:15], 100); err == nil {
		t.Error("15 bytes: no error")
	}
}

func FuzzParseMsg(f *testing.F) {
	f.Add(withSequence("documents", emptyDoc()))
	f.Add(AppendChecksum(append(AppendMsg(nil, 7, 3, ChecksumPresent), emptyDoc()...), 0))
	f.Add(withSequence("a")[:30])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, msg []byte) {
		m, err := ParseMsg(msg)
		if err != nil {
			return
		}
		if m.Body == nil {
			t.Fatal("no body and no error")
		}
		for range m.Body.All() {
		}
		for _, s := range m.Sequences {
			for docs := s.Docs; len(docs) > 0; {
				var err error
				if _, docs, err = bson.ReadDocument(docs); err != nil {
					t.Fatalf("sequence %q: %v", s.ID, err)
				}
			}
		}
	})
}
