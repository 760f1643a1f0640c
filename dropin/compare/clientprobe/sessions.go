package main

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// sessions prints what sessions and transactions do.
func sessions(db *mongo.Database) {
	client := db.Client()
	c := db.Collection("sessions")
	_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 0}})
	check(err)
	s, err := client.StartSession()
	check(err)
	say("session", s.Client() == client, len(s.ID()) > 0, s.ClusterTime(), s.OperationTime() == nil,
		s.TransactionRunning(), client.NumberSessionsInProgress(), s.SnapshotTime())
	say("no transaction", s.CommitTransaction(ctx), s.AbortTransaction(ctx))
	sc := mongo.NewSessionContext(ctx, s)
	say("in the context", mongo.SessionFromContext(sc) == s, mongo.SessionFromContext(ctx) == nil)
	say("start", s.StartTransaction(), s.TransactionRunning(), s.StartTransaction())
	_, err = c.InsertOne(sc, bson.D{{Key: "_id", Value: 1}})
	say("insert inside", err, c.FindOne(sc, bson.D{{Key: "_id", Value: 1}}).Err(),
		c.FindOne(ctx, bson.D{{Key: "_id", Value: 1}}).Err())
	say("abort", s.AbortTransaction(sc), s.AbortTransaction(sc), s.CommitTransaction(sc), s.TransactionRunning(),
		c.FindOne(ctx, bson.D{{Key: "_id", Value: 1}}).Err())
	say("start again", s.StartTransaction(
		options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority())))
	_, err = c.InsertOne(sc, bson.D{{Key: "_id", Value: 1}})
	say("insert again", err, s.CommitTransaction(sc), s.CommitTransaction(sc), s.AbortTransaction(sc),
		s.TransactionRunning(), c.FindOne(ctx, bson.D{{Key: "_id", Value: 1}}).Err())
	say("times", s.ClusterTime() != nil, s.OperationTime() != nil)
	say("unacknowledged", s.StartTransaction(options.Transaction().SetWriteConcern(writeconcern.Unacknowledged())),
		s.TransactionRunning())
	say("empty transaction", s.StartTransaction(), s.CommitTransaction(ctx), s.StartTransaction(),
		s.AbortTransaction(ctx))
	check(s.StartTransaction())
	_, err = c.InsertOne(sc, bson.D{{Key: "_id", Value: 0}})
	say("duplicate inside", err)
	_, err = c.InsertOne(sc, bson.D{{Key: "_id", Value: 50}})
	var ce mongo.CommandError
	say("behind it", errors.As(err, &ce), ce.Code, ce.Labels, ce.HasErrorLabel("TransientTransactionError"),
		s.AbortTransaction(sc))
	check(s.StartTransaction())
	_, err = c.Find(sc, bson.D{}, options.Find())
	say("find inside", err)
	say("secondary inside", c.Clone(options.Collection().SetReadPreference(readpref.Secondary())).FindOne(sc,
		bson.D{}).Err() != nil)
	n, err := c.CountDocuments(sc, bson.D{})
	say("count inside", n, err)
	s.EndSession(ctx)
	s.EndSession(ctx)
	say("ended", s.StartTransaction(), s.CommitTransaction(ctx), s.AbortTransaction(ctx),
		client.NumberSessionsInProgress(), s.AdvanceClusterTime(nil), s.AdvanceOperationTime(&bson.Timestamp{T: 1}))
	_, err = c.InsertOne(sc, bson.D{{Key: "_id", Value: 60}})
	say("insert in the ended", err)

	other := connect()
	defer other.Disconnect(ctx)
	foreign, err := other.StartSession()
	check(err)
	_, err = c.InsertOne(mongo.NewSessionContext(ctx, foreign), bson.D{{Key: "_id", Value: 61}})
	say("foreign", err)
	foreign.EndSession(ctx)

	bothSet := options.Session().SetSnapshot(true).SetCausalConsistency(true)
	_, err = client.StartSession(bothSet)
	say("snapshot and causal", err)
	snap, err := client.StartSession(options.Session().SetSnapshot(true))
	if err == nil {
		say("snapshot", snap.StartTransaction(), c.FindOne(mongo.NewSessionContext(ctx, snap),
			bson.D{{Key: "_id", Value: 0}}).Err(), snap.SnapshotTime() != bson.Timestamp{})
		snap.EndSession(ctx)
	}
	s, err = client.StartSession()
	check(err)
	defer s.EndSession(ctx)
	calls := 0
	res, err := s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		calls++
		_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: fmt.Sprint("w", calls)}})
		return 5, err
	})
	say("with transaction", res, err, calls, s.TransactionRunning())
	calls = 0
	failed := errors.New("failed")
	res, err = s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		calls++
		_, _ = c.InsertOne(ctx, bson.D{{Key: "_id", Value: "never"}})
		return 6, failed
	})
	say("with transaction that fails", res, err == failed, calls, s.TransactionRunning(),
		c.FindOne(ctx, bson.D{{Key: "_id", Value: "never"}}).Err())
	calls = 0
	res, err = s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		if calls++; calls < 3 {
			return nil, mongo.CommandError{Code: 1, Message: "mine", Labels: []string{"TransientTransactionError"}}
		}
		return "done", nil
	})
	say("with transaction again", res, err, calls)
	calls = 0
	res, err = s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		if calls++; calls < 2 {
			return nil, fmt.Errorf("around: %w",
				mongo.CommandError{Code: 1, Message: "mine", Labels: []string{"TransientTransactionError"}})
		}
		return "done", nil
	})
	say("with transaction wrapped", res, err, calls)
	res, err = s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		return "aborted", mongo.SessionFromContext(ctx).AbortTransaction(ctx)
	})
	say("with transaction aborted", res, err)
	res, err = s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 0}})
		return nil, err
	})
	say("with transaction duplicate", res, err)
	res, err = s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		_, _ = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
		return nil, nil
	}, options.Transaction().SetReadPreference(readpref.Primary()))
	say("with transaction options", res, err)
	failing := func(times int, command string, code int, labels ...string) {
		check(client.Database("admin").RunCommand(ctx,
			bson.D{{Key: "configureFailPoint", Value: "failCommand"},
				{Key: "mode", Value: bson.D{{Key: "times", Value: times}}},
				{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{command}},
					{Key: "errorCode", Value: code}, {Key: "errorLabels", Value: labels}}}}).Err())
	}
	calls = 0
	failing(2, "commitTransaction", 112, "TransientTransactionError")
	res, err = s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		calls++
		_, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
			bson.D{{Key: "$inc", Value: bson.D{{Key: "a", Value: 1}}}})
		return calls, err
	})
	say("commit fails", res, err, calls)
	failing(1, "commitTransaction", 64, "UnknownTransactionCommitResult")
	res, err = s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		_, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
			bson.D{{Key: "$inc", Value: bson.D{{Key: "a", Value: 1}}}})
		return nil, err
	})
	say("commit unknown", res, err)
	failing(1, "commitTransaction", 51, "")
	res, err = s.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		_, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
			bson.D{{Key: "$inc", Value: bson.D{{Key: "a", Value: 1}}}})
		return "r", err
	})
	say("commit fails for good", res, err)
	failing(1, "update", 112)
	err = c.FindOne(ctx, bson.D{}).Err()
	say("not failing", err)
	_, err = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
		bson.D{{Key: "$inc", Value: bson.D{{Key: "a", Value: 1}}}})
	say("failing update", err)
	failing(1, "find", 50)
	say("max time", c.FindOne(ctx, bson.D{}).Err())
	failing(2, "insert", 91, "RetryableWriteError")
	_, err = c.InsertOne(ctx, bson.D{{Key: "_id", Value: "shutdown"}})
	say("shutdown twice", err)
	failing(1, "insert", 91, "RetryableWriteError")
	_, err = c.InsertOne(ctx, bson.D{{Key: "_id", Value: "shutdown"}})
	say("shutdown once", err)
	failing(2, "find", 11602)
	say("interrupted twice", c.FindOne(ctx, bson.D{}).Err())

	say("use", client.UseSession(ctx, func(ctx context.Context) error {
		s := mongo.SessionFromContext(ctx)
		check(s.StartTransaction())
		_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: "used"}})
		return err
	}), c.FindOne(ctx, bson.D{{Key: "_id", Value: "used"}}).Err())
	say("use fails", client.UseSession(ctx, func(context.Context) error { return failed }) == failed,
		client.NumberSessionsInProgress())
	say("use with options", client.UseSessionWithOptions(ctx, options.Session().SetCausalConsistency(false),
		func(ctx context.Context) error {
			return c.FindOne(ctx, bson.D{{Key: "_id", Value: 0}}).Err()
		}))
	say("with session", mongo.WithSession(ctx, s, func(ctx context.Context) error {
		say("inside", mongo.SessionFromContext(ctx) == s)
		return failed
	}) == failed)
}
