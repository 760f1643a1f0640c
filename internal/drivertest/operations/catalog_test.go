package operations

import (
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// collectionInfo returns what ListCollections says about one collection, nil if it is not there.
func collectionInfo(t *testing.T, db *allium.Database, name string) *allium.CollectionInfo {
	t.Helper()
	cur, err := db.ListCollections(t.Context(), allium.ListCollectionsOptions{Filter: bson.D{{Key: "name", Value: name}}})
	if err != nil {
		t.Fatal(err)
	}
	infos, err := cur.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) == 0 {
		return nil
	}
	return &infos[0]
}

// TestCreateCollectionOptions checks that every option of CreateCollection arrives, by what the
// server says of the collection.
func TestCreateCollectionOptions(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client := rig.Open(t, d.URI())
	db := client.Database("d")
	since := map[string]string{"timeseries": "5.0", "expireAfter": "5.0", "clusteredIndex": "5.3", "preAndPostImages": "6.0"}
	if err := db.CreateCollection(t.Context(), "source"); err != nil {
		t.Fatal(err)
	}
	validator := bson.D{{Key: "x", Value: bson.D{{Key: "$exists", Value: true}}}}
	for name, tc := range map[string]struct {
		opts allium.CreateCollectionOptions
		path string
		want any
	}{
		"capped":              {allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}, "capped", true},
		"size":                {allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}, "size", int32(4096)},
		"max":                 {allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096, MaxDocuments: 3}, "max", int32(3)},
		"validator":           {allium.CreateCollectionOptions{Validator: validator}, "validator.x.$exists", true},
		"validationLevel":     {allium.CreateCollectionOptions{Validator: validator, ValidationLevel: "moderate"}, "validationLevel", "moderate"},
		"validationAction":    {allium.CreateCollectionOptions{Validator: validator, ValidationAction: "warn"}, "validationAction", "warn"},
		"collation":           {allium.CreateCollectionOptions{Collation: &allium.Collation{Locale: "de", Strength: 2}}, "collation.strength", int32(2)},
		"view":                {allium.CreateCollectionOptions{ViewOn: "source", Pipeline: bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "x", Value: 1}}}}}}, "pipeline.0.$match.x", int32(1)},
		"timeseries":          {allium.CreateCollectionOptions{TimeSeries: bson.D{{Key: "timeField", Value: "t"}, {Key: "metaField", Value: "m"}, {Key: "granularity", Value: "hours"}}}, "timeseries.granularity", "hours"},
		"expireAfter":         {allium.CreateCollectionOptions{TimeSeries: bson.D{{Key: "timeField", Value: "t"}}, ExpireAfter: new(time.Hour)}, "expireAfterSeconds", int32(3600)},
		"clusteredIndex":      {allium.CreateCollectionOptions{ClusteredIndex: bson.D{{Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "unique", Value: true}, {Key: "name", Value: "c"}}}, "clusteredIndex.name", "c"},
		"preAndPostImages":    {allium.CreateCollectionOptions{PreAndPostImages: new(true)}, "changeStreamPreAndPostImages.enabled", true},
		"storageEngine":       {allium.CreateCollectionOptions{StorageEngine: bson.D{{Key: "wiredTiger", Value: bson.D{}}}}, "storageEngine.wiredTiger", bson.D{}},
		"indexOptionDefaults": {allium.CreateCollectionOptions{IndexOptionDefaults: bson.D{{Key: "storageEngine", Value: bson.D{{Key: "wiredTiger", Value: bson.D{}}}}}}, "indexOptionDefaults.storageEngine.wiredTiger", bson.D{}},
	} {
		t.Run(name, func(t *testing.T) {
			if version, ok := since[name]; ok {
				d.Need(t, version)
			}
			if err := db.CreateCollection(t.Context(), name, tc.opts); err != nil {
				t.Fatal(err)
			}
			info := collectionInfo(t, db, name)
			if info == nil {
				t.Fatal("the collection is not there")
			}
			want, err := bson.MarshalValue(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			got := info.Options.Lookup(strings.Split(tc.path, ".")...)
			if bson.Compare(got, want) != 0 {
				t.Errorf("%s is %v, want %v: %v", tc.path, got, want, info.Options)
			}
		})
	}
}

func TestModifyCollection(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1).Since("6.0")).URI())
	ctx, db := t.Context(), client.Database("d")
	coll := db.Collection("c")
	if _, err := coll.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, ExpireAfter: new(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if err := db.ModifyCollection(ctx, "c", allium.ModifyCollectionOptions{
		Index:     &allium.IndexChange{Keys: bson.D{{Key: "at", Value: 1}}, ExpireAfter: new(2 * time.Hour), Hidden: new(true)},
		Validator: bson.D{{Key: "x", Value: 1}}, ValidationAction: "warn", PreAndPostImages: new(true),
	}); err != nil {
		t.Fatal(err)
	}
	cur, err := coll.ListIndexes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	indexes, err := cur.All(ctx)
	if err != nil || len(indexes) != 2 || !indexes[1].Hidden || *indexes[1].ExpireAfter != 2*time.Hour {
		t.Errorf("indexes: %+v, %v", indexes, err)
	}
	info := collectionInfo(t, db, "c")
	if action, _ := info.Options.Lookup("validationAction").StringValue(); action != "warn" {
		t.Errorf("options are %v", info.Options)
	}
	if on, _ := info.Options.Lookup("changeStreamPreAndPostImages", "enabled").Boolean(); !on {
		t.Errorf("options are %v", info.Options)
	}
	if err := db.ModifyCollection(ctx, "missing"); err == nil {
		t.Error("a collection that does not exist was modified")
	}
	if err := db.ModifyCollection(ctx, ""); err == nil {
		t.Error("a collection without a name was modified")
	}
}

func TestRenameAndDrop(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI())
	ctx, db := t.Context(), client.Database("d")
	for _, name := range []string{"a", "b"} {
		if _, err := db.Collection(name).InsertOne(ctx, bson.D{{Key: "_id", Value: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Collection("a").Rename(ctx, "b"); err == nil {
		t.Error("a collection was renamed to one that is there")
	}
	if err := db.Collection("a").Rename(ctx, "b", allium.RenameOptions{DropTarget: true}); err != nil {
		t.Fatal(err)
	}
	if n, err := db.Collection("b").CountDocuments(ctx, bson.D{{Key: "_id", Value: "a"}}); n != 1 || err != nil {
		t.Error(n, err)
	}
	if err := db.Collection("b").Rename(ctx, "x\x00y"); err == nil {
		t.Error("a name with NUL was accepted")
	}
	if err := db.Collection("b").Rename(ctx, "c", allium.RenameOptions{Database: "e"}); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Database("e").Collection("c").CountDocuments(ctx, bson.D{}); n != 1 || err != nil {
		t.Error(n, err)
	}
	for range 2 { // the second time, it is not there any more
		if err := client.Database("e").Collection("c").Drop(ctx); err != nil {
			t.Fatal(err)
		}
		if err := client.Database("e").Drop(ctx); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("old server", func(t *testing.T) {
		old := rig.Open(t, testdeploy.Mock(t, "a server of version 6.0", mongotest.Version("6.0")).URI())
		if err := old.Database("e").Collection("c").Drop(ctx); err != nil { // these servers call it an error
			t.Error(err)
		}
	})
}

func TestDropIndexes(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.Any).URI())
	ctx, coll := t.Context(), client.Database("d").Collection("c")
	if _, err := coll.CreateIndexes(ctx, []allium.IndexModel{{Keys: bson.D{{Key: "a", Value: 1}}}, {Keys: bson.D{{Key: "b", Value: 1}}}, {Keys: bson.D{{Key: "c", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	if err := coll.DropIndex(ctx, "*"); err == nil {
		t.Error(`DropIndex took "*"`)
	}
	if err := coll.DropIndex(ctx, "a_1"); err != nil {
		t.Error(err)
	}
	if err := coll.DropIndex(ctx, bson.D{{Key: "b", Value: 1}}, allium.DropIndexOptions{MaxTime: time.Second}); err != nil {
		t.Error(err)
	}
	if names, err := coll.ListIndexNames(ctx); err != nil || len(names) != 2 {
		t.Error(names, err)
	}
	if err := coll.DropIndexes(ctx); err != nil {
		t.Error(err)
	}
	if names, err := coll.ListIndexNames(ctx); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
}

// TestIndexOptions checks that every option of an index arrives.
// TestCreateIndexReturnsItsName: one index has the name that it was given, or that its keys make.
func TestCreateIndexReturnsItsName(t *testing.T) {
	coll := rig.Open(t, testdeploy.Start(t, testdeploy.Any).URI()).Database("d").Collection("names")
	for want, index := range map[string]allium.IndexModel{
		"a_1":      {Keys: bson.D{{Key: "a", Value: 1}}},
		"a_1_b_-1": {Keys: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}},
		"x.y_text": {Keys: bson.D{{Key: "x.y", Value: "text"}}},
		"mine":     {Keys: bson.D{{Key: "c", Value: 1}}, Name: "mine"},
	} {
		if name, err := coll.CreateIndex(t.Context(), index); name != want || err != nil {
			t.Errorf("%q, %v, want %q", name, err, want)
		}
	}
	if name, err := coll.CreateIndex(t.Context(), allium.IndexModel{}); name != "" || err == nil {
		t.Errorf("without keys: %q, %v", name, err)
	}
}

func TestIndexOptions(t *testing.T) {
	rec := &rig.Recorder{}
	client := rig.Open(t, testdeploy.Start(t, testdeploy.Any).URI(), allium.ClientOptions{CommandMonitor: rec.Monitor(), RetryWrites: new(false)})
	coll := client.Database("d").Collection("c")
	lower, upper := -10.0, 10.0
	_, err := coll.CreateIndexes(t.Context(), []allium.IndexModel{{
		Keys: bson.D{{Key: "a", Value: 1}}, Unique: true, Sparse: true, Hidden: true, Clustered: true, ExpireAfter: new(time.Minute), PartialFilter: bson.D{{Key: "a", Value: 1}},
		Collation: &allium.Collation{Locale: "de"}, Weights: bson.D{{Key: "a", Value: 2}}, DefaultLanguage: "german", LanguageOverride: "lang", TextVersion: 3,
		SphereVersion: 2, Bits: 20, Min: &lower, Max: &upper, WildcardProjection: bson.D{{Key: "x", Value: 1}}, StorageEngine: bson.D{}, Version: 2, Background: new(true),
	}}, allium.CreateIndexOptions{CommitQuorum: "majority", MaxTime: time.Second, Comment: "c"})
	if err == nil {
		t.Error("the server accepted options that exclude each other")
	}
	sent := rec.Of("createIndexes")
	if len(sent) != 1 {
		t.Fatal("the command was not sent")
	}
	body := sent[0].Body
	for path, want := range map[string]any{
		"name": "a_1", "unique": true, "sparse": true, "hidden": true, "clustered": true, "background": true, "expireAfterSeconds": int32(60), "partialFilterExpression.a": int32(1),
		"collation.locale": "de", "weights.a": int32(2), "default_language": "german", "language_override": "lang", "textIndexVersion": int32(3),
		"2dsphereIndexVersion": int32(2), "bits": int32(20), "min": lower, "max": upper, "wildcardProjection.x": int32(1), "storageEngine": bson.D{}, "v": int32(2),
	} {
		checkField(t, body, "indexes.0."+path, want)
	}
	for path, want := range map[string]any{"commitQuorum": "majority", "maxTimeMS": int64(1000), "comment": "c"} {
		checkField(t, body, path, want)
	}
	t.Run("old server", func(t *testing.T) {
		old := rig.Open(t, testdeploy.Mock(t, "a server of version 4.2", mongotest.Version("4.2")).URI())
		if _, err := old.Database("d").Collection("c").CreateIndex(t.Context(), allium.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}}, allium.CreateIndexOptions{CommitQuorum: 1}); err == nil || !strings.Contains(err.Error(), "4.4") {
			t.Errorf("commitQuorum on an old server: %v", err)
		}
		first := rig.Open(t, testdeploy.Mock(t, "a server of version 4.4", mongotest.Version("4.4")).URI())
		if _, err := first.Database("d").Collection("c").CreateIndex(t.Context(), allium.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}}, allium.CreateIndexOptions{CommitQuorum: 1}); err != nil && strings.Contains(err.Error(), "4.4") {
			t.Errorf("commitQuorum on the first server that has it: %v", err)
		}
	})
}

func checkField(t *testing.T, doc bson.Raw, path string, want any) {
	t.Helper()
	v, err := bson.MarshalValue(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := doc.Lookup(strings.Split(path, ".")...); got.Type != v.Type || bson.Compare(got, v) != 0 {
		t.Errorf("%s is %v, want %v", path, got, v)
	}
}

// Names are asked for alone where that suffices, and what is listed has the options of its parent
// (specifications: Enumerating Collections, Enumerating Databases).
func TestNamesOnly(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{WriteConcern: consistency.Majority()})
	ctx, db := t.Context(), p.Client.Database("names")
	if _, err := db.Collection("c").InsertOne(ctx, bson.D{}); err != nil {
		t.Fatal(err)
	}
	named, capped := bson.D{{Key: "name", Value: "c"}}, bson.D{{Key: "name", Value: "c"}, {Key: "options.capped", Value: true}}
	for name, tc := range map[string]struct {
		command string
		run     func() error
		want    bool
	}{
		"collections": {"listCollections", func() error { return rig.ErrorOf(db.ListCollectionNames(ctx)) }, true},
		"collections by name": {"listCollections", func() error {
			return rig.ErrorOf(db.ListCollectionNames(ctx, allium.ListCollectionsOptions{Filter: named}))
		}, true},
		"collections by more": {"listCollections", func() error {
			return rig.ErrorOf(db.ListCollectionNames(ctx, allium.ListCollectionsOptions{Filter: capped}))
		}, false},
		"collections in full":    {"listCollections", func() error { return rig.ErrorOf(db.ListCollections(ctx)) }, false},
		"handles of collections": {"listCollections", func() error { return rig.ErrorOf(db.Collections(ctx)) }, true},
		"databases":              {"listDatabases", func() error { return rig.ErrorOf(p.Client.ListDatabaseNames(ctx)) }, true},
		"databases in full":      {"listDatabases", func() error { return rig.ErrorOf(p.Client.ListDatabases(ctx)) }, false},
		"handles of databases":   {"listDatabases", func() error { return rig.ErrorOf(p.Client.Databases(ctx)) }, true},
	} {
		p.Recorder.Reset()
		if err := tc.run(); err != nil {
			t.Fatal(err)
		}
		if got := p.Recorder.Of(tc.command)[0].Body.Lookup("nameOnly").AsBool(); got != tc.want {
			t.Errorf("%s: nameOnly is %v", name, got)
		}
	}
	dbs, err := p.Client.Databases(ctx, allium.ListDatabasesOptions{Filter: bson.D{{Key: "name", Value: "names"}}})
	if err != nil || len(dbs) != 1 {
		t.Fatal(dbs, err)
	}
	p.Recorder.Reset()
	if _, err := dbs[0].Collection("c").InsertOne(ctx, bson.D{}); err != nil {
		t.Fatal(err)
	}
	if wc := p.Recorder.Of("insert")[0].WriteConcern; wc == nil || wc.String() != `{"w":"majority"}` {
		t.Errorf("the write concern of a database that was listed is %v", wc)
	}
}
