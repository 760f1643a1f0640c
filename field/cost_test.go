package field_test

import (
	"testing"

	"allium/bson"
	"allium/field"
	"allium/internal/norace"
)

// The documents of this package beside those that are written by hand, in pairs.
var pairs = []struct {
	name         string
	made, byhand func() any
}{
	{"eq", func() any { return bson.D(city.Eq(text)) }, func() any { return bson.D{{Key: "ship.city", Value: text}} }},
	{"gt", func() any { return bson.D(total.Gt(price)) }, func() any { return bson.D{{Key: "total", Value: bson.D{{Key: "$gt", Value: price}}}} }},
	{"and", func() any { return bson.D(field.And(city.Eq(text), total.Gt(price), id.Eq(count))) }, func() any {
		return bson.D{{Key: "ship.city", Value: text}, {Key: "total", Value: bson.D{{Key: "$gt", Value: price}}}, {Key: "_id", Value: count}}
	}},
	{"in", func() any { return bson.D(city.In(words...)) }, func() any { return bson.D{{Key: "ship.city", Value: bson.D{{Key: "$in", Value: words}}}} }},
	{"or", func() any { return bson.D(field.Or(city.Eq(text), id.Eq(count))) }, func() any {
		return bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "ship.city", Value: text}}, bson.D{{Key: "_id", Value: count}}}}}
	}},
	{"set", func() any { return bson.D(field.Set(city, text)) }, func() any { return bson.D{{Key: "$set", Value: bson.D{{Key: "ship.city", Value: text}}}} }},
	{"update", func() any {
		return bson.D(field.Update(field.Set(city, text), field.Set(total, price), field.Inc(version, 1)))
	}, func() any {
		return bson.D{{Key: "$set", Value: bson.D{{Key: "ship.city", Value: text}, {Key: "total", Value: price}}}, {Key: "$inc", Value: bson.D{{Key: "version", Value: int64(1)}}}}
	}},
	{"sort", func() any { return bson.D(field.Asc(city, total)) }, func() any { return bson.D{{Key: "ship.city", Value: 1}, {Key: "total", Value: 1}} }},
	{"include", func() any { return bson.D(field.Include(city, total)) }, func() any { return bson.D{{Key: "ship.city", Value: 1}, {Key: "total", Value: 1}} }},
}

var (
	text  = "Bonn"
	price = 2000.5
	count = 4711
	words = []string{"Bonn", "Bern"}
	sink  any
)

func BenchmarkDocuments(b *testing.B) {
	for _, p := range pairs {
		for name, f := range map[string]func() any{"field": p.made, "byhand": p.byhand} {
			b.Run(p.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					sink = f()
				}
			})
		}
	}
}

// BenchmarkEncoding encodes a filter under the name of its type, and as a bson.D.
func BenchmarkEncoding(b *testing.B) {
	f := field.And(city.Eq(text), total.Gt(price), id.Eq(count))
	for name, v := range map[string]any{"field": f, "byhand": bson.D(f)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				var err error
				if buf, err = bson.MarshalAppend(buf[:0], v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestCost: documents of this package are those that one writes by hand, and take no more memory.
func TestCost(t *testing.T) {
	norace.Skip(t, "the race detector allocates")
	for _, p := range pairs {
		a, errA := bson.Marshal(p.made())
		b, errB := bson.Marshal(p.byhand())
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s: %v %v, by hand %v %v", p.name, bson.Raw(a), errA, bson.Raw(b), errB)
		}
		made := testing.AllocsPerRun(100, func() { sink = p.made() })
		byhand := testing.AllocsPerRun(100, func() { sink = p.byhand() })
		if made > byhand {
			t.Errorf("%s: %v allocations, by hand %v", p.name, made, byhand)
		}
	}
}
