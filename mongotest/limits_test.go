package mongotest_test

import (
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// A sort that no index provides may hold so many bytes, unless it may use files.
func TestSortMemory(t *testing.T) {
	for _, test := range []struct {
		version string
		more    bson.D
		code    int64
	}{
		{"5.0", nil, 292},
		{"5.0", bson.D{{Key: "allowDiskUse", Value: true}}, 0},
		{"5.0", bson.D{{Key: "limit", Value: 3}}, 292},
		{"6.0", nil, 0},
	} {
		d := mongotest.Start(t, mongotest.InMemory(), mongotest.Version(test.version))
		c := dialNode(t, d, d.Node(0))
		ok(t, run(t, c, bson.D{{Key: "setParameter", Value: 1}, {Key: "internalQueryMaxBlockingSortMemoryUsageBytes", Value: 10_000}, {Key: "$db", Value: "admin"}}))
		for i := range 4 {
			insertAt(t, c, "c", bson.D{{Key: "x", Value: -i}, {Key: "v", Value: strings.Repeat("x", 4000)}})
		}
		find := append(bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "x", Value: 1}}}, {Key: "$db", Value: "db"}}, test.more...)
		if code, _ := run(t, c, find).Lookup("code").AsInt64(); code != test.code {
			t.Errorf("%s %v: code %d, want %d", test.version, test.more, code, test.code)
		}
	}
}

// Nesting is bounded.
func TestNestingDepth(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	deep := doc(t, bson.D{{Key: "a", Value: 1}})
	for range 250 {
		at, outer := bson.BeginDocument(nil)
		deep = bson.EndDocument(bson.AppendDocument(outer, "a", deep), at)
	}
	for name, add := range map[string]func(dst []byte) []byte{
		"find": func(dst []byte) []byte { return bson.AppendDocument(dst, "filter", deep) },
		"insert": func(dst []byte) []byte {
			list, dst := bson.BeginArrayElement(dst, "documents")
			return bson.EndDocument(append(bson.AppendIndexHeader(dst, bson.TypeEmbeddedDocument, 0), deep...), list)
		},
	} {
		at, cmd := bson.BeginDocument(nil)
		cmd = bson.AppendString(add(bson.AppendString(cmd, name, "c")), "$db", "db")
		if code, _ := command(t, c, bson.EndDocument(cmd, at)).Lookup("code").AsInt64(); code != 15 {
			t.Errorf("%s with 250 levels is answered with code %d", name, code)
		}
	}
	ok(t, run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "db"}}))
}
