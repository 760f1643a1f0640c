package wire

import (
	"testing"

	"allium"
	"allium/bson"
	"allium/collation"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
)

// What only a server can judge is sent as the program gave it, and what a server says is not judged
// either.

// A collation's fields are for the server to judge, which knows more of them than a client
// (specification: Collation).
func TestCollationIsNotJudged(t *testing.T) {
	rec := &rig.Recorder{}
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI(), allium.ClientOptions{CommandMonitor: rec.Monitor()})
	coll := client.Database("d").Collection("c")
	for _, c := range []allium.Collation{
		{Locale: "tlh"}, {Locale: "en", Strength: 99}, {Locale: "en", Strength: -1}, {Locale: "en", CaseFirst: "sideways"},
		{Locale: "en", Alternate: "current", MaxVariable: collation.MaxVariable("symbols")}, {Strength: collation.Primary},
	} {
		rec.Reset()
		coll.CountDocuments(t.Context(), bson.D{}, allium.CountOptions{Collation: &c}) // the server says what it thinks of it
		sent := rec.Of("aggregate")
		if len(sent) != 1 {
			t.Fatalf("%+v: %d commands", c, len(sent))
		}
		got, _ := sent[0].Body.Lookup("collation").Document()
		locale, _ := got.Lookup("locale").StringValue()
		strength, _ := got.Lookup("strength").AsInt64()
		first, _ := got.Lookup("caseFirst").StringValue()
		alternate, _ := got.Lookup("alternate").StringValue()
		variable, _ := got.Lookup("maxVariable").StringValue()
		if locale != c.Locale || strength != int64(c.Strength) || first != string(c.CaseFirst) || alternate != string(c.Alternate) || variable != string(c.MaxVariable) {
			t.Errorf("%+v is sent as %v", c, got)
		}
	}
}

// An empty pipeline is a pipeline, of whatever type, and sent as an empty array (specifications:
// CRUD, Change Streams).
func TestEmptyPipelines(t *testing.T) {
	rec := &rig.Recorder{}
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI(), allium.ClientOptions{CommandMonitor: rec.Monitor()})
	ctx, coll := t.Context(), client.Database("d").Collection("c")
	rig.Must(coll.InsertOne(ctx, bson.D{}))
	for _, pipeline := range []any{[]bson.D{}, bson.A{}, []any{}, []bson.M{}, []bson.Raw{}, [0]bson.D{}, make([]bson.D, 0, 5)} {
		rec.Reset()
		cur, err := coll.Aggregate(ctx, pipeline)
		if err != nil {
			t.Errorf("%T: %v", pipeline, err)
			continue
		}
		if docs := rig.Must(cur.All(ctx)); len(docs) != 1 {
			t.Errorf("%T: %d documents", pipeline, len(docs))
		}
		stream, err := coll.Watch(ctx, pipeline)
		if err != nil {
			t.Errorf("%T: %v", pipeline, err)
			continue
		}
		stream.Close(ctx)
		for i, stages := range []int{0, 1} { // that of a stream has its own
			v, ok := rec.Of("aggregate")[i].Body.Lookup("pipeline").Array()
			n := 0
			for range v.Values() {
				n++
			}
			if !ok || n != stages {
				t.Errorf("%T: pipeline %v", pipeline, v)
			}
		}
	}
}

// An event whose fields have other types than today's is an event all the same: what does not fit
// is left out, and stands in Raw (specification: Change Streams, "Response Format").
func TestEventsOfOtherTypes(t *testing.T) {
	odd := []any{int32(7), "text", 1.5, true, bson.D{{Key: "a", Value: 1}}, bson.A{1}, nil, bson.Timestamp{T: 1}, bson.NewObjectID()}
	for _, key := range []string{"operationType", "documentKey", "clusterTime", "wallTime", "ns", "to", "nsType", "updateDescription", "collectionUUID",
		"lsid", "txnNumber", "splitEvent", "operationDescription", "what servers will add"} {
		for _, v := range odd {
			token := bson.D{{Key: "_data", Value: "1"}}
			raw := rig.Must(bson.Marshal(bson.D{{Key: "_id", Value: token}, {Key: key, Value: v}, {Key: "fullDocument", Value: bson.D{{Key: "x", Value: 1}}}}))
			var e allium.ChangeEvent[bson.D]
			if err := bson.Unmarshal(raw, &e); err != nil {
				t.Errorf("%s is a %T: %v", key, v, err)
				continue
			}
			if e.ID == nil || e.FullDocument == nil || !e.Raw.Lookup(key).Equal(bson.Raw(raw).Lookup(key)) {
				t.Errorf("%s is a %T: %+v", key, v, e)
			}
			if s, ok := v.(string); ok && key == "operationType" && string(e.OperationType) != s {
				t.Errorf("a new operation type is read as %q", e.OperationType)
			}
		}
	}
}
