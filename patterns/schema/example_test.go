package schema_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/field"
	"allium/mongotest"
	"allium/patterns/schema"
)

type Item struct {
	SKU string `bson:"sku"`
	Qty int32  `bson:"qty"`
}

type Order struct {
	ID      bson.ObjectID `bson:"_id,omitempty"`
	Number  int64         `bson:"number"`
	Email   string        `bson:"email"`
	Status  string        `bson:"status"`
	Items   []Item        `bson:"items"`
	Note    *string       `bson:"note,omitempty"`
	Created time.Time     `bson:"created"`
}

var (
	number  = field.Of(func(o *Order) *int64 { return &o.Number })
	email   = field.Of(func(o *Order) *string { return &o.Email })
	status  = field.Of(func(o *Order) *string { return &o.Status })
	items   = field.Of(func(o *Order) *[]Item { return &o.Items })
	qty     = field.Of(func(o *Order) *int32 { return &o.Items[0].Qty })
	created = field.Of(func(o *Order) *time.Time { return &o.Created })
)

// Shop is what the database has beside its documents. It stands beside the types.
var Shop = schema.Schema{Collections: []schema.Collection{{
	Name:    "orders",
	Options: allium.CreateCollectionOptions{Validator: schema.Validator(schema.Enum(status, "open", "paid"), schema.Items(items, 1, -1), schema.Min(qty, 1))},
	Indexes: []allium.IndexModel{
		{Keys: field.Asc(number), Unique: true},
		{Keys: field.By(field.Asc(status), field.Desc(created)), PartialFilter: status.Eq("open")},
	},
}}}

// open returns a database of a deployment that ends with the Example.
func open() (db *allium.Database, end func()) {
	d, err := mongotest.Open()
	if err != nil {
		log.Fatal(err)
	}
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	return client.Database("shop"), func() {
		client.Close(context.Background())
		d.Stop()
	}
}

func Example() {
	db, end := open()
	defer end()
	ctx := context.Background()

	changes, err := schema.Plan(ctx, db, Shop)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(changes)
	if _, err := schema.Apply(ctx, db, Shop); err != nil {
		log.Fatal(err)
	}
	changes, err = schema.Plan(ctx, db, Shop)
	fmt.Println(len(changes), err)

	_, err = allium.CollectionOf[Order](db, "orders").InsertOne(ctx, Order{Number: 1, Status: "lost", Items: []Item{{SKU: "a", Qty: 1}}})
	fmt.Println(err != nil)
	// Output:
	// create  orders                      it is not there
	// create  orders.number_1             keys {"number":1}
	// create  orders.status_1_created_-1  keys {"status":1,"created":-1}
	// 0 <nil>
	// true
}

func ExamplePlan() {
	db, end := open()
	defer end()
	ctx := context.Background()
	for range 2 {
		if _, err := db.Collection("orders").InsertOne(ctx, bson.D{{Key: "number", Value: 7}, {Key: "status", Value: "open"}}); err != nil {
			log.Fatal(err)
		}
	}
	wanted := schema.Schema{Collections: []schema.Collection{{Name: "orders", Indexes: []allium.IndexModel{{Keys: field.Asc(number), Unique: true}}}}}

	changes, err := schema.Plan(ctx, db, wanted)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range changes {
		fmt.Println(c.Action, c.Name(), c.Told())
		fmt.Println(c.Cost)
		fmt.Println(c.Problem)
		fmt.Println(strings.HasPrefix(c.Sample, `db.getCollection("orders").aggregate(`))
	}
	// Output:
	// create orders.number_1 false
	// builds an index on 2 documents
	// 1 key occurs in more than one document, so that the index cannot be unique; the first is {"k0":7}
	// true
}

func ExampleApply() {
	db, end := open()
	defer end()
	ctx := context.Background()
	if _, err := db.Collection("orders").CreateIndex(ctx, allium.IndexModel{Keys: field.Asc(email)}); err != nil {
		log.Fatal(err)
	}
	wanted := schema.Schema{Collections: []schema.Collection{{Name: "orders", Indexes: []allium.IndexModel{{Keys: field.Asc(number)}}}}}

	made, err := schema.Apply(ctx, db, wanted)
	fmt.Println(made, err)

	made, err = schema.Apply(ctx, db, wanted, schema.ApplyOptions{
		DropOnly: func(c schema.Change) bool { return c.Name() == "orders.email_1" },
	})
	var failed *schema.ApplyError
	fmt.Println(made, errors.As(err, &failed))
	// Output:
	// create  orders.number_1  keys {"number":1}
	//  <nil>
	// drop  orders.email_1  the index is not declared: keys {"email":1}
	//  false
}

// Two databases are compared by what they have.
func ExampleDiff() {
	db, end := open()
	defer end()
	ctx := context.Background()
	if _, err := schema.Apply(ctx, db, Shop); err != nil {
		log.Fatal(err)
	}
	if err := db.Collection("orders").DropIndex(ctx, "number_1"); err != nil {
		log.Fatal(err)
	}

	live, err := schema.Read(ctx, db)
	if err != nil {
		log.Fatal(err)
	}
	changes, err := schema.Diff(live, Shop)
	fmt.Println(changes, err)
	// Output:
	// create  orders.number_1  keys {"number":1}
	//  <nil>
}

func ExampleWriteGo() {
	s := schema.Schema{Collections: []schema.Collection{{Name: "log",
		Options: allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20},
		Indexes: []allium.IndexModel{{Keys: bson.D{{Key: "at", Value: int32(-1)}}, ExpireAfter: new(24 * time.Hour)}},
	}}}
	if err := schema.WriteGo(os.Stdout, s, schema.WriteGoOptions{Package: "store"}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// package store
	//
	// import (
	// 	"time"
	//
	// 	"allium"
	// 	"allium/bson"
	// 	"allium/patterns/schema"
	// )
	//
	// // Schema is what the database has beside its documents.
	// var Schema = schema.Schema{Collections: []schema.Collection{
	// 	{
	// 		Name:    "log",
	// 		Options: allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1048576},
	// 		Indexes: []allium.IndexModel{
	// 			{
	// 				Keys:        bson.D{{Key: "at", Value: -1}},
	// 				ExpireAfter: new(24 * time.Hour),
	// 			},
	// 		},
	// 	},
	// }}
}

// A program that writes its schema for "allium schema" has a main function of this one line.
func ExampleMain() {
	schema.Main(schema.Schema{Collections: []schema.Collection{{Name: "goods", Indexes: []allium.IndexModel{{Keys: bson.D{{Key: "price", Value: 1}}}}}}})
	// Output:
	// {
	//   "collections": [
	//     {
	//       "name": "goods",
	//       "indexes": [
	//         {
	//           "key": {
	//             "price": 1
	//           }
	//         }
	//       ]
	//     }
	//   ]
	// }
}

func ExampleReadJSON() {
	s, err := schema.ReadJSON(strings.NewReader(`{"collections": [{"name": "goods", "indexes": [{"key": {"price": 1}, "unique": true}]}]}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Collections[0].Name, s.Collections[0].Indexes[0].Unique)

	var again strings.Builder
	fmt.Println(schema.WriteJSON(&again, s), strings.Contains(again.String(), `"unique": true`))

	_, err = schema.ReadJSON(strings.NewReader(`{"collections": [{"name": "goods", "indexes": [{"key": {"price": 1}, "uniq": true}]}]}`))
	fmt.Println(err)
	// Output:
	// goods true
	// <nil> true
	// schema: collection "goods": there is no option "uniq"
}

func ExampleValidator() {
	type Account struct {
		Name   string   `bson:"name"`
		Kind   string   `bson:"kind"`
		Level  int8     `bson:"level"`
		Tags   []string `bson:"tags,omitempty"`
		Closed *bool    `bson:"closed"`
	}
	name := field.Of(func(a *Account) *string { return &a.Name })
	kind := field.Of(func(a *Account) *string { return &a.Kind })
	level := field.Of(func(a *Account) *int8 { return &a.Level })
	tags := field.Of(func(a *Account) *[]string { return &a.Tags })
	closed := field.Of(func(a *Account) *bool { return a.Closed })

	v := schema.Validator(
		schema.Length(name, 1, 40), schema.Pattern(name, "^[a-z]+$"), schema.Enum(kind, "person", "robot"),
		schema.Min(level, 0), schema.Max(level, 9), schema.Items(tags, 1, 5),
		schema.Required[Account](tags), schema.Optional[Account](closed),
		schema.Also[Account](name, bson.D{{Key: "description", Value: "the name to log in with"}}),
		schema.Closed[Account](), schema.EncodedWith[Account](bson.Options{}),
	)
	text, err := bson.MarshalExtJSONIndent(v, false, "", "  ")
	fmt.Println(string(text), err)
	// Output:
	// {
	//   "$jsonSchema": {
	//     "bsonType": "object",
	//     "required": [
	//       "name",
	//       "kind",
	//       "level",
	//       "tags"
	//     ],
	//     "properties": {
	//       "_id": {},
	//       "name": {
	//         "bsonType": "string",
	//         "minLength": 1,
	//         "maxLength": 40,
	//         "pattern": "^[a-z]+$",
	//         "description": "the name to log in with"
	//       },
	//       "kind": {
	//         "bsonType": "string",
	//         "enum": [
	//           "person",
	//           "robot"
	//         ]
	//       },
	//       "level": {
	//         "bsonType": "int",
	//         "minimum": 0,
	//         "maximum": 9
	//       },
	//       "tags": {
	//         "bsonType": "array",
	//         "minItems": 1,
	//         "maxItems": 5,
	//         "items": {
	//           "bsonType": "string"
	//         }
	//       },
	//       "closed": {
	//         "bsonType": [
	//           "bool",
	//           "null"
	//         ]
	//       }
	//     },
	//     "additionalProperties": false
	//   }
	// } <nil>
}
