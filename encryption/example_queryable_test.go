package encryption_test

import (
	"context"
	"fmt"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/encryptiontest"
	"allium/mongotest"
)

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
