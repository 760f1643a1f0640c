package encryption_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/encryptiontest"
)

// What is encrypted is in no message about a slow operation, and in no list of them: neither its
// value nor its name.
func TestSlowOperationsOfEncryptedFields(t *testing.T) {
	type patient struct {
		Name string `bson:"name"`
		SSN  string `bson:"ssn"`
		Age  int32  `bson:"age"`
	}
	d := encryptiontest.Start(t)
	fields, err := encryption.EncryptedFieldsFor[patient](
		encryption.Field{Path: "ssn", Algorithm: encryption.Indexed},
		encryption.Field{Path: "age", Algorithm: encryption.Range, Range: &encryption.RangeOptions{Min: 0, Max: 130}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Keys.CreateEncryptedCollection(t.Context(), d.Plain.Database("app"), "patients", encryption.CollectionOptions{
		Provider: encryptiontest.Provider, Create: allium.CreateCollectionOptions{EncryptedFields: fields},
	}); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	client, err := d.Client(encryption.AutoOptions{}, allium.ClientOptions{SlowOperation: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		LogLevels: map[allium.LogComponent]slog.Level{allium.LogCommand: slog.LevelWarn}})
	if err != nil {
		t.Fatal(err)
	}
	coll := allium.CollectionOf[patient](client.Database("app"), "patients")
	if _, err := coll.InsertOne(t.Context(), patient{Name: "Jon Doe", SSN: "457-55-5462", Age: 67}); err != nil {
		t.Fatal(err)
	}
	filter := bson.D{{Key: "name", Value: "Jon Doe"}, {Key: "ssn", Value: "457-55-5462"}, {Key: "age", Value: bson.D{{Key: "$gte", Value: int32(60)}}}}
	if _, err := coll.FindOne(t.Context(), filter); err != nil {
		t.Fatal(err)
	}
	s := client.Stats()
	if err := client.Close(t.Context()); err != nil { // nobody logs any more
		t.Fatal(err)
	}
	var found bool
	for _, op := range s.RecentSlowOperations {
		if op.Command == "find" && op.Namespace == "app.patients" {
			if found = true; !strings.Contains(op.Shape, "{name: ") || op.Encryption <= 0 || op.Encryption >= op.Duration {
				t.Errorf("%+v", op)
			}
		}
	}
	if !found || len(s.Pools) < 2 {
		t.Errorf("the find or the pool of the client for keys is missing: %+v", s)
	}
	for where, text := range map[string]string{"log": log.String(), "stats": fmt.Sprintf("%+v", s.RecentSlowOperations)} {
		for _, secret := range []string{"Jon", "457-55", "ssn", "age:", "ciphertext"} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s shows %s: %s", where, secret, text)
			}
		}
	}
}
