package faults

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/internal/drivertest/rig"
	"allium/mongoerr"
	"allium/mongotest"
)

// A writer writes while the members of the set, or the mongoses, step down, are killed and come
// back, and connections break. The stream must return each write once, in order.
func TestWatchUnderFailovers(t *testing.T) {
	for name, kind := range map[string]mongotest.Option{"replicaset": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(1, 2)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testFailovers(t, kind) })
		})
	}
}

func testFailovers(t *testing.T, kind mongotest.Option) {
	const writes = 400
	d, client, log := rig.Bubble(t, allium.ClientOptions{HeartbeatInterval: new(500 * time.Millisecond)}, kind)
	coll := allium.CollectionOf[rig.Item](client.Database("streams"), "items")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	s := rig.Watch(t, coll, nil, allium.WatchOptions{MaxAwaitTime: 20 * time.Millisecond, BatchSize: new(int32(7))})

	written := make(chan error, 1)
	progress := make(chan int32, writes)
	go func() {
		for id := range int32(writes) {
			time.Sleep(5 * time.Millisecond)
			for { // until it is certain that it was written
				_, err := coll.InsertOne(ctx, rig.Item{ID: id})
				if err == nil || errors.Is(err, mongoerr.ErrDuplicateKey) {
					break
				}
				if ctx.Err() != nil {
					written <- err
					return
				}
			}
			progress <- id
		}
		written <- nil
	}()
	faults := make(chan struct{})
	go func() { // what goes wrong, in step with the writer
		defer close(faults)
		steps := []func(){
			d.StepDown,
			func() {
				for _, n := range d.Nodes() {
					n.CloseConnections()
				}
			},
			func() {
				if p := d.Primary(); p != nil {
					p.Kill()
					if err := p.Restart(); err != nil {
						t.Error(err)
					}
				}
			},
			func() {
				d.FailCommand(mongotest.Fail{Commands: []string{"getMore", "killCursors"}, Times: 3, CloseConnection: true})
			},
		}
		for i := 0; i < 8; i++ {
			for range writes / 9 {
				select {
				case <-progress:
				case <-ctx.Done():
					return
				}
			}
			steps[i%len(steps)]()
		}
	}()
	var got []int32
	for len(got) < writes {
		if !s.Next(ctx) {
			t.Fatalf("after %d events: %v", len(got), s.Err())
		}
		if e := s.Current(); e.FullDocument != nil {
			got = append(got, e.FullDocument.ID)
		}
	}
	<-faults
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	want := make([]int32, writes)
	for i := range want {
		want[i] = int32(i)
	}
	if !slices.Equal(got, want) {
		t.Errorf("events %v", got)
	}
	if n := len(log.Of("aggregate")); n < 6 { // of at least eight faults, some may meet the stream between two getMores
		t.Errorf("the stream has resumed %d times only", n-1)
	}
	if s.TryNext(ctx) {
		t.Errorf("one more event: %v", s.Current().Raw)
	}
}

// A stream whose getMores fail while its aggregates succeed resumes at once the first time, and
// then waits longer and longer, up to a second.
func TestWatchBacksOffBetweenResumes(t *testing.T) {
	for name, tt := range map[string]struct {
		failures    int
		least, most time.Duration // the waits are random: from nothing to 0.1, 0.2, 0.4, 0.8 seconds and then 1
	}{
		"the first resume waits for nothing": {1, 0, 0},
		"forty resumes":                      {40, 5 * time.Second, 37 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, client, log := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
				coll := allium.CollectionOf[rig.Item](client.Database("streams"), "items")
				s := rig.Watch(t, coll, nil, allium.WatchOptions{BatchSize: new(int32(0))}) // the aggregates return no event
				// A cursor that is gone is resumed whatever the error's labels are, and says
				// nothing about the server.
				d.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Times: tt.failures, Code: 43})
				if _, err := coll.InsertOne(t.Context(), rig.Item{ID: 1}); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if !s.Next(t.Context()) {
					t.Fatal(s.Err())
				}
				if got := time.Since(began); got < tt.least || got > tt.most {
					t.Errorf("%v, want from %v to %v", got, tt.least, tt.most)
				}
				if n := len(log.Of("aggregate")); n != 1+tt.failures {
					t.Errorf("%d aggregates, want %d", n, 1+tt.failures)
				}
			})
		})
	}
}

// Neither a context nor a timeout waits for the end of a stream's backoff, and the stream goes on
// later.
func TestWatchBackoffEndsInTime(t *testing.T) {
	const limit = 3 * time.Second
	for name, byContext := range map[string]bool{"context": true, "timeout": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, client, _ := rig.Bubble(t, allium.ClientOptions{}, mongotest.ReplicaSet(1))
				coll := allium.CollectionOf[rig.Item](client.Database("streams"), "items")
				ctx, opts := t.Context(), allium.WatchOptions{}
				if byContext {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, limit)
					defer cancel()
				} else {
					opts.Timeout = new(limit)
				}
				s := rig.Watch(t, coll, nil, opts)
				d.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Code: 43})
				began := time.Now()
				if s.Next(ctx) || !mongoerr.IsTimeout(s.Err()) {
					t.Fatalf("error %v, want one of time that is up", s.Err())
				}
				if got := time.Since(began); got > limit {
					t.Errorf("%v, want at most %v", got, limit)
				}
				d.ClearFailures()
				if _, err := coll.InsertOne(t.Context(), rig.Item{ID: 1}); err != nil {
					t.Fatal(err)
				}
				if !s.Next(t.Context()) {
					t.Errorf("the stream does not go on: %v", s.Err())
				}
			})
		})
	}
}
