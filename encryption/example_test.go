package encryption_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/encryptiontest"
	"allium/encryption/kms"
	"allium/internal/fakekms"
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

// The Examples of docs/encryption.md.

// deployment starts a deployment inside this process. It returns a client of it and its connection
// string.
func deployment() (client *allium.Client, uri string, done func()) {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	check(err)
	client, err = allium.Open(d.URI())
	check(err)
	return client, d.URI(), func() {
		client.Close(context.Background())
		d.Stop()
	}
}

func Example_localKeys() {
	ctx := context.Background()
	client, _, done := deployment()
	defer done()
	masterKey := make([]byte, kms.LocalKeySize)

	options := encryption.KeyOptions{
		KeyVaultClient: client,
		KeyVault:       "encryption.keys",
		KMS:            kms.Providers{"local": kms.Local{Key: masterKey}}, // 96 random bytes
	}
	keys, err := encryption.New(encryption.Options{KeyOptions: options})
	check(err)
	defer keys.Close()

	id, err := keys.CreateDataKey(ctx, "local")
	check(err)
	deterministic := encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &id}
	ssn, err := keys.Encrypt(ctx, "457-55-5462", deterministic)
	check(err)

	patients := client.Database("app").Collection("patients")
	_, err = patients.InsertOne(ctx, bson.D{{Key: "name", Value: "Jon Doe"}, {Key: "ssn", Value: ssn}})
	check(err)
	found, err := patients.FindOne(ctx, bson.D{{Key: "ssn", Value: ssn}})
	check(err)

	plain, err := encryption.DecryptAs[string](ctx, keys, found[2].Value.(bson.Binary))
	check(err)
	fmt.Println(found[1].Value, plain)
	// Output: Jon Doe 457-55-5462
}

func Example_schemaFromType() {
	ctx := context.Background()
	client, uri, done := deployment()
	defer done()
	options := encryption.KeyOptions{
		KeyVaultClient: client, KeyVault: "encryption.keys", KMS: kms.Providers{"local": kms.Local{Key: make([]byte, kms.LocalKeySize)}},
	}
	keys, err := encryption.New(encryption.Options{KeyOptions: options})
	check(err)
	defer keys.Close()
	id, err := keys.CreateDataKey(ctx, "local")
	check(err)

	type Patient struct {
		Name string `bson:"name"`
		SSN  string `bson:"ssn"`
	}
	schema, err := encryption.SchemaFor[Patient](
		encryption.Field{Path: "ssn", Algorithm: encryption.Deterministic, KeyID: &id})
	check(err)
	auto := encryption.AutoOptions{
		KeyOptions: options,
		Schemas:    map[string]any{"app.patients": schema},
	}
	encrypting, err := allium.Open(uri, allium.ClientOptions{Encryption: encryption.Auto(auto)})
	check(err)
	defer encrypting.Close(ctx)

	patients := allium.CollectionOf[Patient](encrypting.Database("app"), "patients")
	_, err = patients.InsertOne(ctx, Patient{Name: "Jon Doe", SSN: "457-55-5462"})
	check(err)
	jon, err := patients.FindOne(ctx, bson.D{{Key: "ssn", Value: "457-55-5462"}})
	check(err)
	fmt.Println(jon.Name, jon.SSN)

	stored, err := client.Database("app").Collection("patients").FindOne(ctx, bson.D{})
	check(err)
	_, isBinary := stored[2].Value.(bson.Binary) // what the server has
	fmt.Println(isBinary)

	plan, err := auto.DryRun("app", bson.D{{Key: "find", Value: "patients"}, {Key: "filter", Value: bson.D{{Key: "ssn", Value: "457-55-5462"}}}})
	check(err)
	fmt.Println(len(plan), plan[0].Path, plan[0].Algorithm == encryption.Deterministic)
	// Output:
	// Jon Doe 457-55-5462
	// true
	// 1 ssn true
}

func Example_queryable() {
	ctx := context.Background()
	client, uri, done := deployment()
	defer done()
	options := encryption.KeyOptions{
		KeyVaultClient: client, KeyVault: "encryption.keys", KMS: kms.Providers{"local": kms.Local{Key: make([]byte, kms.LocalKeySize)}},
	}
	keys, err := encryption.New(encryption.Options{KeyOptions: options})
	check(err)
	defer keys.Close()

	wanted, err := encryption.EncryptedFieldsFor[Patient](
		encryption.Field{Path: "ssn", Algorithm: encryption.Indexed},
		encryption.Field{Path: "age", Algorithm: encryption.Range, Range: &encryption.RangeOptions{Min: 0, Max: 120}})
	check(err)
	fields, err := keys.CreateEncryptedCollection(ctx, client.Database("app"), "patients", encryption.CollectionOptions{
		Provider: "local",
		Create:   allium.CreateCollectionOptions{EncryptedFields: wanted},
	})
	check(err)
	encrypting, err := allium.Open(uri, allium.ClientOptions{Encryption: encryption.Auto(encryption.AutoOptions{
		KeyOptions:      options,
		EncryptedFields: map[string]any{"app.patients": fields},
	})})
	check(err)
	defer encrypting.Close(ctx)

	patients := allium.CollectionOf[Patient](encrypting.Database("app"), "patients")
	_, err = patients.InsertOne(ctx, Patient{Name: "Jon Doe", SSN: "457-55-5462", Age: 42})
	check(err)
	adult, err := patients.FindOne(ctx, bson.D{{Key: "age", Value: bson.D{{Key: "$gte", Value: int32(18)}}}})
	check(err)
	fmt.Println(adult.Name, adult.SSN, adult.Age)
	// Output: Jon Doe 457-55-5462 42
}

func Example_amazon() {
	ctx := context.Background()
	client, _, done := deployment()
	defer done()
	service, err := fakekms.Start() // stands in for Amazon's
	check(err)
	defer service.Close()
	const accessKeyID, secretAccessKey = fakekms.AWSAccessKeyID, fakekms.AWSSecretAccessKey
	const firstARN, secondARN = "arn:aws:kms:eu-central-1:111122223333:key/1", "arn:aws:kms:eu-central-1:111122223333:key/2"

	options := encryption.KeyOptions{
		KeyVaultClient: client,
		KeyVault:       "encryption.keys",
		KMS:            kms.Providers{"aws": kms.AWS{AccessKeyID: accessKeyID, SecretAccessKey: secretAccessKey}},
	}
	options.KMSConnect, options.TLS = service.Dial, map[string]*tls.Config{"aws": service.TLS()}
	keys, err := encryption.New(encryption.Options{KeyOptions: options})
	check(err)
	defer keys.Close()

	id, err := keys.CreateDataKey(ctx, "aws", encryption.DataKeyOptions{
		MasterKey: kms.AWSKey{Region: "eu-central-1", Key: firstARN},
	})
	check(err)
	secret, err := keys.Encrypt(ctx, "457-55-5462", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id})
	check(err)

	// All data keys that the first key wraps are wrapped by the second one from now on.
	res, err := keys.RewrapManyDataKey(ctx, bson.D{{Key: "masterKey.key", Value: firstARN}}, encryption.RewrapOptions{
		Provider:  "aws",
		MasterKey: kms.AWSKey{Region: "eu-central-1", Key: secondARN},
	})
	check(err)
	fmt.Println(res.ModifiedCount)

	key, err := keys.Key(ctx, id)
	check(err)
	plain, err := encryption.DecryptAs[string](ctx, keys, secret) // what was encrypted stays as it is
	check(err)
	fmt.Println(key.MasterKey.(kms.AWSKey).Key == secondARN, plain)

	// The newest version of its own key for each.
	_, err = keys.RewrapManyDataKey(ctx, bson.D{})
	check(err)
	// Output:
	// 1
	// true 457-55-5462
}

func Example_refused() {
	id := bson.UUID{1} // of a data key
	schema, err := encryption.SchemaFor[Patient](
		encryption.Field{Path: "ssn", Algorithm: encryption.Random, KeyID: &id})
	check(err)
	auto := encryption.AutoOptions{Schemas: map[string]any{"app.patients": schema}}

	_, err = auto.DryRun("app", bson.D{{Key: "find", Value: "patients"}, {Key: "filter", Value: bson.D{{Key: "ssn", Value: "457-55-5462"}}}})
	if refused, ok := errors.AsType[*encryption.RefusedError](err); ok {
		fmt.Println(refused.Command, refused.Namespace, refused.Path, refused.Operator)
		fmt.Println(refused.Reason)
	}
	// Output:
	// find app.patients ssn $eq
	// Cannot query on fields encrypted with the randomized encryption algorithm
}

// City is a document with a text field.
type City struct {
	ID   int    `bson:"_id"`
	Name string `bson:"name"`
}

// Text is found by its beginning, whatever the case and accents.
func Example_text() {
	ctx := context.Background()
	d, err := encryptiontest.Open(mongotest.Version("9.0"))
	check(err)
	defer d.Stop()
	wanted, err := encryption.EncryptedFieldsFor[City](encryption.Field{
		Path: "name", Algorithm: encryption.String,
		Text: &encryption.TextOptions{Prefix: &encryption.AffixOptions{MinQueryLength: 2, MaxQueryLength: 10}},
	})
	check(err)
	_, err = d.Keys.CreateEncryptedCollection(ctx, d.Plain.Database("app"), "cities", encryption.CollectionOptions{
		Provider: encryptiontest.Provider,
		Create:   allium.CreateCollectionOptions{EncryptedFields: wanted},
	})
	check(err)
	client, err := d.Client(encryption.AutoOptions{})
	check(err)
	defer client.Close(ctx)
	cities := allium.CollectionOf[City](client.Database("app"), "cities")
	_, err = cities.InsertMany(ctx, []City{{1, "Málaga"}, {2, "Malmö"}, {3, "Ulm"}})
	check(err)

	starts := bson.D{{Key: "$encStrStartsWith", Value: bson.D{{Key: "input", Value: "$name"}, {Key: "prefix", Value: "mal"}}}}
	cursor, err := cities.Find(ctx, bson.D{{Key: "$expr", Value: starts}}, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})
	check(err)
	found, err := cursor.All(ctx)
	check(err)
	fmt.Println(found)
	// Output: [{1 Málaga} {2 Malmö}]
}

// Compaction makes the state collections small again. The client adds the tokens that it needs.
func Example_compact() {
	ctx := context.Background()
	d, err := encryptiontest.Open()
	check(err)
	defer d.Stop()
	wanted, err := encryption.EncryptedFieldsFor[City](encryption.Field{Path: "name", Algorithm: encryption.Indexed, Contention: new(int64(0))})
	check(err)
	_, err = d.Keys.CreateEncryptedCollection(ctx, d.Plain.Database("app"), "cities", encryption.CollectionOptions{
		Provider: encryptiontest.Provider,
		Create:   allium.CreateCollectionOptions{EncryptedFields: wanted},
	})
	check(err)
	client, err := d.Client(encryption.AutoOptions{})
	check(err)
	defer client.Close(ctx)
	db := client.Database("app")
	for i := range 100 {
		_, err := allium.CollectionOf[City](db, "cities").InsertOne(ctx, City{i, "Ulm"})
		check(err)
	}
	state := d.Plain.Database("app").Collection("enxcol_.cities.esc")
	before, err := state.CountDocuments(ctx, bson.D{})
	check(err)

	_, err = db.RunCommand(ctx, bson.D{{Key: "compactStructuredEncryptionData", Value: "cities"}})
	check(err)

	after, err := state.CountDocuments(ctx, bson.D{})
	check(err)
	fmt.Println(before, after)
	// Output: 100 1
}

type Patient struct {
	Name string `bson:"name"`
	SSN  string `bson:"ssn"`
	Age  int32  `bson:"age"`
}

func ExampleSchemaFor() {
	id := bson.UUID{1} // of a data key
	schema, err := encryption.SchemaFor[Patient](
		encryption.Field{Path: "ssn", Algorithm: encryption.Deterministic, KeyID: &id})
	check(err)
	fmt.Println(schema.Lookup("properties", "ssn", "encrypt", "bsonType"))
	_, err = encryption.SchemaFor[Patient](
		encryption.Field{Path: "snn", Algorithm: encryption.Deterministic, KeyID: &id})
	fmt.Println(err)
	// Output:
	// "string"
	// schema for encryption_test.Patient: field snn: encryption_test.Patient has no field snn
}

func ExampleEncryptedFieldsFor() {
	fields, err := encryption.EncryptedFieldsFor[Patient](
		encryption.Field{Path: "ssn", Algorithm: encryption.Indexed},
		encryption.Field{Path: "age", Algorithm: encryption.Range, Range: &encryption.RangeOptions{Min: 0, Max: 120}})
	check(err)
	fmt.Println(fields)
	// Output:
	// {"fields":[{"path":"ssn","bsonType":"string","queries":{"queryType":"equality"},"keyId":null},{"path":"age","bsonType":"int","queries":{"queryType":"range","min":0,"max":120},"keyId":null}]}
}

func ExampleAutoOptions_DryRun() {
	id := bson.UUID{1}
	schema, err := encryption.SchemaFor[Patient](
		encryption.Field{Path: "ssn", Algorithm: encryption.Deterministic, KeyID: &id})
	check(err)
	o := encryption.AutoOptions{Schemas: map[string]any{"app.patients": schema}}
	plan, err := o.DryRun("app", bson.D{{Key: "find", Value: "patients"}, {Key: "filter", Value: bson.D{{Key: "ssn", Value: "457-55-5462"}}}})
	check(err)
	fmt.Println(plan[0].Path, plan[0].Place, plan[0].KeyID == id)
	_, err = o.DryRun("app", bson.D{{Key: "find", Value: "patients"}, {Key: "filter", Value: bson.D{{Key: "ssn", Value: bson.D{{Key: "$gt", Value: "4"}}}}}})
	var refused *encryption.RefusedError
	fmt.Println(errors.As(err, &refused), refused.Path, refused.Operator)
	// Output:
	// ssn filter true
	// true ssn $gt
}

func ExampleSeal() {
	ctx := context.Background()
	_, keys, done := connect()
	defer done()
	id, err := keys.CreateDataKey(ctx, "local")
	check(err)
	ssn, err := encryption.Seal(ctx, keys, "457-55-5462", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &id})
	check(err)
	fmt.Println(ssn, ssn.IsZero(), ssn.Binary().Subtype == bson.BinaryEncrypted)
	plain, err := ssn.Open(ctx, keys)
	check(err)
	fmt.Println(plain, ssn.LogValue())
	// Output:
	// <encrypted> false true
	// 457-55-5462 <encrypted>
}
