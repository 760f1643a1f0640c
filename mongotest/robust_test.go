package mongotest_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"allium/bson"
	"allium/internal/norace"
	"allium/mongotest"
)

// oddSeed makes the test run the same commands every time; another one looks further.
const oddSeed = 1

// No command panics, whatever it is sent: a panic in a handler fails the test that started the
// deployment. In a bubble nobody waits for the commands that wait.
func TestOddArguments(t *testing.T) {
	norace.Skip(t, "one command comes after the other, and there are tens of thousands")
	values := []any{nil, 1, -1, int64(1) << 62, 1.5, "", "c", "v", ".x", "a$b", "t.c", true, bson.D{}, bson.A{}, bson.D{{Key: "a", Value: 1}}, bson.A{1}, bson.A{bson.D{}},
		bson.A{bson.D{{Key: "$match", Value: bson.D{}}}}, bson.D{{Key: "$x", Value: 1}}, bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: 0}}}},
		bson.NewObjectID(), bson.Timestamp{T: 1, I: 1}, bson.Regex{Pattern: "("}, bson.Binary{Subtype: bson.BinaryUUID, Data: make([]byte, 16)}, bson.Binary{}}
	fields := []string{"filter", "query", "sort", "projection", "fields", "limit", "skip", "batchSize", "cursor", "pipeline", "documents", "updates", "deletes", "update", "remove",
		"key", "indexes", "index", "hint", "min", "max", "collation", "let", "arrayFilters", "new", "upsert", "to", "dropTarget", "viewOn", "capped", "size", "validator",
		"comment", "readConcern", "writeConcern", "$readPreference", "lsid", "txnNumber", "cursors", "collection", "scale", "ops", "nsInfo", "user", "pwd", "roles",
		"out", "map", "reduce", "verbosity", "returnKey", "showRecordId", "tailable", "singleBatch", "$_resumeAfter", "$_requestResumeToken", "changeStreamPreAndPostImages",
		"timeseries", "clusteredIndex", "expireAfterSeconds", "keyPattern", "estimate", "payload", "mechanism", "conversationId", "$clusterTime", "apiVersion", "defaultWriteConcern"}
	skip := []string{"shutdown", "replSetStepDown", "replSetFreeze", "fsync", "fsyncUnlock", "configureFailPoint", "setParameter", "killSessions", "killAllSessions",
		"killAllSessionsByPattern", "killOp", "replSetAbortPrimaryCatchUp", "replSetMaintenance", "waitForFailPoint", "logout", "hello", "isMaster", "ismaster"}
	for i, options := range [][]mongotest.Option{
		{mongotest.ReplicaSet(1), mongotest.Version("4.2")}, {mongotest.ReplicaSet(1), mongotest.Version("4.4")}, {mongotest.ReplicaSet(1), mongotest.Version("8.2")},
		{mongotest.Standalone(), mongotest.Version("5.0")}, {mongotest.Sharded(2, 1), mongotest.Version("4.4")}, {mongotest.Sharded(2, 1), mongotest.Version("8.0")},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, append(options, mongotest.InMemory())...)
				c, err := d.DialContext(t.Context(), "tcp", d.Hosts()[0])
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{1, 2}}}}}, {Key: "$db", Value: "t"}}))
				ok(t, run(t, c, bson.D{{Key: "create", Value: "v"}, {Key: "viewOn", Value: "c"}, {Key: "$db", Value: "t"}}))
				names := ok(t, run(t, c, bson.D{{Key: "listCommands", Value: 1}, {Key: "$db", Value: "admin"}})).Lookup("commands")
				rnd := rand.New(rand.NewPCG(uint64(i), oddSeed))
				for name := range bson.Raw(names.Value).All() {
					if slices.Contains(skip, name) {
						continue
					}
					for range 60 {
						cmd := bson.D{{Key: name, Value: values[rnd.IntN(len(values))]}}
						if rnd.IntN(2) == 0 {
							cmd[0].Value = "c"
						}
						for range rnd.IntN(5) {
							cmd = append(cmd, bson.E{Key: fields[rnd.IntN(len(fields))], Value: values[rnd.IntN(len(values))]})
						}
						db := []string{"t", "admin", "config", "local"}[rnd.IntN(4)]
						cmd = append(cmd, bson.E{Key: "maxTimeMS", Value: 200}, bson.E{Key: "$db", Value: db})
						if reply := run(t, c, cmd); len(reply) == 0 {
							t.Fatalf("%v: no reply", cmd)
						}
					}
				}
			})
		})
	}
}
