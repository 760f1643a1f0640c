// Package encryptiontest is for tests of programs that encrypt fields. One call starts a deployment
// inside the test's process, with a key vault, a local key service and a client that sees what the
// server sees. There is nothing to install and nothing outside the process.
//
// The deployment is one of package mongotest and takes its options: faults, step-downs, server
// versions and the clock of a bubble work as they do there. Its server has the other side of
// Client-Side Field Level Encryption and of Queryable Encryption.
package encryptiontest

import (
	"context"
	"crypto/rand"
	"fmt"

	"allium"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/mongotest"
)

// Provider is the name of the key service of a Deployment: a local master key, which no other
// deployment has.
const Provider = "local"

// keyVault is the namespace of the data keys.
const keyVault = "encryption.keys"

// Deployment is a deployment with what in-use encryption needs.
type Deployment struct {
	*mongotest.Deployment
	// KeyOptions have the key vault and the key service: for encryption.AutoOptions of a client
	// that the program opens itself.
	KeyOptions encryption.KeyOptions
	// Keys makes data keys, makes encrypted collections, and encrypts by hand.
	Keys *encryption.Client
	// Plain is a client that does not encrypt. What it reads is what the server has.
	Plain *allium.Client
}

// Open starts a deployment: a replica set with one member, if opts say nothing else. Start is for
// tests. The caller calls Stop.
func Open(opts ...mongotest.Option) (*Deployment, error) {
	started, err := mongotest.Open(append([]mongotest.Option{mongotest.ReplicaSet(1)}, opts...)...)
	if err != nil {
		return nil, err
	}
	d := &Deployment{Deployment: started}
	if err := d.connect(); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

// Start is Open for a test. It fails the test if the deployment cannot be started, and stops the
// deployment when the test ends.
func Start(t mongotest.TB, opts ...mongotest.Option) *Deployment {
	t.Helper()
	d := &Deployment{Deployment: mongotest.Start(t, append([]mongotest.Option{mongotest.ReplicaSet(1)}, opts...)...)}
	if err := d.connect(); err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(d.close)
	return d
}

// connect opens Plain and Keys.
func (d *Deployment) connect() error {
	master := make([]byte, 96)
	rand.Read(master)
	d.KeyOptions = encryption.KeyOptions{KeyVault: keyVault, KMS: kms.Providers{Provider: kms.Local{Key: master}}}
	var err error
	if d.Plain, err = d.open(allium.ClientOptions{}); err != nil {
		return fmt.Errorf("encryptiontest: %w", err)
	}
	with := d.KeyOptions
	with.KeyVaultClient = d.Plain
	if d.Keys, err = encryption.New(encryption.Options{KeyOptions: with}); err != nil {
		return fmt.Errorf("encryptiontest: %w", err)
	}
	return nil
}

// open opens a client of the deployment, wherever it listens.
func (d *Deployment) open(o allium.ClientOptions) (*allium.Client, error) {
	if o.Dialer == nil {
		o.Dialer = d.Deployment
	}
	if o.TLS == nil {
		o.TLS = d.TLSConfig()
	}
	return allium.Open(d.URI(), o)
}

// Client opens a client that encrypts as o says: of o's KeyOptions those that are not set are d's.
// At most one ClientOptions is used; its Encryption is set here. The caller closes the client.
func (d *Deployment) Client(o encryption.AutoOptions, opts ...allium.ClientOptions) (*allium.Client, error) {
	if o.KeyVault == "" {
		o.KeyVault = d.KeyOptions.KeyVault
	}
	if o.KMS == nil {
		o.KMS = d.KeyOptions.KMS
	}
	var with allium.ClientOptions
	if len(opts) > 0 {
		with = opts[0]
	}
	with.Encryption = encryption.Auto(o)
	return d.open(with)
}

// Stop closes Keys and Plain and stops the deployment.
func (d *Deployment) Stop() {
	d.close()
	d.Deployment.Stop()
}

func (d *Deployment) close() {
	if d.Keys != nil {
		d.Keys.Close()
	}
	if d.Plain != nil {
		d.Plain.Close(context.Background())
	}
}
