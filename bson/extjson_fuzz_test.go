package bson

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

// extJSONSeeds start the fuzzing of the reader; the corpus of the specification is not part of this
// repository.
var extJSONSeeds = []string{
	`{}`, ` {"a" : [1, -2.5e3, "x", true, false, null, {}, []]} `, `{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}`,
	`{"a":{"$oid":"57e193d7a9cc81b4027498b5"},"b":{"$symbol":"s"},"c":{"$uuid":"00112233-4455-6677-8899-aabbccddeeff"}}`,
	`{"a":{"$numberInt":"1"},"b":{"$numberLong":"-2"},"c":{"$numberDouble":"NaN"},"d":{"$numberDecimal":"1.5E+10"}}`,
	`{"a":{"$date":"2012-12-24T12:15:30.501+01:00"},"b":{"$date":{"$numberLong":"-1"}},"c":{"$date":5}}`,
	`{"a":{"$binary":{"base64":"//8=","subType":"02"}},"b":{"$binary":"//8=","$type":"80"}}`,
	`{"a":{"$timestamp":{"t":1,"i":2}},"b":{"$regularExpression":{"pattern":"a","options":"xi"}},"c":{"$regex":"a","$options":"i"}}`,
	`{"a":{"$dbPointer":{"$ref":"b","$id":{"$oid":"57e193d7a9cc81b4027498b5"}}},"b":{"$ref":"c","$id":1,"$db":"d"}}`,
	`{"a":{"$code":"f"},"b":{"$code":"f","$scope":{"x":1}},"c":{"$scope":{"$scope":{}},"$code":"f"}}`,
	`{"a":{"$minKey":1},"b":{"$maxKey":1},"c":{"$undefined":true}}`, `{"a":{"\u0024oid":1}}`, `{"a":9223372036854775808}`,
}

func FuzzExtJSONReader(f *testing.F) {
	for _, seed := range extJSONSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		legacy, legacyErr := ParseLegacyExtJSON(text)
		if legacyErr == nil {
			if err := legacy.Validate(); err != nil {
				t.Fatalf("legacy %s becomes malformed: %v", text, err)
			}
		}
		doc, err := ParseExtJSON(text)
		d := NewExtJSONDecoder(bytes.NewReader(text))
		streamed, streamErr := d.Next()
		if err != nil {
			return
		}
		if streamErr != nil || !Equal(streamed, doc) {
			t.Fatalf("%s: streamed %v, %v, want %v", text, streamed, streamErr, doc)
		}
		if legacyErr != nil {
			t.Fatalf("%s: legacy refuses it: %v", text, legacyErr)
		}
		if !json.Valid(text) {
			t.Fatalf("%s is no JSON and is accepted as %s", text, doc)
		}
		if err := doc.Validate(); err != nil {
			t.Fatalf("%s becomes malformed: %v", text, err)
		}
		for _, canonical := range []bool{true, false} {
			written, err := AppendExtJSON(nil, doc, canonical)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			again, err := ParseExtJSON(written)
			if err != nil || canonical && !Equal(again, doc) {
				t.Fatalf("%s becomes %s and then %v, %v", text, written, again, err)
			}
			if rewritten, err := AppendExtJSON(nil, again, canonical); err != nil || !bytes.Equal(written, rewritten) {
				t.Fatalf("%s becomes %s and then %s, %v", text, written, rewritten, err)
			}
		}
		var throughD D
		if err := Unmarshal(doc, &throughD); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if back, err := Marshal(throughD); err != nil || !Equal(back, doc) {
			t.Fatalf("%s: %v is %v through D, %v", text, doc, Raw(back), err)
		}
	})
}

// FuzzExtJSONWriter: the writer accepts the documents that Validate accepts, and what it writes is
// JSON.
func FuzzExtJSONWriter(f *testing.F) {
	for _, seed := range extJSONSeeds {
		if doc, err := ParseLegacyExtJSON([]byte(seed)); err == nil {
			f.Add([]byte(doc))
		}
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		invalid := Raw(doc).Validate()
		for _, canonical := range []bool{true, false} {
			text, err := AppendExtJSON(nil, doc, canonical)
			if (err == nil) != (invalid == nil) {
				t.Fatalf("%x: writing says %v, Validate says %v", doc, err, invalid)
			}
			if err == nil && !json.Valid(text) {
				t.Fatalf("%x becomes %s, which is no JSON", doc, text)
			}
		}
		_ = Raw(doc).String()
		if v := (RawValue{Type: TypeEmbeddedDocument, Value: doc}); Compare(v, v) != 0 {
			t.Fatalf("%x differs from itself", doc)
		}
	})
}

func FuzzDecimal128(f *testing.F) {
	for _, seed := range []string{
		"0", "-0.00", "1.5", "9.999999999999999999999999999999999E+6144", "1E-6176", "10E-6177", "0E+99999", "Infinity", "-inf", "NaN",
		"123456789012345678901234567890123400", ".5", "5.", "1e+5", "0.000001", "1E6112",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDecimal128(s)
		if fromBytes, bytesErr := parseDecimal([]byte(s)); fromBytes != d || (err == nil) != (bytesErr == nil) {
			t.Fatalf("%q: %v, %v from a string, %v, %v from bytes", s, d, err, fromBytes, bytesErr)
		}
		if err != nil {
			return
		}
		again, err := ParseDecimal128(d.String())
		if err != nil || again != d && !d.IsNaN() || d.Compare(again) != 0 {
			t.Fatalf("%q becomes %s and then %s, %v", s, d, again, err)
		}
		coefficient, exponent, err := d.BigInt()
		if (err != nil) != (d.IsNaN() || d.IsInf(0)) {
			t.Fatalf("%q: BigInt of %s: %v", s, d, err)
		}
		if err != nil {
			return
		}
		if back, err := NewDecimal128FromBigInt(coefficient, exponent); err != nil || back.Compare(d) != 0 || d.Sign() != 0 && back != d {
			t.Fatalf("%q: %s is %s through BigInt, %v", s, d, back, err)
		}
		// Exponents of thousands of digits are no work for a test.
		if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 || len(s) > 100 {
			return
		}
		want, ok := new(big.Rat).SetString(s)
		got, gotOK := new(big.Rat).SetString(d.String())
		if !ok || !gotOK || got.Cmp(want) != 0 {
			t.Fatalf("%q becomes %s", s, d)
		}
	})
}
