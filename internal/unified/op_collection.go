package unified

import (
	"context"
	"fmt"
	"strings"

	"allium"
	"allium/bson"
)

type collection = allium.Collection[bson.Raw]

func init() {
	register(collectionOps)
	register(databaseOps)
}

// collectionOps are the operations of a collection.
var collectionOps = map[string]operation[*collection]{
	"aggregate": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		return drain(ctx)(c.Aggregate(ctx, a.required("pipeline"), a.aggregateOptions()))
	},
	"createFindCursor": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		cur, err := c.Find(ctx, a.required("filter"), a.findOptions())
		return entity(cur, err)
	},
	"find": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		return drain(ctx)(c.Find(ctx, a.filter(), a.findOptions()))
	},
	"findOne": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		o := a.findOptions()
		return doc(c.FindOne(ctx, a.filter(),
			allium.FindOneOptions{Sort: o.Sort, Projection: o.Projection, Skip: o.Skip, Hint: o.Hint,
				Collation: o.Collation, Let: o.Let, Comment: o.Comment, MaxTime: o.MaxTime, Timeout: o.Timeout,
				RawData: o.RawData}))
	},
	"distinct": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		vs, err := allium.Distinct[bson.RawValue](ctx, c, a.requiredString("fieldName"), a.filter(),
			allium.DistinctOptions{Collation: a.collation(),
				Comment: a.any("comment"), Hint: a.any("hint"), MaxTime: a.millis("maxTimeMS"),
				RawData: a.is("rawData"),
				Timeout: a.timeout()})
		if err != nil {
			return result{}, err
		}
		return value(vs)
	},
	"countDocuments": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		n, err := c.CountDocuments(ctx, a.required("filter"),
			allium.CountOptions{Skip: a.int("skip"), Limit: a.int("limit"), Hint: a.any("hint"),
				Collation: a.collation(), Comment: a.any("comment"), MaxTime: a.millis("maxTimeMS"),
				RawData: a.is("rawData"), Timeout: a.timeout()})
		if err != nil {
			return result{}, err
		}
		return value(n)
	},
	"count": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		n, err := c.Count(ctx, a.filter(),
			allium.CountOptions{Skip: a.int("skip"), Limit: a.int("limit"), Hint: a.any("hint"),
				Collation: a.collation(), Comment: a.any("comment"), MaxTime: a.millis("maxTimeMS"),
				RawData: a.is("rawData"), Timeout: a.timeout()})
		return encode(n, err)
	},
	"estimatedDocumentCount": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		n, err := c.EstimatedDocumentCount(ctx, allium.EstimatedCountOptions{Comment: a.any("comment"),
			MaxTime: a.millis("maxTimeMS"), RawData: a.is("rawData"), Timeout: a.timeout()})
		if err != nil {
			return result{}, err
		}
		return value(n)
	},
	"insertOne": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		res, err := c.InsertOne(ctx, a.requiredDocument("document"),
			allium.InsertOneOptions{BypassDocumentValidation: a.bool("bypassDocumentValidation"),
				Comment: a.any("comment"), RawData: a.is("rawData"), Timeout: a.timeout()})
		return encode(bson.D{{Key: "insertedId", Value: res.InsertedID}}, err)
	},
	"insertMany": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		res, err := c.InsertMany(ctx, a.requiredDocuments("documents"),
			allium.InsertManyOptions{Unordered: a.unordered(),
				BypassDocumentValidation: a.bool("bypassDocumentValidation"), Comment: a.any("comment"),
				RawData: a.is("rawData"), Timeout: a.timeout()})
		return encode(bson.D{{Key: "insertedIds", Value: byIndex(res.InsertedIDs)},
			{Key: "insertedCount", Value: len(res.InsertedIDs)},
			{Key: "deletedCount", Value: 0}, {Key: "matchedCount", Value: 0}, {Key: "modifiedCount", Value: 0},
			{Key: "upsertedCount", Value: 0},
			{Key: "upsertedIds", Value: bson.D{}}}, err)
	},
	"updateOne": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		res, err := c.UpdateOne(ctx, a.required("filter"), a.required("update"), a.updateOptions())
		return encode(updateResult(res), err)
	},
	"updateMany": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		res, err := c.UpdateMany(ctx, a.required("filter"), a.required("update"), a.updateOptions())
		return encode(updateResult(res), err)
	},
	"replaceOne": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		o := a.updateOptions()
		res, err := c.ReplaceOne(ctx, a.required("filter"), a.requiredDocument("replacement"),
			allium.ReplaceOptions{Upsert: o.Upsert, Sort: o.Sort,
				BypassDocumentValidation: o.BypassDocumentValidation, Collation: o.Collation, Hint: o.Hint, Let: o.Let,
				Comment: o.Comment, RawData: o.RawData, Timeout: o.Timeout})
		return encode(updateResult(res), err)
	},
	"deleteOne": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		res, err := c.DeleteOne(ctx, a.required("filter"), a.deleteOptions())
		return encode(bson.D{{Key: "deletedCount", Value: res.DeletedCount}}, err)
	},
	"deleteMany": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		res, err := c.DeleteMany(ctx, a.required("filter"), a.deleteOptions())
		return encode(bson.D{{Key: "deletedCount", Value: res.DeletedCount}}, err)
	},
	"bulkWrite": bulkWrite,
	"findOneAndUpdate": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		o := a.findAndModify()
		o.ArrayFilters = a.any("arrayFilters")
		return doc(c.FindOneAndUpdate(ctx, a.required("filter"), a.required("update"), o))
	},
	"findOneAndReplace": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		o := a.findAndModify()
		return doc(c.FindOneAndReplace(ctx, a.required("filter"), a.requiredDocument("replacement"),
			allium.FindOneAndReplaceOptions{ReturnNew: o.ReturnNew, Upsert: o.Upsert,
				Sort: o.Sort, Projection: o.Projection, BypassDocumentValidation: o.BypassDocumentValidation,
				Collation: o.Collation, Hint: o.Hint, Let: o.Let,
				Comment: o.Comment, MaxTime: o.MaxTime, RawData: o.RawData, Timeout: o.Timeout}))
	},
	"findOneAndDelete": func(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
		return doc(c.FindOneAndDelete(ctx, a.required("filter"),
			allium.FindOneAndDeleteOptions{Sort: a.any("sort"), Projection: a.any("projection"),
				Collation: a.collation(), Hint: a.any("hint"), Let: a.any("let"), Comment: a.any("comment"),
				MaxTime: a.millis("maxTimeMS"), RawData: a.is("rawData"), Timeout: a.timeout()}))
	},
}

func encode(v any, err error) (result, error) {
	r, encErr := value(v)
	if err == nil {
		err = encErr
	}
	return r, err
}

// drain reads a cursor to its end.
func drain(ctx context.Context) func(cur *allium.Cursor[bson.Raw], err error) (result, error) {
	return func(cur *allium.Cursor[bson.Raw], err error) (result, error) {
		if err != nil {
			return result{}, err
		}
		return docs(cur.All(ctx))
	}
}

// filter returns a filter, one that all documents match if it is not there: an example in the
// format's text finds without one.
func (a *arguments) filter() any {
	if v := a.any("filter"); v != nil {
		return v
	}
	return bson.D{}
}

func (a *arguments) unordered() bool {
	o := a.bool("ordered")
	return o != nil && !*o
}

func (a *arguments) findOptions() allium.FindOptions {
	return allium.FindOptions{Sort: a.any("sort"), Projection: a.any("projection"), Skip: a.int("skip"),
		Limit: a.int("limit"), BatchSize: a.intp("batchSize"),
		Hint: a.any("hint"), Collation: a.collation(), Let: a.any("let"), Comment: a.any("comment"),
		MaxTime: a.millis("maxTimeMS"), Min: a.any("min"), Max: a.any("max"),
		AllowDiskUse: a.bool("allowDiskUse"), AllowPartialResults: a.is("allowPartialResults"),
		NoCursorTimeout: a.is("noCursorTimeout"), CursorType: a.cursorType(), MaxAwaitTime: a.millis("maxAwaitTimeMS"),
		TimeoutMode: a.timeoutMode(),
		ReturnKey:   a.is("returnKey"), ShowRecordID: a.is("showRecordId"),
		RawData: a.is("rawData"), Timeout: a.timeout()}
}

func (a *arguments) aggregateOptions() allium.AggregateOptions {
	return allium.AggregateOptions{MaxAwaitTime: a.millis("maxAwaitTimeMS"), TimeoutMode: a.timeoutMode(),
		AllowDiskUse: a.bool("allowDiskUse"), BatchSize: a.intp("batchSize"),
		BypassDocumentValidation: a.bool("bypassDocumentValidation"),
		Collation:                a.collation(), Comment: a.any("comment"), Hint: a.any("hint"), Let: a.any("let"),
		MaxTime: a.millis("maxTimeMS"), RawData: a.is("rawData"), Timeout: a.timeout()}
}

func (a *arguments) updateOptions() allium.UpdateOptions {
	return allium.UpdateOptions{Upsert: a.is("upsert"), ArrayFilters: a.any("arrayFilters"), Sort: a.any("sort"),
		BypassDocumentValidation: a.bool("bypassDocumentValidation"),
		Collation:                a.collation(), Hint: a.any("hint"), Let: a.any("let"), Comment: a.any("comment"),
		RawData: a.is("rawData"), Timeout: a.timeout()}
}

func (a *arguments) deleteOptions() allium.DeleteOptions {
	return allium.DeleteOptions{Collation: a.collation(), Hint: a.any("hint"), Let: a.any("let"),
		Comment: a.any("comment"), RawData: a.is("rawData"), Timeout: a.timeout()}
}

// returnNew reads returnDocument.
func (a *arguments) returnNew() bool {
	switch s := a.string("returnDocument"); {
	case strings.EqualFold(s, "after"):
		return true
	case s != "" && !strings.EqualFold(s, "before"):
		a.fail("returnDocument", a.doc.Lookup("returnDocument"), "Before or After")
	}
	return false
}

func (a *arguments) findAndModify() allium.FindOneAndUpdateOptions {
	return allium.FindOneAndUpdateOptions{ReturnNew: a.returnNew(), Upsert: a.is("upsert"), Sort: a.any("sort"),
		Projection:               a.any("projection"),
		BypassDocumentValidation: a.bool("bypassDocumentValidation"), Collation: a.collation(), Hint: a.any("hint"),
		Let:     a.any("let"),
		Comment: a.any("comment"), MaxTime: a.millis("maxTimeMS"), RawData: a.is("rawData"), Timeout: a.timeout()}
}

func bulkWrite(ctx context.Context, _ *runner, c *collection, a *arguments) (result, error) {
	var models []allium.WriteModel
	a.writes("requests", func(kind string, sub *arguments) { models = append(models, sub.writeModel(c, kind)) })
	o := allium.BulkWriteOptions{Unordered: a.unordered(), BypassDocumentValidation: a.bool("bypassDocumentValidation"),
		Let: a.any("let"), Comment: a.any("comment"), RawData: a.is("rawData"), Timeout: a.timeout()}
	if err := a.done(); err != nil {
		return result{}, &brokenTest{err}
	}
	res, err := c.BulkWrite(ctx, models, o)
	return encode(bulkResult(res), err)
}

// writes reads an array of writes, which are objects with the kind of the write as their only key.
func (a *arguments) writes(name string, add func(kind string, sub *arguments)) {
	a.shaped(name, list(0, sized(1, 1, document)))
	for _, request := range a.documents(name) {
		for kind, v := range request.All() {
			spec, ok := v.Document()
			if !ok {
				a.fail(name, v, "objects")
			}
			sub := &arguments{doc: spec}
			add(strings.Clone(kind), sub)
			a.adopt(sub)
		}
	}
}

func (a *arguments) writeModel(coll *collection, kind string) allium.WriteModel {
	switch kind {
	case "insertOne":
		return coll.InsertOneModel(a.requiredDocument("document"))
	case "updateOne", "updateMany":
		update := coll.UpdateOneModel
		if kind == "updateMany" {
			update = coll.UpdateManyModel
		}
		return update(a.required("filter"), a.required("update"),
			allium.UpdateModelOptions{Upsert: a.is("upsert"), Sort: a.any("sort"),
				ArrayFilters: a.any("arrayFilters"), Collation: a.collation(), Hint: a.any("hint")})
	case "replaceOne":
		return coll.ReplaceOneModel(a.required("filter"), a.requiredDocument("replacement"),
			allium.ReplaceModelOptions{Upsert: a.is("upsert"), Sort: a.any("sort"), Collation: a.collation(),
				Hint: a.any("hint")})
	case "deleteOne", "deleteMany":
		remove := coll.DeleteOneModel
		if kind == "deleteMany" {
			remove = coll.DeleteManyModel
		}
		return remove(a.required("filter"), allium.DeleteModelOptions{Collation: a.collation(), Hint: a.any("hint")})
	}
	if a.err == nil {
		a.err = fmt.Errorf("write %q is not known", kind)
	}
	return allium.WriteModel{}
}

// databaseOps are the operations of a database.
var databaseOps = map[string]operation[*allium.Database]{
	"aggregate": func(ctx context.Context, _ *runner, db *allium.Database, a *arguments) (result, error) {
		cur, err := db.Aggregate(ctx, a.required("pipeline"), a.aggregateOptions())
		if err != nil {
			return result{}, err
		}
		return docs(cur.All(ctx))
	},
	"runCommand": func(ctx context.Context, _ *runner, db *allium.Database, a *arguments) (result, error) {
		a.string("commandName")
		return doc(db.RunCommand(ctx, a.document("command"),
			allium.RunCommandOptions{ReadPreference: a.readPreference("readPreference"), Timeout: a.timeout()}))
	},
}
