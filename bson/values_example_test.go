package bson_test

import (
	"fmt"
	"math/big"
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
	fmt.Println(bson.DBRef{Collection: "users", ID: 7, Database: "app"}.D())
	// Output:
	// {"title":"Onions","author":{"$ref":"users","$id":7}} <nil>
	// {"$ref":"users","$id":7,"$db":"app"}
}

func ExampleCompare() {
	one := bson.RawValue{Type: bson.TypeInt32, Value: bson.AppendInt32Value(nil, 1)}
	oneAndAHalf := bson.RawValue{Type: bson.TypeDouble, Value: bson.AppendDoubleValue(nil, 1.5)}
	text := bson.RawValue{Type: bson.TypeString, Value: bson.AppendStringValue(nil, "1")}
	fmt.Println(bson.Compare(one, oneAndAHalf), bson.Compare(text, oneAndAHalf))
	// Output: -1 1
}

func ExampleParseDecimal128() {
	price, err := bson.ParseDecimal128("19.90")
	fmt.Println(price, err)
	_, err = bson.ParseDecimal128("0.3333333333333333333333333333333333333")
	fmt.Println(err)
	// Output:
	// 19.90 <nil>
	// bson: parse decimal "0.3333333333333333333333333333333333333": more than 34 significant digits
}

func ExampleDecimal128_BigInt() {
	price, _ := bson.ParseDecimal128("19.90")
	coefficient, exponent, _ := price.BigInt()
	double, _ := bson.NewDecimal128FromBigInt(coefficient.Mul(coefficient, big.NewInt(2)), exponent)
	fmt.Println(double)
	// Output: 39.80
}

func ExampleParseObjectID() {
	id, err := bson.ParseObjectID("507f1f77bcf86cd799439011")
	fmt.Println(id, id.Timestamp(), err)
	// Output: ObjectID("507f1f77bcf86cd799439011") 2012-10-17 21:13:27 +0000 UTC <nil>
}

func ExampleMinObjectID() {
	// Everything that was inserted since 2026, without a field for the date.
	since := bson.MinObjectID(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: since}}}}
	fmt.Println(filter[0].Value.(bson.D)[0].Value)
	// Output: ObjectID("6955b9000000000000000000")
}

func ExampleConvert() {
	type user struct {
		Name string `bson:"name"`
		Age  int    `bson:"age"`
	}
	doc, err := bson.Convert[bson.D](user{"Ada", 36})
	fmt.Println(doc, err)
	back, err := bson.Convert[user](doc)
	fmt.Println(back, err)
	// Output:
	// {"name":"Ada","age":36} <nil>
	// {Ada 36} <nil>
}

func ExampleD_Lookup() {
	doc := bson.D{{Key: "address", Value: bson.D{{Key: "lines", Value: bson.A{"1 High Street", "London"}}}}}
	city, ok := doc.Lookup("address", "lines", "1")
	fmt.Println(city, ok)
	// Output: London true
}

// A D keeps its order, and can be changed like a map.
func ExampleD() {
	doc := bson.D{{Key: "a", Value: 1}, {Key: "b", Value: bson.M{"c": "deep"}}}
	doc.Set("a", 2)
	for key, v := range doc.All() {
		fmt.Println(key, v)
	}
	fmt.Println(doc.Delete("a"), len(doc))
	deep, ok := doc.M().Lookup("b", "c")
	fmt.Println(deep, ok)
	// Output:
	// a 2
	// b {"c":"deep"}
	// true 1
	// deep true
}

func ExampleNewObjectID() {
	a, b := bson.NewObjectID(), bson.NewObjectID()
	fmt.Println(a.Compare(b), len(a.Hex())) // one that is made later is greater
	old := bson.NewObjectIDFromTime(time.Unix(1, 0))
	fmt.Println(old.Timestamp().Unix(), old.Compare(a))
	// Output:
	// -1 24
	// 1 -1
}

func ExampleNewUUID() {
	id := bson.NewUUID()
	back, err := id.Binary().UUID()
	fmt.Println(back == id, err, id.Compare(back))

	legacy, err := bson.ParseUUIDRepresentation("javaLegacy")
	subtype, ok := legacy.Subtype()
	fmt.Println(err, subtype, ok)
	// Output:
	// true <nil> 0
	// <nil> 3 true
}

func ExampleTimestamp() {
	a, b := bson.Timestamp{T: 60, I: 1}, bson.Timestamp{T: 60, I: 2}
	fmt.Println(a.Before(b), a.After(b), a.Compare(b), a.Time().UTC())
	fmt.Println(bson.NewDateTime(a.Time()).Compare(bson.NewDateTime(b.Time()))) // the counter is no part of a date
	// Output:
	// true false -1 1970-01-01 00:01:00 +0000 UTC
	// 0
}

func ExampleDecimal128() {
	d := bson.NewDecimal128FromInt64(-42)
	n, ok := d.Int64()
	hi, lo := d.Bits()
	fmt.Println(d, n, ok, d.Float64(), d.Sign(), bson.NewDecimal128(hi, lo) == d)
	inf, _ := bson.ParseDecimal128("-Infinity")
	nan, _ := bson.ParseDecimal128("NaN")
	fmt.Println(inf.IsInf(-1), nan.IsNaN())
	// Output:
	// -42 -42 true -42 -1 true
	// true true
}

func ExampleVector() {
	v := bson.NewInt8Vector([]int8{1, -2})
	back, err := v.Binary().Vector()
	numbers, ok := back.Int8()
	fmt.Println(back.Type(), numbers, ok, back.Equal(v), err)

	bits, err := bson.NewPackedBitVector([]byte{0b1010_0000}, 4)
	list, _ := bits.Bits()
	fmt.Println(list, bits.Len(), err)
	// Output:
	// INT8 [1 -2] true true <nil>
	// [true false true false] 4 <nil>
}

// What queryable encryption stores can be told apart without the key.
func ExampleEncryptedValue() {
	stored := bson.EncryptedValue{Algorithm: bson.EncryptedDeterministic, OriginalType: bson.TypeString, Ciphertext: []byte("...")}.Binary()
	e, err := stored.Encrypted()
	fmt.Println(stored.Subtype, e.OriginalType, len(e.Ciphertext), err)
	// Output: 6 string 3 <nil>
}
