package mongotest_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// checkErrors runs commands one after the other and compares code and text of the errors; code 0 is
// success. %d in a command stands for the id of the last cursor.
func checkErrors(t *testing.T, d *mongotest.Deployment, steps []errorStep) {
	t.Helper()
	c := dial(t, d.Hosts()[0])
	var cursor int64
	for _, s := range steps {
		reply := command(t, c, extJSON(t, strings.ReplaceAll(s.command, "%d", strconv.FormatInt(cursor, 10))))
		code, _ := reply.Lookup("code").AsInt64()
		text, _ := reply.Lookup("errmsg").StringValue()
		if code != s.code || s.text != text {
			t.Errorf("%s\ngot  %d %s\nwant %d %s", s.command, code, text, s.code, s.text)
		}
		if id, ok := reply.Lookup("cursor", "id").AsInt64(); ok && id != 0 {
			cursor = id
		}
	}
}

type errorStep struct {
	command string
	code    int64
	text    string
}

// The Stable API's parameters (specification: stable API): what they refuse, and that a cursor and
// a transaction keep them.
func TestStableAPI(t *testing.T) {
	const manual = " Information on supported commands and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api"
	const lsid = `"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAA==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}, "autocommit": false`
	steps := []errorStep{
		{`{"ping": 1, "apiVersion": "1", "$db": "admin"}`, 0, ""},
		{`{"ping": 1, "apiVersion": "3", "$db": "admin"}`, 322, `API version must be either "1" or "2"`},
		{`{"ping": 1, "apiVersion": 1, "$db": "admin"}`, 14, "BSON field 'APIParametersFromClient.apiVersion' is the wrong type 'int', expected type 'string'"},
		{`{"ping": 1, "apiVersion": "1", "apiStrict": 1, "$db": "admin"}`, 14, "BSON field 'APIParametersFromClient.apiStrict' is the wrong type 'int', expected type 'bool'"},
		{`{"ping": 1, "apiStrict": true, "$db": "admin"}`, 4886600, "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion"},
		{`{"ping": 1, "apiStrict": false, "$db": "admin"}`, 4886600, "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion"},
		{`{"ping": 1, "apiVersion": "1", "apiStrict": true, "$db": "admin"}`, 0, ""},
		{`{"distinct": "c", "key": "a", "apiVersion": "1", "apiStrict": true, "$db": "t"}`, 323, "Provided apiStrict:true, but the command distinct is not in API Version 1." + manual},
		{`{"testVersion2": 1, "apiVersion": "1", "apiStrict": true, "$db": "admin"}`, 323, "Provided apiStrict:true, but the command testVersion2 is not in API Version 1." + manual},
		{`{"testVersion2": 1, "apiVersion": "2", "apiStrict": true, "$db": "admin"}`, 0, ""},
		{`{"testDeprecation": 1, "apiVersion": "1", "apiDeprecationErrors": true, "$db": "admin"}`, 324, "Provided apiDeprecationErrors:true, but the command testDeprecation is deprecated in API Version 1"},
		{`{"testDeprecation": 1, "apiVersion": "1", "$db": "admin"}`, 0, ""},
		{`{"aggregate": "c", "pipeline": [{"$indexStats": {}}], "cursor": {}, "apiVersion": "1", "apiStrict": true, "$db": "t"}`, 323, "stage $indexStats is not allowed with 'apiStrict: true' in API Version 1"},
		{`{"aggregate": "c", "pipeline": [{"$unionWith": {"coll": "c", "pipeline": [{"$indexStats": {}}]}}], "cursor": {}, "apiVersion": "1", "apiStrict": true, "$db": "t"}`, 323, "stage $indexStats is not allowed with 'apiStrict: true' in API Version 1"},
		{`{"aggregate": "c", "pipeline": [{"$facet": {"f": [{"$lookup": {"from": "c", "as": "c", "pipeline": [{"$collStats": {"storageStats": {}}}]}}]}}], "cursor": {}, "apiVersion": "1", "apiStrict": true, "$db": "t"}`, 323, "only the 'count' option to $collStats is supported in API Version 1"},
		{`{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}], "$db": "t"}`, 0, ""},
		{`{"find": "c", "batchSize": 1, "apiVersion": "1", "$db": "t"}`, 0, ""},
		{`{"getMore": {"$numberLong": "%d"}, "collection": "c", "$db": "t"}`, 347, `API parameter mismatch: getMore used params {}, the cursor-creating command used { apiVersion: "1" }`},
		{`{"find": "c", "apiVersion": "1", "startTransaction": true, ` + lsid + `, "$db": "t"}`, 0, ""},
		{`{"find": "c", ` + lsid + `, "$db": "t"}`, 347, `API parameter mismatch: transaction-continuing command used params {}, the transaction's first command used { apiVersion: "1" }`},
	}
	checkErrors(t, mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("5.0")), steps)
	old := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("4.4"))
	checkErrors(t, old, []errorStep{{`{"find": "c", "apiVersion": "1", "$db": "t"}`, 9, `Failed to parse: { find: "c", apiVersion: "1", $db: "t" }. Unrecognized field 'apiVersion'.`}})
}

// What newer servers answer to malformed commands: there are no recordings of those.
func TestErrorsOfNewServers(t *testing.T) {
	steps := []errorStep{
		{`{"find": 1, "$db": "t"}`, 73, "Failed to parse namespace element"},
		{`{"find": "c", "foo": 1, "$db": "t"}`, 40415, "BSON field 'FindCommandRequest.foo' is an unknown field."},
		{`{"find": "c", "filter": 1, "$db": "t"}`, 14, "Expected field filterto be of type object"},
		{`{"aggregate": "c", "cursor": {}, "$db": "t"}`, 40414, "BSON field 'aggregate.pipeline' is missing but a required field"},
		{`{"aggregate": "c", "pipeline": [], "cursor": {}, "foo": 1, "$db": "t"}`, 40415, "BSON field 'aggregate.foo' is an unknown field."},
		{`{"insert": "c", "documents": 1, "$db": "t"}`, 14, "BSON field 'insert.documents' is the wrong type 'int', expected type 'array'"},
		{`{"insert": "c", "documents": [{"_id": 1}], "rawData": true, "$db": "t"}`, 0, ""},
		{`{"count": "c", "comment": {"a": 1}, "$db": "t"}`, 0, ""},
		{`{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"_id": 1}}], "$db": "t"}`, 0, ""},
		{`{"find": "v", "tailable": true, "$db": "t"}`, 168, "Tailable cursors are not supported in aggregation."},
		{`{"drop": "nosuch", "$db": "t"}`, 0, ""},
		{`{"mapReduce": "c", "map": "x", "reduce": "y", "out": {"inline": 1}, "$db": "t"}`, 139, "MapReduce internal error :: caused by :: ReferenceError: x is not defined :\n_funcs1@:1:31\n"},
		{`{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a.$b": 1}}}], "$db": "t"}`, 0, ""},
	}
	checkErrors(t, mongotest.Start(t, mongotest.Standalone(), mongotest.Version("8.2")), steps)
}

// A view answers queries as its pipeline does, and its cursor goes on over several batches.
func TestFindOnView(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone())
	c := dial(t, d.Hosts()[0])
	ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{"_id": 1, "n": 3}, {"_id": 2, "n": 2}, {"_id": 3, "n": 1}], "$db": "t"}`)))
	ok(t, command(t, c, extJSON(t, `{"create": "v", "viewOn": "c", "pipeline": [{"$match": {"n": {"$gt": 1}}}], "$db": "t"}`)))
	first := ok(t, command(t, c, extJSON(t, `{"find": "v", "sort": {"n": 1}, "projection": {"n": 1, "_id": 0}, "batchSize": 1, "$db": "t"}`)))
	if n, _ := first.Lookup("cursor", "firstBatch", "0", "n").AsInt64(); n != 2 {
		t.Errorf("the first document is %s", first)
	}
	id, _ := first.Lookup("cursor", "id").Int64()
	more := ok(t, run(t, c, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "v"}, {Key: "$db", Value: "t"}}))
	if n, _ := more.Lookup("cursor", "nextBatch", "0", "n").AsInt64(); n != 3 {
		t.Errorf("the second document is in %s", more)
	}
}

// validateDBMetadata names what the Stable API does not have, at any depth of a view, and wants to
// know of which version.
func TestValidateDBMetadata(t *testing.T) {
	for _, topology := range []mongotest.Option{mongotest.Standalone(), mongotest.Sharded(2, 1)} {
		d := mongotest.Start(t, topology)
		c := dial(t, d.Hosts()[0])
		for _, cmd := range []string{
			`{"create": "plain", "viewOn": "c", "pipeline": [{"$match": {"n": 1}}], "$db": "t"}`,
			`{"create": "v", "viewOn": "c", "pipeline": [{"$unionWith": {"coll": "c", "pipeline": [{"$indexStats": {}}]}}], "$db": "t"}`,
			`{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}, {"key": {"b": 1}, "name": "b", "sparse": true}, {"key": {"x": "text"}, "name": "x"}], "$db": "t"}`,
		} {
			ok(t, command(t, c, extJSON(t, cmd)))
		}
		const index = "The index with name %s is not allowed in API version 1"
		all := []string{"t.c " + strings.Replace(index, "%s", "b", 1), "t.c " + strings.Replace(index, "%s", "x", 1),
			"t.v stage $indexStats is not allowed with 'apiStrict: true' in API Version 1"}
		for arguments, want := range map[string][]string{
			`"db": "t", "apiParameters": {"version": "1", "strict": true}`:                    all,
			`"db": "t", "collection": "c", "apiParameters": {"version": "1", "strict": true}`: all[:2],
			`"db": "t", "apiParameters": {"version": "1", "strict": false}`:                   nil,
			`"db": "u", "apiParameters": {"version": "1", "strict": true}`:                    nil,
		} {
			reply := ok(t, command(t, c, extJSON(t, `{"validateDBMetadata": 1, `+arguments+`, "$db": "admin"}`)))
			list, _ := reply.Lookup("apiVersionErrors").Array()
			var got []string
			for e := range list.Values() {
				ns, _ := bson.Raw(e.Value).Lookup("ns").StringValue()
				text, _ := bson.Raw(e.Value).Lookup("errmsg").StringValue()
				got = append(got, ns+" "+text)
				if name, _ := bson.Raw(e.Value).Lookup("codeName").StringValue(); name != "APIStrictError" {
					t.Errorf("%s: %s", arguments, name)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q", arguments, got)
			}
		}
		checkErrors(t, d, []errorStep{
			{`{"validateDBMetadata": 1, "$db": "admin"}`, 40414, "BSON field 'validateDBMetadata.apiParameters' is missing but a required field"},
			{`{"validateDBMetadata": 1, "apiParameters": {}, "$db": "admin"}`, 40414, "BSON field 'validateDBMetadata.apiParameters.version' is missing but a required field"},
			{`{"validateDBMetadata": 1, "apiParameters": {"version": 1}, "$db": "admin"}`, 14, "BSON field 'validateDBMetadata.apiParameters.version' is the wrong type 'int', expected type 'string'"},
		})
	}
	old := dial(t, mongotest.Start(t, mongotest.Standalone(), mongotest.Version("4.4")).Hosts()[0])
	reply := command(t, old, extJSON(t, `{"validateDBMetadata": 1, "apiParameters": {"version": "1"}, "$db": "admin"}`))
	if code, _ := reply.Lookup("code").AsInt64(); code != 59 {
		t.Errorf("version 4.4 answers %s", reply)
	}
}
