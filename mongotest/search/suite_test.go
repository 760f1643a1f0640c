package search_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongoerr"
)

// code returns the code of a server's error, 0 without one.
func code(err error) int {
	var e *mongoerr.ServerError
	if errors.As(err, &e) {
		return int(e.Code)
	}
	if err != nil {
		return -1
	}
	return 0
}

func document(t *testing.T, text string) bson.D {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), &d); err != nil {
		t.Fatal(text, err)
	}
	return d
}

// What a $vectorSearch has wrong by itself is said where there is no index, too.
func TestVectorSpecifications(t *testing.T) {
	db := vectorColl(t, "cosine", []any{[]float64{1, 0}, []float64{0, 1}}, 2)
	run(t, db, bson.D{{Key: "create", Value: "plain"}})
	whole := map[string]string{"index": `"default"`, "path": `"v"`, "queryVector": `[1.0, 0.0]`, "numCandidates": `10`, "limit": `2`}
	for _, test := range []struct {
		field, value  string // of the one that differs; no value: without it
		plain, served int    // code of the error without and with an index
	}{
		{"none", "1", 0, 0},
		{"quantization", `"bogus"`, 0, 0},
		{"index", ``, 8, 8}, {"index", `null`, 8, 8}, {"index", `""`, 8, 8}, {"index", `1`, 8, 8}, {"index", `"other"`, 0, 0},
		{"path", ``, 8, 8}, {"path", `1`, 8, 8}, {"path", `"x"`, 0, 8},
		{"queryVector", `1`, 8, 8}, {"queryVector", `["x", 1]`, 8, 8}, {"queryVector", `[1.0]`, 0, 8}, {"queryVector", `[1e39, 1.0]`, 8, 8},
		{"queryVector", `{"$binary": {"base64": "AAEC", "subType": "00"}}`, 8, 8},
		{"limit", ``, 8, 8}, {"limit", `null`, 8575100, 8575100}, {"limit", `"2"`, 8575100, 8575100}, {"limit", `0`, 7912700, 7912700},
		{"limit", `0.5`, 7912700, 7912700}, {"limit", `1.5`, 8, 8}, {"limit", `2.0`, 0, 0}, {"limit", `11`, 8, 8},
		{"limit", `{"$numberDecimal": "2"}`, 8, 8}, {"limit", `{"$numberLong": "2147483648"}`, 8, 8},
		{"numCandidates", ``, 8, 8}, {"numCandidates", `null`, 8, 8}, {"numCandidates", `"x"`, 8, 8}, {"numCandidates", `2.5`, 8, 8}, {"numCandidates", `10001`, 8, 8},
		{"exact", `null`, 0, 0}, {"exact", `1`, 8, 8}, {"exact", `true`, 8, 8},
		{"filter", `null`, 10065, 10065}, {"filter", `1`, 10065, 10065}, {"filter", `[]`, 8, 8}, {"filter", `{"$bad": 1}`, 2, 2},
		{"filter", `{"odd": {"$near": [0, 0]}}`, 5626500, 5626500}, {"filter", `{"other": 1}`, 0, 8}, {"filter", `{"odd": {"$in": []}}`, 0, 8},
		{"filter", `{"odd": {"$in": [1, "x"]}}`, 0, 8}, {"filter", `{"odd": {"$exists": 1}}`, 0, 8}, {"filter", `{"odd": {"$timestamp": {"t": 1, "i": 1}}}`, 0, 8},
		{"filter", `{"$expr": true}`, 0, 8},
		{"parentFilter", `null`, 0, 0}, {"parentFilter", `{}`, 0, 0}, {"parentFilter", `1`, 8, 8}, {"parentFilter", `{"$bad": 1}`, 8, 8},
		{"searchNodePreference", `null`, 0, 0}, {"searchNodePreference", `{"key": "x", "more": 1}`, 0, 0}, {"searchNodePreference", `{}`, 8, 8}, {"searchNodePreference", `{"key": 1}`, 8, 8},
		{"nestedOptions", `null`, 0, 0}, {"nestedOptions", `1`, 8, 8}, {"nestedOptions", `{}`, 0, 8}, {"nestedOptions", `{"scoreMode": "min"}`, 8, 8},
		{"explainOptions", `1`, 8, 8}, {"explainOptions", `{}`, 8, 8}, {"explainOptions", `{"traceDocumentIds": [null]}`, 8, 8}, {"explainOptions", `{"traceDocumentIds": [1]}`, 0, 8},
		{"model", `"m"`, 8, 8}, {"query", `{"text": "x"}`, 8, 8},
	} {
		spec := ""
		fields := map[string]string{test.field: test.value}
		for k, v := range whole {
			if _, differs := fields[k]; !differs {
				fields[k] = v
			}
		}
		for k, v := range fields {
			if v != "" {
				spec += fmt.Sprintf(`, %q: %s`, k, v)
			}
		}
		stages := bson.A{bson.D{{Key: "$vectorSearch", Value: document(t, "{"+spec[1:]+"}")}}}
		for coll, want := range map[string]int{"plain": test.plain, "c": test.served} {
			if _, err := aggregate(db, coll, stages); code(err) != want {
				t.Errorf("%s: %s in %s: %v, want %d", test.field, test.value, coll, err, want)
			}
		}
	}
	explained := run(t, db, bson.D{{Key: "explain", Value: document(t, `{"aggregate": "c", "cursor": {}, "pipeline": [{"$vectorSearch": {"index": "default", "path": "v", "queryVector": [1.0, 0.0], "limit": 1, "exact": true, "explainOptions": {"traceDocumentIds": [1, "x"]}}}]}`)}})
	if ids := explained.Lookup("stages", "0", "$vectorSearch", "explainOptions", "traceDocumentIds"); ids.String() != `[1,"x"]` {
		t.Error(explained)
	}
}

// An index with a nestedRoot has a vector for each element of an array, and a score for each
// document.
func TestNestedVectors(t *testing.T) {
	db := database(t)
	insert(t, db, "c", []bson.Raw{
		marshal(t, document(t, `{"_id": 1, "in": "US", "r": [{"n": 5, "v": [1.0, 0.0]}, {"n": 3, "v": [0.0, 1.0]}]}`)),
		marshal(t, document(t, `{"_id": 2, "in": "US", "r": [{"n": 3, "v": [0.0, 1.0]}]}`)),
		marshal(t, document(t, `{"_id": 3, "in": "CA", "r": [{"n": 5, "v": [1.0, 1.0]}, {"n": 5}, 7]}`)),
		marshal(t, document(t, `{"_id": 4, "in": "CA"}`)),
	})
	createIndex(t, db, pageIndex{Coll: "c", Type: "vectorSearch", Definition: marshal(t, document(t, `{"nestedRoot": "r", "fields": [
		{"type": "vector", "path": "r.v", "numDimensions": 2, "similarity": "cosine"}, {"type": "filter", "path": "r.n"}, {"type": "filter", "path": "in"}]}`))})
	diagonal := (1 + math.Sqrt(0.5)) / 2
	for _, test := range []struct {
		options string
		want    map[int64]float64
	}{
		{``, map[int64]float64{1: 1, 2: 0.5, 3: diagonal}},
		{`, "nestedOptions": {"scoreMode": "avg"}`, map[int64]float64{1: 0.75, 2: 0.5, 3: diagonal}},
		{`, "filter": {"r.n": 5}, "nestedOptions": {"scoreMode": "avg"}`, map[int64]float64{1: 1, 3: diagonal}},
		{`, "filter": {"r.n": 5}, "parentFilter": {"in": "US"}`, map[int64]float64{1: 1}},
		{`, "filter": {"in": "US"}`, map[int64]float64{}},
		{`, "parentFilter": {"r.n": 5}`, map[int64]float64{}},
	} {
		got, err := aggregate(db, "c", bson.A{
			document(t, `{"$vectorSearch": {"index": "default", "path": "r.v", "queryVector": [1.0, 0.0], "exact": true, "limit": 9`+test.options+`}}`),
			document(t, `{"$sort": {"_id": -1}}`), document(t, `{"$project": {"s": {"$meta": "vectorSearchScore"}}}`)})
		if err != nil || len(got) != len(test.want) {
			t.Errorf("%s: %v %v", test.options, got, err)
		}
		for _, doc := range got {
			id, _ := doc.Lookup("_id").AsInt64()
			if s, _ := doc.Lookup("s").Double(); math.Abs(s-test.want[id]) > 1e-6 {
				t.Errorf("%s: %s, want %v", test.options, doc, test.want[id])
			}
		}
	}
}

// A $unionWith may begin with a $vectorSearch, and no $lookup or $facet.
func TestVectorsInPipelines(t *testing.T) {
	db := vectorColl(t, "cosine", []any{[]float64{1, 0}, []float64{0, 1}}, 2)
	const search = `{"$vectorSearch": {"index": "default", "path": "v", "queryVector": [1.0, 0.0], "exact": true, "limit": 1}}`
	for _, test := range []struct {
		stage       string
		code, found int
	}{
		{`{"$unionWith": {"coll": "c", "pipeline": [` + search + `]}}`, 0, 3},
		{`{"$lookup": {"from": "c", "pipeline": [` + search + `], "as": "r"}}`, 51047, 0},
		{`{"$facet": {"r": [` + search + `]}}`, 40600, 0},
	} {
		got, err := aggregate(db, "c", bson.A{document(t, test.stage)})
		if code(err) != test.code || len(got) != test.found {
			t.Errorf("%s: %v %v, want %d and %d documents", test.stage, got, err, test.code, test.found)
		}
	}
}

// What is refused of $search and $searchMeta, and what null options and values that are not finite
// mean.
func TestSearchSpecifications(t *testing.T) {
	db := database(t)
	insert(t, db, "c", []bson.Raw{
		marshal(t, document(t, `{"_id": 1, "x": "quick fox", "n": {"$numberLong": "9007199254740993"}}`)),
		marshal(t, document(t, `{"_id": 2, "x": "lazy dog", "n": 9007199254740992.0}`)),
		marshal(t, document(t, `{"_id": 3, "n": {"$numberDouble": "Infinity"}}`)),
	})
	run(t, db, bson.D{{Key: "create", Value: "plain"}})
	createIndex(t, db, pageIndex{Coll: "c", Definition: marshal(t, document(t, `{"mappings": {"dynamic": true}}`))})
	const text = `"text": {"query": "fox", "path": "x"}`
	for _, test := range []struct {
		stage, spec string
		code, found int
	}{
		{"$search", `5`, 10065, 0}, {"$search", `null`, 10065, 0}, {"$search", `[]`, 9, 0}, {"$searchMeta", `"x"`, 10065, 0},
		{"$search", `{"index": null, "count": null, "highlight": null, "sort": null, "concurrent": null, ` + text + `}`, 0, 1},
		{"$search", `{"index": "", ` + text + `}`, 8, 0}, {"$search", `{"index": 1, ` + text + `}`, 8, 0}, {"$search", `{"concurrent": 1, ` + text + `}`, 8, 0},
		{"$search", `{"scoreDetails": 1, ` + text + `}`, 13111, 0}, {"$search", `{"returnStoredSource": null, ` + text + `}`, 13111, 0},
		{"$search", `{"text": {"query": "fox", "path": "x", "fuzzy": null}}`, 0, 1}, {"$search", `{"text": {"query": "fox", "path": ""}}`, 0, 0},
		{"$search", `{"exists": {"path": ""}}`, 0, 0}, {"$search", `{"phrase": {"query": "a", "path": "x", "slop": 2147483648}}`, 8, 0},
		{"$search", `{"count": {"type": null, "threshold": null}, ` + text + `}`, 0, 1}, {"$search", `{"count": {"threshold": 2147483648}, ` + text + `}`, 8, 0},
		{"$search", `{"equals": {"path": "n", "value": {"$numberLong": "9007199254740993"}}}`, 0, 2},
		{"$search", `{"equals": {"path": "n", "value": {"$numberDouble": "Infinity"}}}`, 0, 0}, {"$search", `{"in": {"path": "n", "value": [{"$numberDouble": "Infinity"}]}}`, 0, 1},
		{"$search", `{"in": {"path": "n", "value": [null]}}`, 8, 0}, {"$search", `{"in": {"path": "n", "value": [1], "doesNotAffect": 1}}`, 8, 0},
		{"$search", `{"range": {"path": "n", "gte": 10, "lte": 5}}`, 8, 0}, {"$search", `{"range": {"path": "n", "gt": 5, "lt": 5}}`, 8, 0},
		{"$search", `{"range": {"path": "n", "gte": {"$numberDouble": "NaN"}}}`, 0, 0}, {"$search", `{"range": {"path": "n", "gte": "5"}}`, 0, 0},
		{"$search", `{"near": {"path": "n", "origin": {"$numberDouble": "NaN"}, "pivot": 1}}`, 0, 3}, {"$search", `{"near": {"path": "n", "origin": 1, "pivot": {"$numberDouble": "Infinity"}}}`, 8, 0},
		{"$search", `{"queryString": {"defaultPath": "x", "query": "quick AND AND"}}`, 8, 0}, {"$search", `{"queryString": {"defaultPath": "x", "query": "quick OR OR fox"}}`, 8, 0},
		{"$search", `{"queryString": {"defaultPath": "x", "query": "NOT NOT quick"}}`, 8, 0}, {"$search", `{"queryString": {"defaultPath": "x", "query": "quick AND (OR fox)"}}`, 8, 0},
		{"$search", `{"queryString": {"defaultPath": "x", "query": "quick AND NOT ANDROID"}}`, 0, 1}, {"$search", `{"queryString": {"defaultPath": "x", "query": "quick AND \"AND\" OR fox"}}`, 0, 0},
		{"$search", `{"regex": {"path": "x", "allowAnalyzedField": true, "query": "` + strings.Repeat("a", 100_000) + `"}}`, 0, 0},
		{"$searchMeta", `{"facet": {"facets": {"f": {"type": "number", "path": "n", "boundaries": [0, 1], "numBuckets": 2}}}}`, 8, 0},
		{"$searchMeta", `{"facet": {"facets": {"f": {"type": "number", "path": "n", "boundaries": [0, 1], "other": 2}}}}`, 8, 0},
	} {
		got, err := aggregate(db, "c", bson.A{document(t, `{"`+test.stage+`": `+test.spec+`}`)})
		if code(err) != test.code || len(got) != test.found {
			t.Errorf("%s %s: %v %v, want %d and %d documents", test.stage, test.spec, got, err, test.code, test.found)
		}
	}
	for coll, want := range map[string]string{"c": `[{"count":{"lowerBound":1}}]`, "plain": `[{"count":{"total":0}}]`, "none": `[]`} {
		if got, err := aggregate(db, coll, bson.A{document(t, `{"$searchMeta": {`+text+`}}`)}); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v %v, want %s", coll, got, err, want)
		}
	}
}
