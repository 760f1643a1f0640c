package encryption_test

import (
	"context"
	"errors"
	"fmt"

	"allium/bson"
	"allium/encryption"
)

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
