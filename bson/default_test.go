package bson_test

import (
	"fmt"
	"reflect"
	"testing"

	"allium/bson"
)

// tree has more of itself, in every place.
type tree struct {
	X    int
	List []tree
	Map  map[string]tree
	Any  any
	Next *tree
}

// TestDefaultInCodec leaves a type to the default way in its codec: those of its kind inside go by
// the codec again, in both directions.
func TestDefaultInCodec(t *testing.T) {
	var o bson.Options
	var encoded, copied, decoded int
	codec := bson.CodecByAddress(func(of reflect.Type, addressable bool) (bson.EncodeFunc, bson.DecodeFunc) {
		if of != reflect.TypeFor[tree]() {
			return nil, nil
		}
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
				encoded++
				if !addressable {
					copied++
				}
				return o.AppendDefault(dst, v)
			}, func(v bson.RawValue, into reflect.Value) error {
				decoded++
				return o.UnmarshalDefault(v, into)
			}
	})
	codecs, err := bson.NewCodecs(codec)
	if err != nil {
		t.Fatal(err)
	}
	leaf := tree{X: 1}
	in := tree{2, []tree{leaf, leaf}, map[string]tree{"a": leaf}, leaf, &tree{Any: &leaf}}
	for _, test := range []struct {
		byAddress bool
		v         any
		copied    int
	}{{false, in, 0}, {false, &in, 0}, {true, in, 3}, {true, &in, 2}} {
		o = bson.Options{Codecs: codecs, MethodsByAddress: test.byAddress}
		encoded, copied, decoded = 0, 0, 0
		doc, err := o.Marshal(test.v)
		if err != nil {
			t.Fatal(err)
		}
		if plain, _ := bson.Marshal(in); string(plain) != string(doc) {
			t.Errorf("%T: %s, without the codec %s", test.v, bson.Raw(doc), bson.Raw(plain))
		}
		if encoded != 7 || copied != test.copied {
			t.Errorf("%T by address %v: encoded %d, %d of them without an address, want 7 and %d", test.v, test.byAddress,
				encoded, copied, test.copied)
		}
		var back tree
		if err := o.Unmarshal(doc, &back); err != nil || decoded != 5 || back.List[1].X != 1 || back.Map["a"].X != 1 {
			t.Errorf("%+v, decoded %d: %v", back, decoded, err)
		}
	}
	for _, v := range []any{1, "x", nil, bson.D{{"a", in}}, []any{in}, (*tree)(nil), map[string]int{"a": 1}} {
		want, err := bson.MarshalValue(v)
		if err != nil {
			t.Fatal(err)
		}
		bt, data, err := bson.Options{}.AppendDefault([]byte("before"), reflect.ValueOf(v))
		if err != nil || bt != want.Type || string(data) != "before"+string(want.Value) {
			t.Errorf("%T: %s %q, %v", v, bt, data, err)
		}
	}
	if _, data, err := o.AppendDefault([]byte("before"), reflect.ValueOf(make(chan int))); err == nil || string(data) != "before" {
		t.Errorf("a channel: %q, %v", data, err)
	}
	for _, wrong := range []bson.RawValue{{Type: bson.TypeString, Value: []byte{1}}, {Type: bson.TypeInt32, Value: make([]byte, 5)}} {
		var x int
		if err := o.UnmarshalDefault(wrong, reflect.ValueOf(&x).Elem()); err == nil {
			t.Errorf("%v decodes to %d", wrong, x)
		}
	}
}

func ExampleCodecByAddress() {
	type note struct{ Text string }
	codec := bson.CodecByAddress(func(t reflect.Type, addressable bool) (bson.EncodeFunc, bson.DecodeFunc) {
		if t != reflect.TypeFor[note]() || !addressable {
			return nil, nil
		}
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
			return bson.TypeString, bson.AppendStringValue(dst, v.Field(0).String()), nil
		}, nil
	})
	codecs, err := bson.NewCodecs(codec)
	if err != nil {
		fmt.Println(err)
		return
	}
	one := note{"milk"}
	doc, err := bson.Options{Codecs: codecs, MethodsByAddress: true}.Marshal(bson.D{{"pointer", &one}, {"copy", one}})
	fmt.Println(bson.Raw(doc), err)
	// Output: {"pointer":"milk","copy":{"text":"milk"}} <nil>
}

// price is stored in cents, and keeps what else it has.
type price struct {
	Amount   float64
	Currency string
}

func ExampleOptions_AppendDefault() {
	var o bson.Options
	codecs, err := bson.NewCodecs(bson.CodecBy(func(t reflect.Type) (bson.EncodeFunc, bson.DecodeFunc) {
		if t != reflect.TypeFor[price]() {
			return nil, nil
		}
		return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
				cents := v.Interface().(price)
				cents.Amount *= 100
				return o.AppendDefault(dst, reflect.ValueOf(cents))
			}, func(v bson.RawValue, into reflect.Value) error {
				if err := o.UnmarshalDefault(v, into); err != nil {
					return err
				}
				into.Addr().Interface().(*price).Amount /= 100
				return nil
			}
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	o.Codecs = codecs
	doc, err := o.Marshal(bson.D{{"price", price{1.5, "EUR"}}})
	fmt.Println(bson.Raw(doc), err)
	var back struct{ Price price }
	fmt.Println(o.Unmarshal(doc, &back), back)
	// Output:
	// {"price":{"amount":150.0,"currency":"EUR"}} <nil>
	// <nil> {{1.5 EUR}}
}
