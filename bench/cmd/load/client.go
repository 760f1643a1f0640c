package main

import (
	"context"
	"sync/atomic"

	official "go.mongodb.org/mongo-driver/v2/bson"
	officialevent "go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"allium"
	"allium/bench/internal/nullserver"
	"allium/bson"
	"allium/event"
)

const slowBy = nullserver.SlowBy

// client is a driver's, with what the load needs of it.
type client struct {
	findOne, findSlow, insertOne func(context.Context) error
	close                        func() error
	created, closed              atomic.Int64 // connections
}

func openAllium(uri string, pool int) (*client, error) {
	c := &client{}
	driver, err := allium.Open(uri, allium.ClientOptions{MaxPoolSize: &pool, PoolMonitor: &event.PoolMonitor{
		ConnectionCreated: func(*event.ConnectionCreated) { c.created.Add(1) },
		ConnectionClosed:  func(*event.ConnectionClosed) { c.closed.Add(1) },
	}})
	if err != nil {
		return nil, err
	}
	db := driver.Database("db")
	filter := bson.D{{Key: "_id", Value: nullserver.FileID}}
	find := func(name string) func(context.Context) error {
		coll := allium.CollectionOf[nullserver.Sample](db, name)
		return func(ctx context.Context) error {
			_, err := coll.FindOne(ctx, filter)
			return err
		}
	}
	inserts := allium.CollectionOf[nullserver.Sample](db, "c")
	sample := nullserver.NewSample()
	c.findOne, c.findSlow = find(nullserver.One), find(nullserver.Slow)
	c.insertOne = func(ctx context.Context) error {
		_, err := inserts.InsertOne(ctx, sample)
		return err
	}
	c.close = func() error { return driver.Close(context.Background()) }
	return c, nil
}

// officialSample is nullserver.Sample with the official driver's types.
type officialSample struct {
	ID      official.ObjectID `bson:"_id"`
	Name    string            `bson:"name"`
	Email   string            `bson:"email"`
	Age     int32             `bson:"age"`
	Balance float64           `bson:"balance"`
	Active  bool              `bson:"active"`
	Created official.DateTime `bson:"created"`
	City    string            `bson:"city"`
	Visits  int64             `bson:"visits"`
	Notes   string            `bson:"notes"`
}

func openOfficial(uri string, pool int) (*client, error) {
	c := &client{}
	driver, err := mongo.Connect(
		options.Client().ApplyURI(uri).SetMaxPoolSize(uint64(pool)).SetPoolMonitor(&officialevent.PoolMonitor{
			Event: func(e *officialevent.PoolEvent) {
				switch e.Type {
				case officialevent.ConnectionCreated:
					c.created.Add(1)
				case officialevent.ConnectionClosed:
					c.closed.Add(1)
				}
			},
		}))
	if err != nil {
		return nil, err
	}
	db := driver.Database("db")
	filter := official.D{{Key: "_id", Value: official.ObjectID(nullserver.FileID)}}
	find := func(name string) func(context.Context) error {
		coll := db.Collection(name)
		return func(ctx context.Context) error {
			var s officialSample
			return coll.FindOne(ctx, filter).Decode(&s)
		}
	}
	s := nullserver.NewSample()
	sample := officialSample{official.ObjectID(s.ID), s.Name, s.Email, s.Age, s.Balance, s.Active,
		official.DateTime(s.Created), s.City, s.Visits, s.Notes}
	inserts := db.Collection("c")
	c.findOne, c.findSlow = find(nullserver.One), find(nullserver.Slow)
	c.insertOne = func(ctx context.Context) error {
		_, err := inserts.InsertOne(ctx, sample)
		return err
	}
	c.close = func() error { return driver.Disconnect(context.Background()) }
	return c, nil
}
