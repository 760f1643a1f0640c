package bson_test

import (
	"fmt"
	"testing"
	"time"

	"allium/bson"
)

// benchDoc is a document as services have them: a few of each kind of field, a nested document and
// arrays.
type benchDoc struct {
	ID      bson.ObjectID `bson:"_id"`
	Name    string        `bson:"name"`
	Visits  int64         `bson:"visits"`
	Score   float64       `bson:"score"`
	Active  bool          `bson:"active"`
	Created time.Time     `bson:"created"`
	Address struct {
		Street string `bson:"street"`
		City   string `bson:"city"`
	} `bson:"address"`
	Tags   []string `bson:"tags"`
	Values []int32  `bson:"values"`
}

func newBenchDoc() *benchDoc {
	d := &benchDoc{Name: "Ada Lovelace", Visits: 1 << 40, Score: 0.75, Active: true, Created: time.UnixMilli(1_700_000_000_000).UTC(),
		Tags: []string{"a", "bc", "def"}, Values: []int32{1, 2, 3, 4, 5}}
	d.Address.Street, d.Address.City = "12 St James's Square", "London"
	return d
}

func benchForms(b *testing.B, do func(b *testing.B, data []byte, form func() any)) {
	data, err := bson.Marshal(newBenchDoc())
	if err != nil {
		b.Fatal(err)
	}
	for _, form := range []func() any{
		func() any { return new(benchDoc) }, func() any { return new(bson.D) }, func() any { return new(bson.M) }, func() any { return new(bson.Raw) },
	} {
		b.Run(fmt.Sprintf("%T", form())[1:], func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			do(b, data, form)
		})
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	benchForms(b, func(b *testing.B, data []byte, form func() any) {
		for b.Loop() {
			if err := bson.Unmarshal(data, form()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkMarshalAppend(b *testing.B) {
	benchForms(b, func(b *testing.B, data []byte, form func() any) {
		v := form()
		if err := bson.Unmarshal(data, v); err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 0, 2*len(data))
		for b.Loop() {
			if _, err := bson.MarshalAppend(buf, v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUnmarshalExtJSON(b *testing.B) {
	text, err := bson.MarshalExtJSON(newBenchDoc(), true)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var d bson.D
		if err := bson.UnmarshalExtJSON(text, &d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshalExtJSON(b *testing.B) {
	b.ReportAllocs()
	d := newBenchDoc()
	for b.Loop() {
		if _, err := bson.MarshalExtJSON(d, true); err != nil {
			b.Fatal(err)
		}
	}
}
