package fle

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"allium/bson"
)

// rangeCase is a test vector of edges or of a cover. Numbers are texts, absent bounds are empty.
type rangeCase struct {
	Expect                               []string
	Value, LowerBound, UpperBound        string
	Min, Max                             string
	IncludeLowerBound, IncludeUpperBound bool
	Sparsity                             int64
	Precision                            *int32
}

// precision is what it is, or that there is none as -1.
func (c *rangeCase) precision() *int32 {
	if c.Precision == nil {
		return new(int32(-1))
	}
	return c.Precision
}

// number parses a text as a value of a type, the zero RawValue for "".
func number(t *testing.T, kind bson.Type, s string) bson.RawValue {
	t.Helper()
	if s == "" {
		return bson.RawValue{}
	}
	v := bson.RawValue{Type: kind}
	switch kind {
	case bson.TypeInt32:
		v.Value = bson.AppendInt32Value(nil, int32(must(strconv.ParseInt(s, 10, 32))))
	case bson.TypeInt64, bson.TypeDateTime:
		v.Value = bson.AppendInt64Value(nil, must(strconv.ParseInt(s, 10, 64)))
	case bson.TypeDouble:
		v.Value = bson.AppendDoubleValue(nil, must(strconv.ParseFloat(s, 64)))
	default:
		v.Value = bson.AppendDecimal128Value(nil, must(bson.ParseDecimal128(s)))
	}
	return v
}

// rangeFiles says which types the values of a file have. Dates are numbered as 64-bit integers are.
var rangeFiles = map[string][]bson.Type{
	"int32": {bson.TypeInt32}, "int64": {bson.TypeInt64, bson.TypeDateTime}, "double": {bson.TypeDouble}, "decimal128": {bson.TypeDecimal128},
}

func TestEdgeVectors(t *testing.T) {
	n := 0
	for name, kinds := range rangeFiles {
		var cases []rangeCase
		load(t, "range/edges_"+name+".json", &cases)
		n += len(cases)
		for i, c := range cases {
			for _, kind := range kinds {
				d, err := NewDomain(kind, number(t, kind, c.Min), number(t, kind, c.Max), c.Precision)
				if err != nil {
					t.Errorf("%s %d: %v", name, i, err)
					continue
				}
				got, err := d.Edges(number(t, kind, c.Value), c.Sparsity, 0)
				if err != nil {
					t.Errorf("%s %d: %v", name, i, err)
				} else if !slices.Equal(got, c.Expect) {
					t.Errorf("%s %d: %s in [%s, %s], sparsity %d: %q, want %q", name, i, c.Value, c.Min, c.Max, c.Sparsity, got, c.Expect)
				}
			}
		}
	}
	if n != 2010 {
		t.Errorf("%d vectors", n)
	}
}

func TestCoverVectors(t *testing.T) {
	n := 0
	for _, name := range []string{"int32", "int64", "double", "double_precision", "decimal128", "decimal128_precision"} {
		var cases []rangeCase
		load(t, "range/mincover_"+name+".json", &cases)
		n += len(cases)
		plain, _, _ := strings.Cut(name, "_")
		for i, c := range cases {
			for _, kind := range rangeFiles[plain] {
				low, high := number(t, kind, c.Min), number(t, kind, c.Max)
				d, err := NewDomain(kind, low, high, c.Precision)
				// Four vectors are older than the rule that a domain that needs too many bits is an
				// error. Before it the precision was left out.
				if tooWide := *c.precision() == 0 && len(c.Max) > 20; tooWide {
					if err == nil {
						t.Errorf("%s %d: no error", name, i)
					}
					d, err = NewDomain(kind, low, high, nil)
				}
				if err != nil {
					t.Errorf("%s %d: %v", name, i, err)
					continue
				}
				got, err := d.Cover(&RangeEdges{
					Lower: number(t, kind, c.LowerBound), LowerIn: c.IncludeLowerBound, Upper: number(t, kind, c.UpperBound), UpperIn: c.IncludeUpperBound,
				}, c.Sparsity, 0)
				if err != nil {
					t.Errorf("%s %d: %v", name, i, err)
				} else if !slices.Equal(got, c.Expect) {
					t.Errorf("%s %d: %s to %s in [%s, %s], sparsity %d: %q, want %q", name, i, c.LowerBound, c.UpperBound, c.Min, c.Max, c.Sparsity, got, c.Expect)
				}
			}
		}
	}
	if n != 645 {
		t.Errorf("%d vectors", n)
	}
}

// TestCoverAndEdges compares a query with all values of a small domain: one is found exactly if it
// is in the range.
func TestCoverAndEdges(t *testing.T) {
	const low, high = -3, 17
	value := func(n int) bson.RawValue { return number(t, bson.TypeInt32, strconv.Itoa(n)) }
	d, err := NewDomain(bson.TypeInt32, value(low), value(high), nil)
	if err != nil {
		t.Fatal(err)
	}
	for sparsity := int64(1); sparsity <= 4; sparsity++ {
		for trim := int32(0); trim < int32(d.Bits()); trim++ {
			edges := make(map[int][]string)
			for n := low; n <= high; n++ {
				edges[n] = must(d.Edges(value(n), sparsity, trim))
			}
			for a := low; a <= high; a++ {
				for b := a; b <= high; b++ {
					for in := range 4 {
						e := &RangeEdges{Lower: value(a), LowerIn: in&1 != 0, Upper: value(b), UpperIn: in&2 != 0}
						cover, err := d.Cover(e, sparsity, trim)
						if err != nil {
							if !e.LowerIn && a == high || !e.UpperIn && b == low {
								continue
							}
							t.Fatal(a, b, in, err)
						}
						for n := low; n <= high; n++ {
							found := slices.ContainsFunc(edges[n], func(s string) bool { return slices.Contains(cover, s) })
							want := n >= a && n <= b && (n > a || e.LowerIn) && (n < b || e.UpperIn)
							if found != want {
								t.Fatalf("sparsity %d, trim factor %d: %d found in %d to %d (%d): %t", sparsity, trim, n, a, b, in, found)
							}
						}
					}
				}
			}
		}
	}
}

func TestOpenCover(t *testing.T) {
	for kind, text := range map[bson.Type]string{bson.TypeInt32: "5", bson.TypeInt64: "5", bson.TypeDateTime: "5", bson.TypeDouble: "5", bson.TypeDecimal128: "5"} {
		d, err := NewDomain(kind, bson.RawValue{}, bson.RawValue{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := number(t, kind, text)
		edges := must(d.Edges(v, 1, 0))
		for _, e := range []RangeEdges{
			{Lower: Open(true), Upper: v, UpperIn: true}, {Lower: v, LowerIn: true, Upper: Open(false)}, {Lower: Open(true), Upper: Open(false)},
		} {
			cover, err := d.Cover(&e, 1, 0)
			if err != nil || !slices.ContainsFunc(cover, func(s string) bool { return slices.Contains(edges, s) }) {
				t.Errorf("%s: %q, %v", kind, cover, err)
			}
			e.UpperIn, e.LowerIn = false, false
			cover, err = d.Cover(&e, 1, 0)
			both := e.Lower.Type == bson.TypeDouble && e.Upper.Type == bson.TypeDouble && isOpen(e.Lower, -1) && isOpen(e.Upper, 1)
			if found := slices.ContainsFunc(cover, func(s string) bool { return slices.Contains(edges, s) }); err != nil || found != both {
				t.Errorf("%s: excluded: %q, %v", kind, cover, err)
			}
		}
	}
}

func TestDomainErrors(t *testing.T) {
	d := func(s string) bson.RawValue { return number(t, bson.TypeDouble, s) }
	dec := func(s string) bson.RawValue { return number(t, bson.TypeDecimal128, s) }
	i := func(s string) bson.RawValue { return number(t, bson.TypeInt32, s) }
	for _, c := range []struct {
		kind      bson.Type
		min, max  bson.RawValue
		precision *int32
		want      string
	}{
		{bson.TypeString, bson.RawValue{}, bson.RawValue{}, nil, "unsupported BSON type"},
		{bson.TypeInt32, i("1"), bson.RawValue{}, nil, "both a lower and upper bound"},
		{bson.TypeInt32, i("1"), i("1"), nil, "minimum value must be less than the maximum"},
		{bson.TypeInt32, i("1"), d("2"), nil, "to be same type"},
		{bson.TypeInt64, i("1"), i("2"), nil, "matching 'min' and value type"},
		{bson.TypeInt32, i("1"), i("2"), new(int32(1)), "'precision'"},
		{bson.TypeDouble, bson.RawValue{}, bson.RawValue{}, new(int32(1)), "all be set or"},
		{bson.TypeDouble, d("0"), d("1"), new(int32(-1)), "non-negative"},
		{bson.TypeDouble, d("0"), d("1.25"), new(int32(1)), "Invalid upper bound"},
		{bson.TypeDouble, d("0.25"), d("2"), new(int32(1)), "Invalid lower bound"},
		{bson.TypeDouble, d("0"), d("1e16"), new(int32(0)), "Absolute scaled value"},
		{bson.TypeDouble, d("0"), d("9007199254740991"), new(int32(0)), "fewer than 53 bits"},
		{bson.TypeDouble, d("0"), d("1"), new(int32(400)), "too large"},
		{bson.TypeDouble, d("NaN"), d("1"), nil, "Infinity and NaN"},
		{bson.TypeDouble, d("0"), d("Inf"), nil, "Infinity and NaN"},
		{bson.TypeDecimal128, dec("0"), dec("1.25"), new(int32(1)), "Invalid upper bound"},
		{bson.TypeDecimal128, dec("0.25"), dec("2"), new(int32(1)), "Invalid lower bound"},
		{bson.TypeDecimal128, dec("0"), dec("1E6000"), new(int32(1)), "fewer than 128 bits"},
		{bson.TypeDecimal128, dec("0"), dec("1"), new(int32(math.MaxInt32)), "too large"},
		{bson.TypeDecimal128, dec("0"), dec("Infinity"), nil, "Infinity and Nan"},
	} {
		_, err := NewDomain(c.kind, c.min, c.max, c.precision)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s [%s, %s]: error %v, want %q", c.kind, c.min, c.max, err, c.want)
		}
	}
}

// A bound that is excluded, and whose number is the first or the last one although its value is
// not, leaves nothing to look for: that is an error, and neither an empty cover, which finds
// nothing without a word, nor all values.
func TestCoverOfNothing(t *testing.T) {
	for kind, value := range map[bson.Type]func(s string) bson.RawValue{
		bson.TypeDouble:     func(s string) bson.RawValue { return number(t, bson.TypeDouble, s) },
		bson.TypeDecimal128: func(s string) bson.RawValue { return number(t, bson.TypeDecimal128, s) },
	} {
		for _, tt := range []struct {
			min, max, lower, upper string
			lowerIn, upperIn       bool
			want                   string
		}{
			{"-8", "-1", "-1.5", "-1", false, true, "Lower bound must be less than the range maximum"},
			{"-8", "-1", "-1.5", "-1", false, false, "Lower bound must be less than the range maximum"},
			{"-8", "-1", "-1", "-1", false, true, "Lower bound must be less than the range maximum"},
			{"-8", "-1", "-2.5", "-1", false, true, ""},
			{"1", "8", "1", "1.5", true, false, "Upper bound must be greater than the range minimum"},
			{"1", "8", "1", "1", true, false, "Upper bound must be greater than the range minimum"},
			{"1", "8", "1", "2.5", true, false, ""},
			{"0", "5", "5", "5", false, true, "Lower bound must be less than the range maximum"}, // there are numbers behind that of 5
			{"0", "5", "4", "5", false, true, ""},
		} {
			d := must(NewDomain(kind, value(tt.min), value(tt.max), new(int32(0))))
			cover, err := d.Cover(&RangeEdges{Lower: value(tt.lower), LowerIn: tt.lowerIn, Upper: value(tt.upper), UpperIn: tt.upperIn}, 1, 0)
			switch {
			case tt.want == "" && (err != nil || len(cover) == 0):
				t.Errorf("%s: %+v: %q, %v", kind, tt, cover, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%s: %+v: %q, %v", kind, tt, cover, err)
			}
		}
		d := must(NewDomain(kind, bson.RawValue{}, bson.RawValue{}, nil))
		least, greatest := d.Bounds() // infinities are beyond them
		for _, e := range []RangeEdges{{Lower: greatest, Upper: Open(false)}, {Lower: Open(true), Upper: least}} {
			if cover, err := d.Cover(&e, 1, 0); err == nil {
				t.Errorf("%s: %+v: %q", kind, e, cover)
			}
		}
	}
}

// TestHugeCover is about a range that no payload has room for: it must end, with an error.
func TestHugeCover(t *testing.T) {
	d := must(NewDomain(bson.TypeInt64, bson.RawValue{}, bson.RawValue{}, nil))
	_, err := d.Cover(&RangeEdges{Lower: number(t, bson.TypeInt64, "0"), Upper: Open(false)}, 1000, 0)
	if err == nil || !strings.Contains(err.Error(), "smaller sparsity") {
		t.Error(err)
	}
}

// FuzzDomain holds that numbers have the order of the values.
func FuzzDomain(f *testing.F) {
	f.Add(1.5, -2.5, uint64(0x3040000000000000), uint64(7), uint64(0xb040000000000000), uint64(9))
	f.Add(0.0, math.Copysign(0, -1), uint64(0), uint64(0), uint64(1)<<63, uint64(0))
	f.Fuzz(func(t *testing.T, a, b float64, hi, lo, hi2, lo2 uint64) {
		for _, pair := range [][2]bson.RawValue{
			{{Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, a)}, {Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, b)}},
			{
				{Type: bson.TypeDecimal128, Value: bson.AppendDecimal128Value(nil, bson.NewDecimal128(hi, lo))},
				{Type: bson.TypeDecimal128, Value: bson.AppendDecimal128Value(nil, bson.NewDecimal128(hi2, lo2))},
			},
		} {
			d := must(NewDomain(pair[0].Type, bson.RawValue{}, bson.RawValue{}, nil))
			x, err := d.encode(pair[0])
			y, err2 := d.encode(pair[1])
			if finite(pair[0]) != (err == nil) || finite(pair[1]) != (err2 == nil) {
				t.Fatal(pair, err, err2)
			}
			if err != nil || err2 != nil {
				continue
			}
			if want := bson.Compare(pair[0], pair[1]); want < 0 && !x.less(y) || want > 0 && !y.less(x) || want == 0 && x != y {
				t.Errorf("%s and %s have the numbers %v and %v", pair[0], pair[1], x, y)
			}
		}
	})
}
