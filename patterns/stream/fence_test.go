package stream

import (
	"context"

	"allium"
	"allium/bson"
)

// StoreAs stores a position as a holder would that has been suspended for a while.
func StoreAs(ctx context.Context, coll allium.AnyCollection, name string, token int64) error {
	return place{majority(coll), name, token}.store(ctx, bson.Raw{5, 0, 0, 0, 0})
}
