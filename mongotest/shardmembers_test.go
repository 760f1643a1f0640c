package mongotest_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
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

// withConcern adds a write concern to a command.
func withConcern(d bson.D, w any, more ...bson.E) bson.D {
	return append(d, bson.E{Key: "writeConcern", Value: append(bson.D{{Key: "w", Value: w}}, more...)})
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

// inserts is an insert of documents with these values of _id and of the shard key.
func inserts(xs ...int) bson.D {
	docs := bson.A{}
	for _, x := range xs {
		docs = append(docs, bson.D{{Key: "_id", Value: x}, {Key: "x", Value: x}})
	}
	return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "$db", Value: "db"}}
}

// What a shard has rolled back is done again when it is tried again through a mongos, and what
// another shard did in the same batch is not.
func TestRetryAfterShardRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t)
		fall := isolate(d.Shards()[0])
		write := withConcern(retryable(inserts(1, 11, 2, 12), 1), 1)
		update := func(x int) bson.D {
			return withConcern(retryable(bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{
				{Key: "q", Value: bson.D{{Key: "x", Value: x}}}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}, {Key: "upsert", Value: true}}}}, {Key: "$db", Value: "db"}}, int64(x)), 1)
		}
		if n, _ := ok(t, run(t, c, write)).Lookup("n").AsInt64(); n != 4 {
			t.Fatalf("n is %d", n)
		}
		if n, _ := ok(t, run(t, c, write)).Lookup("n").AsInt64(); n != 4 || idsOf(t, c, "c") != "[1,2,11,12]" {
			t.Fatalf("a retry before the rollback: n is %d, there are %s", n, idsOf(t, c, "c"))
		}
		for _, x := range []int{5, 15} {
			ok(t, run(t, c, update(x)))
		}
		fall()
		if got := idsOf(t, c, "c"); !strings.Contains(got, "11,12") || strings.Contains(got, "[1,") {
			t.Fatalf("after the rollback there are %s", got)
		}
		if reply := ok(t, run(t, c, update(15))); reply.Lookup("upserted").IsZero() || reply.Lookup("nModified").String() != "0" {
			t.Errorf("the upsert that is still there is done again: %v", reply)
		}
		if n := len(results(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "$db", Value: "db"}})); n != 1 {
			t.Errorf("%d documents with n: 1, want that of the other shard only", n)
		}
	})
}

// A batch over two shards, one of which rolls back: each shard has the records of its own
// statements.
func TestRetryOfBatchAfterShardRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t)
		fall := isolate(d.Shards()[0])
		write := withConcern(retryable(inserts(1, 11, 2, 12), 1), 1)
		ok(t, run(t, c, write))
		fall()
		if got := idsOf(t, c, "c"); got != "[11,12]" {
			t.Fatalf("after the rollback there are %s", got)
		}
		reply := ok(t, run(t, c, write))
		if n, _ := reply.Lookup("n").AsInt64(); n != 4 || !reply.Lookup("writeErrors").IsZero() {
			t.Errorf("the retry answers %v", reply)
		}
		if got := idsOf(t, c, "c"); got != "[1,2,11,12]" {
			t.Errorf("after the retry there are %s", got)
		}
		// The shard itself has the records of what the mongos did there.
		direct := dialNode(t, d, d.Shards()[1].Primary())
		if reply := ok(t, run(t, direct, withConcern(retryable(inserts(1, 11, 2, 12), 1), 1))); !reply.Lookup("writeErrors").IsZero() {
			t.Errorf("a retry at the shard itself: %v", reply)
		}
	})
}

// A write concern through a mongos is that of every shard that is written to.
func TestShardWriteConcern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t)
		second := bson.E{Key: "wtimeout", Value: 1000}
		ok(t, run(t, c, withConcern(inserts(1, 11), "majority", second)))
		for _, n := range d.Shards()[1].Secondaries() {
			n.HoldBack()
		}
		wcError := func(reply bson.Raw) string {
			t.Helper()
			e := ok(t, reply).Lookup("writeConcernError")
			if e.IsZero() {
				return ""
			}
			doc, _ := e.Document()
			code, _ := doc.Lookup("code").AsInt64()
			text, _ := doc.Lookup("errmsg").StringValue()
			return fmt.Sprint(code, " ", text)
		}
		const late = "64 waiting for replication timed out"
		update := func(filter bson.D) bson.D {
			return bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: filter}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}, {Key: "multi", Value: true}}}}, {Key: "$db", Value: "db"}}
		}
		for _, test := range []struct {
			name string
			cmd  bson.D
			want string
		}{
			{"majority on a shard that has it", withConcern(inserts(2), "majority", second), ""},
			{"majority on a shard that lags", withConcern(inserts(12), "majority", second), late},
			{"two on a shard that lags", withConcern(inserts(13), 2, second), late},
			{"one on a shard that lags", withConcern(inserts(14), 1, second), ""},
			{"both shards", withConcern(inserts(3, 15), "majority", second), late},
			{"a broadcast", withConcern(update(bson.D{}), 3, second), late},
			{"nothing to write on a shard that lags", withConcern(update(bson.D{{Key: "x", Value: 99}}), "majority", second), late},
			{"more than there are", withConcern(inserts(4), 4, second), "100 Not enough data-bearing nodes"},
			{"more than there are, on both", withConcern(inserts(5, 16), 4), "64 multiple errors reported : UnsatisfiableWriteConcern: Not enough data-bearing nodes at sh0 :: and :: UnsatisfiableWriteConcern: Not enough data-bearing nodes at sh1"},
			{"no such mode", withConcern(inserts(6), "dc"), "79 No write concern mode named 'dc' found in replica set configuration"},
		} {
			start := time.Now()
			if got := wcError(run(t, c, test.cmd)); got != test.want {
				t.Errorf("%s: %q, want %q", test.name, got, test.want)
			}
			if took := time.Since(start); (test.want == late) != (took == time.Second) {
				t.Errorf("%s takes %v", test.name, took)
			}
		}
		// A transaction's commit waits on the shards that it wrote to.
		txn := transaction(t, c, 7)
		ok(t, txn(bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 17}, {Key: "x", Value: 17}}}}))
		reply := txn(bson.E{Key: "commitTransaction", Value: 1}, bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, second}})
		if got := wcError(reply); got != late || !reply.Lookup("writeConcernError", "errInfo", "wtimeout").AsBool() {
			t.Errorf("the commit answers %v", reply)
		}
		for _, n := range d.Shards()[1].Nodes() {
			n.CatchUp()
		}
		if got := wcError(run(t, c, withConcern(inserts(18), "majority"))); got != "" {
			t.Errorf("after the shard has caught up: %s", got)
		}
	})
}

// By default a shard acknowledges what its majority has, from 5.0 on.
func TestShardDefaultWriteConcern(t *testing.T) {
	for _, version := range []string{"4.4", "8.0"} {
		synctest.Test(t, func(t *testing.T) {
			d, c := shardMembers(t, mongotest.Version(version))
			for _, n := range d.Shards()[0].Secondaries() {
				n.HoldBack()
			}
			done := make(chan struct{})
			go func() {
				run(t, c, inserts(1))
				close(done)
			}()
			synctest.Wait()
			acknowledged := false
			select {
			case <-done:
				acknowledged = true
			default:
			}
			if want := version == "4.4"; acknowledged != want {
				t.Errorf("%s: acknowledged %v, want %v", version, acknowledged, want)
			}
			for _, n := range d.Shards()[0].Secondaries() {
				n.CatchUp()
			}
			<-done
		})
	}
}

// A majority write whose shard rolls it back while the mongos waits is done again by the mongos if
// it is retryable, and is not acknowledged else.
func TestShardRollsBackWhileMongosWaits(t *testing.T) {
	for _, retry := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d, c := shardMembers(t)
			fall := isolate(d.Shards()[0])
			write := withConcern(inserts(1, 11), "majority")
			if retry {
				write = retryable(write, 1)
			}
			replies := make(chan bson.Raw)
			go func() { replies <- run(t, c, write) }()
			synctest.Wait()
			fall()
			reply := ok(t, <-replies)
			code, _ := reply.Lookup("writeConcernError", "code").AsInt64()
			got := idsOf(t, dialNode(t, d, d.Node(0)), "c")
			if retry && (code != 0 || got != "[1,11]") || !retry && (code != 11602 || got != "[11]") {
				t.Errorf("retryable %v: there are %s after %v", retry, got, reply)
			}
		})
	}
}

// What several shards do together is not undone by a rollback of one: transactions, documents that
// move, and what the cluster decides as a whole.
func TestTogetherIsNotRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t)
		ok(t, run(t, c, inserts(3, 13)))
		for _, test := range []struct {
			name string
			do   func()
			want string
		}{
			{"a transaction", func() {
				txn := transaction(t, c, 5)
				for _, x := range []int{1, 11} {
					ok(t, txn(bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: x}, {Key: "x", Value: x}}}}))
				}
				ok(t, txn(bson.E{Key: "commitTransaction", Value: 1}, bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}))
			}, "[1,3,11,13]"},
			{"a document that moves", func() {
				ok(t, run(t, c, withConcern(retryable(bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "x", Value: 3}}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 23}}}}}}}}, {Key: "$db", Value: "db"}}, 9), 1)))
			}, "[1,3,11,13]"},
			{"a chunk that moves", func() {
				ok(t, run(t, c, bson.D{{Key: "moveChunk", Value: "db.c"}, {Key: "find", Value: bson.D{{Key: "x", Value: 11}}}, {Key: "to", Value: "sh0"}, {Key: "$db", Value: "admin"}}))
			}, "[1,3,11,13]"},
		} {
			falls := []func(){isolate(d.Shards()[0]), isolate(d.Shards()[1])}
			test.do()
			for _, fall := range falls {
				fall()
			}
			if got := idsOf(t, c, "c"); got != test.want {
				t.Errorf("%s: there are %s, want %s", test.name, got, test.want)
			}
			ok(t, run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))
		}
	})
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
		for range 50 {
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

// A retry that finds its write done waits for the write concern on the shard that has it, be it on
// another mongos.
func TestRetryAwaitsTheShardsMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t, mongotest.Sharded(2, 2))
		other := dialNode(t, d, d.Node(1))
		for i, x := range []int{1, 11} {
			held := d.Shards()[i].Secondaries()
			for _, n := range held {
				n.HoldBack()
			}
			write := retryable(inserts(x), int64(i+1))
			ok(t, run(t, c, withConcern(write, 1)))
			reply := ok(t, run(t, other, withConcern(write, "majority", bson.E{Key: "wtimeout", Value: 100})))
			if code, _ := reply.Lookup("writeConcernError", "code").AsInt64(); code != 64 {
				t.Errorf("x: %d: the retry says %v, want an error of the write concern", x, reply)
			}
			for _, n := range held {
				n.CatchUp()
			}
		}
	})
}

// A command that has written a part of its statements before an election, which rolls them back,
// and the others after it, is not acknowledged before all are there.
func TestStatementsAroundAnElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t, mongotest.Sharded(2, 2))
		other := dialNode(t, d, d.Node(1))
		statement := func(x int) bson.D {
			return bson.D{{Key: "q", Value: bson.D{{Key: "x", Value: x}}}, {Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}}
		}
		update := func(xs ...int) bson.D {
			list := bson.A{}
			for _, x := range xs {
				list = append(list, statement(x))
			}
			return bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: list}, {Key: "$db", Value: "db"}}
		}
		ok(t, run(t, c, withConcern(inserts(1, 2), "majority")))
		fall := isolate(d.Shards()[0])
		id := bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.BinaryUUID, Data: bytes.Repeat([]byte{9}, 16)}}}
		ok(t, run(t, other, append(update(2), bson.E{Key: "lsid", Value: id}, bson.E{Key: "txnNumber", Value: int64(1)},
			bson.E{Key: "autocommit", Value: false}, bson.E{Key: "startTransaction", Value: true})))
		var reply bson.Raw
		var under sync.WaitGroup
		under.Go(func() { reply = run(t, c, withConcern(retryable(update(1, 2), 7), "majority")) })
		time.Sleep(time.Second) // the second statement waits for the transaction
		fall()
		under.Wait()
		ok(t, reply)
		if !reply.Lookup("writeConcernError").IsZero() {
			t.Fatalf("%v", reply)
		}
		for _, doc := range results(t, other, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}}) {
			if !strings.Contains(doc, `"n":1`) {
				t.Errorf("acknowledged, but there is %s", doc)
			}
		}
	})
}

// A commit whose outcome another mongos finds by the recovery token is not acknowledged before its
// write concern holds, on whatever shards the transaction wrote.
func TestRecoveredCommitAwaitsItsWriteConcern(t *testing.T) {
	for _, xs := range [][]int{{1}, {11}, {1, 11}} {
		synctest.Test(t, func(t *testing.T) {
			d, c := shardMembers(t, mongotest.Sharded(2, 2))
			other := dialNode(t, d, d.Node(1))
			in := func(d bson.D, more ...bson.E) bson.D {
				return append(append(d, bson.E{Key: "lsid", Value: testSession}, bson.E{Key: "txnNumber", Value: int64(7)}, bson.E{Key: "autocommit", Value: false}), more...)
			}
			reply := ok(t, run(t, c, in(inserts(xs...), bson.E{Key: "startTransaction", Value: true})))
			var held []*mongotest.Node
			for i, s := range d.Shards() {
				if len(xs) == 2 && i == 0 {
					continue // the commit of both waits for one only
				}
				held = append(held, s.Secondaries()...)
			}
			for _, n := range held {
				n.HoldBack()
			}
			commit := func() bson.D {
				token := reply.Lookup("recoveryToken")
				return in(bson.D{{Key: "commitTransaction", Value: 1}, {Key: "$db", Value: "admin"}, {Key: "recoveryToken", Value: bson.Raw(token.Value)}})
			}
			again := func() bson.Raw {
				return ok(t, run(t, other, withConcern(commit(), "majority", bson.E{Key: "wtimeout", Value: 100})))
			}
			run(t, c, append(withConcern(commit(), "majority", bson.E{Key: "wtimeout", Value: 100}), bson.E{Key: "maxTimeMS", Value: 200}))
			for range 2 {
				if reply := again(); reply.Lookup("writeConcernError").IsZero() {
					t.Errorf("%v: another mongos says %v, want an error of the write concern", xs, reply)
				}
			}
			for _, n := range held {
				n.CatchUp()
			}
			if reply := again(); !reply.Lookup("writeConcernError").IsZero() {
				t.Errorf("%v: once all have caught up: %v", xs, reply)
			}
			if got := len(results(t, c, finds("", ""))); got != len(xs) {
				t.Errorf("%v: %d documents are there", xs, got)
			}
		})
	}
}

// A mongos that finds the outcome of a transaction by the recovery token while another
// mongos commits it answers other transactions.
func TestRecoveryHoldsUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := shardMembers(t, mongotest.Sharded(2, 2))
		other, third := dialNode(t, d, d.Node(1)), dialNode(t, d, d.Node(1))
		in := func(d bson.D, session byte, more ...bson.E) bson.D {
			id := bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.BinaryUUID, Data: bytes.Repeat([]byte{session}, 16)}}}
			return append(append(d, bson.E{Key: "lsid", Value: id}, bson.E{Key: "txnNumber", Value: int64(7)}, bson.E{Key: "autocommit", Value: false}), more...)
		}
		start := bson.E{Key: "startTransaction", Value: true}
		token := ok(t, run(t, c, in(inserts(1), 1, start))).Lookup("recoveryToken")
		commit := func() bson.D {
			return withConcern(in(bson.D{{Key: "commitTransaction", Value: 1}, {Key: "$db", Value: "admin"}, {Key: "recoveryToken", Value: bson.Raw(token.Value)}}, 1), "majority")
		}
		for _, n := range d.Shards()[0].Secondaries() {
			n.HoldBack()
			time.AfterFunc(time.Minute, n.CatchUp)
		}
		var under sync.WaitGroup
		for _, c := range []net.Conn{c, other} {
			under.Go(func() { run(t, c, commit()) })
			time.Sleep(time.Millisecond)
		}
		began := time.Now()
		ok(t, run(t, third, in(inserts(11), 2, start)))
		if took := time.Since(began); took > time.Second {
			t.Errorf("a transaction of another session waited for %v", took)
		}
		under.Wait()
	})
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
