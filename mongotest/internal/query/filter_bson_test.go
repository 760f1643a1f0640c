package query

import (
	"strings"
	"testing"

	"allium/bson"
)

// TestFilterDocument compares filters with how explain shows them: each operator has a form, also
// in a filter that is a part of what was written.
func TestFilterDocument(t *testing.T) {
	for _, test := range []struct{ filter, want string }{
		{`{"a": 1}`, `{"a":{"$eq":1}}`},
		{`{"a": {"$type": "string"}}`, `{"a":{"$type":[2]}}`},
		{`{"a": {"$type": ["string", "number", "minKey"]}}`, `{"a":{"$type":["number",2,-1]}}`},
		{`{"a": {"$bitsAllSet": 5}}`, `{"a":{"$bitsAllSet":[0,2]}}`},
		{`{"a": {"$bitsAnyClear": [1, 7]}}`, `{"a":{"$bitsAnyClear":[1,7]}}`},
		{`{"a": {"$elemMatch": {"$gt": 1, "$not": {"$gt": 5}}}}`, `{"a":{"$elemMatch":{"$gt":1,"$not":{"$gt":5}}}}`},
		{`{"a": {"$elemMatch": {"b": {"$type": 2}}}}`, `{"a":{"$elemMatch":{"b":{"$type":[2]}}}}`},
		{`{"a": {"$not": {"$type": 2}}}`, `{"a":{"$not":{"$type":[2]}}}`},
		{`{"a": {"$not": {"$elemMatch": {"$gt": 1}}}}`, `{"a":{"$not":{"$elemMatch":{"$gt":1}}}}`},
		{`{"a": {"$geoWithin": {"$box": [[0, 0], [1, 1]]}}}`, `{"a":{"$geoWithin":{"$box":[[0,0],[1,1]]}}}`},
		{`{"$text": {"$search": "x"}}`, `{"$text":{"$search":"x","$language":"english","$caseSensitive":false,"$diacriticSensitive":false}}`},
		{`{"$text": {"$search": "x", "$language": "none", "$caseSensitive": true}}`, `{"$text":{"$search":"x","$language":"none","$caseSensitive":true,"$diacriticSensitive":false}}`},
		{`{"$jsonSchema": {"required": ["a"]}}`, `{"$jsonSchema":{"required":["a"]}}`},
	} {
		whole := mustFilter(t, parseJSON(t, test.filter))
		part := Joined([]Condition{whole.Condition()})
		for what, f := range map[string]*Filter{"whole": whole, "a part": part} {
			got, err := bson.MarshalExtJSON(f.Document(), false)
			if err != nil {
				t.Fatal(err)
			}
			if strings.ReplaceAll(string(got), " ", "") != strings.ReplaceAll(test.want, " ", "") {
				t.Errorf("%s as %s: %s, want %s", test.filter, what, got, test.want)
			}
		}
	}
}
