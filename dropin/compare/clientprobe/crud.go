package main

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

type user struct {
	ID   int    `bson:"_id"`
	Name string `bson:"name"`
	Age  int    `bson:"age,omitempty"`
}

// literals prints the texts of errors that programs make themselves.
func literals(*mongo.Database) {
	wce := &mongo.WriteConcernError{Name: "N", Code: 64, Message: "waiting"}
	we := mongo.WriteError{Index: 1, Code: 11000, Message: "E11000 dup"}
	detailed := mongo.WriteError{Code: 121, Message: "failed", Details: raw(bson.D{{Key: "a", Value: 1}})}
	for i, err := range []error{
		mongo.CommandError{}, mongo.CommandError{Code: 5, Message: "m"},
		mongo.CommandError{Code: 50, Name: "MaxTimeMSExpired", Message: "m"},
		mongo.CommandError{Message: "m", Wrapped: errors.New("w")}, mongo.CommandError{Name: "N", Message: "m",
			Labels: []string{"TransientTransactionError", "NetworkError"}, Wrapped: errors.New("m")},
		mongo.CommandError{Name: "N"}, mongo.CommandError{Wrapped: errors.New("w")},
		mongo.CommandError{Code: 11000, Message: "dup"},
		mongo.WriteException{}, mongo.WriteException{WriteConcernError: wce},
		mongo.WriteException{WriteErrors: mongo.WriteErrors{we, detailed}},
		mongo.WriteException{WriteConcernError: wce, WriteErrors: mongo.WriteErrors{we},
			Labels: []string{"RetryableWriteError"}},
		mongo.BulkWriteException{}, mongo.BulkWriteException{WriteConcernError: wce},
		mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{{WriteError: we}, {WriteError: detailed}},
			WriteConcernError: wce},
		mongo.ClientBulkWriteException{}, mongo.ClientBulkWriteException{WriteError: &we},
		mongo.ClientBulkWriteException{WriteErrors: map[int]mongo.WriteError{1: we}},
		mongo.ClientBulkWriteException{WriteErrors: map[int]mongo.WriteError{0: we},
			WriteConcernErrors: []mongo.WriteConcernError{*wce}},
		we, detailed, mongo.WriteErrors{we, we}, wce, mongo.WriteErrors{},
		mongo.ErrMapForOrderedArgument{ParamName: "sort"},
		mongo.MarshalError{Value: 5, Err: errors.New("e")}, mongo.EncryptionKeyVaultError{Wrapped: errors.New("e")},
		mongo.MongocryptError{Code: 3, Message: "m"}, mongo.MongocryptdError{Wrapped: errors.New("e")},
		mongo.BulkWriteError{WriteError: we}, fmt.Errorf("wrapped: %w", mongo.CommandError{Code: 11000, Message: "m"}),
		mongo.CommandError{Code: 16460, Message: "x E11000 y"}, mongo.CommandError{Code: 12582},
		mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 50}}},
		mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 50}},
		mongo.CommandError{Labels: []string{"NetworkTimeoutError"}},
		mongo.CommandError{Labels: []string{"ExceededTimeLimitError"}}, mongo.CommandError{Code: 262},
		mongo.CommandError{Code: 89},
	} {
		say(fmt.Sprint("literal ", i), err)
	}
	for _, err := range append(sentinels[:15:15], mongo.ErrNonStringIndexName, mongo.ErrMissingGridFSChunkSize) {
		say("sentinel "+err.Error(), fmt.Sprintf("%T", err))
	}
	say("no error", mongo.IsDuplicateKeyError(nil), mongo.IsTimeout(nil), mongo.IsNetworkError(nil),
		mongo.ErrorCodes(nil), mongo.ErrorCodes(errors.New("x")) == nil)
	long := mongo.WriteErrors{}
	for range 100 {
		long = append(long, mongo.WriteError{Message: "a text of some length that is repeated again and again"})
	}
	say("long", long)
}

func raw(v any) bson.Raw {
	b, err := bson.Marshal(v)
	check(err)
	return b
}

// crud prints what the methods of a collection do.
func crud(db *mongo.Database) {
	c := db.Collection("crud")
	res, err := c.InsertOne(ctx, user{1, "a", 5})
	say("InsertOne", res, err)
	res, err = c.InsertOne(ctx, user{1, "a", 5})
	say("InsertOne again", res == nil, err)
	oid, err := c.InsertOne(ctx, bson.M{"x": 1})
	say("InsertOne without _id", fmt.Sprintf("%T", oid.InsertedID), oid.Acknowledged, err)
	for i, id := range []any{"s", int64(5), 1.5, bson.D{{Key: "a", Value: 1}}, bson.M{"b": bson.M{"c": 1}},
		bson.Binary{Subtype: 4, Data: make([]byte, 16)}, true, bson.Timestamp{T: 1, I: 2}, bson.NilObjectID,
		bson.NewDateTimeFromTime(bson.NilObjectID.Timestamp())} {
		res, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: id}})
		say(fmt.Sprint("InsertOne _id ", i), fmt.Sprintf("%T", res.InsertedID),
			bson.D{{Key: "id", Value: res.InsertedID}}, err)
	}
	for i, id := range []any{bson.A{1}, bson.Regex{Pattern: "a"}} {
		res, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: id}})
		say(fmt.Sprint("InsertOne bad _id ", i), res == nil, err != nil)
	}
	for i, docs := range []any{
		[]any{user{10, "x", 1}, bson.D{{Key: "_id", Value: 11}}, bson.M{"_id": 12}}, []user{{13, "y", 2}, {14, "z", 3}},
		[]any{user{20, "", 0}, user{10, "", 0}, user{21, "", 0}},
		[]any{user{22, "", 0}, user{10, "", 0}, user{11, "", 0}}, []bson.M{{"_id": 23}}, []*user{{24, "p", 1}},
		[]bson.Raw{raw(bson.D{{Key: "_id", Value: 25}})},
	} {
		res, err := c.InsertMany(ctx, docs)
		say(fmt.Sprint("InsertMany ", i), res, err)
	}
	many, err := c.InsertMany(ctx, []any{user{30, "", 0}, user{10, "", 0}, user{31, "", 0}, user{11, "", 0}},
		options.InsertMany().SetOrdered(false))
	say("InsertMany unordered", many, err)
	many, err = c.InsertMany(ctx, []bson.D{{{Key: "x", Value: 1}}, {{Key: "x", Value: 2}}})
	say("InsertMany without _id", len(many.InsertedIDs), fmt.Sprintf("%T", many.InsertedIDs[0]), err)

	up, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: 6}}}})
	say("UpdateOne", up, err)
	up, err = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: 6}}}})
	say("UpdateOne same", up, err)
	up, err = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 99}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: 6}}}}, options.UpdateOne().SetUpsert(true))
	say("UpdateOne upsert", up, err)
	up, err = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
		mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "n", Value: "$age"}}}}})
	say("UpdateOne pipeline", up, err)
	up, err = c.UpdateByID(ctx, 1, bson.M{"$inc": bson.M{"age": 1}})
	say("UpdateByID", up, err)
	up, err = c.UpdateMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{10, 11, 12}}}}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "m", Value: 1}}}})
	say("UpdateMany", up, err)
	up, err = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "_id", Value: 5}}}})
	say("UpdateOne _id", up == nil, err)
	up, err = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "arr", Value: bson.A{1, 5, 9}}}}})
	say("UpdateOne array", up, err)
	up, err = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "arr.$[e]", Value: 0}}}},
		options.UpdateOne().SetArrayFilters([]any{bson.D{{Key: "e", Value: bson.D{{Key: "$gt", Value: 4}}}}}))
	say("UpdateOne filters", up, err)
	up, err = c.ReplaceOne(ctx, bson.D{{Key: "_id", Value: 99}}, bson.D{{Key: "r", Value: 1}})
	say("ReplaceOne", up, err)
	up, err = c.ReplaceOne(ctx, bson.D{{Key: "_id", Value: 98}}, user{98, "r", 0}, options.Replace().SetUpsert(true))
	say("ReplaceOne upsert", up, err)
	n, err := c.CountDocuments(ctx, bson.D{})
	say("CountDocuments", n, err)
	n, err = c.CountDocuments(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: 15}}}},
		options.Count().SetLimit(3).SetSkip(1))
	say("CountDocuments limited", n, err)
	n, err = c.EstimatedDocumentCount(ctx)
	say("EstimatedDocumentCount", n, err)
	for i, r := range []*mongo.DistinctResult{c.Distinct(ctx, "age", bson.D{}),
		c.Distinct(ctx, "name", bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: 15}}}}), c.Distinct(ctx, "none",
			bson.D{}), c.Distinct(ctx, "age", nil), c.Distinct(ctx, "age", bson.D{{Key: "$x", Value: 1}})} {
		array, err := r.Raw()
		say(fmt.Sprint("Distinct ", i), array, err, r.Err())
		var values []any
		say(fmt.Sprint("Distinct decoded ", i), r.Decode(&values), values)
		var ints []int
		err = r.Decode(&ints)
		say(fmt.Sprint("Distinct ints ", i), err != nil, ints)
	}
	for i, r := range []*mongo.SingleResult{
		c.FindOne(ctx, bson.D{{Key: "_id", Value: 1}}), c.FindOne(ctx, bson.D{{Key: "_id", Value: 1000}}),
		c.FindOne(ctx, bson.M{}, options.FindOne().SetSort(bson.D{{Key: "_id",
			Value: 1}}).SetSkip(1).SetProjection(bson.D{{Key: "_id", Value: 1}})),
		c.FindOne(ctx, bson.D{{Key: "$bad", Value: 1}}), c.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 1}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: 50}}}}),
		c.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 1}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: 51}}}},
			options.FindOneAndUpdate().SetReturnDocument(options.After).SetProjection(bson.D{{Key: "age", Value: 1}})),
		c.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 1000}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: 51}}}}),
		c.FindOneAndReplace(ctx, bson.D{{Key: "_id", Value: 98}}, bson.D{{Key: "q", Value: 1}}),
		c.FindOneAndReplace(ctx, bson.D{{Key: "_id", Value: 97}}, bson.D{{Key: "q", Value: 1}},
			options.FindOneAndReplace().SetUpsert(true).SetReturnDocument(options.After)),
		c.FindOneAndReplace(ctx, bson.D{{Key: "_id", Value: 96}}, bson.D{{Key: "q", Value: 1}},
			options.FindOneAndReplace().SetUpsert(true)),
		c.FindOneAndDelete(ctx, bson.D{{Key: "_id", Value: 97}}),
		c.FindOneAndDelete(ctx, bson.D{{Key: "_id", Value: 97}}), c.FindOneAndUpdate(ctx,
			bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "_id", Value: 3}}}}),
		c.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 1}},
			bson.D{{Key: "$inc", Value: bson.D{{Key: "name", Value: 3}}}}),
	} {
		doc, err := r.Raw()
		say(fmt.Sprint("single ", i), doc, err, r.Err(), r.Acknowledged)
		var u user
		say(fmt.Sprint("single decoded ", i), r.Decode(&u), u)
		var m bson.M
		say(fmt.Sprint("single map ", i), r.Decode(&m), len(m))
	}
	del, err := c.DeleteOne(ctx, bson.D{{Key: "_id", Value: 31}})
	say("DeleteOne", del, err)
	del, err = c.DeleteOne(ctx, bson.D{{Key: "_id", Value: 31}})
	say("DeleteOne again", del, err)
	del, err = c.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{10, 11}}}}})
	say("DeleteMany", del, err)
	del, err = c.DeleteMany(ctx, bson.D{{Key: "$bad", Value: 1}})
	say("DeleteMany bad", del == nil, err)

	valid := "valid"
	check(db.CreateCollection(ctx, valid, options.CreateCollection().SetValidator(bson.D{{Key: "x",
		Value: bson.D{{Key: "$type", Value: "int"}}}})))
	v := db.Collection(valid)
	ins, err := v.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: "s"}})
	var we mongo.WriteException
	say("invalid", ins == nil, errors.As(err, &we),
		len(we.WriteErrors) == 1 && we.WriteErrors[0].Code == 121 && we.WriteErrors[0].Details != nil)
	_, err = v.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: "s"}},
		options.InsertOne().SetBypassDocumentValidation(true))
	say("bypassed", err)

	quiet := db.Collection("quiet", options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
	ins, err = quiet.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	say("unacknowledged InsertOne", ins, err)
	up, err = quiet.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
	say("unacknowledged UpdateOne", up, err)
	del, err = quiet.DeleteOne(ctx, bson.D{{Key: "_id", Value: 5}})
	say("unacknowledged DeleteOne", del, err)
	many, err = quiet.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 2}}, {{Key: "_id", Value: 3}}})
	say("unacknowledged InsertMany", many, err)
	w, err := quiet.BulkWrite(ctx,
		[]mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.D{{Key: "_id", Value: 4}})})
	say("unacknowledged BulkWrite", w, err)
	one := quiet.FindOneAndDelete(ctx, bson.D{{Key: "_id", Value: 9}})
	say("unacknowledged FindOneAndDelete", one.Err(), one.Acknowledged)

	bad := db.Collection("bad", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: 9}))
	ins, err = bad.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	say("concern InsertOne", ins, err)
	up, err = bad.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
	say("concern UpdateOne", up, err)
	del, err = bad.DeleteOne(ctx, bson.D{{Key: "_id", Value: 1}})
	say("concern DeleteOne", del, err)
	many, err = bad.InsertMany(ctx, []bson.D{{{Key: "_id", Value: 2}}, {{Key: "_id", Value: 3}}})
	say("concern InsertMany", many, err)
	ins, err = bad.InsertOne(ctx, bson.D{{Key: "_id", Value: 2}})
	say("concern duplicate", ins, err)
	one = bad.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 2}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
	doc, err := one.Raw()
	say("concern FindOneAndUpdate", doc, err, one.Err())
	w, err = bad.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.D{{Key: "_id",
		Value: 4}}), mongo.NewDeleteOneModel().SetFilter(bson.D{{Key: "_id", Value: 4}})})
	say("concern BulkWrite", w, err)
	say("concern Drop", bad.Drop(ctx))

	say("Ping", db.Client().Ping(ctx, nil), db.Client().Ping(ctx, readpref.Primary()),
		db.Client().Ping(nil, readpref.Nearest()))
	say("names", c.Name(), c.Database().Name(), c.Database().Client() == db.Client(), db.Client() != nil)
	say("clone", c.Clone(options.Collection().SetReadPreference(readpref.Nearest())).Name(), c.Clone() != c)
}
