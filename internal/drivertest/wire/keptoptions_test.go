package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/internal/drivertest/rig"
	"allium/internal/option"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// fill gives everything in v that can hold a value one that begins with n.
func fill(v reflect.Value, n int64, depth int) {
	if depth > 8 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n, depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n+int64(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n, depth+1)
		fill(v.Index(1), n+1, depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n, depth+1)
		fill(elem, n, depth+1)
		v.SetMapIndex(key, elem)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n, depth+1)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprint("text", n))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(n % 100)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n % 100))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(n))
	}
}

// change changes everything that v shares with a shallow copy of it: what lies behind its pointers,
// in its slices and in its maps.
func change(v reflect.Value, depth int) {
	if depth > 8 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			change(v.Elem(), depth+1)
			if v.Elem().CanSet() {
				fill(v.Elem(), 1000, depth+1)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				change(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			change(v.Index(i), depth+1)
			fill(v.Index(i), 1000, depth+1)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			change(v.MapIndex(key), depth+1)
		}
		v.Clear()
	}
}

// TestOptionsAreCopied fills every option struct that something keeps after the call, copies it,
// and changes all that the original refers to: the copy stays what it was.
func TestOptionsAreCopied(t *testing.T) {
	copied[allium.ClientOptions](t)
	copied[allium.DatabaseOptions](t)
	copied[allium.CollectionOptions](t)
	copied[allium.SessionOptions](t)
	copied[allium.TransactionOptions](t)
	copied[allium.WatchOptions](t)
	copied[consistency.ReadPreference](t)
	copied[consistency.WriteConcern](t)
	copied[bson.Options](t)
	copied[encryption.Options](t)
	copied[encryption.AutoOptions](t)
	key := make([]byte, 96)
	c := option.Copy(encryption.KeyOptions{KMS: kms.Providers{"local": kms.Local{Key: key}}})
	if key[0] = 1; c.KMS["local"].(kms.Local).Key[0] != 0 {
		t.Error("the local master key is shared")
	}
}

func copied[T any](t *testing.T) {
	t.Helper()
	var o, want T
	fill(reflect.ValueOf(&o).Elem(), 1, 0)
	fill(reflect.ValueOf(&want).Elem(), 1, 0)
	c := option.Copy(o)
	if !alike(reflect.ValueOf(c), reflect.ValueOf(want)) {
		t.Errorf("%T: the copy is another one", o)
	}
	change(reflect.ValueOf(&o).Elem(), 0)
	if !alike(reflect.ValueOf(c), reflect.ValueOf(want)) {
		t.Errorf("%T: the copy changes with the original", o)
	}
}

// alike compares what can be compared: not what lies in structs of others.
func alike(a, b reflect.Value) bool {
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return alike(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !a.Type().Field(i).IsExported() {
				return true // of another package: shared, or its method Clone's affair
			}
		}
		for i := range a.NumField() {
			if !alike(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !alike(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for _, key := range a.MapKeys() {
			if e := b.MapIndex(key); !e.IsValid() || !alike(a.MapIndex(key), e) {
				return false
			}
		}
		return true
	case reflect.Func, reflect.Interface, reflect.Chan:
		return a.IsNil() == b.IsNil()
	}
	return a.Equal(b)
}

// TestOptionsAreKeptAsTheyWere changes the options of what is open, and looks at the commands: they
// have what was set at the call.
func TestOptionsAreKeptAsTheyWere(t *testing.T) {
	rec := &rig.Recorder{}
	co := allium.ClientOptions{CommandMonitor: rec.Monitor(), ReadPreference: &consistency.ReadPreference{Mode: consistency.PrimaryPreferred},
		ReadConcern: &consistency.ReadConcern{Level: "local"}, RetryReads: new(true), Timeout: new(time.Minute), LogLevels: map[allium.LogComponent]slog.Level{}}
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI(), co)
	ctx := t.Context()
	do := allium.DatabaseOptions{WriteConcern: &consistency.WriteConcern{W: 1}, ReadConcern: &consistency.ReadConcern{Level: "majority"}, BSON: &bson.Options{NilSliceAsNull: true}}
	db := client.Database("d", do)
	lo := allium.CollectionOptions{Timeout: new(time.Minute), WriteConcern: &consistency.WriteConcern{W: "majority"}, BSON: &bson.Options{OmitZero: true}}
	coll := db.Collection("c", lo)
	before := coll.Database().Settings()
	for _, v := range []any{&co, &do, &lo} {
		change(reflect.ValueOf(v), 0)
	}
	if after := coll.Database().Settings(); !reflect.DeepEqual(before, after) {
		t.Errorf("settings are %+v, were %+v", after, before)
	}
	change(reflect.ValueOf(new(coll.Database().Settings())), 0)
	if after := coll.Database().Settings(); !reflect.DeepEqual(before, after) {
		t.Errorf("settings were changed through Settings: %+v, were %+v", after, before)
	}
	for i := range 4 {
		rig.Must(coll.InsertOne(ctx, bson.D{{Key: "_id", Value: i}}))
	}

	// A cursor: its comment and its timeout.
	comment := map[string]any{"by": "me"}
	fo := allium.FindOptions{BatchSize: new(int32(1)), Comment: comment, Timeout: new(time.Minute), TimeoutMode: allium.TimeoutPerIteration}
	cur := rig.Must(coll.Find(ctx, bson.D{}, fo))
	comment["by"], *fo.BatchSize, *fo.Timeout = "you", 7, 1
	rec.Reset()
	if all, err := cur.All(ctx); err != nil || len(all) != 4 {
		t.Errorf("%d documents, %v", len(all), err)
	}
	for _, e := range rec.Of("getMore") {
		if got := e.Body.Lookup("comment", "by").String(); got != `"me"` {
			t.Errorf("a getMore has the comment of %s", got)
		}
	}

	// A session and its transaction.
	so := allium.SessionOptions{CausalConsistency: new(true), Timeout: new(time.Minute), Transaction: allium.TransactionOptions{
		ReadConcern: &consistency.ReadConcern{Level: "snapshot"}, WriteConcern: &consistency.WriteConcern{W: "majority"}}}
	sess := rig.Must(client.StartSession(so))
	defer sess.End(ctx)
	change(reflect.ValueOf(&so), 0)
	to := allium.TransactionOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Primary}}
	if err := sess.StartTransaction(to); err != nil {
		t.Fatal(err)
	}
	to.ReadPreference.Mode = consistency.Secondary
	inside := allium.WithSession(ctx, sess)
	rec.Reset()
	rig.Must(db.With(allium.DatabaseOptions{}).Collection("c").InsertOne(inside, bson.D{}))
	if got := rec.Of("insert")[0].Body.Lookup("readConcern", "level").String(); got != `"snapshot"` {
		t.Errorf("the transaction's read concern is %s", got)
	}
	if err := sess.CommitTransaction(ctx); err != nil {
		t.Fatal(err)
	}

	// A change stream, which asks anew when it resumes.
	wo := allium.WatchOptions{BatchSize: new(int32(3)), Comment: comment, StartAtOperationTime: new(bson.Timestamp{T: 1}), Collation: &allium.Collation{Locale: "en"}}
	wo.StartAtOperationTime = nil
	stream := rig.Must(coll.Watch(ctx, nil, wo))
	defer stream.Close(ctx)
	comment["by"], *wo.BatchSize, wo.Collation.Locale = "nobody", 9, "de"
	rec.Reset()
	stream.TryNext(ctx)
	for _, e := range rec.Of("getMore") {
		if got := e.Body.Lookup("comment", "by").String(); got != `"you"` || e.Body.Lookup("batchSize").String() != "3" {
			t.Errorf("a getMore of the stream is %s", e.Body)
		}
	}
}

// TestDocumentBesideWriteConcernError: the document that FindOneAnd* found comes with the error of
// its write concern.
func TestDocumentBesideWriteConcernError(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client := rig.Open(t, d.URI())
	ctx, coll := t.Context(), allium.CollectionOf[employee](client.Database("d"), "c")
	for what, run := range map[string]func() (employee, error){
		"FindOneAndUpdate": func() (employee, error) {
			return coll.FindOneAndUpdate(ctx, bson.D{{Key: "name", Value: "Ada"}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "age", Value: 1}}}})
		},
		"FindOneAndReplace": func() (employee, error) {
			return coll.FindOneAndReplace(ctx, bson.D{{Key: "name", Value: "Ada"}}, employee{"Eva", 1})
		},
		"FindOneAndDelete": func() (employee, error) { return coll.FindOneAndDelete(ctx, bson.D{{Key: "name", Value: "Ada"}}) },
		"none":             func() (employee, error) { return coll.FindOneAndDelete(ctx, bson.D{{Key: "name", Value: "nobody"}}) },
	} {
		rig.Must(coll.DeleteMany(ctx, bson.D{}))
		rig.Must(coll.InsertOne(ctx, employee{"Ada", 36}))
		d.FailCommand(t, mongotest.Fail{Commands: []string{"findAndModify"}, Times: 1, WriteConcernError: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting"}}})
		got, err := run()
		var concern *mongoerr.WriteConcernError
		if !errors.As(err, &concern) {
			t.Errorf("%s: %v", what, err)
		}
		none, want := what == "none", employee{"Ada", 36}
		if none {
			want = employee{}
		}
		if got != want || errors.Is(err, mongoerr.ErrNoDocuments) != none { // or the zero value passes for a document
			t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
		}
	}
}

// TestAggregateIsSentAsItIs: what an aggregate sends follows from its stages.
func TestAggregateIsSentAsItIs(t *testing.T) {
	rec := &rig.Recorder{}
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI(), allium.ClientOptions{CommandMonitor: rec.Monitor()})
	ctx, coll := t.Context(), client.Database("d").Collection("c")
	rig.Must(coll.InsertOne(ctx, bson.D{}))
	for _, stage := range []bson.D{{{Key: "$out", Value: "o"}}, {{Key: "$merge", Value: "m"}}} {
		for _, size := range []int32{0, 1, 5} {
			rec.Reset()
			rig.Must(coll.Aggregate(ctx, []bson.D{stage}, allium.AggregateOptions{BatchSize: &size}))
			if got := rec.Of("aggregate")[0].Body.Lookup("cursor").String(); got != "{}" {
				t.Errorf("%v: cursor is %s", stage, got)
			}
		}
	}
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cur := rig.Must(allium.Aggregate[bson.Raw](ctx, coll, []bson.D{{{Key: "$changeStream", Value: bson.D{}}}}, allium.AggregateOptions{MaxAwaitTime: 200 * time.Millisecond}))
	defer cur.Close(ctx)
	rec.Reset()
	cur.TryNext(wait)
	if len(rec.Of("getMore")) == 0 {
		t.Error("nobody waited for events")
	}
	for _, e := range rec.Of("getMore") {
		if got := e.Body.Lookup("maxTimeMS").String(); got != "200" {
			t.Errorf("a getMore has maxTimeMS %s", got)
		}
	}
	// A cursor over documents that are there waits for nothing.
	rig.Must(coll.InsertOne(ctx, bson.D{}))
	there := rig.Must(allium.Aggregate[bson.Raw](ctx, coll, []bson.D{}, allium.AggregateOptions{MaxAwaitTime: 200 * time.Millisecond, BatchSize: new(int32(1))}))
	defer there.Close(ctx)
	rec.Reset()
	if !there.TryNext(wait) || !there.TryNext(wait) || there.TryNext(wait) {
		t.Error("there are not two documents")
	}
	for _, e := range rec.Of("getMore") {
		if got := e.Body.Lookup("maxTimeMS"); !got.IsZero() {
			t.Errorf("a getMore of documents has maxTimeMS %v", got)
		}
	}
	if _, err := allium.Open("mongodb://localhost", allium.ClientOptions{MaxLogDocumentLength: -1}); err == nil {
		t.Error("MaxLogDocumentLength -1: no error")
	}
}

// employee is what findAndModify returns beside an error.
type employee struct {
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}

// TestDatabaseOfCollection: the database of a collection is the one that it was made from. The same
// collection with documents of another type keeps its settings.
func TestDatabaseOfCollection(t *testing.T) {
	rec := &rig.Recorder{}
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI(), allium.ClientOptions{CommandMonitor: rec.Monitor()})
	ctx := t.Context()
	db := client.Database("d", allium.DatabaseOptions{WriteConcern: &consistency.WriteConcern{W: 1}})
	coll := db.Collection("c", allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: "majority"}})
	other := coll.With(allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: 1, Journal: new(true)}})
	for name, test := range map[string]struct {
		insert func() error
		want   string
	}{
		"the collection":            {func() error { return rig.ErrorOf(coll.InsertOne(ctx, bson.D{})) }, `{"w": "majority"}`},
		"its database":              {func() error { return rig.ErrorOf(coll.Database().Collection("c").InsertOne(ctx, bson.D{})) }, `{"w": {"$numberInt":"1"}}`},
		"with other settings":       {func() error { return rig.ErrorOf(other.InsertOne(ctx, bson.D{})) }, `{"w": {"$numberInt":"1"}, "j": true}`},
		"the database of that":      {func() error { return rig.ErrorOf(other.Database().Collection("c").InsertOne(ctx, bson.D{})) }, `{"w": {"$numberInt":"1"}}`},
		"documents of another type": {func() error { return rig.ErrorOf(allium.As[bson.M](coll).InsertOne(ctx, bson.M{"x": 1})) }, `{"w": "majority"}`},
		"and of another, other ones": {func() error {
			return rig.ErrorOf(allium.As[bson.Raw](allium.As[bson.M](other)).Database().Collection("c").InsertOne(ctx, bson.D{}))
		}, `{"w": {"$numberInt":"1"}}`},
	} {
		rec.Reset()
		if err := test.insert(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wc, _ := rec.Of("insert")[0].Body.Lookup("writeConcern").Document()
		var want bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(test.want), &want); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(wc, want) {
			t.Errorf("%s: write concern %v, want %v", name, wc, want)
		}
	}
	if db != coll.Database() || db != allium.As[bson.M](other).Database() {
		t.Error("the database is another one")
	}
}
