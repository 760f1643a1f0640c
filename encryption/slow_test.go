package encryption_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/mongoerr"
)

// A key service that does not answer holds no connection of the pool, and nothing for longer than
// the operation's deadline.
func TestSlowKeyServiceHoldsNoConnection(t *testing.T) {
	ctx := t.Context()
	p, all, server := startServices(t)
	id, err := createKey(t, p.keys, "aws", masterKeys["aws"])
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan bool)
	port, err := server.Serve(func(conn net.Conn) {
		conn.Read(make([]byte, 1))
		arrived <- true
		io.Copy(io.Discard, conn)
	})
	if err != nil {
		t.Fatal(err)
	}
	all.KMS, all.TLS = kms.Providers{"aws": all.KMS["aws"]}, map[string]*tls.Config{"aws": server.TLS()}
	all.KMSConnect = func(ctx context.Context, _ string) (net.Conn, error) { return server.Dial(ctx, "127.0.0.1:"+port) }
	client, events := p.auto(encryption.AutoOptions{KeyOptions: all, Schemas: map[string]any{"db.coll": schemaOf(id, encryption.Deterministic)}},
		allium.ClientOptions{MaxPoolSize: new(1)})
	db := client.Database("db")
	limited, cancel := context.WithCancel(ctx)
	inserted := make(chan error, 1)
	go func() {
		_, err := db.Collection("coll").InsertOne(limited, bson.D{{Key: "ssn", Value: "1"}})
		inserted <- err
	}()
	<-arrived // the key service has the request, and the only connection is free
	if _, err := db.Collection("other").CountDocuments(ctx, bson.D{}); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-inserted; !errors.Is(err, context.Canceled) {
		t.Errorf("insert: %v", err)
	} else if e, ok := errors.AsType[*kms.Error](err); !ok || e.Provider != "aws" {
		t.Errorf("insert: %v names no key service", err)
	}

	go func() { <-arrived }()
	_, err = db.Collection("coll").InsertOne(ctx, bson.D{{Key: "ssn", Value: "1"}}, allium.InsertOneOptions{Timeout: new(500 * time.Millisecond)}) // long enough to get to the key service
	if e, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok || e.Phase != "encryption" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("insert with a timeout: %v", err)
	}
	if e, ok := errors.AsType[*kms.Error](err); !ok || e.Endpoint != "kms.us-east-1.amazonaws.com:443" {
		t.Errorf("insert with a timeout: %v names no key service", err)
	}
	if events.count("insert") != 0 {
		t.Error("an insert was sent")
	}
}
