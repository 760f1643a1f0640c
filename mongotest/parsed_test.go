package mongotest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
)

// Servers of version 8.2 have a definition of nearly every command, and read with it what all
// commands take. What is here are the answers of an 8.2.4 that a test suite of others has, which
// compares codes; the texts follow the definitions'.

// parsedVersions are versions that read all arguments in this way.
var parsedVersions = []string{"8.2.4", "9.0"}

// wrongTypes are a value of each type, by the name that errors have for it.
var wrongTypes = []struct {
	name  string
	value any
}{
	{"string", "x"}, {"array", bson.A{1}}, {"bool", true}, {"objectId", bson.ObjectID{1}}, {"date", bson.DateTime(1)},
	{"regex", bson.Regex{Pattern: "a"}}, {"timestamp", bson.Timestamp{T: 1}}, {"minKey", bson.MinKey{}}, {"maxKey", bson.MaxKey{}},
	{"int", int32(1)}, {"long", int64(1)}, {"double", 1.5}, {"object", bson.D{}},
}

// TestEveryCommandReadsWhatAllTake sends every command each of the arguments that all take with a
// value of each type, to a mongod and to a mongos: a wrong one is refused in the same words, and
// null is as if there were none.
func TestEveryCommandReadsWhatAllTake(t *testing.T) {
	for _, version := range parsedVersions {
		v, err := release.ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		for role, topology := range map[server.Role]mongotest.Option{server.Member: mongotest.ReplicaSet(1), server.Mongos: mongotest.Sharded(1, 1)} {
			d := mongotest.Start(t, topology, mongotest.Version(version), mongotest.InMemory(), mongotest.NoScripting())
			c := dialNode(t, d, d.Node(0))
			asked := 0
			for _, cmd := range server.Commands() {
				if !v.Has(release.Command, cmd.Name) || cmd.Own || hangsUp[cmd.Name] || cmd.Roles != nil && !slices.Contains(cmd.Roles, role) ||
					cmd.Needs.Text == server.Internal.Text || cmd.Parse != nil { // whose own arguments come first
					continue
				}
				name, db := cmd.Name, "db"
				if cmd.AdminOnly {
					db = "admin"
				}
				if name == "find" {
					name = "FindCommandRequest"
				}
				asked++
				for _, field := range []string{"readConcern", "writeConcern", "maxTimeMS"} {
					for _, w := range wrongTypes {
						want := fmt.Sprintf("14: BSON field '%s.%s' is the wrong type '%s', expected type 'object'", name, field, w.name)
						if field == "maxTimeMS" {
							if w.name == "int" || w.name == "long" || w.name == "double" {
								continue
							}
							want = fmt.Sprintf("14: BSON field '%s.%s' is the wrong type '%s', expected types '[decimal, int, double, long]'", name, field, w.name)
						} else if w.name == "object" {
							continue
						}
						got := errorOrHangUp(t, c, bson.D{{Key: cmd.Name, Value: 1}, {Key: field, Value: w.value}, {Key: "$db", Value: db}})
						if got != want {
							t.Errorf("%s %v: %s with %s of type %s:\ngot  %s\nwant %s", version, role, cmd.Name, field, w.name, got, want)
						}
					}
				}
			}
			if asked < 60 {
				t.Errorf("%s %v: only %d commands were asked", version, role, asked)
			}
		}
	}
}

// TestParsedArguments are what servers of version 8.2 say to the arguments of commands whose
// parsers were still written by hand in 7.0, and of what all commands take.
func TestParsedArguments(t *testing.T) {
	tests := []argumentTest{
		{"db", `{"create": "c"}`, "ok"},
		{"db", `{"count": "c", "maxTimeMS": 1.5}`, "9: Expected an integer: maxTimeMS: 1.5"},
		{"db", `{"count": "c", "maxTimeMS": -1.5}`, "9: Expected an integer: maxTimeMS: -1.5"},
		{"db", `{"count": "c", "maxTimeMS": {"$numberDecimal": "1.5"}}`, "9: Cannot represent as a 64-bit integer: maxTimeMS: 1.5"},
		{"db", `{"count": "c", "maxTimeMS": {"$numberLong": "2147483648"}}`, "2: BSON field 'maxTimeMS' value must be <= 2147483647, actual value '2147483648'"},
		{"db", `{"count": "c", "maxTimeMS": null, "readConcern": null}`, "ok"},
		{"db", `{"count": "c", "readConcern": {"level": "nope"}}`, "2: Enumeration value 'nope' for field 'readConcern.level' is not a valid value."},
		{"db", `{"count": "c", "readConcern": {"nosuch": 1}}`, "40415: BSON field 'readConcern.nosuch' is an unknown field."},
		{"db", `{"count": "c", "readConcern": {"afterClusterTime": null}}`, "14: BSON field 'readConcern.afterClusterTime' is the wrong type 'null', expected type 'timestamp'"},
		{"db", `{"insert": "c", "documents": [{}], "writeConcern": {"j": "x"}}`, "14: BSON field 'writeConcern.j' is the wrong type 'string', expected types '[int, decimal, long, bool, double]'"},
		{"db", `{"insert": "c", "documents": [{}], "writeConcern": {"nosuch": 1}}`, "40415: BSON field 'writeConcern.nosuch' is an unknown field."},
		{"db", `{"drop": "nosuch", "writeConcern": {"w": {}}}`, "9: tagged write concern requires tags to be specified"},
		{"db", `{"drop": "nosuch", "writeConcern": {"j": null}}`, "ok"},
		{"db", `{"count": "c", "skip": "x"}`, "14: BSON field 'count.skip' is the wrong type 'string', expected types '[decimal, int, double, long]'"},
		{"db", `{"count": "c", "skip": -1}`, "2: BSON field 'skip' value must be >= 0, actual value '-1'"},
		{"db", `{"distinct": "c", "key": "a", "nosuch": 1}`, "40415: BSON field 'distinctCommandRequest.nosuch' is an unknown field."},
		{"db", `{"listIndexes": "c", "cursor": 5}`, "14: BSON field 'listIndexes.cursor' is the wrong type 'int', expected type 'object'"},
		{"db", `{"listIndexes": "c", "cursor": null}`, "ok"},
		{"db", `{"listCollections": 1, "nameOnly": 1}`, "14: BSON field 'listCollections.nameOnly' is the wrong type 'int', expected type 'bool'"},
		{"db", `{"listCollections": 1, "filter": "x"}`, "14: BSON field 'listCollections.filter' is the wrong type 'string', expected type 'object'"},
		{"db", `{"dropDatabase": 2}`, "5255100: Have to pass 1 as 'dropDatabase' parameter"},
		{"db", `{"dropDatabase": null}`, "40414: BSON field 'dropDatabase.dropDatabase' is missing but a required field"},
		{"db", `{"dropDatabase": true}`, "14: BSON field 'dropDatabase.dropDatabase' is the wrong type 'bool', expected types '[decimal, int, double, long]'"},
		{"db", `{"collMod": "c", "index": 1}`, "14: BSON field 'collMod.index' is the wrong type 'int', expected type 'object'"},
		{"db", `{"collMod": "c", "index": null, "validator": null, "viewOn": null}`, "ok"},
		{"db", `{"collMod": "c", "index": {"name": 1}}`, "14: BSON field 'collMod.index.name' is the wrong type 'int', expected type 'string'"},
		{"db", `{"collMod": "c", "validationLevel": 1}`, "14: BSON field 'collMod.validationLevel' is the wrong type 'int', expected type 'string'"},
		{"db", `{"collMod": "c", "cappedSize": "x"}`, "14: BSON field 'collMod.cappedSize' is the wrong type 'string', expected types '[decimal, int, double, long]'"},
		{"db", `{"collMod": "c", "cappedSize": 0}`, "2: BSON field 'cappedSize' value must be >= 1, actual value '0'"},
		{"db", `{"collMod": "c", "changeStreamPreAndPostImages": {}}`, "40414: BSON field 'collMod.changeStreamPreAndPostImages.enabled' is missing but a required field"},
		{"db", `{"create": "d", "changeStreamPreAndPostImages": {"enabled": 1}}`, "14: BSON field 'create.changeStreamPreAndPostImages.enabled' is the wrong type 'int', expected type 'bool'"},
		{"db", `{"create": "d", "clusteredIndex": {"key": {"_id": 1}}}`, "40414: BSON field 'create.clusteredIndex.unique' is missing but a required field"},
		{"db", `{"create": "d", "clusteredIndex": {"key": {"_id": 1}, "unique": false}}`, "5979700: The clusteredIndex option requires unique: true to be specified"},
		{"db", `{"convertToCapped": "c", "size": 0}`, "72: Capped collection size must be greater than zero"},
		{"db", `{"insert": 1, "documents": [{}]}`, "73: collection name has invalid type int"},
		{"admin", `{"renameCollection": 1, "to": "db.x"}`, "14: BSON field 'renameCollection.renameCollection' is the wrong type 'int', expected type 'string'"},
		{"db", `{"buildInfo": 1, "nosuch": 1}`, "40415: BSON field 'buildInfo.nosuch' is an unknown field."},
		{"db", `{"connectionStatus": 1, "nosuch": 1}`, "40415: BSON field 'connectionStatus.nosuch' is an unknown field."},
		{"db", `{"connectionStatus": 1, "showPrivileges": null}`, "ok"},
		{"db", `{"connectionStatus": 1, "showPrivileges": {"$undefined": true}}`, "ok"},
		{"db", `{"connectionStatus": 1, "showPrivileges": "x"}`, "14: BSON field 'connectionStatus.showPrivileges' is the wrong type 'string', expected types '[int, decimal, long, bool, double]'"},
		{"db", `{"dbStats": 1, "nosuch": 1}`, "40415: BSON field 'dbStats.nosuch' is an unknown field."},
		{"db", `{"dbStats": 1, "freeStorage": "x"}`, "14: BSON field 'dbStats.freeStorage' is the wrong type 'string', expected types '[int, decimal, long, bool, double]'"},
		{"db", `{"hostInfo": 1, "nosuch": 1}`, "40415: BSON field 'hostInfo.nosuch' is an unknown field."},
		{"db", `{"profile": 0, "nosuch": 1}`, "40415: BSON field 'profile.nosuch' is an unknown field."},
		{"db", `{"profile": null}`, "40414: BSON field 'profile.profile' is missing but a required field"},
		{"db", `{"profile": {"$undefined": true}}`, "40414: BSON field 'profile.profile' is missing but a required field"},
		{"db", `{"profile": "x"}`, "14: BSON field 'profile.profile' is the wrong type 'string', expected types '[decimal, int, double, long]'"},
		{"db", `{"profile": 0, "slowms": true}`, "14: BSON field 'profile.slowms' is the wrong type 'bool', expected types '[decimal, int, double, long]'"},
		{"db", `{"count": "c", "skip": {"$undefined": true}}`, "ok"},
		{"db", `{"planCacheClear": "nosuch", "query": 1}`, "ok"},
		{"db", `{"planCacheClear": "nosuch", "sort": {"a": 1}}`, "ok"},
		{"db", `{"planCacheClear": "nosuch", "query": {}, "projection": 1, "collation": "x"}`, "ok"},
		{"db", `{"planCacheClearFilters": "nosuch", "query": {}, "sort": 1}`, "ok"},
		{"db", `{"planCacheClearFilters": "nosuch", "query": 1, "projection": {"a": 1}}`, "ok"},
		{"db", `{"planCacheSetFilter": "nosuch", "query": {"a": 1}, "indexes": [{"a": 1}]}`, "2: no such collection"},
		{"db", `{"planCacheSetFilter": "c", "query": {"a": 1}, "indexes": [{"a": 1}], "collation": {}}`, "2: required field collation cannot be empty"},
		{"db", `{"planCacheSetFilter": "c", "query": {"a": 1}, "indexes": [{"a": 1}], "collation": {"strength": 2}}`, "40414: BSON field 'collation.locale' is missing but a required field"},
		{"db", `{"profile": 0, "sampleRate": 1.5}`, "2: 'sampleRate' must be between 0.0 and 1.0 inclusive"},
		{"admin", `{"logRotate": 1}`, "ok"},
		{"admin", `{"logRotate": 1, "nosuch": 1}`, "40415: BSON field 'logRotate.nosuch' is an unknown field."},
		{"admin", `{"logRotate": {}}`, "14: BSON field 'logRotate.logRotate' is the wrong type 'object', expected types '[int, string, decimal, long, bool, double]'"},
		{"admin", `{"getCmdLineOpts": 1, "nosuch": 1}`, "40415: BSON field 'getCmdLineOpts.nosuch' is an unknown field."},
		{"admin", `{"lockInfo": 1, "nosuch": 1}`, "40415: BSON field 'lockInfo.nosuch' is an unknown field."},
		{"db", `{"insert": "n", "documents": [{"_id": 1, "a": {"$numberDecimal": "1.5"}}, {"_id": 2, "a": {"$numberDecimal": "1"}}]}`, "ok"},
		{"db", `{"count": "n", "query": {"a": {"$size": {"$numberDecimal": "0"}}}}`, "ok"},
		{"db", `{"createIndexes": "c", "indexes": [{"key": {"g": "2d"}, "name": "g", "min": "x"}]}`,
			`14: Error in specification { key: { g: "2d" }, name: "g", min: "x" } :: caused by :: The field 'min' must be a number, but got string`},
		{"db", `{"validateDBMetadata": 1, "apiParameters": {"version": "1"}, "collection": ".c"}`, "73: Invalid collection name: .c"},
		{"admin", `{"renameCollection": "db.c", "to": "db.y", "collectionUUID": 1}`, "14: BSON field 'renameCollection.collectionUUID' is the wrong type 'int', expected type 'binData'"},
		{"admin", `{"fsyncUnlock": 1}`, "20: fsyncUnlock called when not locked"},
		{"admin", `{"killAllSessions": {"$undefined": true}}`, "40414: BSON field 'KillAllSessionsCmd.killAllSessions' is missing but a required field"},
		{"admin", `{"killAllSessions": null}`, "40414: BSON field 'KillAllSessionsCmd.killAllSessions' is missing but a required field"},
	}
	for _, version := range parsedVersions {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		for _, test := range tests {
			if got := errorOf(askText(t, c, test.db, test.cmd)); got != test.want {
				t.Errorf("%s: %s:\ngot  %s\nwant %s", version, test.cmd, got, test.want)
			}
		}
	}
}

// TestDryRun: a collMod with dryRun says whether an index could be made unique, and changes
// nothing.
func TestDryRun(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.2.4"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1", "prepareUnique": true}]}`))
	reply := ok(t, askText(t, c, "db", `{"collMod": "c", "index": {"name": "a_1", "unique": true}, "dryRun": true}`))
	if v := reply.Lookup("unique_new"); !v.IsZero() {
		t.Errorf("a dry run has changed something: %v", reply)
	}
	spec, _ := ok(t, askText(t, c, "db", `{"listIndexes": "c"}`)).Lookup("cursor", "firstBatch", "1").Document()
	if !strings.Contains(fmt.Sprint(spec), "prepareUnique") || spec.Lookup("unique").AsBool() {
		t.Errorf("after a dry run the index is %v", spec)
	}
}

// TestLaxCommands are commands that take any field even where others refuse what they do not know:
// that is measured, too.
func TestLaxCommands(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version("8.2.4"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	ok(t, askText(t, c, "db", `{"create": "c"}`))
	for _, test := range []struct{ db, cmd string }{
		{"db", `{"hello": 1, "nosuch": 1}`}, {"db", `{"isMaster": 1, "nosuch": 1}`}, {"db", `{"serverStatus": 1, "nosuch": 1}`}, {"db", `{"whatsmyuri": 1, "nosuch": 1}`},
		{"db", `{"connPoolStats": 1, "nosuch": 1}`}, {"db", `{"validate": "c", "nosuch": 1}`}, {"db", `{"startSession": 1, "nosuch": 1}`},
		{"db", `{"killAllSessions": [], "nosuch": 1}`}, {"db", `{"planCacheClear": "c", "nosuch": 1}`}, {"db", `{"planCacheListFilters": "c", "nosuch": 1}`},
		{"db", `{"planCacheClearFilters": "c", "nosuch": 1}`}, {"db", `{"convertToCapped": "c", "size": 4096, "nosuch": 1}`}, {"admin", `{"top": 1, "nosuch": 1}`},
		{"admin", `{"killOp": 1, "op": 1, "nosuch": 1}`}, {"admin", `{"applyOps": [], "nosuch": 1}`},
	} {
		if got := errorOf(askText(t, c, test.db, test.cmd)); got != "ok" {
			t.Errorf("%s: %s", test.cmd, got)
		}
	}
}

// TestPrivilegesOfBuiltinRoles: connectionStatus, usersInfo and rolesInfo show what the roles that
// nobody has made may do, each resource once.
func TestPrivilegesOfBuiltinRoles(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Auth("root", "root"))
	root, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close(t.Context())
	roles := bson.A{"read", "dbAdmin", bson.D{{Key: "role", Value: "clusterMonitor"}, {Key: "db", Value: "admin"}}}
	if _, err := root.Database("db").RunCommand(t.Context(), bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: roles}}); err != nil {
		t.Fatal(err)
	}
	client, err := allium.Open(fmt.Sprintf("mongodb://u:p@%s/?authSource=db", d.Hosts()[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	reply, err := client.Database("db").RunCommand(t.Context(), bson.D{{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}})
	if err != nil {
		t.Fatal(err)
	}
	list, _ := reply.Lookup("authInfo", "authenticatedUserPrivileges").Array()
	actions := map[string]string{}
	for v := range list.Values() {
		p, _ := v.Document()
		resource := fmt.Sprint(p.Lookup("resource"))
		if actions[resource] != "" {
			t.Errorf("%s stands there twice", resource)
		}
		actions[resource] = fmt.Sprint(p.Lookup("actions"))
	}
	if len(actions) != 3 {
		t.Errorf("privileges of %d resources, want those of the cluster, of db and of all databases: %v", len(actions), actions)
	}
	for resource, a := range actions {
		for _, want := range map[bool][]string{true: {"serverStatus", "listDatabases"}, false: {"collStats", "dbStats"}}[strings.Contains(resource, "cluster")] {
			if !strings.Contains(a, want) {
				t.Errorf("%s lacks %s: %s", resource, want, a)
			}
		}
	}
}

// TestEquivalentIndexes: since 5.0 an index with the key, the collation and the filter of another,
// and unique and sparse as that is, is the same one whatever its other options are; a collection
// has one text index.
func TestEquivalentIndexes(t *testing.T) {
	for _, version := range []string{"5.0", "7.0.8", "8.0", "9.0"} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		for _, test := range []struct{ index, want string }{
			{`{"key": {"a": 1}, "name": "a"}`, "ok"},
			{`{"key": {"a": 1}, "name": "a"}`, "ok"},
			{`{"key": {"a": 1}, "name": "b"}`, "85: Index already exists with a different name: a"},
			{`{"key": {"a": 1}, "name": "b", "expireAfterSeconds": 5}`, "85: An equivalent index already exists with a different name and options."},
			{`{"key": {"a": 1}, "name": "a", "expireAfterSeconds": 5}`, "85: An equivalent index already exists with the same name but different options."},
			{`{"key": {"a": 1}, "name": "a", "hidden": true}`, "85: An equivalent index already exists with the same name but different options."},
			{`{"key": {"a": 1}, "name": "a", "unique": true}`, "86: An existing index has the same name as the requested index."},
			{`{"key": {"a": 1}, "name": "u", "unique": true}`, "ok"},
			{`{"key": {"a": 1}, "name": "s", "sparse": true}`, "ok"},
			{`{"key": {"a": 1}, "name": "p", "partialFilterExpression": {"b": 1}}`, "ok"},
			{`{"key": {"a": 1}, "name": "c", "collation": {"locale": "en"}}`, "ok"},
			{`{"key": {"b": 1}, "name": "a"}`, "86: An existing index has the same name as the requested index."},
			{`{"key": {"x": "text", "y": "text"}, "name": "t"}`, "ok"},
			{`{"key": {"x": "text"}, "name": "t2"}`, "85: An equivalent index already exists with a different name and options."},
			{`{"key": {"g": "2d"}, "name": "g"}`, "ok"},
			{`{"key": {"g": "2d"}, "name": "h", "bits": 20}`, "85: An equivalent index already exists with a different name and options."},
		} {
			got := errorOf(askText(t, c, "db", `{"createIndexes": "c", "indexes": [`+test.index+`]}`))
			if got != test.want && !(strings.HasSuffix(test.want, ".") && strings.HasPrefix(got, test.want)) {
				t.Errorf("%s: %s:\ngot  %s\nwant %s", version, test.index, got, test.want)
			}
		}
	}
}

// TestBitsOfDecimals: a decimal that is no integer has no bits from 8.1 on.
func TestBitsOfDecimals(t *testing.T) {
	for version, want := range map[string]int64{"8.0": 2, "8.2.4": 1} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "db", `{"insert": "n", "documents": [{"a": {"$numberDecimal": "1.2"}}, {"a": {"$numberDecimal": "1"}}]}`))
		if n, _ := ok(t, askText(t, c, "db", `{"count": "n", "query": {"a": {"$bitsAllSet": 1}}}`)).Lookup("n").AsInt64(); n != want {
			t.Errorf("%s: %d documents, want %d", version, n, want)
		}
	}
}

// TestCollationSpecifications: a server 8.2.4 answers with these codes; the definition that it
// reads with is older. Before it there was a parser by hand, with other words.
func TestCollationSpecifications(t *testing.T) {
	type collationTest struct{ spec, want, since50, before50 string } // if not want
	const (
		wrong = "14: BSON field 'collation.%s' is the wrong type '%s', expected type '%s'"
		old   = `14: "%s" had the wrong type. Expected %s, found %s`
	)
	tests := []collationTest{
		{`{}`, "ok", "", ""},
		{`{"locale": "en", "strength": 5, "caseFirst": "upper", "alternate": "shifted", "maxVariable": "space", "backwards": true}`, "ok", "", ""},
		{`{"strength": 2}`, "40414: BSON field 'collation.locale' is missing but a required field", "", `4: Missing expected field "locale"`},
		{`{"locale": null}`, "40414: BSON field 'collation.locale' is missing but a required field", "", fmt.Sprintf(old, "locale", "string", "null")},
		{`{"locale": 1}`, fmt.Sprintf(wrong, "locale", "int", "string"), "", fmt.Sprintf(old, "locale", "string", "int")},
		{`{"locale": "xx"}`, `2: Field 'locale' is invalid in: { locale: "xx" }`, "", ""},
		{`{"locale": "en", "strength": 0}`, "2: BSON field 'strength' value must be >= 1, actual value '0'", "51024: BSON field 'strength' value must be >= 1, actual value '0'", "9: Field 'strength' must be an integer 1 through 5. Got: 0"},
		{`{"locale": "en", "strength": 6}`, "2: BSON field 'strength' value must be <= 5, actual value '6'", "51024: BSON field 'strength' value must be <= 5, actual value '6'", "9: Field 'strength' must be an integer 1 through 5. Got: 6"},
		{`{"locale": "en", "strength": {"$numberDouble": "NaN"}}`, "2: BSON field 'strength' value must be >= 1, actual value '0'", "51024: BSON field 'strength' value must be >= 1, actual value '0'", `2: Expected field "strength" to have a value exactly representable as a 64-bit integer, but found strength: nan.0`},
		{`{"locale": "en", "strength": {"$numberDecimal": "5.5"}}`, "2: BSON field 'strength' value must be <= 5, actual value '6'", "51024: BSON field 'strength' value must be <= 5, actual value '6'", `2: Expected field "strength" to have a value exactly representable as a 64-bit integer, but found strength: 5.5`},
		{`{"locale": "en", "strength": 2.9}`, "ok", "", `2: Expected field "strength" to have a value exactly representable as a 64-bit integer, but found strength: 2.9`},
		{`{"locale": "en", "strength": null}`, "ok", "", `14: Expected field "strength" to have numeric type, but found null`},
		{`{"locale": "en", "strength": "3"}`, "14: BSON field 'collation.strength' is the wrong type 'string', expected types '[decimal, int, double, long]'", "14: BSON field 'collation.strength' is the wrong type 'string', expected types '[long, int, decimal, double']", `14: Expected field "strength" to have numeric type, but found string`},
		{`{"locale": "en", "backwards": null}`, fmt.Sprintf(wrong, "backwards", "null", "bool"), "", fmt.Sprintf(old, "backwards", "bool", "null")},
		{`{"locale": "en", "caseFirst": "x"}`, "2: Enumeration value 'x' for field 'collation.caseFirst' is not a valid value.", "", "9: Field 'caseFirst' must be 'upper', 'lower', or 'off'. Got: x"},
		{`{"locale": "en", "alternate": "x"}`, "2: Enumeration value 'x' for field 'collation.alternate' is not a valid value.", "", "9: Field 'alternate' must be 'non-ignorable' or 'shifted'. Got: x"},
		{`{"locale": "en", "version": null}`, "ok", "", fmt.Sprintf(old, "version", "string", "null")},
		{`{"locale": "en", "version": "1"}`, `161: Requested collation version 1 but the only available collator version was 57.1. Requested collation spec: { locale: "en", version: "1" }`, "", ""},
		{`{"locale": "en", "Strength": 3}`, "40415: BSON field 'collation.Strength' is an unknown field.", "", `9: Collation spec contains unknown field. Collation spec: { locale: "en", Strength: 3 }`},
		{`{"locale": "simple", "strength": 1}`, "ok", "", `9: If locale=simple, no other fields should be present in: { locale: "simple", strength: 1 }`},
	}
	for _, field := range []string{"caseLevel", "normalization", "numericOrdering"} {
		tests = append(tests, collationTest{`{"locale": "en", "` + field + `": null}`, "ok", "", fmt.Sprintf(old, field, "bool", "null")},
			collationTest{`{"locale": "en", "` + field + `": 1}`, fmt.Sprintf(wrong, field, "int", "bool"), "", fmt.Sprintf(old, field, "bool", "int")})
	}
	for _, version := range []string{"4.4.0", "5.0", "7.0.8", "8.2.4"} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "db", `{"create": "c"}`))
		for _, test := range tests {
			want := test.want
			if before := version[0] == '4'; before && test.before50 != "" {
				want = test.before50
			} else if !before && version[0] != '8' && test.since50 != "" {
				want = test.since50
			}
			if got := errorOf(askText(t, c, "db", `{"find": "c", "collation": `+test.spec+`}`)); got != want {
				t.Errorf("%s: %s:\ngot  %s\nwant %s", version, test.spec, got, want)
			}
			if version[0] == '4' {
				continue
			}
			if test.spec == `{}` { // where it is part of the command's definition
				want = "40414: BSON field 'create.collation.locale' is missing but a required field"
			}
			want = strings.ReplaceAll(want, "'collation.", "'create.collation.")
			if got := errorOf(askText(t, c, "db", `{"create": "d", "collation": `+test.spec+`}`)); got != want {
				t.Errorf("%s: create with %s:\ngot  %s\nwant %s", version, test.spec, got, want)
			}
			ok(t, askText(t, c, "db", `{"dropDatabase": 1}`))
		}
	}
}
