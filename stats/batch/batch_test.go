package batch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/mongotest"
	"allium/stats/batch"
)

// foreign has the methods of a cursor, and is none.
type foreign struct{}

func (foreign) ID() int64                        { return 0 }
func (foreign) Err() error                       { return nil }
func (foreign) Next(context.Context) bool        { return false }
func (foreign) TryNext(ctx context.Context) bool { return false }

// TestCommands checks that what is set is sent with the commands that follow, and only with them.
func TestCommands(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	ctx := t.Context()
	var sent []bson.Raw
	client, err := allium.Open(d.URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
		if e.CommandName == "getMore" {
			sent = append(sent, append(bson.Raw{}, e.Command...))
		}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(ctx)
	if batch.Of(foreign{}) != nil {
		t.Error("what is no cursor has batches")
	}
	coll := allium.CollectionOf[bson.D](client.Database("app"), "events")
	stream, err := coll.Watch(ctx, nil, allium.WatchOptions{BatchSize: new(int32(1))})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close(ctx)
	var docs []bson.D
	for i := range 6 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}})
	}
	if _, err := coll.InsertMany(ctx, docs); err != nil {
		t.Fatal(err)
	}
	b := batch.Of(stream)
	b.SetSize(4)
	if !stream.Next(ctx) || b.Left() != 3 {
		t.Errorf("%d events are left of the batch, want 3: %v", b.Left(), stream.Err())
	}
	if n, _ := sent[len(sent)-1].Lookup("batchSize").Int32(); n != 4 {
		t.Errorf("batchSize %d was sent, want 4", n)
	}
	b.SetMaxAwaitTime(20 * time.Millisecond)
	comment := bson.D{{Key: "a", Value: "first"}}
	if err := b.SetComment(comment); err != nil {
		t.Fatal(err)
	}
	comment[0].Value = "second"
	for range 4 {
		stream.Next(ctx)
	}
	last := sent[len(sent)-1]
	if n, _ := last.Lookup("maxTimeMS").AsInt64(); n != 20 {
		t.Errorf("maxTimeMS %d was sent, want 20", n)
	}
	if s, _ := last.Lookup("comment", "a").StringValue(); s != "first" {
		t.Errorf("the comment %q was sent, want what it was when it was set", s)
	}
	if err := b.SetComment(make(chan int)); err == nil {
		t.Error("a channel was taken as a comment")
	} else if encode := (*bson.EncodeError)(nil); !errors.As(err, &encode) {
		t.Errorf("got %v, want an error of encoding", err)
	}
}
