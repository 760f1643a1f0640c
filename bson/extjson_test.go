package bson

import (
	"errors"
	"strings"
	"testing"
)

// TestExtJSON reads text and writes it canonically again. Where want is empty the text is to be
// refused.
func TestExtJSON(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{}`, `{}`},
		{" \t\r\n{ } \n", `{}`},
		{`{"a":[]}`, `{"a":[]}`},
		{`{"a" : [ 1 , [ ] , { } ] }`, `{"a":[{"$numberInt":"1"},[],{}]}`},
		{`{"a":true,"b":false,"c":null}`, `{"a":true,"b":false,"c":null}`},

		// numbers
		{`{"a":-0}`, `{"a":{"$numberInt":"0"}}`},
		{`{"a":2147483647,"b":2147483648,"c":-2147483648,"d":-2147483649}`,
			`{"a":{"$numberInt":"2147483647"},"b":{"$numberLong":"2147483648"},"c":{"$numberInt":"-2147483648"},"d":{"$numberLong":"-2147483649"}}`},
		{`{"a":9223372036854775807,"b":-9223372036854775808}`,
			`{"a":{"$numberLong":"9223372036854775807"},"b":{"$numberLong":"-9223372036854775808"}}`},
		{`{"a":9223372036854775808}`, `{"a":{"$numberDouble":"9.223372036854776E+18"}}`},
		{`{"a":100000000000000000000000}`, `{"a":{"$numberDouble":"1.0E+23"}}`},
		{`{"a":1.0,"b":1e2,"c":1E-7,"d":-1.5e+3,"e":1e15,"f":123456789.25,"g":-0.0,"h":0.00001}`,
			`{"a":{"$numberDouble":"1.0"},"b":{"$numberDouble":"100.0"},"c":{"$numberDouble":"1.0E-07"},"d":{"$numberDouble":"-1500.0"},` +
				`"e":{"$numberDouble":"1.0E+15"},"f":{"$numberDouble":"123456789.25"},"g":{"$numberDouble":"-0.0"},"h":{"$numberDouble":"0.00001"}}`},
		{`{"a":1e400}`, ``}, {`{"a":01}`, ``}, {`{"a":-}`, ``}, {`{"a":1.}`, ``}, {`{"a":.5}`, ``}, {`{"a":1e}`, ``}, {`{"a":+1}`, ``},
		{`{"a":1` + strings.Repeat("0", 400) + `}`, ``}, {`{"a":NaN}`, ``}, {`{"a":0x1}`, ``},

		// strings
		{`{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000"}`, `{"a":"\"\\/\b\f\n\r\t` + "é😀" + `\u0000"}`},
		{`{"a":"` + strings.Repeat("long ", 20) + `é"}`, `{"a":"` + strings.Repeat("long ", 20) + `é"}`},
		{`{"a":"\ud83d"}`, ``}, {`{"a":"\ude00\ud83d"}`, ``}, {`{"a":"\ud83dx"}`, ``}, {`{"a":"\u12"}`, ``}, {`{"a":"\x"}`, ``},
		{"{\"a\":\"\n\"}", ``}, {"{\"a\":\"12345678\x01\"}", ``}, {"{\"a\":\"\xff\"}", ``}, {"{\"\xff\":1}", ``}, {`{"a":"`, ``}, {`{"a":"\`, ``},

		// structure
		{``, ``}, {`{`, ``}, {`[]`, ``}, {`{}}`, ``}, {`{} {}`, ``}, {`{"a"}`, ``}, {`{"a":}`, ``}, {`{"a":1,}`, ``}, {`{,}`, ``},
		{`{"a":[1,]}`, ``}, {`{"a":[1 2]}`, ``}, {`{"a":[1}`, ``}, {`{a:1}`, ``}, {`{'a':1}`, ``}, {`{"a":tru}`, ``}, {`{"a":nullx}`, ``},
		{`{"a":1 "b":2}`, ``}, {`{"a\u0000":1}`, ``}, {`{"a":{"b\u0000":1}}`, ``}, {"\ufeff{}", ``}, {"{}\x00", ``},

		// type wrappers: in any order, nothing beside them, only inside of a document
		{`{"$oid":"x"}`, `{"$oid":"x"}`},
		{`{"a":{"\u0024oid":"000102030405060708090a0B"}}`, `{"a":{"$oid":"000102030405060708090a0b"}}`},
		{`{"a":{"$oid":"000102030405060708090a0b","b":1}}`, ``}, {`{"a":{"b":1,"$oid":"000102030405060708090a0b"}}`, ``},
		{`{"a":{"$oid":"00"}}`, ``}, {`{"a":{"$oid":1}}`, ``}, {`{"a":{"$oid":"000102030405060708090a0g"}}`, ``},
		{`{"a":{"$numberInt":"2147483648"}}`, ``}, {`{"a":{"$numberInt":"1.0"}}`, ``}, {`{"a":{"$numberInt":""}}`, ``}, {`{"a":{"$numberInt":1}}`, ``},
		{`{"a":{"$numberLong":"9223372036854775808"}}`, ``}, {`{"a":{"$numberLong":"0x1"}}`, ``},
		{`{"a":{"$numberDouble":"Infinity"},"b":{"$numberDouble":"-Infinity"},"c":{"$numberDouble":"NaN"}}`,
			`{"a":{"$numberDouble":"Infinity"},"b":{"$numberDouble":"-Infinity"},"c":{"$numberDouble":"NaN"}}`},
		{`{"a":{"$numberDouble":"inf"}}`, ``}, {`{"a":{"$numberDouble":"0x1p4"}}`, ``}, {`{"a":{"$numberDouble":"1e999"}}`, ``}, {`{"a":{"$numberDouble":""}}`, ``},
		{`{"a":{"$numberDecimal":"1e3"}}`, `{"a":{"$numberDecimal":"1E+3"}}`}, {`{"a":{"$numberDecimal":"x"}}`, ``},
		{`{"a":{"$date":"2012-12-24T12:15:30.501Z"}}`, `{"a":{"$date":{"$numberLong":"1356351330501"}}}`},
		{`{"a":{"$date":"2012-12-24T14:15:30.5019+02:00"}}`, `{"a":{"$date":{"$numberLong":"1356351330501"}}}`},
		{`{"a":{"$date":"0000-01-01T00:00:00Z"},"b":{"$date":"2000-02-29t23:59:59.9-00:30"}}`,
			`{"a":{"$date":{"$numberLong":"-62167219200000"}},"b":{"$date":{"$numberLong":"951870599900"}}}`},
		{`{"a":{"$date":42}}`, ``}, {`{"a":{"$date":"2012-02-30T00:00:00Z"}}`, ``}, {`{"a":{"$date":"2012-12-24"}}`, ``},
		{`{"a":{"$date":"2012-12-24T12:15:30"}}`, ``}, {`{"a":{"$date":"2012-12-24T12:15:30."}}`, ``}, {`{"a":{"$date":"2012-12-24T12:15:30+0200"}}`, ``},
		{`{"a":{"$date":{"$numberLong":"1","b":1}}}`, ``}, {`{"a":{"$date":{"$numberInt":"1"}}}`, ``}, {`{"a":{"$date":{}}}`, ``},
		{`{"a":{"$binary":{"subType":"2","base64":"\/\/8="}}}`, `{"a":{"$binary":{"base64":"//8=","subType":"02"}}}`},
		{`{"a":{"$binary":{"base64":"//8","subType":"00"}}}`, ``}, {`{"a":{"$binary":{"base64":"//8=\n","subType":"00"}}}`, ``},
		{`{"a":{"$binary":{"base64":"//8=","subType":""}}}`, ``}, {`{"a":{"$binary":{"base64":"//8=","subType":"000"}}}`, ``},
		{`{"a":{"$binary":{"base64":"//8="}}}`, ``}, {`{"a":{"$binary":{"base64":"","base64":""}}}`, ``}, {`{"a":{"$binary":"//8=","$type":"00"}}`, ``},
		{`{"a":{"$binary":{"base64":"/w==","subType":"9c"}}}`, `{"a":{"$binary":{"base64":"/w==","subType":"9c"}}}`},
		{`{"a":{"$binary":{"base64":"/w==","subType":"FA"}}}`, `{"a":{"$binary":{"base64":"/w==","subType":"fa"}}}`},
		{`{"a":{"$binary":{"base64":"/w==","subType":"aF"}}}`, `{"a":{"$binary":{"base64":"/w==","subType":"af"}}}`},
		{`{"a":{"$binary":{"base64":"/w==","subType":"0g"}}}`, ``},
		{`{"a":{"$binary":{"base64":"","subType":"00","x":1}}}`, ``}, {`{"a":{"$binary":{}}}`, ``}, {`{"a":{"$binary":{"base64":"","subType":"00"},"b":1}}`, ``},
		{`{"a":{"$uuid":"00112233-4455-6677-8899-AABBCCDDEEFF"}}`, `{"a":{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}}`},
		{`{"a":{"$timestamp":{"i":1,"t":4294967295}}}`, `{"a":{"$timestamp":{"t":4294967295,"i":1}}}`},
		{`{"a":{"$timestamp":{"t":4294967296,"i":1}}}`, ``}, {`{"a":{"$timestamp":{"t":-1,"i":1}}}`, ``}, {`{"a":{"$timestamp":{"t":1.0,"i":1}}}`, ``},
		{`{"a":{"$timestamp":{"t":1}}}`, ``}, {`{"a":{"$timestamp":{"t":1,"i":1,"j":1}}}`, ``}, {`{"a":{"$timestamp":1}}`, ``}, {`{"a":{"$timestamp":{"t":"1","i":1}}}`, ``},
		{`{"a":{"$regularExpression":{"options":"xmi","pattern":"a/\""}}}`, `{"a":{"$regularExpression":{"pattern":"a/\"","options":"imx"}}}`},
		{`{"a":{"$regularExpression":{"pattern":"\u0000","options":""}}}`, ``}, {`{"a":{"$regularExpression":{"pattern":""}}}`, ``},
		{`{"a":{"$dbPointer":{"$id":{"$oid":"000102030405060708090a0b"},"$ref":"b"}}}`, `{"a":{"$dbPointer":{"$ref":"b","$id":{"$oid":"000102030405060708090a0b"}}}}`},
		{`{"a":{"$dbPointer":{"$ref":"b","$id":"000102030405060708090a0b"}}}`, ``}, {`{"a":{"$dbPointer":{"$ref":"b","$id":{"x":1}}}}`, ``}, {`{"a":{"$dbPointer":{"$ref":"b","$id":{}}}}`, ``},
		{`{"a":{"$scope":{"x":{"$scope":{},"$code":"inner"}},"$code":"outer"}}`, `{"a":{"$code":"outer","$scope":{"x":{"$code":"inner","$scope":{}}}}}`},
		{`{"a":{"$code":"f"}}`, `{"a":{"$code":"f"}}`},
		{`{"a":{"$scope":{}}}`, ``}, {`{"a":{"$code":"f","$scope":1}}`, ``}, {`{"a":{"$code":1}}`, ``}, {`{"a":{"$code":"f","x":1}}`, ``}, {`{"a":{"$code":"f","$scope":{},"x":1}}`, ``},
		{`{"a":{"$code":"f","$scope":{"$oid":"000102030405060708090a0b"}}}`, ``},
		{`{"a":{"$minKey":1},"b":{"$maxKey":1},"c":{"$undefined":true},"d":{"$symbol":"s"}}`, `{"a":{"$minKey":1},"b":{"$maxKey":1},"c":{"$undefined":true},"d":{"$symbol":"s"}}`},
		{`{"a":{"$minKey":true}}`, ``}, {`{"a":{"$minKey":2}}`, ``}, {`{"a":{"$maxKey":1.0}}`, ``}, {`{"a":{"$undefined":false}}`, ``}, {`{"a":{"$symbol":1}}`, ``},

		// what is none
		{`{"a":{"$foo":{"$bar":"x"}}}`, `{"a":{"$foo":{"$bar":"x"}}}`},
		{`{"a":{"$ref":"c","$id":{"$numberInt":"1"},"$db":1}}`, `{"a":{"$ref":"c","$id":{"$numberInt":"1"},"$db":{"$numberInt":"1"}}}`},
		{`{"a":{"$regex":"b","$options":"i"}}`, `{"a":{"$regex":"b","$options":"i"}}`},
		{`{"a":{"$regex":{"$regularExpression":{"pattern":"b","options":""}},"$options":"ix"}}`, `{"a":{"$regex":{"$regularExpression":{"pattern":"b","options":""}},"$options":"ix"}}`},
		{`{"a":{"$type":"string"}}`, `{"a":{"$type":"string"}}`},
	}
	for _, tt := range tests {
		doc, err := ParseExtJSON([]byte(tt.in))
		if tt.want == "" {
			var at *ExtJSONError
			if err == nil {
				t.Errorf("%s is accepted, as %s", tt.in, doc)
			} else if !errors.As(err, &at) || at.Offset < 0 || at.Offset > int64(len(tt.in)) {
				t.Errorf("%s: error without a sensible offset: %v", tt.in, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if err := doc.Validate(); err != nil {
			t.Errorf("%s becomes malformed BSON: %v", tt.in, err)
		}
		if got, err := AppendExtJSON(nil, doc, true); err != nil || string(got) != tt.want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", tt.in, got, err, tt.want)
		}
	}
}

func TestExtJSONErrorOffset(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string
	}{
		{`{"a": 1, "b": x}`, `bson: extended JSON: byte 14: 'x', want a value`},
		{`{"a": {"$oid": 5}}`, `bson: extended JSON: byte 15: $oid must be a string`},
		{`{"a": {"$oid": "5"}}`, `bson: extended JSON: byte 15: $oid of "5"`},
		{`{"a": [1, 2`, `bson: extended JSON: byte 11: unexpected EOF`},
		{"{\"a\": \"ab\xff\"}", `bson: extended JSON: byte 7: string is not valid UTF-8`},
		{`{"a": {"x": 1, "$date": 1}}`, `bson: extended JSON: byte 15: $date beside other keys`},
		{`{"a": {"$date": "x", "x": 1}}`, `bson: extended JSON: byte 16: $date of "x"`},
		{`{"a": {"$numberInt": "1", "x": 1}}`, `bson: extended JSON: byte 6: other keys beside $numberInt`},
		{`{} x`, `bson: extended JSON: byte 3: 'x', want the end of the text`},
		{`{"a": {"$numberDecimal": "1_"}}`, `bson: extended JSON: byte 25: $numberDecimal of "1_": not a decimal number`},
	} {
		_, err := ParseExtJSON([]byte(tt.in))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.in, err, tt.want)
		}
	}
}

func TestExtJSONRelaxed(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"a":{"$numberInt":"1"},"b":{"$numberLong":"2"},"c":{"$numberDouble":"3.0"}}`, `{"a":1,"b":2,"c":3.0}`},
		{`{"a":{"$numberDouble":"NaN"},"b":{"$numberDecimal":"1.50"}}`, `{"a":{"$numberDouble":"NaN"},"b":{"$numberDecimal":"1.50"}}`},
		{`{"a":{"$date":{"$numberLong":"0"}},"b":{"$date":{"$numberLong":"-1"}}}`, `{"a":{"$date":"1970-01-01T00:00:00Z"},"b":{"$date":{"$numberLong":"-1"}}}`},
		{`{"a":{"$date":{"$numberLong":"253402300799999"}},"b":{"$date":{"$numberLong":"253402300800000"}}}`,
			`{"a":{"$date":"9999-12-31T23:59:59.999Z"},"b":{"$date":{"$numberLong":"253402300800000"}}}`},
	} {
		doc, err := ParseExtJSON([]byte(tt.in))
		if err != nil {
			t.Fatal(err)
		}
		if got := doc.String(); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

// TestDateTimeText compares with Go's own calendar, day by day through leap years and centuries.
func TestDateTimeText(t *testing.T) {
	for ms := DateTime(0); ms <= endOfYear9999; ms += 7*millisPerDay + 12345678 {
		want := ms.Time().Format("2006-01-02T15:04:05.999Z07:00")
		// The specification wants three decimal places or none.
		if i := strings.IndexByte(want, '.'); i >= 0 {
			want = ms.Time().Format("2006-01-02T15:04:05.000Z07:00")
		}
		got := ms.appendRFC3339(nil)
		if string(got) != want {
			t.Fatalf("%d: got %s, want %s", ms, got, want)
		}
		if back, ok := parseDateTime(got, false); !ok || back != int64(ms) {
			t.Fatalf("%s: got %d, want %d", got, back, ms)
		}
	}
}

func TestExtJSONDepth(t *testing.T) {
	nested := func(n int) string {
		return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	doc, err := ParseExtJSON([]byte(nested(DefaultMaxDepth)))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(); err != nil {
		t.Error(err)
	}
	if got := doc.String(); got != nested(DefaultMaxDepth) {
		t.Errorf("got %s", got)
	}
	if _, err := ParseExtJSON([]byte(nested(DefaultMaxDepth + 1))); err == nil {
		t.Error("a document that nests too deeply is accepted")
	}
	if _, err := ParseExtJSON([]byte(strings.Repeat(`{"a":`, 1_000_000))); err == nil {
		t.Error("a document that nests far too deeply is accepted")
	}
	deep := Raw{}
	for range DefaultMaxDepth + 1 {
		start, b := BeginDocument(nil)
		if len(deep) > 0 {
			b = AppendDocument(b, "a", deep)
		}
		deep = EndDocument(b, start)
	}
	if text, err := AppendExtJSON(nil, deep, true); err == nil {
		t.Errorf("a document that nests too deeply becomes %s", text)
	}
}

func TestParseExtJSONValue(t *testing.T) {
	for _, tt := range []string{`1`, `"a"`, `[1,{"a":true}]`, `{"$oid":"000102030405060708090a0b"}`, `{"a":1}`, `null`, `{"$minKey":1}`} {
		v, err := ParseExtJSONValue([]byte(" " + tt + " "))
		if err != nil || v.String() != tt {
			t.Errorf("%s: got %s, %v", tt, v, err)
		}
	}
	if v, err := ParseExtJSONValue([]byte(`1 2`)); err == nil {
		t.Errorf("two values are accepted as %s", v)
	}
}

// TestMaxDepthOfExtJSON: Options.MaxDepth holds for Extended JSON, too.
func TestMaxDepthOfExtJSON(t *testing.T) {
	nested := func(levels int) Raw {
		doc := Raw{5, 0, 0, 0, 0}
		for range levels - 1 {
			start, dst := BeginDocument(nil)
			doc = EndDocument(AppendDocument(dst, "a", doc), start)
		}
		return doc
	}
	for _, tt := range []struct {
		o      Options
		levels int
		ok     bool
	}{
		{Options{}, 200, true}, {Options{}, 201, false},
		{Options{MaxDepth: 3}, 3, true}, {Options{MaxDepth: 3}, 4, false},
		{Options{MaxDepth: 300}, 300, true}, {Options{MaxDepth: 300}, 301, false},
	} {
		doc := nested(tt.levels)
		text, err := tt.o.MarshalExtJSON(doc, true)
		if (err == nil) != tt.ok {
			t.Errorf("writing %d levels with %d: %v", tt.levels, tt.o.MaxDepth, err)
		}
		if err != nil {
			if text, err = (Options{MaxDepth: 1000}).MarshalExtJSON(doc, true); err != nil {
				t.Fatal(err)
			}
		}
		for _, into := range []any{new(Raw), new(RawValue), new(D), new(M)} {
			if err := tt.o.UnmarshalExtJSON(text, into); (err == nil) != tt.ok {
				t.Errorf("reading %d levels with %d into %T: %v", tt.levels, tt.o.MaxDepth, into, err)
			}
		}
	}
}

// A Go type that is no type of BSON is an error, in Extended JSON as elsewhere.
func TestUnknownGoTypesAreErrors(t *testing.T) {
	for _, v := range []any{make(chan int), func() {}, 1i, uintptr(1), struct{ C chan int }{make(chan int)}, []any{func() {}}, map[string]any{"a": 1i}} {
		for _, canonical := range []bool{false, true} {
			if text, err := MarshalExtJSON(D{{"a", v}}, canonical); err == nil {
				t.Errorf("%T becomes %s", v, text)
			}
		}
	}
}
