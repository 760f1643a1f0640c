package mongotest_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// mendStep is a command in Extended JSON and what its reply must say: the code of its error, a part
// of the message, and values at paths.
type mendStep struct {
	cmd  string
	code int64
	text string
	want map[string]string // dotted path -> value as RawValue.String shows it; "" is for missing
}

// mendSteps runs commands on one connection. "CURSOR" stands for the id of the last open cursor.
func mendSteps(t *testing.T, steps []mendStep, options ...mongotest.Option) {
	t.Helper()
	d := mongotest.Start(t, options...)
	c := dial(t, d.Hosts()[0])
	cursor := "1"
	for _, s := range steps {
		reply := command(t, c, extJSON(t, strings.ReplaceAll(s.cmd, "CURSOR", `{"$numberLong": "`+cursor+`"}`)))
		if id, ok := reply.Lookup("cursor", "id").AsInt64(); ok && id != 0 {
			cursor = strconv.FormatInt(id, 10)
		}
		text, _ := reply.Lookup("errmsg").StringValue()
		if code := int64(errorCode(reply)); code != s.code || !strings.Contains(text, s.text) {
			t.Errorf("%s answers %d %q, want %d %q", s.cmd, code, text, s.code, s.text)
		}
		for path, want := range s.want {
			v := reply.Lookup(strings.Split(path, ".")...)
			if got := v.String(); v.Type == 0 && want != "" || v.Type != 0 && got != want {
				t.Errorf("%s: %s is %s, want %s", s.cmd, path, got, want)
			}
		}
	}
}

// A time limit on getMore is for cursors that await data, whatever the version and the node.
func TestGetMoreTimeLimit(t *testing.T) {
	for _, version := range []string{"4.4", "6.0", "8.0"} {
		for name, topology := range map[string]mongotest.Option{"member": mongotest.ReplicaSet(1), "mongos": mongotest.Sharded(1, 1)} {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				zero, zeroText := int64(2), "cannot set maxTimeMS on getMore command for a non-awaitData cursor"
				if version == "4.4" { // it takes 0 for no limit
					zero, zeroText = 0, ""
				}
				mendSteps(t, []mendStep{
					{cmd: `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}], "$db": "t"}`},
					{cmd: `{"find": "c", "batchSize": 1, "$db": "t"}`},
					{cmd: `{"getMore": CURSOR, "collection": "c", "maxTimeMS": 100, "$db": "t"}`, code: 2, text: "cannot set maxTimeMS on getMore command for a non-awaitData cursor"},
					{cmd: `{"getMore": CURSOR, "collection": "c", "maxTimeMS": 0, "$db": "t"}`, code: zero, text: zeroText},
				}, topology, mongotest.Version(version))
			})
		}
	}
}

// The time that a find has left bounds the getMores of its cursor.
func TestLeftTimeBoundsGetMore(t *testing.T) {
	const always, off = `{"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "alwaysOn", "$db": "admin"}`, `{"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "off", "$db": "admin"}`
	more := `{"getMore": CURSOR, "collection": "c", "batchSize": 1, "$db": "t"}`
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}, {"_id": 4}], "$db": "t"}`},
		{cmd: `{"find": "c", "batchSize": 1, "$db": "t"}`},
		{cmd: always},
		{cmd: more, want: map[string]string{"cursor.nextBatch.0._id": "2"}}, // the find had no limit
		{cmd: off},
		{cmd: `{"find": "c", "batchSize": 1, "maxTimeMS": 600000, "$db": "t"}`},
		{cmd: more, want: map[string]string{"cursor.nextBatch.0._id": "2"}},
		{cmd: always},
		{cmd: more, code: 50},
		{cmd: off},
		{cmd: more, code: 43}, // an error closes the cursor
	}, mongotest.ReplicaSet(1))
}

func TestExplainWriteConcern(t *testing.T) {
	for _, concern := range []string{`{}`, `{"w": 1}`, `{"w": "majority"}`} {
		mendSteps(t, []mendStep{
			{cmd: `{"insert": "c", "documents": [{"_id": 1}], "$db": "t"}`},
			{cmd: `{"aggregate": "c", "pipeline": [], "explain": true, "writeConcern": ` + concern + `, "$db": "t"}`, code: 9,
				text: "Aggregation explain does not support the'writeConcern' option"},
			{cmd: `{"explain": {"aggregate": "c", "pipeline": [], "cursor": {}, "writeConcern": ` + concern + `}, "$db": "t"}`, code: 9,
				text: "Aggregation explain does not support the'writeConcern' option"},
		}, mongotest.ReplicaSet(1))
	}
}

// From 4.4 on a mapReduce is an aggregation, and is explained as one, without writing its results.
func TestExplainMapReduce(t *testing.T) {
	const explain = `{"explain": {"mapReduce": "c", "map": "function() { emit(this.x, 1) }", "reduce": "function(k, v) { return v.length }",
		"query": {"x": 3}, "out": "results"}, "verbosity": "executionStats", "$db": "t"}`
	prepare := []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "x": 3}, {"_id": 2, "x": 4}, {"_id": 3, "x": 3}], "$db": "t"}`},
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}], "$db": "t"}`},
	}
	mendSteps(t, append(prepare, mendStep{cmd: explain, code: 20, text: "Cannot explain cmd: mapReduce"}), mongotest.Version("4.2"))
	for _, topology := range []mongotest.Option{mongotest.ReplicaSet(1), mongotest.Sharded(2, 1)} {
		mendSteps(t, append(prepare,
			mendStep{cmd: explain},
			mendStep{cmd: `{"count": "results", "$db": "t"}`, want: map[string]string{"n": "0"}},
		), topology)
	}
	mendSteps(t, append(prepare, mendStep{cmd: explain, want: map[string]string{
		"stages.0.$cursor.queryPlanner.parsedQuery":     `{"x":{"$eq":3}}`,
		"stages.0.$cursor.executionStats.nReturned":     "2",
		"stages.1.$project.emits.$_internalJsEmit.this": `"$$ROOT"`,
		"stages.2.$unwind.path":                         `"$emits"`,
	}}), mongotest.ReplicaSet(1), mongotest.Version("4.4"))
	mendSteps(t, append(prepare, mendStep{cmd: explain, want: map[string]string{ // the query does the $project
		"stages.0.$cursor.queryPlanner.winningPlan.stage":                                   `"PROJECTION_DEFAULT"`,
		"stages.0.$cursor.queryPlanner.winningPlan.transformBy.emits.$_internalJsEmit.this": `"$$ROOT"`,
		"stages.1.$unwind.path": `"$emits"`,
	}}), mongotest.ReplicaSet(1))
}

// The bounds of a 2d index are its own.
func TestPlaneBounds(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"p": "2d"}, "name": "p", "min": 0, "max": 10}], "$db": "t"}`},
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "p": [1, 2]}], "$db": "t"}`},
		{cmd: `{"insert": "c", "documents": [{"_id": 2, "p": [11, 2]}], "$db": "t"}`, want: map[string]string{"n": "0", "writeErrors.0.code": "13027",
			"writeErrors.0.errmsg": `"point not in interval of [ 0, 10 ] :: caused by :: { _id: 2, p: [ 11, 2 ] }"`}},
		{cmd: `{"insert": "c", "documents": [{"_id": 3, "p": [10, 0]}, {"_id": 4, "p": [10, 10]}], "$db": "t"}`, want: map[string]string{"n": "2"}}, // they are part of it
		{cmd: `{"find": "c", "filter": {"p": {"$near": [10, 10], "$maxDistance": 1}}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch": `[{"_id":4,"p":[10,10]}]`}},
		{cmd: `{"find": "c", "filter": {"p": {"$geoWithin": {"$box": [[10, 0], [12, 1]]}}}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch": `[{"_id":3,"p":[10,0]}]`}},
		{cmd: `{"find": "c", "filter": {"p": {"$near": [10.5, 10]}}, "$db": "t"}`, code: 16433,
			text: "point not in interval of [ 0, 10 ] :: caused by :: { 0: 10.5, 1: 10.0 }"},
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"q": "2d"}, "name": "q", "min": 5, "max": 5}], "$db": "t"}`, code: 72,
			text: "region for hash must be valid and have positive area, but [5, 5] was specified"},
	})
}

// A partial index serves the queries that ask for nothing but what it has.
func TestPartialIndexPlan(t *testing.T) {
	explain := func(filter string) string {
		return `{"explain": {"find": "c", "filter": ` + filter + `}, "verbosity": "queryPlanner", "$db": "t"}`
	}
	plan := "queryPlanner.winningPlan."
	used := map[string]string{plan + "inputStage.indexName": `"a"`, plan + "inputStage.isPartial": "true"}
	scan := map[string]string{plan + "stage": `"COLLSCAN"`}
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 5}, {"_id": 2, "a": 1, "b": 50}, {"_id": 3, "a": 1}], "$db": "t"}`},
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a", "partialFilterExpression": {"b": {"$gt": 10}}}], "$db": "t"}`},
		{cmd: explain(`{"a": 1}`), want: scan},
		{cmd: explain(`{"a": 1, "b": {"$gt": 9}}`), want: scan},
		{cmd: explain(`{"a": 1, "b": {"$gte": 10}}`), want: scan},
		{cmd: explain(`{"a": 1, "b": {"$lt": 20}}`), want: scan},
		{cmd: explain(`{"a": 1, "b": {"$ne": 1}}`), want: scan},
		{cmd: explain(`{"a": 1, "b": "x"}`), want: scan},
		{cmd: explain(`{"a": 1, "$or": [{"b": 20}, {"b": 1}]}`), want: scan},
		{cmd: explain(`{"a": 1, "b": {"$gt": 10}}`), want: used},
		{cmd: explain(`{"a": 1, "b": {"$gte": 11}}`), want: used},
		{cmd: explain(`{"a": 1, "b": 50}`), want: used},
		{cmd: explain(`{"a": 1, "b": {"$in": [11, 50]}}`), want: used},
		{cmd: explain(`{"a": 1, "$or": [{"b": 20}, {"b": 50}]}`), want: used},
		{cmd: `{"find": "c", "filter": {"a": 1, "b": {"$gt": 10}}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0._id": "2", "cursor.firstBatch.1": ""}},
		{cmd: `{"find": "c", "filter": {"a": 1}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0._id": "1", "cursor.firstBatch.2._id": "3"}},
	})
}

func TestCreateExistingInTransaction(t *testing.T) {
	const txn = `"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}, "autocommit": false`
	for _, version := range []string{"4.4", "5.0", "8.0", "9.0"} {
		mendSteps(t, []mendStep{
			{cmd: `{"create": "c", "$db": "t"}`},
			{cmd: `{"insert": "c", "documents": [{"_id": 1}], ` + txn + `, "startTransaction": true, "$db": "t"}`},
			{cmd: `{"create": "c", ` + txn + `, "$db": "t"}`, code: 48},
			{cmd: `{"commitTransaction": 1, ` + txn + `, "$db": "admin"}`, code: 251},
			{cmd: `{"count": "c", "$db": "t"}`, want: map[string]string{"n": "0"}},
		}, mongotest.ReplicaSet(1), mongotest.Version(version))
	}
}

// TestCreateBesideTransaction: a collection that a transaction has made can be made by others, too.
// The transaction goes on, and fails when it commits.
func TestCreateBesideTransaction(t *testing.T) {
	const txn = `"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}, "autocommit": false`
	for _, topology := range []mongotest.Option{mongotest.ReplicaSet(1), mongotest.Sharded(1, 1)} {
		mendSteps(t, []mendStep{
			{cmd: `{"insert": "c", "documents": [{"_id": 1}], ` + txn + `, "startTransaction": true, "$db": "t"}`},
			{cmd: `{"create": "c", "$db": "t"}`},
			{cmd: `{"insert": "c", "documents": [{"_id": 2}], ` + txn + `, "$db": "t"}`},
			{cmd: `{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 1}}}], ` + txn + `, "$db": "t"}`, want: map[string]string{"n": "1"}},
			{cmd: `{"distinct": "c", "key": "_id", ` + txn + `, "$db": "t"}`, want: map[string]string{"values.0": "1", "values.1": "2"}},
			{cmd: `{"commitTransaction": 1, ` + txn + `, "$db": "admin"}`, code: 112},
			{cmd: `{"count": "c", "$db": "t"}`, want: map[string]string{"n": "0"}},
		}, topology)
	}
}

func TestValidateOptions(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1}], "$db": "t"}`},
		{cmd: `{"validate": "c", "$db": "t"}`, want: map[string]string{"valid": "true", "nrecords": "1"}},
		{cmd: `{"validate": "c", "full": true, "$db": "t"}`, want: map[string]string{"valid": "true"}},
		{cmd: `{"validate": "c", "full": true, "background": true, "$db": "t"}`, code: 115, text: "Running the validate command with both { background: true } and { full: true } is not supported."},
		{cmd: `{"validate": "nosuch", "$db": "t"}`, code: 26},
	}, mongotest.ReplicaSet(1), mongotest.Version("4.4"))
}

func TestUpsertDollarField(t *testing.T) {
	upsert := `{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$setOnInsert": {"$x": 1}}, "upsert": true}], "$db": "t"}`
	mendSteps(t, []mendStep{
		{cmd: upsert, want: map[string]string{"n": "0", "writeErrors.0.code": "52"}},
	}, mongotest.Version("4.4"))
	mendSteps(t, []mendStep{
		{cmd: `{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$x": 1}, "upsert": true}], "$db": "t"}`, want: map[string]string{"n": "0"}},
		{cmd: upsert, want: map[string]string{"n": "1"}},
		{cmd: `{"find": "c", "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.$x": "1"}},
	}, mongotest.Version("5.0"))
}

func TestCurrentOpIdleCursors(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}], "$db": "t"}`},
		{cmd: `{"find": "c", "batchSize": 1, "$db": "t"}`},
		{cmd: `{"aggregate": 1, "pipeline": [{"$currentOp": {"idleCursors": true}}, {"$match": {"type": "idleCursor"}}], "cursor": {}, "$db": "admin"}`,
			want: map[string]string{"cursor.firstBatch.0.ns": `"t.c"`, "cursor.firstBatch.0.cursor.nDocsReturned": "1", "cursor.firstBatch.1": ""}},
		{cmd: `{"aggregate": 1, "pipeline": [{"$currentOp": {}}, {"$match": {"type": "idleCursor"}}], "cursor": {}, "$db": "admin"}`,
			want: map[string]string{"cursor.firstBatch.0": ""}},
	}, mongotest.Version("4.4"))
}

// Strings that are not UTF-8 are stored as they are.
func TestInvalidUTF8(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	c := dial(t, d.Hosts()[0])
	const text = "a\xff\xc3b"
	at, doc := bson.BeginDocument(nil)
	doc = bson.EndDocument(bson.AppendString(bson.AppendInt32(doc, "_id", 1), "s", text), at)
	r := ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.Raw(doc)}}, {Key: "$db", Value: "t"}}))
	if n, _ := r.Lookup("n").AsInt64(); n != 1 {
		t.Errorf("the insert answers %v", r)
	}
	reply := ok(t, command(t, c, extJSON(t, `{"find": "c", "$db": "t"}`)))
	if v := reply.Lookup("cursor", "firstBatch", "0"); !bytes.Equal(v.Value, doc) {
		t.Errorf("%x comes back as %x in %v", doc, v.Value, reply)
	}
}

// What create makes of options that are null, large or not for views, before version 5.0.
func TestCreateOddOptions(t *testing.T) {
	capped := func(name, more string) mendStep {
		return mendStep{cmd: `{"create": "` + name + `", "capped": true, ` + more + `, "$db": "t"}`}
	}
	shown := func(name, path, want string) mendStep {
		return mendStep{cmd: `{"listCollections": 1, "filter": {"name": "` + name + `"}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.options." + path: want}}
	}
	mendSteps(t, []mendStep{
		{cmd: `{"create": "a", "autoIndexId": null, "$db": "t"}`, code: 50001, text: "autoIndexId:false is not allowed for collection t.a because it can be replicated"},
		{cmd: `{"create": "a", "viewOn": "c", "autoIndexId": null, "$db": "t"}`, want: map[string]string{"note": ""}},
		capped("b", `"size": 4096, "max": {"$numberLong": "9223372036854775807"}`),
		shown("b", "max", "2147483647.0"),
		{cmd: `{"create": "c", "capped": true, "size": 4096, "max": {"$numberLong": "2147483648"}, "$db": "t"}`, code: 2, text: "max in a capped collection has to be < 2^31 or not set"},
		capped("d", `"size": {"$numberLong": "2147483648"}`),
		shown("d", "size", "2147483648.0"),
		{cmd: `{"create": "v", "viewOn": "c", "validator": {"a": 1}, "collation": {"locale": "fr"}, "$db": "t"}`},
		shown("v", "validator", ""),
		shown("v", "collation.locale", `"fr"`),
		{cmd: `{"create": "w", "viewOn": "c", "idIndex": {}, "$db": "t"}`, code: 72, text: "'idIndex' is not allowed with 'viewOn': {}"},
		{cmd: `{"create": "w", "autoIndexId": true, "idIndex": {"key": {"_id": 1}, "name": "_id_"}, "$db": "t"}`, code: 72, text: "'idIndex' is not allowed with 'autoIndexId'"},
	}, mongotest.Standalone(), mongotest.Version("4.4"))
}

// Views that lie on each other have one collation, whichever of them is older.
func TestViewCollations(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"create": "upper", "viewOn": "lower", "collation": {"locale": "de"}, "$db": "t"}`},
		{cmd: `{"create": "lower", "viewOn": "c", "$db": "t"}`, code: 167, text: "View t.lower has conflicting collation with view t.upper"},
		{cmd: `{"create": "lower", "viewOn": "c", "collation": {"locale": "fr"}, "$db": "t"}`, code: 167, text: "View t.lower has conflicting collation with view t.upper"},
		{cmd: `{"create": "lower", "viewOn": "c", "collation": {"locale": "de"}, "$db": "t"}`},
		{cmd: `{"create": "top", "viewOn": "upper", "$db": "t"}`, code: 167, text: "View t.top has conflicting collation with view t.upper"},
		{cmd: `{"create": "beside", "viewOn": "d", "$db": "t"}`},
	}, mongotest.Standalone())
}

// The type of the size of a capped collection, as old servers write it.
func TestCappedSizeType(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("4.4"))
	c := dial(t, d.Hosts()[0])
	for size, want := range map[string]bson.Type{"1073741824": bson.TypeInt32, "1073742080": bson.TypeDouble, "1099511627776": bson.TypeDouble, "1099511628032": bson.TypeInt64} {
		command(t, c, extJSON(t, `{"create": "c", "capped": true, "size": {"$numberLong": "`+size+`"}, "$db": "t"}`))
		reply := command(t, c, extJSON(t, `{"listCollections": 1, "$db": "t"}`))
		if got := reply.Lookup("cursor", "firstBatch", "0", "options", "size"); got.Type != want {
			t.Errorf("a size of %s is shown as %s (%s), want a %s", size, got, got.Type, want)
		}
		command(t, c, extJSON(t, `{"drop": "c", "$db": "t"}`))
	}
}

// Names that no collection may get, and what renameCollection says of either side.
func TestNamesOfCollections(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"create": "a.system.b", "$db": "t"}`, code: 2, text: "cannot write to 't.a.system.b'"},
		{cmd: `{"create": "system.roles", "$db": "t"}`, code: 73, text: "cannot write to 't.system.roles'"},
		{cmd: `{"create": "system.new_users", "$db": "admin"}`},
		{cmd: `{"create": "c", "$db": "t"}`},
		{cmd: `{"renameCollection": "t.c", "to": "t..a", "$db": "admin"}`, code: 20, text: "error with target namespace: invalid collection name"},
		{cmd: `{"renameCollection": "t.c", "to": "t.a.system.b", "$db": "admin"}`, code: 20, text: "error with target namespace: cannot write to 't.a.system.b'"},
		{cmd: `{"renameCollection": "t.system.x", "to": "t.d", "$db": "admin"}`, code: 20, text: "error with source namespace: cannot write to 't.system.x'"},
		{cmd: `{"renameCollection": "t.c", "to": "t.a\u0000b", "$db": "admin"}`, code: 73, text: "namespaces cannot have embedded null characters"},
		{cmd: `{"renameCollection": "a b.c", "to": "t.d", "$db": "admin"}`, code: 73, text: "Invalid namespace specified 'a b.c'"},
		{cmd: `{"insert": "c", "documents": [{}], "$db": "t"}`},
		{cmd: `{"aggregate": "c", "pipeline": [{"$out": "a$b"}], "cursor": {}, "$db": "t"}`, code: 20, text: "error with target namespace: invalid collection name"},
		{cmd: `{"aggregate": "c", "pipeline": [{"$merge": "a$b"}], "cursor": {}, "$db": "t"}`, code: 73, text: "invalid collection name"},
		{cmd: `{"dataSize": "x", "$db": "t"}`, code: 73, text: "Invalid namespace specified 'x'"},
	}, mongotest.Standalone(), mongotest.Version("4.4"))
}

// Arguments that are null or not whole where generated parsers read them.
func TestNullArguments(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{}], "writeConcern": {"w": 1, "provenance": null}, "$db": "t"}`},
		{cmd: `{"find": "c", "readConcern": {"level": "local", "provenance": null}, "$db": "t"}`},
		{cmd: `{"aggregate": 1.5, "pipeline": [], "cursor": {}, "$db": "t"}`, code: 9, text: "must specify a collection name or 1"},
		{cmd: `{"aggregate": "c", "pipeline": [{"$unionWith": {"coll": null}}], "cursor": {}, "$db": "t"}`, code: 40414, text: "BSON field '$unionWith.coll' is missing but a required field"},
		{cmd: `{"aggregate": "c", "pipeline": [{"$unionWith": {"coll": "c", "pipeline": [1]}}], "cursor": {}, "$db": "t"}`, code: 14,
			text: "BSON field '$unionWith.pipeline.0' is the wrong type 'int', expected type 'object'"},
	}, mongotest.Standalone(), mongotest.Version("4.4"))
}

// usersInfo with everything about a user is for exact names only.
func TestUsersInfoDetails(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"createUser": "u", "pwd": "p", "roles": [], "$db": "t"}`},
		{cmd: `{"usersInfo": "u", "showAuthenticationRestrictions": true, "$db": "t"}`, want: map[string]string{"users.0.inheritedRoles": "[]", "users.0.inheritedAuthenticationRestrictions": "[]"}},
		{cmd: `{"usersInfo": 1, "showPrivileges": true, "$db": "t"}`, code: 20, text: "Privilege or restriction details require exact-match usersInfo queries"},
		{cmd: `{"usersInfo": "u", "showPrivileges": true, "filter": {}, "$db": "t"}`, code: 20},
		{cmd: `{"usersInfo": {"forAllDBs": true}, "showAuthenticationRestrictions": true, "$db": "t"}`, code: 20},
	}, mongotest.Standalone(), mongotest.Version("4.4"))
}

// A hint names an index that can be used, and no more than one.
func TestHintedIndex(t *testing.T) {
	const missing = "hint provided does not correspond to an existing index"
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 1}], "$db": "t"}`},
		{cmd: `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "h", "hidden": true}, {"key": {"b": 1}, "name": "p"}, {"key": {"b": 1}, "name": "q", "collation": {"locale": "fr"}}], "$db": "t"}`},
		{cmd: `{"find": "c", "hint": "h", "$db": "t"}`, code: 2, text: missing},
		{cmd: `{"find": "c", "hint": {"a": 1}, "$db": "t"}`, code: 2, text: missing},
		{cmd: `{"count": "c", "query": {"a": 1}, "hint": "h", "$db": "t"}`, code: 2, text: missing},
		{cmd: `{"aggregate": "c", "pipeline": [], "cursor": {}, "hint": "h", "$db": "t"}`, code: 2, text: missing},
		{cmd: `{"findAndModify": "c", "query": {"a": 1}, "remove": true, "hint": "h", "$db": "t"}`, code: 2, text: missing},
		{cmd: `{"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1, "hint": "h"}], "$db": "t"}`, want: map[string]string{"writeErrors.0.code": "2"}},
		{cmd: `{"find": "c", "hint": {"b": 1}, "$db": "t"}`, code: 27, text: "Hint matched multiple indexes, must hint by index name. Matched: kp: { b: 1 } name: '(p, )' io: {"},
		{cmd: `{"find": "c", "hint": "q", "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0._id": "1"}},
		{cmd: `{"collMod": "c", "index": {"name": "h", "hidden": false}, "$db": "t"}`},
		{cmd: `{"find": "c", "hint": "h", "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0._id": "1"}},
	}, mongotest.Standalone(), mongotest.Version("4.4"))
}

// The search indexes of a collection cannot be listed as of a snapshot.
func TestSearchIndexesAtReadConcern(t *testing.T) {
	list := func(level string) string {
		return `{"aggregate": "c", "pipeline": [{"$listSearchIndexes": {}}], "cursor": {}, "readConcern": {"level": "` + level + `"}, "$db": "t"}`
	}
	mendSteps(t, []mendStep{
		{cmd: `{"create": "c", "$db": "t"}`},
		{cmd: list("local")},
		{cmd: list("snapshot"), code: 72, text: "Aggregation stage $listSearchIndexes cannot run with a readConcern other than 'local'. Current readConcern: snapshot"},
		{cmd: list("majority"), code: 72},
	}, mongotest.ReplicaSet(1), mongotest.Search(0))
}

// What random commands found a real server to do differently, and what no recording that is kept in
// the open names: updates, upserts, stages and retries.
func TestFoundByRandomCommands(t *testing.T) {
	const session = `"lsid": {"id": {"$binary": {"base64": "AAECAwQFBgcICQoLDA0ODw==", "subType": "04"}}}, "$db": "t"}`
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": 2, "list": [1, 5, 9], "s": "10", "p": null}, {"_id": 2, "s": "9", "p": 7}], "$db": "t"}`},
		// A field that is removed and set again keeps its place.
		{cmd: `{"aggregate": "c", "pipeline": [{"$match": {"_id": 1}}, {"$project": {"a": 1, "b": 1}}, {"$unset": "a"}, {"$set": {"a": 3}}, {"$project": {"text": {"$map": {"input": {"$objectToArray": "$$ROOT"}, "in": "$$this.k"}}}}], "cursor": {}, "$db": "t"}`,
			want: map[string]string{"cursor.firstBatch.0.text": `["_id","a","b"]`}},
		// Numbers within strings, by a collation.
		{cmd: `{"find": "c", "sort": {"s": 1}, "collation": {"locale": "en", "numericOrdering": true}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0._id": "2", "cursor.firstBatch.1._id": "1"}},
		{cmd: `{"find": "c", "sort": {"s": 1}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0._id": "1", "cursor.firstBatch.1._id": "2"}},
		// $graphLookup from null finds null and what is missing.
		{cmd: `{"aggregate": "c", "pipeline": [{"$match": {"_id": 1}}, {"$graphLookup": {"from": "c", "startWith": "$p", "connectFromField": "none", "connectToField": "p", "as": "found"}}], "cursor": {}, "$db": "t"}`,
			want: map[string]string{"cursor.firstBatch.0.found.0._id": "1", "cursor.firstBatch.0.found.1": ""}},
		{cmd: `{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$pull": {"list": {"$gte": 5}}}}], "$db": "t"}`, want: map[string]string{"nModified": "1"}},
		{cmd: `{"find": "c", "filter": {"_id": 1}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.list": "[1]"}},
		// An upsert does not take a document out of a constant $expr.
		{cmd: `{"update": "c", "updates": [{"q": {"$expr": {"$eq": [1, 2]}}, "u": {"$set": {"x": 1}}, "upsert": true}], "$db": "t"}`, want: map[string]string{"writeErrors.0.code": "224"}},
		{cmd: `{"aggregate": "c", "pipeline": [{"$bucketAuto": {"groupBy": "$_id", "buckets": 1, "output": {}}}], "cursor": {}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.count": "2", "cursor.firstBatch.0._id.min": "1"}},
		// A retry is not what was run.
		{cmd: `{"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}], "txnNumber": {"$numberLong": "1"}, ` + session},
		{cmd: `{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$set": {"x": 1}}}], "txnNumber": {"$numberLong": "1"}, ` + session, code: 40638},
		{cmd: `{"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"x": 1}}, "txnNumber": {"$numberLong": "1"}, ` + session, code: 40606},
	}, mongotest.ReplicaSet(1), mongotest.Version("4.4"))
}

// An aggregate with a limit and an empty first batch leaves its cursor open: it is idle until a
// getMore reads as much as the limit allows, and gone then.
func TestCursorOfEmptyBatch(t *testing.T) {
	for name, topology := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "replica set": mongotest.ReplicaSet(1), "mongos": mongotest.Sharded(1, 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := mongotest.Start(t, topology, mongotest.Version("4.4"))
			c := dial(t, d.Hosts()[0])
			do := func(cmd string) bson.Raw { return command(t, c, extJSON(t, cmd)) }
			idle := func() string {
				r := do(`{"aggregate": 1, "pipeline": [{"$currentOp": {"idleCursors": true, "allUsers": true, "localOps": true}}, {"$match": {"type": "idleCursor", "ns": "t.c"}}], "cursor": {}, "$db": "admin"}`)
				return ok(t, r).Lookup("cursor", "firstBatch", "0", "cursor", "cursorId").String()
			}
			do(`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}], "$db": "t"}`)
			for _, stages := range []string{`{"$limit": 2}`, `{"$sort": {"_id": 1}}, {"$limit": 2}`, `{"$match": {"_id": {"$lt": 3}}}, {"$limit": 2}`, `{"$limit": 2}, {"$project": {"_id": 1}}`, `{"$limit": 9}, {"$skip": 1}`} {
				r := do(`{"aggregate": "c", "pipeline": [` + stages + `], "cursor": {"batchSize": 0}, "$db": "t"}`)
				id, _ := r.Lookup("cursor", "id").AsInt64()
				if batch := r.Lookup("cursor", "firstBatch").String(); id == 0 || batch != "[]" {
					t.Fatalf("%s: cursor %d, first batch %s", stages, id, batch)
				}
				if got := idle(); got != strconv.FormatInt(id, 10) {
					t.Errorf("%s: cursor %d is not idle, but %s", stages, id, got)
				}
				more := `{"getMore": {"$numberLong": "` + strconv.FormatInt(id, 10) + `"}, "collection": "c", "$db": "t"}`
				r = do(more)
				if left, _ := r.Lookup("cursor", "id").AsInt64(); left != 0 || r.Lookup("cursor", "nextBatch", "1").Type == 0 || r.Lookup("cursor", "nextBatch", "2").Type != 0 {
					t.Errorf("%s: getMore answers %v", stages, r)
				}
				if got := idle(); got != (bson.RawValue{}).String() {
					t.Errorf("%s: still idle: %s", stages, got)
				}
				if code := errorCode(do(more)); code != 43 {
					t.Errorf("%s: another getMore answers %d", stages, code)
				}
			}
		})
	}
}
