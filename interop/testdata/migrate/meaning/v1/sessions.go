package main

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/mongo/readconcern"
	"go.mongodb.org/mongo-driver/mongo/writeconcern"
)

func init() {
	add("sessions/with transaction", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		sess, err := db.Client().StartSession()
		check(err)
		defer sess.EndSession(ctx)
		v, err := sess.WithTransaction(ctx, func(sc mongo.SessionContext) (interface{}, error) {
			_, err := c.InsertOne(sc, item{ID: 20})
			return "value", err
		}, options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.New(writeconcern.WMajority())))
		fmt.Println(v, err)
		n, err := c.CountDocuments(ctx, bson.M{"_id": 20})
		fmt.Println(n, err)
		failed := errors.New("failed")
		v, err = sess.WithTransaction(ctx, func(sc mongo.SessionContext) (interface{}, error) {
			_, err := c.InsertOne(sc, item{ID: 21})
			check(err)
			return "value", failed
		})
		fmt.Println(v, err == failed)
		n, err = c.CountDocuments(ctx, bson.M{"_id": 21})
		fmt.Println(n, err)
	})
	add("sessions/retries a labeled error", func(ctx context.Context, db *mongo.Database) {
		sess, err := db.Client().StartSession()
		check(err)
		defer sess.EndSession(ctx)
		tries := 0
		_, err = sess.WithTransaction(ctx, func(sc mongo.SessionContext) (interface{}, error) {
			tries++
			if tries < 3 {
				return nil, mongo.CommandError{Code: 112, Labels: []string{"TransientTransactionError"}}
			}
			return nil, nil
		})
		fmt.Println(tries, err)
	})
	add("sessions/context", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		sess, err := db.Client().StartSession()
		check(err)
		defer sess.EndSession(ctx)
		err = mongo.WithSession(ctx, sess, func(sc mongo.SessionContext) error {
			if err := sc.StartTransaction(); err != nil {
				return err
			}
			if _, err := c.UpdateOne(sc, bson.M{"_id": 1}, bson.M{"$set": bson.M{"name": "tx"}}); err != nil {
				return err
			}
			n, err := c.CountDocuments(ctx, bson.M{"name": "tx"})
			fmt.Println(n, err)
			return sc.CommitTransaction(sc)
		})
		fmt.Println(err)
		n, err := c.CountDocuments(ctx, bson.M{"name": "tx"})
		fmt.Println(n, err)
	})
	add("sessions/use", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		err := db.Client().UseSession(ctx, func(sc mongo.SessionContext) error {
			if err := sc.StartTransaction(); err != nil {
				return err
			}
			if _, err := c.InsertOne(sc, item{ID: 1}); err != nil {
				return err
			}
			return sc.AbortTransaction(sc)
		})
		n, _ := c.CountDocuments(ctx, bson.D{})
		fmt.Println(err, n)
	})
	add("sessions/by hand", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("items")
		fill(ctx, c)
		sess, err := db.Client().StartSession()
		check(err)
		defer sess.EndSession(ctx)
		check(sess.StartTransaction())
		in := mongo.NewSessionContext(ctx, sess)
		_, err = c.DeleteOne(in, bson.M{"_id": 1})
		check(err)
		check(sess.AbortTransaction(ctx))
		n, err := c.CountDocuments(ctx, bson.D{})
		fmt.Println(n, err, mongo.SessionFromContext(ctx) == nil)
	})
}
