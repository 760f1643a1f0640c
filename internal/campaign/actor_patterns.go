package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/mongoerr"
	"allium/patterns/queue"
)

// The lists that nobody pushes to but who saves a document, and who works off a queue.
const (
	savedList = lists + iota
	workedList
)

// savedDoc is a list that is read, changed and saved.
type savedDoc struct {
	ID      int     `bson:"_id"`
	Tokens  []int32 `bson:"tokens"`
	Version int64   `bson:"version"`
}

// noteAt begins a record with a new token for a list.
func (a *actor) noteAt(list int) *record {
	rec := a.note(0)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hist.token++
	rec.writes = []entry{{list, a.hist.token}}
	return rec
}

// save appends a token to a document that others save, too: what one of them has saved, no other
// one may undo.
func (a *actor) save() {
	// What an election could undo must not be what a change is based on.
	coll := allium.CollectionOf[savedDoc](a.client().Database(dbName), "saved",
		allium.CollectionOptions{ReadConcern: &consistency.ReadConcern{Level: consistency.ReadMajority}})
	rec := a.noteAt(savedList)
	var before savedDoc
	if err := a.do("find", func(ctx context.Context) (err error) {
		before, err = coll.FindOne(ctx, byID(savedList))
		return err
	}); err != nil {
		a.set(rec, absent)
		return
	}
	time.Sleep(about(a.r, a.world.plan.Think/10))
	after := before
	after.Tokens = append(slices.Clone(before.Tokens), rec.writes[0].token)
	conflict := false
	err := a.do("Save", func(ctx context.Context) error {
		err := allium.Save(ctx, coll, "version", before, &after)
		conflict = errors.Is(err, mongoerr.ErrConflict)
		if conflict {
			return nil
		}
		return err
	})
	switch {
	case conflict:
		a.set(rec, absent)
	case err == nil:
		a.set(rec, acked)
	default:
		a.set(rec, unknown)
	}
}

// visibility is how long a message is hidden from other workers.
func (w *world) visibility() time.Duration {
	if w.plan.Real {
		return 2 * time.Second
	}
	return 30 * time.Second
}

func (w *world) queue(db *allium.Database) *queue.Queue[int32] {
	return queue.Of[int32](db.Collection("queue"),
		queue.Options{Visibility: w.visibility(), Attempts: -1, Backoff: time.Second, MaxBackoff: 10 * time.Second})
}

// handle ends a message in the transaction that pushes its token.
func handle(ctx context.Context, c *allium.Client, m *queue.Message[int32]) error {
	err := c.Transact(ctx, func(ctx context.Context) error {
		if err := m.Done(ctx); err != nil {
			return err
		}
		_, err := c.Database(dbName).Collection("worked").UpdateOne(ctx, byID(workedList), push(m.Payload))
		return err
	})
	if errors.Is(err, queue.ErrLost) {
		return nil
	}
	return err
}

// messages sends a message with a token, or takes one and pushes its token, or fails to: too late,
// not at all, by giving it back. Each that was sent is handled once in the end.
func (a *actor) messages() {
	q := a.queue(a.client().Database(dbName))
	if a.r.IntN(2) == 0 {
		rec := a.noteAt(workedList)
		token := rec.writes[0].token
		err := a.do("Send", func(ctx context.Context) error {
			_, err := q.Send(ctx, token, queue.SendOptions{ID: fmt.Sprint(token)})
			if errors.Is(err, queue.ErrDuplicate) {
				a.violation("worker: message %d is there before it was sent", token)
				return nil
			}
			return err
		})
		a.set(rec, map[bool]outcome{true: acked, false: unknown}[err == nil])
		return
	}
	var m *queue.Message[int32]
	began := time.Now()
	err := a.do("TryTake", func(ctx context.Context) (err error) {
		m, err = q.TryTake(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			return nil
		}
		return err
	})
	if err != nil || m == nil {
		return
	}
	a.mu.Lock()
	until, held := a.hist.held[m.ID]
	a.hist.held[m.ID] = began.Add(a.visibility())
	a.mu.Unlock()
	if left := time.Until(until); held && left > 2*time.Millisecond && !a.world.plan.Real {
		a.violation("worker: message %s was taken %v before the time of another worker was up", m.ID, left)
	}
	letGo := func() { // it may be another worker's as soon as that is sent
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.hist.held[m.ID].Equal(began.Add(a.visibility())) {
			delete(a.hist.held, m.ID)
		}
	}
	if a.r.IntN(4) == 0 {
		time.Sleep(a.visibility() + about(a.r, a.visibility()/4)) // too long
	}
	switch a.r.IntN(6) {
	case 0: // it is never heard of again
	case 1:
		letGo()
		_ = a.do("Retry", func(ctx context.Context) error {
			if err := m.Retry(ctx, nil); !errors.Is(err, queue.ErrLost) {
				return err
			}
			return nil
		})
	default:
		letGo()
		_ = a.do("Done", func(ctx context.Context) error { return handle(ctx, a.client(), m) })
	}
}

// drain handles the messages that are left when all is quiet.
func (w *world) drain(ctx context.Context, c *allium.Client) {
	q := w.queue(c.Database(dbName))
	for range 1000 {
		m, err := q.TryTake(ctx)
		switch {
		case err == nil:
			err = handle(ctx, c, m)
		case errors.Is(err, queue.ErrEmpty):
			var s queue.Stats
			if s, err = q.Stats(ctx); err == nil && s == (queue.Stats{}) {
				return
			}
			time.Sleep(w.visibility() / 20)
		}
		if err != nil {
			w.violation("the queue when all is quiet: %v", err)
			return
		}
	}
	w.violation("the queue does not become empty when all is quiet")
}

// readPatterns reads the lists that who saves and who works has left.
func (w *world) readPatterns(ctx context.Context, db *allium.Database, final map[int][]int32) error {
	for list, coll := range map[int]string{savedList: "saved", workedList: "worked"} {
		doc, err := allium.CollectionOf[savedDoc](db, coll).FindOne(ctx, byID(list))
		if err != nil {
			return err
		}
		final[list] = doc.Tokens
	}
	return nil
}

// preparePatterns creates what who saves and who works has in common.
func (w *world) preparePatterns(ctx context.Context, db *allium.Database) error {
	for list, coll := range map[int]string{savedList: "saved", workedList: "worked"} {
		if _, err := allium.CollectionOf[bson.D](db, coll).InsertOne(ctx,
			bson.D{{Key: "_id", Value: list}, {Key: "tokens", Value: bson.A{}}}); err != nil {
			return err
		}
	}
	return w.queue(db).Ensure(ctx)
}
