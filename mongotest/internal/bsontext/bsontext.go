// Package bsontext renders BSON the way the server does in its error messages: unquoted keys,
// spaces inside of braces, long strings cut.
//
//	{ a: 1, b: [ "x", null ] }
package bsontext

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"allium/bson"
)

// maxDepth bounds the recursion; the server prints "..." below it, too.
const maxDepth = 250

// Document renders a document: "{ a: 1 }", or "{}" if it is empty.
func Document(doc bson.Raw) string { return string(appendDocument(nil, doc, false, 0)) }

// Value renders a value alone: 1, "x", { a: 1 }, [ 1 ].
func Value(v bson.RawValue) string { return string(appendValue(nil, v, 0)) }

// Element renders an element: a: 1.
func Element(key string, v bson.RawValue) string {
	return string(appendValue([]byte(key+": "), v, 0))
}

func appendDocument(dst []byte, doc bson.Raw, array bool, depth int) []byte {
	opening, closing := "{ ", " }"
	if array {
		opening, closing = "[ ", " ]"
	}
	if depth > maxDepth {
		return append(dst, "..."...)
	}
	if doc.IsEmpty() {
		return append(append(dst, opening[0]), closing[1])
	}
	dst = append(dst, opening...)
	first := true
	for key, v := range doc.All() {
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		if !array {
			dst = append(append(dst, key...), ": "...)
		}
		dst = appendValue(dst, v, depth+1)
	}
	return append(dst, closing...)
}

func appendValue(dst []byte, v bson.RawValue, depth int) []byte {
	switch v.Type {
	case bson.TypeDouble:
		f, _ := v.Double()
		return append(dst, Double(f)...)
	case bson.TypeInt32:
		n, _ := v.Int32()
		return strconv.AppendInt(dst, int64(n), 10)
	case bson.TypeInt64:
		n, _ := v.Int64()
		return strconv.AppendInt(dst, n, 10)
	case bson.TypeDecimal128:
		d, _ := v.Decimal128()
		return append(dst, d.String()...)
	case bson.TypeString:
		b, _ := v.StringBytes()
		return appendQuoted(dst, string(b))
	case bson.TypeSymbol:
		s, _ := v.Symbol()
		return appendQuoted(dst, string(s))
	case bson.TypeEmbeddedDocument:
		return appendDocument(dst, bson.Raw(v.Value), false, depth)
	case bson.TypeArray:
		return appendDocument(dst, bson.Raw(v.Value), true, depth)
	case bson.TypeBinary:
		if len(v.Value) < 5 {
			return append(dst, '?')
		}
		data, suffix := v.Value[5:], ")"
		if v.Value[4] == bson.BinaryUUID && len(data) == 16 {
			h := hex.EncodeToString(data)
			return fmt.Appendf(dst, "UUID(\"%s-%s-%s-%s-%s\")", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
		}
		if len(data) > 80 {
			data, suffix = data[:70], "...)"
		}
		dst = fmt.Appendf(dst, "BinData(%d, ", v.Value[4])
		dst = append(dst, strings.ToUpper(hex.EncodeToString(data))...)
		return append(dst, suffix...)
	case bson.TypeUndefined:
		return append(dst, "undefined"...)
	case bson.TypeObjectID:
		id, _ := v.ObjectID()
		return fmt.Appendf(dst, "ObjectId('%s')", hex.EncodeToString(id[:]))
	case bson.TypeBoolean:
		b, _ := v.Boolean()
		return strconv.AppendBool(dst, b)
	case bson.TypeDateTime:
		d, _ := v.DateTime()
		return fmt.Appendf(dst, "new Date(%d)", int64(d))
	case bson.TypeNull:
		return append(dst, "null"...)
	case bson.TypeRegex:
		re, _ := v.Regex()
		return fmt.Appendf(dst, "/%s/%s", re.Pattern, re.Options)
	case bson.TypeDBPointer:
		p, _ := v.DBPointer()
		return fmt.Appendf(dst, "DBRef('%s',%s)", p.DB, hex.EncodeToString(p.Pointer[:]))
	case bson.TypeJavaScript:
		code, _ := v.JavaScript()
		if len(code) > 80 {
			return append(append(dst, code[:70]...), "..."...)
		}
		return append(dst, code...)
	case bson.TypeCodeWithScope:
		code, scope, _ := v.CodeWithScope()
		dst = fmt.Appendf(dst, "CodeWScope( %s, ", code)
		return append(appendDocument(dst, scope, false, depth+1), ')')
	case bson.TypeTimestamp:
		ts, _ := v.Timestamp()
		return fmt.Appendf(dst, "Timestamp(%d, %d)", ts.T, ts.I)
	case bson.TypeMinKey:
		return append(dst, "MinKey"...)
	case bson.TypeMaxKey:
		return append(dst, "MaxKey"...)
	case 0:
		return append(dst, "EOO"...)
	}
	return append(dst, '?')
}

func appendQuoted(dst []byte, s string) []byte {
	if len(s) > 160 {
		return append(append(append(dst, '"'), s[:150]...), `..."`...)
	}
	return append(append(append(dst, '"'), s...), '"')
}

// Double renders a double as documents in messages show it: 16 significant digits, and ".0" behind
// what could be taken for an integer (also behind infinity, NaN and exponents).
func Double(f float64) string {
	s := CDouble(f, 16)
	if !strings.ContainsAny(s, ".EN") {
		s += ".0"
	}
	return s
}

// CDouble renders a double as C's %.<digits>g does.
func CDouble(f float64, digits int) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == 0:
		if math.Signbit(f) {
			return "-0"
		}
		return "0"
	}
	// The exponent decides after rounding to the wanted digits.
	e := strconv.FormatFloat(f, 'e', digits-1, 64)
	mantissa, expText, _ := strings.Cut(e, "e")
	exp, _ := strconv.Atoi(expText)
	trim := func(s string) string {
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if exp < -4 || exp >= digits {
		sign := "+"
		if exp < 0 {
			sign, exp = "-", -exp
		}
		return fmt.Sprintf("%se%s%02d", trim(mantissa), sign, exp)
	}
	return trim(strconv.FormatFloat(f, 'f', digits-1-exp, 64))
}

// TypeName returns the server's name of a type as used in messages and by $type: "int", "objectId",
// ... The zero type, "no value", is "missing".
func TypeName(t bson.Type) string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return "invalid"
}

var typeNames = map[bson.Type]string{
	0:                         "missing",
	bson.TypeDouble:           "double",
	bson.TypeString:           "string",
	bson.TypeEmbeddedDocument: "object",
	bson.TypeArray:            "array",
	bson.TypeBinary:           "binData",
	bson.TypeUndefined:        "undefined",
	bson.TypeObjectID:         "objectId",
	bson.TypeBoolean:          "bool",
	bson.TypeDateTime:         "date",
	bson.TypeNull:             "null",
	bson.TypeRegex:            "regex",
	bson.TypeDBPointer:        "dbPointer",
	bson.TypeJavaScript:       "javascript",
	bson.TypeSymbol:           "symbol",
	bson.TypeCodeWithScope:    "javascriptWithScope",
	bson.TypeInt32:            "int",
	bson.TypeTimestamp:        "timestamp",
	bson.TypeInt64:            "long",
	bson.TypeDecimal128:       "decimal",
	bson.TypeMaxKey:           "maxKey",
	bson.TypeMinKey:           "minKey",
}
