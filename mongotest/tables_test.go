package mongotest_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// staleCluster is a cluster of two shards with a sharded collection db.c, of which sh0 has the
// documents with x below 10, and a collection db.u that is not sharded. Both mongoses know them.
type staleCluster struct {
	d      *mongotest.Deployment
	a, b   net.Conn
	shards []net.Conn
}

func newStaleCluster(t *testing.T, mongoses int) *staleCluster {
	t.Helper()
	d := mongotest.Start(t, mongotest.Sharded(2, mongoses), mongotest.InMemory())
	s := &staleCluster{d: d, a: dialNode(t, d, d.Node(0)), b: dialNode(t, d, d.Node(1))}
	for _, sh := range d.Shards() {
		s.shards = append(s.shards, dialNode(t, d, sh.Node()))
	}
	shard(t, s.a, bson.D{{Key: "x", Value: 1}})
	ok(t, askText(t, s.a, "db", `{"insert": "u", "documents": [{"_id": 1, "x": 3}, {"_id": 2, "x": 12}]}`))
	ok(t, askText(t, s.a, "db", `{"createIndexes": "u", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}`))
	ok(t, askText(t, s.a, "db", `{"createIndexes": "c", "indexes": [{"key": {"x": 1, "_id": 1}, "name": "x_1__id_1"}]}`))
	for _, coll := range []string{"c", "u", "other"} {
		ok(t, askText(t, s.b, "db", `{"find": "`+coll+`"}`))
	}
	return s
}

// stale returns how often a mongos has learned that its table was outdated.
func staleErrors(t *testing.T, c net.Conn) int64 {
	t.Helper()
	n, _ := ok(t, askText(t, c, "admin", `{"serverStatus": 1}`)).Lookup("shardingStatistics", "catalogCache", "countStaleConfigErrors").AsInt64()
	return n
}

// contents returns what the shards have of the collections, as their own processes see it.
func (s *staleCluster) contents(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for i, c := range s.shards {
		for _, coll := range []string{"c", "u", "other", "merged"} {
			list := results(t, c, bson.D{{Key: "find", Value: coll}, {Key: "$db", Value: "db"}})
			slices.Sort(list)
			fmt.Fprintf(&out, "sh%d %s %v\n", i, coll, list)
		}
	}
	return out.String()
}

// outcome shows a reply without what differs between two clusters.
func outcome(reply bson.Raw) string {
	var b strings.Builder
	for k, v := range reply.All() {
		switch k {
		case "$clusterTime", "operationTime", "recoveryToken", "opTime", "electionId":
			continue
		case "cursor":
			var list []string
			for e := range bson.Raw(reply.Lookup("cursor", "firstBatch").Value).Values() {
				list = append(list, e.String())
			}
			slices.Sort(list)
			fmt.Fprintf(&b, "%v ", list)
			continue
		}
		fmt.Fprintf(&b, "%s=%s ", k, v)
	}
	return b.String()
}

// A mongos whose routing table is outdated does what an up-to-date one does, and learns what has
// changed.
func TestStaleMongos(t *testing.T) {
	changes := []struct {
		name     string
		commands []string // "database: command"
		colls    string   // that it changes
		quiet    bool     // versions remain compatible: nobody has to learn of it
	}{
		{"move", []string{`admin: {"moveChunk": "db.c", "find": {"x": 0}, "to": "sh1", "_waitForDelete": true}`}, "c", false},
		{"swap", []string{`admin: {"moveChunk": "db.c", "find": {"x": 0}, "to": "sh1", "_waitForDelete": true}`, `admin: {"moveChunk": "db.c", "find": {"x": 15}, "to": "sh0", "_waitForDelete": true}`}, "c", false},
		{"split", []string{`admin: {"split": "db.c", "middle": {"x": 4}}`}, "c", true},
		{"split and move", []string{`admin: {"split": "db.c", "middle": {"x": 4}}`, `admin: {"moveChunk": "db.c", "find": {"x": 3}, "to": "sh1", "_waitForDelete": true}`}, "c", false},
		{"drop", []string{`db: {"drop": "c"}`}, "c", false},
		{"drop and create", []string{`db: {"drop": "c"}`, `db: {"insert": "c", "documents": [{"_id": 5, "x": 5}, {"_id": 3, "x": 3}, {"_id": 15, "x": 15}]}`}, "c", false},
		{"drop and shard", []string{`db: {"drop": "c"}`, `admin: {"shardCollection": "db.c", "key": {"x": "hashed"}}`, `db: {"insert": "c", "documents": [{"_id": 5, "x": 5}, {"_id": 3, "x": 3}, {"_id": 15, "x": 15}]}`}, "c", false},
		{"drop the database", []string{`db: {"dropDatabase": 1}`, `admin: {"enableSharding": "z"}`, `db: {"insert": "u", "documents": [{"_id": 3, "x": 3}]}`}, "cu", false},
		{"shard", []string{`admin: {"shardCollection": "db.u", "key": {"x": 1}}`, `admin: {"split": "db.u", "middle": {"x": 10}}`, `admin: {"moveChunk": "db.u", "find": {"x": 0}, "to": "sh1", "_waitForDelete": true}`}, "u", false},
		{"move the primary", []string{`admin: {"movePrimary": "db", "to": "sh1"}`}, "u", false},
		{"rename", []string{`admin: {"renameCollection": "db.c", "to": "db.other"}`}, "c", false},
		{"rename and create", []string{`admin: {"renameCollection": "db.c", "to": "db.other"}`, `db: {"insert": "c", "documents": [{"_id": 4, "x": 4}]}`}, "c", false},
		{"replace", []string{`admin: {"renameCollection": "db.u", "to": "db.c", "dropTarget": true}`}, "cu", false},
		{"refine", []string{`admin: {"refineCollectionShardKey": "db.c", "key": {"x": 1, "_id": 1}}`}, "c", false},
		{"reshard", []string{`admin: {"reshardCollection": "db.c", "key": {"_id": 1}}`}, "c", false},
		{"unshard", []string{`admin: {"unshardCollection": "db.c"}`}, "c", false},
		{"unshard elsewhere", []string{`admin: {"unshardCollection": "db.c", "toShard": "sh1"}`}, "c", false},
		{"move the collection", []string{`admin: {"moveCollection": "db.u", "toShard": "sh1"}`}, "u", true},
		{"move it and the primary", []string{`admin: {"moveCollection": "db.u", "toShard": "sh1"}`, `admin: {"movePrimary": "db", "to": "sh1"}`}, "u", false},
		{"move and replace it", []string{`admin: {"moveCollection": "db.u", "toShard": "sh1"}`, `db: {"drop": "u"}`, `db: {"insert": "u", "documents": [{"_id": 3, "x": 3}]}`}, "u", true},
		{"move and shard it", []string{`admin: {"moveCollection": "db.u", "toShard": "sh1"}`, `admin: {"shardCollection": "db.u", "key": {"x": 1}}`}, "u", false},
	}
	operations := []string{
		`{"find": "COLL"}`,
		`{"find": "COLL", "filter": {"x": 3}}`,
		`{"find": "COLL", "filter": {"_id": 12}}`,
		`{"find": "COLL", "sort": {"x": -1}, "limit": 3}`,
		`{"count": "COLL"}`,
		`{"count": "COLL", "query": {"x": {"$lt": 12}}}`,
		`{"distinct": "COLL", "key": "x", "query": {"x": {"$gt": 8}}}`,
		`{"aggregate": "COLL", "pipeline": [{"$match": {"x": {"$lt": 5}}}], "cursor": {}}`,
		`{"aggregate": "COLL", "pipeline": [{"$group": {"_id": null, "n": {"$sum": "$x"}}}], "cursor": {}}`,
		`{"aggregate": "u", "pipeline": [{"$lookup": {"from": "c", "localField": "x", "foreignField": "x", "as": "l"}}], "cursor": {}}`,
		`{"aggregate": "COLL", "pipeline": [{"$unionWith": "other"}, {"$count": "n"}], "cursor": {}}`,
		`{"aggregate": "COLL", "pipeline": [{"$match": {"x": 3}}, {"$addFields": {"m": 1}}, {"$merge": {"into": "merged"}}], "cursor": {}}`,
		`{"aggregate": "u", "pipeline": [{"$addFields": {"m": 1, "_id": {"$add": ["$_id", 200]}}}, {"$merge": {"into": "c"}}], "cursor": {}}`,
		`{"insert": "COLL", "documents": [{"_id": 103, "x": 3}]}`,
		`{"insert": "COLL", "documents": [{"_id": 103, "x": 3}, {"_id": 113, "x": 13}, {"_id": 104, "x": 4}]}`,
		`{"insert": "COLL", "documents": [{"_id": 103, "x": 3}, {"_id": 3, "x": 3}, {"_id": 113, "x": 13}], "ordered": true}`,
		`{"insert": "COLL", "documents": [{"_id": 103, "x": 3}, {"_id": 3, "x": 3}, {"_id": 113, "x": 13}], "ordered": false}`,
		`{"insert": "other", "documents": [{"_id": 103, "x": 3}]}`,
		`{"update": "COLL", "updates": [{"q": {"x": 3}, "u": {"$set": {"z": 1}}}]}`,
		`{"update": "COLL", "updates": [{"q": {}, "u": {"$set": {"z": 1}}, "multi": true}]}`,
		`{"update": "COLL", "updates": [{"q": {"x": 3}, "u": {"$set": {"z": 1}}}, {"q": {"x": 12}, "u": {"$inc": {"z": 1}}}, {"q": {"x": 3}, "u": {"$inc": {"z": 1}}}], "ordered": false}`,
		`{"update": "COLL", "updates": [{"q": {"_id": 303, "x": 3}, "u": {"$set": {"z": 1}}, "upsert": true}]}`,
		`{"delete": "COLL", "deletes": [{"q": {"x": 3}, "limit": 0}]}`,
		`{"delete": "COLL", "deletes": [{"q": {"_id": 12, "x": 12}, "limit": 1}, {"q": {}, "limit": 0}]}`,
		`{"findAndModify": "COLL", "query": {"_id": 3, "x": 3}, "update": {"$set": {"z": 1}}, "new": true}`,
		`{"findAndModify": "COLL", "query": {"_id": 12, "x": 12}, "remove": true}`,
		`{"explain": {"find": "COLL", "filter": {"x": 77}}, "verbosity": "executionStats"}`,
		`{"listIndexes": "COLL"}`,
		`{"createIndexes": "COLL", "indexes": [{"key": {"z": 1}, "name": "z_1"}]}`,
		`{"drop": "COLL"}`,
		`{"create": "other"}`,
	}
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			seen := int64(0)
			for coll := range strings.SplitSeq(change.colls, "") {
				for _, op := range operations {
					op = strings.ReplaceAll(op, "COLL", coll)
					var got, content [2]string
					for i := range 2 { // through the mongos that made the change, and through the other
						s := newStaleCluster(t, 2)
						for _, cmd := range change.commands {
							db, text, _ := strings.Cut(cmd, ": ")
							ok(t, askText(t, s.a, db, text))
						}
						before := staleErrors(t, s.b)
						c := s.a
						if i == 1 {
							c = s.b
						}
						reply := askText(t, c, "db", op)
						if strings.HasPrefix(op, `{"explain"`) {
							n, _ := reply.Lookup("executionStats", "nReturned").AsInt64()
							stage, _ := reply.Lookup("queryPlanner", "winningPlan", "stage").StringValue()
							got[i] = fmt.Sprint(n, stage)
						} else {
							got[i] = outcome(reply)
						}
						content[i] = s.contents(t)
						learned := staleErrors(t, s.b) - before
						if i == 0 && learned != 0 {
							t.Errorf("%s: the other mongos met %d outdated tables", op, learned)
						}
						seen += learned
						if learned > 3 {
							t.Errorf("%s: it took %d attempts", op, learned)
						}
						if i == 1 { // by now it knows
							before := staleErrors(t, s.b)
							if askText(t, s.b, "db", op); staleErrors(t, s.b) != before {
								t.Errorf("%s: the table is outdated a second time", op)
							}
						}
					}
					if got[0] != got[1] {
						t.Errorf("%s:\nup to date %s\noutdated   %s", op, got[0], got[1])
					}
					if content[0] != content[1] {
						t.Errorf("%s: the shards have\n%sand by the outdated mongos\n%s", op, content[0], content[1])
					}
				}
			}
			if (seen == 0) != change.quiet {
				t.Errorf("%d answers that the table is outdated", seen)
			}
		})
	}
}

// In a transaction the first command is done again; a later one ends the transaction with an error
// that says it may be done again as a whole, which then succeeds.
func TestStaleTransactions(t *testing.T) {
	const move = `{"moveChunk": "db.c", "find": {"x": 3}, "to": "sh1", "_waitForDelete": true}`
	for _, first := range []string{
		`{"insert": "c", "documents": [{"_id": 103, "x": 3}]}`,
		`{"find": "c", "filter": {"x": 3}}`,
		`{"aggregate": "c", "pipeline": [{"$count": "n"}], "cursor": {}}`,
		`{"update": "c", "updates": [{"q": {"x": 3}, "u": {"$set": {"z": 1}}}]}`,
		`{"delete": "c", "deletes": [{"q": {"x": 3}, "limit": 0}]}`,
		`{"findAndModify": "c", "query": {"_id": 3, "x": 3}, "remove": true}`,
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(first, late), func(t *testing.T) {
				t.Parallel()
				s := newStaleCluster(t, 2)
				ok(t, askText(t, s.a, "admin", move))
				txn := transaction(t, s.b, 1)
				command := func(text string) []bson.E {
					var cmd bson.D
					if err := bson.UnmarshalExtJSON([]byte(text), &cmd); err != nil {
						t.Fatal(err)
					}
					return cmd
				}
				if late {
					ok(t, txn(command(`{"find": "u"}`)...))
					reply := txn(command(first)...)
					label, _ := reply.Lookup("errorLabels", "0").StringValue()
					if code, _ := reply.Lookup("code").AsInt64(); code != 13388 || label != "TransientTransactionError" {
						t.Fatalf("the second command answers %v", reply)
					}
					txn = transaction(t, s.b, 2)
					ok(t, txn(command(`{"find": "u"}`)...))
				}
				reply := ok(t, txn(command(first)...))
				if n, has := reply.Lookup("n").AsInt64(); has && n != 1 || !reply.Lookup("writeErrors").IsZero() {
					t.Errorf("the command answers %v", reply)
				}
				ok(t, txn(bson.E{Key: "commitTransaction", Value: 1}))
				if n := staleErrors(t, s.b); n != 1 {
					t.Errorf("%d answers that the table is outdated", n)
				}
				if list := results(t, s.shards[0], bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}}); len(list) != 0 {
					t.Errorf("sh0, which owns nothing, has %v", list)
				}
			})
		}
	}
}

// A transaction does not write to a collection that was sharded, or whose database has got another
// primary shard, after its snapshot.
func TestTransactionBeforeSharding(t *testing.T) {
	for _, change := range []string{`{"shardCollection": "db.n", "key": {"x": "hashed"}}`, `{"movePrimary": "db", "to": "sh1"}`} {
		s := newStaleCluster(t, 2)
		ok(t, askText(t, s.a, "db", `{"create": "n"}`))
		ok(t, askText(t, s.b, "db", `{"find": "n"}`))
		attempt := func(number int64, between func()) bson.Raw {
			txn := transaction(t, s.b, number)
			ok(t, txn(bson.E{Key: "find", Value: "c"}))
			between()
			var docs bson.A
			for i := range 20 {
				docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "x", Value: i}})
			}
			reply := txn(bson.E{Key: "insert", Value: "n"}, bson.E{Key: "documents", Value: docs})
			if errorOf(reply) == "ok" {
				ok(t, txn(bson.E{Key: "commitTransaction", Value: 1}))
			}
			return reply
		}
		reply := attempt(1, func() { ok(t, askText(t, s.a, "admin", change)) })
		if label, _ := reply.Lookup("errorLabels", "0").StringValue(); label != "TransientTransactionError" {
			t.Fatalf("%s: %v", change, reply)
		}
		ok(t, attempt(2, func() {}))
		if n, _ := ok(t, askText(t, s.b, "db", `{"count": "n", "query": {"x": {"$gte": 0}}}`)).Lookup("n").AsInt64(); n != 20 {
			t.Errorf("%s: %d documents", change, n)
		}
		stored := 0
		for _, c := range s.shards {
			stored += len(results(t, c, bson.D{{Key: "find", Value: "n"}, {Key: "$db", Value: "db"}}))
		}
		if stored != 20 {
			t.Errorf("%s: the shards have %d documents", change, stored)
		}
	}
}

// A change stream of an outdated mongos misses nothing and repeats nothing.
func TestStaleChangeStream(t *testing.T) {
	s := newStaleCluster(t, 2)
	open := func(pipeline string) (id int64) {
		reply := ok(t, askText(t, s.b, "db", `{"aggregate": "c", "pipeline": [`+pipeline+`], "cursor": {}}`))
		id, _ = reply.Lookup("cursor", "id").AsInt64()
		return id
	}
	early := open(`{"$changeStream": {"fullDocument": "updateLookup"}}`)
	ok(t, askText(t, s.a, "admin", `{"moveChunk": "db.c", "find": {"x": 3}, "to": "sh1"}`))
	late := open(`{"$changeStream": {}}`)
	ok(t, askText(t, s.a, "db", `{"update": "c", "updates": [{"q": {"x": 3}, "u": {"$set": {"z": 1}}}]}`))
	ok(t, askText(t, s.b, "db", `{"insert": "c", "documents": [{"_id": 104, "x": 4}]}`))
	ok(t, askText(t, s.a, "admin", `{"moveChunk": "db.c", "find": {"x": 3}, "to": "sh0", "_waitForDelete": true}`))
	ok(t, askText(t, s.b, "db", `{"delete": "c", "deletes": [{"q": {"x": 4}, "limit": 0}]}`))
	for _, id := range []int64{early, late} {
		var got []string
		for len(got) < 4 {
			reply := ok(t, run(t, s.b, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "maxTimeMS", Value: 1000}, {Key: "$db", Value: "db"}}))
			before := len(got)
			for v := range bson.Raw(reply.Lookup("cursor", "nextBatch").Value).Values() {
				e := bson.Raw(v.Value)
				op, _ := e.Lookup("operationType").StringValue()
				got = append(got, fmt.Sprint(op, e.Lookup("documentKey", "_id")))
				if full := e.Lookup("fullDocument", "z"); op == "update" && id == early && full.IsZero() {
					t.Errorf("the update was looked up as %v", e)
				}
			}
			if len(got) == before {
				break
			}
		}
		if want := "[update3 insert104 delete4 delete104]"; fmt.Sprint(got) != want {
			t.Errorf("events %v, want %s", got, want)
		}
	}
}

// flushRouterConfig makes a mongos forget, so that it need not be told; getShardVersion shows what
// it and the shards know.
func TestFlushRouterConfig(t *testing.T) {
	s := newStaleCluster(t, 2)
	version := func(c net.Conn, field string) string {
		return ok(t, askText(t, c, "admin", `{"getShardVersion": "db.c"}`)).Lookup(field).String()
	}
	before := version(s.b, "version")
	move := func(to string) {
		ok(t, askText(t, s.a, "admin", `{"moveChunk": "db.c", "find": {"x": 3}, "to": "`+to+`", "_waitForDelete": true}`))
	}
	move("sh1")
	if a, b := version(s.a, "version"), version(s.b, "version"); a == before || b != before {
		t.Errorf("after a move the mongos that made it knows %s, the other one %s instead of %s", a, b, before)
	}
	if got := version(s.shards[0], "global"); got != (bson.Timestamp{}).String() && !strings.Contains(got, "0") {
		t.Errorf("a shard without a chunk is at %s", got)
	}
	if a, sh := version(s.a, "version"), version(s.shards[1], "global"); a != sh {
		t.Errorf("the mongos is at %s, the shard at %s", a, sh)
	}
	for i, arg := range []string{`1`, `"db"`, `"db.c"`, `true`} {
		ok(t, askText(t, s.b, "admin", `{"flushRouterConfig": `+arg+`}`))
		if a, b := version(s.a, "version"), version(s.b, "version"); a != b {
			t.Errorf("flushRouterConfig %s: %s, want %s", arg, b, a)
		}
		if perShard(t, s.b, bson.D{{Key: "x", Value: 3}}) == "" || staleErrors(t, s.b) != 0 {
			t.Errorf("flushRouterConfig %s: the mongos had to be told", arg)
		}
		move(fmt.Sprint("sh", i%2))
	}
	ok(t, askText(t, s.b, "admin", `{"flushRouterConfig": "db.u"}`))
	perShard(t, s.b, bson.D{{Key: "x", Value: 3}})
	if staleErrors(t, s.b) != 1 {
		t.Error("flushing another collection made the mongos forget this one")
	}
	told := int64(0)
	for _, c := range s.shards {
		n, _ := ok(t, askText(t, c, "admin", `{"serverStatus": 1}`)).Lookup("shardingStatistics", "countStaleConfigErrors").AsInt64()
		told += n
	}
	if told != 1 {
		t.Errorf("the shards count %d", told)
	}
}

// A shard whose fail point says that the table is outdated gets the command again.
func TestStaleConfigByFault(t *testing.T) {
	for _, code := range []int32{13388, 249} {
		for _, op := range []string{
			`{"find": "c", "filter": {"x": 3}}`,
			`{"insert": "c", "documents": [{"_id": 103, "x": 3}, {"_id": 104, "x": 4}]}`,
			`{"update": "c", "updates": [{"q": {}, "u": {"$inc": {"z": 1}}, "multi": true}]}`,
			`{"count": "c"}`,
			`{"findAndModify": "c", "query": {"x": 3}, "remove": true}`,
		} {
			s := newStaleCluster(t, 2)
			var cmd bson.D
			if err := bson.UnmarshalExtJSON([]byte(op), &cmd); err != nil {
				t.Fatal(err)
			}
			s.d.Shards()[0].Node().FailCommand(mongotest.Fail{Commands: []string{cmd[0].Key}, Times: 3, Code: code})
			if got := outcome(ok(t, askText(t, s.b, "db", op))); strings.Contains(got, "writeErrors") {
				t.Errorf("%s: %s", op, got)
			}
			if n := staleErrors(t, s.b); n != 3 {
				t.Errorf("%s: %d answers that the table is outdated", op, n)
			}
		}
	}
}

// While chunks move all the time, what two mongoses write is on the shards that own it, once.
func TestStaleRace(t *testing.T) {
	const writers, steps, keys = 4, 150, 40
	s := newStaleCluster(t, 3)
	done := make(chan struct{})
	var moving, writing sync.WaitGroup
	for i := range 2 {
		c := dialNode(t, s.d, s.d.Node(2))
		moving.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			for {
				select {
				case <-done:
					return
				default:
				}
				if r.IntN(4) == 0 {
					askText(t, c, "admin", fmt.Sprintf(`{"split": "db.c", "find": {"x": %d}}`, r.IntN(keys)))
				}
				askText(t, c, "admin", fmt.Sprintf(`{"moveChunk": "db.c", "find": {"x": %d}, "to": "sh%d", "_waitForDelete": true}`, r.IntN(keys), r.IntN(2)))
				if r.IntN(8) == 0 {
					askText(t, c, "admin", fmt.Sprintf(`{"movePrimary": "db", "to": "sh%d"}`, r.IntN(2)))
				}
			}
		})
	}
	models := make([]map[string]bool, writers)
	for w := range writers {
		models[w] = map[string]bool{}
		c := dialNode(t, s.d, s.d.Node(w%2))
		writing.Go(func() { writeWhileMoving(t, c, w, steps, keys, models[w]) })
	}
	writing.Wait()
	close(done)
	moving.Wait()
	want := map[string]bool{}
	for _, m := range models {
		for doc := range m {
			want[doc] = true
		}
	}
	mine := bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "w", Value: bson.D{{Key: "$exists", Value: true}}}}}, {Key: "$db", Value: "db"}}
	var stored []string
	for _, c := range s.shards {
		stored = append(stored, results(t, c, mine)...)
	}
	for name, list := range map[string][]string{"mongos 0": results(t, s.a, mine), "mongos 1": results(t, s.b, mine), "the shards": stored} {
		if len(list) != len(want) {
			t.Errorf("%s: %d documents, want %d", name, len(list), len(want))
		}
		for _, doc := range list {
			if !want[doc] {
				t.Errorf("%s: %s should not be there", name, doc)
			}
		}
	}
	if n := staleErrors(t, s.a) + staleErrors(t, s.b); n == 0 {
		t.Error("no table was outdated")
	} else {
		t.Log(n, "outdated tables")
	}
}

// writeWhileMoving writes documents of one writer, some in transactions, and keeps in model which
// ones there must be.
func writeWhileMoving(t *testing.T, c net.Conn, w, steps, keys int, model map[string]bool) {
	r := rand.New(rand.NewPCG(uint64(w), 18))
	session := bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.BinaryUUID, Data: fmt.Appendf(nil, "sixteen bytes %02d", w)}}}
	number, where := int64(0), map[int]int{} // id to x
	text := func(id, x, n int) string { return fmt.Sprintf(`{"_id":%d,"x":%d,"w":%d,"n":%d}`, id, x, w, n) }
	counts := map[int]int{}
	expect := func(reply bson.Raw, n int64) {
		t.Helper()
		if got, _ := reply.Lookup("n").AsInt64(); got != n || errorOf(reply) != "ok" || !reply.Lookup("writeErrors").IsZero() {
			t.Errorf("writer %d: %v, want n %d", w, reply, n)
		}
	}
	for step := range steps {
		id, x := 1000*(w+1)+step, r.IntN(keys)
		switch r.IntN(6) {
		case 0, 1:
			expect(askText(t, c, "db", fmt.Sprintf(`{"insert": "c", "documents": [%s, %s], "ordered": %t}`, text(id, x, 0), text(id+500, x+1, 0), r.IntN(2) == 0)), 2)
			where[id], where[id+500], counts[id], counts[id+500] = x, x+1, 0, 0
		case 2: // a transaction over both shards, until it succeeds
			for range 1000 {
				number++
				inTxn := func(start bool, db string, cmd bson.D) bson.Raw {
					cmd = append(cmd, bson.E{Key: "lsid", Value: session}, bson.E{Key: "txnNumber", Value: number}, bson.E{Key: "autocommit", Value: false})
					if start {
						cmd = append(cmd, bson.E{Key: "startTransaction", Value: true})
					}
					return run(t, c, append(cmd, bson.E{Key: "$db", Value: db}))
				}
				insert := func(id, x int) bson.D {
					return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}, {Key: "x", Value: x}, {Key: "w", Value: w}, {Key: "n", Value: 0}}}}}
				}
				reply := inTxn(true, "db", insert(id, x))
				if errorOf(reply) == "ok" {
					reply = inTxn(false, "db", insert(id+500, x+1))
				}
				if errorOf(reply) == "ok" {
					reply = inTxn(false, "admin", bson.D{{Key: "commitTransaction", Value: 1}})
				}
				if errorOf(reply) == "ok" {
					where[id], where[id+500], counts[id], counts[id+500] = x, x+1, 0, 0
					break
				}
				if label, _ := reply.Lookup("errorLabels", "0").StringValue(); label != "TransientTransactionError" {
					t.Errorf("writer %d: %v", w, reply)
					break
				}
			}
		case 3:
			for id, x := range where {
				expect(askText(t, c, "db", fmt.Sprintf(`{"update": "c", "updates": [{"q": {"_id": %d, "x": %d}, "u": {"$inc": {"n": 1}}}]}`, id, x)), 1)
				counts[id]++
				break
			}
		case 4:
			expect(askText(t, c, "db", fmt.Sprintf(`{"update": "c", "updates": [{"q": {"w": %d}, "u": {"$inc": {"n": 1}}, "multi": true}]}`, w)), int64(len(where)))
			for id := range where {
				counts[id]++
			}
		default:
			for id, x := range where {
				expect(askText(t, c, "db", fmt.Sprintf(`{"delete": "c", "deletes": [{"q": {"_id": %d, "x": %d}, "limit": 1}]}`, id, x)), 1)
				delete(where, id)
				break
			}
		}
		if step%8 == 0 {
			if list := results(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "w", Value: w}}}, {Key: "batchSize", Value: 1000}, {Key: "$db", Value: "db"}}); len(list) != len(where) {
				t.Errorf("writer %d finds %d documents instead of %d", w, len(list), len(where))
			}
		}
	}
	for id, x := range where {
		model[text(id, x, counts[id])] = true
	}
}

// movePrimary takes collections without documents along, with their indexes.
func TestMovePrimaryOfEmptyCollection(t *testing.T) {
	s := newStaleCluster(t, 2)
	ok(t, askText(t, s.a, "db", `{"createIndexes": "empty", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}`))
	ok(t, askText(t, s.b, "db", `{"find": "empty"}`))
	ok(t, askText(t, s.a, "admin", `{"movePrimary": "db", "to": "sh1"}`))
	for name, c := range map[string]net.Conn{"mongos": s.b, "sh1": s.shards[1]} {
		if ok(t, askText(t, c, "db", `{"listIndexes": "empty"}`)).Lookup("cursor", "firstBatch", "1").IsZero() {
			t.Errorf("%s does not have the index", name)
		}
	}
	if reply := askText(t, s.shards[0], "db", `{"listIndexes": "empty"}`); errorOf(reply) == "ok" {
		t.Errorf("sh0 still has the collection: %v", reply)
	}
}

// Three mongoses that shard, move, refine, rename and drop two collections under each other's feet
// answer as one replica set does, and leave each document on one shard.
func TestStaleModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 4))
			d, plain := mongotest.Start(t, mongotest.Sharded(3, 3), mongotest.ShardMembers(1+2*int(seed%2)), mongotest.InMemory()), mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
			var mongoses []net.Conn
			for i := range 3 {
				mongoses = append(mongoses, dialNode(t, d, d.Node(i)))
			}
			one := dialNode(t, plain, plain.Node(0))
			any := func() net.Conn { return mongoses[r.IntN(3)] }
			coll := func() string { return []string{"c", "e"}[r.IntN(2)] }
			var last string
			// both runs a command on the cluster and on the replica set and compares what show
			// makes of the replies.
			both := func(db, text string, show func(reply bson.Raw) string) {
				t.Helper()
				last = text
				if a, b := show(askText(t, any(), db, text)), show(askText(t, one, db, text)); a != b {
					t.Fatalf("%s:\ncluster %s\nplain   %s", text, a, b)
				}
			}
			code := func(reply bson.Raw) string { return reply.Lookup("code").String() }
			written := func(reply bson.Raw) string {
				return fmt.Sprint(reply.Lookup("n"), reply.Lookup("nModified"), reply.Lookup("writeErrors"), reply.Lookup("value"), code(reply))
			}
			found := func(reply bson.Raw) string {
				var list []string
				for v := range bson.Raw(reply.Lookup("cursor", "firstBatch").Value).Values() {
					list = append(list, v.String())
				}
				slices.Sort(list)
				return fmt.Sprint(list, reply.Lookup("n"), code(reply))
			}
			routing := func() { // errors are as good as success: the other mongoses know nothing of either
				ns, x := "db."+coll(), r.IntN(30)
				commands := []string{
					`{"shardCollection": "%s", "key": {"x": 1}}`, `{"shardCollection": "%s", "key": {"x": "hashed"}}`,
					`{"refineCollectionShardKey": "%s", "key": {"x": 1, "_id": 1}}`, `{"reshardCollection": "%s", "key": {"_id": 1}}`, `{"unshardCollection": "%s"}`,
					fmt.Sprintf(`{"unshardCollection": "%%s", "toShard": "sh%d"}`, r.IntN(3)), fmt.Sprintf(`{"moveCollection": "%%s", "toShard": "sh%d"}`, r.IntN(3)),
				}
				switch r.IntN(8) {
				case 0, 1:
					if reply := askText(t, any(), "admin", fmt.Sprintf(commands[r.IntN(len(commands))], ns)); errorOf(reply) == "ok" {
						askText(t, one, "db", `{"create": "`+ns[3:]+`"}`) // it is there now
					}
				case 2, 3:
					askText(t, any(), "admin", fmt.Sprintf(`{"split": "%s", "find": {"x": %d, "_id": %d}}`, ns, x, x))
				case 4:
					askText(t, any(), "admin", fmt.Sprintf(`{"movePrimary": "db", "to": "sh%d"}`, r.IntN(3)))
				default:
					askText(t, any(), "admin", fmt.Sprintf(`{"moveChunk": "%s", "find": {"x": %d, "_id": %d}, "to": "sh%d", "_waitForDelete": true}`, ns, x, x, r.IntN(3)))
				}
			}
			number := int64(0)
			both("db", `{"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}, {"key": {"x": 1, "_id": 1}, "name": "x_1__id_1"}, {"key": {"x": "hashed"}, "name": "x_hashed"}]}`, code)
			for step := range 400 {
				x := r.IntN(30)
				switch r.IntN(16) {
				case 0, 1, 2:
					both("db", fmt.Sprintf(`{"insert": "%s", "documents": [{"_id": %d, "x": %d}, {"_id": %d, "x": %d}], "ordered": %t}`, coll(), step, x, 1000+step, r.IntN(30), r.IntN(2) == 0), written)
				case 3:
					both("db", fmt.Sprintf(`{"update": "%s", "updates": [{"q": {"x": {"$lt": %d}}, "u": {"$inc": {"n": 1}}, "multi": true}]}`, coll(), x), written)
				case 4:
					both("db", fmt.Sprintf(`{"delete": "%s", "deletes": [{"q": {"x": %d}, "limit": 0}]}`, coll(), x), written)
				case 5:
					both("db", fmt.Sprintf(`{"findAndModify": "%s", "query": {"_id": %d, "x": %d}, "update": {"$inc": {"n": 5}}, "new": true}`, coll(), r.IntN(step+1), x), written)
				case 6:
					both("db", fmt.Sprintf(`{"find": "%s", "filter": {"x": {"$gte": %d}}, "batchSize": 1000}`, coll(), x), found)
				case 7:
					both("db", fmt.Sprintf(`{"count": "%s", "query": {"x": {"$lt": %d}}}`, coll(), x), found)
				case 8:
					both("db", fmt.Sprintf(`{"aggregate": "%s", "pipeline": [{"$group": {"_id": "$x", "n": {"$sum": 1}}}, {"$lookup": {"from": "%s", "localField": "_id", "foreignField": "x", "pipeline": [{"$count": "n"}], "as": "l"}}], "cursor": {"batchSize": 1000}}`, coll(), coll()), found)
				case 9:
					if r.IntN(3) == 0 {
						both("db", fmt.Sprintf(`{"drop": "%s"}`, coll()), code)
					}
				case 10:
					if r.IntN(3) == 0 {
						both("admin", `{"renameCollection": "db.c", "to": "db.e", "dropTarget": true}`, code)
					} else {
						both("db", `{"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}, {"key": {"x": 1, "_id": 1}, "name": "x_1__id_1"}, {"key": {"x": "hashed"}, "name": "x_hashed"}]}`, code)
					}
				case 11: // a transaction, into which somebody changes where documents are
					inTxn := func(c net.Conn, change func()) bson.Raw {
						number++
						session := []bson.E{{Key: "lsid", Value: testSession}, {Key: "txnNumber", Value: number}, {Key: "autocommit", Value: false}}
						insert := func(coll string, id int) bson.D {
							return bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}, {Key: "x", Value: x}}}}}
						}
						reply := run(t, c, append(append(insert("c", step), session...), bson.E{Key: "startTransaction", Value: true}, bson.E{Key: "$db", Value: "db"}))
						if errorOf(reply) == "ok" {
							change()
							reply = run(t, c, append(append(insert("e", 1000+step), session...), bson.E{Key: "$db", Value: "db"}))
						}
						if errorOf(reply) == "ok" {
							reply = run(t, c, append(append(bson.D{{Key: "commitTransaction", Value: 1}}, session...), bson.E{Key: "$db", Value: "admin"}))
						}
						return reply
					}
					other := func() { // what does not have to wait for the transaction
						askText(t, any(), "admin", fmt.Sprintf(`{"moveChunk": "db.e", "find": {"x": %d, "_id": %d}, "to": "sh%d", "_waitForDelete": true, "maxTimeMS": 100}`, x, 1000+step, r.IntN(3)))
					}
					c := any()
					for tries := 0; ; tries++ {
						reply := inTxn(c, func() {
							if tries == 0 {
								other()
							}
						})
						if errorOf(reply) == "ok" {
							break
						}
						if label, _ := reply.Lookup("errorLabels", "0").StringValue(); label != "TransientTransactionError" || tries == 10 {
							t.Fatalf("step %d: %v", step, reply)
						}
					}
					ok(t, inTxn(one, func() {}))
				default:
					routing()
				}
				if t.Failed() {
					t.Fatalf("after %s", last)
				}
			}
			for _, name := range []string{"c", "e"} {
				var stored []string
				all := bson.D{{Key: "find", Value: name}, {Key: "$db", Value: "db"}}
				for _, sh := range d.Shards() {
					stored = append(stored, results(t, dialNode(t, d, sh.Node()), all)...)
				}
				want := results(t, one, all)
				slices.Sort(stored)
				slices.Sort(want)
				for _, c := range mongoses {
					got := results(t, c, all)
					if slices.Sort(got); !slices.Equal(got, want) {
						t.Errorf("%s: a mongos finds %v, want %v", name, got, want)
					}
				}
				if !slices.Equal(stored, want) {
					t.Errorf("%s: the shards have %v, want %v", name, stored, want)
				}
			}
			told := staleErrors(t, mongoses[0]) + staleErrors(t, mongoses[1]) + staleErrors(t, mongoses[2])
			if told == 0 {
				t.Error("no table was outdated")
			}
			t.Log(told, "outdated tables")
		})
	}
}

// A client that writes to a shard past the mongoses does not make a collection of its own there
// that would hide a sharded one: the primary shard has a part of each.
func TestWriteToNewPrimaryShard(t *testing.T) {
	s := newStaleCluster(t, 2)
	ok(t, askText(t, s.a, "admin", `{"shardCollection": "db.fresh", "key": {"x": 1}}`))
	ok(t, askText(t, s.a, "db", `{"insert": "fresh", "documents": [{"_id": 1, "x": 1}]}`))
	ok(t, askText(t, s.a, "admin", `{"movePrimary": "db", "to": "sh1"}`))
	ok(t, askText(t, s.shards[1], "db", `{"insert": "fresh", "documents": [{"_id": 2, "x": 2}]}`)) // an orphan
	for i, c := range []net.Conn{s.a, s.b} {
		if got := results(t, c, bson.D{{Key: "find", Value: "fresh"}, {Key: "$db", Value: "db"}}); fmt.Sprint(got) != `[{"_id":1,"x":1}]` {
			t.Errorf("mongos %d finds %v", i, got)
		}
	}
}
