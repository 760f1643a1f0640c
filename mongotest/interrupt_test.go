package mongotest_test

import (
	"testing"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// endless is an aggregate that multiplies five documents to billions.
func endless(t *testing.T, options ...bson.E) bson.D {
	t.Helper()
	stages := bson.A{}
	for range 8 {
		stages = append(stages, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$range", Value: bson.A{0, 1000}}}}}}}, bson.D{{Key: "$unwind", Value: "$a"}})
	}
	// What the $match looks at is set before it, so that it cannot be moved to the front.
	stages = append(stages, bson.D{{Key: "$match", Value: bson.D{{Key: "a", Value: -1}}}})
	cmd := bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: stages}, {Key: "cursor", Value: bson.D{}}}
	return append(append(cmd, options...), bson.E{Key: "$db", Value: "t"})
}

func TestInterruptAggregate(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone())
	c := dial(t, d.Hosts()[0])
	ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}, {Key: "$db", Value: "t"}}))

	reply := run(t, c, endless(t, bson.E{Key: "maxTimeMS", Value: 20}))
	if code, _ := reply.Lookup("code").AsInt64(); code != 50 {
		t.Errorf("maxTimeMS: %v", reply)
	}

	running := func(n int) (id bson.RawValue) { // waits until so many of them run
		t.Helper()
		for {
			reply := ok(t, run(t, c, bson.D{{Key: "currentOp", Value: 1}, {Key: "command.aggregate", Value: "c"}, {Key: "$db", Value: "admin"}}))
			found := 0
			for v := range bson.Raw(reply.Lookup("inprog").Value).Values() {
				id = bson.Raw(v.Value).Lookup("opid")
				found++
			}
			if found == n {
				return id
			}
			time.Sleep(time.Millisecond)
		}
	}
	replies := make(chan bson.Raw, 1)
	other := dial(t, d.Hosts()[0])
	go func() { replies <- run(t, other, endless(t)) }()
	ok(t, run(t, c, bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: running(1)}, {Key: "$db", Value: "admin"}}))
	reply = <-replies
	if code, _ := reply.Lookup("code").AsInt64(); code != 11601 {
		t.Errorf("killOp: %v", reply)
	}

	gone := dial(t, d.Hosts()[0])
	send(t, gone, endless(t))
	running(1)
	gone.Close()
	running(0)

	send(t, dial(t, d.Hosts()[0]), endless(t))
	running(1)
	d.Stop() // hangs if the command does not end
}
