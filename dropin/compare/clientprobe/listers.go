package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// errSetter is what a setter of an option returns in listers.
var errSetter = errors.New("a setter's error")

// builders are the listers of options, with the functions in their fields Opts.
func builders() []any {
	return []any{
		options.Aggregate(), options.GridFSBucket(), options.BulkWrite(), options.ChangeStream(),
		options.ClientBulkWrite(), options.Collection(), options.Count(), options.CreateCollection(),
		options.CreateIndexes(), options.CreateView(), options.SearchIndexes(),
		options.Database(), options.DeleteMany(), options.DeleteOne(), options.Distinct(), options.DropCollection(),
		options.DropIndexes(), options.EstimatedDocumentCount(), options.FindOneAndDelete(),
		options.FindOneAndReplace(), options.FindOneAndUpdate(), options.FindOne(), options.Find(),
		options.GridFSFind(), options.GridFSName(), options.GridFSUpload(), options.InsertMany(), options.InsertOne(),
		options.ListCollections(), options.ListDatabases(), options.ListIndexes(), options.Replace(), options.RunCmd(),
		options.Session(), options.Transaction(), options.UpdateMany(), options.UpdateOne(),
	}
}

// listers calls each method that takes options with such whose second setter fails, after options
// that are nil and a setter that is nil, and prints which setters were called and what it returns.
func listers(db *mongo.Database) {
	session, err := db.Client().StartSession()
	check(err)
	defer session.EndSession(ctx)
	for _, on := range []any{
		db.Client(), db, db.Collection("listers"), db.Collection("listers").Indexes(),
		db.Collection("listers").SearchIndexes(), db.GridFSBucket(), session,
	} {
		v := reflect.ValueOf(on)
		for m := range v.Type().Methods() {
			if m.Name == "GridFSBucket" {
				continue // it returns no error: the official driver panics
			}
			if m.Type.IsVariadic() {
				name := fmt.Sprint("listers ", v.Type(), ".", m.Name)
				try(name, func() { failing(name, v.MethodByName(m.Name)) })
			}
		}
	}
}

// failing calls a method with options that fail.
func failing(name string, method reflect.Value) {
	t := method.Type()
	lister := t.In(t.NumIn() - 1).Elem()
	if lister.Kind() != reflect.Interface || lister.NumMethod() == 0 {
		return
	}
	for _, b := range builders() {
		builder := reflect.New(reflect.TypeOf(b).Elem())
		if !builder.Type().Implements(lister) {
			continue
		}
		calls := ""
		setters := builder.Elem().FieldByName("Opts")
		setter := func(called string, err error) {
			f := reflect.MakeFunc(setters.Type().Elem(), func([]reflect.Value) []reflect.Value {
				calls += called
				out := reflect.New(setters.Type().Elem().Out(0)).Elem()
				if err != nil {
					out.Set(reflect.ValueOf(err))
				}
				return []reflect.Value{out}
			})
			setters.Set(reflect.Append(setters, f))
		}
		setter("a", nil)
		setters.Set(reflect.Append(setters, reflect.Zero(setters.Type().Elem())))
		setter("b", errSetter)
		setter("c", nil)
		args := make([]reflect.Value, 0, t.NumIn()+2)
		for i := range t.NumIn() - 1 {
			args = append(args, argument(name, t.In(i)))
		}
		args = append(args, reflect.Zero(lister), reflect.Zero(builder.Type()), builder)
		var results []any
		for _, r := range method.Call(args) {
			results = append(results, returned(r))
		}
		say(name, append(results, calls)...)
		return
	}
	say(name, "no builder for", lister)
}

// returned returns what of a result is compared: errors, and whether others are there.
func returned(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case error:
		return fmt.Sprintf("%T %q %v", x, x, errors.Is(x, errSetter))
	case *mongo.SingleResult:
		return fmt.Sprintf("%q %v", fmt.Sprint(x.Err()), errors.Is(x.Err(), errSetter))
	default:
		return fmt.Sprint(v.Type(), v.IsZero())
	}
}

// argument returns an argument of a type that methods take.
func argument(method string, t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case reflect.TypeOf(ctx).AssignableTo(t) && t.NumMethod() > 0:
		v.Set(reflect.ValueOf(ctx))
	case t == reflect.TypeFor[any]() && (strings.HasSuffix(method, "Aggregate") || strings.HasSuffix(method, "View")):
		v.Set(reflect.ValueOf(mongo.Pipeline{}))
	case t == reflect.TypeFor[any]() && strings.Contains(method, "Replace"):
		v.Set(reflect.ValueOf(bson.D{{Key: "a", Value: 1}}))
	case t == reflect.TypeFor[mongo.IndexModel]():
		v.Set(reflect.ValueOf(mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}}))
	case t == reflect.TypeFor[any]():
		v.Set(reflect.ValueOf(bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}))
	case t == reflect.TypeFor[[]mongo.WriteModel]():
		v.Set(reflect.ValueOf([]mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.D{})}))
	case t.Kind() == reflect.String:
		v.SetString("x")
	}
	return v
}
