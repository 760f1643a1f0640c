package bson

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestExtJSONDecoder reads each stream whole, byte by byte, and with the error of the end together
// with the last bytes.
func TestExtJSONDecoder(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 200_000) + `"}`
	tests := []struct {
		in   string
		want []string
		err  string // empty: io.EOF
	}{
		{in: ""},
		{in: " \n"},
		{in: `{}`, want: []string{`{}`}},
		{in: `{"a":1}{"a":2}` + "\n\r\n\t" + `{"a":3} `, want: []string{`{"a":1}`, `{"a":2}`, `{"a":3}`}},
		{in: `{"a":"}{\"}[\\"}{"b":[{"c":"]"}]}`, want: []string{`{"a":"}{\"}[\\"}`, `{"b":[{"c":"]"}]}`}},
		{in: long + long, want: []string{long, long}},
		{in: ` [ {"a":1} , {"a":2} ] ` + "\n", want: []string{`{"a":1}`, `{"a":2}`}},
		{in: `[]`},
		{in: `{"a":1} x`, want: []string{`{"a":1}`}, err: `byte 8: 'x', want an object`},
		{in: `{"a":1}` + "\n" + `{"a":y}`, want: []string{`{"a":1}`}, err: `byte 13: 'y', want a value`},
		{in: `{"a":1}{"a":`, want: []string{`{"a":1}`}, err: `byte 12: unexpected EOF`},
		{in: `{"a":[}`, err: `byte 6: '}', want a value`},
		{in: `{"a":1]{}`, err: `byte 6: ']', want ',' or '}'`},
		{in: `}`, err: `byte 0: '}', want an object`},
		{in: `5`, err: `byte 0: '5', want an object`},
		{in: `"{`, err: `byte 0: '"', want an object`},
		{in: `[`, err: `byte 1: unexpected EOF`},
		{in: `[{}`, want: []string{`{}`}, err: `byte 3: unexpected EOF`},
		{in: `[{},`, want: []string{`{}`}, err: `byte 4: unexpected EOF`},
		{in: `[{},]`, want: []string{`{}`}, err: `byte 4: ']', want an object`},
		{in: `[{}{}]`, want: []string{`{}`}, err: `byte 3: neither ',' nor ']' after a document in an array`},
		{in: `[,{}]`, err: `byte 1: ',', want an object`},
		{in: `[1]`, err: `byte 1: '1', want an object`},
		{in: `[{}] {}`, want: []string{`{}`}, err: `byte 5: text after the array of documents`},
	}
	for _, tt := range tests {
		for name, r := range map[string]io.Reader{
			"whole":    strings.NewReader(tt.in),
			"bytes":    iotest.OneByteReader(strings.NewReader(tt.in)),
			"data+err": iotest.DataErrReader(strings.NewReader(tt.in)),
		} {
			d := NewExtJSONDecoder(r)
			for _, want := range tt.want {
				if doc, err := d.Next(); err != nil || doc.String() != want {
					t.Errorf("%s of %.40s: got %.40s, %v, want %.40s", name, tt.in, doc, err, want)
				}
			}
			for range 2 { // the last error stays
				doc, err := d.Next()
				if want := "bson: extended JSON: " + tt.err; tt.err != "" && (err == nil || err.Error() != want) || tt.err == "" && err != io.EOF {
					t.Errorf("%s of %.40s: got %v, %v, want the error %s", name, tt.in, doc, err, want)
				}
			}
		}
	}
}

func TestExtJSONDecoderErrors(t *testing.T) {
	broken := errors.New("broken pipe")
	d := NewExtJSONDecoder(io.MultiReader(strings.NewReader(`{"a":1}{"a":`), iotest.ErrReader(broken)))
	if _, err := d.Next(); err != nil {
		t.Error(err)
	}
	if _, err := d.Next(); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}

	d = NewExtJSONDecoder(strings.NewReader(`{"a":1}{"a":"` + strings.Repeat("x", 100_000) + `"}`))
	d.MaxBytes = 1000
	if _, err := d.Next(); err != nil {
		t.Error(err)
	}
	if _, err := d.Next(); err == nil || !strings.Contains(err.Error(), "1000 bytes") {
		t.Errorf("got %v, want an error about the document's length", err)
	}

	// A document that does not fit its variable does not end the stream.
	d = NewExtJSONDecoder(strings.NewReader(`{"n":"x"}{"n":2}`))
	var v struct{ N int }
	if err := d.Decode(&v); err == nil {
		t.Error("a string fits an int")
	}
	if err := d.Decode(&v); err != nil || v.N != 2 {
		t.Errorf("got %d, %v, want 2", v.N, err)
	}
}

func TestExtJSONDecoderAll(t *testing.T) {
	var got []string
	var last error
	for doc, err := range NewExtJSONDecoder(strings.NewReader(`{"a":1}{"a":2}{"a":`)).All() {
		got = append(got, doc.String())
		last = err
	}
	if fmt.Sprint(got[:2]) != `[{"a":1} {"a":2}]` || len(got) != 3 || !errors.Is(last, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, %v", got, last)
	}
}

func TestExtJSONLegacy(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"a":{"$date":42},"b":{"$date":"2012-12-24T14:15:30.501+0200"}}`, `{"a":{"$date":{"$numberLong":"42"}},"b":{"$date":{"$numberLong":"1356351330501"}}}`},
		{`{"a":{"$numberLong":1},"b":{"$numberInt":2},"c":{"$numberDouble":3},"d":{"$numberDecimal":4.50}}`,
			`{"a":{"$numberLong":"1"},"b":{"$numberInt":"2"},"c":{"$numberDouble":"3.0"},"d":{"$numberDecimal":"4.50"}}`},
		{`{"a":{"$binary":"//8=","$type":"02"},"b":{"$type":"80","$binary":"//8="}}`,
			`{"a":{"$binary":{"base64":"//8=","subType":"02"}},"b":{"$binary":{"base64":"//8=","subType":"80"}}}`},
		{`{"a":{"$regex":"b","$options":"xi"},"b":{"$options":"","$regex":"c"},"c":{"$regex":"d"}}`,
			`{"a":{"$regularExpression":{"pattern":"b","options":"ix"}},"b":{"$regularExpression":{"pattern":"c","options":""}},"c":{"$regularExpression":{"pattern":"d","options":""}}}`},
		{`{"$regex":{"$regularExpression":{"pattern":"foo*","options":""}},"$options":"ix"}`, `{"$regex":{"$regularExpression":{"pattern":"foo*","options":""}},"$options":"ix"}`},
		{`{"a":{"$regex":{"$regularExpression":{"pattern":"foo*","options":""}},"$options":"ix"}}`, `{"a":{"$regex":{"$regularExpression":{"pattern":"foo*","options":""}},"$options":"ix"}}`},
		{`{"a":{"$regex":"b","$options":"i","$nin":[]}}`, `{"a":{"$regex":"b","$options":"i","$nin":[]}}`},
		{`{"zipCode":{"$type":2}}`, `{"zipCode":{"$type":{"$numberInt":"2"}}}`},
		{`{"zipCode":{"$type":"string"}}`, `{"zipCode":{"$type":"string"}}`},
		{`{"zipCode":{"$type":"string","$ne":"x"}}`, `{"zipCode":{"$type":"string","$ne":"x"}}`},
		{`{"a":{"$binary":{"base64":"//8=","subType":"00"}}}`, `{"a":{"$binary":{"base64":"//8=","subType":"00"}}}`},
	} {
		doc, err := ParseLegacyExtJSON([]byte(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if got, err := MarshalExtJSON(doc, true); err != nil || string(got) != tt.want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", tt.in, got, err, tt.want)
		}
		d := NewExtJSONDecoder(strings.NewReader(tt.in))
		d.Legacy = true
		if again, err := d.Next(); err != nil || !Equal(again, doc) {
			t.Errorf("%s: the decoder gives %s, %v", tt.in, again, err)
		}
	}
	for _, in := range []string{
		`{"a":{"$binary":"//8="}}`, `{"a":{"$binary":"//8=","$type":5}}`, `{"a":{"$type":"00","$binary":"/"}}`, `{"a":{"$date":1.5}}`,
		`{"a":{"$numberLong":1.5}}`, `{"a":{"$binary":"//8=","$type":"00","x":1}}`, `{"a":{"$oid":5}}`,
	} {
		if doc, err := ParseLegacyExtJSON([]byte(in)); err == nil {
			t.Errorf("%s is accepted as %s", in, doc)
		}
	}
}

// TestExtJSONLegacyValues: what may be a query operator, or is a plain number where version 2 has a
// string, is read as without the setting.
func TestExtJSONLegacyValues(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"a":{"$date":42},"b":{"$date":"2012-12-24T14:15:30.501+0200"}}`,
			`{"a":{"$date":{"$numberLong":"42"}},"b":{"$date":{"$numberLong":"1356351330501"}}}`},
		{`{"a":[{"$binary":"//8=","$type":"2"}]}`, `{"a":[{"$binary":{"base64":"//8=","subType":"02"}}]}`},
		{`{"a":{"$type":"80","$binary":"//8="}}`, `{"a":{"$type":"80","$binary":"//8="}}`},
		{`{"a":{"$regex":"b","$options":"xi"}}`, `{"a":{"$regex":"b","$options":"xi"}}`},
		{`{"a":{"x":1,"$oid":"y"}}`, `{"a":{"x":{"$numberInt":"1"},"$oid":"y"}}`},
		{`{"a":{"$numberLong":1}}`, ``}, {`{"a":{"$binary":"//8="}}`, ``}, {`{"a":{"$date":1.5}}`, ``},
		{`{"a":{"$date":1,"x":1}}`, ``}, {`{"a":{"$oid":"y","x":1}}`, ``},
	} {
		d := NewExtJSONDecoder(strings.NewReader(tt.in))
		d.LegacyValues = true
		doc, err := d.Next()
		if tt.want == "" {
			if err == nil {
				t.Errorf("%s is accepted as %s", tt.in, doc)
			}
			continue
		}
		if got, markErr := MarshalExtJSON(doc, true); err != nil || markErr != nil || string(got) != tt.want {
			t.Errorf("%s\ngot  %s, %v, %v\nwant %s", tt.in, got, err, markErr, tt.want)
		}
	}
}

func TestUnmarshalExtJSON(t *testing.T) {
	type user struct {
		ID   ObjectID `bson:"_id"`
		Name string
		Tags []string
	}
	const text = `{"_id":{"$oid":"57e193d7a9cc81b4027498b5"},"name":"Ada","tags":["a","b"]}`
	var u user
	if err := UnmarshalExtJSON([]byte(text), &u); err != nil || u.Name != "Ada" || len(u.Tags) != 2 {
		t.Errorf("got %v, %v", u, err)
	}
	if got, err := MarshalExtJSON(u, false); err != nil || string(got) != text {
		t.Errorf("got %s, %v", got, err)
	}
	var d D
	var r Raw
	var x any
	for _, v := range []any{&d, &r, &x} {
		if err := UnmarshalExtJSON([]byte(text), v); err != nil {
			t.Errorf("%T: %v", v, err)
		}
	}
	if d.String() != text || r.String() != text || fmt.Sprint(x) != text {
		t.Errorf("got %s, %s and %s", d, r, x)
	}
	var a A
	if err := UnmarshalExtJSON([]byte(`[1,"x"]`), &a); err != nil || a.String() != `[1,"x"]` {
		t.Errorf("got %s, %v", a, err)
	}
	var v RawValue
	if err := UnmarshalExtJSON([]byte(`{"$oid":"57e193d7a9cc81b4027498b5"}`), &v); err != nil || v.Type != TypeObjectID {
		t.Errorf("got %s, %v", v, err)
	}
	if got, err := MarshalExtJSON(u.ID, false); err != nil || string(got) != `{"$oid":"57e193d7a9cc81b4027498b5"}` {
		t.Errorf("got %s, %v", got, err)
	}
	var at *ExtJSONError
	for _, in := range []string{``, `{`, `x`, `[1`} {
		if err := UnmarshalExtJSON([]byte(in), &d); !errors.As(err, &at) {
			t.Errorf("%q: got %v, want an ExtJSONError", in, err)
		}
	}
	if _, err := MarshalExtJSON(make(chan int), false); err == nil {
		t.Error("a channel has Extended JSON")
	}
	if got, err := MarshalExtJSONIndent(D{{"a", 1}}, false, "", "  "); err != nil || string(got) != "{\n  \"a\": 1\n}" {
		t.Errorf("got %s, %v", got, err)
	}
}
