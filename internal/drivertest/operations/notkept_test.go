package operations

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/consistency"
	"allium/debug/advisor"
	"allium/encryption"
	"allium/encryption/encryptiontest"
	"allium/encryption/kms"
	"allium/event"
	"allium/gridfs"
	"allium/internal/drivertest/rig"
	"allium/internal/spantest"
	"allium/mongotest"
)

// A given is something that programs hand to the driver: values of it that together set all that
// others could change, and the call that gets each. The call returns what lives on.
type given struct {
	typ    reflect.Type
	values []any
	call   func(h *hands, v any) (any, error)
}

// gives returns a given of T. A field that a value does not set gets what usual has for its name,
// unless unset names it.
func gives[T any](call func(h *hands, v T) (any, error), unset string, values ...T) given {
	g := given{typ: reflect.TypeFor[T](), call: func(h *hands, v any) (any, error) { return call(h, v.(T)) }}
	if values == nil {
		values = make([]T, 1)
	}
	for _, v := range values {
		complete(reflect.ValueOf(&v).Elem(), strings.Fields(unset))
		g.values = append(g.values, v)
	}
	return g
}

// usual has values for fields by their names, or by the names of their types.
func usual(f reflect.StructField) any {
	by := map[string]any{
		"Comment": map[string]any{"by": "me"}, "Hint": bson.D{{Key: "_id", Value: 1}}, "Let": map[string]any{"x": 1}, "Sort": bson.D{{Key: "_id", Value: 1}},
		"Projection": map[string]any{"x": 1}, "Min": bson.D{{Key: "_id", Value: 0}}, "Max": bson.D{{Key: "_id", Value: 100}}, "Filter": map[string]any{"x": 1},
		"BatchSize": new(int32(2)), "ArrayFilters": bson.A{bson.D{{Key: "e", Value: 1}}}, "Timeout": new(time.Minute), "Collation": &allium.Collation{Locale: "en", NumericOrdering: new(false), Normalization: new(false), Backwards: new(false), CaseLevel: new(false)},
		"AllowDiskUse": new(true), "BypassDocumentValidation": new(true), "AuthorizedDatabases": new(true), "Revision": new(-1), "Sparsity": new(int64(1)), "TrimFactor": new(int32(4)),
		"Contention": new(int64(1)), "KeyExpiration": new(time.Minute), "ReadConcern": &consistency.ReadConcern{Level: "local"},
		"WriteConcern":   &consistency.WriteConcern{W: 1, Journal: new(true)},
		"ReadPreference": &consistency.ReadPreference{Mode: consistency.PrimaryPreferred, TagSets: []event.TagSet{{"dc": "a"}, {}}, Hedge: new(true)},
		"BSON":           &bson.Options{NilSliceAsNull: true, Codecs: rig.Must(bson.NewCodecs()), Types: rig.Must(bson.NewTypeMap(nil))},
	}
	return by[f.Name]
}

// complete sets what v leaves out.
func complete(v reflect.Value, unset []string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if u := usual(f); u != nil && v.Field(i).IsZero() && !slices.Contains(unset, f.Name) && reflect.TypeOf(u).AssignableTo(f.Type) {
			v.Field(i).Set(reflect.ValueOf(u))
		}
	}
}

// hands are what the calls use.
type hands struct {
	t        *testing.T
	ctx      context.Context
	uri      string
	client   *allium.Client
	db       *allium.Database
	coll     *allium.UntypedCollection
	bucket   *gridfs.Bucket
	file     bson.ObjectID
	crypt    *encryptiontest.Deployment
	key      bson.UUID
	sessions []*allium.Session
}

func (h *hands) fresh(name string) *allium.UntypedCollection {
	coll := h.db.Collection(name)
	_ = coll.Drop(h.ctx)
	rig.Must(coll.InsertOne(h.ctx, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{1}}}))
	return coll
}

// A trace is what a value consists of that somebody could keep.
type trace struct {
	at   string
	dead func() bool
}

// followed returns a copy of v that shares nothing with it, and finds what it consists of. Shared
// are functions, what only its own package can copy, and what interfaces hold that others
// implement.
func followed(v reflect.Value, at string, found *[]trace) reflect.Value {
	note := func(p unsafe.Pointer) {
		w := weak.Make((*byte)(p))
		*found = append(*found, trace{at, func() bool { return w.Value() == nil }})
	}
	typ := v.Type()
	switch typ.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		if !v.IsNil() { // it is set, though it may be shared
			*found = append(*found, trace{at, func() bool { return true }})
		}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		if m, ok := typ.MethodByName("Clone"); ok && m.Type.NumIn() == 1 && m.Type.NumOut() == 1 {
			c := v.MethodByName("Clone").Call(nil)[0]
			note(c.UnsafePointer())
			if typ.Elem().Kind() == reflect.Struct {
				for i := range typ.Elem().NumField() {
					if f := c.Elem().Field(i); f.CanSet() {
						f.Set(followed(f, at+"."+typ.Elem().Field(i).Name, found))
					}
				}
			}
			return c
		}
		if typ.Elem().Kind() == reflect.Struct && !transparent(typ.Elem()) {
			return v
		}
		c := apart(typ.Elem())
		c.Set(followed(v.Elem(), at, found))
		note(c.Addr().UnsafePointer())
		return c.Addr().Convert(typ)
	case reflect.Struct:
		if !transparent(typ) {
			return v
		}
		c := reflect.New(typ).Elem()
		for i := range typ.NumField() {
			c.Field(i).Set(followed(v.Field(i), at+"."+typ.Field(i).Name, found))
		}
		return c
	case reflect.Slice:
		if v.IsNil() || v.Len() == 0 {
			return v
		}
		c := reflect.MakeSlice(typ, v.Len(), v.Len()+64)
		for i := range v.Len() {
			c.Index(i).Set(followed(v.Index(i), at, found))
		}
		note(c.UnsafePointer())
		return c
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeMap(typ)
		for iter := v.MapRange(); iter.Next(); {
			c.SetMapIndex(iter.Key(), followed(iter.Value(), at, found))
		}
		note(c.UnsafePointer())
		return c
	case reflect.Interface:
		if v.IsNil() || typ.NumMethod() > 0 && !reflect.TypeFor[kms.Provider]().AssignableTo(typ) && !reflect.TypeFor[kms.MasterKey]().AssignableTo(typ) && typ != reflect.TypeFor[allium.WriteModel]() {
			return v
		}
		c := reflect.New(typ).Elem()
		c.Set(followed(v.Elem(), at, found))
		return c
	}
	return v
}

// apart returns a variable that shares no memory with another one, as small ones would.
func apart(typ reflect.Type) reflect.Value {
	return reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: typ}, {Name: "P", Type: reflect.TypeFor[*byte]()}})).Elem().Field(0)
}

func transparent(typ reflect.Type) bool {
	for i := range typ.NumField() {
		if !typ.Field(i).IsExported() {
			return false
		}
	}
	return true
}

// refs lists the fields in which a value of the type shares something with its copies.
func refs(typ reflect.Type, at string, out map[string]bool) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		out[at] = true
		if typ.Elem().PkgPath() != "" && strings.HasPrefix(typ.Elem().PkgPath(), "allium") && typ.Elem().Kind() == reflect.Struct && transparent(typ.Elem()) {
			refs(typ.Elem(), at, out)
		}
	case reflect.Interface:
		if typ.NumMethod() == 0 {
			out[at] = true
		}
	case reflect.Struct:
		for i := range typ.NumField() {
			refs(typ.Field(i).Type, at+"."+typ.Field(i).Name, out)
		}
	}
}

// hand hands a traced value to the driver. Nothing of it is on its stack afterwards.
//
//go:noinline
func (g *given) hand(h *hands, v any) (lives any, found []trace, err error) {
	c := followed(reflect.ValueOf(v), "", &found)
	lives, err = g.call(h, c.Interface())
	return lives, found, err
}

// TestNothingIsKept hands options, models and what else programs make to the driver. Once the call
// has returned, nothing of what they consist of is held by what the call has opened, nor by the
// client: what a program changes afterwards cannot have an effect, not even in a cursor, a resume,
// a goroutine in the background, or a cache. The test fails for a type that it does not know.
func TestNothingIsKept(t *testing.T) {
	d := encryptiontest.Start(t, mongotest.Search(0))
	h := &hands{t: t, ctx: t.Context(), uri: d.URI(), crypt: d}
	h.client = rig.Open(t, h.uri)
	h.db = h.client.Database("d")
	h.coll = h.db.Collection("c")
	for i := range 6 {
		rig.Must(h.coll.InsertOne(h.ctx, bson.D{{Key: "_id", Value: i}, {Key: "x", Value: i}}))
	}
	h.bucket = gridfs.NewBucket(h.db)
	h.file = rig.Must(h.bucket.UploadFromStream(h.ctx, "file", strings.NewReader("text")))
	h.key = rig.Must(d.Keys.CreateDataKey(h.ctx, encryptiontest.Provider))

	missing := map[string]map[string]bool{}
	for _, g := range allGivens(h) {
		name := g.typ.PkgPath() + "." + g.typ.Name()
		if missing[name] == nil {
			missing[name] = map[string]bool{}
			refs(g.typ, "", missing[name])
		}
		t.Run(name, func(t *testing.T) {
			for i, v := range g.values {
				lives, found, err := g.hand(h, v)
				if err != nil {
					t.Errorf("value %d: %v", i, err)
					continue
				}
				for range 5 { // what lies in pools goes with the second time
					runtime.GC()
					if !slices.ContainsFunc(found, func(f trace) bool { return !f.dead() }) {
						break
					}
				}
				for _, f := range found {
					delete(missing[name], f.at)
					if !f.dead() {
						t.Errorf("value %d: %s is kept", i, f.at)
					}
				}
				runtime.KeepAlive(lives)
			}
		})
	}
	for name, fields := range missing {
		for at := range fields {
			part := name + at
			for neverSet[part] == "" && strings.HasPrefix(part, name+".") {
				part = part[:strings.LastIndex(part, ".")]
			}
			if neverSet[part] == "" {
				t.Errorf("%s%s is not set by any value", name, at)
			}
		}
	}
	declared := map[string]string{
		"allium/bson.Binary":                  "a value, which is encoded or decrypted in the call",
		"allium/bson.Options":                 "how field.Of names fields, which it does in the call",
		"allium/field.PushOptions":            "a part of a document, which is made in the call",
		"allium/field/expr.Case":              "a part of a document, which is made in the call",
		"allium/field/stage.MergeOptions":     "a part of a document, which is made in the call",
		"allium/field/typed.FindOptions":      "those of package allium, which are tried, with other types",
		"allium/field/typed.FindOneOptions":   "those of package allium, which are tried, with other types",
		"allium/bson.RawValue":                "a value, which is decoded in the call",
		"allium/event.ServerDescription":      "what the driver tells listeners; no call keeps one",
		"allium/event.TopologyDescription":    "what the driver tells listeners; no call keeps one",
		"allium/patterns/schema.Schema":       "what is declared, which lives as long as the program",
		"allium/patterns/schema.ReadOptions":  "names, which are sent in the call",
		"allium/patterns/migrate.Step":        "what a program runs, which lives as long as it",
		"allium/patterns/migrate.Options":     "settings of a call, which are looked at in it",
		"allium/patterns/migrate.EachOptions": "a part of a step",
		"allium/consistency.ReadPreference":   "the parameter of a method of a description, which looks at it in the call",
		"allium/patterns/stream.Options":      "Run uses them until it returns",
		"allium/patterns/paging.Options":      "a find command is made of it in the call, whose options are tried",
		"allium/patterns/joined.Options":      "joined.TestOptionsAreCopied has it",
		"allium/patterns/cached.Options":      "cached.TestOptionsAreCopied has it",
		"allium/patterns/queue.RunOptions":    "Run uses them until it returns",
	}
	for _, name := range handedOver(t) {
		if (missing[name] != nil) == (declared[name] != "") {
			t.Errorf("%s is handed to the driver: add what a program does with it, or say why it need not be tried", name)
		}
	}
}

// neverSet has the fields that no value below sets.
var neverSet = map[string]string{
	"allium.ClientOptions.SRVMaxHosts":           "it needs a name server; TestOptionsAreCopied has it",
	"allium/encryption.CollectionOptions.Create": "allium.CreateCollectionOptions is tried by itself",
	"allium/debug/advisor.Options.Declared":      "a client that is used as long as the advisor",
	"allium.SessionOptions.Transaction.Timeout":  "it is refused: SessionOptions.Timeout is the one",
}

// allGivens are all that the driver takes.
func allGivens(h *hands) []given {
	nothing := func(err error) (any, error) { return nil, err }
	drain := func(c interface {
		Next(context.Context) bool
		Err() error
	}, err error) (any, error) {
		if err == nil {
			c.Next(h.ctx)
			err = c.Err()
		}
		return c, err
	}
	bulk := func(model func(coll *allium.UntypedCollection) allium.WriteModel) (any, error) {
		coll := h.fresh("bulk")
		rig.Must(coll.CreateIndex(h.ctx, allium.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}}))
		if _, err := coll.BulkWrite(h.ctx, []allium.WriteModel{model(coll)}); err != nil {
			return nil, err
		}
		return nothing(rig.ErrorOf(h.client.BulkWrite(h.ctx, []allium.WriteModel{model(h.fresh("bulk2"))})))
	}
	byID, set := bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a.$[e]", Value: 2}}}}
	lasting := func(db *allium.Database) (any, error) {
		return drain(db.Collection("c").Find(h.ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(1))}))
	}
	token := func() bson.Raw {
		s := rig.Must(h.coll.Watch(h.ctx, nil))
		defer s.Close(h.ctx)
		s.TryNext(h.ctx)
		return s.ResumeToken()
	}
	fields := map[string]any{"fields": bson.A{bson.D{{Key: "path", Value: "p"}, {Key: "bsonType", Value: "string"}, {Key: "keyId", Value: nil}}}}
	watch := allium.WatchOptions{MaxAwaitTime: time.Millisecond}
	after, start, at := watch, watch, watch
	after.ResumeAfter, start.StartAfter, at.StartAtOperationTime = token(), token(), &bson.Timestamp{T: uint32(time.Now().Unix())}

	return []given{
		// Operations.
		gives(func(h *hands, o allium.FindOptions) (any, error) { return drain(h.coll.Find(h.ctx, bson.D{}, o)) }, "Min Max"),
		gives(func(h *hands, o allium.FindOptions) (any, error) { return drain(h.coll.Find(h.ctx, bson.D{}, o)) }, "Collation"),
		gives(func(h *hands, o allium.FindOneOptions) (any, error) {
			return nothing(rig.ErrorOf(h.coll.FindOne(h.ctx, bson.D{}, o)))
		}, ""),
		gives(func(h *hands, o allium.AggregateOptions) (any, error) {
			return drain(h.coll.Aggregate(h.ctx, []bson.D{{{Key: "$match", Value: bson.D{}}}}, o))
		}, ""),
		gives(func(h *hands, o allium.WatchOptions) (any, error) {
			s, err := h.coll.Watch(h.ctx, nil, o)
			if err == nil {
				s.TryNext(h.ctx)
				err = s.Err()
			}
			return s, err
		}, "", after, start, at),
		gives(func(h *hands, o allium.CountOptions) (any, error) {
			return nothing(rig.ErrorOf(h.coll.CountDocuments(h.ctx, bson.D{}, o)))
		}, ""),
		gives(func(h *hands, o allium.EstimatedCountOptions) (any, error) {
			return nothing(rig.ErrorOf(h.coll.EstimatedDocumentCount(h.ctx, o)))
		}, ""),
		gives(func(h *hands, o allium.DistinctOptions) (any, error) {
			return nothing(rig.ErrorOf(allium.Distinct[int](h.ctx, h.coll, "x", bson.D{}, o)))
		}, ""),
		gives(func(h *hands, o allium.InsertOneOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("i").InsertOne(h.ctx, bson.D{}, o)))
		}, ""),
		gives(func(h *hands, o allium.InsertManyOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("i").InsertMany(h.ctx, []bson.D{{}}, o)))
		}, ""),
		gives(func(h *hands, o allium.UpdateOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("u").UpdateOne(h.ctx, byID, set, o)))
		}, ""),
		gives(func(h *hands, o allium.ReplaceOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("u").ReplaceOne(h.ctx, byID, bson.D{}, o)))
		}, ""),
		gives(func(h *hands, o allium.DeleteOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("u").DeleteOne(h.ctx, byID, o)))
		}, ""),
		gives(func(h *hands, o allium.FindOneAndUpdateOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("u").FindOneAndUpdate(h.ctx, byID, set, o)))
		}, ""),
		gives(func(h *hands, o allium.FindOneAndReplaceOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("u").FindOneAndReplace(h.ctx, byID, bson.D{}, o)))
		}, ""),
		gives(func(h *hands, o allium.FindOneAndDeleteOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("u").FindOneAndDelete(h.ctx, byID, o)))
		}, ""),
		gives(func(h *hands, o allium.BulkWriteOptions) (any, error) {
			b := h.fresh("b")
			return nothing(rig.ErrorOf(b.BulkWrite(h.ctx, []allium.WriteModel{b.DeleteOneModel(byID)}, o)))
		}, ""),
		gives(func(h *hands, o allium.ClientBulkWriteOptions) (any, error) {
			return nothing(rig.ErrorOf(h.client.BulkWrite(h.ctx, []allium.WriteModel{h.db.Collection("b").DeleteOneModel(byID)}, o)))
		}, "", allium.ClientBulkWriteOptions{CommandFields: map[string]any{"bypassEmptyTsReplacement": true}},
			allium.ClientBulkWriteOptions{CollectionUUIDs: [][]byte{nil}}),
		gives(func(h *hands, o allium.UpdateModelOptions) (any, error) {
			return bulk(func(c *allium.UntypedCollection) allium.WriteModel { return c.UpdateOneModel(byID, set, o) })
		}, ""),
		gives(func(h *hands, o allium.ReplaceModelOptions) (any, error) {
			return bulk(func(c *allium.UntypedCollection) allium.WriteModel {
				return c.ReplaceOneModel(byID, bson.D{{Key: "x", Value: 1}}, o)
			})
		}, ""),
		gives(func(h *hands, o allium.DeleteModelOptions) (any, error) {
			return bulk(func(c *allium.UntypedCollection) allium.WriteModel { return c.DeleteOneModel(byID, o) })
		}, ""),
		gives(func(h *hands, o allium.RunCommandOptions) (any, error) {
			return nothing(rig.ErrorOf(h.db.RunCommand(h.ctx, bson.D{{Key: "ping", Value: 1}}, o)))
		}, ""),
		gives(func(h *hands, o allium.RunCursorCommandOptions) (any, error) {
			return drain(h.db.RunCursorCommand(h.ctx, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}}, o))
		}, ""),
		gives(func(h *hands, o allium.PingOptions) (any, error) { return nothing(h.client.Ping(h.ctx, o)) }, ""),
		gives(func(h *hands, o allium.CloseCursorOptions) (any, error) {
			cur := rig.Must(h.coll.Find(h.ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(1))}))
			ended, cancel := context.WithCancel(h.ctx)
			cancel() // it is freed in the background
			return cur, cur.Close(ended, o)
		}, ""),

		// Catalogs.
		gives(func(h *hands, o allium.ListDatabasesOptions) (any, error) {
			return nothing(rig.ErrorOf(h.client.ListDatabases(h.ctx, o)))
		}, "",
			allium.ListDatabasesOptions{Filter: map[string]any{"name": "d"}}),
		gives(func(h *hands, o allium.ListCollectionsOptions) (any, error) {
			return drain(h.db.ListCollections(h.ctx, o))
		}, "",
			allium.ListCollectionsOptions{Filter: map[string]any{"type": "collection"}, BatchSize: new(int32(1))}),
		gives(func(h *hands, o allium.ListIndexesOptions) (any, error) {
			coll := h.fresh("x")
			rig.Must(coll.CreateIndex(h.ctx, allium.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}}))
			return drain(coll.ListIndexes(h.ctx, o))
		}, "", allium.ListIndexesOptions{BatchSize: new(int32(1))}),
		gives(func(h *hands, m allium.IndexModel) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("x").CreateIndex(h.ctx, m)))
		}, "Collation",
			allium.IndexModel{Keys: bson.D{{Key: "t", Value: "text"}}, Background: new(true), Weights: map[string]any{"t": 2}, PartialFilter: map[string]any{"x": 1}},
			allium.IndexModel{Keys: bson.D{{Key: "p", Value: "2d"}}, Min: new(-10.0), Max: new(10.0)},
			allium.IndexModel{Keys: bson.D{{Key: "$**", Value: 1}}, WildcardProjection: map[string]any{"x": 1}},
			allium.IndexModel{Keys: bson.D{{Key: "d", Value: 1}}, ExpireAfter: new(time.Hour), StorageEngine: map[string]any{"wiredTiger": bson.D{}}}),
		gives(func(h *hands, m allium.IndexModel) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("x").CreateIndex(h.ctx, m)))
		},
			"ExpireAfter PartialFilter Weights Min Max WildcardProjection StorageEngine", allium.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}}),
		gives(func(h *hands, o allium.CreateIndexOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("x").CreateIndex(h.ctx, allium.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}}, o)))
		}, "", allium.CreateIndexOptions{CommitQuorum: "majority"}),
		gives(func(h *hands, o allium.DropIndexOptions) (any, error) {
			return nothing(h.fresh("x").DropIndexes(h.ctx, o))
		}, ""),
		gives(func(h *hands, m allium.SearchIndexModel) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("s").CreateSearchIndex(h.ctx, m)))
		}, "",
			allium.SearchIndexModel{Definition: map[string]any{"mappings": bson.D{{Key: "dynamic", Value: true}}}}),
		gives(func(h *hands, o allium.SearchIndexOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("s").CreateSearchIndex(h.ctx, allium.SearchIndexModel{Definition: bson.D{{Key: "mappings", Value: bson.D{{Key: "dynamic", Value: true}}}}}, o)))
		}, ""),
		gives(func(h *hands, o allium.ListSearchIndexesOptions) (any, error) {
			return nothing(rig.ErrorOf(h.fresh("s").ListSearchIndexes(h.ctx, o)))
		}, ""),
		gives(func(h *hands, o allium.CreateCollectionOptions) (any, error) {
			_ = h.db.Collection("new").Drop(h.ctx)
			return nothing(h.db.CreateCollection(h.ctx, "new", o))
		}, "", allium.CreateCollectionOptions{Validator: map[string]any{"x": 1}, IDIndex: map[string]any{"key": bson.D{{Key: "_id", Value: 1}}, "name": "_id_"},
			IndexOptionDefaults: map[string]any{"storageEngine": bson.D{{Key: "wiredTiger", Value: bson.D{}}}}, StorageEngine: map[string]any{"wiredTiger": bson.D{}}, PreAndPostImages: new(true)},
			allium.CreateCollectionOptions{ViewOn: "c", Pipeline: bson.A{bson.D{{Key: "$match", Value: bson.D{}}}}},
			allium.CreateCollectionOptions{TimeSeries: map[string]any{"timeField": "t"}, ExpireAfter: new(time.Hour)},
			allium.CreateCollectionOptions{ClusteredIndex: bson.D{{Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "unique", Value: true}}},
			allium.CreateCollectionOptions{EncryptedFields: map[string]any{"fields": bson.A{}}}),
		gives(func(h *hands, o allium.ModifyCollectionOptions) (any, error) {
			rig.Must(h.fresh("mod").CreateIndexes(h.ctx, []allium.IndexModel{{Keys: bson.D{{Key: "a", Value: 1}}}, {Keys: bson.D{{Key: "u", Value: 1}}, Name: "u"}}))
			rig.Must(h.db.RunCommand(h.ctx, bson.D{{Key: "collMod", Value: "mod"}, {Key: "index", Value: bson.D{{Key: "name", Value: "u"}, {Key: "prepareUnique", Value: true}}}}))
			_, _ = h.db.Collection("capped").Drop(h.ctx), h.db.Collection("series").Drop(h.ctx)
			_ = h.db.CreateCollection(h.ctx, "capped", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 12})
			_ = h.db.CreateCollection(h.ctx, "series", allium.CreateCollectionOptions{TimeSeries: bson.D{{Key: "timeField", Value: "t"}}})
			_ = h.db.Collection("view").Drop(h.ctx)
			_ = h.db.CreateCollection(h.ctx, "view", allium.CreateCollectionOptions{ViewOn: "c"})
			name := "mod"
			switch {
			case o.Pipeline != nil:
				name = "view"
			case o.MaxDocuments != nil:
				name = "capped"
			case o.TimeSeries != nil:
				name = "series"
			}
			return nothing(h.db.ModifyCollection(h.ctx, name, o))
		}, "", allium.ModifyCollectionOptions{Validator: map[string]any{}, PreAndPostImages: new(true)},
			allium.ModifyCollectionOptions{Index: &allium.IndexChange{Keys: bson.D{{Key: "a", Value: 1}}, ExpireAfter: new(time.Hour), Hidden: new(true), PrepareUnique: new(true)}},
			allium.ModifyCollectionOptions{Index: &allium.IndexChange{Name: "u", Unique: new(true)}},
			allium.ModifyCollectionOptions{MaxDocuments: new(int64(5))}, allium.ModifyCollectionOptions{TimeSeries: map[string]any{"granularity": "minutes"}, ExpireAfter: new(time.Hour)},
			allium.ModifyCollectionOptions{ViewOn: "c", Pipeline: bson.A{bson.D{{Key: "$match", Value: bson.D{}}}}}),
		gives(func(h *hands, o allium.RenameOptions) (any, error) {
			_ = h.db.Collection("to").Drop(h.ctx)
			return nothing(h.fresh("from").Rename(h.ctx, "to", o))
		}, ""),
		gives(func(h *hands, o allium.DropOptions) (any, error) { return nothing(h.fresh("drop").Drop(h.ctx, o)) }, "",
			allium.DropOptions{EncryptedFields: map[string]any{"fields": bson.A{}}}),

		// What lives on.
		gives(func(h *hands, o allium.DatabaseOptions) (any, error) { return lasting(h.client.Database("d", o)) }, ""),
		gives(func(h *hands, o allium.CollectionOptions) (any, error) {
			return drain(h.db.Collection("c", o).Find(h.ctx, bson.D{}))
		}, "", allium.CollectionOptions{CommandFields: map[string]any{"comment": bson.D{{Key: "x", Value: 1}}}}),
		gives(func(h *hands, s allium.Scope) (any, error) {
			c := h.db.Collection("c").Scoped(s)
			return c, rig.ErrorOf(c.CountDocuments(h.ctx, bson.D{}))
		}, "", allium.Scope{Shared: []string{"lands"}}),
		gives(func(h *hands, o advisor.Options) (any, error) {
			c, a, err := advisor.Open(h.uri, o)
			if err == nil {
				h.t.Cleanup(func() { rig.Must(c, c.Close(context.Background())); rig.Must(a, a.Close(context.Background())) })
			}
			return []any{c, a}, err
		}, "", advisor.Options{Exempt: map[string][]advisor.Rule{"c": {advisor.RuleIndex}}}),
		gives(func(h *hands, o allium.SessionOptions) (any, error) {
			s, err := h.client.StartSession(o)
			if err == nil && !o.Snapshot {
				err = s.StartTransaction()
			}
			if rp := o.Transaction.ReadPreference; err == nil && (rp == nil || rp.Mode == "") { // others must not read in it
				_, err = h.coll.FindOne(allium.WithSession(h.ctx, s), bson.D{})
			}
			h.sessions = append(h.sessions, s)
			return s, err
		}, "", allium.SessionOptions{CausalConsistency: new(true), Transaction: allium.TransactionOptions{ReadPreference: &consistency.ReadPreference{},
			ReadConcern: &consistency.ReadConcern{Level: "snapshot"}, WriteConcern: &consistency.WriteConcern{W: 1, Journal: new(true)}}},
			allium.SessionOptions{Transaction: allium.TransactionOptions{ReadPreference: usual(reflect.StructField{Name: "ReadPreference"}).(*consistency.ReadPreference)}},
			allium.SessionOptions{Snapshot: true, SnapshotTime: &bson.Timestamp{T: uint32(time.Now().Unix())}}),
		gives(func(h *hands, o allium.TransactionOptions) (any, error) {
			s := rig.Must(h.client.StartSession())
			h.sessions = append(h.sessions, s)
			err := s.StartTransaction(o)
			if err == nil && o.ReadPreference.Mode == consistency.Primary {
				_, err = h.coll.FindOne(allium.WithSession(h.ctx, s), bson.D{})
			}
			return s, err
		}, "Timeout", allium.TransactionOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Primary}}, allium.TransactionOptions{}),
		gives(func(h *hands, o allium.TransactionOptions) (any, error) {
			return nothing(h.client.Transact(h.ctx, func(ctx context.Context) error { return rig.ErrorOf(h.coll.FindOne(ctx, bson.D{})) }, o))
		}, "", allium.TransactionOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Primary}}),
		gives(func(h *hands, o allium.EndTransactionOptions) (any, error) {
			s := rig.Must(h.client.StartSession())
			h.sessions = append(h.sessions, s)
			rig.Must(s, s.StartTransaction())
			rig.Must(h.coll.FindOne(allium.WithSession(h.ctx, s), bson.D{}))
			return s, s.CommitTransaction(h.ctx, o)
		}, ""),
		gives(func(h *hands, o allium.EndSessionOptions) (any, error) {
			s := rig.Must(h.client.StartSession())
			return s, s.End(h.ctx, o)
		}, ""),
		gives(func(h *hands, o allium.ClientOptions) (any, error) {
			c, err := allium.Open("", o)
			if err == nil {
				h.t.Cleanup(func() { _ = c.Close(context.Background()) })
			}
			return c, err
		}, "", clientOptions(false), clientOptions(true), allium.ClientOptions{Hosts: []string{"localhost:1"}, Direct: new(true)}, allium.ClientOptions{Hosts: []string{"localhost:1"}, LoadBalanced: new(true)}, allium.ClientOptions{Hosts: []string{"localhost:1"}, TLSFiles: &allium.TLSFiles{Insecure: true}}),

		// Files.
		gives(func(h *hands, o gridfs.BucketOptions) (any, error) {
			b := gridfs.NewBucket(h.db, o)
			return b, rig.ErrorOf(b.UploadFromStream(h.ctx, "f", strings.NewReader("text")))
		}, ""),
		gives(func(h *hands, o gridfs.UploadOptions) (any, error) {
			s, err := h.bucket.OpenUploadStream(h.ctx, "f", o)
			if err == nil {
				_, err = s.Write([]byte("text"))
				h.t.Cleanup(func() { _ = s.Abort() })
			}
			return s, err
		}, "", gridfs.UploadOptions{Metadata: map[string]any{"x": 1}, Aliases: []string{"a"}}),
		gives(func(h *hands, o gridfs.DownloadOptions) (any, error) {
			s, err := h.bucket.OpenDownloadStream(h.ctx, h.file, o)
			if err == nil {
				_, err = s.Read(make([]byte, 1))
			}
			return s, err
		}, ""),
		gives(func(h *hands, o gridfs.DownloadByNameOptions) (any, error) {
			s, err := h.bucket.OpenDownloadStreamByName(h.ctx, "file", o)
			if err == nil {
				_, err = s.Read(make([]byte, 1))
			}
			return s, err
		}, ""),
		gives(func(h *hands, o gridfs.FindOptions) (any, error) { return drain(h.bucket.Find(h.ctx, bson.D{}, o)) }, "", gridfs.FindOptions{BatchSize: new(int32(1))}),
		gives(func(h *hands, o gridfs.RenameOptions) (any, error) {
			return nothing(h.bucket.Rename(h.ctx, h.file, "file", o))
		}, ""),
		gives(func(h *hands, o gridfs.DeleteOptions) (any, error) {
			return nothing(h.bucket.Delete(h.ctx, rig.Must(h.bucket.UploadFromStream(h.ctx, "f", strings.NewReader("text"))), o))
		}, ""),
		gives(func(h *hands, o gridfs.DropOptions) (any, error) {
			b := gridfs.NewBucket(h.db, gridfs.BucketOptions{Name: "drop"})
			return b, b.Drop(h.ctx, o)
		}, ""),

		// Encryption.
		gives(func(h *hands, o encryption.Options) (any, error) {
			c, err := encryption.New(o)
			if err == nil {
				_, err = c.CreateDataKey(h.ctx, encryptiontest.Provider)
			}
			return c, err
		}, "", encryption.Options{KeyOptions: keyOptions(h)}),
		gives(func(h *hands, o encryption.AutoOptions) (any, error) {
			auto := encryption.Auto(o)
			c, err := allium.Open(h.uri, allium.ClientOptions{Encryption: auto})
			if err == nil {
				h.t.Cleanup(func() { _ = c.Close(context.Background()) })
				_, err = c.Database("d").Collection("plain").InsertOne(h.ctx, bson.D{{Key: "x", Value: "secret"}})
			}
			return []any{c, auto}, err // another client may have the same
		}, "", encryption.AutoOptions{KeyOptions: keyOptions(h), EncryptedFields: map[string]any{"d.q": map[string]any{"fields": bson.A{}}},
			Schemas: map[string]any{"d.plain": map[string]any{"bsonType": "object", "properties": bson.D{{Key: "x", Value: bson.D{{Key: "encrypt", Value: bson.D{
				{Key: "keyId", Value: bson.A{h.key}}, {Key: "bsonType", Value: "string"}, {Key: "algorithm", Value: string(encryption.Random)}}}}}}}}}),
		gives(func(h *hands, o encryption.DataKeyOptions) (any, error) {
			id, err := h.crypt.Keys.CreateDataKey(h.ctx, encryptiontest.Provider, o)
			if err == nil {
				_, err = h.crypt.Keys.Encrypt(h.ctx, "text", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id})
			}
			return h.crypt.Keys, err
		}, "", encryption.DataKeyOptions{AltNames: []string{"name"}, Material: bytes.Repeat([]byte{7}, 96), MasterKey: kms.LocalKey{}}),
		gives(func(h *hands, o encryption.RewrapOptions) (any, error) {
			return nothing(rig.ErrorOf(h.crypt.Keys.RewrapManyDataKey(h.ctx, bson.D{}, o)))
		}, "",
			encryption.RewrapOptions{Provider: encryptiontest.Provider, MasterKey: kms.LocalKey{}}),
		gives(func(h *hands, o encryption.CollectionOptions) (any, error) {
			return nothing(rig.ErrorOf(h.crypt.Keys.CreateEncryptedCollection(h.ctx, h.db, "sealed", o)))
		}, "Create", encryption.CollectionOptions{Provider: encryptiontest.Provider, MasterKey: kms.LocalKey{}, Create: allium.CreateCollectionOptions{EncryptedFields: fields}}),
		gives(func(h *hands, o encryption.EncryptOptions) (any, error) {
			return nothing(rig.ErrorOf(h.crypt.Keys.Encrypt(h.ctx, int32(3), o)))
		}, "Text",
			encryption.EncryptOptions{Algorithm: encryption.Range, KeyID: &h.key, Range: &encryption.RangeOptions{Min: int32(0), Max: int32(9), Sparsity: new(int64(1)), TrimFactor: new(int32(1))}}),
		gives(func(h *hands, o encryption.EncryptOptions) (any, error) {
			return nothing(rig.ErrorOf(h.crypt.Keys.Encrypt(h.ctx, 3.25, o)))
		}, "Text",
			encryption.EncryptOptions{Algorithm: encryption.Range, KeyID: &h.key, Range: &encryption.RangeOptions{Min: 0.0, Max: 9.0, Precision: new(int32(2)), TrimFactor: new(int32(1))}}),
		gives(func(h *hands, o encryption.EncryptOptions) (any, error) {
			return nothing(rig.ErrorOf(h.crypt.Keys.Encrypt(h.ctx, "text", o)))
		}, "Range",
			encryption.EncryptOptions{Algorithm: encryption.String, KeyID: &h.key, Text: &encryption.TextOptions{Prefix: &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 4}, Suffix: &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 4}}},
			encryption.EncryptOptions{Algorithm: encryption.String, KeyID: &h.key, Text: &encryption.TextOptions{Substring: &encryption.SubstringOptions{MaxLength: 9, MinQueryLength: 2, MaxQueryLength: 4}}}),
		gives(func(h *hands, f encryption.Field) (any, error) {
			type doc struct{ P string }
			return nothing(rig.ErrorOf(encryption.EncryptedFieldsFor[doc](f)))
		}, "Range", encryption.Field{Path: "p", Algorithm: encryption.String, KeyID: &h.key, Text: &encryption.TextOptions{Prefix: &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 4}, Suffix: &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 4}}},
			encryption.Field{Path: "p", Algorithm: encryption.String, KeyID: &h.key, Text: &encryption.TextOptions{Substring: &encryption.SubstringOptions{MaxLength: 9, MinQueryLength: 2, MaxQueryLength: 4}}}),
		gives(func(h *hands, f encryption.Field) (any, error) {
			type doc struct{ P float64 }
			return nothing(rig.ErrorOf(encryption.EncryptedFieldsFor[doc](f)))
		}, "Text", encryption.Field{Path: "p", Algorithm: encryption.Range, KeyID: &h.key, Range: &encryption.RangeOptions{Min: 0.0, Max: 9.0, Precision: new(int32(2)), Sparsity: new(int64(1)), TrimFactor: new(int32(1))}}),
	}
}

// keyOptions are those of the deployment, with all that can be set.
func keyOptions(h *hands) encryption.KeyOptions {
	o := h.crypt.KeyOptions
	o.KMS = kms.Providers{"local": h.crypt.KeyOptions.KMS["local"], "aws:a": kms.AWS{AccessKeyID: "a", SecretAccessKey: "b", Hosts: []string{"h"}},
		"gcp:g": kms.GCP{Email: "e", PrivateKey: []byte("no key"), Hosts: []string{"h"}}, "kmip:k": kms.KMIP{Endpoint: "h", Hosts: []string{"i"}},
		"azure:z": kms.Azure{TenantID: "a", ClientID: "b", ClientSecret: "c", Hosts: []string{"h"}}}
	o.TLS = map[string]*tls.Config{"kmip:k": tlsConfig()}
	o.TLSFiles = map[string]allium.TLSFiles{"aws:a": {DisableOCSPEndpointCheck: true}}
	o.KeyExpiration = new(time.Minute)
	o.KeyVaultClient, o.Logger = h.crypt.Plain, slog.New(slog.NewTextHandler(io.Discard, nil))
	return o
}

func tlsConfig() *tls.Config {
	return &tls.Config{RootCAs: x509.NewCertPool(), ClientCAs: x509.NewCertPool(), NextProtos: []string{"x"}, CipherSuites: []uint16{tls.TLS_AES_128_GCM_SHA256},
		CurvePreferences: []tls.CurveID{tls.X25519}, Certificates: []tls.Certificate{{Certificate: [][]byte{{1}}, OCSPStaple: []byte{1}}}}
}

func clientOptions(tls bool) allium.ClientOptions {
	o := allium.ClientOptions{Hosts: []string{"localhost:1"}, DriverInfo: &allium.DriverInfo{Name: "n"},
		Credential: &auth.Credential{Username: "u", Mechanism: auth.MechanismOIDC, Properties: map[string]string{}},
		OIDC: &auth.OIDC{HumanCallback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
			return auth.OIDCCredential{}, io.EOF
		}, AllowedHosts: []string{"localhost"}},
		RetryReads: new(true), RetryWrites: new(true), MaxAdaptiveRetries: new(1), EnableOverloadRetargeting: new(true), ServerSelectionTimeout: new(time.Second),
		ConnectTimeout: new(time.Second), SocketTimeout: new(time.Second), WaitQueueTimeout: new(time.Second), HeartbeatInterval: new(time.Second), LocalThreshold: new(time.Second),
		MaxPoolSize: new(1), MinPoolSize: new(0), Warm: new(0), MaxConnecting: new(1), MaxIdleTime: new(time.Second), Compressors: []string{"zlib"}, ZlibCompressionLevel: new(1),
		Proxy: &allium.Proxy{Host: "localhost", Port: 1}, ServerAPI: &allium.ServerAPI{Version: "1", Strict: new(true), DeprecationErrors: new(true)},
		CommandMonitor: &event.CommandMonitor{}, PoolMonitor: &event.PoolMonitor{}, ServerMonitor: &event.ServerMonitor{}, Logger: slog.New(slog.DiscardHandler),
		LogLevels: map[allium.LogComponent]slog.Level{allium.LogCommand: slog.LevelDebug}, Tracing: &allium.Tracing{Tracer: &spantest.Recorder{}, Enabled: new(true)}, UseTLS: new(tls)}
	if tls {
		o.TLS = tlsConfig()
	}
	return o
}

// TestTracesAreFound: the test above sees what somebody keeps, wherever it is.
func TestTracesAreFound(t *testing.T) {
	var kept any
	g := gives(func(_ *hands, o allium.FindOptions) (any, error) {
		kept = []any{o.Timeout, o.Comment, o.Sort.(bson.D)[:0], o.Collation.Backwards}
		return nil, nil
	}, "")
	_, found, _ := g.hand(nil, g.values[0])
	for range 3 {
		runtime.GC()
	}
	var alive []string
	for _, f := range found {
		if !f.dead() && !slices.Contains(alive, f.at) {
			alive = append(alive, f.at)
		}
	}
	slices.Sort(alive)
	if got, want := fmt.Sprint(alive), "[.Collation.Backwards .Comment .Sort .Timeout]"; got != want {
		t.Errorf("%s are alive, want %s", got, want)
	}
	runtime.KeepAlive(kept)
}
