package args

import (
	"math"
	"testing"

	"allium/bson"
)

func TestNumber(t *testing.T) {
	decimal := func(s string) bson.RawValue {
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			t.Fatal(err)
		}
		return bson.RawValue{Type: bson.TypeDecimal128, Value: bson.AppendDecimal128Value(nil, d)}
	}
	for text, want := range map[string]int64{
		"1.5": 2, "2.5": 2, "-1.5": -2, "0.4": 0, "-0.5": 0, "7": 7, "NaN": 0, "Infinity": math.MaxInt64, "-Infinity": math.MinInt64,
		"1E+30": math.MaxInt64, "9223372036854775807": math.MaxInt64, "-9223372036854775809": math.MinInt64, "1E-300": 0,
	} {
		if got, ok := NumberOf(decimal(text)); got != want || !ok {
			t.Errorf("NumberOf(%s) = %d, %v, want %d", text, got, ok, want)
		}
	}
}
