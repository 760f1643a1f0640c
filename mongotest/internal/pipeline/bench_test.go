package pipeline

import (
	"testing"

	"allium/bson"
	"allium/mongotest/internal/expr"
)

// benchmark runs a pipeline on a thousand documents.
func benchmark(b *testing.B, stages string) {
	m := newMemory()
	ns := Namespace{"test", "c"}
	for i := range 1000 {
		start, dst := bson.BeginDocument(nil)
		dst = bson.AppendInt32(dst, "_id", int32(i))
		dst = bson.AppendInt32(dst, "g", int32(i%10))
		dst = bson.AppendString(dst, "s", "some text")
		dst = bson.AppendDouble(dst, "x", float64(i)/2)
		m.colls[ns] = append(m.colls[ns], bson.EndDocument(dst, start))
	}
	list, err := StagesOf(parseDoc(b, `{"p":`+stages+`}`).Lookup("p"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.run(list, &Options{Env: m, NS: ns, Version: expr.Version{Major: 4, Minor: 4}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGroup(b *testing.B) {
	benchmark(b, `[{"$match":{"x":{"$gte":0}}},{"$group":{"_id":"$g","n":{"$sum":1},"m":{"$max":"$x"}}}]`)
}

func BenchmarkProject(b *testing.B) {
	benchmark(b, `[{"$project":{"x":{"$add":["$x",1]},"s":1}}]`)
}

func BenchmarkSort(b *testing.B) { benchmark(b, `[{"$sort":{"x":-1}},{"$limit":10}]`) }
