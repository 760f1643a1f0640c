package main

import (
	"context"
	"crypto/sha512"
	"fmt"
	"slices"
	"strings"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/mongotest"
)

// layers is a field on its way through in-use encryption.
type layers struct {
	Value    string   // as the program has it
	Stored   string   // as the server has it
	KeyBytes int      // the data key's, as the key vault has it: encrypted
	KeyVault []string // the fields of a document of the key vault
	Back     string   // as the program reads it
}

// drawLayers draws the way of a field to the server and back, and the keys beside it.
func drawLayers(l *layers) (*drawing, error) {
	if l.Back != l.Value {
		return nil, fmt.Errorf("%q came back as %q", l.Value, l.Back)
	}
	d := &drawing{title: "Layers of in-use encryption", width: 960, height: 470}
	d.box("pic-box", 20, 20, 440, 64, "the program", fmt.Sprintf(`{name: "Ada", ssn: %q}`, l.Value))
	d.box("pic-mark", 20, 134, 440, 84, "the driver, with encryption.Auto",
		"the schema says which fields are encrypted", "each value with its data key: AEAD, AES-256 and HMAC-SHA-512")
	d.box("pic-box", 20, 268, 440, 64, "the server, its backups, its administrators",
		`{name: "Ada", ssn: `+l.Stored+"}")
	d.way(false, "M200 86 V131")
	d.text("pic-text", "end", 192, 112, "insert, query")
	d.way(false, "M280 132 V87")
	d.text("pic-text", "start", 288, 112, "result")
	d.way(false, "M200 220 V265")
	d.text("pic-text", "end", 192, 246, "ciphertext only")
	d.way(false, "M280 266 V221")
	d.text("pic-text", "start", 288, 246, "ciphertext only")
	d.box("pic-box", 560, 20, 380, 64, "master key", "in AWS, Azure, GCP or KMIP; for tests, in memory")
	d.box("pic-mark", 560, 134, 380, 84, "data key", "in the driver's memory, for a minute by default",
		"one key for any number of fields and values")
	half := len(l.KeyVault) / 2
	d.box("pic-box", 560, 268, 380, 96, "key vault, a collection",
		fmt.Sprintf("the data key, encrypted by the master key: %d bytes", l.KeyBytes),
		strings.Join(l.KeyVault[:half], ", ")+",", strings.Join(l.KeyVault[half:], ", "))
	d.way(false, "M750 86 V131")
	d.text("pic-text", "start", 760, 112, "unwraps it")
	d.text("pic-soft", "end", 740, 112, "the service is asked")
	d.way(false, "M750 266 V221")
	d.text("pic-text", "start", 760, 246, "is fetched by its id")
	d.way(false, "M557 176 H463")
	d.text("pic-soft", "start", 20, 390, "Who reads the server, its disk or the network sees ciphertext: of a deterministic field also which values are equal, and of a queryable")
	d.text("pic-soft", "start", 20, 408, "one how many there are. Who takes the key vault has keys that the master key protects. Who reads the program's memory has everything.")
	d.text("pic-soft", "start", 20, 436, "A field that the schema does not name is sent as it is. A query that encryption cannot answer, such as $gt on this field, is refused")
	d.text("pic-soft", "start", 20, 454, "before it is sent.")
	return d, nil
}

// encrypted writes a document with an automatic client, and looks at what is stored with another.
func encrypted(ctx context.Context) (*layers, error) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		return nil, err
	}
	defer d.Stop()
	plain, err := allium.Open(d.URI())
	if err != nil {
		return nil, err
	}
	defer plain.Close(ctx)
	master := sha512.Sum512([]byte("a picture"))
	options := encryption.KeyOptions{
		KeyVaultClient: plain, KeyVault: "encryption.keys",
		KMS: kms.Providers{"local": kms.Local{Key: slices.Concat(master[:], master[:32])}},
	}
	keys, err := encryption.New(encryption.Options{KeyOptions: options})
	if err != nil {
		return nil, err
	}
	defer keys.Close()
	id, err := keys.CreateDataKey(ctx, "local")
	if err != nil {
		return nil, err
	}
	schema := bson.D{{Key: "bsonType", Value: "object"},
		{Key: "properties", Value: bson.D{{Key: "ssn", Value: bson.D{{Key: "encrypt", Value: bson.D{
			{Key: "bsonType", Value: "string"}, {Key: "algorithm", Value: string(encryption.Deterministic)},
			{Key: "keyId", Value: bson.A{id}},
		}}}}}}}
	options.KeyVaultClient = nil
	client, err := allium.Open(d.URI(), allium.ClientOptions{Encryption: encryption.Auto(encryption.AutoOptions{
		KeyOptions: options, Schemas: map[string]any{"app.patients": schema},
	})})
	if err != nil {
		return nil, err
	}
	defer client.Close(ctx)

	l := &layers{Value: "457-55-5462"}
	patients := client.Database("app").Collection("patients")
	if _, err := patients.InsertOne(ctx,
		bson.D{{Key: "name", Value: "Ada"}, {Key: "ssn", Value: l.Value}}); err != nil {
		return nil, err
	}
	stored, err := allium.CollectionOf[struct {
		SSN bson.Binary `bson:"ssn"`
	}](plain.Database("app"), "patients").FindOne(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	l.Stored = fmt.Sprintf("binary of subtype %d, %d bytes", stored.SSN.Subtype, len(stored.SSN.Data))
	back, err := allium.CollectionOf[struct {
		SSN string `bson:"ssn"`
	}](client.Database("app"), "patients").FindOne(ctx, bson.M{"ssn": l.Value})
	if err != nil {
		return nil, err
	}
	l.Back = back.SSN
	key, err := plain.Database("encryption").Collection("keys").FindOne(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	for _, field := range key {
		l.KeyVault = append(l.KeyVault, field.Key)
		if material, ok := field.Value.(bson.Binary); ok && field.Key == "keyMaterial" {
			l.KeyBytes = len(material.Data)
		}
	}
	return l, nil
}
