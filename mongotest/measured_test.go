package mongotest_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// What a server 8.2.4 was seen to answer by those who wrote the functional tests of DocumentDB,
// where versions before 5.0, or nobody's reading of the manual, would have it otherwise.

// measured is a command on a collection with some documents.
type measured struct {
	docs, cmd string
	want      string // the first batch, or the code of the error
}

// askMeasured returns the first batch of a reply, or its code. The commands of prepare go before
// it.
func askMeasured(t *testing.T, c net.Conn, m measured, prepare ...string) string {
	t.Helper()
	ok(t, askText(t, c, "db", `{"drop": "c"}`))
	if m.docs != "" {
		ok(t, askText(t, c, "db", `{"insert": "c", "documents": `+m.docs+`}`))
	}
	for _, cmd := range prepare {
		ok(t, askText(t, c, "db", cmd))
	}
	reply := askText(t, c, "db", m.cmd)
	if answer := errorOf(reply); answer != "ok" {
		code, _, _ := strings.Cut(answer, ":")
		return code
	}
	if e := reply.Lookup("writeErrors", "0", "code"); !e.IsZero() {
		return fmt.Sprint(e)
	}
	if reply.Lookup("cursor").IsZero() {
		reply = ok(t, askText(t, c, "db", `{"find": "c"}`))
	}
	return batchOf(t, reply)
}

// batchOf returns the documents of a first batch.
func batchOf(t *testing.T, reply bson.Raw) string {
	t.Helper()
	var results []string
	batch, _ := reply.Lookup("cursor", "firstBatch").Array()
	for v := range batch.Values() {
		text, err := bson.MarshalExtJSON(bson.Raw(v.Value), false)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, string(text))
	}
	return strings.Join(results, " ")
}

func find(filter, projection string) string {
	return `{"find": "c", "filter": ` + filter + `, "projection": ` + projection + `}`
}

// computed is the value of an expression.
func computed(expression string) string {
	return `{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"_id": 0, "r": ` + expression + `}}]}`
}

// staged is a pipeline of one stage.
func staged(stage string) string {
	return `{"aggregate": "c", "cursor": {}, "pipeline": [` + stage + `]}`
}

// windowed is the one output of a $setWindowFields, for each document.
func windowed(function, window string) string {
	return `{"aggregate": "c", "cursor": {}, "pipeline": [{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": {` + function +
		`, "window": {"documents": ` + window + `}}}}}, {"$project": {"_id": 0, "r": 1}}]}`
}

func TestMeasuredAnswers(t *testing.T) {
	const (
		pairs    = `[{"_id": 1, "x": 1, "y": 2}, {"_id": 2, "x": {"$numberDouble": "Infinity"}, "y": 4}, {"_id": 3, "x": 3, "y": 6}]`
		numbers  = `[{"_id": 1, "x": 10.0}, {"_id": 2, "x": {"$numberDouble": "NaN"}}, {"_id": 3, "x": 30.0}, {"_id": 4, "x": 40.0}]`
		array    = `[{"_id": 1, "a": [1, 2, 3]}]`
		decimals = `[{"_id": 1, "x": {"$numberDecimal": "1"}, "y": 2}, {"_id": 2, "x": 2, "y": {"$numberDecimal": "4"}}, {"_id": 3, "x": 3, "y": 6}]`
		place    = `[{"_id": 1, "l": {"type": "Point", "coordinates": [0, 0]}}]`
		point    = `{"$geometry": {"type": "Point", "coordinates": [0, 0]}`
		names    = `[{"_id": 1, "a": "caf\u00e9"}, {"_id": 2, "a": "Blue \u00d6yster"}, {"_id": 3, "a": "\u0661"}]`
	)
	tests := []measured{
		{pairs, windowed(`"$covariancePop": ["$x", "$y"]`, `["unbounded", "unbounded"]`), strings.TrimSpace(strings.Repeat(`{"r":{"$numberDouble":"Infinity"}} `, 3))},
		{pairs, windowed(`"$covariancePop": ["$x", "$y"]`, `[-1, 0]`), `{"r":0.0} {"r":0.0} {"r":0.0}`},
		{pairs, windowed(`"$covarianceSamp": ["$x", "$y"]`, `[-1, 0]`), `{"r":null} {"r":null} {"r":null}`},
		{pairs, windowed(`"$covariancePop": "$x"`, `[-1, 0]`), `{"r":null} {"r":null} {"r":null}`},
		{decimals, windowed(`"$covarianceSamp": ["$x", "$y"]`, `["unbounded", "unbounded"]`),
			strings.TrimSpace(strings.Repeat(`{"r":{"$numberDecimal":"2"}} `, 3))},
		{numbers, windowed(`"$stdDevPop": "$x"`, `[-1, 0]`), `{"r":0} {"r":null} {"r":null} {"r":5.0}`},
		{numbers, windowed(`"$stdDevSamp": "$x"`, `[0, 0]`), `{"r":null} {"r":null} {"r":null} {"r":null}`},
		{`[{"_id": 1}]`, `{"aggregate": "c", "cursor": {}, "pipeline": [{"$setWindowFields": {"sortBy": {"a": 1, "b": 1}, "output": {"r": {"$rank": {}}}}}]}`, "5371602"},

		{array, find(`{}`, `{"a": {"$slice": {"$numberLong": "9223372036854775807"}}}`), `{"_id":1,"a":[1,2,3]}`},
		{array, find(`{}`, `{"a": {"$slice": {"$numberLong": "-9223372036854775808"}}}`), `{"_id":1,"a":[1,2,3]}`},
		{array, find(`{}`, `{"a": {"$slice": {"$numberDouble": "NaN"}}}`), `{"_id":1,"a":[]}`},
		{array, find(`{}`, `{"a": {"$elemMatch": {"$sampleRate": 0.5}}}`), "2"},
		{`[{"_id": 1, "a": {"$numberDecimal": "9.5"}}, {"_id": 2, "a": {"$numberDecimal": "8.7"}}]`, find(`{"a": {"$mod": [3, 0]}}`, `{"_id": 1}`), `{"_id":1}`},
		{`[{"_id": 1, "a": {"$binary": {"base64": "Bg==", "subType": "02"}}}]`, find(`{"a": {"$bitsAllSet": [0]}}`, `{"_id": 1}`), `{"_id":1}`},
		{array, `{"update": "c", "updates": [{"q": {}, "u": {"$pull": {"a": {"$eq": 2}}}}]}`, `{"_id":1,"a":[1,3]}`},

		{place, find(`{"l": {"$geoIntersects": `+point+`}, "$eq": 1}}`, `{}`), "2"},
		{place, find(`{"l": {"$geoWithin": {"$polygon": [[0, 0], [0, 1], [1, 1]], "$box": [[0, 0], [1, 1]]}}}`, `{}`), "2"},
		{place, find(`{"l": {"$near": `+point+`, "$maxDistance": -1}}}`, `{}`), "2"},
		{place, find(`{"l": {"$near": `+point+`, "$minDistance": {"$numberDouble": "Infinity"}}}}`, `{}`), "2"},
		{place, `{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"l": {"$near": ` + point + `}}}}]}`, "5626500"},
		{place, find(`{"$jsonSchema": {"properties": {"x": {"bsonType": "integer"}}}}`, `{}`), "9"},

		{names, find(`{"a": {"$regex": "(*UCP)^\\w+$"}}`, `{"_id": 1}`), `{"_id":1} {"_id":3}`},
		{names, find(`{"a": {"$regex": "^\\w+$"}}`, `{"_id": 1}`), ``},
		{names, find(`{"a": {"$regex": "(*UCP)\\byster"}}`, `{"_id": 1}`), ``},
		{names, find(`{"a": {"$regex": "\\byster"}}`, `{"_id": 1}`), `{"_id":2}`},
		{names, find(`{"a": {"$regex": "(*UTF)(*UCP)^\\d$"}}`, `{"_id": 1}`), `{"_id":3}`},
		{names, find(`{"a": {"$regex": "(*UCP)[[:alpha:]]$"}}`, `{"_id": 1}`), `{"_id":1} {"_id":2}`},
		{array, computed(`{"$year": {"$toDate": {"$oid": "800000000000000000000000"}}}`), `{"r":1901}`},
		{array, computed(`{"$gt": [{"$ln": {"$numberDouble": "5E-324"}}, -744]}`), `{"r":false}`},
		{array, computed(`{"$gt": [{"$log10": {"$numberDouble": "5E-324"}}, -323]}`), `{"r":false}`},
		{array, computed(`{"$mod": [10, 3.0]}`), `{"r":1.0}`},
		{array, computed(`{"$mod": [10, {"$numberDecimal": "0"}]}`), "5733415"},
		{array, computed(`{"$subtract": [{"$date": {"$numberLong": "1000"}}, 2.5]}`), `{"r":{"$date":"1970-01-01T00:00:00.997Z"}}`},
		{array, computed(`{"$toString": 1e15}`), `{"r":"1000000000000000"}`},
		{array, computed(`{"$toString": {"$add": [0.1, 0.2]}}`), `{"r":"0.30000000000000004"}`},
		{array, computed(`{"$toString": {"$numberDouble": "5E-324"}}`), `{"r":"5e-324"}`},
		{array, computed(`{"$toDouble": "+0x1.8p1"}`), `{"r":3.0}`},
		{array, computed(`{"$toDouble": "-0xff"}`), `{"r":-255.0}`},
		{array, computed(`{"$toDouble": "0xff"}`), "241"},
		{array, computed(`{"$toDouble": "+0xp0"}`), "241"},
		{array, computed(`{"$dateDiff": {"startDate": {"$date": "2021-03-14T06:00:00Z"}, "endDate": {"$date": "2021-03-14T08:00:00Z"}, "unit": "hour", "timezone": "America/New_York"}}`), `{"r":2}`},
		{array, computed(`{"$dateToString": {"date": {"$date": "2021-03-14T06:00:00Z"}, "timezone": "UTC"}}`), `{"r":"2021-03-14T06:00:00.000Z"}`},
		{array, computed(`{"$dateDiff": {"startDate": {"$date": "2021-03-14T06:00:00Z"}, "endDate": {"$date": "2021-03-14T08:00:00Z"}, "unit": "hours"}}`), "9"},
		{array, computed(`{"$dateTrunc": {"date": 1, "unit": "day"}}`), "5166307"},
		{array, computed(`{"$year": {"date": {"$date": "2021-03-14T06:00:00Z"}, "timezone": 1}}`), "40517"},
		{array, computed(`{"$switch": {"branches": [{"case": true, "then": "ok"}, {"case": {"$divide": [1, 0]}, "then": 1}]}}`), `{"r":"ok"}`},
		{array, computed(`{"$split": ["a", 1]}`), "10503900"},
		{array, computed(`{"$replaceOne": {"input": 1, "find": "a", "replacement": "b"}}`), "10503904"},
		{array, computed(`{"$setEquals": ["$a", "$_id"]}`), "17044"},
		{array, computed(`{"$regexMatch": {"input": "a", "regex": "` + strings.Repeat("a", 40000) + `"}}`), "51111"},
		{`[{"_id": 1, "to": 2}, {"_id": 2, "to": 3}, {"_id": 3}]`, `{"aggregate": "c", "cursor": {}, "pipeline": [{"$match": {"_id": 1}}, {"$graphLookup": {
			"from": "c", "startWith": "$to", "connectFromField": "to", "connectToField": "_id", "as": "r",
			"restrictSearchWithMatch": {"$expr": {"$lt": ["$_id", 3]}}}}, {"$project": {"_id": 0, "r._id": 1}}]}`, `{"r":[{"_id":2}]}`},
		{array, computed(`{"$indexOfArray": [[1], 1, 1.5]}`), "9711600"},
		{array, computed(`{"$substrBytes": ["abc", {"$numberDecimal": "1"}, 1]}`), `{"r":"b"}`},
		{array, computed(`{"$strLenBytes": "` + strings.Repeat("a", 16<<20) + `"}`), "16493"},
		{array, computed(`{"$sortArray": {"input": [1], "sortBy": 2}}`), "2942506"},
		{array, computed(`{"$rand": [1]}`), "3040501"},

		{"", `{"insert": "c", "documents": [{"a": "` + strings.Repeat("a", 16<<20) + `"}]}`, "10334"},

		{array, staged(`{"$collStats": {"latencyStats": 1}}`), "14"},
		{array, staged(`{"$collStats": {"nosuch": {}}}`), "40415"},
		{array, staged(`{"$collStats": {"count": {"a": 1}}}`), "31170"},
		{array, staged(`{"$changeStream": 1}`), "6188500"},
		{array, staged(`{"$out": {"db": 1, "coll": "d"}}`), "14"},
		{array, staged(`{"$out": {"coll": "d"}}`), "40414"},
		{array, staged(`{"$out": {"db": "db", "coll": "d", "nosuch": 1}}`), "40415"},
		{array, staged(`{"$out": {"db": "db", "coll": "d", "timeseries": {"timeField": null}}}`), "40414"},
		{array, staged(`{"$out": {"db": "db", "coll": "d", "timeseries": {"timeField": "t", "granularity": 1}}}`), "14"},
		{array, staged(`{"$out": {"db": "db", "coll": "c", "timeseries": {"timeField": "t"}}}`), "7268700"},

		{"", find(`{"a": {"$regex": "`+strings.Repeat("a", 40000)+`"}}`, `{}`), "51091"},

		{array, `{"aggregate": "c", "pipeline": [], "explain": false}`, "9"},
		{array, `{"aggregate": "c", "pipeline": [], "cursor": {}, "allowDiskUse": 1}`, "14"},
		{array, `{"aggregate": "c", "pipeline": [], "cursor": {}, "allowDiskUse": null}`, "14"},
		{array, `{"aggregate": "c", "pipeline": [], "cursor": {}, "let": {"a": "$x"}}`, "4890500"},
		{array, `{"aggregate": "c", "pipeline": [], "cursor": {}, "let": {"a": {"$map": {"input": [1], "in": "$$ROOT"}}}}`, "4890500"},
		{array, `{"aggregate": "c", "pipeline": [], "cursor": {}, "let": {"a": {"$map": {"input": [1], "in": "$$this"}}}}`, `{"_id":1,"a":[1,2,3]}`},
		{array, `{"aggregate": "c", "pipeline": [], "cursor": {}, "let": {"a": "$$NOW"}}`, "51144"},
		{array, `{"aggregate": "c", "pipeline": [], "cursor": {}, "let": {"CLUSTER_TIME": 1}}`, "4738901"},
		{array, staged(strings.TrimSuffix(strings.Repeat(`{"$skip": 0},`, 1001), ",")), "7749501"},
		{place, `{"aggregate": "c", "cursor": {}, "hint": {"$natural": 1}, "pipeline": [{"$geoNear": {
			"near": {"type": "Point", "coordinates": [0, 0]}, "distanceField": "d", "key": "l"}}]}`, "2"},
		{array, `{"killCursors": 1, "cursors": [{"$numberLong": "1"}]}`, "73"},
		{array, `{"killCursors": "c", "cursors": null}`, "40414"},
		{array, `{"killCursors": "c", "cursors": [null]}`, `{"_id":1,"a":[1,2,3]}`},
		{array, `{"distinct": "c", "key": "a."}`, `{"_id":1,"a":[1,2,3]}`},
		{array, `{"distinct": "c", "key": "$a"}`, `{"_id":1,"a":[1,2,3]}`},
		{array, `{"distinct": "c", "key": ""}`, `{"_id":1,"a":[1,2,3]}`},
		{array, `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "weights": {"a": 1}}]}`, "67"},
		{array, `{"createIndexes": "c", "indexes": [{"key": {"a": "text"}, "name": "x", "weights": [1]}]}`, "67"},
		{array, `{"createIndexes": "c", "indexes": [{"key": {"a": "wildcard"}, "name": "x"}]}`, "7246202"},
		{array, `{"createIndexes": "c", "indexes": [{"key": {"$**": "wildcard"}, "name": "x"}]}`, "67"},
		{array, `{"createIndexes": "c", "indexes": [{"key": {"$**": 1, "a.$**": 1}, "name": "x"}]}`, "7246201"},
		{array, `{"createIndexes": "c", "indexes": [{"key": {"a.$**.$**": 1}, "name": "x"}]}`, "67"},
		{array, `{"createIndexes": "c", "indexes": [{"key": {"$**.$**": 1}, "name": "x"}]}`, "67"},
		{array, `{"createIndexes": "c", "indexes": [{"key": {"$**": -1}, "name": "x"}]}`, `{"_id":1,"a":[1,2,3]}`},
		{array, `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "x", "expireAfterSeconds": {"$numberDouble": "NaN"}}]}`, "67"},
	}
	for _, option := range []string{"weights", "default_language", "language_override", "textIndexVersion"} {
		for _, wrong := range []string{`true`, `null`, `{"$date": {"$numberLong": "1"}}`, `{"$minKey": 1}`, `{"$oid": "507f1f77bcf86cd799439011"}`} {
			tests = append(tests, measured{"", `{"createIndexes": "c", "indexes": [{"key": {"a": "text"}, "name": "x", "` + option + `": ` + wrong + `}]}`, "14"})
		}
	}
	for _, wrong := range []string{`0`, `2`, `-2`, `0.5`, `true`, `null`, `"x"`, `[1]`, `{"a": 1}`, `{"$numberDouble": "NaN"}`, `{"$numberDecimal": "Infinity"}`} {
		hint := `"hint": {"$natural": ` + wrong + `}`
		tests = append(tests, measured{array, `{"find": "c", ` + hint + `}`, "2"}, measured{array, `{"count": "c", ` + hint + `}`, "2"},
			measured{array, `{"distinct": "c", "key": "a", ` + hint + `}`, "2"},
			measured{array, `{"aggregate": "c", "pipeline": [], "cursor": {}, ` + hint + `}`, "2"})
	}
	for _, right := range []string{`1`, `-1`, `1.0`, `{"$numberLong": "-1"}`, `{"$numberDecimal": "1"}`} {
		tests = append(tests, measured{array, `{"find": "c", "hint": {"$natural": ` + right + `}}`, `{"_id":1,"a":[1,2,3]}`})
	}
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.2.4"), mongotest.InMemory(), mongotest.NoScripting())
	c := dialNode(t, d, d.Node(0))
	for _, m := range tests {
		if got := askMeasured(t, c, m); got != m.want {
			t.Errorf("%.300s\n got %s\nwant %s", m.cmd, got, m.want)
		}
	}
}

// TestOutMakesTimeSeries: $out with the timeseries option makes a collection as create would, fills
// it, and refuses one that has other options.
func TestOutMakesTimeSeries(t *testing.T) {
	for name, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(2, 1)} {
		d := mongotest.Start(t, topology, mongotest.Version("8.2.4"), mongotest.InMemory(), mongotest.NoScripting())
		c := dialNode(t, d, d.Node(0))
		out := func(series string) bson.Raw {
			return askText(t, c, "db", staged(`{"$out": {"db": "db", "coll": "made", "timeseries": `+series+`}}`))
		}
		ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1, "t": {"$date": "2024-01-01T00:00:00Z"}, "m": 1}]}`))
		for range 2 { // made, then filled anew
			ok(t, out(`{"timeField": "t", "metaField": "m", "granularity": "minutes"}`))
			ok(t, askText(t, c, "db", `{"create": "same", "timeseries": {"timeField": "t", "metaField": "m", "granularity": "minutes"}}`))
			var options [2]string
			for i, coll := range []string{"made", "same"} {
				reply := ok(t, askText(t, c, "db", `{"listCollections": 1, "filter": {"name": "`+coll+`"}}`))
				options[i] = fmt.Sprint(reply.Lookup("cursor", "firstBatch", "0", "type"), reply.Lookup("cursor", "firstBatch", "0", "options"))
				reply = ok(t, askText(t, c, "db", `{"listIndexes": "`+coll+`"}`))
				options[i] += fmt.Sprint(reply.Lookup("cursor", "firstBatch"))
			}
			if options[0] != options[1] {
				t.Errorf("%s: $out made %s, create %s", name, options[0], options[1])
			}
			ok(t, askText(t, c, "db", `{"drop": "same"}`))
			if n := ok(t, askText(t, c, "db", `{"count": "made"}`)).Lookup("n"); fmt.Sprint(n) != "1" {
				t.Errorf("%s: it has %v documents", name, n)
			}
		}
		if got := errorOf(out(`{"timeField": "t"}`)); !strings.HasPrefix(got, "7406103:") {
			t.Errorf("%s: with other options: %s", name, got)
		}
	}
}

// TestNowOfABatch: $$NOW is one time for all statements of a command.
func TestNowOfABatch(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.InMemory(), mongotest.NoScripting())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1}]}`))
	var updates []string
	for i := range 2000 {
		updates = append(updates, fmt.Sprintf(`{"q": {"_id": 1}, "u": [{"$set": {"f%d": "$$NOW"}}]}`, i))
	}
	ok(t, askText(t, c, "db", `{"update": "c", "updates": [`+strings.Join(updates, ",")+`]}`))
	reply := ok(t, askText(t, c, "db", `{"find": "c", "projection": {"f0": 1, "f1999": 1}}`))
	first, last := reply.Lookup("cursor", "firstBatch", "0", "f0"), reply.Lookup("cursor", "firstBatch", "0", "f1999")
	if first.IsZero() || fmt.Sprint(first) != fmt.Sprint(last) {
		t.Errorf("$$NOW is %v for the first statement and %v for the last", first, last)
	}
}

// TestHiddenTextIndex: a hidden index answers no $text, on versions that have hidden ones.
func TestHiddenTextIndex(t *testing.T) {
	for _, version := range []string{"4.4.0", "6.0", "8.2.4"} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory(), mongotest.NoScripting())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "db", `{"createIndexes": "c", "indexes": [{"key": {"a": "text"}, "name": "x"}]}`))
		for _, hidden := range []string{"true", "false"} {
			ok(t, askText(t, c, "db", `{"collMod": "c", "index": {"name": "x", "hidden": `+hidden+`}}`))
			got, want := errorOf(askText(t, c, "db", find(`{"$text": {"$search": "a"}}`, `{}`))), "ok"
			if hidden == "true" {
				want = "291: "
			}
			if got != want && !(want == "291: " && strings.HasPrefix(got, want)) {
				t.Errorf("%s: hidden %s: got %s, want %s", version, hidden, got, want)
			}
		}
	}
}

// TestNumbersOfGetMore: since version 5.0 a batch size of any number is cut to an int64, and one
// that is no number is none.
func TestNumbersOfGetMore(t *testing.T) {
	for _, version := range []string{"5.0", "7.0", "8.2.4"} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory(), mongotest.NoScripting())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{}, {}, {}]}`))
		for _, size := range []string{`{"$numberDouble": "NaN"}`, `{"$numberDouble": "Infinity"}`, `1e300`, `0.9`, `-0.0`,
			`{"$numberDecimal": "NaN"}`, `{"$numberDecimal": "1E+400"}`, `{"$numberDecimal": "Infinity"}`, `{"$numberLong": "9223372036854775807"}`} {
			id := ok(t, askText(t, c, "db", `{"find": "c", "batchSize": 1}`)).Lookup("cursor", "id")
			reply := askText(t, c, "db", fmt.Sprintf(`{"getMore": {"$numberLong": "%v"}, "collection": "c", "batchSize": %s}`, id, size))
			batch, _ := reply.Lookup("cursor", "nextBatch").Array()
			n := 0
			for range batch.Values() {
				n++
			}
			if errorOf(reply) != "ok" || n != 2 {
				t.Errorf("%s: batchSize %s: %s, %d documents", version, size, errorOf(reply), n)
			}
		}
		id := ok(t, askText(t, c, "db", `{"find": "c", "batchSize": 1}`)).Lookup("cursor", "id")
		reply := askText(t, c, "db", fmt.Sprintf(`{"getMore": {"$numberLong": "%v"}, "collection": "c", "batchSize": {"$numberDouble": "-Infinity"}}`, id))
		if errorOf(reply) == "ok" {
			t.Errorf("%s: a batchSize of -Infinity is taken", version)
		}
	}
}
