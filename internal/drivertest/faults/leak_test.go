package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/mongotest"
)

// After any error, whatever was underway, nothing is left behind once the cursor is closed and the
// session ended: the connections are in the pool or closed, the implicit sessions are in their
// pool, the server has no cursor, and the client goes on working.
func TestErrorsLeakNothing(t *testing.T) {
	const ms = time.Millisecond
	seven := bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: 7}}}} // what was inserted since makes no further batches
	type call struct {
		sends []string // the commands that it may send, each of which fails once
		run   func(ctx context.Context, r *rig.Retry) error
	}
	cursorCall := func(o allium.FindOptions) call {
		return call{[]string{"find", "getMore", "killCursors"}, func(ctx context.Context, r *rig.Retry) error {
			o.BatchSize = new(int32(2))
			cur, err := r.Coll.Find(ctx, seven, o)
			if err != nil {
				return err
			}
			defer cur.Close(ctx)
			for cur.Next(ctx) {
			}
			return cur.Err()
		}}
	}
	transaction := func(ctx context.Context, r *rig.Retry) error {
		s, err := r.Client.StartSession()
		if err != nil {
			return err
		}
		defer s.End(ctx)
		if err := s.StartTransaction(); err != nil {
			return err
		}
		in := allium.WithSession(ctx, s)
		_, err = r.Coll.InsertOne(in, bson.D{{Key: "y", Value: 1}})
		_, err2 := r.Coll.UpdateOne(in, bson.D{}, bson.M{"$set": bson.M{"y": 2}})
		cur, err3 := r.Coll.Find(in, seven, allium.FindOptions{BatchSize: new(int32(2))})
		if err3 == nil {
			_, err3 = cur.All(in)
		}
		return errors.Join(err, err2, err3, s.CommitTransaction(ctx))
	}
	calls := map[string]call{
		"find":           cursorCall(allium.FindOptions{}),
		"find, timeout":  cursorCall(allium.FindOptions{Timeout: new(200 * ms)}),
		"find, per Next": cursorCall(allium.FindOptions{Timeout: new(200 * ms), TimeoutMode: allium.TimeoutPerIteration}),
		"insert":         {[]string{"insert"}, func(ctx context.Context, r *rig.Retry) error { _, err := r.Coll.InsertOne(ctx, bson.D{}); return err }},
		"insert, timeout": {[]string{"insert"}, func(ctx context.Context, r *rig.Retry) error {
			_, err := r.Coll.InsertOne(ctx, bson.D{}, allium.InsertOneOptions{Timeout: new(200 * ms)})
			return err
		}},
		"run command": {[]string{"count"}, func(ctx context.Context, r *rig.Retry) error {
			_, err := r.Client.Database("db").RunCommand(ctx, bson.D{{Key: "count", Value: "coll"}})
			return err
		}},
		"transaction": {[]string{"insert", "update", "find", "getMore", "killCursors", "commitTransaction", "abortTransaction"}, transaction},
		"not decodable": {[]string{"find", "getMore", "killCursors"}, func(ctx context.Context, r *rig.Retry) error {
			type wrong struct {
				ID time.Time `bson:"_id"`
			}
			cur, err := allium.CollectionOf[wrong](r.Client.Database("db"), "coll").Find(ctx, seven, allium.FindOptions{BatchSize: new(int32(2))})
			if err != nil {
				return err
			}
			_, err = cur.All(ctx)
			return err
		}},
	}
	faults := map[string]mongotest.Fail{
		"error":                {Code: 2},
		"not primary":          {Code: 10107},
		"shutdown":             {Code: 91},
		"overload":             {Code: 462, Labels: rig.OverloadLabels},
		"dropped connection":   {CloseConnection: true},
		"slow":                 {Block: 300 * ms},
		"max time":             {Code: 50},
		"cursor not found":     {Code: 43},
		"write concern error":  {WriteConcernError: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "no"}}},
		"interrupted and slow": {Code: 11601, Block: 100 * ms},
	}
	for name, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(1, 2), "load-balanced": mongotest.LoadBalanced(1)} {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cancelled %v", name, cancelled), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := rig.NewRetry(t, allium.ClientOptions{MaxPoolSize: new(3), HeartbeatInterval: new(500 * ms)}, topology)
					var docs []bson.D
					for i := range 7 {
						docs = append(docs, bson.D{{Key: "_id", Value: i}})
					}
					if _, err := r.Coll.InsertMany(t.Context(), docs); err != nil {
						t.Fatal(err)
					}
					for callName, call := range calls {
						for faultName, fault := range faults {
							for _, command := range call.sends {
								fault.Commands, fault.Times = []string{command}, 2
								r.Reset()
								r.Deployment.FailCommand(fault)
								ctx, cancel := context.WithCancel(t.Context())
								if cancelled {
									time.AfterFunc(50*ms, cancel)
								}
								err := call.run(ctx, r)
								cancel()
								r.Deployment.ClearFailures()
								time.Sleep(5 * time.Second) // late replies are read off, servers are found again
								what := fmt.Sprintf("%s with %s of %s (%v)", callName, faultName, command, err)
								for _, e := range r.Events("started") {
									if name := strings.Fields(e)[1]; !slices.Contains(call.sends, name) {
										t.Errorf("%s: it also sends %s, whose failures are not tried", what, name)
									}
								}
								if out, in := len(r.Events("out")), len(r.Events("in")); out != in {
									t.Errorf("%s: %d connections were checked out and %d returned: %q", what, out, in, r.Events("out", "in", "started", "failed"))
								}
								if _, err := r.Coll.UpdateOne(t.Context(), bson.D{}, bson.M{"$set": bson.M{"z": 1}}); err != nil {
									t.Fatalf("%s: the client is not usable any more: %v", what, err)
								}
							}
						}
					}
				})
			})
		}
	}
}

// A client that is closed has told the servers of every session that it used, unless a network
// error made it forget one.
func TestErrorsReturnSessions(t *testing.T) {
	for _, fault := range []mongotest.Fail{{Code: 2}, {Code: 10107}, {Code: 462, Labels: rig.OverloadLabels}, {Code: 50}} {
		synctest.Test(t, func(t *testing.T) {
			r := rig.NewRetry(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
			used, ended := map[string]bool{}, map[string]bool{}
			r.Deployment.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
				if id := c.Body.Lookup("lsid"); !id.IsZero() {
					used[string(id.Value)] = true
				}
				if c.Name == "endSessions" {
					list, _ := c.Body.Lookup("endSessions").Array()
					for v := range list.Values() {
						ended[string(v.Value)] = true
					}
				}
				return nil, nil
			})
			if _, err := r.Coll.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"find", "getMore", "killCursors", "insert"} {
				fault.Commands, fault.Times = []string{command}, 1
				r.Deployment.FailCommand(fault)
				cur, err := r.Coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
				if err == nil {
					cur.Next(t.Context())
					r.InsertOne(t)
					cur.All(t.Context())
				}
				r.Deployment.ClearFailures()
			}
			if err := r.Client.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for id := range used {
				if !ended[id] {
					t.Errorf("%d: a session was not given back", fault.Code)
				}
			}
		})
	}
}

// Behind a load balancer, closing a cursor whose getMore timed out reads the late reply off first,
// and keeps the connection.
func TestLoadBalancedCursorAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{MaxPoolSize: new(1)}, mongotest.LoadBalanced(1))
		if _, err := r.Coll.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
			t.Fatal(err)
		}
		r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Times: 1, Block: 300 * time.Millisecond})
		cur, err := r.Coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2)), Timeout: new(200 * time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		for cur.Next(t.Context()) {
		}
		rig.WantTimeout(t, cur.Err())
		r.Reset()
		if err := cur.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.Events("succeeded killCursors", "in", "cleared"); len(got) != 2 || !strings.HasPrefix(got[0], "succeeded") || !slices.Contains(got, "in") {
			t.Errorf("events: %q", got)
		}
	})
}
