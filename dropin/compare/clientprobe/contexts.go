package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// contexts prints the errors of operations whose context has ended before they began.
func contexts(db *mongo.Database) {
	c := db.Collection("contexts")
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	expired, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	caused, cancelCause := context.WithCancelCause(ctx)
	cancelCause(errors.New("the cause"))
	for _, end := range []struct {
		name string
		ctx  context.Context
	}{{"canceled", canceled}, {"expired", expired}, {"caused", caused}} {
		for name, err := range operations(end.ctx, db, c) {
			if end.name == "expired" { // the text has measured times in it
				say("context expired "+name, errors.Is(err, context.DeadlineExceeded), mongo.IsTimeout(err))
				continue
			}
			say(fmt.Sprintf("context %s %s", end.name, name), err, err == end.ctx.Err())
		}
	}
	_, err := c.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 1}}, {{Key: "_id", Value: 2}}, {{Key: "_id", Value: 3}}})
	check(err)
	cur, err := c.Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
	check(err)
	say("context of a cursor", cur.Next(canceled), cur.Next(canceled), cur.Err(), cur.Next(canceled), cur.Err(),
		cur.ID() != 0, cur.Next(ctx), cur.Err(), cur.Close(canceled))
	cur, err = c.Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
	check(err)
	var all []bson.D
	say("context of all", cur.All(canceled, &all), len(all))
	cs, err := c.Watch(ctx, mongo.Pipeline{})
	check(err)
	say("context of a stream", cs.Next(canceled), cs.Err(), cs.TryNext(canceled), cs.Err(), cs.ID() != 0)
	_, err = c.InsertOne(ctx, bson.D{{Key: "_id", Value: 4}})
	check(err)
	say("stream goes on", cs.Next(ctx), cs.Err(), cs.Close(canceled))
	s, err := db.Client().StartSession()
	check(err)
	inside := mongo.NewSessionContext(ctx, s)
	check(s.StartTransaction())
	_, err = c.InsertOne(inside, bson.D{{Key: "_id", Value: 5}})
	check(err)
	say("context of a commit", s.CommitTransaction(canceled))
	s.EndSession(ctx)
	s, err = db.Client().StartSession()
	check(err)
	check(s.StartTransaction())
	_, err = c.InsertOne(mongo.NewSessionContext(ctx, s), bson.D{{Key: "_id", Value: 6}})
	check(err)
	say("context of an abort", s.AbortTransaction(canceled))
	s.EndSession(ctx)
}

// kinds prints what a client does whose registry has codecs for kinds of values.
func kinds(db *mongo.Database) {
	all := bson.NewRegistry()
	for _, v := range []any{
		struct{}{}, []int{}, map[string]int{}, 0, int32(0), int64(0), "", true, 1.5, [1]int{},
	} {
		enc, err := bson.NewRegistry().LookupEncoder(reflect.TypeOf(v))
		check(err)
		all.RegisterKindEncoder(reflect.TypeOf(v).Kind(), enc)
		dec, err := bson.NewRegistry().LookupDecoder(reflect.TypeOf(v))
		check(err)
		all.RegisterKindDecoder(reflect.TypeOf(v).Kind(), dec)
	}
	for name, registry := range map[string]*bson.Registry{"all": all, "mgo": bson.NewMgoRegistry()} {
		client := connect(options.Client().SetRegistry(registry))
		defer client.Disconnect(ctx)
		c := client.Database(db.Name()).Collection("kinds")
		check(c.Drop(ctx))
		_, err := c.InsertMany(ctx, []any{user{1, "a", 5}, bson.M{"_id": 2, "list": []string{"x"}}})
		check(err)
		for op, err := range operations(ctx, client.Database(db.Name()), c) {
			if !slices.Contains([]string{"WithTransaction", "UseSession"}, op) {
				say(fmt.Sprintf("kinds %s %s", name, op), err)
			}
		}
		check(c.Drop(ctx))
		_, err = c.InsertMany(ctx, []any{user{1, "a", 5}, bson.M{"_id": 2, "list": []string{"x"}}})
		check(err)
		for i, filter := range []any{bson.M{"_id": 1}, user{1, "a", 5}, bson.D{{Key: "list", Value: "x"}},
			map[string]any{"_id": bson.M{"$in": []int{1, 2}}}} {
			n, err := c.CountDocuments(ctx, filter,
				options.Count().SetComment("x").SetHint(bson.D{{Key: "_id", Value: 1}}))
			var m map[string]any
			say(fmt.Sprint("kinds ", name, i), n, err, c.FindOne(ctx, filter).Decode(&m), bson.M(m))
			cur, err := c.Aggregate(ctx, []any{bson.M{"$match": filter}, bson.M{"$project": bson.M{"name": 1}}})
			check(err)
			var users []user
			say(fmt.Sprint("kinds aggregate ", name, i), cur.All(ctx, &users), users)
		}
		up, err := c.UpdateOne(ctx, bson.M{"_id": 2}, bson.M{"$set": bson.M{"list.$[e]": "y"}},
			options.UpdateOne().SetArrayFilters([]any{bson.M{"e": "x"}}))
		say("kinds update "+name, up, err)
		up, err = c.UpdateOne(ctx, bson.M{"_id": 2}, []bson.M{{"$set": bson.M{"n": 1}}})
		say("kinds pipeline "+name, up, err)
		bulk, err := c.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": 1}).SetUpdate(bson.M{"$set": bson.M{"age": 7}}),
			mongo.NewReplaceOneModel().SetFilter(bson.M{"_id": 2}).SetReplacement(user{2, "b", 6}),
			mongo.NewInsertOneModel().SetDocument(user{3, "c", 7}),
			mongo.NewDeleteManyModel().SetFilter(bson.M{"_id": 9}),
		})
		say("kinds bulk "+name, bulk, err)
	}
}

// operations returns the errors of one call of each method with a context.
func operations(ctx context.Context, db *mongo.Database, c *mongo.Collection) map[string]error {
	all := map[string]error{}
	add := func(name string, err error) { all[name] = err }
	one, set := bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	add("Ping", db.Client().Ping(ctx, nil))
	_, err := c.InsertOne(ctx, bson.D{{Key: "x", Value: 1}})
	add("InsertOne", err)
	_, err = c.InsertMany(ctx, []bson.D{{{Key: "x", Value: 1}}})
	add("InsertMany", err)
	_, err = c.UpdateOne(ctx, one, set)
	add("UpdateOne", err)
	_, err = c.UpdateMany(ctx, one, set)
	add("UpdateMany", err)
	_, err = c.ReplaceOne(ctx, one, one)
	add("ReplaceOne", err)
	_, err = c.DeleteOne(ctx, one)
	add("DeleteOne", err)
	_, err = c.DeleteMany(ctx, one)
	add("DeleteMany", err)
	_, err = c.Find(ctx, one)
	add("Find", err)
	add("FindOne", c.FindOne(ctx, one).Err())
	add("FindOneAndUpdate", c.FindOneAndUpdate(ctx, one, set).Err())
	add("FindOneAndDelete", c.FindOneAndDelete(ctx, one).Err())
	_, err = c.Aggregate(ctx, mongo.Pipeline{})
	add("Aggregate", err)
	_, err = c.CountDocuments(ctx, one)
	add("CountDocuments", err)
	_, err = c.EstimatedDocumentCount(ctx)
	add("EstimatedDocumentCount", err)
	add("Distinct", c.Distinct(ctx, "a", one).Err())
	_, err = c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{"x": 1})})
	add("BulkWrite", err)
	_, err = c.Watch(ctx, mongo.Pipeline{})
	add("Watch", err)
	_, err = c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}})
	add("CreateOne", err)
	_, err = c.Indexes().List(ctx)
	add("List", err)
	add("Drop", c.Drop(ctx))
	add("RunCommand", db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err())
	_, err = db.ListCollectionNames(ctx, bson.D{})
	add("ListCollectionNames", err)
	_, err = db.Client().ListDatabaseNames(ctx, bson.D{})
	add("ListDatabaseNames", err)
	add("CreateCollection", db.CreateCollection(ctx, "contexts2"))
	_, err = db.GridFSBucket().UploadFromStream(ctx, "x", failingReader{errors.New("not read")})
	add("UploadFromStream", err)
	_, err = db.GridFSBucket().OpenDownloadStreamByName(ctx, "x")
	add("OpenDownloadStreamByName", err)
	add("UseSession", db.Client().UseSession(ctx, func(ctx context.Context) error {
		_, err := c.InsertOne(ctx, one)
		return err
	}))
	s, err := db.Client().StartSession(options.Session())
	check(err)
	defer s.EndSession(context.Background())
	_, err = s.WithTransaction(ctx, func(ctx context.Context) (any, error) { return c.InsertOne(ctx, one) })
	add("WithTransaction", err)
	return all
}
