package errcompare

import (
	"context"
	"io"

	"allium"
	"allium/bson"
	"allium/mongoerr"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

func bad(ctx context.Context, c *allium.UntypedCollection, o *mongo.Collection) error {
	_, err := c.FindOne(ctx, bson.D{})
	if err == mongoerr.ErrNoDocuments { // want `an error that wraps mongoerr.ErrNoDocuments is not == to it: use errors.Is`
		return nil
	}
	if err := o.FindOne(ctx, bson.D{}).Err(); mongo.ErrNoDocuments != err { // want `use errors.Is`
		return err
	}
	switch err {
	case mongo.ErrClientDisconnected: // want `as a switch compares`
		return nil
	}
	return err
}

type notFound struct{}

func (notFound) Error() string { return "" }

func (notFound) Is(target error) bool { return target == mongo.ErrNoDocuments }

func good(err error) bool { return err == nil || err == io.EOF }
