package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

type shade int

type texted struct{ s string }

func (t texted) MarshalBSONValue() (byte, []byte, error) {
	typ, data, err := bson.MarshalValue("<" + t.s + ">")
	return byte(typ), data, err
}

func (t *texted) UnmarshalBSONValue(typ byte, data []byte) error {
	return bson.UnmarshalValue(bson.Type(typ), data, &t.s)
}

type inner struct{ X, Y int }

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
		{"map int", map[int]string{1: "a"}}, {"map bool", map[bool]int{true: 1}}, {"map float", map[float64]int{1: 1}},
		{"map oid", map[bson.ObjectID]int{{1}: 1}},
		{"uint64", uint64(math.MaxUint64)}, {"A", bson.A{}}, {"nil D", bson.D(nil)}, {"nil M", bson.M(nil)},
		{"nil map", map[string]any(nil)}, {"nil Raw", bson.Raw(nil)},
		{"short Raw", bson.Raw{1}}, {"nil pointer", (*inner)(nil)}, {"pointer", &inner{1, 2}},
		{"complex in D", bson.D{{Key: "a", Value: complex(1, 1)}}},
		{"uint64 deep", bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: uint64(math.MaxUint64)}}}}},
		{"nul key", bson.D{{Key: "a\x00", Value: 1}}},
		{"empty RawValue", bson.D{{Key: "a", Value: bson.RawValue{}}}}, {"nils", struct {
			A any
			M bson.M
			N map[string]int
			P *int
			D bson.D
			L []string
			B []byte
			R bson.A
			T *time.Time
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
			U  url.URL
			P  *url.URL
			T  time.Time
			B  [2]byte
			L  [2]int
			TX texted
			PT *texted
		}{U: url.URL{Scheme: "a", Host: "b"}, P: &url.URL{Path: "c"}, T: time.UnixMilli(5), TX: texted{"q"},
			PT: &texted{"r"}}},
		{"vector", bson.D{{Key: "v", Value: bson.NewVector([]float32{1})}}},
	}
	for _, s := range samples {
		values = append(values, sample{"D of " + s.name,
			bson.D{{Key: "v", Value: s.v}, {Key: "l", Value: []any{s.v}}, {Key: "p", Value: &s.v}}})
	}
	for _, s := range values {
		doc, err := bson.Marshal(s.v)
		say("marshal "+s.name, fmt.Sprintf("%x", doc), err)
		text, err := bson.MarshalExtJSON(s.v, true, false)
		say("canonical "+s.name, string(text), err)
		text, err = bson.MarshalExtJSON(s.v, false, true)
		say("relaxed "+s.name, string(text), err)
		t, data, err := bson.MarshalValue(s.v)
		say("marshal value "+s.name, t, fmt.Sprintf("%x", data), err)
	}
	for _, text := range legacyJSON {
		var d bson.D
		err := bson.UnmarshalExtJSON([]byte(`{"v": `+text+`}`), false, &d)
		back, backErr := bson.MarshalExtJSON(d, true, false)
		say("JSON "+text, string(back), backErr, err != nil)
	}
	text, err := bson.MarshalExtJSONIndent(bson.D{{Key: "a", Value: 1}, {Key: "h", Value: "<&>"},
		{Key: "b", Value: bson.D{{Key: "c", Value: bson.A{1}}}}}, false, false, "", "  ")
	say("indent", string(text), err)
	text, err = bson.MarshalExtJSON(bson.D{{Key: "h", Value: "<&>\u2028é\x01"}}, false, true)
	say("escaped", string(text), err)
}

type target struct {
	I     int32
	U     uint8
	F     float32
	S     string
	B     bool
	O     bson.ObjectID
	T     time.Time
	By    []byte
	Sl    []int
	M     map[string]int
	St    struct{ X int }
	D     bson.D
	Bi    bson.Binary
	Ts    bson.Timestamp
	P     *int
	Dec   bson.Decimal128
	A     any
	Arr   [2]int
	Raw   bson.Raw
	RV    bson.RawValue
	R     bson.Regex
	Dt    bson.DateTime
	Js    bson.JavaScript
	Sy    bson.Symbol
	V     bson.Vector
	Nu    bson.Null
	Cws   bson.CodeWithScope
	Dbp   bson.DBPointer
	Mk    bson.MinKey
	Un    bson.Undefined
	MM    bson.M
	L     bson.A
	Tx    texted
	Shade shade
}

// decoding prints what becomes of a value of each BSON type in a field of each Go type.
func decoding() {
	t := reflect.TypeFor[target]()
	for f := range t.Fields() {
		for _, s := range samples {
			doc, err := bson.Marshal(bson.D{{Key: strings.ToLower(f.Name), Value: s.v}})
			if err != nil {
				say("cannot encode "+s.name, err)
				continue
			}
			v := reflect.New(t)
			err = bson.Unmarshal(doc, v.Interface())
			got := v.Elem().FieldByIndex(f.Index)
			if got.Kind() == reflect.Pointer && !got.IsNil() {
				got = got.Elem()
			}
			// Of a document or an array only the type: its text is compared elsewhere.
			text := fmt.Sprintf("%#v", got)
			switch x := got.Interface().(type) {
			case bson.D, bson.M, bson.A, bson.RawValue:
				text = fmt.Sprintf("%T", x)
			}
			say(f.Type.String()+" <- "+s.name, text, err)
		}
	}
	doc, _ := bson.Marshal(bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bson.A{1, "x"}}}},
		{Key: "arr", Value: bson.A{bson.D{}, bson.A{}}}})
	var into struct{ A struct{ B []int } }
	err := bson.Unmarshal(doc, &into)
	if de, ok := err.(*bson.DecodeError); ok {
		say("path", err, de.Keys(), de.Unwrap())
	} else {
		say("path", err)
	}
	var d bson.D
	var m bson.M
	var mm map[string]any
	var a any
	var md map[string]bson.M
	var raw bson.Raw
	var elems []bson.E
	for _, v := range []any{&d, &m, &mm, &a, &md, &raw, &elems, new(int), new(string), new([]int), nil, (*bson.D)(nil),
		map[string]any{}} {
		say(fmt.Sprintf("document into %T", v), bson.Unmarshal(doc, v))
	}
	say("types in D", fmt.Sprintf("%T %T %T", d[0].Value, d[1].Value, d[1].Value.(bson.A)[0]))
	say("types in M", fmt.Sprintf("%T %T %T", m["a"], m["arr"], m["arr"].(bson.A)[0]))
	say("types in map", fmt.Sprintf("%T %T %T", mm["a"], mm["arr"], mm["arr"].(bson.A)[1]))
	say("type of any", fmt.Sprintf("%T", a))
}

// broken prints what is said of bytes that are no document.
func broken() {
	for _, b := range [][]byte{nil, {}, {5}, {5, 0, 0, 0}, {5, 0, 0, 0, 1}, {6, 0, 0, 0, 0, 0}, {3, 0, 0, 0},
		{12, 0, 0, 0, 16, 'a', 0, 1, 0, 0, 0}, {5, 0, 0, 0, 0, 9}, {10, 0, 0, 0, 77, 'a', 0, 0, 0, 0}} {
		var d bson.D
		say(fmt.Sprint("unmarshal ", b), bson.Unmarshal(b, &d))
		say(fmt.Sprint("validate ", b), bson.Raw(b).Validate())
		_, err := bson.Raw(b).LookupErr("a")
		say(fmt.Sprint("lookup ", b), err)
		_, err = bson.Raw(b).Elements()
		say(fmt.Sprint("elements ", b), err)
	}
}

// legacyJSON has values in forms from before version 2 of Extended JSON, and what looks like them.
var legacyJSON = []string{
	`{"$binary": "AQI=", "$type": "00"}`, `{"$binary": "AQI=", "$type": "4"}`, `{"$type": "00", "$binary": "AQI="}`,
	`{"$binary": "AQI="}`, `{"$binary": "AQI=", "$type": 0}`, `{"$binary": {"base64": "AQI=", "subType": "0"}}`,
	`{"$date": 5}`, `{"$date": -5}`, `{"$date": 50000000000}`, `{"$date": 5.5}`, `{"$date": "2020-01-02T03:04:05Z"}`,
	`{"$date": "2020-01-02"}`, `{"$date": "2020-01-02T03:04:05.123+0100"}`, `{"$date": {"$numberLong": "5"}}`,
	`{"$date": "2020-01-02T03:04:05.123+01:00"}`, `{"$date": {"$numberLong": 5}}`, `{"$date": null}`,
	`{"$regex": "a", "$options": "i"}`, `{"$options": "i", "$regex": "a"}`, `{"$regex": "a"}`, `{"$options": "i"}`,
	`{"$numberLong": 5}`, `{"$numberInt": 5}`, `{"$numberDouble": 5.5}`, `{"$undefined": true}`, `{"$type": "string"}`,
	`{"x": 1, "$date": 5}`, `{"$date": 5, "x": 1}`, `{"x": 1, "$oid": "y"}`, `{"$ref": "a", "$id": 5, "$db": "x"}`,
	`{"$set": {"$date": 5}}`, `{"$foo": {"$binary": "AQI=", "$type": "00"}}`,
}
