package operations

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
)

// serverEvents are events of every kind, in a server's form.
func serverEvents() map[string]bson.D {
	type E = bson.E
	ns, id := bson.D{{Key: "db", Value: "d"}, {Key: "coll", Value: "c"}}, bson.D{{Key: "_data", Value: "8265"}}
	uuid := bson.Binary{Subtype: bson.BinaryUUID, Data: bytes.Repeat([]byte{7}, 16)}
	doc := bson.D{{Key: "_id", Value: int32(1)}, {Key: "name", Value: "Ada"}, {Key: "age", Value: int32(36)}}
	event := func(kind string, more ...bson.E) bson.D {
		return append(bson.D{E{Key: "_id", Value: id}, E{Key: "operationType", Value: kind}, E{Key: "clusterTime", Value: bson.Timestamp{T: 1, I: 2}},
			E{Key: "wallTime", Value: bson.DateTime(1700000000123)}}, more...)
	}
	key := E{Key: "documentKey", Value: bson.D{{Key: "shard", Value: "x"}, {Key: "_id", Value: int32(1)}}}
	in := E{Key: "ns", Value: ns}
	expanded := E{Key: "collectionUUID", Value: uuid}
	described := E{Key: "operationDescription", Value: bson.D{{Key: "indexes", Value: bson.A{bson.D{{Key: "v", Value: int32(2)}}}}}}
	return map[string]bson.D{
		"insert":  event("insert", expanded, E{Key: "fullDocument", Value: doc}, in, key),
		"replace": event("replace", E{Key: "fullDocument", Value: doc}, in, key, E{Key: "fullDocumentBeforeChange", Value: doc}),
		"delete":  event("delete", in, key, E{Key: "fullDocumentBeforeChange", Value: nil}),
		"update": event("update", in, key, E{Key: "updateDescription", Value: bson.D{{Key: "updatedFields", Value: bson.D{{Key: "a.b", Value: 1.5}}},
			{Key: "removedFields", Value: bson.A{"x", "y"}}, {Key: "truncatedArrays", Value: bson.A{bson.D{{Key: "field", Value: "l"}, {Key: "newSize", Value: int32(3)}}}},
			{Key: "disambiguatedPaths", Value: bson.D{{Key: "a.0", Value: bson.A{"a", "0"}}}}}}),
		"update, nothing removed": event("update", in, key, E{Key: "updateDescription", Value: bson.D{{Key: "updatedFields", Value: bson.D{}},
			{Key: "removedFields", Value: bson.A{}}, {Key: "truncatedArrays", Value: bson.A{}}}}, E{Key: "fullDocument", Value: nil}),
		"update of 4.4": event("update", in, key, E{Key: "updateDescription", Value: bson.D{{Key: "updatedFields", Value: bson.D{{Key: "a", Value: int32(1)}}},
			{Key: "removedFields", Value: bson.A{}}}}, E{Key: "fullDocument", Value: doc}),
		"in a transaction":         event("insert", E{Key: "lsid", Value: bson.D{{Key: "id", Value: uuid}, {Key: "uid", Value: bson.Binary{Data: []byte{1}}}}}, E{Key: "txnNumber", Value: int64(7)}, E{Key: "fullDocument", Value: doc}, in, key),
		"drop":                     event("drop", in),
		"rename":                   event("rename", in, E{Key: "to", Value: bson.D{{Key: "db", Value: "e"}, {Key: "coll", Value: "f"}}}, described),
		"dropDatabase":             event("dropDatabase", E{Key: "ns", Value: bson.D{{Key: "db", Value: "d"}}}),
		"invalidate":               event("invalidate"),
		"create":                   event("create", expanded, E{Key: "nsType", Value: "view"}, in, described),
		"modify":                   event("modify", expanded, in, described, E{Key: "stateBeforeChange", Value: bson.D{{Key: "collectionOptions", Value: bson.D{}}}}),
		"createIndexes":            event("createIndexes", expanded, in, described),
		"dropIndexes":              event("dropIndexes", expanded, in, described),
		"shardCollection":          event("shardCollection", expanded, in, described),
		"reshardCollection":        event("reshardCollection", expanded, in, described),
		"refineCollectionShardKey": event("refineCollectionShardKey", expanded, in, described),
		"fragment":                 event("update", in, E{Key: "splitEvent", Value: bson.D{{Key: "fragment", Value: int32(1)}, {Key: "of", Value: int32(2)}}}),
		"of a newer server":        event("unheardOf", in, E{Key: "news", Value: bson.A{1}}),
		"changed by a pipeline": {E{Key: "_id", Value: id}, E{Key: "operationType", Value: int32(5)}, E{Key: "ns", Value: "text"}, E{Key: "documentKey", Value: bson.A{}},
			E{Key: "wallTime", Value: "now"}, E{Key: "fullDocument", Value: bson.A{int32(1)}}, E{Key: "updateDescription", Value: bson.Null{}}, E{Key: "more", Value: true}},
	}
}

// TestChangeEventsAreStored encodes an event of every kind and reads it back: the bytes are the
// server's, and the event is the same, with documents of any type, by itself and within a document.
func TestChangeEventsAreStored(t *testing.T) {
	for kind, doc := range serverEvents() {
		raw := rig.Must(bson.Marshal(doc))
		var e allium.ChangeEvent[bson.D]
		if err := bson.Unmarshal(raw, &e); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if got := rig.Must(bson.Marshal(e)); !bytes.Equal(got, raw) {
			t.Errorf("%s:\n got %s\nwant %s", kind, bson.Raw(got), bson.Raw(raw))
		}
		roundTrip[bson.D](t, kind, raw)
		roundTrip[bson.Raw](t, kind, raw)
		roundTrip[resident](t, kind, raw)
		roundTrip[map[string]any](t, kind, raw)
	}
}

func roundTrip[T any](t *testing.T, kind string, raw []byte) {
	t.Helper()
	type outbox struct {
		Event allium.ChangeEvent[T] `bson:"event"`
		More  *allium.ChangeEvent[T]
	}
	var e, f allium.ChangeEvent[T]
	if err := bson.Unmarshal(raw, &e); err != nil {
		t.Fatalf("%s, %T: %v", kind, e, err)
	}
	var box outbox
	if err := bson.Unmarshal(rig.Must(bson.Marshal(outbox{e, &e})), &box); err != nil {
		t.Fatalf("%s, %T: %v", kind, e, err)
	}
	f = box.Event
	f.Raw, e.Raw, box.More.Raw = nil, nil, nil // whose documents have the fields of T only
	if !reflect.DeepEqual(e, f) || !reflect.DeepEqual(e, *box.More) {
		t.Errorf("%s, %T:\n got %+v\nwant %+v", kind, e, f, e)
	}
}

// TestChangeEventsThatWereChanged: the fields count, and what was cleared is not stored.
func TestChangeEventsThatWereChanged(t *testing.T) {
	var e allium.ChangeEvent[bson.D]
	if err := bson.Unmarshal(rig.Must(bson.Marshal(serverEvents()["replace"])), &e); err != nil {
		t.Fatal(err)
	}
	(*e.FullDocument)[1].Value = "-"
	e.FullDocumentBeforeChange, e.DocumentKey, e.Namespace.Collection = nil, nil, "other"
	doc := bson.Raw(rig.Must(bson.Marshal(&e)))
	if doc.Lookup("fullDocument", "name").String() != `"-"` || !doc.Lookup("fullDocumentBeforeChange").IsZero() || !doc.Lookup("documentKey").IsZero() || doc.Lookup("ns", "coll").String() != `"other"` {
		t.Errorf("%s", doc)
	}
	made := allium.ChangeEvent[resident]{ID: bson.Raw(rig.Must(bson.Marshal(bson.D{{Key: "_data", Value: "1"}}))), OperationType: allium.ChangeUpdate,
		Namespace: allium.Namespace{DB: "d", Collection: "c"}, To: &allium.Namespace{DB: "e"}, NamespaceType: "view", FullDocument: &resident{Name: "Ada"},
		UpdateDescription: &allium.UpdateDescription{RemovedFields: []string{"x"}, TruncatedArrays: []allium.TruncatedArray{{Field: "l", NewSize: 2}}},
		CollectionUUID:    &bson.UUID{1}, ClusterTime: bson.Timestamp{T: 1}, WallTime: time.UnixMilli(5).UTC(), TxnNumber: new(int64(3)), SplitEvent: &allium.SplitEvent{Fragment: 1, Of: 2}}
	var back allium.ChangeEvent[resident]
	if err := bson.Unmarshal(rig.Must(bson.Marshal(made)), &back); err != nil {
		t.Fatal(err)
	}
	made.UpdateDescription.UpdatedFields = bson.Raw(rig.Must(bson.Marshal(bson.D{}))) // an event always has them
	if back.Raw = nil; !reflect.DeepEqual(made, back) {
		t.Errorf("got %+v\nwant %+v", back, made)
	}
	if doc := bson.Raw(rig.Must(bson.Marshal(allium.ChangeEvent[bson.D]{}))); !doc.IsEmpty() {
		t.Errorf("an event without anything: %s", doc)
	}
}

// TestOutbox stores the events of a stream in a collection and reads them from there.
func TestOutbox(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI())
	ctx, db := t.Context(), client.Database("d")
	people, outbox := allium.CollectionOf[resident](db, "people"), allium.CollectionOf[allium.ChangeEvent[resident]](db, "outbox")
	stream, err := people.Watch(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close(ctx)
	rig.Must(people.InsertOne(ctx, resident{"Ada", 36}))
	rig.Must(people.UpdateOne(ctx, bson.D{}, bson.D{{Key: "$inc", Value: bson.D{{Key: "age", Value: 1}}}}))
	rig.Must(people.DeleteOne(ctx, bson.D{}))
	for range 3 {
		if !stream.Next(ctx) {
			t.Fatal(stream.Err())
		}
		want := stream.Current()
		rig.Must(outbox.InsertOne(ctx, want))
		got, err := outbox.FindOne(ctx, bson.D{{Key: "_id", Value: want.ID}})
		if err != nil {
			t.Fatal(err)
		}
		if got.Raw, want.Raw = nil, nil; !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		if _, err := people.Watch(ctx, nil, allium.WatchOptions{ResumeAfter: got.ID}); err != nil {
			t.Errorf("resume after the stored event: %v", err)
		}
	}
}

// resident is the document of the collection that is watched.
type resident struct {
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}
