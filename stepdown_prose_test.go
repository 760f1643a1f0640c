package allium_test

import (
	"testing"
	"testing/synctest"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/mongotest"
)

// The prose tests of the specification Connections Survive Primary Step Down.

// getMore iteration: a cursor goes on after a step-down, on its old connection.
func TestProseStepDownGetMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetryRig(t, allium.ClientOptions{RetryWrites: new(false)}, mongotest.ReplicaSet(2))
		if _, err := r.coll.InsertMany(t.Context(), make5()); err != nil {
			t.Fatal(err)
		}
		cur, err := r.coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
		if err != nil {
			t.Fatal(err)
		}
		defer cur.Close(t.Context())
		cur.Next(t.Context())
		cur.Next(t.Context())
		admin := r.client.Database("admin")
		if _, err := admin.RunCommand(t.Context(), bson.D{{Key: "replSetFreeze", Value: 0}},
			allium.RunCommandOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Secondary}}); err != nil {
			t.Fatal(err)
		}
		old := r.d.Primary()
		if _, err := admin.RunCommand(t.Context(), bson.D{{Key: "replSetStepDown", Value: 30}, {Key: "force", Value: true}}); err != nil {
			t.Fatal(err)
		}
		if r.d.Primary() == old {
			t.Fatal("the primary is still the same")
		}
		if !cur.Next(t.Context()) {
			t.Fatalf("the cursor is gone: %v", cur.Err())
		}
		if got := r.events("cleared"); len(got) != 0 {
			t.Errorf("the pool was cleared: %q", got)
		}
	})
}

func make5() []bson.D {
	docs := make([]bson.D, 5)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}}
	}
	return docs
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
				r := newRetryRig(t, allium.ClientOptions{RetryWrites: new(false)}, mongotest.ReplicaSet(1))
				r.d.FailCommand(mongotest.Fail{Commands: []string{"insert"}, Times: 1, Code: tc.code})
				wantCode(t, r.insertOne(t), tc.code)
				if n := len(r.events("cleared")); n != tc.cleared {
					t.Errorf("the pool was cleared %d times, want %d", n, tc.cleared)
				}
				if err := r.insertOne(t); err != nil {
					t.Errorf("the next insert: %v", err)
				}
			})
		})
	}
}
