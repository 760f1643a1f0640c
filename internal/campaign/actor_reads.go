package campaign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/gridfs"
)

func asInto[E error](err error, target *E) bool {
	e, ok := errors.AsType[E](err)
	*target = e
	return ok
}

// scan reads a collection that does not change, over several batches: it gets each document once.
func (a *actor) scan() {
	size := int32(10 + a.r.IntN(100))
	opts := allium.FindOptions{BatchSize: &size, Sort: byID(1), Exhaust: a.r.IntN(3) == 0}
	mode := pick(a.r, []consistency.ReadMode{consistency.Primary, consistency.Nearest, consistency.SecondaryPreferred})
	stop, pause := a.r.IntN(3*static), about(a.r, 50*time.Millisecond)
	coll := a.coll("static").With(allium.CollectionOptions{ReadPreference: &consistency.ReadPreference{Mode: mode}})
	_ = a.do("find", func(ctx context.Context) error {
		cur, err := coll.Find(ctx, bson.D{}, opts)
		if err != nil {
			return err
		}
		defer cur.Close(ctx)
		n := int64(0)
		for cur.Next(ctx) {
			if id := number(cur.Current(), "_id"); id != n {
				a.violation("scanner: document %d comes after %d", id, n-1)
				return nil
			}
			n++
			if int(n) == stop { // closed early
				return nil
			}
			if n%100 == 0 {
				rest(ctx, pause)
			}
		}
		if err := cur.Err(); err != nil {
			return err
		}
		if n != static {
			a.violation("scanner: a cursor that ended without an error returned %d of %d documents", n, static)
		}
		return nil
	})
}

// causal writes to a counter of its own and reads it anywhere, in one causally consistent
// session: it sees its writes and never goes back.
func (a *actor) causal() {
	a.mu.Lock()
	own := a.hist.own[a.plan.ID]
	if own == nil {
		own = &ownCounter{}
		a.hist.own[a.plan.ID] = own
	}
	a.mu.Unlock()
	rounds := 1 + a.r.IntN(5)
	mode := pick(a.r, []consistency.ReadMode{consistency.Secondary, consistency.Nearest, consistency.SecondaryPreferred,
		consistency.PrimaryPreferred})
	coll := a.coll("counters")
	from := coll.With(allium.CollectionOptions{ReadPreference: &consistency.ReadPreference{Mode: mode}})
	_ = a.do("causal session", func(ctx context.Context) error {
		s, err := a.client().StartSession()
		if err != nil {
			return err
		}
		defer s.End(ctx)
		in := allium.WithSession(ctx, s)
		wrote, before := int64(0), int64(0)
		for range rounds {
			own.tried++
			_, err := coll.UpdateOne(in, byID(a.plan.ID), bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
			if err != nil {
				a.wrote(unknown)
				return err
			}
			own.acked++
			a.wrote(acked)
			wrote = own.acked
			doc, err := from.FindOne(in, byID(a.plan.ID))
			if err != nil {
				return err
			}
			n := number(doc, "n")
			if n < wrote {
				a.violation("causal: a session does not see its own write: %d of %d, read preference %s", n, wrote,
					mode)
			}
			if n < before {
				a.violation("causal: a session went back from %d to %d, read preference %s", before, n, mode)
			}
			if n > own.tried {
				a.violation("causal: a counter is at %d after %d increments", n, own.tried)
			}
			before = n
		}
		return nil
	})
}

// file uploads a file, and downloads one of those that it has uploaded.
func (a *actor) file() {
	bucket := gridfs.NewBucket(a.client().Database(dbName), gridfs.BucketOptions{ChunkSizeBytes: 1000})
	data := make([]byte, a.r.IntN(8000))
	for i := range data {
		data[i] = byte(a.r.Uint32())
	}
	id := bson.NewObjectID()
	up := &file{outcome: unknown, sum: sha256.Sum256(data)}
	a.mu.Lock()
	a.hist.files[id] = up
	a.mu.Unlock()
	err := a.do("upload", func(ctx context.Context) error {
		return bucket.UploadFromStreamWithID(ctx, id, a.name(), bytes.NewReader(data))
	})
	if err == nil {
		a.mu.Lock()
		up.outcome = acked
		a.mu.Unlock()
		a.wrote(acked)
	} else {
		a.wrote(unknown)
	}
	var got bytes.Buffer
	err = a.do("download", func(ctx context.Context) error {
		_, err := bucket.DownloadToStream(ctx, id, &got)
		return err
	})
	switch {
	case err == nil && sha256.Sum256(got.Bytes()) != up.sum:
		a.violation("files: a download differs from the upload: %d bytes of %d", got.Len(), len(data))
	case errors.Is(err, fs.ErrNotExist) && up.outcome == acked:
		a.violation("files: a file whose upload was acknowledged is not there")
	case as[*gridfs.CorruptError](err) && up.outcome == acked:
		a.violation("files: a file whose upload was acknowledged is damaged: %v", err)
	}
}
