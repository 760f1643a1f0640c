package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/mongotest"
)

// uri is the connection string of the deployment that connect starts.
var uri string

// connect starts a deployment inside this process. An application calls allium.Open with the
// connection string of its own deployment, and has a master key that it does not tell.
func connect() (*allium.Client, *encryption.Client, func()) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	check(err)
	uri = d.URI()
	client, err := allium.Open(uri)
	check(err)
	keys, err := encryption.New(encryption.Options{
		KeyOptions: encryption.KeyOptions{
			KeyVaultClient: client,
			KeyVault:       "encryption.keys",
			KMS:            kms.Providers{"local": kms.Local{Key: make([]byte, 96)}},
		},
	})
	check(err)
	return client, keys, func() {
		check(keys.Close())
		client.Close(context.Background())
		d.Stop()
	}
}

// check keeps the examples short.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Example() {
	ctx := context.Background()
	client, keys, done := connect()
	defer done()

	id, err := keys.CreateDataKey(ctx, "local")
	check(err)
	deterministic := encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id}
	ssn, err := keys.Encrypt(ctx, "457-55-5462", deterministic)
	check(err)

	patients := client.Database("app").Collection("patients")
	_, err = patients.InsertOne(ctx, bson.D{{Key: "name", Value: "Jon Doe"}, {Key: "ssn", Value: ssn}})
	check(err)

	// The server finds what is equal without being able to read it.
	query, err := keys.Encrypt(ctx, "457-55-5462", deterministic)
	check(err)
	patient, err := patients.FindOne(ctx, bson.D{{Key: "ssn", Value: query}})
	check(err)
	stored := patient[2].Value.(bson.Binary)
	fmt.Println(patient[1].Value, stored.Subtype == bson.BinaryEncrypted)

	plain, err := encryption.DecryptAs[string](ctx, keys, stored)
	check(err)
	fmt.Println(plain)
	// Output:
	// Jon Doe true
	// 457-55-5462
}

func ExampleClient_CreateDataKey() {
	ctx := context.Background()
	_, keys, done := connect()
	defer done()

	check(keys.CreateIndex(ctx)) // no two keys with one name
	id, err := keys.CreateDataKey(ctx, "local", encryption.DataKeyOptions{AltNames: []string{"patients"}})
	check(err)
	before, err := keys.AddKeyAltName(ctx, id, "patients2")
	check(err)
	fmt.Println(before.AltNames, before.Provider)
	key, err := keys.KeyByAltName(ctx, "patients2")
	check(err)
	fmt.Println(key.ID == id, key.AltNames)
	_, err = keys.RemoveKeyAltName(ctx, id, "patients")
	check(err)
	key, err = keys.Key(ctx, id)
	check(err)
	fmt.Println(key.AltNames)

	for key, err := range keys.Keys(ctx) {
		check(err)
		res, err := keys.DeleteKey(ctx, key.ID)
		check(err)
		fmt.Println("deleted", res.DeletedCount)
	}
	// Output:
	// [patients] local
	// true [patients patients2]
	// [patients2]
	// deleted 1
}

func ExampleClient_RewrapManyDataKey() {
	ctx := context.Background()
	_, keys, done := connect()
	defer done()

	id, err := keys.CreateDataKey(ctx, "local")
	check(err)
	secret, err := keys.Encrypt(ctx, 42, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id})
	check(err)

	// Wrap all data keys with the newest version of the master key.
	res, err := keys.RewrapManyDataKey(ctx, bson.D{})
	check(err)
	fmt.Println("rewrapped", res.ModifiedCount)
	n, err := encryption.DecryptAs[int](ctx, keys, secret)
	check(err)
	fmt.Println(n)
	// Output:
	// rewrapped 1
	// 42
}

func ExampleClient_EncryptExpression() {
	ctx := context.Background()
	_, keys, done := connect()
	defer done()

	id, err := keys.CreateDataKey(ctx, "local")
	check(err)
	o := encryption.EncryptOptions{
		Algorithm: encryption.Range, KeyID: &id, Contention: new(int64(8)), Query: encryption.RangeQuery,
		Range: &encryption.RangeOptions{Min: int32(0), Max: int32(200)},
	}
	filter, err := keys.EncryptExpression(ctx, bson.D{{Key: "$and", Value: bson.A{
		bson.D{{Key: "age", Value: bson.D{{Key: "$gte", Value: int32(18)}}}},
		bson.D{{Key: "age", Value: bson.D{{Key: "$lt", Value: int32(65)}}}},
	}}}, o)
	check(err)
	fmt.Println(filter.Lookup("$and", "0", "age", "$gte").Type, filter.Lookup("$and", "1", "age", "$lt").Type)
	// Output:
	// binary binary
}

func ExampleClient_Decrypt() {
	ctx := context.Background()
	_, keys, done := connect()
	defer done()

	id, err := keys.CreateDataKey(ctx, "local")
	check(err)
	secret, err := keys.Encrypt(ctx, bson.D{{Key: "a", Value: 1}}, encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id})
	check(err)
	v, err := keys.Decrypt(ctx, secret)
	check(err)
	fmt.Println(v)

	forged := bson.Binary{Subtype: secret.Subtype, Data: bytes.Clone(secret.Data)}
	forged.Data[len(forged.Data)-1] ^= 1
	_, err = keys.Decrypt(ctx, forged)
	fmt.Println(errors.Is(err, encryption.ErrAuthentication))
	// Output:
	// {"a":1}
	// true
}

func ExampleClient_Warm() {
	ctx := context.Background()
	_, keys, done := connect()
	defer done()
	id, err := keys.CreateDataKey(ctx, "local")
	check(err)

	// When the program starts: later operations find the keys in the cache.
	check(keys.Warm(ctx))
	check(keys.Warm(ctx, id))
	err = keys.Warm(ctx, bson.UUID{1})
	fmt.Println(errors.Is(err, encryption.ErrKeyNotFound))
	// Output: true
}

func ExampleAuto() {
	ctx := context.Background()
	plain, keys, done := connect()
	defer done()
	id, err := keys.CreateDataKey(ctx, "local")
	check(err)

	// The field ssn of the collection app.patients is encrypted, with a data key that the schema
	// names.
	schema := bson.D{{Key: "bsonType", Value: "object"}, {Key: "properties", Value: bson.D{{Key: "ssn", Value: bson.D{{Key: "encrypt", Value: bson.D{
		{Key: "keyId", Value: bson.A{id}}, {Key: "bsonType", Value: "string"}, {Key: "algorithm", Value: string(encryption.Deterministic)},
	}}}}}}}
	client, err := allium.Open(uri, allium.ClientOptions{Encryption: encryption.Auto(encryption.AutoOptions{
		KeyOptions: encryption.KeyOptions{KeyVault: "encryption.keys", KMS: kms.Providers{"local": kms.Local{Key: make([]byte, 96)}}},
		Schemas:    map[string]any{"app.patients": schema},
	})})
	check(err)
	defer client.Close(ctx)

	patients := client.Database("app").Collection("patients")
	_, err = patients.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "ssn", Value: "457-55-5462"}})
	check(err)
	found, err := patients.FindOne(ctx, bson.D{{Key: "ssn", Value: "457-55-5462"}})
	check(err)
	fmt.Println(found)

	stored, err := plain.Database("app").Collection("patients").FindOne(ctx, bson.D{})
	check(err)
	fmt.Printf("%T\n", stored[1].Value)

	_, err = patients.FindOne(ctx, bson.D{{Key: "ssn", Value: bson.D{{Key: "$gt", Value: "4"}}}})
	fmt.Println(err != nil)
	// Output:
	// {"_id":1,"ssn":"457-55-5462"}
	// bson.Binary
	// true
}

func ExampleClient_CreateEncryptedCollection() {
	ctx := context.Background()
	plain, keys, done := connect()
	defer done()

	// Fields without a key get a new one.
	fields, err := keys.CreateEncryptedCollection(ctx, plain.Database("app"), "patients", encryption.CollectionOptions{
		Provider: "local",
		Create: allium.CreateCollectionOptions{EncryptedFields: bson.D{{Key: "fields", Value: bson.A{bson.D{
			{Key: "path", Value: "ssn"}, {Key: "bsonType", Value: "string"}, {Key: "keyId", Value: nil},
			{Key: "queries", Value: bson.D{{Key: "queryType", Value: "equality"}}},
		}}}}},
	})
	check(err)

	client, err := allium.Open(uri, allium.ClientOptions{Encryption: encryption.Auto(encryption.AutoOptions{
		KeyOptions: encryption.KeyOptions{
			KeyVault: "encryption.keys",
			KMS:      kms.Providers{"local": kms.Local{Key: make([]byte, 96)}},
		},
		EncryptedFields: map[string]any{"app.patients": fields},
	})})
	check(err)
	defer client.Close(ctx)
	patients := client.Database("app").Collection("patients")
	_, err = patients.InsertOne(ctx, bson.D{{Key: "name", Value: "Jon Doe"}, {Key: "ssn", Value: "457-55-5462"}})
	check(err)
	found, err := patients.FindOne(ctx, bson.D{{Key: "ssn", Value: "457-55-5462"}})
	check(err)
	fmt.Println(found[1].Value, found[2].Value)

	// The state collections go with the collection.
	check(patients.Drop(ctx))
	names, err := plain.Database("app").ListCollectionNames(ctx)
	check(err)
	fmt.Println(names)
	// Output:
	// Jon Doe 457-55-5462
	// []
}
