package allium_test

import (
	"net"
	"testing"

	"allium"
	"allium/bson"
)

// replies is a server with one canned answer per command, so that a benchmark measures the client alone.
func replies(b testing.TB, reply map[string][]byte) string {
	b.Helper()
	fake := startFake(b, func(name string, _ bson.Raw, c net.Conn, id int32) { c.Write(message(id, reply[name])) })
	return fake.uri()
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

func benchClient(b *testing.B, reply map[string][]byte) *allium.Collection[tenFields] {
	client, err := allium.Open(replies(b, reply))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close(b.Context()) })
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

func BenchmarkInsertOne(b *testing.B) {
	start, d := bson.BeginDocument(nil)
	coll := benchClient(b, map[string][]byte{"insert": bson.EndDocument(bson.AppendInt32(bson.AppendInt32(d, "n", 1), "ok", 1), start)})
	doc := tenFields{Name: "Ada Lovelace", Age: 36}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := coll.InsertOne(b.Context(), doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFindThousand(b *testing.B) {
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
