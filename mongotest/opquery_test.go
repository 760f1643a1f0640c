package mongotest_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// askQuery sends an OP_QUERY and returns the flags and the document of what comes back, or an error
// if the connection is closed instead.
func askQuery(t *testing.T, c net.Conn, ns, text string, toReturn int32) (flags uint32, reply bson.Raw, err error) {
	t.Helper()
	var cmd bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), &cmd); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	doc, err := bson.Marshal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	msg := wire.AppendHeader(nil, wire.NextRequestID(), 0, wire.OpQuery)
	msg = append(append(msg, 0, 0, 0, 0), ns+"\x00"...)
	msg = binary.LittleEndian.AppendUint32(append(msg, 0, 0, 0, 0), uint32(toReturn))
	if _, err := c.Write(wire.FinishMessage(append(msg, doc...), 0)); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c, head); err != nil {
		return 0, nil, err
	}
	body := make([]byte, int(binary.LittleEndian.Uint32(head))-len(head))
	if _, err := io.ReadFull(c, body); err != nil {
		return 0, nil, err
	}
	if got := binary.LittleEndian.Uint32(head[12:]); got != uint32(wire.OpReply) {
		t.Fatalf("opcode %d", got)
	}
	return binary.LittleEndian.Uint32(body), body[20:], nil
}

// TestOpQuery is what an OP_QUERY gets: since version 5.1 it may only be what a connection begins
// with, and others are told why.
func TestOpQuery(t *testing.T) {
	const (
		closed  = "closed"
		failed  = 8 | 2
		awaits  = 8
		upgrade = "The client driver may require an upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal"
	)
	for _, test := range []struct {
		ns, cmd  string
		toReturn int32
		old, now string // what versions before 5.1 say, and those since
		flags    uint32
	}{
		{"admin.$cmd", `{"isMaster": 1}`, -1, "ok", "ok", awaits},
		{"admin.$cmd", `{"isMaster": 1}`, 1, "ok", "ok", awaits},
		{"admin.$cmd", `{"$query": {"ismaster": 1}}`, -1, "ok", "ok", awaits},
		{"admin.$cmd", `{"buildInfo": 1}`, -1, "ok", "ok", awaits},
		{"admin.$cmd", `{"ping": 1}`, -1, "ok", "352: Unsupported OP_QUERY command: ping. " + upgrade, awaits},
		{"admin.$cmd", `{"nosuch": 1}`, -1, "59: no such command: 'nosuch'", "352: Unsupported OP_QUERY command: nosuch. " + upgrade, awaits},
		{"admin.$cmd", `{"isMaster": 1}`, 0, "16979: Bad numberToReturn (0) for $cmd type ns - can only be 1 or -1", "", awaits},
		{"admin.$cmd", `{"ping": 1}`, 7, "16979: Bad numberToReturn (7) for $cmd type ns - can only be 1 or -1", "", awaits},
		{"admin.$cmd", `{"isMaster": 1, "$db": "admin"}`, -1, "40621: $db is not allowed in OP_QUERY requests", "", awaits},
		{"db.c", `{"a": 1}`, 0, closed, "5739101: OP_QUERY is no longer supported. " + upgrade, failed},
		{"c", `{}`, -1, closed, "5739101: OP_QUERY is no longer supported. " + upgrade, failed},
	} {
		for _, version := range []string{"4.4", "5.0", "6.0", "9.0"} {
			d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
			want := test.old
			if test.now != "" && version != "4.4" && version != "5.0" {
				want = test.now
			}
			c := dialNode(t, d, d.Node(0))
			c.SetDeadline(time.Now().Add(time.Minute))
			flags, reply, err := askQuery(t, c, test.ns, test.cmd, test.toReturn)
			got := errorOf(reply)
			if text, ok := reply.Lookup("$err").StringValue(); ok {
				code, _ := reply.Lookup("code").AsInt64()
				got = fmt.Sprintf("%d: %s", code, text)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			} else if err != nil {
				got, flags = closed, test.flags
			}
			if got != want || flags != test.flags {
				t.Errorf("%s: %s on %s, %d:\ngot  %s, flags %d\nwant %s, flags %d", version, test.cmd, test.ns, test.toReturn, got, flags, want, test.flags)
			}
		}
	}
}

// TestCatalogStats counts collections by their kind: what serverStatus says, and since when.
func TestCatalogStats(t *testing.T) {
	for version, want := range map[string]string{
		"4.4":   "",
		"5.0":   `{"collections":2,"capped":1,"timeseries":1,"views":1,"internalCollections":2,"internalViews":0}`,
		"7.0.8": `{"collections":2,"capped":1,"clustered":0,"timeseries":1,"queryableEncryption":0,"views":1,"internalCollections":2,"internalViews":0}`,
	} {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Version(version), mongotest.InMemory())
		c := dialNode(t, d, d.Node(0))
		ok(t, askText(t, c, "db", `{"create": "c"}`))
		ok(t, askText(t, c, "db", `{"create": "capped", "capped": true, "size": 4096}`))
		ok(t, askText(t, c, "db", `{"create": "v", "viewOn": "c"}`))
		if version != "4.4" {
			ok(t, askText(t, c, "db", `{"create": "s", "timeseries": {"timeField": "t"}}`))
		}
		doc, _ := ok(t, askText(t, c, "admin", `{"serverStatus": 1}`)).Lookup("catalogStats").Document()
		got := ""
		if doc != nil {
			b, err := bson.MarshalExtJSON(doc, false)
			if err != nil {
				t.Fatal(err)
			}
			got = string(b)
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", version, got, want)
		}
	}
}
