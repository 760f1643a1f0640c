package mongotest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// Something listens at the address of the config servers that getShardMap shows: it says that it is
// a config server, and shows the metadata.
func TestConfigServers(t *testing.T) {
	for members, versions := range map[int]string{1: "8.0", 3: "4.4"} {
		d := mongotest.Start(t, mongotest.Sharded(2, 2), mongotest.ShardMembers(members), mongotest.Version(versions), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		shard(t, c, bson.D{{Key: "x", Value: 1}})
		conn, _ := ok(t, run(t, c, bson.D{{Key: "getShardMap", Value: 1}, {Key: "$db", Value: "admin"}})).Lookup("map", "config").StringValue()
		var hosts []string
		for _, n := range d.ConfigServers().Nodes() {
			hosts = append(hosts, n.Addr())
		}
		if want := "config/" + strings.Join(hosts, ","); conn != want || len(hosts) != members {
			t.Errorf("getShardMap has %s, want %s", conn, want)
		}
		for i, n := range d.ConfigServers().Nodes() {
			direct := dialNode(t, d, n)
			hello := ok(t, run(t, direct, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}))
			if got, _ := hello.Lookup("configsvr").Int32(); got != 2 {
				t.Errorf("hello of config server %d: %v", i, hello)
			}
			if name, _ := hello.Lookup("setName").StringValue(); name != "config" {
				t.Errorf("hello of config server %d: %v", i, hello)
			}
			for coll, want := range map[string]int{"shards": 2, "databases": 1, "chunks": 2, "collections": 1, "mongos": 2, "version": 1} {
				found := results(t, direct, bson.D{{Key: "find", Value: coll}, {Key: "$db", Value: "config"}, {Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "nearest"}}}})
				through := results(t, c, bson.D{{Key: "find", Value: coll}, {Key: "$db", Value: "config"}})
				if len(found) != want || strings.Join(found, "") != strings.Join(through, "") {
					t.Errorf("config server %d has in %s %v, a mongos shows %v", i, coll, found, through)
				}
			}
			if got := results(t, direct, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}, {Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "nearest"}}}}); len(got) != 0 {
				t.Errorf("a config server has the documents %v", got)
			}
		}
		hello := ok(t, run(t, dialNode(t, d, d.Shards()[0].Node()), bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}))
		if !hello.Lookup("configsvr").IsZero() {
			t.Errorf("a shard takes itself for a config server: %v", hello)
		}
	}
	if d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory()); d.ConfigServers() != nil {
		t.Error("a replica set has config servers")
	}
}

// Without config servers mongoses go on with what they know; what changes the metadata, and reads
// of it, fail after a while.
func TestWithoutConfigServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.Sharded(2, 1), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		shard(t, c, bson.D{{Key: "x", Value: 1}})
		other := bson.D{{Key: "insert", Value: "other"}, {Key: "documents", Value: bson.A{bson.D{}}}, {Key: "$db", Value: "db"}}
		ok(t, run(t, c, other))
		config := d.ConfigServers().Node()
		config.Kill()
		start := time.Now()
		ok(t, run(t, c, inserts(101, 102)))
		ok(t, run(t, c, other))
		if got := len(results(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "$db", Value: "db"}})); got != 22 {
			t.Errorf("there are %d documents", got)
		}
		txn := transaction(t, c, 3)
		ok(t, txn(bson.E{Key: "insert", Value: "c"}, bson.E{Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 103}, {Key: "x", Value: 1}}, bson.D{{Key: "_id", Value: 104}, {Key: "x", Value: 19}}}}))
		ok(t, txn(bson.E{Key: "commitTransaction", Value: 1}))
		if took := time.Since(start); took != 0 {
			t.Errorf("what needs no config servers takes %v", took)
		}
		admin := bson.E{Key: "$db", Value: "admin"}
		for _, cmd := range []bson.D{
			{{Key: "shardCollection", Value: "db.other"}, {Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}, admin},
			{{Key: "moveChunk", Value: "db.c"}, {Key: "find", Value: bson.D{{Key: "x", Value: 0}}}, {Key: "to", Value: "sh1"}, admin},
			{{Key: "split", Value: "db.c"}, {Key: "middle", Value: bson.D{{Key: "x", Value: 5}}}, admin},
			{{Key: "enableSharding", Value: "more"}, admin},
			{{Key: "listShards", Value: 1}, admin},
			{{Key: "create", Value: "more"}, {Key: "$db", Value: "db"}},
			{{Key: "drop", Value: "c"}, {Key: "$db", Value: "db"}},
			{{Key: "dropDatabase", Value: 1}, {Key: "$db", Value: "db"}},
			{{Key: "find", Value: "chunks"}, {Key: "$db", Value: "config"}},
			{{Key: "find", Value: "of which the mongos knows nothing"}, {Key: "$db", Value: "db"}},
			{{Key: "listDatabases", Value: 1}, admin},
		} {
			start := time.Now()
			reply := run(t, c, cmd)
			text, _ := reply.Lookup("errmsg").StringValue()
			if errorCode(reply) != 133 || !strings.Contains(text, `for set config`) || time.Since(start) != 15*time.Second {
				t.Errorf("%v after %v: %v", cmd[0], time.Since(start), reply)
			}
		}
		reply := ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}, {Key: "$db", Value: "new"}}))
		if code := errorCode(reply, "writeErrors", "0"); code != 133 {
			t.Errorf("a database is made without config servers: %v", reply)
		}
		// A command that waits goes on when they are back.
		replies := make(chan bson.Raw)
		go func() { replies <- run(t, c, bson.D{{Key: "enableSharding", Value: "more"}, admin}) }()
		time.Sleep(10 * time.Second)
		if err := config.Restart(); err != nil {
			t.Fatal(err)
		}
		ok(t, <-replies)
		if got := len(results(t, c, bson.D{{Key: "find", Value: "chunks"}, {Key: "$db", Value: "config"}})); got != 2 {
			t.Errorf("%d chunks after the config servers are back", got)
		}
	})
}
