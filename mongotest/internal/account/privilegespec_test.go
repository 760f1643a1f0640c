package account

import (
	"strings"
	"testing"

	"allium/bson"
)

// TestParsePrivileges asks for the forms of a privilege one by one.
func TestParsePrivileges(t *testing.T) {
	for _, c := range []struct {
		privilege, want string
		db              string
		old             bool
	}{
		{`{"resource": {}, "actions": ["find"]}`, "resource must have exactly db and collection set, or have only cluster set  or have only anyResource set", "x", true},
		{`{"resource": {"db": "x"}, "actions": ["find"]}`, "resource must set both db and collection or set neither, but not exactly one.", "x", true},
		{`{"resource": {"cluster": true, "anyResource": true}, "actions": ["find"]}`, "resource must have exactly db and collection set, or have only cluster set  or have only anyResource set", "admin", true},
		{`{"resource": {"cluster": false}, "actions": ["find"]}`, "cluster must be true when specified", "admin", true},
		{`{"resource": {"anyResource": false}, "actions": ["find"]}`, "anyResource must be true when specified", "admin", true},
		{`{"resource": {"cluster": 1}, "actions": ["find"]}`, "wrong type for 'cluster' field, expected boolean, found cluster: 1", "admin", true},
		{`{"resource": {"db": 1, "collection": ""}, "actions": ["find"]}`, "wrong type for 'db' field, expected string, found db: 1", "admin", true},
		{`{"resource": {"db": "x", "collection": ""}, "actions": ["no", "find", "nor"]}`, "Unrecognized action privilege strings: no,nor", "x", true},
		{`{"resource": {}, "actions": ["find"]}`, "resource pattern must include 'db' and 'collection' fields, 'systemBuckets' field, 'cluster' field or 'anyResource' field", "x", false},
		{`{"resource": {"collection": "c", "db": "x", "y": 1}, "actions": ["update", "find", "find"], "z": 1}`, `{"resource":{"db":"x","collection":"c"},"actions":["find","update"]}`, "x", true},
	} {
		var doc bson.D
		if err := bson.UnmarshalExtJSON([]byte(`{"p": [`+c.privilege+`]}`), &doc); err != nil {
			t.Fatal(err)
		}
		raw, err := bson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		list, err := ParsePrivileges(bson.Raw(raw).Lookup("p").Value, c.db, c.old)
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "FailedToParse: ")
		} else if b, err := bson.MarshalExtJSON(bson.Raw(list[0]), false); err == nil {
			got = string(b)
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.privilege, got, c.want)
		}
	}
}
