package prose

import (
	"testing"
	"testing/synctest"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/drivertest/rig"
	"allium/mongotest"
)

// The prose tests of the specification Connections Survive Primary Step Down.

// getMore iteration: a cursor goes on after a step-down, on its old connection.
func TestProseStepDownGetMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rig.NewRetry(t, allium.ClientOptions{RetryWrites: new(false)}, mongotest.ReplicaSet(2))
		if _, err := r.Coll.InsertMany(t.Context(), rig.FiveDocuments()); err != nil {
			t.Fatal(err)
		}
		cur, err := r.Coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
		if err != nil {
			t.Fatal(err)
		}
		defer cur.Close(t.Context())
		cur.Next(t.Context())
		cur.Next(t.Context())
		admin := r.Client.Database("admin")
		if _, err := admin.RunCommand(t.Context(), bson.D{{Key: "replSetFreeze", Value: 0}},
			allium.RunCommandOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}}); err != nil {
			t.Fatal(err)
		}
		old := r.Deployment.Primary()
		if _, err := admin.RunCommand(t.Context(), bson.D{{Key: "replSetStepDown", Value: 30}, {Key: "force", Value: true}}); err != nil {
			t.Fatal(err)
		}
		if r.Deployment.Primary() == old {
			t.Fatal("the primary is still the same")
		}
		if !cur.Next(t.Context()) {
			t.Fatalf("the cursor is gone: %v", cur.Err())
		}
		if got := r.Events("cleared"); len(got) != 0 {
			t.Errorf("the pool was cleared: %q", got)
		}
	})
}

// Not primary: the pool is kept. Shutdown in progress, interrupted at shutdown: it is cleared.
func TestProseStepDownErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		code    int32
		cleared int
	}{
		"not primary keeps the pool":              {10107, 0},
		"shutdown in progress clears the pool":    {91, 1},
		"interrupted at shutdown clears the pool": {11600, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rig.NewRetry(t, allium.ClientOptions{RetryWrites: new(false)}, mongotest.ReplicaSet(1))
				r.Deployment.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Code: tc.code})
				wantCode(t, r.InsertOne(t), tc.code)
				if n := len(r.Events("cleared")); n != tc.cleared {
					t.Errorf("the pool was cleared %d times, want %d", n, tc.cleared)
				}
				if err := r.InsertOne(t); err != nil {
					t.Errorf("the next insert: %v", err)
				}
			})
		})
	}
}
