package mtest_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/integration/mtest"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/mongo/writeconcern"
)

// TestMock runs operations on a deployment that answers as the test wants.
func TestMock(t *testing.T) {
	ctx := context.Background()
	mt := mtest.New(t, mtest.NewOptions().ClientType(mtest.Mock))
	if mt.Client != nil {
		t.Error("New has made a client")
	}
	mt.Run("insert", func(mt *mtest.T) {
		mt.AddMockResponses(mtest.CreateSuccessResponse(), mtest.CreateWriteErrorsResponse(mtest.WriteError{Index: 0, Code: 11000, Message: "twice"}))
		res, err := mt.Coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 7}})
		if err != nil || res.InsertedID != int32(7) {
			mt.Errorf("%v, %v", res, err)
		}
		if e := mt.GetStartedEvent(); e == nil || e.CommandName != "insert" || e.Command.Lookup("writeConcern", "w").StringValue() != "majority" || e.DatabaseName != mtest.TestDb {
			mt.Errorf("the event: %+v", e)
		}
		_, err = mt.Coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 7}})
		var write mongo.WriteException
		if !errors.As(err, &write) || !mongo.IsDuplicateKeyError(err) || err.Error() != "write exception: write errors: [twice]" {
			mt.Errorf("%T: %v", err, err)
		}
		if n := len(mt.GetAllStartedEvents()); n != 1 { // the first was taken
			mt.Errorf("%d events", n)
		}
	})
	mt.Run("find", func(mt *mtest.T) {
		if want := "TestMock/find"; mt.Coll.Name() != want {
			mt.Errorf("the collection is %s, want %s", mt.Coll.Name(), want)
		}
		mt.AddMockResponses(mtest.CreateCursorResponse(1, "test.c", mtest.FirstBatch, bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: 1}}}}),
			mtest.CreateCursorResponse(0, "test.c", mtest.NextBatch, bson.D{{Key: "a", Value: 2}}))
		cur, err := mt.Coll.Find(ctx, bson.M{}, options.Find().SetLimit(5), nil, options.Find().SetBatchSize(1))
		if err != nil {
			mt.Fatal(err)
		}
		var docs []bson.M
		if err := cur.All(ctx, &docs); err != nil {
			mt.Fatal(err)
		}
		if want := []bson.M{{"a": bson.M{"b": int32(1)}}, {"a": int32(2)}}; !reflect.DeepEqual(docs, want) {
			mt.Errorf("%#v", docs)
		}
		find := mt.GetStartedEvent().Command
		if find.Lookup("limit").AsInt64() != 5 || find.Lookup("batchSize").AsInt64() != 1 {
			mt.Errorf("%s", find)
		}
	})
	mt.Run("error", func(mt *mtest.T) {
		mt.AddMockResponses(mtest.CreateCommandErrorResponse(mtest.CommandError{Code: 13, Message: "no", Name: "Unauthorized", Labels: []string{"L"}}))
		err := mt.Coll.FindOne(ctx, bson.M{}).Err()
		var command mongo.CommandError
		if !errors.As(err, &command) || command.Wrapped != nil || !command.HasErrorLabel("L") || command.Error() != "(Unauthorized) no" {
			mt.Errorf("%#v", err)
		}
	})
	mt.Run("no cursor", func(mt *mtest.T) { // tests of programs look for the official driver's words
		const want = "database response does not contain a cursor"
		for name, run := range map[string]func() error{
			"find":      func() error { _, err := mt.Coll.Find(ctx, bson.M{}); return err },
			"find one":  func() error { return mt.Coll.FindOne(ctx, bson.M{}).Err() },
			"aggregate": func() error { _, err := mt.Coll.Aggregate(ctx, mongo.Pipeline{}); return err },
			"indexes":   func() error { _, err := mt.Coll.Indexes().List(ctx); return err },
			"watch":     func() error { _, err := mt.Coll.Watch(ctx, mongo.Pipeline{}); return err },
			"catalog":   func() error { _, err := mt.DB.ListCollections(ctx, bson.M{}); return err },
		} {
			mt.ClearMockResponses()
			mt.AddMockResponses(mtest.CreateSuccessResponse())
			if err := run(); err == nil || err.Error() != want {
				mt.Errorf("%s: %v", name, err)
			}
		}
	})
	mt.RunOpts("unacknowledged", mtest.NewOptions().CollectionOptions(options.Collection().SetWriteConcern(writeconcern.Unacknowledged())), func(mt *mtest.T) {
		res, err := mt.Coll.InsertOne(ctx, bson.M{"_id": 1})
		if !errors.Is(err, mongo.ErrUnacknowledgedWrite) || res == nil {
			mt.Errorf("%v, %v", res, err)
		}
	})
	mt.Run("session", func(mt *mtest.T) {
		mt.AddMockResponses(mtest.CreateSuccessResponse(), mtest.CreateSuccessResponse())
		err := mt.Client.UseSession(ctx, func(sc mongo.SessionContext) error {
			if mongo.SessionFromContext(sc) == nil || sc.Client() != mt.Client {
				mt.Error("the context has no session")
			}
			_, err := sc.WithTransaction(sc, func(sc mongo.SessionContext) (any, error) {
				return mt.Coll.InsertOne(sc, bson.M{"_id": 1})
			})
			return err
		})
		if err != nil {
			mt.Fatal(err)
		}
		if e := mt.GetStartedEvent(); !e.Command.Lookup("startTransaction").Boolean() {
			mt.Errorf("%s", e.Command)
		}
		if e := mt.GetStartedEvent(); e.CommandName != "commitTransaction" {
			mt.Errorf("%s", e.Command)
		}
	})
}

// TestShareClient uses one client in two tests, whose database is not that of the test around them.
func TestShareClient(t *testing.T) {
	mt := mtest.New(t, mtest.NewOptions().ClientType(mtest.Mock).ShareClient(true).DatabaseName("d"))
	for _, name := range []string{"a", "b"} {
		mt.Run(name, func(sub *mtest.T) {
			if sub.Client != mt.Client || sub.DB.Name() != mtest.TestDb {
				sub.Errorf("%p, not %p; %s", sub.Client, mt.Client, sub.DB.Name())
			}
			sub.AddMockResponses(mtest.CreateSuccessResponse())
			if err := sub.Client.Ping(context.Background(), nil); err != nil {
				sub.Error(err)
			}
		})
	}
}
