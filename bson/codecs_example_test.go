package bson_test

import (
	"fmt"
	"log"
	"reflect"
	"strconv"
	"time"

	"allium/bson"
)

func ExampleCodecBy() {
	// All kinds of floats are decimals with two digits, whatever types programs make of them.
	type price float64
	codecs, err := bson.NewCodecs(bson.CodecBy(func(t reflect.Type) (bson.EncodeFunc, bson.DecodeFunc) {
		if t.Kind() != reflect.Float64 {
			return nil, nil
		}
		encode := func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			d, err := bson.ParseDecimal128(strconv.FormatFloat(v.Float(), 'f', 2, 64))
			return bson.TypeDecimal128, bson.AppendDecimal128Value(dst, d), err
		}
		return encode, func(v bson.RawValue, into reflect.Value) error {
			d, ok := v.Decimal128()
			if !ok {
				return fmt.Errorf("want a decimal")
			}
			into.SetFloat(d.Float64())
			return nil
		}
	}))
	if err != nil {
		fmt.Println(err)
	}
	o := bson.Options{Codecs: codecs}
	data, err := o.Marshal(bson.D{{Key: "price", Value: price(1.5)}, {Key: "list", Value: []float64{2}}})
	fmt.Println(bson.Raw(data), err)
	var item struct{ Price price }
	fmt.Println(o.Unmarshal(data, &item), item.Price)
	// Output:
	// {"price":{"$numberDecimal":"1.50"},"list":[{"$numberDecimal":"2.00"}]} <nil>
	// <nil> 1.5
}

func ExampleNewTypeMap() {
	types, err := bson.NewTypeMap(map[bson.Type]reflect.Type{
		bson.TypeDateTime: reflect.TypeFor[time.Time](), bson.TypeInt32: reflect.TypeFor[int](),
	})
	if err != nil {
		fmt.Println(err)
	}
	data, _ := bson.Marshal(bson.D{{Key: "at", Value: time.UnixMilli(0)}, {Key: "n", Value: int32(1)}})
	var m bson.M
	err = bson.Options{Types: types}.Unmarshal(data, &m)
	fmt.Printf("%T %T %v\n", m["at"], m["n"], err)
	// Output: time.Time int <nil>
}

// The keys of a type, and where they are.
func ExampleShapeOf() {
	type base struct{ Version int }
	type user struct {
		Name string `bson:"full_name"`
		base `bson:",inline"`
		Note string `bson:"-"`
	}
	shape, err := bson.ShapeOf(reflect.TypeFor[user]())
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range shape.Fields {
		fmt.Println(f.Key, f.Index, f.Type)
	}
	byJSON, err := bson.Options{JSONTags: true}.ShapeOf(reflect.TypeFor[user]())
	fmt.Println(byJSON.Kind == bson.ShapeStruct, err)
	// Output:
	// full_name [0] string
	// version [1 0] int
	// true <nil>
}

type Payment interface{ Amount() int }

type Card struct {
	Number string
	Cents  int
}

func (c Card) Amount() int { return c.Cents }

type Cash struct{ Cents int }

func (c *Cash) Amount() int { return c.Cents }

// An interface whose values are one of a few types, each with its name in the document.
func ExampleUnion() {
	codecs, err := bson.NewCodecs(bson.Union[Payment]("kind", bson.Variant[Card]("card"), bson.Variant[*Cash]("cash")))
	if err != nil {
		log.Fatal(err)
	}
	options := bson.Options{Codecs: codecs} // for ClientOptions.BSON or CollectionOptions.BSON
	type order struct {
		Payments []Payment
	}
	doc, err := options.Marshal(order{[]Payment{Card{"4711", 500}, &Cash{20}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bson.Raw(doc))
	var back order
	err = options.Unmarshal(doc, &back)
	for _, p := range back.Payments {
		fmt.Printf("%T %d\n", p, p.Amount())
	}
	fmt.Println(err)
	// Output:
	// {"payments":[{"kind":"card","number":"4711","cents":500},{"kind":"cash","cents":20}]}
	// bson_test.Card 500
	// *bson_test.Cash 20
	// <nil>
}
