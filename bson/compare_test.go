package bson

import (
	"math"
	"testing"
)

func value(t Type, b []byte) RawValue { return RawValue{Type: t, Value: b} }

func doubleValue(f float64) RawValue { return value(TypeDouble, AppendDoubleValue(nil, f)) }
func int32Value(n int32) RawValue    { return value(TypeInt32, AppendInt32Value(nil, n)) }
func int64Value(n int64) RawValue    { return value(TypeInt64, AppendInt64Value(nil, n)) }
func stringValue(s string) RawValue  { return value(TypeString, AppendStringValue(nil, s)) }

func decimalValue(s string) RawValue {
	d, err := ParseDecimal128(s)
	if err != nil {
		panic(err)
	}
	return value(TypeDecimal128, AppendDecimal128Value(nil, d))
}

func documentValue(t Type, elements ...any) RawValue {
	start, b := BeginDocument(nil)
	for i := 0; i < len(elements); i += 2 {
		b = AppendRawValue(b, elements[i].(string), elements[i+1].(RawValue))
	}
	return value(t, EndDocument(b, start))
}

func codeWithScopeValue(code string, scope RawValue) RawValue {
	b := AppendStringValue([]byte{0, 0, 0, 0}, code)
	b = append(b, scope.Value...)
	AppendInt32Value(b[:0], int32(len(b)))
	return value(TypeCodeWithScope, b)
}

// TestCompareOrder compares each with each of a list that is in the server's order. Values in one
// line are equal.
func TestCompareOrder(t *testing.T) {
	regex := func(pattern, options string) RawValue {
		return value(TypeRegex, []byte(pattern+"\x00"+options+"\x00"))
	}
	order := [][]RawValue{
		{value(TypeMinKey, nil)},
		{value(TypeUndefined, nil), {}},
		{value(TypeNull, nil)},
		{doubleValue(math.NaN()), doubleValue(math.Float64frombits(0xFFF8000000000001)), decimalValue("NaN"), decimalValue("-NaN")},
		{doubleValue(math.Inf(-1)), decimalValue("-Infinity")},
		{decimalValue("-1E+310")},
		{doubleValue(-math.MaxFloat64)},
		{int64Value(math.MinInt64), doubleValue(-1 << 63), decimalValue("-9223372036854775808")},
		{int64Value(math.MinInt64 + 1)},
		{doubleValue(-1.5), decimalValue("-1.50")},
		{int32Value(-1), int64Value(-1), doubleValue(-1), decimalValue("-1"), decimalValue("-10E-1")},
		{doubleValue(-math.SmallestNonzeroFloat64)},
		{decimalValue("-1E-400")},
		{int32Value(0), int64Value(0), doubleValue(0), doubleValue(math.Copysign(0, -1)), decimalValue("0"), decimalValue("-0E+3")},
		{decimalValue("1E-6176")},
		{doubleValue(math.SmallestNonzeroFloat64)},
		{decimalValue("0.1")},
		{doubleValue(0.1)}, // is 0.1000000000000000055511151231257827...
		{decimalValue("0.100000000000000005552")},
		{doubleValue(0.5), decimalValue("0.5")},
		{int32Value(1), decimalValue("1.000")},
		{doubleValue(1.5)},
		{int32Value(math.MaxInt32)},
		{int64Value(1 << 53), doubleValue(1 << 53), decimalValue("9007199254740992")},
		{int64Value(1<<53 + 1), decimalValue("9007199254740993")},
		{int64Value(1<<53 + 2), doubleValue(1<<53 + 2)},
		{int64Value(math.MaxInt64), decimalValue("9223372036854775807")},
		{doubleValue(1 << 63), decimalValue("9223372036854775808")},
		{decimalValue("9.999999999999999999999999999999999E+33")},
		{decimalValue("1E+34")},
		{decimalValue("1E+308")}, // the double is a little more
		{doubleValue(1e308)},
		{doubleValue(math.MaxFloat64)},
		{decimalValue("9.999999999999999999999999999999999E+6144")},
		{doubleValue(math.Inf(1)), decimalValue("Inf")},
		{stringValue("")},
		{stringValue("a"), value(TypeSymbol, AppendStringValue(nil, "a"))},
		{stringValue("a\x00")},
		{stringValue("ab")},
		{stringValue("é")},
		{documentValue(TypeEmbeddedDocument)},
		{documentValue(TypeEmbeddedDocument, "b", int32Value(9)), documentValue(TypeEmbeddedDocument, "b", doubleValue(9))},
		{documentValue(TypeEmbeddedDocument, "b", int32Value(9), "a", int32Value(0))},
		{documentValue(TypeEmbeddedDocument, "c", int32Value(1))},
		{documentValue(TypeEmbeddedDocument, "a", stringValue(""))}, // the type counts before the key
		{documentValue(TypeEmbeddedDocument, "a", documentValue(TypeEmbeddedDocument, "x", int32Value(1)), "b", int32Value(1))},
		{documentValue(TypeEmbeddedDocument, "a", documentValue(TypeEmbeddedDocument, "x", int32Value(1)), "b", int32Value(2))},
		{documentValue(TypeEmbeddedDocument, "a", documentValue(TypeEmbeddedDocument, "x", int32Value(2)), "b", int32Value(0))},
		{documentValue(TypeArray)},
		{documentValue(TypeArray, "0", int32Value(1)), documentValue(TypeArray, "7", int32Value(1))},
		{documentValue(TypeArray, "0", int32Value(1), "1", int32Value(0))},
		{documentValue(TypeArray, "0", int32Value(2))},
		{value(TypeBinary, AppendBinaryValue(nil, 9, nil))},
		{value(TypeBinary, AppendBinaryValue(nil, 0, []byte{9}))},
		{value(TypeBinary, AppendBinaryValue(nil, 5, []byte{1}))},
		{value(TypeBinary, AppendBinaryValue(nil, 0x80, []byte{1}))},
		{value(TypeBinary, AppendBinaryValue(nil, 0, []byte{0, 0}))},
		{value(TypeObjectID, make([]byte, 12))},
		{value(TypeObjectID, append(make([]byte, 11), 1))},
		{value(TypeBoolean, []byte{0})},
		{value(TypeBoolean, []byte{1})},
		{value(TypeDateTime, AppendInt64Value(nil, -1))},
		{value(TypeDateTime, AppendInt64Value(nil, 1))},
		{value(TypeTimestamp, AppendTimestampValue(nil, Timestamp{T: 1, I: 9}))},
		{value(TypeTimestamp, AppendTimestampValue(nil, Timestamp{T: 0x80000000, I: 1}))},
		{regex("a", "x")},
		{regex("ab", "")},
		{regex("ab", "i")},
		{value(TypeDBPointer, append(AppendStringValue(nil, "z"), make([]byte, 12)...))},
		{value(TypeDBPointer, append(AppendStringValue(nil, "aa"), make([]byte, 12)...))},
		{value(TypeJavaScript, AppendStringValue(nil, "a"))},
		{value(TypeJavaScript, AppendStringValue(nil, "b"))},
		{codeWithScopeValue("a", documentValue(TypeEmbeddedDocument, "x", int32Value(1)))},
		{codeWithScopeValue("a", documentValue(TypeEmbeddedDocument, "x", int32Value(2)))},
		{codeWithScopeValue("b", documentValue(TypeEmbeddedDocument))},
		{value(TypeMaxKey, nil)},
	}
	for i, as := range order {
		for j, bs := range order {
			for _, a := range as {
				for _, b := range bs {
					want := compareOrdered(i, j)
					if got := Compare(a, b); got != want {
						t.Errorf("Compare(%v %x, %v %x) = %d, want %d", a.Type, a.Value, b.Type, b.Value, got, want)
					}
				}
			}
		}
	}
}

func TestCompareDeeplyNested(t *testing.T) {
	nest := func(inner int32) RawValue {
		const depth = 100_000
		const innermost, perLevel = 12, 8 // bytes
		var b []byte
		for i := range depth {
			b = AppendInt32Value(b, int32(innermost+(depth-i)*perLevel))
			b = append(b, byte(TypeEmbeddedDocument), 'a', 0)
		}
		b = AppendInt32Value(b, innermost)
		b = AppendInt32(b, "i", inner)
		b = append(b, make([]byte, depth+1)...)
		return value(TypeEmbeddedDocument, b)
	}
	if got := Compare(nest(1), nest(2)); got != -1 {
		t.Errorf("got %d, want -1", got)
	}
	if got := Compare(nest(1), nest(1)); got != 0 {
		t.Errorf("got %d, want 0", got)
	}
}

// TestCompareMalformed only asks for no panic, with every prefix of a value under every type.
func TestCompareMalformed(t *testing.T) {
	whole := codeWithScopeValue("a", documentValue(TypeEmbeddedDocument, "x", int32Value(1))).Value
	for n := range len(whole) + 1 {
		for typ := range 256 {
			v := value(Type(typ), whole[:n])
			if got := Compare(v, v); got != 0 {
				t.Errorf("Compare of %v %x with itself is %d", v.Type, v.Value, got)
			}
			Compare(v, value(Type(typ), whole))
		}
	}
}

func TestEqual(t *testing.T) {
	a := Raw(documentValue(TypeEmbeddedDocument, "x", int32Value(1)).Value)
	b := Raw(documentValue(TypeEmbeddedDocument, "x", int64Value(1)).Value)
	if !Equal(a, append(Raw{}, a...)) {
		t.Error("a document is not equal to its copy")
	}
	if Equal(a, b) || a.Lookup("x").Equal(b.Lookup("x")) {
		t.Error("values of different types are equal")
	}
	if !a.Lookup("x").Equal(int32Value(1)) {
		t.Error("equal values differ")
	}
}
