package bson_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"allium/bson"
)

// A document can be built without any Go value that stands for it: each function appends an
// element, Begin and End put the length in.
func ExampleBeginDocument() {
	start, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "name", "Ada")
	doc = bson.AppendBool(doc, "admin", true)
	doc = bson.AppendInt64(doc, "big", 1<<40)
	doc = bson.AppendDouble(doc, "half", 0.5)
	doc = bson.AppendNull(doc, "nothing")
	doc = bson.AppendObjectID(doc, "id", bson.NilObjectID)
	doc = bson.AppendBinary(doc, "bytes", bson.BinaryGeneric, []byte{1, 2})
	doc = bson.AppendTimestamp(doc, "at", bson.Timestamp{T: 1, I: 2})
	doc = bson.AppendDecimal128(doc, "price", bson.NewDecimal128FromInt64(20))
	doc = bson.AppendRegex(doc, "like", bson.NewRegex("^a", "i"))

	address, doc := bson.BeginDocumentElement(doc, "address")
	doc = bson.AppendString(doc, "city", "London")
	doc = bson.EndDocument(doc, address)

	list, doc := bson.BeginArrayElement(doc, "numbers")
	for i, n := range []int32{7, 8} {
		doc = bson.AppendInt32Value(bson.AppendIndexHeader(doc, bson.TypeInt32, i), n)
	}
	doc = bson.EndDocument(doc, list)
	doc = bson.EndDocument(doc, start)
	fmt.Println(bson.Raw(doc))
	// Output: {"name":"Ada","admin":true,"big":1099511627776,"half":0.5,"nothing":null,"id":{"$oid":"000000000000000000000000"},"bytes":{"$binary":{"base64":"AQI=","subType":"00"}},"at":{"$timestamp":{"t":1,"i":2}},"price":{"$numberDecimal":"20"},"like":{"$regularExpression":{"pattern":"^a","options":"i"}},"address":{"city":"London"},"numbers":[7,8]}
}

// Encoded documents, arrays and values go into other documents as they are.
func ExampleAppendDocument() {
	inner, _ := bson.Marshal(bson.D{{Key: "n", Value: int32(1)}})
	list, _ := bson.MarshalValue(bson.A{int32(1), "two"})
	numbers, _ := list.Array()

	start, doc := bson.BeginDocument(nil)
	doc = bson.AppendDocument(doc, "inner", inner)
	doc = bson.AppendArray(doc, "list", numbers)
	doc = bson.AppendRawValue(doc, "n", bson.Raw(inner).Lookup("n"))
	doc, err := bson.Options{MinSize: true}.AppendValue(doc, "any", int64(5))
	fmt.Println(bson.Raw(bson.EndDocument(doc, start)), err)

	many, _ := bson.MarshalAppend([]byte{}, bson.M{"n": 1})
	many, err = bson.Options{MinSize: true}.MarshalAppend(many, bson.M{"n": 2})
	first, rest, _ := bson.ReadDocument(many)
	fmt.Println(first, bson.Raw(rest), err)
	// Output:
	// {"inner":{"n":1},"list":[1,"two"],"n":1,"any":5} <nil>
	// {"n":1} {"n":2} <nil>
}

// Values have a form of their own, without a key: codecs append and get them.
func ExampleAppendHeader() {
	start, doc := bson.BeginDocument(nil)
	doc = bson.AppendBoolValue(bson.AppendHeader(doc, bson.TypeBoolean, "a"), true)
	doc = bson.AppendInt64Value(bson.AppendHeader(doc, bson.TypeInt64, "b"), 5)
	doc = bson.AppendTimestampValue(bson.AppendHeader(doc, bson.TypeTimestamp, "c"), bson.Timestamp{T: 1})
	doc = bson.AppendBinaryValue(bson.AppendHeader(doc, bson.TypeBinary, "d"), bson.BinaryGeneric, nil)
	doc = bson.AppendDecimal128Value(bson.AppendHeader(doc, bson.TypeDecimal128, "e"), bson.NewDecimal128FromInt64(1))
	doc = bson.EndDocument(doc, start)
	for key, v := range bson.Raw(doc).All() {
		fmt.Println(key, v.Type, v.Type.IsValid(), v)
	}
	// Output:
	// a boolean true true
	// b 64-bit integer true 5
	// c timestamp true {"$timestamp":{"t":1,"i":0}}
	// d binary true {"$binary":{"base64":"","subType":"00"}}
	// e 128-bit decimal true {"$numberDecimal":"1"}
}

// All does the same with less to write; ReadElement is for those who need what is left.
func ExampleReadElement() {
	doc, _ := bson.Marshal(bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: "x"}})
	for rest := bson.Raw(doc).Elements(); len(rest) > 0; {
		var key string
		var v bson.RawValue
		var err error
		if key, v, rest, err = bson.ReadElement(rest); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(key, v, len(rest), "bytes are left")
	}
	// Output:
	// a 1 9 bytes are left
	// b "x" 0 bytes are left
}

// Bytes from elsewhere are checked once, and can be read without a further look then.
func ExampleRaw_Validate() {
	doc, _ := bson.Marshal(bson.D{{Key: "list", Value: bson.A{int32(1), int32(2)}}})
	fmt.Println(bson.Raw(doc).Validate(), bson.Raw(doc).ValidateDepth(1) != nil, bson.Raw(doc).IsEmpty())
	list, _ := bson.Raw(doc).Lookup("list").Array()
	for v := range list.Values() {
		fmt.Println(v)
	}
	fmt.Println(bson.Raw(doc[:10]).Validate() != nil)
	// Output:
	// <nil> true false
	// 1
	// 2
	// true
}

// Each accessor reports whether the value is of its type; AsInt64 and AsBool take what can be meant
// by it.
func ExampleRawValue() {
	doc, _ := bson.Marshal(bson.D{{Key: "n", Value: int32(5)}, {Key: "s", Value: "text"}, {Key: "on", Value: true},
		{Key: "id", Value: bson.NilObjectID}, {Key: "x", Value: bson.NewRegex("^a", "")}, {Key: "price", Value: bson.NewDecimal128FromInt64(3)},
		{Key: "at", Value: bson.Timestamp{T: 5}}, {Key: "bin", Value: []byte("ab")}})
	at := bson.Raw(doc).Lookup
	n, ok := at("n").Int32()
	fmt.Println(n, ok, at("n").IsNumber(), at("n").Equal(at("n")), at("n").AsBool())
	_, ok = at("n").Int64()
	wide, _ := at("n").AsInt64()
	fmt.Println(ok, wide)
	text, _ := at("s").StringBytes() // does not copy
	on, _ := at("on").Boolean()
	id, _ := at("id").ObjectID()
	regex, _ := at("x").Regex()
	price, _ := at("price").Decimal128()
	ts, _ := at("at").Timestamp()
	bin, _ := at("bin").Binary()
	fmt.Println(string(text), on, id.Hex(), regex.Pattern, price, ts.T, string(bin.Data), bin.Equal(bin))
	var into int
	fmt.Println(at("n").Unmarshal(&into), into)
	// Output:
	// 5 true true true true
	// false 5
	// text true 000000000000000000000000 ^a 3 5 ab true
	// <nil> 5
}

// Types that are not used any more are read all the same.
func ExampleRawValue_Symbol() {
	doc, _ := bson.ParseExtJSON([]byte(`{"sym": {"$symbol": "s"}, "js": {"$code": "f()"}, "scoped": {"$code": "g()", "$scope": {"a": 1}},
		"ptr": {"$dbPointer": {"$ref": "db.c", "$id": {"$oid": "000000000000000000000000"}}}}`))
	symbol, _ := doc.Lookup("sym").Symbol()
	js, _ := doc.Lookup("js").JavaScript()
	code, scope, _ := doc.Lookup("scoped").CodeWithScope()
	pointer, _ := doc.Lookup("ptr").DBPointer()
	fmt.Println(symbol, js, code, scope, pointer.DB)
	// Output: s f() g() {"a":1} db.c
}

// Documents that stand one after another, as in a file of mongodump.
func ExampleDecoder() {
	var file bytes.Buffer
	e := bson.NewEncoder(&file)
	for n := range 3 {
		if err := e.Encode(bson.M{"n": n}); err != nil {
			fmt.Println(err)
		}
	}
	d := bson.NewDecoder(&file)
	d.SetMaxSize(16 << 20)
	var first struct{ N int }
	fmt.Println(d.Decode(&first), first.N)
	for {
		doc, err := d.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		fmt.Println(doc, err)
	}
	// Output:
	// <nil> 0
	// {"n":1} <nil>
	// {"n":2} <nil>
}

// Streams with options.
func ExampleOptions_NewDecoder() {
	o := bson.Options{MinSize: true}
	var file bytes.Buffer
	if err := o.NewEncoder(&file).Encode(bson.M{"n": int64(1)}); err != nil {
		fmt.Println(err)
	}
	var doc bson.Raw
	err := o.NewDecoder(&file).Decode(&doc)
	fmt.Println(doc.Lookup("n").Type, err)

	v, err := o.MarshalValue(int64(1))
	var n any
	fmt.Println(v.Type, err, o.UnmarshalValue(v, &n), n)
	// Output:
	// 32-bit integer <nil>
	// 32-bit integer <nil> <nil> 1
}
