package bson_test

import (
	"fmt"
	"slices"
	"time"

	"allium/bson"
)

func ExampleEqual() {
	a, _ := bson.Marshal(bson.D{{Key: "n", Value: int32(1)}})
	b, _ := bson.Marshal(bson.D{{Key: "n", Value: 1.0}})
	fmt.Println(bson.Equal(a, a), bson.Equal(a, b))
	// Equal is about the same bytes, Compare about the same values.
	fmt.Println(bson.Compare(bson.Raw(a).Lookup("n"), bson.Raw(b).Lookup("n")))
	// Output:
	// true false
	// 0
}

func ExampleDecimal128_Compare() {
	var prices []bson.Decimal128
	for _, s := range []string{"10", "9.90", "9.9", "-Infinity"} {
		price, err := bson.ParseDecimal128(s)
		if err != nil {
			fmt.Println(err)
		}
		prices = append(prices, price)
	}
	slices.SortStableFunc(prices, bson.Decimal128.Compare)
	fmt.Println(prices)
	// Output: [-Infinity 9.90 9.9 10]
}

func ExampleParseUUID() {
	id, err := bson.ParseUUID("00112233-4455-6677-8899-AABBCCDDEEFF")
	fmt.Println(id, err)
	b := id.Binary()
	fmt.Println(b.Subtype == bson.BinaryUUID)
	// Output:
	// 00112233-4455-6677-8899-aabbccddeeff <nil>
	// true
}

func ExampleUUIDRepresentation() {
	// A collection that an old Java application writes to.
	java := bson.Options{UUID: bson.UUIDJavaLegacy}
	id, _ := bson.ParseUUID("00112233-4455-6677-8899-aabbccddeeff")
	doc, err := java.Marshal(bson.M{"_id": id})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(bson.Raw(doc))

	var back struct {
		ID bson.UUID `bson:"_id"`
	}
	err = java.Unmarshal(doc, &back)
	fmt.Println(back.ID, err)
	// Output:
	// {"_id":{"$binary":{"base64":"d2ZVRDMiEQD/7t3Mu6qZiA==","subType":"03"}}}
	// 00112233-4455-6677-8899-aabbccddeeff <nil>
}

func ExampleNewRegex() {
	filter := bson.M{"name": bson.NewRegex("^a", "si")}
	fmt.Println(filter)
	// Output: {"name":{"$regularExpression":{"pattern":"^a","options":"is"}}}
}

func ExampleNewDateTime() {
	when := bson.NewDateTime(time.Date(2026, 8, 1, 12, 0, 0, 250_999_999, time.UTC))
	fmt.Println(when, when.Time().Year())
	// Output: 2026-08-01T12:00:00.25Z 2026
}

func ExampleD_Get() {
	doc := bson.D{{Key: "name", Value: "Ada"}}
	name, ok := doc.Get("name")
	fmt.Println(name, ok)
	_, ok = doc.Get("age")
	fmt.Println(ok)
	doc.Set("age", 36)
	fmt.Println(doc)
	// Output:
	// Ada true
	// false
	// {"name":"Ada","age":36}
}

func ExampleM_D() {
	fmt.Println(bson.M{"b": 2, "a": 1}.D())
	// Output: {"a":1,"b":2}
}

func ExampleMarshalExtJSONIndent() {
	text, err := bson.MarshalExtJSONIndent(bson.D{{Key: "name", Value: "Ada"}, {Key: "tags", Value: bson.A{"x"}}}, false, "", "  ")
	fmt.Printf("%s %v\n", text, err)
	// Output:
	// {
	//   "name": "Ada",
	//   "tags": [
	//     "x"
	//   ]
	// } <nil>
}

func ExampleParseLegacyExtJSON() {
	doc, err := bson.ParseLegacyExtJSON([]byte(`{"at": {"$date": 1356351330501}, "r": {"$regex": "^a", "$options": "i"}}`))
	fmt.Println(doc, err)
	// Output: {"at":{"$date":"2012-12-24T12:15:30.501Z"},"r":{"$regularExpression":{"pattern":"^a","options":"i"}}} <nil>
}

func ExampleNewBitVector() {
	v := bson.NewBitVector([]bool{true, true, false, true})
	fmt.Println(v, v.Len(), v.Padding())
	// Output: PACKED_BIT[1101] 4 4
}

func ExampleDBRef() {
	type post struct {
		Title  string
		Author bson.DBRef
	}
	doc, err := bson.Convert[bson.D](post{"Onions", bson.DBRef{Collection: "users", ID: 7}})
	fmt.Println(doc, err)
	// Output: {"title":"Onions","author":{"$ref":"users","$id":7}} <nil>
}
