package prose

import (
	"context"
	"fmt"
	"slices"
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

// enumerated runs a test of the enumeration specifications in the environments that they name.
func enumerated(t *testing.T, run func(t *testing.T, setUp, client *allium.Client)) {
	for name, topology := range map[string]testdeploy.Kind{"standalone": testdeploy.Standalone, "primary": testdeploy.ReplicaSet(1), "mongos": testdeploy.Sharded(1, 1)} {
		t.Run(name, func(t *testing.T) {
			client := rig.Open(t, testdeploy.Start(t, topology).URI())
			run(t, client, client)
		})
	}
	t.Run("secondary", func(t *testing.T) {
		d := testdeploy.Mock(t, "the address of a secondary", mongotest.ReplicaSet(2))
		secondary := rig.Open(t, "mongodb://"+d.Secondaries()[0].Addr()+"/?directConnection=true")
		run(t, rig.Open(t, d.URI(), allium.ClientOptions{WriteConcern: &consistency.WriteConcern{W: 2}}), secondary)
	})
}

// checkSame checks that two lists hold the same names, each once.
func checkSame(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// system leaves out the databases that every deployment has.
func system(names []string) []string {
	return slices.DeleteFunc(names, func(s string) bool { return s == "admin" || s == "config" || s == "local" })
}

// Enumerating Databases, test plan.
func TestProseEnumerateDatabases(t *testing.T) {
	enumerated(t, func(t *testing.T, setUp, client *allium.Client) {
		ctx := t.Context()
		for _, db := range []string{"a", "b"} {
			if _, err := setUp.Database(db).Collection("c").InsertOne(ctx, bson.D{}); err != nil {
				t.Fatal(err)
			}
		}
		infos, err := client.ListDatabases(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range infos {
			names = append(names, i.Name)
		}
		checkSame(t, "ListDatabases", system(names), "a", "b")
		if names, err = client.ListDatabaseNames(ctx); err != nil {
			t.Fatal(err)
		}
		checkSame(t, "ListDatabaseNames", system(names), "a", "b")
		dbs, err := client.Databases(ctx, allium.ListDatabasesOptions{Filter: bson.D{{Key: "name", Value: "b"}}})
		if err != nil || len(dbs) != 1 || dbs[0].Name() != "b" || dbs[0].Client() != client {
			t.Errorf("Databases: %v, %v", dbs, err)
		}
	})
}

// Enumerating Collections, test plan.
func TestProseEnumerateCollections(t *testing.T) {
	enumerated(t, func(t *testing.T, setUp, client *allium.Client) {
		ctx := t.Context()
		if err := setUp.Database("d").CreateCollection(ctx, "capped", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 4096}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"plain", "capped"} {
			coll := setUp.Database("d").Collection(name)
			if _, err := coll.CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "x", Value: 1}}}); err != nil {
				t.Fatal(err)
			}
			if _, err := coll.InsertOne(ctx, bson.D{}); err != nil {
				t.Fatal(err)
			}
		}
		db := client.Database("d")
		names, err := db.ListCollectionNames(ctx)
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, "ListCollectionNames", names, "plain", "capped")
		// nameOnly must not be sent: the server would filter by what it leaves out.
		capped := allium.ListCollectionsOptions{Filter: bson.D{{Key: "options.capped", Value: true}}}
		if names, err = db.ListCollectionNames(ctx, capped); err != nil {
			t.Fatal(err)
		}
		checkSame(t, "ListCollectionNames of capped collections", names, "capped")
		colls, err := db.Collections(ctx, capped)
		if err != nil || len(colls) != 1 || colls[0].Name() != "capped" {
			t.Errorf("Collections: %v, %v", colls, err)
		}
		cur, err := db.ListCollections(ctx)
		if err != nil {
			t.Fatal(err)
		}
		infos, err := cur.All(ctx)
		if err != nil || len(infos) != 2 || infos[0].Options == nil {
			t.Errorf("ListCollections: %v, %v", infos, err)
		}
	})
}

// Index Management, test plan.
func TestProseIndexManagement(t *testing.T) {
	enumerated(t, func(t *testing.T, setUp, client *allium.Client) {
		ctx := t.Context()
		names, err := setUp.Database("d").Collection("c").CreateIndexes(ctx, []allium.IndexModel{
			{Keys: bson.D{{Key: "a", Value: 1}}}, {Keys: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}}, {Keys: bson.D{{Key: "c", Value: 1}}, Unique: true}})
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, "CreateIndexes", names, "a_1", "a_1_b_-1", "c_1")
		if _, err := setUp.Database("d").Collection("c").InsertOne(ctx, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}, {Key: "c", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		coll := client.Database("d").Collection("c")
		if names, err = coll.ListIndexNames(ctx); err != nil {
			t.Fatal(err)
		}
		checkSame(t, "ListIndexNames", names, "_id_", "a_1", "a_1_b_-1", "c_1")
		cur, err := coll.ListIndexes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		infos, err := cur.All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		names = nil
		for _, i := range infos {
			names = append(names, i.Name)
			if i.Unique != (i.Name == "c_1") {
				t.Errorf("index %s: unique is %v", i.Name, i.Unique)
			}
		}
		checkSame(t, "ListIndexes", names, "_id_", "a_1", "a_1_b_-1", "c_1")
		if names, err := client.Database("d").Collection("missing").ListIndexNames(ctx); err != nil || len(names) != 0 {
			t.Errorf("indexes of a collection that does not exist: %v, %v", names, err)
		}
	})
}

// awaitSearchIndex lists the index until it can be used.
func awaitSearchIndex(ctx context.Context, t *testing.T, coll *allium.UntypedCollection, name string) allium.SearchIndexInfo {
	t.Helper()
	for range 1000 {
		time.Sleep(5 * time.Millisecond)
		cur, err := coll.ListSearchIndexes(ctx, allium.ListSearchIndexesOptions{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		all, err := cur.All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range all {
			if i.Name == name && i.Queryable && i.Status == "READY" {
				return i
			}
		}
	}
	t.Fatalf("search index %s does not become ready", name)
	return allium.SearchIndexInfo{}
}

// TestSearchIndexesWithoutConcerns: no command about search indexes has a read or a write concern,
// as the process that they go to refuses both: in a causally consistent session, which has read
// something, and on a collection with concerns (specification: Index Management, "Where are read
// concern and write concern?").
func TestSearchIndexesWithoutConcerns(t *testing.T) {
	rec := &rig.Recorder{}
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1).With("search indexes", mongotest.Search(20*time.Millisecond))).URI(), allium.ClientOptions{
		CommandMonitor: rec.Monitor(), ReadConcern: &consistency.ReadConcern{Level: "majority"}, WriteConcern: consistency.Majority()})
	ctx := allium.WithSession(t.Context(), rig.StartSession(t, client))
	coll := client.Database("d").Collection("c")
	rig.Must(coll.InsertOne(ctx, bson.D{}))
	rig.Must(coll.FindOne(ctx, bson.D{}))
	rec.Reset()
	definition := bson.D{{Key: "mappings", Value: bson.D{{Key: "dynamic", Value: true}}}}
	rig.Must(coll.CreateSearchIndex(ctx, allium.SearchIndexModel{Name: "x", Definition: definition}))
	if err := coll.UpdateSearchIndex(ctx, "x", definition); err != nil {
		t.Fatal(err)
	}
	_, err := rig.Must(coll.ListSearchIndexes(ctx, allium.ListSearchIndexesOptions{Name: "x"})).All(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rig.Must(coll.Aggregate(ctx, bson.A{bson.D{{Key: "$listSearchIndexes", Value: bson.D{}}}})).All(ctx); err != nil {
		t.Fatal(err)
	}
	if err := coll.DropSearchIndex(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, name := range []string{"createSearchIndexes", "updateSearchIndex", "aggregate", "dropSearchIndex"} {
		for _, e := range rec.Of(name) {
			sent++
			if !e.Body.Lookup("readConcern").IsZero() || !e.Body.Lookup("writeConcern").IsZero() {
				t.Errorf("%s", e.Body)
			}
		}
	}
	if sent != 5 {
		t.Errorf("%d commands, want 5", sent)
	}
}

// Index Management, prose tests of the search index helpers, cases 1 to 8.
func TestProseSearchIndexes(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1).With("search indexes", mongotest.Search(20*time.Millisecond)))
	client := rig.Open(t, d.URI())
	dynamic := func(on bool) bson.D {
		return bson.D{{Key: "mappings", Value: bson.D{{Key: "dynamic", Value: on}}}}
	}
	vector := bson.D{{Key: "fields", Value: bson.A{bson.D{{Key: "type", Value: "vector"}, {Key: "path", Value: "plot_embedding"},
		{Key: "numDimensions", Value: 1536}, {Key: "similarity", Value: "euclidean"}}}}}
	for i, run := range []func(ctx context.Context, t *testing.T, coll *allium.UntypedCollection){
		func(ctx context.Context, t *testing.T, coll *allium.UntypedCollection) {
			createSearchIndex(ctx, t, coll, allium.SearchIndexModel{Name: "test-search-index", Definition: dynamic(false)})
			checkDynamic(t, awaitSearchIndex(ctx, t, coll, "test-search-index"), false)
		},
		func(ctx context.Context, t *testing.T, coll *allium.UntypedCollection) {
			names, err := coll.CreateSearchIndexes(ctx, []allium.SearchIndexModel{{Name: "test-search-index-1", Definition: dynamic(false)}, {Name: "test-search-index-2", Definition: dynamic(false)}})
			if err != nil || !slices.Equal(names, []string{"test-search-index-1", "test-search-index-2"}) {
				t.Fatal(names, err)
			}
			for _, name := range names {
				checkDynamic(t, awaitSearchIndex(ctx, t, coll, name), false)
			}
		},
		func(ctx context.Context, t *testing.T, coll *allium.UntypedCollection) {
			createSearchIndex(ctx, t, coll, allium.SearchIndexModel{Name: "test-search-index", Definition: dynamic(false)})
			awaitSearchIndex(ctx, t, coll, "test-search-index")
			if err := coll.DropSearchIndex(ctx, "test-search-index"); err != nil {
				t.Fatal(err)
			}
			left := -1
			for range 1000 {
				time.Sleep(5 * time.Millisecond)
				cur, err := coll.ListSearchIndexes(ctx)
				if err != nil {
					t.Fatal(err)
				}
				all, err := cur.All(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if left = len(all); left == 0 {
					break
				}
			}
			if left != 0 {
				t.Errorf("%d search indexes are left", left)
			}
		},
		func(ctx context.Context, t *testing.T, coll *allium.UntypedCollection) {
			createSearchIndex(ctx, t, coll, allium.SearchIndexModel{Name: "test-search-index", Definition: dynamic(false)})
			awaitSearchIndex(ctx, t, coll, "test-search-index")
			if err := coll.UpdateSearchIndex(ctx, "test-search-index", dynamic(true)); err != nil {
				t.Fatal(err)
			}
			checkDynamic(t, awaitSearchIndex(ctx, t, coll, "test-search-index"), true)
		},
		func(ctx context.Context, t *testing.T, coll *allium.UntypedCollection) {
			if err := coll.Database().Collection("missing").DropSearchIndex(ctx, "x"); err != nil {
				t.Error(err)
			}
		},
		func(ctx context.Context, t *testing.T, coll *allium.UntypedCollection) {
			coll = coll.With(allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: 1}, ReadConcern: &consistency.ReadConcern{Level: "majority"}})
			createSearchIndex(ctx, t, coll, allium.SearchIndexModel{Name: "test-search-index-case6", Definition: dynamic(false)})
			checkDynamic(t, awaitSearchIndex(ctx, t, coll, "test-search-index-case6"), false)
		},
		func(ctx context.Context, t *testing.T, coll *allium.UntypedCollection) {
			for _, m := range []allium.SearchIndexModel{{Name: "test-search-index-case7-implicit", Definition: dynamic(false)},
				{Name: "test-search-index-case7-explicit", Type: "search", Definition: dynamic(false)}, {Name: "test-search-index-case7-vector", Type: "vectorSearch", Definition: vector}} {
				createSearchIndex(ctx, t, coll, m)
				want := m.Type
				if want == "" {
					want = "search"
				}
				if i := awaitSearchIndex(ctx, t, coll, m.Name); i.Type != want {
					t.Errorf("%s has the type %s, want %s", m.Name, i.Type, want)
				}
			}
		},
		func(ctx context.Context, t *testing.T, coll *allium.UntypedCollection) {
			_, err := coll.CreateSearchIndex(ctx, allium.SearchIndexModel{Name: "test-search-index-case8-error", Definition: vector})
			if err == nil || !strings.Contains(err.Error(), "Attribute mappings missing") {
				t.Error(err)
			}
		},
	} {
		t.Run(fmt.Sprintf("case %d", i+1), func(t *testing.T) {
			name := fmt.Sprintf("coll%d", i)
			if err := client.Database("db").CreateCollection(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			run(t.Context(), t, client.Database("db").Collection(name))
		})
	}
}

func createSearchIndex(ctx context.Context, t *testing.T, coll *allium.UntypedCollection, m allium.SearchIndexModel) {
	t.Helper()
	if name, err := coll.CreateSearchIndex(ctx, m); err != nil || name != m.Name {
		t.Fatalf("created %q, %v, want %q", name, err, m.Name)
	}
}

func checkDynamic(t *testing.T, i allium.SearchIndexInfo, want bool) {
	t.Helper()
	if got, ok := i.LatestDefinition.Lookup("mappings", "dynamic").Boolean(); !ok || got != want {
		t.Errorf("latest definition of %s is %v, want dynamic: %v", i.Name, i.LatestDefinition, want)
	}
}
