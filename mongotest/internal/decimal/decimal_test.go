package decimal

import (
	"math"
	"testing"
)

func TestFromFloat(t *testing.T) {
	for f, want := range map[float64]string{
		8.5: "8.5", 0.1: "0.1000000000000000055511151231257827", 7: "7", 1e22: "10000000000000000000000", 0: "0",
		math.Inf(-1): "-Infinity",
	} {
		if got := FromFloat(f).String(); got != want {
			t.Errorf("FromFloat(%v) = %s, want %s", f, got, want)
		}
	}
	for f, want := range map[float64]string{0.1: "0.100000000000000", 1e-10: "1.00000000000000E-10", 5: "5.00000000000000", 0: "0"} {
		if got := FromFloat15(f).String(); got != want {
			t.Errorf("FromFloat15(%v) = %s, want %s", f, got, want)
		}
	}
}

func TestFunctions(t *testing.T) {
	five := Decimal{coeff: FromInt(25).coeff, exp: -1}
	for _, c := range []struct {
		name string
		got  Decimal
		want string
	}{
		{"sqrt", five.Sqrt(), "1.581138830084189665999446772216359"},
		{"sqrt exact", FromInt(16).Sqrt(), "4"},
		{"exp", FromInt(1).Exp(), "2.718281828459045235360287471352662"},
		{"ln", FromInt(10).Ln(), "2.302585092994045684017991454684364"},
		{"log10", FromInt(1000).Log10(), "3"},
		{"log2", FromInt(8).Log(FromInt(2)), "3"},
		{"pow", FromInt(2).Pow(FromInt(-1)), "0.5000000000000000000000000000000000"},
		{"pow int", FromInt(2).Pow(FromInt(10)), "1024.000000000000000000000000000000"},
		{"quo", FromInt(5).Quo(five), "2"},
		{"quo periodic", FromInt(1).Quo(FromInt(3)), "0.3333333333333333333333333333333333"},
		{"add", five.Add(FromInt(5)), "7.5"},
		{"mod", five.Mod(FromInt(2)), "0.5"},
		{"quantize", five.Quantize(0, HalfEven), "2"},
		{"quantize too far", five.Quantize(-100, HalfEven), "NaN"},
		{"ceil", five.ToIntegral(Ceil), "3"},
		{"sin", FromInt(1).Sin(), "0.8414709848078965066525023216302990"},
		{"cos", FromInt(0).Cos(), "1"},
		{"atan", FromInt(1).Atan(), "0.7853981633974483096156608458198757"},
		{"asin", FromInt(1).Asin(), "1.570796326794896619231321691639751"},
		{"tanh", FromInt(1).Tanh(), "0.7615941559557648881194582826047936"},
		{"asinh", FromInt(1).Asinh(), "0.8813735870195430252326093249797923"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, d := range []Decimal{{}, FromInt(math.MinInt64), FromFloat(0.1), NaN, Inf, Inf.Neg(), {neg: true, exp: -5}, FromFloat(1e300).Mul(FromFloat(1e300))} {
		if got, want := FromBSON(d.BSON()).String(), d.String(); got != want {
			t.Errorf("%s comes back as %s", want, got)
		}
	}
	if got := FromFloat(1e300).Mul(FromFloat(1e300)).Pow(FromInt(20)).String(); got != "Infinity" {
		t.Errorf("overflow: %s", got)
	}
}
