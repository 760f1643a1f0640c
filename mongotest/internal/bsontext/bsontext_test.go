package bsontext

import (
	"math"
	"strings"
	"testing"

	"allium/bson"
)

func TestValue(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                        `{}`,
		`{"a":1,"b":"x"}`:                           `{ a: 1, b: "x" }`,
		`{"a":[1,{"$numberDouble":"2"}]}`:           `{ a: [ 1, 2.0 ] }`,
		`{"a":[],"b":null}`:                         `{ a: [], b: null }`,
		`{"a":{"$numberDecimal":"1.50"}}`:           `{ a: 1.50 }`,
		`{"a":{"$date":{"$numberLong":"5"}}}`:       `{ a: new Date(5) }`,
		`{"a":{"$oid":"0123456789abcdef01234567"}}`: `{ a: ObjectId('0123456789abcdef01234567') }`,
		`{"a":{"$regularExpression":{"pattern":"x","options":"i"}}}`: `{ a: /x/i }`,
		`{"a":{"$timestamp":{"t":1,"i":2}}}`:                         `{ a: Timestamp(1, 2) }`,
		`{"a":{"$binary":{"base64":"AQI=","subType":"00"}}}`:         `{ a: BinData(0, 0102) }`,
		`{"a":{"$minKey":1},"b":{"$maxKey":1}}`:                      `{ a: MinKey, b: MaxKey }`,
	} {
		doc, err := bson.ParseExtJSON([]byte(text))
		if err != nil {
			t.Fatal(text, err)
		}
		if got := Document(doc); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	long := bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, strings.Repeat("x", 161))}
	if got := Value(long); got != `"`+strings.Repeat("x", 150)+`..."` {
		t.Error(got)
	}
}

func TestDouble(t *testing.T) {
	for f, want := range map[float64]string{
		1: "1.0", 1.5: "1.5", 1e30: "1e+30.0", 0.1: "0.1", 1e-7: "1e-07.0", math.Inf(1): "inf.0", math.Copysign(0, -1): "-0.0", 123456789012345680: "1.234567890123457e+17",
	} {
		if got := Double(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	if got := CDouble(math.MaxFloat64, 6); got != "1.79769e+308" {
		t.Error(got)
	}
}
