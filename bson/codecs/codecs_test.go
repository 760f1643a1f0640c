package codecs_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"allium/bson"
	"allium/bson/codecs"
)

func options(t testing.TB) bson.Options {
	t.Helper()
	set, err := bson.NewCodecs(codecs.Null(), codecs.BigInt())
	if err != nil {
		t.Fatal(err)
	}
	return bson.Options{Codecs: set}
}

// everything has each type where it may stand.
type everything struct {
	N  sql.Null[int32]             `bson:"n"`
	S  sql.NullString              `bson:"s"`
	T  sql.NullTime                `bson:"t"`
	P  *sql.NullBool               `bson:"p"`
	L  []sql.NullFloat64           `bson:"l"`
	M  map[string]sql.Null[string] `bson:"m"`
	B  big.Int                     `bson:"b"`
	Q  *big.Int                    `bson:"q"`
	D  codecs.Date                 `bson:"d"`
	Ds []codecs.Date               `bson:"ds"`
	A  netip.Addr                  `bson:"a"`
}

func random(r *rand.Rand) everything {
	some := func() bool { return r.IntN(2) == 0 }
	var e everything
	if some() {
		e.N = sql.Null[int32]{V: int32(r.Uint32()), Valid: true}
		e.S = sql.NullString{String: fmt.Sprint(r.Uint64()), Valid: true}
		e.T = sql.NullTime{Time: time.UnixMilli(r.Int64N(1 << 42)).UTC(), Valid: true}
	}
	if some() {
		e.P = &sql.NullBool{Bool: some(), Valid: true}
		e.M = map[string]sql.Null[string]{"x": {Valid: some()}}
	}
	for range r.IntN(3) {
		e.L = append(e.L, sql.NullFloat64{Float64: r.Float64(), Valid: true}, sql.NullFloat64{})
		e.Ds = append(e.Ds, codecs.DateOf(time.Unix(r.Int64N(1<<34)-1<<33, 0).UTC()), codecs.Date{})
	}
	n := new(big.Int)
	for range r.IntN(4) {
		n.Mul(n, big.NewInt(1e11)).Add(n, big.NewInt(r.Int64N(1e11)))
	}
	if some() {
		n.Neg(n)
	}
	e.B.Set(n)
	if some() {
		e.Q = new(big.Int).Add(n, big.NewInt(1))
		e.A = netip.AddrFrom4([4]byte{1, 2, 3, byte(r.Uint32())})
	}
	return e
}

// What was encoded comes back.
func TestRoundTrip(t *testing.T) {
	o := options(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		want := random(r)
		raw, err := o.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := everything{N: sql.Null[int32]{V: 1, Valid: true}, D: codecs.Date{Year: 1, Month: 1, Day: 1}}
		if err := o.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		if again, err := o.Marshal(got); err != nil || !bson.Equal(again, raw) {
			t.Fatalf("%v came back as %v: %v", bson.Raw(raw), bson.Raw(again), err)
		}
		if got.B.Cmp(&want.B) != 0 || got.N != want.N || !slices.Equal(got.Ds, want.Ds) || got.A != want.A {
			t.Fatalf("%+v came back as %+v", want, got)
		}
	}
}

// The forms are those that servers compute with.
func TestForms(t *testing.T) {
	o := options(t)
	far, _ := new(big.Int).SetString("12345678901234567890123456789", 10)
	for _, c := range []struct {
		v    any
		want string
	}{
		{sql.Null[int32]{V: 3, Valid: true}, `{"$numberInt":"3"}`},
		{sql.Null[int32]{V: 3}, `null`},
		{sql.NullString{String: "x", Valid: true}, `"x"`},
		{sql.Null[big.Int]{}, `null`},
		{*big.NewInt(-5), `{"$numberLong":"-5"}`},
		{far, `{"$numberDecimal":"12345678901234567890123456789"}`},
		{(*big.Int)(nil), `null`},
		{codecs.Date{Year: 1970, Month: 1, Day: 2}, `{"$date":{"$numberLong":"86400000"}}`},
		{codecs.Date{}, `null`},
	} {
		raw, err := o.MarshalExtJSON(bson.D{{Key: "v", Value: c.v}}, true)
		if got := string(raw); err != nil || got != `{"v":`+c.want+`}` {
			t.Errorf("%T: %s, %v, want %s", c.v, got, err, c.want)
		}
	}
}

// What does not fit says where it is and what is wanted, and changes nothing.
func TestErrors(t *testing.T) {
	o := options(t)
	for _, c := range []struct {
		field string
		v     any
		want  string
	}{
		{"n", "x", "int32"}, {"s", 1, "string"}, {"l", bson.A{"x"}, "float64"},
		{"b", 1.5, "whole number"}, {"b", "x", "whole number"}, {"b", true, "whole number"},
		{"q", bson.NewDecimal128(0, 0), ""}, {"q", mustDecimal(t, "1.5"), "whole number"},
		{"q", mustDecimal(t, "NaN"), "whole number"}, {"b", mustDecimal(t, "1E+40"), ""},
		{"d", time.UnixMilli(1).UTC(), "want a day"}, {"d", "2026-02-30", "2026-11-27"}, {"d", 5, "want a date"},
	} {
		raw, err := bson.Marshal(bson.D{{Key: c.field, Value: c.v}})
		if err != nil {
			t.Fatal(err)
		}
		var into everything
		err = o.Unmarshal(raw, &into)
		if c.want == "" && err != nil {
			t.Errorf("%s: %v: %v", c.field, c.v, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), `"`+c.field)) {
			t.Errorf("%s: %v: %v does not say %s", c.field, c.v, err, c.want)
		}
	}
	for _, v := range []any{new(big.Int).Exp(big.NewInt(10), big.NewInt(34), nil),
		codecs.Date{Year: 2026, Month: 2, Day: 30}} {
		if raw, err := o.Marshal(bson.D{{Key: "v", Value: v}}); err == nil {
			t.Errorf("%v became %v", v, bson.Raw(raw))
		}
	}
}

func mustDecimal(t *testing.T, s string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A Date is a text in JSON, and reads what it writes.
func TestDateJSON(t *testing.T) {
	want := codecs.Date{Year: 2026, Month: 11, Day: 27}
	text, err := json.Marshal(want)
	if err != nil || string(text) != `"2026-11-27"` {
		t.Fatalf("%s, %v", text, err)
	}
	var got codecs.Date
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`"27.11.2026"`), &got); err == nil {
		t.Error("another form of a day was read")
	}
}

// Whatever a document holds, it decodes or it does not, and what decodes can be encoded.
func FuzzDecode(f *testing.F) {
	o := options(f)
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		raw, err := o.Marshal(random(r))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var e everything
		if o.Unmarshal(raw, &e) != nil {
			return
		}
		again, err := o.Marshal(e)
		if err != nil {
			if strings.Contains(err.Error(), "digits") { // what was a text
				return
			}
			t.Fatalf("%+v does not encode: %v", e, err)
		}
		var f everything
		if err := o.Unmarshal(again, &f); err != nil {
			t.Fatalf("%v does not decode: %v", bson.Raw(again), err)
		}
	})
}

func ExampleNull() {
	set, err := bson.NewCodecs(codecs.Null())
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, err := bson.Options{Codecs: set}.Marshal(struct {
		Name sql.NullString `bson:"name"`
		Age  sql.Null[int]  `bson:"age"`
	}{Name: sql.NullString{String: "Ann", Valid: true}})
	fmt.Println(bson.Raw(raw), err)
	// Output: {"name":"Ann","age":null} <nil>
}

func ExampleBigInt() {
	set, err := bson.NewCodecs(codecs.BigInt())
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, err := bson.Options{Codecs: set}.Marshal(bson.D{{Key: "n", Value: big.NewInt(5)}})
	fmt.Println(bson.Raw(raw).Lookup("n").Type, err)
	// Output: 64-bit integer <nil>
}

func ExampleDate() {
	birthday := codecs.DateOf(time.Date(1999, 12, 31, 23, 30, 0, 0, time.UTC))
	fmt.Println(birthday, birthday.IsZero())
	fmt.Println(birthday.In(time.UTC))
	raw, err := bson.Marshal(bson.D{{Key: "birthday", Value: birthday}})
	fmt.Println(bson.Raw(raw).Lookup("birthday").Type, err)
	// Output:
	// 1999-12-31 false
	// 1999-12-31 00:00:00 +0000 UTC
	// UTC datetime <nil>
}

func ExampleDateOf() {
	fmt.Println(codecs.DateOf(time.Date(2026, 11, 27, 19, 45, 0, 0, time.UTC)))
	// Output: 2026-11-27
}
