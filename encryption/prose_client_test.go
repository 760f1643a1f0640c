package encryption_test

import (
	"errors"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/internal/norace"
	"allium/mongoerr"
)

// Prose test 3, "External Key Vault Test".
func TestProseExternalKeyVault(t *testing.T) {
	for _, external := range []bool{false, true} {
		key := specDocument(t, "external/external-key.json")
		p := startProse(t, []bson.Raw{key})
		o := encryption.AutoOptions{Schemas: map[string]any{"db.coll": specDocument(t, "external/external-schema.json")}}
		eo := encryption.Options{KeyOptions: encryption.KeyOptions{KMS: localKMS()}}
		if external {
			c, err := allium.Open(strings.Replace(p.d.URI(), "mongodb://", "mongodb://fake-user:fake-pwd@", 1))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(t.Context())
			o.KeyVaultClient, eo.KeyVaultClient = c, c
		}
		client, _ := p.auto(o, allium.ClientOptions{})
		_, inserted := client.Database("db").Collection("coll").InsertOne(t.Context(), bson.D{{Key: "encrypted", Value: "test"}})
		_, encrypted := p.encryption(eo).Encrypt(t.Context(), "test",
			encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: uuidOf(t, key.Lookup("_id"))})
		for what, err := range map[string]error{"insert": inserted, "encrypt": encrypted} {
			switch {
			case !external && err != nil:
				t.Errorf("%s: %v", what, err)
			case external && (err == nil || !strings.Contains(err.Error(), "authenticat")):
				t.Errorf("%s with an external key vault: %v, want an error of authentication", what, err)
			}
		}
	}
}

// Prose test 4, "BSON Size Limits and Batch Splitting".
func TestProseSizeLimits(t *testing.T) {
	norace.Skip(t, "it encrypts documents of 16 MB")
	ctx := t.Context()
	p := startProse(t, []bson.Raw{specDocument(t, "limits/limits-key.json")})
	p.create("coll", "validator", validator(specDocument(t, "limits/limits-schema.json")))
	p.create("coll2", "encryptedFields", specDocument(t, "limits/limits-encryptedFields.json"))
	client, events := p.auto(encryption.AutoOptions{}, allium.ClientOptions{})
	coll := allium.CollectionOf[bson.Raw](client.Database("db"), "coll")
	limits, limitsQE := specDocument(t, "limits/limits-doc.json"), specDocument(t, "limits/limits-qe-doc.json")
	const two, sixteen = 2 << 20, 16 << 20
	doc := func(id, field string, n int, more ...any) bson.Raw {
		return concat(append([]any{bson.D{{Key: "_id", Value: id}, {Key: field, Value: strings.Repeat("a", n)}}}, more...)...)
	}
	// expect runs a write and counts its commands.
	expect := func(name, command string, n int, write func() error) {
		t.Helper()
		before := events.count(command)
		if err := write(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := events.count(command) - before; got != n {
			t.Errorf("%s: %d commands, want %d", name, got, n)
		}
	}
	one := func(d bson.Raw) func() error {
		return func() error { _, err := coll.InsertOne(ctx, d); return err }
	}
	bulk := func(docs ...bson.Raw) func() error {
		return func() error {
			var models []allium.WriteModel
			for _, d := range docs {
				models = append(models, coll.InsertOneModel(d))
			}
			res, err := coll.BulkWrite(ctx, models)
			if err == nil && res.InsertedCount != 2 {
				t.Errorf("inserted %d", res.InsertedCount)
			}
			return err
		}
	}
	whole := func(docs ...bson.Raw) func() error {
		return func() error {
			var writes []allium.WriteModel
			for _, d := range docs {
				writes = append(writes, allium.CollectionOf[bson.Raw](client.Database("db"), "coll2").InsertOneModel(d))
			}
			res, err := client.BulkWrite(ctx, writes)
			if err == nil && res.InsertedCount != 2 {
				t.Errorf("inserted %d", res.InsertedCount)
			}
			return err
		}
	}
	const field = "unencrypted"
	expect("1", "insert", 1, one(doc("over_2mib_under_16mib", field, two)))
	expect("2", "insert", 1, one(doc("encryption_exceeds_2mib", field, two-2000, limits)))
	expect("3", "insert", 2, bulk(doc("over_2mib_1", field, two), doc("over_2mib_2", field, two)))
	expect("4", "insert", 2, bulk(doc("encryption_exceeds_2mib_1", field, two-2000, limits), doc("encryption_exceeds_2mib_2", field, two-2000, limits)))
	expect("5", "insert", 1, one(doc("under_16mib", field, sixteen-2000)))
	_, err := coll.InsertOne(ctx, doc("encryption_exceeds_16mib", field, sixteen-2000, limits))
	if err == nil {
		t.Error("6: no error of a document that is too long")
	} else if server, ok := errors.AsType[*mongoerr.ServerError](err); ok && server.Code != 2 && server.Code != 10334 {
		t.Error("6:", err)
	} else {
		t.Log("6:", err)
	}
	expect("7", "bulkWrite", 2, whole(doc("over_2mib_3", field, two-1500), doc("over_2mib_4", field, two-1500)))
	expect("8", "bulkWrite", 2, whole(doc("encryption_exceeds_2mib_3", "foo2", two-2000-1500, limitsQE), doc("encryption_exceeds_2mib_4", "foo2", two-2000-1500, limitsQE)))
	if n, err := p.plain.Database("db").Collection("coll").CountDocuments(ctx, bson.D{}); err != nil || n != 7 {
		t.Errorf("%d documents, %v", n, err)
	}
}

// Prose test 5, "Views Are Prohibited".
func TestProseViews(t *testing.T) {
	p := startProse(t, nil)
	p.create("view", "viewOn", "coll")
	client, _ := p.auto(encryption.AutoOptions{}, allium.ClientOptions{})
	_, err := client.Database("db").Collection("view").InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}})
	if err == nil || !strings.Contains(err.Error(), "cannot auto encrypt a view") {
		t.Error(err)
	}
}

// Prose test 9, "Deadlock Tests".
func TestProseDeadlocks(t *testing.T) {
	const lists, finds, insert, find = "listCollections db", "find keyvault", "insert db", "find db"
	for i, c := range []struct {
		pool             int
		bypass, external bool
		client           []string
		clients          int
	}{
		{1, false, false, []string{lists, finds, insert, find}, 2},
		{1, false, true, []string{lists, insert, find}, 2},
		{1, true, false, []string{find, finds}, 2},
		{1, true, true, []string{find}, 1},
		{0, false, false, []string{lists, "listCollections keyvault", finds, insert, find}, 1},
		{0, false, true, []string{lists, insert, find}, 1},
		{0, true, false, []string{find, finds}, 1},
		{0, true, true, []string{find}, 1},
	} {
		p := startProse(t, []bson.Raw{specDocument(t, "external/external-key.json")})
		ctx := t.Context()
		p.create("coll", "validator", validator(specDocument(t, "external/external-schema.json")))
		secret, err := p.keys.Encrypt(ctx, "string0", encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyAltName: "local"})
		if err != nil {
			t.Fatal(err)
		}
		vault, vaultEvents := p.open(allium.ClientOptions{MaxPoolSize: new(1)})
		o := encryption.AutoOptions{BypassEncryption: c.bypass}
		if c.external {
			o.KeyVaultClient = vault
		}
		client, events := p.auto(o, allium.ClientOptions{MaxPoolSize: &c.pool})
		writer, value := client, any("string0")
		if c.bypass {
			writer, value = p.plain, secret
		}
		if _, err := writer.Database("db").Collection("coll").InsertOne(ctx, bson.D{{Key: "_id", Value: 0}, {Key: "encrypted", Value: value}}); err != nil {
			t.Errorf("case %d: %v", i+1, err)
		}
		got, err := client.Database("db").Collection("coll").FindOne(ctx, bson.D{{Key: "_id", Value: 0}})
		if err != nil || len(got) != 2 || got[1].Value != "string0" {
			t.Errorf("case %d: %v, %v", i+1, got, err)
		}
		events.expect(t, "the client", c.client...)
		if c.external {
			vaultEvents.expect(t, "the client of the key vault", finds)
		}
		if n, err := events.opened(ctx, client); err != nil || n != c.clients {
			t.Errorf("case %d: %d clients, want %d, %v", i+1, n, c.clients, err)
		}
		if t.Failed() {
			t.Fatalf("case %d", i+1)
		}
	}
}

// Prose test 14, "Decryption Events".
func TestProseDecryptionEvents(t *testing.T) {
	ctx := t.Context()
	for i, name := range []string{"command error", "network error", "decrypt error", "decrypt success"} {
		p := startProse(t, nil)
		p.create("decryption_events", "", nil)
		id, err := p.keys.CreateDataKey(ctx, "local")
		if err != nil {
			t.Fatal(err)
		}
		secret, err := p.keys.Encrypt(ctx, "hello", encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id})
		if err != nil {
			t.Fatal(err)
		}
		client, events := p.auto(encryption.AutoOptions{}, allium.ClientOptions{RetryReads: new(false)})
		coll := client.Database("db").Collection("decryption_events")
		if i < 2 {
			if _, err := p.plain.Database("admin").RunCommand(ctx, bson.D{
				{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
				{Key: "data", Value: bson.D{{Key: "errorCode", Value: 123}, {Key: "closeConnection", Value: i == 1}, {Key: "failCommands", Value: bson.A{"aggregate"}}}},
			}); err != nil {
				t.Fatal(err)
			}
		} else {
			if i == 2 {
				secret.Data[len(secret.Data)-1] ^= 1
			}
			if _, err := coll.InsertOne(ctx, bson.D{{Key: "encrypted", Value: secret}}); err != nil {
				t.Fatal(err)
			}
		}
		cursor, err := coll.Aggregate(ctx, bson.A{})
		if err == nil {
			var docs []bson.D
			if docs, err = cursor.All(ctx); err == nil && (len(docs) != 1 || docs[0][1].Value != "hello") {
				t.Errorf("%s: %v", name, docs)
			}
		}
		if (err == nil) != (i == 3) {
			t.Errorf("%s: error %v", name, err)
		}
		reply, failure := events.outcome("aggregate")
		if i < 2 {
			if failure == nil {
				t.Errorf("%s: no event of a failure", name)
			}
			continue
		}
		batch, _ := reply.Lookup("cursor", "firstBatch").Array()
		n := 0
		for v := range batch.Values() {
			n++
			if _, ok := bson.Raw(v.Value).Lookup("encrypted").Binary(); !ok {
				t.Errorf("%s: the event has %s", name, v)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d documents in the event", name, n)
		}
	}
}
