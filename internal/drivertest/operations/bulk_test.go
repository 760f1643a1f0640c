package operations

import (
	"context"
	"errors"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/drivertest/rig"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// TestBulkWriteRetryabilityPerMessage checks that an update of many documents takes the transaction
// number from its own message only.
func TestBulkWriteRetryabilityPerMessage(t *testing.T) {
	norace.Skip(t, rig.Huge)
	p := rig.StartRecorded(t, allium.ClientOptions{}, testdeploy.ReplicaSet(1).Since("8.0"))
	set := rig.SetOf("x", 1)
	models := rig.Repeat(p.Coll.UpdateOneModel(rig.FieldOf("_id", 1), set), p.MaxMany+1)
	models[p.MaxMany] = p.Coll.UpdateManyModel(rig.FieldOf("_id", 1), set)
	// Large filters, so that what divides the messages is their size.
	filler := rig.FieldOf("_id", strings.Repeat("f", 10<<20))
	large := rig.Repeat(p.Coll.UpdateOneModel(filler, set), 6)
	large[5] = p.Coll.UpdateManyModel(filler, set)
	for name, tc := range map[string]struct {
		command string
		run     func() error
	}{
		"client":     {"bulkWrite", func() error { _, err := p.Client.BulkWrite(t.Context(), models); return err }},
		"collection": {"update", func() error { _, err := p.Coll.BulkWrite(t.Context(), models); return err }},
		"by size":    {"update", func() error { _, err := p.Coll.BulkWrite(t.Context(), large); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			p.Recorder.Reset()
			if err := tc.run(); err != nil {
				t.Fatal(err)
			}
			sent := p.Recorder.Of(tc.command)
			if len(sent) != 2 || !sent[0].Numbered || sent[1].Numbered {
				t.Errorf("%d messages, the first one has a transaction number: %v, the second one: %v; want 2, true, false", len(sent), sent[0].Numbered, sent[len(sent)-1].Numbered)
			}
		})
	}
}

// TestBulkWriteRefusesModels checks that what is wrong with one write keeps all of them from being
// sent.
func TestBulkWriteRefusesModels(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{})
	p.Recorder.Reset()
	coll := allium.As[any](p.Coll)
	good := coll.InsertOneModel(bson.D{{Key: "x", Value: 1}})
	other := rig.Open(t, "mongodb://localhost:1").Database("db").Collection("coll")
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
	for name, tc := range map[string]struct {
		model allium.WriteModel
		want  string
	}{
		"another client's":        {other.InsertOneModel(bson.D{}), "another client's"},
		"nil document":            {coll.InsertOneModel(nil), "document is nil"},
		"nil filter":              {coll.DeleteOneModel(nil), "document is nil"},
		"filter is a number":      {coll.DeleteOneModel(1), "want a document"},
		"update without operator": {coll.UpdateOneModel(bson.D{}, bson.D{{Key: "x", Value: 1}}), "update operators"},
		"empty update":            {coll.UpdateOneModel(bson.D{}, bson.M{}), "empty"},
		"replacement":             {coll.ReplaceOneModel(bson.D{}, set), "update operators belong"},
		"sort for many":           {coll.UpdateManyModel(bson.D{}, set, allium.UpdateModelOptions{Sort: bson.D{{Key: "x", Value: 1}}}), "Sort"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Coll.BulkWrite(t.Context(), []allium.WriteModel{good, tc.model})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "bulkWrite "+p.Coll.Database().Name()+"."+p.Coll.Name()+": write 1") {
				t.Errorf("collection: %v, want %q", err, tc.want)
			}
			_, err = p.Client.BulkWrite(t.Context(), []allium.WriteModel{good, tc.model})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "bulkWrite: write 1 on db.coll") {
				t.Errorf("client: %v, want %q", err, tc.want)
			}
		})
	}
	on := func(db, coll string) error {
		return rig.ErrorOf(p.Client.BulkWrite(t.Context(), []allium.WriteModel{p.Client.Database(db).Collection(coll).InsertOneModel(bson.D{})}))
	}
	for name, run := range map[string]func() error{
		"collection, none":       func() error { _, err := p.Coll.BulkWrite(t.Context(), nil); return err },
		"client, none":           func() error { _, err := p.Client.BulkWrite(t.Context(), nil); return err },
		"collection, zero value": func() error { _, err := p.Coll.BulkWrite(t.Context(), make([]allium.WriteModel, 1)); return err },
		"client, zero value":     func() error { _, err := p.Client.BulkWrite(t.Context(), make([]allium.WriteModel, 1)); return err },
		"no database":            func() error { return on("", "c") },
		"no collection":          func() error { return on("d", "") },
		"another collection": func() error {
			_, err := p.Coll.BulkWrite(t.Context(), []allium.WriteModel{p.Client.Database("db").Collection("c").InsertOneModel(bson.D{})})
			return err
		},
		"another database": func() error {
			_, err := p.Coll.BulkWrite(t.Context(), []allium.WriteModel{p.Client.Database("d").Collection("coll").InsertOneModel(bson.D{})})
			return err
		},
		"nil context": func() error {
			_, err := p.Client.BulkWrite(noContext, []allium.WriteModel{p.Insert(bson.D{})})
			return err
		},
	} {
		if run() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if n := len(p.Recorder.Sent); n != 0 {
		t.Errorf("%d commands were sent: %v", n, p.Recorder.Sent)
	}
}

func TestClientBulkWriteRules(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{}, testdeploy.ReplicaSet(1).Since("8.0"))
	writes := []allium.WriteModel{p.Insert(bson.D{{Key: "x", Value: 1}})}
	t.Run("write concern in a transaction", func(t *testing.T) {
		err := p.Client.Transact(t.Context(), func(ctx context.Context) error {
			_, err := p.Client.BulkWrite(ctx, writes, allium.ClientBulkWriteOptions{WriteConcern: consistency.Majority()})
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "cannot set write concern after starting a transaction") {
			t.Error(err)
		}
	})
	t.Run("unacknowledged and too large", func(t *testing.T) {
		norace.Skip(t, rig.Huge)
		p.Recorder.Reset()
		o := allium.ClientBulkWriteOptions{Unordered: true, WriteConcern: consistency.Unacknowledged()}
		for name, m := range map[string]allium.WriteModel{
			"insert":  p.Coll.InsertOneModel(rig.Large(p.MaxDoc)),
			"replace": p.Coll.ReplaceOneModel(bson.D{}, rig.Large(p.MaxDoc)),
		} {
			if _, err := p.Client.BulkWrite(t.Context(), []allium.WriteModel{m}, o); err == nil || !strings.Contains(err.Error(), "bytes") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(p.Recorder.Of("bulkWrite")); n != 0 {
			t.Errorf("%d commands were sent", n)
		}
	})
	t.Run("acknowledged and too large", func(t *testing.T) {
		norace.Skip(t, rig.Huge)
		_, err := p.Client.BulkWrite(t.Context(), []allium.WriteModel{p.Insert(rig.Large(p.MaxDoc))})
		var server *mongoerr.ServerError
		var bulk *mongoerr.BulkWriteError
		if !errors.As(err, &server) && !errors.As(err, &bulk) {
			t.Errorf("want the server's error, got %v", err)
		}
	})
	t.Run("old server", func(t *testing.T) {
		old := rig.Open(t, testdeploy.Mock(t, "a server of version 7.0", mongotest.Version("7.0")).URI())
		if _, err := old.BulkWrite(t.Context(), []allium.WriteModel{old.Database("db").Collection("coll").InsertOneModel(bson.D{})}); err == nil || !strings.Contains(err.Error(), "8.0") {
			t.Error(err)
		}
	})
	t.Run("network error in the second message", func(t *testing.T) {
		norace.Skip(t, rig.Huge)
		p := rig.StartRecorded(t, allium.ClientOptions{RetryWrites: new(false)})
		if _, err := p.Client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "skip", Value: 1}}},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"bulkWrite"}}, {Key: "closeConnection", Value: true}}}}); err != nil {
			t.Fatal(err)
		}
		res, err := p.Client.BulkWrite(t.Context(), rig.Repeat(p.Insert(bson.D{{Key: "x", Value: 1}}), p.MaxMany+1))
		e := rig.BulkError(t, err)
		var network *mongoerr.ConnectionError
		if !errors.As(e.Err, &network) || res.InsertedCount != int64(p.MaxMany) {
			t.Errorf("error %v, result %+v", e.Err, res)
		}
	})
}

// TestBulkWriteErrorsOfNothing: an error before anything was done is what it is, and not that of a
// bulk write with a result; whatever is known makes it one (specification: Bulk Write, "Top-Level
// Error").
func TestBulkWriteErrorsOfNothing(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{RetryWrites: new(false)}, testdeploy.ReplicaSet(1).Since("8.0"))
	writes := []allium.WriteModel{p.Insert(bson.D{{Key: "_id", Value: 1}}), p.Insert(bson.D{{Key: "_id", Value: 1}}), p.Insert(bson.D{{Key: "_id", Value: 2}})}
	for name, tc := range map[string]struct {
		data  bson.E
		known bool
	}{
		"refused":      {bson.E{Key: "errorCode", Value: 8}, false},
		"lost":         {bson.E{Key: "closeConnection", Value: true}, false},
		"of a concern": {bson.E{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "late"}}}, true},
	} {
		for _, unordered := range []bool{false, true} {
			rig.Must(p.Coll.DeleteMany(t.Context(), bson.D{}))
			rig.Must(p.Client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
				{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"bulkWrite"}}, tc.data}}}))
			res, err := p.Client.BulkWrite(t.Context(), writes, allium.ClientBulkWriteOptions{Unordered: unordered, VerboseResults: true})
			var bulk *mongoerr.BulkWriteError
			if err == nil || errors.As(err, &bulk) != tc.known {
				t.Errorf("%s, unordered %v: %T: %v", name, unordered, err, err)
			}
			if (res.InsertedCount > 0) != tc.known {
				t.Errorf("%s, unordered %v: %+v", name, unordered, res)
			}
		}
	}
}

// A null that was upserted as _id is told from no upsert (specification: Bulk Write, "Result").
func TestNullIsAnUpsertedID(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{}, testdeploy.ReplicaSet(1).Since("8.0"))
	upsert := func(id any) allium.WriteModel {
		return p.Coll.UpdateOneModel(bson.D{{Key: "_id", Value: id}}, rig.SetOf("x", 1), allium.UpdateModelOptions{Upsert: true})
	}
	for name, write := range map[string]func(...allium.WriteModel) (allium.BulkWriteResult, error){
		"client": func(m ...allium.WriteModel) (allium.BulkWriteResult, error) {
			return p.Client.BulkWrite(t.Context(), m, allium.ClientBulkWriteOptions{VerboseResults: true})
		},
		"collection": func(m ...allium.WriteModel) (allium.BulkWriteResult, error) {
			return p.Coll.BulkWrite(t.Context(), m)
		},
	} {
		if err := p.Coll.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		res, err := write(upsert(nil), upsert(nil), upsert(1))
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := res.UpsertedIDs[0]; !ok || id != nil {
			t.Errorf("%s: the first upsert has the _id %v, %v", name, id, ok)
		}
		if id, ok := res.UpsertedIDs[1]; ok {
			t.Errorf("%s: the second write, which found a document, upserted %v", name, id)
		}
		if res.UpsertedCount != 2 {
			t.Errorf("%s: %d upserts", name, res.UpsertedCount)
		}
		if u := res.Updates[0]; name == "client" && (u.UpsertedCount != 1 || u.UpsertedID != nil || res.Updates[1].UpsertedCount != 0) {
			t.Errorf("%+v, %+v", u, res.Updates[1])
		}
	}
}
