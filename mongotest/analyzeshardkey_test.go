package mongotest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

func analyzeCmd(key, options string) string {
	return `{"analyzeShardKey": "t.c", "key": ` + key + options + `, "$db": "admin"}`
}

func samplingCmd(ns, rest string) string {
	return `{"configureQueryAnalyzer": "` + ns + `", ` + rest + `, "$db": "admin"}`
}

// sampledStage is $listSampledQueries without what is another each time.
func sampledStage(options string) string {
	return `{"aggregate": 1, "pipeline": [{"$listSampledQueries": {` + options + `}}, ` +
		`{"$unset": ["_id", "collectionUuid", "expireAt"]}], "cursor": {}, "$db": "admin"}`
}

// twenty are documents with a key that only grows, one that has four values, and one that has
// nothing to do with the order.
func twenty() string {
	var docs []string
	for i := range 20 {
		docs = append(docs, fmt.Sprintf(`{"_id": %d, "grows": %d, "four": %d, "mixed": %d}`, i, i, i%4, i*7%20))
	}
	return `{"insert": "c", "documents": [` + strings.Join(docs, ",") + `], "$db": "t"}`
}

// What documents tell of a key: how many values it has, how often, and in which order they came.
func TestShardKeyCharacteristics(t *testing.T) {
	alone := `, "readWriteDistribution": false`
	of := func(fields map[string]string) map[string]string {
		want := map[string]string{"readDistribution": ""}
		for path, v := range fields {
			want["keyCharacteristics."+path] = v
		}
		return want
	}
	steps := []mendStep{
		{cmd: twenty()},
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"grows": 1}, "name": "g", "unique": true}, {"key": {"four": 1, "x": 1}, "name": "f"}, {"key": {"mixed": "hashed"}, "name": "m"},
			{"key": {"sparse": 1}, "name": "s", "sparse": true}], "$db": "t"}`},
		{cmd: analyzeCmd(`{"grows": 1}`, alone), want: of(map[string]string{
			"numDocsTotal": "20", "numDocsSampled": "20", "isUnique": "true", "numDistinctValues": "20", "numOrphanDocs": "",
			"mostCommonValues.0": `{"value":{"grows":0},"frequency":1}`, "mostCommonValues.4.frequency": "1", "mostCommonValues.5": "",
			"monotonicity": `{"recordIdCorrelationCoefficient":1.0,"type":"monotonic"}`})},
		{cmd: analyzeCmd(`{"four": 1}`, alone), want: of(map[string]string{
			"isUnique": "false", "numDistinctValues": "4", "mostCommonValues.3": `{"value":{"four":3},"frequency":5}`, "mostCommonValues.4": "",
			"monotonicity.type": `"not monotonic"`})},
		{cmd: analyzeCmd(`{"mixed": 1}`, alone), want: of(map[string]string{"numDistinctValues": "20", "monotonicity.type": `"not monotonic"`})},
		{cmd: analyzeCmd(`{"mixed": "hashed"}`, alone), want: of(map[string]string{"numDistinctValues": "20", "isUnique": "false"})},
		{cmd: analyzeCmd(`{"four": 1, "x": "hashed"}`, alone), want: of(map[string]string{"numDistinctValues": "4",
			"monotonicity": `{"type":"unknown"}`, "mostCommonValues.0.value": `{"four":0,"x":null}`})},
		{cmd: analyzeCmd(`{"grows": 1}`, alone+`, "sampleSize": 5`), want: of(map[string]string{"numDocsTotal": "20", "numDocsSampled": "5", "numDistinctValues": "5"})},
		{cmd: analyzeCmd(`{"grows": 1}`, alone+`, "sampleRate": 0.5`), want: of(map[string]string{"numDocsSampled": "10"})},
		{cmd: `{"setParameter": 1, "analyzeShardKeyNumMostCommonValues": 2, "$db": "admin"}`},
		{cmd: analyzeCmd(`{"four": 1}`, alone), want: of(map[string]string{"mostCommonValues.1.frequency": "5", "mostCommonValues.2": ""})},

		{cmd: analyzeCmd(`{"none": 1}`, alone), code: 20},
		{cmd: analyzeCmd(`{"sparse": 1}`, alone), code: 20},
		{cmd: analyzeCmd(`{"none": 1}`, ``), want: map[string]string{"keyCharacteristics": "", "readDistribution.sampleSize.total": "0",
			"writeDistribution.percentageOfShardKeyUpdates": "0.0"}},
		{cmd: analyzeCmd(`{"grows": 1}`, `, "readWriteDistribution": false, "keyCharacteristics": false`), code: 72},
		{cmd: analyzeCmd(`{"grows": 1}`, `, "sampleSize": 1, "sampleRate": 1`), code: 72},
		{cmd: analyzeCmd(`{"grows": 1}`, `, "sampleRate": 0`), code: 2},
		{cmd: analyzeCmd(`{"grows": 1}`, `, "sampleRate": "x"`), code: 14},
		{cmd: analyzeCmd(`{"grows": 1}`, `, "sampleSize": 0`), code: 2},
		{cmd: analyzeCmd(`{"grows": 2}`, ``), code: 2},
		{cmd: analyzeCmd(`{}`, ``), code: 2},
		{cmd: analyzeCmd(`1`, ``), code: 14},
		{cmd: analyzeCmd(`{"grows": 1}`, `, "nosuch": 1`), code: 40415},
		{cmd: `{"analyzeShardKey": "t.c", "$db": "admin"}`, code: 40414},
		{cmd: `{"analyzeShardKey": "t.none", "key": {"a": 1}, "$db": "admin"}`, code: 26},
		{cmd: `{"create": "v", "viewOn": "c", "pipeline": [], "$db": "t"}`},
		{cmd: `{"analyzeShardKey": "t.v", "key": {"a": 1}, "$db": "admin"}`, code: 166},
		{cmd: `{"create": "ts", "timeseries": {"timeField": "t"}, "$db": "t"}`},
		{cmd: `{"analyzeShardKey": "t.ts", "key": {"a": 1}, "$db": "admin"}`, code: 20},
		{cmd: `{"create": "empty", "$db": "t"}`},
		{cmd: `{"analyzeShardKey": "t.empty", "key": {"_id": 1}, "$db": "admin"}`, code: 20},
		{cmd: `{"analyzeShardKey": "t.c", "key": {"grows": 1}, "$db": "t"}`, code: 13},
	}
	for name, topology := range map[string]mongotest.Option{"set": mongotest.ReplicaSet(1), "cluster": mongotest.Sharded(2, 1)} {
		t.Run(name, func(t *testing.T) { mendSteps(t, steps, topology, mongotest.Version("8.2")) })
	}
	mendSteps(t, []mendStep{
		{cmd: twenty()},
		{cmd: analyzeCmd(`{"_id": 1}`, ``), code: 20, text: "standalone"},
		{cmd: samplingCmd("t.c", `"mode": "off"`), code: 20, text: "standalone"},
		{cmd: sampledStage(``), code: 20, text: "$listSampledQueries is not supported on a standalone mongod"},
	}, mongotest.Version("8.2"))
}

// A sharded collection is analyzed as a whole, with what migrations have left behind.
func TestShardKeyOfShardedCollection(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"enableSharding": "t", "$db": "admin"}`},
		{cmd: `{"shardCollection": "t.c", "key": {"_id": 1}, "$db": "admin"}`},
		{cmd: `{"split": "t.c", "middle": {"_id": 10}, "$db": "admin"}`},
		{cmd: twenty()},
		{cmd: analyzeCmd(`{"_id": 1}`, ``), want: map[string]string{"keyCharacteristics.numDocsTotal": "20", "keyCharacteristics.numOrphanDocs": "0",
			"keyCharacteristics.isUnique": "true"}},
	}, mongotest.Sharded(2, 1), mongotest.Version("8.2"))
}

// How sampled queries would be spread over a key: to one shard if they name it, to some if they
// bound it, and to all if they do not.
func TestShardKeyDistribution(t *testing.T) {
	const db = `, "$db": "t"}`
	for name, topology := range map[string]mongotest.Option{"set": mongotest.ReplicaSet(1), "cluster": mongotest.Sharded(2, 1)} {
		t.Run(name, func(t *testing.T) {
			mendSteps(t, []mendStep{
				{cmd: twenty()},
				{cmd: `{"setParameter": 1, "analyzeShardKeyNumRanges": 4, "$db": "admin"}`},
				{cmd: samplingCmd("t.c", `"mode": "full", "samplesPerSecond": 50`), want: map[string]string{"oldConfiguration": "", "newConfiguration": `{"mode":"full","samplesPerSecond":50.0}`}},
				{cmd: `{"find": "c", "filter": {"grows": 3}` + db},
				{cmd: `{"find": "c", "filter": {"grows": {"$lt": 7}}` + db},
				{cmd: `{"find": "c", "filter": {"four": 1}` + db},
				{cmd: `{"find": "c", "filter": {"grows": "x"}, "collation": {"locale": "de"}` + db},
				{cmd: `{"aggregate": "c", "pipeline": [{"$match": {"grows": 19}}], "cursor": {}` + db},
				{cmd: `{"count": "c", "query": {"grows": {"$in": [1, 2]}}` + db},
				{cmd: `{"distinct": "c", "key": "four"` + db},
				{cmd: `{"find": "other"` + db},
				{cmd: `{"find": "c", "filter": {"$no": 1}` + db, code: 2},
				{cmd: `{"explain": {"find": "c"}` + db},
				{cmd: `{"update": "c", "updates": [{"q": {"grows": 3}, "u": {"$set": {"grows": 3, "y": 1}}}, {"q": {"grows": 4}, "u": {"$set": {"grows": 40}}}, {"q": {"four": 1}, "u": {"$inc": {"z": 1}}, "multi": true}]` + db},
				{cmd: `{"delete": "c", "deletes": [{"q": {"four": 7}, "limit": 1}]` + db},
				{cmd: `{"findAndModify": "c", "query": {"grows": 5}, "update": {"$inc": {"grows": 100}}` + db},
				{cmd: analyzeCmd(`{"grows": 1}`, `, "keyCharacteristics": false`), want: map[string]string{
					"keyCharacteristics":                                        "",
					"readDistribution.sampleSize":                               `{"total":7,"find":4,"aggregate":1,"count":1,"distinct":1}`,
					"readDistribution.percentageOfSingleShardReads":             "28.571428571428573",
					"readDistribution.percentageOfMultiShardReads":              "28.571428571428573",
					"readDistribution.percentageOfScatterGatherReads":           "42.857142857142854",
					"writeDistribution.sampleSize":                              `{"total":5,"update":3,"delete":1,"findAndModify":1}`,
					"writeDistribution.percentageOfSingleShardWrites":           "60.0",
					"writeDistribution.percentageOfScatterGatherWrites":         "40.0",
					"writeDistribution.percentageOfShardKeyUpdates":             "40.0",
					"writeDistribution.percentageOfSingleWritesWithoutShardKey": "20.0",
					"writeDistribution.percentageOfMultiWritesWithoutShardKey":  "20.0",
				}},
				{cmd: sampledStage(`"namespace": "t.c"`), want: map[string]string{
					"cursor.firstBatch.0":             `{"ns":"t.c","cmdName":"find","cmd":{"filter":{"grows":3}}}`,
					"cursor.firstBatch.3":             `{"ns":"t.c","cmdName":"find","cmd":{"filter":{"grows":"x"},"collation":{"locale":"de"}}}`,
					"cursor.firstBatch.4":             `{"ns":"t.c","cmdName":"aggregate","cmd":{"filter":{"grows":19}}}`,
					"cursor.firstBatch.6":             `{"ns":"t.c","cmdName":"distinct","cmd":{"filter":{}}}`,
					"cursor.firstBatch.8.cmd.updates": `[{"q":{"grows":4},"u":{"$set":{"grows":40}},"multi":false,"upsert":false}]`,
					"cursor.firstBatch.11.cmdName":    `"findAndModify"`,
					"cursor.firstBatch.12":            "",
				}},
				{cmd: sampledStage(`"namespace": "t.other"`), want: map[string]string{"cursor.firstBatch": "[]"}},
				{cmd: `{"aggregate": 1, "pipeline": [{"$currentOp": {}}, {"$match": {"desc": "query analyzer"}}], "cursor": {}, "$db": "admin"}`,
					want: map[string]string{"cursor.firstBatch.0.ns": `"t.c"`, "cursor.firstBatch.0.sampledReadsCount": "7", "cursor.firstBatch.0.sampledWritesCount": "5"}},
				{cmd: samplingCmd("t.c", `"mode": "off"`), want: map[string]string{"oldConfiguration.samplesPerSecond": "50.0", "newConfiguration": `{"mode":"off"}`}},
				{cmd: `{"find": "c"` + db},
				{cmd: analyzeCmd(`{"grows": "hashed"}`, ``), want: map[string]string{"readDistribution.sampleSize.total": "7",
					"readDistribution.percentageOfSingleShardReads": "28.571428571428573"}},
			}, topology, mongotest.Version("8.2"))
		})
	}
}

// What the analyzer and the stage refuse, and whose queries are not sampled any more.
func TestQueryAnalyzerRules(t *testing.T) {
	on := func(db, target, stages string) string {
		return `{"aggregate": ` + target + `, "pipeline": [` + stages + `], "cursor": {}, "$db": "` + db + `"}`
	}
	const stage = `{"$listSampledQueries": {}}`
	find := mendStep{cmd: `{"find": "c", "$db": "t"}`}
	count := func(n string) mendStep {
		return mendStep{cmd: on("admin", "1", stage+`, {"$count": "n"}`), want: map[string]string{"cursor.firstBatch.0.n": n}}
	}
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1}], "$db": "t"}`},
		{cmd: samplingCmd("t.c", `"mode": "full"`), code: 72},
		{cmd: samplingCmd("t.c", `"mode": "full", "samplesPerSecond": 0`), code: 72},
		{cmd: samplingCmd("t.c", `"mode": "full", "samplesPerSecond": 51`), code: 72},
		{cmd: samplingCmd("t.c", `"mode": "full", "samplesPerSecond": "x"`), code: 14},
		{cmd: samplingCmd("t.c", `"mode": "half"`), code: 2},
		{cmd: samplingCmd("t.c", `"mode": 1`), code: 14},
		{cmd: samplingCmd("t.c", `"samplesPerSecond": 1`), code: 40414},
		{cmd: samplingCmd("t.none", `"mode": "off"`), code: 26},
		{cmd: samplingCmd("t", `"mode": "off"`), code: 73},
		{cmd: samplingCmd("config.c", `"mode": "off"`), code: 20},
		{cmd: on("t", "1", stage), code: 73},
		{cmd: on("admin", `"c"`, stage), code: 73},
		{cmd: on("admin", "1", stage+`, `+stage), code: 40602},
		{cmd: on("admin", "1", `{"$documents": []}, {"$facet": {"a": [`+stage+`]}}`), code: 40600},
		{cmd: on("admin", "1", `{"$listSampledQueries": 1}`), code: 9},
		{cmd: on("admin", "1", `{"$listSampledQueries": {"namespace": 1}}`), code: 14},
		{cmd: on("admin", "1", `{"$listSampledQueries": {"namespace": "t"}}`), code: 73},
		{cmd: on("admin", "1", `{"$listSampledQueries": {"x": 1}}`), code: 40415},

		find, count(""),
		{cmd: samplingCmd("t.c", `"mode": "full", "samplesPerSecond": 50`)},
		find, count("1"),
		{cmd: `{"renameCollection": "t.c", "to": "t.d", "$db": "admin"}`},
		{cmd: `{"find": "d", "$db": "t"}`}, count("1"),
		{cmd: `{"insert": "c", "documents": [{"_id": 1}], "$db": "t"}`},
		find, count("1"), // another collection of the name
		{cmd: samplingCmd("t.c", `"mode": "full", "samplesPerSecond": 50`), want: map[string]string{"oldConfiguration": ""}},
		find, count("2"),
	}, mongotest.ReplicaSet(1), mongotest.Version("7.0"))
	mendSteps(t, []mendStep{{cmd: samplingCmd("t.c", `"mode": "off"`), code: 59}}, mongotest.ReplicaSet(1), mongotest.Version("6.0"))
}

// No more queries are sampled in a second than was said, and they expire.
func TestQueriesAreSampledByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.2"), mongotest.InMemory(),
			mongotest.Parameter("queryAnalysisSampleExpirationSecs", 60))
		c := dialNode(t, d, d.Node(0))
		ask := func(text string) { ok(t, askText(t, c, "t", text)) }
		count := func(want int) {
			t.Helper()
			n := 0
			reply := ok(t, askText(t, c, "admin", `{"aggregate": 1, "pipeline": [{"$listSampledQueries": {}}], "cursor": {}}`))
			for range bson.Raw(reply.Lookup("cursor", "firstBatch").Value).Values() {
				n++
			}
			if n != want {
				t.Errorf("there are %d samples, want %d", n, want)
			}
		}
		ask(`{"insert": "c", "documents": [{"_id": 1}]}`)
		ok(t, askText(t, c, "admin", `{"configureQueryAnalyzer": "t.c", "mode": "full", "samplesPerSecond": 2}`))
		for range 5 {
			ask(`{"find": "c"}`)
		}
		count(2)
		time.Sleep(500 * time.Millisecond)
		for range 5 {
			ask(`{"find": "c"}`)
		}
		count(3)
		time.Sleep(59*time.Second + 700*time.Millisecond)
		count(1)
		time.Sleep(time.Second)
		count(0)
	})
}
