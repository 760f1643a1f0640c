package wire

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"allium"
	"allium/bson"
	"allium/gridfs"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

type (
	named[V any] map[string]V
	keyName      string
	inlined      struct {
		Rest map[string]int `bson:",inline"`
	}
	// encodes has a method, and what it appends is its own affair.
	encodes map[string]int
)

func (e encodes) MarshalBSON() ([]byte, error) {
	return bson.Marshal(bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}})
}

// unorderedForms returns documents with the keys a and b whose order is random.
func unorderedForms() map[string]any {
	var iface any = map[string]int{"a": 1, "b": -1}
	generic := named[int8]{"a": 1, "b": -1}
	pointer := &generic
	return map[string]any{
		"bson.M": bson.M{"a": 1, "b": -1}, "map of int": map[string]int{"a": 1, "b": -1}, "map of any": map[string]any{"a": 1, "b": -1},
		"named keys": map[keyName]int32{"a": 1, "b": -1}, "named": generic, "pointer": pointer, "pointer to pointer": &pointer,
		"any": &iface, "inline": inlined{map[string]int{"a": 1, "b": -1}}, "pointer to inline": &inlined{map[string]int{"a": 1, "b": -1}},
		"integers": map[int]int{1: 1, 2: -1},
	}
}

// orderedForms returns documents with the key a, or with a and b in an order.
func orderedForms() map[string]any {
	one := named[int]{"a": 1}
	return map[string]any{
		"bson.D": bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}, "struct": struct{ A, B int }{1, -1}, "one key": map[string]int{"a": 1},
		"pointer to one": &one, "inline": inlined{map[string]int{"a": 1}}, "encodes itself": encodes{"a": 1, "b": -1}, "raw": bson.Raw(rig.Must(bson.Marshal(bson.M{"a": 1}))),
	}
}

// TestOrderOfMaps hands every argument in which the order of keys decides a document that has none,
// in every Go type that becomes one: it is refused before anything is sent. Ordered documents pass.
func TestOrderOfMaps(t *testing.T) {
	d := testdeploy.Mock(t, "the commands that arrive are counted", mongotest.Version("8.0"))
	var sent atomic.Int64
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		switch c.Name {
		case "hello", "isMaster", "ping", "endSessions", "killCursors":
		default:
			sent.Add(1)
		}
		return nil, nil
	})
	client := rig.Open(t, d.URI())
	db := client.Database("d")
	ctx, coll := t.Context(), db.Collection("c")
	none, set := bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
	run := func(cmd any) error { return rig.ErrorOf(db.RunCommand(ctx, cmd)) }
	stage := func(name string, v any) bson.A { return bson.A{bson.D{{Key: name, Value: v}}} }
	sorted := func(v any) bson.M { return bson.M{"x": bson.M{"$sortArray": bson.M{"input": "$l", "sortBy": v}}} }
	expr := func(v any) bson.M {
		return bson.M{"$and": bson.A{bson.M{"$expr": bson.M{"$eq": bson.A{"$l", sorted(v)["x"]}}}}}
	}
	model := func(m allium.WriteModel) error {
		return errors.Join(rig.ErrorOf(coll.BulkWrite(ctx, []allium.WriteModel{m})), rig.ErrorOf(client.BulkWrite(ctx, []allium.WriteModel{m})))
	}
	arguments := map[string]func(v any) error{
		"CreateIndex": func(v any) error { return rig.ErrorOf(coll.CreateIndex(ctx, allium.IndexModel{Keys: v})) },
		"DropIndex":   func(v any) error { return coll.DropIndex(ctx, v) },
		"ModifyCollection": func(v any) error {
			return db.ModifyCollection(ctx, "c", allium.ModifyCollectionOptions{Index: &allium.IndexChange{Keys: v, Hidden: new(true)}})
		},
		"CreateCollection cluster": func(v any) error {
			return db.CreateCollection(ctx, "new", allium.CreateCollectionOptions{ClusteredIndex: bson.M{"key": v, "unique": true}})
		},
		"CreateCollection _id": func(v any) error {
			return db.CreateCollection(ctx, "new", allium.CreateCollectionOptions{IDIndex: bson.M{"key": v, "name": "x"}})
		},
		"CreateCollection view": func(v any) error {
			return db.CreateCollection(ctx, "new", allium.CreateCollectionOptions{ViewOn: "c", Pipeline: stage("$sort", v)})
		},
		"Find sort": func(v any) error { return rig.ErrorOf(coll.Find(ctx, none, allium.FindOptions{Sort: v})) },
		"Find hint": func(v any) error { return rig.ErrorOf(coll.Find(ctx, none, allium.FindOptions{Hint: v})) },
		"Find min":  func(v any) error { return rig.ErrorOf(coll.Find(ctx, none, allium.FindOptions{Min: v, Hint: "x"})) },
		"Find max":  func(v any) error { return rig.ErrorOf(coll.Find(ctx, none, allium.FindOptions{Max: v, Hint: "x"})) },
		"Find min, a value": func(v any) error {
			return rig.ErrorOf(coll.Find(ctx, none, allium.FindOptions{Min: bson.D{{Key: "a", Value: v}}, Hint: "x"}))
		},
		"FindOne sort": func(v any) error { return rig.ErrorOf(coll.FindOne(ctx, none, allium.FindOneOptions{Sort: v})) },
		"FindOneAndUpdate sort": func(v any) error {
			return rig.ErrorOf(coll.FindOneAndUpdate(ctx, none, set, allium.FindOneAndUpdateOptions{Sort: v}))
		},
		"FindOneAndReplace sort": func(v any) error {
			return rig.ErrorOf(coll.FindOneAndReplace(ctx, none, none, allium.FindOneAndReplaceOptions{Sort: v}))
		},
		"FindOneAndDelete hint": func(v any) error {
			return rig.ErrorOf(coll.FindOneAndDelete(ctx, none, allium.FindOneAndDeleteOptions{Hint: v}))
		},
		"UpdateOne hint": func(v any) error { return rig.ErrorOf(coll.UpdateOne(ctx, none, set, allium.UpdateOptions{Hint: v})) },
		"UpdateOne sort": func(v any) error { return rig.ErrorOf(coll.UpdateOne(ctx, none, set, allium.UpdateOptions{Sort: v})) },
		"UpdateOne $push": func(v any) error {
			return rig.ErrorOf(coll.UpdateOne(ctx, none, bson.M{"$push": bson.M{"l": bson.M{"$each": bson.A{}, "$sort": v}}}))
		},
		"UpdateOne pipeline": func(v any) error {
			return rig.ErrorOf(coll.UpdateOne(ctx, none, bson.A{bson.M{"$set": bson.M{"l": bson.M{"$sortArray": bson.M{"input": "$l", "sortBy": v}}}}}))
		},
		"DeleteMany hint":     func(v any) error { return rig.ErrorOf(coll.DeleteMany(ctx, none, allium.DeleteOptions{Hint: v})) },
		"Count hint":          func(v any) error { return rig.ErrorOf(coll.Count(ctx, none, allium.CountOptions{Hint: v})) },
		"CountDocuments hint": func(v any) error { return rig.ErrorOf(coll.CountDocuments(ctx, none, allium.CountOptions{Hint: v})) },
		"Distinct hint": func(v any) error {
			return rig.ErrorOf(allium.Distinct[any](ctx, coll, "x", none, allium.DistinctOptions{Hint: v}))
		},
		"bulk update sort": func(v any) error { return model(coll.UpdateOneModel(none, set, allium.UpdateModelOptions{Sort: v})) },
		"bulk update hint": func(v any) error { return model(coll.UpdateOneModel(none, set, allium.UpdateModelOptions{Hint: v})) },
		"bulk update $push": func(v any) error {
			return model(coll.UpdateOneModel(none, bson.D{{Key: "$push", Value: bson.D{{Key: "l", Value: bson.D{{Key: "$each", Value: bson.A{}}, {Key: "$sort", Value: v}}}}}}))
		},
		"bulk delete hint":  func(v any) error { return model(coll.DeleteOneModel(none, allium.DeleteModelOptions{Hint: v})) },
		"bulk replace sort": func(v any) error { return model(coll.ReplaceOneModel(none, none, allium.ReplaceModelOptions{Sort: v})) },
		"Aggregate hint":    func(v any) error { return rig.ErrorOf(coll.Aggregate(ctx, bson.A{}, allium.AggregateOptions{Hint: v})) },
		"Aggregate $sort":   func(v any) error { return rig.ErrorOf(coll.Aggregate(ctx, stage("$sort", v))) },
		"Aggregate $sort of typed stages": func(v any) error {
			type sort struct {
				Sort any `bson:"$sort"`
			}
			return rig.ErrorOf(coll.Aggregate(ctx, []sort{{v}}))
		},
		"Aggregate $lookup": func(v any) error {
			return rig.ErrorOf(coll.Aggregate(ctx, stage("$lookup", bson.M{"from": "x", "as": "y", "pipeline": stage("$sort", v)})))
		},
		"Aggregate $facet": func(v any) error {
			return rig.ErrorOf(coll.Aggregate(ctx, stage("$facet", bson.M{"x": stage("$sort", v), "y": bson.A{}})))
		},
		"Aggregate $top": func(v any) error {
			return rig.ErrorOf(coll.Aggregate(ctx, stage("$group", bson.M{"_id": 1, "x": bson.M{"$top": bson.M{"output": "$y", "sortBy": v}}})))
		},
		"Aggregate $setWindowFields": func(v any) error {
			return rig.ErrorOf(coll.Aggregate(ctx, stage("$setWindowFields", bson.M{"sortBy": v, "output": bson.M{}})))
		},
		"database Aggregate": func(v any) error {
			return rig.ErrorOf(db.Aggregate(ctx, bson.A{bson.M{"$documents": bson.A{}}, bson.M{"$sort": v}}))
		},
		"Watch": func(v any) error { return rig.ErrorOf(coll.Watch(ctx, stage("$sort", v))) },
		"GridFS sort": func(v any) error {
			return rig.ErrorOf(gridfs.NewBucket(db).Find(ctx, none, gridfs.FindOptions{Sort: v}))
		},
		"Find projection": func(v any) error {
			return rig.ErrorOf(coll.Find(ctx, none, allium.FindOptions{Projection: sorted(v)}))
		},
		"Find filter":           func(v any) error { return rig.ErrorOf(coll.Find(ctx, expr(v))) },
		"Find let":              func(v any) error { return rig.ErrorOf(coll.Find(ctx, none, allium.FindOptions{Let: sorted(v)})) },
		"CountDocuments filter": func(v any) error { return rig.ErrorOf(coll.CountDocuments(ctx, expr(v))) },
		"Distinct filter":       func(v any) error { return rig.ErrorOf(allium.Distinct[any](ctx, coll, "x", expr(v))) },
		"UpdateMany filter":     func(v any) error { return rig.ErrorOf(coll.UpdateMany(ctx, expr(v), set)) },
		"DeleteOne filter":      func(v any) error { return rig.ErrorOf(coll.DeleteOne(ctx, expr(v))) },
		"FindOneAndDelete projection": func(v any) error {
			return rig.ErrorOf(coll.FindOneAndDelete(ctx, none, allium.FindOneAndDeleteOptions{Projection: sorted(v)}))
		},
		"bulk delete filter": func(v any) error { return model(coll.DeleteManyModel(expr(v))) },
		"CreateCollection validator": func(v any) error {
			return db.CreateCollection(ctx, "new", allium.CreateCollectionOptions{Validator: expr(v)})
		},
		"ListCollections filter": func(v any) error {
			return rig.ErrorOf(db.ListCollections(ctx, allium.ListCollectionsOptions{Filter: expr(v)}))
		},
		"Aggregate $match":  func(v any) error { return rig.ErrorOf(coll.Aggregate(ctx, stage("$match", expr(v)))) },
		"Aggregate $search": func(v any) error { return rig.ErrorOf(coll.Aggregate(ctx, stage("$search", bson.M{"sort": v}))) },
		"Aggregate $rankFusion": func(v any) error {
			return rig.ErrorOf(coll.Aggregate(ctx, stage("$rankFusion", bson.M{"input": bson.M{"pipelines": bson.M{"x": stage("$search", bson.M{"sort": v})}}})))
		},
		"CreateSearchIndexes": func(v any) error {
			return rig.ErrorOf(coll.CreateSearchIndexes(ctx, []allium.SearchIndexModel{{Definition: bson.M{"sort": v, "mappings": none}}}))
		},
		"UpdateSearchIndex": func(v any) error { return coll.UpdateSearchIndex(ctx, "x", bson.M{"sort": v, "mappings": none}) },
		"RunCommand filter": func(v any) error { return run(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: expr(v)}}) },
		"RunCommand deletes": func(v any) error {
			return run(bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.M{"q": expr(v), "limit": 1}}}})
		},
		"RunCommand planCacheSetFilter": func(v any) error {
			return run(bson.D{{Key: "planCacheSetFilter", Value: "c"}, {Key: "query", Value: none}, {Key: "indexes", Value: bson.A{v}}})
		},
		"RunCommand setQuerySettings": func(v any) error {
			return run(bson.D{{Key: "setQuerySettings", Value: bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: v}}}})
		},
		"RunCommand indexHints": func(v any) error {
			return run(bson.D{{Key: "setQuerySettings", Value: "0"}, {Key: "settings", Value: bson.M{"indexHints": bson.M{"allowedIndexes": bson.A{v}, "ns": none}}}})
		},
		"RunCommand":         run,
		"RunCommand sort":    func(v any) error { return run(bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: v}}) },
		"RunCommand explain": func(v any) error { return run(bson.D{{Key: "explain", Value: v}}) },
		"RunCommand explain sort": func(v any) error {
			return run(bson.D{{Key: "explain", Value: bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: v}}}})
		},
		"RunCommand explain pipeline": func(v any) error {
			return run(bson.D{{Key: "explain", Value: bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: stage("$sort", v)}, {Key: "cursor", Value: none}}}})
		},
		"RunCommand createIndexes": func(v any) error {
			return run(bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.M{"name": "x", "key": v}}}})
		},
		"RunCommand shardCollection": func(v any) error { return run(bson.D{{Key: "shardCollection", Value: "d.c"}, {Key: "key", Value: v}}) },
		"RunCommand zones": func(v any) error {
			return run(bson.D{{Key: "updateZoneKeyRange", Value: "d.c"}, {Key: "min", Value: v}})
		},
		"RunCommand collMod": func(v any) error {
			return run(bson.D{{Key: "collMod", Value: "c"}, {Key: "index", Value: bson.M{"keyPattern": v, "hidden": true}}})
		},
		"RunCommand update": func(v any) error {
			return run(bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{bson.M{"q": none, "u": bson.M{"$push": bson.M{"l": bson.M{"$each": bson.A{}, "$sort": v}}}}}}})
		},
		"RunCommand bulkWrite": func(v any) error {
			return run(bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ops", Value: bson.A{v}}})
		},
		"RunCursorCommand": func(v any) error { return rig.ErrorOf(db.RunCursorCommand(ctx, v)) },
		"RunCursorCommand sort": func(v any) error {
			return rig.ErrorOf(db.RunCursorCommand(ctx, bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: v}}))
		},
	}
	for what, call := range arguments {
		for form, v := range unorderedForms() {
			before := sent.Load()
			err := call(v)
			if err == nil || !strings.Contains(err.Error(), "no order") {
				t.Errorf("%s, %s: %v", what, form, err)
			}
			if n := sent.Load() - before; n != 0 {
				t.Errorf("%s, %s: %d commands were sent", what, form, n)
			}
		}
		for form, v := range orderedForms() {
			if err := call(v); err != nil && strings.Contains(err.Error(), "no order") {
				t.Errorf("%s, %s: %v", what, form, err)
			}
		}
	}
}

// TestMapsWithoutOrder: maps stand where the order of keys means nothing to the server.
func TestMapsWithoutOrder(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI())
	db := client.Database("d")
	ctx, coll := t.Context(), db.Collection("c")
	two := map[string]int{"a": 1, "b": 1}
	for what, err := range map[string]error{
		"InsertOne":  rig.ErrorOf(coll.InsertOne(ctx, bson.D{{Key: "sort", Value: two}, {Key: "key", Value: two}, {Key: "$sort", Value: 1}}[:2])),
		"Find":       rig.ErrorOf(coll.Find(ctx, two, allium.FindOptions{Projection: two, Let: two, Comment: two, Sort: bson.M{"a": 1}})),
		"UpdateOne":  rig.ErrorOf(coll.UpdateOne(ctx, two, bson.M{"$set": two, "$push": bson.M{"l": two, "m": 1}})),
		"Aggregate":  rig.ErrorOf(coll.Aggregate(ctx, bson.A{bson.M{"$match": bson.M{"sort": two, "key": two}}, bson.M{"$project": two}, bson.M{"$sort": bson.M{"a": 1}}})),
		"RunCommand": rig.ErrorOf(db.RunCommand(ctx, bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: two}, {Key: "projection", Value: two}})),
		"insert": rig.ErrorOf(db.RunCommand(ctx, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{
			bson.M{"key": two, "sort": two, "pipeline": bson.A{two}, "hint": two}}}})),
		"one key":  rig.ErrorOf(db.RunCommand(ctx, map[string]any{"ping": 1})),
		"weights":  rig.ErrorOf(coll.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "a", Value: "text"}, {Key: "b", Value: "text"}}, Weights: two})),
		"partial":  rig.ErrorOf(coll.CreateIndex(ctx, allium.IndexModel{Keys: map[string]int{"z": 1}, PartialFilter: two})),
		"by order": coll.DropIndex(ctx, map[string]int{"z": 1}),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDropIndexNeverDropsAll hands DropIndex what becomes "*", an empty name or nothing, in every
// Go type: it is refused before anything is sent, and all indexes stay.
func TestDropIndexNeverDropsAll(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI())
	ctx, coll := t.Context(), client.Database("d").Collection("c")
	for _, key := range []string{"x", "y"} {
		if _, err := coll.CreateIndex(ctx, allium.IndexModel{Keys: bson.M{key: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	type name string
	star, empty := "*", ""
	wrapped, deep := name("*"), any(&star)
	for _, v := range []any{
		"*", name("*"), &star, &wrapped, &deep, new(&star), bson.RawValue{Type: bson.TypeString, Value: []byte("\x02\x00\x00\x00*\x00")}, rig.Must(bson.MarshalValue("*")),
		starred{}, &starred{}, bson.Symbol("*"), []string{"*"}, bson.A{"x_1", "*"},
		nil, "", name(""), &empty, (*string)(nil), bson.D{}, bson.D(nil), bson.M{}, struct{}{}, bson.Null{}, 1, true, []string{}, bson.Raw(nil),
	} {
		if err := coll.DropIndex(ctx, v); err == nil {
			t.Errorf("DropIndex(%T %v): no error", v, v)
		}
		if names, err := coll.ListIndexNames(ctx); err != nil || len(names) != 3 {
			t.Fatalf("DropIndex(%T %v): the indexes are %q now, %v", v, v, names, err)
		}
	}
	for _, v := range []any{name("x_1"), bson.D{{Key: "y", Value: 1}}} {
		if err := coll.DropIndex(ctx, v); err != nil {
			t.Errorf("DropIndex(%T %v): %v", v, v, err)
		}
	}
	if names, err := coll.ListIndexNames(ctx); err != nil || len(names) != 1 {
		t.Errorf("the indexes are %q, %v", names, err)
	}
}

// starred encodes itself as the name of all indexes.
type starred struct{}

func (starred) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeString), bson.AppendStringValue(nil, "*"), nil
}
