// Command clientprobe1 is the program clientprobe for version 1: what package mongo does with the
// deployment whose connection string its argument is.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/event"
	"go.mongodb.org/mongo-driver/mongo"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/mongo/readconcern"
	"go.mongodb.org/mongo-driver/mongo/readpref"
	"go.mongodb.org/mongo-driver/mongo/writeconcern"
)

var (
	ctx = context.Background()
	uri string
)

func main() {
	uri = os.Args[1]
	defer say.Flush()
	client, err := mongo.Connect(ctx, options.Client().ApplyURI(uri))
	if err != nil {
		panic(err)
	}
	db := client.Database("probe1")
	must(db.Drop(ctx))
	errorsOf(client)
	writes(db)
	finds(db)
	modifies(db)
	bulk(db)
	indexes(db)
	indexOptions(db)
	databases(client, db)
	sessions(client, db)
	changes(db)
	files(db)
	settings(client)
	monitors()
	timestamps()
	must(db.Drop(ctx))
	line("disconnect", client.Disconnect(ctx), client.Disconnect(ctx), client.Ping(ctx, nil))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// line prints a line: what was done, and what came of it.
func line(what string, values ...any) {
	parts := make([]any, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case error:
			parts[i] = described(v)
		case nil:
			parts[i] = "nil"
		case bson.M:
			parts[i] = inOrder(v)
		case []bson.M:
			texts := make([]string, len(v))
			for j, m := range v {
				texts[j] = inOrder(m)
			}
			parts[i] = texts
		default:
			parts[i] = fmt.Sprintf("%+v", v)
		}
	}
	say.Line(what, parts...)
}

// inOrder is a document with its keys in order, and the types of its values.
func inOrder(m bson.M) string {
	var parts []string
	for k, v := range m {
		text := fmt.Sprintf("%T %v", v, v)
		if in, ok := v.(bson.M); ok {
			text = "M" + inOrder(in)
		}
		if d, ok := v.(primitive.DateTime); ok {
			text = fmt.Sprint("DateTime ", int64(d))
		}
		parts = append(parts, k+": "+text)
	}
	sort.Strings(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}

// described says of what type an error is, and what can be asked of it.
func described(err error) string {
	text := fmt.Sprintf("%T %q", err, err.Error())
	var (
		command mongo.CommandError
		write   mongo.WriteException
		bulk    mongo.BulkWriteException
		labeled mongo.LabeledError
		server  mongo.ServerError
		marshal mongo.MarshalError
	)
	concern := func(e *mongo.WriteConcernError) string {
		if e == nil {
			return "nil"
		}
		return fmt.Sprintf("{%d %s %q %v raw=%t}", e.Code, e.Name, e.Message, e.Details, e.Raw != nil)
	}
	if errors.As(err, &command) {
		text += fmt.Sprintf(" command{%d %s %q %v raw=%v wrapped=%v max=%v}", command.Code, command.Name,
			command.Message, command.Labels, len(command.Raw) > 0, command.Wrapped, command.IsMaxTimeMSExpiredError())
	}
	if errors.As(err, &write) {
		text += fmt.Sprintf(" write{%v %v raw=%v", concern(write.WriteConcernError), write.Labels, len(write.Raw) > 0)
		for _, e := range write.WriteErrors {
			text += fmt.Sprintf(" [%d %d %q %v %t]", e.Index, e.Code, e.Message, e.Details, e.Raw != nil)
		}
		text += "}"
	}
	if errors.As(err, &bulk) {
		text += fmt.Sprintf(" bulk{%v %v", concern(bulk.WriteConcernError), bulk.Labels)
		for _, e := range bulk.WriteErrors {
			text += fmt.Sprintf(" [%d %d %q %v request=%T]", e.Index, e.Code, e.Message, e.Details, e.Request)
		}
		text += "}"
	}
	if errors.As(err, &marshal) {
		text += fmt.Sprintf(" marshal{%T %v}", marshal.Value, marshal.Err)
	}
	text += fmt.Sprintf(" labeled=%t server=%t duplicate=%t timeout=%t network=%t", errors.As(err, &labeled),
		errors.As(err, &server), mongo.IsDuplicateKeyError(err), mongo.IsTimeout(err), mongo.IsNetworkError(err))
	for name, sentinel := range map[string]error{
		"ErrNoDocuments": mongo.ErrNoDocuments, "ErrNilDocument": mongo.ErrNilDocument,
		"ErrEmptySlice": mongo.ErrEmptySlice, "ErrClientDisconnected": mongo.ErrClientDisconnected,
		"ErrWrongClient": mongo.ErrWrongClient, "ErrUnacknowledgedWrite": mongo.ErrUnacknowledgedWrite,
		"ErrMultipleIndexDrop": mongo.ErrMultipleIndexDrop, "ErrInvalidIndexValue": mongo.ErrInvalidIndexValue,
	} {
		if err == sentinel {
			text += " is " + name
		}
	}
	return text
}

// errorsOf prints what becomes of wrong arguments, and of what the server refuses.
func errorsOf(client *mongo.Client) {
	coll := client.Database("probe1").Collection("errors")
	for name, f := range map[string]func() (any, error){
		"insert nil":      func() (any, error) { return coll.InsertOne(ctx, nil) },
		"insert int":      func() (any, error) { return coll.InsertOne(ctx, 5) },
		"insert chan":     func() (any, error) { return coll.InsertOne(ctx, bson.M{"c": make(chan int)}) },
		"insert many nil": func() (any, error) { return coll.InsertMany(ctx, nil) },
		"insert many one": func() (any, error) { return coll.InsertMany(ctx, []any{nil}) },
		"update nil":      func() (any, error) { return coll.UpdateOne(ctx, bson.M{}, nil) },
		"update fields":   func() (any, error) { return coll.UpdateOne(ctx, bson.M{}, bson.M{"a": 1}) },
		"update empty":    func() (any, error) { return coll.UpdateMany(ctx, bson.M{}, bson.D{}) },
		"update id nil":   func() (any, error) { return coll.UpdateByID(ctx, nil, bson.M{"$set": bson.M{"a": 1}}) },
		"update filter":   func() (any, error) { return coll.UpdateOne(ctx, nil, bson.M{"$set": bson.M{"a": 1}}) },
		"update bad": func() (any, error) {
			return coll.UpdateOne(ctx, bson.M{}, bson.M{"$bad": bson.M{"a": 1}})
		},
		"replace operator": func() (any, error) { return coll.ReplaceOne(ctx, bson.M{}, bson.M{"$set": 1}) },
		"delete nil":       func() (any, error) { return coll.DeleteOne(ctx, nil) },
		"delete hint": func() (any, error) {
			return coll.DeleteMany(ctx, bson.M{}, options.Delete().SetHint(bson.M{"a": 1, "b": 1}))
		},
		"find nil": func() (any, error) { return coll.Find(ctx, nil) },
		"find bad": func() (any, error) { return coll.Find(ctx, bson.M{"a": bson.M{"$bad": 1}}) },
		"find sort": func() (any, error) {
			return coll.Find(ctx, bson.M{}, options.Find().SetSort(bson.M{"a": 1, "b": 1}))
		},
		"find one bad":   func() (any, error) { return nil, coll.FindOne(ctx, bson.M{"$bad": 1}).Err() },
		"find one none":  func() (any, error) { return nil, coll.FindOne(ctx, bson.M{"none": 1}).Err() },
		"aggregate nil":  func() (any, error) { return coll.Aggregate(ctx, nil) },
		"aggregate doc":  func() (any, error) { return coll.Aggregate(ctx, bson.D{{Key: "$match", Value: bson.M{}}}) },
		"aggregate int":  func() (any, error) { return coll.Aggregate(ctx, 5) },
		"aggregate bad":  func() (any, error) { return coll.Aggregate(ctx, mongo.Pipeline{{{Key: "$bad", Value: 1}}}) },
		"count nil":      func() (any, error) { return coll.CountDocuments(ctx, nil) },
		"distinct nil":   func() (any, error) { return coll.Distinct(ctx, "a", nil) },
		"bulk nil":       func() (any, error) { return coll.BulkWrite(ctx, nil) },
		"bulk nil model": func() (any, error) { return coll.BulkWrite(ctx, []mongo.WriteModel{nil}) },
		"index nil":      func() (any, error) { return coll.Indexes().CreateOne(ctx, mongo.IndexModel{}) },
		"index map": func() (any, error) {
			return coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"a": 1, "b": 1}})
		},
		"index bad": func() (any, error) {
			return coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "a", Value: "bad"}}})
		},
		"index drop *":    func() (any, error) { return coll.Indexes().DropOne(ctx, "*") },
		"index drop none": func() (any, error) { return coll.Indexes().DropOne(ctx, "none") },
		"command bad": func() (any, error) {
			return nil, coll.Database().RunCommand(ctx, bson.D{{Key: "bad", Value: 1}}).Err()
		},
		"command nil": func() (any, error) { return nil, coll.Database().RunCommand(ctx, nil).Err() },
		"max time": func() (any, error) {
			// The server decides by a fail point, not by its clock: both runs end the same way.
			must(coll.Database().Client().Database("admin").RunCommand(ctx,
				bson.D{{Key: "configureFailPoint", Value: "failCommand"},
					{Key: "mode", Value: bson.M{"times": 1}},
					{Key: "data", Value: bson.M{"failCommands": bson.A{"find"}, "errorCode": 50}}}).Err())
			return coll.Find(ctx, bson.M{}, options.Find().SetMaxTime(time.Minute))
		},
		"watch pipeline": func() (any, error) { return coll.Watch(ctx, 5) },
	} {
		v, err := f()
		if err != nil {
			v = "" // it does not matter
		}
		if c, ok := v.(*mongo.Cursor); ok && c != nil {
			v = "cursor"
		}
		line(name, v, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := coll.InsertOne(ended, bson.M{})
	line("canceled", errors.Is(err, context.Canceled), mongo.IsTimeout(err))
	late, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
	defer cancel()
	_, err = coll.InsertOne(late, bson.M{})
	line("late", errors.Is(err, context.DeadlineExceeded), mongo.IsTimeout(err))
	nowhere, err := mongo.Connect(ctx, options.Client().ApplyURI("mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50"))
	must(err)
	err = nowhere.Ping(ctx, nil)
	line("nowhere", strings.HasPrefix(err.Error(), "server selection error: "), mongo.IsTimeout(err))
	must(nowhere.Disconnect(ctx))
	other, err := mongo.Connect(ctx, options.Client().ApplyURI(uri))
	must(err)
	s, err := other.StartSession()
	must(err)
	_, err = coll.InsertOne(mongo.NewSessionContext(ctx, s), bson.M{})
	line("wrong client", err)
	s.EndSession(ctx)
	must(other.Disconnect(ctx))
}

// writes prints what inserts, updates and deletes return.
func writes(db *mongo.Database) {
	coll := db.Collection("writes")
	type doc struct {
		ID primitive.ObjectID `bson:"_id,omitempty"`
		N  int
	}
	one, err := coll.InsertOne(ctx, doc{N: 1})
	_, generated := one.InsertedID.(primitive.ObjectID)
	line("insert struct", generated, err)
	for _, d := range []any{bson.M{"_id": 1, "a": bson.M{"b": bson.A{1}}}, bson.D{{Key: "_id", Value: "x"}},
		bson.Raw{0x0e, 0, 0, 0, 0x10, '_', 'i', 'd', 0, 9, 0, 0, 0, 0}, map[string]int{"_id": 3},
		&doc{ID: primitive.ObjectID{7}}} {
		one, err = coll.InsertOne(ctx, d)
		line(fmt.Sprintf("insert %T", d), one, err)
	}
	one, err = coll.InsertOne(ctx, bson.M{"_id": 1})
	line("insert twice", one == nil, err)
	many, err := coll.InsertMany(ctx, []any{bson.M{"_id": 10}, bson.M{"_id": 11}})
	line("insert many", many, err)
	for _, ordered := range []bool{true, false} {
		many, err = coll.InsertMany(ctx, []any{bson.M{"_id": fmt.Sprint("a", ordered)}, bson.M{"_id": 10},
			bson.M{"_id": fmt.Sprint("b", ordered)}}, options.InsertMany().SetOrdered(ordered))
		line(fmt.Sprint("insert many twice ", ordered), many, err)
	}
	updates := map[string]func() (*mongo.UpdateResult, error){
		"a one": func() (*mongo.UpdateResult, error) {
			return coll.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"z": 1}})
		},
		"b id": func() (*mongo.UpdateResult, error) {
			return coll.UpdateByID(ctx, 1, bson.D{{Key: "$inc", Value: bson.M{"z": 0}}})
		},
		"c none": func() (*mongo.UpdateResult, error) {
			return coll.UpdateOne(ctx, bson.M{"_id": "none"}, bson.M{"$set": bson.M{"z": 1}})
		},
		"d upsert": func() (*mongo.UpdateResult, error) {
			return coll.UpdateOne(ctx, bson.M{"_id": "up"}, bson.M{"$set": bson.M{"z": 1}},
				options.Update().SetUpsert(true))
		},
		"e upsert": func() (*mongo.UpdateResult, error) {
			return coll.ReplaceOne(ctx, bson.M{"_id": bson.D{{Key: "k", Value: 1}}}, bson.M{"q": 1},
				options.Replace().SetUpsert(true))
		},
		"f stages": func() (*mongo.UpdateResult, error) {
			return coll.UpdateOne(ctx, bson.M{"_id": 1}, mongo.Pipeline{{{Key: "$set", Value: bson.M{"p": "$z"}}}})
		},
		"g filters": func() (*mongo.UpdateResult, error) {
			return coll.UpdateMany(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"a.b.$[e]": 5}},
				options.Update().SetArrayFilters(options.ArrayFilters{Filters: []any{bson.M{"e": 1}}}))
		},
	}
	for _, name := range slices.Sorted(maps.Keys(updates)) {
		res, err := updates[name]()
		line("update "+name, res, err)
	}
	var m bson.M
	line("updated", coll.FindOne(ctx, bson.M{"_id": 1}).Decode(&m), m)
	del, err := coll.DeleteOne(ctx, bson.M{"_id": 1})
	line("delete one", del, err)
	del, err = coll.DeleteMany(ctx, bson.M{"_id": bson.M{"$type": "string"}})
	line("delete many", del, err)
	quiet, err := coll.Clone(options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
	line("clone", quiet.Name(), quiet.Database().Name(), err)
	one, err = quiet.InsertOne(ctx, bson.M{"_id": 77})
	line("unacknowledged insert", one, err)
	up, err := quiet.UpdateOne(ctx, bson.M{"_id": 77}, bson.M{"$set": bson.M{"a": 1}})
	line("unacknowledged update", up, err)
	del, err = quiet.DeleteOne(ctx, bson.M{"_id": 77})
	line("unacknowledged delete", del, err)
	line("unacknowledged modify", quiet.FindOneAndDelete(ctx, bson.M{"_id": 77}).Err())
	far, err := coll.Clone(options.Collection().SetWriteConcern(writeconcern.New(writeconcern.W(9),
		writeconcern.WTimeout(time.Millisecond))))
	must(err)
	one, err = far.InsertOne(ctx, bson.M{"_id": 78})
	line("write concern", one, err)
	must(db.CreateCollection(ctx, "valid",
		options.CreateCollection().SetValidator(bson.M{"a": bson.M{"$type": "string"}})))
	_, err = db.Collection("valid").InsertOne(ctx, bson.M{"_id": 1, "a": 1})
	line("validator", mongo.IsDuplicateKeyError(err), err != nil)
}

// finds prints what searches return.
func finds(db *mongo.Database) {
	coll := db.Collection("finds")
	var docs []any
	for i := range 7 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "t", Value: fmt.Sprint("t", i%3)},
			{Key: "in", Value: bson.D{{Key: "x", Value: bson.A{bson.D{{Key: "y", Value: i}}}}}}})
	}
	_, err := coll.InsertMany(ctx, docs)
	must(err)
	find := func(opts ...*options.FindOptions) *mongo.Cursor {
		c, err := coll.Find(ctx, bson.M{}, opts...)
		must(err)
		return c
	}
	c := find(options.Find().SetBatchSize(3).SetSort(bson.D{{Key: "_id", Value: -1}}))
	line("cursor", c.ID() != 0, c.RemainingBatchLength(), c.Err())
	for c.Next(ctx) {
		var d bson.D
		line("next "+c.Current.Lookup("_id").String(), c.Decode(&d), d, c.RemainingBatchLength())
	}
	line("end", c.Err(), c.ID(), c.TryNext(ctx), c.Close(ctx), c.Close(ctx))
	var ms []bson.M
	line("all M", find(options.Find().SetLimit(2).SetSkip(1).SetProjection(bson.M{"t": 0})).All(ctx, &ms), ms)
	type doc struct {
		ID int `bson:"_id"`
		T  string
		In any
	}
	var structs []doc
	line("all structs", find(options.Find().SetLimit(2).SetHint("_id_").SetComment("c").SetAllowDiskUse(true)).All(ctx,
		&structs), structs)
	var pointers []*doc
	line("all pointers", find(options.Find().SetLimit(1)).All(ctx, &pointers), *pointers[0])
	var raws []bson.Raw
	line("all raw", find(options.Find().SetLimit(1)).All(ctx, &raws), raws)
	line("all wrong", find().All(ctx, structs), find().All(ctx, 5), find().All(ctx, new(int)))
	var wrong []struct{ T int }
	line("all misfit", find().All(ctx, &wrong))
	for _, into := range []any{new(bson.D), new(bson.M), new(doc), new(map[string]any), new(any), new(bson.Raw),
		new(struct{ T int })} {
		err := coll.FindOne(ctx, bson.M{"_id": 1},
			options.FindOne().SetProjection(bson.D{{Key: "in", Value: 1}, {Key: "t", Value: 1}})).Decode(into)
		line(fmt.Sprintf("find one into %T", into), err)
		switch v := into.(type) {
		case *bson.D:
			line("find one D", *v)
		case *any:
			line("find one any", fmt.Sprintf("%T", *v), *v)
		case *doc:
			line("find one struct", *v, fmt.Sprintf("%T", v.In))
		case *bson.M:
			line("find one M", *v)
		}
	}
	res := coll.FindOne(ctx, bson.M{"_id": 2})
	raw, err := res.Raw()
	bytes, err2 := res.DecodeBytes()
	line("find one raw", raw, err, len(bytes) == len(raw), err2, res.Err())
	none := coll.FindOne(ctx, bson.M{"_id": "none"})
	raw, err = none.Raw()
	line("find none", raw, err, none.Decode(new(bson.D)), none.Err())
	n, err := coll.CountDocuments(ctx, bson.M{"t": "t0"}, options.Count().SetLimit(2).SetSkip(1))
	line("count", n, err)
	n, err = coll.EstimatedDocumentCount(ctx)
	line("estimated", n, err)
	values, err := coll.Distinct(ctx, "t", bson.M{})
	line("distinct", values, err)
	values, err = coll.Distinct(ctx, "in", bson.M{"_id": bson.M{"$lt": 2}})
	line("distinct documents", values, err, fmt.Sprintf("%T", values[0]))
	values, err = coll.Distinct(ctx, "none", bson.M{})
	line("distinct none", values, values == nil, err)
	agg, err := coll.Aggregate(ctx, mongo.Pipeline{{{Key: "$group",
		Value: bson.M{"_id": "$t", "n": bson.M{"$sum": 1}}}}, {{Key: "$sort", Value: bson.M{"_id": 1}}}},
		options.Aggregate().SetBatchSize(2).SetAllowDiskUse(true).SetMaxTime(time.Minute))
	must(err)
	line("aggregate", agg.All(ctx, &ms), ms)
	agg, err = coll.Aggregate(ctx, []bson.M{{"$match": bson.M{"_id": 1}}, {"$out": "outs"}})
	line("aggregate out", err, agg.All(ctx, &ms), ms)
	agg, err = coll.Aggregate(ctx, bson.A{bson.D{{Key: "$limit", Value: 1}}})
	line("aggregate A", err, agg.Next(ctx), agg.Current)
	must(agg.Close(ctx))
	local, err := mongo.NewCursorFromDocuments([]any{bson.M{"a": 1}, bson.D{{Key: "b", Value: 2}}}, nil, nil)
	line("local", err, local.Next(ctx), local.Current, local.RemainingBatchLength(), local.Next(ctx), local.Next(ctx),
		local.Err(), local.ID())
	_, err = mongo.NewCursorFromDocuments([]any{nil}, nil, nil)
	line("local nil", err)
	line("single", mongo.NewSingleResultFromDocument(bson.M{"a": 1}, nil, nil).Err(),
		mongo.NewSingleResultFromDocument(nil, nil, nil).Err(),
		mongo.NewSingleResultFromDocument(bson.M{}, errors.New("x"), nil).Err())
}

// modifies prints what finds that write return.
func modifies(db *mongo.Database) {
	coll := db.Collection("modifies")
	_, err := coll.InsertMany(ctx, []any{bson.M{"_id": 1, "n": 1}, bson.M{"_id": 2, "n": 2}, bson.M{"_id": 3, "n": 3}})
	must(err)
	one := func(name string, r *mongo.SingleResult) {
		var m bson.M
		err := r.Decode(&m)
		line("modify "+name, m, err)
	}
	one("before", coll.FindOneAndUpdate(ctx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 10}}))
	one("after", coll.FindOneAndUpdate(ctx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 10}},
		options.FindOneAndUpdate().SetReturnDocument(options.After)))
	one("none", coll.FindOneAndUpdate(ctx, bson.M{"_id": "x"}, bson.M{"$inc": bson.M{"n": 10}}))
	one("upsert", coll.FindOneAndUpdate(ctx, bson.M{"_id": "u"}, bson.M{"$inc": bson.M{"n": 10}},
		options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After).SetProjection(bson.M{"_id": 0})))
	one("replace", coll.FindOneAndReplace(ctx, bson.M{"n": bson.M{"$gt": 1}}, bson.M{"r": 1},
		options.FindOneAndReplace().SetSort(bson.M{"n": 1}).SetReturnDocument(options.After)))
	one("delete", coll.FindOneAndDelete(ctx, bson.M{},
		options.FindOneAndDelete().SetSort(bson.M{"_id": -1}).SetHint("_id_")))
	one("bad", coll.FindOneAndUpdate(ctx, bson.M{}, bson.M{"n": 1}))
	one("bad replacement", coll.FindOneAndReplace(ctx, bson.M{}, bson.M{"$n": 1}))
	one("nil", coll.FindOneAndDelete(ctx, nil))
}

// bulk prints what bulk writes return.
func bulk(db *mongo.Database) {
	coll := db.Collection("bulk")
	models := []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1}),
		mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 2}),
		mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": 1}).SetUpdate(bson.M{"$set": bson.M{"a": 1}}),
		mongo.NewUpdateManyModel().SetFilter(
			bson.M{"_id": "up"}).SetUpdate(bson.M{"$set": bson.M{"a": 1}}).SetUpsert(true),
		mongo.NewReplaceOneModel().SetFilter(
			bson.M{"_id": 2}).SetReplacement(bson.M{"b": 1}).SetCollation(&options.Collation{Locale: "en"}),
		mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": 1}).SetHint("_id_"),
		mongo.NewDeleteManyModel().SetFilter(bson.M{"none": 1}),
	}
	res, err := coll.BulkWrite(ctx, models)
	line("bulk", res, err)
	for _, ordered := range []bool{true, false} {
		res, err = coll.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 2}),
			mongo.NewInsertOneModel().SetDocument(bson.M{"_id": fmt.Sprint(ordered)}),
			mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(bson.M{"$bad": bson.M{"a": 1}}),
		}, options.BulkWrite().SetOrdered(ordered))
		line(fmt.Sprint("bulk errors ", ordered), res, err)
	}
	res, err = coll.BulkWrite(ctx,
		[]mongo.WriteModel{mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(bson.M{"a": 1})})
	line("bulk bad", res, err)
}

// indexOptions prints the indexes that the setters of options make.
func indexOptions(db *mongo.Database) {
	one := bson.D{{Key: "x", Value: 1}}
	for _, o := range []struct {
		name string
		keys any
		set  *options.IndexOptions
	}{
		{"Background", one, options.Index().SetBackground(true)},
		{"Background not", one, options.Index().SetBackground(false).SetUnique(true)},
		{"ExpireAfterSeconds", one, options.Index().SetExpireAfterSeconds(0)},
		{"Name", one, options.Index().SetName("n")},
		{"Sparse", one, options.Index().SetSparse(true)},
		{"Unique", one, options.Index().SetUnique(true)},
		{"StorageEngine", one, options.Index().SetStorageEngine(bson.D{{Key: "wiredTiger", Value: bson.D{}}})},
		{"Version", one, options.Index().SetVersion(1)},
		{"PartialFilterExpression", one, options.Index().SetPartialFilterExpression(bson.M{"y": 1})},
		{"Collation", one, options.Index().SetCollation(&options.Collation{Locale: "de", Strength: 2})},
		{"Hidden", one, options.Index().SetHidden(true)},
		{"texts", bson.D{{Key: "x", Value: "text"}}, options.Index().SetDefaultLanguage("german").
			SetLanguageOverride("l").SetTextVersion(3).SetWeights(bson.M{"x": 5}).SetBackground(true)},
		{"Sphere", bson.D{{Key: "x", Value: "2dsphere"}}, options.Index().SetSphereVersion(2)},
		{"2d", bson.D{{Key: "x", Value: "2d"}}, options.Index().SetBits(20).SetMin(-9.5).SetMax(9.5)},
		{"WildcardProjection", bson.D{{Key: "$**", Value: 1}}, options.Index().SetWildcardProjection(one)},
	} {
		coll := db.Collection("index options " + o.name)
		_, err := coll.Indexes().CreateMany(ctx, []mongo.IndexModel{{Keys: bson.D{{Key: "y", Value: 1}}},
			{Keys: o.keys, Options: o.set}})
		line("index option "+o.name, err)
		c, err := coll.Indexes().List(ctx)
		must(err)
		var docs []bson.M
		must(c.All(ctx, &docs))
		for _, doc := range docs {
			line("index with "+o.name, doc)
		}
	}
}

// indexes prints what indexes are made of.
func indexes(db *mongo.Database) {
	coll := db.Collection("indexes")
	name, err := coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1},
		{Key: "b", Value: -1}}, Options: options.Index().SetUnique(true).SetSparse(true)})
	line("create one", name, err)
	names, err := coll.Indexes().CreateMany(ctx, []mongo.IndexModel{{Keys: bson.M{"c": 1}},
		{Keys: bson.D{{Key: "t", Value: "text"}}, Options: options.Index().SetName("named").SetExpireAfterSeconds(9)}},
		options.CreateIndexes().SetMaxTime(time.Minute))
	line("create many", names, err)
	specs, err := coll.Indexes().ListSpecifications(ctx)
	for _, s := range specs {
		line("index "+s.Name, s.KeysDocument, s.Namespace, s.Version, s.Unique != nil && *s.Unique,
			s.Sparse != nil && *s.Sparse, s.ExpireAfterSeconds != nil, s.Clustered)
	}
	line("list specifications", len(specs), err)
	c, err := coll.Indexes().List(ctx, options.ListIndexes().SetBatchSize(1))
	must(err)
	var ms []bson.M
	line("list", c.All(ctx, &ms), len(ms))
	raw, err := coll.Indexes().DropOne(ctx, "c_1")
	line("drop one", raw.Lookup("nIndexesWas"), err)
	raw, err = coll.Indexes().DropOneWithKey(ctx, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}})
	line("drop with key", raw.Lookup("nIndexesWas"), err)
	raw, err = coll.Indexes().DropAll(ctx)
	line("drop all", raw.Lookup("nIndexesWas"), err)
	raw, err = db.Collection("no indexes").Indexes().DropAll(ctx)
	line("drop none", raw != nil, err)
	d := mongo.NewIndexOptionsBuilder().Name("n").Unique(true).ExpireAfterSeconds(5).Build()
	line("builder", d)
}

// databases prints what is said of databases and collections.
func databases(client *mongo.Client, db *mongo.Database) {
	names, err := client.ListDatabaseNames(ctx, bson.M{"name": "probe1"})
	line("database names", names, err)
	res, err := client.ListDatabases(ctx, bson.M{"name": "probe1"}, options.ListDatabases().SetNameOnly(true))
	line("databases", len(res.Databases), res.Databases[0].Name, err)
	must(db.CreateCollection(ctx, "capped", options.CreateCollection().SetCapped(true).SetSizeInBytes(4096)))
	must(db.CreateView(ctx, "view", "finds", mongo.Pipeline{{{Key: "$match", Value: bson.M{"_id": 1}}}}))
	line("create twice", db.CreateCollection(ctx, "capped", options.CreateCollection().SetCapped(false)))
	names, err = db.ListCollectionNames(ctx, bson.M{"name": bson.M{"$in": bson.A{"capped", "view", "finds"}}})
	sort.Strings(names)
	line("collection names", names, err)
	specs, err := db.ListCollectionSpecifications(ctx, bson.M{"name": bson.M{"$in": bson.A{"capped", "view"}}})
	for _, s := range specs {
		line("collection "+s.Name, s.Type, s.ReadOnly, s.UUID != nil, s.IDIndex != nil, len(s.Options) > 5)
	}
	line("specifications", len(specs), err)
	var m bson.M
	line("command", db.RunCommand(ctx, bson.D{{Key: "ping", Value: 1}},
		options.RunCmd().SetReadPreference(readpref.Primary())).Decode(&m), m["ok"])
	c, err := db.RunCommandCursor(ctx, bson.D{{Key: "find", Value: "finds"}, {Key: "filter", Value: bson.M{"_id": 1}},
		{Key: "projection", Value: bson.M{"_id": 1}}})
	must(err)
	var ms []bson.M
	line("command cursor", c.All(ctx, &ms), ms)
	line("names", db.Name(), db.Collection("x").Name(), db.Client() == client, db.ReadPreference(), db.ReadConcern(),
		db.WriteConcern())
	other := client.Database(
		"o", options.Database().SetReadConcern(
			readconcern.Majority()).SetWriteConcern(writeconcern.W1()).SetReadPreference(readpref.Nearest()))
	line("database settings", other.ReadConcern(), other.WriteConcern().W, other.ReadPreference())
	line("drop", db.Collection("capped").Drop(ctx), db.Collection("capped").Drop(ctx))
	line("timeout", client.Timeout(), client.NumberSessionsInProgress())
	line("connect again", client.Connect(ctx))
}

// sessions prints what sessions and transactions do.
func sessions(client *mongo.Client, db *mongo.Database) {
	coll := db.Collection("sessions")
	_, err := coll.InsertOne(ctx, bson.M{"_id": 0})
	must(err)
	s, err := client.StartSession(
		options.Session().SetDefaultReadConcern(readconcern.Snapshot()).SetDefaultWriteConcern(writeconcern.Majority()))
	must(err)
	line("session", s.Client() == client, len(s.ID()) > 0, s.ClusterTime() != nil, s.OperationTime() == nil,
		client.NumberSessionsInProgress())
	line("no transaction", s.AbortTransaction(ctx), s.CommitTransaction(ctx))
	line("start", s.StartTransaction(), s.StartTransaction())
	sc := mongo.NewSessionContext(ctx, s)
	_, err = coll.InsertOne(sc, bson.M{"_id": 1})
	n, _ := coll.CountDocuments(ctx, bson.M{"_id": 1})
	in, _ := coll.CountDocuments(sc, bson.M{"_id": 1})
	line("in transaction", err, n, in, mongo.SessionFromContext(sc) == s, mongo.SessionFromContext(ctx) == nil)
	line("commit", s.CommitTransaction(sc), s.CommitTransaction(sc), s.AbortTransaction(sc))
	line("abort", s.StartTransaction(), s.AbortTransaction(ctx), s.AbortTransaction(ctx), s.CommitTransaction(ctx))
	calls := 0
	res, err := s.WithTransaction(ctx, func(sc mongo.SessionContext) (any, error) {
		calls++
		if calls < 3 {
			return nil, mongo.CommandError{Code: 1, Labels: []string{"TransientTransactionError"}}
		}
		_, err := coll.InsertOne(sc, bson.M{"_id": 2})
		return "done", err
	}, options.Transaction().SetWriteConcern(writeconcern.Majority()))
	line("with transaction", res, err, calls)
	res, err = s.WithTransaction(ctx, func(mongo.SessionContext) (any, error) { return 5, errors.New("mine") })
	line("with transaction error", res, err)
	line("advance", s.AdvanceClusterTime(s.ClusterTime()), s.AdvanceOperationTime(s.OperationTime()))
	s.EndSession(ctx)
	line("ended", s.StartTransaction())
	err = client.UseSession(ctx, func(sc mongo.SessionContext) error {
		if err := sc.StartTransaction(); err != nil {
			return err
		}
		_, err := coll.InsertOne(sc, bson.M{"_id": 3})
		must(err)
		return errors.New("mine")
	})
	n, _ = coll.CountDocuments(ctx, bson.M{"_id": 3})
	line("use session", err, n)
	err = client.UseSessionWithOptions(ctx, options.Session().SetSnapshot(true), func(sc mongo.SessionContext) error {
		return coll.FindOne(sc, bson.M{"_id": 0}).Err()
	})
	line("snapshot", err)
	s, err = client.StartSession()
	must(err)
	line("with session", mongo.WithSession(ctx, s, func(sc mongo.SessionContext) error {
		_, err := coll.InsertOne(sc, bson.M{"_id": 4})
		return err
	}), s.OperationTime() != nil)
	s.EndSession(ctx)
	line("sessions left", client.NumberSessionsInProgress())
}

// changes prints what change streams have.
func changes(db *mongo.Database) {
	coll := db.Collection("changes")
	must(db.CreateCollection(ctx, "changes"))
	cs, err := coll.Watch(ctx, mongo.Pipeline{{{Key: "$match",
		Value: bson.M{"operationType": bson.M{"$in": bson.A{"insert", "update"}}}}}},
		options.ChangeStream().SetFullDocument(options.UpdateLookup).SetMaxAwaitTime(100*time.Millisecond))
	must(err)
	line("stream", cs.ID() != 0, cs.TryNext(ctx), cs.Err(), cs.RemainingBatchLength(), cs.ResumeToken() != nil)
	_, err = coll.InsertOne(ctx, bson.M{"_id": 1, "a": bson.M{"b": 1}})
	must(err)
	_, err = coll.UpdateByID(ctx, 1, bson.M{"$set": bson.M{"z": 1}})
	must(err)
	for range 2 {
		var e struct {
			OperationType string `bson:"operationType"`
			FullDocument  bson.M `bson:"fullDocument"`
			NS            struct{ DB, Coll string }
		}
		line("event", cs.Next(ctx), cs.Decode(&e), e.OperationType, e.NS)
		line("event of "+e.OperationType, e.FullDocument)
	}
	token := cs.ResumeToken()
	line("close", cs.Close(ctx), cs.Next(ctx), cs.ID())
	cs, err = coll.Watch(ctx, mongo.Pipeline{},
		options.ChangeStream().SetResumeAfter(token).SetMaxAwaitTime(100*time.Millisecond))
	line("resumed", err, cs.TryNext(ctx), cs.Err())
	must(cs.Close(ctx))
}

// settings prints what registries and settings of encoding do.
func settings(client *mongo.Client) {
	// The official driver keeps what it has learned of a struct type, also which tags count. So the
	// tags of JSON are for a type of their own, and nothing depends on the order of the map.
	type user struct {
		ID int `bson:"_id"`
		M  map[string]int
		S  []int
		I  int64
		J  string `json:"jay"`
		B  primitive.Binary
		D  bson.D
	}
	type tagged user
	for name, o := range map[string]*options.BSONOptions{
		"D": {DefaultDocumentD: true}, "M": {DefaultDocumentM: true},
		"nil":   {NilMapAsEmpty: true, NilSliceAsEmpty: true, NilByteSliceAsEmpty: true},
		"small": {IntMinSize: true, UseJSONStructTags: true}, "local": {UseLocalTimeZone: true, BinaryAsSlice: true},
	} {
		coll := client.Database("probe1", options.Database().SetBSONOptions(o)).Collection("settings" + name)
		doc := user{1, nil, nil, 5, "j", primitive.Binary{Data: []byte{1}}, bson.D{{Key: "in", Value: bson.D{}}}}
		var v any = doc
		if o.UseJSONStructTags {
			v = tagged(doc)
		}
		_, err := coll.InsertOne(ctx, v)
		raw, err2 := coll.FindOne(ctx, bson.M{}).Raw()
		line("settings "+name, err, raw, err2)
		var m struct {
			D any
			B any
		}
		line("settings decoded "+name, coll.FindOne(ctx, bson.M{}).Decode(&m), fmt.Sprintf("%T %T", m.D, m.B))
		var top bson.M
		line("settings M "+name, coll.FindOne(ctx, bson.M{}).Decode(&top), fmt.Sprintf("%T", top["d"]))
	}
}

// monitors prints which events there are.
// timestamps prints which commands have the option BypassEmptyTsReplacement.
func timestamps() {
	var sent []string
	client, err := mongo.Connect(ctx, options.Client().ApplyURI(uri).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			v, err := e.Command.LookupErr("bypassEmptyTsReplacement")
			sent = append(sent, fmt.Sprint(e.CommandName, " ", v, " ", err == nil))
		},
	}))
	must(err)
	defer client.Disconnect(ctx)
	coll := client.Database("probe1").Collection("timestamps")
	zero := bson.D{{Key: "at", Value: primitive.Timestamp{}}}
	set := bson.D{{Key: "$set", Value: zero}}
	for _, bypass := range []*bool{nil, new(bool), func() *bool { b := true; return &b }()} {
		for name, run := range map[string]func() error{
			"InsertOne": func() error {
				_, err := coll.InsertOne(ctx, zero, &options.InsertOneOptions{BypassEmptyTsReplacement: bypass})
				return err
			},
			"InsertMany": func() error {
				o := options.InsertMany()
				o.BypassEmptyTsReplacement = bypass
				_, err := coll.InsertMany(ctx, []any{zero}, o)
				return err
			},
			"UpdateOne": func() error {
				_, err := coll.UpdateOne(ctx, bson.D{}, set, &options.UpdateOptions{BypassEmptyTsReplacement: bypass})
				return err
			},
			"UpdateByID": func() error {
				_, err := coll.UpdateByID(ctx, 1, set, &options.UpdateOptions{BypassEmptyTsReplacement: bypass})
				return err
			},
			"UpdateMany": func() error {
				_, err := coll.UpdateMany(ctx, bson.D{}, set, &options.UpdateOptions{BypassEmptyTsReplacement: bypass})
				return err
			},
			"ReplaceOne": func() error {
				o := options.Replace()
				o.BypassEmptyTsReplacement = bypass
				_, err := coll.ReplaceOne(ctx, bson.D{}, zero, o)
				return err
			},
			"FindOneAndReplace": func() error {
				o := options.FindOneAndReplace()
				o.BypassEmptyTsReplacement = bypass
				return coll.FindOneAndReplace(ctx, bson.D{}, zero, o).Err()
			},
			"FindOneAndUpdate": func() error {
				o := options.FindOneAndUpdate()
				o.BypassEmptyTsReplacement = bypass
				return coll.FindOneAndUpdate(ctx, bson.D{}, set, o).Err()
			},
			"BulkWrite": func() error {
				o := options.BulkWrite()
				o.BypassEmptyTsReplacement = bypass
				_, err := coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(zero),
					mongo.NewUpdateManyModel().SetFilter(zero).SetUpdate(set),
					mongo.NewDeleteOneModel().SetFilter(zero)}, o)
				return err
			},
		} {
			must(coll.Drop(ctx))
			_, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
			must(err)
			sent = nil
			err = run()
			at, _ := coll.FindOne(ctx, bson.D{{Key: "at", Value: primitive.Timestamp{}}}).Raw()
			line("timestamps "+name, bypass != nil && *bypass, bypass != nil, err, sent, at != nil)
		}
	}
}

func monitors() {
	var mu sync.Mutex
	counts := map[string]int{}
	count := func(name string) {
		mu.Lock()
		counts[name]++
		mu.Unlock()
	}
	var command, reply bson.Raw
	opts := options.Client().ApplyURI(uri).SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			count("started " + e.CommandName)
			command = e.Command
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			count("succeeded " + e.CommandName)
			reply = e.Reply
		},
		Failed: func(_ context.Context, e *event.CommandFailedEvent) {
			count("failed " + e.CommandName + " " + e.Failure)
		},
	}).SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
		count("pool " + e.Type)
	}}).SetServerMonitor(&event.ServerMonitor{
		TopologyOpening: func(*event.TopologyOpeningEvent) { count("topology opening") },
		ServerOpening:   func(*event.ServerOpeningEvent) { count("server opening") },
		ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
			if e.NewDescription.DataBearing() {
				count("server " + e.NewDescription.Kind.String())
			}
		},
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) {
			if e.NewDescription.HasWritableServer() {
				count("topology " + e.NewDescription.Kind.String())
			}
		},
	})
	client, err := mongo.Connect(ctx, opts)
	must(err)
	coll := client.Database("probe1").Collection("monitors")
	_, err = coll.InsertOne(ctx, bson.M{"_id": 1})
	must(err)
	mu.Lock()
	line("monitored", command.Lookup("insert").StringValue(), command.Lookup("$db").StringValue(),
		reply.Lookup("n").AsInt64())
	mu.Unlock()
	_, err = coll.InsertOne(ctx, bson.M{"_id": 1})
	line("monitored twice", mongo.IsDuplicateKeyError(err))
	line("monitored error", coll.FindOne(ctx, bson.M{"$bad": 1}).Err() != nil)
	must(client.Disconnect(ctx))
	mu.Lock()
	defer mu.Unlock()
	for _, name := range []string{"started insert", "succeeded insert", "started find", "topology opening",
		"server opening", "server RSPrimary", "topology ReplicaSetWithPrimary", "pool ConnectionPoolCreated",
		"pool ConnectionPoolReady", "pool ConnectionCheckedOut", "pool ConnectionPoolClosed"} {
		line("events "+name, counts[name] > 0)
	}
	for name := range counts {
		if strings.HasPrefix(name, "failed") {
			line("events", name)
		}
	}
}
