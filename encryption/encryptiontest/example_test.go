package encryptiontest_test

import (
	"context"
	"fmt"
	"log"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/encryptiontest"
	"allium/mongotest"
)

// Patient is what the program stores.
type Patient struct {
	Name string `bson:"name"`
	SSN  string `bson:"ssn"`
	Age  int32  `bson:"age"`
}

// admit is the program to be tested. It does not know that fields are encrypted.
func admit(ctx context.Context, db *allium.Database, p Patient) error {
	_, err := allium.CollectionOf[Patient](db, "patients").InsertOne(ctx, p)
	return err
}

// atLeast is another part of it.
func atLeast(ctx context.Context, db *allium.Database, age int32) ([]Patient, error) {
	cursor, err := allium.CollectionOf[Patient](db, "patients").Find(ctx, bson.D{{Key: "age", Value: bson.D{{Key: "$gte", Value: age}}}})
	if err != nil {
		return nil, err
	}
	return cursor.All(ctx)
}

// patients makes the collection that the program expects, and its data keys.
func patients(ctx context.Context, d *encryptiontest.Deployment) error {
	fields, err := encryption.EncryptedFieldsFor[Patient](
		encryption.Field{Path: "ssn", Algorithm: encryption.Indexed},
		encryption.Field{Path: "age", Algorithm: encryption.Range, Range: &encryption.RangeOptions{Min: 0, Max: 130}},
	)
	if err != nil {
		return err
	}
	_, err = d.Keys.CreateEncryptedCollection(ctx, d.Plain.Database("app"), "patients", encryption.CollectionOptions{
		Provider: encryptiontest.Provider,
		Create:   allium.CreateCollectionOptions{EncryptedFields: fields},
	})
	return err
}

// check keeps the examples short.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A test of a program with Queryable Encryption: what the program reads is plain, and what the
// server has is not.
func Example() {
	ctx := context.Background()
	d, err := encryptiontest.Open() // in a test: d := encryptiontest.Start(t)
	check(err)
	defer d.Stop()
	check(patients(ctx, d)) // creates the collection with d.Keys

	client, err := d.Client(encryption.AutoOptions{})
	check(err)
	defer client.Close(ctx)
	db := client.Database("app")
	check(admit(ctx, db, Patient{Name: "Jon Doe", SSN: "457-55-5462", Age: 67}))
	check(admit(ctx, db, Patient{Name: "Jane Roe", SSN: "078-05-1120", Age: 34}))
	old, err := atLeast(ctx, db, 60)
	check(err)
	fmt.Println(old)

	stored, err := allium.CollectionOf[bson.Raw](d.Plain.Database("app"), "patients").FindOne(ctx, bson.D{{Key: "name", Value: "Jon Doe"}})
	check(err)
	for _, field := range []string{"ssn", "age"} {
		b, ok := stored.Lookup(field).Binary()
		fmt.Println(field, ok && b.Subtype == bson.BinaryEncrypted)
	}
	// Output:
	// [{Jon Doe 457-55-5462 67}]
	// ssn true
	// age true
}

// What happens when the connection breaks after a write, before its reply: the write is repeated,
// and nothing is stored twice.
func ExampleOpen() {
	ctx := context.Background()
	d, err := encryptiontest.Open(mongotest.ReplicaSet(3))
	check(err)
	defer d.Stop()
	check(patients(ctx, d))
	client, err := d.Client(encryption.AutoOptions{})
	check(err)
	defer client.Close(ctx)

	db := client.Database("app")
	check(admit(ctx, db, Patient{Name: "Jane Roe", SSN: "078-05-1120", Age: 34}))
	d.Primary().SetNetFaults(mongotest.NetFaults{DropAfter: 10, Times: 1})
	check(admit(ctx, db, Patient{Name: "Jon Doe", SSN: "457-55-5462", Age: 67}))
	found, err := atLeast(ctx, db, 0)
	check(err)
	fmt.Println(len(found))
	// Output: 2
}

// The program opens its client itself: the options of its keys are the deployment's.
func ExampleDeployment() {
	ctx := context.Background()
	d, err := encryptiontest.Open()
	check(err)
	defer d.Stop()
	id, err := d.Keys.CreateDataKey(ctx, encryptiontest.Provider)
	check(err)
	schema, err := encryption.SchemaFor[Patient](encryption.Field{Path: "ssn", Algorithm: encryption.Deterministic, KeyID: &id})
	check(err)

	client, err := allium.Open(d.URI(), allium.ClientOptions{Encryption: encryption.Auto(encryption.AutoOptions{
		KeyOptions: d.KeyOptions,
		Schemas:    map[string]any{"app.patients": schema},
	})})
	check(err)
	defer client.Close(ctx)
	check(admit(ctx, client.Database("app"), Patient{Name: "Jon Doe", SSN: "457-55-5462"}))
	stored, err := d.Plain.Database("app").Collection("patients").FindOne(ctx, bson.D{})
	check(err)
	_, encrypted := stored[2].Value.(bson.Binary)
	fmt.Println(encrypted)
	// Output: true
}

func ExampleDeployment_Client() {
	ctx := context.Background()
	d, err := encryptiontest.Open()
	check(err)
	defer d.Stop()
	check(patients(ctx, d))
	client, err := d.Client(encryption.AutoOptions{}, allium.ClientOptions{AppName: "admission"})
	check(err)
	defer client.Close(ctx)
	check(admit(ctx, client.Database("app"), Patient{Name: "Jon Doe", SSN: "457-55-5462", Age: 67}))
	n, err := client.Database("app").Collection("patients").CountDocuments(ctx, bson.D{{Key: "ssn", Value: "457-55-5462"}})
	fmt.Println(n, err)
	// Output: 1 <nil>
}

func ExampleDeployment_Stop() {
	d, err := encryptiontest.Open()
	check(err)
	d.Stop()
	_, err = d.Plain.Database("app").ListCollectionNames(context.Background())
	fmt.Println(err != nil)
	// Output: true
}

// In a test there is one call, and nothing to clean up.
func ExampleStart() {
	test := func(t mongotest.TB) {
		d := encryptiontest.Start(t)
		_, err := d.Keys.CreateDataKey(context.Background(), encryptiontest.Provider)
		fmt.Println(err)
	}
	test(&ended{})
	// Output: <nil>
}

// ended stands for a *testing.T in the example above.
type ended struct{ mongotest.TB }

func (*ended) Helper()        {}
func (*ended) Cleanup(func()) {}
