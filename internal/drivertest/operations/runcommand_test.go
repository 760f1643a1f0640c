package operations

import (
	"errors"
	"testing"

	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// A command that the server answers with ok: 1 and errors of a write is one that failed, and its
// reply says what was done all the same.
func TestRunCommandReportsWriteErrors(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client := rig.Open(t, d.URI())
	db := client.Database("d")
	insert := func(ids ...any) bson.D {
		docs := bson.A{}
		for _, id := range ids {
			docs = append(docs, bson.D{{Key: "_id", Value: id}})
		}
		return bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "ordered", Value: false}}
	}
	if _, err := db.RunCommand(t.Context(), insert(1)); err != nil {
		t.Fatal(err)
	}

	t.Run("writeErrors", func(t *testing.T) {
		reply, err := db.RunCommand(t.Context(), insert(2, 1, 3))
		if !errors.Is(err, mongoerr.ErrDuplicateKey) || !mongoerr.HasCode(err, 11000) {
			t.Errorf("error %v, want a duplicate key", err)
		}
		e, ok := errors.AsType[*mongoerr.WriteError](err)
		if !ok || e.Index != 1 {
			t.Errorf("write error %+v, want one of statement 1", e)
		}
		if n, _ := reply.Lookup("n").AsInt64(); n != 2 {
			t.Errorf("reply %v, want n: 2", reply)
		}
	})
	t.Run("writeConcernError", func(t *testing.T) {
		d.FailCommand(t, mongotest.Fail{Commands: []string{"insert"}, Times: 1, WriteConcernError: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}})
		reply, err := db.RunCommand(t.Context(), insert(10))
		e, ok := errors.AsType[*mongoerr.WriteConcernError](err)
		if !ok || e.Code != 64 {
			t.Errorf("error %v, want a write concern error with the code 64", err)
		}
		if n, _ := reply.Lookup("n").AsInt64(); n != 1 {
			t.Errorf("reply %v, want n: 1", reply)
		}
	})
	t.Run("both", func(t *testing.T) {
		d.FailCommand(t, mongotest.Fail{Commands: []string{"insert"}, Times: 1, WriteConcernError: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "timed out"}}})
		_, err := db.RunCommand(t.Context(), insert(1))
		e, ok := errors.AsType[*mongoerr.BulkWriteError](err)
		if !ok || len(e.WriteErrors) != 1 || len(e.WriteConcernErrors) != 1 {
			t.Errorf("error %v, want a BulkWriteError with one error of each kind", err)
		}
	})
	t.Run("bulkWrite", func(t *testing.T) {
		cmd := bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ordered", Value: false}, {Key: "nsInfo", Value: bson.A{bson.D{{Key: "ns", Value: "d.c"}}}}, {Key: "ops", Value: bson.A{
			bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{{Key: "_id", Value: 20}}}},
			bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{{Key: "_id", Value: 1}}}}}}}
		reply, err := client.Database("admin").RunCommand(t.Context(), cmd)
		e, ok := errors.AsType[*mongoerr.WriteError](err)
		if !ok || e.Index != 1 || e.Code != 11000 {
			t.Errorf("error %v, want a duplicate key of statement 1", err)
		}
		if n, _ := reply.Lookup("nInserted").AsInt64(); n != 1 {
			t.Errorf("reply %v, want nInserted: 1", reply)
		}
	})
	t.Run("none", func(t *testing.T) {
		if _, err := db.RunCommand(t.Context(), insert(30)); err != nil {
			t.Error(err)
		}
	})
}

// RunCursorCommand returns the cursor beside the errors of a write, and only the errors if the
// reply has no cursor.
func TestRunCursorCommandReportsWriteErrors(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	client := rig.Open(t, d.URI())
	db := client.Database("d")
	if _, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}

	d.FailCommand(t, mongotest.Fail{Commands: []string{"aggregate"}, Times: 1, WriteConcernError: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "timed out"}}})
	cur, err := db.RunCursorCommand(t.Context(), bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$out", Value: "other"}}}}, {Key: "cursor", Value: bson.D{}}})
	if e, ok := errors.AsType[*mongoerr.WriteConcernError](err); !ok || e.Code != 64 {
		t.Errorf("error %v, want a write concern error with the code 64", err)
	}
	if cur == nil {
		t.Fatal("no cursor beside the error")
	}
	if docs, err := cur.All(t.Context()); err != nil || len(docs) != 0 {
		t.Errorf("cursor: %v, %v", docs, err)
	}

	cur, err = db.RunCursorCommand(t.Context(), bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}})
	if cur != nil || !errors.Is(err, mongoerr.ErrDuplicateKey) {
		t.Errorf("insert: %v, %v, want a duplicate key alone", cur, err)
	}
}

// What a server says about errors of a write is never passed over because it has another form than
// it should.
func TestMalformedWriteErrors(t *testing.T) {
	for name, fields := range map[string]bson.D{
		"writeErrors is a string":         {{Key: "ok", Value: 1}, {Key: "n", Value: 1}, {Key: "writeErrors", Value: "E11000"}},
		"writeErrors holds a string":      {{Key: "ok", Value: 1}, {Key: "n", Value: 1}, {Key: "writeErrors", Value: bson.A{"E11000"}}},
		"writeConcernError is a string":   {{Key: "ok", Value: 1}, {Key: "n", Value: 1}, {Key: "writeConcernError", Value: "timed out"}},
		"writeConcernError is an integer": {{Key: "ok", Value: 1}, {Key: "n", Value: 1}, {Key: "writeConcernError", Value: 64}},
	} {
		reply, err := bson.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		s := rig.StartFake(t, func(r *fakeserver.Request) { r.Reply(reply) })
		client := rig.Open(t, s)
		if _, err := client.Database("d").Collection("c").InsertOne(t.Context(), bson.D{}); err == nil {
			t.Errorf("%s: InsertOne: no error", name)
		}
		if _, err := client.Database("d").Collection("c").InsertMany(t.Context(), []bson.D{{}, {}}); err == nil {
			t.Errorf("%s: InsertMany: no error", name)
		}
		if _, err := client.Database("d").RunCommand(t.Context(), bson.D{{Key: "insert", Value: "c"}}); err == nil {
			t.Errorf("%s: RunCommand: no error", name)
		}
	}
}
