package encryption_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/event"
	"allium/mongoerr"
	"allium/mongotest"
)

// ssnField returns encryptedFields with the field ssn.
func ssnField(keyID any) bson.D {
	return bson.D{{Key: "fields", Value: bson.A{bson.D{
		{Key: "path", Value: "ssn"}, {Key: "bsonType", Value: "string"}, {Key: "keyId", Value: keyID},
	}}}}
}

// TestProseCreateEncryptedCollection is prose test 21, "Automatic Data Encryption Keys", with each
// key service.
func TestProseCreateEncryptedCollection(t *testing.T) {
	for name, key := range map[string]kms.MasterKey{
		"local": nil,
		"aws":   kms.AWSKey{Region: "us-east-1", Key: "arn:aws:kms:us-east-1:579766882180:key/89fcc2c4-08b0-4bd9-9f25-e30687b580d0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProse(t, nil, mongotest.Version("7.0"))
			o, _ := services(t)
			testCreateEncrypted(t, p, p.encryption(encryption.Options{KeyOptions: o}), name, key)
		})
	}
}

func testCreateEncrypted(t *testing.T, p *prose, keys *encryption.Client, provider string, key kms.MasterKey) {
	ctx := t.Context()
	db := p.plain.Database("db")
	create := func(name string, fields any) (bson.Raw, error) {
		return keys.CreateEncryptedCollection(ctx, db, name, encryption.CollectionOptions{
			Provider: provider, MasterKey: key, Create: allium.CreateCollectionOptions{EncryptedFields: fields}})
	}
	t.Run("simple creation and validation", func(t *testing.T) {
		must(create("testing1", ssnField(nil)))
		_, err := db.Collection("testing1").InsertOne(ctx, bson.D{{Key: "ssn", Value: "123-45-6789"}})
		if !mongoerr.HasCode(err, 121) {
			t.Error(err)
		}
		names := must(db.ListCollectionNames(ctx))
		for _, want := range []string{"enxcol_.testing1.esc", "enxcol_.testing1.ecoc", "testing1"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s is not in %v", want, names)
			}
		}
		stored := must(allium.CollectionOf[bson.Raw](p.plain.Database("keyvault"), "datakeys").FindOne(ctx, bson.D{}))
		if got, _ := stored.Lookup("masterKey", "provider").StringValue(); got != provider {
			t.Errorf("the data key is %s, want one of %s", stored, provider)
		}
	})
	t.Run("missing encryptedFields", func(t *testing.T) {
		if _, err := create("testing2", nil); err == nil || !strings.Contains(err.Error(), "EncryptedFields is nil") {
			t.Error(err)
		}
		if names := must(db.ListCollectionNames(ctx)); slices.Contains(names, "testing2") {
			t.Errorf("a collection was created: %v", names)
		}
	})
	t.Run("invalid keyId", func(t *testing.T) {
		fields, err := create("testing3", ssnField(false))
		if !mongoerr.HasCode(err, 14) || !strings.Contains(err.Error(), "create.encryptedFields.fields.keyId") {
			t.Error(err)
		}
		if v, ok := fields.Lookup("fields", "0", "keyId").Boolean(); !ok || v {
			t.Errorf("fields are %s", fields)
		}
	})
	t.Run("insert encrypted value", func(t *testing.T) {
		fields := must(create("testing4", ssnField(nil)))
		b, ok := fields.Lookup("fields", "0", "keyId").Binary()
		if !ok || b.Subtype != bson.BinaryUUID || len(b.Data) != 16 {
			t.Fatalf("fields are %s", fields)
		}
		id := bson.UUID(b.Data)
		ssn := must(keys.Encrypt(ctx, "123-45-6789", encryption.EncryptOptions{Algorithm: encryption.Unindexed, KeyID: &id}))
		must(db.Collection("testing4").InsertOne(ctx, bson.D{{Key: "ssn", Value: ssn}}))
	})
	t.Run("the keys that were made are returned with an error", func(t *testing.T) {
		fields, err := keys.CreateEncryptedCollection(ctx, db, "testing5", encryption.CollectionOptions{
			Provider: "nowhere", Create: allium.CreateCollectionOptions{EncryptedFields: ssnField(nil)}})
		if err == nil || fields.Lookup("fields", "0", "keyId").Type != bson.TypeNull {
			t.Errorf("%s, %v", fields, err)
		}
	})
}

// TestDropEncrypted drops the state collections of those collections that have any, and asks the
// server which these are if nobody has said so.
func TestDropEncrypted(t *testing.T) {
	ctx := t.Context()
	e := startAuto(t, encryption.AutoOptions{EncryptedFields: map[string]any{"db.mapped": ssnField(bson.UUID{1})}})
	db := e.client.Database("db")
	for _, test := range []struct {
		name   string
		create allium.CreateCollectionOptions
		drop   allium.DropOptions
		want   string
	}{
		{"mapped", allium.CreateCollectionOptions{}, allium.DropOptions{}, "create create create createIndexes drop drop drop"},
		{"given", allium.CreateCollectionOptions{EncryptedFields: ssnField(bson.UUID{1})}, allium.DropOptions{EncryptedFields: ssnField(bson.UUID{1})},
			"create create create listCollections createIndexes drop drop drop"},
		{"asked", allium.CreateCollectionOptions{EncryptedFields: ssnField(bson.UUID{1})}, allium.DropOptions{},
			"create create create listCollections createIndexes listCollections drop drop drop"},
		{"plain", allium.CreateCollectionOptions{}, allium.DropOptions{}, "create listCollections drop"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(e.started())
			if err := db.CreateCollection(ctx, test.name, test.create); err != nil {
				t.Fatal(err)
			}
			if err := db.Collection(test.name).Drop(ctx, test.drop); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(e.started()[before:], " "); got != test.want {
				t.Errorf("commands %s, want %s", got, test.want)
			}
			if names := must(e.plain.Database("db").ListCollectionNames(ctx)); len(names) > 0 {
				t.Errorf("left over: %v", names)
			}
			if err := db.Collection(test.name).Drop(ctx, test.drop); err != nil {
				t.Errorf("what does not exist: %v", err)
			}
		})
	}
}

// TestCommentsOfEncryptedCollections: a comment goes with each of the commands that make or drop an
// encrypted collection.
func TestCommentsOfEncryptedCollections(t *testing.T) {
	ctx := t.Context()
	var mu sync.Mutex
	var with, without []string
	e := startAuto(t, encryption.AutoOptions{}, func(o *allium.ClientOptions) {
		o.CommandMonitor = &event.CommandMonitor{Started: func(_ context.Context, s *event.CommandStarted) {
			mu.Lock()
			defer mu.Unlock()
			if why, _ := s.Command.Lookup("comment").StringValue(); why == "why" {
				with = append(with, s.CommandName)
			} else {
				without = append(without, s.CommandName)
			}
		}}
	})
	db := e.client.Database("db")
	if err := db.CreateCollection(ctx, "c", allium.CreateCollectionOptions{EncryptedFields: ssnField(bson.UUID{1}), Comment: "why"}); err != nil {
		t.Fatal(err)
	}
	if err := db.Collection("c").Drop(ctx, allium.DropOptions{EncryptedFields: ssnField(bson.UUID{1}), Comment: "why"}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(with, " "); got != "create create create createIndexes drop drop drop" || strings.Join(without, " ") != "listCollections" {
		t.Errorf("with the comment %s, without %v", got, without)
	}
}

// TestCreateForgetsSchema creates a collection that the client has seen without encryption.
func TestCreateForgetsSchema(t *testing.T) {
	ctx := t.Context()
	e := startAuto(t, encryption.AutoOptions{})
	db := e.client.Database("db")
	must(db.Collection("late").CountDocuments(ctx, bson.D{}))
	fields := must(e.keys.CreateEncryptedCollection(ctx, db, "late", encryption.CollectionOptions{
		Provider: "local", Create: allium.CreateCollectionOptions{EncryptedFields: ssnField(nil)}}))
	must(db.Collection("late").InsertOne(ctx, bson.D{{Key: "ssn", Value: "123-45-6789"}}))
	stored := must(allium.CollectionOf[bson.Raw](e.plain.Database("db"), "late").FindOne(ctx, bson.D{}))
	if b, ok := stored.Lookup("ssn").Binary(); !ok || b.Subtype != bson.BinaryEncrypted {
		t.Errorf("stored %s with %s", stored, fields)
	}
}

// TestSchemasForgotten gives a collection a schema in every way in which a client that has seen it
// without one can do it.
func TestSchemasForgotten(t *testing.T) {
	ctx := t.Context()
	e := startAuto(t, encryption.AutoOptions{})
	validator := bson.D{{Key: "$jsonSchema", Value: schemaOf(e.id, encryption.Deterministic)}}
	create := func(name string) {
		t.Helper()
		if err := e.plain.Database("db").CreateCollection(ctx, name, allium.CreateCollectionOptions{Validator: validator}); err != nil {
			t.Fatal(err)
		}
	}
	db := e.client.Database("db")
	for name, give := range map[string]func() error{
		"collMod": func() error {
			_, err := db.RunCommand(ctx, bson.D{{Key: "collMod", Value: "late"}, {Key: "validator", Value: validator}})
			return err
		},
		"drop": func() error {
			if err := db.Collection("late").Drop(ctx); err != nil {
				return err
			}
			create("late")
			return nil
		},
		"renameCollection": func() error {
			create("other")
			_, err := e.client.Database("admin").RunCommand(ctx, bson.D{{Key: "renameCollection", Value: "db.other"}, {Key: "to", Value: "db.late"}, {Key: "dropTarget", Value: true}})
			return err
		},
		"dropDatabase": func() error {
			if err := db.Drop(ctx); err != nil {
				return err
			}
			create("late")
			return nil
		},
	} {
		if err := e.plain.Database("db").Drop(ctx); err != nil {
			t.Fatal(err)
		}
		if err := e.plain.Database("db").CreateCollection(ctx, "late"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.RunCommand(ctx, bson.D{{Key: "collMod", Value: "late"}, {Key: "validator", Value: bson.D{}}}); err != nil {
			t.Fatal(err)
		}
		must(db.Collection("late").InsertOne(ctx, bson.D{{Key: "ssn", Value: "no secret yet"}}))
		if err := give(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		id := must(db.Collection("late").InsertOne(ctx, bson.D{{Key: "ssn", Value: "123-45-6789"}})).InsertedID
		stored := must(allium.CollectionOf[bson.Raw](e.plain.Database("db"), "late").FindOne(ctx, bson.D{{Key: "_id", Value: id}}))
		if b, ok := stored.Lookup("ssn").Binary(); !ok || b.Subtype != bson.BinaryEncrypted {
			t.Errorf("%s: stored %s", name, stored)
		}
	}
}

// TestCreateEncryptedOldServer is fle2v2-CreateCollection-OldServer without a file.
func TestCreateEncryptedOldServer(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("6.0"))
	client := must(allium.Open(d.URI()))
	defer client.Close(context.Background())
	err := client.Database("db").CreateCollection(t.Context(), "c", allium.CreateCollectionOptions{EncryptedFields: ssnField(bson.UUID{1})})
	if err == nil || !strings.Contains(err.Error(), "Upgrade server to use Queryable Encryption.") {
		t.Error(err)
	}
	if names := must(client.Database("db").ListCollectionNames(t.Context())); len(names) > 0 {
		t.Error(names)
	}
}
