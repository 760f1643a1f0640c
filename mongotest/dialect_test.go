package mongotest_test

import (
	"slices"
	"testing"

	"allium/bson"
	"allium/mongotest"
)

// dialects are versions of each way in which servers have spoken of wrong arguments: until 4.4 many
// parsers were written by hand, since 5.0 they are made of definitions.
var dialects = []string{"4.4.0", "5.0", "7.0.8", "9.0"}

// dialectTests are what servers since 5.0 say to wrong arguments. The texts are those of a 7.0.8,
// as others have published them: what a test suite for that version expects. Where 4.4 says
// something else, the recordings have it.
var dialectTests = func() []argumentTest {
	const numbers = "expected types '[long, int, decimal, double']"
	const flags = "expected types '[bool, long, int, decimal, double']"
	return []argumentTest{
		// Commands that took any field before, say the release notes of 5.0.
		{"db", `{"ping": 1, "nosuch": 1}`, "40415: BSON field 'ping.nosuch' is an unknown field."},
		{"db", `{"drop": "c", "nosuch": 1}`, "40415: BSON field 'drop.nosuch' is an unknown field."},
		{"db", `{"dropDatabase": 1, "nosuch": 1}`, "40415: BSON field 'dropDatabase.nosuch' is an unknown field."},
		{"db", `{"endSessions": [], "nosuch": 1}`, "40415: BSON field 'endSessions.nosuch' is an unknown field."},
		{"db", `{"refreshSessions": [], "nosuch": 1}`, "40415: BSON field 'refreshSessions.nosuch' is an unknown field."},
		{"db", `{"killCursors": "c", "cursors": [], "nosuch": 1}`, "40415: BSON field 'killCursors.nosuch' is an unknown field."},
		{"db", `{"endSessions": "x"}`, "14: BSON field 'endSessions.endSessions' is the wrong type 'string', expected type 'array'"},
		{"db", `{"refreshSessions": "x"}`, "14: BSON field 'refreshSessions.refreshSessions' is the wrong type 'string', expected type 'array'"},
		{"db", `{"refreshSessions": [{}]}`, "40414: BSON field 'refreshSessions.refreshSessionsFromClient.id' is missing but a required field"},
		{"db", `{"refreshSessions": [{"id": {"$binary": {"base64": "", "subType": "01"}}}]}`,
			"14: BSON field 'refreshSessions.refreshSessionsFromClient.id' is the wrong binData type 'function', expected type 'UUID'"},

		{"db", `{"find": "c", "batchSize": true}`, "14: BSON field 'FindCommandRequest.batchSize' is the wrong type 'bool', " + numbers},
		{"db", `{"find": "c", "limit": {}}`, "14: BSON field 'FindCommandRequest.limit' is the wrong type 'object', " + numbers},
		{"db", `{"find": "c", "filter": "x"}`, "14: Expected field filterto be of type object"},
		{"db", `{"find": "c", "nosuch": 1}`, "40415: BSON field 'FindCommandRequest.nosuch' is an unknown field."},
		{"db", `{"find": "c", "batchSize": -1}`, "51024: BSON field 'batchSize' value must be >= 0, actual value '-1'"},
		{"db", `{"find": "c", "limit": -1}`, "51024: BSON field 'limit' value must be >= 0, actual value '-1'"},
		{"db", `{"find": "c", "skip": -1.5}`, "51024: BSON field 'skip' value must be >= 0, actual value '-1'"},
		{"db", `{"find": "c", "skip": null, "let": null, "limit": null}`, "ok"},
		{"db", `{"find": "c", "filter": null}`, "14: Expected field filterto be of type object"},
		{"db", `{"find": "c", "hint": 1}`, "9: Hint must be a string or an object"},
		{"db", `{"explain": 5}`, "14: BSON field 'explain.explain' is the wrong type 'int', expected type 'object'"},
		{"db", `{"explain": null}`, "40414: BSON field 'explain.explain' is missing but a required field"},
		{"db", `{"explain": {"find": "c"}, "verbosity": 5}`, "14: BSON field 'explain.verbosity' is the wrong type 'int', expected type 'string'"},
		{"db", `{"explain": {"find": "c"}, "verbosity": "nope"}`, "2: Enumeration value 'nope' for field 'explain.verbosity' is not a valid value."},
		{"db", `{"explain": {"find": "c"}, "nosuch": 1}`, "40415: BSON field 'explain.nosuch' is an unknown field."},
		{"db", `{"find": "c", "sort": "x"}`, "14: Expected field sortto be of type object"},
		{"db", `{"find": "c", "singleBatch": 1}`, "14: Field 'singleBatch' should be a boolean value, but found: int"},
		{"db", `{"find": "c", "showRecordId": null}`, "14: Field 'showRecordId' should be a boolean value, but found: null"},
		{"db", `{"find": "c", "maxTimeMS": "x"}`, "2: maxTimeMS must be a number"},
		{"db", `{"find": "c", "maxTimeMS": -1}`, "2: -1 value for maxTimeMS is out of range [0, 2147483647]"},
		{"db", `{"aggregate": "c", "pipeline": [], "cursor": {}, "maxTimeMS": -1}`, "51024: BSON field 'maxTimeMS' value must be >= 0, actual value '-1'"},
		{"db", `{"aggregate": "c", "pipeline": [], "cursor": {}, "maxTimeMS": "x"}`, "14: BSON field 'aggregate.maxTimeMS' is the wrong type 'string', " + numbers},
		{"db", `{"aggregate": "c", "pipeline": [], "cursor": {}, "maxTimeMS": null}`, "2: maxTimeMS must be a number"},
		{"db", `{"aggregate": "c", "pipeline": [], "cursor": {"batchSize": true}}`, "14: BSON field 'cursor.batchSize' is the wrong type 'bool', " + numbers},
		{"db", `{"aggregate": "c", "pipeline": [], "cursor": {"batchSize": -1}}`, "51024: BSON field 'batchSize' value must be >= 0, actual value '-1'"},
		{"db", `{"aggregate": "c", "pipeline": [], "cursor": 1}`, "14: cursor field must be missing or an object"},
		{"db", `{"getMore": {"$numberLong": "1"}, "collection": "c", "batchSize": -1}`, "51024: BSON field 'batchSize' value must be >= 0, actual value '-1'"},
		{"db", `{"getMore": {"$numberLong": "1"}, "collection": "c", "maxTimeMS": "x"}`, "14: BSON field 'getMore.maxTimeMS' is the wrong type 'string', " + numbers},
		{"db", `{"getMore": {"$numberLong": "1"}, "collection": "c", "maxTimeMS": -1}`, "2: -1 value for maxTimeMS is out of range [0, 2147483647]"},
		{"db", `{"getMore": {"$numberLong": "1"}, "collection": ""}`, "73: Collection names cannot be empty"},
		{"db", `{"count": "c", "query": {}, "skip": null, "limit": null}`, "ok"},

		{"db", `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": 1}]}`, "14: BSON field 'update.updates.multi' is the wrong type 'int', expected type 'bool'"},
		{"db", `{"insert": "c", "documents": [{"_id": 1}], "ordered": "x"}`, "14: BSON field 'insert.ordered' is the wrong type 'string', expected type 'bool'"},
		{"db", `{"findAndModify": "c", "query": {}, "remove": "x"}`, "14: BSON field 'findAndModify.remove' is the wrong type 'string', " + flags},
		{"db", `{"findAndModify": "c", "query": {}, "new": "x"}`, "14: BSON field 'findAndModify.new' is the wrong type 'string', " + flags},
		{"db", `{"findAndModify": "c", "query": {}, "upsert": true, "remove": true}`, "9: Cannot specify both upsert=true and remove=true "},

		{"db", `{"create": "c"}`, "ok"},
		{"db", `{"createIndexes": "c", "indexes": null}`, "10065: invalid parameter: expected an object (indexes)"},
		{"db", `{"createIndexes": "c", "indexes": {}}`, "14: BSON field 'createIndexes.indexes' is the wrong type 'object', expected type 'array'"},
		{"db", `{"createIndexes": "c", "indexes": ["x"]}`, "14: BSON field 'createIndexes.indexes.0' is the wrong type 'string', expected type 'object'"},
		{"db", `{"createIndexes": 1, "indexes": []}`, "2: collection name has invalid type int"},
		{"db", `{"createIndexes": "c", "indexes": [{"key": {"v": 1}, "name": "x", "unique": {}}]}`,
			"14: Error in specification { key: { v: 1 }, name: \"x\", unique: {} } :: caused by :: The field 'unique has value unique: {}, which is not convertible to bool"},
		{"db", `{"createIndexes": "c", "indexes": [{"key": {"v": 1}, "name": "v_1"}, {"key": {"v": 1}, "name": "v_1"}]}`, "68: Identical index already exists: v_1"},
		{"db", `{"createIndexes": "c", "indexes": [{"key": {"w": 1}, "name": "foo"}]}`, "ok"},
		{"db", `{"createIndexes": "c", "indexes": [{"key": {"w": 1}, "name": "bar"}]}`, "85: Index already exists with a different name: foo"},
		{"db", `{"createIndexes": "c", "indexes": [{"key": {"v": -1, "v": 1}, "name": "twice"}]}`,
			"2: Error in specification { key: { v: -1, v: 1 }, name: \"twice\" } :: caused by :: The field 'v' appears multiple times in the index key pattern { v: -1, v: 1 }"},
		{"admin", `{"saslStart": 1, "mechanism": "PLAIN", "payload": ""}`, "334: Received authentication for mechanism PLAIN which is not enabled"},
		{"admin", `{"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": "", "options": {"skipEmptyExchange": "x"}}`, "18: Authentication failed."},
		{"db", `{"dropIndexes": "c"}`, "40414: BSON field 'dropIndexes.index' is missing but a required field"},
		{"db", `{"dropIndexes": "c", "index": true}`, "14: BSON field 'dropIndexes.index' is the wrong type 'bool', expected types '[string, object']"},
		{"db", `{"dropIndexes": "c", "index": [{"v": 1}]}`, "14: BSON field 'dropIndexes.index' is the wrong type 'array', expected types '[string']"},
		{"db", `{"dropIndexes": 1, "index": "x"}`, "2: collection name has invalid type int"},
		{"db", `{"dataSize": {}}`, "14: BSON field 'dataSize.dataSize' is the wrong type 'object', expected type 'string'"},

		{"admin", `{"getParameter": {"allParameters": "1"}}`, "14: BSON field 'getParameter.allParameters' is the wrong type 'string', " + flags},
		{"admin", `{"getParameter": {"showDetails": true}}`, "72: no option found to get"},
		{"admin", `{"getParameter": "1", "quiet": 1}`, "ok"},
		{"admin", `{"getLog": null}`, "40414: BSON field 'getLog.getLog' is missing but a required field"},
		{"admin", `{"getLog": []}`, "14: BSON field 'getLog.getLog' is the wrong type 'array', expected type 'string'"},
		{"admin", `{"getLog": "x"}`, "96: No log named 'x'"},

		{"db", `{"createUser": "u", "roles": [], "pwd": true}`, "14: BSON field 'createUser.pwd' is the wrong type 'bool', expected type 'string'"},
		{"db", `{"createUser": "u", "roles": [], "pwd": ""}`, "50687: Error preflighting UTF-8 conversion: U_STRING_NOT_TERMINATED_WARNING"},
		{"db", `{"createUser": "u", "roles": [], "pwd": "pass\u0007word"}`, "50692: Error preflighting normalization: U_STRINGPREP_PROHIBITED_ERROR"},
		{"db", `{"createUser": "u", "roles": [], "pwd": "p", "mechanisms": []}`, "2: mechanisms field must not be empty"},
		{"db", `{"createUser": "u", "pwd": "p"}`, "40414: BSON field 'createUser.roles' is missing but a required field"},
		{"db", `{"createUser": "u", "pwd": "p", "roles": null}`, "10065: invalid parameter: expected an object (roles)"},
		{"db", `{"createUser": "u", "pwd": "p", "roles": "x"}`, "14: BSON field 'createUser.roles' is the wrong type 'string', expected type 'array'"},
		{"db", `{"createUser": "", "pwd": "p", "roles": []}`, "2: User document needs 'user' field to be non-empty"},
		{"db", `{"updateUser": "", "pwd": "p"}`, "11: User @db not found"},
		{"db", `{"updateUser": "u", "roles": "x"}`, "14: BSON field 'updateUser.roles' is the wrong type 'string', expected type 'array'"},
		{"db", `{"usersInfo": null}`, "2: UserName must be either a string or an object"},
		{"db", `{"usersInfo": {"foo": "bar"}}`, "2: UserName contains an unknown field named: 'foo"},
		{"db", `{"usersInfo": {"user": 123, "db": "db"}}`, "2: UserName must contain a string field named: user. But, has type int"},
		{"db", `{"usersInfo": [{"user": "u"}]}`, "2: UserName must contain a field named: db"},
		{"db", `{"usersInfo": [{"db": "db"}]}`, "2: UserName must contain a field named: user"},
		{"db", `{"usersInfo": []}`, "2: $and/$or/$nor must be a nonempty array"},
	}
}()

// before70 are those of dialectTests that 6.0 answers in another way.
var before70 = map[string]string{
	`{"find": "c", "maxTimeMS": -1}`:                                        "2: -1 value for maxTimeMS is out of range",
	`{"getMore": {"$numberLong": "1"}, "collection": "c", "maxTimeMS": -1}`: "2: -1 value for maxTimeMS is out of range",
}

// sinceParsed are those of dialectTests that 8.2 answers in another way: its texts, too, are what
// others have published.
var sinceParsed = func() map[string]string {
	const numbers = "expected types '[decimal, int, double, long]'"
	const flags = "expected types '[int, decimal, long, bool, double]'"
	return map[string]string{
		`{"find": "c", "batchSize": true}`:                                       "14: BSON field 'FindCommandRequest.batchSize' is the wrong type 'bool', " + numbers,
		`{"find": "c", "limit": {}}`:                                             "14: BSON field 'FindCommandRequest.limit' is the wrong type 'object', " + numbers,
		`{"find": "c", "batchSize": -1}`:                                         "2: BSON field 'batchSize' value must be >= 0, actual value '-1'",
		`{"find": "c", "limit": -1}`:                                             "2: BSON field 'limit' value must be >= 0, actual value '-1'",
		`{"find": "c", "skip": -1.5}`:                                            "2: BSON field 'skip' value must be >= 0, actual value '-1'",
		`{"find": "c", "maxTimeMS": "x"}`:                                        "14: BSON field 'FindCommandRequest.maxTimeMS' is the wrong type 'string', " + numbers,
		`{"find": "c", "maxTimeMS": -1}`:                                         "2: BSON field 'maxTimeMS' value must be >= 0, actual value '-1'",
		`{"aggregate": "c", "pipeline": [], "cursor": {}, "maxTimeMS": -1}`:      "2: BSON field 'maxTimeMS' value must be >= 0, actual value '-1'",
		`{"aggregate": "c", "pipeline": [], "cursor": {}, "maxTimeMS": "x"}`:     "14: BSON field 'aggregate.maxTimeMS' is the wrong type 'string', " + numbers,
		`{"aggregate": "c", "pipeline": [], "cursor": {}, "maxTimeMS": null}`:    "ok",
		`{"aggregate": "c", "pipeline": [], "cursor": {"batchSize": true}}`:      "14: BSON field 'cursor.batchSize' is the wrong type 'bool', " + numbers,
		`{"aggregate": "c", "pipeline": [], "cursor": {"batchSize": -1}}`:        "2: BSON field 'batchSize' value must be >= 0, actual value '-1'",
		`{"getMore": {"$numberLong": "1"}, "collection": "c", "batchSize": -1}`:  "2: BSON field 'batchSize' value must be >= 0, actual value '-1'",
		`{"getMore": {"$numberLong": "1"}, "collection": "c", "maxTimeMS": "x"}`: "14: BSON field 'getMore.maxTimeMS' is the wrong type 'string', " + numbers,
		`{"getMore": {"$numberLong": "1"}, "collection": "c", "maxTimeMS": -1}`:  "2: BSON field 'maxTimeMS' value must be >= 0, actual value '-1'",
		`{"count": "c", "query": {}, "skip": null, "limit": null}`:               "2: limit value is not a valid number",
		`{"findAndModify": "c", "query": {}, "remove": "x"}`:                     "14: BSON field 'findAndModify.remove' is the wrong type 'string', " + flags,
		`{"findAndModify": "c", "query": {}, "new": "x"}`:                        "14: BSON field 'findAndModify.new' is the wrong type 'string', " + flags,
		`{"createIndexes": "c", "indexes": null}`:                                "40414: BSON field 'createIndexes.indexes' is missing but a required field",
		`{"createIndexes": 1, "indexes": []}`:                                    "73: collection name has invalid type int",
		`{"dropIndexes": 1, "index": "x"}`:                                       "73: collection name has invalid type int",
		`{"createUser": "u", "pwd": "p", "roles": null}`:                         "40414: BSON field 'createUser.roles' is missing but a required field",
		`{"getParameter": {"allParameters": "1"}}`:                               "14: BSON field 'getParameter.allParameters' is the wrong type 'string', " + flags,
	}
}()

func TestDialect(t *testing.T) {
	tests := dialectTests
	since70 := []argumentTest{
		{"db", `{"find": 1}`, "73: Failed to parse namespace element"},
		{"db", `{"create": "a$"}`, "73: Invalid collection name: a$"},
		{"db", `{"create": ".c."}`, "73: Collection names cannot start with '.': .c."},
		{"a$b", `{"create": "c"}`, "73: Invalid namespace: a$b.c"},
		{"database.test", `{"create": "c"}`, "73: '.' is an invalid character in a db name: database.test"},
		{"a b", `{"create": "c"}`, "73: Invalid namespace specified 'a b.c'"},
		{"/", `{"insert": "c", "documents": [{}]}`, "73: Invalid namespace specified '/.c'"},
		{`a\b`, `{"find": "c"}`, `73: Invalid namespace specified 'a\b.c'`},
		{"/", `{"dbStats": 1}`, "73: Invalid database name: '/'"},
		{"db", `{"dataSize": "invalid"}`, "73: Namespace invalid is not a valid collection name"},
		{"db", `{"distinct": null, "key": "a"}`, "73: Failed to parse namespace element"},
	}
	// The definitions of these are written like those above.
	alike := []argumentTest{
		{"db", `{"createRole": "r", "roles": []}`, "40414: BSON field 'createRole.privileges' is missing but a required field"},
		{"db", `{"grantRolesToUser": "u"}`, "40414: BSON field 'grantRolesToUser.roles' is missing but a required field"},
		{"db", `{"dropUser": 1}`, "14: BSON field 'dropUser.dropUser' is the wrong type 'int', expected type 'string'"},
		{"db", `{"rolesInfo": [1]}`, "2: RoleName must be either a string or an object"},
	}
	for _, version := range dialects[1:] {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		all := slices.Concat(tests, alike)
		if version != "5.0" {
			all = append(all, since70...)
		}
		for _, test := range all {
			want := test.want
			if other, ok := sinceParsed[test.cmd]; ok && version == "9.0" {
				want = other
			} else if other, ok := before70[test.cmd]; ok && version == "5.0" {
				want = other
			}
			if got := errorOf(askText(t, c, test.db, test.cmd)); got != want {
				t.Errorf("%s: %s:\ngot  %s\nwant %s", version, test.cmd, got, want)
			}
		}
	}
}

// What servers since 5.0 have in replies which 4.4 has not, and how: of numbers the type.
func TestRepliesSince50(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("7.0.8"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1}]}`))
	for _, test := range []struct{ db, cmd, field, want string }{
		{"db", `{"dbStats": 1}`, "collections", "long"},
		{"db", `{"dbStats": 1}`, "scaleFactor", "long"},
		{"db", `{"dbStats": 1}`, "freeStorageSize", ""},
		{"db", `{"dbStats": 1, "freeStorage": 1}`, "freeStorageSize", "double"},
		{"db", `{"dataSize": "db.c"}`, "numObjects", "long"},
		{"db", `{"dataSize": "db.nosuch"}`, "estimate", ""},
		{"db", `{"collStats": "nosuch"}`, "numOrphanDocs", "int"},
		{"db", `{"validate": "c"}`, "uuid", "binData"},
		{"db", `{"validate": "c"}`, "corruptRecords", "array"},
		{"db", `{"dropAllUsersFromDatabase": 1}`, "n", "int"},
		{"admin", `{"getLog": "global"}`, "log", "array"},
		{"admin", `{"listCommands": 1}`, "commands", "object"},
		{"admin", `{"getParameter": {"showDetails": true}, "quiet": 1}`, "quiet", "object"},
	} {
		v := ok(t, askText(t, c, test.db, test.cmd)).Lookup(test.field)
		got := map[bson.Type]string{bson.TypeInt64: "long", bson.TypeInt32: "int", bson.TypeDouble: "double", bson.TypeBinary: "binData",
			bson.TypeArray: "array", bson.TypeEmbeddedDocument: "object"}[v.Type]
		if got != test.want {
			t.Errorf("%s: %s is of type %q, want %q", test.cmd, test.field, got, test.want)
		}
	}
	if used, _ := ok(t, askText(t, c, "db", `{"dbStats": 1}`)).Lookup("fsUsedSize").Double(); used <= 0 {
		t.Errorf("%v bytes of the disk are used", used)
	}
}

// TestCollStatsStage is what $collStats shows of a collection, in its order whatever the order of
// what is asked for, and that its unit is cut.
func TestCollStatsStage(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("7.0.8"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}`))
	for _, spec := range []string{`{"count": {}, "storageStats": {"scale": 42.9}, "latencyStats": {}}`, `{"latencyStats": {}, "storageStats": {"scale": 42}, "count": {}}`} {
		reply := ok(t, askText(t, c, "db", `{"aggregate": "c", "pipeline": [{"$collStats": `+spec+`}], "cursor": {}}`))
		doc, _ := reply.Lookup("cursor", "firstBatch", "0").Document()
		var keys []string
		for k := range doc.All() {
			keys = append(keys, k)
		}
		if want := []string{"ns", "host", "localTime", "latencyStats", "storageStats", "count"}; !slices.Equal(keys, want) {
			t.Errorf("%s: %v, want %v", spec, keys, want)
		}
		if v := doc.Lookup("count"); v.Type != bson.TypeInt32 {
			t.Errorf("%s: count is %v", spec, v)
		}
		if scale, _ := doc.Lookup("storageStats", "scaleFactor").AsInt64(); scale != 42 {
			t.Errorf("%s: scaleFactor %d, want 42", spec, scale)
		}
	}
}

// TestCompatibilityVersions is to which series a version may be set: itself, the one before, and
// the last one that is supported for long.
func TestCompatibilityVersions(t *testing.T) {
	series := []string{"4.2", "4.4", "5.0", "6.0", "7.0", "8.0", "8.1", "8.2", "8.3", "9.0"}
	for version, want := range map[string][]string{
		"5.0": {"4.4", "5.0"}, "6.0": {"5.0", "6.0"}, "8.0": {"7.0", "8.0"}, "8.1": {"8.0", "8.1"}, "8.2": {"8.0", "8.1", "8.2"}, "9.0": {"8.0", "8.3", "9.0"},
	} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		var got []string
		for _, s := range series {
			if errorOf(askText(t, c, "admin", `{"setFeatureCompatibilityVersion": "`+s+`", "confirm": true}`)) == "ok" {
				got = append(got, s)
			}
		}
		if version < "7" { // they do not have to be asked twice
			got = nil
			for _, s := range series {
				if errorOf(askText(t, c, "admin", `{"setFeatureCompatibilityVersion": "`+s+`"}`)) == "ok" {
					got = append(got, s)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", version, got, want)
		}
	}
}

// TestUsersAcrossDatabases: since 5.0 usersInfo has users by their names, and only then by their
// databases.
func TestUsersAcrossDatabases(t *testing.T) {
	for version, want := range map[string][]string{"4.4.0": {"a.one", "a.two", "b.i"}, "7.0.8": {"b.i", "a.one", "a.two"}} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		for _, u := range [][2]string{{"a", "one"}, {"a", "two"}, {"b", "i"}} {
			ok(t, askText(t, c, u[0], `{"createUser": "`+u[1]+`", "pwd": "p", "roles": []}`))
		}
		reply := ok(t, askText(t, c, "admin", `{"usersInfo": {"forAllDBs": true}}`))
		users, _ := reply.Lookup("users").Array()
		var got []string
		for v := range users.Values() {
			doc, _ := v.Document()
			id, _ := doc.Lookup("_id").StringValue()
			got = append(got, id)
		}
		if len(got) != len(want) || got[0] != want[0] || got[2] != want[2] {
			t.Errorf("%s: %v, want %v", version, got, want)
		}
	}
}

// An index filter goes with its collection.
func TestIndexFilterOfDropped(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("7.0"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	filters := func(coll string) int {
		list, _ := ok(t, askText(t, c, "db", `{"planCacheListFilters": "`+coll+`"}`)).Lookup("filters").Array()
		n := 0
		for range list.Values() {
			n++
		}
		return n
	}
	ok(t, askText(t, c, "db", `{"create": "c"}`))
	ok(t, askText(t, c, "db", `{"planCacheSetFilter": "c", "query": {"a": 1}, "indexes": [{"a": 1}]}`))
	ok(t, askText(t, c, "admin", `{"renameCollection": "db.c", "to": "db.d"}`))
	if got := filters("d"); got != 1 {
		t.Errorf("after a rename: %d filters", got)
	}
	ok(t, askText(t, c, "db", `{"drop": "d"}`))
	ok(t, askText(t, c, "db", `{"create": "d"}`))
	if got := filters("d"); got != 0 {
		t.Errorf("after a drop: %d filters", got)
	}
}
