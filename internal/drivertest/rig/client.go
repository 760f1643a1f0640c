package rig

import (
	"context"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// Encoded returns a document as BSON.
func Encoded(t *testing.T, doc bson.D) []byte {
	t.Helper()
	b, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ErrorOf returns the error of a call.
func ErrorOf[A any](_ A, err error) error { return err }

// Must returns the result of a call that does not fail here.
func Must[A any](a A, err error) A {
	if err != nil {
		panic(err)
	}
	return a
}

// Open opens a client that is closed when the test ends.
func Open(t *testing.T, uri string, opts ...allium.ClientOptions) *allium.Client {
	t.Helper()
	client, err := allium.Open(uri, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return client
}

// Huge is why tests with as many or as large documents as a message takes do not run under the race
// detector, which looks at each byte that is copied.
const Huge = "it fills messages of 48 MB, 100,000 writes or documents of 16 MB"

// FailPoint makes commands fail, so many times.
func FailPoint(t *testing.T, client *allium.Client, data bson.D, times int) {
	t.Helper()
	if _, err := client.Database("admin").RunCommand(t.Context(),
		bson.D{{Key: "configureFailPoint", Value: "failCommand"},
			{Key: "mode", Value: bson.D{{Key: "times", Value: times}}}, {Key: "data", Value: data}}); err != nil {
		t.Fatal(err)
	}
}

// BatchSize returns the option BatchSize, nil for 0.
func BatchSize(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

// Everything is the filter that all documents match.
var Everything = bson.D{}

// Drain reads a cursor to its end.
func Drain[T any](ctx context.Context, c *allium.Cursor[T], err error) error {
	if err != nil {
		return err
	}
	_, err = c.All(ctx)
	return err
}

// Bubble starts a deployment and a client inside of a testing/synctest bubble, in which all time is
// made up.
func Bubble(t *testing.T, opts allium.ClientOptions,
	kind mongotest.Option) (*mongotest.Deployment, *allium.Client, *Sent) {
	t.Helper()
	d := testdeploy.Mock(t, "an in-memory network", mongotest.InMemory(), kind)
	log := &Sent{}
	opts.Dialer = d
	if opts.CommandMonitor == nil {
		opts.CommandMonitor = log.Monitor()
	}
	client, err := allium.Open(d.URI(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return d, client, log
}

// StartSession starts a session that ends with the test.
func StartSession(t *testing.T, client *allium.Client, opts ...allium.SessionOptions) *allium.Session {
	t.Helper()
	s, err := client.StartSession(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.End(context.Background()) })
	return s
}
