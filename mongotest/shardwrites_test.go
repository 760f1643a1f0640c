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

// withConcern adds a write concern to a command.
func withConcern(d bson.D, w any, more ...bson.E) bson.D {
	return append(d, bson.E{Key: "writeConcern", Value: append(bson.D{{Key: "w", Value: w}}, more...)})
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
