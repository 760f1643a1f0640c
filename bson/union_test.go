package bson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

type solid interface{ Area() float64 }

type disk struct{ R float64 }

func (c disk) Area() float64 { return 3 * c.R * c.R }

type box struct {
	Side  float64
	Inner solid `bson:",omitempty"`
}

func (s *box) Area() float64 { return s.Side * s.Side }

type marked struct {
	Kind string
	Rest map[string]any `bson:",inline"`
}

func (marked) Area() float64 { return 0 }

type outsider struct{}

func (outsider) Area() float64 { return 0 }

type measure float64

func (measure) Area() float64 { return 0 }

func solids(t *testing.T, o Options) Options {
	t.Helper()
	codecs, err := NewCodecs(Union[solid]("kind", Variant[disk]("disk"), Variant[*box]("box"), Variant[marked]("marked"), Variant[measure]("measure")))
	if err != nil {
		t.Fatal(err)
	}
	o.Codecs = codecs
	return o
}

type drawing struct {
	One   solid
	Many  []solid
	ByKey map[string]solid
	Ptr   *solid
	Pair  [2]solid
	C     disk
	S     *box
	Cs    []disk
	Any   any
}

// TestUnionInAllPlaces encodes values in each place and decodes them again.
func TestUnionInAllPlaces(t *testing.T) {
	inner := solid(disk{4})
	d := drawing{
		One: disk{1}, Many: []solid{&box{2, nil}, nil, disk{3}}, ByKey: map[string]solid{"a": &box{5, &box{6, disk{7}}}}, Ptr: &inner,
		Pair: [2]solid{disk{8}, &box{9, nil}}, C: disk{10}, S: &box{11, disk{12}}, Cs: []disk{{13}}, Any: disk{14},
	}
	for name, o := range map[string]Options{"plain": {}, "strict": {DisallowUnknownFields: true}, "minsize": {MinSize: true}, "json tags": {JSONTags: true}} {
		o = solids(t, o)
		text, err := o.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := Raw(text).Validate(); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{"one": "disk", "many.0": "box", "many.2": "disk", "bykey.a": "box", "bykey.a.inner": "box",
			"bykey.a.inner.inner": "disk", "ptr": "disk", "pair.1": "box", "c": "disk", "s": "box", "s.inner": "disk", "cs.0": "disk", "any": "disk"} {
			v := Raw(text).Lookup(append(strings.Split(path, "."), "kind")...)
			if s, _ := v.StringBytes(); string(s) != want {
				t.Errorf("%s: %s is a %s, want %q", name, path, v, want)
			}
		}
		var back drawing
		if err := o.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back.Any = d.Any // a document there
		if !reflect.DeepEqual(back, d) {
			t.Errorf("%s: %+v comes back as %+v", name, d, back)
		}
		// At the top, by the interface and by the type itself.
		for _, v := range []solid{disk{1}, &box{2, disk{1}}} {
			for _, of := range []any{v, &v} {
				text, err := o.Marshal(of)
				if err != nil {
					t.Fatal(err)
				}
				var back solid
				if err := o.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, v) {
					t.Errorf("%s: %T comes back as %v, %v", name, of, back, err)
				}
			}
		}
		var c disk
		if err := o.Unmarshal(mustMarshal(t, D{{"r", 2.0}}), &c); err != nil || c.R != 2 {
			t.Errorf("%s: a disk without its name: %v, %v", name, c, err)
		}
	}
}

func TestUnionOwnField(t *testing.T) {
	o := solids(t, Options{})
	for _, c := range []struct{ kind, want string }{{"marked", ""}, {"other", `its kind is "other", want "marked"`}} {
		text, err := o.Marshal(struct{ S solid }{marked{c.kind, map[string]any{"x": int32(1)}}})
		if c.want == "" && (err != nil || Raw(text).String() != `{"s":{"kind":"marked","x":1}}`) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %s, %v", c.kind, Raw(text), err)
		}
	}
}

func TestUnionRefuses(t *testing.T) {
	o := solids(t, Options{})
	for _, c := range []struct {
		v    any
		want string
	}{
		{struct{ S solid }{outsider{}}, "outsider: it is no variant of the union of bson.solid"},
		{struct{ S solid }{measure(1)}, "becomes a BSON double, not a document"},
	} {
		if _, err := o.Marshal(c.v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.v, err, c.want)
		}
	}
	for _, c := range []struct {
		doc  D
		want string
	}{
		{D{{"one", D{{"r", 1.0}}}}, `the document has no string "kind"`},
		{D{{"one", D{{"kind", 1}}}}, `the document has no string "kind"`},
		{D{{"one", D{{"kind", "star"}}}}, `kind is "star", want one of "disk", "box"`},
		{D{{"one", 5}}, "one"},
		{D{{"many", A{D{{"kind", "disk"}, {"r", "x"}}}}}, "many.0.r"},
		{D{{"c", D{{"kind", "box"}}}}, `kind is "box", want "disk"`},
	} {
		var back drawing
		if err := o.Unmarshal(mustMarshal(t, c.doc), &back); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.doc, err, c.want)
		}
	}
	for _, c := range []struct {
		codecs []Codec
		want   string
	}{
		{[]Codec{Union[int]("kind", Variant[int]("a"))}, "is not an interface"},
		{[]Codec{Union[solid]("", Variant[disk]("a"))}, "has the key"},
		{[]Codec{Union[solid]("kind")}, "has no variants"},
		{[]Codec{Union[solid]("kind", Variant[box]("a"))}, "box does not implement it"},
		{[]Codec{Union[solid]("kind", Variant[disk]("a"), Variant[*box]("a"))}, `has "a" twice`},
		{[]Codec{Union[solid]("kind", Variant[disk]("a"), Variant[*disk]("b"))}, `has "b" twice`},
		{[]Codec{Union[solid]("kind", Variant[disk]("a")), CodecFor[disk](nil, nil)}, "two codecs for bson.disk"},
	} {
		if _, err := NewCodecs(c.codecs...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestUnionMovesMaps: where documents of maps begin is right behind a name that was put in.
func TestUnionMovesMaps(t *testing.T) {
	o := solids(t, Options{})
	v := struct{ S solid }{marked{"marked", map[string]any{"x": map[string]int{"a": 1, "b": 2}}}}
	w := struct{ S solid }{&box{1, marked{"marked", map[string]any{"x": map[string]int{"a": 1, "b": 2}}}}}
	for _, v := range []any{v, w} {
		out, maps, err := o.AppendValueMaps(nil, "", v)
		if err != nil || len(maps) == 0 {
			t.Fatal(maps, err)
		}
		for _, at := range maps {
			if doc, _, err := ReadDocument(out[at:]); err != nil || doc.Validate() != nil {
				t.Errorf("%T: no document at %d: %v", v, at, err)
			}
		}
	}
}

// otherUUID is a UUID as other packages have it.
type otherUUID [16]byte

func (u otherUUID) MarshalText() ([]byte, error) { return UUID(u).MarshalText() }

// ulid has as many bytes and another text.
type ulid [16]byte

func (u ulid) MarshalText() ([]byte, error) { return []byte("00000000000000000000000000"), nil }

func TestOtherUUIDs(t *testing.T) {
	id := otherUUID{0: 1, 15: 15}
	type doc struct {
		U otherUUID
		P *otherUUID
		L []otherUUID
		M map[string]otherUUID
		X ulid
	}
	d := doc{id, &id, []otherUUID{id}, map[string]otherUUID{"a": id}, ulid{1}}
	for r, subtype := range map[UUIDRepresentation]byte{UUIDDefault: 0, UUIDUnspecified: 0, UUIDStandard: 4, UUIDJavaLegacy: 3, UUIDCSharpLegacy: 3, UUIDPythonLegacy: 3} {
		o := Options{UUID: r}
		text, err := o.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range [][]string{{"u"}, {"p"}, {"l", "0"}, {"m", "a"}} {
			b, _ := Raw(text).Lookup(path...).Binary()
			if b.Subtype != subtype {
				t.Errorf("%s: %v has the subtype %d, want %d", r, path, b.Subtype, subtype)
			}
			if want, err := UUID(id).BinaryAs(r); err == nil && r != UUIDDefault && string(b.Data) != string(want.Data) {
				t.Errorf("%s: %x, want %x", r, b.Data, want.Data)
			}
		}
		if b, _ := Raw(text).Lookup("x").Binary(); b.Subtype != 0 {
			t.Errorf("%s: a ULID has the subtype %d", r, b.Subtype)
		}
		var back doc
		if err := o.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, d) {
			t.Errorf("%s: %v comes back as %v, %v", r, d, back, err)
		}
	}
	// What others have stored.
	var back doc
	if err := Unmarshal(mustMarshal(t, D{{"u", UUID(id)}}), &back); err != nil || back.U != id {
		t.Errorf("subtype 4: %v, %v", back.U, err)
	}
	err := Unmarshal(mustMarshal(t, D{{"x", UUID(id)}}), &back)
	if err == nil || !strings.Contains(err.Error(), "use UUID") {
		t.Errorf("subtype 4 into a ULID: %v", err)
	}
}

// TestJSONOfRequests: what is wrong in a request says what is right.
func TestJSONOfRequests(t *testing.T) {
	for _, c := range []struct {
		into       any
		text, want string
	}{
		{new(ObjectID), `"xyz"`, "want a string of 24 hexadecimal digits"},
		{new(ObjectID), `""`, "want a string of 24 hexadecimal digits"},
		{new(ObjectID), `"507f1f77bcf86cd79943901g"`, "want a string of 24 hexadecimal digits"},
		{new(ObjectID), `12`, "want a string of 24 hexadecimal digits"},
		{new(UUID), `"xyz"`, "want a string of the form 00112233-4455-6677-8899-aabbccddeeff"},
		{new(UUID), `""`, "want a string of the form"},
		{new(Decimal128), `"12,5"`, "want a number, or a string that is one"},
		{new(Decimal128), `""`, "want a number"},
		{new(DateTime), `"yesterday"`, "want a time as RFC 3339 has it"},
	} {
		if err := json.Unmarshal([]byte(c.text), c.into); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %s: %v, want %q", c.into, c.text, err, c.want)
		}
	}
	id := ObjectID{1}
	if err := json.Unmarshal([]byte(`null`), &id); err != nil || id != (ObjectID{1}) {
		t.Errorf("null: %v, %v", id, err)
	}
	text, err := json.Marshal(struct {
		Price Decimal128
		Map   map[Decimal128]UUID
	}{Map: map[Decimal128]UUID{{}: {}}})
	if want := `{"Price":"0","Map":{"0":"00000000-0000-0000-0000-000000000000"}}`; string(text) != want || err != nil {
		t.Errorf("unset: %s, %v, want %s", text, err, want)
	}
	if got := fmt.Sprint(Decimal128{}); got != "0E-6176" {
		t.Errorf("the text of the zero value is %s", got)
	}
}
