package advisor_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/debug/advisor"
	"allium/mongotest"
)

func ExampleOpen() {
	ctx := context.Background()
	d, err := mongotest.Open() // a program has a deployment of its own
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, a, err := advisor.Open(d.URI(), advisor.Options{
		Exempt: map[string][]advisor.Rule{"settings": {advisor.RuleIndex}}, // small, and read as a whole
		Report: func(f advisor.Finding) { fmt.Println(f.Rule, f.Namespace, f.Shape) },
	}, allium.ClientOptions{Timeout: new(time.Minute)})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close(ctx)
	defer client.Close(ctx)
	orders := client.Database("shop").Collection("orders")
	orders.InsertMany(ctx, []bson.M{{"city": "Bonn"}, {"city": "Rome"}})
	orders.FindOne(ctx, bson.M{"city": "Rome"})
	// Output: index shop.orders {city: ?}
}

func ExampleAdvisor_Findings() {
	ctx := context.Background()
	d, err := mongotest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	client, a, err := advisor.Open(d.URI(), advisor.Options{Report: func(advisor.Finding) {}})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close(ctx)
	defer client.Close(ctx)
	for range 3 {
		client.Database("shop").Collection("orders").InsertOne(ctx, bson.M{"city": "Bonn"}) // no deadline
	}
	for _, f := range a.Findings() {
		fmt.Println(filepath.Base(f.File), f.Rule, f.Count)
	}

	// The same for a browser.
	internal := http.NewServeMux() // one where only operators come
	internal.Handle("/debug/advisor", a)
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest("GET", "/debug/advisor", nil))
	fmt.Println(strings.Contains(w.Body.String(), "shop.orders"))
	// Output:
	// example_test.go deadline 3
	// true
}

// printer stands for the *testing.T of a test.
type printer struct{ ends []func() }

func (p *printer) Helper()          {}
func (p *printer) Cleanup(f func()) { p.ends = append(p.ends, f) }
func (p *printer) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Println("test fails:", text[strings.Index(text, "example_test.go"):])
}
func (p *printer) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

func ExampleStrict() {
	d, err := mongotest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer d.Stop()
	t := &printer{} // in a test, the *testing.T
	client := advisor.Strict(t, d.URI(), advisor.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	orders := client.Database("shop").Collection("orders")
	orders.InsertMany(ctx, []bson.M{{"city": "Bonn"}, {"city": "Rome"}})
	orders.All(ctx, bson.M{}, allium.FindOptions{Sort: bson.D{{Key: "city", Value: 1}}})
	for _, end := range t.ends {
		end()
	}
	// Output: test fails: example_test.go:95: sort: find shop.orders {}: the server sorts in memory: create an index that ends with the fields of the sort, or exempt the collection
}
