package prose

import (
	"bytes"
	"context"
	"testing"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/event"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// dataLake starts a data lake.
func dataLake(t *testing.T) *mongotest.Deployment {
	t.Helper()
	return testdeploy.Mock(t, "it is about Atlas Data Lake", mongotest.DataLake())
}

// Prose test 1 of Atlas Data Lake Tests: killCursors goes to the namespace that the cursor has.
func TestProseDataLakeKillCursors(t *testing.T) {
	d := dataLake(t)
	var found, started, killed bson.Raw
	var db string
	client, err := allium.Open(d.URI(), allium.ClientOptions{CommandMonitor: &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStarted) {
			switch e.CommandName {
			case "killCursors":
				started, db = bytes.Clone(e.Command), e.DatabaseName
			case "getMore":
				t.Error("a getMore was sent")
			}
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			switch e.CommandName {
			case "find":
				found = bytes.Clone(e.Reply)
			case "killCursors":
				killed = bytes.Clone(e.Reply)
			}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	cur, err := client.Database("test").Collection("driverdata").Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
	if err != nil {
		t.Fatal(err)
	}
	if err := cur.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	id, _ := found.Lookup("cursor", "id").Int64()
	ns, _ := found.Lookup("cursor", "ns").StringValue()
	coll, _ := started.Lookup("killCursors").StringValue()
	if got, _ := started.Lookup("cursors", "0").Int64(); got != id || id == 0 {
		t.Errorf("killCursors of %d, the cursor is %d", got, id)
	}
	if got := db + "." + coll; got != ns || db != "cursors" {
		t.Errorf("killCursors in %s, the cursor is in %s", got, ns)
	}
	if got, _ := killed.Lookup("cursorsKilled", "0").Int64(); got != id {
		t.Errorf("killed %d, want %d: %s", got, id, killed)
	}
}

// Prose test 2 of Atlas Data Lake Tests.
func TestProseDataLakeWithoutAuthentication(t *testing.T) {
	ping(t, "mongodb://"+dataLake(t).Hosts()[0])
}

// Prose test 3 of Atlas Data Lake Tests, with an account of both mechanisms, and one of each.
func TestProseDataLakeWithAuthentication(t *testing.T) {
	d := dataLake(t)
	for _, m := range []struct {
		mechanism auth.Mechanism
		user      string
	}{{auth.MechanismScramSHA1, "sha1"}, {auth.MechanismScramSHA256, "sha256"}} {
		for _, user := range []string{"mhuser", m.user} {
			uri := "mongodb://" + user + ":pencil@" + d.Hosts()[0] + "/?authMechanism=" + string(m.mechanism)
			ping(t, uri)
			if n := countLake(t, uri); n != 15 {
				t.Errorf("%s with %s sees %d documents, want 15", user, m.mechanism, n)
			}
		}
	}
}

func openLake(t *testing.T, uri string) *allium.Client {
	t.Helper()
	client, err := allium.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return client
}

func ping(t *testing.T, uri string) {
	t.Helper()
	if err := openLake(t, uri).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func countLake(t *testing.T, uri string) int64 {
	t.Helper()
	n, err := openLake(t, uri).Database("test").Collection("driverdata").CountDocuments(t.Context(), bson.D{})
	if err != nil {
		t.Error(err)
	}
	return n
}
