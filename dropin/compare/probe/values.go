package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/tag"
)

// A sample is a value with a name.
type sample struct {
	name string
	v    any
}

// samples has a value of each BSON type.
var samples = []sample{
	{"string", "abc"}, {"int32", int32(7)}, {"int64", int64(1) << 40}, {"double", 1.5}, {"bool", true},
	{"oid", bson.ObjectID{1}},
	{"date", bson.DateTime(5)}, {"doc", bson.D{{Key: "x", Value: 1}}}, {"arr", bson.A{1, 2, 3}},
	{"bin4", bson.Binary{Subtype: 4, Data: []byte{1, 2}}},
	{"bin0", bson.Binary{Data: []byte{1, 2}}}, {"null", nil}, {"ts", bson.Timestamp{T: 1, I: 2}},
	{"dec", bson.NewDecimal128(0x3040000000000000, 5)},
	{"re", bson.Regex{Pattern: "a", Options: "i"}}, {"js", bson.JavaScript("x")}, {"sy", bson.Symbol("s")},
	{"min", bson.MinKey{}}, {"max", bson.MaxKey{}},
	{"und", bson.Undefined{}}, {"cws", bson.CodeWithScope{Code: "c", Scope: bson.D{}}},
	{"dbp", bson.DBPointer{DB: "a"}}, {"nul", bson.Null{}},
}

// texts prints the JSON and the texts of a value of each exported type.
func texts() {
	raw, _ := bson.Marshal(bson.D{{Key: "a", Value: 1}, {Key: "b", Value: bson.A{"x"}}})
	more := []sample{
		{"E", bson.E{Key: "a", Value: 1}}, {"D", bson.D{{Key: "a", Value: 1},
			{Key: "b", Value: time.UnixMilli(0).UTC()}}}, {"M", bson.M{"a": 1}},
		{"A", bson.A{1, bson.D{}, nil}}, {"D nil", bson.D(nil)}, {"M nil", bson.M(nil)}, {"A nil", bson.A(nil)},
		{"Raw", bson.Raw(raw)}, {"Raw nil", bson.Raw(nil)},
		{"RawValue", bson.Raw(raw).Lookup("b")}, {"RawValue zero", bson.RawValue{}},
		{"RawArray", bson.Raw(raw).Lookup("b").Array()}, {"RawElement", bson.Raw(raw).Index(0)},
		{"Type", bson.TypeString}, {"Type 0", bson.Type(0)}, {"Type 0x55", bson.Type(0x55)},
		{"Vector", bson.NewVector([]int8{1})},
		{"Regex zero", bson.Regex{}}, {"CodeWithScope", bson.CodeWithScope{Code: "c", Scope: 5}},
		{"ObjectID zero", bson.NilObjectID}, {"Decimal128 zero", bson.Decimal128{}},
	}
	for _, s := range append(more, samples...) {
		text, err := json.Marshal(s.v)
		say("json of "+s.name, string(text), err)
		say("%v of "+s.name, fmt.Sprintf("%v", s.v))
		say("%+v of "+s.name, fmt.Sprintf("%+v", s.v))
		say("%T of "+s.name, fmt.Sprintf("%T", s.v))
		text, err = json.Marshal(map[string]any{"v": []any{s.v}, "p": &s.v})
		say("json with "+s.name, string(text), err)
	}
	var j struct {
		D  bson.DateTime
		De bson.Decimal128
		O  bson.ObjectID
		Ts bson.Timestamp
		Bi bson.Binary
		Do bson.D
		M  bson.M
	}
	for _, text := range []string{
		`{"d":"2020-01-01T00:00:00Z","de":"1.5","o":"0102030405060708090a0b0c","ts":{"T":1,"I":2},"bi":{"Subtype":4,"Data":"AQ=="},"m":{"a":1}}`,
		`{"o":""}`, `{"o":{"$oid":"0102030405060708090a0b0c"}}`, `{"o":null,"d":null,"de":null}`,
		`{"de":{"$numberDecimal":"2.5"}}`, `{"do":{"a":1,"b":[1]}}`,
	} {
		err := json.Unmarshal([]byte(text), &j)
		say("json into values "+text, err, int64(j.D), j.De, j.O, j.Ts, j.Bi, len(j.Do), j.M["a"])
	}
	for _, text := range []string{"", "x", "zzzzzzzzzzzzzzzzzzzzzzzz", "0102030405060708090a0b0c",
		"0102030405060708090A0B0C"} {
		id, err := bson.ObjectIDFromHex(text)
		say("ObjectIDFromHex "+text, id, err, err == bson.ErrInvalidHex)
	}
	t1, t2 := bson.Timestamp{T: 1, I: 2}, bson.Timestamp{T: 1, I: 3}
	say("Timestamp", t1.Compare(t2), t2.Compare(t1), t1.Before(t2), t1.After(t2), t1.Equal(t1),
		bson.Timestamp{}.IsZero())
	say("IsZero", bson.Binary{Data: []byte{}}.IsZero(), bson.Binary{Subtype: 1}.IsZero(), bson.Regex{}.IsZero(),
		bson.DBPointer{}.IsZero(), bson.ObjectID{}.IsZero(), bson.Decimal128{}.IsZero())
	say("Equal", bson.Binary{Data: []byte{}}.Equal(bson.Binary{}), bson.Regex{Pattern: "a"}.Equal(bson.Regex{}),
		bson.DBPointer{}.Equal(bson.DBPointer{DB: "a"}))
	say("DateTime", bson.NewDateTimeFromTime(time.Unix(1, 1_999_999)) == 1001, bson.DateTime(5).Time())
	say("ObjectID time", bson.NewObjectIDFromTimestamp(time.Unix(5, 0)).Timestamp())
}

func vectors() {
	for _, c := range []struct {
		bits    []byte
		padding uint8
	}{{[]byte{1}, 8}, {nil, 1}, {[]byte{8}, 3}, {nil, 0}} {
		v, err := bson.NewPackedBitVector(c.bits, c.padding)
		say(fmt.Sprint("packed bits ", c), v, err)
		if err != nil {
			continue
		}
		say(fmt.Sprint("packed bits as binary ", c), v.Binary(), v.Type())
		try(fmt.Sprint("packed bits as int8 ", c), func() any { return v.Int8() })
	}
	for _, data := range [][]byte{nil, {3}, {3, 0}, {3, 1}, {3, 0, 5}, {39, 0, 1}, {39, 1, 0, 0, 128, 63},
		{39, 0, 0, 0, 128, 63}, {16, 9}, {16, 3}, {16, 3, 8}, {5, 0}} {
		v, err := bson.NewVectorFromBinary(bson.Binary{Subtype: 9, Data: data})
		say(fmt.Sprint("vector of ", data), v, err)
	}
	_, err := bson.NewVectorFromBinary(bson.Binary{Data: []byte{3, 0}})
	say("vector of subtype 0", err)
	try("zero vector", func() any { return bson.Vector{}.Binary() })
}

func decimals() {
	for _, text := range []string{"0", "-0", "1.50", "1E+3", "abc", "", "Infinity", "-inf", "NaN", "1e9999",
		"12345678901234567890123456789012345", "1e-6176", "0.00000001"} {
		d, err := bson.ParseDecimal128(text)
		h, l := d.GetBytes()
		n, exp, bigErr := d.BigInt()
		say("decimal "+text, d, err, h, l, d.IsInf(), d.IsNaN(), n, exp, bigErr)
	}
	for _, c := range []struct {
		n   *big.Int
		exp int
	}{{big.NewInt(5), 0}, {big.NewInt(-5), 7000}, {big.NewInt(0), 0},
		{new(big.Int).Exp(big.NewInt(10), big.NewInt(40), nil), 0}} {
		d, ok := bson.ParseDecimal128FromBigInt(c.n, c.exp)
		say(fmt.Sprint("decimal of ", c.n, c.exp), d, ok)
	}
	say("limits", bson.MaxDecimal128Exp, bson.MinDecimal128Exp, math.MaxInt32)
}

// small prints what the packages do that are not bson.
func small() {
	set := tag.Set{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}
	say("tag", set, set[0], set.ContainsAll(nil), set.Contains("a", "2"), tag.NewTagSetFromMap(nil) == nil,
		tag.NewTagSetsFromMaps(nil) == nil)
	for _, a := range []address.Address{"", "LOCALHOST", "Host:99", "/tmp/Mongodb-1.sock", "[::1]:27017", "::1",
		"[::1]", "a.b:", "unix.sock", "x.SOCK"} {
		say("address "+string(a), string(a.Canonicalize()), a.Network(), a.String())
	}
	for m := readpref.Mode(0); m < 7; m++ {
		say(fmt.Sprint("mode ", uint8(m)), m, m.IsValid())
	}
	for _, name := range []string{"primary", "PRIMARY", "secondarypreferred", "x", ""} {
		m, err := readpref.ModeFromString(name)
		say("mode "+name, m, err)
	}
	for name, opts := range map[string][]readpref.Option{
		"none": nil, "nil": {nil}, "odd": {readpref.WithTags("a")},
		"staleness": {readpref.WithMaxStaleness(1500 * time.Millisecond)},
		"sets":      {readpref.WithTagSets(set, tag.Set{})},
		"twice":     {readpref.WithTags("a", "b"), readpref.WithTags("c", "d")}, "all": {readpref.WithTags("a", "b"),
			readpref.WithMaxStaleness(time.Minute), readpref.WithHedgeEnabled(false)},
	} {
		for _, mode := range []readpref.Mode{readpref.PrimaryMode, readpref.NearestMode, 9} {
			rp, err := readpref.New(mode, opts...)
			say(fmt.Sprint("read preference ", uint8(mode), " ", name), rp, err)
		}
	}
	yes, no := true, false
	for i, w := range []*writeconcern.WriteConcern{nil, {}, {W: 0}, {W: 0, Journal: &yes}, {W: 0, Journal: &no},
		{W: -1}, {W: "majority"}, {W: ""}, {W: 1.5}, {Journal: &yes}, {W: int32(0)}, {W: "0"}} {
		say(fmt.Sprint("write concern ", i), w.Acknowledged(), w.IsValid())
	}
}
