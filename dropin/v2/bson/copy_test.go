package bson

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// foreignWriter and foreignReader are a program's own: nothing is known of what is behind them.
type foreignWriter struct{ ValueWriter }

type foreignReader struct{ ValueReader }

// doc makes a document of keys and values in turn.
func doc(pairs ...any) D {
	d := D{}
	for i := 0; i < len(pairs); i += 2 {
		d = append(d, E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return d
}

func everything() D {
	return doc(
		"double", 1.5, "string", "x", "document", doc("a", A{int32(1), D{}}), "array", A{"y", A{}}, "binary", Binary{4, []byte{1}}, "old", Binary{2, []byte{9}},
		"undefined", Undefined{}, "id", ObjectID{1}, "true", true, "date", DateTime(5), "null", nil, "regex", Regex{"a", "im"},
		"pointer", DBPointer{"db", ObjectID{2}}, "code", JavaScript("f()"), "symbol", Symbol("s"), "scoped", CodeWithScope{"g()", doc("v", int32(1))},
		"int32", int32(1), "timestamp", Timestamp{1, 2}, "int64", int64(2), "decimal", NewDecimal128(0x3040000000000000, 5), "min", MinKey{}, "max", MaxKey{},
	)
}

// TestForeign passes every type of value through readers and writers of the program's.
func TestForeign(t *testing.T) {
	want, err := Marshal(everything())
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := NewEncoder(foreignWriter{NewDocumentWriter(&buf)}).Encode(everything()); err != nil || !bytes.Equal(buf.Bytes(), want) {
		t.Errorf("written %s, %v, want %s", Raw(buf.Bytes()), err, Raw(want))
	}
	var d D
	if err := NewDecoder(foreignReader{NewDocumentReader(bytes.NewReader(want))}).Decode(&d); err != nil || !reflect.DeepEqual(d, everything()) {
		t.Errorf("read %v, %v", d, err)
	}
	// A reader and a writer that are both foreign, by a registry's encoder that gets each part.
	var copied valueWriter
	copied.state = atValue
	if err := copyRead(foreignWriter{&copied}, &valueReader{t: TypeEmbeddedDocument, data: want}); err != nil || !bytes.Equal(copied.buf, want) {
		t.Errorf("copied %s, %v", Raw(copied.buf), err)
	}
	// What is cut off anywhere is an error, and no panic.
	for n := range len(want) {
		if err := NewDecoder(foreignReader{&valueReader{t: TypeEmbeddedDocument, data: want[:n]}}).Decode(&d); err == nil {
			t.Errorf("the first %d bytes decode", n)
		}
		if err := copyValue(foreignWriter{&valueWriter{state: atValue}}, RawValue{Type: TypeEmbeddedDocument, Value: want[:n]}); err == nil {
			t.Errorf("the first %d bytes are copied", n)
		}
		if err := Unmarshal(want[:n], &d); err == nil {
			t.Errorf("the first %d bytes are unmarshaled", n)
		}
	}
}

// TestWriterStates calls what may not be called where a writer is.
func TestWriterStates(t *testing.T) {
	var buf bytes.Buffer
	vw := NewDocumentWriter(&buf)
	transition := func(what string, err error) {
		t.Helper()
		var te TransitionError
		if !errors.As(err, &te) || !strings.HasPrefix(te.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	transition("WriteInt32 can only write while positioned on a Element or Value but is positioned on a TopLevel", vw.WriteInt32(1))
	transition("WriteArray", second(vw.WriteArray()))
	dw, err := vw.WriteDocument()
	if err != nil {
		t.Fatal(err)
	}
	transition("WriteNull", vw.WriteNull())
	ew, err := dw.WriteDocumentElement("a")
	if err != nil {
		t.Fatal(err)
	}
	transition("WriteDocumentElement", second(dw.WriteDocumentElement("b")))
	aw, err := ew.WriteArray()
	if err != nil {
		t.Fatal(err)
	}
	transition("WriteDocumentElement", second(dw.WriteDocumentElement("b")))
	transition("WriteDocumentEnd", dw.WriteDocumentEnd())
	if err := aw.WriteArrayEnd(); err != nil {
		t.Fatal(err)
	}
	transition("WriteArrayElement", second(aw.WriteArrayElement()))
	if _, err := dw.WriteDocumentElement("a\x00"); err == nil {
		t.Error("a key with a null byte")
	}
	if err := dw.WriteDocumentEnd(); err != nil || Raw(buf.Bytes()).String() != `{"a": []}` {
		t.Errorf("%s, %v", Raw(buf.Bytes()), err)
	}
	transition("WriteDocumentEnd", dw.WriteDocumentEnd())
	r := NewRegistry()
	r.RegisterTypeEncoder(reflect.TypeFor[bool](), ValueEncoderFunc(func(EncodeContext, ValueWriter, reflect.Value) error { return nil }))
	e := NewEncoder(vw)
	e.SetRegistry(r)
	if err := e.Encode(doc("a", true)); !errors.Is(err, errNothingWritten) {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestReaderTypes reads each value by the methods of all types: one fits.
func TestReaderTypes(t *testing.T) {
	encoded, err := Marshal(everything())
	if err != nil {
		t.Fatal(err)
	}
	elems, err := Raw(encoded).Elements()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range elems {
		v := e.Value()
		vr := reflect.ValueOf(&valueReader{t: v.Type, data: v.Value})
		fits := 0
		for m := range vr.Type().Methods() {
			if !strings.HasPrefix(m.Name, "Read") {
				continue
			}
			out := vr.MethodByName(m.Name).Call(nil)
			if out[len(out)-1].IsNil() {
				fits++
			}
		}
		if fits != 1 {
			t.Errorf("%s: %d methods read it", e.Key(), fits)
		}
	}
	vr := NewDocumentReader(bytes.NewReader(append(bytes.Clone(encoded), encoded...)))
	for i := range 2 {
		if err := vr.Skip(); err != nil {
			t.Errorf("skip %d: %v", i, err)
		}
	}
	if _, err := vr.ReadDocument(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestRegistryIsRead registers after a use: the next one sees it.
func TestRegistryIsRead(t *testing.T) {
	r := NewRegistry()
	rv := RawValue{Type: TypeDateTime, Value: make([]byte, 8)}
	var before, after any
	if err := rv.UnmarshalWithRegistry(r, &before); err != nil {
		t.Fatal(err)
	}
	r.RegisterTypeMapEntry(TypeDateTime, reflect.TypeFor[time.Time]())
	if err := rv.UnmarshalWithRegistry(r, &after); err != nil {
		t.Fatal(err)
	}
	if before != DateTime(0) || after != time.UnixMilli(0).UTC() {
		t.Errorf("%v before, %v after", before, after)
	}
}

// TestCost: a registry costs nothing where nothing is registered.
func TestCost(t *testing.T) {
	encoded, err := Marshal(doc("a", int32(1), "b", "text", "c", doc("d", 1.5)))
	if err != nil {
		t.Fatal(err)
	}
	o := defaultRegistry.way(settings{}).options
	for name, pair := range map[string][2]func(){
		"marshal":   {func() { _, _ = Marshal(everything()[:3]) }, func() { _, _ = o.Marshal(everything()[:3]) }},
		"unmarshal": {func() { _ = Unmarshal(encoded, new(D)) }, func() { _ = o.Unmarshal(encoded, new(D)) }},
	} {
		ours, allium := testing.AllocsPerRun(100, pair[0]), testing.AllocsPerRun(100, pair[1])
		if ours > allium {
			t.Errorf("%s: %v allocations, Allium's options alone %v", name, ours, allium)
		}
	}
}
