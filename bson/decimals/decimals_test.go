package decimals_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"github.com/shopspring/decimal"

	"allium/bson"
	"allium/bson/decimals"
)

func options(t testing.TB) bson.Options {
	t.Helper()
	set, err := bson.NewCodecs(decimals.Shopspring(), decimals.APD())
	if err != nil {
		t.Fatal(err)
	}
	return bson.Options{Codecs: set}
}

// prices has each type where it may stand.
type prices struct {
	S  decimal.Decimal            `bson:"s"`
	SP *decimal.Decimal           `bson:"sp"`
	SN decimal.NullDecimal        `bson:"sn"`
	SL []decimal.Decimal          `bson:"sl"`
	A  apd.Decimal                `bson:"a"`
	AP *apd.Decimal               `bson:"ap"`
	AN apd.NullDecimal            `bson:"an"`
	AM map[string]apd.NullDecimal `bson:"am"`
}

// number returns a random number that a Decimal128 has.
func number(r *rand.Rand) (*big.Int, int32) {
	n := new(big.Int)
	for range r.IntN(4) {
		n.Mul(n, big.NewInt(1e11)).Add(n, big.NewInt(r.Int64N(1e11)))
	}
	if r.IntN(2) == 0 {
		n.Neg(n)
	}
	return n, r.Int32N(12000) - 6000
}

func fromAPD(n *big.Int, exponent int32) apd.Decimal {
	return apd.Decimal{
		Negative: n.Sign() < 0, Exponent: exponent, Coeff: *new(apd.BigInt).SetMathBigInt(new(big.Int).Abs(n)),
	}
}

// What was encoded comes back with the same digits and exponent.
func TestRoundTrip(t *testing.T) {
	o := options(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n, exponent := number(r)
		s, a := decimal.NewFromBigInt(n, exponent), fromAPD(n, exponent)
		want := prices{S: s, SL: []decimal.Decimal{s, {}}, A: a}
		if r.IntN(2) == 0 {
			want.SP, want.SN = &s, decimal.NewNullDecimal(s)
			want.AP, want.AN = &a, apd.NullDecimal{Decimal: a, Valid: true}
			want.AM = map[string]apd.NullDecimal{"x": {Valid: r.IntN(2) == 0}}
		}
		raw, err := o.Marshal(want)
		if err != nil {
			t.Fatalf("%vE%d: %v", n, exponent, err)
		}
		got := prices{SN: decimal.NewNullDecimal(decimal.NewFromInt(1)), AN: apd.NullDecimal{Valid: true}}
		if err := o.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		same := func(s decimal.Decimal) bool { return s.Coefficient().Cmp(n) == 0 && s.Exponent() == exponent }
		if !same(got.S) || !same(got.SL[0]) || got.SN.Valid != want.SN.Valid ||
			got.SN.Valid && (!same(got.SN.Decimal) || !same(*got.SP)) {
			t.Fatalf("%vE%d came back as %v", n, exponent, got.S)
		}
		if got.A.CmpTotal(&a) != 0 || got.AN.Valid != want.AN.Valid ||
			got.AN.Valid && (got.AP.CmpTotal(&a) != 0 || got.AN.Decimal.CmpTotal(&a) != 0) ||
			got.AM["x"].Valid != want.AM["x"].Valid {
			t.Fatalf("%vE%d came back as %v", n, exponent, got.A.Text('E'))
		}
		if again, err := o.Marshal(got); err != nil || !bson.Equal(again, raw) {
			t.Fatalf("%v came back as %v: %v", bson.Raw(raw), bson.Raw(again), err)
		}
	}
}

// Numbers of all types decode as the decimal that means the same, and what does not fit is an error
// that says so and changes nothing.
func TestForeignNumbers(t *testing.T) {
	o := options(t)
	parse := func(s string) bson.Decimal128 {
		d, err := bson.ParseDecimal128(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct {
		v    any
		s, a string // texts of the numbers, or what the errors say behind "!"
	}{
		{int32(-5), "-5", "-5"},
		{int64(math.MinInt64), "-9223372036854775808", "-9223372036854775808"},
		{0.1, "0.1", "0.1"}, {1e21, "1000000000000000000000", "1E+21"}, {math.Copysign(0, -1), "0", "-0"},
		{"1.50", "1.5", "1.50"}, {"-0.000", "0", "-0.000"}, {parse("1.50"), "1.5", "1.50"},
		{math.NaN(), "!no NaN", "NaN"}, {math.Inf(-1), "!no -Infinity", "-Infinity"},
		{parse("Infinity"), "!no Infinity", "Infinity"},
		{parse("-0E+3"), "0", "-0E+3"},
		{"x", `!not "x"`, `!not "x"`}, {"", `!not ""`, `!not ""`},
		{true, "!want a number, and not boolean", "!want a number, and not boolean"},
		{"1e2000000000", "!want a number", "!want a number"},
		{strings.Repeat("7", 35), "!want a number", "!want a number"},
		{strings.Repeat("7", 1<<20), "!of 1048576 bytes", "!of 1048576 bytes"},
	} {
		check := func(field, want string, got func(prices) string) {
			raw, err := bson.Marshal(bson.D{{Key: field, Value: c.v}})
			if err != nil {
				t.Fatal(err)
			}
			before := prices{S: decimal.NewFromInt(7), SN: decimal.NewNullDecimal(decimal.NewFromInt(7)),
				A: *apd.New(7, 0), AN: apd.NullDecimal{Decimal: *apd.New(7, 0), Valid: true}}
			err = o.Unmarshal(raw, &before)
			want, refused := strings.CutPrefix(want, "!")
			switch {
			case !refused && (err != nil || got(before) != want):
				t.Errorf("%s: %v: %v, %v, want %s", field, c.v, got(before), err, want)
			case refused && (err == nil || !strings.Contains(err.Error(), want) || got(before) != "7"):
				t.Errorf("%s: %.60v: %v, %v, want an error with %s", field, c.v, got(before), err, want)
			}
		}
		check("s", c.s, func(p prices) string { return p.S.String() })
		check("sn", c.s, func(p prices) string { return p.SN.Decimal.String() })
		check("a", c.a, func(p prices) string { return p.A.String() })
		check("an", c.a, func(p prices) string { return p.AN.Decimal.String() })
	}
}

// What no Decimal128 is, is refused, however large it is.
func TestBeyond(t *testing.T) {
	o := options(t)
	digits, _ := new(big.Int).SetString(strings.Repeat("7", 35), 10)
	for _, v := range []any{
		decimal.NewFromBigInt(digits, 0), decimal.New(1, math.MaxInt32), decimal.New(1, math.MinInt32),
		decimal.New(7, -6177),
		fromAPD(digits, 0), apd.New(1, math.MaxInt32), apd.New(1, math.MinInt32), &apd.Decimal{Form: apd.NaNSignaling},
	} {
		if raw, err := o.Marshal(bson.D{{Key: "price", Value: v}}); err == nil {
			t.Errorf("%T became %v", v, bson.Raw(raw))
		} else if !strings.Contains(err.Error(), `"price"`) {
			t.Errorf("%T: %v does not say where", v, err)
		}
	}
	for _, v := range []any{decimal.New(1, 6144), fromAPD(big.NewInt(1), 6144), decimal.New(0, math.MaxInt32)} {
		if _, err := o.Marshal(bson.D{{Key: "price", Value: v}}); err != nil {
			t.Errorf("%T: %v", v, err)
		}
	}
}

func ExampleShopspring() {
	set, err := bson.NewCodecs(decimals.Shopspring())
	if err != nil {
		fmt.Println(err)
		return
	}
	opts := bson.Options{Codecs: set}
	type order struct {
		Price decimal.Decimal     `bson:"price"`
		Off   decimal.NullDecimal `bson:"off"`
	}
	raw, err := opts.Marshal(order{Price: decimal.RequireFromString("19.90")})
	fmt.Println(bson.Raw(raw), err)
	var back order
	fmt.Println(opts.Unmarshal(raw, &back), back.Price)
	// Output:
	// {"price":{"$numberDecimal":"19.90"},"off":null} <nil>
	// <nil> 19.9
}

func ExampleAPD() {
	set, err := bson.NewCodecs(decimals.APD())
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, err := bson.Options{Codecs: set}.Marshal(bson.D{{Key: "price", Value: apd.New(1990, -2)}})
	fmt.Println(bson.Raw(raw), err)
	// Output: {"price":{"$numberDecimal":"19.90"}} <nil>
}
