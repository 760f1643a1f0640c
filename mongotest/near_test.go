package mongotest_test

import (
	"testing"

	"allium/mongotest"
)

// $near finds what has a place within its limits, the nearest first, in every command, and needs an
// index.
func TestNear(t *testing.T) {
	d := mongotest.Start(t, mongotest.Version("4.4"))
	c := dial(t, d.Hosts()[0])
	const far, near = `{"p": {"$near": [0, 0]}}`, `{"p": {"$near": [0, 0], "$maxDistance": 6}}`
	ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{"_id": 1, "p": [5, 0]}, {"_id": 2}, {"_id": 3, "p": [1, 1]}, {"_id": 4, "p": [50, 50]}], "$db": "t"}`)))
	for _, text := range []string{`{"find": "c", "filter": ` + far, `{"count": "c", "query": ` + far, `{"distinct": "c", "key": "_id", "query": ` + far,
		`{"findAndModify": "c", "remove": true, "query": ` + far} {
		if code, _ := command(t, c, extJSON(t, text+`, "$db": "t"}`)).Lookup("code").AsInt64(); code != 291 {
			t.Errorf("%s without an index: code %d", text, code)
		}
	}
	ok(t, command(t, c, extJSON(t, `{"createIndexes": "c", "indexes": [{"key": {"p": "2d"}, "name": "p"}], "$db": "t"}`)))
	for _, step := range []struct {
		command string
		path    []string
		want    string
	}{
		{`{"find": "c", "filter": ` + far + `, "projection": {"_id": 1}`, []string{"cursor", "firstBatch"}, `[{"_id":3},{"_id":1},{"_id":4}]`},
		{`{"count": "c", "query": ` + near, []string{"n"}, `2`},
		{`{"distinct": "c", "key": "_id", "query": ` + near, []string{"values"}, `[1,3]`},
		{`{"update": "c", "updates": [{"q": ` + near + `, "u": {"$set": {"hit": 1}}, "multi": true}]`, []string{"nModified"}, `2`},
		{`{"update": "c", "updates": [{"q": ` + far + `, "u": {"$set": {"first": 1}}}]`, []string{"n"}, `1`},
		{`{"find": "c", "filter": {"first": 1}, "projection": {"_id": 1}`, []string{"cursor", "firstBatch"}, `[{"_id":3}]`},
		{`{"findAndModify": "c", "query": ` + far + `, "remove": true, "fields": {"_id": 1}`, []string{"value"}, `{"_id":3}`},
		{`{"delete": "c", "deletes": [{"q": ` + near + `, "limit": 0}]`, []string{"n"}, `1`},
		{`{"create": "capped", "capped": true, "size": 4096`, []string{"ok"}, `1.0`},
		{`{"find": "capped", "tailable": true, "filter": ` + far, []string{"code"}, `2`},
		{`{"createIndexes": "d", "indexes": [{"key": {"a": "2d"}, "bits": 33, "name": "x"}]`, []string{"code"}, `72`},
		{`{"createIndexes": "d", "indexes": [{"key": {"a": "2d"}, "min": 5, "max": 5, "name": "x"}]`, []string{"code"}, `72`},
		{`{"createIndexes": "d", "indexes": [{"key": {"a": "2d", "b": "2d"}, "name": "x"}]`, []string{"code"}, `16800`},
		{`{"createIndexes": "d", "indexes": [{"key": {"a": 1, "b": "2d"}, "name": "x"}]`, []string{"code"}, `16801`},
		{`{"createIndexes": "d", "indexes": [{"key": {"a": "2dsphere"}, "2dsphereIndexVersion": 4, "name": "x"}]`, []string{"code"}, `67`},
	} {
		reply := command(t, c, extJSON(t, step.command+`, "$db": "t"}`))
		if got := reply.Lookup(step.path...).String(); got != step.want {
			t.Errorf("%s: %s, want %s", step.command, got, step.want)
		}
	}
}
