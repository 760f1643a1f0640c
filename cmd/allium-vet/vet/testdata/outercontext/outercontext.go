package outercontext

import (
	"context"
	"net/http"
	"time"

	"allium"
	"allium/bson"

	oldmongo "go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

func bad(ctx context.Context, client *allium.Client, c *allium.Collection[bson.D], sess *mongo.Session, o *mongo.Collection, v1 oldmongo.Session, old *oldmongo.Collection) {
	client.Transact(ctx, func(tx context.Context) error {
		if _, err := c.InsertOne(ctx, bson.D{}); err != nil { // want `InsertOne runs outside the transaction: ctx is the context from outside the function of Transact`
			return err
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		c.InsertOne(short, bson.D{})                // want `ctx is the context from outside`
		c.InsertOne(context.Background(), bson.D{}) // want `its context is not that of the function of Transact`
		allium.Distinct[int](ctx, c, "a", bson.D{}) // want `Distinct runs outside`
		store(ctx, c)                               // want `store runs outside the transaction`
		return c.Drop(tx)
	})
	sess.WithTransaction(ctx, func(sc context.Context) (any, error) {
		again := ctx
		o.InsertOne(again, bson.D{})                                              // want `InsertOne runs outside the transaction`
		return o.UpdateOne(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{}}}) // want `UpdateOne runs outside`
	})
	v1.WithTransaction(ctx, func(sc oldmongo.SessionContext) (any, error) {
		return old.InsertOne(ctx, bson.D{}) // want `InsertOne runs outside`
	})
	mongo.WithSession(ctx, sess, func(sc context.Context) error {
		_, err := o.InsertOne(ctx, bson.D{}) // want `InsertOne runs outside the session`
		return err
	})

	save := func() { c.InsertOne(ctx, bson.D{}) } // want `InsertOne runs outside`
	work := func(tx context.Context) error {
		save()
		_, err := c.DeleteOne(ctx, bson.D{}) // want `DeleteOne runs outside`
		return err
	}
	client.Transact(ctx, work)
}

func handler(w http.ResponseWriter, r *http.Request, client *allium.Client, c *allium.Collection[bson.D]) {
	client.Transact(r.Context(), func(tx context.Context) error {
		_, err := c.InsertOne(r.Context(), bson.D{}) // want `r is the context from outside`
		return err
	})
}

func store(ctx context.Context, c *allium.Collection[bson.D]) { inner(ctx, c) }

func inner(ctx context.Context, c *allium.Collection[bson.D]) { c.InsertOne(ctx, bson.D{}) }

func good(ctx context.Context, client *allium.Client, c *allium.Collection[bson.D], sess *mongo.Session, o *mongo.Collection) {
	client.Transact(ctx, func(ctx context.Context) error {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		store(short, c)
		each := func(ctx context.Context) { c.InsertOne(ctx, bson.D{}) }
		each(ctx)
		_, err := c.InsertOne(ctx, bson.D{})
		return err
	})
	own := mongo.NewSessionContext(ctx, sess)
	mongo.WithSession(ctx, sess, func(sc context.Context) error {
		_, err := o.InsertOne(own, bson.D{})
		return err
	})
	sess.WithTransaction(ctx, func(sc context.Context) (any, error) {
		log(ctx)
		o.Drop(ctx) // servers refuse it in a transaction
		defer sess.EndSession(ctx)
		return o.InsertOne(sc, bson.D{})
	})
	c.InsertOne(ctx, bson.D{})
}

func log(ctx context.Context) {}
