package bsonx_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/bsoncodec"
	"go.mongodb.org/mongo-driver/bson/bsonrw"
	"go.mongodb.org/mongo-driver/bson/bsontype"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/x/bsonx"
)

// values has a value of each BSON type, with its Go value and its text.
func values() []struct {
	v     bsonx.Val
	plain any // that encodes to the same
	text  string
} {
	d128, _ := primitive.ParseDecimal128("1.5")
	id := primitive.ObjectID{2}
	return []struct {
		v     bsonx.Val
		plain any
		text  string
	}{
		{bsonx.Val{}, nil, "{}"}, {bsonx.Null(), nil, "{}"}, {bsonx.Array(nil), nil, "{}"},
		{bsonx.Document(nil), nil, "{}"},
		{bsonx.Document(bsonx.Doc(nil)), nil, "{}"}, {bsonx.Document(bsonx.MDoc(nil)), nil, "{}"},
		{bsonx.Double(1.5), 1.5, "1.5"}, {bsonx.Int32(4), int32(4), "4"},
		{bsonx.Int64(1 << 40), int64(1) << 40, "1099511627776"},
		{bsonx.Boolean(true), true, "true"},
		{bsonx.String("a long text of letters"), "a long text of letters", "a long text of letters"},
		{bsonx.String(""), "", ""}, {bsonx.JavaScript("j"), primitive.JavaScript("j"), "j"},
		{bsonx.Symbol("y"), primitive.Symbol("y"), "y"}, {bsonx.DateTime(5), primitive.DateTime(5), "5"},
		{bsonx.Time(time.UnixMilli(1234)), primitive.DateTime(1234), "1234"},
		{bsonx.ObjectID(id), id, `ObjectID("020000000000000000000000")`}, {bsonx.Decimal128(d128), d128, "1.5"},
		{bsonx.Binary(4, []byte{1, 2}), primitive.Binary{Subtype: 4, Data: []byte{1, 2}}, "{4 [1 2]}"},
		{bsonx.Binary(2, []byte{1, 2}), primitive.Binary{Subtype: 2, Data: []byte{1, 2}}, "{2 [1 2]}"},
		{bsonx.Regex("a", "i"), primitive.Regex{Pattern: "a", Options: "i"}, `{"pattern": "a", "options": "i"}`},
		{bsonx.DBPointer("d", id), primitive.DBPointer{DB: "d", Pointer: id},
			`{"db": "d", "pointer": "ObjectID("020000000000000000000000")"}`},
		{bsonx.Timestamp(1, 2), primitive.Timestamp{T: 1, I: 2}, "{1 2}"}, {bsonx.MinKey(), primitive.MinKey{}, "{}"},
		{bsonx.MaxKey(), primitive.MaxKey{}, "{}"}, {bsonx.Undefined(), primitive.Undefined{}, "{}"},
		{bsonx.CodeWithScope("c", bsonx.Doc{{Key: "a", Value: bsonx.Int32(1)}}),
			primitive.CodeWithScope{Code: "c", Scope: bson.D{{Key: "a", Value: int32(1)}}},
			`{"code": "c", "scope": bson.Document{bson.Element{"a": 1}}}`},
		{bsonx.Document(bsonx.Doc{{Key: "a", Value: bsonx.Int32(1)}, {Key: "a", Value: bsonx.Null()}}),
			bson.D{{Key: "a", Value: int32(1)}, {Key: "a", Value: nil}},
			`bson.Document{bson.Element{"a": 1}, bson.Element{"a": {}}}`},
		{bsonx.Document(bsonx.MDoc{"b": bsonx.Int32(1), "a": bsonx.String("x")}),
			bson.D{{Key: "a", Value: "x"}, {Key: "b", Value: int32(1)}},
			`bson.Document{bson.Element{"a": x}, bson.Element{"b": 1}}`},
		{bsonx.Array(bsonx.Arr{bsonx.Int32(1), bsonx.Array(bsonx.Arr{})}), bson.A{int32(1), bson.A{}},
			"bson.Array[1, bson.Array[]]"},
	}
}

// TestValues encodes each value, in each place that it can be in, as the plain value of the same
// meaning, and decodes what is equal to it.
func TestValues(t *testing.T) {
	all := values()
	for i, c := range all {
		doc, err := bson.Marshal(bson.D{{Key: "v", Value: c.plain}, {Key: "a", Value: bson.A{c.plain}}})
		if err != nil {
			t.Fatal(err)
		}
		arr := bsonx.Array(bsonx.Arr{c.v})
		for name, v := range map[string]any{
			"Doc": bsonx.Doc{{Key: "v", Value: c.v}, {Key: "a", Value: arr}},
			"D":   bson.D{{Key: "v", Value: c.v}, {Key: "a", Value: arr}},
			"struct": struct {
				V bsonx.Val
				A bsonx.Arr
			}{c.v, bsonx.Arr{c.v}},
			"pointers": struct {
				V *bsonx.Val
				A *bsonx.Val
			}{&c.v, &arr},
		} {
			if got, err := bson.Marshal(v); err != nil || !bytes.Equal(got, doc) {
				t.Errorf("%v in a %s: %x, %v, want %x", c.v, name, got, err, doc)
			}
		}
		if c.v.String() != c.text {
			t.Errorf("text of %T: %s, want %s", c.v.Interface(), c.v, c.text)
		}
		var into struct {
			V bsonx.Val
			A bsonx.Arr
		}
		var d bsonx.Doc
		var m bsonx.MDoc
		for _, p := range []any{&into, &d, &m} {
			if err := bson.Unmarshal(doc, p); err != nil {
				t.Fatal(err)
			}
		}
		if !into.V.Equal(c.v) || !into.A.Equal(bsonx.Arr{c.v}) || !d.Equal(m) || !m.Equal(d) || !m["v"].Equal(c.v) ||
			!d.Lookup("v").Equal(c.v) {
			t.Errorf("%v decodes as %v, %v, %v, %v", c.v, into, d, m, d.Lookup("v"))
		}
		for j, other := range all[6:] {
			if c.v.Equal(other.v) != (i == j+6) {
				t.Errorf("%v equals %v", c.v, other.v)
			}
		}
	}
}

// TestGetters asks each value for each type: that of its own gives the value, the rest panic.
func TestGetters(t *testing.T) {
	for _, c := range values() {
		rv, own := reflect.ValueOf(c.v), 0
		for i := range rv.NumMethod() {
			name := rv.Type().Method(i).Name
			ok := rv.MethodByName(name + "OK")
			if !ok.IsValid() {
				continue
			}
			results := ok.Call(nil)
			is := results[len(results)-1].Bool()
			func() {
				defer func() {
					e, panicked := recover().(bsonx.ElementTypeError)
					if panicked == is || panicked && e.Method != "bson.Value."+name {
						t.Errorf("%s of %v: %v, and %sOK says %v", name, c.v, e, name, is)
					}
				}()
				got := rv.Method(i).Call(nil)
				for j := range got {
					if !reflect.DeepEqual(got[j].Interface(), results[j].Interface()) {
						t.Errorf("%s of %v is %v, and %v", name, c.v, got[j], results[j])
					}
				}
			}()
			if is {
				own++
			}
		}
		want := map[bsontype.Type]int{bsontype.DateTime: 2, bsontype.EmbeddedDocument: 2}[c.v.Type()]
		if own != max(want, 1) {
			t.Errorf("%v is of %d types", c.v, own)
		}
	}
}

// TestDocuments changes documents, and looks into them.
func TestDocuments(t *testing.T) {
	inner := bsonx.Doc{{Key: "c", Value: bsonx.Array(bsonx.Arr{bsonx.Int32(5)})}, {Key: "q", Value: bsonx.Int32(1)}}
	d := bsonx.Doc{{Key: "a", Value: bsonx.Int32(1)}, {Key: "b", Value: bsonx.Document(inner)}}
	m := bsonx.MDoc{"a": bsonx.Int32(1), "b": bsonx.Document(bsonx.MDoc{"c": inner[0].Value, "q": bsonx.Int32(1)})}
	for _, c := range []struct {
		path []string
		want any // the value or the error
	}{
		{nil, bsonx.KeyNotFound{}}, {[]string{"a"}, bsonx.Int32(1)}, {[]string{"b", "q"}, bsonx.Int32(1)},
		{[]string{"z"}, bsonx.KeyNotFound{Key: []string{"z"}}},
		{[]string{"b", "z"}, bsonx.KeyNotFound{Key: []string{"b", "z"}, Depth: 1}},
		{[]string{"b", "c", "0"}, bsonx.KeyNotFound{Key: []string{"b", "c", "0"}, Depth: 1, Type: bsontype.Array}},
		{[]string{"a", "x"}, bsonx.KeyNotFound{Type: bsontype.Int32}},
	} {
		for _, in := range []interface {
			LookupErr(...string) (bsonx.Val, error)
			LookupElementErr(...string) (bsonx.Elem, error)
			Lookup(...string) bsonx.Val
			LookupElement(...string) bsonx.Elem
		}{d, m} {
			v, err := in.LookupErr(c.path...)
			e, err2 := in.LookupElementErr(c.path...)
			if want, ok := c.want.(bsonx.Val); ok {
				if err != nil || err2 != nil || !v.Equal(want) ||
					!e.Equal(bsonx.Elem{Key: c.path[len(c.path)-1], Value: want}) {
					t.Errorf("%T at %q: %v, %v, %v, %v", in, c.path, v, err, e, err2)
				}
			} else if !reflect.DeepEqual(err, c.want) || !reflect.DeepEqual(err2, c.want) ||
				!in.Lookup(c.path...).IsZero() || !in.LookupElement(c.path...).Equal(bsonx.Elem{}) {
				t.Errorf("%T at %q: %#v, %#v, want %#v", in, c.path, err, err2, c.want)
			}
		}
	}
	changed := d.Copy().Append("n", bsonx.Null()).Prepend("p", bsonx.Int32(0)).Set("a", bsonx.String("new")).
		Set("zz", bsonx.Int32(3)).Delete("b").Delete("nothing")
	want := bsonx.Doc{{Key: "p", Value: bsonx.Int32(0)}, {Key: "a", Value: bsonx.String("new")},
		{Key: "n", Value: bsonx.Null()}, {Key: "zz", Value: bsonx.Int32(3)}}
	if !changed.Equal(want) || changed.IndexOf("n") != 2 || changed.IndexOf("b") != -1 || d[0].Value.Int32() != 1 {
		t.Errorf("changed: %v, and its origin: %v", changed, d)
	}
	if !m.Copy().Equal(m) || m.Equal(d[:1]) ||
		(bsonx.MDoc{"a": bsonx.Null()}).Equal(bsonx.Doc{{Key: "b", Value: bsonx.Null()}}) {
		t.Error("documents that differ are equal")
	}
}

// TestBroken decodes bytes that are cut off, and finds an error in each.
func TestBroken(t *testing.T) {
	for _, c := range values() {
		bt, data, err := c.v.MarshalBSONValue()
		if err != nil {
			t.Fatal(err)
		}
		for n := range data {
			if n > 0 && bt == bsontype.Regex && bytes.Count(data[:n], []byte{0}) > 1 {
				continue
			}
			var v bsonx.Val
			if err := v.UnmarshalBSONValue(bt, data[:n]); err == nil && bt != bsontype.Array {
				t.Errorf("%d of the %d bytes of %v decode as %v", n, len(data), c.v, v)
			}
		}
	}
	var v bsonx.Val
	if err := v.UnmarshalBSONValue(99, nil); err == nil {
		t.Error("a type that there is not decodes")
	}
	if err := (*bsonx.Doc)(nil).UnmarshalBSON([]byte{5, 0, 0, 0, 0}); !errors.Is(err, bsonx.ErrNilDocument) {
		t.Errorf("into a nil *Doc: %v", err)
	}
	if err := (*bsonx.Arr)(nil).UnmarshalBSONValue(bsontype.Array, nil); !errors.Is(err, bsonx.ErrNilArray) {
		t.Errorf("into a nil *Arr: %v", err)
	}
}

var (
	encodeContext = bsoncodec.EncodeContext{Registry: bsonx.DefaultRegistry}
	decodeContext = bsoncodec.DecodeContext{Registry: bsonx.DefaultRegistry}
)

// TestCodecs encodes and decodes with the codecs that registries took.
func TestCodecs(t *testing.T) {
	var pc bsonx.PrimitiveCodecs
	for _, c := range values() {
		d := bsonx.Doc{{Key: "v", Value: c.v}}
		want, err := d.MarshalBSON()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		vw, err := bsonrw.NewBSONValueWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		err = pc.DocumentEncodeValue(encodeContext, vw, reflect.ValueOf(d))
		if err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%v: %x, %v, want %x", c.v, out.Bytes(), err, want)
		}
		var got, elements bsonx.Doc
		err = pc.DocumentDecodeValue(decodeContext, bsonrw.NewBSONDocumentReader(want), reflect.ValueOf(&got).Elem())
		if err != nil || !got.Equal(d) {
			t.Errorf("%v: %v, %v", d, got, err)
		}
		dr, err := bsonrw.NewBSONDocumentReader(want).ReadDocument()
		if err != nil {
			t.Fatal(err)
		}
		if err := pc.DecodeDocument(decodeContext, dr, &elements); err != nil || !elements.Equal(d) {
			t.Errorf("%v by elements: %v, %v", d, elements, err)
		}
		if err := pc.ValueEncodeValue(encodeContext, vw, reflect.ValueOf(d)); err == nil {
			t.Error(fmt.Sprintf("%T", d), "is encoded as a Val")
		}
	}
}
