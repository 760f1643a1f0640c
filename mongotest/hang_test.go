package mongotest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// message returns a command as it is sent.
func message(d bson.Raw) []byte {
	return wire.FinishMessage(append(wire.AppendMsg(nil, wire.NextRequestID(), 0, 0), d...), 0)
}

// A process that hangs takes connections and commands, and answers when it runs again.
func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory(), mongotest.ElectionDelay(10*time.Second))
		old := d.Primary()
		insert := func(id int) bson.D {
			return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}}}}, {Key: "$db", Value: "db"}}
		}
		before := dialNode(t, d, old)
		ok(t, run(t, before, insert(1)))
		old.Hang()
		send(t, before, insert(2))
		after := dialNode(t, d, old)
		send(t, after, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})
		for _, c := range []net.Conn{before, after} {
			c.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("a hung process answers: %v", err)
			}
			c.SetReadDeadline(time.Time{})
		}
		if p := d.Primary(); p == nil || p == old {
			t.Fatalf("a minute later the primary is %v", p)
		}
		ok(t, run(t, dialNode(t, d, d.Primary()), insert(3)))
		old.Resume()
		reply := readReply(t, before)
		if code, _ := reply.Lookup("code").AsInt64(); code != 10107 {
			t.Errorf("the former primary answers the insert with %v", reply)
		}
		if reply := ok(t, readReply(t, after)); reply.Lookup("isWritablePrimary").AsBool() {
			t.Errorf("the former primary says %v", reply)
		}
		old.Resume() // does nothing
		reply = ok(t, run(t, before, bson.D{{Key: "count", Value: "c"}, {Key: "$db", Value: "db"}, {Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondary"}}}}))
		if n, _ := reply.Lookup("n").AsInt64(); n != 2 {
			t.Errorf("%d documents, want 2", n)
		}
	})
}

// A hung process can be killed, and works when it is started again.
func TestHangThenKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		old := d.Primary()
		c := dialNode(t, d, old)
		old.Hang()
		send(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
		old.Kill()
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a killed process answers")
		}
		if err := old.Restart(); err != nil {
			t.Fatal(err)
		}
		if hello(t, d, old).Lookup("isWritablePrimary").AsBool() {
			t.Error("the process is the primary again")
		}
	})
}

// A hung majority leaves the others without a primary.
func TestHungMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		for _, n := range d.Secondaries() {
			n.Hang()
		}
		if p := d.Primary(); p != nil {
			t.Errorf("%s is the primary without a majority", p.Addr())
		}
		for _, n := range d.Nodes() {
			n.Resume()
		}
		if d.Primary() == nil {
			t.Error("no primary although everybody is back")
		}
	})
}

// A connection ends after the given number of bytes, those of requests and of replies together.
func TestCutAfter(t *testing.T) {
	for _, inMemory := range []bool{true, false} {
		opts := []mongotest.Option{mongotest.Standalone()}
		if inMemory {
			opts = append(opts, mongotest.InMemory())
		}
		d := mongotest.Start(t, opts...)
		ping := message(doc(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))
		c := dialNode(t, d, d.Node(0))
		ok(t, command(t, c, doc(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})))
		d.Node(0).SetNetFaults(mongotest.NetFaults{CutAfter: len(ping) + 7, Times: 1})
		for range 2 { // the first may have been waiting for bytes already, without a bound
			c.Write(ping)
		}
		got, _ := io.ReadAll(c)
		if len(got) > 200 || bytes.Count(got, []byte("ok")) > 2 {
			t.Errorf("%d bytes came", len(got))
		}
		c = dialNode(t, d, d.Node(0))
		ok(t, command(t, c, doc(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})))
	}
}

// A connection that is made after the fault is set is cut at the very byte.
func TestCutAfterExactly(t *testing.T) {
	d := mongotest.Start(t, mongotest.InMemory())
	ping := message(doc(t, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))
	for _, tc := range []struct{ after, want int }{{len(ping) - 1, 0}, {len(ping) + 1, 1}, {len(ping) + 20, 20}} {
		d.Node(0).SetNetFaults(mongotest.NetFaults{CutAfter: tc.after})
		c := dialNode(t, d, d.Node(0))
		c.Write(ping)
		if got, err := io.ReadAll(c); len(got) != tc.want {
			t.Errorf("cut after %d of %d: %d bytes came, %v", tc.after, len(ping), len(got), err)
		}
	}
}

// Jitter lets replies of several connections overtake each other, the same way each time.
func TestJitter(t *testing.T) {
	order := func() (took [20]time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.InMemory())
			d.Node(0).SetNetFaults(mongotest.NetFaults{Latency: time.Millisecond, Jitter: 10 * time.Millisecond})
			for i := range took {
				c, err := d.DialContext(context.Background(), "tcp", d.Node(0).Addr())
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				ok(t, run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))
				took[i] = time.Since(start)
				c.Close()
			}
		})
		return took
	}
	one, two := order(), order()
	if one != two {
		t.Errorf("two runs differ: %v, %v", one, two)
	}
	same := true
	for _, d := range one {
		same = same && d == one[0]
		if d < time.Millisecond || d >= 11*time.Millisecond {
			t.Errorf("a reply took %v", d)
		}
	}
	if same {
		t.Error("all replies took the same time")
	}
}

// Two commands of one session, the first of which waits for its write concern: time goes on, and
// the second has its turn.
func TestSessionInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		for _, n := range d.Secondaries() {
			n.HoldBack()
		}
		start := time.Now()
		one, two := dialNode(t, d, d.Primary()), dialNode(t, d, d.Primary())
		insert := func(id, timeout int) bson.D {
			return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}}}}, {Key: "$db", Value: "db"},
				{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "wtimeout", Value: timeout}}}}
		}
		send(t, one, retryable(insert(1, 5000), 1))
		synctest.Wait()
		send(t, two, retryable(insert(2, 1), 2))
		ok(t, readReply(t, one))
		ok(t, readReply(t, two))
		if took := time.Since(start); took != 5*time.Second+time.Millisecond {
			t.Errorf("the commands took %v", took)
		}
	})
}
