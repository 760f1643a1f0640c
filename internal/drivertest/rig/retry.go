package rig

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// Retry is a client and a deployment in memory, for tests of retries and timeouts that run in a
// bubble: time is exact and takes none.
type Retry struct {
	Deployment *mongotest.Deployment
	Client     *allium.Client
	Coll       *allium.UntypedCollection

	mu       sync.Mutex
	log      []string                     // events, for example "started find a:1"
	onFailed func(e *event.CommandFailed) // of the commands that the test is about
	OnDone   func(e *event.CommandSucceeded)
}

// open makes the rig's client, and waits until it knows all servers.
func (r *Retry) open(t *testing.T, o allium.ClientOptions, uri string) {
	t.Helper()
	watched := func(name string) bool { return name != "hello" && name != "endSessions" && name != "ping" }
	o.Dialer = r.Deployment
	o.CommandMonitor = &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStarted) {
			if watched(e.CommandName) {
				r.note("started", e.CommandName, e.Addr)
			}
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			if watched(e.CommandName) {
				r.note("succeeded", e.CommandName, e.Addr)
				if r.OnDone != nil {
					r.OnDone(e)
				}
			}
		},
		Failed: func(_ context.Context, e *event.CommandFailed) {
			if watched(e.CommandName) {
				r.note("failed", e.CommandName, e.Addr)
				if r.onFailed != nil {
					r.onFailed(e)
				}
			}
		},
	}
	o.PoolMonitor = &event.PoolMonitor{
		PoolCleared:              func(*event.PoolCleared) { r.note("cleared") },
		ConnectionCheckedOut:     func(*event.ConnectionCheckedOut) { r.note("out") },
		ConnectionCheckedIn:      func(*event.ConnectionCheckedIn) { r.note("in") },
		ConnectionCheckOutFailed: func(e *event.ConnectionCheckOutFailed) { r.note("refused", e.Reason) },
	}
	var err error
	if r.Client, err = allium.Open(uri, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Client.Close(context.Background()) })
	r.Coll = r.Client.Database("db").Collection("coll")
	if err := r.Client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	r.Reset()
}

func (r *Retry) note(words ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, strings.Join(words, " "))
}

// Reset forgets the events.
func (r *Retry) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = nil
}

// Events returns the events whose text begins with one of the prefixes, in their order.
func (r *Retry) Events(prefixes ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.log {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(e, p) }) {
			out = append(out, e)
		}
	}
	return out
}

// AfterFirstFailure makes f run after the first command that failed, before it is tried again.
func (r *Retry) AfterFirstFailure(f func()) {
	var once sync.Once
	r.onFailed = func(*event.CommandFailed) { once.Do(f) }
}

// FindOne runs a read, which may find nothing.
func (r *Retry) FindOne(t *testing.T) error {
	_, err := r.Coll.FindOne(t.Context(), bson.D{})
	if errors.Is(err, mongoerr.ErrNoDocuments) {
		err = nil
	}
	return err
}

// InsertOne runs a write.
func (r *Retry) InsertOne(t *testing.T) error {
	_, err := r.Coll.InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
	return err
}

// NewRetry starts a deployment, with a client that knows all of its servers.
func NewRetry(t *testing.T, o allium.ClientOptions, topology ...mongotest.Option) *Retry {
	t.Helper()
	r := &Retry{Deployment: testdeploy.Mock(t, "an in-memory network", append(topology, mongotest.InMemory())...)}
	r.open(t, o, r.Deployment.URI())
	return r
}

// OverloadLabels are those of an error of an overloaded server.
var OverloadLabels = []string{"RetryableError", "SystemOverloadedError"}

// FiveDocuments returns documents with the _ids 0 to 4.
func FiveDocuments() []bson.D {
	docs := make([]bson.D, 5)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}}
	}
	return docs
}

// WantTimeout fails the test unless err is a timeout.
func WantTimeout(t *testing.T, err error) *mongoerr.TimeoutError {
	t.Helper()
	var e *mongoerr.TimeoutError
	if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("want a timeout, got %v", err)
	}
	return e
}
