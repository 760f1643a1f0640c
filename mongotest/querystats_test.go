package mongotest_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
	"allium/mongotest/internal/pipeline"
)

// statsStage is $queryStats over the entries of database t, the one that was used last at the
// front.
func statsStage(options string) string {
	return `{"aggregate": 1, "pipeline": [{"$queryStats": {` + options + `}}, ` +
		`{"$match": {"key.collectionType": {"$ne": "virtual"}}}, {"$unset": ["key.client"]}], "cursor": {}, "$db": "admin"}`
}

// transformed are the options of the manual's example, with the key that it prints.
const transformed = `"transformIdentifiers": {"algorithm": "hmac-sha-256", ` +
	`"hmacKey": {"$binary": {"base64": "87c4082f169d3fef0eef34dc8e23458cbb457c3sf3n2", "subType": "08"}}}`

// entry puts a path below each of the fields that an entry of $queryStats ought to have.
func statsEntry(i int, fields map[string]string) map[string]string {
	want := map[string]string{}
	for path, v := range fields {
		want[fmt.Sprintf("cursor.firstBatch.%d.%s", i, path)] = v
	}
	return want
}

// The example of the manual: what it prints of the entries, as they are and with hashes for names.
func TestQueryStatsOfManual(t *testing.T) {
	const db, coll = `"Mtrt3iG7dsX5c5uCSIhSVlcu5qD3u3xx2EQnS1dJLxM="`, `"3oJE6AyOuf8h5NqWiXETxulFlPm3QUXbMnMjL2EqAU4="`
	find := `{"find": "products", "filter": {"item": "card"}, "$db": "test"}`
	agg := `{"aggregate": "products", "pipeline": [{"$match": {"qty": {"$gt": 20}}}], "cursor": {"batchSize": 1000}, "apiVersion": "1", "$db": "test"}`
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "products", "documents": [{"item": "card", "qty": 15}, {"item": "envelope", "qty": 20}, {"item": "stamps", "qty": 30}], "$db": "test"}`},
		{cmd: agg}, {cmd: agg}, {cmd: agg}, {cmd: find},
		{cmd: statsStage(``), want: statsEntry(0, map[string]string{
			"key":                               `{"queryShape":{"cmdNs":{"db":"test","coll":"products"},"command":"find","filter":{"item":{"$eq":"?string"}}},"collectionType":"collection"}`,
			"metrics.execCount":                 "1",
			"metrics.docsReturned.sum":          "1",
			"metrics.docsReturned.sumOfSquares": `{"$numberDecimal":"1"}`,
			"metrics.docsExamined.sum":          "3",
			"metrics.keysExamined.max":          "0",
			"metrics.hasSortStage":              `{"true":0,"false":1}`,
		})},
		{cmd: statsStage(``), want: statsEntry(1, map[string]string{
			"key":                               `{"queryShape":{"cmdNs":{"db":"test","coll":"products"},"command":"aggregate","pipeline":[{"$match":{"qty":{"$gt":"?number"}}}]},"apiVersion":"1","collectionType":"collection","cursor":{"batchSize":"?number"}}`,
			"metrics.execCount":                 "3",
			"metrics.docsReturned":              `{"sum":3,"max":1,"min":1,"sumOfSquares":{"$numberDecimal":"3"}}`,
			"metrics.docsExamined.sumOfSquares": `{"$numberDecimal":"27"}`,
		})},
		{cmd: statsStage(transformed), want: statsEntry(0, map[string]string{
			"key.queryShape": `{"cmdNs":{"db":` + db + `,"coll":` + coll + `},"command":"find","filter":{"VWVRow7Ure92ajRPfrpWiU8OtDeWcLePFIq0+tooBng=":{"$eq":"?string"}}}`,
		})},
		{cmd: statsStage(transformed), want: statsEntry(1, map[string]string{
			"key.queryShape": `{"cmdNs":{"db":` + db + `,"coll":` + coll + `},"command":"aggregate","pipeline":[{"$match":{"RVqrwNEPotzdKnma/T7s4YcgNvpqO29BMDoni2N4IMI=":{"$gt":"?number"}}}]}`,
		})},
	}, mongotest.Parameter("internalQueryStatsRateLimit", -1))
}

// Nothing is recorded unless a parameter says so; what fails, explains or is encrypted never is.
func TestQueryStatsRecorded(t *testing.T) {
	find := `{"find": "c", "filter": {"a": 1}, "$db": "t"}`
	none := mendStep{cmd: statsStage(``), want: map[string]string{"cursor.firstBatch": `[]`}}
	set := func(name, value string) mendStep {
		return mendStep{cmd: `{"setParameter": 1, "` + name + `": ` + value + `, "$db": "admin"}`}
	}
	count := func(n string) mendStep {
		return mendStep{cmd: statsStage(``), want: statsEntry(0, map[string]string{"metrics.execCount": n})}
	}
	const rate, sample = "internalQueryStatsRateLimit", "internalQueryStatsSampleRate"
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "a": 1}], "$db": "t"}`},
		{cmd: `{"getParameter": 1, "internalQueryStatsRateLimit": 1, "internalQueryStatsCacheSize": 1, "$db": "admin"}`,
			want: map[string]string{rate: "0", "internalQueryStatsCacheSize": `"1%"`}},
		{cmd: find}, none,
		set(rate, "-1"),
		{cmd: `{"find": "c", "filter": {"$no": 1}, "$db": "t"}`, code: 2},
		{cmd: `{"aggregate": "c", "pipeline": [], "explain": true, "$db": "t"}`},
		{cmd: `{"explain": ` + find + `, "$db": "t"}`},
		none,
		{cmd: find}, {cmd: `{"filter": {"a": 2}, "find": "c", "$db": "t"}`, code: 59},
		{cmd: `{"find": "c", "$db": "t", "filter": {"a": 2}}`},
		count("2"),
		set(rate, "0"), {cmd: find}, count("2"),
		set(sample, "1"), {cmd: find}, count("3"),
		set(sample, "0"), {cmd: find}, count("3"),
		set("internalQueryStatsCacheSize", `"0MB"`), none,
		set(rate, "-1"), {cmd: find}, none, // there is no room
		{cmd: `{"setParameter": 1, "internalQueryStatsCacheSize": "much", "$db": "admin"}`, code: 2},
		{cmd: `{"setParameter": 1, "internalQueryStatsSampleRate": 2, "$db": "admin"}`, code: 2},
		{cmd: `{"setParameter": 1, "internalQueryStatsRateLimit": -2, "$db": "admin"}`, code: 2},
	}, mongotest.Version("8.2"))
}

// A query with a cursor is recorded when the cursor ends, with all that its commands did; a change
// stream with each command.
func TestQueryStatsOfCursors(t *testing.T) {
	none := mendStep{cmd: statsStage(``), want: map[string]string{"cursor.firstBatch": `[]`}}
	figures := func(count, returned, docs string) mendStep {
		return mendStep{cmd: statsStage(``), want: statsEntry(0, map[string]string{"metrics.execCount": count,
			"metrics.docsReturned.sum": returned, "metrics.docsExamined.sum": docs})}
	}
	find := mendStep{cmd: `{"find": "c", "batchSize": 2, "sort": {"b": 1}, "$db": "t"}`}
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "b": 3}, {"_id": 2, "b": 2}, {"_id": 3, "b": 1}, {"_id": 4, "b": 0}, {"_id": 5, "b": 9}], "$db": "t"}`},
		find, none,
		{cmd: `{"getMore": CURSOR, "collection": "c", "batchSize": 2, "$db": "t"}`}, none,
		{cmd: `{"getMore": CURSOR, "collection": "c", "$db": "t"}`}, figures("1", "5", "5"),
		find,
		{cmd: `{"killCursors": "c", "cursors": [CURSOR], "$db": "t"}`}, figures("2", "7", "10"),
		{cmd: statsStage(``), want: statsEntry(0, map[string]string{"metrics.hasSortStage": `{"true":2,"false":0}`,
			"key.batchSize": `"?number"`})},
		{cmd: `{"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}, "$db": "t"}`},
		{cmd: statsStage(``), want: statsEntry(0, map[string]string{"key.collectionType": `"changeStream"`, "metrics.execCount": "1"})},
		{cmd: `{"insert": "c", "documents": [{"_id": 6}], "$db": "t"}`},
		{cmd: `{"getMore": CURSOR, "collection": "c", "$db": "t"}`},
		{cmd: statsStage(``), want: statsEntry(0, map[string]string{"metrics.execCount": "2", "metrics.docsReturned.sum": "1"})},
		{cmd: `{"killCursors": "c", "cursors": [CURSOR], "$db": "t"}`},
		{cmd: statsStage(``), want: statsEntry(0, map[string]string{"metrics.execCount": "3", "metrics.lastExecutionMicros": "0"})},
	}, mongotest.ReplicaSet(1), mongotest.Parameter("internalQueryStatsRateLimit", -1))
}

// What a key has beside the shape, of which commands there are entries in which version, and what
// an entry tells in old ones.
func TestQueryStatsKeys(t *testing.T) {
	for _, topology := range []mongotest.Option{mongotest.ReplicaSet(1), mongotest.Sharded(1, 1)} {
		mendSteps(t, []mendStep{
			{cmd: `{"create": "v", "viewOn": "c", "pipeline": [], "$db": "t"}`},
			{cmd: `{"create": "ts", "timeseries": {"timeField": "t"}, "$db": "t"}`},
			{cmd: `{"find": "none", "hint": {"_id": 1}, "comment": "x", "maxTimeMS": 10000, "readConcern": {"level": "local"}, "noCursorTimeout": true, "allowPartialResults": true, "$db": "t"}`},
			{cmd: statsStage(``), want: statsEntry(0, map[string]string{
				"key":            `{"queryShape":{"cmdNs":{"db":"t","coll":"none"},"command":"find","filter":{}},"comment":"?string","readConcern":{"level":"local"},"collectionType":"nonExistent","hint":{"_id":"?number"},"maxTimeMS":"?number","noCursorTimeout":"?bool","allowPartialResults":true}`,
				"queryShapeHash": "", "metrics.docsExamined": "", "metrics.docsReturned.sum": "0",
			})},
			{cmd: `{"find": "v", "hint": "_id_", "$db": "t"}`},
			{cmd: statsStage(``), want: statsEntry(0, map[string]string{"key.collectionType": `"view"`, "key.hint": `"?string"`})},
			{cmd: `{"aggregate": "ts", "pipeline": [], "cursor": {}, "$db": "t"}`},
			{cmd: statsStage(``), want: statsEntry(0, map[string]string{"key.collectionType": `"timeseries"`})},
			{cmd: `{"distinct": "c", "key": "a", "query": {"b": {"$in": [1, 2]}}, "$db": "t"}`},
			{cmd: statsStage(``), want: statsEntry(0, map[string]string{"key.queryShape": `{"cmdNs":{"db":"t","coll":"c"},"command":"distinct","query":{"b":{"$in":"?array<?number>"}},"key":"a"}`})},
			{cmd: `{"count": "c", "query": {"b": 1}, "$db": "t"}`},
			{cmd: statsStage(``), want: statsEntry(0, map[string]string{"key.queryShape.command": `"distinct"`})}, // count has none yet
		}, topology, mongotest.Version("7.0"), mongotest.Parameter("internalQueryStatsRateLimit", -1))
	}
	mendSteps(t, []mendStep{
		{cmd: `{"count": "c", "query": {"b": 1}, "$db": "t"}`},
		{cmd: statsStage(``), want: statsEntry(0, map[string]string{"key.queryShape": `{"cmdNs":{"db":"t","coll":"c"},"command":"count","query":{"b":{"$eq":"?number"}}}`})},
	}, mongotest.Version("9.0"), mongotest.Parameter("internalQueryStatsRateLimit", -1))
}

var leftName = regexp.MustCompile(`[^A-Za-z0-9+/]x[0-9][^A-Za-z0-9+/=]`)

// No name is left in what is transformed, wherever it stands, and nothing else is changed.
func TestQueryStatsTransformed(t *testing.T) {
	d := mongotest.Start(t, mongotest.Version("8.2"), mongotest.Parameter("internalQueryStatsRateLimit", -1))
	c := dial(t, d.Hosts()[0])
	shapeOf := func(options string) bson.Raw {
		reply := command(t, c, extJSON(t, statsStage(options)))
		doc, _ := reply.Lookup("cursor", "firstBatch", "0", "key", "queryShape").Document()
		return doc
	}
	names := map[string]string{} // by their hashes
	for _, name := range []string{"x1", "x2", "x3", "x4", "x5", "x6", "_id", "t", "c"} {
		command(t, c, extJSON(t, `{"find": "c", "filter": {"`+name+`": 1}, "$db": "t"}`))
		for hash := range bson.Raw(shapeOf(transformed).Lookup("filter").Value).All() {
			names[hash] = name
		}
	}
	for _, query := range []string{
		`"find": "c", "filter": {"x1.x2": 1, "$or": [{"x3": {"$not": {"$gt": 1}}}, {"x4": {"$elemMatch": {"x5": 1}}}], "$expr": {"$eq": ["$x1.x2", "$$ROOT.x3"]}}, "sort": {"x1": -1}, "projection": {"x2": 1, "x3": {"$concat": ["$x4", "x5"]}}`,
		`"distinct": "c", "key": "x1.x2"`,
		`"aggregate": "c", "cursor": {}, "pipeline": [{"$group": {"_id": "$x1", "x2": {"$push": {"x3": "$x4"}}}}, {"$addFields": {"x5": {"$cond": {"if": "$x1", "then": 1, "else": "$x2"}}}}, {"$sort": {"x1": 1}}, {"$unset": ["x1", "x2.x3"]}, {"$count": "x6"}]`,
		`"aggregate": "c", "cursor": {}, "pipeline": [{"$lookup": {"from": "x1", "localField": "x2", "foreignField": "x3", "as": "x4", "let": {"x5": "$x6"}, "pipeline": [{"$match": {"x6": 1, "$expr": {"$eq": ["$$x5", "$x6"]}}}]}}, {"$unwind": {"path": "$x4", "includeArrayIndex": "x5"}}]`,
		`"aggregate": "c", "cursor": {}, "pipeline": [{"$facet": {"x1": [{"$match": {"x2": 1}}], "x3": [{"$project": {"x4": {"$let": {"vars": {"x5": "$x6"}, "in": "$$x5"}}}}]}}]`,
		`"aggregate": "c", "cursor": {}, "pipeline": [{"$setWindowFields": {"partitionBy": "$x1", "sortBy": {"x2": 1}, "output": {"x3": {"$sum": "$x4", "window": {"documents": ["unbounded", "current"]}}}}}, {"$unionWith": {"coll": "x5", "pipeline": [{"$match": {"x6": 1}}]}}, {"$merge": {"into": "x1", "on": "_id"}}]`,
		`"aggregate": "c", "cursor": {}, "pipeline": [{"$bucket": {"groupBy": "$x1", "boundaries": [1, 2], "default": 3, "output": {"x2": {"$sum": {"$multiply": ["$x3", 2]}}}}}, {"$out": "x4"}]`,
		`"aggregate": "c", "cursor": {}, "pipeline": [{"$graphLookup": {"from": "x1", "startWith": "$x2", "connectFromField": "x3", "connectToField": "x4", "as": "x5", "restrictSearchWithMatch": {"x6": 1}}}, {"$unionWith": "x2"}, {"$replaceRoot": {"newRoot": {"x1": "$x2"}}}, {"$replaceWith": {"x3": {"$cond": {"if": "$x4", "then": 1, "else": 2}}}}, {"$sample": {"size": 3}}]`,
	} {
		command(t, c, extJSON(t, `{`+query+`, "$db": "t"}`))
		plain, got := shapeOf(``).String(), shapeOf(transformed).String()
		for hash, name := range names {
			got = strings.ReplaceAll(got, hash, name)
		}
		if name := leftName.FindString(shapeOf(transformed).String()); name != "" {
			t.Errorf("%s is transformed, but has %s", query, name)
		}
		if got != plain {
			t.Errorf("%s\n is transformed to %s\n and was %s", query, got, plain)
		}
		if strings.Contains(plain, `"$lookup"`) && !strings.Contains(plain, `"from":"x1"`) {
			t.Errorf("%s: the shape %s does not tell which collection", query, plain)
		}
	}
}

// Where the stage may stand, and what it takes.
func TestQueryStatsRules(t *testing.T) {
	on := func(db, target, stages string) string {
		return `{"aggregate": ` + target + `, "pipeline": [` + stages + `], "cursor": {}, "$db": "` + db + `"}`
	}
	with := func(transform string) string {
		return on("admin", "1", `{"$queryStats": {"transformIdentifiers": `+transform+`}}`)
	}
	const key = `{"$binary": {"base64": "AAAA", "subType": "08"}}`
	mendSteps(t, []mendStep{
		{cmd: on("admin", "1", `{"$queryStats": {}}`)},
		{cmd: on("t", "1", `{"$queryStats": {}}`), code: 73},
		{cmd: on("admin", `"c"`, `{"$queryStats": {}}`), code: 73},
		{cmd: on("admin", "1", `{"$queryStats": {}}, {"$queryStats": {}}`), code: 40602},
		{cmd: on("admin", "1", `{"$documents": []}, {"$facet": {"a": [{"$queryStats": {}}]}}`), code: 40600},
		{cmd: on("t", `"c"`, `{"$facet": {"a": [{"$queryStats": {}}]}}`), code: 73},
		{cmd: on("t", `"c"`, `{"$lookup": {"from": "d", "as": "x", "pipeline": [{"$queryStats": {}}]}}`), code: 73},
		{cmd: on("admin", "1", `{"$queryStats": 1}`), code: 9},
		{cmd: on("admin", "1", `{"$queryStats": {"x": 1}}`), code: 40415},
		{cmd: with(`1`), code: 14},
		{cmd: with(`{}`), code: 40414},
		{cmd: with(`{"algorithm": "hmac-sha-256"}`), code: 40414},
		{cmd: with(`{"algorithm": "md5", "hmacKey": ` + key + `}`), code: 2},
		{cmd: with(`{"algorithm": 1, "hmacKey": ` + key + `}`), code: 14},
		{cmd: with(`{"algorithm": "hmac-sha-256", "hmacKey": "x"}`), code: 14},
		{cmd: with(`{"algorithm": "hmac-sha-256", "hmacKey": {"$binary": {"base64": "AAAA", "subType": "00"}}}`), code: 14},
		{cmd: with(`{"algorithm": "hmac-sha-256", "hmacKey": ` + key + `, "x": 1}`), code: 40415},
		{cmd: with(`{"algorithm": "hmac-sha-256", "hmacKey": ` + key + `}`)},
	}, mongotest.Version("8.2"))
	mendSteps(t, []mendStep{{cmd: on("admin", "1", `{"$queryStats": {}}`), code: 40324}}, mongotest.Version("7.0.11"))
}

// Who reads the statistics as they are needs less than who has the names transformed.
func TestQueryStatsPrivileges(t *testing.T) {
	for spec, want := range map[string]string{``: "queryStatsRead", transformed: "queryStatsRead queryStatsReadTransformed"} {
		var got []string
		for _, use := range pipeline.Uses(pipeline.Namespace{DB: "admin"}, []bson.Raw{extJSON(t, `{"$queryStats": {`+spec+`}}`)}, false) {
			if got = append(got, use.Action); use.NS.DB != "" {
				t.Errorf("%s is needed on %s", use.Action, use.NS)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("{%s} needs %q, want %q", spec, got, want)
		}
	}
}
