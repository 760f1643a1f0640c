package wire

import (
	"strconv"
	"testing"

	"allium/bson"
)

// sampleMsg is a message with a body and a sequence of a hundred documents.
func sampleMsg(dst []byte) []byte {
	start := len(dst)
	dst = AppendMsg(dst, NextRequestID(), 0, 0)
	at, dst := bson.BeginDocument(dst)
	dst = bson.AppendString(dst, "insert", "users")
	dst = bson.AppendString(dst, "$db", "app")
	dst = bson.EndDocument(dst, at)
	seq, dst := BeginSequence(dst, "documents")
	for i := range 100 {
		doc, d := bson.BeginDocument(dst)
		dst = bson.EndDocument(bson.AppendInt32(d, "_id", int32(i)), doc)
	}
	return FinishMessage(EndSequence(dst, seq), start)
}

func BenchmarkAppendMsg(b *testing.B) {
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = sampleMsg(buf[:0])
	}
}

func BenchmarkParseMsg(b *testing.B) {
	msg := sampleMsg(nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		if _, err := ParseMsg(msg); err != nil {
			b.Fatal(err)
		}
	}
}

// What a hostile reply costs that consists of empty document sequences: nothing, whatever its
// length.
func BenchmarkParseReplyOfSequences(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		msg := append(AppendMsg(nil, 7, 3, 0), emptyDoc()...)
		for i := 0; len(msg) < size; i++ {
			var at int
			at, msg = BeginSequence(msg, strconv.Itoa(i))
			msg = EndSequence(msg, at)
		}
		msg = FinishMessage(msg, 0)
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			for b.Loop() {
				if _, err := ParseReply(msg); err == nil {
					b.Fatal("no error")
				}
			}
		})
	}
}
