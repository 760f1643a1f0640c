package decimal

import (
	"math"
	"strings"
	"testing"

	"allium/bson"
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
		{"sin", FromInt(1).Sin(), "0.8414709848078965066525023216302991"},
		{"sin of 0", FromInt(0).Sin(), "0"},
		{"cos of 0", FromInt(0).Cos(), "1.000000000000000000000000000000000"},
		{"sin far out", power10(30).Sin(), "-0.09011690191213805803038642895298733"},
		{"acos of 1", FromInt(1).Acos(), "0E-6176"},
		{"acos", five.Quo(FromInt(-3)).Acos(), "2.555907110132642278844885844801985"},
		{"atanh", FromInt(1).Quo(FromInt(2)).Atanh(), "0.5493061443340548456976226184612628"},
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

// TestLibrary compares with what a real server answered: the last digit comes from the steps of its
// decimal library.
func TestLibrary(t *testing.T) {
	five := Decimal{coeff: FromInt(25).coeff, exp: -1}
	for _, c := range []struct {
		name string
		got  Decimal
		want string
	}{
		{"5^2.5", FromInt(5).Pow(five), "55.90169943749474241022934171828190"},
		{"7^2.5", FromInt(7).Pow(five), "129.6418142421649389345791719283237"},
		{"max int^2.5", FromInt(math.MaxInt32).Pow(five), "213709911001461222895986.6749334829"},
		{"max long^2.5", FromInt(math.MaxInt64).Pow(five), "2.583594296179809265965651572832434E+47"},
		{"-3^2", FromInt(-3).Pow(FromInt(2)), "9.000000000000000000000000000000001"},
		{"1000^1", power10(3).Pow(FromInt(1)), "999.9999999999999999999999999999999"},
		{"10^3", FromInt(10).Pow(FromInt(3)), "1000.000000000000000000000000000000"},
		{"atan2", five.Atan2(FromInt(math.MaxInt32)), "1.164153218811449230500530435909975E-9"},
		{"atan2 left", five.Atan2(FromInt(-1)), "1.951302703907261505534909608450185"},
		{"ln", five.Ln(), "0.9162907318741550651835272117680110"},
		{"log10", Decimal{coeff: FromInt(150).coeff, exp: -2}.Log10(), "0.1760912590556812420812890085306223"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestExtremes computes where binary128 ends: nothing may be lost there, and nothing takes long.
func TestExtremes(t *testing.T) {
	for _, c := range []struct {
		name string
		got  Decimal
		want string
	}{
		{"exp", FromInt(14000).Exp(), "1.326620321137711275937776890335631E+6080"},
		{"exp small", FromInt(-14000).Exp(), "7.537951771629720907593006284141135E-6081"},
		{"exp too large", FromInt(15001).Exp(), "Infinity"},
		{"exp too small", FromInt(-15001).Exp(), "0E-6176"},
		{"ln", power10(6000).Ln(), "13815.51055796427410410794872810618"},
		{"ln small", power10(-6000).Ln(), "-13815.51055796427410410794872810618"},
		{"log10", power10(6000).Log10(), "6000"},
		{"log2", power10(-6000).Log2(), "-19931.56856932417408722191657693634"},
		{"pow", power10(3000).Pow(FromInt(2)), "1.000000000000000000000000000000000E+6000"},
		{"pow too large", power10(3000).Pow(FromInt(3)), "Infinity"},
		{"asinh", power10(6000).Asinh(), "13816.20370514483404941736596022764"},
		{"sinh", FromInt(14000).Sinh(), "6.633101605688556379688884451678155E+6079"},
		{"sin", power10(6000).Sin(), "-0.7249266534376325863453460198136025"},
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

// A number that is none keeps its sign through arithmetic, and of two the first one stays.
func TestSignOfNaN(t *testing.T) {
	const sign, nan = 1 << 63, 0x7c << 56
	plus, minus := FromBSON(bson.NewDecimal128(nan, 0)), FromBSON(bson.NewDecimal128(sign|nan, 0))
	for name, op := range map[string]func(a, b Decimal) Decimal{
		"add": Decimal.Add, "sub": Decimal.Sub, "mul": Decimal.Mul, "quo": Decimal.Quo, "mod": Decimal.Mod,
	} {
		for _, c := range []struct {
			a, b Decimal
			neg  bool
		}{
			{minus, FromInt(1), true}, {FromInt(1), minus, true}, {minus, Inf, true}, {Inf.Neg(), minus, true},
			{minus, plus, true}, {plus, minus, false}, {plus, FromInt(-1), false}, {Inf.Neg(), plus, false},
		} {
			if hi, lo := op(c.a, c.b).BSON().Bits(); hi&^sign != nan || lo != 0 || hi&sign != 0 != c.neg {
				t.Errorf("%s of %v and %v is %x %x; negative: %v", name, c.a, c.b, hi, lo, c.neg)
			}
		}
	}
}

// ParseCut reads what has more digits than there are, and nothing else.
func TestParseCut(t *testing.T) {
	nines := strings.Repeat("9", Digits)
	for s, want := range map[string]string{
		nines + "9": nines[:1] + "." + nines[1:] + "E+34", "-0." + nines + "9": "-0." + nines,
		nines + ".5": nines, "0.0" + nines + "1e1": "0." + nines, nines + "0E+6110": nines[:1] + "." + nines[1:] + "E+6144",
		nines: "", "1" + nines + "E+6111": "", nines + "9x": "", "": "", ".": "", "1.2.3": "", nines + "1E-6178": "",
		nines + "1e99999999999999999999": "",
	} {
		d, ok := ParseCut(s)
		got := ""
		if ok {
			got = d.String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", s, got, want)
		}
	}
}
