package mongotest_test

import (
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

func TestVersions(t *testing.T) {
	for version, wire := range map[string]int64{"4.2": 8, "4.4": 9, "4.4.0": 9, "5.0": 13, "6.0": 17, "7.0": 21, "8.0": 25, "8.1": 26, "8.2": 27, "8.3": 28, "9.0": 29} {
		t.Run(version, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version(version))
			c := dialNode(t, d, d.Primary())
			r := ok(t, run(t, c, bson.D{{Key: "isMaster", Value: 1}, {Key: "helloOk", Value: true}, {Key: "$db", Value: "admin"}}))
			if got, _ := r.Lookup("maxWireVersion").AsInt64(); got != wire {
				t.Errorf("maxWireVersion %d, want %d", got, wire)
			}
			hasHello := run(t, c, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}).Lookup("ok").AsBool()
			if want := version != "4.4.0"; hasHello != want || r.Lookup("helloOk").AsBool() != want {
				t.Errorf("hello works: %t, helloOk: %t", hasHello, r.Lookup("helloOk").AsBool())
			}
			ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}, {Key: "$db", Value: "x"}}))
			strict := run(t, c, bson.D{{Key: "serverStatus", Value: 1}, {Key: "apiVersion", Value: "1"}, {Key: "apiStrict", Value: true}, {Key: "$db", Value: "admin"}})
			if refused := !strict.Lookup("ok").AsBool(); refused != (wire >= 13) {
				t.Errorf("apiStrict refuses serverStatus: %t", refused)
			}
		})
	}
	if _, err := mongotest.Open(mongotest.Version("3.6")); err == nil {
		t.Error("version 3.6 is accepted")
	}
}

// TestCommentOfCount is about what changed within a series: the comment of count had to be a string
// until 4.4.14.
func TestCommentOfCount(t *testing.T) {
	for version, want := range map[string]bool{"4.4.0": false, "4.4.13": false, "4.4.14": true, "4.4": true, "5.0": true} {
		d := mongotest.Start(t, mongotest.Version(version))
		r := run(t, dialNode(t, d, d.Primary()), bson.D{{Key: "count", Value: "c"}, {Key: "comment", Value: bson.D{{Key: "k", Value: 1}}}, {Key: "$db", Value: "x"}})
		if got := r.Lookup("ok").AsBool(); got != want {
			t.Errorf("%s: the comment of count may be a document: %t (%v)", version, got, r)
		}
	}
}

// TestFailPointOfApplication sets a fail point for the first hello of one application: a server
// before 4.4.7 does not know then which application it is.
func TestFailPointOfApplication(t *testing.T) {
	for version, want := range map[string]bool{"4.4.0": false, "4.4.6": false, "4.4.7": true, "4.4": true, "5.0": true} {
		d := mongotest.Start(t, mongotest.Version(version))
		ok(t, run(t, dialNode(t, d, d.Primary()), bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"isMaster", "hello"}}, {Key: "appName", Value: "me"}, {Key: "errorCode", Value: 91}}}, {Key: "$db", Value: "admin"}}))
		for app, fails := range map[string]bool{"me": want, "you": false} {
			r := run(t, dialNode(t, d, d.Primary()), bson.D{{Key: "isMaster", Value: 1}, {Key: "helloOk", Value: true}, {Key: "client", Value: bson.D{
				{Key: "application", Value: bson.D{{Key: "name", Value: app}}}, {Key: "driver", Value: bson.D{{Key: "name", Value: "d"}, {Key: "version", Value: "1"}}},
				{Key: "os", Value: bson.D{{Key: "type", Value: "Linux"}}}}}, {Key: "$db", Value: "admin"}})
			if got := !r.Lookup("ok").AsBool(); got != fails {
				t.Errorf("%s: the first hello of %q fails: %t (%v)", version, app, got, r)
			}
		}
	}
}

// TestEmptyTimestamps: a timestamp of zero at the top of a document becomes the time, if the
// command does not say otherwise; the argument for that came to four series at once.
func TestEmptyTimestamps(t *testing.T) {
	for version, known := range map[string]bool{"4.4": false, "5.0.28": false, "5.0.29": true, "6.0.16": false, "6.0.17": true, "7.0.12": false, "7.0.13": true, "8.0": true, "9.0": true} {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version(version))
		c := dialNode(t, d, d.Primary())
		zero := `{"$timestamp": {"t": 0, "i": 0}}`
		doc := func(id string) string { return `{"_id": "` + id + `", "z": ` + zero + `, "in": {"z": ` + zero + `}}` }
		commands := []string{
			`{"insert": "c", "documents": [` + doc("insert") + `]`,
			`{"update": "c", "updates": [{"q": {"_id": "update"}, "u": ` + doc("update") + `, "upsert": true}]`,
			`{"findAndModify": "c", "query": {"_id": "findAndModify"}, "update": ` + doc("findAndModify") + `, "upsert": true`,
		}
		if version >= "8.0" {
			commands = append(commands, `{"bulkWrite": 1, "nsInfo": [{"ns": "db.c"}], "ops": [{"insert": 0, "document": `+doc("bulk insert")+`}, {"update": 0, "filter": {"_id": "bulk update"}, "updateMods": `+doc("bulk update")+`, "upsert": true}]`)
		}
		for _, bypass := range []string{"", `, "bypassEmptyTsReplacement": false`, `, "bypassEmptyTsReplacement": true`} {
			for _, cmd := range commands {
				db := "db"
				if strings.HasPrefix(cmd, `{"bulk`) {
					db = "admin"
				}
				r := command(t, c, extJSON(t, cmd+bypass+`, "$db": "`+db+`"}`))
				if got, want := r.Lookup("ok").AsBool(), bypass == "" || known; got != want {
					t.Errorf("%s: %s%s: %v", version, cmd, bypass, r)
				}
			}
			if bypass != "" && !known {
				continue
			}
			r := ok(t, command(t, c, extJSON(t, `{"find": "c", "$db": "db"}`)))
			batch, _ := r.Lookup("cursor", "firstBatch").Array()
			n := 0
			for v := range batch.Values() {
				n++
				at, _ := bson.Raw(v.Value).Lookup("z").Timestamp()
				inner, _ := bson.Raw(v.Value).Lookup("in", "z").Timestamp()
				if at.IsZero() != strings.HasSuffix(bypass, "true") || !inner.IsZero() {
					t.Errorf("%s%s: %v", version, bypass, v)
				}
			}
			if n < len(commands) {
				t.Errorf("%s%s: %d documents", version, bypass, n)
			}
			ok(t, command(t, c, extJSON(t, `{"delete": "c", "deletes": [{"q": {}, "limit": 0}], "$db": "db"}`)))
		}
	}
}
