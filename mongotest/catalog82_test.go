package mongotest_test

import (
	"strings"
	"testing"

	"allium/mongotest"
)

// What commands about collections say since server 8.1, as a server of 8.2 does.
func TestCatalogSince81(t *testing.T) {
	const uuid, short = `{"$uuid": "01234567-89ab-cdef-0123-456789abcdef"}`, `{"$binary": {"base64": "AQID", "subType": "04"}}`
	key := `{"$uuid": "fedcba98-7654-3210-0123-456789abcdef"}`
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1}], "$db": "t"}`},
		{cmd: `{"insert": "d", "documents": [{"_id": 1}], "$db": "t"}`},
		{cmd: `{"create": "s", "timeseries": {"timeField": "t"}, "$db": "t"}`},
		{cmd: `{"create": "v", "viewOn": "c", "pipeline": [null, {"$limit": 1}, null], "$db": "t"}`},
		{cmd: `{"listCollections": 1, "filter": {"name": "v"}, "$db": "t"}`,
			want: map[string]string{"cursor.firstBatch.0.options.pipeline": `[{"$limit":1}]`}},
		{cmd: `{"collMod": "v", "viewOn": "c", "pipeline": [{"$skip": 1}, null], "$db": "t"}`},
		{cmd: `{"listCollections": 1, "filter": {"name": "v"}, "$db": "t"}`,
			want: map[string]string{"cursor.firstBatch.0.options.pipeline": `[{"$skip":1}]`}},

		// Renaming: UUIDs of what is renamed and dropped, and what cannot be renamed.
		{cmd: `{"renameCollection": null, "to": "t.e", "$db": "admin"}`, code: 40414},
		{cmd: `{"renameCollection": "t.c", "to": "t.d", "dropTarget": null, "$db": "admin"}`, code: 14},
		{cmd: `{"renameCollection": "t.c", "to": "t.d", "dropTarget": 1, "$db": "admin"}`, code: 14},
		{cmd: `{"renameCollection": "t.c", "to": "t.d", "dropTarget": ` + short + `, "$db": "admin"}`, code: 207},
		{cmd: `{"renameCollection": "t.c", "to": "t.d", "dropTarget": ` + uuid + `, "$db": "admin"}`, code: 361,
			want: map[string]string{"expectedCollection": `"d"`, "actualCollection": "null", "db": `"t"`}},
		{cmd: `{"renameCollection": "t.nosuch", "to": "t.d", "dropTarget": ` + uuid + `, "$db": "admin"}`, code: 361},
		{cmd: `{"renameCollection": "t.c", "to": "o.d", "dropTarget": ` + uuid + `, "$db": "admin"}`, code: 72},
		{cmd: `{"renameCollection": "t.c", "to": "t.e", "collectionUUID": ` + uuid + `, "$db": "admin"}`, code: 361},
		{cmd: `{"renameCollection": "t.c", "to": "t.c", "$db": "admin"}`, code: 20},
		{cmd: `{"renameCollection": "t..c", "to": "t.e", "$db": "admin"}`, code: 73},
		{cmd: `{"renameCollection": "t.c", "to": "a$b.e", "$db": "admin"}`, code: 20},
		{cmd: `{"renameCollection": "t.system.js", "to": "t.e", "$db": "admin"}`, code: 20},
		{cmd: `{"renameCollection": "t.c", "to": "t.system.users", "$db": "admin"}`, code: 20},
		{cmd: `{"renameCollection": "t.c", "to": "local.oplog.x", "$db": "admin"}`, code: 20},
		{cmd: `{"renameCollection": "t.s", "to": "t.e", "$db": "admin"}`, code: 166},
		{cmd: `{"renameCollection": "t.c", "to": "t.s", "dropTarget": true, "$db": "admin"}`, code: 48},
		{cmd: `{"renameCollection": "t.c", "to": "local.e", "$db": "admin"}`},
		{cmd: `{"renameCollection": "local.e", "to": "t.c", "$db": "admin"}`},
		{cmd: `{"renameCollection": "t.c", "to": "t.d", "dropTarget": true, "$db": "admin"}`},

		{cmd: `{"cloneCollectionAsCapped": "a$b", "toCollection": "k", "size": 4096, "$db": "t"}`, code: 73},
		{cmd: `{"cloneCollectionAsCapped": "d", "toCollection": "v", "size": 4096, "$db": "t"}`, code: 166},
		{cmd: `{"cloneCollectionAsCapped": "d", "toCollection": "system.buckets.x", "size": 4096, "$db": "t"}`, code: 20},
		{cmd: `{"convertToCapped": "system.views", "size": 4096, "$db": "t"}`, code: 2},
		{cmd: `{"convertToCapped": "system.buckets.s", "size": 4096, "$db": "t"}`, code: 20},
		{cmd: `{"create": "` + strings.Repeat("x", 240) + `", "$db": "t"}`},
		{cmd: `{"convertToCapped": "` + strings.Repeat("x", 240) + `", "size": 4096, "$db": "t"}`, code: 73},

		// Clustered collections, whose duplicates of some numbers have errors of their own.
		{cmd: `{"create": "k", "clusteredIndex": {"key": {"_id": 1}, "unique": true}, "$db": "t"}`},
		{cmd: `{"insert": "k", "documents": [{"_id": {"$numberDouble": "NaN"}}, {"_id": {"$numberDouble": "Infinity"}}, {"_id": 1}], "$db": "t"}`},
		{cmd: `{"insert": "k", "documents": [{"_id": {"$numberDecimal": "NaN"}}], "$db": "t"}`, want: map[string]string{"writeErrors.0.code": "50819"}},
		{cmd: `{"insert": "k", "documents": [{"_id": {"$numberDecimal": "Infinity"}}], "$db": "t"}`, want: map[string]string{"writeErrors.0.code": "50826"}},
		{cmd: `{"insert": "k", "documents": [{"_id": 1.0}], "$db": "t"}`, want: map[string]string{"writeErrors.0.code": "11000"}},
		{cmd: `{"insert": "k", "documents": [{"_id": "` + strings.Repeat("x", 8<<20-2) + `"}], "$db": "t"}`, want: map[string]string{"n": "1"}},
		{cmd: `{"insert": "k", "documents": [{"_id": "` + strings.Repeat("x", 8<<20-1) + `"}], "$db": "t"}`, want: map[string]string{"writeErrors.0.code": "5894900"}},

		// What is wrong with encrypted fields counts before what a standalone cannot have.
		{cmd: `{"create": "e", "encryptedFields": {"fields": null}, "$db": "t"}`, code: 40414},
		{cmd: `{"create": "e", "encryptedFields": {"fields": []}, "capped": true, "size": 4096, "$db": "t"}`, code: 6367301},
		{cmd: `{"create": "e", "encryptedFields": {"fields": []}, "timeseries": {"timeField": "t"}, "$db": "t"}`, code: 6346401},
		{cmd: `{"create": "e", "encryptedFields": {"fields": [{"path": "a", "keyId": ` + key + `}]}, "$db": "t"}`, code: 6346402},

		{cmd: `{"listDatabases": 1, "filter": {"$where": "true"}, "$db": "admin"}`, code: 2},
		{cmd: `{"listDatabases": 1, "filter": {"$text": {"$search": "a"}}, "$db": "admin"}`, code: 2},
		{cmd: `{"listDatabases": 1, "filter": {"name": {"$near": [0, 0]}}, "$db": "admin"}`, code: 5626500},
		{cmd: `{"listDatabases": 1, "filter": {"$expr": {"$eq": ["$$NOW", 1]}}, "$db": "admin"}`, code: 51144},
		{cmd: `{"count": "d", "query": {"$expr": {"$eq": ["$$NOW", 1]}}, "$db": "t"}`, code: 51144},
		{cmd: `{"find": "d", "filter": {"$expr": {"$eq": ["$$CLUSTER_TIME", 1]}}, "$db": "t"}`, code: 10071200},
		{cmd: `{"update": "d", "updates": [{"q": {}, "u": [{"$set": {"x": {"$type": "$$CLUSTER_TIME"}}}]}], "$db": "t"}`},
		{cmd: `{"find": "d", "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.x": `"timestamp"`}},

		{cmd: `{"validateDBMetadata": 1, "apiParameters": {"version": "1"}, "db": "", "$db": "admin"}`, code: 28539},
		{cmd: `{"validateDBMetadata": 1, "apiParameters": {"version": "1"}, "db": "a b", "$db": "admin"}`, code: 13280},
		{cmd: `{"validateDBMetadata": 1, "apiParameters": {"version": "1"}, "db": null, "$db": "admin"}`},
		{cmd: `{"validateDBMetadata": 1, "apiParameters": {"version": "1", "strict": null}, "$db": "admin"}`, code: 14},
	}, mongotest.Standalone(), mongotest.Version("8.2.4"))
}

// What commands that look at a deployment say since server 8.1.
func TestDiagnosisSince81(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "x": 1}, {"_id": 2, "x": 2}], "$db": "t"}`},
		{cmd: `{"create": "s", "timeseries": {"timeField": "t"}, "$db": "t"}`},
		{cmd: `{"validate": "c", "metadata": true, "full": true, "$db": "t"}`, code: 72},
		{cmd: `{"validate": "c", "metadata": true, "repair": true, "$db": "t"}`, code: 72},
		{cmd: `{"validate": "c", "checkBSONConformance": true, "repair": true, "$db": "t"}`, code: 72},
		{cmd: `{"validate": "c", "background": 1, "$db": "t"}`, code: 115},
		{cmd: `{"validate": "c", "$db": "t"}`, want: map[string]string{"repairMode": `"None"`, "nrecords": "2",
			"indexDetails._id_.spec": `{"v":2,"key":{"_id":1},"name":"_id_"}`}},
		{cmd: `{"validate": "c", "fixMultikey": true, "$db": "t"}`, want: map[string]string{"repairMode": `"AdjustMultikey"`}},
		{cmd: `{"validate": "c", "repair": true, "$db": "t"}`, want: map[string]string{"repairMode": `"FixErrors"`}},
		{cmd: `{"validate": "c", "metadata": true, "$db": "t"}`, want: map[string]string{"nrecords": "", "nIndexes": "1"}},

		{cmd: `{"dataSize": "t.s", "$db": "t"}`, code: 166},
		{cmd: `{"dataSize": "t.c", "min": {"x": 0}, "max": {"x": 5}, "$db": "t"}`, code: 96},
		{cmd: `{"dataSize": "t.c", "keyPattern": {"_id": 1}, "min": {"_id": 5}, "$db": "t"}`, code: 2},
		{cmd: `{"dataSize": "t.c", "keyPattern": {"_id": 1}, "min": {"_id": 5}, "max": {"_id": 1}, "$db": "t"}`,
			want: map[string]string{"numObjects": "0"}},
		{cmd: `{"dataSize": "t.c", "keyPattern": {"_id": 1}, "min": {"_id": 1}, "max": {"_id": 2}, "$db": "t"}`,
			want: map[string]string{"numObjects": "1"}},

		{cmd: `{"serverStatus": 1, "$db": "admin"}`, want: map[string]string{"mirroredReads": "", "locks": "{}",
			"globalLock.currentQueue": `{"total":0,"readers":0,"writers":0}`}},
		{cmd: `{"serverStatus": 1, "mirroredReads": {}, "globalLock": 0, "$db": "admin"}`,
			want: map[string]string{"mirroredReads": `{"seen":0,"sent":0}`, "globalLock": ""}},
		// Of several parameters all are set or none.
		{cmd: `{"setParameter": 1, "logLevel": 3, "nosuch": 1, "$db": "admin"}`, code: 72},
		{cmd: `{"getParameter": 1, "logLevel": 1, "$db": "admin"}`, want: map[string]string{"logLevel": "0"}},
		{cmd: `{"setParameter": 1, "logLevel": -1, "$db": "admin"}`, code: 2},
		{cmd: `{"setParameter": 1, "logLevel": {"$numberLong": "2147483648"}, "$db": "admin"}`, code: 2},
		{cmd: `{"setParameter": 1, "logLevel": true, "ttlMonitorSleepSecs": 60, "$db": "admin"}`, want: map[string]string{"was": "0"}},
		{cmd: `{"getParameter": 1, "logLevel": 1, "$db": "admin"}`, want: map[string]string{"logLevel": "1"}},

		{cmd: `{"count": "c", "readConcern": {"afterClusterTime": {"$timestamp": {"t": 1, "i": 1}}}, "$db": "t"}`, code: 20},
		{cmd: `{"find": "c", "readConcern": {"level": "linearizable"}, "$db": "t"}`, code: 123},
		{cmd: `{"update": "c", "updates": [{"q": {}, "u": {"$rename": {"x": "a\u0000"}}}], "$db": "t"}`, want: map[string]string{"writeErrors.0.code": "9867600"}},
		{cmd: `{"hostInfo": 1, "$db": "admin"}`, want: map[string]string{"system.numCpuSockets": "1", "system.numaEnabled": "false"}},
	}, mongotest.Standalone(), mongotest.Version("8.2.4"))
}

// What stages say since server 8.1.
func TestStagesSince81(t *testing.T) {
	stage := func(s string) string { return `{"aggregate": "c", "pipeline": [` + s + `], "cursor": {}, "$db": "t"}` }
	mendSteps(t, []mendStep{
		{cmd: `{"create": "c", "collation": {"locale": "en", "strength": 2}, "$db": "t"}`},
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}], "$db": "t"}`},
		{cmd: `{"create": "v", "viewOn": "c", "pipeline": [], "collation": {"locale": "en", "strength": 2}, "$db": "t"}`},
		{cmd: `{"create": "p", "viewOn": "c", "pipeline": [], "$db": "t"}`},

		{cmd: stage(`{"$planCacheStats": {"allHosts": 1}}`), code: 13111},
		{cmd: stage(`{"$planCacheStats": {"allHosts": null}}`), code: 13111},
		{cmd: stage(`{"$planCacheStats": {"allHosts": true}}`), code: 4503200},
		{cmd: stage(`{"$planCacheStats": {"allHosts": false}}`), want: map[string]string{"cursor.firstBatch": "[]"}},
		{cmd: stage(`{"$planCacheStats": {"other": 1}}`), code: 9},

		{cmd: stage(`{"$match": {"a": "x"}}, {"$count": "n"}`), want: map[string]string{"cursor.firstBatch": `[{"n":2}]`}},
		{cmd: stage(`{"$collStats": {"queryExecStats": {}}}, {"$project": {"n": "$queryExecStats.collectionScans"}}`),
			want: map[string]string{"cursor.firstBatch": `[{"n":{"total":1,"nonTailable":1}}]`}},
		{cmd: stage(`{"$collStats": {"latencyStats": {"histograms": true}}}, {"$project": {"n": {"$sum": "$latencyStats.writes.histogram.count"}, "t": "$latencyStats.transactions.histogram"}}`),
			want: map[string]string{"cursor.firstBatch": `[{"n":1,"t":[]}]`}},
		{cmd: stage(`{"$collStats": {"latencyStats": {}}}, {"$project": {"n": {"$type": "$latencyStats.writes.histogram"}}}`),
			want: map[string]string{"cursor.firstBatch": `[{"n":"missing"}]`}},
		{cmd: `{"aggregate": "nosuch", "pipeline": [{"$collStats": {"queryExecStats": {}}}], "cursor": {}, "$db": "t"}`, code: 26},

		{cmd: stage(`{"$sample": {"size": {"$numberDecimal": "Infinity"}}}, {"$count": "n"}`), want: map[string]string{"cursor.firstBatch": `[{"n":2}]`}},
		{cmd: stage(`{"$sample": {"size": -1, "other": 1}}`), code: 28748},
		{cmd: stage(`{"$sample": {"size": "a", "other": 1}}`), code: 28746},
		{cmd: stage(`{"$sample": {"size": -1}}`), code: 28747},
		{cmd: stage(`{"$sample": {}}`), code: 28749},
		{cmd: stage(`{"$unset": ["$a", "a\u0000b"]}`), code: 9527900},
		{cmd: stage(`{"$densify": {"field": "n", "range": {"step": 1, "bounds": ["$$NOW", 10]}}}`), code: 5733402},

		// Views that further stages read have the collation of the command, and an empty one is
		// none.
		{cmd: stage(`{"$unionWith": "v"}, {"$count": "n"}`), want: map[string]string{"cursor.firstBatch": `[{"n":4}]`}},
		{cmd: stage(`{"$unionWith": "p"}`), code: 167},
		{cmd: stage(`{"$lookup": {"from": "p", "localField": "a", "foreignField": "a", "as": "l"}}`), code: 167},
		{cmd: stage(`{"$graphLookup": {"from": "p", "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "l"}}`), code: 167},
		{cmd: `{"aggregate": "c", "pipeline": [{"$match": {"a": "x"}}, {"$count": "n"}], "collation": {}, "cursor": {}, "$db": "t"}`,
			want: map[string]string{"cursor.firstBatch": `[{"n":2}]`}},
	}, mongotest.Standalone(), mongotest.Version("8.2.4"))
}
