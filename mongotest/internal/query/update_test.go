package query

import (
	"testing"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

func parseJSON(t *testing.T, text string) bson.Raw {
	t.Helper()
	d, err := bson.ParseExtJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// v44 is the version of the recordings.
var v44 = release.At(4, 4, 0)

func TestUpdate(t *testing.T) {
	for _, tt := range []struct {
		version           release.Version
		doc, update, want string
		modified          bool
	}{
		{v44, `{}`, `{"$set":{"10":1,"9":2,"b":3}}`, `{"10":1,"9":2,"b":3}`, true},
		{release.At(5, 0, 0), `{}`, `{"$set":{"10":1,"9":2,"b":3}}`, `{"9":2,"10":1,"b":3}`, true},
		{release.At(5, 0, 0), `{"a":1}`, `{"$set":{}}`, `{"a":1}`, false},
		{release.At(5, 0, 0), `{}`, `{"$set":{"a":{"$b":1}}}`, `{"a":{"$b":1}}`, true},
		{v44, `{"n":{"$numberDouble":"NaN"}}`, `{"$inc":{"n":1}}`, `{"n":{"$numberDouble":"NaN"}}`, true},
		{v44, `{"n":{"$numberDouble":"-0.0"}}`, `{"$inc":{"n":{"$numberDouble":"0.0"}}}`, `{"n":{"$numberDouble":"-0.0"}}`, false},
		{v44, `{"a":[1]}`, `{"$set":{"a.3":2}}`, `{"a":[1,null,null,2]}`, true},
		{v44, `{"a":[{"b":1},{"b":2}]}`, `{"$inc":{"a.0.b":1,"a.1.b":1}}`, `{"a":[{"b":2},{"b":3}]}`, true},
		{v44, `{"a":[1,2,3,4]}`, `{"$push":{"a":{"$each":[5],"$position":1,"$sort":-1,"$slice":-2}}}`, `{"a":[2,1]}`, true},
		{v44, `{"a":{"b":1}}`, `{"$rename":{"a.b":"c"},"$set":{"d":1}}`, `{"a":{},"c":1,"d":1}`, true},
		{v44, `{"_id":{"x":1}}`, `{"$set":{"_id":{"x":{"$numberDouble":"1.0"}}}}`, `{"_id":{"x":{"$numberDouble":"1.0"}}}`, true},
	} {
		u, err := ParseUpdate(bsondoc.DocumentValue(parseJSON(t, tt.update)), &UpdateOptions{Options: Options{Version: tt.version}})
		if err != nil {
			t.Errorf("%s: %v", tt.update, err)
			continue
		}
		got, modified, err := u.Apply(parseJSON(t, tt.doc), -1, Clock{})
		want := parseJSON(t, tt.want)
		if err != nil || modified != tt.modified || !bson.Equal(got, want) {
			t.Errorf("%s on %s (%v): %v, %v, %v; want %v", tt.update, tt.doc, tt.version, got, modified, err, want)
		}
	}
}

func TestUpdateErrors(t *testing.T) {
	for _, tt := range []struct {
		doc, update string
		code        int32
		msg         string
	}{
		{`{"_id":{"x":1}}`, `{"$set":{"_id.y":2}}`, 66, "Updating the path '_id.y' to _id: { x: 1, y: 2 } would modify the immutable field '_id'"},
		{`{"a":1}`, `{"$push":{"a.b":2}}`, 28, "Cannot create field 'b' in element {a: 1}"},
		{`{"a":1}`, `{"$pop":{"a.b":1}}`, 28, "Cannot use the part (b) of (a.b) to traverse the element ({a: 1})"},
		{`{"a":[]}`, `{"$set":{"a.1500001":1}}`, 34, "can't backfill more than 1500000 elements"},
		{`{"a":1}`, `{"$set":{"x":{"$id":1}}}`, 55, "Found $id field without a $ref before it, which is invalid."},
		{`{"a":1}`, `{"$set":{"x":{"$ref":1,"$id":1}}}`, 55, "The DBRef $ref field must be a String, not a int"},
		{`{"a":1}`, `{"$set":{"x":{"$ref":"c"}}}`, 55, "The DBRef $ref field must be followed by a $id field"},
	} {
		u, err := ParseUpdate(bsondoc.DocumentValue(parseJSON(t, tt.update)), &UpdateOptions{Options: Options{Version: v44}})
		if err == nil {
			_, _, err = u.Apply(parseJSON(t, tt.doc), -1, Clock{})
		}
		e, ok := err.(*srverr.Error)
		if !ok || e.Code != tt.code || e.Msg != tt.msg {
			t.Errorf("%s on %s: %v, want %d %s", tt.update, tt.doc, err, tt.code, tt.msg)
		}
	}
}
