package main

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// duplicate inserts a document twice.
func duplicate(ctx context.Context, db *mongo.Database) error {
	c := db.Collection("things")
	_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	check(err)
	_, err = c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	return err
}

// unknown runs a command that there is not.
func unknown(ctx context.Context, db *mongo.Database) error {
	return db.RunCommand(ctx, bson.D{{Key: "noSuchCommand", Value: 1}}).Err()
}

func init() {
	add("errors/as value", func(ctx context.Context, db *mongo.Database) {
		err := duplicate(ctx, db)
		var we mongo.WriteException
		fmt.Println(errors.As(err, &we), len(we.WriteErrors), we.WriteConcernError == nil)
		for _, e := range we.WriteErrors {
			fmt.Println(e.Code, e.Index, e.HasErrorCode(11000), e.HasErrorCode(1))
		}
		fmt.Println(we.HasErrorCode(11000), we.HasErrorMessage("E11000"), we.HasErrorLabel("x"), we.HasErrorCodeWithMessage(11000, "dup"))
	})
	add("errors/as wrapped", func(ctx context.Context, db *mongo.Database) {
		err := fmt.Errorf("saving: %w", duplicate(ctx, db))
		var we mongo.WriteException
		fmt.Println(errors.As(err, &we), we.WriteErrors[0].Code)
		var ce mongo.CommandError
		fmt.Println(errors.As(err, &ce), ce.Code)
		var be mongo.BulkWriteException
		fmt.Println(errors.As(err, &be), len(be.WriteErrors))
	})
	add("errors/as pointer", func(ctx context.Context, db *mongo.Database) {
		err := duplicate(ctx, db)
		var we *mongo.WriteException
		fmt.Println(errors.As(err, &we), we == nil)
		other := new(mongo.WriteException)
		fmt.Println(errors.As(err, other), len(other.WriteErrors))
	})
	add("errors/as literal", func(ctx context.Context, db *mongo.Database) {
		ce := mongo.CommandError{}
		if err := unknown(ctx, db); errors.As(err, &ce) {
			fmt.Println(ce.Code, ce.Name, len(ce.Labels), ce.HasErrorLabel("x"), ce.IsMaxTimeMSExpiredError())
		}
	})
	add("errors/as interface", func(ctx context.Context, db *mongo.Database) {
		for _, err := range []error{duplicate(ctx, db), unknown(ctx, db), errors.New("other")} {
			var se mongo.ServerError
			if errors.As(err, &se) {
				fmt.Println(se.HasErrorCode(11000), se.HasErrorCode(59), se.HasErrorLabel("x"), se.HasErrorMessage("E11000"), se.HasErrorCodeWithMessage(59, "no such"))
			} else {
				fmt.Println("none")
			}
		}
	})
	add("errors/as own interface", func(ctx context.Context, db *mongo.Database) {
		var coded interface{ HasErrorCode(int) bool }
		fmt.Println(errors.As(unknown(ctx, db), &coded), coded != nil && coded.HasErrorCode(59))
		var labeled mongo.LabeledError
		fmt.Println(errors.As(duplicate(ctx, db), &labeled))
	})
	add("errors/assertion", func(ctx context.Context, db *mongo.Database) {
		err := unknown(ctx, db)
		ce, ok := err.(mongo.CommandError)
		fmt.Println(ok, ce.Code)
		_, ok = err.(mongo.WriteException)
		fmt.Println(ok)
		se, ok := err.(mongo.ServerError)
		fmt.Println(ok && se.HasErrorCode(59))
		_, ok = fmt.Errorf("wrapped: %w", err).(mongo.CommandError)
		fmt.Println(ok)
		fmt.Println(err.(mongo.CommandError).Name)
		_, ok = err.(interface{ HasErrorLabel(string) bool })
		fmt.Println(ok)
	})
	add("errors/assertion panics", func(ctx context.Context, db *mongo.Database) {
		defer func() { fmt.Println(recover() != nil) }()
		_ = unknown(ctx, db).(mongo.WriteException)
	})
	add("errors/switch", func(ctx context.Context, db *mongo.Database) {
		wrapped := fmt.Errorf("wrapped: %w", duplicate(ctx, db))
		check(db.Drop(ctx))
		for _, err := range []error{duplicate(ctx, db), unknown(ctx, db), wrapped, mongo.ErrNoDocuments, nil} {
			switch e := err.(type) {
			case nil:
				fmt.Println("nil")
			case mongo.WriteException:
				fmt.Println("write", e.WriteErrors[0].Code)
			case mongo.CommandError:
				fmt.Println("command", e.Code)
			default:
				fmt.Println("other", errors.Is(e, mongo.ErrNoDocuments), mongo.IsDuplicateKeyError(e))
			}
			switch err.(type) {
			case mongo.BulkWriteException, mongo.CommandError:
				fmt.Println("bulk or command")
			case mongo.ServerError:
				fmt.Println("server")
			}
		}
	})
	add("errors/bulk", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("things")
		docs := []any{bson.M{"_id": 1}, bson.M{"_id": 1}, bson.M{"_id": 2}, bson.M{"_id": 2}}
		_, err := c.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
		var be mongo.BulkWriteException
		fmt.Println(errors.As(err, &be), len(be.WriteErrors))
		for _, e := range be.WriteErrors {
			fmt.Println(e.Index, e.Code, e.WriteError.Code)
		}
		var we mongo.WriteException
		fmt.Println(errors.As(err, &we), mongo.IsDuplicateKeyError(err), be.HasErrorCode(11000), be.HasErrorLabel("x"))
		_, err = c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1}), mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 9})})
		be = mongo.BulkWriteException{}
		if be, ok := err.(mongo.BulkWriteException); ok {
			fmt.Println(len(be.WriteErrors), be.WriteErrors[0].Index, be.WriteConcernError == nil)
		}
		n, err := c.CountDocuments(ctx, bson.D{})
		fmt.Println(n, err)
	})
	add("errors/made by the program", func(ctx context.Context, db *mongo.Database) {
		err := error(mongo.CommandError{Code: 11000, Message: "E11000", Name: "DuplicateKey", Labels: []string{"TransientTransactionError"}})
		var ce mongo.CommandError
		fmt.Println(errors.As(err, &ce), ce.Code, mongo.IsDuplicateKeyError(err), mongo.IsTimeout(err), ce.HasErrorLabel("TransientTransactionError"))
		err = mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: 121, Message: "invalid"}}, WriteConcernError: &mongo.WriteConcernError{Code: 64, Name: "WriteConcernFailed"}}
		var we mongo.WriteException
		fmt.Println(errors.As(err, &we), we.HasErrorCode(121), we.HasErrorCode(64), mongo.IsDuplicateKeyError(err))
		err = mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{{WriteError: mongo.WriteError{Code: 11000, Index: 3}}}}
		fmt.Println(mongo.IsDuplicateKeyError(err))
		if be, ok := err.(mongo.BulkWriteException); ok {
			fmt.Println(be.WriteErrors[0].Index)
		}
	})
	add("errors/no documents", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("things")
		var doc bson.M
		err := c.FindOne(ctx, bson.D{{Key: "x", Value: 1}}).Decode(&doc)
		fmt.Println(err == mongo.ErrNoDocuments, errors.Is(err, mongo.ErrNoDocuments), doc == nil)
		res := c.FindOne(ctx, bson.D{})
		fmt.Println(res.Err() == mongo.ErrNoDocuments)
		err = c.FindOneAndUpdate(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}).Decode(&doc)
		fmt.Println(err == mongo.ErrNoDocuments)
		err = c.FindOneAndDelete(ctx, bson.D{}).Err()
		fmt.Println(err == mongo.ErrNoDocuments)
		err = c.FindOneAndReplace(ctx, bson.D{}, bson.D{{Key: "x", Value: 1}}).Err()
		fmt.Println(err == mongo.ErrNoDocuments)
	})
	add("errors/nil document", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("things")
		_, err := c.InsertOne(ctx, nil)
		fmt.Println(errors.Is(err, mongo.ErrNilDocument))
		_, err = c.Find(ctx, nil)
		fmt.Println(errors.Is(err, mongo.ErrNilDocument))
		_, err = c.DeleteOne(ctx, nil)
		fmt.Println(errors.Is(err, mongo.ErrNilDocument))
		fmt.Println(errors.Is(c.FindOne(ctx, nil).Err(), mongo.ErrNilDocument))
	})
	add("errors/timeout", func(ctx context.Context, db *mongo.Database) {
		done, cancel := context.WithCancel(ctx)
		cancel()
		err := db.Collection("things").FindOne(done, bson.D{}).Err()
		fmt.Println(errors.Is(err, context.Canceled), mongo.IsTimeout(err))
		err = mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64}}
		fmt.Println(mongo.IsTimeout(err), mongo.IsTimeout(context.DeadlineExceeded), mongo.IsTimeout(mongo.CommandError{Code: 50}), mongo.IsTimeout(nil))
	})
	add("errors/command in find", func(ctx context.Context, db *mongo.Database) {
		_, err := db.Collection("things").Find(ctx, bson.D{{Key: "$noSuch", Value: 1}})
		var ce mongo.CommandError
		fmt.Println(errors.As(err, &ce), ce.Code, ce.Raw != nil)
		_, err = db.Collection("things").UpdateOne(ctx, bson.D{{Key: "$noSuch", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
		var we mongo.WriteException
		fmt.Println(errors.As(err, &we), len(we.WriteErrors), errors.As(err, &ce))
	})
	add("errors/fields", func(ctx context.Context, db *mongo.Database) {
		check2 := func(we mongo.WriteException) int { return len(we.WriteErrors) }
		var we mongo.WriteException
		if errors.As(duplicate(ctx, db), &we) {
			fmt.Println(check2(we), we.Labels == nil, we.Raw == nil)
		}
		type holder struct{ last mongo.WriteError }
		h := holder{last: we.WriteErrors[0]}
		fmt.Println(h.last.Code)
	})
}
