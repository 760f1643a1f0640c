package query

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"allium/bson"
)

// orderValues are values of every type, among them many that are nearly equal.
func orderValues(t *testing.T, r *rand.Rand) []bson.RawValue {
	t.Helper()
	decimal := func(s string) bson.Decimal128 {
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	list := []any{
		nil, bson.Undefined{}, bson.MinKey{}, bson.MaxKey{}, true, false, math.NaN(), math.Inf(1), math.Inf(-1), 0.0,
		math.Copysign(0, -1), math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, int64(math.MaxInt64),
		int64(math.MinInt64), int64(1<<53 + 1), float64(1 << 53), int64(1 << 53), int32(1), int64(1), 1.0, -1.5, int32(-2),
		"", "a", "a\x00", "a name of", "a name o", "a name of some length", "é", "z", bson.Symbol("a"),
		bson.Symbol("a name of more"), bson.D{}, bson.D{{Key: "a", Value: 1}}, bson.A{}, bson.A{1, "x"},
		bson.Binary{Data: []byte("abc")}, bson.Binary{Subtype: 5, Data: []byte("ab")}, bson.DateTime(0), bson.DateTime(-1),
		bson.DateTime(1 << 40), bson.DateTime(math.MinInt64), bson.Timestamp{T: 1, I: 2}, bson.Timestamp{T: 1 << 31},
		bson.Regex{Pattern: "a"}, bson.JavaScript("x"), bson.CodeWithScope{Code: "x", Scope: bson.D{}},
		bson.ObjectID{1, 2, 3}, bson.ObjectID{1, 2, 3, 4, 5, 6, 7, 8}, bson.ObjectID{0xff},
		decimal("1"), decimal("1.5"), decimal("-2"), decimal("NaN"), decimal("9007199254740993"), decimal("Infinity"),
	}
	for range 200 {
		list = append(list, r.Int64()>>r.IntN(64), math.Float64frombits(r.Uint64()), bson.DateTime(r.Int64()-1<<62))
	}
	values := []bson.RawValue{{}}
	for _, v := range list {
		doc, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, bson.Raw(doc).Lookup("v"))
	}
	return values
}

// TestPrefix compares the numbers of all pairs of values with their order.
func TestPrefix(t *testing.T) {
	values := orderValues(t, rand.New(rand.NewPCG(1, 2)))
	coll, err := ParseCollation(v44, parseJSON(t, `{"locale": "en", "strength": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	decides, pairs := 0, 0
	for _, p := range []prefixes{{}, {coll: coll}, {decimals: true}, {shared: []byte("a name o"), strings: true}} {
		var list []bson.RawValue
		for _, v := range values {
			text := v.Type == bson.TypeString || v.Type == bson.TypeSymbol
			if (p.decimals || v.Type != bson.TypeDecimal128) && (!text || bytes.HasPrefix(stringData(v), p.shared)) {
				list = append(list, v)
			}
		}
		before := p
		before.decimals, before.strings = false, false
		for _, v := range list {
			before.note(v)
		}
		if !bytes.Equal(before.shared, p.shared) || before.decimals != p.decimals {
			t.Errorf("the values begin with %q, want %q", before.shared, p.shared)
		}
		for _, a := range list {
			for _, b := range list {
				pairs++
				x, y := p.of(a), p.of(b)
				if x == y {
					continue
				}
				if decides++; cmp.Compare(x, y) != Compare(a, b, p.coll) {
					t.Fatalf("%v and %v: numbers %x and %x, compared %d", a, b, x, y, Compare(a, b, p.coll))
				}
			}
		}
	}
	if decides < pairs/2 {
		t.Errorf("the numbers decide %d of %d pairs", decides, pairs)
	}
}

// TestSortRows compares with a stable sort: upwards and downwards, by one field and by two, with
// many equal rows.
func TestSortRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values := orderValues(t, r)
	type row struct {
		key []bson.RawValue
		n   int
	}
	for _, spec := range []string{`{"a": 1}`, `{"a": -1}`, `{"a": 1, "b": -1}`, `{"a": -1, "b": 1}`} {
		for _, n := range []int{0, 1, fewRows, 400} {
			for _, decimals := range []bool{true, false} {
				s, err := ParseSort(parseJSON(t, spec), nil)
				if err != nil {
					t.Fatal(err)
				}
				var rows []row
				for i := range n {
					var key []bson.RawValue
					for range s.fields {
						v := values[r.IntN(len(values))]
						for !decimals && v.Type == bson.TypeDecimal128 {
							v = values[r.IntN(len(values))]
						}
						key = append(key, v)
					}
					if i > 0 && i%3 == 0 {
						key = rows[i/2].key
					}
					rows = append(rows, row{key, i})
				}
				want := slices.Clone(rows)
				slices.SortStableFunc(want, func(a, b row) int { return s.CompareKeys(a.key, b.key) })
				SortByKey(s, rows, func(r *row) []bson.RawValue { return r.key })
				for i := range rows {
					if rows[i].n != want[i].n {
						t.Fatalf("%s, %d rows: place %d has row %d, not %d", spec, n, i, rows[i].n, want[i].n)
					}
				}
				if len(s.fields) > 1 {
					continue
				}
				slices.SortStableFunc(want, func(a, b row) int { return Compare(a.key[0], b.key[0], nil) })
				SortByValue(rows, func(r *row) bson.RawValue { return r.key[0] }, nil, nil)
				for i := range rows {
					if rows[i].n != want[i].n {
						t.Fatalf("%d values: place %d has row %d, not %d", n, i, rows[i].n, want[i].n)
					}
				}
			}
		}
	}
}
