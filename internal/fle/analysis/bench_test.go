package analysis

import (
	"fmt"
	"testing"

	"allium/bson"
)

// BenchmarkAnalyze is the cost of the analysis by itself: a document with ten encrypted fields, a
// filter, and a command on a collection without any.
func BenchmarkAnalyze(b *testing.B) {
	props, doc := bson.D{}, bson.D{{Key: "_id", Value: 1}}
	for i := range 10 {
		name := fmt.Sprint("field", i)
		props = append(props, bson.E{Key: name, Value: parse(b, deterministic(keyA))})
		doc = append(doc, bson.E{Key: name, Value: "a value of some length"}, bson.E{Key: "plain" + name, Value: i})
	}
	schema := value(bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: props}}).Value
	schemas := map[string]*Schema{"db.c": jsonSchema(b, "db.c", schema, true), "db.n": nil}
	for name, cmd := range map[string]bson.D{
		"insert": d("insert", "c", "documents", bson.A{doc}),
		"find":   d("find", "c", "filter", d("field3", "x", "plain", 1)),
		"plain":  d("insert", "n", "documents", bson.A{doc}),
	} {
		raw := bson.Raw(value(cmd).Value)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Analyze("db", raw, schemas); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
