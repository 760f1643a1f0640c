package main

import (
	"bytes"
	"fmt"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// raws prints what the types of encoded BSON say.
func raws() {
	doc := bsoncore.NewDocumentBuilder().AppendInt32("a", 1).AppendString("s", "x\"<é\n").AppendDouble("d",
		1.5).AppendDouble("inf", math.Inf(-1)).
		StartDocument("sub").AppendBoolean("b", true).FinishDocument().
		AppendArray("arr", bsoncore.NewArrayBuilder().AppendInt64(5).StartArray().AppendNull().FinishArray().Build()).
		AppendJavaScript("js", "x\"").AppendSymbol("sy", "q").AppendDateTime("dt", 5).AppendRegex("re", "a\"/",
		"mi").AppendDecimal128("dec", 0x3040000000000000, 7).
		AppendUndefined("u").AppendMinKey("mi").AppendMaxKey("ma").AppendTimestamp("t", 1, 2).AppendBinary("bin", 2,
		[]byte{1}).AppendObjectID("o", [12]byte{1}).
		AppendDBPointer("p", "n\"s", [12]byte{2}).AppendCodeWithScope("cws", "c",
		bsoncore.NewDocumentBuilder().Build()).Build()
	say("core", doc, doc.DebugString(), len(doc))
	for _, n := range []int{-1, 0, 1, 5, 9, 20, 60, 10000} {
		s, cut := doc.StringN(n)
		say(fmt.Sprint("core cut ", n), s, cut)
	}
	raw := bson.Raw(doc)
	elems, err := raw.Elements()
	say("elements", len(elems), err)
	for _, e := range elems {
		v := e.Value()
		say("element "+e.Key(), e, e.DebugString(), v, v.DebugString(), v.Type, v.Validate(), v.IsNumber())
		n, ok := v.AsInt64OK()
		f, ok2 := v.AsFloat64OK()
		say("number "+e.Key(), n, ok, f, ok2)
		for name, get := range map[string]func() any{
			"Int32": func() any {
				return v.Int32()
			}, "StringValue": func() any { return v.StringValue() }, "Document": func() any { return v.Document() },
			"Time": func() any {
				return v.Time().UTC()
			}, "Array": func() any { return v.Array() }, "Double": func() any { return v.Double() },
		} {
			try(name+" of "+e.Key(), get)
		}
	}
	for _, path := range [][]string{nil, {"zz"}, {"a"}, {"sub", "b"}, {"arr", "0"}, {"arr", "7"}, {"a", "x"},
		{"arr", "1", "0"}} {
		v, err := raw.LookupErr(path...)
		say(fmt.Sprint("look up ", path), v, err)
	}
	try("index", func() any { return raw.Index(99) })
	try("array index", func() any { return raw.Lookup("arr").Array().Index(99) })
	for _, b := range [][]byte{{}, {5}, {5, 0, 0, 0}, {5, 0, 0, 0, 1}, {9, 0, 0, 0, 1, 2, 3}, {3, 0, 0, 0},
		{255, 255, 255, 255, 0}, {8, 0, 0, 0, 16, 'a', 0, 0}, {9, 0, 0, 0, 2, 'a', 'b', 'c', 0}} {
		d, a := bsoncore.Document(b), bsoncore.Array(b)
		say(fmt.Sprint("core of ", b), d.Validate(), a.Validate(), d, a, d.DebugString(), a.DebugString())
		_, err := bsoncore.NewDocumentFromReader(bytes.NewReader(b))
		say(fmt.Sprint("core reads ", b), err)
		e, rest, ok := bsoncore.ReadElement(b)
		say(fmt.Sprint("core element ", b), []byte(e), rest, ok)
	}
	for i, v := range []bsoncore.Value{{}, {Type: bsoncore.TypeInt32},
		{Type: bsoncore.TypeInt32, Data: []byte{1, 0, 0, 0, 9}}, {Type: bsoncore.TypeString,
			Data: []byte{2, 0, 0, 0, 'a'}}, {Type: bsoncore.TypeBoolean, Data: []byte{2}}} {
		say(fmt.Sprint("core value ", i), v, v.DebugString(), v.Validate())
		try(fmt.Sprint("core int32 ", i), func() any { return v.AsInt32() })
		try(fmt.Sprint("core string ", i), func() any { return v.StringValue() })
	}
	it := bsoncore.Iterator{List: bsoncore.BuildArray(nil, bsoncore.BuildDocumentValue(),
		bsoncore.BuildDocumentValue())}
	docs, err := it.Documents()
	say("iterator", it.Count(), it.Empty(), len(docs), err)
	for i := range 3 {
		v, err := it.Next()
		say(fmt.Sprint("next ", i), v, err)
	}
	try("regex with NUL", func() any { return bsoncore.AppendRegex(nil, "a\x00b", "") })
	try("key with NUL", func() any { return bsoncore.AppendKey(nil, "a\x00b") })
	_, err = bson.ReadDocument(bytes.NewReader([]byte{1, 2}))
	say("read document", err)
	_, err = bson.ReadDocument(nil)
	say("read nil", err)
}
