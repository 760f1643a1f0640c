package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsonrw/bsonrwtest"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/x/bsonx/bsoncore"
)

// testReader prints what each method of the reader and writer for tests does: with what it is to
// return, with errors at each place, and in the tests of codecs that it is for.
func testReader() {
	planned := errors.New("planned")
	for i := range 56 {
		say.Line(fmt.Sprint("Invoked ", i), bsonrwtest.Invoked(i))
	}
	scope := bsoncore.NewDocumentBuilder().AppendInt32("x", 1).Build()
	returns := []sample{
		{"nothing", nil}, {"string", "abc"}, {"int32", int32(7)}, {"int64", int64(8)}, {"int", 9}, {"float64", 1.5},
		{"bool", true}, {"bytes", []byte{1, 2}}, {"id", primitive.ObjectID{1}},
		{"decimal", primitive.NewDecimal128(1, 2)}, {"timestamp", primitive.Timestamp{T: 1, I: 2}},
		{"regex", primitive.Regex{Pattern: "p", Options: "i"}},
		{"reader", bsonrw.NewBSONDocumentReader(scope)},
		{"core string", coreValue(bsontype.String, bsoncore.AppendString(nil, "s"))},
		{"core javascript", coreValue(bsontype.JavaScript, bsoncore.AppendJavaScript(nil, "j"))},
		{"core symbol", coreValue(bsontype.Symbol, bsoncore.AppendSymbol(nil, "y"))},
		{"core binary", coreValue(bsontype.Binary, bsoncore.AppendBinary(nil, 4, []byte{3}))},
		{"core pointer", coreValue(bsontype.DBPointer, bsoncore.AppendDBPointer(nil, "n", primitive.ObjectID{2}))},
		{"core regex", coreValue(bsontype.Regex, bsoncore.AppendRegex(nil, "p", "o"))},
		{"core timestamp", coreValue(bsontype.Timestamp, bsoncore.AppendTimestamp(nil, 5, 6))},
		{"core scope", coreValue(bsontype.CodeWithScope, bsoncore.AppendCodeWithScope(nil, "c", scope))},
		{"core int32", coreValue(bsontype.Int32, bsoncore.AppendInt32(nil, 5))},
		{"core broken string", coreValue(bsontype.String, []byte{1})},
		{"core broken binary", coreValue(bsontype.Binary, []byte{1})},
		{"core broken regex", coreValue(bsontype.Regex, []byte{1})},
	}
	typ := reflect.TypeFor[*bsonrwtest.ValueReaderWriter]()
	for m := range typ.NumMethod() {
		name := typ.Method(m).Name
		for _, ret := range returns {
			say.Line("test reader "+name+" of "+ret.name, invoke(name, bsonrwtest.ValueReaderWriter{Return: ret.v})...)
		}
		// Of many calls, each may be the one behind which the error comes.
		for after := range bsonrwtest.Skip + 1 {
			vrw := bsonrwtest.ValueReaderWriter{Err: planned, ErrAfter: after, Return: "abc", BSONType: bsontype.String}
			said := invoke(name, vrw)
			if slices.ContainsFunc(said, func(v any) bool { return v == planned }) || after.String() == name {
				say.Line(fmt.Sprint("test reader ", name, " with an error after ", after), said...)
			}
		}
	}
	for _, s := range samples {
		vw := &bsonrwtest.ValueReaderWriter{}
		enc, err := bson.NewEncoder(vw)
		if err == nil {
			err = enc.Encode(bson.D{{Key: "a", Value: s.v}})
		}
		say.Line("test writer with "+s.name, err, vw.Invoked)
	}
}

func coreValue(t bsontype.Type, data []byte) bsoncore.Value {
	return bsoncore.Value{Type: t, Data: data}
}

// invoke calls a method with zero arguments, and says what it returns. A test fails outside of go
// test by a panic.
func invoke(name string, vrw bsonrwtest.ValueReaderWriter) (said []any) {
	defer func() {
		if r := recover(); r != nil {
			said = append(said, "panic", fmt.Sprintf("%T", r))
		}
		said = append(said, vrw.Invoked)
	}()
	vrw.T = new(testing.T)
	method := reflect.ValueOf(&vrw).MethodByName(name)
	in := make([]reflect.Value, method.Type().NumIn())
	for i := range in {
		in[i] = reflect.Zero(method.Type().In(i))
	}
	for _, out := range method.Call(in) {
		switch v := out.Interface().(type) {
		case *bsonrwtest.ValueReaderWriter:
			said = append(said, v == &vrw)
		default:
			said = append(said, v)
		}
	}
	return said
}
