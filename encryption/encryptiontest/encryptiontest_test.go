package encryptiontest_test

import (
	"testing"
	"testing/synctest"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/encryptiontest"
	"allium/mongotest"
)

// TestDeployments starts them wherever mongotest can: over TLS, with users, in shards, and in a
// bubble.
func TestDeployments(t *testing.T) {
	try := func(t *testing.T, opts ...mongotest.Option) {
		t.Helper()
		d := encryptiontest.Start(t, opts...)
		id, err := d.Keys.CreateDataKey(t.Context(), encryptiontest.Provider)
		if err != nil {
			t.Fatal(err)
		}
		schema, err := encryption.SchemaFor[Patient](encryption.Field{Path: "ssn", Algorithm: encryption.Random, KeyID: &id})
		if err != nil {
			t.Fatal(err)
		}
		client, err := d.Client(encryption.AutoOptions{Schemas: map[string]any{"app.patients": schema}})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		if err := admit(t.Context(), client.Database("app"), Patient{SSN: "457-55-5462"}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			client    *allium.Client
			encrypted bool
		}{{d.Plain, true}, {client, false}} {
			doc, err := allium.CollectionOf[bson.Raw](c.client.Database("app"), "patients").FindOne(t.Context(), bson.D{})
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := doc.Lookup("ssn").Binary(); (b.Subtype == bson.BinaryEncrypted) != c.encrypted {
				t.Errorf("%s; encrypted: %t", doc, c.encrypted)
			}
		}
	}
	for name, opts := range map[string][]mongotest.Option{
		"replica set": nil, "standalone": {mongotest.Standalone()}, "sharded": {mongotest.Sharded(2, 1)}, "TLS": {mongotest.TLS()}, "users": {mongotest.Auth("user", "secret")},
		"old server": {mongotest.Version("4.2")},
	} {
		t.Run(name, func(t *testing.T) { try(t, opts...) })
	}
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { try(t, mongotest.InMemory()) })
	})
	if _, err := encryptiontest.Open(mongotest.Version("1.0")); err == nil {
		t.Error("a server of version 1.0")
	}
}
