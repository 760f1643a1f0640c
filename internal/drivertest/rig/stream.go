package rig

import (
	"context"
	"fmt"
	"testing"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/testdeploy"
)

// ErrorReply returns the reply to a command that failed.
func ErrorReply(code int32, labels ...string) bson.Raw {
	return Must(bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: code},
		{Key: "errmsg", Value: "made up"}, {Key: "errorLabels", Value: labels}}))
}

// Item is the document of tests of change streams.
type Item struct {
	ID    int32  `bson:"_id"`
	Value string `bson:"value"`
}

// StageOf returns the $changeStream stage of an aggregate command.
func StageOf(e *event.CommandStarted) bson.Raw {
	d, _ := e.Command.Lookup("pipeline", "0", "$changeStream").Document()
	return d
}

// Watched starts a deployment and a client that records its commands, and returns a collection that
// exists.
func Watched(t *testing.T, opts allium.ClientOptions,
	kind ...testdeploy.Kind) (*testdeploy.Deployment, *allium.Collection[Item], *Sent) {
	t.Helper()
	if len(kind) == 0 {
		kind = []testdeploy.Kind{testdeploy.ReplicaSet(1)}
	}
	d := testdeploy.Start(t, kind[0])
	log := &Sent{}
	if opts.CommandMonitor == nil {
		opts.CommandMonitor = log.Monitor()
	}
	client := Open(t, d.URI(), opts)
	db := client.Database("streams")
	if err := db.CreateCollection(t.Context(), "items"); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	return d, allium.CollectionOf[Item](db, "items"), log
}

// Watch opens a change stream that is closed when the test ends.
func Watch[T any](t *testing.T, c *allium.Collection[T], pipeline any,
	opts ...allium.WatchOptions) *allium.ChangeStream[T] {
	t.Helper()
	s, err := c.Watch(t.Context(), pipeline, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// InsertItems inserts documents with these _ids.
func InsertItems(t *testing.T, c *allium.Collection[Item], ids ...int32) {
	t.Helper()
	for _, id := range ids {
		if _, err := c.InsertOne(t.Context(), Item{ID: id, Value: fmt.Sprint(id)}); err != nil {
			t.Fatal(err)
		}
	}
}

// ExpectItems reads insert events of these documents.
func ExpectItems(t *testing.T, s *allium.ChangeStream[Item], ids ...int32) {
	t.Helper()
	for _, id := range ids {
		if !s.Next(t.Context()) {
			t.Fatalf("no event for %d: %v", id, s.Err())
		}
		if e := s.Current(); e.FullDocument == nil || e.FullDocument.ID != id {
			t.Fatalf("got %v, want the insert of %d", e.Raw, id)
		}
	}
}
