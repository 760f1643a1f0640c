package mongotest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

type D = bson.D

// in runs a command and wants it to succeed.
func in(t *testing.T, d *mongotest.Deployment, db string, cmd ...bson.E) bson.Raw {
	t.Helper()
	c := dialNode(t, d, d.Primary())
	defer c.Close()
	return ok(t, run(t, c, append(append(D{}, cmd...), bson.E{Key: "$db", Value: db})))
}

// content is what a deployment holds, as text.
func content(t *testing.T, d *mongotest.Deployment) string {
	t.Helper()
	text := ""
	dbs, _ := in(t, d, "admin", bson.E{Key: "listDatabases", Value: 1}, bson.E{Key: "nameOnly", Value: true}).Lookup("databases").Array()
	for v := range dbs.Values() {
		doc, _ := v.Document()
		db, _ := doc.Lookup("name").StringValue()
		if db == "local" || db == "config" {
			continue
		}
		colls, _ := in(t, d, db, bson.E{Key: "listCollections", Value: 1}).Lookup("cursor", "firstBatch").Array()
		for v := range colls.Values() {
			info, _ := v.Document()
			name, _ := info.Lookup("name").StringValue()
			text += db + "." + info.String()
			for _, cmd := range []string{"find", "listIndexes"} {
				batch, _ := in(t, d, db, bson.E{Key: cmd, Value: name}).Lookup("cursor", "firstBatch").Array()
				text += batch.String()
			}
		}
	}
	users, _ := in(t, d, "app", bson.E{Key: "usersInfo", Value: 1}).Lookup("users").Array()
	return text + users.String() + in(t, d, "admin", bson.E{Key: "getClusterParameter", Value: "changeStreamOptions"}).Lookup("clusterParameters").String()
}

// change changes what change number i finds, differently each time.
func change(t *testing.T, d *mongotest.Deployment, i int) {
	t.Helper()
	in(t, d, "app", bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: bson.A{D{{Key: "n", Value: i}}}})
	in(t, d, "app", bson.E{Key: "update", Value: "c"}, bson.E{Key: "updates", Value: bson.A{D{{Key: "q", Value: D{}}, {Key: "u", Value: D{{Key: "$inc", Value: D{{Key: "n", Value: 1}}}}}, {Key: "multi", Value: true}}}})
	in(t, d, "app", bson.E{Key: "createIndexes", Value: "c"}, bson.E{Key: "indexes", Value: bson.A{D{{Key: "key", Value: D{{Key: fmt.Sprint("f", i), Value: 1}}}, {Key: "name", Value: fmt.Sprint("f", i)}}}})
	in(t, d, fmt.Sprint("db", i), bson.E{Key: "create", Value: "x"})
	if i%2 == 0 {
		in(t, d, "app", bson.E{Key: "drop", Value: "c"})
	}
	in(t, d, "app", bson.E{Key: "createUser", Value: fmt.Sprint("u", i)}, bson.E{Key: "pwd", Value: "x"}, bson.E{Key: "roles", Value: bson.A{}}, bson.E{Key: "mechanisms", Value: bson.A{"SCRAM-SHA-256"}})
	in(t, d, "admin", bson.E{Key: "setClusterParameter", Value: D{{Key: "changeStreamOptions", Value: D{{Key: "preAndPostImages", Value: D{{Key: "expireAfterSeconds", Value: 100 + i}}}}}}})
}

// TestSnapshots goes back to any of several states, in any order.
func TestSnapshots(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	var taken []*mongotest.Snapshot
	var want []string
	for i := range 4 {
		change(t, d, i)
		s, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		taken, want = append(taken, s), append(want, content(t, d))
	}
	for _, i := range []int{0, 3, 1, 1, 2, 0} {
		change(t, d, 10+i)
		if err := d.Restore(taken[i]); err != nil {
			t.Fatal(err)
		}
		if got := content(t, d); got != want[i] {
			t.Errorf("snapshot %d:\ngot  %s\nwant %s", i, got, want[i])
		}
	}
	// The other members see it, too.
	d.StepDown()
	if got := content(t, d); got != want[0] {
		t.Errorf("after an election: %s\nwant %s", got, want[0])
	}
}

// where is what the config servers show of a cluster, and what each shard holds.
func where(t *testing.T, d *mongotest.Deployment) string {
	t.Helper()
	text := ""
	for _, name := range []string{"databases", "collections", "chunks", "tags"} {
		batch, _ := in(t, d, "config", bson.E{Key: "find", Value: name}, bson.E{Key: "sort", Value: D{{Key: "_id", Value: 1}}}).Lookup("cursor", "firstBatch").Array()
		text += batch.String()
	}
	for i := range 2 {
		c := dialNode(t, d, d.Shards()[i].Primary())
		for _, coll := range []string{"c", "s"} {
			batch, _ := ok(t, run(t, c, D{{Key: "find", Value: coll}, {Key: "sort", Value: D{{Key: "_id", Value: 1}}}, {Key: "$db", Value: "app"}})).Lookup("cursor", "firstBatch").Array()
			text += fmt.Sprint(i, coll, batch)
		}
	}
	return text
}

// A snapshot of a cluster is one of all its shards, and of which shard has what: chunks that have
// moved since are back, with what migrations had left behind, and no mongos has an outdated table.
func TestSnapshotsOfClusters(t *testing.T) {
	for _, members := range []int{1, 3} {
		d := mongotest.Start(t, mongotest.Sharded(2, 2), mongotest.ShardMembers(members))
		admin := func(text string) { ok(t, askText(t, dialNode(t, d, d.Node(0)), "admin", text)) }
		admin(`{"enableSharding": "app", "primaryShard": "sh0"}`)
		admin(`{"shardCollection": "app.s", "key": {"_id": 1}}`)
		var docs bson.A
		for i := range 20 {
			docs = append(docs, D{{Key: "_id", Value: i}})
		}
		in(t, d, "app", bson.E{Key: "insert", Value: "s"}, bson.E{Key: "documents", Value: docs})
		var taken []*mongotest.Snapshot
		var want []string
		for i, changes := range [][]string{
			{`{"split": "app.s", "middle": {"_id": 10}}`},
			{`{"moveChunk": "app.s", "find": {"_id": 12}, "to": "sh1", "_waitForDelete": true}`, `{"addShardToZone": "sh1", "zone": "z"}`, `{"updateZoneKeyRange": "app.s", "min": {"_id": 10}, "max": {"_id": 20}, "zone": "z"}`},
			{`{"split": "app.s", "middle": {"_id": 5}}`, `{"moveChunk": "app.s", "find": {"_id": 7}, "to": "sh1"}`}, // leaves orphans
			{`{"movePrimary": "app", "to": "sh1"}`},
			{`{"unshardCollection": "app.s"}`},
		} {
			for _, text := range changes {
				admin(text)
			}
			change(t, d, 2*i+1)
			s, err := d.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			taken, want = append(taken, s), append(want, content(t, d)+where(t, d))
		}
		for round, i := range []int{0, 4, 2, 2, 1, 3, 0, 2} {
			if err := d.Restore(taken[i]); err != nil {
				t.Fatal(err)
			}
			if got := content(t, d) + where(t, d); got != want[i] {
				t.Errorf("%d members, snapshot %d:\ngot  %s\nwant %s", members, i, got, want[i])
			}
			c := dialNode(t, d, d.Node(1)) // which has seen another one
			if n := ok(t, askText(t, c, "app", `{"aggregate": "s", "pipeline": [{"$count": "n"}], "cursor": {}}`)).Lookup("cursor", "firstBatch", "0", "n").String(); n != "20" {
				t.Errorf("%d members, snapshot %d: %s documents", members, i, n)
			}
			ok(t, askText(t, c, "app", `{"update": "s", "updates": [{"q": {"_id": {"$gt": 3}}, "u": {"$set": {"x": 1}}, "multi": true}]}`))
			if err := d.Restore(taken[(i+1)%len(taken)]); err != nil {
				t.Fatal(err)
			}
			outdated := staleErrors(t, c)
			txn := transaction(t, c, int64(round+1))
			for _, coll := range []string{"c", "s"} {
				ok(t, txn(bson.E{Key: "insert", Value: coll}, bson.E{Key: "documents", Value: bson.A{D{{Key: "_id", Value: 1000}}, D{{Key: "_id", Value: -1}}}}))
			}
			ok(t, txn(bson.E{Key: "commitTransaction", Value: 1}))
			if n := staleErrors(t, c) - outdated; n != 0 {
				t.Errorf("%d members, snapshot %d: the other mongos met %d outdated tables", members, i, n)
			}
		}
		copied := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.From(taken[3]))
		if got := content(t, copied) + where(t, copied); got != want[3] {
			t.Errorf("%d members, a copy: %s\nwant %s", members, got, want[3])
		}
	}
}

// The range deleter takes what was left behind when the snapshot was taken, and nothing that
// belongs to its shard again.
func TestSnapshotsHaveOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
		defer d.Stop()
		c, shard := dialNode(t, d, d.Node(0)), dialNode(t, d, d.Shards()[0].Node())
		defer c.Close()
		defer shard.Close()
		stored := func() int { return firstBatch(ok(t, askText(t, shard, "app", `{"find": "s"}`))) }
		restore := func(s *mongotest.Snapshot, want int) {
			t.Helper()
			if err := d.Restore(s); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if n := stored(); n != want {
				t.Errorf("the shard has %d documents, want %d", n, want)
			}
			if n := firstBatch(ok(t, askText(t, c, "app", `{"find": "s"}`))); n != 4 {
				t.Errorf("the cluster has %d documents, want 4", n)
			}
		}
		snapshot := func() *mongotest.Snapshot {
			s, err := d.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		ok(t, askText(t, c, "admin", `{"enableSharding": "app", "primaryShard": "sh0"}`))
		ok(t, askText(t, c, "admin", `{"shardCollection": "app.s", "key": {"_id": 1}}`))
		ok(t, askText(t, c, "app", `{"insert": "s", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}, {"_id": 4}]}`))
		ok(t, askText(t, c, "admin", `{"split": "app.s", "middle": {"_id": 3}}`))
		before := snapshot()
		ok(t, askText(t, c, "admin", `{"moveChunk": "app.s", "find": {"_id": 3}, "to": "sh1"}`))
		if n := stored(); n != 4 {
			t.Fatalf("the shard has %d documents: there are no orphans", n)
		}
		moved := snapshot()
		restore(before, 4)
		restore(moved, 2)
		restore(before, 4)
	})
}

// TestCopies: deployments that share a snapshot do not see each other's writes.
func TestCopies(t *testing.T) {
	for _, kind := range []mongotest.Option{mongotest.Standalone(), mongotest.ReplicaSet(1)} {
		d := mongotest.Start(t, kind)
		var docs bson.A
		for i := range 500 {
			docs = append(docs, D{{Key: "_id", Value: i}, {Key: "n", Value: 0}})
		}
		in(t, d, "app", bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: docs})
		s, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				mine := d
				if i > 0 {
					mine = mongotest.Start(t, kind, mongotest.From(s), mongotest.Auth("root", "x"), mongotest.Prepare(func(*mongotest.Deployment) error { return nil }))
				}
				err := mine.Inside(func(string) error { return nil })
				if err != nil {
					t.Error(err)
				}
				for round := range 20 {
					mine.Inside(func(uri string) error {
						c, err := mine.DialContext(t.Context(), "tcp", mine.Primary().Addr())
						if err != nil {
							t.Error(err)
							return nil
						}
						defer c.Close()
						ok(t, run(t, c, D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{D{{Key: "q", Value: D{}}, {Key: "u", Value: D{{Key: "$set", Value: D{{Key: "n", Value: i}, {Key: "r", Value: round}}}}}, {Key: "multi", Value: true}}}}, {Key: "$db", Value: "app"}}))
						n, _ := ok(t, run(t, c, D{{Key: "count", Value: "c"}, {Key: "query", Value: D{{Key: "n", Value: i}, {Key: "r", Value: round}}}, {Key: "$db", Value: "app"}})).Lookup("n").AsInt64()
						if n != 500 {
							t.Errorf("copy %d, round %d: %d documents", i, round, n)
						}
						return nil
					})
					if err := mine.Restore(s); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// What is open ends: transactions and cursors.
func TestRestoreEndsWhatIsOpen(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	in(t, d, "app", bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: bson.A{D{{Key: "_id", Value: 1}}, D{{Key: "_id", Value: 2}}}})
	s, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	c := dialNode(t, d, d.Primary())
	lsid := D{{Key: "id", Value: bson.Binary{Subtype: bson.BinaryUUID, Data: make([]byte, 16)}}}
	txn := D{{Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(1)}, {Key: "autocommit", Value: false}}
	ok(t, run(t, c, append(D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{D{{Key: "_id", Value: 3}}}}, {Key: "$db", Value: "app"}, {Key: "startTransaction", Value: true}}, txn...)))
	id := ok(t, run(t, c, D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}, {Key: "$db", Value: "app"}})).Lookup("cursor", "id")
	if err := d.Restore(s); err != nil {
		t.Fatal(err)
	}
	if r := run(t, c, D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "$db", Value: "app"}}); r.Lookup("codeName").String() != `"CursorNotFound"` {
		t.Error(r)
	}
	if r := run(t, c, append(D{{Key: "commitTransaction", Value: 1}, {Key: "$db", Value: "admin"}}, txn...)); r.Lookup("codeName").String() != `"NoSuchTransaction"` {
		t.Error(r)
	}
	if n, _ := in(t, d, "app", bson.E{Key: "count", Value: "c"}).Lookup("n").AsInt64(); n != 2 {
		t.Errorf("%d documents", n)
	}
}

func TestSnapshotCommands(t *testing.T) {
	d := mongotest.Start(t, mongotest.SnapshotCommands())
	code := func(cmd ...bson.E) string {
		c := dialNode(t, d, d.Primary())
		defer c.Close()
		return run(t, c, append(append(D{}, cmd...), bson.E{Key: "$db", Value: "admin"})).Lookup("codeName").String()
	}
	in(t, d, "admin", bson.E{Key: "saveSnapshot", Value: "empty"})
	change(t, d, 1)
	in(t, d, "admin", bson.E{Key: "saveSnapshot", Value: "full"})
	full := content(t, d)
	in(t, d, "admin", bson.E{Key: "restoreSnapshot", Value: "empty"})
	if n := in(t, d, "app", bson.E{Key: "count", Value: "c"}).Lookup("n").String(); n != "0" {
		t.Error(n)
	}
	in(t, d, "admin", bson.E{Key: "restoreSnapshot", Value: "full"})
	if got := content(t, d); got != full {
		t.Errorf("%s\nwant %s", got, full)
	}
	if list := in(t, d, "admin", bson.E{Key: "listSnapshots", Value: 1}).Lookup("snapshots").String(); list != `["empty","full"]` {
		t.Error(list)
	}
	in(t, d, "admin", bson.E{Key: "dropSnapshot", Value: "full"})
	for want, cmd := range map[string]bson.E{
		`"IllegalOperation"`: {Key: "restoreSnapshot", Value: "full"}, `"NamespaceNotFound"`: {Key: "dropSnapshot", Value: "full"}, `"BadValue"`: {Key: "saveSnapshot", Value: 1},
	} {
		if got := code(cmd); got != want {
			t.Errorf("%v: %s, want %s", cmd, got, want)
		}
	}
	d = mongotest.Start(t)
	if got := code(bson.E{Key: "saveSnapshot", Value: "x"}); got != `"CommandNotFound"` {
		t.Error(got)
	}
}

func TestNoSnapshot(t *testing.T) {
	sharded := mongotest.Start(t, mongotest.Sharded(1, 1))
	old := mongotest.Start(t, mongotest.Version("7.0"))
	s, err := old.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := mongotest.Start(t).Restore(s); err == nil {
		t.Error("of another version")
	}
	s, err = mongotest.Start(t).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := sharded.Restore(s); err == nil || !strings.Contains(err.Error(), "a snapshot of a cluster with one shard, and not of a standalone server or a replica set") {
		t.Errorf("of a server into a cluster: %v", err)
	}
	if s, err = sharded.Snapshot(); err != nil {
		t.Fatal(err)
	}
	if err := mongotest.Start(t, mongotest.Sharded(3, 1)).Restore(s); err == nil || !strings.Contains(err.Error(), "with 3 shards, and not of a cluster with one shard") {
		t.Errorf("of a smaller cluster: %v", err)
	}
	if err := mongotest.Start(t).Restore(s); err == nil {
		t.Error("of a cluster into a server")
	}
	sharded.Shards()[0].Primary().Kill()
	if _, err := sharded.Snapshot(); err == nil || !strings.Contains(err.Error(), "sh0 has no primary") {
		t.Errorf("of a cluster without a shard: %v", err)
	}
	if err := sharded.Restore(s); err == nil {
		t.Error("into a cluster without a shard")
	}
	set := mongotest.Start(t, mongotest.ReplicaSet(1))
	set.Primary().Kill()
	if _, err := set.Snapshot(); err == nil {
		t.Error("without a primary")
	}
}

// What expires does so in a deployment that is made from a snapshot.
func TestSnapshotExpires(t *testing.T) {
	d := mongotest.Start(t)
	in(t, d, "app", bson.E{Key: "createIndexes", Value: "c"}, bson.E{Key: "indexes", Value: bson.A{D{{Key: "key", Value: D{{Key: "at", Value: 1}}}, {Key: "name", Value: "at"}, {Key: "expireAfterSeconds", Value: 1}}}})
	in(t, d, "app", bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: bson.A{D{{Key: "at", Value: bson.DateTime(0)}}}})
	s, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next := mongotest.Start(t, mongotest.From(s))
	next.ShiftClock(1)
	if n := in(t, next, "app", bson.E{Key: "count", Value: "c"}).Lookup("n").String(); n != "0" {
		t.Errorf("%s documents", n)
	}
}
