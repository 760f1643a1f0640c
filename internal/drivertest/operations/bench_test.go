package operations

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/fakeserver"
	"allium/internal/wire"
)

// canned starts a server with one reply per command that allocates nothing by itself: a benchmark
// and a count of allocations see the client alone. Commands without a reply get an ok.
func canned(b testing.TB, replies map[string][]byte) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	hello := fakeserver.Reply(1, 0, 0, fakeserver.Hello())
	messages := map[string][]byte{"hello": hello, "isMaster": hello, "": fakeserver.Reply(1, 0, 0, fakeserver.OK())}
	for name, reply := range replies {
		messages[name] = fakeserver.Reply(1, 0, 0, reply)
	}
	fakeserver.Accept(b, l, func(c net.Conn) {
		in, out := make([]byte, 64<<10), make([]byte, 0, 64<<10)
		for {
			if _, err := io.ReadFull(c, in[:4]); err != nil {
				return
			}
			n := binary.LittleEndian.Uint32(in)
			in = slices.Grow(in[:4], int(n))[:n]
			if _, err := io.ReadFull(c, in[4:]); err != nil {
				return
			}
			name := in[wire.HeaderLen+10:] // after flags, section kind, length and type
			name = name[:bytes.IndexByte(name, 0)]
			reply, ok := messages[string(name)]
			if !ok {
				reply = messages[""]
			}
			out = append(out[:0], reply...)
			copy(out[8:12], in[4:8])
			if _, err := c.Write(out); err != nil {
				return
			}
		}
	})
	return "mongodb://" + l.Addr().String() + "/?serverMonitoringMode=poll"
}

func findReply(n int) []byte {
	start, d := bson.BeginDocument(nil)
	cursor, d := bson.BeginDocumentElement(d, "cursor")
	batch, d := bson.BeginArrayElement(d, "firstBatch")
	for i := range n {
		doc, e := bson.BeginDocument(bson.AppendIndexHeader(d, bson.TypeEmbeddedDocument, i))
		e = bson.AppendObjectID(e, "_id", bson.NilObjectID)
		e = bson.AppendString(e, "name", "Ada Lovelace")
		e = bson.AppendInt32(e, "age", 36)
		for _, f := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			e = bson.AppendInt64(e, f, 1)
		}
		d = bson.EndDocument(e, doc)
	}
	d = bson.EndDocument(d, batch)
	d = bson.AppendInt64(d, "id", 0)
	d = bson.AppendString(d, "ns", "app.users")
	d = bson.EndDocument(d, cursor)
	return bson.EndDocument(bson.AppendInt32(d, "ok", 1), start)
}

// tenFields is a document of findReply.
type tenFields struct {
	ID            bson.ObjectID `bson:"_id,omitempty"`
	Name          string        `bson:"name"`
	Age           int32         `bson:"age"`
	A, B, C, D, E int64
	F, G          int64
}

func benchClient(b testing.TB, reply map[string][]byte) *allium.Collection[tenFields] {
	client, err := allium.Open(canned(b, reply))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close(context.Background()) })
	return allium.CollectionOf[tenFields](client.Database("app"), "users")
}

func BenchmarkFindOne(b *testing.B) {
	coll := benchClient(b, map[string][]byte{"find": findReply(1)})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := coll.FindOne(b.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
			b.Fatal(err)
		}
	}
}

func insertReply() []byte {
	start, d := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendInt32(bson.AppendInt32(d, "n", 1), "ok", 1), start)
}

func BenchmarkInsertOne(b *testing.B) {
	coll := benchClient(b, map[string][]byte{"insert": insertReply()})
	doc := tenFields{Name: "Ada Lovelace", Age: 36}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := coll.InsertOne(b.Context(), doc); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkContention has many goroutines share a pool of ten connections.
func BenchmarkContention(b *testing.B) {
	client, err := allium.Open(canned(b, map[string][]byte{"find": findReply(1)}), allium.ClientOptions{MaxPoolSize: new(10)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close(context.Background()) })
	coll := allium.CollectionOf[tenFields](client.Database("app"), "users")
	b.SetParallelism(100)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := coll.FindOne(b.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkCursor(b *testing.B) {
	coll := benchClient(b, map[string][]byte{"find": findReply(1000)})
	b.ReportAllocs()
	for b.Loop() {
		cur, err := coll.Find(b.Context(), bson.D{})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, err := range cur.Seq(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 1000 {
			b.Fatal(n)
		}
	}
}
