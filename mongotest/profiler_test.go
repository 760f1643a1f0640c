package mongotest_test

import (
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
		entry("u", map[string]string{"op": `"update"`, "nMatched": "1", "nModified": "1", "nUpserted": "0", "keysExamined": "1", "planSummary": `"IDHACK"`, "command.multi": "false"}),
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
		entry("s", map[string]string{"op": ""}),
		entry("r", map[string]string{"op": `"query"`}),
	}, mongotest.Standalone())
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
