package mongotest_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

func errorCode(reply bson.Raw, path ...string) int64 {
	code, _ := reply.Lookup(append(path, "code")...).AsInt64()
	return code
}

func counter(t *testing.T, reply bson.Raw) int64 {
	t.Helper()
	n, isInt := reply.Lookup("topologyVersion", "counter").AsInt64()
	if !isInt {
		t.Fatalf("no topologyVersion in %v", reply)
	}
	return n
}

func majorityInsert(id int32) bson.D {
	return append(insertOne("c", id), bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}})
}

// waiting starts a majority write on a primary whose secondaries are held back, and returns when it
// waits for them.
func waiting(t *testing.T, d *mongotest.Deployment) (conn net.Conn, reply <-chan bson.Raw) {
	t.Helper()
	for _, s := range d.Secondaries() {
		s.HoldBack()
	}
	conn = dialNode(t, d, d.Primary())
	done := make(chan bson.Raw, 1)
	go func() { done <- run(t, conn, majorityInsert(1)) }()
	synctest.Wait()
	return conn, done
}

// A majority write that waits while its primary steps down has been applied. Its reply says so,
// with the topologyVersion from before the step-down: the one that the client knows already.
func TestStepDownInterruptsWaitingWrites(t *testing.T) {
	for name, stepDown := range map[string]func(t *testing.T, d *mongotest.Deployment){
		"step down": func(t *testing.T, d *mongotest.Deployment) { d.StepDown() },
		"command": func(t *testing.T, d *mongotest.Deployment) {
			ok(t, run(t, dialNode(t, d, d.Primary()), bson.D{{Key: "replSetStepDown", Value: 60}, {Key: "force", Value: true}, {Key: "$db", Value: "admin"}}))
		},
		"partition": func(t *testing.T, d *mongotest.Deployment) { d.Primary().Partition() },
		"step up": func(t *testing.T, d *mongotest.Deployment) {
			s := d.Secondaries()[0]
			if err := s.StepUp(); err != nil {
				t.Fatal(err)
			}
		},
		"the majority dies": func(t *testing.T, d *mongotest.Deployment) {
			for _, s := range d.Secondaries() {
				s.Kill()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
				old := d.Primary()
				before := counter(t, hello(t, d, old))
				c, done := waiting(t, d)
				stepDown(t, d)
				r := ok(t, <-done)
				if errorCode(r, "writeConcernError") != 11602 {
					t.Errorf("the waiting write is answered with %v", r)
				}
				if n, _ := r.Lookup("n").AsInt64(); n != 1 {
					t.Errorf("n is %d", n)
				}
				if now := counter(t, r); now != before {
					t.Errorf("topologyVersion %d, want that from before the step-down, %d", now, before)
				}
				if r := run(t, c, majorityInsert(2)); errorCode(r) != 10107 || counter(t, r) <= before {
					t.Errorf("a write after the step-down: %v", r)
				}
			})
		})
	}
}

// Writes that come while a primary waits for its secondaries before it steps down are not lost in
// between: they are refused by what is a secondary then, or done if nothing came of the step-down.
func TestWritesWaitForStepDown(t *testing.T) {
	for _, lag := range []time.Duration{5 * time.Second, 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory(), mongotest.ReplicationLag(lag))
			p := d.Primary()
			c, stepper := dialNode(t, d, p), dialNode(t, d, p)
			w1 := func(id int32) bson.D {
				return append(insertOne("c", id), bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}})
			}
			ok(t, run(t, c, w1(1)))
			stepped, wrote := make(chan bson.Raw, 1), make(chan bson.Raw, 1)
			go func() {
				stepped <- run(t, stepper, bson.D{{Key: "replSetStepDown", Value: 60}, {Key: "$db", Value: "admin"}})
			}()
			synctest.Wait()
			go func() { wrote <- run(t, c, w1(2)) }()
			synctest.Wait()
			select {
			case r := <-wrote:
				t.Fatalf("the write does not wait: %v", r)
			default:
			}
			if lag > 10*time.Second { // longer than the members are waited for
				if r := <-stepped; errorCode(r) != 262 {
					t.Errorf("step-down without electable secondaries: %v", r)
				}
				ok(t, <-wrote)
				return
			}
			ok(t, <-stepped)
			if r := <-wrote; errorCode(r) != 10107 {
				t.Errorf("the write that waited: %v", r)
			}
			if n := count(t, dialNode(t, d, d.Primary()), "c"); n != 1 {
				t.Errorf("%d documents on the new primary, want what was acknowledged before", n)
			}
		})
	}
}

func TestElectionDelay(t *testing.T) {
	const delay = 10 * time.Second
	for name, lose := range map[string]func(p *mongotest.Node){
		"step down": func(p *mongotest.Node) { p.StepDown(time.Minute) },
		"kill":      func(p *mongotest.Node) { p.Kill() },
		"partition": func(p *mongotest.Node) { p.Partition() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory(), mongotest.ElectionDelay(delay))
				old := d.Primary()
				lose(old)
				time.Sleep(delay - time.Millisecond)
				if d.Primary() != nil {
					t.Error("elected too early")
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if p := d.Primary(); p == nil || p == old {
					t.Error("no other primary after the election delay")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory(), mongotest.ElectionDelay(delay))
		next := d.Secondaries()[0]
		if err := next.StepUp(); err != nil || d.Primary() != next {
			t.Errorf("StepUp waits for the election delay: %v", err)
		}
	})
}

func TestReplicationLag(t *testing.T) {
	const lag = 200 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory(), mongotest.ReplicationLag(lag))
		p, s := dialNode(t, d, d.Primary()), dialNode(t, d, d.Secondaries()[0])
		w1 := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}
		secondary := bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "secondary"}}}
		found := func(c net.Conn, extra ...bson.E) int {
			r := ok(t, run(t, c, append(bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}}, extra...)))
			batch, _ := r.Lookup("cursor", "firstBatch").Array()
			n := 0
			for range batch.Values() {
				n++
			}
			return n
		}
		majority := bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: "majority"}}}
		start := time.Now()
		wrote := ok(t, run(t, p, append(insertOne("c", 1), w1)))
		if n := found(p); n != 1 {
			t.Errorf("the primary does not see its write")
		}
		if found(p, majority) != 0 || found(s, secondary) != 0 {
			t.Error("a majority has the write although the secondaries lag")
		}
		at, _ := wrote.Lookup("operationTime").Timestamp()
		after := bson.E{Key: "readConcern", Value: bson.D{{Key: "afterClusterTime", Value: at}}}
		if found(s, secondary, after) != 1 || time.Since(start) != lag {
			t.Errorf("the causal read came after %v, want %v", time.Since(start), lag)
		}
		if found(p, majority) != 1 {
			t.Error("a majority does not have the write after the lag")
		}
		// Writes one after the other come in their order, each with the lag of its own.
		for i := range int32(3) {
			ok(t, run(t, p, append(insertOne("c", 2+i), w1)))
			time.Sleep(lag / 2)
		}
		time.Sleep(time.Millisecond)
		if n := found(s, secondary); n != 3 {
			t.Errorf("a secondary sees %d documents, want 3", n)
		}
		start = time.Now()
		ok(t, run(t, p, majorityInsert(10)))
		if time.Since(start) != lag {
			t.Errorf("a majority write took %v, want %v", time.Since(start), lag)
		}
		ok(t, run(t, p, append(insertOne("c", 11), w1)))
		d.StepDown() // the new primary takes over what it has not applied yet
		if n := count(t, dialNode(t, d, d.Primary()), "c"); n != 6 {
			t.Errorf("the new primary has %d documents, want all 6", n)
		}
		for _, n := range d.Nodes() {
			n.SetLag(0)
		}
		start = time.Now()
		ok(t, run(t, dialNode(t, d, d.Primary()), majorityInsert(12)))
		if time.Since(start) != 0 {
			t.Errorf("a majority write without lag took %v", time.Since(start))
		}
	})
}
