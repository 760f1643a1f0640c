package field

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"allium/bson"
)

type address struct {
	Street string
	City   string `bson:"town"`
	Geo    [2]float64
}

type line struct {
	SKU   string  `bson:"sku"`
	Price float64 `bson:",minsize"`
	Parts []part  `bson:"parts"`
	Notes *[]string
}

type part struct{ Name string }

type base struct {
	Created time.Time `bson:"created_at"`
	Version int64
}

type Audit struct{ By string }

type hidden struct{ Seen bool }

type empty struct{}

type order struct {
	ID      bson.ObjectID `bson:"_id,omitempty"`
	Ship    address
	Bill    *address `bson:"bill"`
	Nick    *string
	Deep    **int
	Lines   []line
	Refs    []*line `bson:"refs"`
	Tags    []string
	Grid    [][]int
	Data    []byte
	Hash    [16]byte
	Prices  map[string]float64
	Any     any
	Money   bson.Decimal128
	When    time.Time
	base    `bson:",inline"`
	*Audit  `bson:",inline"`
	Plain   Audit
	hidden  `bson:",inline"`
	Next    *order
	Kids    []order
	None    empty
	Skip    string `bson:"-"`
	private string
	Dotted  int            `bson:"a.b"` //allium:ignore bsontags has no path
	Extra   map[string]any `bson:",inline"`
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		got  In[order]
		want string
	}{
		{Of(func(o *order) *bson.ObjectID { return &o.ID }), "_id"},
		{Of(func(o *order) *address { return &o.Ship }), "ship"},
		{Of(func(o *order) *string { return &o.Ship.Street }), "ship.street"}, // at the address of ship
		{Of(func(o *order) *string { return &o.Ship.City }), "ship.town"},
		{Of(func(o *order) *[2]float64 { return &o.Ship.Geo }), "ship.geo"},
		{Of(func(o *order) *float64 { return &o.Ship.Geo[0] }), "ship.geo"},
		{Of(func(o *order) **address { return &o.Bill }), "bill"},
		{Of(func(o *order) *address { return o.Bill }), "bill"},
		{Of(func(o *order) *string { return &o.Bill.City }), "bill.town"},
		{Of(func(o *order) **string { return &o.Nick }), "nick"},
		{Of(func(o *order) *string { return o.Nick }), "nick"},
		{Of(func(o *order) *int { return *o.Deep }), "deep"},
		{Of(func(o *order) *[]line { return &o.Lines }), "lines"},
		{Of(func(o *order) *line { return &o.Lines[0] }), "lines"},
		{Of(func(o *order) *float64 { return &o.Lines[0].Price }), "lines.price"},
		{Of(func(o *order) *string { return &o.Lines[0].Parts[0].Name }), "lines.parts.name"},
		{Of(func(o *order) *[]string { return o.Lines[0].Notes }), "lines.notes"},
		{Of(func(o *order) *string { return &(*o.Lines[0].Notes)[0] }), "lines.notes"},
		{Of(func(o *order) *string { return &o.Refs[0].SKU }), "refs.sku"},
		{Of(func(o *order) *string { return &o.Tags[0] }), "tags"},
		{Of(func(o *order) *[]int { return &o.Grid[0] }), "grid"},
		{Of(func(o *order) *[]byte { return &o.Data }), "data"},
		{Of(func(o *order) *[16]byte { return &o.Hash }), "hash"},
		{Of(func(o *order) *map[string]float64 { return &o.Prices }), "prices"},
		{Key(Of(func(o *order) *map[string]float64 { return &o.Prices }), "eur"), "prices.eur"},
		{Of(func(o *order) *any { return &o.Any }), "any"},
		{Of(func(o *order) *bson.Decimal128 { return &o.Money }), "money"},
		{Of(func(o *order) *time.Time { return &o.When }), "when"},
		{Of(func(o *order) *time.Time { return &o.Created }), "created_at"},
		{Of(func(o *order) *int64 { return &o.base.Version }), "version"},
		{Of(func(o *order) *string { return &o.By }), "by"},
		{Of(func(o *order) *string { return &o.Plain.By }), "plain.by"},
		{Of(func(o *order) *bool { return &o.Seen }), "seen"},
		{Of(func(o *order) *order { return o.Next }), "next"},
		{Of(func(o *order) *string { return &o.Next.Ship.City }), "next.ship.town"},
		{Of(func(o *order) *string { return &o.Next.Next.Next.Ship.City }), "next.next.next.ship.town"},
		{Of(func(o *order) *string { return &o.Kids[0].Kids[0].Tags[0] }), "kids.kids.tags"},
		{Of(func(o *order) *empty { return &o.None }), "none"},
		{Join(Of(func(o *order) *address { return &o.Ship }), Of(func(a *address) *string { return &a.City })), "ship.town"},
		{Elem(Of(func(o *order) *[]line { return &o.Lines })), "lines"},
		{Self[order](), ""},
	} {
		if got := c.got.in(nil).name; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := Of(func(o *tagged) *string { return &o.Name }, bson.Options{JSONTags: true}).String(); got != "json_name" {
		t.Errorf("with options: %q", got)
	}
	if got := Of(func(o *tagged) *string { return &o.Name }).String(); got != "name" {
		t.Errorf("without options: %q", got)
	}
}

type tagged struct {
	Name string `json:"json_name"`
}

type twins struct{ A, B empty }

type twice struct {
	A string `bson:"k"`
	B string `bson:"k"` //allium:ignore bsontags is refused
}

type shadowed struct {
	Inner inner `bson:",inline"`
	Name  string
}

type inner struct{ Name string }

func TestOfPanics(t *testing.T) {
	var elsewhere string
	for _, c := range []struct {
		name string
		call func()
		want string
	}{
		{"tag", func() { Of(func(o *order) *string { return &o.Skip }) }, "field: of field.order: Skip has no path: bson leaves it out, by its tag"},
		{"unexported", func() { Of(func(o *order) *string { return &o.private }) }, "private has no path: it is not exported"},
		{"inline struct", func() { Of(func(o *order) *base { return &o.base }) }, "base has no path: it is inline: its fields are those of the document around it"},
		{"inline map", func() { Of(func(o *order) *map[string]any { return &o.Extra }) }, "Extra has no path: it is inline: its entries"},
		{"dot", func() { Of(func(o *order) *int { return &o.Dotted }) }, `Dotted has no path: a path cannot have the key "a.b"`},
		{"document", func() { Of(func(o *order) *order { return o }) }, "the document itself has no path: use Self"},
		{"nil", func() { Of(func(o *order) *string { return nil }) }, "returned nil"},
		{"elsewhere", func() { Of(func(o *order) *string { return &elsewhere }) }, "is no field of the document"},
		{"second element", func() { Of(func(o *order) *string { return &o.Tags[1] }) }, "index out of range"},
		{"element of array", func() { Of(func(o *order) *float64 { return &o.Ship.Geo[1] }) }, "Ship.Geo[1] has no path: element 0 stands for all of them"},
		{"byte", func() { Of(func(o *order) *byte { return &o.Hash[0] }) }, "Hash[0] has no path: a [16]uint8 is encoded as a value of its own form"},
		{"array in array", func() { Of(func(o *order) *int { return &o.Grid[0][0] }) }, "Grid[0][0] has no path: the elements of an array in an array"},
		{"no room", func() { Of(func(o *twins) *empty { return &o.B }) }, "A and B take no room and cannot be told apart"},
		{"key twice", func() { Of(func(o *twice) *string { return &o.B }) }, `B has no path: bson: encode from field.twice: struct has the key "k" twice`},
		{"shadowed", func() { Of(func(o *shadowed) *string { return &o.Inner.Name }) }, "Inner.Name has no path: bson leaves it out, by its tag or for another field"},
		{"map key", func() { Key(Of(func(o *order) *map[string]float64 { return &o.Prices }), "a.b") }, `cannot have the key "a.b"`},
		{"update through array", func() { Set(Of(func(o *order) *float64 { return &o.Lines[0].Price }), 1) }, "must say which elements"},
		{"no array", func() { Of(func(o *order) *string { return &o.Ship.City }).Each() }, "does not lead through an array"},
		{"ref through array", func() { Of(func(o *order) *float64 { return &o.Lines[0].Price }).Ref() }, "use Refs"},
		{"ref of element", func() { Of(func(o *order) *float64 { return &o.Lines[0].Price }).At(1).Ref() }, "names an element"},
		{"self and field", func() {
			ElemMatch(Of(func(o *order) *[]string { return &o.Tags }), Not(Self[string]().Eq("a")))
		}, "can be joined by And alone"},
		{"pull everything", func() { Pull(Of(func(o *order) *[]string { return &o.Tags })) }, "without a condition"},
		{"no document", func() { Of(func(o *bson.M) *bson.M { return o }) }, "the document itself"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("%s: panic %q, want %q", c.name, got, c.want)
				}
			}()
			c.call()
		}()
	}
}

func TestElementsOfPaths(t *testing.T) {
	name := Of(func(o *order) *string { return &o.Lines[0].Parts[0].Name })
	tag := Of(func(o *order) *string { return &o.Tags[0] })
	lines := Of(func(o *order) *[]line { return &o.Lines })
	sku := Of(func(l *line) *string { return &l.SKU })
	parts := Of(func(l *line) *string { return &l.Parts[0].Name })
	for _, c := range []struct {
		got  In[order]
		want string
	}{
		{name.At(2), "lines.2.parts.name"},
		{name.At(2).At(0), "lines.2.parts.0.name"},
		{name.Each().Filtered("p"), "lines.$[].parts.$[p].name"},
		{name.Matched(), "lines.$.parts.name"},
		{tag.Each(), "tags.$[]"},
		{tag.At(0), "tags.0"},
		{Elem(lines).At(3), "lines.3"},
		{Join(Elem(lines), sku), "lines.sku"},
		{Join(Elem(lines).At(3), sku), "lines.3.sku"},
		{Join(Elem(lines), sku).Each(), "lines.$[].sku"},
		{Join(Elem(lines), parts).Each().At(1), "lines.$[].parts.1.name"},
		{Join(Elem(lines).At(1), parts).Each(), "lines.1.parts.$[].name"},
	} {
		if got := c.got.in(nil).name; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// randomStruct returns a struct type of random fields.
func randomStruct(r *rand.Rand, depth int) reflect.Type {
	n := 1 + r.IntN(4)
	fields := make([]reflect.StructField, n)
	for i := range fields {
		f := reflect.StructField{Name: "F" + strconv.Itoa(r.IntN(1000)) + "x" + strconv.Itoa(i), Type: randomType(r, depth)}
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch k := r.IntN(6); {
		case k == 0 && t.Kind() == reflect.Struct && t.NumField() > 0 && t != reflect.TypeFor[time.Time]():
			f.Tag = `bson:",inline"`
		case k == 1:
			f.Tag = reflect.StructTag(`bson:"k` + strconv.Itoa(r.IntN(1e9)) + `,omitempty"`)
		case k == 2:
			f.Tag = `bson:"-"`
		}
		fields[i] = f
	}
	return reflect.StructOf(fields)
}

func randomType(r *rand.Rand, depth int) reflect.Type {
	simple := []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[empty](), reflect.TypeFor[time.Time](), reflect.TypeFor[[3]byte]()}
	if depth == 0 {
		return simple[r.IntN(len(simple))]
	}
	switch r.IntN(7) {
	case 0:
		return reflect.PointerTo(randomType(r, depth-1))
	case 1:
		return reflect.SliceOf(randomType(r, depth-1))
	case 2:
		return reflect.ArrayOf(1+r.IntN(2), randomType(r, depth-1))
	case 3, 4:
		return randomStruct(r, depth-1)
	}
	return simple[r.IntN(len(simple))]
}

// TestPathIsWhereEncodingWrites takes random variables in values of random struct types. The path
// that is found is where a value which is set there turns up once it is encoded; if there is none,
// the value turns up nowhere, or the place has no path of MongoDB's.
func TestPathIsWhereEncodingWrites(t *testing.T) {
	const mark = 7654321
	found, none := 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		doc := randomStruct(r, 4)
		value := reflect.New(doc)
		way := walk(r, value.Elem())
		at := follows(value.Elem(), way)
		if at.Kind() != reflect.Int {
			continue
		}
		at.SetInt(mark)
		encoded, err := bson.Marshal(value.Interface())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		path, why := located(doc, way)
		switch {
		case why == "":
			if v := lookup(encoded, path.name); v.Type == 0 {
				t.Errorf("seed %d: %s: path %q leads to nothing in %s", seed, doc, path.name, bson.Raw(encoded))
			} else if n, _ := v.AsInt64(); n != mark {
				t.Errorf("seed %d: %s: path %q leads to %s", seed, doc, path.name, v)
			}
			found++
		case strings.Contains(why, "array in an array"), strings.Contains(why, "element 0 stands"):
		default:
			if strings.Contains(bson.Raw(encoded).String(), strconv.Itoa(mark)) {
				t.Errorf("seed %d: %s: %s, but it is encoded: %s", seed, doc, why, bson.Raw(encoded))
			}
			none++
		}
	}
	if found < 300 || none < 30 {
		t.Errorf("%d paths were found, %d variables had none: too few to show something", found, none)
	}
}

// located returns the path to a variable, or why it has none.
func located(doc reflect.Type, way []int) (p place, why string) {
	defer func() {
		if r := recover(); r != nil {
			why = fmt.Sprint(r)
		}
	}()
	return locateBy(doc, reflect.TypeFor[int](), bson.Options{}, func(root reflect.Value) uintptr {
		return follows(root.Elem(), way).Addr().Pointer()
	}), ""
}

// walk goes from a variable to one in it at random, makes what is missing on the way, and returns
// the way: the index of a field or an element at each step.
func walk(r *rand.Rand, v reflect.Value) (way []int) {
	for {
		switch v.Kind() {
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() || v.NumField() == 0 {
				return way
			}
			i := r.IntN(v.NumField())
			way, v = append(way, i), v.Field(i)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			way, v = append(way, 0), v.Elem()
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			way, v = append(way, 0), v.Index(0)
		case reflect.Array:
			i := r.IntN(v.Len())
			way, v = append(way, i), v.Index(i)
		default:
			return way
		}
	}
}

func follows(v reflect.Value, way []int) reflect.Value {
	for _, i := range way {
		switch v.Kind() {
		case reflect.Struct:
			v = v.Field(i)
		case reflect.Pointer:
			v = v.Elem()
		default:
			v = v.Index(i)
		}
	}
	return v
}

// lookup follows a path, through the first element of arrays.
func lookup(doc bson.Raw, path string) bson.RawValue {
	v := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
	first := func() {
		for v.Type == bson.TypeArray {
			v = bson.Raw(v.Value).Lookup("0")
		}
	}
	for key := range strings.SplitSeq(path, ".") {
		first()
		v = bson.Raw(v.Value).Lookup(key)
	}
	first()
	return v
}
