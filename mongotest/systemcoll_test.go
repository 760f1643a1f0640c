package mongotest_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"allium/mongotest"
)

// Shells and tools look for the oplog and the configuration among a member's collections before
// they read them.
func TestSystemCollections(t *testing.T) {
	mendSteps(t, []mendStep{
		{cmd: `{"insert": "c", "documents": [{"_id": 1}], "$db": "t"}`},
		{cmd: `{"listCollections": 1, "filter": {"name": "oplog.rs"}, "$db": "local"}`, want: map[string]string{
			"cursor.firstBatch.0.type":           `"collection"`,
			"cursor.firstBatch.0.options.capped": "true",
		}},
		{cmd: `{"listCollections": 1, "nameOnly": true, "filter": {"name": "system.replset"}, "$db": "local"}`, want: map[string]string{
			"cursor.firstBatch.0": `{"name":"system.replset","type":"collection"}`,
		}},
		{cmd: `{"listCollections": 1, "filter": {"name": "oplog.rs"}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0": ""}},
		{cmd: `{"listIndexes": "system.replset", "$db": "local"}`, want: map[string]string{"cursor.firstBatch.0.name": `"_id_"`}},
		{cmd: `{"listIndexes": "oplog.rs", "$db": "local"}`, want: map[string]string{"cursor.firstBatch.0": ""}},
		{cmd: `{"find": "system.replset", "$db": "local"}`, want: map[string]string{
			"cursor.firstBatch.0._id": `"rs0"`, "cursor.firstBatch.0.members.1._id": "1", "cursor.firstBatch.1": ""}},
		{cmd: `{"count": "oplog.rs", "query": {"ns": "t.c"}, "$db": "local"}`, want: map[string]string{"n": "1"}},
		{cmd: `{"count": "system.replset", "$db": "local"}`, want: map[string]string{"n": "1"}},
		{cmd: `{"count": "system.replset", "skip": 1, "$db": "local"}`, want: map[string]string{"n": "0"}},
		{cmd: `{"collStats": "oplog.rs", "$db": "local"}`, want: map[string]string{"capped": "true", "maxSize": "67108864", "nindexes": "0"}},
		{cmd: `{"aggregate": "oplog.rs", "pipeline": [{"$collStats": {"storageStats": {"scale": 1024}, "count": {}}}], "cursor": {}, "$db": "local"}`,
			want: map[string]string{"cursor.firstBatch.0.storageStats.maxSize": "65536", "cursor.firstBatch.0.storageStats.scaleFactor": "1024"}},
		{cmd: `{"aggregate": "c", "pipeline": [{"$collStats": {"storageStats": {"scale": 4}}}], "cursor": {}, "$db": "t"}`,
			want: map[string]string{"cursor.firstBatch.0.storageStats.storageSize": "1024"}},
	}, mongotest.ReplicaSet(3))
	mendSteps(t, []mendStep{ // only members of a set have them
		{cmd: `{"listCollections": 1, "$db": "local"}`, want: map[string]string{"cursor.firstBatch.0": ""}},
		{cmd: `{"count": "oplog.rs", "$db": "local"}`, want: map[string]string{"n": "0"}},
	}, mongotest.Standalone())
}

// currentOp shows transactions that are open while no command runs, until they end; with $all also
// connections that do nothing.
func TestInactiveTransactions(t *testing.T) {
	for name, topology := range map[string]mongotest.Option{"member": mongotest.ReplicaSet(1), "mongos": mongotest.Sharded(2, 2)} {
		t.Run(name, func(t *testing.T) {
			const txn = `"lsid": {"id": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAAAQ==", "subType": "04"}}}, "txnNumber": {"$numberLong": "7"}, "autocommit": false`
			idle := func(spec, want string) mendStep {
				return mendStep{cmd: `{"aggregate": 1, "pipeline": [{"$currentOp": ` + spec + `}, {"$match": {"type": "idleSession"}}], "cursor": {}, "$db": "admin"}`,
					want: map[string]string{"cursor.firstBatch.0.transaction.parameters.txnNumber": want}}
			}
			mendSteps(t, []mendStep{
				{cmd: `{"insert": "c", "documents": [{"_id": 1}], "$db": "t"}`},
				idle(`{}`, ""),
				{cmd: `{"insert": "c", "documents": [{"_id": 2}], ` + txn + `, "startTransaction": true, "readConcern": {"level": "snapshot"}, "$db": "t"}`},
				idle(`{}`, "7"),
				idle(`{"idleSessions": false}`, ""),
				{cmd: `{"currentOp": 1, "type": "idleSession", "$db": "admin"}`, want: map[string]string{
					"inprog.0.desc": `"inactive transaction"`, "inprog.0.active": "false", "inprog.0.transaction.parameters.readConcern.level": `"snapshot"`, "inprog.1": ""}},
				{cmd: `{"commitTransaction": 1, ` + txn + `, "$db": "admin"}`},
				idle(`{}`, ""),
			}, topology)
			d := mongotest.Start(t, topology)
			command(t, dial(t, d.Hosts()[0]), extJSON(t, `{"hello": 1, "$db": "admin"}`))
			conn := dial(t, d.Hosts()[0])
			for cmd, want := range map[string]bool{
				`{"currentOp": 1, "$all": true, "active": false, "$db": "admin"}`: true,
				`{"currentOp": 1, "active": false, "$db": "admin"}`:               false,
			} {
				if got := command(t, conn, extJSON(t, cmd)).Lookup("inprog", "0", "connectionId").Type != 0; got != want {
					t.Errorf("%s lists an idle connection: %v, want %v", cmd, got, want)
				}
			}
		})
	}
}

// A cluster that one mongos has locked is unlocked by another.
func TestFsyncThroughMongoses(t *testing.T) {
	d := mongotest.Start(t, mongotest.Sharded(1, 2))
	first, second := dial(t, d.Hosts()[0]), dial(t, d.Hosts()[1])
	const lock, unlock = `{"fsync": 1, "lock": true, "$db": "admin"}`, `{"fsyncUnlock": 1, "$db": "admin"}`
	for i, step := range []struct {
		conn    net.Conn
		cmd, ok string
	}{{first, lock, "1.0"}, {second, unlock, "1.0"}, {first, unlock, "0.0"}} {
		if got := command(t, step.conn, extJSON(t, step.cmd)).Lookup("ok").String(); got != step.ok {
			t.Errorf("step %d: %s answers ok: %s, want %s", i, step.cmd, got, step.ok)
		}
	}
}

// The verbosity of the log's components is a tree; what is not named stays as it is, and the top
// is logLevel.
func TestLogComponents(t *testing.T) {
	get := func(want map[string]string) mendStep {
		return mendStep{cmd: `{"getParameter": 1, "logComponentVerbosity": 1, "logLevel": 1, "$db": "admin"}`, want: want}
	}
	set := func(tree string) mendStep {
		return mendStep{cmd: `{"setParameter": 1, "logComponentVerbosity": ` + tree + `, "$db": "admin"}`}
	}
	bad := func(tree string, code int64, text string) mendStep {
		s := set(tree)
		s.code, s.text = code, text
		return s
	}
	const top, query, journal, storage = "logComponentVerbosity.verbosity", "logComponentVerbosity.query.verbosity",
		"logComponentVerbosity.storage.journal.verbosity", "logComponentVerbosity.storage.verbosity"
	first := set(`{"query": {"verbosity": 2}, "storage": {"journal": 3}}`)
	first.want = map[string]string{"was.query.verbosity": "-1"}
	mendSteps(t, []mendStep{
		get(map[string]string{top: "0", query: "-1", journal: "-1", "logLevel": "0"}),
		first,
		get(map[string]string{top: "0", query: "2", journal: "3", storage: "-1"}),
		set(`{"verbosity": 1, "query": -1}`),
		get(map[string]string{top: "1", query: "-1", journal: "3", "logLevel": "1"}),
		{cmd: `{"setParameter": 1, "logLevel": 2, "$db": "admin"}`},
		get(map[string]string{top: "2", "logLevel": "2"}),
		bad(`{"query": 1, "poetry": 1}`, 2, "poetry"),
		bad(`{"storage": {"query": 1}}`, 2, "storage.query"),
		bad(`{"query": 6}`, 2, "query"),
		bad(`{"query": "loud"}`, 2, "query"),
		bad(`3`, 14, ""),
		get(map[string]string{query: "-1"}),
		{cmd: `{"getParameter": "*", "$db": "admin"}`, want: map[string]string{journal: "3"}},
	})
}

// Through a mongos, statistics tell of each shard what it has, and config.collections leads to the
// chunks: shells compute the distribution of a collection from both.
func TestDistributionByShard(t *testing.T) {
	collStats := `{"aggregate": "c", "pipeline": [{"$collStats": {"storageStats": {}, "count": {}}}, {"$sort": {"shard": 1}}], "cursor": {}, "$db": "t"}`
	mendSteps(t, []mendStep{
		{cmd: `{"shardCollection": "t.c", "key": {"k": 1}, "$db": "admin"}`},
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "k": 1}, {"_id": 2, "k": 2}, {"_id": 3, "k": 3}], "$db": "t"}`},
		{cmd: `{"split": "t.c", "middle": {"k": 3}, "$db": "admin"}`},
		{cmd: `{"moveChunk": "t.c", "find": {"k": 3}, "to": "sh1", "_waitForDelete": true, "$db": "admin"}`},
		{cmd: collStats, want: map[string]string{
			"cursor.firstBatch.0.count": "2", "cursor.firstBatch.0.storageStats.count": "2", "cursor.firstBatch.0.storageStats.size": "42",
			"cursor.firstBatch.1.count": "1", "cursor.firstBatch.1.storageStats.count": "1", "cursor.firstBatch.1.storageStats.size": "21"}},
		{cmd: `{"collStats": "c", "$db": "t"}`, want: map[string]string{
			"count": "3", "size": "63", "nchunks": "2", "shards.sh0.size": "42", "shards.sh1.size": "21", "shards.sh1.count": "1", "shards.sh1.nindexes": "2"}},
		{cmd: `{"aggregate": "collections", "pipeline": [{"$match": {"_id": "t.c", "timestamp": {"$type": "timestamp"}}},
			{"$lookup": {"from": "chunks", "localField": "uuid", "foreignField": "uuid", "as": "chunks"}}, {"$project": {"n": {"$size": "$chunks"}}}],
			"cursor": {}, "$db": "config"}`, want: map[string]string{"cursor.firstBatch.0.n": "2"}},
	}, mongotest.Sharded(2, 1))
	mendSteps(t, []mendStep{
		{cmd: `{"shardCollection": "t.c", "key": {"k": "hashed"}, "$db": "admin"}`}, // chunks on both shards, documents on one
		{cmd: `{"insert": "c", "documents": [{"_id": 1, "k": 1}], "$db": "t"}`},
		{cmd: `{"aggregate": "c", "pipeline": [{"$collStats": {"storageStats": {}}}, {"$group": {"_id": null, "n": {"$sum": "$storageStats.count"}, "shards": {"$sum": 1}}}],
			"cursor": {}, "$db": "t"}`, want: map[string]string{"cursor.firstBatch.0.n": "1", "cursor.firstBatch.0.shards": "2"}},
	}, mongotest.Sharded(2, 1))
}

// A configuration with other members is refused, rather than taken for the members that there are.
func TestReconfigureMembers(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(2))
	c := dial(t, d.Primary().Addr())
	member := func(id int, host string) string { return fmt.Sprintf(`{"_id": %d, "host": %q}`, id, host) }
	first, second, other := member(0, d.Node(0).Addr()), member(1, d.Node(1).Addr()), member(2, "127.0.0.1:1")
	for i, test := range []struct {
		members string
		code    int64
		text    string
	}{
		{first, 103, "members cannot be removed from this set: " + d.Node(1).Addr()},
		{first + ", " + other, 103, "members cannot be removed from this set: " + d.Node(1).Addr()},
		{first + ", " + second + ", " + other, 103, "members cannot be added to this set"},
		{second + ", " + first, 0, ""},
	} {
		reply := command(t, c, extJSON(t, fmt.Sprintf(`{"replSetReconfig": {"_id": "rs0", "version": %d, "members": [%s]}, "$db": "admin"}`, 10+i, test.members)))
		text, _ := reply.Lookup("errmsg").StringValue()
		if code := int64(errorCode(reply)); code != test.code || !strings.Contains(text, test.text) {
			t.Errorf("members %s: %d %q, want %d %q", test.members, code, text, test.code, test.text)
		}
	}
}
