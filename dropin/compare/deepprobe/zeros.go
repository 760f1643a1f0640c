package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// An optional is a method that has options.
type optional struct {
	of      any
	name    string
	builder any // the function that makes the options
	args    []any
}

// optionals are the methods of a collection, of its database and its client.
func optionals(c *mongo.Collection) []optional {
	set, db := d("$set", d("a", 1)), c.Database()
	models := []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(d("_id", 9)),
		mongo.NewUpdateOneModel().SetFilter(d()).SetUpdate(set), mongo.NewDeleteOneModel().SetFilter(d())}
	return append(moreOptionals(c),
		optional{c, "InsertOne", options.InsertOne, []any{d("_id", 9)}},
		optional{c, "InsertMany", options.InsertMany, []any{[]any{d("_id", 9)}}},
		optional{c, "UpdateOne", updateOptions, []any{d("_id", 1), set}},
		optional{c, "UpdateMany", updateManyOptions, []any{d("_id", 1), set}},
		optional{c, "ReplaceOne", options.Replace, []any{d("_id", 1), d("a", 1)}},
		optional{c, "DeleteOne", deleteOptions, []any{d("_id", 1)}},
		optional{c, "DeleteMany", deleteManyOptions, []any{d("_id", 1)}},
		optional{c, "Find", options.Find, []any{d()}}, optional{c, "FindOne", options.FindOne, []any{d()}},
		optional{c, "FindOneAndUpdate", options.FindOneAndUpdate, []any{d("_id", 1), set}},
		optional{c, "FindOneAndReplace", options.FindOneAndReplace, []any{d("_id", 1), d("a", 1)}},
		optional{c, "FindOneAndDelete", options.FindOneAndDelete, []any{d("_id", 1)}},
		optional{c, "CountDocuments", options.Count, []any{d()}},
		optional{c, "EstimatedDocumentCount", options.EstimatedDocumentCount, nil},
		optional{c, "Distinct", options.Distinct, []any{"x", d()}},
		optional{c, "Aggregate", options.Aggregate, []any{[]bson.D{}}},
		optional{c, "BulkWrite", options.BulkWrite, []any{models}},
		optional{on{c}, "Write", func() *mongo.InsertOneModel {
			return mongo.NewInsertOneModel().SetDocument(d("_id", 9))
		}, nil},
		optional{on{c}, "Write", func() *mongo.UpdateOneModel {
			return mongo.NewUpdateOneModel().SetFilter(d()).SetUpdate(set)
		}, nil},
		optional{on{c}, "Write", func() *mongo.UpdateManyModel {
			return mongo.NewUpdateManyModel().SetFilter(d()).SetUpdate(set)
		}, nil},
		optional{on{c}, "Write", func() *mongo.ReplaceOneModel {
			return mongo.NewReplaceOneModel().SetFilter(d()).SetReplacement(d("a", 1))
		}, nil},
		optional{on{c}, "Write", func() *mongo.DeleteOneModel { return mongo.NewDeleteOneModel().SetFilter(d()) }, nil},
		optional{on{c}, "Write", func() *mongo.DeleteManyModel {
			return mongo.NewDeleteManyModel().SetFilter(d())
		}, nil},
		optional{c, "Watch", options.ChangeStream, []any{[]bson.D{}}},
		optional{c.Indexes(), "List", options.ListIndexes, nil},
		optional{on{c}, "Index", options.Index, nil},
		optional{db, "CreateCollection", options.CreateCollection, []any{"other"}},
		optional{db, "CreateView", options.CreateView, []any{"other", "zeros", []bson.D{}}},
		optional{db, "ListCollections", options.ListCollections, []any{d()}},
		optional{db, "ListCollectionNames", options.ListCollections, []any{d()}},
		optional{db.Client(), "ListDatabases", options.ListDatabases, []any{d()}})
}

// on is a collection with two more methods whose last argument is what has setters.
type on struct{ c *mongo.Collection }

// Write is a bulk write of one model.
func (o on) Write(ctx context.Context, model mongo.WriteModel) error {
	_, err := o.c.BulkWrite(ctx, []mongo.WriteModel{model})
	return err
}

// Index makes an index.
func (o on) Index(ctx context.Context, opts any) error {
	model := mongo.IndexModel{Keys: d("x", 1)}
	reflect.ValueOf(&model.Options).Elem().Set(reflect.ValueOf(opts))
	_, err := o.c.Indexes().CreateOne(ctx, model)
	return err
}

// zeros calls each method with each setter of its options, and the zero of what the setter takes:
// what is sent says whether a value that was set is told from one that was not.
func zeros() {
	var sent []any
	client, err := newClient(options.Client().ApplyURI(uri), options.Client().SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			var cmd bson.D
			if bson.Unmarshal(e.Command, &cmd) != nil {
				sent = append(sent, "broken")
				return
			}
			cmd = slices.DeleteFunc(cmd, func(e bson.E) bool {
				return slices.Contains([]string{"lsid", "$clusterTime", "txnNumber", "$db"}, e.Key)
			})
			raw, err := bson.Marshal(cmd)
			must(err)
			sent = append(sent, say.Dump(bson.Raw(raw)))
		}}))
	must(err)
	defer func() { _ = client.Disconnect(ctx) }()
	db := admin.Database("zeros")
	for _, method := range optionals(client.Database("zeros").Collection("c")) {
		builder := reflect.ValueOf(method.builder)
		setters := []string{""}
		for m := range builder.Type().Out(0).Methods() {
			if strings.HasPrefix(m.Name, "Set") && m.Type.NumIn() == 2 {
				setters = append(setters, m.Name)
			}
		}
		for _, setter := range setters {
			must(db.Drop(ctx))
			_, err := db.Collection("c").InsertMany(ctx, []any{d("_id", 1, "x", "a"), d("_id", 2, "x", "b")})
			must(err)
			sent = nil
			what := fmt.Sprintf("zero %T.%s %s", method.of, method.name, setter)
			if method.name == "Write" {
				what = fmt.Sprintf("zero %s %s", builder.Type().Out(0), setter)
			}
			say.Try(what, func() []any {
				opts := builder.Call(nil)[0]
				if setter != "" {
					m := opts.MethodByName(setter)
					m.Call([]reflect.Value{zero(m.Type().In(0))})
				}
				in := []reflect.Value{reflect.ValueOf(ctx)}
				for _, a := range method.args {
					in = append(in, reflect.ValueOf(a))
				}
				failed := failure(reflect.ValueOf(method.of).MethodByName(method.name).Call(append(in, opts)))
				if failed != nil {
					sent = append(sent, fmt.Sprintf("%T %s", failed, start(failed.Error())))
				}
				return sent
			})
		}
	}
}

// failure is the error of a call, or of what it returned.
func failure(results []reflect.Value) error {
	for _, r := range results {
		switch x := r.Interface().(type) {
		case error:
			return x
		case interface{ Err() error }:
			if !r.IsNil() && x.Err() != nil {
				return x.Err()
			}
		}
	}
	return nil
}

// zero is the zero of a type, or what a pointer to the zero of a struct is.
func zero(t reflect.Type) reflect.Value {
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		return reflect.New(t.Elem())
	}
	return reflect.Zero(t)
}
