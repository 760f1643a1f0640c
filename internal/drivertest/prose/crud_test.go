package prose

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/drivertest/rig"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

// CRUD prose test 1.
func TestProseCRUDWriteConcernErrorDetails(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	info := bson.D{{Key: "writeConcern", Value: bson.D{{Key: "w", Value: int32(2)}, {Key: "wtimeout", Value: int32(0)}, {Key: "provenance", Value: "clientSupplied"}}}}
	rig.FailPoint(t, p.Client, bson.D{{Key: "failCommands", Value: bson.A{"insert"}}, {Key: "writeConcernError", Value: bson.D{
		{Key: "code", Value: 100}, {Key: "codeName", Value: "UnsatisfiableWriteConcern"}, {Key: "errmsg", Value: "Not enough data-bearing nodes"}, {Key: "errInfo", Value: info}}}}, 1)
	_, err := p.Coll.InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
	var wce *mongoerr.WriteConcernError
	if !errors.As(err, &wce) {
		t.Fatalf("want a WriteConcernError, got %v", err)
	}
	want, _ := bson.Marshal(info)
	if !bson.Equal(wce.Details, want) {
		t.Errorf("details are %v, want %v", wce.Details, bson.Raw(want))
	}
}

// CRUD prose test 2.
func TestProseCRUDWriteErrorDetails(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	validator := bson.D{{Key: "x", Value: bson.D{{Key: "$type", Value: "string"}}}}
	if err := p.Client.Database("db").CreateCollection(t.Context(), "test", allium.CreateCollectionOptions{Validator: validator}); err != nil {
		t.Fatal(err)
	}
	p.Recorder.Reset()
	_, err := p.Client.Database("db").Collection("test").InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
	var we *mongoerr.WriteError
	if !errors.As(err, &we) || we.Code != 121 || we.Details == nil {
		t.Fatalf("want a WriteError with code 121 and details, got %v", err)
	}
	if len(p.Recorder.Replies) != 1 {
		t.Fatalf("%d commands succeeded, want 1", len(p.Recorder.Replies))
	}
	errs, _ := p.Recorder.Replies[0].Lookup("writeErrors").Array()
	for v := range errs.Values() {
		doc, _ := v.Document()
		if info, _ := doc.Lookup("errInfo").Document(); !bson.Equal(info, we.Details) {
			t.Errorf("the reply's errInfo is %v, the error's details are %v", info, we.Details)
		}
	}
}

// CRUD prose test 3.
func TestProseCRUDBulkWriteSplitsByCount(t *testing.T) {
	norace.Skip(t, rig.Huge)
	p := rig.StartRecorded(t, allium.ClientOptions{})
	res, err := p.Client.BulkWrite(t.Context(), rig.Repeat(p.Insert(bson.D{{Key: "a", Value: "b"}}), p.MaxMany+1))
	if err != nil || res.InsertedCount != int64(p.MaxMany+1) {
		t.Fatalf("%d inserted, error %v", res.InsertedCount, err)
	}
	checkSplit(t, p, p.MaxMany, 1)
}

// CRUD prose test 4.
func TestProseCRUDBulkWriteSplitsBySize(t *testing.T) {
	norace.Skip(t, rig.Huge)
	p := rig.StartRecorded(t, allium.ClientOptions{})
	n := p.MaxMsg/p.MaxDoc + 1
	res, err := p.Client.BulkWrite(t.Context(), rig.Repeat(p.Insert(rig.Large(p.MaxDoc-500)), n))
	if err != nil || res.InsertedCount != int64(n) {
		t.Fatalf("%d inserted, error %v", res.InsertedCount, err)
	}
	checkSplit(t, p, n-1, 1)
}

// CRUD prose test 5.
func TestProseCRUDBulkWriteCollectsWriteConcernErrors(t *testing.T) {
	norace.Skip(t, rig.Huge)
	// After each of the errors the server is unknown until its next heartbeat.
	p := rig.StartRecorded(t, allium.ClientOptions{RetryWrites: new(false), HeartbeatInterval: new(500 * time.Millisecond)})
	rig.FailPoint(t, p.Client, bson.D{{Key: "failCommands", Value: bson.A{"bulkWrite"}},
		{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 91}, {Key: "errmsg", Value: "Replication is being shut down"}}}}, 2)
	res, err := p.Client.BulkWrite(t.Context(), rig.Repeat(p.Insert(bson.D{{Key: "a", Value: "b"}}), p.MaxMany+1))
	e := rig.BulkError(t, err)
	if len(e.WriteConcernErrors) != 2 {
		t.Errorf("%d write concern errors, want 2: %v", len(e.WriteConcernErrors), err)
	}
	if res.InsertedCount != int64(p.MaxMany+1) {
		t.Errorf("result is %+v", res)
	}
	checkSplit(t, p, p.MaxMany, 1)
}

// CRUD prose test 6.
func TestProseCRUDBulkWriteErrorsAcrossBatches(t *testing.T) {
	norace.Skip(t, rig.Huge)
	p := rig.StartRecorded(t, allium.ClientOptions{})
	doc := bson.D{{Key: "_id", Value: 1}}
	if _, err := p.Coll.InsertOne(t.Context(), doc); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		unordered    bool
		errors       int
		commandSizes []int
	}{
		"unordered": {true, p.MaxMany + 1, []int{p.MaxMany, 1}},
		"ordered":   {false, 1, []int{p.MaxMany}},
	} {
		t.Run(name, func(t *testing.T) {
			p.Recorder.Reset()
			res, err := p.Client.BulkWrite(t.Context(), rig.Repeat(p.Insert(doc), p.MaxMany+1), allium.ClientBulkWriteOptions{Unordered: tc.unordered})
			e := rig.BulkError(t, err)
			if len(e.WriteErrors) != tc.errors {
				t.Errorf("%d write errors, want %d", len(e.WriteErrors), tc.errors)
			}
			if last := e.WriteErrors[len(e.WriteErrors)-1]; last.Index != tc.errors-1 {
				t.Errorf("the last error has index %d, want %d", last.Index, tc.errors-1)
			}
			if !reflect.ValueOf(res).IsZero() {
				t.Errorf("nothing was written, but there is a result: %+v", res)
			}
			checkSplit(t, p, tc.commandSizes...)
		})
	}
}

// CRUD prose test 7.
func TestProseCRUDBulkWriteGetMore(t *testing.T) {
	norace.Skip(t, rig.Huge)
	for name, topology := range map[string]testdeploy.Kind{"replica set": testdeploy.ReplicaSet(1), "load balanced": testdeploy.LoadBalanced(1)} {
		t.Run(name, func(t *testing.T) {
			p := rig.StartRecorded(t, allium.ClientOptions{}, topology)
			res, err := p.Client.BulkWrite(t.Context(), largeUpserts(p), allium.ClientBulkWriteOptions{VerboseResults: true})
			checkUpserts(t, p, res, err)
		})
	}
}

// CRUD prose test 8.
func TestProseCRUDBulkWriteGetMoreInTransaction(t *testing.T) {
	norace.Skip(t, rig.Huge)
	p := rig.StartRecorded(t, allium.ClientOptions{})
	err := p.Client.Transact(t.Context(), func(ctx context.Context) error {
		res, err := p.Client.BulkWrite(ctx, largeUpserts(p), allium.ClientBulkWriteOptions{VerboseResults: true})
		checkUpserts(t, p, res, err)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// CRUD prose test 9.
func TestProseCRUDBulkWriteGetMoreFails(t *testing.T) {
	norace.Skip(t, rig.Huge)
	p := rig.StartRecorded(t, allium.ClientOptions{})
	rig.FailPoint(t, p.Client, bson.D{{Key: "failCommands", Value: bson.A{"getMore"}}, {Key: "errorCode", Value: 8}}, 1)
	res, err := p.Client.BulkWrite(t.Context(), largeUpserts(p), allium.ClientBulkWriteOptions{VerboseResults: true})
	e := rig.BulkError(t, err)
	var top *mongoerr.ServerError
	if !errors.As(e.Err, &top) || top.Code != 8 {
		t.Errorf("the top-level error is %v, want code 8", e.Err)
	}
	if res.UpsertedCount != 2 || len(res.Updates) != 1 {
		t.Errorf("result is %+v", res)
	}
	if len(p.Recorder.Of("getMore")) != 1 || len(p.Recorder.Of("killCursors")) != 1 {
		t.Errorf("%d getMores and %d killCursors, want one of each", len(p.Recorder.Of("getMore")), len(p.Recorder.Of("killCursors")))
	}
}

// TestClientBulkWriteKillFails checks that the error of killCursors is not lost beside that of a
// getMore.
func TestClientBulkWriteKillFails(t *testing.T) {
	norace.Skip(t, rig.Huge)
	p := rig.StartRecorded(t, allium.ClientOptions{})
	rig.FailPoint(t, p.Client, bson.D{{Key: "failCommands", Value: bson.A{"getMore", "killCursors"}}, {Key: "errorCode", Value: 8}}, 2)
	_, err := p.Client.BulkWrite(t.Context(), largeUpserts(p), allium.ClientBulkWriteOptions{VerboseResults: true})
	e := rig.BulkError(t, err)
	if many, ok := e.Err.(interface{ Unwrap() []error }); !ok || len(many.Unwrap()) != 2 || !strings.HasPrefix(many.Unwrap()[0].Error(), "getMore") || !strings.HasPrefix(many.Unwrap()[1].Error(), "killCursors") {
		t.Errorf("the top-level error is %v, want those of getMore and killCursors", e.Err)
	}
}

// CRUD prose test 11. (The specification has removed test 10.)
func TestProseCRUDBulkWriteSplitsByNamespace(t *testing.T) {
	norace.Skip(t, rig.Huge)
	other := strings.Repeat("c", 200)
	for name, tc := range map[string]struct {
		last  string // the collection of the last write
		split bool
	}{
		"case 1: no batch-splitting required": {"coll", false},
		"case 2: batch-splitting required":    {other, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := rig.StartRecorded(t, allium.ClientOptions{})
			space := p.MaxMsg - 1122
			n, rest := space/p.MaxDoc, space%p.MaxDoc
			writes := rig.Repeat(p.Insert(rig.Large(p.MaxDoc-57)), n)
			if rest >= 217 {
				n++
				writes = append(writes, p.Insert(rig.Large(rest-57)))
			}
			res, err := p.Client.BulkWrite(t.Context(), append(writes, p.Client.Database("db").Collection(tc.last).InsertOneModel(bson.D{{Key: "a", Value: "b"}})))
			if err != nil || res.InsertedCount != int64(n+1) {
				t.Fatalf("%d inserted, error %v", res.InsertedCount, err)
			}
			if !tc.split {
				sent := checkSplit(t, p, n+1)
				checkNamespaces(t, sent[0], "db.coll")
				return
			}
			sent := checkSplit(t, p, n, 1)
			checkNamespaces(t, sent[0], "db.coll")
			checkNamespaces(t, sent[1], "db."+other)
		})
	}
}

func checkNamespaces(t *testing.T, c rig.SentCommand, want string) {
	t.Helper()
	if len(c.Namespaces) != 1 || c.Namespaces[0] != want {
		t.Errorf("nsInfo is %v, want [%s]", c.Namespaces, want)
	}
}

// CRUD prose test 12.
func TestProseCRUDBulkWriteWithoutRoom(t *testing.T) {
	norace.Skip(t, rig.Huge)
	p := rig.StartRecorded(t, allium.ClientOptions{})
	p.Recorder.Reset()
	for name, w := range map[string]allium.WriteModel{
		"case 1: document too large":  p.Insert(rig.Large(p.MaxMsg)),
		"case 2: namespace too large": p.Client.Database("db").Collection(strings.Repeat("c", p.MaxMsg)).InsertOneModel(bson.D{{Key: "a", Value: "b"}}),
	} {
		t.Run(name, func(t *testing.T) {
			res, err := p.Client.BulkWrite(t.Context(), []allium.WriteModel{w})
			var server *mongoerr.ServerError
			if err == nil || errors.As(err, &server) || res.Acknowledged {
				t.Errorf("want a client-side error, got %v", err)
			}
			if n := len(p.Recorder.Of("bulkWrite")); n != 0 {
				t.Errorf("%d commands were sent", n)
			}
		})
	}
}

// CRUD prose test 15. (The specification has removed test 13; test 14 is for drivers with explain
// helpers.)
func TestProseCRUDBulkWriteUnacknowledged(t *testing.T) {
	norace.Skip(t, rig.Huge)
	p := rig.StartRecorded(t, allium.ClientOptions{MaxPoolSize: new(1)})
	if err := p.Client.Database("db").CreateCollection(t.Context(), "coll"); err != nil {
		t.Fatal(err)
	}
	n := p.MaxMsg / p.MaxDoc
	res, err := p.Client.BulkWrite(t.Context(), rig.Repeat(p.Insert(rig.Large(p.MaxDoc-500)), n+1), allium.ClientBulkWriteOptions{Unordered: true, WriteConcern: consistency.Unacknowledged()})
	if err != nil || res.Acknowledged {
		t.Fatalf("acknowledged is %v, error %v", res.Acknowledged, err)
	}
	want, _ := bson.Marshal(bson.D{{Key: "w", Value: int32(0)}})
	for i, c := range checkSplit(t, p, n, 1) {
		if !bson.Equal(c.WriteConcern, want) {
			t.Errorf("command %d has the write concern %v, want w: 0", i, c.WriteConcern)
		}
	}
	if got, err := p.Coll.CountDocuments(t.Context(), bson.D{}); err != nil || got != int64(n+1) {
		t.Errorf("%d documents, error %v", got, err)
	}
}

// CRUD prose test 16.
func TestProseCRUDGeneratedIDsComeFirst(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	doc := bson.D{{Key: "x", Value: 1}}
	for name, run := range map[string]func() error{
		"insert": func() error { _, err := p.Coll.InsertOne(t.Context(), doc); return err },
		"bulkWrite": func() error {
			_, err := p.Client.BulkWrite(t.Context(), []allium.WriteModel{p.Insert(doc)})
			return err
		},
		"insert of a BulkWrite": func() error {
			_, err := p.Coll.BulkWrite(t.Context(), []allium.WriteModel{p.Insert(doc)})
			return err
		},
	} {
		p.Recorder.Reset()
		if err := run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		command, _, _ := strings.Cut(name, " ")
		if sent := p.Recorder.Of(command); len(sent) != 1 || sent[0].FirstKey != "_id" {
			t.Errorf("%s: %+v, want one command whose first document begins with _id", name, sent)
		}
	}
}

// checkSplit checks how many operations each bulkWrite command held, and that all have one
// operation id.
func checkSplit(t *testing.T, p *rig.Recorded, want ...int) []rig.SentCommand {
	t.Helper()
	sent := p.Recorder.Of("bulkWrite")
	if len(sent) != len(want) {
		t.Fatalf("%d bulkWrite commands, want %d", len(sent), len(want))
	}
	for i, c := range sent {
		if c.Ops != want[i] {
			t.Errorf("command %d has %d ops, want %d", i, c.Ops, want[i])
		}
		if c.OperationID != sent[0].OperationID || c.OperationID == 0 {
			t.Errorf("command %d has operation id %d, the first one has %d", i, c.OperationID, sent[0].OperationID)
		}
	}
	return sent
}

// largeUpserts are two writes whose results do not fit into one batch of the results cursor.
func largeUpserts(p *rig.Recorded) []allium.WriteModel {
	var writes []allium.WriteModel
	for _, c := range []string{"a", "b"} {
		writes = append(writes, p.Coll.UpdateOneModel(bson.D{{Key: "_id", Value: strings.Repeat(c, p.MaxDoc/2)}}, rig.SetOf("x", 1), allium.UpdateModelOptions{Upsert: true}))
	}
	return writes
}

func checkUpserts(t *testing.T, p *rig.Recorded, res allium.BulkWriteResult, err error) {
	t.Helper()
	if err != nil || res.UpsertedCount != 2 || len(res.Updates) != 2 {
		t.Fatalf("%d upserted, error %v", res.UpsertedCount, err)
	}
	if id, _ := res.Updates[1].UpsertedID.(string); len(id) != p.MaxDoc/2 {
		t.Errorf("the second upserted _id has %d bytes", len(id))
	}
	if len(p.Recorder.Of("getMore")) == 0 {
		t.Error("no getMore was sent")
	}
}
