package bson_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"time"

	"allium/bson"
)

func ExampleMarshal() {
	type user struct {
		Name  string
		Email string    `bson:"mail,omitempty"`
		Since time.Time `bson:",omitzero"`
		Tags  []string
	}
	data, err := bson.Marshal(user{Name: "Ada", Tags: []string{"admin"}})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(bson.Raw(data))
	// Output: {"name":"Ada","tags":["admin"]}
}

func ExampleUnmarshal() {
	data, err := bson.Marshal(bson.M{"name": "Ada", "age": 36})
	if err != nil {
		fmt.Println(err)
	}
	var user struct {
		Name string
		Age  int
	}
	if err := bson.Unmarshal(data, &user); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%+v\n", user)
	// Output: {Name:Ada Age:36}
}

// Errors say where in the document something does not fit.
func ExampleDecodeError() {
	data, err := bson.Marshal(bson.M{"items": bson.A{bson.M{"price": 1}, bson.M{"price": "two"}}})
	if err != nil {
		fmt.Println(err)
	}
	var order struct{ Items []struct{ Price int } }
	err = bson.Unmarshal(data, &order)
	var de *bson.DecodeError
	fmt.Println(errors.As(err, &de), de.Path, de.BSONType, de.GoType)
	// Output: true items.1.price string int
}

func ExampleOptions() {
	o := bson.Options{Documents: bson.DocumentsAsM, DisallowUnknownFields: true}
	data, err := bson.Marshal(bson.D{{Key: "meta", Value: bson.D{{Key: "lang", Value: "en"}}}})
	if err != nil {
		fmt.Println(err)
	}
	var page struct{ Meta any }
	fmt.Println(o.Unmarshal(data, &page), page.Meta.(bson.M)["lang"])
	var other struct{ Title string }
	fmt.Println(o.Unmarshal(data, &other))
	// Output:
	// <nil> en
	// bson: decode embedded document at "meta" into struct { Title string }: the struct has no field for the key
}

func ExampleCodecFor() {
	// Durations as text, in place of nanoseconds.
	codecs, err := bson.NewCodecs(bson.CodecFor(
		func(dst []byte, d time.Duration) (bson.Type, []byte, error) {
			return bson.TypeString, bson.AppendStringValue(dst, d.String()), nil
		},
		func(v bson.RawValue) (time.Duration, error) {
			s, ok := v.StringValue()
			if !ok {
				return 0, fmt.Errorf("want a string")
			}
			return time.ParseDuration(s)
		},
	))
	if err != nil {
		fmt.Println(err)
	}
	o := bson.Options{Codecs: codecs}
	data, err := o.Marshal(bson.M{"timeout": 90 * time.Second})
	fmt.Println(bson.Raw(data), err)
	var v struct{ Timeout time.Duration }
	fmt.Println(o.Unmarshal(data, &v), v.Timeout)
	// Output:
	// {"timeout":"1m30s"} <nil>
	// <nil> 1m30s
}

func ExampleAppendValue() {
	start, doc := bson.BeginDocument(nil)
	doc = bson.AppendInt32(doc, "ping", 1)
	doc, err := bson.AppendValue(doc, "comment", bson.D{{Key: "from", Value: "example"}})
	if err != nil {
		fmt.Println(err)
	}
	doc = bson.EndDocument(doc, start)
	fmt.Println(bson.Raw(doc))
	// Output: {"ping":1,"comment":{"from":"example"}}
}

func ExampleRaw_Lookup() {
	data, err := bson.Marshal(bson.M{"items": bson.A{"a", bson.M{"n": 7}}})
	if err != nil {
		fmt.Println(err)
	}
	n, ok := bson.Raw(data).Lookup("items", "1", "n").AsInt64()
	fmt.Println(n, ok)
	// Output: 7 true
}

func ExampleRaw_All() {
	data, err := bson.Marshal(bson.D{{Key: "a", Value: 1}, {Key: "b", Value: true}})
	if err != nil {
		fmt.Println(err)
	}
	for key, v := range bson.Raw(data).All() {
		fmt.Println(key, v.Type)
	}
	// Output:
	// a 32-bit integer
	// b boolean
}

func ExampleEncoder() {
	var file bytes.Buffer
	e := bson.NewEncoder(&file)
	for _, name := range []string{"Ada", "Grace"} {
		if err := e.Encode(bson.D{{"name", name}}); err != nil {
			fmt.Println(err)
		}
	}
	for doc, err := range bson.NewDecoder(&file).All() {
		fmt.Println(doc.Lookup("name").String(), err)
	}
	// Output:
	// "Ada" <nil>
	// "Grace" <nil>
}

// A sort order that somebody wrote as a map is found, however it is wrapped.
func ExampleOptions_AppendValueMaps() {
	for _, order := range []any{bson.D{{Key: "name", Value: 1}, {Key: "age", Value: -1}}, map[string]int{"name": 1, "age": -1}} {
		_, maps, err := bson.Options{}.AppendValueMaps(nil, "sort", &order)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Println(len(maps))
	}
	// Output:
	// 0
	// 1
}

func ExampleCodecWhere() {
	// Every type with the methods of big.Int and its like is a string, in both directions.
	type number interface {
		String() string
		SetString(s string, base int) (*big.Int, bool)
	}
	codecs, err := bson.NewCodecs(bson.CodecWhere(
		func(t reflect.Type) bool { return reflect.PointerTo(t).Implements(reflect.TypeFor[number]()) },
		func(dst []byte, v any) (bson.Type, []byte, error) {
			return bson.TypeString, bson.AppendStringValue(dst, v.(number).String()), nil
		},
		func(v bson.RawValue, into any) error {
			s, _ := v.StringValue()
			if _, ok := into.(number).SetString(s, 10); !ok {
				return fmt.Errorf("want a whole number")
			}
			return nil
		},
	))
	if err != nil {
		fmt.Println(err)
	}
	o := bson.Options{Codecs: codecs}
	type account struct {
		Balance big.Int
		Limits  []*big.Int
	}
	data, err := o.Marshal(account{*big.NewInt(5), []*big.Int{big.NewInt(7), nil}})
	fmt.Println(bson.Raw(data), err)
	var a account
	fmt.Println(o.Unmarshal(data, &a), a.Balance.String(), a.Limits)
	fmt.Println(o.Unmarshal(bson.Raw(data), &struct{ Limits big.Int }{}))
	// Output:
	// {"balance":"5","limits":["7",null]} <nil>
	// <nil> 5 [7 <nil>]
	// bson: decode array at "limits" into big.Int: want a whole number
}

func ExampleCodecs_With() {
	seconds := bson.CodecFor(
		func(dst []byte, d time.Duration) (bson.Type, []byte, error) {
			return bson.TypeDouble, bson.AppendDoubleValue(dst, d.Seconds()), nil
		},
		func(v bson.RawValue) (time.Duration, error) {
			s, _ := v.Double()
			return time.Duration(s * float64(time.Second)), nil
		})
	var common *bson.Codecs // those of all collections; none yet
	codecs, err := common.With(seconds)
	data, _ := bson.Options{Codecs: codecs}.Marshal(bson.M{"d": 90 * time.Second})
	fmt.Println(bson.Raw(data), err)
	// Output: {"d":90.0} <nil>
}

// The update that leads from one document to another: what is cleared is removed.
func ExampleDiff() {
	type user struct {
		ID    int `bson:"_id"`
		Name  string
		Email string   `bson:",omitempty"`
		Tags  []string `bson:",omitempty"`
	}
	before := user{1, "Ada", "ada@example.com", []string{"a", "b"}}
	after := user{1, "Ada Lovelace", "", []string{"a", "c"}}
	update, err := bson.Diff(before, after)
	fmt.Println(update, err)
	update, err = bson.Options{}.Diff(before, after, bson.DiffOptions{ArrayElements: true})
	fmt.Println(update, err)
	_, err = bson.Diff(bson.D{{Key: "a.b", Value: 1}}, bson.D{{Key: "a.b", Value: 2}})
	fmt.Println(errors.Is(err, bson.ErrNoPath))
	// Output:
	// {"$set":{"name":"Ada Lovelace","tags":["a","c"]},"$unset":{"email":""}} <nil>
	// {"$set":{"name":"Ada Lovelace","tags.1":"c"},"$unset":{"email":""}} <nil>
	// true
}
