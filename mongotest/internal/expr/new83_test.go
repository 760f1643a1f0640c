package expr

import (
	"testing"

	"allium/bson"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

const (
	document83 = `{"a": [5, 6, 7], "n": null, "score": 5}`
	// wrapped83 is in canonical Extended JSON: read as that it is a document of all types, read as
	// JSON what $serializeEJSON makes of it.
	wrapped83 = `{"i": {"$numberInt": "42"}, "l": {"$numberLong": "42"}, "d": {"$numberDouble": "42.5"},
		"o": {"$oid": "507f1f77bcf86cd799439011"}, "t": {"$date": {"$numberLong": "1609459200000"}},
		"b": {"$binary": {"base64": "AQIDBA==", "subType": "00"}}, "s": "x", "y": true, "z": null,
		"x": {"$regularExpression": {"pattern": "abc", "options": "i"}}, "e": [{"$numberInt": "1"}, {}, ["$a"]],
		"w": {"$timestamp": {"t": 1, "i": 4000000000}}, "f": {"$numberDouble": "NaN"}, "m": {"$minKey": 1},
		"q": {"$numberDecimal": "1.50"}}`
)

func evaluate83(t *testing.T, e bson.RawValue, v release.Version) (bson.RawValue, error) {
	t.Helper()
	return evaluate(parseDoc(t, document83), e, &Env{Version: v})
}

// The operators that came with 8.1 and 8.3, with examples of the manual.
func TestOperatorsOf83(t *testing.T) {
	for _, tt := range []struct{ e, want string }{
		{`{"$round": [{"$sigmoid": "$score"}, 10]}`, `0.9933071491`},
		{`{"$round": [{"$sigmoid": {"$add": ["$score", 8]}}, 10]}`, `0.9999977397`},
		{`{"$sigmoid": {"input": 0}}`, `0.5`},
		{`{"$sigmoid": "$n"}`, `null`},
		{`{"$sigmoid": "$nosuch"}`, `null`},
		{`{"$sigmoid": {"input": "$n", "onNull": -1}}`, `-1`},
		{`{"$type": {"$sigmoid": {"$numberDecimal": "1"}}}`, `"decimal"`},

		{`{"$map": {"input": "$a", "in": {"$multiply": ["$$this", "$$IDX"]}}}`, `[0,6,14]`},
		{`{"$map": {"input": "$a", "as": "x", "arrayIndexAs": "i", "in": ["$$x", "$$i"]}}`, `[[5,0],[6,1],[7,2]]`},
		{`{"$map": {"input": [[1], [2, 3]], "in": {"$map": {"input": "$$this", "arrayIndexAs": "j", "in": ["$$IDX", "$$j"]}}}}`,
			`[[[0,0]],[[1,0],[1,1]]]`},
		{`{"$filter": {"input": "$a", "cond": {"$gt": ["$$IDX", 0]}}}`, `[6,7]`},
		{`{"$filter": {"input": "$a", "arrayIndexAs": "i", "as": "x", "limit": 1, "cond": {"$gte": ["$$i", 1]}}}`, `[6]`},
		{`{"$reduce": {"input": "$a", "initialValue": 0, "in": {"$add": ["$$value", {"$multiply": ["$$IDX", "$$this"]}]}}}`, `20`},
		{`{"$reduce": {"input": "$a", "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$k"]]}, "arrayIndexAs": "k"}}`,
			`[0,1,2]`},

		{`{"$serializeEJSON": {"input": "$n"}}`, `null`},
		{`{"$deserializeEJSON": {"input": "$nosuch"}}`, `null`},
		{`{"$deserializeEJSON": {"input": {"$literal": {"a": 1, "b": [true, "x"]}}}}`, `{"a":1,"b":[true,"x"]}`},
		{`{"$type": {"$getField": {"field": "a", "input": {"$deserializeEJSON": {"input": {"a": {"$toLong": 1}}}}}}}`, `"long"`},
		{`{"$deserializeEJSON": {"input": {"$literal": {"$x": [{"$y": 1}]}}}}`, `{"$x":[{"$y":1}]}`},
		{`{"$deserializeEJSON": {"input": {"$serializeEJSON": {"input": 7}}, "onError": "no"}}`, `7`},
	} {
		got, err := evaluate83(t, parseDoc(t, `{"e": `+tt.e+`}`).Lookup("e"), release.At(8, 3, 0))
		if err != nil || got.String() != tt.want {
			t.Errorf("%s is %v, %v; want %s", tt.e, got, err, tt.want)
		}
	}
	for e, code := range map[string]int32{
		`{"$sigmoid": "x"}`:                                             srverr.TypeMismatch,
		`{"$sigmoid": {"x": 1}}`:                                        srverr.FailedToParse,
		`{"$sigmoid": {"onNull": 1}}`:                                   srverr.FailedToParse,
		`{"$map": {"input": "$a", "arrayIndexAs": "I", "in": 1}}`:       srverr.FailedToParse,
		`{"$map": {"input": "$a", "arrayIndexAs": "i", "in": "$$IDX"}}`: 17276,
		`{"$serializeEJSON": {"relaxed": true}}`:                        srverr.FailedToParse,
		`{"$serializeEJSON": {"input": 1, "relaxed": 1}}`:               srverr.FailedToParse,
		`{"$deserializeEJSON": {"input": 1, "relaxed": true}}`:          srverr.FailedToParse,
	} {
		got, err := evaluate83(t, parseDoc(t, `{"e": `+e+`}`).Lookup("e"), release.At(8, 3, 0))
		if srverr.CodeOf(err) != code {
			t.Errorf("%s is %v, %v; want code %d", e, got, err, code)
		}
	}
	for _, e := range []string{
		`{"$sigmoid": 1}`, `{"$map": {"input": "$a", "in": "$$IDX"}}`, `{"$map": {"input": "$a", "arrayIndexAs": "i", "in": 1}}`,
		`{"$filter": {"input": "$a", "arrayIndexAs": "i", "cond": 1}}`,
		`{"$reduce": {"input": "$a", "initialValue": 0, "in": 1, "arrayIndexAs": "i"}}`,
	} {
		if got, err := evaluate83(t, parseDoc(t, `{"e": `+e+`}`).Lookup("e"), release.At(8, 0, 0)); err == nil {
			t.Errorf("%s at 8.0 is %v", e, got)
		}
	}
}

// What is written with wrappers and read again is what it was, of every type.
func TestExtendedJSONOfValues(t *testing.T) {
	literal := func(v bson.RawValue) bson.RawValue {
		at, doc := bson.BeginDocument(nil)
		return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(bson.AppendRawValue(doc, "$literal", v), at)}
	}
	call := func(name string, input bson.RawValue, relaxed bool) bson.RawValue {
		t.Helper()
		at, doc := bson.BeginDocument(nil)
		args, doc := bson.BeginDocumentElement(doc, name)
		doc = bson.AppendRawValue(doc, "input", literal(input))
		if relaxed {
			doc = bson.AppendBool(doc, "relaxed", true)
		}
		e := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(bson.EndDocument(doc, args), at)}
		v, err := evaluate83(t, e, release.At(8, 3, 0))
		if err != nil {
			t.Fatalf("%s of %v: %v", name, input, err)
		}
		return v
	}
	meant := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: parseDoc(t, wrapped83)}
	plain, err := plainJSON([]byte(wrapped83))
	if err != nil || bson.Raw(plain.Value).Lookup("i", "$numberInt").Type != bson.TypeString {
		t.Fatalf("%v, %v", plain, err)
	}
	if got := call("$serializeEJSON", meant, false); !got.Equal(plain) {
		t.Errorf("%v, want %v", got, plain)
	}
	if got := call("$deserializeEJSON", plain, false); !got.Equal(meant) {
		t.Errorf("%v, want %v", got, meant)
	}
	// In the relaxed form finite numbers stay what they are, and dates of these times are texts.
	relaxed := bson.Raw(call("$serializeEJSON", meant, true).Value)
	for _, key := range []string{"i", "l", "d"} {
		if got, want := relaxed.Lookup(key), bson.Raw(meant.Value).Lookup(key); !got.Equal(want) {
			t.Errorf("relaxed, %s is %v, want %v", key, got, want)
		}
	}
	if text, _ := relaxed.Lookup("t", "$date").StringValue(); text != "2021-01-01T00:00:00Z" {
		t.Errorf("relaxed, a date is %v", relaxed.Lookup("t"))
	}
	if text, _ := relaxed.Lookup("f", "$numberDouble").StringValue(); text != "NaN" {
		t.Errorf("relaxed, NaN is %v", relaxed.Lookup("f"))
	}
	bad, err := plainJSON([]byte(`{"$oid": "x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := deserializeEJSON(&State{env: &Env{}}, bad); srverr.CodeOf(err) != srverr.ConversionFailure {
		t.Errorf("a wrapper with a wrong value is %v, %v", v, err)
	}
}
