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
	one := allium.UpdateModel{Filter: bson.D{{Key: "_id", Value: 1}}, Update: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}}
	many := one
	many.Many = true
	models := make([]allium.WriteModel, p.MaxMany+1)
	writes := make([]allium.ClientWrite, len(models))
	for i := range models {
		models[i] = one
	}
	models[p.MaxMany] = many
	for i, m := range models {
		writes[i] = allium.ClientWrite{Database: "db", Collection: "coll", Model: m}
	}
	// Large filters, so that what divides the messages is their size.
	filler := strings.Repeat("f", 10<<20)
	large := make([]allium.WriteModel, 6)
	for i := range large {
		u := one
		u.Filter = bson.D{{Key: "_id", Value: filler}}
		u.Many = i == 5
		large[i] = u
	}
	for name, tc := range map[string]struct {
		command string
		run     func() error
	}{
		"client":     {"bulkWrite", func() error { _, err := p.Client.BulkWrite(t.Context(), writes); return err }},
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
	good := allium.InsertModel{Document: bson.D{{Key: "x", Value: 1}}}
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}
	for name, tc := range map[string]struct {
		model allium.WriteModel
		want  string
	}{
		"nil":                     {nil, "is nil"},
		"nil pointer":             {(*allium.UpdateModel)(nil), "is nil"},
		"nil document":            {allium.InsertModel{}, "document is nil"},
		"nil filter":              {allium.DeleteModel{}, "document is nil"},
		"filter is a number":      {&allium.DeleteModel{Filter: 1}, "want a document"},
		"update without operator": {allium.UpdateModel{Filter: bson.D{}, Update: bson.D{{Key: "x", Value: 1}}}, "update operators"},
		"empty update":            {allium.UpdateModel{Filter: bson.D{}, Update: bson.M{}}, "empty"},
		"replacement":             {allium.ReplaceModel{Filter: bson.D{}, Replacement: set}, "update operators belong"},
		"sort for many":           {allium.UpdateModel{Filter: bson.D{}, Update: set, Many: true, Sort: bson.D{{Key: "x", Value: 1}}}, "Sort"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Coll.BulkWrite(t.Context(), []allium.WriteModel{good, tc.model})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "bulkWrite "+p.Coll.Database().Name()+"."+p.Coll.Name()+": write 1") {
				t.Errorf("collection: %v, want %q", err, tc.want)
			}
			_, err = p.Client.BulkWrite(t.Context(), []allium.ClientWrite{{Database: "db", Collection: "coll", Model: good}, {Database: "db", Collection: "coll", Model: tc.model}})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "bulkWrite: write 1 on db.coll") {
				t.Errorf("client: %v, want %q", err, tc.want)
			}
		})
	}
	for name, run := range map[string]func() error{
		"collection, none": func() error { _, err := p.Coll.BulkWrite(t.Context(), nil); return err },
		"client, none":     func() error { _, err := p.Client.BulkWrite(t.Context(), nil); return err },
		"no database": func() error {
			_, err := p.Client.BulkWrite(t.Context(), []allium.ClientWrite{{Collection: "c", Model: good}})
			return err
		},
		"no collection": func() error {
			_, err := p.Client.BulkWrite(t.Context(), []allium.ClientWrite{{Database: "d", Model: good}})
			return err
		},
		"nil context": func() error {
			_, err := p.Client.BulkWrite(noContext, []allium.ClientWrite{rig.InsertModel(bson.D{})})
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
	if _, err := p.Coll.BulkWrite(t.Context(), []allium.WriteModel{&good, &allium.DeleteModel{Filter: bson.D{}, Many: true}}); err != nil {
		t.Errorf("pointers to models: %v", err)
	}
}

func TestClientBulkWriteRules(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{}, testdeploy.ReplicaSet(1).Since("8.0"))
	writes := []allium.ClientWrite{rig.InsertModel(bson.D{{Key: "x", Value: 1}})}
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
			"insert":  allium.InsertModel{Document: rig.Large(p.MaxDoc)},
			"replace": allium.ReplaceModel{Filter: bson.D{}, Replacement: rig.Large(p.MaxDoc)},
		} {
			if _, err := p.Client.BulkWrite(t.Context(), []allium.ClientWrite{{Database: "db", Collection: "coll", Model: m}}, o); err == nil || !strings.Contains(err.Error(), "bytes") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(p.Recorder.Of("bulkWrite")); n != 0 {
			t.Errorf("%d commands were sent", n)
		}
	})
	t.Run("acknowledged and too large", func(t *testing.T) {
		norace.Skip(t, rig.Huge)
		_, err := p.Client.BulkWrite(t.Context(), []allium.ClientWrite{rig.InsertModel(rig.Large(p.MaxDoc))})
		var server *mongoerr.ServerError
		var bulk *allium.ClientBulkWriteError
		if !errors.As(err, &server) && !errors.As(err, &bulk) {
			t.Errorf("want the server's error, got %v", err)
		}
	})
	t.Run("old server", func(t *testing.T) {
		old := rig.Open(t, testdeploy.Mock(t, "a server of version 7.0", mongotest.Version("7.0")).URI())
		if _, err := old.BulkWrite(t.Context(), writes); err == nil || !strings.Contains(err.Error(), "8.0") {
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
		res, err := p.Client.BulkWrite(t.Context(), rig.Repeat(writes[0], p.MaxMany+1))
		e := rig.BulkError(t, err)
		var network *mongoerr.ConnectionError
		if !errors.As(e.Err, &network) || e.PartialResult == nil || e.PartialResult.InsertedCount != int64(p.MaxMany) || res.InsertedCount != int64(p.MaxMany) {
			t.Errorf("error %v, partial result %+v", e.Err, e.PartialResult)
		}
	})
}
