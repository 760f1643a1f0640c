package exec

import (
	"bytes"
	"slices"
	"strconv"
	"testing"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/wire"
)

// TestWhole: a message is its head and its sequences in one piece, however much the head has grown
// beyond the room that was left for it, and again with another head.
func TestWhole(t *testing.T) {
	const room = 8
	for _, sequences := range []int{0, 1, 5, 100} {
		tail := bytes.Repeat([]byte{2}, sequences)
		b := buffer{tail: append(make([]byte, room), tail...), room: room}
		for _, size := range []int{1, room - 1, room, room + 1, room + 2, room, 3 * room, 3*room + 1, 1} {
			head := bytes.Repeat([]byte{1}, size)
			if got, want := b.whole(head), slices.Concat(head, tail); !bytes.Equal(got, want) {
				t.Errorf("a head of %d bytes and sequences of %d: %v", size, sequences, got)
			}
			if got := b.sequences(); !bytes.Equal(got, tail) {
				t.Errorf("after a head of %d bytes the sequences are %v", size, got)
			}
		}
	}
}

// TestExtra: the fields that a program adds to a command stand behind its own, before what only
// some servers see.
func TestExtra(t *testing.T) {
	extra, err := command.NewExtra(nil, bson.D{{Key: "b", Value: 1}, {Key: "a", Value: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]func(raw bool) command.Command{
		"find":   func(raw bool) command.Command { return &command.Find{Collection: "c", Filter: bson.D{}, RawData: raw} },
		"drop":   func(bool) command.Command { return &command.Named{Command: "drop", Target: "c"} },
		"delete": func(raw bool) command.Command { return &command.Delete{Collection: "c", RawData: raw} },
	} {
		for _, raw := range []bool{false, true} {
			r := &run{x: &Executor{}, op: &Op{Command: of(raw)}, buf: &buffer{}}
			if err := r.encodeFor(&r.buf.target); err != nil {
				t.Fatal(err)
			}
			own, optional := slices.Clone(r.buf.msg[bodyAt+4:]), slices.Clone(r.buf.optional)
			r.op.Extra = extra
			if err := r.encodeFor(&r.buf.target); err != nil {
				t.Fatal(err)
			}
			if want := extra.Append(own); !bytes.Equal(r.buf.msg[bodyAt+4:], want) || r.own != len(r.buf.msg) || !bytes.Equal(r.buf.optional, optional) {
				t.Errorf("%s, raw %v: %q, and %q; want %q", name, raw, r.buf.msg[bodyAt+4:], r.buf.optional, want)
			}
		}
	}
}

// TestWholeCommand: listeners see the sequences of a message as arrays, whose keys count
// (specification: Command Logging and Monitoring, "Document Sequences").
func TestWholeCommand(t *testing.T) {
	for n := range 12 {
		m := wire.Msg{Body: bson.Raw{5, 0, 0, 0, 0}}
		if n > 0 {
			m.Sequences = []wire.Sequence{{ID: "a"}, {ID: "b"}}
		}
		for i := range n {
			at, doc := bson.BeginDocument(nil)
			doc = bson.EndDocument(bson.AppendInt32(doc, "_id", int32(i)), at)
			for s := range m.Sequences {
				m.Sequences[s].Docs = append(m.Sequences[s].Docs, doc...)
			}
		}
		doc := whole(m)
		if err := doc.Validate(); err != nil {
			t.Fatalf("%d documents: %v", n, err)
		}
		for _, s := range m.Sequences {
			count := 0
			for key, v := range bson.Raw(doc.Lookup(s.ID).Value).All() {
				sub, _ := v.Document()
				if id, _ := sub.Lookup("_id").Int32(); key != strconv.Itoa(count) || int(id) != count {
					t.Errorf("%d documents: element %d of %s is %s: %v", n, count, s.ID, key, v)
				}
				count++
			}
			if count != n {
				t.Errorf("%s has %d documents of %d", s.ID, count, n)
			}
		}
	}
}
