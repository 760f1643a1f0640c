package expr

// $convert and $toInt, $toString and so on.

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/decimal"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

func init() {
	registerParser("$convert", parseConvert, shownOperands("input", "to", "onError", "onNull"))
	for name, to := range map[string]bson.Type{
		"$toArray": bson.TypeArray, "$toBool": bson.TypeBoolean, "$toDate": bson.TypeDateTime,
		"$toDecimal": bson.TypeDecimal128, "$toDouble": bson.TypeDouble, "$toInt": bson.TypeInt32,
		"$toLong": bson.TypeInt64, "$toObject": bson.TypeEmbeddedDocument, "$toObjectId": bson.TypeObjectID,
		"$toString": bson.TypeString,
	} {
		registerConversion(name, "auto", bsondoc.Int32Value(int32(to)))
	}
	at, uuid := bson.BeginDocument(nil)
	uuid = bson.AppendInt32(bson.AppendString(uuid, "type", "binData"), "subtype", int32(bson.BinaryUUID))
	registerConversion("$toUUID", "uuid",
		bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: bson.EndDocument(uuid, at)})
}

// registerConversion adds an operator that is short for $convert with these arguments.
func registerConversion(name, format string, to bson.RawValue) {
	parse := func(name string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
		args, err := parseArguments(v, s, depth)
		if err != nil {
			return nil, err
		}
		if len(args) != 1 {
			return nil, srverr.New(50723, "%s requires a single argument, got %d", name, len(args))
		}
		return &convert{input: args[0], to: &constant{to}, format: &constant{bsondoc.StringValue(format)}}, nil
	}
	operators[name] = operator{parse: parse, shown: shownConversion(to), as: "$convert"}
}

// convert is $convert. Of its arguments only input and to are always there.
type convert struct {
	input, to, onError, onNull Expr
	format, byteOrder, base    Expr
}

func parseConvert(_ string, v bson.RawValue, s *Scope, depth int) (Expr, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, srverr.New(srverr.FailedToParse, "$convert expects an object of named arguments but found: %s",
			typeName(v))
	}
	c := &convert{}
	has := func(name string) bool { return s.env.Version.Has(release.Argument, name) }
	for key, item := range bson.Raw(v.Value).All() {
		var target *Expr
		switch {
		case key == "input":
			target = &c.input
		case key == "to":
			target = &c.to
		case key == "onError":
			target = &c.onError
		case key == "onNull":
			target = &c.onNull
		case key == "format" && has("$convert.format"):
			target = &c.format
		case key == "byteOrder" && has("$convert.byteOrder"):
			target = &c.byteOrder
		case key == "base" && has("$convert.base"):
			target = &c.base
		default:
			return nil, srverr.New(srverr.FailedToParse, "$convert found an unknown argument: %s", key)
		}
		e, err := parse(item, s, depth+1)
		if err != nil {
			return nil, err
		}
		*target = e
	}
	switch {
	case c.input == nil:
		return nil, srverr.New(srverr.FailedToParse, "Missing 'input' parameter to $convert")
	case c.to == nil:
		return nil, srverr.New(srverr.FailedToParse, "Missing 'to' parameter to $convert")
	}
	return c, nil
}

func (c *convert) children() []Expr {
	return []Expr{c.input, c.to, c.onError, c.onNull, c.format, c.byteOrder, c.base}
}

func (c *convert) optimize(env *Env) (Expr, error) {
	args, all, err := optimizeAll(c.children(), env)
	if err != nil {
		return nil, err
	}
	return fold(&convert{args[0], args[1], args[2], args[3], args[4], args[5], args[6]}, all, env)
}

func (c *convert) eval(st *State) (bson.RawValue, error) {
	to, err := c.to.eval(st)
	if err != nil {
		return missing, err
	}
	in, err := c.input.eval(st)
	if err != nil {
		return missing, err
	}
	var target bson.Type
	var subtype bson.RawValue
	if !nullish(to) {
		kind := to
		if to.Type == bson.TypeEmbeddedDocument && st.env.Version.AtLeast(8, 0) {
			if kind, subtype, err = splitTarget(to); err != nil {
				return missing, err
			}
		}
		if target, err = c.target(kind); err != nil {
			return missing, err
		}
	}
	if nullish(in) {
		if c.onNull != nil {
			return c.onNull.eval(st)
		}
		return null, nil
	}
	if nullish(to) {
		return null, nil
	}
	out, err := c.convert(st, in, target, subtype)
	if err != nil && c.onError != nil && srverr.CodeOf(err) == srverr.ConversionFailure {
		return c.onError.eval(st)
	}
	return out, err
}

// convert finds the kind of conversion. What its arguments say is read only by those that need it,
// but for the base.
func (c *convert) convert(st *State, v bson.RawValue, to bson.Type, subtype bson.RawValue) (bson.RawValue, error) {
	version := st.env.Version
	base, err := c.numberBase(st)
	if err != nil {
		return missing, err
	}
	isBinary, toBinary := v.Type == bson.TypeBinary, to == bson.TypeBinary
	since83 := version.Has(release.Argument, "$convert.base")
	switch {
	case !version.AtLeast(8, 0):
	case isBinary && (toBinary || to == bson.TypeString), v.Type == bson.TypeString && toBinary:
		return c.convertBinary(st, v, to, subtype)
	case (isBinary && isNumberType(to) || toBinary && v.IsNumber()) &&
		version.Has(release.Argument, "$convert.byteOrder"):
		return c.convertBytes(st, v, to, subtype)
	case since83 && (isBinary && to == bson.TypeArray || v.Type == bson.TypeArray && toBinary):
		return convertVector(v, subtype)
	case since83 && v.Type == bson.TypeString && (to == bson.TypeArray || to == bson.TypeEmbeddedDocument):
		return parseJSON(text(v), to)
	case base != 0 && v.Type == bson.TypeString && isNumberType(to):
		return parseInBase(text(v), to, base, version)
	case base != 0 && v.IsNumber() && to == bson.TypeString:
		return formatInBase(v, base)
	}
	return convertValue(v, to, version)
}

// isNumberType reports whether values of the type are numbers.
func isNumberType(t bson.Type) bool { return bson.RawValue{Type: t}.IsNumber() }

// target reads the type that 'to' names or numbers.
func (c *convert) target(to bson.RawValue) (bson.Type, error) {
	switch {
	case isString(to):
		name := text(to)
		if name == "missing" {
			return 0, nil
		}
		for _, t := range allTypes {
			if bsontext.TypeName(t) == name {
				return t, nil
			}
		}
		return 0, srverr.New(srverr.BadValue, "Unknown type name: %s", name)
	case to.IsNumber():
		if !integral(to) {
			return 0, srverr.New(srverr.FailedToParse, "In $convert, numeric 'to' argument is not an integer")
		}
		n := toLong(to)
		if n == 0 { // the server's number for "missing"
			return 0, nil
		}
		for _, t := range allTypes {
			if int64(int8(t)) == n {
				return t, nil
			}
		}
		return 0, srverr.New(srverr.FailedToParse,
			"In $convert, numeric value for 'to' does not correspond to a BSON type: %d", n)
	}
	return 0, srverr.New(srverr.FailedToParse, "$convert's 'to' argument must be a string or number, but is %s",
		typeName(to))
}

var allTypes = []bson.Type{
	bson.TypeDouble, bson.TypeString, bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeBinary, bson.TypeUndefined,
	bson.TypeObjectID,
	bson.TypeBoolean, bson.TypeDateTime, bson.TypeNull, bson.TypeRegex, bson.TypeDBPointer, bson.TypeJavaScript,
	bson.TypeSymbol,
	bson.TypeCodeWithScope, bson.TypeInt32, bson.TypeTimestamp, bson.TypeInt64, bson.TypeDecimal128, bson.TypeMinKey,
	bson.TypeMaxKey,
}

// minNormal is the least double that has all its bits.
const minNormal = 0x1p-1022

const noOnError = " in $convert with no onError value"

func conversionFailure(format string, args ...any) error {
	return srverr.New(srverr.ConversionFailure, format, args...)
}

func convertValue(v bson.RawValue, to bson.Type, version Version) (bson.RawValue, error) {
	unsupported := conversionFailure("Unsupported conversion from %s to %s"+noOnError, typeName(v),
		bsontext.TypeName(to))
	if v.IsNumber() && (to == bson.TypeInt32 || to == bson.TypeInt64 || to == bson.TypeDouble ||
		to == bson.TypeDecimal128) {
		return convertNumber(v, to)
	}
	switch to {
	case bson.TypeBoolean:
		switch v.Type {
		case bson.TypeDateTime, bson.TypeString:
			return trueValue, nil
		}
		return boolValue(Truthy(v)), nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		switch v.Type {
		case bson.TypeBoolean:
			n := int64(0)
			if v.AsBool() {
				n = 1
			}
			return convertNumber(bsondoc.Int64Value(n), to)
		case bson.TypeDateTime:
			if to != bson.TypeInt32 {
				d, _ := v.DateTime()
				return convertNumber(bsondoc.Int64Value(int64(d)), to)
			}
		case bson.TypeString:
			return parseNumber(text(v), to, version)
		}
	case bson.TypeDateTime:
		return convertToDate(v, unsupported, version)
	case bson.TypeString:
		switch v.Type {
		case bson.TypeDouble:
			f := toDouble(v)
			switch {
			case math.IsNaN(f):
				return bsondoc.StringValue("NaN"), nil
			case math.IsInf(f, 1):
				return bsondoc.StringValue("Infinity"), nil
			case math.IsInf(f, -1):
				return bsondoc.StringValue("-Infinity"), nil
			}
			if version.AtLeast(8, 0) {
				return bsondoc.StringValue(shortestDouble(f)), nil
			}
			return bsondoc.StringValue(shortDouble(f)), nil
		case bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128, bson.TypeString:
			s, err := coerceToString(version, v)
			return bsondoc.StringValue(s), err
		case bson.TypeBoolean:
			return bsondoc.StringValue(strconv.FormatBool(v.AsBool())), nil
		case bson.TypeDateTime:
			d, _ := v.DateTime()
			s, err := formatDate(isoFormat, int64(d), utc)
			return bsondoc.StringValue(s), err
		case bson.TypeObjectID:
			id, _ := v.ObjectID()
			return bsondoc.StringValue(hex.EncodeToString(id[:])), nil
		}
	case bson.TypeObjectID:
		switch v.Type {
		case bson.TypeObjectID:
			return v, nil
		case bson.TypeString:
			return parseObjectID(text(v))
		}
	}
	return missing, unsupported
}

func parseObjectID(s string) (bson.RawValue, error) {
	if len(s) != 24 {
		return missing, conversionFailure("Failed to parse objectId '%s'"+noOnError+
			": Invalid string length for parsing to OID, expected 24 but found %d", s, len(s))
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		bad := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) })
		return missing, conversionFailure("Failed to parse objectId '%s'"+noOnError+
			": Invalid character found in hex string: '%c'", s, s[bad])
	}
	return bson.RawValue{Type: bson.TypeObjectID, Value: b}, nil
}

func convertToDate(v bson.RawValue, unsupported error, version Version) (bson.RawValue, error) {
	switch v.Type {
	case bson.TypeDateTime:
		return v, nil
	case bson.TypeInt64, bson.TypeDouble, bson.TypeDecimal128:
		n, err := convertNumber(v, bson.TypeInt64)
		if err != nil {
			return missing, err
		}
		return bsondoc.DateValue(toLong(n)), nil
	case bson.TypeString:
		ms, err := parseDate(freeText(v, version), utc)
		return bsondoc.DateValue(ms), err
	case bson.TypeObjectID:
		ms, err := coerceToDate(v)
		return bsondoc.DateValue(ms), err
	case bson.TypeTimestamp:
		if version.AtLeast(4, 6) {
			ms, err := coerceToDate(v)
			return bsondoc.DateValue(ms), err
		}
	}
	return missing, unsupported
}

// convertNumber converts between numbers; integers are cut off towards zero.
func convertNumber(v bson.RawValue, to bson.Type) (bson.RawValue, error) {
	overflow := func(shown string) (bson.RawValue, error) {
		return missing, conversionFailure("Conversion would overflow target type"+noOnError+": %s", shown)
	}
	switch to {
	case bson.TypeDecimal128:
		if v.Type == bson.TypeDecimal128 {
			return v, nil
		}
		return decimalValue(toDecimal(v)), nil
	case bson.TypeDouble:
		if v.Type == bson.TypeDecimal128 {
			d := toDecimal(v)
			f := d.Float()
			if math.IsInf(f, 0) && !d.IsInf() {
				return overflow(d.String())
			}
			return bsondoc.DoubleValue(f), nil
		}
		return bsondoc.DoubleValue(toDouble(v)), nil
	}
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if to == bson.TypeInt32 {
		low, high = math.MinInt32, math.MaxInt32
	}
	var n int64
	switch v.Type {
	case bson.TypeDouble, bson.TypeDecimal128:
		f := toDouble(v)
		switch {
		case math.IsNaN(f):
			return missing, conversionFailure("Attempt to convert NaN value to integer type" + noOnError)
		case math.IsInf(f, 0) && (v.Type == bson.TypeDouble || toDecimal(v).IsInf()):
			return missing, conversionFailure("Attempt to convert infinity value to integer type" + noOnError)
		}
		shown := shortDouble(f)
		if v.Type == bson.TypeDecimal128 {
			shown = toDecimal(v).String()
			var ok bool
			if n, ok = toDecimal(v).Int(decimal.Down); !ok {
				return overflow(shown)
			}
		} else {
			if f < float64(low) || f > float64(high) || f >= 1<<63 {
				return overflow(shown)
			}
			n = int64(f)
		}
		if n < low || n > high {
			return overflow(shown)
		}
	default:
		if n = toLong(v); n < low || n > high {
			return overflow("") // the server prints nothing there
		}
	}
	if to == bson.TypeInt32 {
		return bsondoc.Int32Value(int32(n)), nil
	}
	return bsondoc.Int64Value(n), nil
}

// parseNumber reads a number from a whole string.
func parseNumber(s string, to bson.Type, version Version) (bson.RawValue, error) {
	fail := func(reason string) (bson.RawValue, error) {
		return missing, conversionFailure("Failed to parse number '%s'"+noOnError+": %s", s, reason)
	}
	if strings.HasPrefix(s, "0x") { // and not +0x or 0X, which the C library reads
		return missing, conversionFailure("Illegal hexadecimal input"+noOnError+": %s", s)
	}
	switch to {
	case bson.TypeInt32, bson.TypeInt64:
		bits := 64
		if to == bson.TypeInt32 {
			bits = 32
		}
		digits := strings.TrimPrefix(strings.TrimPrefix(s, "+"), "-")
		switch {
		case digits == "" || len(s)-len(digits) > 1:
			return fail("No digits")
		case strings.Trim(digits, "0123456789") != "":
			return fail("Did not consume whole string.")
		}
		n, err := strconv.ParseInt(s, 10, bits)
		if err != nil {
			return fail("Overflow")
		}
		if bits == 32 {
			return bsondoc.Int32Value(int32(n)), nil
		}
		return bsondoc.Int64Value(n), nil
	case bson.TypeDouble:
		if s == "" {
			return fail("Empty string")
		}
		if strings.TrimSpace(s) != s {
			if strings.TrimLeft(s, " \t\n\v\f\r") != s {
				return fail("Leading whitespace")
			}
			return fail("Did not consume whole string.")
		}
		if !startsNumber(s) {
			return fail("Did not consume any digits")
		}
		if f, ok := parseHexDouble(s); ok {
			return bsondoc.DoubleValue(f), nil
		}
		if strings.ContainsAny(s, "_pPxX") {
			return fail("Did not consume whole string.")
		}
		f, err := strconv.ParseFloat(s, 64)
		if err == nil && math.Abs(f) < minNormal &&
			strings.ContainsAny(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
				return r == 'e'
			})[0], "123456789") {
			return fail("Out of range") // the C library's reading of a number that is not 0 but too small
		}
		if err != nil {
			if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
				return fail("Out of range")
			}
			return fail("Did not consume whole string.")
		}
		return bsondoc.DoubleValue(f), nil
	}
	if s == "" {
		return fail("Empty string")
	}
	d, err := bson.ParseDecimal128(s)
	if err != nil && version.AllParsed() {
		var ok bool
		if d, ok = decimal.ParseCut(s); ok {
			err = nil
		}
	}
	if err != nil {
		return fail("Failed to parse string to decimal")
	}
	return bson.RawValue{Type: bson.TypeDecimal128, Value: bson.AppendDecimal128Value(nil, d)}, nil
}

// parseHexDouble reads a number such as +0x1.8p1, whose exponent may be missing.
func parseHexDouble(s string) (float64, bool) {
	digits := strings.ToLower(strings.TrimLeft(s, "+-"))
	if !strings.HasPrefix(digits, "0x") || strings.Contains(s, "_") {
		return 0, false
	}
	if !strings.Contains(digits, "p") {
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// shortestDouble renders a double with as many digits as tell it from others.
func shortestDouble(f float64) string {
	if x := math.Abs(f); x == 0 || x >= 1e-4 && x < 1e16 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}

// startsNumber reports whether the C library finds a number at the beginning of a text.
func startsNumber(s string) bool {
	s = strings.ToLower(strings.TrimLeft(s, "+-"))
	s = strings.TrimPrefix(s, ".")
	return s != "" && s[0] >= '0' && s[0] <= '9' || strings.HasPrefix(s, "inf") || strings.HasPrefix(s, "nan")
}
