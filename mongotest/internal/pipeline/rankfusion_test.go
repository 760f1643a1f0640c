package pipeline

import (
	"strings"
	"testing"

	"allium/mongotest/internal/release"
)

// $rankFusion adds weight/(60+rank) over its input pipelines, as the manual's formula has it, and
// puts documents of the same score in the order of their _id.
func TestRankFusion(t *testing.T) {
	const docs = `[{"_id": 1, "a": 3, "b": 9}, {"_id": 2, "a": 2, "b": 7}, {"_id": 3, "a": 1, "b": 8}, {"_id": 4, "a": 0, "b": 0}]`
	const inputs = `"input": {"pipelines": {"byA": [{"$match": {"a": {"$gt": 0}}}, {"$sort": {"a": 1}}], "byB": [{"$sort": {"b": 1}}, {"$limit": 3}]}}`
	for _, test := range []struct{ stages, want string }{
		// byA: 3 2 1; byB: 4 2 3.
		{`[{"$rankFusion": {` + inputs + `}}, {"$project": {"_id": 1}}]`, "{_id: 3} {_id: 2} {_id: 4} {_id: 1}"},
		{`[{"$rankFusion": {` + inputs + `, "combination": {"weights": {"byB": 5}}}}, {"$project": {"_id": 1}}]`, "{_id: 2} {_id: 3} {_id: 4} {_id: 1}"},
		{`[{"$rankFusion": {` + inputs + `, "combination": {"weights": {"byA": 0, "byB": 0}}}}, {"$project": {"_id": 1}}]`, "{_id: 1} {_id: 2} {_id: 3} {_id: 4}"},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": [{"$sort": {"a": -1}}]}}}}, {"$limit": 1}, {"$project": {"s": {"$eq": [{"$meta": "score"}, {"$divide": [1, 61]}]}}}]`, "{_id: 1, s: true}"},
		{`[{"$rankFusion": {` + inputs + `, "scoreDetails": true}}, {"$skip": 3}, {"$project": {"d": {"$meta": "scoreDetails"}}}, {"$project": {"d.details": 1}}]`,
			`{_id: 1, d: {details: [{inputPipelineName: "byA", rank: 3, weight: 1, details: []}, {inputPipelineName: "byB", rank: "NA"}]}}`},
		{`[{"$rankFusion": {` + inputs + `}}, {"$project": {"d": {"$meta": "scoreDetails"}}}]`, "40218 "},
		{`[{"$project": {"d": {"$meta": "score"}}}]`, "40218 "},
		{`[{"$limit": 1}, {"$rankFusion": {` + inputs + `}}]`, "10170100 "},
		{`[{"$facet": {"f": [{"$rankFusion": {` + inputs + `}}, {"$limit": 1}, {"$project": {"_id": 1}}]}}]`, "{f: [{_id: 3}]}"},
		{`[{"$facet": {"f": [{"$limit": 1}, {"$rankFusion": {` + inputs + `}}]}}]`, "10170100 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": [{"$match": {"_id": {"$lt": 4}}}, {"$sort": {"none": 1}}, {"$limit": 2}]}}}}, {"$group": {"_id": {"$meta": "score"}, "n": {"$count": {}}}}, {"$project": {"_id": 0}}]`, "{n: 2}"},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": [{"$sort": {"a": 1}}]}}}}, {"$limit": 1}, {"$project": {"_id": 0, "s": {"$gt": [{"$meta": "score"}, 0]}}}]`, "{s: true}"},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": [{"$sort": {"a": 1}}]}}}}, {"$limit": 1}, {"$project": {"_id": 0, "s": {"$meta": "score"}}}, {"$project": {"s": 0}}]`, "{}"},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": []}}}}]`, "9834300 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": [{"$rankFusion": {` + inputs + `}}]}}}}]`, "10473002 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": [{"$sort": {"a": 1}}, {"$scoreFusion": {}}]}}}}]`, "40324 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": [{"$sort": {"a": 1}}, {"$rankFusion": {}}]}}}}]`, "10170100 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"": [{"$sort": {"a": 1}}]}}}}]`, "15998 "},
		{`[{"$rankFusion": {"input": null}}]`, "40414 "},
		{`[{"$rankFusion": {` + inputs + `, "combination": {}}}]`, "40414 "},
		{`[{"$rankFusion": {` + inputs + `, "combination": null, "scoreDetails": null}}, {"$limit": 1}, {"$project": {"_id": 1}}]`, "{_id: 3}"},
		{`[{"$rankFusion": {` + inputs + `, "combination": {"weights": {"byA": "1"}}}}]`, "13118 "},
		{`[{"$rankFusion": {` + inputs + `, "combination": {"weights": {"byA": 1, "byB": 1, "c": 1}}}}]`, "9460301 "},
		{`[{"$rankFusion": {}}]`, "40414 "},
		{`[{"$rankFusion": {"input": {}}}]`, "40414 "},
		{`[{"$rankFusion": {"input": {"pipelines": {}}}}]`, "2 "},
		{`[{"$rankFusion": {"input": {"pipelines": []}}}]`, "14 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": 1}}}}]`, "14 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": [{"$nothing": 1}]}}}}]`, "40324 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": [{"$match": {}}]}}}}]`, "9191100 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"x": [{"$sort": {"a": 1}}, {"$project": {"a": 1}}]}}}}]`, "9191103 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"$x": [{"$sort": {"a": 1}}]}}}}]`, "16410 "},
		{`[{"$rankFusion": {"input": {"pipelines": {"x.y": [{"$sort": {"a": 1}}]}}}}]`, "16412 "},
		{`[{"$rankFusion": {` + inputs + `, "combination": {"weights": {"c": 1}}}}]`, "9967500 "},
		{`[{"$rankFusion": {` + inputs + `, "combination": {"weights": {"byA": -1}}}}]`, "9460300 "},
		{`[{"$rankFusion": {` + inputs + `, "combination": {"weight": 1}}}]`, "40415 "},
		{`[{"$rankFusion": {` + inputs + `, "scoreDetails": 1}}]`, "14 "},
	} {
		got := runText(t, test.stages, docs, release.At(8, 1, 0))
		if got != test.want && (!strings.HasSuffix(test.want, " ") || !strings.HasPrefix(got, test.want)) {
			t.Errorf("%s\n gives %s\n want %s", test.stages, got, test.want)
		}
	}
	if got := runText(t, `[{"$rankFusion": {`+inputs+`}}]`, docs, release.At(8, 0, 0)); !strings.HasPrefix(got, "40324 ") {
		t.Errorf("before 8.1: %s", got)
	}
	if got := runText(t, `[{"$project": {"d": {"$meta": "score"}}}]`, docs, release.At(8, 0, 0)); !strings.HasPrefix(got, "17308 ") {
		t.Errorf("before 8.1: %s", got)
	}
}
