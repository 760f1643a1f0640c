package wire

import (
	"strings"
	"testing"

	"allium"
	"allium/internal/drivertest/rig"
)

// withoutSession are the methods that take a context and no session of it.
var withoutSession = map[string]string{
	"Client.CheckRevocation": "sends no command",
	"Client.Close":           "ends all sessions",
	"Client.Transact":        "starts a session of its own",

	"ChangeStream.Close":   "has the stream's session",
	"ChangeStream.Next":    "has the stream's session",
	"ChangeStream.Seq":     "has the stream's session",
	"ChangeStream.TryNext": "has the stream's session",
	"Cursor.All":           "has the cursor's session",
	"Cursor.Batches":       "has the cursor's session",
	"Cursor.Close":         "has the cursor's session",
	"Cursor.Next":          "has the cursor's session",
	"Cursor.Seq":           "has the cursor's session",
	"Cursor.TryNext":       "has the cursor's session",

	"Session.AbortTransaction":  "is of the session",
	"Session.CommitTransaction": "is of the session",
	"Session.End":               "is of the session",
	"Session.Transact":          "is of the session",

	"allium.SessionFrom": "sends no command",
	"allium.WithSession": "sends no command",
}

// listedAs are the methods of operations whose names there are not their own.
var listedAs = map[string]string{"Collection.Drop": "dropCollection", "Database.Drop": "dropDatabase", "allium.Distinct": "distinct"}

// TestEveryOperationTakesSession: every method and function of the driver and of GridFS that takes
// a context sends the session of it, and refuses that of another client, and one that has ended.
// One that is in no list fails the test (specification: Driver Sessions, prose tests 4, 5 and 6).
func TestEveryOperationTakesSession(t *testing.T) {
	known := map[string]bool{}
	for _, op := range rig.Operations {
		known[op.Name] = true
	}
	all := append(rig.TakingContext(t, "../../.."), rig.TakingContext(t, "../../../gridfs")...)
	exist := map[string]bool{}
	for _, name := range all {
		exist[name] = true
		of, method, _ := strings.Cut(name, ".")
		as, ok := listedAs[name]
		if !ok && of != "allium" && of != "Bucket" {
			as = strings.ToLower(method[:1]) + method[1:]
		}
		if of == "Client" && as == "bulkWrite" || of == "Database" && as == "aggregate" {
			as = "" // those are the collection's
		}
		if !known[as] && rig.FurtherOperations[name] == nil && withoutSession[name] == "" {
			t.Errorf("nobody tests %s with a session", name)
		}
	}
	for name := range rig.FurtherOperations {
		if !exist[name] {
			t.Errorf("there is no %s", name)
		}
	}
	for name := range withoutSession {
		if !exist[name] {
			t.Errorf("there is no %s", name)
		}
	}
	if len(all) < 80 {
		t.Errorf("only %d methods and functions found", len(all))
	}

	rig.On(t, rig.Kinds, func(t *testing.T, r *rig.Rig) {
		other := rig.StartSession(t, rig.Open(t, r.Deployment.URI()))
		ended := rig.StartSession(t, r.Client)
		ended.End(t.Context())
		for id := range 2 { // that downloads find
			if err := rig.Bucket(r.Coll).UploadFromStreamWithID(t.Context(), id, "f", strings.NewReader("text")); err != nil {
				t.Fatal(err)
			}
		}
		for name, run := range rig.FurtherOperations {
			s := rig.StartSession(t, r.Client)
			id := s.ID().String()
			r.Log.Reset()
			_ = run(allium.WithSession(t.Context(), s), r.Coll)
			sent := r.Log.Of("")
			if len(sent) == 0 {
				t.Errorf("%s sends nothing", name)
			}
			for _, e := range sent {
				if got := e.Command.Lookup("lsid").String(); got != id {
					t.Errorf("%s: %s has lsid %s, want %s", name, e.CommandName, got, id)
				}
			}
			s.End(t.Context())
			r.Log.Reset()
			if err := run(allium.WithSession(t.Context(), other), r.Coll); err == nil || !strings.Contains(err.Error(), "another client") {
				t.Errorf("%s with the session of another client: %v", name, err)
			}
			if err := run(allium.WithSession(t.Context(), ended), r.Coll); err == nil || !strings.Contains(err.Error(), "session has ended") {
				t.Errorf("%s with a session that has ended: %v", name, err)
			}
			if n := len(r.Log.Of("")); n != 0 {
				t.Errorf("%s: %d commands were sent", name, n)
			}
		}
	})
}
