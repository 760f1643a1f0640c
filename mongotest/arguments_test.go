package mongotest_test

import (
	"testing"

	"allium/mongotest"
)

// argumentTest is a command on database "db" or "admin" and the error that it gives, as errorOf
// shows it.
type argumentTest struct{ db, cmd, want string }

func checkArguments(t *testing.T, tests []argumentTest, options ...mongotest.Option) {
	t.Helper()
	d := mongotest.Start(t, append(options, mongotest.Version("4.4.0"), mongotest.InMemory())...)
	c := dialNode(t, d, d.Node(0))
	for _, test := range tests {
		if got := errorOf(askText(t, c, test.db, test.cmd)); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.cmd, got, test.want)
		}
	}
}

const someTopologyVersion = `{"processId": {"$oid": "507f1f77bcf86cd799439011"}, "counter": {"$numberLong": "-1"}}`

// What a member says to arguments that no recording has.
func TestMemberArguments(t *testing.T) {
	const english = `{ locale: "en", caseLevel: false, caseFirst: "off", strength: 3, numericOrdering: false, alternate: "non-ignorable", maxVariable: "punct", normalization: false, backwards: false, version: "57.1" }`
	checkArguments(t, []argumentTest{
		{"admin", `{"isMaster": 1, "internalClient": 1}`, "14: 'internalClient' must be of type Object, but was of type int"},
		{"admin", `{"isMaster": 1, "internalClient": {"minWireVersion": "x"}}`, "2: Missing required field 'maxWireVersion' of 'internalClient'"},
		{"admin", `{"isMaster": 1, "internalClient": {"maxWireVersion": "9"}}`, "14: 'maxWireVersion' field of 'internalClient' must be of type int, but was of type string"},
		{"admin", `{"isMaster": 1, "internalClient": {"x": 1}}`, "2: Unrecognized field of 'internalClient': 'x'"},
		{"admin", `{"isMaster": 1, "internalClient": {"minWireVersion": 0, "maxWireVersion": 9}}`, "ok"},
		{"admin", `{"isMaster": 1, "topologyVersion": {}}`, "31368: A request with a 'topologyVersion' must include 'maxAwaitTimeMS'"},
		{"admin", `{"isMaster": 1, "topologyVersion": ` + someTopologyVersion + `, "maxAwaitTimeMS": 1}`, "31372: topologyVersion must have a non-negative counter"},
		{"admin", `{"isMaster": 1, "topologyVersion": {"processId": {"$oid": "507f1f77bcf86cd799439011"}, "counter": {"$numberLong": "1"}}, "maxAwaitTimeMS": 1.5}`,
			`2: Expected field "maxAwaitTimeMS" to have a value exactly representable as a 64-bit integer, but found maxAwaitTimeMS: 1.5`},
		{"admin", `{"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "snapshot", "atClusterTime": {"$timestamp": {"t": 1, "i": 1}}}}`, "2: level: 'snapshot' is not suitable for the default read concern"},
		{"admin", `{"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "local", "provenance": "clientSupplied"}}`, "2: 'provenance' must be unset in default read concern"},
		{"admin", `{"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1, "provenance": "clientSupplied"}}`, "2: 'provenance' must be unset in default write concern"},
		{"db", `{"create": "c"}`, "ok"},
		{"db", `{"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_", "collation": {"locale": "en"}}]}`,
			"2: The _id index must have the same collation as the collection. Index collation: " + english + `, collection collation: { locale: "simple" }`},
		{"db", `{"create": "d", "collation": {"locale": "en"}}`, "ok"},
		{"db", `{"createIndexes": "d", "indexes": [{"key": {"_id": 1}, "name": "_id_", "collation": {"locale": "simple"}}]}`,
			`2: The _id index must have the same collation as the collection. Index collation: { locale: "simple" }, collection collation: ` + english},
		{"db", `{"createIndexes": "d", "indexes": [{"key": {"_id": 1}, "name": "_id_"}]}`, "ok"},
	}, mongotest.ReplicaSet(1))
}

// A mongos has codes of its own for hello.
func TestMongosHello(t *testing.T) {
	checkArguments(t, []argumentTest{
		{"admin", `{"isMaster": 1, "internalClient": 1}`, "ok"},
		{"admin", `{"isMaster": 1, "topologyVersion": {}}`, "51760: A request with a 'topologyVersion' must include 'maxAwaitTimeMS'"},
		{"admin", `{"isMaster": 1, "topologyVersion": ` + someTopologyVersion + `, "maxAwaitTimeMS": 1}`, "51758: topologyVersion must have a non-negative counter"},
	}, mongotest.Sharded(1, 1))
}
