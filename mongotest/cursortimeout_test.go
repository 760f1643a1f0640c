package mongotest_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/mongotest"
)

// idleCursors returns how many cursors lie idle.
func idleCursors(t *testing.T, c net.Conn) int {
	t.Helper()
	reply := ok(t, command(t, c, extJSON(t, `{"aggregate": 1, "pipeline": [{"$currentOp": {"idleCursors": true}}, {"$match": {"type": "idleCursor"}}], "cursor": {}, "$db": "admin"}`)))
	n := 0
	for range bson.Raw(reply.Lookup("cursor", "firstBatch").Value).Values() {
		n++
	}
	return n
}

// A cursor that nobody asks for ends after the cursor timeout; one of a session with the session,
// and one that has no timeout with the client that asks for its end.
func TestIdleCursorsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(1), mongotest.InMemory())
		c := dialNode(t, d, d.Primary())
		ok(t, run(t, c, inserts(1, 2, 3)))
		session := bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.BinaryUUID, Data: make([]byte, 16)}}}}
		for _, more := range [][]bson.E{nil, {session}, {{Key: "noCursorTimeout", Value: true}}} {
			ok(t, run(t, c, finds("", "", append(more, bson.E{Key: "batchSize", Value: 1})...)))
		}
		for _, at := range []struct {
			sleep time.Duration
			want  int
		}{{9 * time.Minute, 3}, {3 * time.Minute, 2}, {17 * time.Minute, 2}, {15 * time.Minute, 1}} {
			time.Sleep(at.sleep)
			if got := idleCursors(t, c); got != at.want {
				t.Errorf("after %v more there are %d idle cursors, want %d", at.sleep, got, at.want)
			}
		}
		ok(t, command(t, c, extJSON(t, `{"setParameter": 1, "cursorTimeoutMillis": 1000, "$db": "admin"}`)))
		ok(t, run(t, c, finds("", "", bson.E{Key: "batchSize", Value: 1})))
		time.Sleep(2 * time.Minute)
		if got := idleCursors(t, c); got != 1 {
			t.Errorf("with a timeout of a second there are %d idle cursors", got)
		}
	})
}
