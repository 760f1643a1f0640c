package lostcontext

import (
	"context"
	"net/http"

	"allium"
	"allium/bson"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

func bad(ctx context.Context, c *allium.UntypedCollection) {
	c.InsertOne(context.Background(), bson.D{}) // want `InsertOne does not end with ctx, and has no deadline`
}

func handler(w http.ResponseWriter, r *http.Request, o *mongo.Collection) {
	o.InsertOne(context.TODO(), bson.D{}) // want `InsertOne does not end with the request r`
}

func good(ctx context.Context, c *allium.UntypedCollection, cur *mongo.Cursor) {
	c.InsertOne(ctx, bson.D{})
	defer c.Drop(context.Background())
	defer cur.Close(context.Background())
	go func() { c.InsertOne(context.Background(), bson.D{}) }()
	c.InsertOne(context.WithoutCancel(ctx), bson.D{})
}

func release(ctx context.Context, c *allium.UntypedCollection) {
	<-ctx.Done()
	c.DeleteOne(context.Background(), bson.D{})
}

func start(c *allium.UntypedCollection) { c.InsertOne(context.Background(), bson.D{}) }
