package gridfs

import (
	"allium/internal/failure"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/mongoerr"
)

// indexes remembers whether a bucket made sure of its indexes.
type indexes struct {
	done atomic.Bool
	turn chan struct{} // holds an element while somebody makes sure
}

// ensureIndexes runs immediately before the first write of the bucket: if the files collection is
// empty it creates the indexes that do not exist yet.
func (b *Bucket) ensureIndexes(ctx context.Context, l limit) error {
	if b.indexes.done.Load() {
		return nil
	}
	if err := b.indexes.take(ctx, l); err != nil {
		return err
	}
	defer func() { <-b.indexes.turn }()
	if b.indexes.done.Load() {
		return nil
	}
	if s := allium.SessionFrom(ctx); s != nil && s.InTransaction() {
		ctx = allium.WithSession(ctx, nil) // listIndexes cannot be part of a transaction
	}
	if err := b.createIndexes(ctx, l); err != nil {
		return fmt.Errorf("indexes of the bucket: %w", err)
	}
	b.indexes.done.Store(true)
	return nil
}

// take waits for the caller's turn.
func (i *indexes) take(ctx context.Context, l limit) error {
	started := time.Now()
	var expired <-chan time.Time
	if !l.deadline.IsZero() {
		t := time.NewTimer(time.Until(l.deadline))
		defer t.Stop()
		expired = t.C
	}
	err, source := context.DeadlineExceeded, mongoerr.SourceOperation
	select {
	case i.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		err, source = ctx.Err(), failure.SourceOf(ctx)
	case <-expired:
	}
	return failure.Cause(ctx, &mongoerr.TimeoutError{Phase: mongoerr.PhaseIndexes, Source: source,
		Elapsed: time.Since(started), Wrapped: err})
}

var primary = &consistency.ReadPreference{Mode: consistency.Primary}

func (b *Bucket) createIndexes(ctx context.Context, l limit) error {
	files := within(l, b.files).With(allium.CollectionOptions{ReadPreference: primary})
	_, err := files.FindOne(ctx, bson.D{}, allium.FindOneOptions{Projection: bson.D{{Key: "_id", Value: 1}}})
	if !errors.Is(err, mongoerr.ErrNoDocuments) {
		return err
	}
	if err := ensureIndex(ctx, l, b.files, allium.IndexModel{Keys: bson.D{{Key: "filename", Value: 1},
		{Key: "uploadDate", Value: 1}}}); err != nil {
		return err
	}
	return ensureIndex(ctx, l, b.chunks, allium.IndexModel{Keys: bson.D{{Key: "files_id", Value: 1},
		{Key: "n", Value: 1}}, Unique: true})
}

// ensureIndex creates an index unless there is one with the same keys.
func ensureIndex[T any](ctx context.Context, l limit, c *allium.Collection[T], model allium.IndexModel) error {
	cur, err := within(l, c).ListIndexes(ctx)
	if err != nil {
		return err
	}
	all, err := cur.All(ctx)
	if err != nil {
		return err
	}
	for _, index := range all {
		if sameKeys(index.Keys, model.Keys.(bson.D)) {
			return nil
		}
	}
	_, err = within(l, c).CreateIndex(ctx, model)
	return err
}

// sameKeys compares the keys of two indexes. Numbers are equal by value: an index that the shell
// created has doubles.
func sameKeys(a, b bson.D) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Key != b[i].Key || !sameValue(a[i].Value, b[i].Value) {
			return false
		}
	}
	return true
}

func sameValue(a, b any) bool {
	av, aErr := bson.MarshalValue(a)
	bv, bErr := bson.MarshalValue(b)
	if aErr != nil || bErr != nil {
		return false
	}
	return (av.Type == bv.Type || av.IsNumber() && bv.IsNumber()) && bson.Compare(av, bv) == 0
}
