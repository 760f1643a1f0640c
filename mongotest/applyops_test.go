package mongotest_test

import (
	"testing"

	"allium/mongotest"
)

// What applyOps makes of the entries of an oplog, as a restore replays them: more than once, and
// from a time before the copy was made.
func TestApplyOps(t *testing.T) {
	apply := func(op string) string { return `{"applyOps": [` + op + `], "$db": "admin"}` }
	one := map[string]string{"applied": "1", "results.0": "true"}
	command := func(o, more string) mendStep {
		return mendStep{cmd: apply(`{"op": "c", "ns": "t.$cmd", "o": ` + o + more + `}`), want: one}
	}
	doc := func(coll, want string) mendStep {
		return mendStep{cmd: `{"find": "` + coll + `", "$db": "t"}`, want: map[string]string{"cursor.firstBatch": want}}
	}
	for name, topology := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "member": mongotest.ReplicaSet(1)} {
		t.Run(name, func(t *testing.T) {
			mendSteps(t, []mendStep{
				{cmd: apply(`{"op": "i", "ns": "t.c", "o": {"_id": 1}}`), code: 26, text: "cannot apply insert or update operation on a non-existent namespace t.c",
					want: map[string]string{"applied": "1", "results.0": "false"}},
				{cmd: apply(`{"op": "d", "ns": "t.c", "o": {"_id": 1}}`), want: one},
				{cmd: apply(`{"op": "x", "ns": "t.c", "o": {"_id": 1}}`), code: 2, text: "'x' for field 'applyOps.op'"},
				command(`{"create": "c", "capped": true, "size": 8192, "idIndex": {"v": 2, "key": {"_id": 1}, "name": "_id_"}}`,
					`, "ui": {"$uuid": "01234567-89ab-cdef-0123-456789abcdef"}`),
				command(`{"create": "c", "capped": true, "size": 4096}`, ""), // there is one already
				{cmd: `{"listCollections": 1, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.options.capped": "true", "cursor.firstBatch.0.options.size": "8192",
					"cursor.firstBatch.0.info.uuid": `{"$binary":{"base64":"ASNFZ4mrze8BI0VniavN7w==","subType":"04"}}`}},
				command(`{"create": "d"}`, ""),
				command(`{"createIndexes": "d", "v": 2, "key": {"a": 1}, "name": "a_1", "expireAfterSeconds": 100}`, ""),
				command(`{"collMod": "d", "index": {"name": "a_1", "expireAfterSeconds": 200}}`, ""),
				command(`{"commitIndexBuild": "d", "indexes": [{"v": 2, "key": {"b": 1}, "name": "b_1"}]}`, ""),
				command(`{"createIndexes": "d", "v": 2, "key": {"c": 1}, "name": "c_1"}`, ""),
				command(`{"dropIndexes": "d", "index": "c_1"}`, ""),
				command(`{"deleteIndexes": "d", "index": "c_1"}`, ""), // it is gone already
				{cmd: `{"listIndexes": "d", "$db": "t"}`, want: map[string]string{"cursor.firstBatch.1.expireAfterSeconds": "200", "cursor.firstBatch.2.name": `"b_1"`, "cursor.firstBatch.3": ""}},

				// An insert takes the place of the document with its _id.
				{cmd: apply(`{"op": "i", "ns": "t.d", "o": {"_id": 1, "x": {"$timestamp": {"t": 0, "i": 0}}, "y": [1, 2, 3], "z": {"p": 1, "q": 2}}}`), want: one},
				{cmd: apply(`{"op": "i", "ns": "t.d", "o": {"_id": 1, "x": 5, "y": [1, 2, {"k": 1}], "z": {"p": 1, "q": 2}}}`), want: one},
				doc("d", `[{"_id":1,"x":5,"y":[1,2,{"k":1}],"z":{"p":1,"q":2}}]`),
				{cmd: apply(`{"op": "u", "ns": "t.d", "o": {"$v": 1, "$set": {"x": 6}, "$unset": {"y.1": true}}, "o2": {"_id": 1}}`), want: one},
				doc("d", `[{"_id":1,"x":6,"y":[1,null,{"k":1}],"z":{"p":1,"q":2}}]`),
				{cmd: apply(`{"op": "u", "ns": "t.d", "o": {"$v": 2, "diff": {"d": {"x": false}, "i": {"w": 1}, "sy": {"a": true, "l": 5, "u4": 9, "s2": {"u": {"k": 2}}}, "sz": {"u": {"q": 3}, "i": {"r": 4}}}},
					"o2": {"_id": 1}}`), want: one},
				doc("d", `[{"_id":1,"y":[1,null,{"k":2},null,9],"z":{"p":1,"q":3,"r":4},"w":1}]`),
				{cmd: apply(`{"op": "u", "ns": "t.d", "o": {"$v": 2, "diff": {"sy": {"a": true, "l": 1}, "sw": {"u": {"a": 1}}}}, "o2": {"_id": 1}}`), want: one},
				doc("d", `[{"_id":1,"y":[1],"z":{"p":1,"q":3,"r":4},"w":1}]`),
				{cmd: apply(`{"op": "u", "ns": "t.d", "o": {"$v": 2, "diff": {"x": {"a": 1}}}, "o2": {"_id": 1}}`), code: 4770500, text: "'x'"},
				{cmd: apply(`{"op": "u", "ns": "t.d", "o": {"$v": 2}, "o2": {"_id": 1}}`), code: 4772600, text: "Expected 'diff' field"},
				{cmd: apply(`{"op": "u", "ns": "t.d", "o": {"$v": 2, "diff": {"d": {"x": false}}}, "o2": {"_id": 2}}`), code: 218, text: "failed to apply update"},
				{cmd: apply(`{"op": "u", "ns": "t.d", "o": {"_id": 2, "n": 1}, "o2": {"_id": 2}}`), want: one},
				{cmd: apply(`{"op": "d", "ns": "t.d", "o": {"_id": 1}}`), want: one},
				doc("d", `[{"_id":2,"n":1}]`),

				// The operations of a transaction come as a list of their own.
				{cmd: apply(`{"op": "n", "ns": "", "o": {"msg": "noop"}}, {"op": "c", "ns": "admin.$cmd", "o": {"applyOps": [
					{"op": "i", "ns": "t.d", "o": {"_id": 3}}, {"op": "d", "ns": "t.d", "o": {"_id": 2}}]}}`), want: map[string]string{"applied": "2", "results.1": "true"}},
				doc("d", `[{"_id":3}]`),
				command(`{"renameCollection": "t.d", "to": "t.c", "dropTarget": {"$uuid": "01234567-89ab-cdef-0123-456789abcdef"}}`, ""),
				command(`{"renameCollection": "t.d", "to": "t.c"}`, ""), // it was done already
				doc("c", `[{"_id":3}]`),
				{cmd: apply(`{"op": "c", "ns": "t.c", "o": {"drop": "c"}}`), code: 73},
				{cmd: apply(`{"op": "c", "ns": "t.$cmd", "o": {"ping": 1}}`), code: 2, text: "'ping'"},
				command(`{"drop": "c"}`, ""),
				command(`{"drop": "c"}`, ""),
				command(`{"create": "e"}`, ""),
				command(`{"dropDatabase": 1}`, ""),
				command(`{"dropDatabase": 1}`, ""),
				{cmd: `{"listCollections": 1, "$db": "t"}`, want: map[string]string{"cursor.firstBatch": "[]"}},
			}, topology)
		})
	}
}

// A restore replays what happened to the buckets of a time series.
func TestApplyOpsToBuckets(t *testing.T) {
	const id, at = `{"$oid": "600000000000000000000001"}`, `{"$date": "2021-01-14T08:25:36.000Z"}`
	apply := func(op string) string { return `{"applyOps": [` + op + `], "$db": "admin"}` }
	mendSteps(t, []mendStep{
		{cmd: `{"create": "s", "timeseries": {"timeField": "t"}, "$db": "t"}`},
		{cmd: apply(`{"op": "i", "ns": "t.system.buckets.s", "o": {"_id": ` + id + `, "control": {"version": 1, "min": {"t": ` + at + `, "x": 1}, "max": {"t": ` + at + `, "x": 1}},
			"data": {"t": {"0": ` + at + `}, "x": {"0": 1}}}}`)},
		{cmd: apply(`{"op": "u", "ns": "t.system.buckets.s", "o": {"$v": 2, "diff": {"sdata": {"sx": {"u": {"0": 7}}}}}, "o2": {"_id": ` + id + `}}`)},
		{cmd: `{"find": "s", "projection": {"_id": 0, "x": 1}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch": `[{"x":7}]`}},
		{cmd: apply(`{"op": "d", "ns": "t.system.buckets.s", "o": {"_id": ` + id + `}}`)},
		{cmd: `{"find": "s", "$db": "t"}`, want: map[string]string{"cursor.firstBatch": `[]`}},
	})
}

// A validator goes for what a restore replays unless it says otherwise.
func TestApplyOpsValidator(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"create": "c", "validator": {"a": {"$exists": true}}, "$db": "t"}`},
		{cmd: `{"applyOps": [{"op": "i", "ns": "t.c", "o": {"_id": 1}}], "$db": "admin"}`, code: 121},
		{cmd: `{"applyOps": [{"op": "i", "ns": "t.c", "o": {"_id": 1}}], "bypassDocumentValidation": true, "$db": "admin"}`},
		{cmd: `{"applyOps": [{"op": "u", "ns": "t.c", "o": {"_id": 1, "b": 1}, "o2": {"_id": 1}}], "$db": "admin"}`, code: 121},
		{cmd: `{"applyOps": [{"op": "u", "ns": "t.c", "o": {"$v": 2, "diff": {"i": {"b": 1}}}, "o2": {"_id": 1}}], "bypassDocumentValidation": true, "$db": "admin"}`},
		{cmd: `{"count": "c", "query": {"b": 1}, "$db": "t"}`, want: map[string]string{"n": "1"}},
	})
}

// A replacement without _id counts as a change, as the server compares it before it has the _id.
func TestReplacementThatChangesNothing(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "a": 1}], "$db": "t"}`},
		{cmd: `{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"a": 1}}], "$db": "t"}`, want: map[string]string{"n": "1", "nModified": "1"}},
		{cmd: `{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"_id": 1, "a": 1}}], "$db": "t"}`, want: map[string]string{"n": "1", "nModified": "0"}},
	})
}

// Collections of the database local, which is not replicated, may do without an index on _id.
func TestCollectionWithoutIDIndex(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"create": "c", "autoIndexId": false, "$db": "t"}`, code: 50001},
		{cmd: `{"create": "c", "autoIndexId": false, "capped": true, "size": 4096, "$db": "local"}`},
		{cmd: `{"insert": "c", "documents": [{"_id": 1}, {"_id": 1}], "$db": "local"}`, want: map[string]string{"n": "2", "writeErrors": ""}},
		{cmd: `{"listIndexes": "c", "$db": "local"}`, want: map[string]string{"cursor.firstBatch": "[]"}},
		{cmd: `{"find": "c", "filter": {"_id": 1}, "$db": "local"}`, want: map[string]string{"cursor.firstBatch.1._id": "1"}},
	})
}

// The collections of database admin that users and roles are in, which backups read and restores
// merge.
func TestAuthorizationCollections(t *testing.T) {
	for name, topology := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "member": mongotest.ReplicaSet(1), "mongos": mongotest.Sharded(1, 1)} {
		t.Run(name, func(t *testing.T) {
			mendSteps(t, []mendStep{
				{cmd: `{"getParameter": 1, "authSchemaVersion": 1, "$db": "admin"}`, want: map[string]string{"authSchemaVersion": "5"}},
				{cmd: `{"find": "system.version", "$db": "admin"}`, want: map[string]string{"cursor.firstBatch": `[{"_id":"featureCompatibilityVersion","version":"7.0"}]`}},
				{cmd: `{"listCollections": 1, "nameOnly": true, "$db": "admin"}`, want: map[string]string{"cursor.firstBatch": `[{"name":"system.version","type":"collection"}]`}},
				{cmd: `{"createRole": "r", "privileges": [{"resource": {"db": "t", "collection": "c"}, "actions": ["find"]}], "roles": [], "$db": "t"}`},
				{cmd: `{"createUser": "u", "pwd": "secret", "roles": ["r", {"role": "read", "db": "s"}], "customData": {"a": 1}, "$db": "t"}`},
				{cmd: `{"createUser": "v", "pwd": "secret", "roles": [], "$db": "s"}`},
				{cmd: `{"distinct": "system.users", "key": "_id", "$db": "admin"}`, want: map[string]string{"values": `["s.v","t.u"]`}},
				{cmd: `{"find": "system.users", "filter": {"db": "t"}, "projection": {"credentials": 0, "userId": 0}, "$db": "admin"}`, want: map[string]string{
					"cursor.firstBatch": `[{"_id":"t.u","user":"u","db":"t","customData":{"a":1},"roles":[{"role":"r","db":"t"},{"role":"read","db":"s"}]}]`}},
				{cmd: `{"aggregate": "system.roles", "pipeline": [], "cursor": {}, "$db": "admin"}`, want: map[string]string{
					"cursor.firstBatch": `[{"_id":"t.r","role":"r","db":"t","privileges":[{"resource":{"db":"t","collection":"c"},"actions":["find"]}],"roles":[]}]`}},
				{cmd: `{"count": "system.version", "$db": "admin"}`, want: map[string]string{"n": "2"}},

				// What was copied comes back, password and all.
				{cmd: `{"aggregate": "system.users", "pipeline": [{"$match": {"db": "t"}}, {"$out": {"db": "t", "coll": "tempusers"}}], "cursor": {}, "$db": "admin"}`},
				{cmd: `{"aggregate": "system.roles", "pipeline": [{"$out": {"db": "t", "coll": "temproles"}}], "cursor": {}, "$db": "admin"}`},
				{cmd: `{"dropUser": "u", "$db": "t"}`},
				{cmd: `{"dropRole": "r", "$db": "t"}`},
				{cmd: `{"createUser": "w", "pwd": "secret", "roles": [], "$db": "t"}`},
				{cmd: `{"_mergeAuthzCollections": 1, "db": "", "drop": false, "$db": "admin"}`, code: 2, text: "Must provide at least one of"},
				{cmd: `{"_mergeAuthzCollections": 1, "tempUsersCollection": "t.tempusers", "tempRolesCollection": "t.temproles", "db": "t", "drop": true, "$db": "admin"}`},
				{cmd: `{"distinct": "system.users", "key": "_id", "$db": "admin"}`, want: map[string]string{"values": `["s.v","t.u"]`}},
				{cmd: `{"usersInfo": "u", "$db": "t"}`, want: map[string]string{"users.0.roles.0.role": `"r"`, "users.0.mechanisms": `["SCRAM-SHA-1","SCRAM-SHA-256"]`}},
				{cmd: `{"rolesInfo": "r", "showPrivileges": true, "$db": "t"}`, want: map[string]string{"roles.0.privileges.0.actions": `["find"]`}},
				{cmd: `{"insert": "tempusers", "documents": [{"_id": "t.x", "user": "x", "db": "t", "credentials": {}, "roles": []}], "$db": "t"}`},
				{cmd: `{"_mergeAuthzCollections": 1, "tempUsersCollection": "t.tempusers", "db": "", "drop": false, "$db": "admin"}`, code: 12, text: "must provide credentials"},
			}, topology, mongotest.Version("7.0"))
		})
	}
}

// The oplog has all that a restore needs to make collections and indexes again.
func TestOplogOfCatalog(t *testing.T) {
	entry := func(filter, want string) mendStep {
		return mendStep{cmd: `{"aggregate": "oplog.rs", "pipeline": [{"$match": {"ns": "t.$cmd", ` + filter + `}}, {"$sort": {"ts": -1}}, {"$limit": 1}, {"$replaceWith": "$o"}], "cursor": {}, "$db": "local"}`,
			want: map[string]string{"cursor.firstBatch.0": want}}
	}
	mendSteps(t, []mendStep{
		{cmd: `{"create": "c", "capped": true, "size": 4096, "validator": {"a": 1}, "collation": {"locale": "simple"}, "$db": "t"}`},
		entry(`"o.create": "c"`, `{"create":"c","capped":true,"size":4096,"validator":{"a":1},"idIndex":{"v":2,"key":{"_id":1},"name":"_id_"}}`),
		{cmd: `{"create": "k", "clusteredIndex": {"key": {"_id": 1}, "unique": true}, "$db": "t"}`},
		entry(`"o.create": "k"`, `{"create":"k","clusteredIndex":{"v":2,"key":{"_id":1},"name":"_id_","unique":true}}`),
		{cmd: `{"create": "v", "viewOn": "c", "pipeline": [], "$db": "t"}`},
		{cmd: `{"aggregate": "oplog.rs", "pipeline": [{"$match": {"o.create": "v"}}], "cursor": {}, "$db": "local"}`, want: map[string]string{"cursor.firstBatch": "[]"}},
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1", "sparse": true}], "$db": "t"}`},
		entry(`"o.createIndexes": "c"`, `{"createIndexes":"c","v":2,"key":{"a":1},"name":"a_1","sparse":true}`),
		{cmd: `{"collMod": "c", "index": {"name": "a_1", "expireAfterSeconds": 9}, "$db": "t"}`},
		entry(`"o.collMod": "c"`, `{"collMod":"c","index":{"name":"a_1","expireAfterSeconds":9}}`),
		{cmd: `{"dropIndexes": "c", "index": "a_1", "$db": "t"}`},
		entry(`"o.dropIndexes": "c"`, `{"dropIndexes":"c","index":"a_1"}`),
		{cmd: `{"create": "d", "$db": "t"}`},
		{cmd: `{"renameCollection": "t.k", "to": "t.e", "$db": "admin"}`},
		entry(`"o.renameCollection": "t.k"`, `{"renameCollection":"t.k","to":"t.e","stayTemp":false}`),
	}, mongotest.ReplicaSet(1))
}

// Since 5.1 an index becomes one that lets documents expire, and since 6.0 the time is an int32.
func TestIndexBecomesTTL(t *testing.T) {
	makeThem := mendStep{cmd: `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}, {"key": {"a": 1, "b": 1}, "name": "ab"}, {"key": {"t": 1}, "name": "t", "expireAfterSeconds": 7.9}], "$db": "t"}`}
	change := func(name string) string {
		return `{"collMod": "c", "index": {"name": "` + name + `", "expireAfterSeconds": {"$numberLong": "5"}}, "$db": "t"}`
	}
	mendSteps(t, []mendStep{
		makeThem,
		{cmd: change("a_1"), want: map[string]string{"expireAfterSeconds_old": "", "expireAfterSeconds_new": "5"}},
		{cmd: change("ab"), code: 72, text: "TTL indexes are single-field indexes"},
		{cmd: change("_id_"), code: 72, text: "the _id field does not support TTL indexes"},
		{cmd: `{"aggregate": "c", "pipeline": [{"$indexStats": {}}, {"$match": {"spec.expireAfterSeconds": {"$type": "int"}}}, {"$sort": {"name": 1}}, {"$project": {"_id": "$name", "s": "$spec.expireAfterSeconds"}}],
			"cursor": {}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch": `[{"_id":"a_1","s":5},{"_id":"t","s":7}]`}},
	}, mongotest.Version("6.0"))
	mendSteps(t, []mendStep{makeThem, {cmd: change("a_1"), code: 72, text: "no expireAfterSeconds field to update"}}, mongotest.Version("5.0"))
}

// A unique index becomes one that is not, and unique again.
func TestIndexBecomesUniqueAndBack(t *testing.T) {
	change := func(option, value string) string {
		return `{"collMod": "c", "index": {"keyPattern": {"a": 1}, "` + option + `": ` + value + `}, "$db": "t"}`
	}
	insert := `{"insert": "c", "documents": [{"a": 1}], "$db": "t"}`
	mendSteps(t, []mendStep{
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1", "unique": true}], "$db": "t"}`},
		{cmd: insert},
		{cmd: insert, want: map[string]string{"writeErrors.0.code": "11000"}},
		{cmd: change("forceNonUnique", "true"), want: map[string]string{"forceNonUnique_new": "true"}},
		{cmd: insert, want: map[string]string{"writeErrors": ""}},
		{cmd: `{"listIndexes": "c", "$db": "t"}`, want: map[string]string{"cursor.firstBatch.1.unique": ""}},
		{cmd: change("prepareUnique", "true")},
		{cmd: change("unique", "true"), code: 359},
		{cmd: `{"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1}], "$db": "t"}`},
		{cmd: change("unique", "true"), want: map[string]string{"unique_new": "true"}},
		{cmd: insert, want: map[string]string{"writeErrors.0.code": "11000"}},
	})
}

// A tool tells that the measurements of a time series have values of several types.
func TestMixedSchemaData(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"create": "c", "$db": "t"}`},
		{cmd: `{"create": "s", "timeseries": {"timeField": "t"}, "$db": "t"}`},
		{cmd: `{"collMod": "s", "timeseriesBucketsMayHaveMixedSchemaData": true, "$db": "t"}`},
		{cmd: `{"collMod": "c", "timeseriesBucketsMayHaveMixedSchemaData": true, "$db": "t"}`, code: 72, text: "time-series"},
	})
}
