package mongotest_test

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// isolate makes a shard's primary write what its other members never get, and returns a function
// that ends it: one of the others is then the primary.
func isolate(s *mongotest.Shard) (fall func()) {
	held := s.Secondaries()
	for _, n := range held {
		n.HoldBack()
	}
	old := s.Primary()
	return func() {
		old.Kill()
		for _, n := range held {
			n.CatchUp()
		}
		if err := old.Restart(); err != nil {
			panic(err)
		}
	}
}

// idsOf returns the _id values of a collection, in order.
func idsOf(t *testing.T, c net.Conn, coll string) string {
	t.Helper()
	reply := ok(t, run(t, c, bson.D{{Key: "distinct", Value: coll}, {Key: "key", Value: "_id"}, {Key: "$db", Value: "db"}}))
	return reply.Lookup("values").String()
}

// shardMembers starts two shards of three members, with db.c split at x = 10 between them.
func shardMembers(t *testing.T, more ...mongotest.Option) (*mongotest.Deployment, net.Conn) {
	t.Helper()
	d := mongotest.Start(t, append([]mongotest.Option{mongotest.Sharded(2, 1), mongotest.ShardMembers(3), mongotest.InMemory()}, more...)...)
	c := dialNode(t, d, d.Node(0))
	shard(t, c, bson.D{{Key: "x", Value: 1}})
	ok(t, run(t, c, bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}}}, {Key: "$db", Value: "db"}}))
	return d, c
}

// The metadata of a cluster names all members of a shard, and each of them listens.
func TestShardMembersShown(t *testing.T) {
	d, c := shardMembers(t)
	var hosts []string
	for _, n := range d.Shards()[1].Nodes() {
		hosts = append(hosts, n.Addr())
	}
	want := "sh1/" + strings.Join(hosts, ",")
	if len(hosts) != 3 {
		t.Fatalf("a shard has %d members", len(hosts))
	}
	admin := func(name string) bson.Raw {
		return ok(t, run(t, c, bson.D{{Key: name, Value: 1}, {Key: "$db", Value: "admin"}}))
	}
	if got, _ := admin("listShards").Lookup("shards", "1", "host").StringValue(); got != want {
		t.Errorf("listShards has %s, want %s", got, want)
	}
	shards := admin("getShardMap")
	if got, _ := shards.Lookup("map", "sh1").StringValue(); got != want {
		t.Errorf("getShardMap has %s, want %s", got, want)
	}
	if got, _ := shards.Lookup("connStrings", want).StringValue(); got != "sh1" {
		t.Errorf("getShardMap has the connection strings %v", shards.Lookup("connStrings"))
	}
	found := results(t, c, bson.D{{Key: "find", Value: "shards"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: "sh1"}}}, {Key: "$db", Value: "config"}})
	if len(found) != 1 || !strings.Contains(found[0], want) {
		t.Errorf("config.shards has %v", found)
	}
	for i, n := range d.Shards()[1].Nodes() {
		reply := ok(t, run(t, dialNode(t, d, n), bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}))
		if got := reply.Lookup("hosts").String(); !strings.Contains(got, hosts[0]) || !strings.Contains(got, hosts[2]) {
			t.Errorf("hello of member %d names %s", i, got)
		}
		if name, _ := reply.Lookup("setName").StringValue(); name != "sh1" || reply.Lookup("isWritablePrimary").AsBool() != (n == d.Shards()[1].Primary()) {
			t.Errorf("hello of member %d: %v", i, reply)
		}
		if got, _ := shards.Lookup("hosts", n.Addr()).StringValue(); got != "sh1" {
			t.Errorf("getShardMap says that %s is of %q", n.Addr(), got)
		}
	}
	if len(d.Shards()[1].Secondaries()) != 2 {
		t.Errorf("%d secondaries", len(d.Shards()[1].Secondaries()))
	}
}

// finds is a find with a read preference and a read concern; empty: without.
func finds(mode, level string, more ...bson.E) bson.D {
	cmd := append(bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "projection", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "$db", Value: "db"}}, more...)
	if mode != "" {
		cmd = append(cmd, bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: mode}}})
	}
	if level != "" {
		cmd = append(cmd, bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: level}}})
	}
	return cmd
}

// A mongos reads where the read preference says, and sees what is there.
func TestShardReadPreference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t)
		seen := func(cmd bson.D) string {
			t.Helper()
			return strings.Join(results(t, c, cmd), "")
		}
		ok(t, run(t, c, inserts(1, 11)))
		old := `{"_id":1}{"_id":11}`
		newer := `{"_id":1}{"_id":2}{"_id":11}{"_id":12}`
		for _, s := range d.Shards() {
			for _, n := range s.Secondaries() {
				n.HoldBack()
			}
		}
		ok(t, run(t, c, withConcern(inserts(2, 12), 1)))
		for _, test := range []struct{ mode, level, want string }{
			{"", "", newer}, {"primary", "local", newer}, {"primaryPreferred", "available", newer},
			{"secondary", "", old}, {"secondaryPreferred", "local", old},
			{"", "majority", old}, {"primary", "majority", old}, {"secondary", "majority", old}, {"", "snapshot", old},
		} {
			if got := seen(finds(test.mode, test.level)); got != test.want {
				t.Errorf("%s %s sees %s, want %s", test.mode, test.level, got, test.want)
			}
		}
		// One member has caught up: with it there is a majority, and both secondaries are read.
		for _, s := range d.Shards() {
			s.Secondaries()[0].CatchUp()
		}
		if got := seen(finds("", "majority")); got != newer {
			t.Errorf("with a majority: %s", got)
		}
		found := map[string]bool{}
		for range 200 {
			found[seen(finds("secondary", ""))] = true
		}
		if !found[old] || !found[newer] || len(found) != 4 {
			t.Errorf("the secondaries show %v", found)
		}
		found = map[string]bool{}
		for range 200 {
			found[seen(finds("nearest", "majority"))] = true
		}
		if !found[old] || !found[newer] {
			t.Errorf("nearest shows %v", found)
		}
		for _, s := range d.Shards() {
			for _, n := range s.Secondaries() {
				n.CatchUp()
			}
		}
		for range 20 {
			if got := seen(finds("secondary", "")); got != newer {
				t.Errorf("when all have caught up: %s", got)
			}
		}
		// Nobody has these tags.
		start := time.Now()
		tags := bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondary"}, {Key: "tags", Value: bson.A{bson.D{{Key: "dc", Value: "x"}}}}}}
		reply := run(t, c, finds("", "", tags))
		text, _ := reply.Lookup("errmsg").StringValue()
		if errorCode(reply) != 133 || !strings.HasSuffix(text, `Could not find host matching read preference { mode: "secondary", tags: [ { dc: "x" } ] } for set sh0`) || time.Since(start) != 15*time.Second {
			t.Errorf("after %v: %v", time.Since(start), reply)
		}
		tags.Value = bson.D{{Key: "mode", Value: "secondaryPreferred"}, {Key: "tags", Value: bson.A{bson.D{{Key: "dc", Value: "x"}}}}, {Key: "hedge", Value: bson.D{{Key: "enabled", Value: true}}}}
		if got := seen(finds("", "", tags)); got != newer {
			t.Errorf("secondaryPreferred with tags that nobody has: %s", got)
		}
	})
}

// Secondaries that lag are too stale for maxStalenessSeconds, and a causal read waits for them.
func TestShardLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t, mongotest.ReplicationLag(2*time.Minute))
		ok(t, run(t, c, withConcern(inserts(1), 1)))
		time.Sleep(time.Minute)
		stale := func(mode string) bson.E {
			return bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: mode}, {Key: "maxStalenessSeconds", Value: 90}}}
		}
		reply := ok(t, run(t, c, withConcern(inserts(2), 1)))
		if got := results(t, c, finds("secondary", "")); len(got) != 0 {
			t.Errorf("a secondary that is two minutes behind has %v", got)
		}
		if got := results(t, c, finds("", "", stale("secondaryPreferred"))); len(got) != 2 {
			t.Errorf("with maxStalenessSeconds: %v, want the primary's", got)
		}
		ts, _ := reply.Lookup("operationTime").Timestamp()
		start := time.Now()
		causal := finds("secondary", "", bson.E{Key: "readConcern", Value: bson.D{{Key: "afterClusterTime", Value: ts}}})
		if got := results(t, c, causal); len(got) != 2 || time.Since(start) != 2*time.Minute {
			t.Errorf("after %v: %v", time.Since(start), got)
		}
		for _, n := range d.Shards()[0].Nodes() {
			n.SetLag(0)
		}
		ok(t, run(t, c, withConcern(inserts(3), 3)))
		if got := results(t, c, finds("", "", stale("secondary"))); len(got) != 3 {
			t.Errorf("without lag: %v", got)
		}
	})
}

// When a shard has lost its primary, a mongos waits for the next one.
func TestShardElection(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(s *mongotest.Shard)
	}{
		{"step-down", func(s *mongotest.Shard) { s.StepDown() }},
		{"kill", func(s *mongotest.Shard) { s.Primary().Kill() }},
		{"hang", func(s *mongotest.Shard) { s.Primary().Hang() }},
		{"partition", func(s *mongotest.Shard) { s.Primary().Partition() }},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, c := shardMembers(t, mongotest.ElectionDelay(10*time.Second))
			s := d.Shards()[0]
			ok(t, run(t, c, inserts(1, 11)))
			open := transaction(t, dialNode(t, d, d.Node(0)), 77)
			ok(t, open(bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 9}, {Key: "x", Value: 9}}}}))
			old := s.Primary()
			start := time.Now()
			test.end(s)
			if s.Primary() != nil {
				t.Fatalf("%s: there is a primary at once", test.name)
			}
			ok(t, run(t, c, inserts(12))) // on the other shard
			if took := time.Since(start); took != 0 {
				t.Errorf("%s: the other shard answers after %v", test.name, took)
			}
			if n, _ := ok(t, run(t, c, inserts(2))).Lookup("n").AsInt64(); n != 1 || time.Since(start) != 10*time.Second {
				t.Errorf("%s: n is %d after %v", test.name, n, time.Since(start))
			}
			if now := s.Primary(); now == nil || now == old {
				t.Errorf("%s: the primary is the old one or none", test.name)
			}
			if got := idsOf(t, c, "c"); got != "[1,2,11,12]" {
				t.Errorf("%s: there are %s", test.name, got)
			}
			if code := errorCode(open(bson.E{Key: "commitTransaction", Value: 1})); code != 251 {
				t.Errorf("%s: the open transaction's commit has code %d", test.name, code)
			}
			if test.name == "hang" {
				old.Resume()
			}
		})
	}
}

// What a shard may roll back is not shown by majority reads, snapshots and change streams of a
// mongos.
func TestMajorityReadsOfShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t)
		ok(t, run(t, c, inserts(1, 11)))
		stream := ok(t, run(t, c, bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}}, {Key: "cursor", Value: bson.D{}}, {Key: "$db", Value: "db"}}))
		id, _ := stream.Lookup("cursor", "id").Int64()
		events := func() string {
			t.Helper()
			reply := ok(t, run(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "maxTimeMS", Value: 10}, {Key: "$db", Value: "db"}}))
			var got string
			batch := reply.Lookup("cursor", "nextBatch")
			for v := range bson.Raw(batch.Value).Values() {
				doc, _ := v.Document()
				got += doc.Lookup("documentKey", "_id").String() + " "
			}
			return got
		}
		fall := isolate(d.Shards()[0])
		ok(t, run(t, c, withConcern(inserts(2, 3, 4, 12), 1)))
		for _, level := range []string{"majority", "snapshot"} {
			if got := results(t, c, finds("", level, bson.E{Key: "filter", Value: bson.D{{Key: "x", Value: bson.D{{Key: "$lt", Value: 10}}}}})); len(got) != 1 {
				t.Errorf("%s shows %v", level, got)
			}
		}
		if got := results(t, c, finds("", "majority", bson.E{Key: "batchSize", Value: 1})); len(got) != 3 {
			t.Errorf("majority shows %v over several batches", got)
		}
		if got := events(); got != "" { // not even that of the other shard, which came later
			t.Errorf("the change stream shows %s", got)
		}
		fall()
		reply := run(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "$db", Value: "db"}})
		if code := errorCode(reply); code != 43 || !strings.Contains(reply.Lookup("errorLabels").String(), "Resumable") {
			t.Logf("the stream's member has been away: %v", reply)
		}
		if got := results(t, c, finds("", "")); len(got) != 3 {
			t.Errorf("after the rollback there are %v", got)
		}
	})
}

// What a majority of every shard has is shown also if a shard has a new primary whose term nobody
// else knows of yet.
func TestSnapshotOfShardsAfterElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t)
		ok(t, run(t, c, withConcern(inserts(11), "majority")))
		ok(t, run(t, c, withConcern(inserts(1, 2), "majority")))
		other := d.Shards()[1]
		for _, n := range other.Nodes() {
			n.SetLag(time.Hour)
		}
		if err := other.Secondaries()[0].StepUp(); err != nil {
			t.Fatal(err)
		}
		for _, level := range []string{"majority", "snapshot"} {
			if got := results(t, c, finds("", level)); len(got) != 3 {
				t.Errorf("%s shows %v", level, got)
			}
		}
	})
}

// A majority read does not show a write that no other member has in the moment in which it becomes
// visible.
func TestMajorityReadDuringWrite(t *testing.T) {
	for name, options := range map[string][]mongotest.Option{
		"replica set": {mongotest.ReplicaSet(3)},
		"shard":       {mongotest.Sharded(1, 1), mongotest.ShardMembers(3)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, append(options, mongotest.InMemory())...)
				set := d.Nodes()
				if s := d.Shards(); len(s) > 0 {
					set = s[0].Nodes()
				}
				writer, reader := dialNode(t, d, d.Primary()), dialNode(t, d, d.Primary())
				ok(t, run(t, writer, inserts(-1)))
				for i := range 300 {
					for _, n := range set[1:] {
						n.HoldBack()
					}
					done := make(chan struct{})
					go func() {
						defer close(done)
						run(t, writer, withConcern(inserts(i), 1))
					}()
					for reading := true; reading; {
						select {
						case <-done:
							reading = false
						default:
						}
						if got := results(t, reader, finds("", "majority", bson.E{Key: "filter", Value: bson.D{{Key: "_id", Value: i}}})); len(got) != 0 {
							t.Fatalf("round %d: a majority read shows %v, which only the primary has", i, got)
						}
					}
					for _, n := range set[1:] {
						n.CatchUp()
					}
				}
			})
		})
	}
}

// A causal read of a member that gets to the write at the same moment shows it.
func TestCausalReadAsMemberCatchesUp(t *testing.T) {
	const lag = 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.Sharded(1, 1), mongotest.ShardMembers(3), mongotest.InMemory(), mongotest.ReplicationLag(lag))
		c := dialNode(t, d, d.Node(0))
		for i := range 2000 {
			ts, _ := ok(t, run(t, c, withConcern(inserts(i), 1))).Lookup("operationTime").Timestamp()
			time.Sleep(lag)
			find := finds("secondary", "", bson.E{Key: "filter", Value: bson.D{{Key: "_id", Value: i}}}, bson.E{Key: "readConcern", Value: bson.D{{Key: "afterClusterTime", Value: ts}}})
			if got := results(t, c, find); len(got) != 1 {
				t.Fatalf("round %d: a causal read shows %v", i, got)
			}
		}
	})
}

// A causal read after a write of another shard does not wait for one that this shard never gets,
// while one of its members is behind.
func TestCausalReadAfterAnotherShardsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t)
		d.Shards()[0].Secondaries()[0].HoldBack()
		ok(t, run(t, c, inserts(1)))
		ts, _ := ok(t, run(t, c, inserts(11))).Lookup("operationTime").Timestamp()
		for _, level := range []string{"majority", "snapshot", "local"} {
			concern := bson.D{{Key: "level", Value: level}, {Key: "afterClusterTime", Value: ts}}
			find := finds("", "", bson.E{Key: "readConcern", Value: concern}, bson.E{Key: "maxTimeMS", Value: 10_000})
			if got := results(t, c, find); len(got) != 2 {
				t.Errorf("%s shows %v", level, got)
			}
		}
	})
}

// A cursor of a mongos ends with the process of a member that it is open on.
func TestShardCursorsEndWithTheirMember(t *testing.T) {
	for _, restart := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d, c := shardMembers(t)
			ok(t, run(t, c, inserts(1, 2, 3, 4, 11, 12, 13)))
			open := func(filter bson.D) (more func() bson.Raw) {
				id, _ := ok(t, run(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: filter}, {Key: "batchSize", Value: 1}, {Key: "$db", Value: "db"}})).Lookup("cursor", "id").Int64()
				return func() bson.Raw {
					return run(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 1}, {Key: "$db", Value: "db"}})
				}
			}
			here := open(bson.D{{Key: "x", Value: bson.D{{Key: "$lt", Value: 10}}}})
			there := open(bson.D{{Key: "x", Value: bson.D{{Key: "$gt", Value: 10}}}})
			stepped := open(bson.D{{Key: "x", Value: bson.D{{Key: "$lt", Value: 10}}}})
			old := d.Shards()[0].Primary()
			d.Shards()[0].StepDown()
			ok(t, stepped()) // a secondary goes on with its cursors
			old.Kill()
			want := int64(6)
			if restart {
				want = 43
				if err := old.Restart(); err != nil {
					t.Fatal(err)
				}
			}
			if code := errorCode(here()); code != want {
				t.Errorf("the cursor on the member that was killed: code %d, want %d", code, want)
			}
			ok(t, there())
		})
	}
}
