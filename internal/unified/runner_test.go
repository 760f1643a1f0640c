package unified

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"allium/bson"
)

// file reads the text of a test file.
func file(t *testing.T, text string) *File {
	t.Helper()
	var raw bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	f, err := parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTargets(t *testing.T) {
	for _, tc := range []struct{ requirements, want, skip string }{
		{`[]`, "single 9.0.0, replicaset 9.0.0, sharded 9.0.0, load-balanced 9.0.0", ""},
		{`[{"topologies": ["sharded-replicaset"]}]`, "sharded 9.0.0", ""},
		{`[{"topologies": ["single"], "maxServerVersion": "4.4.99"}, {"topologies": ["sharded"], "maxServerVersion": "8.1.99"}]`, "single 4.4.29, sharded 8.1.2", ""},
		{`[{"maxServerVersion": "4.4.13"}]`, "single 4.4.13, replicaset 4.4.13, sharded 4.4.13", ""}, // no load balancers yet
		{`[{"auth": true, "topologies": ["replicaset"]}]`, "replicaset 9.0.0 auth", ""},
		{`[{"auth": false, "topologies": ["replicaset"]}]`, "replicaset 9.0.0", ""},
		{`[{"serverless": "forbid", "topologies": ["replicaset"]}]`, "replicaset 9.0.0", ""},
		{`[{"serverless": "require"}]`, "", "needs a serverless deployment on Atlas"},
		{`[{"csfle": true, "topologies": ["single"]}]`, "single 9.0.0", ""},
		{`[{"csfle": {"minLibmongocryptVersion": "99.0"}, "topologies": ["single"]}]`, "single 9.0.0", ""},
		{`[{"csfle": false}]`, "", "needs a driver without in-use encryption"},
		{`[{"maxServerVersion": "3.6"}]`, "", "needs server 3.6 or older"},
		{`[{"minServerVersion": "99.0"}]`, "", "needs server 99.0"},
	} {
		text := `{"description": "d", "schemaVersion": "1.0", "tests": [{"description": "t", "operations": []`
		if tc.requirements != "[]" {
			text += `, "runOnRequirements": ` + tc.requirements
		}
		f := file(t, text+`}]}`)
		targets, skip := Targets(f, &f.Tests[0], "")
		var names []string
		for _, target := range targets {
			names = append(names, target.String())
		}
		if got := strings.Join(names, ", "); got != tc.want || skip != tc.skip {
			t.Errorf("%s: runs on %s, skip %q; want %s, skip %q", tc.requirements, got, skip, tc.want, tc.skip)
		}
	}
}

// Both the file's requirements and the test's have to be met.
func TestTargetsOfBothLists(t *testing.T) {
	f := file(t, `{"description": "d", "schemaVersion": "1.0", "runOnRequirements": [{"minServerVersion": "5.0"}],
		"tests": [{"description": "t", "operations": [], "runOnRequirements": [{"maxServerVersion": "7.0.99", "topologies": ["single"]}]},
			{"description": "u", "operations": [], "runOnRequirements": [{"maxServerVersion": "4.4.99"}]},
			{"description": "v", "operations": [], "skipReason": "because"}]}`)
	targets, _ := Targets(f, &f.Tests[0], "")
	if len(targets) != 1 || targets[0].String() != "single 7.0.25" {
		t.Errorf("runs on %v", targets)
	}
	if targets, skip := Targets(f, &f.Tests[1], ""); len(targets) != 0 || skip == "" {
		t.Errorf("runs on %v, skip %q", targets, skip)
	}
	if targets, skip := Targets(f, &f.Tests[2], ""); len(targets) != 0 || skip != "because" {
		t.Errorf("runs on %v, skip %q", targets, skip)
	}
}

func TestCompareVersions(t *testing.T) {
	order := []string{"3.6", "4.0.9", "4.0.10", "4.2", "4.2.1-rc0", "4.9.0-alpha4-271-g7d5cf02", "5", "10.0"}
	if !slices.IsSortedFunc(order, compareVersions) {
		t.Error("not in order")
	}
	for _, same := range [][2]string{{"4.2", "4.2.0"}, {"4", "4.0.0"}, {"4.9.0-alpha4-271-g7d5cf02", "4.9"}} {
		if compareVersions(same[0], same[1]) != 0 {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
}

func TestSchemaVersions(t *testing.T) {
	for version, want := range map[string]bool{"1.0": true, "1": true, "1.28": true, "1.28.0": true, "1.27.9": true, "1.28.1": false, "1.29": false, "0.9": false, "2.0": false} {
		var raw bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(`{"description": "d", "schemaVersion": "`+version+`", "tests": [{"description": "t", "operations": []}]}`), &raw); err != nil {
			t.Fatal(err)
		}
		if _, err := parse(raw); (err == nil) != want {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestSeeds(t *testing.T) {
	s, err := parseSeeds("mongodb://ada:a%40b@a:1,b:2/?replicaSet=rs0&w=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		options url.Values
		want    string
	}{
		{nil, "mongodb://ada:a%40b@a:1,b:2/?replicaSet=rs0&w=1"},
		{url.Values{"W": {"2"}, "readPreferenceTags": {"x:1", ""}}, "mongodb://ada:a%40b@a:1,b:2/?W=2&readPreferenceTags=x%3A1&readPreferenceTags=&replicaSet=rs0"},
		{url.Values{"directConnection": {"true"}}, "mongodb://ada:a%40b@a:1/?directConnection=true&w=1"},
	} {
		if got := s.uri(tc.options); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.options, got, tc.want)
		}
	}
	if got := s.first().hosts; got != "a:1" {
		t.Errorf("the first host is %s", got)
	}
}

// What the runner does not know fails the test, also where a test expects an error.
func TestUnknown(t *testing.T) {
	for _, op := range []string{
		`{"name": "fly", "object": "coll"}`,
		`{"name": "fly", "object": "coll", "expectError": {"isError": true}}`,
		`{"name": "fly", "object": "coll", "ignoreResultAndError": true}`,
		`{"name": "find", "object": "coll", "arguments": {"filter": {}, "fly": 1}, "ignoreResultAndError": true}`,
		`{"name": "find", "object": "nobody", "expectError": {"isError": true}}`,
		`{"name": "fly", "object": "testRunner"}`,
		`{"name": "wait", "object": "testRunner", "arguments": {"ms": 1, "fly": 1}}`,
		`{"name": "find", "object": "coll", "arguments": {"filter": {}, "session": "coll"}, "expectError": {"isError": true}}`,
		`{"name": "createEntities", "object": "testRunner", "arguments": {"entities": [{"client": {"id": "client"}}]}}`,
		`{"name": "find", "object": "coll", "arguments": {"filter": {}}, "saveResultAsEntity": "coll"}`,
		`{"name": "deleteOne", "object": "coll", "arguments": {"filter": {}}, "expectResult": {"deletedCount": 1}}`,
		`{"name": "deleteOne", "object": "coll", "arguments": {"filter": {}}, "expectError": {"isError": true}}`,
	} {
		f := file(t, `{"description": "d", "schemaVersion": "1.0", "runOnRequirements": [{"topologies": ["single"]}],
			"createEntities": [{"client": {"id": "client"}}, {"database": {"id": "db", "client": "client", "databaseName": "x"}},
				{"collection": {"id": "coll", "database": "db", "collectionName": "c"}}],
			"tests": [{"description": "t", "operations": [`+op+`]}]}`)
		targets, _ := Targets(f, &f.Tests[0], "")
		if skip, err := (Where{}).runInBubble(t, targets[0], f, &f.Tests[0]); err == nil || skip != "" {
			t.Errorf("%s: passes (skip %q)", op, skip)
		}
	}
}

// A thread's failure fails the test, waited for or not.
func TestThreads(t *testing.T) {
	const entities = `"createEntities": [{"client": {"id": "client", "observeEvents": ["commandStartedEvent"]}}, {"database": {"id": "db", "client": "client", "databaseName": "x"}},
		{"collection": {"id": "coll", "database": "db", "collectionName": "c"}}, {"thread": {"id": "thread"}}]`
	run := func(result, wait string) error {
		f := file(t, `{"description": "d", "schemaVersion": "1.10", `+entities+`, "tests": [{"description": "t", "operations": [
			{"name": "runOnThread", "object": "testRunner", "arguments": {"thread": "thread", "operation":
				{"name": "deleteOne", "object": "coll", "arguments": {"filter": {}}, "expectResult": {"deletedCount": `+result+`}}}}`+wait+`]}]}`)
		_, err := (Where{}).runInBubble(t, Target{Topology: "single", Version: "9.0.0"}, f, &f.Tests[0])
		return err
	}
	const wait = `, {"name": "waitForThread", "object": "testRunner", "arguments": {"thread": "thread"}}`
	if err := run("0", wait); err != nil {
		t.Errorf("a thread that succeeds: %v", err)
	}
	if run("1", wait) == nil || run("1", "") == nil {
		t.Error("a thread's failure is not seen")
	}
}
