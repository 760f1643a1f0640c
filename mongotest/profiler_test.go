package mongotest_test

import (
	"fmt"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// The profiler writes down what commands did, until its database is dropped.
func TestProfiler(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory())
	c := dialNode(t, d, d.Primary())
	do := func(cmd ...bson.E) bson.Raw {
		return ok(t, run(t, c, append(bson.D(cmd), bson.E{Key: "$db", Value: "db"})))
	}
	was := func(r bson.Raw) int64 {
		n, _ := r.Lookup("was").AsInt64()
		return n
	}
	do(bson.E{Key: "profile", Value: 2})
	ok(t, run(t, c, insertOne("c", 1)))
	if r := run(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "$bad", Value: 1}}}, {Key: "$db", Value: "db"}}); errorCode(r) == 0 {
		t.Error("the find does not fail")
	}
	if n := was(do(bson.E{Key: "profile", Value: 0})); n != 2 {
		t.Errorf("was %d, want 2", n)
	}
	r := do(bson.E{Key: "find", Value: "system.profile"})
	if op, _ := r.Lookup("cursor", "firstBatch", "0", "op").StringValue(); op != "insert" {
		t.Errorf("the first entry of %v", r)
	}
	if errorCode(r, "cursor", "firstBatch", "1") != 0 || r.Lookup("cursor", "firstBatch", "1", "errMsg").IsZero() {
		t.Errorf("the second entry of %v has no error", r)
	}
	if !r.Lookup("cursor", "firstBatch", "2").IsZero() {
		t.Errorf("more than the two commands: %v", r)
	}
	do(bson.E{Key: "profile", Value: 2}, bson.E{Key: "filter", Value: bson.D{{Key: "op", Value: "query"}}})
	do(bson.E{Key: "dropDatabase", Value: 1})
	if n := was(do(bson.E{Key: "profile", Value: -1})); n != 0 {
		t.Errorf("was %d after the drop, want 0", n)
	}
}

// What the profiler's entries say of a command's work; its collection cannot go while it is on.
func TestProfilerEntries(t *testing.T) {
	entry := func(comment string, want map[string]string) mendStep {
		under := map[string]string{}
		for k, v := range want {
			under["cursor.firstBatch.0."+k] = v
		}
		return mendStep{cmd: `{"find": "system.profile", "filter": {"command.comment": "` + comment + `"}, "$db": "t"}`, want: under}
	}
	mendSteps(t, []mendStep{
		{cmd: `{"profile": 2, "$db": "t"}`, want: map[string]string{"was": "0"}},
		{cmd: `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}], "comment": "i", "$db": "t"}`},
		{cmd: `{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}, {"q": {"_id": 9}, "u": {"$set": {"a": 1}}, "upsert": true}], "comment": "u", "$db": "t"}`},
		{cmd: `{"delete": "c", "deletes": [{"q": {"_id": 9}, "limit": 1}], "comment": "d", "$db": "t"}`},
		{cmd: `{"find": "c", "batchSize": 2, "comment": "f", "$db": "t"}`},
		{cmd: `{"getMore": CURSOR, "collection": "c", "comment": "g", "$db": "t"}`},
		{cmd: `{"drop": "system.profile", "$db": "t"}`, code: 20, text: "turn off profiling before dropping system.profile collection"},
		{cmd: `{"profile": 0, "$db": "t"}`, want: map[string]string{"was": "2"}},
		entry("i", map[string]string{"op": `"insert"`, "ninserted": "3"}),
		entry("u", map[string]string{"op": `"update"`, "nMatched": "1", "nModified": "1", "nUpserted": "0", "keysExamined": "1", "planSummary": `"EXPRESS_IXSCAN { _id: 1 },EXPRESS_UPDATE"`, "command.multi": "false"}),
		{cmd: `{"find": "system.profile", "filter": {"op": "update"}, "sort": {"$natural": -1}, "$db": "t"}`, want: map[string]string{
			"cursor.firstBatch.0.nUpserted": "1", "cursor.firstBatch.0.keysInserted": "1", "cursor.firstBatch.2": ""}},
		entry("d", map[string]string{"op": `"remove"`, "ndeleted": "1"}),
		entry("f", map[string]string{"op": `"query"`, "nreturned": "2", "cursorExhausted": ""}),
		entry("g", map[string]string{"op": `"getmore"`, "nreturned": "1", "cursorExhausted": "true", "docsExamined": "1", "originatingCommand.comment": `"f"`, "planSummary": `"COLLSCAN"`}),
		{cmd: `{"drop": "system.profile", "$db": "t"}`},
		{cmd: `{"profile": 1, "slowms": -1, "sampleRate": 0.0, "$db": "t"}`}, // everything is slow, nothing is sampled
		{cmd: `{"find": "c", "comment": "s", "$db": "t"}`},
		{cmd: `{"profile": 1, "sampleRate": 1.0, "$db": "t"}`},
		{cmd: `{"find": "c", "comment": "r", "$db": "t"}`},
		{cmd: `{"profile": 0, "$db": "t"}`},
		// The filter that is kept is not that of the commands which come after.
		{cmd: `{"profile": 0, "sampleRate": {"$numberDecimal": "0.5"}, "slowms": -100, "filter": {"op": "query"}, "$db": "t"}`},
		{cmd: `{"insert": "c", "documents": [{"_id": "a long text in the place of another", "b": 1}], "$db": "t"}`},
		{cmd: `{"profile": -1, "$db": "t"}`, want: map[string]string{"filter": `{"op":{"$eq":"query"}}`, "sampleRate": "0.5", "slowms": "-100"}},
		entry("s", map[string]string{"op": ""}),
		entry("r", map[string]string{"op": `"query"`}),
	}, mongotest.Standalone())
}

// The profiler shows the name of an index that hints an update or a delete in a document of its
// own, and everything else as it was sent.
func TestProfiledHints(t *testing.T) {
	const named, keys = `"a_1"`, `{"a":1}`
	steps := []mendStep{
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}], "$db": "t"}`},
		{cmd: `{"profile": 2, "$db": "t"}`},
	}
	for _, tc := range []struct{ op, cmd, hint, want string }{
		{"update", `"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"b": 1}}, "hint": %s}]`, named, `{"$hint":"a_1"}`},
		{"update", `"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"b": 1}}, "hint": %s}]`, keys, keys},
		{"remove", `"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1, "hint": %s}]`, named, `{"$hint":"a_1"}`},
		{"remove", `"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1, "hint": %s}]`, keys, keys},
		{"query", `"find": "c", "hint": %s`, named, named},
		{"query", `"find": "c", "hint": %s`, keys, keys},
		{"command", `"aggregate": "c", "pipeline": [], "cursor": {}, "hint": %s`, named, named},
		{"command", `"findAndModify": "c", "query": {"a": 1}, "remove": true, "hint": %s`, named, named},
	} {
		steps = append(steps,
			mendStep{cmd: `{` + fmt.Sprintf(tc.cmd, tc.hint) + `, "$db": "t"}`},
			mendStep{cmd: `{"find": "system.profile", "filter": {"ns": "t.c"}, "sort": {"$natural": -1}, "limit": 1, "$db": "t"}`,
				want: map[string]string{"cursor.firstBatch.0.op": `"` + tc.op + `"`, "cursor.firstBatch.0.command.hint": tc.want}})
	}
	mendSteps(t, steps, mongotest.Standalone())
}

// What others can read has no passwords: neither the profile nor the text of a refusal.
func TestSecretsAreNotShown(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory(), mongotest.Auth("root", "pw"))
	c := openAs(t, d, "root", "pw").Database("app")
	do := func(cmd string) bson.Raw {
		t.Helper()
		reply, err := c.RunCommand(t.Context(), extJSON(t, cmd))
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	do(`{"profile": 2}`)
	do(`{"createUser": "u", "pwd": "s3cret", "roles": []}`)
	do(`{"updateUser": "u", "pwd": "s3cret"}`)
	if entries := do(`{"find": "system.profile", "filter": {"ns": "app.u"}}`).String(); strings.Contains(entries, "s3cret") || !strings.Contains(entries, `"command"`) {
		t.Errorf("the profile shows %s", entries)
	}
	if err := d.AddUser(mongotest.User{Name: "v", Password: "pw", DB: "admin"}); err != nil {
		t.Fatal(err)
	}
	_, err := openAs(t, d, "v", "pw").Database("app").RunCommand(t.Context(), extJSON(t, `{"createUser": "w", "pwd": "s3cret", "roles": []}`))
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("refused with %v", err)
	}
}

// The log that getLog shows has a line for what was slow, in the form of the server's: here all is.
func TestSlowQueryLog(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone())
	c := dial(t, d.Hosts()[0])
	do := func(cmd string) bson.Raw { t.Helper(); return ok(t, command(t, c, extJSON(t, cmd))) }
	lines := func() (list []bson.Raw) {
		reply := do(`{"getLog": "global", "$db": "admin"}`)
		for v := range bson.Raw(reply.Lookup("log").Value).Values() {
			text, _ := v.StringValue()
			if line := extJSON(t, text); strings.Contains(text, `"Slow query"`) {
				list = append(list, line)
			}
		}
		return list
	}
	do(`{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}], "$db": "t"}`)
	if n := len(lines()); n != 0 {
		t.Errorf("%d commands were slow", n)
	}
	do(`{"profile": 0, "slowms": -1, "$db": "t"}`)
	do(`{"find": "c", "filter": {"a": 2}, "$db": "t"}`)
	do(`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 3}}}], "$db": "t"}`)
	do(`{"profile": 0, "slowms": 1000000, "$db": "t"}`)
	do(`{"find": "c", "$db": "t"}`)
	list := lines()
	if len(list) != 2 {
		t.Fatalf("%d lines: %v", len(list), list)
	}
	for path, want := range map[string]string{
		"s": `"I"`, "c": `"COMMAND"`, "id": "51803", "msg": `"Slow query"`, "attr.type": `"command"`, "attr.ns": `"t.c"`, "attr.command.find": `"c"`,
		"attr.planSummary": `"COLLSCAN"`, "attr.docsExamined": "2", "attr.nreturned": "1", "attr.numYields": "0", "attr.cursorExhausted": "true",
	} {
		if got := list[0].Lookup(strings.Split(path, ".")...).String(); got != want {
			t.Errorf("%s is %s, want %s: %s", path, got, want, list[0])
		}
	}
	for path, want := range map[string]string{"c": `"WRITE"`, "attr.type": `"update"`, "attr.planSummary": `"EXPRESS_IXSCAN { _id: 1 },EXPRESS_UPDATE"`, "attr.nModified": "1"} {
		if got := list[1].Lookup(strings.Split(path, ".")...).String(); got != want {
			t.Errorf("%s is %s, want %s: %s", path, got, want, list[1])
		}
	}
}

// A document that fails its collection's validator is refused, logged or both, as the action says.
func TestValidationActions(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("8.1"))
	c := dial(t, d.Hosts()[0])
	do := func(cmd string) bson.Raw { t.Helper(); return command(t, c, extJSON(t, cmd)) }
	logged := func() (lines []bson.Raw) {
		for v := range bson.Raw(ok(t, do(`{"getLog": "global", "$db": "admin"}`)).Lookup("log").Value).Values() {
			if text, _ := v.StringValue(); strings.Contains(text, `"Document would fail validation"`) {
				lines = append(lines, extJSON(t, text))
			}
		}
		return lines
	}
	for action, want := range map[string]struct {
		code int64 // of a document that fails
		logs bool
	}{"error": {121, false}, "warn": {0, true}, "errorAndLog": {121, true}} {
		ok(t, do(`{"create": "`+action+`", "validator": {"a": 1}, "$db": "t"}`))
		ok(t, do(`{"insert": "`+action+`", "documents": [{"_id": 1, "a": 1}], "$db": "t"}`))
		ok(t, do(`{"collMod": "`+action+`", "validationAction": "`+action+`", "$db": "t"}`))
		for _, cmd := range []string{
			`{"insert": "` + action + `", "documents": [{"_id": 2, "a": 2}], "$db": "t"}`,
			`{"update": "` + action + `", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 3}}}], "$db": "t"}`,
		} {
			before := len(logged())
			reply := do(cmd)
			if got := errorCode(reply, "writeErrors", "0"); got != want.code {
				t.Errorf("%s: %v", action, reply)
			}
			lines := logged()[before:]
			if (len(lines) == 1) != want.logs {
				t.Fatalf("%s: %d lines", action, len(lines))
			}
			for _, line := range lines {
				for path, want := range map[string]string{"s": `"W"`, "c": `"STORAGE"`, "id": "20294", "attr.namespace": `"t.` + action + `"`, "attr.errInfo.details.operatorName": `"$eq"`} {
					if got := line.Lookup(strings.Split(path, ".")...).String(); got != want {
						t.Errorf("%s: %s is %s, want %s: %s", action, path, got, want, line)
					}
				}
			}
		}
		ok(t, do(`{"insert": "`+action+`", "documents": [{"a": 2}], "bypassDocumentValidation": true, "$db": "t"}`))
	}
	old := dial(t, mongotest.Start(t, mongotest.Standalone(), mongotest.Version("8.0")).Hosts()[0])
	for _, cmd := range []string{
		`{"create": "c", "validator": {"a": 1}, "validationAction": "errorAndLog", "$db": "t"}`, `{"collMod": "c", "validationAction": "errorAndLog", "$db": "t"}`,
		`{"create": "d", "validator": {"a": 1}, "validationAction": "log", "$db": "t"}`, `{"collMod": "c", "validationAction": "log", "$db": "t"}`,
	} {
		command(t, old, extJSON(t, `{"create": "c", "$db": "t"}`))
		if r := command(t, old, extJSON(t, cmd)); errorCode(r) != 2 {
			t.Errorf("8.0: %s: %v", cmd, r)
		}
	}
}
