package mongotest_test

import (
	"strings"
	"testing"

	"allium/mongotest"
)

// writesOfUsers are all that a blocked user may not do, on a collection that has a document and an
// index. Each would change something.
var writesOfUsers = []string{
	`test {"insert": "c", "documents": [{}]}`,
	`test {"insert": "new", "documents": [{}]}`,
	`test {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 2}}}]}`,
	`test {"update": "new", "updates": [{"q": {}, "u": {"$set": {"x": 2}}, "upsert": true}]}`,
	`test {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}`,
	`test {"findAndModify": "c", "query": {"_id": 1}, "remove": true}`,
	`test {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"x": 1}}}`,
	`test {"create": "new"}`,
	`test {"create": "view", "viewOn": "c"}`,
	`test {"createIndexes": "c", "indexes": [{"key": {"y": 1}, "name": "y"}]}`,
	`test {"createIndexes": "new", "indexes": [{"key": {"y": 1}, "name": "y"}]}`,
	`test {"dropIndexes": "c", "index": "x"}`,
	`test {"collMod": "c", "validator": {"x": 1}}`,
	`test {"drop": "c"}`,
	`test {"dropDatabase": 1}`,
	`admin {"renameCollection": "test.c", "to": "test.d"}`,
	`test {"aggregate": "c", "pipeline": [{"$out": "o"}], "cursor": {}}`,
	`test {"aggregate": "c", "pipeline": [{"$merge": "o"}], "cursor": {}}`,
	`admin {"aggregate": "system.version", "pipeline": [{"$out": {"db": "test", "coll": "o"}}], "cursor": {}}`,
	`admin {"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "test.c"}]}`,
}

// allowedToUsers change nothing, or nothing that users have.
var allowedToUsers = []string{
	`test {"find": "c"}`,
	`test {"aggregate": "c", "pipeline": [{"$group": {"_id": null}}], "cursor": {}}`,
	`test {"update": "c", "updates": [{"q": {"_id": 7}, "u": {"$set": {"x": 2}}}]}`,
	`test {"delete": "c", "deletes": [{"q": {"_id": 7}, "limit": 1}]}`,
	`test {"createUser": "u", "pwd": "p", "roles": []}`,
	`test {"dropUser": "u"}`,
	`admin {"insert": "mine", "documents": [{}]}`,
	`admin {"setParameter": 1, "logLevel": 0}`,
}

func TestWriteBlock(t *testing.T) {
	for name, topology := range map[string]mongotest.Option{
		"replica set": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(2, 2),
	} {
		t.Run(name, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.InMemory(), topology)
			c := dialHost(t, d)
			ask := func(step string) string {
				db, cmd, _ := strings.Cut(step, " ")
				r := askText(t, c, db, cmd)
				if list, _ := r.Lookup("writeErrors").Array(); !list.IsEmpty() {
					return errorOf(list.Lookup("0").Value)
				}
				if b, _ := r.Lookup("cursor", "firstBatch").Array(); !b.Lookup("0", "code").IsZero() {
					return errorOf(b.Lookup("0").Value)
				}
				return strings.TrimPrefix(errorOf(r), "ok")
			}
			must := func(step, want string) {
				t.Helper()
				if got := ask(step); got != want {
					t.Errorf("%s: %q, want %q", step, got, want)
				}
			}
			blocked := func(step string) bool {
				e := ask(step)
				return strings.HasPrefix(e, "371: ") && strings.HasSuffix(e, "User writes blocked")
			}
			must(`test {"insert": "c", "documents": [{"_id": 1, "x": 1}]}`, "")
			must(`test {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x"}]}`, "")
			before := askText(t, c, "test", `{"dbHash": 1}`).Lookup("md5").String()
			must(`admin {"setUserWriteBlockMode": 1, "global": true}`, "")
			must(`admin {"setUserWriteBlockMode": 1, "global": true}`, "")
			for _, step := range writesOfUsers {
				if !blocked(step) {
					t.Errorf("%s is not blocked: %s", step, ask(step))
				}
			}
			for _, step := range allowedToUsers {
				must(step, "")
			}
			if after := askText(t, c, "test", `{"dbHash": 1}`).Lookup("md5").String(); after != before {
				t.Error("something was written")
			}
			must(`admin {"setUserWriteBlockMode": 1, "global": false}`, "")
			for _, step := range writesOfUsers {
				if !strings.Contains(step, `"drop`) && !strings.Contains(step, "renameC") && blocked(step) {
					t.Errorf("%s is still blocked", step)
				}
			}

			// On a mongos the reason does not matter.
			other := ""
			if name != "sharded" {
				other = "20: Cannot acquire user writes critical section with different reason than the already-set reason, " +
					"reason: Unspecified, already-set reason: DiskUseThresholdExceeded"
			}
			must(`admin {"setUserWriteBlockMode": 1, "global": true, "reason": "DiskUseThresholdExceeded"}`, "")
			must(`admin {"setUserWriteBlockMode": 1, "global": true}`, other)
			must(`admin {"setUserWriteBlockMode": 1, "global": true, "reason": "x"}`,
				"2: Enumeration value 'x' for field 'setUserWriteBlockMode.reason' is not a valid value.")
			must(`admin {"setUserWriteBlockMode": 1}`,
				"40414: BSON field 'setUserWriteBlockMode.global' is missing but a required field")
			must(`test {"setUserWriteBlockMode": 1, "global": true}`,
				"13: setUserWriteBlockMode may only be run against the admin database.")
		})
	}
}

// TestWriteBlockTransaction: what a transaction has written before stays, and it writes no more.
func TestWriteBlockTransaction(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory(), mongotest.ReplicaSet(1))
	c, other := dialHost(t, d), dialHost(t, d)
	const session = `"lsid": {"id": {"$uuid": "00000000-0000-4000-8000-000000000001"}}, "txnNumber": {"$numberLong": "1"}, "autocommit": false`
	ok(t, askText(t, c, "test", `{"insert": "c", "documents": [{"_id": 1}], `+session+`, "startTransaction": true}`))
	ok(t, askText(t, other, "admin", `{"setUserWriteBlockMode": 1, "global": true}`))
	r := askText(t, c, "test", `{"insert": "c", "documents": [{"_id": 2}], `+session+`}`)
	if e := errorOf(r); e != "371: User writes blocked" && !strings.Contains(r.String(), "User writes blocked") {
		t.Errorf("%v", r)
	}
	if r := askText(t, c, "admin", `{"commitTransaction": 1, `+session+`}`); r.Lookup("ok").AsBool() {
		t.Errorf("a transaction that failed was committed: %v", r)
	}
}

// TestWriteBlockBypass: users with the privilege write regardless, of which root has all.
func TestWriteBlockBypass(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Auth("root", "pw"))
	ctx := t.Context()
	root := openAs(t, d, "root", "pw")
	for _, cmd := range []string{
		`{"createRole": "bypass", "privileges": [{"resource": {"cluster": true}, "actions": ["bypassWriteBlockingMode"]}], "roles": ["readWriteAnyDatabase"]}`,
		`{"createUser": "plain", "pwd": "pw", "roles": ["readWriteAnyDatabase"]}`,
		`{"createUser": "bypass", "pwd": "pw", "roles": ["bypass"]}`,
		`{"setUserWriteBlockMode": 1, "global": true}`,
	} {
		if _, err := root.Database("admin").RunCommand(ctx, extJSON(t, cmd)); err != nil {
			t.Fatal(err)
		}
	}
	for user, may := range map[string]bool{"root": true, "bypass": true, "plain": false} {
		_, err := openAs(t, d, user, "pw").Database("app").Collection("c").InsertOne(ctx, extJSON(t, `{"x": 1}`))
		if (err == nil) != may {
			t.Errorf("%s: %v", user, err)
		}
	}
	_, err := openAs(t, d, "plain", "pw").Database("admin").RunCommand(ctx, extJSON(t, `{"setUserWriteBlockMode": 1, "global": false}`))
	if err == nil || !strings.Contains(err.Error(), "not authorized") {
		t.Errorf("a user without the privilege: %v", err)
	}
}

func TestWriteBlockVersions(t *testing.T) {
	for version, want := range map[string]string{"5.0": "no such command: 'setUserWriteBlockMode'",
		"6.0": "setUserWriteBlockMode cannot be run on standalones"} {
		d := mongotest.Start(t, mongotest.InMemory(), mongotest.Version(version))
		r := askText(t, dialHost(t, d), "admin", `{"setUserWriteBlockMode": 1, "global": true}`)
		if text, _ := r.Lookup("errmsg").StringValue(); text != want {
			t.Errorf("%s: %v", version, r)
		}
	}
	for version, want := range map[string]string{"5.0": "", "8.0": "1"} {
		d := mongotest.Start(t, mongotest.InMemory(), mongotest.Version(version), mongotest.ReplicaSet(1))
		r := askText(t, dialHost(t, d), "admin", `{"serverStatus": 1}`)
		if mode := r.Lookup("repl", "userWriteBlockMode"); want == "" && mode.Type != 0 || want != "" && mode.String() != want {
			t.Errorf("%s: %v", version, mode)
		}
	}
}
