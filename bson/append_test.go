package bson

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestAppendFunctions builds a document with each of them, and with Marshal.
func TestAppendFunctions(t *testing.T) {
	id := NewObjectID()
	decimal, err := ParseDecimal128("1.5")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := Marshal(D{{"x", int32(1)}})
	if err != nil {
		t.Fatal(err)
	}
	array, err := MarshalValue(A{"y"})
	if err != nil {
		t.Fatal(err)
	}
	start, dst := BeginDocument([]byte("before"))
	dst = AppendDouble(dst, "double", 1.5)
	dst = AppendString(dst, "string", "s")
	dst = AppendDocument(dst, "doc", inner)
	dst = AppendArray(dst, "array", array.Value)
	dst = AppendBinary(dst, "binary", BinaryMD5, []byte{1})
	dst = AppendBinary(dst, "old", BinaryOld, []byte{2})
	dst = AppendObjectID(dst, "id", id)
	dst = AppendBool(dst, "true", true)
	dst = AppendBool(dst, "false", false)
	dst = AppendDateTime(dst, "date", 7)
	dst = AppendNull(dst, "null")
	dst = AppendRegex(dst, "regex", Regex{"a", "xi"})
	dst = AppendInt32(dst, "int32", -1)
	dst = AppendTimestamp(dst, "ts", Timestamp{1, 2})
	dst = AppendInt64(dst, "int64", -1<<40)
	dst = AppendDecimal128(dst, "decimal", decimal)
	dst = AppendRawValue(dst, "raw", RawValue{TypeMaxKey, nil})
	if dst, err = AppendValue(dst, "any", []int{3}); err != nil {
		t.Fatal(err)
	}
	at, dst := BeginDocumentElement(dst, "in")
	dst = EndDocument(AppendInt32(dst, "x", 2), at)
	at, dst = BeginArrayElement(dst, "list")
	for i := range 12 {
		dst = AppendInt32Value(AppendIndexHeader(dst, TypeInt32, i), int32(i))
	}
	dst = EndDocument(dst, at)
	dst = EndDocument(dst, start)

	list := A{}
	for i := range 12 {
		list = append(list, int32(i))
	}
	want, err := MarshalAppend([]byte("before"), D{
		{"double", 1.5}, {"string", "s"}, {"doc", D{{"x", int32(1)}}}, {"array", A{"y"}}, {"binary", Binary{BinaryMD5, []byte{1}}},
		{"old", Binary{BinaryOld, []byte{2}}}, {"id", id}, {"true", true}, {"false", false}, {"date", DateTime(7)}, {"null", nil},
		{"regex", Regex{"a", "ix"}}, {"int32", int32(-1)}, {"ts", Timestamp{1, 2}}, {"int64", int64(-1 << 40)}, {"decimal", decimal},
		{"raw", MaxKey{}}, {"any", A{int32(3)}}, {"in", D{{"x", int32(2)}}}, {"list", list},
	})
	if err != nil || !bytes.Equal(dst, want) {
		t.Errorf("got  %x\nwant %x, %v", dst, want, err)
	}
	if err := Raw(dst[start:]).Validate(); err != nil {
		t.Error(err)
	}
}

// TestAppendValueKeepsDst: an error leaves what was there before.
func TestAppendValueKeepsDst(t *testing.T) {
	before := []byte("before")
	for key, v := range map[string]any{"a": make(chan int), "b\x00": 1, "c\xff": 1, "d": D{{"x", "\xff"}}} {
		if got, err := AppendValue(slices.Clone(before), key, v); err == nil || !bytes.Equal(got, before) {
			t.Errorf("%q: got %q, %v", key, got, err)
		}
	}
	if got, err := MarshalAppend(slices.Clone(before), D{{"a", strings.Repeat("x", 100)}, {"b", func() {}}}); err == nil || !bytes.Equal(got, before) {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestLongArrays: the keys of arrays have more digits where they need them, in every kind of array.
func TestLongArrays(t *testing.T) {
	const n = 1200
	ints, strs, list, fixed := make([]int32, n), make([]string, n), make(A, n), [n]int32{}
	for i := range n {
		list[i], strs[i] = int32(0), ""
	}
	for _, v := range []any{ints, strs, list, fixed} {
		raw, err := MarshalValue(v)
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for key := range Raw(raw.Value).All() {
			if want := string(AppendIndexHeader(nil, 0, i)[1:]); key+"\x00" != want {
				t.Fatalf("%T: key %q at %d", v, key, i)
			}
			i++
		}
		if i != n {
			t.Errorf("%T has %d elements, want %d", v, i, n)
		}
	}
}
