package rig

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

// Recorded is a client whose commands are recorded, with the limits of its servers.
type Recorded struct {
	Client     *allium.Client
	Deployment *testdeploy.Deployment
	Recorder   *Recorder
	Coll       *allium.UntypedCollection // db.coll, which does not exist
	MaxDoc     int                       // maxBsonObjectSize
	MaxMsg     int                       // maxMessageSizeBytes
	MaxMany    int                       // maxWriteBatchSize
}

// CheckSent compares the names of the commands that were sent.
func (p *Recorded) CheckSent(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, c := range p.Recorder.Sent {
		got = append(got, c.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v were sent, want %v", got, want)
	}
}

// StartRecorded starts a deployment, by default a replica set of one member.
func StartRecorded(t *testing.T, o allium.ClientOptions, topology ...testdeploy.Kind) *Recorded {
	t.Helper()
	if topology == nil {
		topology = []testdeploy.Kind{testdeploy.ReplicaSet(1)}
	}
	p := &Recorded{Deployment: testdeploy.Start(t, topology[0]), Recorder: &Recorder{}}
	o.CommandMonitor = p.Recorder.Monitor()
	p.Client = Open(t, p.Deployment.URI(), o)
	// 4.4.0 has no hello
	hello, err := p.Client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "isMaster", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for key, dst := range map[string]*int{"maxBsonObjectSize": &p.MaxDoc, "maxMessageSizeBytes": &p.MaxMsg,
		"maxWriteBatchSize": &p.MaxMany} {
		n, ok := hello.Lookup(key).AsInt64()
		if !ok {
			t.Fatalf("hello has no %s", key)
		}
		*dst = int(n)
	}
	p.Coll = p.Client.Database("db").Collection("coll")
	return p
}

// Insert is an insert into db.coll.
func (p *Recorded) Insert(doc bson.D) allium.WriteModel { return p.Coll.InsertOneModel(doc) }

// Repeat returns a write n times.
func Repeat(w allium.WriteModel, n int) []allium.WriteModel {
	all := make([]allium.WriteModel, n)
	for i := range all {
		all[i] = w
	}
	return all
}

// Large is a document {a: "bbb…"}.
func Large(n int) bson.D { return bson.D{{Key: "a", Value: strings.Repeat("b", n)}} }

// BulkError fails the test unless err is that of a bulk write of the client.
func BulkError(t *testing.T, err error) *mongoerr.BulkWriteError {
	t.Helper()
	var e *mongoerr.BulkWriteError
	if !errors.As(err, &e) {
		t.Fatalf("want a BulkWriteError, got %v", err)
	}
	return e
}
