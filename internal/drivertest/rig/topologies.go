package rig

import (
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/testdeploy"
)

// Rig is a deployment with a client and a collection that has a document.
type Rig struct {
	Deployment *testdeploy.Deployment
	Client     *allium.Client
	Coll       *allium.UntypedCollection
	Log        *Sent
	Name       string
}

// Insert inserts a document that reads of all members see.
func (r *Rig) Insert(t *testing.T) {
	t.Helper()
	coll := r.Coll.With(allium.CollectionOptions{WriteConcern: r.Deployment.Everywhere()})
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}}); err != nil {
		t.Fatal(err)
	}
}

// kinds are the deployments by the names of their kinds.
var kinds = map[string]testdeploy.Kind{"standalone": testdeploy.Standalone,
	"replicaset": testdeploy.ReplicaSet(3).Lagging(20 * time.Millisecond),
	"sharded":    testdeploy.Sharded(1, 2), "load-balanced": testdeploy.LoadBalanced(1)}

// On runs f on deployments of several kinds.
func On(t *testing.T, names []string, f func(t *testing.T, r *Rig)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) { f(t, New(t, name)) })
	}
}

// New starts a deployment of a kind, for example "replicaset".
func New(t *testing.T, name string, opts ...allium.ClientOptions) *Rig {
	t.Helper()
	r := &Rig{Deployment: testdeploy.Start(t, kinds[name]), Log: &Sent{}, Name: name}
	o := allium.ClientOptions{}
	if len(opts) > 0 {
		o = opts[0]
	}
	o.CommandMonitor = r.Log.Monitor()
	r.Client = Open(t, r.Deployment.URI(), o)
	r.Coll = r.Client.Database("sessions").Collection("docs")
	r.Insert(t)
	r.Log.Reset()
	return r
}

// The kinds of deployments, and those that have an oplog.
var (
	Kinds      = []string{"standalone", "replicaset", "sharded", "load-balanced"}
	Replicated = []string{"replicaset", "sharded", "load-balanced"}
)
