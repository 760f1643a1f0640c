package pipeline

import (
	"fmt"
	"math/big"
	"testing"

	"allium/bson"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/expr"

	"pgregory.net/rapid"
)

// granularities are the names of all series.
var granularities = []string{"POWERSOF2", "1-2-5", "R5", "R10", "R20", "R40", "R80", "E6", "E12", "E24", "E48", "E96", "E192"}

// TestGranularityOfDecimals rounds decimals of 34 digits and all magnitudes: up is greater, down is
// smaller, between them is no number of the series, and each is a number of the series itself.
func TestGranularityOfDecimals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		coefficient := rapid.StringMatching(`[1-9][0-9]{0,33}`).Draw(t, "coefficient")
		d := parseDecimal(t, fmt.Sprintf("%sE%d", coefficient, rapid.IntRange(-300, 250).Draw(t, "exponent")))
		name := rapid.SampledFrom(granularities).Draw(t, "series")
		r := findRounder(name)
		up, down := expr.ToDecimal(r.up(expr.DecimalValue(d))), expr.ToDecimal(r.down(expr.DecimalValue(d)))
		if up.Cmp(d) <= 0 || down.Cmp(d) >= 0 {
			t.Fatalf("%s: %v is between %v and %v", name, d, down, up)
		}
		// What follows the number below is the number above, unless d is of the series.
		next := expr.ToDecimal(r.up(expr.DecimalValue(down)))
		if next.Cmp(d) != 0 && next.Cmp(up) != 0 {
			t.Fatalf("%s: %v lies between %v and %v, but %v comes after the former", name, d, down, up, next)
		}
		for _, x := range []decimal.Decimal{down, up} {
			if name != "POWERSOF2" && !inDecade(r.(series), x) {
				t.Fatalf("%s: %v becomes %v, which is not of the series", name, d, x)
			}
		}
	})
}

// inDecade reports whether a number is one of the series' but for a power of ten.
func inDecade(s series, d decimal.Decimal) bool {
	x, _ := new(big.Rat).SetString(d.String())
	for _, f := range s {
		quotient := new(big.Rat).Quo(x, new(big.Rat).SetFloat64(f))
		if quotient.Cmp(big.NewRat(1, 1)) < 0 {
			quotient.Inv(quotient)
		}
		for quotient.Cmp(big.NewRat(1, 1)) > 0 {
			quotient.Mul(quotient, big.NewRat(1, 10))
		}
		if quotient.Cmp(big.NewRat(1, 1)) == 0 {
			return true
		}
	}
	return false
}

// The bounds of a bucket of one decimal. The values follow from the series in the manual, how many
// zeros they end with is inferred: from what $multiply and $pow yield for the same decimals.
func TestBoundsOfDecimals(t *testing.T) {
	for _, c := range []struct{ series, value, down, up string }{
		{"R5", "0.1", "0.0630000000000000", "0.160000000000000"},
		{"R5", "0.1000000000000000000001", "0.100000000000000", "0.160000000000000"},
		{"1-2-5", "0.2", "0.100000000000000", "0.500000000000000"},
		{"E192", "0.1000000000000000000000000000000001", "0.100000000000000", "0.101000000000000"},
		{"E6", "9007199254740993", "6800000000000000.0000000000000", "10000000000000000.0000000000000"},
		{"POWERSOF2", "0.125", "0.06250000000000000000000000000000000", "0.2500000000000000000000000000000000"},
		{"POWERSOF2", "9007199254740993", "9007199254740992.000000000000000000", "18014398509481984.00000000000000000"},
		{"POWERSOF2", "1E+310", "5.752618031559410904733776610524879E+309", "1.150523606311882180946755322104976E+310"},
		{"R10", "0E+3", "0E+3", "0E+3"}, {"POWERSOF2", "0E+3", "0E+3", "0E+3"},
		{"R10", "Infinity", "Infinity", "Infinity"}, {"POWERSOF2", "Infinity", "Infinity", "Infinity"},
		{"R10", "1E-400", "1E-400", "1E-400"}, // no double is so small but 0
	} {
		r, v := findRounder(c.series), expr.DecimalValue(parseDecimal(t, c.value))
		down, up := r.down(v), r.up(v)
		if !down.Equal(expr.DecimalValue(parseDecimal(t, c.down))) {
			t.Errorf("%s: below %s is %v, want %s", c.series, c.value, expr.ToDecimal(down), c.down)
		}
		if !up.Equal(expr.DecimalValue(parseDecimal(t, c.up))) {
			t.Errorf("%s: above %s is %v, want %s", c.series, c.value, expr.ToDecimal(up), c.up)
		}
	}
}

func parseDecimal(t interface{ Fatal(...any) }, text string) decimal.Decimal {
	d, err := bson.ParseDecimal128(text)
	if err != nil {
		t.Fatal(err)
	}
	return decimal.FromBSON(d)
}
