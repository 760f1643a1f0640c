package stream

import (
	"context"
	"errors"
	"fmt"

	"allium"
	"allium/bson"
	"allium/mongoerr"
)

// Relay sends the documents of an outbox, and deletes each one that was sent. Programs insert them
// in the transaction that makes the change which they tell of:
//
//	err := client.Transact(ctx, func(ctx context.Context) error {
//		if _, err := orders.InsertOne(ctx, order); err != nil {
//			return err
//		}
//		_, err := outbox.InsertOne(ctx, Message{Text: "new order"})
//		return err
//	})
//
// It is Run with these differences. A document is sent at least once, in the order of the commits,
// or of the documents' _id for what was there before the first Run. It is not sent again once it
// has been deleted; if the copy dies in between, it is: the receiver tells by an id. If events are
// lost none of the documents is, since they are still there: Lost is not needed and may not be
// set, nor may Handle, Begin and Pipeline. What is parked stays in the outbox.
func Relay[T any](ctx context.Context, outbox *allium.Collection[T], send func(ctx context.Context, doc T) error,
	o Options[T]) error {
	switch {
	case send == nil:
		return errors.New("stream: send is nil")
	case o.Handle != nil || o.Begin != nil || o.Lost != nil || o.Pipeline != nil:
		return errors.New("stream: Handle, Begin, Lost and Pipeline are the relay's own")
	}
	relayed := func(ctx context.Context, id bson.RawValue) error {
		byID := bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: id}}}}
		doc, err := outbox.FindOne(ctx, byID)
		if errors.Is(err, mongoerr.ErrNoDocuments) {
			return nil // it was sent before
		}
		if err == nil {
			err = send(ctx, doc)
		}
		if err == nil {
			_, err = outbox.DeleteOne(ctx, byID)
		}
		return err
	}
	o.Pipeline = bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "operationType", Value: allium.ChangeInsert}}}}}
	o.Handle = func(ctx context.Context, ev allium.ChangeEvent[T]) error {
		return relayed(ctx, ev.DocumentKey.Lookup("_id"))
	}
	o.Lost = func(context.Context, error) error { return nil }
	o.sweep = func(ctx context.Context, c *consumer[T]) error {
		sort := allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}}
		for doc, err := range allium.As[bson.Raw](outbox).Query(ctx, bson.D{}, sort) {
			if err != nil {
				return err
			}
			id := doc.Lookup("_id")
			n, err := c.attempts(func() error {
				err := relayed(ctx, id)
				if odd, ok := errors.AsType[*mongoerr.DecodeError](err); ok {
					err = Refuse(odd)
				}
				return err
			})
			if err == nil {
				continue
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			start, key := bson.BeginDocument(nil)
			key = bson.EndDocument(bson.AppendRawValue(key, "_id", id), start)
			if err := c.park(key, doc, err, n); err != nil {
				return fmt.Errorf("document of the outbox: %w", err)
			}
		}
		return nil
	}
	return run(ctx, outbox, o)
}
