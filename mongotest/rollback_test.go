package mongotest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// alone makes the primary write what the others never get, and returns a function that ends it:
// one of the others is then the primary.
func alone(d *mongotest.Deployment) (fall func()) {
	held := d.Secondaries()
	for _, n := range held {
		n.HoldBack()
	}
	old := d.Primary()
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

// A rollback takes place at the election, even while a command of another member holds its
// session: what the new primary writes from then on is not undone.
func TestRollbackBeforeFirstWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		insert := func(id int) bson.D {
			return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}}}}, {Key: "$db", Value: "db"}}
		}
		w1 := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}
		ok(t, run(t, dialNode(t, d, d.Primary()), insert(1)))
		// A member runs a command that keeps its session for a minute.
		other := d.Secondaries()[0]
		other.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Block: time.Minute})
		busy := dialNode(t, d, other)
		send(t, busy, retryable(insert(9), 1))
		synctest.Wait()
		fall := alone(d)
		ok(t, run(t, dialNode(t, d, d.Primary()), append(insert(2), w1)))
		fell := make(chan struct{})
		go func() {
			fall()
			close(fell)
		}()
		synctest.Wait()
		ok(t, run(t, dialNode(t, d, d.Primary()), append(insert(3), w1)))
		<-fell
		time.Sleep(2 * time.Minute)
		reply := ok(t, run(t, dialNode(t, d, d.Primary()), bson.D{{Key: "distinct", Value: "c"}, {Key: "key", Value: "_id"}, {Key: "$db", Value: "db"}}))
		if got := reply.Lookup("values").String(); got != "[1,3,9]" {
			t.Errorf("documents %s, want 1, 3 and the one whose command was slow", got)
		}
	})
}

// What was rolled back is done again when it is tried again: a write once more, and a commit is
// of a transaction that the new primary does not know.
func TestRetryOfWhatWasRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		insert := func(id int) bson.D {
			return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}}}}, {Key: "$db", Value: "db"}}
		}
		w1 := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}
		ok(t, run(t, dialNode(t, d, d.Primary()), insert(1)))
		fall := alone(d)
		c := dialNode(t, d, d.Primary())
		write := append(retryable(insert(2), 1), w1)
		ok(t, run(t, c, write))
		lsid := bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.BinaryUUID, Data: []byte("another sixteen.")}}}}
		txn := []bson.E{lsid, {Key: "txnNumber", Value: int64(1)}, {Key: "autocommit", Value: false}}
		ok(t, run(t, c, append(append(insert(3), txn...), bson.E{Key: "startTransaction", Value: true})))
		commit := append(append(bson.D{{Key: "commitTransaction", Value: 1}, {Key: "$db", Value: "admin"}}, txn...), w1)
		ok(t, run(t, c, commit))
		fall()
		c = dialNode(t, d, d.Primary())
		if n, _ := ok(t, run(t, c, write)).Lookup("n").AsInt64(); n != 1 {
			t.Errorf("the insert that was rolled back inserts %d documents", n)
		}
		if n := count(t, c, "c"); n != 2 {
			t.Errorf("%d documents, want 2", n)
		}
		if code, _ := run(t, c, commit).Lookup("code").AsInt64(); code != 251 {
			t.Errorf("the commit that was rolled back fails with %d, want 251", code)
		}
	})
}

// A write that is tried again on another connection is acknowledged only when the write concern
// is satisfied, and so is one that finds its change made already.
func TestRetryWaitsForWriteConcern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		majority := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "wtimeout", Value: 1000}}}
		write := append(retryable(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 2}, {Key: "x", Value: 1}}}}, {Key: "$db", Value: "db"}}, 1), majority)
		same := bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: 2}}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}}}}},
			{Key: "$db", Value: "db"}, majority}
		for _, n := range d.Secondaries() {
			n.HoldBack()
		}
		for _, cmd := range []bson.D{write, write, same} {
			reply := ok(t, run(t, dialNode(t, d, d.Primary()), cmd))
			if code, _ := reply.Lookup("writeConcernError", "code").AsInt64(); code != 64 {
				t.Errorf("%v is acknowledged by a primary alone: %v", cmd[0], reply)
			}
		}
	})
}
