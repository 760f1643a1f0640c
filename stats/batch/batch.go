// Package batch is about the batches in which cursors and change streams get their documents: how
// many are left of one, and how the next ones are asked for. It is for libraries that show a
// program the batches; others set BatchSize and the like when they open a cursor.
//
//	b := batch.Of(cur)
//	b.SetSize(1000)
//	for b.Left() > 0 && cur.Next(ctx) {
//		...
//	}
package batch

import (
	"context"
	"time"

	"allium/internal/cursor"
)

// A Cursor is an *allium.Cursor or an *allium.ChangeStream.
type Cursor interface {
	ID() int64
	Err() error
	Next(ctx context.Context) bool
	TryNext(ctx context.Context) bool
}

// Batches are those of a cursor. They belong to the goroutine that the cursor belongs to.
type Batches struct{ cur *cursor.Cursor }

// Of returns the batches of a cursor, nil if c is neither an *allium.Cursor nor an
// *allium.ChangeStream.
func Of(c Cursor) *Batches {
	if cur := cursor.Inside(c); cur != nil {
		return &Batches{cur}
	}
	return nil
}

// Left returns how many documents of the current batch Next has not come to. If there are none,
// Next asks the server for the next batch.
func (b *Batches) Left() int { return b.cur.Left() }

// SetSize says how many documents the next batches have at most, 0 leaves it to the server.
func (b *Batches) SetSize(n int32) { b.cur.SetBatchSize(n) }

// SetMaxAwaitTime says how long the server waits for documents before it sends an empty batch, 0
// leaves it to the server. It is for cursors that wait: the server refuses it for others.
func (b *Batches) SetMaxAwaitTime(d time.Duration) { b.cur.SetMaxAwait(d) }

// SetComment says what the server's logs and profiles have beside the commands that fetch the next
// batches: any value. The error is that of encoding it.
func (b *Batches) SetComment(comment any) error { return b.cur.SetFrozenComment(comment) }
