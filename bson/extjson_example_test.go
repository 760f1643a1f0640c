package bson_test

import (
	"bytes"
	"fmt"
	"strings"

	"allium/bson"
)

func ExampleMarshalExtJSON() {
	doc := bson.D{{Key: "_id", Value: bson.NilObjectID}, {Key: "n", Value: int32(1)}, {Key: "price", Value: 19.5}}
	canonical, _ := bson.MarshalExtJSON(doc, true)
	relaxed, _ := bson.MarshalExtJSON(doc, false)
	fmt.Printf("%s\n%s\n", canonical, relaxed)
	// Output:
	// {"_id":{"$oid":"000000000000000000000000"},"n":{"$numberInt":"1"},"price":{"$numberDouble":"19.5"}}
	// {"_id":{"$oid":"000000000000000000000000"},"n":1,"price":19.5}
}

func ExampleUnmarshalExtJSON() {
	var user struct {
		ID   bson.ObjectID `bson:"_id"`
		Name string        `bson:"name"`
	}
	err := bson.UnmarshalExtJSON([]byte(`{"_id": {"$oid": "57e193d7a9cc81b4027498b5"}, "name": "Ada"}`), &user)
	fmt.Println(user.ID, user.Name, err)
	// Output: ObjectID("57e193d7a9cc81b4027498b5") Ada <nil>
}

func ExampleExtJSONDecoder() {
	file := strings.NewReader(`
		{"name": "Ada", "born": {"$date": "1815-12-10T00:00:00Z"}}
		{"name": "Grace", "born": {"$date": "1906-12-09T00:00:00Z"}}`)
	for doc, err := range bson.NewExtJSONDecoder(file).All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		name, _ := doc.Lookup("name").StringValue()
		born, _ := doc.Lookup("born").DateTime()
		fmt.Println(name, born.Time().Year())
	}
	// Output:
	// Ada 1815
	// Grace 1906
}

func ExampleExtJSONEncoder() {
	var file bytes.Buffer
	e := bson.NewExtJSONEncoder(&file)
	for _, name := range []string{"Ada", "Grace"} {
		if err := e.Encode(bson.D{{Key: "name", Value: name}}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Print(file.String())
	// Output:
	// {"name":"Ada"}
	// {"name":"Grace"}
}

func ExampleParseExtJSON() {
	doc, err := bson.ParseExtJSON([]byte(`{"_id": {"$oid": "57e193d7a9cc81b4027498b5"}, "n": 1, "big": {"$numberLong": "1"}}`))
	fmt.Println(doc, err)
	fmt.Println(doc.Lookup("n").Type, doc.Lookup("big").Type)

	_, err = bson.ParseExtJSON([]byte(`{"_id": {"$oid": "57e1"}}`))
	fmt.Println(err)
	// Output:
	// {"_id":{"$oid":"57e193d7a9cc81b4027498b5"},"n":1,"big":1} <nil>
	// 32-bit integer 64-bit integer
	// bson: extended JSON: byte 17: $oid of "57e1"
}

func ExampleAppendExtJSON() {
	start, doc := bson.BeginDocument(nil)
	doc = bson.AppendInt32(doc, "n", 1)
	doc = bson.AppendDateTime(doc, "at", 0)
	doc = bson.EndDocument(doc, start)

	canonical, _ := bson.AppendExtJSON(nil, doc, true)
	relaxed, _ := bson.AppendExtJSON(nil, doc, false)
	fmt.Printf("%s\n%s\n", canonical, relaxed)
	// Output:
	// {"n":{"$numberInt":"1"},"at":{"$date":{"$numberLong":"0"}}}
	// {"n":1,"at":{"$date":"1970-01-01T00:00:00Z"}}
}

// Single values have an Extended JSON of their own, too.
func ExampleParseExtJSONValue() {
	v, err := bson.ParseExtJSONValue([]byte(`{"$numberLong": "5"}`))
	fmt.Println(v.Type, err)
	text, err := bson.AppendExtJSONValue(nil, v, true)
	fmt.Printf("%s %v\n", text, err)
	// Output:
	// 64-bit integer <nil>
	// {"$numberLong":"5"} <nil>
}

func ExampleExtJSONDecoder_Decode() {
	d := bson.NewExtJSONDecoder(strings.NewReader(`{"name": "Ada"} {"name": "Grace"}`))
	var user struct {
		Name string `bson:"name"`
	}
	fmt.Println(d.Decode(&user), user.Name)
	next, err := d.Next()
	fmt.Println(next, err)
	// Output:
	// <nil> Ada
	// {"name":"Grace"} <nil>
}

func ExampleOptions_MarshalExtJSON() {
	o := bson.Options{JSONTags: true}
	type user struct {
		Name string `json:"name"`
	}
	text, err := o.MarshalExtJSON(user{"Ada"}, false)
	fmt.Printf("%s %v\n", text, err)
	var back user
	fmt.Println(o.UnmarshalExtJSON(text, &back), back.Name)
	// Output:
	// {"name":"Ada"} <nil>
	// <nil> Ada
}
