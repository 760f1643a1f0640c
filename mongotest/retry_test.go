package mongotest_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

var testSession = bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.BinaryUUID, Data: []byte("sixteen bytes...")}}}

// retryable makes a write a retryable one.
func retryable(d bson.D, number int64) bson.D {
	return append(d, bson.E{Key: "lsid", Value: testSession}, bson.E{Key: "txnNumber", Value: number})
}

// send sends a command and does not read the reply.
func send(t *testing.T, c net.Conn, d bson.D) {
	t.Helper()
	msg := wire.FinishMessage(append(wire.AppendMsg(nil, wire.NextRequestID(), 0, 0), doc(t, d)...), 0)
	if _, err := c.Write(msg); err != nil {
		t.Fatal(err)
	}
}

// closed fails the test unless the server has closed the connection.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := io.ReadFull(c, make([]byte, 1)); n > 0 || err == nil {
		t.Error("the connection is still there")
	}
}

func count(t *testing.T, c net.Conn, coll string) int64 {
	t.Helper()
	n, _ := ok(t, run(t, c, bson.D{{Key: "count", Value: coll}, {Key: "$db", Value: "db"}})).Lookup("n").AsInt64()
	return n
}

// A write whose connection breaks after it was done is not done again.
func TestRetriedInsertIsReplayed(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
	for _, s := range d.Secondaries() {
		s.HoldBack() // so that the insert waits for its write concern
	}
	first, second := dialNode(t, d, d.Primary()), dialNode(t, d, d.Primary())
	insert := retryable(insertOne("c", 1), 1)
	send(t, first, insert)
	for count(t, second, "c") == 0 {
		time.Sleep(time.Millisecond)
	}
	send(t, second, insert) // has to wait for the first
	d.Primary().CloseConnections()
	closed(t, first)
	for _, s := range d.Secondaries() {
		s.CatchUp()
	}
	third := dialNode(t, d, d.Primary())
	if n, _ := ok(t, run(t, third, insert)).Lookup("n").AsInt64(); n != 1 {
		t.Errorf("the retry inserts %d", n)
	}
	if n := count(t, third, "c"); n != 1 {
		t.Errorf("%d documents", n)
	}
}

// What a failover undoes is forgotten by the session too: the retry does it again.
func TestRetryAfterRollback(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
	c := dialNode(t, d, d.Primary())
	insert := retryable(append(insertOne("c", 1), bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}), 1)
	for _, s := range d.Secondaries() {
		s.HoldBack()
	}
	ok(t, run(t, c, insert))
	d.Primary().Kill()
	c = dialNode(t, d, d.Primary())
	if n := count(t, c, "c"); n != 0 {
		t.Fatalf("%d documents after the failover", n)
	}
	ok(t, run(t, c, insert))
	if n := count(t, c, "c"); n != 1 {
		t.Errorf("%d documents after the retry", n)
	}
}

func TestOnPrimaryTransactionalWrite(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
	set := func(mode any, data bson.D) {
		ok(t, run(t, dialNode(t, d, d.Node(0)), bson.D{{Key: "configureFailPoint", Value: "onPrimaryTransactionalWrite"}, {Key: "mode", Value: mode},
			{Key: "data", Value: data}, {Key: "$db", Value: "admin"}}))
	}
	once := bson.D{{Key: "times", Value: 1}}
	set(once, bson.D{})
	c := dialNode(t, d, d.Node(0))
	ok(t, run(t, c, insertOne("c", 0))) // not a retryable write
	send(t, c, retryable(insertOne("c", 1), 1))
	closed(t, c)
	c = dialNode(t, d, d.Node(0))
	if n := count(t, c, "c"); n != 2 {
		t.Errorf("%d documents after a write that was committed", n)
	}
	set(once, bson.D{{Key: "failBeforeCommitExceptionCode", Value: 1}})
	send(t, c, retryable(insertOne("c", 2), 2))
	closed(t, c)
	c = dialNode(t, d, d.Node(0))
	if n := count(t, c, "c"); n != 2 {
		t.Errorf("%d documents after a write that was not committed", n)
	}
	// All documents of an insert are one commit, and are inserted one by one if that fails.
	set(once, bson.D{{Key: "failBeforeCommitExceptionCode", Value: 91}, {Key: "closeConnection", Value: false}})
	many := bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 3}}, bson.D{{Key: "_id", Value: 4}}}}, {Key: "$db", Value: "db"}}
	if n, _ := ok(t, run(t, c, retryable(many, 3))).Lookup("n").AsInt64(); n != 2 {
		t.Errorf("insert of two: n is %d", n)
	}
	set("alwaysOn", bson.D{{Key: "failBeforeCommitExceptionCode", Value: 91}, {Key: "closeConnection", Value: false}})
	for _, cmd := range []bson.D{
		{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}}}}}},
		{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 1}}}}},
	} {
		reply := ok(t, run(t, c, retryable(append(cmd, bson.E{Key: "$db", Value: "db"}), 4)))
		if code, _ := reply.Lookup("writeErrors", "0", "code").AsInt64(); code != 91 || reply.Lookup("n").String() != "0" {
			t.Errorf("%s answers %v", cmd[0].Key, reply)
		}
	}
	remove := bson.D{{Key: "findAndModify", Value: "c"}, {Key: "query", Value: bson.D{}}, {Key: "remove", Value: true}, {Key: "$db", Value: "db"}}
	if code, _ := run(t, c, retryable(remove, 5)).Lookup("code").AsInt64(); code != 91 {
		t.Errorf("findAndModify: code %d", code)
	}
	if n := count(t, c, "c"); n != 4 {
		t.Errorf("%d documents at the end", n)
	}
	// Large documents are a commit each.
	set(bson.D{{Key: "skip", Value: 3}}, bson.D{{Key: "failBeforeCommitExceptionCode", Value: 91}, {Key: "closeConnection", Value: false}})
	large := bson.A{}
	for i := range 4 {
		large = append(large, bson.D{{Key: "_id", Value: 10 + i}, {Key: "x", Value: strings.Repeat("x", 1<<20)}})
	}
	reply := ok(t, run(t, c, retryable(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: large}, {Key: "$db", Value: "db"}}, 6)))
	if code, _ := reply.Lookup("writeErrors", "0", "code").AsInt64(); code != 91 || reply.Lookup("n").String() != "3" {
		t.Errorf("insert of four large documents answers %v", reply)
	}
}

// A fail point that is set on several nodes counts on all of them together, and may be set again
// meanwhile.
func TestFailPointsAtOnce(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			d.FailCommand(mongotest.Fail{Commands: []string{"ping"}, Times: 2, Code: 8})
		}
	}()
	c := dialNode(t, d, d.Node(1))
	for range 200 {
		run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "db"}})
	}
	<-done
}

// A session that nobody uses for half an hour ends, and with it what it holds.
func TestSessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		for i := range int32(4) {
			ok(t, run(t, c, insertOne("c", i)))
		}
		find := bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}, {Key: "noCursorTimeout", Value: true}, {Key: "$db", Value: "db"}, {Key: "lsid", Value: testSession}}
		id, _ := ok(t, run(t, c, find)).Lookup("cursor", "id").AsInt64()
		getMore := bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 1}, {Key: "$db", Value: "db"}, {Key: "lsid", Value: testSession}}
		time.Sleep(29 * time.Minute)
		ok(t, run(t, c, getMore))
		d.ShiftClock(31 * time.Minute)
		if code, _ := run(t, c, getMore).Lookup("code").AsInt64(); code != 43 {
			t.Errorf("getMore in an expired session: code %d", code)
		}
		c.Close()
		d.Stop()
	})
}
