package field_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/field"
	"allium/field/expr"
	"allium/field/stage"
	"allium/field/typed"
	"allium/internal/testdeploy"
)

type Address struct{ City, Street string }

type Line struct {
	SKU  string `bson:"sku"`
	Qty  int    `bson:"qty"`
	Paid bool   `bson:"paid"`
}

type Order struct {
	ID      int `bson:"_id"`
	Ship    Address
	Total   float64
	Flags   int32
	Tags    []string
	Scores  []int
	Lines   []Line
	Nick    *string        `bson:",omitempty"`
	Old     string         `bson:"old,omitempty"`
	New     string         `bson:"new,omitempty"`
	When    time.Time      `bson:",omitempty"`
	Stamp   bson.Timestamp `bson:",omitempty"`
	Any     any            `bson:",omitempty"`
	Prices  map[string]int `bson:",omitempty"`
	Score   float64        `bson:",omitempty"`
	Version int64          `bson:",omitempty"`
}

var (
	id      = field.Of(func(o *Order) *int { return &o.ID })
	ship    = field.Of(func(o *Order) *Address { return &o.Ship })
	city    = field.Of(func(o *Order) *string { return &o.Ship.City })
	street  = field.Of(func(o *Order) *string { return &o.Ship.Street })
	total   = field.Of(func(o *Order) *float64 { return &o.Total })
	flags   = field.Of(func(o *Order) *int32 { return &o.Flags })
	tags    = field.Of(func(o *Order) *[]string { return &o.Tags })
	tag     = field.Elem(tags)
	scores  = field.Of(func(o *Order) *[]int { return &o.Scores })
	score   = field.Elem(scores)
	lines   = field.Of(func(o *Order) *[]Line { return &o.Lines })
	qty     = field.Of(func(o *Order) *int { return &o.Lines[0].Qty })
	paid    = field.Of(func(o *Order) *bool { return &o.Lines[0].Paid })
	nick    = field.Of(func(o *Order) *string { return o.Nick })
	older   = field.Of(func(o *Order) *string { return &o.Old })
	newer   = field.Of(func(o *Order) *string { return &o.New })
	when    = field.Of(func(o *Order) *time.Time { return &o.When })
	stamp   = field.Of(func(o *Order) *bson.Timestamp { return &o.Stamp })
	anyone  = field.Of(func(o *Order) *any { return &o.Any })
	prices  = field.Of(func(o *Order) *map[string]int { return &o.Prices })
	textual = field.Of(func(o *Order) *float64 { return &o.Score })
	version = field.Of(func(o *Order) *int64 { return &o.Version })

	sku     = field.Of(func(l *Line) *string { return &l.SKU })
	lineQty = field.Of(func(l *Line) *int { return &l.Qty })
	isPaid  = field.Of(func(l *Line) *bool { return &l.Paid })

	number = field.Self[int]()
	word   = field.Self[string]()
)

// start returns a collection with three documents.
func start(t *testing.T) (typed.Collection[Order], context.Context) {
	t.Helper()
	d := testdeploy.Start(t, testdeploy.Any)
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	t.Cleanup(func() { client.Close(ctx) })
	c := allium.CollectionOf[Order](client.Database("app"), "orders")
	if _, err := c.InsertMany(ctx, documents()); err != nil {
		t.Fatal(err)
	}
	return typed.Of(c), ctx
}

func documents() []Order {
	return []Order{
		{ID: 1, Ship: Address{"Bonn", "Am Hof 1"}, Total: 10, Flags: 0b001, Tags: []string{"new", "gift"}, Scores: []int{50, 95},
			Lines: []Line{{"apple", 5, false}, {"pear", 1, true}}, Nick: new("Ada"), Old: "x"},
		{ID: 2, Ship: Address{"Bern", "Gasse 2"}, Total: 20.5, Flags: 0b011, Tags: []string{"new"}, Scores: []int{82, 84},
			Lines: []Line{{"apple", 1, true}}, Prices: map[string]int{"eur": 3}, When: time.UnixMilli(1e12).UTC()},
		{ID: 3, Ship: Address{"Rome", "Via 3"}, Total: 30, Flags: 0b110, Tags: []string{}, Scores: []int{}, Lines: []Line{},
			Any: bson.D{{Key: "$gt", Value: ""}}},
	}
}

func TestFilters(t *testing.T) {
	c, ctx := start(t)
	if _, err := c.Untyped().CreateIndex(ctx, c.Index(field.TextIndex(street), allium.IndexModel{})); err != nil {
		t.Fatal(err)
	}
	for i, f := range []struct {
		filter field.Filter[Order]
		json   string // "" where the document is not plain to see
		want   []int
	}{
		{city.Eq("Bonn"), `{"ship.city":"Bonn"}`, []int{1}},
		{city.Ne("Bonn"), `{"ship.city":{"$ne":"Bonn"}}`, []int{2, 3}},
		{total.Gt(20.5), `{"total":{"$gt":20.5}}`, []int{3}},
		{total.Gte(20.5), `{"total":{"$gte":20.5}}`, []int{2, 3}},
		{total.Lt(20.5), `{"total":{"$lt":20.5}}`, []int{1}},
		{total.Lte(20.5), `{"total":{"$lte":20.5}}`, []int{1, 2}},
		{city.In("Bonn", "Rome"), `{"ship.city":{"$in":["Bonn","Rome"]}}`, []int{1, 3}},
		{city.In(), `{"ship.city":{"$in":[]}}`, nil},
		{city.Nin("Bonn", "Rome"), `{"ship.city":{"$nin":["Bonn","Rome"]}}`, []int{2}},
		{nick.Exists(true), `{"nick":{"$exists":true}}`, []int{1}},
		{nick.Exists(false), `{"nick":{"$exists":false}}`, []int{2, 3}},
		{nick.IsNull(), `{"nick":{"$eq":null}}`, []int{2, 3}},
		{nick.Eq("Ada"), `{"nick":"Ada"}`, []int{1}},
		{total.Type(bson.TypeDouble, bson.TypeMinKey), `{"total":{"$type":[1,-1]}}`, []int{1, 2, 3}},
		{anyone.Type(bson.TypeEmbeddedDocument), `{"any":{"$type":[3]}}`, []int{3}},
		{anyone.Eq(bson.D{{Key: "$gt", Value: ""}}), `{"any":{"$eq":{"$gt":""}}}`, []int{3}}, // no operator
		{ship.Eq(Address{"Rome", "Via 3"}), `{"ship":{"$eq":{"city":"Rome","street":"Via 3"}}}`, []int{3}},
		{field.Key(prices, "eur").Eq(3), `{"prices.eur":3}`, []int{2}},
		{field.Regex(city, "^b", "i"), ``, []int{1, 2}},
		{field.And(field.Regex(city, "^B", ""), city.Ne("Bonn")), ``, []int{2}},
		{field.Regex(tag, "^gi", ""), ``, []int{1}},
		{field.Mod(flags, 3, 0), `{"flags":{"$mod":[3,0]}}`, []int{2, 3}},
		{field.BitsAllSet(flags, 0b010), `{"flags":{"$bitsAllSet":2}}`, []int{2, 3}},
		{field.BitsAnySet(flags, 0b101), `{"flags":{"$bitsAnySet":5}}`, []int{1, 2, 3}},
		{field.BitsAllClear(flags, 0b110), `{"flags":{"$bitsAllClear":6}}`, []int{1}},
		{field.BitsAnyClear(flags, 0b110), `{"flags":{"$bitsAnyClear":6}}`, []int{1, 2}},
		{tag.Eq("gift"), `{"tags":"gift"}`, []int{1}},
		{tags.Eq([]string{"new"}), `{"tags":["new"]}`, []int{2}},
		{tag.At(1).Eq("gift"), `{"tags.1":"gift"}`, []int{1}},
		{field.Size(tags, 1), `{"tags":{"$size":1}}`, []int{2}},
		{field.All(tags, "gift", "new"), `{"tags":{"$all":["gift","new"]}}`, []int{1}},
		{field.All(tags), `{"tags":{"$all":[]}}`, nil},
		{field.And(score.Gt(90), score.Lt(60)), `{"scores":{"$gt":90,"$lt":60}}`, []int{1}}, // by two elements
		{field.ElemMatch(scores, number.Gt(80), number.Lt(83)), `{"scores":{"$elemMatch":{"$gt":80,"$lt":83}}}`, []int{2}},
		{field.ElemMatch(tags, word.Eq("gift")), `{"tags":{"$elemMatch":{"$eq":"gift"}}}`, []int{1}},
		{field.ElemMatch(lines, sku.Eq("apple"), lineQty.Gt(1)), `{"lines":{"$elemMatch":{"sku":"apple","qty":{"$gt":1}}}}`, []int{1}},
		{field.ElemMatch(lines, field.Or(lineQty.Gt(4), isPaid.Eq(true))), `{"lines":{"$elemMatch":{"$or":[{"qty":{"$gt":4}},{"paid":true}]}}}`, []int{1, 2}},
		{qty.Eq(5), `{"lines.qty":5}`, []int{1}},
		{qty.At(0).Eq(1), `{"lines.0.qty":1}`, []int{2}},
		{field.And(city.Eq("Bonn"), total.Lt(5)), `{"ship.city":"Bonn","total":{"$lt":5}}`, nil},
		{field.And(total.Gt(5), total.Lt(25)), `{"total":{"$gt":5,"$lt":25}}`, []int{1, 2}},
		{field.And(total.Gt(5), total.Gt(15)), `{"$and":[{"total":{"$gt":5}},{"total":{"$gt":15}}]}`, []int{2, 3}},
		{field.And(tag.Eq("gift"), tag.Eq("new")), `{"$and":[{"tags":"gift"},{"tags":"new"}]}`, []int{1}},
		{field.And[Order](), `{}`, []int{1, 2, 3}},
		{field.And(city.Eq("Bonn"), field.And[Order]()), `{"ship.city":"Bonn"}`, []int{1}},
		{field.Or(city.Eq("Bonn"), total.Gt(25)), `{"$or":[{"ship.city":"Bonn"},{"total":{"$gt":25}}]}`, []int{1, 3}},
		{field.And(field.Or(id.Eq(1), id.Eq(2)), field.Or(id.Eq(2), id.Eq(3))), ``, []int{2}},
		{field.Or[Order](), ``, nil},
		{field.Nor(city.Eq("Bonn"), city.Eq("Rome")), ``, []int{2}},
		{field.Nor[Order](), `{}`, []int{1, 2, 3}},
		{field.Not(total.Gt(15)), `{"$nor":[{"total":{"$gt":15}}]}`, []int{1}},
		{field.Text[Order]("gasse"), ``, []int{2}},
		{field.Expr(expr.Gt(total.Ref(), expr.Lit[Order](15.0))), `{"$expr":{"$gt":["$total",15]}}`, []int{2, 3}},
		{field.And(city.Eq("Bonn"), field.Filter[Order]{{Key: "tags", Value: "gift"}}), ``, []int{1}},
		{field.Filter[Order]{{Key: "$or", Value: bson.A{city.Eq("Bonn"), bson.D{{Key: "total", Value: 30}}}}}, ``, []int{1, 3}},
	} {
		if f.json != "" && plain(t, f.filter) != f.json {
			t.Errorf("%d: the filter is\n%s, want\n%s", i, plain(t, f.filter), f.json)
		}
		found, err := c.All(ctx, f.filter)
		if err != nil {
			t.Errorf("%d: %v: %v", i, bson.D(f.filter), err)
			continue
		}
		if got := ids(found); !slices.Equal(got, f.want) {
			t.Errorf("%d: %v finds %v, want %v", i, bson.D(f.filter), got, f.want)
		}
	}
}

// plain returns a document as JSON. Numbers have no types there.
func plain[D ~[]bson.E](t *testing.T, d D) string {
	t.Helper()
	text, err := bson.MarshalExtJSON(bson.D(d), false)
	if err != nil {
		t.Fatal(err)
	}
	return whole.ReplaceAllString(string(text), "$1")
}

var whole = regexp.MustCompile(`\.0([,}\]])`)

func ids(orders []Order) []int {
	var out []int
	for _, o := range orders {
		out = append(out, o.ID)
	}
	slices.Sort(out)
	return out
}

func TestUpdates(t *testing.T) {
	open := []bson.D{field.ArrayFilter("open", field.Or(isPaid.Eq(false), lineQty.Gt(100)))}
	high := []bson.D{field.ArrayFilter("high", number.Gte(90))}
	for i, u := range []struct {
		id      int
		change  field.Change[Order]
		filters any
		want    func(o *Order) any // what has become of the document
		is      any
	}{
		{1, field.Set(city, "Cork"), nil, func(o *Order) any { return o.Ship }, Address{"Cork", "Am Hof 1"}},
		{1, field.Unset(city, total), nil, func(o *Order) any { return []any{o.Ship.City, o.Total} }, []any{"", 0}},
		{1, field.Rename(older, newer), nil, func(o *Order) any { return o.Old + "/" + o.New }, "/x"},
		{1, field.Inc(total, 2.5), nil, func(o *Order) any { return o.Total }, 12.5},
		{1, field.Mul(flags, 3), nil, func(o *Order) any { return o.Flags }, 3},
		{1, field.Min(total, 3), nil, func(o *Order) any { return o.Total }, 3},
		{1, field.Max(total, 3), nil, func(o *Order) any { return o.Total }, 10},
		{1, field.CurrentDate(when), nil, func(o *Order) any { return o.When.Year() > 2020 }, true},
		{1, field.CurrentDate(stamp), nil, func(o *Order) any { return o.Stamp.T > 0 }, true},
		{2, field.BitAnd(flags, 0b10), nil, func(o *Order) any { return o.Flags }, 2},
		{2, field.BitOr(flags, 0b100), nil, func(o *Order) any { return o.Flags }, 7},
		{2, field.BitXor(flags, 0b110), nil, func(o *Order) any { return o.Flags }, 5},
		{1, field.Push(tags, "last"), nil, func(o *Order) any { return o.Tags }, []string{"new", "gift", "last"}},
		{1, field.Push(tags, "a", "b"), nil, func(o *Order) any { return o.Tags }, []string{"new", "gift", "a", "b"}},
		{3, field.Push(lines, Line{"fig", 2, true}), nil, func(o *Order) any { return o.Lines }, []Line{{"fig", 2, true}}},
		{1, field.PushEach(scores, []int{70, 60}, field.PushOptions[int]{Sort: field.Desc(number), Slice: new(3)}), nil,
			func(o *Order) any { return o.Scores }, []int{95, 70, 60}},
		{1, field.PushEach(lines, []Line{{"fig", 2, true}}, field.PushOptions[Line]{Sort: field.Asc(sku), Slice: new(-2)}), nil,
			func(o *Order) any { return o.Lines }, []Line{{"fig", 2, true}, {"pear", 1, true}}},
		{1, field.PushEach(tags, []string{"first"}, field.PushOptions[string]{Position: new(0)}), nil,
			func(o *Order) any { return o.Tags }, []string{"first", "new", "gift"}},
		{1, field.AddToSet(tags, "new", "x"), nil, func(o *Order) any { return o.Tags }, []string{"new", "gift", "x"}},
		{1, field.AddToSet(tags, "new"), nil, func(o *Order) any { return o.Tags }, []string{"new", "gift"}},
		{1, field.PopFirst(tags), nil, func(o *Order) any { return o.Tags }, []string{"gift"}},
		{1, field.PopLast(tags), nil, func(o *Order) any { return o.Tags }, []string{"new"}},
		{1, field.Pull(tags, word.Eq("new")), nil, func(o *Order) any { return o.Tags }, []string{"gift"}},
		{1, field.Pull(scores, number.Gt(40), number.Lt(60)), nil, func(o *Order) any { return o.Scores }, []int{95}},
		{1, field.Pull(lines, sku.Eq("apple"), lineQty.Gt(1)), nil, func(o *Order) any { return o.Lines }, []Line{{"pear", 1, true}}},
		{1, field.PullAll(scores, 50, 95), nil, func(o *Order) any { return o.Scores }, []int{}},
		{1, field.Inc(score.Each(), 1), nil, func(o *Order) any { return o.Scores }, []int{51, 96}},
		{1, field.Set(score.Filtered("high"), 90), high, func(o *Order) any { return o.Scores }, []int{50, 90}},
		{1, field.Set(paid.Filtered("open"), true), open, func(o *Order) any { return o.Lines }, []Line{{"apple", 5, true}, {"pear", 1, true}}},
		{1, field.Set(qty.At(1), 9), nil, func(o *Order) any { return o.Lines[1].Qty }, 9},
		{1, field.Set(field.Elem(lines).At(0), Line{"kiwi", 1, false}), nil, func(o *Order) any { return o.Lines[0].SKU }, "kiwi"},
		{1, field.Set(field.Key(prices, "usd"), 4), nil, func(o *Order) any { return o.Prices }, map[string]int{"usd": 4}},
		{9, field.Update(field.Set(city, "Oslo"), field.SetOnInsert(total, 1), field.Inc(version, 1)), nil,
			func(o *Order) any { return fmt.Sprint(o.Ship.City, o.Total, o.Version) }, "Oslo1 1"},
		{1, field.Update(field.Set(city, "Oslo"), field.Inc(version, 1), field.Set(total, 2)), nil,
			func(o *Order) any { return fmt.Sprint(o.Ship.City, o.Total, o.Version) }, "Oslo2 1"},
		{1, field.Update(field.Change[Order]{{Key: "$set", Value: bson.D{{Key: "total", Value: 7}}}}, field.Set(city, "Oslo")), nil,
			func(o *Order) any { return fmt.Sprint(o.Ship.City, o.Total) }, "Oslo7"},
	} {
		c, ctx := start(t)
		if _, err := c.UpdateOne(ctx, id.Eq(u.id), u.change, allium.UpdateOptions{Upsert: true, ArrayFilters: u.filters}); err != nil {
			t.Errorf("%d: %v: %v", i, bson.D(u.change), err)
			continue
		}
		o, err := c.FindOne(ctx, id.Eq(u.id))
		if err != nil {
			t.Fatal(err)
		}
		if got := u.want(&o); asJSON(got) != asJSON(u.is) {
			t.Errorf("%d: %v: %v, want %v", i, bson.D(u.change), asJSON(got), asJSON(u.is))
		}
	}
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestMatchedElement(t *testing.T) {
	c, ctx := start(t)
	if _, err := c.UpdateOne(ctx, field.And(id.Eq(1), score.Gt(90)), field.Set(score.Matched(), 0)); err != nil {
		t.Fatal(err)
	}
	o, err := c.FindOne(ctx, id.Eq(1))
	if err != nil || !slices.Equal(o.Scores, []int{50, 0}) {
		t.Errorf("scores %v, %v", o.Scores, err)
	}
	if _, err := c.UpdateOne(ctx, field.And(id.Eq(1), field.ElemMatch(lines, sku.Eq("pear"))), field.Inc(qty.Matched(), 7)); err != nil {
		t.Fatal(err)
	}
	if o, err := c.FindOne(ctx, id.Eq(1)); err != nil || o.Lines[1].Qty != 8 {
		t.Errorf("lines %v, %v", o.Lines, err)
	}
}

func TestUpdateLooksLikeByHand(t *testing.T) {
	got := field.Update(field.Set(city, "Oslo"), field.Inc(version, 1), field.Set(total, 2), field.Unset(nick))
	want := `{"$set":{"ship.city":"Oslo","total":2},"$inc":{"version":1},"$unset":{"nick":""}}`
	if plain(t, got) != want {
		t.Errorf("%v, want %s", bson.D(got), want)
	}
	first := field.Set(city, "Oslo")
	field.Update(first, field.Set(total, 2))
	if plain(t, first) != `{"$set":{"ship.city":"Oslo"}}` {
		t.Errorf("Update changed its argument: %v", bson.D(first))
	}
	f := total.Gt(5)
	field.And(f, total.Lt(6))
	if plain(t, f) != `{"total":{"$gt":5}}` {
		t.Errorf("And changed its argument: %v", bson.D(f))
	}
}

func TestSortsAndProjections(t *testing.T) {
	c, ctx := start(t)
	if _, err := c.Untyped().CreateIndex(ctx, c.Index(field.TextIndex(street), allium.IndexModel{})); err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		keys field.Keys[Order]
		json string
		want []int
	}{
		{field.Asc(city), `{"ship.city":1}`, []int{2, 1, 3}},
		{field.Desc(total), `{"total":-1}`, []int{3, 2, 1}},
		{field.By(field.Desc(nick), field.Asc(city, id)), `{"nick":-1,"ship.city":1,"_id":1}`, []int{1, 2, 3}},
	} {
		if plain(t, k.keys) != k.json {
			t.Errorf("%v, want %s", bson.D(k.keys), k.json)
		}
		var got []int
		for o, err := range c.Query(ctx, field.And[Order](), typed.FindOptions[Order]{Sort: k.keys}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, o.ID)
		}
		if !slices.Equal(got, k.want) {
			t.Errorf("%v: %v, want %v", bson.D(k.keys), got, k.want)
		}
	}
	found, err := c.All(ctx, field.Text[Order]("hof via"), typed.FindOptions[Order]{Sort: field.Score(textual), Projection: field.Meta(textual, "textScore")})
	if err != nil || len(found) != 2 || found[0].Score == 0 {
		t.Errorf("scores: %v, %v", found, err)
	}
	for _, p := range []struct {
		projection field.Projection[Order]
		want       string
	}{
		{field.Include(city, total), `{"_id":1,"ship":{"city":"Bonn"},"total":10}`},
		{field.Project(field.Include(city), field.Exclude(id)), `{"ship":{"city":"Bonn"}}`},
		{field.Project(field.Exclude(ship, total, flags, lines, nick, older), field.Slice(tags, 1), field.SliceFrom(scores, 1, 1)), `{"_id":1,"tags":["new"],"scores":[95]}`},
		{field.FirstMatch(lines, sku.Eq("pear")), `{"_id":1,"lines":[{"sku":"pear","qty":1,"paid":true}]}`},
		{field.FirstMatch(scores, number.Gt(60)), `{"_id":1,"scores":[95]}`},
	} {
		d, err := allium.As[bson.D](c.Untyped()).FindOne(ctx, id.Eq(1), allium.FindOneOptions{Projection: p.projection})
		if err != nil {
			t.Errorf("%v: %v", bson.D(p.projection), err)
		} else if plain(t, d) != p.want {
			t.Errorf("%v: %s, want %s", bson.D(p.projection), plain(t, d), p.want)
		}
	}
	if k := field.By(field.HashedIndex(city), field.SphereIndex(ship)); plain(t, k) != `{"ship.city":"hashed","ship":"2dsphere"}` {
		t.Errorf("%v", bson.D(k))
	}
}

type City struct {
	Name   string    `bson:"_id"`
	Sum    float64   `bson:"sum"`
	N      int       `bson:"n"`
	Avg    float64   `bson:"avg"`
	Low    float64   `bson:"low"`
	High   float64   `bson:"high"`
	First  int       `bson:"first"`
	Last   int       `bson:"last"`
	IDs    []int     `bson:"ids"`
	Flags  []int32   `bson:"flags"`
	Orders []Order   `bson:"orders"`
	Small  []Counted `bson:"small"`
}

type Counted struct{ N int }

type Sold struct {
	ID    int `bson:"_id"`
	Lines Line
	Twice int `bson:"twice"`
}

type Report struct {
	All  []Counted `bson:"all"`
	Tops []Order   `bson:"tops"`
}

var (
	cityName   = field.Of(func(c *City) *string { return &c.Name })
	citySum    = field.Of(func(c *City) *float64 { return &c.Sum })
	cityN      = field.Of(func(c *City) *int { return &c.N })
	cityAvg    = field.Of(func(c *City) *float64 { return &c.Avg })
	cityLow    = field.Of(func(c *City) *float64 { return &c.Low })
	cityHigh   = field.Of(func(c *City) *float64 { return &c.High })
	cityFirst  = field.Of(func(c *City) *int { return &c.First })
	cityLast   = field.Of(func(c *City) *int { return &c.Last })
	cityIDs    = field.Of(func(c *City) *[]int { return &c.IDs })
	cityFlags  = field.Of(func(c *City) *[]int32 { return &c.Flags })
	cityOrders = field.Of(func(c *City) *[]Order { return &c.Orders })
	citySmall  = field.Of(func(c *City) *[]Counted { return &c.Small })
	countedN   = field.Of(func(c *Counted) *int { return &c.N })
	sold       = field.Of(func(s *Sold) *Line { return &s.Lines })
	soldQty    = field.Of(func(s *Sold) *int { return &s.Lines.Qty })
	soldTwice  = field.Of(func(s *Sold) *int { return &s.Twice })
	soldSKU    = field.Of(func(s *Sold) *string { return &s.Lines.SKU })
	reportAll  = field.Of(func(r *Report) *[]Counted { return &r.All })
	reportTops = field.Of(func(r *Report) *[]Order { return &r.Tops })
)

func aggregate[Out any](t *testing.T, p stage.Pipeline[Order, Out]) string {
	t.Helper()
	c, ctx := start(t)
	cur, err := allium.Aggregate[bson.Raw](ctx, c.Untyped(), p)
	if err != nil {
		t.Errorf("%v: %v", p, err)
		return ""
	}
	out, err := cur.All(ctx)
	if err != nil {
		t.Errorf("%v: %v", p, err)
	}
	return whole.ReplaceAllString(fmt.Sprint(out), "$1")
}

func TestStages(t *testing.T) {
	byID := stage.Sort(field.Asc(id))
	onlyID := stage.Select(field.Include(id))
	for i, c := range []struct{ got, want string }{
		{aggregate(t, stage.Chain(stage.Match(total.Gt(15)), stage.Sort(field.Desc(total)), onlyID)), `[{"_id":3} {"_id":2}]`},
		{aggregate(t, stage.Chain(byID, stage.Skip[Order](1), stage.Limit[Order](1), onlyID)), `[{"_id":2}]`},
		{aggregate(t, stage.Then(stage.Sample[Order](2), stage.Count[Order](countedN))), `[{"n":2}]`},
		{aggregate(t, stage.Chain(stage.Match(id.Eq(2)), stage.Unset(ship, tags, scores, lines, prices, when, flags))), `[{"_id":2,"total":20.5}]`},
		{aggregate(t, stage.Then(stage.Chain(byID), stage.Then(stage.Group(cityName, city.Ref(),
			stage.Sum(citySum, total.Ref()), stage.Members[Order](cityN), stage.Avg(cityAvg, total.Ref()), stage.Min(cityLow, total.Ref()),
			stage.Max(cityHigh, total.Ref()), stage.First(cityFirst, id.Ref()), stage.Last(cityLast, id.Ref()), stage.Push(cityIDs, id.Ref()),
			stage.AddToSet(cityFlags, flags.Ref())),
			stage.Match(cityName.Eq("Bonn"))))),
			`[{"_id":"Bonn","sum":10,"n":1,"avg":10,"low":10,"high":10,"first":1,"last":1,"ids":[1],"flags":[1]}]`},
		{aggregate(t, stage.GroupAll(stage.Members[Order](cityN))), `[{"_id":null,"n":3}]`},
		{aggregate(t, stage.Then(stage.Then(byID, stage.Unwind(lines, sold, stage.UnwindOptions{})),
			stage.Then(stage.Match(soldQty.Gt(1)), stage.Project(stage.To(soldTwice, expr.Multiply(soldQty.Ref(), expr.Lit[Sold](2))))))),
			`[{"_id":1,"twice":10}]`},
		{aggregate(t, stage.Then(stage.Chain(stage.Match(id.Eq(3)), stage.Select(field.Include(lines))),
			stage.Unwind(lines, sold, stage.UnwindOptions{KeepEmpty: true, IndexField: "i"}))), `[{"_id":3,"i":null}]`},
		{aggregate(t, stage.Then(stage.Chain(stage.Match(id.Eq(1)), stage.Select(field.Include(older))),
			stage.AddFields(stage.To(newer, expr.ToUpper(older.Ref()))))), `[{"_id":1,"old":"x","new":"X"}]`},
		{aggregate(t, stage.Then(stage.Match(id.Eq(1)), stage.ReplaceRoot(ship.Ref()))), `[{"city":"Bonn","street":"Am Hof 1"}]`},
		{aggregate(t, stage.Then(stage.Match(city.Eq("Bonn")), stage.SortByCount(city.Ref()))), `[{"_id":"Bonn","count":1}]`},
		{aggregate(t, stage.Then(stage.Then(stage.Group[Order, City](cityName, city.Ref()), stage.Match(cityName.Eq("Rome"))),
			stage.Then(stage.Lookup("orders", cityName, city, cityOrders), stage.Project(stage.To(cityN, expr.As[int](expr.Size(cityOrders.Ref()))))))),
			`[{"_id":"Rome","n":1}]`},
		{aggregate(t, stage.Then(stage.Then(stage.Group[Order, City](cityName, city.Ref()), stage.Match(cityName.Eq("Rome"))),
			stage.LookupThrough("orders", cityName, city, stage.Count[Order](countedN), citySmall))), `[{"_id":"Rome","small":[{"n":1}]}]`},
		{aggregate(t, stage.Facet(stage.FacetOf(reportAll, stage.Count[Order](countedN)),
			stage.FacetOf(reportTops, stage.Chain(stage.Sort(field.Desc(total)), stage.Limit[Order](1), onlyID)))), `[{"all":[{"n":3}],"tops":[{"_id":3}]}]`},
		{aggregate(t, stage.Then(stage.Chain(onlyID, stage.UnionWith("orders", onlyID)), stage.Count[Order](countedN))), `[{"n":6}]`},
		{aggregate(t, stage.Raw[Order, Counted](bson.D{{Key: "$count", Value: "n"}})), `[{"n":3}]`},
		{aggregate(t, stage.Chain(onlyID, stage.Out[Order]("app", "copy"))), `[]`},
		{aggregate(t, stage.Chain(onlyID, stage.Merge[Order]("app", "copy", stage.MergeOptions{On: []string{"_id"}, WhenMatched: stage.WhenMatchedReplace, WhenNotMatched: stage.WhenNotMatchedDiscard}))), `[]`},
	} {
		if c.got != c.want {
			t.Errorf("%d: %s, want %s", i, c.got, c.want)
		}
	}
}
