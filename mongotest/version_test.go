package mongotest_test

import (
	"testing"

	"allium/bson"
	"allium/mongotest"
)

func TestVersions(t *testing.T) {
	for version, wire := range map[string]int64{"4.2": 8, "4.4": 9, "4.4.0": 9, "5.0": 13, "6.0": 17, "7.0": 21, "8.0": 25, "8.1": 26, "8.2": 27} {
		t.Run(version, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.Version(version))
			c := dialNode(t, d, d.Primary())
			r := ok(t, run(t, c, bson.D{{Key: "isMaster", Value: 1}, {Key: "helloOk", Value: true}, {Key: "$db", Value: "admin"}}))
			if got, _ := r.Lookup("maxWireVersion").AsInt64(); got != wire {
				t.Errorf("maxWireVersion %d, want %d", got, wire)
			}
			hasHello := run(t, c, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}).Lookup("ok").AsBool()
			if want := version != "4.4.0"; hasHello != want || r.Lookup("helloOk").AsBool() != want {
				t.Errorf("hello works: %t, helloOk: %t", hasHello, r.Lookup("helloOk").AsBool())
			}
			ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}, {Key: "$db", Value: "x"}}))
			strict := run(t, c, bson.D{{Key: "serverStatus", Value: 1}, {Key: "apiVersion", Value: "1"}, {Key: "apiStrict", Value: true}, {Key: "$db", Value: "admin"}})
			if refused := !strict.Lookup("ok").AsBool(); refused != (wire >= 13) {
				t.Errorf("apiStrict refuses serverStatus: %t", refused)
			}
		})
	}
	if _, err := mongotest.Open(mongotest.Version("3.6")); err == nil {
		t.Error("version 3.6 is accepted")
	}
}
