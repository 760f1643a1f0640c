package main

import (
	"bytes"
	"context"
	"fmt"
	"reflect"

	"allium/dropin/compare/say"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// These are types that codecs are registered for.
type (
	item    struct{ N int }
	pointed struct{ N int }
	raw     struct{ N int }
	word    string
	number  int
	words   []string
	dict    map[string]int
	pair    [2]int
	named   interface{ Name() string }
	spoken  interface{ Speak() string }
)

func (item) Name() string                  { return "item" }
func (word) Name() string                  { return "word" }
func (*pointed) Name() string              { return "pointed" }
func (*pointed) Speak() string             { return "pointed" }
func (raw) Name() string                   { return "raw" }
func (r raw) MarshalBSON() ([]byte, error) { return bson.Marshal(d("raw", r.N)) }
func (r *raw) UnmarshalBSON([]byte) error  { r.N = 77; return nil }

// A registration adds codecs to a registry, which name themselves.
type registration struct {
	name string
	add  func(*Registry, ValueEncoder, ValueDecoder)
}

func ofType(t reflect.Type) registration {
	return registration{"type " + t.String(), func(r *Registry, enc ValueEncoder, dec ValueDecoder) {
		r.RegisterTypeEncoder(t, enc)
		r.RegisterTypeDecoder(t, dec)
	}}
}

func ofInterface(t reflect.Type) registration {
	return registration{"interface " + t.String(), func(r *Registry, enc ValueEncoder, dec ValueDecoder) {
		r.RegisterInterfaceEncoder(t, enc)
		r.RegisterInterfaceDecoder(t, dec)
	}}
}

func ofKind(k reflect.Kind) registration {
	return registration{"kind " + k.String(), func(r *Registry, enc ValueEncoder, dec ValueDecoder) {
		r.RegisterKindEncoder(k, enc)
		r.RegisterKindDecoder(k, dec)
	}}
}

var registrations = []registration{
	ofType(reflect.TypeFor[item]()), ofType(reflect.TypeFor[*item]()), ofType(reflect.TypeFor[word]()),
	ofType(reflect.TypeFor[raw]()), ofType(reflect.TypeFor[named]()), ofType(reflect.TypeFor[any]()),
	ofType(reflect.TypeFor[[]byte]()), ofType(reflect.TypeFor[ObjectID]()),
	ofInterface(reflect.TypeFor[named]()), ofInterface(reflect.TypeFor[spoken]()),
	ofInterface(reflect.TypeFor[bson.Marshaler]()),
	ofKind(reflect.Struct), ofKind(reflect.String), ofKind(reflect.Int), ofKind(reflect.Slice), ofKind(reflect.Map),
	ofKind(reflect.Array), ofKind(reflect.Pointer), ofKind(reflect.Interface),
}

// registryOf makes a registry with the codecs of registrations. What decoders are called is noted.
func registryOf(note func(string), list ...registration) *Registry {
	r := bson.NewRegistry()
	for _, reg := range list {
		reg.add(r, ValueEncoderFunc(func(_ EncodeContext, vw ValueWriter, v reflect.Value) error {
			if !v.IsValid() {
				return vw.WriteString(reg.name + " of nothing")
			}
			return vw.WriteString(reg.name + " of " + v.Type().String())
		}), ValueDecoderFunc(func(_ DecodeContext, vr ValueReader, v reflect.Value) error {
			note(fmt.Sprintf("%s of %s settable=%t", reg.name, v.Type(), v.CanSet()))
			return vr.Skip()
		}))
	}
	return r
}

// registered are values, and what they are read from.
func registered() []any {
	return []any{
		item{1}, &item{2}, (*item)(nil), pointed{1}, &pointed{2}, raw{1}, &raw{2}, word("w"), number(3), words{"a"},
		dict{"k": 1},
		pair{1, 2}, []item{{1}}, []*item{{1}}, map[string]item{"k": {1}}, map[word]int{"w": 1},
		[]word{"w"}, []any{item{1}, word("w")},
		struct{ V any }{item{1}}, struct{ V named }{item{1}}, struct{ V named }{&pointed{1}}, struct{ V named }{},
		struct{ V *raw }{}, struct {
			In item `bson:",inline"`
			W  word
		}{item{1}, "w"}, []byte{1}, ObjectID{1}, d("k", item{1}), bson.M{"k": word("w")}, bson.A{1, "x"}, "text", 5,
		true, nil,
		struct{ V any }{"text"}, bson.M{"k": ObjectID{1}}, bson.M{"d": bson.M{"s": "x"}}, bson.M{"n": nil},
		[]any{nil, d("s", "x"), bson.A{"y"}},
		d("k", "x", "d", d("s", "x"), "a", bson.A{"x", d("s", "y")}),
	}
}

// together are pairs of registrations of which both are for some types.
var together = [][]registration{
	{ofType(reflect.TypeFor[item]()), ofType(reflect.TypeFor[*item]())},
	{ofType(reflect.TypeFor[item]()), ofInterface(reflect.TypeFor[named]())},
	{ofInterface(reflect.TypeFor[named]()), ofType(reflect.TypeFor[*item]())},
	{ofInterface(reflect.TypeFor[named]()), ofInterface(reflect.TypeFor[spoken]())},
	{ofInterface(reflect.TypeFor[spoken]()), ofInterface(reflect.TypeFor[named]())},
	{ofInterface(reflect.TypeFor[named]()), ofKind(reflect.String)},
	{ofKind(reflect.String), ofType(reflect.TypeFor[word]())},
	{ofType(reflect.TypeFor[named]()), ofKind(reflect.Interface)},
	{ofType(reflect.TypeFor[word]()), ofType(reflect.TypeFor[word]())},
}

// registries says which codec of a registry is called for what: of one, and of each two.
func registries() {
	for _, one := range registrations {
		coded(one.name, one)
	}
	for _, two := range together {
		coded(two[0].name+" and "+two[1].name, two...)
	}
	placed()
}

// coded encodes and decodes values with codecs.
func coded(name string, list ...registration) {
	var calls []string
	r := registryOf(func(call string) { calls = append(calls, call) }, list...)
	for i, v := range registered() {
		what := fmt.Sprintf("registry %s %d %T", name, i, v)
		var buf bytes.Buffer
		var doc any = d("v", v)
		if name == "kind slice" { // which a D is
			doc = bson.M{"v": v}
		}
		err := encode(r, &buf, doc)
		say.Line(what+" encoded", bson.Raw(buf.Bytes()), err)
		plain, err := bson.Marshal(d("v", v))
		if err != nil || v == nil {
			continue
		}
		calls = nil
		t := reflect.TypeOf(v)
		into := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: t}})).Elem()
		if name == "kind struct" {
			into = reflect.New(reflect.MapOf(reflect.TypeFor[string](), t)).Elem()
		}
		err = decode(r, plain, into.Addr().Interface())
		came := into
		if into.Kind() == reflect.Map {
			came = into.MapIndex(reflect.ValueOf("v"))
		} else {
			came = into.Field(0)
		}
		say.Line(what+" decoded", calls, !came.IsValid() || came.IsZero(), err)
	}
}

// placed says which registry is asked of those of a client, a database and a collection.
func placed() {
	var sent []string
	var decoded []string
	naming := func(name string) *Registry {
		r := bson.NewRegistry()
		r.RegisterTypeEncoder(reflect.TypeFor[word](), ValueEncoderFunc(
			func(_ EncodeContext, vw ValueWriter, v reflect.Value) error { return vw.WriteString(name) }))
		r.RegisterTypeDecoder(reflect.TypeFor[word](), ValueDecoderFunc(
			func(_ DecodeContext, vr ValueReader, v reflect.Value) error {
				decoded = append(decoded, name)
				v.SetString(name)
				return vr.Skip()
			}))
		return r
	}
	client, err := newClient(options.Client().ApplyURI(uri).SetRegistry(naming("client")), options.Client().SetMonitor(
		&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if e.CommandName != "endSessions" && e.CommandName != "killCursors" && e.CommandName != "getMore" {
				sent = append(sent, say.Dump(e.Command))
			}
		}}))
	must(err)
	defer func() { _ = client.Disconnect(ctx) }()
	type doc struct {
		ID int `bson:"_id"`
		W  word
	}
	must(admin.Database("placed").Drop(ctx))
	must(client.Ping(ctx, nil))
	admitted := admin.Database("placed").Collection("c")
	for _, dbOwn := range []bool{false, true} {
		for _, own := range []bool{false, true} {
			dbo, co := options.Database(), newCollectionOptions()
			if dbOwn {
				dbo.SetRegistry(naming("database"))
			}
			if own {
				co.SetRegistry(naming("collection"))
			}
			db := client.Database("placed", dbo)
			c := db.Collection("c", co)
			for _, call := range []struct {
				name string
				run  func() error
			}{
				{"insert", func() error { _, err := c.InsertOne(ctx, doc{1, "w"}); return err }},
				{"insert many", func() error {
					_, err := c.InsertMany(ctx, []any{doc{2, "w"}, d("_id", word("w"))})
					return err
				}},
				{"update", func() error {
					_, err := c.UpdateOne(ctx, d("w", word("w")), d("$set", d("w", word("w"))))
					return err
				}},
				{"replace", func() error { _, err := c.ReplaceOne(ctx, d("_id", 1), doc{1, "w"}); return err }},
				{"delete", func() error { _, err := c.DeleteOne(ctx, d("w", word("w"), "x", 1)); return err }},
				{"find one", func() error { return c.FindOne(ctx, d("w", d("$ne", word("w")))).Decode(new(doc)) }},
				{"find", func() error {
					cur, err := c.Find(ctx, d("_id", 1), options.Find().SetSort(d("w", 1)).SetLet(d("w", word("w"))))
					must(err)
					return cur.All(ctx, new([]doc))
				}},
				{"aggregate", func() error {
					cur, err := c.Aggregate(ctx, []bson.D{d("$match", d("_id", d("$in", []any{1, word("w")})))})
					must(err)
					for cur.Next(ctx) {
						err = cur.Decode(new(struct{ W word }))
					}
					return err
				}},
				{"database aggregate", func() error {
					cur, err := db.Aggregate(ctx, []bson.D{d("$documents", []any{d("w", word("w"))})})
					if err == nil {
						err = cur.All(ctx, new([]doc))
					}
					return err
				}},
				{"find and modify", func() error {
					return c.FindOneAndUpdate(ctx, d("_id", 1), d("$set", d("w", word("w")))).Decode(new(doc))
				}},
				{"count", func() error { _, err := c.CountDocuments(ctx, d("w", word("w"))); return err }},
				{"distinct", func() error { _, err := distinct(ctx, c, "w", d("w", word("w"))); return err }},
				{"bulk", func() error {
					_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(doc{3, "w"}),
						mongo.NewUpdateOneModel().SetFilter(d("w", word("w"))).SetUpdate(d("$set", d("w", word("w"))))})
					return err
				}},
				{"index", func() error {
					_, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: d("w", 1),
						Options: options.Index().SetPartialFilterExpression(d("w", word("w")))})
					return err
				}},
				{"command", func() error {
					return db.RunCommand(ctx, d("find", "c", "filter", d("w", word("w")))).Decode(new(struct{ W word }))
				}},
				{"command cursor", func() error {
					cur, err := db.RunCommandCursor(ctx, d("find", "c", "filter", d("w", d("$ne", word("w")))))
					must(err)
					return cur.All(ctx, new([]struct{ W word }))
				}},
				{"list", func() error {
					cur, err := db.ListCollections(ctx, d("name", d("$ne", word("w"))))
					must(err)
					return cur.All(ctx, new([]struct {
						Name word
					}))
				}},
				{"clone", func() error {
					return clone(c, newCollectionOptions()).FindOne(ctx, d("_id", 1)).Decode(new(doc))
				}},
				{"cloned", func() error {
					own := clone(c, newCollectionOptions().SetRegistry(naming("clone")))
					return own.FindOne(ctx, d("_id", 1)).Decode(new(doc))
				}},
				{"stream", func() error {
					cs, err := c.Watch(ctx, []bson.D{d("$match", d("x", d("$ne", word("w"))))})
					must(err)
					defer func() { _ = cs.Close(ctx) }()
					_, err = admitted.InsertOne(ctx, d("_id", 50, "w", "w"))
					must(err)
					cs.Next(ctx)
					return cs.Decode(new(struct {
						OperationType word `bson:"operationType"`
					}))
				}},
			} {
				_, err := admitted.DeleteMany(ctx, d())
				must(err)
				_, err = admitted.InsertOne(ctx, d("_id", 1, "w", "x"))
				must(err)
				if call.name == "insert" {
					_, err = admitted.DeleteMany(ctx, d())
					must(err)
				}
				sent, decoded = nil, nil
				say.Try(fmt.Sprintf("placed database=%t collection=%t %s", dbOwn, own, call.name), func() []any {
					err := call.run()
					return []any{decoded, err, sent}
				})
			}
		}
	}
}
