package mongotest_test

import (
	"fmt"
	"testing"

	"allium/mongotest"
)

// TestAdminRules asks what others' functional tests saw an 8.2 refuse of the arguments of commands
// about the server, and what it did before.
func TestAdminRules(t *testing.T) {
	type question struct{ version, cmd, want string }
	set := func(parameter string) string { return `{"setClusterParameter": ` + parameter + `}` }
	list := []question{
		{"8.2", `{"fsync": 1, "lock": "x"}`, `14: BSON field 'fsync.lock' is the wrong type 'string', expected types '[int, decimal, long, bool, double]'`},
		{"8.2", `{"fsync": 1, "fsyncLockAcquisitionTimeoutMillis": 1.5}`, `14: BSON field 'fsync.fsyncLockAcquisitionTimeoutMillis' is the wrong type 'double', expected type 'int'`},
		{"8.2", `{"fsync": 1, "Lock": true}`, `40415: BSON field 'fsync.Lock' is an unknown field.`},
		{"8.2", `{"fsync": 1, "lock": false, "fsyncLockAcquisitionTimeoutMillis": 100}`, `ok`},
		{"8.0", `{"fsync": 1, "more": true}`, `ok`},

		{"8.2", `{"dropConnections": 1, "hostAndPort": ["a:1", "a", "[::1]:27017", "[::1]"]}`, `ok`},
		{"8.2", `{"dropConnections": 1, "hostAndPort": [":1"]}`, `9: ':1' is no host with a port`},
		{"8.2", `{"dropConnections": 1, "hostAndPort": [""]}`, `9: '' is no host with a port`},
		{"8.2", `{"dropConnections": 1, "hostAndPort": ["a:"]}`, `9: 'a:' is no host with a port`},
		{"8.2", `{"dropConnections": 1, "hostAndPort": ["a:0"]}`, `9: 'a:0' is no host with a port`},
		{"8.2", `{"dropConnections": 1, "hostAndPort": ["a:65536"]}`, `9: 'a:65536' is no host with a port`},
		{"8.2", `{"dropConnections": 1, "hostAndPort": ["a:b:c"]}`, `9: 'a:b:c' is no host with a port`},
		{"8.2", `{"dropConnections": 1, "hostAndPort": ["[::1"]}`, `9: '[::1' is no host with a port`},
		{"8.2", `{"dropConnections": 1, "hostAndPort": null}`, `40414: BSON field 'dropConnections.hostAndPort' is missing but a required field`},
		{"8.0", `{"dropConnections": 1, "hostAndPort": [":1"]}`, `ok`},

		{"8.2", set(`null`), `40414: BSON field 'setClusterParameter.setClusterParameter' is missing but a required field`},
		{"8.2", set(`{}`), `4: Unknown server parameter: `},
		{"8.2", set(`{"changeStreams": {}, "changeStreamOptions": {}}`), `72: setClusterParameter sets one parameter at a time`},
		{"8.2", set(`{"changeStreamOptions": 1}`), `2: The value of 'changeStreamOptions' must be an object`},
		{"8.2", set(`{"changeStreamOptions": {}}`), `2: 'changeStreamOptions.preAndPostImages' must be an object`},
		{"8.2", set(`{"changeStreamOptions": {"$x": 1}}`), `52: The dollar ($) prefixed field '$x' in 'changeStreamOptions' is not allowed`},
		{"8.2", set(`{"changeStreamOptions": {"preAndPostImages": {"expireAfterSeconds": true}}}`), `2: 'expireAfterSeconds' must be 'off' or a number, not of type bool`},
		{"8.2", set(`{"changeStreamOptions": {"preAndPostImages": {"expireAfterSeconds": 1}, "more": 1}}`), `2: 'changeStreamOptions.more' is an unknown field`},
		{"8.2", set(`{"changeStreams": {"expireAfterSeconds": 0}}`), `2: BSON field 'expireAfterSeconds' value must be > 0, actual value '0'`},
		{"8.2", set(`{"changeStreams": {"expireAfterSeconds": "x"}}`), `14: BSON field 'changeStreams.expireAfterSeconds' is the wrong type 'string', expected types '[decimal, int, double, long]'`},
		{"8.2", set(`{"pauseMigrationsDuringMultiUpdates": {"enabled": 1}}`), `14: BSON field 'pauseMigrationsDuringMultiUpdates.enabled' is the wrong type 'int', expected type 'bool'`},
		{"8.2", set(`{"pauseMigrationsDuringMultiUpdates": {"enabled": true}}`), `ok`},
		{"8.2", `{"getClusterParameter": []}`, `2: Must supply at least one cluster server parameter name to getClusterParameter`},
		{"8.2", `{"getClusterParameter": [1]}`, `14: BSON field 'getClusterParameter.getClusterParameter' is the wrong type 'int', expected type 'string'`},
		{"8.0", `{"getClusterParameter": "changeStreams"}`, `4: Unknown server parameter: changeStreams`},
		{"8.0", set(`{"changeStreamOptions": {}}`), `ok`},

		{"8.2", `{"getParameter": {"setAt": 1}}`, `14: BSON field 'getParameter.setAt' is the wrong type 'int', expected type 'string'`},
		{"8.2", `{"getParameter": {"allParameters": true, "setAt": "never"}}`, `2: Enumeration value 'never' for field 'getParameter.setAt' is not a valid value.`},
		{"8.0", `{"getParameter": {"allParameters": true, "setAt": "startup"}}`, `40415: BSON field 'getParameter.setAt' is an unknown field.`},

		{"8.2", `{"setFeatureCompatibilityVersion": null, "confirm": true}`, `40414: BSON field 'setFeatureCompatibilityVersion.setFeatureCompatibilityVersion' is missing but a required field`},
		{"8.2", `{"setFeatureCompatibilityVersion": "8.2", "confirm": "x"}`, `14: BSON field 'setFeatureCompatibilityVersion.confirm' is the wrong type 'string', expected types '[int, decimal, long, bool, double]'`},
		{"8.2", `{"setFeatureCompatibilityVersion": "8.2", "confrim": true}`, `40415: BSON field 'setFeatureCompatibilityVersion.confrim' is an unknown field.`},
	}
	for _, q := range list {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(q.version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		if got := errorOf(askText(t, c, "admin", q.cmd)); got != q.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", q.version, q.cmd, got, q.want)
		}
	}
}

// TestParametersBySetting: setAt leaves of all parameters those that can be set then.
func TestParametersBySetting(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("8.2"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	for at, want := range map[string][3]bool{"startup": {true, true, false}, "runtime": {true, false, false}} {
		reply := ok(t, askText(t, c, "admin", `{"getParameter": {"allParameters": true, "setAt": "`+at+`"}}`))
		for i, name := range []string{"quiet", "maxBSONDepth", "featureCompatibilityVersion"} {
			if got := !reply.Lookup(name).IsZero(); got != want[i] {
				t.Errorf("%s: %s: %v", at, name, got)
			}
		}
	}
}

// TestClusterParameterValues: numbers are long integers, and null is the default.
func TestClusterParameterValues(t *testing.T) {
	d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version("8.2"), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	for _, value := range [][2]string{{`10.0`, `10`}, {`null`, `3600`}, {`7`, `7`}} {
		ok(t, askText(t, c, "admin", `{"setClusterParameter": {"changeStreams": {"expireAfterSeconds": `+value[0]+`}}}`))
		reply := ok(t, askText(t, c, "admin", `{"getClusterParameter": "changeStreams"}`))
		got := reply.Lookup("clusterParameters", "0", "expireAfterSeconds")
		if n, isLong := got.Int64(); !isLong || fmt.Sprint(n) != value[1] {
			t.Errorf("%s is %v", value[0], got)
		}
	}
}

// TestGroupCodes: the errors of expressions and accumulators have other codes where the engine
// groups that reads the collection.
func TestGroupCodes(t *testing.T) {
	const doc = `[{"_id": 1, "v": 0, "s": "x"}]`
	group := func(before, accumulator string) string {
		return staged(before + `{"$group": {"_id": null, "r": ` + accumulator + `}}`)
	}
	const executor = "PlanExecutor error during aggregation :: caused by :: "
	var list []sibling
	for accumulator, want := range map[string][3]string{
		`{"$max": {"$divide": [1, "$v"]}}`:        {"4848401", "2", "can't $divide by zero"},
		`{"$push": {"$mod": [1, "$v"]}}`:          {"4848403", "16610", "can't $mod by zero"},
		`{"$mergeObjects": "$s"}`:                 {"5911200", "40400", `$mergeObjects requires object inputs, but input "x" is of type string`},
		`{"$firstN": {"input": "$v", "n": 0}}`:    {"7548606", "5787908", "'n' must be greater than 0, found 0"},
		`{"$maxN": {"input": "$v", "n": "many"}}`: {"7548606", "5787902", `Value for 'n' must be of integral type, but found "many"`},
	} {
		list = append(list,
			sibling{"8.2", doc, group(``, accumulator), want[0] + ": " + executor + want[2]},
			sibling{"8.2", doc, group(`{"$match": {"v": 0}}, {"$sort": {"v": 1}}, `, accumulator), want[0] + ": " + executor + want[2]},
			sibling{"8.2", doc, group(`{"$addFields": {"more": 1}}, `, accumulator), want[1] + ": " + executor + want[2]},
			sibling{"8.0", doc, group(``, accumulator), want[1] + ": " + executor + want[2]})
	}
	list = append(list,
		sibling{"8.2", doc, computed(`{"$toLower": {"$literal": {"$timestamp": {"t": 0, "i": 42}}}}`), `{"r":"jan  1 00:00:00:42"}`},
		sibling{"8.0", doc, computed(`{"$toLower": {"$literal": {"$timestamp": {"t": 0, "i": 42}}}}`), `{"r":"jan  1 00:00:00:2a"}`})
	askSiblings(t, list)
}
