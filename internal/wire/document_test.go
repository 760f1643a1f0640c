package wire

import (
	"strconv"
	"strings"
	"testing"

	"allium/bson"
)

// nest returns a document with inner in it, levels deep, behind another element.
func nest(inner []byte, levels int) []byte {
	for range levels {
		start, d := bson.BeginDocument(nil)
		d = bson.AppendInt32(d, "n", 1)
		inner = bson.EndDocument(bson.AppendDocument(d, "in", inner), start)
	}
	return inner
}

func TestCheckDocument(t *testing.T) {
	start, d := bson.BeginDocument(nil)
	d = bson.AppendInt32(d, "ok", 1)
	d = append(d, 0x42, 'x', 0) // no such type
	broken := bson.EndDocument(d, start)
	sound, _ := bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "a", Value: bson.A{1, "x", bson.D{}}}})
	for name, c := range map[string]struct {
		doc    []byte
		levels int
		want   string // part of the error, "" for none
	}{
		"empty":               {[]byte{5, 0, 0, 0, 0}, 1, ""},
		"nothing":             {nil, 1, "length"},
		"wrong end":           {[]byte{5, 0, 0, 0, 1}, 1, "length"},
		"sound":               {sound, 3, ""},
		"broken":              {broken, 1, `"x": `},
		"in the second level": {nest(broken, 1), 2, `"in": "x": `},
		"below the levels":    {nest(broken, 1), 1, ""},
		"in the third level":  {nest(broken, 2), 3, `"in": "in": "x": `},
		"key without end":     {[]byte{7, 0, 0, 0, 1, 'x', 0}, 1, "key"},
	} {
		err := CheckDocument(c.doc, c.levels)
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func BenchmarkCheckDocument(b *testing.B) {
	reply, _ := bson.Marshal(bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: "text"}}}}, {Key: "id", Value: int64(0)}, {Key: "ns", Value: "db.coll"}}},
		{Key: "ok", Value: 1.0}, {Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: 1}}, {Key: "signature", Value: bson.D{{Key: "hash", Value: bson.Binary{Data: make([]byte, 20)}}, {Key: "keyId", Value: int64(0)}}}}},
		{Key: "operationTime", Value: bson.Timestamp{T: 1}}})
	for levels := 1; levels <= 3; levels++ {
		b.Run(strconv.Itoa(levels), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckDocument(reply, levels); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
