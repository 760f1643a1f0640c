package mongotest_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// TestParameters is about which versions have a parameter, and the codes of errors about them.
func TestParameters(t *testing.T) {
	const rate = "ingressConnectionEstablishmentRatePerSec"
	for version, want := range map[string]struct {
		has            bool
		unknown, fixed int64
	}{"4.4": {false, 0, 0}, "6.0": {false, 72, 20}, "7.0": {true, 72, 20}, "8.2": {true, 72, 20}} {
		d := mongotest.Start(t, mongotest.InMemory(), mongotest.Version(version))
		c := dialNode(t, d, d.Node(0))
		admin := func(cmd string) bson.Raw { return command(t, c, extJSON(t, cmd+`, "$db": "admin"}`)) }
		code := func(r bson.Raw) int64 {
			if r.Lookup("ok").AsBool() {
				return -1
			}
			n, _ := r.Lookup("code").AsInt64()
			return n
		}
		got := admin(`{"getParameter": 1, "` + rate + `": 1`)
		if n, _ := got.Lookup(rate).AsInt64(); (n == 1<<31-1) != want.has || !want.has && code(got) != want.unknown {
			t.Errorf("%s: %v", version, got)
		}
		all := ok(t, admin(`{"getParameter": "*"`))
		if has := !all.Lookup(rate).IsZero(); has != want.has || all.Lookup("logLevel").IsZero() {
			t.Errorf("%s: all parameters: %v", version, all)
		}
		for cmd, wantCode := range map[string]int64{
			`{"getParameter": 1, "nosuch": 1`: want.unknown, `{"setParameter": 1, "nosuch": 1`: want.unknown, `{"setParameter": 1`: want.unknown,
			`{"setParameter": 1, "enableTestCommands": false`: want.fixed,
		} {
			if r := admin(cmd); code(r) != wantCode || r.Lookup("code").IsZero() != (wantCode == 0) {
				t.Errorf("%s: %s: %v", version, cmd, r)
			}
		}
		if want.has {
			if r := admin(`{"setParameter": 1, "` + rate + `": 0`); code(r) != 2 {
				t.Errorf("%s: a rate of 0: %v", version, r)
			}
			if r := ok(t, admin(`{"setParameter": 1, "`+rate+`": 5`)); r.Lookup("was").String() != "2147483647" {
				t.Errorf("%s: %v", version, r)
			}
		}
	}
}

// TestEstablishmentRate connects faster than the node allows: some wait in the queue, and the rest
// is hung up on before the first hello.
func TestEstablishmentRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.InMemory(), mongotest.Version("8.2"))
		admin := dialNode(t, d, d.Node(0))
		set := func(params string) {
			t.Helper()
			ok(t, command(t, admin, extJSON(t, `{"setParameter": 1, `+params+`, "$db": "admin"}`)))
		}
		const prefix = `"ingressConnectionEstablishment`
		set(prefix + `RatePerSec": 2`)
		set(prefix + `BurstCapacitySecs": 2`)
		set(prefix + `MaxQueueDepth": 3`)
		set(prefix + `RateLimiterEnabled": true`)
		start := time.Now()
		results := make(chan time.Duration, 10)
		for range cap(results) {
			go func() {
				nc, err := d.DialContext(t.Context(), "tcp", d.Node(0).Addr())
				if err != nil {
					t.Error(err)
					return
				}
				defer nc.Close()
				took := time.Duration(-1)
				msg := wire.AppendMsg(nil, wire.NextRequestID(), 0, 0)
				nc.Write(wire.FinishMessage(append(msg, simple("isMaster", "admin")...), 0)) // fails where reading does
				if _, err := io.ReadFull(nc, make([]byte, wire.HeaderLen)); err == nil {
					took = time.Since(start)
				}
				results <- took
			}()
		}
		got := map[time.Duration]int{}
		for range cap(results) {
			got[<-results]++
		}
		// Four tokens are there, then comes one each half second for the three in the queue.
		for took, n := range map[time.Duration]int{0: 4, time.Second / 2: 1, time.Second: 1, 3 * time.Second / 2: 1, -1: 3} {
			if got[took] != n {
				t.Errorf("%d connections took %v, not %d: %v", got[took], took, n, got)
			}
		}
		status := ok(t, command(t, admin, extJSON(t, `{"serverStatus": 1, "$db": "admin"}`)))
		queue := bson.Raw(status.Lookup("queues", "ingressSessionEstablishment").Value)
		for k, want := range map[string]string{"attemptedAdmissions": "10", "successfulAdmissions": "7", "rejectedAdmissions": "3", "addedToQueue": "3", "removedFromQueue": "3", "averageTimeQueuedMicros": "1000000.0"} {
			if s := queue.Lookup(k).String(); s != want {
				t.Errorf("%s is %s, want %s", k, s, want)
			}
		}
		if s := status.Lookup("connections", "establishmentRateLimit", "rejected").String(); s != "3" {
			t.Errorf("%s rejected", s)
		}
		set(prefix + `RateLimiterEnabled": false`)
		dialNode(t, d, d.Node(0))
	})
}

// TestServerStatusCounts runs some commands and looks for them in serverStatus.
func TestServerStatusCounts(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
	c := dialNode(t, d, d.Node(0))
	status := func() bson.Raw { return ok(t, command(t, c, extJSON(t, `{"serverStatus": 1, "$db": "admin"}`))) }
	before := status()
	for range 3 {
		ok(t, command(t, c, extJSON(t, `{"insert": "c", "documents": [{}, {}], "$db": "db"}`)))
	}
	ok(t, command(t, c, extJSON(t, `{"update": "c", "updates": [{"q": {}, "u": {"$set": {"x": 1}}}], "$db": "db"}`)))
	ok(t, command(t, c, extJSON(t, `{"find": "c", "batchSize": 1, "$db": "db"}`)))
	ok(t, command(t, c, extJSON(t, `{"delete": "c", "deletes": [{"q": {"nosuch": 1}, "limit": 0}], "$db": "db"}`)))
	if r := command(t, c, extJSON(t, `{"count": "c", "nosuch": 1, "$db": "db"}`)); r.Lookup("ok").AsBool() {
		t.Error(r)
	}
	after := status()
	for path, want := range map[string]int64{
		"opcounters.insert": 6, "opcounters.update": 1, "opcounters.query": 1, "opcounters.delete": 1, "opcounters.getmore": 0, "opcounters.command": 2,
		"metrics.commands.insert.total": 3, "metrics.commands.count.failed": 1, "metrics.commands.insert.failed": 0, "metrics.cursor.open.total": 1, "network.numRequests": 8,
	} {
		keys := strings.Split(path, ".")
		was, _ := before.Lookup(keys...).AsInt64()
		now, there := after.Lookup(keys...).AsInt64()
		if now-was != want || !there {
			t.Errorf("%s grew by %d, want %d", path, now-was, want)
		}
	}
	for _, k := range []string{"bytesIn", "bytesOut", "physicalBytesIn"} {
		was, _ := before.Lookup("network", k).AsInt64()
		if now, _ := after.Lookup("network", k).AsInt64(); now <= was {
			t.Errorf("%s is %d after %d", k, now, was)
		}
	}
	if v := after.Lookup("network", "compression", "zstd", "decompressor", "bytesIn"); v.String() != "0" {
		t.Errorf("without compression: %v", v)
	}
}

// TestCompatibilityVersion sets the feature compatibility version, which has to be confirmed from
// 7.0 on.
func TestCompatibilityVersion(t *testing.T) {
	for version, before := range map[string]string{"6.0": "5.0", "7.0": "6.0", "8.0": "7.0"} {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory(), mongotest.Version(version))
		c := dialNode(t, d, d.Node(0))
		set := func(to, more string) bson.Raw {
			return command(t, c, extJSON(t, `{"setFeatureCompatibilityVersion": "`+to+`"`+more+`, "$db": "admin"}`))
		}
		confirms := version >= "7.0"
		if code, _ := set(before, "").Lookup("code").AsInt64(); (code == 7369100) != confirms {
			t.Errorf("%s: unconfirmed: code %d", version, code)
		}
		if r := set(before, `, "confirm": true`); r.Lookup("ok").AsBool() != confirms {
			t.Errorf("%s: confirmed: %v", version, r)
		}
		r := ok(t, command(t, c, extJSON(t, `{"getParameter": 1, "featureCompatibilityVersion": 1, "$db": "admin"}`)))
		if s, _ := r.Lookup("featureCompatibilityVersion", "version").StringValue(); s != before {
			t.Errorf("%s: it is %s after it was set to %s", version, s, before)
		}
	}
}

func TestOplogNote(t *testing.T) {
	for _, tt := range []struct {
		kind mongotest.Option
		cmd  string
		code int64
	}{
		{mongotest.ReplicaSet(3), `{"appendOplogNote": 1, "data": {"a": 1}, "writeConcern": {"w": 3}`, 0}, {mongotest.Sharded(1, 1), `{"appendOplogNote": 1, "data": {}`, 0},
		{mongotest.Standalone(), `{"appendOplogNote": 1, "data": {}`, 76}, {mongotest.ReplicaSet(1), `{"appendOplogNote": 1`, 4}, {mongotest.ReplicaSet(1), `{"appendOplogNote": 1, "data": 1`, 14},
	} {
		d := mongotest.Start(t, tt.kind, mongotest.InMemory())
		c := dialNode(t, d, d.Nodes()[0])
		was := ok(t, command(t, c, extJSON(t, `{"ping": 1, "$db": "admin"}`)))
		r := command(t, c, extJSON(t, tt.cmd+`, "$db": "admin"}`))
		if code, _ := r.Lookup("code").AsInt64(); code != tt.code {
			t.Errorf("%s: %v", tt.cmd, r)
		}
		from, _ := was.Lookup("operationTime").Timestamp()
		if to, _ := r.Lookup("operationTime").Timestamp(); tt.code == 0 && to.Compare(from) <= 0 {
			t.Errorf("the operation time is %v before and %v after", from, to)
		}
	}
}

func TestShardMap(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
	r := ok(t, command(t, dialNode(t, d, d.Node(0)), extJSON(t, `{"getShardMap": 1, "$db": "admin"}`)))
	n := 0
	for name, conn := range bson.Raw(r.Lookup("map").Value).All() {
		n++
		s, _ := conn.StringValue()
		_, host, _ := strings.Cut(s, "/")
		for field, key := range map[string]string{"hosts": host, "connStrings": s} {
			if got, _ := bson.Raw(r.Lookup(field).Value).Lookup(key).StringValue(); got != name {
				t.Errorf("%s has %q for %s of %s", field, got, key, name)
			}
		}
	}
	if n != 3 || r.Lookup("map", "config").IsZero() {
		t.Errorf("the map is %v", r)
	}
}

// The commands that servers have for each other are there, and refuse clients in the server's
// words.
func TestCommandsOfPeers(t *testing.T) {
	const notReplicated, notSharded = "not running with --replSet", "Cannot accept sharding commands if not started with --shardsvr"
	for command, want := range map[string]mendStep{
		"replSetHeartbeat":                        {code: 76, text: notReplicated},
		"replSetUpdatePosition":                   {code: 76, text: notReplicated},
		"replSetAbortPrimaryCatchUp":              {code: 76, text: notReplicated},
		"replSetStepDownWithForce":                {code: 76, text: notReplicated},
		"replSetResizeOplog":                      {code: 26, text: "oplog does not exist"},
		"_flushDatabaseCacheUpdates":              {code: 193, text: notSharded},
		"_configsvrRefineCollectionShardKey":      {code: 20, text: "_configsvrRefineCollectionShardKey can only be run on config servers"},
		"_addShard":                               {code: 40414, text: "BSON field '_addShard.shardIdentity' is missing but a required field"},
		"_killOperations":                         {code: 40414},
		"dropConnections":                         {code: 40414},
		"setFreeMonitoring":                       {code: 40414, text: "BSON field 'setFreeMonitoring.action' is missing but a required field"},
		"setFreeMonitoring\": 1, \"action":        {code: 2},
		"getDatabaseVersion":                      {code: 20},
		"connPoolSync":                            {},
		"shardConnPoolStats":                      {want: map[string]string{"totalCreated": "0"}},
		"_isSelf":                                 {},
		"getDiagnosticData":                       {},
		"_cloneCollectionOptionsFromPrimaryShard": {code: 193, text: notSharded},
	} {
		want.cmd = `{"` + command + `": "x", "$db": "admin"}`
		mendSteps(t, []mendStep{want}, mongotest.Standalone(), mongotest.Version("4.4"))
	}
	mendSteps(t, []mendStep{
		{cmd: `{"replSetResizeOplog": 1, "size": 10, "$db": "admin"}`, code: 2, text: "BSON field 'size' value must be >= 990, actual value '10'"},
		{cmd: `{"replSetResizeOplog": 1, "size": 16000, "$db": "admin"}`},
		{cmd: `{"replSetHeartbeat": "rs", "$db": "admin"}`, code: 115},
		{cmd: `{"replSetHeartbeat": "rs", "$db": "t"}`, code: 13},
		{cmd: `{"shardConnPoolStats": 1, "$db": "admin"}`, code: 59},
	}, mongotest.ReplicaSet(1), mongotest.Version("5.0"))
}
