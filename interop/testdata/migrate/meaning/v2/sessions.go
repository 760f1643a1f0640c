package main

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

func init() {
	add("sessions/with transaction", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		sess, err := db.Client().StartSession()
		check(err)
		defer sess.EndSession(ctx)
		v, err := sess.WithTransaction(ctx, func(ctx context.Context) (any, error) {
			_, err := c.InsertOne(ctx, item{ID: 20})
			return "value", err
		}, options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority()))
		fmt.Println(v, err)
		n, err := c.CountDocuments(ctx, bson.M{"_id": 20})
		fmt.Println(n, err)
		failed := errors.New("failed")
		v, err = sess.WithTransaction(ctx, func(ctx context.Context) (any, error) {
			_, err := c.InsertOne(ctx, item{ID: 21})
			check(err)
			return "value", failed
		})
		fmt.Println(v, err == failed, errors.Is(err, failed))
		n, err = c.CountDocuments(ctx, bson.M{"_id": 21})
		fmt.Println(n, err)
	})
	add("sessions/retries a labeled error", func(ctx context.Context, db *mongo.Database) {
		sess, err := db.Client().StartSession()
		check(err)
		defer sess.EndSession(ctx)
		tries := 0
		_, err = sess.WithTransaction(ctx, func(ctx context.Context) (any, error) {
			tries++
			if tries < 3 {
				return nil, mongo.CommandError{Code: 112, Labels: []string{"TransientTransactionError"}}
			}
			return nil, nil
		})
		fmt.Println(tries, err)
	})
	add("sessions/by hand", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		sess, err := db.Client().StartSession(options.Session().SetCausalConsistency(true))
		check(err)
		defer sess.EndSession(ctx)
		check(sess.StartTransaction())
		in := mongo.NewSessionContext(ctx, sess)
		_, err = c.UpdateOne(in, bson.M{"_id": 1}, bson.M{"$set": bson.M{"name": "tx"}})
		check(err)
		n, err := c.CountDocuments(ctx, bson.M{"name": "tx"})
		fmt.Println(n, err)
		check(sess.CommitTransaction(ctx))
		n, err = c.CountDocuments(ctx, bson.M{"name": "tx"})
		fmt.Println(n, err)
		check(sess.StartTransaction())
		check(sess.AbortTransaction(ctx))
		fmt.Println(sess.AbortTransaction(ctx) != nil, sess.CommitTransaction(ctx) != nil)
		fmt.Println(mongo.SessionFromContext(in) == sess, mongo.SessionFromContext(ctx) == nil, len(sess.ID()) > 0)
	})
	add("sessions/use", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		err := db.Client().UseSession(ctx, func(ctx context.Context) error {
			sess := mongo.SessionFromContext(ctx)
			if err := sess.StartTransaction(); err != nil {
				return err
			}
			if _, err := c.InsertOne(ctx, item{ID: 1}); err != nil {
				return err
			}
			return sess.CommitTransaction(ctx)
		})
		fmt.Println(err)
		sess, err := db.Client().StartSession()
		check(err)
		err = mongo.WithSession(ctx, sess, func(ctx context.Context) error {
			n, err := c.CountDocuments(ctx, bson.D{})
			fmt.Println(n, mongo.SessionFromContext(ctx) != nil)
			return err
		})
		fmt.Println(err)
		sess.EndSession(ctx)
	})
	add("sessions/error in a transaction", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		sess, err := db.Client().StartSession()
		check(err)
		defer sess.EndSession(ctx)
		_, err = sess.WithTransaction(ctx, func(ctx context.Context) (any, error) {
			return c.InsertOne(ctx, item{ID: 1})
		})
		var we mongo.WriteException
		fmt.Println(errors.As(err, &we), mongo.IsDuplicateKeyError(err))
	})
}
