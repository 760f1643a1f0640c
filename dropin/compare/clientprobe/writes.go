package main

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// bulk prints what bulk writes do.
func bulk(db *mongo.Database) {
	c := db.Collection("bulk")
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	insert := func(id any) mongo.WriteModel {
		return mongo.NewInsertOneModel().SetDocument(bson.D{{Key: "_id", Value: id}})
	}
	for i, models := range [][]mongo.WriteModel{
		nil, {}, {nil}, {insert(1), insert(2), mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id",
			Value: 1}}).SetUpdate(set), mongo.NewUpdateManyModel().SetFilter(bson.D{}).SetUpdate(bson.D{{Key: "$inc",
			Value: bson.D{{Key: "n", Value: 1}}}}),
			mongo.NewReplaceOneModel().SetFilter(bson.D{{Key: "_id", Value: 2}}).SetReplacement(bson.D{{Key: "r",
				Value: 1}}), mongo.NewDeleteOneModel().SetFilter(bson.D{{Key: "_id", Value: 1}}),
			mongo.NewDeleteManyModel().SetFilter(bson.D{})},
		{insert(1), insert(1), insert(2)}, {mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id",
			Value: "u"}}).SetUpdate(set).SetUpsert(true), insert(50),
			mongo.NewReplaceOneModel().SetFilter(bson.D{{Key: "_id", Value: "v"}}).SetReplacement(bson.D{{Key: "x",
				Value: 1}}).SetUpsert(true)},
		{mongo.NewInsertOneModel()}, {mongo.NewUpdateOneModel()}, {mongo.NewUpdateOneModel().SetFilter(bson.D{})},
		{mongo.NewUpdateOneModel().SetFilter(bson.D{}).SetUpdate(bson.D{{Key: "a", Value: 1}})},
		{mongo.NewReplaceOneModel().SetFilter(bson.D{}).SetReplacement(set)}, {mongo.NewDeleteOneModel()},
		{mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: 50}}).SetUpdate(bson.D{{Key: "$bad",
			Value: 1}})},
		{mongo.NewUpdateOneModel().SetFilter(bson.D{}).SetUpdate(set).SetHint(bson.M{"a": 1, "b": 1})},
		{mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": 50}).SetHint("_id_")},
		{mongo.NewUpdateManyModel().SetFilter(bson.D{{Key: "_id",
			Value: "u"}}).SetUpdate(mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "p", Value: 1}}}}})},
		{mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: "u"}}).SetUpdate(bson.D{{Key: "$set",
			Value: bson.D{{Key: "l", Value: bson.A{1, 2}}}}}),
			mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: "u"}}).SetUpdate(bson.D{{Key: "$set",
				Value: bson.D{{Key: "l.$[e]", Value: 9}}}}).SetArrayFilters([]any{bson.D{{Key: "e", Value: 1}}})},
	} {
		try(fmt.Sprint("bulk ", i), func() {
			res, err := c.BulkWrite(ctx, models)
			say(fmt.Sprint("bulk ", i), res, err)
		})
	}
	res, err := c.BulkWrite(ctx, []mongo.WriteModel{insert(60), insert(60),
		mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: 60}}).SetUpdate(set), insert(61), insert(61),
		mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: "up"}}).SetUpdate(set).SetUpsert(true)},
		options.BulkWrite().SetOrdered(false))
	say("unordered", res, err)
	var docs []bson.D
	cur, err := c.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	check(err)
	say("after bulk", cur.All(ctx, &docs), docs)
}

// clientBulk prints what bulk writes of a client do.
func clientBulk(db *mongo.Database) {
	c := db.Client()
	at := func(m mongo.ClientWriteModel) mongo.ClientBulkWrite {
		return mongo.ClientBulkWrite{Database: "probe", Collection: "clientBulk", Model: m}
	}
	insert := func(id any) mongo.ClientBulkWrite {
		return at(mongo.NewClientInsertOneModel().SetDocument(bson.D{{Key: "_id", Value: id}}))
	}
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	for i, writes := range [][]mongo.ClientBulkWrite{
		nil, {}, {{}}, {insert(1), insert(2), at(mongo.NewClientUpdateOneModel().SetFilter(bson.D{{Key: "_id",
			Value: 1}}).SetUpdate(set)), at(mongo.NewClientUpdateManyModel().SetFilter(bson.D{}).SetUpdate(set)),
			at(mongo.NewClientReplaceOneModel().SetFilter(bson.D{{Key: "_id",
				Value: "x"}}).SetReplacement(bson.D{{Key: "r", Value: 1}}).SetUpsert(true)),
			at(mongo.NewClientDeleteOneModel().SetFilter(bson.D{{Key: "_id", Value: 2}})),
			at(mongo.NewClientDeleteManyModel().SetFilter(bson.D{{Key: "_id", Value: 77}}))},
		{insert(1), insert(30)}, {insert(31), insert(31), insert(32)}, {at(mongo.NewClientInsertOneModel())},
		{at(mongo.NewClientUpdateOneModel().SetFilter(bson.D{}))},
		{at(mongo.NewClientUpdateOneModel().SetFilter(bson.D{}).SetUpdate(bson.D{{Key: "a", Value: 1}}))},
		{at(mongo.NewClientReplaceOneModel().SetFilter(bson.D{}).SetReplacement(set))},
	} {
		for _, verbose := range []bool{false, true} {
			try(fmt.Sprint("client bulk ", i, verbose), func() {
				res, err := c.BulkWrite(ctx, writes, options.ClientBulkWrite().SetVerboseResults(verbose))
				say(fmt.Sprint("client bulk ", i, verbose), res, err)
			})
		}
	}
	res, err := c.BulkWrite(ctx, []mongo.ClientBulkWrite{insert(40), insert(40), insert(41)},
		options.ClientBulkWrite().SetOrdered(false).SetVerboseResults(true))
	say("client bulk unordered", res, err)
}

// catalog prints what lists and makes databases and collections.
func catalog(db *mongo.Database) {
	c := db.Client()
	names, err := c.ListDatabaseNames(ctx, bson.D{{Key: "name", Value: "probe"}})
	say("database names", names, err)
	names, err = c.ListDatabaseNames(ctx, nil)
	say("database names nil", names == nil, err)
	names, err = c.ListDatabaseNames(ctx, bson.D{{Key: "name", Value: "none"}})
	say("database names none", names == nil, len(names), err)
	list, err := c.ListDatabases(ctx, bson.D{{Key: "name", Value: "probe"}})
	say("databases", len(list.Databases), list.Databases[0].Name, list.Databases[0].SizeOnDisk > 0, list.TotalSize > 0,
		err)
	list, err = c.ListDatabases(ctx, bson.M{"name": "probe"}, options.ListDatabases().SetNameOnly(true))
	say("databases by name", list, err)
	k := c.Database("catalog")
	check(k.Drop(ctx))
	for i, o := range []*options.CreateCollectionOptionsBuilder{
		options.CreateCollection(), options.CreateCollection().SetCapped(true).SetSizeInBytes(4096).SetMaxDocuments(5),
		options.CreateCollection().SetValidator(
			bson.M{"a": 1}).SetValidationLevel("moderate").SetValidationAction("warn"),
		options.CreateCollection().SetTimeSeriesOptions(
			options.TimeSeries().SetTimeField("t").SetMetaField("m").SetGranularity("minutes")).SetExpireAfterSeconds(
			60), options.CreateCollection().SetCollation(&options.Collation{Locale: "en", Strength: 2}),
		options.CreateCollection().SetClusteredIndex(bson.D{{Key: "key", Value: bson.D{{Key: "_id", Value: 1}}},
			{Key: "unique", Value: true}}), options.CreateCollection().SetChangeStreamPreAndPostImages(
			bson.D{{Key: "enabled", Value: true}}), options.CreateCollection().SetValidator(5),
		options.CreateCollection().SetCapped(true),
		options.CreateCollection().SetDefaultIndexOptions(
			options.DefaultIndex().SetStorageEngine(bson.D{{Key: "wiredTiger", Value: bson.D{}}})),
	} {
		say(fmt.Sprint("create ", i), k.CreateCollection(ctx, fmt.Sprint("c", i), o))
	}
	say("create again", k.CreateCollection(ctx, "c1"))
	say("view", k.CreateView(ctx, "v", "c0", mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "a", Value: 1}}}}}),
		k.CreateView(ctx, "w", "c0", nil), k.CreateView(ctx, "w", "c0", 5))
	specs, err := k.ListCollectionSpecifications(ctx,
		bson.D{{Key: "name", Value: bson.D{{Key: "$regex", Value: "^[cv]"}}}})
	for _, s := range specs {
		id := s.IDIndex
		say("specification "+s.Name, s.Type, s.ReadOnly, s.UUID != nil && s.UUID.Subtype == 4, s.Options, id.Name,
			id.Namespace, id.KeysDocument, id.Version, id.Unique)
	}
	say("specifications", len(specs), err)
	names, err = k.ListCollectionNames(ctx, bson.D{{Key: "name",
		Value: bson.D{{Key: "$in", Value: bson.A{"c0", "v"}}}}}, options.ListCollections().SetBatchSize(1))
	say("collection names", len(names), err)
	names, err = k.ListCollectionNames(ctx, nil)
	say("collection names nil", names == nil, err)
	names, err = k.ListCollectionNames(ctx, bson.D{{Key: "name", Value: "none"}})
	say("collection names none", names == nil, len(names), err)
	cur, err := k.ListCollections(ctx, bson.M{"name": "c0"}, options.ListCollections().SetNameOnly(true))
	var docs []bson.D
	say("collections", err, cur.All(ctx, &docs), docs)
	say("drop", k.Collection("c0").Drop(ctx), k.Collection("c0").Drop(ctx), k.Drop(ctx), k.Drop(ctx))
	_, err = c.Database("").Collection("x").InsertOne(ctx, bson.D{})
	say("empty database", err != nil)
	_, err = k.Collection("").InsertOne(ctx, bson.D{})
	say("empty collection", err != nil)
	_, err = c.Database("a.b").Collection("x").InsertOne(ctx, bson.D{})
	say("database with a dot", err != nil)
}

// indexes prints what an IndexView does.
func indexes(db *mongo.Database) {
	c := db.Collection("indexes")
	v := c.Indexes()
	cur, err := v.List(ctx)
	var docs []bson.D
	if err == nil {
		say("no indexes", cur.All(ctx, &docs), docs)
	} else {
		say("no indexes", err)
	}
	specs, err := v.ListSpecifications(ctx)
	say("no specifications", specs, err)
	for i, m := range []mongo.IndexModel{
		{Keys: bson.D{{Key: "a", Value: 1}}}, {Keys: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}},
		{Keys: bson.D{{Key: "t", Value: "text"}}, Options: options.Index().SetWeights(
			bson.M{"t": 3}).SetDefaultLanguage("english").SetTextVersion(3)}, {Keys: bson.D{{Key: "u", Value: 1}},
			Options: options.Index().SetUnique(true).SetName("named").SetSparse(true)},
		{Keys: bson.D{{Key: "e", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(60)},
		{Keys: bson.D{{Key: "p", Value: 1}}, Options: options.Index().SetPartialFilterExpression(bson.D{{Key: "p",
			Value: bson.D{{Key: "$gt", Value: 5}}}})}, {Keys: bson.M{"m": 1}}, {Keys: bson.M{"m": 1, "n": 1}}, {},
		{Keys: bson.D{{Key: "x", Value: true}}}, {Keys: bson.D{{Key: "x", Value: 1.5}}},
		{Keys: bson.D{{Key: "g", Value: "2dsphere"}}, Options: options.Index().SetSphereVersion(3)},
		{Keys: bson.D{{Key: "h", Value: 1}}, Options: options.Index().SetHidden(true)}, {Keys: bson.D{{Key: "$**",
			Value: 1}}, Options: options.Index().SetWildcardProjection(bson.D{{Key: "w", Value: 1}})},
		{Keys: bson.D{{Key: "a", Value: 1}}, Options: options.Index().SetUnique(true)}, {Keys: 5}, {Keys: bson.D{}},
		{Keys: bson.D{{Key: "l", Value: int64(1)}}},
		{Keys: bson.D{{Key: "c", Value: 1}}, Options: options.Index().SetCollation(&options.Collation{Locale: "de",
			CaseLevel: true})}, {Keys: bson.D{{Key: "f", Value: 1.0}}}, {Keys: bson.D{{Key: "d", Value: nil}}},
	} {
		name, err := v.CreateOne(ctx, m)
		say(fmt.Sprint("index ", i), name, err)
	}
	for _, name := range []string{"x_1.5", "f_1"} {
		_ = v.DropOne(ctx, name) // the official driver has not made them
	}
	names, err := v.CreateMany(ctx, []mongo.IndexModel{{Keys: bson.D{{Key: "q", Value: 1}}},
		{Keys: bson.D{{Key: "r", Value: 1}}}})
	say("indexes", names, err)
	names, err = v.CreateMany(ctx, nil)
	say("indexes of nothing", names, err)
	specs, err = v.ListSpecifications(ctx)
	say("index specifications", len(specs), err)
	for _, s := range specs {
		say("index specification "+s.Name, s.Namespace, s.KeysDocument, s.Version,
			s.ExpireAfterSeconds != nil && *s.ExpireAfterSeconds == 60, s.Sparse != nil && *s.Sparse,
			s.Unique != nil && *s.Unique, s.Clustered == nil)
	}
	cur, err = v.List(ctx, options.ListIndexes().SetBatchSize(2))
	check(err)
	n := 0
	for cur.Next(ctx) {
		n++
	}
	say("index list", n, cur.Err())
	say("drop index", v.DropOne(ctx, "a_1"), v.DropOne(ctx, "none"), v.DropOne(ctx, "*"),
		v.DropWithKey(ctx, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}),
		v.DropWithKey(ctx, bson.D{{Key: "none", Value: 1}}), v.DropOne(ctx, "_id_"), v.DropWithKey(ctx, nil))
	say("drop all", v.DropAll(ctx), v.DropAll(ctx))
	specs, err = v.ListSpecifications(ctx)
	say("indexes left", len(specs), err)
	say("drop of none", db.Collection("none").Indexes().DropAll(ctx), db.Collection("none").Indexes().DropOne(ctx, "x"))
	s := c.SearchIndexes()
	_, err = s.CreateOne(ctx, mongo.SearchIndexModel{})
	say("search index without definition", err)
	say("drop search indexes", s.DropOne(ctx, "*"))
}
