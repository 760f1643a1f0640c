//go:build unix

package mongotest_test

import (
	"io"
	"net"
	"syscall"
	"testing"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// benchmarkCommand sends a command over and over on one connection and reports the CPU time of both ends together.
func benchmarkCommand(b *testing.B, opts []mongotest.Option, next func(i int32) bson.Raw) {
	d, err := mongotest.Open(opts...)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Stop()
	c, err := net.Dial("tcp", d.Hosts()[0])
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 64<<10)
	var msg []byte
	send := func(i int32) {
		msg = wire.AppendMsg(msg[:0], i, 0, 0)
		msg = wire.FinishMessage(append(msg, next(i)...), 0)
		if _, err := c.Write(msg); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf[:4]); err != nil {
			b.Fatal(err)
		}
		n := int(buf[0]) | int(buf[1])<<8 | int(buf[2])<<16
		if _, err := io.ReadFull(c, buf[4:n]); err != nil {
			b.Fatal(err)
		}
	}
	send(0)
	var before, after syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	i := int32(0)
	b.ReportAllocs()
	for b.Loop() {
		i++
		send(i)
	}
	syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	user := (after.Utime.Nano() - before.Utime.Nano()) / int64(i)
	sys := (after.Stime.Nano() - before.Stime.Nano()) / int64(i)
	b.ReportMetric(float64(user), "user-ns/op")
	b.ReportMetric(float64(sys), "sys-ns/op")
}

func insertCommand(i int32) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "insert", "c")
	list, doc := bson.BeginArrayElement(doc, "documents")
	one, doc := bson.BeginDocument(bson.AppendIndexHeader(doc, bson.TypeEmbeddedDocument, 0))
	doc = bson.AppendInt32(doc, "_id", i)
	doc = bson.AppendString(doc, "name", "a name of some length")
	doc = bson.EndDocument(bson.EndDocument(doc, one), list)
	doc = bson.AppendString(doc, "$db", "t")
	return bson.EndDocument(doc, at)
}

func findCommand(i int32) bson.Raw {
	if i == 0 {
		return insertCommand(1)
	}
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "find", "c")
	f, doc := bson.BeginDocumentElement(doc, "filter")
	doc = bson.EndDocument(bson.AppendInt32(doc, "_id", 1), f)
	doc = bson.AppendString(doc, "$db", "t")
	return bson.EndDocument(doc, at)
}

func BenchmarkInsert(b *testing.B) {
	b.Run("standalone", func(b *testing.B) { benchmarkCommand(b, []mongotest.Option{mongotest.Standalone()}, insertCommand) })
	b.Run("replicaset", func(b *testing.B) { benchmarkCommand(b, []mongotest.Option{mongotest.ReplicaSet(3)}, insertCommand) })
}

func BenchmarkFindByID(b *testing.B) {
	b.Run("standalone", func(b *testing.B) { benchmarkCommand(b, []mongotest.Option{mongotest.Standalone()}, findCommand) })
}
