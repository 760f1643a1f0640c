package search_test

// What the documentation of Atlas Search prints: testdata/pages has a file for each of its pages,
// with documents and an index, and queries with the results that the page shows. Where the page's
// documents cannot be had (the sample databases), the file has others and says so: their results
// are worked out from what the page says of the operator.

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/mongotest/search"
)

// page is a file of testdata/pages.
type page struct {
	Title       string                `bson:"title"`
	Documents   map[string][]bson.Raw `bson:"documents"`
	Indexes     []pageIndex           `bson:"indexes"`
	Cases       []pageCase            `bson:"cases"`
	Explanation string                `bson:"note"`
}

type pageIndex struct {
	Coll       string   `bson:"coll"`
	Name       string   `bson:"name"`
	Type       string   `bson:"type"`
	Definition bson.Raw `bson:"definition"`
}

// pageCase is a query. Search is the specification of a $search alone; its documents' _id, scores
// and highlights are compared, or else a pipeline's documents.
type pageCase struct {
	Name       string          `bson:"name"`
	Coll       string          `bson:"coll"`
	Search     bson.Raw        `bson:"search"`
	Pipeline   []bson.Raw      `bson:"pipeline"`
	IDs        []bson.RawValue `bson:"ids"`
	AnyOrder   bool            `bson:"anyOrder"`
	Scores     []float64       `bson:"scores"`
	Highlights [][]bson.Raw    `bson:"highlights"` // {path, score, hits} of each document's passages
	Documents  []bson.Raw      `bson:"documents"`
	Error      string          `bson:"error"`
	Own        bool            `bson:"own"` // not printed on the page: worked out
}

func readPages(t *testing.T) (list []page) {
	t.Helper()
	files, err := filepath.Glob("testdata/pages/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var p page
		if err := bson.UnmarshalExtJSON(text, &p); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, p)
	}
	return list
}

func TestPages(t *testing.T) {
	printed := 0
	for _, p := range readPages(t) {
		t.Run(strings.ReplaceAll(p.Title, " ", "_"), func(t *testing.T) {
			db := database(t)
			for coll, docs := range p.Documents {
				insert(t, db, coll, docs)
			}
			for _, x := range p.Indexes {
				createIndex(t, db, x)
			}
			for _, c := range p.Cases {
				t.Run(strings.ReplaceAll(c.Name, " ", "_"), func(t *testing.T) { runCase(t, db, p, c) })
			}
		})
		for _, c := range p.Cases {
			if !c.Own {
				printed++
			}
		}
	}
	t.Logf("%d printed results", printed)
	if printed < 60 {
		t.Errorf("%d printed results, want 60 or more", printed)
	}
}

// database starts a deployment that searches and returns one of its databases.
func database(t testing.TB, opts ...mongotest.Option) *allium.Database {
	t.Helper()
	d := mongotest.Start(t, append([]mongotest.Option{mongotest.SearchWith(search.Engine())}, opts...)...)
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return client.Database("test")
}

func insert(t testing.TB, db *allium.Database, coll string, docs []bson.Raw) {
	t.Helper()
	run(t, db, bson.D{{Key: "insert", Value: coll}, {Key: "documents", Value: docs}})
}

func createIndex(t testing.TB, db *allium.Database, x pageIndex) {
	t.Helper()
	index := bson.D{{Key: "name", Value: x.Name}, {Key: "definition", Value: x.Definition}}
	if x.Name == "" {
		index[0].Value = "default"
	}
	if x.Type != "" {
		index = append(index, bson.E{Key: "type", Value: x.Type})
	}
	run(t, db, bson.D{{Key: "createSearchIndexes", Value: x.Coll}, {Key: "indexes", Value: bson.A{index}}})
}

func run(t testing.TB, db *allium.Database, cmd any) bson.Raw {
	t.Helper()
	reply, err := db.RunCommand(context.Background(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// aggregate runs a pipeline and returns its documents.
func aggregate(db *allium.Database, coll string, pipeline any) ([]bson.Raw, error) {
	reply, err := db.RunCommand(context.Background(), bson.D{
		{Key: "aggregate", Value: coll}, {Key: "pipeline", Value: pipeline},
		{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 1000}}},
	})
	if err != nil {
		return nil, err
	}
	var list []bson.Raw
	batch, _ := reply.Lookup("cursor", "firstBatch").Array()
	for v := range batch.Values() {
		doc, _ := v.Document()
		list = append(list, doc)
	}
	return list, nil
}

func runCase(t *testing.T, db *allium.Database, p page, c pageCase) {
	if c.Coll == "" {
		for name := range p.Documents {
			c.Coll = name
		}
	}
	stages := []any{}
	for _, s := range c.Pipeline {
		stages = append(stages, s)
	}
	if c.Search != nil {
		show := bson.D{{Key: "score", Value: bson.D{{Key: "$meta", Value: "searchScore"}}}}
		if c.Highlights != nil {
			show = append(show, bson.E{Key: "highlights", Value: bson.D{{Key: "$meta", Value: "searchHighlights"}}})
		}
		stages = append([]any{bson.D{{Key: "$search", Value: c.Search}}}, append(stages, bson.D{{Key: "$project", Value: show}})...)
	}
	got, err := aggregate(db, c.Coll, stages)
	if c.Error != "" {
		if err == nil || !strings.Contains(err.Error(), c.Error) {
			t.Errorf("error %v, want %q", err, c.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.Documents != nil {
		want := c.Documents
		if len(got) != len(want) {
			t.Fatalf("%s\nwant %d documents", got, len(want))
		}
		for i := range want {
			if !like(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: got[i]}, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: want[i]}) {
				t.Errorf("document %d: %s\nwant %s", i, got[i], want[i])
			}
		}
		return
	}
	var ids []string
	for _, doc := range got {
		ids = append(ids, doc.Lookup("_id").String())
	}
	var want []string
	for _, id := range c.IDs {
		want = append(want, id.String())
	}
	if !c.AnyOrder && fmt.Sprint(ids) != fmt.Sprint(want) || c.AnyOrder && !sameMembers(ids, want) {
		t.Fatalf("found %v, want %v", got, want)
	}
	for i, s := range c.Scores {
		if have, _ := got[i].Lookup("score").Double(); !near(have, s) {
			t.Errorf("%s: score %v, want %v", ids[i], have, s)
		}
	}
	for i, passages := range c.Highlights {
		list, _ := got[i].Lookup("highlights").Array()
		n := 0
		for v := range list.Values() {
			if n >= len(passages) || !samePassage(v, passages[n]) {
				t.Errorf("%s: highlights %s, want %s", ids[i], list, passages)
				break
			}
			n++
		}
		if n < len(passages) {
			t.Errorf("%s: highlights %s, want %s", ids[i], list, passages)
		}
	}
}

// samePassage compares a highlight with the path, the score and the hits that are wanted of it.
func samePassage(v bson.RawValue, want bson.Raw) bool {
	doc, _ := v.Document()
	var hits []string
	texts, _ := doc.Lookup("texts").Array()
	for v := range texts.Values() {
		part, _ := v.Document()
		if kind, _ := part.Lookup("type").StringValue(); kind == "hit" {
			s, _ := part.Lookup("value").StringValue()
			hits = append(hits, s)
		}
	}
	wanted, _ := want.Lookup("hits").StringValue()
	if strings.Join(hits, "|") != wanted {
		return false
	}
	for _, name := range []string{"score", "path"} {
		if w := want.Lookup(name); w.Type != 0 && !like(doc.Lookup(name), w) {
			return false
		}
	}
	return true
}

func sameMembers(a, b []string) bool {
	count := map[string]int{}
	for _, s := range a {
		count[s]++
	}
	for _, s := range b {
		count[s]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// near reports whether numbers are the same to six digits.
func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b))
}

// like compares values: numbers by near, of whatever type.
func like(got, want bson.RawValue) bool {
	if want.IsNumber() {
		var a, b float64
		return got.Unmarshal(&a) == nil && want.Unmarshal(&b) == nil && near(a, b)
	}
	if got.Type != want.Type {
		return false
	}
	if want.Type != bson.TypeEmbeddedDocument && want.Type != bson.TypeArray {
		return got.Equal(want)
	}
	a, b := members(got), members(want)
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Key != b[i].Key || !like(a[i].Value, b[i].Value) {
			return false
		}
	}
	return true
}

type member struct {
	Key   string
	Value bson.RawValue
}

func members(v bson.RawValue) (list []member) {
	doc, _ := v.Document()
	if v.Type == bson.TypeArray {
		doc, _ = v.Array()
	}
	for key, v := range doc.All() {
		list = append(list, member{key, v})
	}
	return list
}
