package decimal

// What roots, powers, logarithms, angles and hyperbolic functions share, and the root. The server's
// decimal library, Intel's, converts to binary128, computes with 113 bits, and converts back;
// around that it takes care of what is badly conditioned with a few decimal operations. The last
// digits of a result come from these steps, so the steps are the same here: quad rounds to 113 bits
// wherever the library has a binary128 value, and what the library computes in one call is computed
// with bits to spare before that.

import (
	"math/big"
	"strings"
)

const prec = 320

func newFloat() *big.Float { return new(big.Float).SetPrec(prec) }

func float(f float64) *big.Float { return newFloat().SetFloat64(f) }

var (
	bigOne = float(1)
	pi     = parse("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651")
	ln2    = parse("0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863326996418687")
	ln10   = parse("2.302585092994045684017991454684364207601101488628772976033327900967572609677352480235997205089598298")
)

func parse(s string) *big.Float {
	f, _, _ := big.ParseFloat(s, 10, prec, big.ToNearestEven)
	return f
}

// quad is the precision of the binary128 format, in which the server's decimal library computes
// these functions: their last digit need not be the nearest.
const quad = 113

func toQuad(f *big.Float) *big.Float {
	return newFloat().Set(new(big.Float).SetPrec(quad).SetMode(big.ToNearestEven).Set(f))
}

// big returns d, which must be finite and not outlandish, as a binary float.
func (d Decimal) big() *big.Float { return toQuad(parse(d.String())) }

// fromBig rounds to 34 digits. A number that needs fewer has no zeros at its end, one that does not
// keeps them all.
func fromBig(f *big.Float) Decimal {
	f = toQuad(f)
	if f.IsInf() {
		return Decimal{kind: infinite, neg: f.Signbit()}
	}
	if f.Sign() == 0 {
		return Decimal{}
	}
	text := []byte(f.Text('e', Digits+16))
	mark := 0
	for text[mark] != 'e' {
		mark++
	}
	exp := 0
	negExp := text[mark+1] == '-'
	for _, c := range text[mark+2:] {
		exp = exp*10 + int(c-'0')
	}
	if negExp {
		exp = -exp
	}
	digits := make([]byte, 0, mark)
	for _, c := range text[:mark] {
		if c >= '0' && c <= '9' {
			digits = append(digits, c)
		}
	}
	c, _ := new(big.Int).SetString(string(digits), 10)
	out := Decimal{neg: f.Signbit(), exp: exp - (len(digits) - 1), coeff: c}
	if strings.Trim(string(digits[Digits:]), "0") == "" {
		return out.strip(0).round()
	}
	return out.round()
}

// magnitude is the exponent of the leading digit.
func (d Decimal) magnitude() int { return d.exp + len(d.c().String()) - 1 }

// Sqrt returns the square root, NaN of a negative number.
func (d Decimal) Sqrt() Decimal {
	switch {
	case d.kind == notANumber:
		return NaN
	case d.IsZero():
		d.exp = floorHalf(d.exp)
		return d
	case d.neg:
		return NaN
	case d.kind == infinite:
		return d
	}
	ideal := floorHalf(d.exp)
	// Scale to an even exponent with at least 2*(Digits+1) digits, then the integer root has enough
	// of them.
	c, exp := new(big.Int).Set(d.c()), d.exp
	pad := max(0, 2*(Digits+2)-len(c.String()))
	if (exp-pad)%2 != 0 {
		pad++
	}
	c.Mul(c, pow10(pad))
	exp -= pad
	root := new(big.Int).Sqrt(c)
	if new(big.Int).Mul(root, root).Cmp(c) == 0 {
		return Decimal{exp: exp / 2, coeff: root}.strip(ideal).round()
	}
	root.Mul(root, bigTen).Add(root, big.NewInt(1)) // the sticky digit
	return Decimal{exp: exp/2 - 1, coeff: root}.round()
}

func floorHalf(n int) int {
	if n < 0 && n%2 != 0 {
		return n/2 - 1
	}
	return n / 2
}

// fma returns a*b + c, rounded once.
func fma(a, b, c Decimal) Decimal {
	if a.kind != finite || b.kind != finite || c.kind != finite {
		return a.Mul(b).Add(c)
	}
	product := Decimal{neg: a.neg != b.neg, exp: a.exp + b.exp, coeff: new(big.Int).Mul(a.c(), b.c())}
	return product.Add(c)
}

// power10 returns 10^n.
func power10(n int) Decimal { return Decimal{exp: n, coeff: big.NewInt(1)} }

// nudge returns d + d*10^-40, which shows that a result so close to d is not exact.
func (d Decimal) nudge() Decimal { return fma(d, power10(-40), d) }

// tiny reports whether |d| is less than 10^-40.
func (d Decimal) tiny() bool { return d.IsZero() || d.magnitude() < -40 }

// function applies what the library computes in binary128.
func (d Decimal) function(f func(*big.Float) *big.Float) Decimal {
	if d.kind != finite {
		return NaN
	}
	return fromBig(f(d.big()))
}
