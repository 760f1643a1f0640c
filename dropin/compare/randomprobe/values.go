package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// options makes a builder, and calls some of its setters.
func (p *probe) options(builder any) (opts reflect.Value, set string) {
	if p.random.IntN(4) == 0 {
		return opts, ""
	}
	b := reflect.ValueOf(builder).Call(nil)[0]
	var setters []string
	for i := range b.NumMethod() {
		if name := b.Type().Method(i).Name; strings.HasPrefix(name, "Set") && !skipped[name] {
			setters = append(setters, name)
		}
	}
	slices.Sort(setters)
	var calls []string
	for range p.random.IntN(4) {
		name := setters[p.random.IntN(len(setters))]
		m := b.MethodByName(name)
		arg := p.value(name, m.Type().In(0))
		m.Call([]reflect.Value{arg})
		calls = append(calls, fmt.Sprintf("%s(%s)", name, shown(arg)))
	}
	return b, strings.Join(calls, " ")
}

func shown(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Slice:
		if v.IsNil() {
			return "nil"
		}
		return fmt.Sprintf("%T", v.Interface())
	}
	return fmt.Sprint(v.Interface())
}

// skipped are the setters whose effect depends on time, or is another one with each version of the
// server.
var skipped = map[string]bool{
	"SetCursorType": true, "SetMaxAwaitTime": true, "SetExpireAfterSeconds": true, "SetCustom": true,
	"SetEncoder": true, "SetRegistry": true, "SetStorageEngine": true,
	"SetOrdered": true, "SetOplogReplay": true, "SetBucketSize": true, // which servers do not know any more
}

// value makes an argument for a setter.
func (p *probe) value(setter string, t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(p.random.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		v.SetInt([]int64{1, 1, 2, 3, 100}[p.random.IntN(5)])
	case reflect.Float64:
		v.SetFloat(float64(p.random.IntN(3)))
	case reflect.String:
		v.SetString([]string{"x", "a", "_id_", "before", "after"}[p.random.IntN(5)])
	case reflect.Pointer:
		if c, ok := v.Interface().(*options.Collation); ok && p.random.IntN(4) > 0 {
			c = &options.Collation{Locale: []string{"en", "", "de"}[p.random.IntN(3)], Strength: p.random.IntN(3),
				CaseLevel: p.random.IntN(2) == 0, NumericOrdering: p.random.IntN(2) == 0}
			v.Set(reflect.ValueOf(c))
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Interface && p.random.IntN(3) > 0 {
			list := []any{}
			for range p.random.IntN(3) {
				list = append(list, bson.M{"e": p.random.IntN(3)})
			}
			v.Set(reflect.ValueOf(list))
		}
	case reflect.Interface:
		var x any
		switch {
		case setter != "SetComment" && setter != "SetLet" && p.random.IntN(8) == 0:
		case setter == "SetComment":
			if x = p.any(2); x == nil {
				x = "comment"
			}
		case setter == "SetHint" && p.random.IntN(2) == 0:
			x = "_id_"
		case setter == "SetHint":
			x = bson.D{{Key: "_id", Value: 1}}
		case slices.Contains([]string{"SetSort", "SetProjection", "SetMin", "SetMax"}, setter):
			x = p.form(bson.D{{Key: []string{"_id", "a", "s"}[p.random.IntN(3)], Value: 1}})
		case setter == "SetLet":
			x = bson.D{{Key: "x", Value: p.any(1)}}
		default:
			x = p.form(bson.D{{Key: "x", Value: p.any(1)}})
		}
		if x != nil {
			v.Set(reflect.ValueOf(x))
		}
	}
	return v
}

// argument makes an argument of a method.
func (p *probe) argument(k kind, mayBeOdd bool) any {
	if mayBeOdd && p.random.IntN(10) == 0 {
		return odd[p.random.IntN(len(odd))]()
	}
	switch k {
	case filter:
		return p.form([]bson.D{
			{}, {{Key: "_id", Value: 1 + p.random.IntN(4)}},
			{{Key: "a", Value: bson.D{{Key: "$gt", Value: p.any(0)}}}},
			{{Key: "list", Value: p.any(0)}}, {{Key: "$x", Value: 1}},
			{{Key: "_id", Value: bson.D{{Key: "$in", Value: []int{1, 2}}}}, {Key: "a", Value: p.any(1)}},
		}[p.random.IntN(6)])
	case update:
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: p.any(2)}}}}
		switch n := p.random.IntN(8); {
		case n == 0:
			return mongo.Pipeline{set}
		case n == 1:
			return []any{p.form(set)}
		case n == 2 && mayBeOdd:
			return p.form(bson.D{{Key: "v", Value: 1}})
		case n == 3:
			return p.form(bson.D{{Key: "$inc", Value: p.form(bson.D{{Key: "a", Value: 1}})}})
		case n == 4:
			return p.form(bson.D{{Key: "$set", Value: bson.D{{Key: "list.$[e]", Value: 1}}}})
		}
		return p.form(set)
	case document:
		return p.document()
	case documents:
		docs := []any{}
		for range p.random.IntN(4) {
			docs = append(docs, p.document())
		}
		if p.random.IntN(4) == 0 {
			return []bson.M{{"x": p.any(1)}, {"_id": 1}}
		}
		return docs
	case pipeline:
		stages := []bson.D{{{Key: "$match", Value: bson.D{{Key: "a", Value: p.any(0)}}}},
			{{Key: "$project", Value: bson.D{{Key: "a", Value: 1}}}}, {{Key: "$limit", Value: 1 + p.random.IntN(2)}},
			{{Key: "$bad", Value: 1}}, {{Key: "$sort", Value: bson.M{"_id": -1}}}}
		p.random.Shuffle(len(stages), func(i, j int) { stages[i], stages[j] = stages[j], stages[i] })
		stages = stages[:1+p.random.IntN(4)]
		switch p.random.IntN(4) {
		case 0:
			return mongo.Pipeline(stages)
		case 1:
			list := bson.A{}
			for _, s := range stages {
				list = append(list, p.form(s))
			}
			return list
		case 2:
			return [2]bson.D{stages2(stages, 0), stages2(stages, 1)}
		}
		return stages
	case field:
		return []string{"a", "_id", "list", "in.a", "none", "$x"}[p.random.IntN(6)]
	default:
		return p.form([]bson.D{{{Key: "a", Value: 1}}, {{Key: "a", Value: int64(-1)}}, {{Key: "s", Value: "text"}},
			{{Key: "a", Value: 1}, {Key: "s", Value: -1}}}[p.random.IntN(4)])
	}
}

func stages2(stages []bson.D, i int) bson.D {
	if i < len(stages) {
		return stages[i]
	}
	return bson.D{{Key: "$match", Value: bson.D{}}}
}

// odd makes arguments that are none.
var odd = []func() any{
	func() any { return nil }, func() any { return 5 }, func() any { return "text" }, func() any { return bson.D(nil) },
	func() any { return bson.M(nil) }, func() any { return map[string]any(nil) },
	func() any { return (*user)(nil) },
	func() any { return []byte{5, 0, 0, 0, 0} }, func() any { return bson.Raw{5, 0, 0, 0, 0} },
	func() any { return []int{1} }, func() any { return bson.D{} },
	func() any { return struct{}{} }, func() any { return map[int]string{1: "x"} },
	func() any { return make(chan int) },
	func() any { return failing{} }, func() any { return bson.D{{Key: "f", Value: failing{}}} },
	func() any { return bson.D{{Key: "c", Value: make(chan int)}} }, func() any { return true },
	func() any { return bson.D{{Key: "a.b", Value: 1}} },
	func() any { return bson.D{{Key: "x", Value: 1}, {Key: "x", Value: 2}} },
	func() any { return (any)((*any)(nil)) }, func() any { d := any(bson.D{{Key: "_id", Value: 1}}); return &d },
}

type user struct {
	ID     int            `bson:"_id"`
	Name   string         `bson:"name,omitempty"`
	Small  int64          `bson:",minsize"`
	Extra  map[string]any `bson:",inline"`
	At     time.Time      `bson:"at"`
	Ptr    *int           `bson:"ptr,omitempty"`
	List   []string
	Bytes  []byte
	Hidden string `bson:"-"`
	Any    any
	base
}

type base struct{ X int }

type wrapped struct {
	Base `bson:",inline"`
	ID   bson.ObjectID `bson:"_id,omitempty"`
	In   *wrapped      `bson:"in"`
	Num  bson.Decimal128
	Arr  [2]uint8
	U    uint32
	F    float32
	D    time.Duration
}

// Base is embedded.
type Base struct{ Y string }

// failing has a method that fails.
type failing struct{}

func (failing) MarshalBSON() ([]byte, error) { return nil, errors.New("does not want to") }

// marshaler encodes itself.
type marshaler struct{ n int }

func (m marshaler) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.D{{Key: "n", Value: m.n}}) }

// valuer encodes itself as a value.
type valuer struct{ n int }

func (v *valuer) MarshalBSONValue() (byte, []byte, error) {
	t, data, err := bson.MarshalValue(fmt.Sprint("v", v.n))
	return byte(t), data, err
}

// document makes a document to be stored.
func (p *probe) document() any {
	n := 10 + p.random.IntN(1000)
	switch p.random.IntN(7) {
	case 0:
		u := user{ID: n, Name: "n", Small: int64(n), Extra: map[string]any{"e": p.any(1)}, At: time.Unix(5, 6).UTC(),
			Any: p.any(2)}
		if p.random.IntN(2) == 0 {
			return u
		}
		return &u
	case 1:
		w := wrapped{Base: Base{"y"}, In: &wrapped{}, U: uint32(n), F: 1.5, D: time.Second}
		if p.random.IntN(2) == 0 {
			w.ID = bson.ObjectID{byte(n), 1}
		}
		return w
	case 2:
		return marshaler{n}
	case 3:
		return bson.M{"_id": []any{"text", 5.5, bson.M{"k": p.any(0)}, nil}[p.random.IntN(4)]}
	case 4:
		return map[string]int{"_id": n}
	}
	return p.form(bson.D{{Key: "_id", Value: n}, {Key: "v", Value: p.any(2)}})
}

// form returns a document in one of the forms that programs have them in.
func (p *probe) form(d bson.D) any {
	switch p.random.IntN(8) {
	case 0:
		if len(d) < 2 {
			m := bson.M{}
			for _, e := range d {
				m[e.Key] = e.Value
			}
			return m
		}
	case 1:
		return &d
	case 2:
		raw, err := bson.Marshal(d)
		if err == nil {
			return bson.Raw(raw)
		}
	case 3:
		raw, err := bson.Marshal(d)
		if err == nil {
			return raw
		}
	case 4:
		if len(d) < 2 {
			m := map[string]any{}
			for _, e := range d {
				m[e.Key] = e.Value
			}
			return m
		}
	}
	return d
}

// any makes a value of any type.
func (p *probe) any(depth int) any {
	n := p.random.IntN(5)
	values := []func() any{
		func() any { return n }, func() any { return int32(n) }, func() any { return int64(n) },
		func() any { return float64(n) + 0.5 }, func() any { return "x" }, func() any { return n == 0 },
		func() any { return nil }, func() any { return uint8(n) }, func() any { return float32(n) },
		func() any { return time.Unix(int64(n), 5).UTC() }, func() any { return []byte{byte(n)} },
		func() any { return []byte(nil) }, func() any { return bson.ObjectID{byte(n)} },
		func() any { return bson.Binary{Subtype: 4, Data: make([]byte, 16)} },
		func() any { return bson.Timestamp{T: 1, I: 2} },
		func() any { return bson.Regex{Pattern: "x", Options: "i"} }, func() any { return bson.MinKey{} },
		func() any { return bson.NewDecimal128(0x3040000000000000, uint64(n)) }, func() any { return bson.Null{} },
		func() any { return bson.JavaScript("f()") }, func() any { return bson.Symbol("s") },
		func() any { return bson.DateTime(n) }, func() any { return (*int)(nil) }, func() any { return &n },
		func() any { return &valuer{n} },
		func() any { return time.Duration(n) },
		func() any { return bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}} },
		func() any { return bson.Undefined{} }, func() any { return [2]int{n, 2} }, func() any { return [3]byte{1} },
		func() any { return uint64(n) },
	}
	deep := []func() any{
		func() any { return bson.D{{Key: "k", Value: p.any(depth - 1)}} },
		func() any { return bson.M{"k": p.any(depth - 1)} },
		func() any { return bson.A{p.any(depth - 1), p.any(depth - 1)} },
		func() any { return []any{p.any(depth - 1)} },
		func() any { return []string(nil) }, func() any { return map[string]int(nil) }, func() any { return []int{} },
		func() any { return map[string]any{"k": p.any(depth - 1)} },
		func() any { return struct{ A any }{p.any(depth - 1)} },
		func() any { return map[int]string{n: "x"} }, func() any { return marshaler{n} },
		func() any { return []bson.D{nil, {}} },
		func() any { return bson.CodeWithScope{Code: "f()", Scope: bson.D{{Key: "k", Value: 1}}} },
		func() any { return bson.DBPointer{DB: "d", Pointer: bson.ObjectID{1}} }, func() any { return &base{n} },
		func() any { return []*int{nil, &n} },
	}
	if depth > 0 && p.random.IntN(2) == 0 {
		return deep[p.random.IntN(len(deep))]()
	}
	return values[p.random.IntN(len(values))]()
}
