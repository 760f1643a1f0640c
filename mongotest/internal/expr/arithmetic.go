package expr

// Arithmetic. The result has the widest type of its operands; integers that overflow become wider.

import (
	"math"
	"math/bits"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/srverr"
)

func init() {
	registerNary(
		&naryOp{name: "$add", arity: any0, associative: true, commutative: true, operand: addend, eval: evalAdd},
		&naryOp{name: "$multiply", arity: any0, associative: true, commutative: true, operand: factor,
			eval: evalMultiply},
		&naryOp{name: "$subtract", arity: exactly(2), eval: evalSubtract},
		&naryOp{name: "$divide", arity: exactly(2), eval: evalDivide},
		&naryOp{name: "$mod", arity: exactly(2), eval: evalMod},
		&naryOp{name: "$pow", arity: exactly(2), eval: evalPow},
		&naryOp{name: "$log", arity: exactly(2), eval: evalLog},
		&naryOp{name: "$round", arity: arity{1, 2}, operand: rounded("$round"),
			eval: rounder("$round", decimal.HalfEven)},
		&naryOp{name: "$trunc", arity: arity{1, 2}, operand: rounded("$trunc"), eval: rounder("$trunc", decimal.Down)},
		numeric("$abs", evalAbs),
		numeric("$ceil", integralPart(decimal.Ceil, math.Ceil)),
		numeric("$floor", integralPart(decimal.Floor, math.Floor)),
		numeric("$sqrt", evalSqrt),
		numeric("$exp", real(decimal.Decimal.Exp, exp)),
		numeric("$ln", logarithm("$ln", 28766, decimal.Decimal.Ln, ln)),
		numeric("$log10", logarithm("$log10", 28761, decimal.Decimal.Log10, log10)),
	)
}

// DivideByZero is the text of the error of a division by zero.
const DivideByZero = "can't $divide by zero"

// numeric returns an operator with a single number as its operand; null and missing give null.
func numeric(name string, f func(v bson.RawValue) (bson.RawValue, error)) *naryOp {
	return &naryOp{name: name, arity: exactly(1), eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
		v := args[0]
		switch {
		case nullish(v):
			return null, nil
		case !v.IsNumber():
			return missing, srverr.New(28765, "%s only supports numeric types, not %s", name, typeName(v))
		}
		return f(v)
	}}
}

// real computes a function in decimals for a decimal and in doubles for the rest.
func real(d func(decimal.Decimal) decimal.Decimal, f func(float64) float64) func(bson.RawValue) (bson.RawValue, error) {
	return func(v bson.RawValue) (bson.RawValue, error) {
		if v.Type == bson.TypeDecimal128 {
			return decimalValue(d(toDecimal(v))), nil
		}
		return bsondoc.DoubleValue(f(toDouble(v))), nil
	}
}

// typeError returns an error that servers before 6.1 gave a code of its own and later ones call a
// type mismatch.
func typeError(st *State, oldCode int32, format string, args ...any) error {
	if st.env.Version.AtLeast(6, 1) {
		oldCode = srverr.TypeMismatch
	}
	return srverr.New(oldCode, format, args...)
}

func addend(st *State, args []bson.RawValue, _ int) (done bool, err error) {
	v := args[len(args)-1]
	if v.Type == bson.TypeDateTime && slices.ContainsFunc(args[:len(args)-1], func(v bson.RawValue) bool {
		return v.Type == bson.TypeDateTime
	}) {
		return false, srverr.New(16612, "only one date allowed in an $add expression")
	}
	if !v.IsNumber() && v.Type != bson.TypeDateTime && !nullish(v) {
		return false, typeError(st, 16554, "$add only supports numeric or date types, not %s", typeName(v))
	}
	return nullish(v), nil
}

// addNumbers is $add since version 8.1: a decimal among the operands turns what was summed before
// it into a decimal of 15 digits if it was a double, and so each double that comes after it. A date
// is the number of its milliseconds, with which doubles are rounded one by one.
func addNumbers(args []bson.RawValue) (bson.RawValue, error) {
	sum := newTotal()
	haveDate := slices.ContainsFunc(args, func(v bson.RawValue) bool { return v.Type == bson.TypeDateTime })
	var decimals decimal.Decimal
	isDecimal := false
	for _, v := range args {
		if d, ok := v.DateTime(); ok {
			v = bsondoc.Int64Value(int64(d))
		}
		if f, ok := v.Double(); ok && haveDate && !isDecimal {
			v = bsondoc.DoubleValue(math.Round(f))
		}
		switch {
		case isDecimal:
			decimals = decimals.Add(toDecimal(v))
		case v.Type == bson.TypeDecimal128:
			isDecimal = true
			before := decimal.FromFloat15(sum.binary.double())
			if sum.typ != bson.TypeDouble && sum.binary.fitsLong() {
				before = decimal.FromInt(sum.binary.long())
			}
			decimals = before.Add(toDecimal(v))
		default:
			sum.add(v)
		}
	}
	switch {
	case !haveDate && isDecimal:
		return decimalValue(decimals), nil
	case !haveDate:
		return sum.value(), nil
	case isDecimal:
		if n, ok := decimals.Int(decimal.HalfEven); ok {
			return bsondoc.DateValue(n), nil
		}
	case sum.binary.fitsLong():
		return bsondoc.DateValue(sum.binary.long()), nil
	}
	return missing, srverr.New(srverr.Overflow, "date overflow in $add")
}

func evalAdd(st *State, args []bson.RawValue) (bson.RawValue, error) {
	if st.env.Version.AllParsed() {
		return addNumbers(args)
	}
	sum := newTotal()
	haveDate := false
	for _, v := range args {
		if v.IsNumber() {
			sum.add(v)
			continue
		}
		haveDate = true
		d, _ := v.DateTime()
		sum.binary.addLong(int64(d))
	}
	if !haveDate {
		return sum.value(), nil
	}
	if sum.typ == bson.TypeDecimal128 {
		n, ok := sum.decimal().Int(decimal.HalfEven)
		if !ok {
			n = math.MinInt64 // what the decimal library makes of an invalid conversion
		}
		return bsondoc.DateValue(n), nil
	}
	if !sum.binary.fitsLong() {
		return missing, srverr.New(srverr.Overflow, "date overflow in $add")
	}
	return bsondoc.DateValue(sum.binary.long()), nil
}

func factor(st *State, args []bson.RawValue, _ int) (done bool, err error) {
	v := args[len(args)-1]
	// they are multiplied as integers, too, until a decimal comes
	if v.Type == bson.TypeDouble && !st.env.Version.AtLeast(5, 0) {
		f := toDouble(v)
		isDecimal := func(v bson.RawValue) bool { return v.Type == bson.TypeDecimal128 }
		if (f >= 1<<63 || f < -1<<63) && !math.IsInf(f, 0) && !slices.ContainsFunc(args, isDecimal) {
			return false, srverr.New(31109, "Can't coerce out of range value %s to long", shortDouble(f))
		}
	}
	if !v.IsNumber() && !nullish(v) {
		return false, typeError(st, 16555, "$multiply only supports numeric types, not %s", typeName(v))
	}
	return nullish(v), nil
}

func evalMultiply(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	typ := bson.TypeInt32
	doubles, longs := 1.0, int64(1)
	var decimals decimal.Decimal
	for _, v := range args {
		old := typ
		typ = widest(typ, v.Type)
		if typ == bson.TypeDecimal128 {
			switch old {
			case bson.TypeDecimal128:
			case bson.TypeDouble:
				decimals = decimal.FromFloat15(doubles)
			default:
				decimals = decimal.FromInt(longs)
			}
			decimals = decimals.Mul(toDecimal(v))
			continue
		}
		doubles *= toDouble(v)
		if typ != bson.TypeDouble {
			var ok bool
			if longs, ok = multiplyLong(longs, toLong(v)); !ok {
				typ = bson.TypeDouble
			}
		}
	}
	switch typ {
	case bson.TypeDecimal128:
		return decimalValue(decimals), nil
	case bson.TypeDouble:
		return bsondoc.DoubleValue(doubles), nil
	case bson.TypeInt64:
		return bsondoc.Int64Value(longs), nil
	}
	return intOrLong(longs), nil
}

func multiplyLong(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	switch {
	case hi != 0 || lo > 1<<63 || lo == 1<<63 && !negative:
		return a * b, false
	}
	return a * b, true
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func evalSubtract(st *State, args []bson.RawValue) (bson.RawValue, error) {
	a, b := args[0], args[1]
	modern := st.env.Version.AtLeast(5, 0)
	switch {
	case a.IsNumber() && b.IsNumber():
		switch widest(a.Type, b.Type) {
		case bson.TypeDecimal128:
			return decimalValue(toDecimal(a).Sub(toDecimal(b))), nil
		case bson.TypeDouble:
			return bsondoc.DoubleValue(toDouble(a) - toDouble(b)), nil
		case bson.TypeInt64:
			x, y := toLong(a), toLong(b)
			if d := x - y; !modern || (d < x) == (y > 0) {
				return bsondoc.Int64Value(d), nil
			}
			return bsondoc.DoubleValue(float64(x) - float64(y)), nil
		}
		return intOrLong(toLong(a) - toLong(b)), nil
	case nullish(a) || nullish(b):
		return null, nil
	case a.Type == bson.TypeDateTime:
		x, _ := a.DateTime()
		switch {
		case b.Type == bson.TypeDateTime:
			y, _ := b.DateTime()
			d := int64(x) - int64(y)
			if modern && (d < int64(x)) != (int64(y) > 0) {
				return missing, srverr.New(srverr.Overflow, "date overflow in $subtract")
			}
			return bsondoc.Int64Value(d), nil
		case b.IsNumber():
			y, err := coerceToLong(b)
			if err != nil && st.env.Version.AllParsed() {
				return missing, srverr.New(srverr.Overflow, "date overflow in $subtract")
			}
			if f, ok := b.Double(); ok && modern && err == nil {
				y = int64(math.Round(f))
			}
			if err != nil {
				return missing, err
			}
			if y == math.MinInt64 && !modern {
				return missing, srverr.New(159, "Cannot negate the minimum duration")
			}
			d := int64(x) - y
			if modern && (d < int64(x)) != (y > 0) {
				return missing, srverr.New(srverr.Overflow, "date overflow in $subtract")
			}
			return bsondoc.DateValue(d), nil
		case modern:
			return missing, srverr.New(srverr.TypeMismatch, "can't $subtract %s from Date", typeName(b))
		}
		return missing, srverr.New(16613, "cant $subtract a %s from a Date", typeName(b))
	case modern:
		return missing, srverr.New(srverr.TypeMismatch, "can't $subtract %s from %s", typeName(b), typeName(a))
	}
	return missing, srverr.New(16556, "cant $subtract a%s from a %s", typeName(b), typeName(a))
}

func evalDivide(st *State, args []bson.RawValue) (bson.RawValue, error) {
	a, b := args[0], args[1]
	byZero := func() error {
		if st.env.Version.AtLeast(5, 0) {
			return srverr.New(srverr.BadValue, DivideByZero)
		}
		return srverr.New(16608, DivideByZero)
	}
	switch {
	case a.IsNumber() && b.IsNumber():
		if a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128 {
			d := toDecimal(b)
			if d.IsZero() {
				return missing, byZero()
			}
			return decimalValue(toDecimal(a).Quo(d)), nil
		}
		f := toDouble(b)
		if f == 0 {
			return missing, byZero()
		}
		return bsondoc.DoubleValue(toDouble(a) / f), nil
	case nullish(a) || nullish(b):
		return null, nil
	}
	code := int32(16609)
	if st.env.Version.AtLeast(5, 0) {
		code = srverr.TypeMismatch
	}
	return missing, srverr.New(code, "$divide only supports numeric types, not %s and %s", typeName(a), typeName(b))
}

func evalMod(st *State, args []bson.RawValue) (bson.RawValue, error) {
	a, b := args[0], args[1]
	larger := st.env.Version.AtLeast(7, 2) // the result has the larger of both types
	switch {
	case nullish(a) || nullish(b):
		if !a.IsNumber() && !nullish(a) || !b.IsNumber() && !nullish(b) {
			break
		}
		return null, nil
	case a.IsNumber() && b.IsNumber():
		if a.Type == bson.TypeDecimal128 || b.Type == bson.TypeDecimal128 {
			d := toDecimal(b)
			if d.IsZero() {
				return missing, srverr.New(st.code(16610, 5733415), "can't $mod by zero")
			}
			return decimalValue(toDecimal(a).Mod(d)), nil
		}
		if toDouble(b) == 0 {
			return missing, srverr.New(16610, "can't $mod by zero")
		}
		if a.Type == bson.TypeDouble || b.Type == bson.TypeDouble && (larger || !integral(b)) {
			return bsondoc.DoubleValue(math.Mod(toDouble(a), toDouble(b))), nil
		}
		y := toLong(b)
		var r int64
		if y != -1 {
			r = toLong(a) % y
		}
		if a.Type == bson.TypeInt64 || b.Type == bson.TypeInt64 {
			return bsondoc.Int64Value(r), nil
		}
		return bsondoc.Int32Value(int32(r)), nil
	}
	if nullish(a) || nullish(b) {
		return null, nil
	}
	return missing, srverr.New(16611, "$mod only supports numeric types, not %s and %s", typeName(a), typeName(b))
}

func evalAbs(v bson.RawValue) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDecimal128:
		return decimalValue(toDecimal(v).Abs()), nil
	case bson.TypeDouble:
		return bsondoc.DoubleValue(math.Abs(toDouble(v))), nil
	}
	n := toLong(v)
	if n == math.MinInt64 {
		return missing, srverr.New(28680, "can't take $abs of long long min")
	}
	n = max(n, -n)
	if v.Type == bson.TypeInt64 {
		return bsondoc.Int64Value(n), nil
	}
	return intOrLong(n), nil
}

func integralPart(mode decimal.Rounding, f func(float64) float64) func(bson.RawValue) (bson.RawValue, error) {
	return func(v bson.RawValue) (bson.RawValue, error) {
		switch v.Type {
		case bson.TypeDecimal128:
			d := toDecimal(v)
			if d.IsInf() {
				return decimalValue(decimal.NaN), nil // the decimal library calls that an invalid operation
			}
			return decimalValue(d.Quantize(0, mode)), nil
		case bson.TypeDouble:
			return bsondoc.DoubleValue(f(toDouble(v))), nil
		}
		return v, nil
	}
}

// rounded returns the check of the number that $round or $trunc rounds, which comes before the
// precision.
func rounded(name string) func(*State, []bson.RawValue, int) (bool, error) {
	return func(_ *State, args []bson.RawValue, _ int) (done bool, err error) {
		if len(args) == 1 && !nullish(args[0]) && !args[0].IsNumber() {
			return false, srverr.New(51081, "%s only supports numeric types, not %s", name, typeName(args[0]))
		}
		return nullish(args[0]), nil
	}
}

// rounder returns $round or $trunc.
func rounder(name string, mode decimal.Rounding) func(*State, []bson.RawValue) (bson.RawValue, error) {
	return func(st *State, args []bson.RawValue) (bson.RawValue, error) {
		v := args[0]
		var places int64
		if len(args) > 1 {
			p := args[1]
			if nullish(p) {
				return null, nil
			}
			if !p.IsNumber() {
				return missing, srverr.New(16004, "can't convert from BSON type %s to long", typeName(p))
			}
			isNaN := math.IsNaN(toDouble(p)) && !(p.Type == bson.TypeDecimal128 && st.env.Version.AllParsed())
			if f := toDouble(p); isNaN || math.Abs(f) >= 1<<63 && p.Type != bson.TypeInt64 {
				return missing, srverr.New(31109, "Can't coerce out of range value %s to long", shortDouble(f))
			}
			if !integral(p) {
				return missing, srverr.New(51082, "precision argument to  %s must be a integral value", name)
			}
			if places = toLong(p); places < -20 || places > 100 {
				return missing, srverr.New(51083, "cannot apply %s with precision value %d value must be in [-20, 100]",
					name, places)
			}
		}
		switch v.Type {
		case bson.TypeDecimal128:
			return decimalValue(toDecimal(v).QuantizeFull(int(-places), mode)), nil
		case bson.TypeDouble:
			f := toDouble(v)
			if math.IsInf(f, 0) || math.IsNaN(f) {
				return v, nil
			}
			return bsondoc.DoubleValue(decimal.FromFloat(f).QuantizeFull(int(-places), mode).Float()), nil
		}
		if places >= 0 {
			return v, nil
		}
		n, ok := toDecimal(v).Quantize(int(-places), mode).Int(decimal.HalfEven)
		if !ok {
			return missing, srverr.New(
				51080, "invalid conversion from Decimal128 result in %s resulting from arguments: [%s, %d]", name,
				Text(v), places)
		}
		if v.Type == bson.TypeInt64 {
			return bsondoc.Int64Value(n), nil
		}
		return intOrLong(n), nil
	}
}

func evalSqrt(v bson.RawValue) (bson.RawValue, error) {
	negative := srverr.New(28714, "$sqrt's argument must be greater than or equal to 0")
	if v.Type == bson.TypeDecimal128 {
		d := toDecimal(v)
		if d.Cmp(decimal.Decimal{}) < 0 && !d.IsNaN() {
			return missing, negative
		}
		return decimalValue(d.Sqrt()), nil
	}
	f := toDouble(v)
	if f < 0 {
		return missing, negative
	}
	return bsondoc.DoubleValue(math.Sqrt(f)), nil
}

// positive reports whether a decimal is greater than zero.
func positive(d decimal.Decimal) bool { return !d.IsNaN() && d.Cmp(decimal.Decimal{}) > 0 }

// A logarithm of a decimal that is not greater than zero is that of a double, for which NaN is no
// error.
func logarithm(name string, code int32, d func(decimal.Decimal) decimal.Decimal,
	f func(float64) float64) func(bson.RawValue) (bson.RawValue, error) {
	return func(v bson.RawValue) (bson.RawValue, error) {
		if v.Type == bson.TypeDecimal128 && positive(toDecimal(v)) {
			return decimalValue(d(toDecimal(v))), nil
		}
		x := toDouble(v)
		if x <= 0 {
			return missing, srverr.New(code, "%s's argument must be a positive number, but is %s", name, shortDouble(x))
		}
		return bsondoc.DoubleValue(f(x)), nil
	}
}

func evalLog(st *State, args []bson.RawValue) (bson.RawValue, error) {
	v, base := args[0], args[1]
	switch {
	case nullish(v) || nullish(base):
		return null, nil
	case !v.IsNumber():
		return missing, srverr.New(28756, "$log's argument must be numeric, not %s", typeName(v))
	case !base.IsNumber():
		return missing, srverr.New(28757, "$log's base must be numeric, not %s", typeName(base))
	}
	if v.Type == bson.TypeDecimal128 || base.Type == bson.TypeDecimal128 {
		d, b := toDecimal(v), toDecimal(base)
		if positive(d) && positive(b) && b.Cmp(decimal.FromInt(1)) != 0 {
			if st.env.Version.AllParsed() {
				return decimalValue(d.Ln().Quo(b.Ln())), nil
			}
			return decimalValue(d.Log(b)), nil
		}
	}
	x, b := toDouble(v), toDouble(base)
	switch {
	case x <= 0:
		return missing, srverr.New(28758, "$log's argument must be a positive number, but is %s", shortDouble(x))
	case b <= 0 || b == 1:
		return missing, srverr.New(28759, "$log's base must be a positive number not equal to 1, but is %s",
			shortDouble(b))
	}
	return bsondoc.DoubleValue(ln(x) / ln(b)), nil
}

func evalPow(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	base, exp := args[0], args[1]
	switch {
	case nullish(base) || nullish(exp):
		return null, nil
	case !base.IsNumber():
		return missing, srverr.New(28762, "$pow's base must be numeric, not %s", typeName(base))
	case !exp.IsNumber():
		return missing, srverr.New(28763, "$pow's exponent must be numeric, not %s", typeName(exp))
	}
	zeroToNegative := srverr.New(28764, "$pow cannot take a base of 0 and a negative exponent")
	if base.Type == bson.TypeDecimal128 || exp.Type == bson.TypeDecimal128 {
		b, e := toDecimal(base), toDecimal(exp)
		if b.IsZero() && e.IsNegative() && !e.IsNaN() {
			return missing, zeroToNegative
		}
		return decimalValue(b.Pow(e)), nil
	}
	b, e := toDouble(base), toDouble(exp)
	if b == 0 && e < 0 {
		return missing, zeroToNegative
	}
	if base.Type == bson.TypeDouble || exp.Type == bson.TypeDouble {
		return bsondoc.DoubleValue(pow(b, e)), nil
	}
	result := func(n int64) (bson.RawValue, error) {
		if base.Type == bson.TypeInt64 || exp.Type == bson.TypeInt64 {
			return bsondoc.Int64Value(n), nil
		}
		return intOrLong(n), nil
	}
	x, n := toLong(base), toLong(exp)
	switch {
	case x == 0 && n != 0:
		return result(0)
	case x == 0 || x == 1 || n == 0 || x == -1 && n%2 == 0:
		return result(1)
	case x == -1:
		return result(-1)
	case n < 0 || n > 63:
		return bsondoc.DoubleValue(pow(b, e)), nil
	}
	out := int64(1)
	for range n {
		var ok bool
		if out, ok = multiplyLong(out, x); !ok {
			return bsondoc.DoubleValue(pow(b, e)), nil
		}
	}
	return result(out)
}
