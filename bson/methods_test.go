package bson

import (
	"errors"
	"math/big"
	"net/netip"
	"reflect"
	"strconv"
	"testing"
)

// temperature is a value with methods on the value, celsius one with methods on the pointer.
type temperature float64

func (v temperature) MarshalBSONValue() (byte, []byte, error) {
	return byte(TypeString), AppendStringValue(nil, strconv.FormatFloat(float64(v), 'f', 1, 64)+"K"), nil
}

func (v *temperature) UnmarshalBSONValue(t byte, data []byte) error {
	s, ok := (RawValue{Type(t), data}).StringValue()
	if !ok {
		if Type(t) == TypeNull {
			*v = -1
			return nil
		}
		return errors.New("no string")
	}
	f, err := strconv.ParseFloat(s[:len(s)-1], 64)
	*v = temperature(f)
	return err
}

type counter struct{ calls int }

func (c *counter) MarshalBSON() ([]byte, error) {
	c.calls++
	return Marshal(D{{"calls", c.calls}})
}

func (c *counter) UnmarshalBSON(data []byte) error {
	n, ok := Raw(data).Lookup("calls").AsInt64()
	if !ok {
		return errors.New("no calls")
	}
	c.calls = int(n)
	return nil
}

// keeper keeps what it is given, which methods may.
type keeper struct{ Raw }

func (k *keeper) UnmarshalBSON(data []byte) error { k.Raw = data; return nil }

func TestMethods(t *testing.T) {
	type all struct {
		T  temperature
		P  *temperature
		N  *temperature
		C  counter
		CP *counter
		L  []temperature
		M  map[string]counter
		A  any
	}
	t2 := temperature(2)
	in := all{1, &t2, nil, counter{}, &counter{}, []temperature{3}, map[string]counter{"x": {}}, temperature(4)}
	want := D{{"t", "1.0K"}, {"p", "2.0K"}, {"n", nil}, {"c", D{{"calls", int32(1)}}}, {"cp", D{{"calls", int32(1)}}}, {"l", A{"3.0K"}},
		{"m", D{{"x", D{{"calls", int32(1)}}}}}, {"a", "4.0K"}}
	if got := encoded(t, Options{}, in); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if in.C.calls != 0 {
		t.Error("encoding a value changed it through a pointer receiver")
	}
	if got := encoded(t, Options{}, M{"c": counter{}}); !reflect.DeepEqual(got, D{{"c", D{{"calls", int32(1)}}}}) {
		t.Errorf("pointer receiver of a value in an interface: %v", got)
	}
	data, err := Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var out all
	if err := Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if out.T != 1 || *out.P != 2 || out.N != nil || out.C.calls != 1 || out.L[0] != 3 || out.M["x"].calls != 1 || out.A != "4.0K" {
		t.Errorf("got %+v", out)
	}

	// Errors from inside have the path.
	data, _ = Marshal(D{{"l", A{"1K", 2}}})
	var de *DecodeError
	if err := Unmarshal(data, &out); !errors.As(err, &de) || de.Path != "l.1" {
		t.Errorf("got %v", err)
	}
	// Null reaches values, not documents.
	data, _ = Marshal(D{{"t", nil}, {"c", nil}})
	if err := Unmarshal(data, &out); err != nil || out.T != -1 || out.C.calls != 0 {
		t.Errorf("null: %+v, %v", out, err)
	}
	data, _ = Marshal(D{{"c", 1}})
	if err := Unmarshal(data, &out); !errors.Is(err, errNotDocument) {
		t.Errorf("no document: %v", err)
	}

	// The bytes may be kept.
	data, _ = Marshal(D{{"k", D{{"a", 1}}}})
	var k struct{ K keeper }
	if err := Unmarshal(data, &k); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if n, ok := k.K.Lookup("a").Int32(); !ok || n != 1 {
		t.Error("UnmarshalBSON was given the input's memory")
	}
	var top counter
	data, _ = Marshal(D{{"calls", 5}})
	if err := Unmarshal(data, &top); err != nil || top.calls != 5 {
		t.Errorf("top level: %+v, %v", top, err)
	}
}

type liar struct {
	typ  Type
	data []byte
}

func (l liar) MarshalBSONValue() (byte, []byte, error) { return byte(l.typ), l.data, nil }

type docLiar struct{ data []byte }

func (l docLiar) MarshalBSON() ([]byte, error) { return l.data, nil }

func TestMethodsThatLie(t *testing.T) {
	for _, v := range []any{
		liar{0, nil}, liar{TypeInt32, []byte{1}}, liar{TypeInt32, make([]byte, 5)}, liar{TypeString, []byte{9, 0, 0, 0, 0}},
		docLiar{nil}, docLiar{[]byte{5, 0, 0, 0, 1}}, docLiar{[]byte{5, 0, 0, 0, 0, 0}},
	} {
		var ee *EncodeError
		if _, err := Marshal(D{{"a", v}}); !errors.As(err, &ee) || ee.Path != "a" || ee.GoType != reflect.TypeOf(v) {
			t.Errorf("%+v: %v", v, err)
		}
	}
}

type coord struct{ x, y int }

func (c coord) MarshalText() ([]byte, error) {
	if c.x < 0 {
		return nil, errors.New("negative")
	}
	return []byte(strconv.Itoa(c.x) + ":" + strconv.Itoa(c.y)), nil
}

func (c *coord) UnmarshalText(b []byte) error {
	if len(b) != 3 {
		return errors.New("want x:y")
	}
	c.x, c.y = int(b[0]-'0'), int(b[2]-'0')
	return nil
}

type keyed int

func (k keyed) MarshalKey() (string, error)    { return "k" + strconv.Itoa(int(k)), nil }
func (k *keyed) UnmarshalKey(key string) error { *k = keyed(key[1] - '0'); return nil }

func TestMapKeys(t *testing.T) {
	type name string
	for _, test := range []struct{ in, want any }{
		{map[name]int32{"a": 1}, D{{"a", int32(1)}}},
		{map[int8]int32{-3: 1}, D{{"-3", int32(1)}}},
		{map[uint64]int32{1 << 63: 1}, D{{"9223372036854775808", int32(1)}}},
		{map[coord]int32{{1, 2}: 1}, D{{"1:2", int32(1)}}},
		{map[keyed]int32{4: 1}, D{{"k4", int32(1)}}},
		{map[ObjectID]int32{{1}: 1}, D{{"010000000000000000000000", int32(1)}}},
		{map[netip.Addr]int32{netip.MustParseAddr("1.2.3.4"): 1}, D{{"1.2.3.4", int32(1)}}},
	} {
		if got := encoded(t, Options{}, test.in); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%T: got %v, want %v", test.in, got, test.want)
		}
		data, _ := Marshal(test.in)
		out := reflect.New(reflect.TypeOf(test.in))
		if err := Unmarshal(data, out.Interface()); err != nil || !reflect.DeepEqual(out.Elem().Interface(), test.in) {
			t.Errorf("%T: got %v, %v", test.in, out.Elem(), err)
		}
	}
	if _, err := Marshal(map[coord]int{{-1, 0}: 1}); err == nil {
		t.Error("a key that cannot be text: no error")
	}
	data, _ := Marshal(D{{"m", D{{"300", 1}}}})
	var de *DecodeError
	if err := Unmarshal(data, &struct{ M map[int8]int }{}); !errors.As(err, &de) || de.Path != "m.300" {
		t.Errorf("a key out of range: %v", err)
	}
}

func TestOpaqueText(t *testing.T) {
	type opaque struct {
		C coord
		B big.Int
		P *big.Int
		A netip.Addr
	}
	n, _ := new(big.Int).SetString("99999999999999999999999999", 10)
	in := opaque{coord{1, 2}, *n, n, netip.MustParseAddr("::1")}
	want := D{{"c", "1:2"}, {"b", n.String()}, {"p", n.String()}, {"a", "::1"}}
	if got := encoded(t, Options{}, in); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	data, _ := Marshal(in)
	var out opaque
	if err := Unmarshal(data, &out); err != nil || out.C != in.C || out.B.Cmp(n) != 0 || out.P.Cmp(n) != 0 || out.A != in.A {
		t.Errorf("got %+v, %v", out, err)
	}
}
