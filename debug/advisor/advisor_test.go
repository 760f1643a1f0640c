package advisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/debug/advisor"
	"allium/mongotest"
)

// recording is a test that only notes how it fails.
type recording struct {
	failures []string
	cleanups []func()
}

func (r *recording) Helper()          {}
func (r *recording) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recording) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recording) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

func (r *recording) end() {
	for _, f := range r.cleanups {
		f()
	}
}

// lines returns the file of this test by lines.
func lines(t *testing.T) []string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Base(file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

type orders = allium.UntypedCollection

// rules holds for each rule what breaks it, in a line that ends with the comment BAD and the name
// of the case, and what does not.
var rules = []struct {
	name      string
	rule      advisor.Rule
	options   advisor.Options
	bad, good func(ctx context.Context, c *orders) error
}{
	{"scan", advisor.RuleIndex, advisor.Options{}, func(ctx context.Context, c *orders) error {
		_, err := c.All(ctx, bson.M{"city": "Bonn"}) // BAD scan
		return err
	}, func(ctx context.Context, c *orders) error {
		_, err := c.All(ctx, bson.M{"customer": 3})
		return err
	}},
	{"update", advisor.RuleIndex, advisor.Options{}, func(ctx context.Context, c *orders) error {
		_, err := c.UpdateMany(ctx, bson.M{"city": "Bonn"}, bson.M{"$set": bson.M{"x": 1}}) // BAD update
		return err
	}, func(ctx context.Context, c *orders) error {
		_, err := c.UpdateMany(ctx, bson.M{"customer": 3}, bson.M{"$set": bson.M{"x": 1}})
		return err
	}},
	{"bulk write", advisor.RuleIndex, advisor.Options{}, func(ctx context.Context, c *orders) error {
		_, err := c.BulkWrite(ctx, []allium.WriteModel{c.UpdateOneModel(bson.M{"_id": 1}, bson.M{"$set": bson.M{"x": 1}}), c.UpdateOneModel(bson.M{"city": "Rome"}, bson.M{"$set": bson.M{"x": 1}})}) // BAD bulk write
		return err
	}, func(ctx context.Context, c *orders) error {
		_, err := c.BulkWrite(ctx, []allium.WriteModel{c.UpdateOneModel(bson.M{"_id": 1}, bson.M{"$set": bson.M{"x": 1}}), c.DeleteOneModel(bson.M{"customer": 77})})
		return err
	}},
	{"delete", advisor.RuleIndex, advisor.Options{}, func(ctx context.Context, c *orders) error {
		_, err := c.DeleteOne(ctx, bson.M{"city": "Rome"}) // BAD delete
		return err
	}, func(ctx context.Context, c *orders) error {
		_, err := c.DeleteOne(ctx, bson.M{"_id": 100})
		return err
	}},
	{"aggregate", advisor.RuleIndex, advisor.Options{}, func(ctx context.Context, c *orders) error {
		cur, err := c.Aggregate(ctx, []bson.D{{{Key: "$match", Value: bson.M{"city": "Bonn"}}}, {{Key: "$group", Value: bson.M{"_id": "$customer"}}}}) // BAD aggregate
		if err == nil {
			_, err = cur.All(ctx)
		}
		return err
	}, func(ctx context.Context, c *orders) error {
		cur, err := c.Aggregate(ctx, []bson.D{{{Key: "$match", Value: bson.M{"customer": 2}}}, {{Key: "$group", Value: bson.M{"_id": "$city"}}}})
		if err == nil {
			_, err = cur.All(ctx)
		}
		return err
	}},
	{"findAndModify", advisor.RuleIndex, advisor.Options{}, func(ctx context.Context, c *orders) error {
		_, err := c.FindOneAndUpdate(ctx, bson.M{"city": "Bonn"}, bson.M{"$set": bson.M{"x": 1}}) // BAD findAndModify
		return err
	}, func(ctx context.Context, c *orders) error {
		_, err := c.FindOneAndUpdate(ctx, bson.M{"_id": 2}, bson.M{"$set": bson.M{"x": 1}})
		return err
	}},
	{"exempt", advisor.RuleIndex, advisor.Options{Exempt: map[string][]advisor.Rule{"other": {advisor.RuleIndex}, "orders": {advisor.RuleSort}}}, func(ctx context.Context, c *orders) error {
		_, err := c.FindOne(ctx, bson.M{"city": "Bonn"}) // BAD exempt
		return err
	}, func(ctx context.Context, c *orders) error {
		return c.Database().Collection("other").Drop(ctx)
	}},
	{"sort", advisor.RuleSort, advisor.Options{}, func(ctx context.Context, c *orders) error {
		_, err := c.All(ctx, bson.M{}, allium.FindOptions{Sort: bson.D{{Key: "total", Value: 1}}}) // BAD sort
		return err
	}, func(ctx context.Context, c *orders) error {
		_, err := c.All(ctx, bson.M{}, allium.FindOptions{Sort: bson.D{{Key: "customer", Value: 1}}})
		return err
	}},
	{"deadline", advisor.RuleDeadline, advisor.Options{}, func(_ context.Context, c *orders) error {
		_, err := c.InsertOne(context.Background(), bson.M{"customer": 9}) // BAD deadline
		return err
	}, func(_ context.Context, c *orders) error {
		_, err := c.With(allium.CollectionOptions{Timeout: new(time.Minute)}).InsertOne(context.Background(), bson.M{"customer": 9})
		return err
	}},
	{"write concern", advisor.RuleConcern, advisor.Options{WriteConcern: consistency.Majority()}, func(ctx context.Context, c *orders) error {
		_, err := c.With(allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: 1}}).InsertOne(ctx, bson.M{"customer": 9}) // BAD write concern
		return err
	}, func(ctx context.Context, c *orders) error {
		_, err := c.With(allium.CollectionOptions{WriteConcern: consistency.Majority()}).InsertOne(ctx, bson.M{"customer": 9})
		return err
	}},
	{"read concern", advisor.RuleConcern, advisor.Options{ReadConcern: &consistency.ReadConcern{Level: "majority"}}, func(ctx context.Context, c *orders) error {
		_, err := c.FindOne(ctx, bson.M{"_id": 1}) // BAD read concern
		return err
	}, func(ctx context.Context, c *orders) error {
		_, err := c.With(allium.CollectionOptions{ReadConcern: &consistency.ReadConcern{Level: "majority"}}).FindOne(ctx, bson.M{"_id": 1})
		return err
	}},
	{"repeated", advisor.RuleRepeated, advisor.Options{Repeats: 5}, func(ctx context.Context, c *orders) error {
		for i := range 8 {
			if _, err := c.All(ctx, bson.M{"customer": i}); err != nil { // BAD repeated
				return err
			}
		}
		return nil
	}, func(ctx context.Context, c *orders) error {
		for i := range 5 {
			if _, err := c.All(ctx, bson.M{"customer": i}); err != nil {
				return err
			}
		}
		_, err := c.All(ctx, bson.M{"customer": bson.M{"$in": bson.A{1, 2, 3}}})
		return err
	}},
	{"growth", advisor.RuleGrowth, advisor.Options{MostElements: 3}, func(ctx context.Context, c *orders) error {
		for i := range 5 {
			if _, err := c.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$push": bson.M{"log": i}}); err != nil { // BAD growth
				return err
			}
		}
		return nil
	}, func(ctx context.Context, c *orders) error {
		for i := range 5 {
			if _, err := c.UpdateOne(ctx, bson.M{"_id": 2}, bson.M{"$push": bson.M{"log": bson.D{{Key: "$each", Value: bson.A{i}}, {Key: "$slice", Value: -3}}}}); err != nil {
				return err
			}
		}
		return nil
	}},
	{"declared stage", advisor.RuleDeclared, advisor.Options{}, func(ctx context.Context, c *orders) error {
		cur, err := c.Aggregate(ctx, []bson.D{{{Key: "$densify", Value: bson.D{{Key: "field", Value: "customer"}, {Key: "range", Value: bson.D{{Key: "step", Value: 1}, {Key: "bounds", Value: "full"}}}}}}}) // BAD declared stage
		if err == nil {
			_, err = cur.All(ctx)
		}
		return err
	}, func(ctx context.Context, c *orders) error {
		cur, err := c.Aggregate(ctx, []bson.D{{{Key: "$unionWith", Value: "other"}}})
		if err == nil {
			_, err = cur.All(ctx)
		}
		return err
	}},
	{"declared field", advisor.RuleDeclared, advisor.Options{}, func(ctx context.Context, c *orders) error {
		_, err := c.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"x": 2}}, allium.UpdateOptions{Sort: bson.D{{Key: "customer", Value: 1}}}) // BAD declared field
		return err
	}, func(ctx context.Context, c *orders) error {
		_, err := c.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"x": 2}})
		return err
	}},
	{"stable API", advisor.RuleDeclared, advisor.Options{}, func(ctx context.Context, c *orders) error {
		_, err := allium.Distinct[int](ctx, c, "customer", bson.D{}) // BAD stable API
		return err
	}, func(ctx context.Context, c *orders) error {
		_, err := c.CountDocuments(ctx, bson.D{})
		return err
	}},
}

// fill writes the documents that the cases read.
func fill(t *testing.T, uri string) {
	t.Helper()
	client, err := allium.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	c := client.Database("shop").Collection("orders")
	var docs []bson.M
	for i := range 20 {
		docs = append(docs, bson.M{"_id": i, "customer": i % 5, "city": []string{"Bonn", "Rome"}[i%2], "total": -i})
	}
	if _, err := c.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateIndex(t.Context(), allium.IndexModel{Keys: bson.D{{Key: "customer", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
}

// TestStrict: each rule fails a test at the line that breaks it, and at no other.
func TestStrict(t *testing.T) {
	source := lines(t)
	for _, c := range rules {
		t.Run(c.name, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.ReplicaSet(1))
			fill(t, d.URI())
			switch {
			case c.name == "stable API":
				c.options.Declared = open(t, d.URI(), allium.ClientOptions{ServerAPI: &allium.ServerAPI{Version: allium.ServerAPIV1, Strict: new(true)}})
			case c.rule == advisor.RuleDeclared:
				c.options.Declared = open(t, mongotest.Start(t, mongotest.Version("5.0")).URI())
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for which, run := range map[string]func(context.Context, *orders) error{"bad": c.bad, "good": c.good} {
				r := &recording{}
				client := advisor.Strict(r, d.URI(), c.options)
				if err := run(ctx, client.Database("shop").Collection("orders")); err != nil {
					t.Error(which, err)
				}
				r.end()
				if which == "good" {
					if len(r.failures) > 0 {
						t.Errorf("good code fails: %v", r.failures)
					}
					continue
				}
				line := 0
				for i, text := range source {
					if strings.HasSuffix(text, "// BAD "+c.name) {
						line = i + 1
					}
				}
				want := fmt.Sprintf("advisor_test.go:%d: %s: ", line, c.rule)
				if len(r.failures) != 1 || !strings.Contains(r.failures[0], want) {
					t.Errorf("%q, want one with %q", r.failures, want)
				}
			}
		})
	}
}

func open(t *testing.T, uri string, opts ...allium.ClientOptions) *allium.Client {
	t.Helper()
	client, err := allium.Open(uri, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return client
}

// TestExempt: a rule is exempt for a collection, a namespace, a file, a line, or for all.
func TestExempt(t *testing.T) {
	d := mongotest.Start(t)
	fill(t, d.URI())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for key, want := range map[string]int{"orders": 0, "shop.orders": 0, "*": 0, "advisor_test.go": 0, "": 1, "shop": 1, "advisor_test.go:1": 1} {
		r := &recording{}
		client := advisor.Strict(r, d.URI(), advisor.Options{Exempt: map[string][]advisor.Rule{key: {advisor.RuleSort, advisor.RuleIndex}}})
		if _, err := client.Database("shop").Collection("orders").FindOne(ctx, bson.M{"city": "Bonn"}); err != nil {
			t.Error(err)
		}
		r.end()
		if len(r.failures) != want {
			t.Errorf("%q: %q", key, r.failures)
		}
	}
}

// TestAdvisor: in a program, findings are reported once, counted, and shown.
func TestAdvisor(t *testing.T) {
	d := mongotest.Start(t)
	fill(t, d.URI())
	var reported []advisor.Finding
	client, a, err := advisor.Open(d.URI(), advisor.Options{Report: func(f advisor.Finding) { reported = append(reported, f) }}, allium.ClientOptions{Timeout: new(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	c := client.Database("shop").Collection("orders")
	for range 3 {
		for _, err := range c.Query(t.Context(), bson.M{"city": "a secret"}) {
			t.Error(err)
		}
		if _, err := c.InsertOne(t.Context(), bson.M{}); err != nil {
			t.Error(err)
		}
	}
	if err := client.Transact(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	client.Close(t.Context())
	a.Close(t.Context())
	if len(reported) != 1 || reported[0].Rule != advisor.RuleIndex || len(a.Findings()) != 1 {
		t.Fatalf("%v", reported)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if page := w.Body.String(); !strings.Contains(page, "advisor_test.go:") || !strings.Contains(page, "city") || strings.Contains(page, "secret") {
		t.Error(page)
	}
	w = httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest("GET", "/?format=json", nil))
	var list []advisor.Finding
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list) != 1 || list[0].Namespace != "shop.orders" {
		t.Error(w.Body, err)
	}
	w = httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
	if w.Code != 405 {
		t.Error(w.Code)
	}
}
