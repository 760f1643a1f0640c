package field_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"allium"
	"allium/bson"
	"allium/field"
	"allium/field/expr"
	"allium/mongotest"
)

type Place struct{ City, Country string }

type Item struct {
	Name  string
	Price float64
}

type Purchase struct {
	ID      bson.ObjectID `bson:"_id,omitempty"`
	Ship    Place
	Coupon  *string `bson:",omitempty"`
	Total   float64
	Paid    bool
	Points  int64
	Labels  []string
	Ratings []int
	Items   []Item
	Rates   map[string]float64
	Extra   any
	Created time.Time
	Note    string
	Remark  string
	Score   float64
}

// The paths stand in variables of the package: a mistake ends the program when it starts.
var (
	purchaseID = field.Of(func(p *Purchase) *bson.ObjectID { return &p.ID })
	shipTo     = field.Of(func(p *Purchase) *Place { return &p.Ship })
	shipCity   = field.Of(func(p *Purchase) *string { return &p.Ship.City })
	coupon     = field.Of(func(p *Purchase) *string { return p.Coupon })
	sum        = field.Of(func(p *Purchase) *float64 { return &p.Total })
	settled    = field.Of(func(p *Purchase) *bool { return &p.Paid })
	points     = field.Of(func(p *Purchase) *int64 { return &p.Points })
	labels     = field.Of(func(p *Purchase) *[]string { return &p.Labels })
	ratings    = field.Of(func(p *Purchase) *[]int { return &p.Ratings })
	items      = field.Of(func(p *Purchase) *[]Item { return &p.Items })
	itemPrice  = field.Of(func(p *Purchase) *float64 { return &p.Items[0].Price })
	rates      = field.Of(func(p *Purchase) *map[string]float64 { return &p.Rates })
	extra      = field.Of(func(p *Purchase) *any { return &p.Extra })
	created    = field.Of(func(p *Purchase) *time.Time { return &p.Created })
	note       = field.Of(func(p *Purchase) *string { return &p.Note })
	remark     = field.Of(func(p *Purchase) *string { return &p.Remark })
	relevance  = field.Of(func(p *Purchase) *float64 { return &p.Score })

	name = field.Of(func(i *Item) *string { return &i.Name })
	cost = field.Of(func(i *Item) *float64 { return &i.Price })
)

// Filters and updates with paths: what is wrong does not compile.
func Example() {
	d, err := mongotest.Open(mongotest.ReplicaSet(1))
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, err := allium.Open(d.URI())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)
	purchases := allium.CollectionOf[Purchase](client.Database("shop"), "purchases")

	if _, err := purchases.InsertMany(ctx, []Purchase{
		{Ship: Place{City: "Bonn"}, Total: 120, Labels: []string{"gift"}},
		{Ship: Place{City: "Bonn"}, Total: 80},
		{Ship: Place{City: "Rome"}, Total: 200},
	}); err != nil {
		log.Fatal(err)
	}
	dear := field.And(shipCity.Eq("Bonn"), sum.Gt(100))
	res, err := purchases.UpdateMany(ctx, dear, field.Update(field.Set(settled, true), field.Inc(points, 12), field.Push(labels, "thanks")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.ModifiedCount, "changed")
	noted := append(bson.D(dear), bson.E{Key: "$comment", Value: "by hand"})
	fmt.Println(noted)
	for p, err := range purchases.Query(ctx, field.Or(settled.Eq(true), shipCity.Eq("Rome")), allium.FindOptions{Sort: field.Desc(sum)}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.Ship.City, p.Total, p.Labels, p.Points)
	}
	// Output:
	// 1 changed
	// {"ship.city":"Bonn","total":{"$gt":100.0},"$comment":"by hand"}
	// Rome 200 [] 0
	// Bonn 120 [gift thanks] 12
}

// Of finds the path by where the function leads.
func ExampleOf() {
	fmt.Println(field.Of(func(p *Purchase) *string { return &p.Ship.City }))
	fmt.Println(field.Of(func(p *Purchase) *string { return p.Coupon }))
	fmt.Println(field.Of(func(p *Purchase) *float64 { return &p.Items[0].Price }))
	// Output:
	// ship.city
	// coupon
	// items.price
}

// Paths into arrays and maps, and paths that are made of others.
func ExamplePath() {
	fmt.Println(itemPrice.At(2))
	fmt.Println(itemPrice.Matched())
	fmt.Println(itemPrice.Each())
	fmt.Println(itemPrice.Filtered("dear"))
	fmt.Println(field.Elem(labels).At(0))
	fmt.Println(field.Key(rates, "usd"))
	fmt.Println(field.Join(field.Elem(items), name))
	fmt.Println(field.As[int](extra).Eq(3))
	// Output:
	// items.2.price
	// items.$.price
	// items.$[].price
	// items.$[dear].price
	// labels.0
	// rates.usd
	// items.name
	// [{extra 3}]
}

// Conditions on one field.
func ExamplePath_Eq() {
	for _, f := range []field.Filter[Purchase]{
		shipCity.Eq("Bonn"), shipCity.Ne("Bonn"),
		sum.Gt(1.5), sum.Gte(1.5), sum.Lt(1.5), sum.Lte(1.5),
		shipCity.In("Bonn", "Rome"), shipCity.Nin("Bonn", "Rome"),
		coupon.Exists(true), coupon.IsNull(), extra.Type(bson.TypeString),
		field.Regex(shipCity, "^B", "i"), field.Mod(points, 10, 0),
		field.BitsAllSet(points, 5), field.BitsAnySet(points, 5), field.BitsAllClear(points, 5), field.BitsAnyClear(points, 5),
	} {
		fmt.Println(bson.D(f))
	}
	// Output:
	// {"ship.city":"Bonn"}
	// {"ship.city":{"$ne":"Bonn"}}
	// {"total":{"$gt":1.5}}
	// {"total":{"$gte":1.5}}
	// {"total":{"$lt":1.5}}
	// {"total":{"$lte":1.5}}
	// {"ship.city":{"$in":["Bonn","Rome"]}}
	// {"ship.city":{"$nin":["Bonn","Rome"]}}
	// {"coupon":{"$exists":true}}
	// {"coupon":{"$eq":null}}
	// {"extra":{"$type":[2]}}
	// {"ship.city":{"$regex":{"$regularExpression":{"pattern":"^B","options":"i"}}}}
	// {"points":{"$mod":[10,0]}}
	// {"points":{"$bitsAllSet":5}}
	// {"points":{"$bitsAnySet":5}}
	// {"points":{"$bitsAllClear":5}}
	// {"points":{"$bitsAnyClear":5}}
}

// Conditions on arrays: on any element, or on one that meets several at once.
func ExampleElemMatch() {
	stars := field.Self[int]() // an element of ratings
	between := field.ElemMatch(ratings, stars.Gte(3), stars.Lt(5))
	cheap := field.ElemMatch(items, name.Eq("pear"), cost.Lt(2.5))
	for _, f := range []field.Filter[Purchase]{
		field.Elem(labels).Eq("gift"),
		field.Size(labels, 2),
		field.All(labels, "gift", "new"),
		cheap, between,
	} {
		fmt.Println(bson.D(f))
	}
	// Output:
	// {"labels":"gift"}
	// {"labels":{"$size":2}}
	// {"labels":{"$all":["gift","new"]}}
	// {"items":{"$elemMatch":{"name":"pear","price":{"$lt":2.5}}}}
	// {"ratings":{"$elemMatch":{"$gte":3,"$lt":5}}}
}

// Conditions join to one document, and mix with what is written by hand.
func ExampleAnd() {
	byHand := field.Filter[Purchase]{{Key: "$comment", Value: "by hand"}}
	shoes := field.And(field.Text[Purchase]("red shoes"), byHand)
	for _, f := range []field.Filter[Purchase]{
		field.And(shipCity.Eq("Bonn"), points.Gte(5), points.Lt(9)),
		field.Or(shipCity.Eq("Bonn"), points.Gte(5)),
		field.Nor(shipCity.Eq("Bonn"), points.Gte(5)),
		field.Not(shipCity.Eq("Bonn")),
		shoes,
		field.Expr(expr.Gt(points.Ref(), expr.Lit[Purchase](int64(5)))),
		field.Expr(expr.Gt(expr.Sum(field.Refs(itemPrice)), sum.Ref())),
	} {
		fmt.Println(bson.D(f))
	}
	// Output:
	// {"ship.city":"Bonn","points":{"$gte":5,"$lt":9}}
	// {"$or":[{"ship.city":"Bonn"},{"points":{"$gte":5}}]}
	// {"$nor":[{"ship.city":"Bonn"},{"points":{"$gte":5}}]}
	// {"$nor":[{"ship.city":"Bonn"}]}
	// {"$text":{"$search":"red shoes"},"$comment":"by hand"}
	// {"$expr":{"$gt":["$points",5]}}
	// {"$expr":{"$gt":[{"$sum":"$items.price"},"$total"]}}
}

// Changes, and how they join.
func ExampleUpdate() {
	for _, c := range []field.Change[Purchase]{
		field.Update(field.Set(shipCity, "Bonn"), field.Set(settled, true), field.SetOnInsert(points, 1)),
		field.Update(field.Inc(points, 2), field.Unset(coupon, note)),
		field.Mul(points, 2), field.Min(points, 3), field.Max(points, 4),
		field.BitAnd(points, 1), field.BitOr(points, 2), field.BitXor(points, 3),
		field.CurrentDate(created), field.Rename(note, remark),
	} {
		fmt.Println(bson.D(c))
	}
	// Output:
	// {"$set":{"ship.city":"Bonn","paid":true},"$setOnInsert":{"points":1}}
	// {"$inc":{"points":2},"$unset":{"coupon":"","note":""}}
	// {"$mul":{"points":2}}
	// {"$min":{"points":3}}
	// {"$max":{"points":4}}
	// {"$bit":{"points":{"and":1}}}
	// {"$bit":{"points":{"or":2}}}
	// {"$bit":{"points":{"xor":3}}}
	// {"$currentDate":{"created":{"$type":"date"}}}
	// {"$rename":{"note":"remark"}}
}

// Changes of arrays.
func ExamplePush() {
	label, stars := field.Self[string](), field.Self[int]() // elements of labels and ratings
	for _, c := range []field.Change[Purchase]{
		field.Push(labels, "gift"),
		field.Push(labels, "gift", "new"),
		field.PushEach(ratings, []int{4, 5}, field.PushOptions[int]{Position: new(0), Sort: field.Desc(stars), Slice: new(3)}),
		field.AddToSet(labels, "gift"),
		field.PopFirst(labels), field.PopLast(labels),
		field.Pull(labels, label.In("gift", "new")),
		field.Pull(items, name.Eq("pear")),
		field.PullAll(ratings, 1, 2),
	} {
		fmt.Println(bson.D(c))
	}
	// Output:
	// {"$push":{"labels":"gift"}}
	// {"$push":{"labels":{"$each":["gift","new"]}}}
	// {"$push":{"ratings":{"$each":[4,5],"$position":0,"$sort":-1,"$slice":3}}}
	// {"$addToSet":{"labels":"gift"}}
	// {"$pop":{"labels":-1}}
	// {"$pop":{"labels":1}}
	// {"$pull":{"labels":{"$in":["gift","new"]}}}
	// {"$pull":{"items":{"name":"pear"}}}
	// {"$pullAll":{"ratings":[1,2]}}
}

// The elements that a filter of their own selects.
func ExampleArrayFilter() {
	change := field.Mul(itemPrice.Filtered("dear"), 0.5)
	options := allium.UpdateOptions{ArrayFilters: []bson.D{field.ArrayFilter("dear", cost.Gt(99.5), name.Ne("pear"))}}
	fmt.Println(bson.D(change), options.ArrayFilters)
	// Output: {"$mul":{"items.$[dear].price":0.5}} [{"dear.price":{"$gt":99.5},"dear.name":{"$ne":"pear"}}]
}

// Orders are for sorts and for indexes.
func ExampleBy() {
	for _, k := range []field.Keys[Purchase]{
		field.By(field.Asc(shipCity), field.Desc(created, purchaseID)),
		field.Score(relevance),
		field.TextIndex(note, remark),
		field.HashedIndex(shipCity),
		field.SphereIndex(shipTo),
	} {
		fmt.Println(bson.D(k))
	}
	// Output:
	// {"ship.city":1,"created":-1,"_id":-1}
	// {"score":{"$meta":"textScore"}}
	// {"note":"text","remark":"text"}
	// {"ship.city":"hashed"}
	// {"ship":"2dsphere"}
}

// What a find returns.
func ExampleProject() {
	for _, p := range []field.Projection[Purchase]{
		field.Project(field.Include(shipCity, sum), field.Exclude(purchaseID)),
		field.Slice(labels, 2), field.SliceFrom(labels, 1, 2),
		field.FirstMatch(items, name.Eq("pear")),
		field.Meta(relevance, "textScore"),
	} {
		fmt.Println(bson.D(p))
	}
	// Output:
	// {"ship.city":1,"total":1,"_id":0}
	// {"labels":{"$slice":2}}
	// {"labels":{"$slice":[1,2]}}
	// {"items":{"$elemMatch":{"name":"pear"}}}
	// {"score":{"$meta":"textScore"}}
}
