package mongotest_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// results returns the documents of a cursor, those that do not fit the first batch included, as
// text.
func results(t *testing.T, c net.Conn, cmd bson.D) (list []string) {
	t.Helper()
	reply := ok(t, run(t, c, cmd))
	batch := "firstBatch"
	for {
		for v := range bson.Raw(reply.Lookup("cursor", batch).Value).Values() {
			list = append(list, bson.Raw(v.Value).String())
		}
		id, _ := reply.Lookup("cursor", "id").AsInt64()
		if id == 0 {
			return list
		}
		batch = "nextBatch"
		reply = ok(t, run(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: cmd[0].Value}, {Key: "batchSize", Value: 7}, {Key: "$db", Value: "db"}}))
	}
}

// A sharded collection whose chunks are split and moved all the time answers as one does that is
// on a single shard.
func TestShardsModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 18))
			d, plain := mongotest.Start(t, mongotest.Sharded(3, 2), mongotest.InMemory()), mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
			conns := []net.Conn{dialNode(t, d, d.Node(0)), dialNode(t, d, d.Node(1)), dialNode(t, plain, plain.Node(0))}
			key := bson.D{{Key: "x", Value: 1}}
			if seed%2 == 1 {
				key[0].Value = "hashed"
			}
			admin := func(cmd ...bson.E) bson.Raw {
				return run(t, conns[r.IntN(2)], append(bson.D(cmd), bson.E{Key: "$db", Value: "admin"}))
			}
			ok(t, admin(bson.E{Key: "shardCollection", Value: "db.c"}, bson.E{Key: "key", Value: key}))
			index := bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "y", Value: 1}, {Key: "_id", Value: -1}}}, {Key: "name", Value: "y"}}}}, {Key: "$db", Value: "db"}}
			ok(t, run(t, conns[0], index))
			ok(t, run(t, conns[2], index))
			// both sends a command to the cluster and to the replica set, and compares what f
			// makes of the replies.
			both := func(cmd bson.D, f func(c net.Conn) string) {
				t.Helper()
				if a, b := f(conns[r.IntN(2)]), f(conns[2]); a != b {
					t.Fatalf("%v:\nsharded %s\nplain   %s", cmd, a, b)
				}
			}
			// A document that comes to a shard which still has an orphan with its _id is refused,
			// as by a server: either documents stay in their ranges, or migrations wait for the
			// range deleter.
			rekey := seed < 2
			number := 0
			write := func(cmd ...bson.E) {
				t.Helper()
				number++
				full := append(bson.D(cmd), bson.E{Key: "lsid", Value: testSession}, bson.E{Key: "txnNumber", Value: int64(number)}, bson.E{Key: "$db", Value: "db"})
				if multi, _ := bson.Marshal(full); bson.Raw(multi).Lookup("updates", "0", "multi").AsBool() || cmd[0].Key == "delete" {
					full = append(bson.D(cmd), bson.E{Key: "$db", Value: "db"})
				}
				both(full, func(c net.Conn) string {
					reply := ok(t, run(t, c, full))
					return fmt.Sprint(reply.Lookup("n"), reply.Lookup("nModified"), reply.Lookup("writeErrors", "0", "code"))
				})
			}
			read := func(ordered bool, cmd ...bson.E) {
				t.Helper()
				full := append(bson.D(cmd), bson.E{Key: "$db", Value: "db"})
				both(full, func(c net.Conn) string {
					list := results(t, c, full)
					if !ordered {
						slices.Sort(list)
					}
					return fmt.Sprint(list)
				})
			}
			for step := range 300 {
				id, x, y := r.IntN(60), r.IntN(40), r.IntN(10)
				switch r.IntN(12) {
				case 0, 1, 2:
					write(bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: step}, {Key: "x", Value: x}, {Key: "y", Value: y}}}})
				case 3:
					write(bson.E{Key: "update", Value: "c"}, bson.E{Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "y", Value: bson.D{{Key: "$lt", Value: y}}}}}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}, {Key: "multi", Value: true}}}})
				case 4: // the document may go to another shard
					if !rekey {
						id, x = -1, -1
					}
					write(bson.E{Key: "update", Value: "c"}, bson.E{Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: id}}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: x}}}}}}}})
				case 5:
					write(bson.E{Key: "delete", Value: "c"}, bson.E{Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "x", Value: x}, {Key: "y", Value: y}}}, {Key: "limit", Value: 0}}}})
				case 6, 7:
					at := any(x)
					if seed%2 == 1 {
						at = r.Int64() - 1<<62
					}
					admin(bson.E{Key: "split", Value: "db.c"}, bson.E{Key: "middle", Value: bson.D{{Key: "x", Value: at}}})
				case 8, 9:
					ok(t, admin(bson.E{Key: "moveChunk", Value: "db.c"}, bson.E{Key: "find", Value: bson.D{{Key: "x", Value: x}}}, bson.E{Key: "to", Value: fmt.Sprint("sh", r.IntN(3))}, bson.E{Key: "_waitForDelete", Value: rekey}))
				case 10:
					read(true, bson.E{Key: "aggregate", Value: "c"}, bson.E{Key: "pipeline", Value: bson.A{
						bson.D{{Key: "$match", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$gte", Value: x}}}}}},
						bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$y"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: "$x"}}}}}},
						bson.D{{Key: "$lookup", Value: bson.D{{Key: "from", Value: "c"}, {Key: "localField", Value: "_id"}, {Key: "foreignField", Value: "y"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$count", Value: "n"}}}}, {Key: "as", Value: "same"}}}},
						bson.D{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}}}}, bson.E{Key: "cursor", Value: bson.D{}})
				case 11:
					filter := bson.E{Key: "filter", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$in", Value: bson.A{x, x + 1, y}}}}}}
					read(false, bson.E{Key: "find", Value: "c"}, filter)
					read(true, bson.E{Key: "find", Value: "c"}, bson.E{Key: "sort", Value: bson.D{{Key: "y", Value: -1}, {Key: "_id", Value: 1}}}, bson.E{Key: "skip", Value: 3}, bson.E{Key: "limit", Value: 20}, bson.E{Key: "batchSize", Value: 6})
					count := bson.D{{Key: "count", Value: "c"}, {Key: "query", Value: bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 0}}}}}, {Key: "$db", Value: "db"}}
					both(count, func(c net.Conn) string { return ok(t, run(t, c, count)).Lookup("n").String() })
				}
			}
			read(false, bson.E{Key: "find", Value: "c"})
			// The range deleter takes what migrations left.
			d.ShiftClock(time.Hour)
			count := bson.D{{Key: "count", Value: "c"}, {Key: "$db", Value: "db"}}
			both(count, func(c net.Conn) string { return ok(t, run(t, c, count)).Lookup("n").String() })
			read(false, bson.E{Key: "find", Value: "c"})
		})
	}
}

// A migration leaves its documents behind for a while: queries do not see them, a count without a
// filter does, and so does who asks the shard itself.
func TestOrphans(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	move := func(more ...bson.E) {
		t.Helper()
		ok(t, run(t, c, append(bson.D{{Key: "moveChunk", Value: "db.c"}, {Key: "find", Value: bson.D{{Key: "x", Value: 0}}}, {Key: "$db", Value: "admin"}}, more...)))
	}
	counts := func(want string) {
		t.Helper()
		if got := perShard(t, c, bson.D{}); got != want {
			t.Errorf("the shards have %s, want %s", got, want)
		}
		if got := len(results(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}})); got != 20 {
			t.Errorf("find yields %d documents", got)
		}
	}
	move(bson.E{Key: "to", Value: "sh1"})
	counts(`{"sh1":20}`)
	move(bson.E{Key: "to", Value: "sh0"})
	counts(`{"sh0":10,"sh1":20}`)
	// A document with the _id of an orphan is the shard's own.
	ok(t, run(t, c, bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$lt", Value: 3}}}}}, {Key: "limit", Value: 0}}}}, {Key: "$db", Value: "db"}}))
	if got := len(results(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$lt", Value: 10}}}}}, {Key: "$db", Value: "db"}})); got != 7 {
		t.Errorf("%d documents after the delete, want 7", got)
	}
	d.ShiftClock(16 * time.Minute)
	if got := perShard(t, c, bson.D{}); got != `{"sh0":7,"sh1":10}` {
		t.Errorf("after the range deleter: %s", got)
	}
	move(bson.E{Key: "to", Value: "sh1"}, bson.E{Key: "_waitForDelete", Value: true})
	if got := perShard(t, c, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 0}}}}); got != `{"sh1":17}` {
		t.Errorf("after a migration that waits for its range to be deleted: %s", got)
	}
}

// _id is unique on each shard, not in the cluster.
func TestDuplicateIDs(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	insert := func(id, x int) bson.Raw {
		return run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}, {Key: "x", Value: x}}}}, {Key: "$db", Value: "db"}})
	}
	ok(t, insert(3, 15)) // 3 is there with x: 3, on the other shard
	if code, _ := insert(4, 2).Lookup("writeErrors", "0", "code").AsInt64(); code != 11000 {
		t.Errorf("a second document with this _id on one shard: code %d", code)
	}
	if got := len(results(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: 3}}}, {Key: "$db", Value: "db"}})); got != 2 {
		t.Errorf("%d documents with the _id", got)
	}
	// They cannot be brought together.
	if r := run(t, c, bson.D{{Key: "moveChunk", Value: "db.c"}, {Key: "find", Value: bson.D{{Key: "x", Value: 0}}}, {Key: "to", Value: "sh1"}, {Key: "$db", Value: "admin"}}); errorCode(r) == 0 {
		t.Errorf("a migration onto a document with the same _id: %v", r)
	}
	if got := len(results(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}})); got != 21 {
		t.Errorf("%d documents after the migration that failed", got)
	}
}

// transaction returns a function that runs commands in a transaction on db.c.
func transaction(t *testing.T, c net.Conn, number int64) func(cmd ...bson.E) bson.Raw {
	start := true
	return func(cmd ...bson.E) bson.Raw {
		full := append(bson.D(cmd), bson.E{Key: "lsid", Value: testSession}, bson.E{Key: "txnNumber", Value: number}, bson.E{Key: "autocommit", Value: false})
		if start {
			full = append(full, bson.E{Key: "startTransaction", Value: true})
		}
		start = false
		db := "db"
		if cmd[0].Key == "commitTransaction" {
			db = "admin"
		}
		return run(t, c, append(full, bson.E{Key: "$db", Value: db}))
	}
}

func insertX(id, x int) []bson.E {
	return []bson.E{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}, {Key: "x", Value: x}}}}}
}

// A transaction over two shards is on both or on none, whenever one of them goes.
func TestShardKilledInTransaction(t *testing.T) { synctest.Test(t, shardKilledInTransaction) }

func shardKilledInTransaction(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 2), mongotest.InMemory())
	c, other := dialNode(t, d, d.Node(0)), dialNode(t, d, d.Node(1))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	inserted := func() int {
		return len(results(t, other, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 100}}}}}, {Key: "$db", Value: "db"}}))
	}
	sh1 := d.Shards()[1].Node()

	// Before it is prepared, the transaction is aborted.
	in := transaction(t, c, 1)
	ok(t, in(insertX(100, 1)...))
	ok(t, in(insertX(101, 15)...))
	sh1.Kill()
	if err := sh1.Restart(); err != nil {
		t.Fatal(err)
	}
	if r := in(bson.E{Key: "commitTransaction", Value: 1}); errorCode(r) != 251 {
		t.Errorf("commit after a participant was killed: %v", r)
	}
	if n := inserted(); n != 0 {
		t.Errorf("%d documents of the transaction that was aborted", n)
	}

	// A shard that has nothing to do with a transaction does not abort it.
	in = transaction(t, c, 2)
	ok(t, in(insertX(102, 2)...))
	sh1.Kill()
	ok(t, in(bson.E{Key: "commitTransaction", Value: 1}))
	if err := sh1.Restart(); err != nil {
		t.Fatal(err)
	}
	if n := inserted(); n != 1 {
		t.Errorf("%d documents of the transaction on the other shard", n)
	}

	// After it is prepared, the decision holds on the shard that was down, too.
	in = transaction(t, c, 3)
	ok(t, in(insertX(103, 3)...))
	ok(t, in(insertX(104, 16)...))
	coordinator := dialNode(t, d, d.Shards()[0].Node())
	point := func(mode any) {
		ok(t, run(t, coordinator, bson.D{{Key: "configureFailPoint", Value: "hangBeforeWritingDecision"}, {Key: "mode", Value: mode}, {Key: "$db", Value: "admin"}}))
	}
	point("alwaysOn")
	committed := make(chan bson.Raw, 1)
	go func() { committed <- in(bson.E{Key: "commitTransaction", Value: 1}) }()
	ok(t, run(t, coordinator, bson.D{{Key: "waitForFailPoint", Value: "hangBeforeWritingDecision"}, {Key: "timesEntered", Value: 1}, {Key: "maxTimeMS", Value: 60_000}, {Key: "$db", Value: "admin"}}))
	sh1.Kill()
	point("off")
	ok(t, <-committed)
	if err := sh1.Restart(); err != nil {
		t.Fatal(err)
	}
	if n := inserted(); n != 3 {
		t.Errorf("%d documents after a transaction whose participant was killed while it was prepared, want 3", n)
	}
}

// What goes wrong on one shard leaves the other alone.
func TestShardFaults(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	find := func(x int, more ...bson.E) bson.Raw {
		return run(t, c, append(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "x", Value: x}}}, {Key: "$db", Value: "db"}}, more...))
	}
	sh := d.Shards()
	if sh[1].Name() != "sh1" {
		t.Errorf("shard 1 is called %s", sh[1].Name())
	}

	// A read is sent again, a write without a number is not.
	sh[1].Node().FailCommand(mongotest.Fail{Commands: []string{"find", "insert"}, Code: 91, Times: 3})
	ok(t, find(15))
	sh[1].Node().FailCommand(mongotest.Fail{Commands: []string{"find", "insert"}, CloseConnection: true, Times: 1})
	r := run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "ordered", Value: false}, {Key: "documents", Value: bson.A{
		bson.D{{Key: "_id", Value: 100}, {Key: "x", Value: 16}}, bson.D{{Key: "_id", Value: 101}, {Key: "x", Value: 1}}}}, {Key: "$db", Value: "db"}})
	if code, _ := r.Lookup("writeErrors", "0", "code").AsInt64(); code != 6 || r.Lookup("n").String() != "1" {
		t.Errorf("an insert whose connection to one shard breaks: %v", r)
	}
	sh[1].Node().FailCommand(mongotest.Fail{Commands: []string{"find"}, Code: 8000})
	if r := find(15); errorCode(r) != 8000 {
		t.Errorf("a find on a shard that fails it: %v", r)
	}
	ok(t, find(1))
	sh[1].Node().FailCommand(mongotest.Fail{Commands: []string{"ping"}, Code: 1})

	// While a shard is down, who needs it waits, and gives up at the latest after 15 seconds.
	sh[1].Node().Hang()
	if r := find(15, bson.E{Key: "maxTimeMS", Value: 50}); errorCode(r) != 50 {
		t.Errorf("a find on a shard that hangs: %v", r)
	}
	ok(t, find(1, bson.E{Key: "maxTimeMS", Value: 60_000}))
	go sh[1].Node().Resume()
	ok(t, find(15))

	// Clients get at the shard past the mongos, and see what it has.
	direct := dialNode(t, d, sh[1].Node())
	if n, _ := ok(t, run(t, direct, bson.D{{Key: "count", Value: "c"}, {Key: "$db", Value: "db"}})).Lookup("n").AsInt64(); n != 10 {
		t.Errorf("the shard itself counts %d documents", n)
	}
	if set, _ := ok(t, run(t, direct, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})).Lookup("setName").StringValue(); set != "sh1" {
		t.Errorf("the shard's replica set is called %q", set)
	}
	host, _ := ok(t, run(t, c, bson.D{{Key: "listShards", Value: 1}, {Key: "$db", Value: "admin"}})).Lookup("shards", "1", "host").StringValue()
	if host != "sh1/"+sh[1].Node().Addr() {
		t.Errorf("listShards shows %q, the shard is at %s", host, sh[1].Node().Addr())
	}
	ok(t, run(t, direct, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 200}, {Key: "x", Value: 18}}}}, {Key: "$db", Value: "db"}}))
	if got := len(ids(t, find(18))); got != 2 {
		t.Errorf("the mongos finds %d documents after a write past it", got)
	}
}

// A statement on several shards, one of which is gone, does what it can and says so.
func TestBroadcastWithoutShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		shard(t, c, bson.D{{Key: "x", Value: 1}})
		d.Shards()[1].Node().Kill()
		r := run(t, c, bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "y", Value: 1}}}}}, {Key: "multi", Value: true}}}}, {Key: "$db", Value: "db"}})
		if code, _ := r.Lookup("writeErrors", "0", "code").AsInt64(); code != 133 || r.Lookup("n").String() != "10" || r.Lookup("nModified").String() != "10" {
			t.Errorf("update without a shard: %v", r)
		}
		if r := run(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}}); errorCode(r) != 133 {
			t.Errorf("find without a shard: %v", r)
		}
		if err := d.Shards()[1].Node().Restart(); err != nil {
			t.Fatal(err)
		}
		r = ok(t, run(t, c, bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "y", Value: nil}}}, {Key: "limit", Value: 0}}}}, {Key: "$db", Value: "db"}}))
		if r.Lookup("n").String() != "10" {
			t.Errorf("what the update did not do: %v", r)
		}
	})
}

// The balancer does nothing until it is started, then it evens chunks out and minds zones, until it
// is stopped.
func TestBalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		admin := func(cmd ...bson.E) bson.Raw {
			return ok(t, run(t, c, append(bson.D(cmd), bson.E{Key: "$db", Value: "admin"})))
		}
		admin(bson.E{Key: "shardCollection", Value: "db.c"}, bson.E{Key: "key", Value: bson.D{{Key: "x", Value: 1}}})
		for x := range 7 {
			admin(bson.E{Key: "split", Value: "db.c"}, bson.E{Key: "middle", Value: bson.D{{Key: "x", Value: x}}})
			ok(t, run(t, c, append(bson.D(insertX(x, x)), bson.E{Key: "$db", Value: "db"})))
		}
		chunks := func() (n int) {
			for _, doc := range results(t, c, bson.D{{Key: "find", Value: "chunks"}, {Key: "filter", Value: bson.D{{Key: "shard", Value: "sh1"}}}, {Key: "$db", Value: "config"}}) {
				if doc != "" {
					n++
				}
			}
			return n
		}
		status := func() string {
			s, _ := admin(bson.E{Key: "balancerStatus", Value: 1}).Lookup("mode").StringValue()
			return s
		}
		time.Sleep(time.Minute)
		if n := chunks(); n != 0 {
			t.Errorf("%d chunks were moved before the balancer was started", n)
		}
		admin(bson.E{Key: "balancerStart", Value: 1})
		time.Sleep(time.Minute)
		if n := chunks(); n != 4 && n != 3 {
			t.Errorf("%d of 8 chunks are on the second shard", n)
		}
		admin(bson.E{Key: "addShardToZone", Value: "sh1"}, bson.E{Key: "zone", Value: "far"})
		admin(bson.E{Key: "updateZoneKeyRange", Value: "db.c"}, bson.E{Key: "min", Value: bson.D{{Key: "x", Value: bson.MinKey{}}}},
			bson.E{Key: "max", Value: bson.D{{Key: "x", Value: bson.MaxKey{}}}}, bson.E{Key: "zone", Value: "far"})
		time.Sleep(time.Minute)
		if n := chunks(); n != 8 {
			t.Errorf("%d of 8 chunks are in their zone", n)
		}
		admin(bson.E{Key: "balancerStop", Value: 1})
		if s := status(); s != "off" {
			t.Errorf("the balancer is %q after balancerStop", s)
		}
		if got := len(results(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}})); got != 7 {
			t.Errorf("%d documents after all chunks were moved", got)
		}
	})
}
