package operations

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// What the pages for users claim, and no other test shows. A sentence of README, guide, recipes or
// production that turns out to be too strong gets its case here.

// TestStringsFromOutside shows where a string is only a string, and where one that begins with $
// names a field: docs/guide.md, "Read".
func TestStringsFromOutside(t *testing.T) {
	ctx := t.Context()
	d := testdeploy.Start(t, testdeploy.Any)
	coll := rig.Open(t, d.URI()).Database("app").Collection("users")
	input := "$secret"
	reset := func() {
		t.Helper()
		if err := coll.Drop(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: "Ada"}, {Key: "secret", Value: "Ada"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		filter any
		want   int64
	}{
		{"a filter", bson.M{"secret": input}, 0},
		{"$eq", bson.M{"name": bson.M{"$eq": input}}, 0},
		{"$in", bson.M{"name": bson.M{"$in": []string{input}}}, 0},
		{"$expr", bson.M{"$expr": bson.M{"$eq": bson.A{"$name", input}}}, 1},
		{"$expr with $literal", bson.M{"$expr": bson.M{"$eq": bson.A{"$name", bson.M{"$literal": input}}}}, 0},
	} {
		reset()
		if n, err := coll.CountDocuments(ctx, tt.filter); err != nil || n != tt.want {
			t.Errorf("%s: %d documents, %v; want %d", tt.name, n, err, tt.want)
		}
	}
	for _, tt := range []struct {
		name   string
		update any
		opts   allium.UpdateOptions
		want   string
	}{
		{"an update", bson.M{"$set": bson.M{"name": input}}, allium.UpdateOptions{}, input},
		{"a pipeline", []bson.M{{"$set": bson.M{"name": input}}}, allium.UpdateOptions{}, "Ada"},
		{"a pipeline with $literal", []bson.M{{"$set": bson.M{"name": bson.M{"$literal": input}}}}, allium.UpdateOptions{}, input},
		{"a pipeline with Let", []bson.M{{"$set": bson.M{"name": "$$name"}}},
			allium.UpdateOptions{Let: bson.M{"name": bson.M{"$literal": input}}}, input},
	} {
		reset()
		if _, err := coll.UpdateOne(ctx, bson.M{"_id": 1}, tt.update, tt.opts); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		doc, err := coll.FindOne(ctx, bson.M{"_id": 1})
		if got, _ := doc.Get("name"); err != nil || got != tt.want {
			t.Errorf("%s writes %v, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	reset()
	for want, projected := range map[string]any{"Ada": input, input: bson.M{"$literal": input}} {
		doc, err := coll.FindOne(ctx, bson.M{"_id": 1}, allium.FindOneOptions{Projection: bson.M{"name": projected}})
		if got, _ := doc.Get("name"); err != nil || got != want {
			t.Errorf("the projection %v reads %v, %v; want %q", projected, got, err, want)
		}
	}
	for _, variable := range []string{input, "$$NOW"} { // the one is refused, the other a date
		res, err := coll.UpdateOne(ctx, bson.M{"_id": 1}, []bson.M{{"$set": bson.M{"name": "$$name"}}}, allium.UpdateOptions{Let: bson.M{"name": variable}})
		doc, _ := coll.FindOne(ctx, bson.M{"_id": 1})
		if got, _ := doc.Get("name"); got == variable || variable == input && err == nil {
			t.Errorf("Let with %s alone: %+v, %v, and the name is %v", variable, res, err, got)
		}
	}
}

// TestEmptyStructFilter shows what matches everything: docs/guide.md, "Read".
func TestEmptyStructFilter(t *testing.T) {
	ctx := t.Context()
	coll := rig.Open(t, testdeploy.Start(t, testdeploy.Any).URI()).Database("app").Collection("users")
	if err := coll.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.InsertMany(ctx, []bson.D{{{Key: "n", Value: 1}}, {{Key: "n", Value: 2}}}); err != nil {
		t.Fatal(err)
	}
	type Filter struct {
		Name string `bson:"name,omitempty"`
	}
	if res, err := coll.DeleteMany(ctx, nil); err == nil {
		t.Errorf("a nil filter deletes %d", res.DeletedCount)
	}
	if res, err := coll.DeleteMany(ctx, (*Filter)(nil)); err == nil {
		t.Errorf("a nil pointer deletes %d", res.DeletedCount)
	}
	if res, err := coll.DeleteMany(ctx, Filter{}); err != nil || res.DeletedCount != 2 {
		t.Errorf("a struct without fields deletes %+v, %v", res, err)
	}
}

// TestSetOfClearedFields shows that an omitted field keeps its stored value: docs/guide.md,
// "Write".
func TestSetOfClearedFields(t *testing.T) {
	ctx := t.Context()
	type User struct {
		ID   int      `bson:"_id,omitempty"`
		Name string   `bson:"name"`
		Tags []string `bson:"tags,omitempty"`
	}
	coll := allium.CollectionOf[User](rig.Open(t, testdeploy.Start(t, testdeploy.Any).URI()).Database("app"), "users")
	if err := coll.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.InsertOne(ctx, User{ID: 1, Name: "Ada", Tags: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": User{Name: "Grace"}}); err != nil {
		t.Fatal(err)
	}
	if u, err := coll.FindOne(ctx, bson.M{"_id": 1}); err != nil || u.Name != "Grace" || len(u.Tags) != 1 {
		t.Errorf("%+v, %v; want the tags as they were", u, err)
	}
	update := bson.M{"$set": User{Name: "Grace"}, "$unset": bson.M{"tags": ""}}
	if _, err := coll.UpdateOne(ctx, bson.M{"_id": 1}, update); err != nil {
		t.Fatal(err)
	}
	if u, err := coll.FindOne(ctx, bson.M{"_id": 1}); err != nil || len(u.Tags) != 0 {
		t.Errorf("%+v, %v; want no tags", u, err)
	}
}

// TestIndexThatExists shows when creating an index again is an error: docs/guide.md, "Index".
func TestIndexThatExists(t *testing.T) {
	ctx := t.Context()
	coll := rig.Open(t, testdeploy.Start(t, testdeploy.Any).URI()).Database("app").Collection("books")
	if err := coll.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	keys := bson.D{{Key: "isbn", Value: 1}}
	for range 2 {
		if _, err := coll.CreateIndex(ctx, allium.IndexModel{Keys: keys}); err != nil {
			t.Fatal(err)
		}
	}
	for name, index := range map[string]allium.IndexModel{
		"unique":     {Keys: keys, Unique: true},
		"sparse":     {Keys: keys, Sparse: true},
		"expiry":     {Keys: keys, ExpireAfter: new(time.Hour)},
		"partial":    {Keys: keys, PartialFilter: bson.M{"isbn": bson.M{"$gt": ""}}},
		"other name": {Keys: keys, Name: "other"},
		"other keys": {Keys: bson.D{{Key: "title", Value: 1}}, Name: "isbn_1"},
	} {
		if _, err := coll.CreateIndex(ctx, index); !mongoerr.HasCode(err, 85) && !mongoerr.HasCode(err, 86) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDefaultOfSetsWithArbiters shows where the server's default write concern is not a majority:
// docs/production.md, "Safety".
func TestDefaultOfSetsWithArbiters(t *testing.T) {
	data, arbiter := mongotest.Member{}, mongotest.Member{Arbiter: true}
	for _, tt := range []struct {
		members []mongotest.Member
		want    any
	}{
		{[]mongotest.Member{data, data, data}, "majority"},
		{[]mongotest.Member{data, data, arbiter}, int32(1)},
		{[]mongotest.Member{data, data, data, data, arbiter}, "majority"},
	} {
		d := testdeploy.Mock(t, "the members of a deployment cannot be chosen", mongotest.Members(tt.members...))
		reply, err := rig.Open(t, d.URI()).Database("admin").RunCommand(t.Context(), bson.D{{Key: "getDefaultRWConcern", Value: 1}})
		if err != nil {
			t.Fatal(err)
		}
		got := reply.Lookup("defaultWriteConcern", "w")
		if s, _ := got.StringValue(); s == tt.want {
			continue
		}
		if n, ok := got.AsInt64(); !ok || int32(n) != tt.want {
			t.Errorf("%d members: the default is %v, want %v", len(tt.members), got, tt.want)
		}
	}
}

// TestQuietStreams shows how long Next waits where nothing happens: docs/guide.md, "Watch".
func TestQuietStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, Timeout: new(10 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		coll := client.Database("app").Collection("users")
		wait := func(stream *allium.ChangeStream[bson.D], ctx context.Context) time.Duration {
			start := time.Now()
			if stream.Next(ctx) {
				t.Error("an event of nothing")
			}
			return time.Since(start)
		}
		stream, err := coll.Watch(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close(t.Context())
		if took := wait(stream, t.Context()); took != 10*time.Second || !mongoerr.IsTimeout(stream.Err()) {
			t.Errorf("with the client's Timeout: %v, %v", took, stream.Err())
		}
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		if !stream.Next(t.Context()) {
			t.Errorf("the next Next does not go on: %v", stream.Err())
		}
		patient, err := coll.Watch(t.Context(), nil, allium.WatchOptions{Timeout: new(time.Duration(0))})
		if err != nil {
			t.Fatal(err)
		}
		defer patient.Close(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if took := wait(patient, ctx); took != time.Hour {
			t.Errorf("without one: %v, %v", took, patient.Err())
		}
	})
}
