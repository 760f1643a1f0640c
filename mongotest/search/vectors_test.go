package search_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/mongotest/search"
)

// vectorColl has documents with vectors of several kinds and an index for them.
func vectorColl(t *testing.T, similarity string, vectors []any, dims int) *allium.Database {
	t.Helper()
	db := database(t)
	docs := make([]bson.Raw, len(vectors))
	for i, v := range vectors {
		docs[i] = marshal(t, bson.D{{Key: "_id", Value: i}, {Key: "v", Value: v}, {Key: "odd", Value: i%2 == 1}})
	}
	insert(t, db, "c", docs)
	createIndex(t, db, pageIndex{Coll: "c", Type: "vectorSearch", Definition: marshal(t, bson.D{{Key: "fields", Value: bson.A{
		bson.D{{Key: "type", Value: "vector"}, {Key: "path", Value: "v"}, {Key: "numDimensions", Value: dims}, {Key: "similarity", Value: similarity}},
		bson.D{{Key: "type", Value: "filter"}, {Key: "path", Value: "odd"}},
	}}})})
	return db
}

func marshal(t testing.TB, v any) bson.Raw {
	t.Helper()
	doc, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// nearest runs $vectorSearch and returns documents with their scores.
func nearest(db *allium.Database, spec ...bson.E) ([]bson.Raw, error) {
	spec = append(bson.D{{Key: "index", Value: "default"}, {Key: "path", Value: "v"}}, spec...)
	return aggregate(db, "c", bson.A{
		bson.D{{Key: "$vectorSearch", Value: bson.D(spec)}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "score", Value: bson.D{{Key: "$meta", Value: "vectorSearchScore"}}}}}},
	})
}

// TestVectors compares random vectors with the formulas of the documentation.
func TestVectors(t *testing.T) {
	const dims, n = 5, 60
	scores := map[string]func(a, b []float64) float64{
		"cosine":     func(a, b []float64) float64 { return (1 + dot(a, b)/math.Sqrt(dot(a, a)*dot(b, b))) / 2 },
		"dotProduct": func(a, b []float64) float64 { return (1 + dot(a, b)) / 2 },
		"euclidean": func(a, b []float64) float64 {
			sum := 0.0
			for i := range a {
				sum += (a[i] - b[i]) * (a[i] - b[i])
			}
			return 1 / (1 + sum) // of the distance's square, as Lucene computes it
		},
	}
	for name, score := range scores {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			vector := func() []float64 {
				v := make([]float64, dims)
				for i := range v {
					v[i] = float64(float32(r.NormFloat64()))
				}
				length := math.Sqrt(dot(v, v))
				for i := range v {
					v[i] /= length
				}
				return v
			}
			var vectors []any
			for range n {
				vectors = append(vectors, vector())
			}
			db := vectorColl(t, name, vectors, dims)
			for _, odd := range []bool{false, true} {
				query := vector()
				want := []int{}
				for i := range n {
					if !odd || i%2 == 1 {
						want = append(want, i)
					}
				}
				of := func(i int) float64 { return score(query, vectors[i].([]float64)) }
				slices.SortStableFunc(want, func(a, b int) int { return int(math.Copysign(1, of(b)-of(a))) })
				spec := bson.D{{Key: "queryVector", Value: query}, {Key: "limit", Value: 7}, {Key: "exact", Value: true}}
				if odd {
					spec = append(spec, bson.E{Key: "filter", Value: bson.D{{Key: "odd", Value: true}}})
				}
				got, err := nearest(db, spec...)
				if err != nil || len(got) != 7 {
					t.Fatal(got, err)
				}
				for i, doc := range got {
					id, _ := doc.Lookup("_id").AsInt64()
					s, _ := doc.Lookup("score").Double()
					if int(id) != want[i] || math.Abs(s-of(want[i])) > 1e-6 {
						t.Errorf("%d: %s, want %d with %v", i, doc, want[i], of(want[i]))
					}
				}
			}
		})
	}
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// TestVectorArguments has what $vectorSearch refuses.
func TestVectorArguments(t *testing.T) {
	db := vectorColl(t, "cosine", []any{[]float64{1, 0}, []float64{0, 1}}, 2)
	query := bson.E{Key: "queryVector", Value: []float64{1, 0}}
	exact, limit := bson.E{Key: "exact", Value: true}, bson.E{Key: "limit", Value: 1}
	for name, spec := range map[string]bson.D{
		"other dimensions":       {{Key: "queryVector", Value: []float64{1, 0, 0}}, exact, limit},
		"no vector":              {exact, limit},
		"no limit":               {query, exact},
		"no candidates":          {query, limit},
		"too few candidates":     {query, {Key: "limit", Value: 5}, {Key: "numCandidates", Value: 4}},
		"exact and candidates":   {query, exact, limit, {Key: "numCandidates", Value: 4}},
		"filter without index":   {query, exact, limit, {Key: "filter", Value: bson.D{{Key: "x", Value: 1}}}},
		"operator of the filter": {query, exact, limit, {Key: "filter", Value: bson.D{{Key: "odd", Value: bson.D{{Key: "$regex", Value: "x"}}}}}},
	} {
		if got, err := nearest(db, spec...); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got, err := nearest(db, query, limit, bson.E{Key: "numCandidates", Value: 10}); err != nil || len(got) != 1 {
		t.Error(got, err)
	}
}

// TestRankFusionOfSearches adds 1/(60 + rank) of a text search and a vector search.
func TestRankFusionOfSearches(t *testing.T) {
	for _, topology := range []mongotest.Option{mongotest.ReplicaSet(1), mongotest.Sharded(2, 1)} {
		db := database(t, topology, mongotest.Version("8.2"))
		insert(t, db, "c", []bson.Raw{
			marshal(t, bson.D{{Key: "_id", Value: 0}, {Key: "x", Value: "boat boat boat"}, {Key: "v", Value: []float64{0, 1}}}),
			marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: "boat in a harbour"}, {Key: "v", Value: []float64{1, 0}}}),
			marshal(t, bson.D{{Key: "_id", Value: 2}, {Key: "x", Value: "train"}, {Key: "v", Value: []float64{1, 1}}}),
		})
		createIndex(t, db, pageIndex{Coll: "c", Definition: marshal(t, bson.D{{Key: "mappings", Value: bson.D{{Key: "dynamic", Value: true}}}})})
		createIndex(t, db, pageIndex{Coll: "c", Name: "vectors", Type: "vectorSearch", Definition: marshal(t, bson.D{{Key: "fields", Value: bson.A{
			bson.D{{Key: "type", Value: "vector"}, {Key: "path", Value: "v"}, {Key: "numDimensions", Value: 2}, {Key: "similarity", Value: "cosine"}},
		}}})})
		text := bson.A{bson.D{{Key: "$search", Value: bson.D{{Key: "text", Value: bson.D{{Key: "query", Value: "boat"}, {Key: "path", Value: "x"}}}}}}}
		vector := bson.A{bson.D{{Key: "$vectorSearch", Value: bson.D{{Key: "index", Value: "vectors"}, {Key: "path", Value: "v"}, {Key: "queryVector", Value: []float64{1, 0}}, {Key: "exact", Value: true}, {Key: "limit", Value: 2}}}}}
		got, err := aggregate(db, "c", bson.A{
			bson.D{{Key: "$rankFusion", Value: bson.D{
				{Key: "input", Value: bson.D{{Key: "pipelines", Value: bson.D{{Key: "text", Value: text}, {Key: "vector", Value: vector}}}}},
				{Key: "combination", Value: bson.D{{Key: "weights", Value: bson.D{{Key: "vector", Value: 2}}}}},
			}}},
			bson.D{{Key: "$project", Value: bson.D{{Key: "score", Value: bson.D{{Key: "$meta", Value: "score"}}}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []struct {
			id    int64
			score float64
		}{{1, 1.0/62 + 2.0/61}, {2, 2.0 / 62}, {0, 1.0 / 61}}
		for i, w := range want {
			if i >= len(got) {
				t.Fatal(got)
			}
			id, _ := got[i].Lookup("_id").AsInt64()
			if s, _ := got[i].Lookup("score").Double(); id != w.id || math.Abs(s-w.score) > 1e-12 {
				t.Errorf("%d: %s, want %v", i, got[i], w)
			}
		}
	}
}

// TestSearchFollowsWrites finds what is there and nothing else, after each write and in other
// pipelines, and with statistics that are those of an index made anew.
func TestSearchFollowsWrites(t *testing.T) {
	db := database(t)
	c := db.Collection("c")
	def := marshal(t, bson.D{{Key: "mappings", Value: bson.D{{Key: "dynamic", Value: true}}}})
	run(t, db, bson.D{{Key: "create", Value: "c"}})
	createIndex(t, db, pageIndex{Coll: "c", Definition: def})
	stages := bson.A{
		bson.D{{Key: "$search", Value: bson.D{{Key: "text", Value: bson.D{{Key: "query", Value: "a b"}, {Key: "path", Value: "x"}}}}}},
		bson.D{{Key: "$project", Value: bson.D{{Key: "score", Value: bson.D{{Key: "$meta", Value: "searchScore"}}}}}},
	}
	r := rand.New(rand.NewPCG(3, 4))
	words := []string{"a", "b", "c", "a b", "b c c", "a a a", "d"}
	ctx := context.Background()
	for i := range 60 {
		id := bson.D{{Key: "_id", Value: r.IntN(8)}}
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: words[r.IntN(len(words))]}}}}
		var err error
		if r.IntN(3) == 0 {
			_, err = c.DeleteOne(ctx, id)
		} else {
			_, err = c.UpdateOne(ctx, id, set, allium.UpdateOptions{Upsert: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := aggregate(db, "c", stages)
		if err != nil {
			t.Fatal(err)
		}
		createIndex(t, db, pageIndex{Coll: "c", Name: fmt.Sprint("n", i), Definition: def})
		stages[0].(bson.D)[0].Value = append(bson.D{{Key: "index", Value: fmt.Sprint("n", i)}}, bson.E{Key: "text", Value: bson.D{{Key: "query", Value: "a b"}, {Key: "path", Value: "x"}}})
		anew, err := aggregate(db, "c", stages)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(anew) {
			t.Fatalf("after %d writes %v, an index made anew finds %v, %v", i, got, anew, err)
		}
		stages[0].(bson.D)[0].Value = bson.D{{Key: "text", Value: bson.D{{Key: "query", Value: "a b"}, {Key: "path", Value: "x"}}}}
		run(t, db, bson.D{{Key: "dropSearchIndex", Value: "c"}, {Key: "name", Value: fmt.Sprint("n", i)}})
	}
}

// FuzzSearch gives texts, analyzers and queries of any kind: nothing may panic.
func FuzzSearch(f *testing.F) {
	for _, s := range []string{"", "a AND (b OR c~1)", `title:"x y"~2 [a TO *]`, "(", "ß é ﬁ İ", "a*b?c\\", "x{1,3}|<1-9>", "\xff\x00", "((((a"} {
		f.Add(s, s, uint8(len(s)))
	}
	analyzers := []string{"standard", "simple", "whitespace", "keyword", "english", "french", "german", "italian", "spanish", "arabic", "thai", "persian", "turkish", "russian"}
	engine := search.Engine()
	f.Fuzz(func(t *testing.T, text, query string, which uint8) {
		text, query = strings.ToValidUTF8(text, "?"), strings.ToValidUTF8(query, "?")
		name := "lucene." + analyzers[int(which)%len(analyzers)]
		answer, err := engine.Open("search", marshal(t, bson.D{{Key: "analyzer", Value: name}, {Key: "mappings", Value: bson.D{{Key: "dynamic", Value: true}}}}))
		if err != nil {
			t.Fatal(err)
		}
		doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: text}})
		read := func(string) iter.Seq2[bson.Raw, error] {
			return func(yield func(bson.Raw, error) bool) { yield(doc, nil) }
		}
		for _, op := range []bson.E{
			{Key: "text", Value: bson.D{{Key: "query", Value: query}, {Key: "path", Value: "x"}, {Key: "fuzzy", Value: bson.D{}}}},
			{Key: "phrase", Value: bson.D{{Key: "query", Value: query}, {Key: "path", Value: "x"}, {Key: "slop", Value: 2}}},
			{Key: "wildcard", Value: bson.D{{Key: "query", Value: query}, {Key: "path", Value: "x"}, {Key: "allowAnalyzedField", Value: true}}},
			{Key: "regex", Value: bson.D{{Key: "query", Value: query}, {Key: "path", Value: "x"}, {Key: "allowAnalyzedField", Value: true}}},
			{Key: "queryString", Value: bson.D{{Key: "query", Value: query}, {Key: "defaultPath", Value: "x"}}},
		} {
			spec := marshal(t, bson.D{op, {Key: "highlight", Value: bson.D{{Key: "path", Value: "x"}}}, {Key: "scoreDetails", Value: true}})
			hits, _, err := answer("$search", spec, read, func(int) {})
			if err != nil {
				continue
			}
			for _, meta := range hits {
				if s, _ := meta.Lookup("searchScore").Double(); math.IsNaN(s) {
					t.Errorf("%s %q: no number", op.Key, query)
				}
			}
		}
	})
}
