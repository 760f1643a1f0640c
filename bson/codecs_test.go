package bson

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// figure is implemented by disc with a value receiver, by plate with a pointer receiver, and by
// levels, a slice.
type figure interface{ area() int }

type (
	disc   struct{ R int }
	plate  struct{ W, H int }
	levels []int
	height int
	framed struct {
		Title string
		plate // promotes area to *framed, which is not inline
	}
)

func (d disc) area() int    { return d.R * d.R }
func (p *plate) area() int  { return p.W * p.H }
func (l levels) area() int  { return len(l) }
func (h height) area() int  { return int(h) }
func (f *framed) area() int { return f.plate.area() }

// figures holds figures in every place that a value can have.
type figures struct {
	D    disc
	PD   *disc
	PPD  **disc
	P    plate
	PP   *plate
	L    levels
	N    *plate
	SD   []disc
	SP   []*plate
	SV   []plate
	AD   [2]disc
	MD   map[string]disc
	MP   map[string]*plate
	MV   map[string]plate
	Deep struct{ P plate }
	disc0
	Inner `bson:",inline"`
}

type disc0 struct{ X int } // unexported, and not inline: left alone

type Inner struct{ Q *plate }

func someFigures() figures {
	d := &disc{3}
	f := figures{D: disc{1}, PD: d, PPD: &d, P: plate{2, 3}, PP: &plate{4, 5}, L: levels{7, 8}, SD: []disc{{1}, {2}}, SP: []*plate{{1, 2}, nil}, SV: []plate{{3, 4}},
		AD: [2]disc{{5}, {6}}, MD: map[string]disc{"a": {1}}, MP: map[string]*plate{"a": {1, 2}, "n": nil}, MV: map[string]plate{"v": {8, 9}}, Inner: Inner{Q: &plate{6, 6}}}
	f.Deep.P = plate{1, 1}
	return f
}

// encodeFigure writes a figure as a binary, which none of the types decodes from by itself.
func encodeFigure(dst []byte, v figure) (Type, []byte, error) {
	var b []byte
	var name string
	var numbers []int
	switch v := v.(type) {
	case disc:
		name, numbers = "disc", []int{v.R}
	case *disc:
		name, numbers = "disc", []int{v.R}
	case *plate:
		name, numbers = "plate", []int{v.W, v.H}
	case levels:
		name, numbers = "levels", v
	case *levels:
		name, numbers = "levels", *v
	default:
		return 0, dst, fmt.Errorf("figure %T", v)
	}
	b = append(append(b, name...), 0)
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return TypeBinary, AppendBinaryValue(dst, 0x80, b), nil
}

func readFigure(v RawValue) (name string, numbers []int, err error) {
	b, ok := v.Binary()
	if !ok {
		return "", nil, errors.New("no figure")
	}
	name, rest, _ := strings.Cut(string(b.Data), "\x00")
	for ; len(rest) >= 4; rest = rest[4:] {
		numbers = append(numbers, int(binary.LittleEndian.Uint32([]byte(rest))))
	}
	return name, numbers, nil
}

// decodeFigure makes a figure: that of the name.
func decodeFigure(v RawValue) (figure, error) {
	name, n, err := readFigure(v)
	switch {
	case err != nil:
		return nil, err
	case name == "disc":
		return disc{n[0]}, nil
	case name == "plate":
		return &plate{n[0], n[1]}, nil
	}
	return levels(n), nil
}

func isFigure(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[figure]()) && t != reflect.TypeFor[framed]()
}

func whereFigures() Codec {
	return CodecWhere(isFigure,
		func(dst []byte, v any) (Type, []byte, error) { return encodeFigure(dst, v.(figure)) },
		func(v RawValue, into any) error {
			_, n, err := readFigure(v)
			if err != nil {
				return err
			}
			switch into := into.(type) {
			case *disc:
				into.R = n[0]
			case *plate:
				into.W, into.H = n[0], n[1]
			case *levels:
				*into = n
			}
			return nil
		})
}

// TestFigures encodes figures in every place with each kind of codec for many types: every one is
// written by the codec, and read back as it was.
func TestFigures(t *testing.T) {
	for name, codecs := range map[string][]Codec{
		"CodecWhere":              {whereFigures()},
		"CodecFor an interface":   {CodecFor(encodeFigure, decodeFigure)},
		"pointers and values":     {CodecFor(func(dst []byte, p *plate) (Type, []byte, error) { return encodeFigure(dst, p) }, decodePlate), whereFigures()},
		"an interface, own codec": {CodecFor(func(dst []byte, d disc) (Type, []byte, error) { return encodeFigure(dst, d) }, decodeDisc), CodecFor(encodeFigure, decodeFigure)},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := NewCodecs(codecs...)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Codecs: set}
			for _, in := range []any{someFigures(), new(someFigures())} {
				doc, err := o.Marshal(in)
				if err != nil {
					t.Fatal(err)
				}
				var out figures
				if err := o.Unmarshal(doc, &out); err != nil {
					t.Fatal(err)
				}
				if want := someFigures(); !reflect.DeepEqual(out, want) {
					t.Errorf("%+v, want %+v", out, want)
				}
				for _, path := range []string{"d", "pd", "ppd", "p", "pp", "l", "sd.1", "sp.0", "sv.0", "ad.0", "md.a", "mp.a", "mv.v", "deep.p", "q"} {
					if v := Raw(doc).Lookup(strings.Split(path, ".")...); v.Type != TypeBinary {
						t.Errorf("%s is %v", path, v)
					}
				}
			}
			for _, in := range []any{disc{2}, &disc{2}, &plate{1, 2}, plate{1, 2}, levels{1}, []plate{{1, 2}}, map[string]plate{"a": {1, 2}}} {
				v, err := o.MarshalValue(in)
				if err != nil {
					t.Fatalf("%T: %v", in, err)
				}
				out := reflect.New(reflect.TypeOf(in))
				if err := o.UnmarshalValue(v, out.Interface()); err != nil || !reflect.DeepEqual(out.Elem().Interface(), in) {
					t.Errorf("%T: %v, %v", in, out.Elem(), err)
				}
				var held any = reflect.New(reflect.TypeOf(in)).Interface() // an interface that holds a pointer
				if err := o.UnmarshalValue(v, &held); err != nil || !reflect.DeepEqual(reflect.ValueOf(held).Elem().Interface(), in) {
					t.Errorf("%T in an interface: %v, %v", in, held, err)
				}
			}
			// Null leads nowhere, in both directions.
			null := RawValue{Type: TypeNull}
			out := &plate{1, 2}
			if err := o.UnmarshalValue(null, &out); err != nil || out != nil {
				t.Errorf("null: %v, %v", out, err)
			}
		})
	}
}

func decodePlate(v RawValue) (*plate, error) {
	f, err := decodeFigure(v)
	p, _ := f.(*plate)
	return p, err
}

func decodeDisc(v RawValue) (disc, error) {
	f, err := decodeFigure(v)
	d, _ := f.(disc)
	return d, err
}

// TestOneWayCodecs: a codec that writes what it cannot read fails where it would lose data.
func TestOneWayCodecs(t *testing.T) {
	asDocument := func(dst []byte, v figure) (Type, []byte, error) {
		start, dst := BeginDocument(dst)
		return TypeEmbeddedDocument, EndDocument(AppendInt32(dst, "area", int32(v.area())), start), nil
	}
	wrong := func(RawValue) (figure, error) { return height(5), nil }
	for name, codec := range map[string]Codec{"no decode": CodecFor(asDocument, nil), "another type": CodecFor(asDocument, wrong)} {
		set, err := NewCodecs(codec)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Codecs: set}
		for _, in := range []any{disc{2}, &disc{2}, plate{1, 2}, &plate{1, 2}, struct{ P plate }{plate{1, 2}}, struct{ P *plate }{&plate{1, 2}}, map[string]disc{"a": {1}},
			map[string]*plate{"a": {1, 2}}, struct{ S []plate }{[]plate{{1, 2}}}, framed{Title: "x", plate: plate{1, 2}}} {
			doc, err := o.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			out := reflect.New(reflect.TypeOf(in))
			if err := o.Unmarshal(doc, out.Interface()); err == nil || !strings.Contains(err.Error(), "CodecWhere") {
				t.Errorf("%s: %T comes back as %v, %v", name, in, out.Elem(), err)
			}
		}
		// A type that decodes itself, or whose form cannot be mistaken, is left alone.
		if name == "no decode" {
			var h struct{ H height }
			if err := o.Unmarshal(mustMarshal(t, D{{"h", 5}}), &h); err != nil || h.H != 5 {
				t.Errorf("%v, %v", h, err)
			}
		}
	}
	for _, c := range []Codec{
		CodecWhere(nil, whereFigures().user.encodeAt, whereFigures().user.decodeInto),
		CodecWhere(isFigure, nil, whereFigures().user.decodeInto),
		CodecWhere(isFigure, whereFigures().user.encodeAt, nil),
	} {
		if _, err := NewCodecs(c); err == nil {
			t.Error("a codec without a function was accepted")
		}
	}
}

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	doc, err := Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestCodecsOrder: own codecs come first, then those for many types in their order.
func TestCodecsOrder(t *testing.T) {
	says := func(s string) func(dst []byte, v any) (Type, []byte, error) {
		return func(dst []byte, _ any) (Type, []byte, error) { return TypeString, AppendStringValue(dst, s), nil }
	}
	into := func(RawValue, any) error { return nil }
	ints := func(t reflect.Type) bool { return t.Kind() == reflect.Int }
	own := CodecFor(func(dst []byte, _ height) (Type, []byte, error) {
		return TypeString, AppendStringValue(dst, "own"), nil
	}, nil)
	all := CodecWhere(func(reflect.Type) bool { return true }, says("all"), into)
	first, err := NewCodecs(CodecWhere(ints, says("first"), into))
	if err != nil {
		t.Fatal(err)
	}
	set, err := first.With(all, own)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		v    any
		want string
	}{{height(1), "own"}, {new(height(1)), "own"}, {5, "first"}, {"x", "all"}, {int32(5), "all"}, {[]byte("x"), "all"}, {D{}, "all"}, {NewObjectID(), "all"}} {
		v, err := Options{Codecs: set}.MarshalValue(tc.v)
		if s, _ := v.StringValue(); s != tc.want || err != nil {
			t.Errorf("%T is written by %q, want %q: %v", tc.v, s, tc.want, err)
		}
	}
	if _, err := set.With(own); err == nil {
		t.Error("two codecs for one type")
	}
	if v, _ := (Options{Codecs: first}).MarshalValue("x"); v.String() != `"x"` {
		t.Errorf("With changed its receiver: %v", v)
	}
}
