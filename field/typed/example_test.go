package typed_test

import (
	"context"
	"fmt"
	"log"

	"allium"
	"allium/field"
	"allium/field/stage"
	"allium/field/typed"
	"allium/mongotest"
)

type Order struct {
	ID    int `bson:"_id"`
	City  string
	Total float64
	Rev   int
}

type City struct {
	Name string `bson:"_id"`
	Sum  float64
}

var (
	id       = field.Of(func(o *Order) *int { return &o.ID })
	city     = field.Of(func(o *Order) *string { return &o.City })
	total    = field.Of(func(o *Order) *float64 { return &o.Total })
	revision = field.Of(func(o *Order) *int { return &o.Rev })
	cityName = field.Of(func(c *City) *string { return &c.Name })
	citySum  = field.Of(func(c *City) *float64 { return &c.Sum })
)

// A filter for documents of another type does not compile here.
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
	check := func(_ any, err error) {
		if err != nil {
			log.Fatal(err)
		}
	}

	orders := typed.Of(allium.CollectionOf[Order](client.Database("app"), "orders"))
	check(orders.Untyped().CreateIndex(ctx, orders.Index(field.Asc(city, total), allium.IndexModel{Name: "city"})))
	check(orders.InsertOne(ctx, Order{ID: 1, City: "Bonn", Total: 10}))
	check(orders.Untyped().BulkWrite(ctx, []allium.WriteModel{
		orders.UpdateOneModel(id.Eq(2), field.Update(field.Set(city, "Bonn"), field.Inc(total, 20)), allium.UpdateModelOptions{Upsert: true}),
		orders.ReplaceOneModel(id.Eq(3), Order{ID: 3, City: "Rome", Total: 30}, allium.ReplaceModelOptions{Upsert: true}),
		orders.UpdateManyModel(total.Gt(15), field.Inc(total, 1)),
		orders.DeleteOneModel(id.Eq(7)),
		orders.DeleteManyModel(city.Eq("Oslo")),
	}))
	check(orders.UpdateOne(ctx, id.Eq(1), field.Inc(total, 1)))
	check(orders.UpdateMany(ctx, city.Eq("Bonn"), field.Mul(total, 2)))
	check(orders.ReplaceOne(ctx, id.Eq(3), Order{ID: 3, City: "Rome", Total: 5}))

	found, err := orders.All(ctx, city.In("Bonn", "Rome"), typed.FindOptions[Order]{Sort: field.Desc(total), FindOptions: allium.FindOptions{Limit: 2}})
	fmt.Println(found, err)
	one, err := orders.FindOne(ctx, total.Gt(5), typed.FindOneOptions[Order]{Sort: field.Asc(total), Projection: field.Include(total)})
	fmt.Println(one, err)
	for o, err := range orders.Query(ctx, city.Eq("Rome")) {
		fmt.Println(o, err)
	}
	cur, err := orders.Find(ctx, city.Eq("Rome"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cur.All(ctx))
	fmt.Println(orders.CountDocuments(ctx, total.Gt(20)))
	fmt.Println(typed.Distinct(ctx, orders, city, field.And[Order]()))

	sums, err := typed.Aggregate(ctx, orders, stage.Then(
		stage.Group(cityName, city.Ref(), stage.Sum(citySum, total.Ref())),
		stage.Sort(field.Desc(citySum)),
	))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sums.All(ctx))

	fmt.Println(orders.FindOneAndUpdate(ctx, id.Eq(1), field.Set(city, "Bern")))
	fmt.Println(orders.FindOneAndReplace(ctx, id.Eq(1), Order{ID: 1, City: "Cork", Total: 1}))
	fmt.Println(orders.FindOneAndDelete(ctx, id.Eq(1)))
	rome, err := orders.FindOne(ctx, id.Eq(3))
	edited := rome
	edited.Total = 7
	fmt.Println(typed.Save(ctx, orders, revision, rome, &edited), edited, err)
	check(orders.DeleteOne(ctx, id.Eq(2)))
	check(orders.DeleteMany(ctx, field.And[Order]()))
	// Output:
	// [{2 Bonn 42 0} {1 Bonn 22 0}] <nil>
	// {1  22 0} <nil>
	// {3 Rome 5 0} <nil>
	// [{3 Rome 5 0}] <nil>
	// 2 <nil>
	// [Bonn Rome] <nil>
	// [{Bonn 64} {Rome 5}] <nil>
	// {1 Bonn 22 0} <nil>
	// {1 Bern 22 0} <nil>
	// {1 Cork 1 0} <nil>
	// <nil> {3 Rome 7 1} <nil>
}
