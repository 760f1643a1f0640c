package stage_test

import (
	"fmt"

	"allium/bson"
	"allium/field"
	"allium/field/expr"
	"allium/field/stage"
)

type Order struct {
	ID      int `bson:"_id"`
	City    string
	Buyer   int
	Total   float64
	Lines   []Line
	Comment string
}

type Line struct {
	SKU string `bson:"sku"`
	Qty int    `bson:"qty"`
}

type Buyer struct {
	ID   int `bson:"_id"`
	Name string
}

// What the pipelines make.
type (
	City struct {
		Name  string `bson:"_id"`
		Sum   float64
		Mean  float64
		Least float64
		Most  float64
		First int
		Last  int
		N     int
		IDs   []int    `bson:"ids"`
		Notes []string `bson:"notes"`
	}
	OrderLine struct {
		ID    int  `bson:"_id"`
		Lines Line `bson:"lines"`
		Twice int
	}
	WithBuyer struct {
		ID     int `bson:"_id"`
		Buyers []Buyer
	}
	Number struct{ N int }
	Report struct {
		Count []Number
		Best  []Order
	}
)

var (
	id      = field.Of(func(o *Order) *int { return &o.ID })
	city    = field.Of(func(o *Order) *string { return &o.City })
	buyer   = field.Of(func(o *Order) *int { return &o.Buyer })
	total   = field.Of(func(o *Order) *float64 { return &o.Total })
	lines   = field.Of(func(o *Order) *[]Line { return &o.Lines })
	comment = field.Of(func(o *Order) *string { return &o.Comment })
	buyerID = field.Of(func(b *Buyer) *int { return &b.ID })
	byName  = field.Of(func(b *Buyer) *string { return &b.Name })

	cityName  = field.Of(func(c *City) *string { return &c.Name })
	citySum   = field.Of(func(c *City) *float64 { return &c.Sum })
	cityMean  = field.Of(func(c *City) *float64 { return &c.Mean })
	cityLeast = field.Of(func(c *City) *float64 { return &c.Least })
	cityMost  = field.Of(func(c *City) *float64 { return &c.Most })
	cityFirst = field.Of(func(c *City) *int { return &c.First })
	cityLast  = field.Of(func(c *City) *int { return &c.Last })
	cityN     = field.Of(func(c *City) *int { return &c.N })
	cityIDs   = field.Of(func(c *City) *[]int { return &c.IDs })
	cityNotes = field.Of(func(c *City) *[]string { return &c.Notes })

	line    = field.Of(func(l *OrderLine) *Line { return &l.Lines })
	qty     = field.Of(func(l *OrderLine) *int { return &l.Lines.Qty })
	twice   = field.Of(func(l *OrderLine) *int { return &l.Twice })
	buyers  = field.Of(func(w *WithBuyer) *[]Buyer { return &w.Buyers })
	number  = field.Of(func(n *Number) *int { return &n.N })
	counted = field.Of(func(r *Report) *[]Number { return &r.Count })
	best    = field.Of(func(r *Report) *[]Order { return &r.Best })
)

func show(stages []bson.D) {
	for _, s := range stages {
		fmt.Println(s)
	}
}

// Orders become cities: what comes behind Group is about these.
func Example() {
	perCity := stage.Group(cityName, city.Ref(), stage.Sum(citySum, total.Ref()), stage.Members[Order](cityN))
	show(stage.Then(
		stage.Match(total.Gt(10.5)),
		stage.Then(
			perCity,
			stage.Chain(stage.Match(citySum.Gt(100.5)), stage.Sort(field.Desc(citySum)), stage.Skip[City](5), stage.Limit[City](5)),
		),
	))
	// Output:
	// {"$match":{"total":{"$gt":10.5}}}
	// {"$group":{"_id":"$city","sum":{"$sum":"$total"},"n":{"$sum":1}}}
	// {"$match":{"sum":{"$gt":100.5}}}
	// {"$sort":{"sum":-1}}
	// {"$skip":5}
	// {"$limit":5}
}

// The accumulators of a group.
func ExampleGroup() {
	show(stage.GroupAll(
		stage.Avg(cityMean, total.Ref()), stage.Min(cityLeast, total.Ref()), stage.Max(cityMost, total.Ref()),
		stage.First(cityFirst, id.Ref()), stage.Last(cityLast, id.Ref()), stage.Push(cityIDs, id.Ref()), stage.AddToSet(cityNotes, comment.Ref()),
	))
	show(stage.SortByCount(city.Ref()))
	// Output:
	// {"$group":{"_id":null,"mean":{"$avg":"$total"},"least":{"$min":"$total"},"most":{"$max":"$total"},"first":{"$first":"$_id"},"last":{"$last":"$_id"},"ids":{"$push":"$_id"},"notes":{"$addToSet":"$comment"}}}
	// {"$sortByCount":"$city"}
}

// Documents of another shape.
func ExampleUnwind() {
	show(stage.Then(stage.Unwind(lines, line, stage.UnwindOptions{KeepEmpty: true}),
		stage.Project(stage.To(twice, expr.Multiply(qty.Ref(), expr.Lit[OrderLine](2))))))
	show(stage.AddFields(stage.To(comment, expr.ToUpper(city.Ref()))))
	show(stage.ReplaceRoot(expr.First(lines.Ref())))
	show(stage.Chain(stage.Select(field.Include(city)), stage.Unset(comment), stage.Sample[Order](3)))
	// Output:
	// {"$unwind":{"path":"$lines","preserveNullAndEmptyArrays":true}}
	// {"$project":{"twice":{"$multiply":["$lines.qty",2]}}}
	// {"$addFields":{"comment":{"$toUpper":"$city"}}}
	// {"$replaceRoot":{"newRoot":{"$arrayElemAt":["$lines",0]}}}
	// {"$project":{"city":1}}
	// {"$unset":["comment"]}
	// {"$sample":{"size":3}}
}

// Several collections, and several pipelines.
func ExampleLookup() {
	show(stage.Lookup("buyers", buyer, buyerID, buyers))
	show(stage.LookupThrough("buyers", buyer, buyerID, stage.Match(byName.Eq("Ada")), buyers))
	show(stage.UnionWith("archive", stage.Match(total.Gt(0.5))))
	show(stage.Facet(
		stage.FacetOf(counted, stage.Count[Order](number)),
		stage.FacetOf(best, stage.Chain(stage.Sort(field.Desc(total)), stage.Limit[Order](1))),
	))
	show(stage.Out[Order]("app", "copy"))
	show(stage.Merge[Order]("app", "copy", stage.MergeOptions{WhenMatched: stage.WhenMatchedReplace}))
	show(stage.Raw[Order, Number](bson.D{{Key: "$count", Value: "n"}}))
	// Output:
	// {"$lookup":{"from":"buyers","localField":"buyer","foreignField":"_id","as":"buyers"}}
	// {"$lookup":{"from":"buyers","localField":"buyer","foreignField":"_id","pipeline":[{"$match":{"name":"Ada"}}],"as":"buyers"}}
	// {"$unionWith":{"coll":"archive","pipeline":[{"$match":{"total":{"$gt":0.5}}}]}}
	// {"$facet":{"count":[{"$count":"n"}],"best":[{"$sort":{"total":-1}},{"$limit":1}]}}
	// {"$out":{"db":"app","coll":"copy"}}
	// {"$merge":{"into":{"db":"app","coll":"copy"},"whenMatched":"replace"}}
	// {"$count":"n"}
}
