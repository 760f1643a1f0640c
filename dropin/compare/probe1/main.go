// Command probe1 is the program probe for version 1: what the types of its packages do, how values
// are encoded and decoded, and the errors.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"sort"
	"time"

	"allium/dropin/compare/say"
	"allium/dropin/compare/tags"
	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
)

func main() {
	defer say.Flush()
	time.Local = time.FixedZone("there", -5*60*60) // the local zone is not that of the machine
	texts()
	encoding()
	decoding()
	ancestors()
	methods()
	registries()
	tags.Probe(bson.Marshal, bson.Unmarshal, say.Line)
	hooks()
	streams()
	raws()
	small()
	messages()
	driverErrors()
	testReader()
	clientOptions()
	optionDefaults()
}

// A sample is a value with a name.
type sample struct {
	name string
	v    any
}

// samples has a value of each BSON type.
var samples = []sample{
	{"string", "abc"}, {"int32", int32(7)}, {"int64", int64(1) << 40}, {"double", 1.5}, {"bool", true},
	{"oid", primitive.ObjectID{1}},
	{"date", primitive.DateTime(5)}, {"doc", bson.D{{Key: "x", Value: 1}}}, {"arr", bson.A{1, 2, 3}},
	{"bin4", primitive.Binary{Subtype: 4, Data: []byte{1, 2}}},
	{"bin0", primitive.Binary{Data: []byte{1, 2}}}, {"null", nil}, {"ts", primitive.Timestamp{T: 1, I: 2}},
	{"dec", primitive.NewDecimal128(0x3040000000000000, 5)},
	{"re", primitive.Regex{Pattern: "a", Options: "i"}}, {"js", primitive.JavaScript("x")},
	{"sy", primitive.Symbol("s")}, {"min", primitive.MinKey{}},
	{"max", primitive.MaxKey{}}, {"und", primitive.Undefined{}},
	{"cws", primitive.CodeWithScope{Code: "c", Scope: bson.D{}}}, {"dbp", primitive.DBPointer{DB: "a"}},
	{"nul", primitive.Null{}},
}

// texts prints the JSON and the texts of a value of each exported type.
func texts() {
	raw, _ := bson.Marshal(bson.D{{Key: "a", Value: 1}, {Key: "b", Value: bson.A{"x"}}})
	more := []sample{
		{"E", bson.E{Key: "a", Value: 1}}, {"D", bson.D{{Key: "a", Value: 1},
			{Key: "b", Value: time.UnixMilli(0).UTC()}}}, {"M", bson.M{"a": 1}},
		{"A", bson.A{1, bson.D{}, nil}}, {"D nil", bson.D(nil)}, {"M nil", bson.M(nil)}, {"A nil", bson.A(nil)},
		{"Raw", bson.Raw(raw)}, {"Raw nil", bson.Raw(nil)},
		{"RawValue zero", bson.RawValue{}}, {"RawElement", bson.Raw(raw).Index(0)}, {"Type", bsontype.String},
		{"Type 0", bsontype.Type(0)}, {"Type 0x55", bsontype.Type(0x55)},
		{"Regex zero", primitive.Regex{}}, {"CodeWithScope", primitive.CodeWithScope{Code: "c", Scope: 5}},
		{"ObjectID zero", primitive.NilObjectID},
		{"Decimal128 zero", primitive.Decimal128{}},
		{"deep", bson.M{"d": bson.D{{Key: "m", Value: bson.M{"a": bson.A{bson.D{}}}}}}},
	}
	for _, s := range append(more, samples...) {
		text, err := json.Marshal(s.v)
		say.Line("json of "+s.name, string(text), err)
		say.Line("%v of "+s.name, fmt.Sprintf("%v", s.v))
		say.Line("%+v of "+s.name, fmt.Sprintf("%+v", s.v))
		say.Line("%T of "+s.name, fmt.Sprintf("%T", s.v))
		text, err = json.Marshal(map[string]any{"v": []any{s.v}, "p": &s.v})
		say.Line("json with "+s.name, string(text), err)
	}
	var j struct {
		D  primitive.DateTime
		De primitive.Decimal128
		O  primitive.ObjectID
		Ts primitive.Timestamp
		Bi primitive.Binary
		Do bson.D
		M  bson.M
		A  bson.A
	}
	for _, text := range []string{
		`{"d":"2020-01-01T00:00:00Z","de":"1.5","o":"0102030405060708090a0b0c","ts":{"T":1,"I":2},"bi":{"Subtype":4,"Data":"AQ=="},"m":{"a":1},"a":[1,{"b":2}]}`,
		`{"o":""}`, `{"o":{"$oid":"0102030405060708090a0b0c"}}`, `{"o":null,"d":null,"de":null}`,
		`{"de":{"$numberDecimal":"2.5"}}`, `{"do":[{"Key":"a","Value":1}]}`, `{"do":{"a":1}}`,
	} {
		err := json.Unmarshal([]byte(text), &j)
		say.Line("json into values "+text, err, int64(j.D), j.De, j.O, j.Ts, j.Bi, j.Do, j.M["a"], j.A)
	}
	for _, text := range []string{"", "x", "zzzzzzzzzzzzzzzzzzzzzzzz", "0102030405060708090a0b0c",
		"0102030405060708090A0B0C"} {
		id, err := primitive.ObjectIDFromHex(text)
		say.Line("ObjectIDFromHex "+text, id, err, err == primitive.ErrInvalidHex, primitive.IsValidObjectID(text))
	}
	t1, t2 := primitive.Timestamp{T: 1, I: 2}, primitive.Timestamp{T: 1, I: 3}
	say.Line("Timestamp", t1.Compare(t2), t2.Compare(t1), t1.Before(t2), t1.After(t2),
		primitive.CompareTimestamp(t1, t1), primitive.Timestamp{}.IsZero())
	say.Line("IsZero", primitive.Binary{Data: []byte{}}.IsZero(), primitive.Regex{}.IsZero(),
		primitive.DBPointer{}.IsZero(), primitive.ObjectID{}.IsZero(), primitive.Decimal128{}.IsZero())
	say.Line("DateTime", primitive.NewDateTimeFromTime(time.Unix(1, 1_999_999)) == 1001, primitive.DateTime(5).Time())
	say.Line("Map", bson.D{{Key: "a", Value: 1}, {Key: "a", Value: 2}}.Map(), bson.D(nil).Map() == nil)
}

type inner struct{ X, Y int }

type shade int

// encoding prints what values are encoded as.
func encoding() {
	type embedded struct {
		inner  `bson:",inline"`
		Z      int
		M      map[string]int `bson:",inline"`
		Omit   string         `bson:",omitempty"`
		Zero   inner          `bson:",omitempty"`
		Time   time.Time      `bson:",omitempty"`
		Skip   int            `bson:"-"`
		Named  int            `bson:"other"`
		Small  int64          `bson:",minsize"`
		hidden int
	}
	values := []sample{
		{"nil", nil}, {"int", 1}, {"string", "x"}, {"slice", []int{1}}, {"bool", true}, {"chan", make(chan int)},
		{"chan in struct", struct{ C chan int }{}},
		{"map int", map[int]string{1: "a"}}, {"map bool", map[bool]int{true: 1}},
		{"map oid", map[primitive.ObjectID]int{{1}: 1}}, {"uint64", uint64(math.MaxUint64)},
		{"A", bson.A{}}, {"nil D", bson.D(nil)}, {"nil M", bson.M(nil)}, {"nil map", map[string]any(nil)},
		{"nil Raw", bson.Raw(nil)}, {"short Raw", bson.Raw{1}},
		{"nil pointer", (*inner)(nil)}, {"pointer", &inner{1, 2}},
		{"complex in D", bson.D{{Key: "a", Value: complex(1, 1)}}},
		{"uint64 deep", bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: uint64(math.MaxUint64)}}}}},
		{"nul key", bson.D{{Key: "a\x00", Value: 1}}},
		{"empty RawValue", bson.D{{Key: "a", Value: bson.RawValue{}}}}, {"[]E", []bson.E{{Key: "a", Value: 1}}},
		{"nils", struct {
			A any
			M bson.M
			N map[string]int
			P *int
			D bson.D
			L []string
			B []byte
			R bson.A
			T *time.Time
			W bson.Raw
		}{}},
		{"embedded", embedded{Z: 3, M: map[string]int{"m": 1}, Small: 5, hidden: 1}}, {"twice", struct {
			A int `bson:"x"`
			B int `bson:"x"`
		}{}},
		{"numbers", struct {
			A int8
			B int16
			C int32
			D int64
			E uint8
			F uint16
			G uint32
			H uint64
			I float32
			J int
			K uint
			L time.Duration
			M json.Number
			N json.Number
			S shade
		}{A: 1, B: 2, C: 3, D: 4, E: 5, F: 6, G: 7, H: 8, I: 9, J: 10, K: 11, L: 12, M: "13", N: "1.5", S: 14}},
		{"others", struct {
			U url.URL
			P *url.URL
			T time.Time
			B [2]byte
			L [2]int
		}{U: url.URL{Scheme: "a", Host: "b"}, P: &url.URL{Path: "c"}, T: time.UnixMilli(5)}},
	}
	for _, s := range samples {
		values = append(values, sample{"D of " + s.name,
			bson.D{{Key: "v", Value: s.v}, {Key: "l", Value: []any{s.v}}, {Key: "p", Value: &s.v}}})
	}
	for _, s := range values {
		doc, err := bson.Marshal(s.v)
		say.Line("marshal "+s.name, fmt.Sprintf("%x", doc), err)
		doc, err = bson.MarshalAppend([]byte{9}, s.v)
		say.Line("append "+s.name, fmt.Sprintf("%x", doc), err)
		text, err := bson.MarshalExtJSON(s.v, true, false)
		say.Line("canonical "+s.name, string(text), err)
		text, err = bson.MarshalExtJSON(s.v, false, true)
		say.Line("relaxed "+s.name, string(text), err)
		t, data, err := bson.MarshalValue(s.v)
		say.Line("marshal value "+s.name, t, fmt.Sprintf("%x", data), err)
	}
	text, err := bson.MarshalExtJSONIndent(bson.D{{Key: "a", Value: 1}, {Key: "h", Value: "<&>"},
		{Key: "b", Value: bson.D{{Key: "c", Value: bson.A{1}}}}}, false, false, "", "  ")
	say.Line("indent", string(text), err)
}

// targets are variables to decode into.
func targets() []any {
	return []any{
		new(struct{ V int32 }), new(struct{ V uint8 }), new(struct{ V float32 }), new(struct{ V string }),
		new(struct{ V bool }), new(struct{ V time.Time }),
		new(struct{ V []byte }), new(struct{ V [2]byte }), new(struct{ V [3]int }), new(struct{ V []int }),
		new(struct{ V []any }), new(struct{ V map[string]int }),
		new(struct{ V map[string]any }), new(struct{ V inner }), new(struct{ V *inner }), new(struct{ V *int }),
		new(struct{ V any }), new(struct{ V shade }),
		new(struct{ V bson.D }), new(struct{ V bson.M }), new(struct{ V bson.A }), new(struct{ V bson.E }),
		new(struct{ V bson.RawValue }),
		new(struct{ V primitive.ObjectID }), new(struct{ V primitive.DateTime }), new(struct{ V primitive.Decimal128 }),
		new(struct{ V primitive.Binary }),
		new(struct{ V primitive.Timestamp }), new(struct{ V primitive.Regex }), new(struct{ V primitive.JavaScript }),
		new(struct{ V primitive.Symbol }),
		new(struct{ V primitive.CodeWithScope }), new(struct{ V primitive.DBPointer }),
		new(struct{ V primitive.MinKey }), new(struct{ V primitive.Undefined }),
		new(struct{ V primitive.Null }), new(struct{ V json.Number }), new(struct{ V url.URL }), new(bson.D),
		new(bson.M), new(map[string]any), new(any), new([]bson.E),
	}
}

// decoding prints what values of each type become in variables of each type.
func decoding() {
	for _, s := range samples {
		doc, err := bson.Marshal(bson.D{{Key: "v", Value: s.v}})
		if err != nil {
			panic(err)
		}
		for _, into := range targets() {
			err := bson.Unmarshal(doc, into)
			v := reflect.ValueOf(into).Elem()
			if v.Kind() == reflect.Struct {
				v = v.Field(0)
			}
			if v.Kind() == reflect.Pointer && !v.IsNil() {
				v = v.Elem()
			}
			if f, ok := v.Interface().(bson.RawValue); ok {
				say.Line(fmt.Sprintf("decode %s into %T", s.name, into), f.Type, fmt.Sprintf("%x", f.Value), err)
				continue
			}
			if d, ok := v.Interface().(primitive.DateTime); ok {
				say.Line(fmt.Sprintf("decode %s into %T", s.name, into), int64(d), err)
				continue
			}
			say.Line(fmt.Sprintf("decode %s into %T", s.name, into), shape(v.Interface()), err)
		}
	}
	for _, into := range []any{nil, 5, "x", inner{}, (*inner)(nil), map[string]any{}, map[string]any(nil),
		new(chan int)} {
		doc, _ := bson.Marshal(bson.M{"x": 1})
		say.Line(fmt.Sprintf("decode into %T %v", into, into != nil && reflect.ValueOf(into).Kind() == reflect.Map &&
			reflect.ValueOf(into).IsNil()), bson.Unmarshal(doc, into))
	}
	for _, doc := range [][]byte{nil, {}, {5}, {5, 0, 0, 0}, {6, 0, 0, 0, 0}} {
		say.Line(fmt.Sprintf("decode broken %x", doc), bson.Unmarshal(doc, new(bson.D)) != nil)
	}
	for _, text := range []string{`{"a":1}`, `{"a":{"$numberLong":"5"}}`, `{"a":[{"$oid":"0102030405060708090a0b0c"}]}`,
		`{"a":{"$date":{"$numberLong":"5"}}}`, `{"a":null}`, `{"a":{"$binary":{"base64":"AQ==","subType":"04"}}}`} {
		for _, canonical := range []bool{false, true} {
			var d bson.D
			err := bson.UnmarshalExtJSON([]byte(text), canonical, &d)
			say.Line(fmt.Sprintf("extjson %s %t", text, canonical), shape(d), err)
		}
	}
	var twice struct{ A []int }
	twice.A = []int{7, 8, 9}
	doc, _ := bson.Marshal(bson.M{"a": []int{1}})
	say.Line("decode over a slice", bson.Unmarshal(doc, &twice), twice)
	over := map[string]any{"old": 1}
	say.Line("decode over a map", bson.Unmarshal(doc, &over), len(over))
}

// shape is a value with its types, and without what differs from one to the next run.
func shape(v any) string {
	r := reflect.ValueOf(v)
	if !r.IsValid() {
		return "nil"
	}
	name := r.Type().String()
	switch x := v.(type) {
	case primitive.DateTime:
		return fmt.Sprintf("%s(%d)", name, int64(x))
	case fmt.Stringer:
		return fmt.Sprintf("%s(%s)", name, x)
	case bson.E:
		return x.Key + ":" + shape(x.Value)
	}
	switch r.Kind() {
	case reflect.Map:
		var parts []string
		for _, k := range r.MapKeys() {
			parts = append(parts, fmt.Sprint(k)+":"+shape(r.MapIndex(k).Interface()))
		}
		sort.Strings(parts)
		return fmt.Sprint(name, parts)
	case reflect.Slice, reflect.Array:
		if r.Kind() == reflect.Slice && r.IsNil() {
			return name + "(nil)"
		}
		var parts []string
		for i := range r.Len() {
			parts = append(parts, shape(r.Index(i).Interface()))
		}
		return fmt.Sprint(name, parts)
	case reflect.Pointer:
		if r.IsNil() {
			return name + "(nil)"
		}
		return "&" + shape(r.Elem().Interface())
	}
	return fmt.Sprintf("%s(%+v)", name, v)
}
