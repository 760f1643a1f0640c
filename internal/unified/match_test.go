package unified

import (
	"testing"

	"allium/bson"
)

// noEntities is a lookup that finds nothing.
type noEntities struct{ *entities }

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		expected, actual string
		root, want       bool
	}{
		{`{"x": 1}`, `{"x": 1, "y": 2}`, true, true},
		{`{"x": 1}`, `{"x": 1, "y": 2}`, false, false},
		{`{"x": {"y": 1}}`, `{"x": {"y": 1, "z": 2}}`, true, false},
		{`{"x": 1, "y": 2}`, `{"y": 2, "x": 1}`, false, true},
		{`{"x": 1}`, `{"x": {"$numberDouble": "1.0"}}`, true, true},
		{`{"x": 1}`, `{"x": 1.5}`, true, false},
		{`{"x": 1}`, `{"x": {"$numberDecimal": "1"}}`, true, false},
		{`{"x": [1, 2]}`, `{"x": [1, 2, 3]}`, true, false},
		{`{"x": {"$$exists": true}}`, `{"x": null}`, true, true},
		{`{"x": {"$$exists": false}}`, `{"x": null}`, true, false},
		{`{"x": {"$$type": ["int", "long"]}}`, `{"x": {"$numberLong": "1"}}`, true, true},
		{`{"x": {"$$type": "string"}}`, `{}`, true, false},
		{`{"x": {"$$unsetOrMatches": 1}}`, `{}`, false, true},
		{`{"x": {"$$unsetOrMatches": 1}}`, `{"x": 2}`, false, false},
		{`{"x": {"$$lte": 5}}`, `{"x": 5.0}`, false, true},
		{`{"x": {"$$lte": 5}}`, `{"x": 5.5}`, false, false},
		{`{"x": {"$$matchesHexBytes": "616263"}}`, `{"x": "abc"}`, false, true},
		{`{"x": {"$$matchAsDocument": {"y": 1}}}`, `{"x": "{\"y\": 1}"}`, false, true},
		{`{"x": {"$$matchAsDocument": {"$$matchAsRoot": {"y": 1}}}}`, `{"x": "{\"y\": 1, \"z\": 1}"}`, false, true},
		{`{"x": {"$$nope": 1}}`, `{"x": 1}`, false, false},
	} {
		var expected, actual bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(tc.expected), &expected); err != nil {
			t.Fatal(err)
		}
		if err := bson.UnmarshalExtJSON([]byte(tc.actual), &actual); err != nil {
			t.Fatal(err)
		}
		err := match(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: expected}, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: actual}, tc.root, noEntities{})
		if (err == nil) != tc.want {
			t.Errorf("%s against %s (root %v): %v, want a match: %v", tc.expected, tc.actual, tc.root, err, tc.want)
		}
	}
}
