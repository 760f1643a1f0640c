package mongotest_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

func stringsOf(v bson.RawValue) (list []string) {
	for e := range bson.Raw(v.Value).Values() {
		s, _ := e.StringValue()
		list = append(list, s)
	}
	return list
}

// Hidden members, arbiters, delayed members and latency, as clients see them.
func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.InMemory(), mongotest.Members(mongotest.Member{Tags: map[string]string{"dc": "a"}}, mongotest.Member{Delay: time.Hour},
			mongotest.Member{Hidden: true}, mongotest.Member{Arbiter: true}))
		primary, delayed, hidden, arbiter := d.Node(0), d.Node(1), d.Node(2), d.Node(3)
		if d.Primary() != primary {
			t.Fatalf("the primary is %s", d.Primary().Addr())
		}
		conns := map[*mongotest.Node]interface{ Close() error }{}
		read := func(n *mongotest.Node) (count int64, lastWrite time.Time) {
			c := dialNode(t, d, n)
			conns[n] = c
			defer c.Close()
			reply := ok(t, run(t, c, bson.D{{Key: "count", Value: "c"}, {Key: "$db", Value: "db"}, {Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondaryPreferred"}}}}))
			count, _ = reply.Lookup("n").AsInt64()
			h := ok(t, run(t, c, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}))
			date, _ := h.Lookup("lastWrite", "lastWriteDate").DateTime()
			return count, date.Time()
		}
		c := dialNode(t, d, primary)
		time.Sleep(2 * time.Hour)
		ok(t, run(t, c, append(insertOne("c", 1), bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}})))
		now := time.Now()
		if n, last := read(hidden); n != 1 || now.Sub(last) > time.Second {
			t.Errorf("the hidden member has %d documents, its last write is %v old", n, now.Sub(last))
		}
		if n, last := read(delayed); n != 0 || now.Sub(last) < time.Hour {
			t.Errorf("the delayed member has %d documents, its last write is %v old", n, now.Sub(last))
		}
		time.Sleep(61 * time.Minute)
		if n, last := read(delayed); n != 1 || !last.Equal(now.Truncate(time.Millisecond)) {
			t.Errorf("after its delay the member has %d documents, its last write was at %v, not %v", n, last, now)
		}
		h := hello(t, d, primary)
		if hosts := stringsOf(h.Lookup("hosts")); slices.Contains(hosts, hidden.Addr()) {
			t.Errorf("hello shows the hidden member: %v", hosts)
		}
		if list := stringsOf(h.Lookup("arbiters")); !slices.Equal(list, []string{arbiter.Addr()}) {
			t.Errorf("arbiters: %v", list)
		}
		if !hello(t, d, arbiter).Lookup("arbiterOnly").AsBool() || !hello(t, d, hidden).Lookup("hidden").AsBool() {
			t.Error("the arbiter and the hidden member do not say what they are")
		}
		if tag, _ := h.Lookup("tags", "dc").StringValue(); tag != "a" {
			t.Errorf("tags: %v", h.Lookup("tags"))
		}
		// Latency is per node.
		delayed.SetNetFaults(mongotest.NetFaults{Latency: time.Second})
		for n, want := range map[*mongotest.Node]time.Duration{primary: 0, delayed: time.Second} {
			conn := dialNode(t, d, n)
			start := time.Now()
			ok(t, run(t, conn, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))
			if took := time.Since(start); took != want {
				t.Errorf("a ping of %s takes %v, want %v", n.Addr(), took, want)
			}
		}
		d.Stop()
	})
}

func BenchmarkStartReplicaSet(b *testing.B) {
	for b.Loop() {
		d, err := mongotest.Open(mongotest.ReplicaSet(3))
		if err != nil {
			b.Fatal(err)
		}
		d.Stop()
	}
}
