package schema_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/field"
	"allium/mongotest"
	"allium/patterns/schema"
)

type level int8

type inner struct {
	F  float64 `bson:"f"`
	S  []int   `bson:"s"`
	P  *inner  `bson:"p,omitempty"`
	N  level
	In map[string]uint16
}

type base struct {
	Created time.Time `bson:"created"`
}

// everything has a field of every kind of type.
type everything struct {
	ID     int64 `bson:"_id"`
	B      bool
	I      int
	I8     int8
	I32    int32
	I64    int64 `bson:",minsize"`
	U8     uint8
	U      uint32
	F32    float32
	S      string
	By     []byte
	Arr    [3]byte
	When   time.Time
	Took   time.Duration
	OID    bson.ObjectID
	Dec    bson.Decimal128
	UUID   bson.UUID
	Re     bson.Regex
	TS     bson.Timestamp
	D      bson.D
	M      bson.M
	A      bson.A
	Any    any
	Big    big.Int
	Ptr    *string
	Left   *int `bson:"left,omitempty"`
	In     inner
	Ins    []inner
	Deep   map[string][]inner
	Grid   [2][2]int32
	base   `bson:",inline"`
	Hidden string         `bson:"-"`
	Rest   map[string]int `bson:",inline"`
}

// fill fills a value with what its type can hold.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(r.Int64N(1 << 40))))
		return
	case bson.Decimal128:
		v.Set(reflect.ValueOf(bson.NewDecimal128FromInt64(r.Int64())))
		return
	case big.Int:
		v.Set(reflect.ValueOf(*big.NewInt(r.Int64())))
		return
	case bson.Regex:
		v.Set(reflect.ValueOf(bson.NewRegex("a+", "i")))
		return
	case bson.D:
		v.Set(reflect.ValueOf(bson.D{{Key: "x", Value: 1}}))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> r.IntN(64))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(r.Uint64())
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{0, 1, -2.5, 1e30, math.Inf(1)}[r.IntN(5)])
	case reflect.String:
		v.SetString([]string{"", "x", "ü"}[r.IntN(3)])
	case reflect.Interface:
		if x := []any{nil, "a", 1, bson.D{{Key: "a", Value: 1}}, bson.A{1, nil}}[r.IntN(5)]; x != nil {
			v.Set(reflect.ValueOf(x))
		}
	case reflect.Pointer:
		if depth < 4 && r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 && depth < 4 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		if n := r.IntN(3); n > 0 && depth < 4 {
			v.Set(reflect.MakeMap(v.Type()))
			for i := range n {
				e := reflect.New(v.Type().Elem()).Elem()
				fill(r, e, depth+1)
				v.SetMapIndex(reflect.ValueOf(string(rune('k'+i))), e)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(r, f, depth+1)
			}
		}
	}
}

// TestValidatorTakesWhatIsWritten inserts drawn values of a type with every kind of field: a
// collection with the type's validator takes each of them, closed or not.
func TestValidatorTakesWhatIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		opts      bson.Options
		validator bson.D
	}{
		"as it is": {bson.Options{}, schema.Validator[everything]()},
		"nulls": {bson.Options{NilSliceAsNull: true, NilMapAsNull: true, NilBytesAsNull: true},
			schema.Validator(schema.EncodedWith[everything](bson.Options{NilSliceAsNull: true, NilMapAsNull: true, NilBytesAsNull: true}))},
		"closed":      {bson.Options{}, schema.Validator(schema.Closed[everything]())},
		"without any": {bson.Options{OmitEmpty: true}, schema.Validator(schema.EncodedWith[everything](bson.Options{OmitEmpty: true}))},
	} {
		t.Run(name, func(t *testing.T) {
			_, db := start(t, mongotest.Standalone())
			if err := db.CreateCollection(t.Context(), "c", allium.CreateCollectionOptions{Validator: c.validator}); err != nil {
				t.Fatal(err)
			}
			coll := allium.CollectionOf[everything](db, "c", allium.CollectionOptions{BSON: &c.opts})
			r := rand.New(rand.NewPCG(3, 3))
			for i := range int64(300) {
				i++ // an _id of 0 is left out
				var v everything
				fill(r, reflect.ValueOf(&v).Elem(), 0)
				v.ID = i
				if name != "as it is" {
					v.Rest = nil
				}
				if _, err := coll.InsertOne(t.Context(), v); err != nil {
					t.Fatalf("%+v: %v\n%v", v, err, c.validator)
				}
			}
		})
	}
}

// TestValidatorRefuses changes one field of a document that a validator takes, and wants it
// refused.
func TestValidatorRefuses(t *testing.T) {
	type line struct {
		SKU string  `bson:"sku"`
		Qty int32   `bson:"qty"`
		Opt *string `bson:"opt"`
	}
	type order struct {
		ID     int            `bson:"_id"`
		Status string         `bson:"status"`
		Total  float64        `bson:"total"`
		Small  int8           `bson:"small"`
		Lines  []line         `bson:"lines"`
		By     map[string]int `bson:"by"`
		When   time.Time      `bson:"when"`
		Kind   *string        `bson:"kind"`
		Mail   string         `bson:"mail,omitempty"`
	}
	var (
		status = field.Of(func(o *order) *string { return &o.Status })
		total  = field.Of(func(o *order) *float64 { return &o.Total })
		lines  = field.Of(func(o *order) *[]line { return &o.Lines })
		qty    = field.Of(func(o *order) *int32 { return &o.Lines[0].Qty })
		sku    = field.Of(func(o *order) *string { return &o.Lines[0].SKU })
		by     = field.Of(func(o *order) *map[string]int { return &o.By })
		kind   = field.As[string](field.Of(func(o *order) *string { return o.Kind }))
		mail   = field.Of(func(o *order) *string { return &o.Mail })
	)
	_, db := start(t, mongotest.Standalone())
	v := schema.Validator(schema.Enum(status, "open", "paid"), schema.Min(total, 0), schema.Max(qty, 10), schema.Items(lines, 1, 2), schema.Length(sku, 2, 3),
		schema.Min(field.Key(by, "eur"), 5), schema.Enum(kind, "a", "b"), schema.Pattern(mail, "@"), schema.Closed[order]())
	if err := db.CreateCollection(t.Context(), "c", allium.CreateCollectionOptions{Validator: v}); err != nil {
		t.Fatal(err)
	}
	good := func(change func(o *order)) bson.Raw {
		o := order{Status: "open", Lines: []line{{SKU: "abc", Qty: 1}}, By: map[string]int{"eur": 5, "usd": 1}, When: time.Unix(1, 0)}
		change(&o)
		raw, err := bson.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	coll := allium.CollectionOf[bson.Raw](db, "c")
	for name, doc := range map[string]bson.Raw{"as it is": good(func(*order) {}), "an allowed kind": good(func(o *order) { o.ID, o.Kind, o.Mail = 1, new("b"), "a@b" })} {
		if _, err := coll.InsertOne(t.Context(), doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for what, change := range map[string]func(o *order){
		"a status that is none": func(o *order) { o.Status = "lost" }, "a negative total": func(o *order) { o.Total = -1 }, "a large quantity": func(o *order) { o.Lines[0].Qty = 11 },
		"no lines": func(o *order) { o.Lines = nil }, "three lines": func(o *order) { o.Lines = append(o.Lines, o.Lines[0], o.Lines[0]) }, "a short text": func(o *order) { o.Lines[0].SKU = "a" },
		"an entry of a map": func(o *order) { o.By["eur"] = 4 }, "a kind that is none": func(o *order) { o.Kind = new("c") }, "a text that does not match": func(o *order) { o.Mail = "x" },
	} {
		if _, err := coll.InsertOne(t.Context(), good(func(o *order) { o.ID = 9; change(o) })); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	for _, c := range []struct {
		path string
		v    any
	}{
		{"status", 1}, {"total", "1"}, {"small", 1000}, {"small", int64(1)}, {"lines", "x"}, {"lines.0.qty", "1"}, {"lines.0.qty", int64(1)}, {"lines.0.opt", 1}, {"by.usd", "x"},
		{"when", "2020"}, {"more", 1}, {"lines.0.more", 1}, {"kind", 1},
	} {
		var d bson.D
		if err := bson.Unmarshal(good(func(o *order) { o.ID = 9 }), &d); err != nil {
			t.Fatal(err)
		}
		if _, err := coll.InsertOne(t.Context(), set(t, d, c.path, c.v)); err == nil {
			t.Errorf("%s: %v is taken", c.path, c.v)
		}
	}
	for _, gone := range []string{"status", "lines", "kind", "when"} {
		var d bson.D
		if err := bson.Unmarshal(good(func(o *order) { o.ID = 9 }), &d); err != nil {
			t.Fatal(err)
		}
		var left bson.D
		for _, e := range d {
			if e.Key != gone {
				left = append(left, e)
			}
		}
		raw, err := bson.Marshal(left)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := coll.InsertOne(t.Context(), raw); err == nil {
			t.Errorf("a document without %s is taken", gone)
		}
	}
}

// set returns a document with another value at a path.
func set(t *testing.T, d bson.D, path string, v any) bson.Raw {
	t.Helper()
	key, rest, deeper := strings.Cut(path, ".")
	for i := range d {
		if d[i].Key != key {
			continue
		}
		switch in := d[i].Value.(type) {
		case bson.D:
			if deeper {
				d[i].Value = set(t, in, rest, v)
				v = d[i].Value
			}
		case bson.A:
			if deeper {
				_, rest, _ = strings.Cut(rest, ".")
				in[0] = set(t, in[0].(bson.D), rest, v)
				v = in
			}
		}
		d[i].Value = v
		key = ""
	}
	if key != "" {
		d = append(d, bson.E{Key: key, Value: v})
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestValidatorPanics: what a validator cannot be about is found when the program starts.
func TestValidatorPanics(t *testing.T) {
	type opaque struct{ V big.Int }
	type doc struct{ A any }
	for what, f := range map[string]func(){
		"no document": func() { schema.Validator[int]() },
		"a key twice": func() {
			schema.Validator[struct {
				A, B int `bson:"k"`
			}]()
		},
		"within an unknown": func() {
			schema.Validator(schema.Min(field.Join(field.As[doc](field.Of(func(d *doc) *any { return &d.A })), field.As[int](field.Of(func(d *doc) *any { return &d.A }))), 1))
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			f()
		}()
	}
	schema.Validator[opaque]()
}
