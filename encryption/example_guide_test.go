package encryption_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/internal/fakekms"
	"allium/mongotest"
)

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

// TestGuide wants every snippet of the guide to stand in an Example, line by line.
func TestGuide(t *testing.T) {
	page, err := os.ReadFile("../docs/encryption.md")
	if err != nil {
		t.Fatal(err)
	}
	var code []string
	for _, file := range []string{"example_guide_test.go", "example_test.go", "example_schema_test.go", "example_queryable_test.go", "encryptiontest/example_test.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, trimmed(string(text))...)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	if len(blocks) < 6 {
		t.Errorf("%d snippets: the test looks in the wrong place", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		lines := trimmed(block)
		found := false
		for i := range code {
			found = found || i+len(lines) <= len(code) && slices.Equal(code[i:i+len(lines)], lines)
		}
		if !found {
			t.Errorf("no Example has the snippet\n%s", block)
		}
	}
}

// trimmed returns the lines of a text without indentation.
func trimmed(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, strings.TrimSpace(line))
	}
	return out
}
