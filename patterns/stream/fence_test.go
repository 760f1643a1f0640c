package stream

import (
	"context"

	"allium"
	"allium/bson"
	"allium/patterns/internal/settled"
)

// StoreAs stores a position as a holder would that has been suspended for a while.
func StoreAs(ctx context.Context, coll allium.AnyCollection, name string, token int64) error {
	return place{settled.Collection[bson.Raw](coll), name, token}.store(ctx, bson.Raw{5, 0, 0, 0, 0})
}
