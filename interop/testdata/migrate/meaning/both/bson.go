package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// shape says of what types a decoded value is.
func shape(v any) string {
	switch v := v.(type) {
	case bson.D:
		var list []string
		for _, e := range v {
			list = append(list, e.Key+":"+shape(e.Value))
		}
		return "D{" + strings.Join(list, " ") + "}"
	case bson.M:
		return fmt.Sprintf("M%d{%s}", len(v), shape(v["in"]))
	case map[string]any:
		return fmt.Sprintf("map%d{%s}", len(v), shape(v["in"]))
	case bson.A:
		var list []string
		for _, e := range v {
			list = append(list, shape(e))
		}
		return "A[" + strings.Join(list, " ") + "]"
	case []any:
		return "any slice"
	}
	s := fmt.Sprintf("%T", v)
	return s[strings.LastIndex(s, ".")+1:]
}

type named map[string]any

func init() {
	nested := bson.D{{Key: "in", Value: bson.D{{Key: "in", Value: bson.A{bson.D{{Key: "x", Value: 1}}, "s"}}}}}
	add("bson/shapes", func(ctx context.Context, db *mongo.Database) {
		data, err := bson.Marshal(nested)
		check(err)
		var m bson.M
		check(bson.Unmarshal(data, &m))
		fmt.Println(shape(m))
		var d bson.D
		check(bson.Unmarshal(data, &d))
		fmt.Println(shape(d))
		var plain map[string]any
		check(bson.Unmarshal(data, &plain))
		fmt.Println(shape(plain))
		var a any
		check(bson.Unmarshal(data, &a))
		fmt.Println(shape(a))
		var s struct{ In any }
		check(bson.Unmarshal(data, &s))
		fmt.Println(shape(s.In))
		var sm struct{ In bson.M }
		check(bson.Unmarshal(data, &sm))
		fmt.Println(shape(sm.In))
		var sd struct{ In bson.D }
		check(bson.Unmarshal(data, &sd))
		fmt.Println(shape(sd.In))
		var n named
		check(bson.Unmarshal(data, &n))
		_, isNamed := n["in"].(named)
		fmt.Println(isNamed)
		var ms struct {
			In map[string]struct{ X any }
		}
		fmt.Println(bson.Unmarshal(data, &ms) != nil)
	})
	add("bson/shapes read", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("shapes")
		_, err := c.InsertOne(ctx, nested)
		check(err)
		var m bson.M
		check(c.FindOne(ctx, bson.D{}).Decode(&m))
		fmt.Println(shape(m["in"]))
		cur, err := c.Find(ctx, bson.D{})
		check(err)
		var list []bson.M
		check(cur.All(ctx, &list))
		fmt.Println(shape(list[0]["in"]))
		cur, err = c.Find(ctx, bson.D{})
		check(err)
		var plain []map[string]any
		check(cur.All(ctx, &plain))
		fmt.Println(shape(plain[0]["in"]))
		cur, err = c.Find(ctx, bson.D{})
		check(err)
		for cur.Next(ctx) {
			var d bson.D
			check(cur.Decode(&d))
			fmt.Println(shape(d[1].Value))
			var m map[string]any
			check(cur.Decode(&m))
			fmt.Println(shape(m["in"]))
		}
		var reply bson.M
		check(db.RunCommand(ctx, bson.D{{Key: "listCollections", Value: 1}, {Key: "nameOnly", Value: true}}).Decode(&reply))
		_, isM := reply["cursor"].(bson.M)
		_, isD := reply["cursor"].(bson.D)
		fmt.Println(isM, isD)
	})
	add("bson/map of maps", func(ctx context.Context, db *mongo.Database) {
		data, err := bson.Marshal(bson.M{"a": bson.M{"b": bson.M{"c": int64(1)}}})
		check(err)
		var mm map[string]map[string]any
		check(bson.Unmarshal(data, &mm))
		fmt.Println(shape(mm["a"]["b"]))
		var have = bson.M{"kept": 1}
		check(bson.Unmarshal(data, &have))
		fmt.Println(len(have))
	})
	add("bson/nil", func(ctx context.Context, db *mongo.Database) {
		type doc struct {
			S []string
			M map[string]string
			B []byte
			D bson.D
			P *int
			I any
			T *time.Time
		}
		data, err := bson.Marshal(doc{})
		check(err)
		text, err := bson.MarshalExtJSON(bson.Raw(data), true, false)
		check(err)
		fmt.Println(string(text))
		data, err = bson.Marshal(bson.M{"x": []int(nil)})
		check(err)
		fmt.Println(len(data))
		var back = doc{S: []string{"x"}, M: map[string]string{"k": "v"}}
		data, err = bson.Marshal(doc{})
		check(err)
		check(bson.Unmarshal(data, &back))
		fmt.Println(back.S == nil, back.M == nil)
	})
	add("bson/numbers", func(ctx context.Context, db *mongo.Database) {
		data, err := bson.Marshal(bson.D{{Key: "i", Value: 1}, {Key: "l", Value: int64(1) << 40}, {Key: "d", Value: 2.0}, {Key: "f", Value: 2.5}, {Key: "u", Value: uint32(7)}})
		check(err)
		text, err := bson.MarshalExtJSON(bson.Raw(data), true, false)
		check(err)
		fmt.Println(string(text))
		text, err = bson.MarshalExtJSON(bson.Raw(data), false, false)
		check(err)
		fmt.Println(string(text))
		var a struct{ L int32 }
		fmt.Println(bson.Unmarshal(data, &a) != nil)
		var b struct{ D int }
		fmt.Println(bson.Unmarshal(data, &b), b.D)
		var c struct{ F int }
		fmt.Println(bson.Unmarshal(data, &c) != nil)
		var e struct{ I float64 }
		fmt.Println(bson.Unmarshal(data, &e), e.I)
		var s struct{ I string }
		fmt.Println(bson.Unmarshal(data, &s) != nil)
		var k struct{ I bool }
		fmt.Println(bson.Unmarshal(data, &k), k.I)
	})
	add("bson/tags", func(ctx context.Context, db *mongo.Database) {
		type inner struct {
			X int `bson:"x,omitempty"`
		}
		type doc struct {
			A   int    `bson:"a,omitempty"`
			B   string `bson:"-"`
			C   inner  `bson:",inline"`
			Big int64  `bson:"big,minsize"`
			In  inner  `bson:"in,omitempty"`
			UP  int
			T   time.Time `bson:"t,omitempty"`
		}
		text, err := bson.MarshalExtJSON(doc{B: "b", C: inner{X: 1}, Big: 5}, true, false)
		check(err)
		fmt.Println(string(text))
		var back doc
		data, err := bson.Marshal(bson.D{{Key: "UP", Value: 3}, {Key: "up", Value: 4}, {Key: "A", Value: 5}})
		check(err)
		check(bson.Unmarshal(data, &back))
		fmt.Println(back.UP, back.A)
	})
	add("bson/time", func(ctx context.Context, db *mongo.Database) {
		at := time.Date(2024, 2, 3, 4, 5, 6, 789999999, time.FixedZone("x", 3600))
		data, err := bson.Marshal(bson.M{"t": at})
		check(err)
		var s struct{ T time.Time }
		check(bson.Unmarshal(data, &s))
		fmt.Println(s.T.Format(time.RFC3339Nano), s.T.Location())
		c := db.Collection("times")
		_, err = c.InsertOne(ctx, bson.M{"t": at})
		check(err)
		check(c.FindOne(ctx, bson.M{"t": at}).Decode(&s))
		fmt.Println(s.T.Format(time.RFC3339Nano), s.T.Location())
		var zero struct{ T time.Time }
		data, err = bson.Marshal(zero)
		check(err)
		check(bson.Unmarshal(data, &s))
		fmt.Println(s.T.IsZero())
		var n struct{ T int64 }
		fmt.Println(bson.Unmarshal(data, &n) != nil)
	})
	add("bson/extended JSON", func(ctx context.Context, db *mongo.Database) {
		var d bson.D
		check(bson.UnmarshalExtJSON([]byte(`{"a": {"$numberLong": "5"}, "b": [1, 2.5, {"c": null}], "d": {"$date": "2024-01-01T00:00:00Z"}}`), false, &d))
		fmt.Println(shape(d))
		var m bson.M
		check(bson.UnmarshalExtJSON([]byte(`{"in": {"in": {"x": 1}}}`), false, &m))
		fmt.Println(shape(m))
		text, err := bson.MarshalExtJSON(d, false, false)
		check(err)
		fmt.Println(string(text))
		fmt.Println(bson.UnmarshalExtJSON([]byte(`{`), false, &m) != nil)
	})
	add("bson/json", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("things")
		_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "s", Value: "x"}, {Key: "l", Value: bson.A{1, "a", nil}}, {Key: "in", Value: bson.D{{Key: "z", Value: 1}, {Key: "a", Value: 2}}}, {Key: "t", Value: time.Unix(1700000000, 0)}, {Key: "f", Value: 1.0}})
		check(err)
		var m bson.M
		check(c.FindOne(ctx, bson.D{}).Decode(&m))
		fmt.Println(asJSON(m))
		var d bson.D
		check(c.FindOne(ctx, bson.D{}).Decode(&d))
		fmt.Println(asJSON(map[string]any{"n": len(d)}))
		var s struct {
			L  []any
			T  time.Time
			In map[string]any
		}
		check(c.FindOne(ctx, bson.D{}).Decode(&s))
		fmt.Println(asJSON(s))
	})
	add("bson/values", func(ctx context.Context, db *mongo.Database) {
		t, data, err := bson.MarshalValue("text")
		check(err)
		fmt.Println(byte(t), len(data))
		var s string
		check(bson.UnmarshalValue(t, data, &s))
		fmt.Println(s)
		rv := bson.RawValue{Type: t, Value: data}
		fmt.Println(rv.StringValue(), rv.Equal(rv))
		fmt.Println(rv.Unmarshal(&s), s)
	})
	add("bson/raw in structs", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("raw")
		_, err := c.InsertOne(ctx, bson.M{"_id": 1, "d": bson.M{"x": 1}, "v": "s"})
		check(err)
		var s struct {
			D bson.Raw
			V bson.RawValue
			N bson.Raw
		}
		check(c.FindOne(ctx, bson.D{}).Decode(&s))
		fmt.Println(s.D.Lookup("x").Int32(), s.V.StringValue(), s.N == nil)
		_, err = c.InsertOne(ctx, struct {
			ID int `bson:"_id"`
			D  bson.Raw
			V  bson.RawValue
		}{2, s.D, s.V})
		check(err)
		n, err := c.CountDocuments(ctx, bson.M{"d.x": 1})
		fmt.Println(n, err)
	})
	add("bson/invalid UTF-8", func(ctx context.Context, db *mongo.Database) {
		data := []byte{14, 0, 0, 0, 2, 's', 0, 2, 0, 0, 0, 0xff, 0, 0}
		var m bson.M
		fmt.Println(bson.Unmarshal(data, &m), len(m))
	})
	add("bson/options of a collection", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("things", options.Collection())
		_, err := c.InsertOne(ctx, bson.M{"s": []string(nil)})
		check(err)
		n, err := c.CountDocuments(ctx, bson.M{"s": bson.M{"$type": 10}})
		fmt.Println(n, err)
	})
	add("bson/errors of decoding", func(ctx context.Context, db *mongo.Database) {
		c := db.Collection("things")
		_, err := c.InsertOne(ctx, bson.M{"_id": 1, "name": 5, "tags": []string{"x"}})
		check(err)
		var it item
		err = c.FindOne(ctx, bson.D{}).Decode(&it)
		fmt.Println(err != nil, err == mongo.ErrNoDocuments, it.ID)
		var no map[string]string
		fmt.Println(c.FindOne(ctx, bson.D{}).Decode(&no) != nil)
		fmt.Println(c.FindOne(ctx, bson.D{}).Decode(nil) != nil)
		fmt.Println(c.FindOne(ctx, bson.D{}).Decode(it) != nil)
	})
}
