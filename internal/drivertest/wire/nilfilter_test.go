package wire

import (
	"errors"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

// A filter that is a nil map, slice or pointer was forgotten, and is no request for all documents,
// whatever its type.
func TestTypedNilFilters(t *testing.T) {
	client, coll := misuse(t)
	type filter struct{ X int }
	set := bson.M{"$set": bson.M{"x": 1}}
	var self any
	self = &self
	for kind, none := range map[string]any{
		"nil": nil, "bson.M": bson.M(nil), "bson.D": bson.D(nil), "bson.Raw": bson.Raw(nil), "map": map[string]int(nil), "pointer": (*filter)(nil),
		"pointer to bson.D": new(bson.D), "pointer to itself": self,
	} {
		for name, do := range map[string]func() error{
			"DeleteOne":         func() error { return rig.ErrorOf(coll.DeleteOne(t.Context(), none)) },
			"DeleteMany":        func() error { return rig.ErrorOf(coll.DeleteMany(t.Context(), none)) },
			"UpdateOne":         func() error { return rig.ErrorOf(coll.UpdateOne(t.Context(), none, set)) },
			"UpdateMany":        func() error { return rig.ErrorOf(coll.UpdateMany(t.Context(), none, set)) },
			"ReplaceOne":        func() error { return rig.ErrorOf(coll.ReplaceOne(t.Context(), none, bson.D{})) },
			"Find":              func() error { return rig.ErrorOf(coll.Find(t.Context(), none)) },
			"FindOne":           func() error { return rig.ErrorOf(coll.FindOne(t.Context(), none)) },
			"FindOneAndUpdate":  func() error { return rig.ErrorOf(coll.FindOneAndUpdate(t.Context(), none, set)) },
			"FindOneAndReplace": func() error { return rig.ErrorOf(coll.FindOneAndReplace(t.Context(), none, bson.D{})) },
			"FindOneAndDelete":  func() error { return rig.ErrorOf(coll.FindOneAndDelete(t.Context(), none)) },
			"CountDocuments":    func() error { return rig.ErrorOf(coll.CountDocuments(t.Context(), none)) },
			"Count":             func() error { return rig.ErrorOf(coll.Count(t.Context(), none)) },
			"Distinct":          func() error { return rig.ErrorOf(allium.Distinct[any](t.Context(), coll, "x", none)) },
			"BulkWrite delete": func() error {
				return rig.ErrorOf(coll.BulkWrite(t.Context(), []allium.WriteModel{coll.DeleteManyModel(none)}))
			},
			"BulkWrite update": func() error {
				return rig.ErrorOf(coll.BulkWrite(t.Context(), []allium.WriteModel{coll.UpdateManyModel(none, set)}))
			},
			"Client.BulkWrite": func() error {
				return rig.ErrorOf(client.BulkWrite(t.Context(), []allium.WriteModel{coll.DeleteManyModel(none)}))
			},
			"update of UpdateMany": func() error { return rig.ErrorOf(coll.UpdateMany(t.Context(), bson.D{}, none)) },
			"replacement of a model": func() error {
				return rig.ErrorOf(coll.BulkWrite(t.Context(), []allium.WriteModel{allium.As[any](coll).ReplaceOneModel(bson.D{}, none)}))
			},
			"command": func() error { return rig.ErrorOf(coll.Database().RunCommand(t.Context(), none)) },
		} {
			if err := do(); err == nil || !errors.Is(err, mongoerr.ErrNilDocument) && kind != "pointer to itself" {
				t.Errorf("%s with %s: %v, want that the document is nil", name, kind, err)
			}
		}
	}
	if n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "x", Value: "text"}}); n != 10 || err != nil {
		t.Errorf("%d documents are as they were, %v, want 10", n, err)
	}
	// What is optional may be nil in every way, and an empty filter matches everything.
	if _, err := coll.FindOne(t.Context(), bson.M{}, allium.FindOneOptions{Sort: bson.D(nil), Projection: bson.M(nil)}); err != nil {
		t.Error(err)
	}
	if names, err := client.ListDatabaseNames(t.Context(), allium.ListDatabasesOptions{Filter: bson.M(nil)}); err != nil || len(names) == 0 {
		t.Errorf("%v, %v", names, err)
	}
}

// Times that cannot be meant are refused and not left out.
func TestNegativeTimes(t *testing.T) {
	client, coll := misuse(t)
	const d = -time.Second
	db := coll.Database()
	f := bson.D{}
	for name, do := range map[string]func() error{
		"Find":               func() error { return rig.ErrorOf(coll.Find(t.Context(), f, allium.FindOptions{MaxTime: d})) },
		"Find, MaxAwaitTime": func() error { return rig.ErrorOf(coll.Find(t.Context(), f, allium.FindOptions{MaxAwaitTime: d})) },
		"FindOne":            func() error { return rig.ErrorOf(coll.FindOne(t.Context(), f, allium.FindOneOptions{MaxTime: d})) },
		"FindOneAndDelete": func() error {
			return rig.ErrorOf(coll.FindOneAndDelete(t.Context(), f, allium.FindOneAndDeleteOptions{MaxTime: d}))
		},
		"CountDocuments": func() error { return rig.ErrorOf(coll.CountDocuments(t.Context(), f, allium.CountOptions{MaxTime: d})) },
		"Count":          func() error { return rig.ErrorOf(coll.Count(t.Context(), f, allium.CountOptions{MaxTime: d})) },
		"EstimatedDocumentCount": func() error {
			return rig.ErrorOf(coll.EstimatedDocumentCount(t.Context(), allium.EstimatedCountOptions{MaxTime: d}))
		},
		"Distinct": func() error {
			return rig.ErrorOf(allium.Distinct[any](t.Context(), coll, "x", f, allium.DistinctOptions{MaxTime: d}))
		},
		"Aggregate": func() error {
			return rig.ErrorOf(coll.Aggregate(t.Context(), bson.A{}, allium.AggregateOptions{MaxTime: d}))
		},
		"Aggregate, MaxAwaitTime": func() error {
			return rig.ErrorOf(coll.Aggregate(t.Context(), bson.A{}, allium.AggregateOptions{MaxAwaitTime: d}))
		},
		"CreateIndex": func() error {
			return rig.ErrorOf(coll.CreateIndex(t.Context(), allium.IndexModel{Keys: bson.D{{Key: "x", Value: 1}}}, allium.CreateIndexOptions{MaxTime: d}))
		},
		"DropIndex": func() error { return coll.DropIndex(t.Context(), "x_1", allium.DropIndexOptions{MaxTime: d}) },
		"Watch":     func() error { return rig.ErrorOf(coll.Watch(t.Context(), nil, allium.WatchOptions{MaxAwaitTime: d})) },
		"RunCursorCommand": func() error {
			return rig.ErrorOf(db.RunCursorCommand(t.Context(), bson.D{{Key: "find", Value: "c"}}, allium.RunCursorCommandOptions{MaxTime: d}))
		},
		"StartTransaction": func() error {
			return rig.StartSession(t, client).StartTransaction(allium.TransactionOptions{MaxCommitTime: d})
		},
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "is -1s, want 0 or more") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A compressor that the driver does not have is an error in the options; in a connection string it
// is a warning, as the specification URI Options says.
func TestUnknownCompressorOption(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.Any)
	for _, names := range [][]string{{"lz4"}, {"zlib", ""}, {"noop"}, {"Snappy"}} {
		if client, err := allium.Open(d.URI(), allium.ClientOptions{Compressors: names}); err == nil {
			client.Close(t.Context())
			t.Errorf("%q: no error", names)
		}
	}
	rig.Open(t, d.URI(), allium.ClientOptions{Compressors: []string{"zstd", "zlib", "snappy"}})
}
