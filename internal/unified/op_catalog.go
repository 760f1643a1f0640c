package unified

import (
	"context"
	"time"

	"allium"
	"allium/bson"
)

// The operations on what a deployment holds: databases, collections and indexes.
func init() {
	register(map[string]operation[*clientEntity]{
		"listDatabases": func(ctx context.Context, _ *runner, c *clientEntity, a *arguments) (result, error) {
			infos, err := c.ListDatabases(ctx, a.listDatabasesOptions())
			return docs(infos, err)
		},
		"listDatabaseNames": func(ctx context.Context, _ *runner, c *clientEntity, a *arguments) (result, error) {
			names, err := c.ListDatabaseNames(ctx, a.listDatabasesOptions())
			return encode(names, err)
		},
		"dropDatabase": func(ctx context.Context, _ *runner, c *clientEntity, a *arguments) (result, error) {
			return result{}, c.Database(a.string("database")).Drop(ctx,
				allium.DropOptions{Comment: a.any("comment"), Timeout: a.timeout()})
		},
		"listDatabaseObjects": func(ctx context.Context, _ *runner, c *clientEntity, a *arguments) (result, error) {
			dbs, err := c.Databases(ctx, a.listDatabasesOptions())
			names := []string{}
			for _, db := range dbs {
				names = append(names, db.Name())
			}
			return encode(names, err)
		},
	})
	register(map[string]operation[*allium.Database]{
		"listCollections": func(ctx context.Context, _ *runner, db *allium.Database, a *arguments) (result, error) {
			cur, err := db.ListCollections(ctx, a.listCollectionsOptions())
			if err != nil {
				return result{}, err
			}
			all, err := cur.All(ctx)
			raws := []bson.Raw{}
			for _, i := range all {
				raw, err := bson.Options{OmitZero: true}.Marshal(i) // a server leaves out what it does not know
				if err != nil {
					return result{}, err
				}
				raws = append(raws, raw)
			}
			return docs(raws, err)
		},
		"listCollectionNames": func(ctx context.Context, _ *runner, db *allium.Database, a *arguments) (result, error) {
			names, err := db.ListCollectionNames(ctx, a.listCollectionsOptions())
			return encode(names, err)
		},
		"createCollection": func(ctx context.Context, _ *runner, db *allium.Database, a *arguments) (result, error) {
			o := allium.CreateCollectionOptions{SizeInBytes: a.int("size"), MaxDocuments: a.int("max"),
				Validator: a.any("validator"), ViewOn: a.string("viewOn"),
				ValidationLevel:  allium.ValidationLevel(a.string("validationLevel")),
				ValidationAction: allium.ValidationAction(a.string("validationAction")), Collation: a.collation(),
				IDIndex:       a.any("idIndex"),
				StorageEngine: a.any("storageEngine"), IndexOptionDefaults: a.any("indexOptionDefaults"),
				Capped:   a.isTrue("capped"),
				Pipeline: a.any("pipeline"), TimeSeries: a.any("timeseries"), ClusteredIndex: a.any("clusteredIndex"),
				ExpireAfter:      a.seconds("expireAfterSeconds"),
				PreAndPostImages: a.images(), EncryptedFields: a.any("encryptedFields"), Comment: a.any("comment"),
				Timeout: a.timeout()}
			name := a.string("collection")
			err := db.CreateCollection(ctx, name, o)
			return entity(allium.CollectionOf[bson.Raw](db, name), err)
		},
		"dropCollection": func(ctx context.Context, _ *runner, db *allium.Database, a *arguments) (result, error) {
			return result{}, db.Collection(a.string("collection")).Drop(ctx,
				allium.DropOptions{EncryptedFields: a.any("encryptedFields"), Comment: a.any("comment"),
					Timeout: a.timeout()})
		},
		"listCollectionObjects": func(ctx context.Context, _ *runner, db *allium.Database, a *arguments) (result,
			error) {
			colls, err := db.Collections(ctx, a.listCollectionsOptions())
			names := []string{}
			for _, c := range colls {
				names = append(names, c.Name())
			}
			return encode(names, err)
		},
		"modifyCollection": modifyCollection,
	})
	register(map[string]operation[*collection]{
		"createIndex": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
			m := allium.IndexModel{Keys: a.any("keys"), Name: a.string("name"), Unique: a.isTrue("unique"),
				Sparse: a.isTrue("sparse"), Hidden: a.isTrue("hidden"),
				ExpireAfter: a.seconds("expireAfterSeconds"), PartialFilter: a.any("partialFilterExpression"),
				Collation: a.collation(), WildcardProjection: a.any("wildcardProjection"), Weights: a.any("weights"),
				DefaultLanguage:  a.string("defaultLanguage"),
				LanguageOverride: a.string("languageOverride"), StorageEngine: a.any("storageEngine")}
			name, err := c.CreateIndex(ctx, m, allium.CreateIndexOptions{CommitQuorum: a.any("commitQuorum"),
				Comment: a.any("comment"), MaxTime: a.millis("maxTimeMS"), RawData: a.is("rawData"),
				Timeout: a.timeout()})
			return encode(name, err)
		},
		"dropIndex": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
			return result{}, c.DropIndex(ctx, a.any("name"), a.dropIndexOptions())
		},
		"dropIndexes": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
			return result{}, c.DropIndexes(ctx, a.dropIndexOptions())
		},
		"listIndexes": listIndexes,
		"listIndexNames": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
			names, err := c.ListIndexNames(ctx, a.listIndexesOptions())
			return encode(names, err)
		},
		"rename": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
			return result{}, c.Rename(ctx, a.string("to"), allium.RenameOptions{DropTarget: a.isTrue("dropTarget"),
				Comment: a.any("comment"), Timeout: a.timeout()})
		},
		"mapReduce": mapReduce,
		"createSearchIndex": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
			name, err := c.CreateSearchIndex(ctx, a.searchIndex(a.document("model")),
				allium.SearchIndexOptions{Timeout: a.timeout()})
			return encode(name, err)
		},
		"createSearchIndexes": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
			var models []allium.SearchIndexModel
			for _, doc := range a.documents("models") {
				models = append(models, a.searchIndex(doc))
			}
			names, err := c.CreateSearchIndexes(ctx, models, allium.SearchIndexOptions{Timeout: a.timeout()})
			return encode(names, err)
		},
		"updateSearchIndex": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
			return result{}, c.UpdateSearchIndex(ctx, a.string("name"), a.any("definition"),
				allium.SearchIndexOptions{Timeout: a.timeout()})
		},
		"dropSearchIndex": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
			return result{}, c.DropSearchIndex(ctx, a.string("name"), allium.SearchIndexOptions{Timeout: a.timeout()})
		},
		"listSearchIndexes": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
			o := allium.ListSearchIndexesOptions{Name: a.string("name")}
			if doc := a.document("aggregationOptions"); doc != nil {
				sub := &arguments{doc: doc}
				o.BatchSize, o.AllowDiskUse, o.Collation, o.Comment = sub.intp("batchSize"), sub.bool("allowDiskUse"),
					sub.collation(), sub.any("comment")
				o.Timeout, o.TimeoutMode = sub.timeout(), sub.timeoutMode()
				a.adopt(sub)
			}
			cur, err := c.ListSearchIndexes(ctx, o)
			if err != nil {
				return result{}, err
			}
			all, err := cur.All(ctx)
			raws := []bson.Raw{}
			for _, i := range all {
				raws = append(raws, i.Raw)
			}
			return docs(raws, err)
		},
	})
}

func (a *arguments) listCollectionsOptions() allium.ListCollectionsOptions {
	return allium.ListCollectionsOptions{TimeoutMode: a.timeoutMode(), Filter: a.any("filter"),
		BatchSize: a.intp("batchSize"), Comment: a.any("comment"), RawData: a.is("rawData"), Timeout: a.timeout()}
}

func (a *arguments) listDatabasesOptions() allium.ListDatabasesOptions {
	return allium.ListDatabasesOptions{Filter: a.any("filter"), Comment: a.any("comment"), Timeout: a.timeout()}
}

func (a *arguments) dropIndexOptions() allium.DropIndexOptions {
	return allium.DropIndexOptions{Comment: a.any("comment"), MaxTime: a.millis("maxTimeMS"), RawData: a.is("rawData"),
		Timeout: a.timeout()}
}

func listIndexes(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
	cur, err := c.ListIndexes(ctx, a.listIndexesOptions())
	if err != nil {
		return result{}, err
	}
	all, err := cur.All(ctx)
	raws := []bson.Raw{}
	for _, i := range all {
		raws = append(raws, i.Raw)
	}
	return docs(raws, err)
}

func (a *arguments) listIndexesOptions() allium.ListIndexesOptions {
	return allium.ListIndexesOptions{TimeoutMode: a.timeoutMode(), BatchSize: a.intp("batchSize"),
		Comment: a.any("comment"), RawData: a.is("rawData"), Timeout: a.timeout()}
}

// searchIndex reads the model of a search index.
func (a *arguments) searchIndex(doc bson.Raw) allium.SearchIndexModel {
	sub := &arguments{doc: doc}
	m := allium.SearchIndexModel{Name: sub.string("name"), Type: sub.string("type"), Definition: sub.any("definition")}
	a.adopt(sub)
	return m
}

// isTrue returns an argument, false if it is not there.
func (a *arguments) isTrue(name string) bool {
	b := a.bool(name)
	return b != nil && *b
}

// seconds returns an argument in seconds, nil if it is not there.
func (a *arguments) seconds(name string) *time.Duration {
	if a.doc.Lookup(name).IsZero() {
		a.raw(name)
		return nil
	}
	return new(time.Duration(a.int(name)) * time.Second)
}

// images returns changeStreamPreAndPostImages.
func (a *arguments) images() *bool {
	d := a.document("changeStreamPreAndPostImages")
	if d == nil {
		return nil
	}
	sub := &arguments{doc: d}
	on := sub.bool("enabled")
	a.adopt(sub)
	return on
}

func modifyCollection(ctx context.Context, _ *runner, db *allium.Database, a *arguments) (result, error) {
	o := allium.ModifyCollectionOptions{Validator: a.any("validator"),
		ValidationLevel:  allium.ValidationLevel(a.string("validationLevel")),
		ValidationAction: allium.ValidationAction(a.string("validationAction")),
		ViewOn:           a.string("viewOn"), Pipeline: a.any("pipeline"), TimeSeries: a.any("timeseries"),
		ExpireAfter:      a.seconds("expireAfterSeconds"),
		PreAndPostImages: a.images(), Comment: a.any("comment"), Timeout: a.timeout()}
	if d := a.document("index"); d != nil {
		sub := &arguments{doc: d}
		o.Index = &allium.IndexChange{Name: sub.string("name"), Keys: sub.any("keyPattern"),
			ExpireAfter: sub.seconds("expireAfterSeconds"),
			Hidden:      sub.bool("hidden"), PrepareUnique: sub.bool("prepareUnique"), Unique: sub.bool("unique")}
		a.adopt(sub)
	}
	return result{}, db.ModifyCollection(ctx, a.string("collection"), o)
}

// mapReduce runs the command itself: the driver has no method for it, and must not retry it.
func mapReduce(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
	reply, err := c.Database().RunCommand(ctx,
		bson.D{{Key: "mapReduce", Value: c.Name()}, {Key: "map", Value: a.any("map")},
			{Key: "reduce", Value: a.any("reduce")}, {Key: "out", Value: a.any("out")}})
	if err != nil {
		return result{}, err
	}
	return result{value: reply.Lookup("results"), roots: true}, nil
}
