package mongotest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// TestWildcardIndexesFindWhatScansFind: a query with the hint of a wildcard index, or left to the
// planner, finds the documents that a scan of the collection finds, each once, whatever lies at and
// below the paths: documents, arrays, elements by their numbers.
func TestWildcardIndexesFindWhatScansFind(t *testing.T) {
	values := []any{int32(1), int32(2), "x", nil, bson.D{}, bson.A{}, bson.D{{Key: "x", Value: int32(1)}, {Key: "y", Value: int32(2)}},
		bson.A{int32(1), int32(2)}, bson.A{bson.D{{Key: "b", Value: int32(1)}}, bson.D{{Key: "b", Value: int32(2)}}},
		bson.D{{Key: "0", Value: bson.D{{Key: "b", Value: int32(2)}}}}, bson.A{bson.A{int32(1)}}, bson.D{{Key: "b", Value: bson.A{int32(2), "x"}}}}
	plain := slices.DeleteFunc(slices.Clone(values), func(v any) bool {
		d, _ := v.(bson.D)
		_, isArray := v.(bson.A)
		return isArray || len(d) == 1
	})
	paths := []string{"a", "a.b", "a.x", "a.0", "a.0.b", "c", "c.b", "c.1.b"}
	conditions := []string{`1`, `2`, `"x"`, `{"$exists": true}`, `{"$gte": 1}`, `{"$lt": 2}`, `{"$gt": {}}`, `{"$in": [1, "x"]}`}
	patterns := []string{`{"$**": 1}`, `{"a.$**": 1}`, `{"a.0.$**": 1}`, `{"c.b.$**": 1}`}
	asked, answered := 0, 0
	for _, version := range []string{"4.4.0", "8.2.4"} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory(), mongotest.NoScripting())
		c := dialNode(t, d, d.Node(0))
		r := rand.New(rand.NewPCG(1, 2))
		for round := range 12 {
			values := values
			if round%2 == 0 { // no arrays: a document may have several keys all the same
				values = plain
			}
			ok(t, askText(t, c, "db", `{"dropDatabase": 1}`))
			for id := range 6 {
				doc := bson.D{{Key: "_id", Value: int32(id)}, {Key: "a", Value: values[r.IntN(len(values))]}, {Key: "c", Value: values[r.IntN(len(values))]}}
				raw, err := bson.Marshal(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{doc}}, {Key: "$db", Value: "db"}})
				if err != nil {
					t.Fatal(err)
				}
				ok(t, command(t, c, raw))
			}
			pattern := patterns[r.IntN(len(patterns))]
			ok(t, askText(t, c, "db", `{"createIndexes": "c", "indexes": [{"key": `+pattern+`, "name": "w"}]}`))
			for _, path := range paths {
				for _, condition := range conditions {
					filter := fmt.Sprintf(`{%q: %s}`, path, condition)
					ids := func(hint string) string {
						reply := askText(t, c, "db", `{"find": "c", "filter": `+filter+hint+`}`)
						if errorOf(reply) != "ok" {
							return errorOf(reply)
						}
						var list []string
						batch, _ := reply.Lookup("cursor", "firstBatch").Array()
						for v := range batch.Values() {
							list = append(list, fmt.Sprint(bson.Raw(v.Value).Lookup("_id")))
						}
						slices.Sort(list)
						return strings.Join(list, " ")
					}
					want := ids(`, "hint": {"$natural": 1}`)
					if got := ids(``); got != want {
						t.Errorf("%s: find %s with the index %s:\n got %s\nwant %s", version, filter, pattern, got, want)
					}
					asked++
					got := ids(`, "hint": "w"`)
					if strings.HasPrefix(got, "2: ") || strings.HasPrefix(got, "291: ") { // it is not for this query
						continue
					}
					if answered++; got != want {
						t.Errorf("%s: find %s with the hint %s:\n got %s\nwant %s", version, filter, pattern, got, want)
					}
				}
			}
		}
	}
	if answered < asked/10 {
		t.Errorf("of %d queries only %d could be answered with the hint", asked, answered)
	}
}
