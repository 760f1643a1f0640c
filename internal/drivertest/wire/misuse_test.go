package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
)

// misuse starts a deployment with a collection of ten documents.
func misuse(t *testing.T) (*allium.Client, *allium.UntypedCollection) {
	t.Helper()
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI())
	coll := client.Database("d").Collection("c")
	docs := make([]bson.D, 10)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "x", Value: "text"}}
	}
	if _, err := coll.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	return client, coll
}

// TestNilContextsOfWhatIsOpen hands nil contexts to cursors, streams, sessions and clients: an
// error, no panic, and they can be closed.
func TestNilContextsOfWhatIsOpen(t *testing.T) {
	client, coll := misuse(t)
	var none context.Context
	cursors := map[string]func(c *allium.Cursor[bson.D]) error{
		"Next":    func(c *allium.Cursor[bson.D]) error { c.Next(none); return c.Err() },
		"TryNext": func(c *allium.Cursor[bson.D]) error { c.TryNext(none); return c.Err() },
		"Close":   func(c *allium.Cursor[bson.D]) error { return c.Close(none) },
		"All":     func(c *allium.Cursor[bson.D]) error { _, err := c.All(none); return err },
		"Seq": func(c *allium.Cursor[bson.D]) error {
			var last error
			for _, err := range c.Seq(none) {
				last = err
			}
			return last
		},
		"Batches": func(c *allium.Cursor[bson.D]) error {
			var last error
			for _, err := range c.Batches(none) {
				last = err
			}
			return last
		},
	}
	for name, use := range cursors {
		for _, limit := range []int64{0, 2} { // with a limit, the server has a cursor that the driver closes
			cur, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2)), Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			wantNilContext(t, "cursor: "+name, use(cur))
			if err := cur.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	streams := map[string]func(s *allium.ChangeStream[bson.D]) error{
		"Next":    func(s *allium.ChangeStream[bson.D]) error { s.Next(none); return s.Err() },
		"TryNext": func(s *allium.ChangeStream[bson.D]) error { s.TryNext(none); return s.Err() },
		"Close":   func(s *allium.ChangeStream[bson.D]) error { return s.Close(none) },
		"Seq": func(s *allium.ChangeStream[bson.D]) error {
			var last error
			for _, err := range s.Seq(none) {
				last = err
			}
			return last
		},
	}
	for name, use := range streams {
		stream, err := coll.Watch(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		wantNilContext(t, "stream: "+name, use(stream))
		if err := stream.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	s, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	fn := func(context.Context) error { t.Error("the function was called"); return nil }
	wantNilContext(t, "Client.Transact", client.Transact(none, fn))
	wantNilContext(t, "Session.Transact", s.Transact(none, fn))
	if err := s.StartTransaction(); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.DeleteMany(allium.WithSession(t.Context(), s), bson.D{}); err != nil {
		t.Fatal(err)
	}
	wantNilContext(t, "CommitTransaction", s.CommitTransaction(none))
	wantNilContext(t, "AbortTransaction", s.AbortTransaction(none))
	s.End(none) // aborts
	if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != 10 || err != nil {
		t.Errorf("%d documents are left (%v), want 10", n, err)
	}
	wantNilContext(t, "Client.Close", client.Close(none))
}

func wantNilContext(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "context is nil") {
		t.Errorf("%s: %v, want that the context is nil", what, err)
	}
}

// End refuses options that every other function refuses, and ends the session all the same.
func TestEndSessionMisuse(t *testing.T) {
	client, _ := misuse(t)
	for want, opts := range map[string][]allium.EndSessionOptions{
		"end session: timeout is -1s, want 0 or more": {{Timeout: new(-time.Second)}},
	} {
		s, err := client.StartSession()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := s.End(t.Context(), opts...); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		if err := s.StartTransaction(); err == nil {
			t.Errorf("%s: the session has not ended", want)
		}
		if err := s.End(t.Context()); err != nil {
			t.Errorf("a second End: %v", err)
		}
	}
}

// TestTransactionMisuse asks for transactions that cannot be.
func TestTransactionMisuse(t *testing.T) {
	client, coll := misuse(t)
	ctx := t.Context()
	start := func(o ...allium.TransactionOptions) error {
		s, err := client.StartSession()
		if err != nil {
			return err
		}
		defer s.End(ctx)
		return s.StartTransaction(o...)
	}
	for name, test := range map[string]struct {
		run  func() error
		want string
	}{
		"w: 0": {func() error { return start(allium.TransactionOptions{WriteConcern: consistency.Unacknowledged()}) }, "unacknowledged"},
		"a write concern that cannot be": {func() error {
			return start(allium.TransactionOptions{WriteConcern: &consistency.WriteConcern{W: 0, Journal: new(true)}})
		}, "exclude each other"},
		"a timeout": {func() error { return start(allium.TransactionOptions{Timeout: new(time.Second)}) }, "timeout"},
		"a timeout inside of a Transact with one": {func() error {
			return client.Transact(ctx, func(ctx context.Context) error {
				_, err := coll.FindOne(ctx, bson.D{}, allium.FindOneOptions{Timeout: new(time.Second)})
				return err
			}, allium.TransactionOptions{Timeout: new(time.Minute)})
		}, "timeout of its own"},
		"a commit with a timeout inside of one": {func() error {
			return client.Transact(ctx, func(ctx context.Context) error {
				return allium.SessionFrom(ctx).CommitTransaction(ctx, allium.EndTransactionOptions{Timeout: new(time.Second)})
			}, allium.TransactionOptions{Timeout: new(time.Minute)})
		}, "timeout of its own"},
		"a negative timeout": {func() error {
			return client.Transact(ctx, func(context.Context) error { return nil }, allium.TransactionOptions{Timeout: new(-time.Second)})
		}, "want 0 or more"},
		"a secondary": {func() error {
			return client.Transact(ctx, func(ctx context.Context) error {
				_, err := coll.FindOne(ctx, bson.D{})
				return err
			}, allium.TransactionOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}})
		}, "read preference in a transaction must be primary"},
		"a session of another client": {func() error {
			other, _ := misuse(t)
			return other.Transact(ctx, func(ctx context.Context) error {
				_, err := coll.FindOne(ctx, bson.D{})
				return err
			})
		}, "another client"},
	} {
		if err := test.run(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestDocumentsThatDoNotFit reads texts into numbers: the error names the document and the field,
// and the documents before it are there.
func TestDocumentsThatDoNotFit(t *testing.T) {
	client, coll := misuse(t)
	ctx := t.Context()
	if _, err := coll.UpdateMany(ctx, bson.M{"_id": bson.M{"$lt": 3}}, bson.M{"$set": bson.M{"x": 1}}); err != nil {
		t.Fatal(err)
	}
	type number struct {
		X int `bson:"x"`
	}
	numbers := allium.CollectionOf[number](client.Database("d"), "c")
	find := func() *allium.Cursor[number] {
		t.Helper()
		cur, err := numbers.Find(ctx, bson.D{}, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}, BatchSize: new(int32(2))})
		if err != nil {
			t.Fatal(err)
		}
		return cur
	}
	check := func(what string, n int, err error) {
		t.Helper()
		var fit *bson.DecodeError
		if !errors.As(err, &fit) || fit.Path != "x" || n != 3 {
			t.Errorf("%s: %d documents, then %v", what, n, err)
		}
	}
	all, err := find().All(ctx)
	check("All", len(all), err)
	n := 0
	for _, err = range find().Seq(ctx) {
		if err == nil {
			n++
		}
	}
	check("Seq", n, err)
	cur := find()
	for n = 0; cur.Next(ctx); n++ {
	}
	check("Next", n, cur.Err())
	if cur.Current() != (number{}) {
		t.Errorf("the cursor holds %v of the document that did not fit", cur.Current())
	}
	if cur.Next(ctx) {
		t.Error("the cursor goes on after an error")
	}
	if err := cur.Close(ctx); err != nil {
		t.Error(err)
	}
	_, err = numbers.FindOne(ctx, bson.M{"_id": 5})
	check("FindOne", 3, err)
	_, err = numbers.FindOneAndDelete(ctx, bson.M{"_id": 5})
	check("FindOneAndDelete", 3, err)
	if _, err := allium.Distinct[int](ctx, coll, "x", bson.D{}); err == nil || !strings.Contains(err.Error(), "distinct d.c: decode value 1: ") {
		t.Errorf("Distinct: %v", err)
	}
	raw, err := allium.Distinct[bson.RawValue](ctx, coll, "x", bson.D{})
	if err != nil || fmt.Sprint(raw) != `[1 "text"]` {
		t.Errorf("Distinct of raw values: %v %v", raw, err)
	}
}
