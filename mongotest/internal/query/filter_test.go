package query

import (
	"strconv"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/release"
)

// doc builds {key: value, ...} from alternating keys and raw values.
func doc(elements ...any) bson.Raw {
	start, b := bson.BeginDocument(nil)
	for i := 0; i < len(elements); i += 2 {
		key := elements[i].(string)
		switch v := elements[i+1].(type) {
		case int:
			b = bson.AppendInt32(b, key, int32(v))
		case float64:
			b = bson.AppendDouble(b, key, v)
		case string:
			b = bson.AppendString(b, key, v)
		case bool:
			b = bson.AppendBool(b, key, v)
		case nil:
			b = bson.AppendNull(b, key)
		case bson.Raw:
			b = bson.AppendDocument(b, key, v)
		case []any:
			inner := make([]any, 0, 2*len(v))
			for j, e := range v {
				inner = append(inner, strconv.Itoa(j), e)
			}
			b = bson.AppendArray(b, key, doc(inner...))
		default:
			panic(v)
		}
	}
	return bson.EndDocument(b, start)
}

func TestMatch(t *testing.T) {
	a123 := doc("_id", 1, "v", []any{1, 2, 3})
	objects := doc("_id", 1, "v", []any{doc("a", 1), doc("a", 2, "b", 5)})
	for _, tt := range []struct {
		filter, doc bson.Raw
		want        bool
		index       int
	}{
		{doc(), a123, true, -1},
		{doc("_id", 1), a123, true, -1},
		{doc("_id", 1.0), a123, true, -1},
		{doc("_id", 2), a123, false, -1},
		{doc("v", 2), a123, true, 1},
		{doc("v", []any{1, 2, 3}), a123, true, -1},
		{doc("v.1", 2), a123, true, noIndex},
		{doc("v", doc("$gt", 2)), a123, true, 2},
		{doc("v", doc("$gt", 3)), a123, false, -1},
		{doc("v", doc("$gt", "a")), a123, false, -1},
		{doc("v", doc("$ne", 2)), a123, false, -1},
		{doc("v", doc("$size", 3)), a123, true, -1},
		{doc("v.a", 2), objects, true, 1},
		{doc("v.b", nil), objects, true, 0},
		{doc("v.c", doc("$exists", false)), objects, true, -1},
		{doc("v", doc("$elemMatch", doc("a", 2, "b", 5))), objects, true, 1},
		{doc("v", doc("$elemMatch", doc("a", 1, "b", 5))), objects, false, -1},
		{doc("$or", []any{doc("_id", 2), doc("v.a", 2)}), objects, true, -1},
		{doc("x", nil), a123, true, -1},
		{doc("_id", doc("$in", []any{3, 1})), a123, true, -1},
		{doc("_id", doc("$mod", []any{2, 1})), a123, true, -1},
	} {
		f, err := ParseFilter(tt.filter, nil)
		if err != nil {
			t.Errorf("%v: %v", tt.filter, err)
			continue
		}
		got, index, err := f.MatchIndex(tt.doc)
		if got != tt.want || index != tt.index || err != nil {
			t.Errorf("%v on %v: %v, %d, %v; want %v, %d", tt.filter, tt.doc, got, index, err, tt.want, tt.index)
		}
	}
}

func BenchmarkMatchID(b *testing.B) {
	d := doc("_id", 1, "v", []any{1, 2, 3})
	f, _ := ParseFilter(doc("_id", 1), nil)
	b.ReportAllocs()
	for b.Loop() {
		if ok, _ := f.Match(d); !ok {
			b.Fatal("no match")
		}
	}
}

func BenchmarkMatchArray(b *testing.B) {
	d := doc("_id", 1, "v", []any{doc("a", 1), doc("a", 2, "b", 5)})
	f, _ := ParseFilter(doc("v.b", doc("$gt", 4), "v.a", doc("$in", []any{1, 7})), nil)
	b.ReportAllocs()
	for b.Loop() {
		if ok, _ := f.Match(d); !ok {
			b.Fatal("no match")
		}
	}
}

func BenchmarkParseID(b *testing.B) {
	filter := doc("_id", 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseFilter(filter, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// $sampleRate is a filter where the table of features has it, as it is a stage's.
func TestSampleRate(t *testing.T) {
	filter := doc("$sampleRate", 0.5)
	for v, known := range map[release.Version]bool{v44: false, release.At(4, 4, 2): true, release.At(8, 0, 0): true, {}: true} {
		if _, err := ParseFilter(filter, &Options{Version: v}); (err == nil) != known {
			t.Errorf("%v: %v", v, err)
		}
	}
}

// The comparisons that the server makes of $expr are of all types, with a missing field before
// them, and true of every array, which $expr itself looks at.
func TestExprComparisons(t *testing.T) {
	docs := []bson.Raw{doc("_id", 0), doc("a", nil), doc("a", 4), doc("a", 5), doc("a", "x"), doc("a", []any{1}), doc("a", []any{doc("b", 9)})}
	for op, want := range map[string][]bool{
		"$_internalExprEq":  {false, false, false, true, false, true, true},
		"$_internalExprLt":  {true, true, true, false, false, true, true},
		"$_internalExprLte": {true, true, true, true, false, true, true},
		"$_internalExprGt":  {false, false, false, false, true, true, true},
		"$_internalExprGte": {false, false, false, true, true, true, true},
	} {
		f, err := ParseFilter(doc("a", doc(op, 5)), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range docs {
			if ok, _ := f.Match(d); ok != want[i] {
				t.Errorf("%s: document %d matches: %v", op, i, ok)
			}
		}
		_, err = ParseFilter(doc("a", doc(op, []any{1})), nil)
		if text := op + " cannot be used to compare to type: array"; err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s of an array: %v", op, err)
		}
		_, err = ParseFilter(doc("a", doc(op, 5)), &Options{Version: v44})
		if op != "$_internalExprEq" && (err == nil || !strings.Contains(err.Error(), "unknown operator: "+op)) {
			t.Errorf("%s in version 4.4: %v", op, err)
		}
	}
}
