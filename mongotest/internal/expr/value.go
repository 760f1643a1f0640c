package expr

// Values: how they are made, told apart, converted and shown in messages.

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/srverr"
)

var (
	missing    = bson.RawValue{}
	null       = bson.RawValue{Type: bson.TypeNull}
	trueValue  = bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}
	falseValue = bson.RawValue{Type: bson.TypeBoolean, Value: []byte{0}}
)

func boolValue(b bool) bson.RawValue {
	if b {
		return trueValue
	}
	return falseValue
}

// intOrLong returns an int where it fits.
func intOrLong(n int64) bson.RawValue {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return bsondoc.Int32Value(int32(n))
	}
	return bsondoc.Int64Value(n)
}

func decimalValue(d decimal.Decimal) bson.RawValue {
	return bson.RawValue{Type: bson.TypeDecimal128, Value: bson.AppendDecimal128Value(nil, d.BSON())}
}

// arrayBuilder collects an array's items; missing ones become null.
type arrayBuilder struct {
	dst []byte
	n   int
}

func newArray() *arrayBuilder {
	_, dst := bson.BeginDocument(nil)
	return &arrayBuilder{dst: dst}
}

func (b *arrayBuilder) add(v bson.RawValue) {
	if v.Type == 0 {
		v = null
	}
	b.dst = append(bson.AppendIndexHeader(b.dst, v.Type, b.n), v.Value...)
	b.n++
}

func (b *arrayBuilder) value() bson.RawValue {
	return bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(b.dst, 0)}
}

func arrayOf(items []bson.RawValue) bson.RawValue {
	b := newArray()
	for _, v := range items {
		b.add(v)
	}
	return b.value()
}

// nullish reports whether v is missing, null or undefined.
func nullish(v bson.RawValue) bool {
	return v.Type == 0 || v.Type == bson.TypeNull || v.Type == bson.TypeUndefined
}

// Truthy reports what v means as a condition: everything but false, zero, null, undefined and
// missing is true.
func Truthy(v bson.RawValue) bool {
	if v.Type == bson.TypeDecimal128 {
		return !toDecimal(v).IsZero()
	}
	return v.AsBool()
}

func isString(v bson.RawValue) bool { return v.Type == bson.TypeString }

// text returns a string's bytes as a string, without checking the type.
func text(v bson.RawValue) string {
	s, _ := v.StringValue()
	return s
}

func typeName(v bson.RawValue) string { return bsontext.TypeName(v.Type) }

// integral reports whether v is a number with an integer value that fits 32 bits.
func integral(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeInt32:
		return true
	case bson.TypeInt64:
		n, _ := v.Int64()
		return n >= math.MinInt32 && n <= math.MaxInt32
	case bson.TypeDouble:
		f, _ := v.Double()
		return f == math.Trunc(f) && f >= math.MinInt32 && f <= math.MaxInt32
	case bson.TypeDecimal128:
		d := toDecimal(v)
		n, ok := d.Int(decimal.Down)
		return ok && d.Integral() && n >= math.MinInt32 && n <= math.MaxInt32
	}
	return false
}

// integral64 is integral for 64 bits.
func integral64(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return true
	case bson.TypeDouble:
		f, _ := v.Double()
		return f == math.Trunc(f) && f >= -(1<<63) && f < 1<<63
	case bson.TypeDecimal128:
		d := toDecimal(v)
		_, ok := d.Int(decimal.Down)
		return ok && d.Integral()
	}
	return false
}

// ToLong cuts a number down to an int64, as the server reads numeric arguments of commands and
// stages.
func ToLong(v bson.RawValue) int64 { return toLong(v) }

// ClampLong cuts a number down to an int64 as ToLong does, decimals included: what is no number is
// 0 and what is out of range clamped.
func ClampLong(v bson.RawValue) int64 {
	if d, ok := v.Decimal128(); ok {
		if n, ok := decimal.FromBSON(d).Int(decimal.HalfEven); ok {
			return n
		}
		return clampLong(toDouble(v))
	}
	return toLong(v)
}

// toLong cuts a number down to an int64; what is out of range is clamped.
func toLong(v bson.RawValue) int64 {
	switch v.Type {
	case bson.TypeInt32:
		n, _ := v.Int32()
		return int64(n)
	case bson.TypeInt64:
		n, _ := v.Int64()
		return n
	case bson.TypeDouble:
		f, _ := v.Double()
		return clampLong(f)
	case bson.TypeDecimal128:
		d := toDecimal(v)
		n, ok := d.Int(decimal.HalfEven)
		if !ok {
			return math.MinInt64
		}
		return n
	}
	return 0
}

// coerceToLong cuts a number down to an int64, and refuses a double that is out of range.
func coerceToLong(v bson.RawValue) (int64, error) {
	if f, ok := v.Double(); ok && !(f >= -(1<<63) && f < 1<<63) {
		return 0, srverr.New(31109, "Can't coerce out of range value %s to long", shortDouble(f))
	}
	return toLong(v), nil
}

func clampLong(f float64) int64 {
	switch {
	case f != f:
		return 0
	case f >= 1<<63:
		return math.MaxInt64
	case f <= -(1 << 63):
		return math.MinInt64
	}
	return int64(f)
}

func toInt(v bson.RawValue) int32 {
	n := toLong(v)
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}

func toDouble(v bson.RawValue) float64 {
	switch v.Type {
	case bson.TypeInt32:
		n, _ := v.Int32()
		return float64(n)
	case bson.TypeInt64:
		n, _ := v.Int64()
		return float64(n)
	case bson.TypeDouble:
		f, _ := v.Double()
		return f
	case bson.TypeDecimal128:
		return toDecimal(v).Float()
	}
	return 0
}

// toDecimal converts a number; a double keeps 15 digits.
func toDecimal(v bson.RawValue) decimal.Decimal {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return decimal.FromInt(toLong(v))
	case bson.TypeDouble:
		f, _ := v.Double()
		return decimal.FromFloat15(f)
	case bson.TypeDecimal128:
		d, _ := v.Decimal128()
		return decimal.FromBSON(d)
	}
	return decimal.Decimal{}
}

// widest returns the type of the result of arithmetic on two numbers.
func widest(a, b bson.Type) bson.Type {
	for _, t := range []bson.Type{bson.TypeDecimal128, bson.TypeDouble, bson.TypeInt64} {
		if a == t || b == t {
			return t
		}
	}
	return bson.TypeInt32
}

// coerceToString is what string operators make of a value; null and missing are empty.
func coerceToString(version Version, v bson.RawValue) (string, error) {
	switch v.Type {
	case bson.TypeDouble:
		f, _ := v.Double()
		return shortDouble(f), nil
	case bson.TypeInt32, bson.TypeInt64:
		return strconv.FormatInt(toLong(v), 10), nil
	case bson.TypeDecimal128:
		return toDecimal(v).String(), nil
	case bson.TypeString:
		return text(v), nil
	case bson.TypeSymbol:
		s, _ := v.Symbol()
		return string(s), nil
	case bson.TypeJavaScript:
		s, _ := v.JavaScript()
		return string(s), nil
	case bson.TypeTimestamp:
		ts, _ := v.Timestamp()
		c := dateOf(int64(ts.T) * 1000)
		format := "%s %2d %02d:%02d:%02d:%x"
		if version.AllParsed() {
			format = "%s %2d %02d:%02d:%02d:%d"
		}
		return fmt.Sprintf(format, monthNames[c.month-1][:3], c.day, c.hour, c.minute, c.second, ts.I), nil
	case bson.TypeDateTime:
		d, _ := v.DateTime()
		return isoDate(int64(d)), nil
	case 0, bson.TypeNull, bson.TypeUndefined:
		return "", nil
	}
	return "", srverr.New(16007, "can't convert from BSON type %s to String", typeName(v))
}

func timestampText(ts bson.Timestamp) string { return fmt.Sprintf("Timestamp(%d, %d)", ts.T, ts.I) }

// shortDouble renders a double with six digits, as C++ streams do.
func shortDouble(f float64) string { return bsontext.CDouble(f, 6) }

// Text renders a value the way the server's Value type shows itself in messages: {a: 1, b: "x"},
// MISSING.
func Text(v bson.RawValue) string {
	var b strings.Builder
	writeText(&b, v, 0)
	return b.String()
}

func writeText(b *strings.Builder, v bson.RawValue, depth int) {
	if depth > maxDepth+20 {
		b.WriteString("...")
		return
	}
	switch v.Type {
	case 0:
		b.WriteString("MISSING")
	case bson.TypeMinKey:
		b.WriteString("MinKey")
	case bson.TypeMaxKey:
		b.WriteString("MaxKey")
	case bson.TypeDouble:
		f, _ := v.Double()
		b.WriteString(shortDouble(f))
	case bson.TypeInt32, bson.TypeInt64:
		b.WriteString(strconv.FormatInt(toLong(v), 10))
	case bson.TypeDecimal128:
		b.WriteString(toDecimal(v).String())
	case bson.TypeBoolean:
		b.WriteString(strconv.FormatBool(v.AsBool()))
	case bson.TypeString:
		b.WriteString(`"` + text(v) + `"`)
	case bson.TypeRegex:
		re, _ := v.Regex()
		b.WriteString("/" + re.Pattern + "/" + re.Options)
	case bson.TypeSymbol:
		s, _ := v.Symbol()
		b.WriteString(`Symbol("` + string(s) + `")`)
	case bson.TypeJavaScript:
		s, _ := v.JavaScript()
		b.WriteString(`Code("` + string(s) + `")`)
	case bson.TypeCodeWithScope:
		code, scope, _ := v.CodeWithScope()
		b.WriteString(`CodeWScope("` + code + `", `)
		writeText(b, bsondoc.DocumentValue(scope), depth+1)
		b.WriteString(")")
	case bson.TypeBinary:
		if len(v.Value) >= 5 {
			fmt.Fprintf(b, "BinData(%d, \"%s\")", v.Value[4], strings.ToUpper(hex.EncodeToString(v.Value[5:])))
		}
	case bson.TypeUndefined:
		b.WriteString("undefined")
	case bson.TypeNull:
		b.WriteString("null")
	case bson.TypeDateTime:
		d, _ := v.DateTime()
		if y := dateOf(int64(d)).year; y < 0 || y > 9999 {
			b.WriteString("illegal date")
		} else {
			b.WriteString(isoDate(int64(d)))
		}
	case bson.TypeTimestamp:
		ts, _ := v.Timestamp()
		b.WriteString(timestampText(ts))
	case bson.TypeObjectID:
		id, _ := v.ObjectID()
		b.WriteString(hex.EncodeToString(id[:]))
	case bson.TypeDBPointer:
		p, _ := v.DBPointer()
		fmt.Fprintf(b, `DBRef("%s", %s)`, p.DB, hex.EncodeToString(p.Pointer[:]))
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		open, end := "{", "}"
		if v.Type == bson.TypeArray {
			open, end = "[", "]"
		}
		b.WriteString(open)
		first := true
		for k, item := range bson.Raw(v.Value).All() {
			if !first {
				b.WriteString(", ")
			}
			first = false
			if v.Type == bson.TypeEmbeddedDocument {
				b.WriteString(k + ": ")
			}
			writeText(b, item, depth+1)
		}
		b.WriteString(end)
	}
}

func documentText(doc bson.Raw) string { return bsontext.Document(doc) }

// DecimalToLong returns a decimal that is an integer as one, and whether it is.
func DecimalToLong(d bson.Decimal128) (int64, bool) {
	dec := decimal.FromBSON(d)
	n, ok := dec.Int(decimal.Down)
	return n, ok && dec.Integral()
}

// ToDouble returns a number as a float64.
func ToDouble(v bson.RawValue) float64 { return toDouble(v) }

// Int32 returns a number that is an integer of 32 bits as one, and whether it is.
func Int32(v bson.RawValue) (int32, bool) {
	if !v.IsNumber() || !integral(v) {
		return 0, false
	}
	return toInt(v), true
}

// DecimalValue returns a decimal as a value.
func DecimalValue(d decimal.Decimal) bson.RawValue { return decimalValue(d) }

// ToDecimal returns a number as a decimal; of a double it has 15 digits.
func ToDecimal(v bson.RawValue) decimal.Decimal { return toDecimal(v) }
