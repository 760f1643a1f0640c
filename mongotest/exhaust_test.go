package mongotest_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// request sends a command with flags and returns its request id.
func request(t *testing.T, c net.Conn, flags wire.Flags, d bson.D) int32 {
	t.Helper()
	id := wire.NextRequestID()
	if _, err := c.Write(wire.FinishMessage(append(wire.AppendMsg(nil, id, 0, flags), doc(t, d)...), 0)); err != nil {
		t.Fatal(err)
	}
	return id
}

// receive returns the next message that arrives.
func receive(t *testing.T, c net.Conn) (wire.Header, wire.Msg) {
	t.Helper()
	msg := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c, msg); err != nil {
		t.Fatal(err)
	}
	msg = append(msg, make([]byte, binary.LittleEndian.Uint32(msg)-wire.HeaderLen)...)
	if _, err := io.ReadFull(c, msg[wire.HeaderLen:]); err != nil {
		t.Fatal(err)
	}
	h, err := wire.ParseHeader(msg, wire.DefaultMaxMessageSize)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wire.ParseMsg(msg)
	if err != nil {
		t.Fatal(err)
	}
	return h, m
}

// A getMore that allows it is answered with batch after batch: each reply answers the one before,
// and the last one, which may be an error, says that no more will come (specification: OP_MSG,
// "moreToCome").
func TestExhaust(t *testing.T) {
	const code = "96"
	for name, tc := range map[string]struct {
		option  mongotest.Option
		version string
		flags   wire.Flags
		fail    bool
		want    string // for each reply: how many documents or the error's code, and + if more will come
	}{
		"to the end":       {mongotest.ReplicaSet(1), "8.0", wire.ExhaustAllowed, false, " 2+ 2+ 2+ 0"},
		"standalone":       {mongotest.Standalone(), "8.0", wire.ExhaustAllowed, false, " 2+ 2+ 2+ 0"},
		"not allowed":      {mongotest.ReplicaSet(1), "8.0", 0, false, " 2"},
		"error":            {mongotest.ReplicaSet(1), "8.0", wire.ExhaustAllowed, true, " 2+ " + code},
		"mongos":           {mongotest.Sharded(1, 1), "8.0", wire.ExhaustAllowed, false, " 2+ 2+ 2+ 0"},
		"mongos of before": {mongotest.Sharded(1, 1), "7.0", wire.ExhaustAllowed, false, " 2"},
	} {
		t.Run(name, func(t *testing.T) {
			d := mongotest.Start(t, tc.option, mongotest.Version(tc.version))
			c := dial(t, d.Hosts()[0])
			var docs bson.A
			for i := range 7 {
				docs = append(docs, bson.D{{Key: "_id", Value: i}})
			}
			ok(t, run(t, c, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}, {Key: "$db", Value: "d"}}))
			id, _ := ok(t, run(t, c, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}, {Key: "$db", Value: "d"}})).Lookup("cursor", "id").Int64()
			if tc.fail {
				d.FailCommand(mongotest.Fail{Commands: []string{"getMore"}, Skip: 1, Code: 96})
			}
			last := request(t, c, tc.flags, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 2}, {Key: "$db", Value: "d"}})
			got := ""
			for more := true; more; {
				h, m := receive(t, c)
				if h.ResponseTo != last {
					t.Errorf("reply answers %d, want %d", h.ResponseTo, last)
				}
				last, more = h.RequestID, m.Flags&wire.MoreToCome != 0
				n := 0
				if e := m.Body.Lookup("code"); !e.IsZero() {
					v, _ := e.AsInt64()
					n = int(v)
				}
				batch, _ := m.Body.Lookup("cursor", "nextBatch").Array()
				for range batch.Values() {
					n++
				}
				got += fmt.Sprint(" ", n)
				if more {
					got += "+"
				}
			}
			if got != tc.want {
				t.Errorf("replies are%s, want%s", got, tc.want)
			}
			ok(t, run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))
		})
	}
}
