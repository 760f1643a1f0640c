package rig

import (
	"context"
	"testing"
	"time"

	"allium"
	"allium/internal/spantest"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// Traced opens a client whose spans are recorded, on a mongotest of its own.
func Traced(t *testing.T, tr allium.Tracing) (*allium.Client, *spantest.Recorder, *mongotest.Deployment) {
	t.Helper()
	d := testdeploy.Mock(t, "hooks for commands", mongotest.ReplicaSet(1))
	r := &spantest.Recorder{}
	tr.Tracer = r
	client, err := allium.Open(d.URI(),
		allium.ClientOptions{Tracing: &tr, HeartbeatInterval: new(500 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return client, r, d
}
