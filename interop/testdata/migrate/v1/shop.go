// Package shop keeps the goods of a shop. It uses what programs use of version 1 of the driver.
package shop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/mongo/readconcern"
	"go.mongodb.org/mongo-driver/mongo/readpref"
	"go.mongodb.org/mongo-driver/mongo/writeconcern"
)

type Good struct {
	ID    primitive.ObjectID `bson:"_id,omitempty"`
	Name  string             `bson:"name"`
	Price int                `bson:"price"`
	Tags  []string           `bson:"tags,omitempty"`
}

type Shop struct {
	client *mongo.Client
	goods  *mongo.Collection
}

func Open(ctx context.Context, uri string) (*Shop, error) {
	client, err := mongo.Connect(ctx, options.Client().ApplyURI(uri).SetAppName("shop").SetMaxPoolSize(20).SetServerSelectionTimeout(5*time.Second))
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx, readpref.Primary()); err != nil {
		return nil, err
	}
	db := client.Database("shop")
	return &Shop{client: client, goods: db.Collection("goods", options.Collection().SetReadConcern(readconcern.Majority()).SetWriteConcern(writeconcern.Majority()))}, nil
}

// OpenWith has its options in a variable.
func OpenWith(uri string) (*mongo.Client, error) {
	opts := options.Client()
	opts.ApplyURI(uri)
	opts.SetRetryWrites(true)
	return mongo.Connect(context.Background(), opts)
}

// OpenSoon needs its context for Connect alone.
func OpenSoon(uri string) (*mongo.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return mongo.Connect(ctx, options.Client().ApplyURI(uri))
}

func (s *Shop) Close(ctx context.Context) error { return s.client.Disconnect(ctx) }

func (s *Shop) Prepare(ctx context.Context) (string, error) {
	if err := s.goods.Drop(ctx); err != nil {
		return "", err
	}
	names, err := s.goods.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: bson.D{{Key: "name", Value: 1}}, Options: options.Index().SetUnique(true).SetName("by_name")},
		{Keys: bson.D{{Key: "price", Value: -1}}},
	})
	if err != nil {
		return "", err
	}
	seen := options.Index().SetExpireAfterSeconds(3600).SetSparse(len(names) == 2)
	var view mongo.IndexView = s.goods.Indexes()
	return view.CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "seen", Value: 1}}, Options: seen})
}

func (s *Shop) Add(ctx context.Context, g *Good) error {
	res, err := s.goods.InsertOne(ctx, g)
	if mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("there is a %s already", g.Name)
	}
	if err != nil {
		return err
	}
	g.ID = res.InsertedID.(primitive.ObjectID)
	return nil
}

func (s *Shop) AddMany(ctx context.Context, goods []Good) (int, error) {
	docs := make([]any, len(goods))
	for i, g := range goods {
		docs[i] = g
	}
	res, err := s.goods.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
	if err != nil {
		return 0, err
	}
	return len(res.InsertedIDs), nil
}

func (s *Shop) ByName(ctx context.Context, name string) (*Good, error) {
	var g Good
	err := s.goods.FindOne(ctx, bson.M{"name": name}, options.FindOne().SetSort(bson.D{{Key: "price", Value: 1}})).Decode(&g)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &g, nil
}

// Has declares its error in the head of an if.
func (s *Shop) Has(ctx context.Context, name string) (bool, error) {
	var g struct{ Name string }
	if err := s.goods.FindOne(ctx, bson.M{"name": name}).Decode(&g); err == mongo.ErrNoDocuments {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return g.Name == name, nil
}

func (s *Shop) result(ctx context.Context, filter any) *mongo.SingleResult {
	return s.goods.FindOne(ctx, filter)
}

// Names reports whether a document has a name.
func Names(raw bson.Raw) bool {
	return raw.Lookup("name").Type == bsontype.String
}

func (s *Shop) Raw(ctx context.Context, name string) (bson.Raw, error) {
	res := s.result(ctx, bson.D{{Key: "name", Value: name}})
	if err := res.Err(); err != nil {
		return nil, err
	}
	return res.Raw()
}

func (s *Shop) Cheap(ctx context.Context, most int, limit int64) (list []Good, err error) {
	cur, err := s.goods.Find(ctx, bson.M{"price": bson.M{"$lte": most}}, options.Find().SetLimit(limit).SetSort(bson.D{{Key: "price", Value: 1}}).SetBatchSize(2))
	if err != nil {
		return nil, err
	}
	if err := cur.All(ctx, &list); err != nil {
		return nil, err
	}
	return list, nil
}

func (s *Shop) Each(ctx context.Context, fn func(Good) error) error {
	findOptions := options.Find()
	findOptions.SetSort(bson.D{{Key: "name", Value: 1}})
	findOptions.SetProjection(bson.M{"name": 1, "price": 1})
	cur, err := s.goods.Find(ctx, bson.D{}, findOptions)
	if err != nil {
		return err
	}
	defer cur.Close(ctx)
	for cur.Next(ctx) {
		var g Good
		if err := cur.Decode(&g); err != nil {
			return err
		}
		if cur.Current.Lookup("name").StringValue() != g.Name {
			return errors.New("the raw document differs")
		}
		if err := fn(g); err != nil {
			return err
		}
	}
	return cur.Err()
}

func (s *Shop) Raise(ctx context.Context, name string, by int) (*mongo.UpdateResult, error) {
	return s.goods.UpdateOne(ctx, bson.M{"name": name}, bson.M{"$inc": bson.M{"price": by}}, options.Update().SetUpsert(true))
}

func (s *Shop) Rename(ctx context.Context, id primitive.ObjectID, name string) error {
	res, err := s.goods.UpdateByID(ctx, id, bson.D{{Key: "$set", Value: bson.D{{Key: "name", Value: name}}}})
	if err != nil {
		return err
	}
	if res.MatchedCount == 0 {
		return mongo.ErrNoDocuments
	}
	return nil
}

func (s *Shop) Tag(ctx context.Context, name, tag string) (g Good, err error) {
	after := options.FindOneAndUpdate().SetReturnDocument(options.After)
	err = s.goods.FindOneAndUpdate(ctx, bson.M{"name": name}, bson.M{"$push": bson.M{"tags": tag}}, after).Decode(&g)
	return g, err
}

func (s *Shop) Swap(ctx context.Context, name string, with Good) (old Good, err error) {
	err = s.goods.FindOneAndReplace(ctx, bson.M{"name": name}, with).Decode(&old)
	return old, err
}

func (s *Shop) Take(ctx context.Context, name string) (g Good, err error) {
	err = s.goods.FindOneAndDelete(ctx, bson.M{"name": name}).Decode(&g)
	return
}

func (s *Shop) Total(ctx context.Context) (int, error) {
	cur, err := s.goods.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$group", Value: bson.M{"_id": nil, "total": bson.M{"$sum": "$price"}}}},
	}, options.Aggregate().SetAllowDiskUse(true))
	if err != nil {
		return 0, err
	}
	var sums []struct{ Total int }
	if err = cur.All(ctx, &sums); err != nil || len(sums) == 0 {
		return 0, err
	}
	return sums[0].Total, nil
}

func (s *Shop) Count(ctx context.Context) (int64, int64, error) {
	n, err := s.goods.CountDocuments(ctx, bson.M{}, options.Count().SetLimit(100))
	if err != nil {
		return 0, 0, err
	}
	estimated, err := s.goods.EstimatedDocumentCount(ctx)
	return n, estimated, err
}

func (s *Shop) Bulk(ctx context.Context) (*mongo.BulkWriteResult, error) {
	models := []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(Good{Name: "nail", Price: 1}),
		mongo.NewUpdateOneModel().SetFilter(bson.M{"name": "nail"}).SetUpdate(bson.M{"$set": bson.M{"price": 2}}).SetUpsert(true),
		mongo.NewUpdateManyModel().SetFilter(bson.M{}).SetUpdate(bson.M{"$inc": bson.M{"price": 1}}),
		mongo.NewReplaceOneModel().SetFilter(bson.M{"name": "nail"}).SetReplacement(Good{Name: "screw", Price: 3}),
		mongo.NewDeleteOneModel().SetFilter(bson.M{"name": "screw"}),
		mongo.NewDeleteManyModel().SetFilter(bson.M{"name": "none"}),
	}
	return s.goods.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(true))
}

func (s *Shop) Clear(ctx context.Context, name string) (int64, error) {
	if _, err := s.goods.DeleteOne(ctx, bson.M{"name": name}); err != nil {
		return 0, err
	}
	res, err := s.goods.DeleteMany(ctx, bson.M{"price": bson.M{"$gt": 1000}})
	if err != nil {
		return 0, err
	}
	return res.DeletedCount, nil
}

func (s *Shop) Move(ctx context.Context, from, to string, n int) error {
	sess, err := s.client.StartSession()
	if err != nil {
		return err
	}
	defer sess.EndSession(ctx)
	_, err = sess.WithTransaction(ctx, func(ctx mongo.SessionContext) (interface{}, error) {
		if _, err := s.goods.UpdateOne(ctx, bson.M{"name": from}, bson.M{"$inc": bson.M{"price": -n}}); err != nil {
			return nil, err
		}
		return s.goods.UpdateOne(ctx, bson.M{"name": to}, bson.M{"$inc": bson.M{"price": n}})
	}, options.Transaction().SetWriteConcern(writeconcern.Majority()))
	return err
}

func (s *Shop) ByHand(ctx context.Context, name string) error {
	return s.client.UseSession(ctx, func(ctx mongo.SessionContext) error {
		if err := ctx.StartTransaction(); err != nil {
			return err
		}
		if _, err := s.goods.DeleteOne(ctx, bson.M{"name": name}); err != nil {
			return err
		}
		return ctx.AbortTransaction(ctx)
	})
}

func (s *Shop) Version(ctx context.Context) (string, error) {
	var info struct{ Version string }
	err := s.client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&info)
	return info.Version, err
}

func (s *Shop) Collections(ctx context.Context) ([]string, error) {
	return s.client.Database("shop").ListCollectionNames(ctx, bson.M{"name": "goods"})
}

// Names returns the different names.
func (s *Shop) Names(ctx context.Context) ([]interface{}, error) {
	return s.goods.Distinct(ctx, "name", bson.M{})
}

// Parse reads an identifier.
func Parse(s string) (primitive.ObjectID, error) {
	if !primitive.IsValidObjectID(s) {
		return primitive.NilObjectID, errors.New("no identifier")
	}
	return primitive.ObjectIDFromHex(s)
}

// Query has types of package primitive.
func Query(prefix string, since time.Time) primitive.D {
	return primitive.D{{Key: "name", Value: primitive.Regex{Pattern: "^" + prefix, Options: "i"}}, {Key: "at", Value: primitive.M{"$gte": primitive.NewDateTimeFromTime(since)}}}
}

// Unindex drops an index.
func (s *Shop) Unindex(ctx context.Context, name string) error {
	_, err := s.goods.Indexes().DropOne(ctx, name)
	return err
}

// Code returns the code of an error of the server's.
func Code(err error) int32 {
	var cmd mongo.CommandError
	if errors.As(err, &cmd) {
		return cmd.Code
	}
	return 0
}

func (s *Shop) Broken(ctx context.Context) error {
	_, err := s.goods.Find(ctx, bson.M{"a": bson.M{"$nothing": 1}})
	return err
}
