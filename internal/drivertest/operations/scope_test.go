package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/collation"
	"allium/encryption"
	"allium/encryption/encryptiontest"
	"allium/gridfs"
	"allium/internal/drivertest/rig"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

// scopedWorld is a deployment with documents of several tenants, a client that sees all of them,
// and a collection and a database within a scope.
type scopedWorld struct {
	r      *rand.Rand
	all    *allium.UntypedCollection // without scopes
	other  *allium.UntypedCollection // without scopes
	scoped *allium.UntypedCollection
	filter bson.D // of the scopes together
	marks  int
}

func d(kv ...any) bson.D {
	var doc bson.D
	for i := 0; i < len(kv); i += 2 {
		doc = append(doc, bson.E{Key: kv[i].(string), Value: kv[i+1]})
	}
	if doc == nil {
		doc = bson.D{}
	}
	return doc
}

// three is 3 as a type that compares with the other numbers.
var three, _ = bson.ParseDecimal128("3.0")

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// value is one that the fields of scopes have.
func (w *scopedWorld) value() any {
	return pick[any](w.r, "a", "b", "A", "", 1, int64(1), 1.0, 2, nil, true, bson.A{"a", "b"}, bson.A{}, d("id", 1), d("id", pick[any](w.r, 2, "a")), bson.A{d("id", 1)},
		bson.DateTime(7), bson.Symbol("b"), bson.Symbol("a"), three, 3.0)
}

// document is one that is in some scopes and not in others. Its mark is a text that no other has.
func (w *scopedWorld) document() bson.D {
	doc := bson.D{}
	add := func(key string, v any) {
		if w.r.IntN(4) > 0 {
			doc = append(doc, bson.E{Key: key, Value: v})
		}
	}
	add("tenant", pick[any](w.r, "a", "b", "A", w.value()))
	add("deleted", pick[any](w.r, nil, nil, bson.DateTime(5), w.value()))
	add("owner", pick[any](w.r, d("id", 1), d("id", 1, "x", 2), d("id", 2), bson.A{d("id", 1)}, w.value()))
	add("x", pick[any](w.r, 0, 1, 1, 2, 3, three, w.value()))
	add("at", bson.A{w.r.Float64(), w.r.Float64()})
	if w.r.IntN(8) == 0 {
		add("tenant", w.value()) // twice
	}
	w.marks++
	return append(doc, bson.E{Key: "mark", Value: fmt.Sprintf("mark-%d.", w.marks)})
}

var scopeFields = []string{"tenant", "deleted", "owner", "owner.id", "owner.0.id", "owner.$[].id", "x", "y", "tenant.id"}

func (w *scopedWorld) field() string { return pick(w.r, scopeFields...) }

func (w *scopedWorld) condition() any {
	return pick[any](w.r, w.value(), d("$ne", w.value()), d("$in", bson.A{w.value()}), d("$exists", w.r.IntN(2) == 0), d("$eq", w.value()), d("$gte", w.value()),
		d("$not", d("$eq", w.value())), bson.Regex{Pattern: "."})
}

func (w *scopedWorld) where() any {
	switch w.r.IntN(14) {
	case 0, 1, 2:
		return d()
	case 3, 4:
		return d("x", w.r.IntN(4))
	case 5, 6:
		return d(w.field(), w.condition())
	case 7:
		return d("$or", bson.A{d(), d(w.field(), w.condition())})
	case 8:
		return d("$nor", bson.A{d(w.field(), w.condition())})
	case 9:
		return d("$and", bson.A{d(w.field(), w.value()), d("x", 1)})
	case 10:
		return d("$expr", d("$ne", bson.A{"$tenant", "a"}))
	case 11:
		return d("_id", w.r.IntN(40))
	case 12:
		return bson.M{"tenant": w.value()}
	}
	return d("$comment", "all", "mark", d("$exists", true))
}

func (w *scopedWorld) change() any {
	f, v := w.field(), w.value()
	switch w.r.IntN(22) {
	case 0, 1, 2, 3:
		return d("$set", d("y", w.r.IntN(9)))
	case 4, 5:
		return d("$set", d(f, v))
	case 6:
		return d("$unset", d(f, ""))
	case 7:
		return d("$rename", d(f, "z"))
	case 8:
		return d("$rename", d("y", f))
	case 9:
		return d("$inc", d(f, 1))
	case 10:
		return d("$push", d(f, v))
	case 11:
		return d("$min", d(f, v))
	case 12:
		return d("$currentDate", d(f, true))
	case 13:
		return d("$setOnInsert", d(f, v), "$set", d("y", 1))
	case 14:
		return d("$set", d("y", 1, f, v), "$unset", d("z", ""))
	case 15:
		return []bson.D{d("$set", d(f, pick[any](w.r, v, "$x", d("$literal", v), d("id", "$x"), d("$ifNull", bson.A{"$y", v}))))}
	case 16:
		return []bson.D{d("$set", d("y", "$tenant"))}
	case 17:
		return []bson.D{d("$unset", pick[any](w.r, f, bson.A{f, "y"}))}
	case 18:
		return []bson.D{d("$replaceWith", pick[any](w.r, d("$literal", w.document()), d("tenant", "b"), d("$mergeObjects", bson.A{"$$ROOT", d("y", 1)})))}
	case 19:
		return []bson.D{d("$project", d(f, w.r.IntN(2)))}
	case 20:
		return []bson.D{d("$addFields", d("owner", d("id", w.r.IntN(3)))), d("$set", d("y", 2))}
	}
	return d("$addToSet", d("tags", v), "$mul", d("y", 2))
}

func (w *scopedWorld) stage() bson.D {
	self, other := w.all.Name(), w.other.Name()
	from := pick(w.r, self, self, other)
	inner := bson.A{}
	if w.r.IntN(3) == 0 {
		inner = append(inner, w.stage())
	}
	switch w.r.IntN(24) {
	case 0, 1:
		return d("$match", w.where())
	case 2:
		return d("$lookup", d("from", from, "localField", "x", "foreignField", "x", "as", "j"))
	case 3:
		return d("$lookup", d("from", from, "pipeline", inner, "as", "j"))
	case 4:
		return d("$lookup", d("from", from, "localField", "x", "foreignField", "x", "pipeline", inner, "as", "j"))
	case 5:
		return d("$unionWith", from)
	case 6:
		return d("$unionWith", d("coll", from, "pipeline", inner))
	case 7:
		return d("$graphLookup", d("from", from, "startWith", "$x", "connectFromField", "x", "connectToField", "x", "as", "j"))
	case 8:
		return d("$graphLookup", d("from", from, "startWith", "$x", "connectFromField", "x", "connectToField", "x", "as", "j", "restrictSearchWithMatch", d("x", 1)))
	case 9:
		return d("$facet", d("p", append(inner, d("$limit", 3)), "q", bson.A{d("$unionWith", from)}))
	case 10:
		return d("$group", d("_id", "$x", "all", d("$push", "$$ROOT")))
	case 11:
		return d("$sort", d("x", 1))
	case 12:
		return d("$sample", d("size", 5))
	case 13:
		return d("$out", "stolen")
	case 14:
		return d("$merge", d("into", pick(w.r, self, other)))
	case 15:
		return d("$geoNear", d("near", bson.A{0.5, 0.5}, "distanceField", "dist", "key", "at", "query", d("x", d("$gte", 0))))
	case 16:
		return d("$set", d("tenant", "a"))
	case 17:
		return d(pick(w.r, "$collStats", "$planCacheStats", "$indexStats", "$currentOp", "$changeStream", "$listSearchIndexes"), d())
	case 18:
		return d("$setWindowFields", d("sortBy", d("x", 1), "output", d("w", d("$push", "$mark"))))
	case 19:
		return d("$unwind", d("path", "$tenant", "preserveNullAndEmptyArrays", true))
	case 20:
		return d("$replaceWith", d("inner", "$$ROOT"))
	case 21:
		return d("$lookup", d("from", d("db", "elsewhere", "coll", "docs"), "pipeline", inner, "as", "j"))
	case 22:
		return d("$documents", bson.A{d("y", 1)})
	}
	return d("$limit", 10)
}

func (w *scopedWorld) pipeline() []bson.D {
	out := []bson.D{}
	for range w.r.IntN(4) {
		out = append(out, w.stage())
	}
	return out
}

func (w *scopedWorld) collation() *allium.Collation {
	if w.r.IntN(4) > 0 {
		return nil
	}
	return &allium.Collation{Locale: "en", Strength: collation.Primary, NumericOrdering: new(true)}
}

func (w *scopedWorld) models() []allium.WriteModel {
	c := w.scoped
	var out []allium.WriteModel
	for range 1 + w.r.IntN(3) {
		upsert := w.r.IntN(3) == 0
		out = append(out, pick(w.r,
			c.InsertOneModel(w.document()),
			c.UpdateOneModel(w.where(), w.change(), allium.UpdateModelOptions{Upsert: upsert, Collation: w.collation()}),
			c.UpdateManyModel(w.where(), w.change(), allium.UpdateModelOptions{Upsert: upsert}),
			c.ReplaceOneModel(w.where(), w.document(), allium.ReplaceModelOptions{Upsert: upsert, Collation: w.collation()}),
			c.DeleteOneModel(w.where(), allium.DeleteModelOptions{Collation: w.collation()}),
			c.DeleteManyModel(d("$and", bson.A{w.where(), d("x", 1)}))))
	}
	return out
}

// seen returns what a call returned, as text.
func seen(v any, err error) (string, error) { return fmt.Sprint(v), err }

func all(ctx context.Context, cur *allium.Cursor[bson.D], err error) (string, error) {
	if err != nil {
		return "", err
	}
	return seen(cur.All(ctx))
}

// within are the operations that keep within a scope, by their names in the API. What they return
// is all that they tell of documents.
var within = map[string]func(ctx context.Context, w *scopedWorld) (string, error){
	"Collection.Find": func(ctx context.Context, w *scopedWorld) (string, error) {
		cur, err := w.scoped.Find(ctx, w.where(), allium.FindOptions{Collation: w.collation(), BatchSize: new(int32(2))})
		return all(ctx, cur, err)
	},
	"Collection.All": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.All(ctx, w.where(), allium.FindOptions{Sort: d("x", 1), Skip: 1}))
	},
	"Collection.Query": func(ctx context.Context, w *scopedWorld) (out string, err error) {
		for doc, err := range w.scoped.Query(ctx, w.where()) {
			if err != nil {
				return "", err
			}
			out += fmt.Sprint(doc)
		}
		return out, nil
	},
	"Collection.FindOne": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.FindOne(ctx, w.where(), allium.FindOneOptions{Collation: w.collation()}))
	},
	"Collection.Aggregate": func(ctx context.Context, w *scopedWorld) (string, error) {
		cur, err := w.scoped.Aggregate(ctx, w.pipeline(), allium.AggregateOptions{Collation: w.collation()})
		return all(ctx, cur, err)
	},
	"allium.Aggregate": func(ctx context.Context, w *scopedWorld) (string, error) {
		cur, err := allium.Aggregate[bson.D](ctx, w.scoped, w.pipeline())
		return all(ctx, cur, err)
	},
	"Database.Aggregate": func(ctx context.Context, w *scopedWorld) (string, error) {
		cur, err := w.scoped.Database().Aggregate(ctx, append([]bson.D{d("$documents", bson.A{d("x", 1)})}, w.pipeline()...))
		return all(ctx, cur, err)
	},
	"Collection.CountDocuments": func(ctx context.Context, w *scopedWorld) (string, error) {
		n, err := w.scoped.CountDocuments(ctx, d())
		return w.counted(ctx, n, err)
	},
	"Collection.Count": func(ctx context.Context, w *scopedWorld) (string, error) {
		n, err := w.scoped.Count(ctx, d())
		return w.counted(ctx, n, err)
	},
	"Collection.EstimatedDocumentCount": func(ctx context.Context, w *scopedWorld) (string, error) {
		n, err := w.scoped.EstimatedDocumentCount(ctx)
		return w.counted(ctx, n, err)
	},
	"allium.Distinct": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(allium.Distinct[any](ctx, w.scoped, "mark", w.where(), allium.DistinctOptions{Collation: w.collation()}))
	},
	"Collection.InsertOne": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.InsertOne(ctx, w.document()))
	},
	"UntypedCollection.InsertOne": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.InsertOne(ctx, bson.M{"tenant": w.value()}))
	},
	"Collection.InsertMany": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.Collection.InsertMany(ctx, []bson.D{w.document(), w.document()}))
	},
	"UntypedCollection.InsertMany": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.InsertMany(ctx, []any{w.document(), w.document()}, allium.InsertManyOptions{Unordered: true}))
	},
	"Collection.UpdateOne": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.UpdateOne(ctx, w.where(), w.change(), allium.UpdateOptions{Upsert: w.r.IntN(3) == 0, Collation: w.collation()}))
	},
	"Collection.UpdateMany": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.UpdateMany(ctx, w.where(), w.change(), allium.UpdateOptions{Upsert: w.r.IntN(3) == 0, Collation: w.collation()}))
	},
	"Collection.ReplaceOne": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.Collection.ReplaceOne(ctx, w.where(), w.document(), allium.ReplaceOptions{Upsert: w.r.IntN(3) == 0}))
	},
	"UntypedCollection.ReplaceOne": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.ReplaceOne(ctx, w.where(), w.document(), allium.ReplaceOptions{Upsert: w.r.IntN(3) == 0, Collation: w.collation()}))
	},
	"Collection.DeleteOne": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.DeleteOne(ctx, w.where(), allium.DeleteOptions{Collation: w.collation()}))
	},
	"Collection.DeleteMany": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.DeleteMany(ctx, d("$and", bson.A{w.where(), d("x", w.r.IntN(4))}), allium.DeleteOptions{Collation: w.collation()}))
	},
	"Collection.FindOneAndUpdate": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.FindOneAndUpdate(ctx, w.where(), w.change(), allium.FindOneAndUpdateOptions{Upsert: w.r.IntN(3) == 0, ReturnNew: w.r.IntN(2) == 0, Collation: w.collation()}))
	},
	"Collection.FindOneAndReplace": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.Collection.FindOneAndReplace(ctx, w.where(), w.document(), allium.FindOneAndReplaceOptions{Upsert: w.r.IntN(3) == 0}))
	},
	"UntypedCollection.FindOneAndReplace": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.FindOneAndReplace(ctx, w.where(), w.document(), allium.FindOneAndReplaceOptions{ReturnNew: true, Collation: w.collation()}))
	},
	"Collection.FindOneAndDelete": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.FindOneAndDelete(ctx, w.where(), allium.FindOneAndDeleteOptions{Collation: w.collation()}))
	},
	"Collection.BulkWrite": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.BulkWrite(ctx, w.models(), allium.BulkWriteOptions{Unordered: w.r.IntN(2) == 0}))
	},
	"Client.BulkWrite": func(ctx context.Context, w *scopedWorld) (string, error) {
		models := w.models()
		if w.r.IntN(4) == 0 {
			models = append(models, w.all.InsertOneModel(d()))
		}
		return seen(w.all.Database().Client().BulkWrite(ctx, models, allium.ClientBulkWriteOptions{VerboseResults: true}))
	},
	"allium.Save": func(ctx context.Context, w *scopedWorld) (string, error) {
		before, err := w.all.FindOne(context.Background(), d("_id", w.r.IntN(40))) // which the program may know from elsewhere
		if err != nil {
			return "", err
		}
		after := w.document()
		id, _ := before.Get("_id")
		after.Set("_id", id)
		return "", allium.Save(ctx, &w.scoped.Collection, "v", before, &after)
	},
	"Collection.ListIndexes": func(ctx context.Context, w *scopedWorld) (string, error) {
		cur, err := w.scoped.ListIndexes(ctx)
		return "", rig.Drain(ctx, cur, err)
	},
	"Collection.ListIndexNames": func(ctx context.Context, w *scopedWorld) (string, error) { return seen(w.scoped.ListIndexNames(ctx)) },
	"Database.ListCollections": func(ctx context.Context, w *scopedWorld) (string, error) {
		cur, err := w.scoped.Database().ListCollections(ctx)
		return "", rig.Drain(ctx, cur, err)
	},
	"Database.ListCollectionNames": func(ctx context.Context, w *scopedWorld) (string, error) {
		return seen(w.scoped.Database().ListCollectionNames(ctx))
	},
	"Database.Collections": func(ctx context.Context, w *scopedWorld) (string, error) {
		list, err := w.scoped.Database().Collections(ctx)
		if err != nil {
			return "", err
		}
		out := ""
		for _, c := range list {
			docs, err := c.All(ctx, d())
			if err != nil {
				return "", err
			}
			out += fmt.Sprint(docs)
		}
		return out, nil
	},
}

// refusedInScope are the operations that concern more than documents.
var refusedInScope = map[string]func(ctx context.Context, c *allium.UntypedCollection) error{
	"Collection.CreateIndex": func(ctx context.Context, c *allium.UntypedCollection) error {
		return rig.ErrorOf(c.CreateIndex(ctx, allium.IndexModel{Keys: d("x", 1)}))
	},
	"Collection.DropIndex": func(ctx context.Context, c *allium.UntypedCollection) error { return c.DropIndex(ctx, "at_2d") },
	"Collection.Drop":      func(ctx context.Context, c *allium.UntypedCollection) error { return c.Drop(ctx) },
	"Collection.Rename":    func(ctx context.Context, c *allium.UntypedCollection) error { return c.Rename(ctx, "stolen") },
	"Database.Drop":        func(ctx context.Context, c *allium.UntypedCollection) error { return c.Database().Drop(ctx) },
	"Database.CreateCollection": func(ctx context.Context, c *allium.UntypedCollection) error {
		return c.Database().CreateCollection(ctx, "view", allium.CreateCollectionOptions{ViewOn: c.Name(), Pipeline: bson.A{}})
	},
	"Database.RunCommand": func(ctx context.Context, c *allium.UntypedCollection) error {
		return rig.ErrorOf(c.Database().RunCommand(ctx, d("find", c.Name())))
	},
	"Database.ModifyCollection":      rig.FurtherOperations["Database.ModifyCollection"],
	"Database.RunCursorCommand":      rig.FurtherOperations["Database.RunCursorCommand"],
	"allium.RunCursorCommand":        rig.FurtherOperations["allium.RunCursorCommand"],
	"Collection.CreateIndexes":       rig.FurtherOperations["Collection.CreateIndexes"],
	"Collection.DropIndexes":         rig.FurtherOperations["Collection.DropIndexes"],
	"Collection.DropSearchIndex":     rig.FurtherOperations["Collection.DropSearchIndex"],
	"Collection.CreateSearchIndex":   rig.FurtherOperations["Collection.CreateSearchIndex"],
	"Collection.CreateSearchIndexes": rig.FurtherOperations["Collection.CreateSearchIndexes"],
	"Collection.UpdateSearchIndex":   rig.FurtherOperations["Collection.UpdateSearchIndex"],
}

// besideScopes says of the other functions and methods that take a context why no scope concerns
// them.
var besideScopes = map[string]string{
	"Collection.ListSearchIndexes": "tells of no documents; mongotest may lack it", "Collection.Watch": "TestScopedStream", "Database.Watch": "TestScopedStream", "allium.Watch": "TestScopedStream",
	"Client.": "is the way out of a scope", "Session.": "has no documents", "Cursor.": "has those of the operation that opened it", "ChangeStream.": "has the events of Watch",
	"allium.SessionFrom": "has no documents", "allium.WithSession": "has no documents",
}

// counted compares a number with that of the documents in the scope.
func (w *scopedWorld) counted(ctx context.Context, n int64, err error) (string, error) {
	if err != nil {
		return "", err
	}
	want, err := w.all.CountDocuments(ctx, w.filter)
	if err == nil && n != want {
		err = fmt.Errorf("counted %d documents, the scope has %d", n, want)
	}
	return "", err
}

// TestNoOperationIsForgotten: each function and method that takes a context is among those that the
// property below runs, or that a scope refuses.
func TestNoOperationIsForgotten(t *testing.T) {
	names := rig.TakingContext(t, "../../..")
	if len(names) < 60 {
		t.Fatalf("only %d found", len(names))
	}
	for _, name := range names {
		of, _, _ := strings.Cut(name, ".")
		if within[name] == nil && refusedInScope[name] == nil && besideScopes[name] == "" && (of == "allium" || besideScopes[of+"."] == "") {
			t.Errorf("nobody says what %s does in a scope", name)
		}
	}
	for name := range maps.Keys(within) {
		if !slices.Contains(names, name) {
			t.Errorf("there is no %s", name)
		}
	}
}

func newScopedWorld(t *testing.T, r *rand.Rand, client *allium.Client, n int) *scopedWorld {
	w := &scopedWorld{r: r}
	db := client.Database("scoped")
	if err := db.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.all, w.other = db.Collection(fmt.Sprintf("docs%d", n)), db.Collection("other")
	filters := [][]bson.D{
		{d("tenant", "a")}, {d("tenant", "a"), d("deleted", nil)}, {d("owner.id", 1)}, {d("tenant", d("$in", bson.A{"a", 1}))}, {d("x", d("$ne", 3))},
		{d("deleted", d("$exists", false))}, {d("tenant", 1)}, {d("owner", d("id", 1))}, {d("tenant", d("$nin", bson.A{"b", nil}))}, {d("owner.id", d("$exists", true)), d("x", 1)},
		{d("tenant", "a", "deleted", nil)},
	}
	var onInsert, onUpdate func(context.Context) bson.D
	if r.IntN(2) == 0 {
		v := pick[any](r, "a", 1)
		onInsert = func(context.Context) bson.D { return d("tenant", v, "created", 7) }
	}
	if r.IntN(2) == 0 {
		onUpdate = pick(r, func(context.Context) bson.D { return d("$set", d("changed", 8)) }, func(context.Context) bson.D { return d("$set", d("changed", 8), "$inc", d("version", 1)) })
	}
	whole := bson.A{}
	scopedDB, scoped := db, w.all
	ofDatabase := r.IntN(2) == 0
	for _, f := range filters[n%len(filters)] {
		s := allium.Scope{Filter: f, OnInsert: onInsert, OnUpdate: onUpdate}
		scopedDB, scoped = scopedDB.Scoped(s), scoped.Scoped(s)
		whole = append(whole, f)
	}
	w.scoped = scoped
	if ofDatabase {
		w.scoped = scopedDB.Collection(w.all.Name())
	}
	w.filter = d("$and", whole)
	var docs []bson.D
	for i := range 40 {
		docs = append(docs, append(d("_id", i), w.document()...))
	}
	if _, err := w.all.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	if _, err := w.all.CreateIndex(t.Context(), allium.IndexModel{Keys: d("at", "2d")}); err != nil {
		t.Fatal(err)
	}
	docs = nil
	for range 10 {
		docs = append(docs, w.document())
	}
	if _, err := w.other.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	return w
}

// picture is what there is.
type picture struct {
	in, out map[string]string // documents of the collection and of the other one, by _id
}

func (w *scopedWorld) picture(t *testing.T) picture {
	p := picture{map[string]string{}, map[string]string{}}
	for _, c := range []*allium.UntypedCollection{w.all, w.other} {
		for to, filter := range map[*map[string]string]bson.D{&p.in: w.filter, &p.out: d("$nor", bson.A{w.filter})} {
			docs, err := c.All(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range docs {
				id, _ := doc.Get("_id")
				(*to)[fmt.Sprint(c.Name(), " ", id)] = fmt.Sprint(doc)
			}
		}
	}
	return p
}

// TestScopesHold: whatever the documents, the scopes and the arguments, no operation reads or
// writes a document outside of its scope, as a client without one sees it.
func TestScopesHold(t *testing.T) {
	for _, kind := range []testdeploy.Kind{testdeploy.ReplicaSet(1)} {
		dep := testdeploy.Start(t, kind)
		client := rig.Open(t, dep.URI())
		ctx := t.Context()
		done, refusals := map[string]int{}, map[string]int{}
		names := slices.Sorted(maps.Keys(within))
		rounds := scopedRounds
		if norace.Detecting {
			rounds /= 3
		}
		for n := range rounds {
			w := newScopedWorld(t, rand.New(rand.NewPCG(scopedSeed, uint64(n))), client, n)
			for range 120 {
				name := pick(w.r, names...)
				before := w.picture(t)
				var got string
				var err error
				run := func(ctx context.Context) error {
					got, err = within[name](ctx, w)
					return err
				}
				if w.r.IntN(5) == 0 && name != "Collection.EstimatedDocumentCount" && name != "Collection.Count" {
					_ = client.Transact(ctx, run)
				} else {
					_ = run(ctx)
				}
				after := w.picture(t)
				switch {
				case err == nil || errors.Is(err, mongoerr.ErrNoDocuments):
					done[name]++
				case errors.Is(err, mongoerr.ErrScope):
					refusals[name]++
				case strings.Contains(err.Error(), "counted"):
					t.Fatalf("%s in %v: %v", name, w.filter, err)
				}
				for id, doc := range before.out {
					if after.out[id] != doc {
						t.Fatalf("%s changed a document outside of %v:\n%s\n%s%s (error %v)", name, w.filter, doc, after.out[id], after.in[id], err)
					}
					_, mark, _ := strings.Cut(doc, "mark-")
					if mark, _, _ = strings.Cut(mark, "."); mark != "" && strings.Contains(got, "mark-"+mark+".") {
						t.Fatalf("%s told of a document outside of %v:\n%s\n%s", name, w.filter, doc, got)
					}
				}
				for id, doc := range after.out {
					if before.out[id] == "" {
						t.Fatalf("%s left a document outside of %v:\n%s\nbefore: %s (error %v)", name, w.filter, doc, before.in[id], err)
					}
				}
			}
			for name, op := range refusedInScope {
				if err := op(ctx, w.scoped); !errors.Is(err, mongoerr.ErrScope) {
					t.Errorf("%s: %v, want ErrScope", name, err)
				}
			}
			fields := d("filter", d()) // which a server might take for the command's own
			if _, err := w.scoped.With(allium.CollectionOptions{CommandFields: fields}).Find(ctx, d()); !errors.Is(err, mongoerr.ErrScope) {
				t.Errorf("Find with CommandFields: %v, want ErrScope", err)
			}
			if _, err := client.BulkWrite(ctx, []allium.WriteModel{w.scoped.DeleteOneModel(d())}, allium.ClientBulkWriteOptions{CommandFields: fields}); !errors.Is(err, mongoerr.ErrScope) {
				t.Errorf("Client.BulkWrite with CommandFields: %v, want ErrScope", err)
			}
		}
		for _, name := range names {
			if done[name] == 0 {
				t.Errorf("%s has never succeeded: it shows nothing", name)
			}
		}
		t.Logf("done %v, refused %v", done, refusals)
	}
}

const (
	scopedSeed   = 20
	scopedRounds = 22
)

// TestScopedStream: a change stream in a scope has the events of its documents, and of no others.
func TestScopedStream(t *testing.T) {
	dep := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client := rig.Open(t, dep.URI())
	for n := range 11 {
		w := newScopedWorld(t, rand.New(rand.NewPCG(scopedSeed, uint64(n))), client, n)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		streams := map[string]*allium.ChangeStream[bson.D]{}
		var err error
		if streams["collection"], err = w.scoped.Watch(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if streams["database"], err = w.scoped.Database().Watch(ctx, []bson.D{d("$match", d("operationType", d("$ne", "x")))}); err != nil {
			t.Fatal(err)
		}
		told := map[string]bool{} // the marks of documents that were in the scope at a time
		note := func() {
			for _, doc := range w.picture(t).in {
				told[doc[strings.Index(doc, "mark"):]] = true
			}
		}
		for range 30 {
			note()
			switch id := d("_id", w.r.IntN(40)); w.r.IntN(4) {
			case 0:
				_, err = w.all.InsertOne(ctx, w.document())
			case 1:
				_, err = w.all.UpdateOne(ctx, id, d("$set", d("y", w.r.IntN(100))))
			case 2:
				_, err = w.all.ReplaceOne(ctx, id, w.document())
			default:
				_, err = w.all.DeleteOne(ctx, id)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		note()
		last := d("_id", "last", "tenant", "a", "owner", d("id", 1), "x", 1)
		if n%11 == 6 {
			last.Set("tenant", 1)
		}
		if _, err := w.all.InsertOne(ctx, last); err != nil {
			t.Fatal(err)
		}
		events := 0
		for name, s := range streams {
			for s.Next(ctx) {
				ev := s.Current()
				if ev.DocumentKey.Lookup("_id").String() == `"last"` {
					break
				}
				events++
				doc := fmt.Sprint(ev.FullDocument)
				if i := strings.Index(doc, "mark"); i < 0 || !told[doc[i:]] && !told[doc[i:]+"]"] {
					if !markIn(told, doc) {
						t.Errorf("%s in %v: %s %v", name, w.filter, ev.OperationType, doc)
					}
				}
			}
			if err := s.Err(); err != nil {
				t.Fatal(name, err)
			}
			s.Close(ctx)
		}
		if events == 0 {
			t.Errorf("no event in %v", w.filter)
		}
		if _, err := w.scoped.Watch(ctx, nil, allium.WatchOptions{FullDocument: allium.FullDocumentDefault}); !errors.Is(err, mongoerr.ErrScope) {
			t.Error(err)
		}
	}
}

// markIn reports whether the mark of a document is among those.
func markIn(told map[string]bool, doc string) bool {
	_, mark, _ := strings.Cut(doc, "mark-")
	mark, _, _ = strings.Cut(mark, ".")
	for s := range told {
		if strings.Contains(s, "mark-"+mark+".") {
			return true
		}
	}
	return false
}

// TestScopedBucket: GridFS keeps within a scope of the database, with both of its collections.
func TestScopedBucket(t *testing.T) {
	dep := testdeploy.Start(t, testdeploy.Any)
	db := rig.Open(t, dep.URI()).Database("scoped")
	of := func(tenant string) *gridfs.Bucket {
		return gridfs.NewBucket(db.Scoped(allium.Scope{Filter: d("tenant", tenant), OnInsert: func(context.Context) bson.D { return d("tenant", tenant) }}))
	}
	ctx := t.Context()
	if _, err := of("a").UploadFromStream(ctx, "f", strings.NewReader("a")); !errors.Is(err, mongoerr.ErrScope) {
		t.Errorf("an upload makes indexes: %v", err)
	}
	if _, err := gridfs.NewBucket(db).UploadFromStream(ctx, "f", strings.NewReader("nobody's")); err != nil {
		t.Fatal(err)
	}
	id, err := of("a").UploadFromStream(ctx, "f", strings.NewReader("a's"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if _, err := of("a").DownloadToStreamByName(ctx, "f", &got); err != nil || got.String() != "a's" {
		t.Errorf("%q %v", &got, err)
	}
	if _, err := of("b").DownloadToStream(ctx, id, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another tenant reads the file: %v", err)
	}
	if err := of("b").Delete(ctx, id); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another tenant deletes the file: %v", err)
	}
	for name, want := range map[string]int64{"fs.files": 2, "fs.chunks": 2} {
		if n, err := db.Collection(name).CountDocuments(ctx, d()); n != want || err != nil {
			t.Errorf("%s: %d %v", name, n, err)
		}
	}
}

// TestScopedEncryption: a scope holds for what is encrypted on its way to the server, also by a
// field that is.
func TestScopedEncryption(t *testing.T) {
	type patient struct {
		Tenant string `bson:"tenant"`
		Ward   string `bson:"ward"`
		SSN    string `bson:"ssn"`
	}
	dep := encryptiontest.Start(t)
	ctx := t.Context()
	fields, err := encryption.EncryptedFieldsFor[patient](encryption.Field{Path: "ssn", Algorithm: encryption.Indexed}, encryption.Field{Path: "tenant", Algorithm: encryption.Indexed})
	if err != nil {
		t.Fatal(err)
	}
	_, err = dep.Keys.CreateEncryptedCollection(ctx, dep.Plain.Database("app"), "patients", encryption.CollectionOptions{
		Provider: encryptiontest.Provider, Create: allium.CreateCollectionOptions{EncryptedFields: fields}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := dep.Client(encryption.AutoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	all := allium.CollectionOf[patient](client.Database("app"), "patients")
	if _, err := all.InsertMany(ctx, []patient{{"a", "1", "11"}, {"b", "1", "22"}, {"a", "2", "33"}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field string
		want  int
	}{{"tenant", 2}, {"ward", 2}} {
		value := map[string]string{"tenant": "a", "ward": "1"}[c.field]
		scoped := all.Scoped(allium.Scope{Filter: d(c.field, value)})
		docs, err := scoped.All(ctx, d())
		if err != nil || len(docs) != c.want {
			t.Errorf("%s: %v %v", c.field, docs, err)
		}
		if _, err := scoped.FindOne(ctx, d("ssn", map[string]string{"tenant": "22", "ward": "33"}[c.field])); !errors.Is(err, mongoerr.ErrNoDocuments) {
			t.Errorf("%s: a foreign document is found by an encrypted field: %v", c.field, err)
		}
		if _, err := scoped.FindOne(ctx, d("ssn", "11")); err != nil {
			t.Errorf("%s: %v", c.field, err)
		}
		if _, err := scoped.InsertOne(ctx, patient{"c", "9", "44"}); !errors.Is(err, mongoerr.ErrScope) {
			t.Errorf("%s: %v", c.field, err)
		}
		if res, err := scoped.UpdateOne(ctx, d("ssn", "11"), d("$set", d("ssn", "11"))); err != nil || res.MatchedCount != 1 {
			t.Errorf("%s: %v %v", c.field, res, err)
		}
		if _, err := scoped.UpdateOne(ctx, d(), d("$set", d(c.field, "z"))); !errors.Is(err, mongoerr.ErrScope) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

// A scope's functions are called once for an operation, however many commands it takes, so that all
// that it writes has the same values.
func TestScopeFunctionsAreCalledOnce(t *testing.T) {
	r := rig.New(t, "replicaset")
	inserts, updates := 0, 0
	coll := r.Client.Database("once").Collection("docs").Scoped(allium.Scope{
		Filter:   d("tenant", "a"),
		OnInsert: func(context.Context) bson.D { inserts++; return d("tenant", "a", "made", inserts) },
		OnUpdate: func(context.Context) bson.D { updates++; return d("$set", d("changed", updates)) },
	})
	change := d("$set", d("x", 1))
	doc := func() bson.D { return d("y", 1) }
	mixed := func() []allium.WriteModel {
		return []allium.WriteModel{coll.InsertOneModel(doc()), coll.UpdateManyModel(d(), change), coll.InsertOneModel(doc()), coll.InsertOneModel(doc()),
			coll.UpdateOneModel(d(), change), coll.DeleteOneModel(d("none", 1)), coll.UpdateManyModel(d(), change), coll.InsertOneModel(doc())}
	}
	for name, tc := range map[string]struct {
		run              func(ctx context.Context) error
		inserts, updates int
	}{
		"InsertMany": {func(ctx context.Context) error {
			return rig.ErrorOf(coll.InsertMany(ctx, []bson.D{doc(), doc(), doc()}))
		}, 1, 0},
		"UpdateMany": {func(ctx context.Context) error { return rig.ErrorOf(coll.UpdateMany(ctx, d(), change)) }, 0, 1},
		"BulkWrite":  {func(ctx context.Context) error { return rig.ErrorOf(coll.BulkWrite(ctx, mixed())) }, 1, 1},
		"BulkWrite, unordered": {func(ctx context.Context) error {
			return rig.ErrorOf(coll.BulkWrite(ctx, mixed(), allium.BulkWriteOptions{Unordered: true}))
		}, 1, 1},
		"BulkWrite of the client": {func(ctx context.Context) error { return rig.ErrorOf(r.Client.BulkWrite(ctx, mixed())) }, 1, 1},
	} {
		inserts, updates = 0, 0
		if err := tc.run(t.Context()); err != nil || inserts != tc.inserts || updates != tc.updates {
			t.Errorf("%s: OnInsert was called %d times, OnUpdate %d: want %d and %d; %v", name, inserts, updates, tc.inserts, tc.updates, err)
		}
	}
}
