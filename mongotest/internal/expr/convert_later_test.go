package expr

import (
	"testing"

	"allium/bson"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// The conversions that came with 8.1 and 8.3. The examples of the manual are among them, and what a
// test suite of others expects of an 8.2.4. A want of "" stands for an error, one of
// ConversionFailure where no code is given.
func TestConversionsSince81(t *testing.T) {
	for _, tt := range []struct {
		args, want string
		code       int32
	}{
		// Numbers and their bytes.
		{`"input": 42, "to": "binData"`, `{"$binary":{"base64":"KgAAAA==","subType":"00"}}`, 0},
		{`"input": 42, "to": "binData", "byteOrder": "big"`, `{"$binary":{"base64":"AAAAKg==","subType":"00"}}`, 0},
		{`"input": 42, "to": "binData", "byteOrder": null`, `{"$binary":{"base64":"KgAAAA==","subType":"00"}}`, 0},
		{`"input": {"$toLong": 42}, "to": {"type": "binData", "subtype": {"$add": [100, 100]}}, "byteOrder": {"$concat": ["bi", "g"]}`,
			`{"$binary":{"base64":"AAAAAAAAACo=","subType":"c8"}}`, 0},
		{`"input": 2.5, "to": "binData", "byteOrder": "big"`, `{"$binary":{"base64":"QAQAAAAAAAA=","subType":"00"}}`, 0},
		{`"input": {"$toDecimal": 1}, "to": "binData"`, "", 0},
		{`"input": true, "to": "binData"`, "", 0},
		{`"input": {"$binary": {"base64": "ABAAAA==", "subType": "00"}}, "to": "int", "byteOrder": "big"`, `1048576`, 0},
		{`"input": {"$binary": {"base64": "///nlg==", "subType": "00"}}, "to": "int"`, `-1763180545`, 0},
		{`"input": {"$binary": {"base64": "/w==", "subType": "00"}}, "to": "int"`, `-1`, 0},
		{`"input": {"$binary": {"base64": "AID/", "subType": "00"}}, "to": "int"`, "", 0},
		{`"input": {"$binary": {"base64": "AIA=", "subType": "00"}}, "to": "long"`, `-32768`, 0},
		{`"input": {"$binary": {"base64": "ABAAAAAAAAA=", "subType": "00"}}, "to": "int"`, "", 0},
		{`"input": {"$binary": {"base64": "ABAAAAAAAAA=", "subType": "00"}}, "to": "long"`, `4096`, 0},
		{`"input": {"$binary": {"base64": "BMzMzQ==", "subType": "00"}}, "to": "double", "byteOrder": "big"`,
			`4.814824932714571E-36`, 0},
		{`"input": {"$binary": {"base64": "AAA=", "subType": "00"}}, "to": "double"`, "", 0},
		{`"input": {"$binary": {"base64": "AAA=", "subType": "00"}}, "to": "double", "onError": "no"`, `"no"`, 0},
		{`"input": {"$binary": {"base64": "AAAAAA==", "subType": "00"}}, "to": "decimal"`, "", 0},
		{`"input": 1, "to": "binData", "byteOrder": "middle"`, "", 9130002},
		{`"input": 1, "to": "binData", "byteOrder": 1`, "", 9130001},
		{`"input": 1, "to": "string", "byteOrder": 1`, `"1"`, 0},
		{`"input": null, "to": "binData", "byteOrder": 1`, `null`, 0},
		{`"input": 1, "to": {"type": "binData", "subtype": "x"}`, "", 4341108},
		{`"input": 1, "to": {"type": "binData", "subtype": 1.5}`, "", 4341106},
		{`"input": 1, "to": {"type": "binData", "subtype": 10}`, "", 4341107},
		{`"input": null, "to": {"type": "binData", "subtype": "x"}`, `null`, 0},
		{`"input": 1, "to": {"type": null}`, "", srverr.FailedToParse},
		{`"input": 1, "to": {"type": "string", "more": 1}`, `"1"`, 0},

		// Bases.
		{`"input": 10, "to": "string", "base": 2`, `"1010"`, 0},
		{`"input": 10, "to": "string", "base": 16`, `"A"`, 0},
		{`"input": -255, "to": "string", "base": 16`, `"-FF"`, 0},
		{`"input": {"$toDecimal": "8"}, "to": "string", "base": 8`, `"10"`, 0},
		{`"input": 8.0, "to": "string", "base": 8`, `"10"`, 0},
		{`"input": "1010", "to": "int", "base": 2`, `10`, 0},
		{`"input": "A", "to": "int", "base": 16`, `10`, 0},
		{`"input": "-ff", "to": "long", "base": 16`, `-255`, 0},
		{`"input": "777", "to": "double", "base": 8`, `511.0`, 0},
		{`"input": "ffffffffffffffff", "to": "decimal", "base": 16`, `{"$numberDecimal":"18446744073709551615"}`, 0},
		{`"input": "ffffffff", "to": "int", "base": 16`, "", 0},
		{`"input": "12", "to": "int", "base": 2`, "", 0},
		{`"input": "0x1", "to": "int", "base": 16`, "", 0},
		{`"input": "1_0", "to": "int", "base": 10`, "", 0},
		{`"input": "", "to": "int", "base": 10`, "", 0},
		{`"input": "1.1", "to": "double", "base": 2`, "", 0},
		{`"input": 10.5, "to": "string", "base": 2, "onError": "invalid"`, `"invalid"`, 0},
		{`"input": "7", "to": "int", "base": null`, `7`, 0},
		{`"input": "7", "to": "int", "base": 7`, "", srverr.BadValue},
		{`"input": true, "to": "int", "base": "x"`, "", srverr.BadValue},
		{`"input": true, "to": "int", "base": 2`, `1`, 0},

		// JSON.
		{`"input": "[1, 2, 3]", "to": "array"`, `[1,2,3]`, 0},
		{`"input": "[1, 2, 3]", "to": "array", "format": "base64url"`, `[1,2,3]`, 0},
		{`"input": " [] ", "to": "array"`, `[]`, 0},
		{`"input": "{}", "to": "array"`, "", 0},
		{`"input": "123", "to": "array"`, "", 0},
		{`"input": 123, "to": "array"`, "", 0},
		{`"input": "[1,]", "to": "array"`, "", 0},
		{`"input": "[1] 2", "to": "array"`, "", 0},
		{`"input": "[1", "to": "array"`, "", 0},
		{`"input": "asdf", "to": "array", "onError": "on error!"`, `"on error!"`, 0},
		{`"input": null, "to": "array", "onNull": "on null!"`, `"on null!"`, 0},
		{`"input": "{\"a\": 1, \"b\": 2, \"a\": 3}", "to": "object"`, `{"a":3,"b":2}`, 0},
		{`"input": "[]", "to": "object"`, "", 0},
		{`"input": "{\"nam\\u0000e\": \"foo\"}", "to": "object"`, "", 0},
		{`"input": "{\"name\": \"fo\\u0000o\"}", "to": "object"`, `{"name":"fo\u0000o"}`, 0},
		{`"input": "{\"foo\": 4294967296, \"n\": null, \"f\": false}", "to": "object"`,
			`{"foo":4294967296,"n":null,"f":false}`, 0},
		{`"input": "{\"foo\": 1.2e+3, \"p\": 18446744073709551615}", "to": "object"`, `{"foo":1200.0,"p":1.8446744073709552E+19}`, 0},

		// Vectors.
		{`"input": {"$binary": {"base64": "EAA=", "subType": "09"}}, "to": "array"`, `[]`, 0},
		{`"input": {"$binary": {"base64": "EAR/AA==", "subType": "09"}}, "to": "array"`,
			`[false,true,true,true,true,true,true,true,false,false,false,false]`, 0},
		{`"input": {"$binary": {"base64": "AwAA/w==", "subType": "09"}}, "to": "array"`, `[0,-1]`, 0},
		{`"input": {"$binary": {"base64": "JwAAAAA/", "subType": "09"}}, "to": "array"`, `[0.5]`, 0},
		{`"input": {"$binary": {"base64": "KAAA/w==", "subType": "09"}}, "to": "array"`, "", 0},
		{`"input": {"$binary": {"base64": "AwAA/w==", "subType": "00"}}, "to": "array"`, "", 0},
		{`"input": [], "to": "binData"`, `{"$binary":{"base64":"EAA=","subType":"09"}}`, 0},
		{`"input": [true, false, true], "to": {"type": "binData", "subtype": 9}`,
			`{"$binary":{"base64":"EAWg","subType":"09"}}`, 0},
		{`"input": [0, 1, -128], "to": "binData"`, `{"$binary":{"base64":"AwAAAYA=","subType":"09"}}`, 0},
		{`"input": [0.5, 1.0], "to": "binData"`, `{"$binary":{"base64":"JwAAAAA/AACAPw==","subType":"09"}}`, 0},
		{`"input": [0, 128], "to": "binData"`, "", 0},
		{`"input": [0, 1.5], "to": "binData"`, "", 0},
		{`"input": ["x"], "to": "binData"`, "", 0},
		{`"input": [1], "to": {"type": "binData", "subtype": 5}`, "", 0},
	} {
		e := parseDoc(t, `{"e": {"$convert": {`+tt.args+`}}}`).Lookup("e")
		if tt.want == "" && tt.code == 0 {
			tt.code = srverr.ConversionFailure
		}
		got, err := evaluate(bson.Raw{}, e, &Env{Version: release.At(8, 3, 0)})
		if srverr.CodeOf(err) != tt.code || err == nil && got.String() != tt.want {
			t.Errorf("%s: %s, %v; want %s, code %d", tt.args, got, err, tt.want, tt.code)
		}
	}
	for e, want := range map[string]string{
		`{"$toArray": "[{\"$oid\": \"507f1f77bcf86cd799439011\"}]"}`: `[{"$oid":"507f1f77bcf86cd799439011"}]`,
		`{"$toObject": "{\"a\": [1, {}]}"}`:                          `{"a":[1,{}]}`,
		`{"$toArray": "$nosuch"}`:                                    `null`,
	} {
		v := parseDoc(t, `{"e": `+e+`}`).Lookup("e")
		if got, err := evaluate(bson.Raw{}, v, &Env{Version: release.At(8, 3, 0)}); err != nil || got.String() != want {
			t.Errorf("%s is %v, %v; want %s", e, got, err, want)
		}
		if got, err := evaluate(bson.Raw{}, v, &Env{Version: release.At(8, 2, 0)}); err == nil {
			t.Errorf("%s at 8.2 is %v", e, got)
		}
	}
	for version, args := range map[release.Version]string{
		release.At(8, 0, 0): `"input": 1, "to": "string", "byteOrder": "big"`,
		release.At(8, 2, 0): `"input": 1, "to": "string", "base": 2`,
	} {
		e := parseDoc(t, `{"e": {"$convert": {`+args+`}}}`).Lookup("e")
		if got, err := evaluate(bson.Raw{}, e, &Env{Version: version}); srverr.CodeOf(err) != srverr.FailedToParse {
			t.Errorf("%s at %v: %v, %v", args, version, got, err)
		}
	}
}

// JSON that is nested deeper than a document may be is refused, however long the text is.
func TestDeepJSON(t *testing.T) {
	deep := make([]byte, 1<<20)
	for i := range deep {
		deep[i] = '['
	}
	if v, err := parseJSON(string(deep), bson.TypeArray); srverr.CodeOf(err) != srverr.ConversionFailure {
		t.Errorf("%v, %v", v.Type, err)
	}
}
