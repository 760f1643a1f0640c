package mongotest_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
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
	c.Write(opQuery(t, ns, 0, 0, toReturn, text))
	r, err := readDocuments(t, c)
	if len(r.documents) > 0 {
		reply = r.documents[0]
	}
	return r.flags, reply, err
}

// opQuery is the bytes of an OP_QUERY, with a query and, if there are two documents, fields.
func opQuery(t *testing.T, ns string, flags uint32, skip, toReturn int32, documents ...string) []byte {
	t.Helper()
	msg := wire.AppendHeader(nil, wire.NextRequestID(), 0, wire.OpQuery)
	msg = append(binary.LittleEndian.AppendUint32(msg, flags), ns+"\x00"...)
	msg = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(msg, uint32(skip)), uint32(toReturn))
	for _, text := range documents {
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(text), &d); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		doc, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		msg = append(msg, doc...)
	}
	return wire.FinishMessage(msg, 0)
}

// opGetMore is the bytes of an OP_GET_MORE.
func opGetMore(ns string, toReturn int32, cursor int64) []byte {
	msg := wire.AppendHeader(nil, wire.NextRequestID(), 0, 2005)
	msg = append(append(msg, 0, 0, 0, 0), ns+"\x00"...)
	msg = binary.LittleEndian.AppendUint32(msg, uint32(toReturn))
	return wire.FinishMessage(binary.LittleEndian.AppendUint64(msg, uint64(cursor)), 0)
}

// documentsReply is an OP_REPLY.
type documentsReply struct {
	flags     uint32
	cursor    int64
	documents []bson.Raw
}

func readDocuments(t *testing.T, c net.Conn) (r documentsReply, err error) {
	t.Helper()
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c, head); err != nil {
		return r, err
	}
	body := make([]byte, int(binary.LittleEndian.Uint32(head))-len(head))
	if _, err := io.ReadFull(c, body); err != nil {
		return r, err
	}
	if got := binary.LittleEndian.Uint32(head[12:]); got != uint32(wire.OpReply) {
		t.Fatalf("opcode %d", got)
	}
	r.flags, r.cursor = binary.LittleEndian.Uint32(body), int64(binary.LittleEndian.Uint64(body[4:]))
	n, rest := binary.LittleEndian.Uint32(body[16:]), body[20:]
	for len(rest) > 0 {
		var doc bson.Raw
		if doc, rest, err = bson.ReadDocument(rest); err != nil {
			t.Fatal(err)
		}
		r.documents = append(r.documents, doc)
	}
	if int(n) != len(r.documents) {
		t.Fatalf("%d documents, the reply says %d", len(r.documents), n)
	}
	return r, nil
}

// TestOpQueryFinds asks for documents by OP_QUERY, as the manual describes it, and for more by
// OP_GET_MORE, of each topology: until 5.0. That errors have no other fields is known from public
// reports; the code of a bad namespace is inferred.
func TestOpQueryFinds(t *testing.T) {
	for _, version := range []string{"4.4.0", "5.0.0"} {
		for name, topology := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "set": mongotest.ReplicaSet(1), "sharded": mongotest.Sharded(2, 1)} {
			d := mongotest.Start(t, topology, mongotest.Version(version), mongotest.InMemory())
			c := dialNode(t, d, d.Node(0))
			c.SetDeadline(time.Now().Add(time.Minute))
			ok(t, askText(t, c, "db", `{"insert": "c.d", "documents": [{"_id": 1, "a": 3}, {"_id": 2, "a": 2}, {"_id": 3, "a": 1}, {"_id": 4, "a": 0}]}`))
			find := func(want string, flags uint32, skip, toReturn int32, documents ...string) int64 {
				t.Helper()
				c.Write(opQuery(t, "db.c.d", flags, skip, toReturn, documents...))
				return expectDocuments(t, c, 8, want)
			}
			find(`[{"_id":2,"a":2}]`, 0, 0, 0, `{"a": 2}`)
			find(`[{"_id":4,"a":0},{"_id":3,"a":1}]`, 0, 0, -2, `{"$query": {}, "$orderby": {"a": 1}}`)
			find(`[{"_id":4}]`, 0, 1, 1, `{"$query": {"a": {"$lt": 2}}, "$comment": "x", "$maxTimeMS": 1000}`, `{"_id": 1}`)
			find(`[{"_id":1}]`, 4|16|128, 0, 1, `{"$query": {"_id": {"$gt": 0}}, "$hint": {"_id": 1}, "$min": {"_id": 1}}`, `{"_id": 1}`)
			find(`[]`, 0, 0, 0, `{"a": 9}`)
			id := find(`[{"_id":4,"a":0},{"_id":3,"a":1}]`, 0, 0, 2, `{"$query": {}, "$orderby": {"a": 1}}`)
			if id == 0 {
				t.Fatalf("%s %s: no cursor", version, name)
			}
			c.Write(opGetMore("db.c.d", 1, id))
			if got := expectDocuments(t, c, 8, `[{"_id":2,"a":2}]`); got != id {
				t.Errorf("%s %s: cursor %d instead of %d", version, name, got, id)
			}
			c.Write(opGetMore("db.c.d", 0, id))
			if got := expectDocuments(t, c, 8, `[{"_id":1,"a":3}]`); got != 0 {
				t.Errorf("%s %s: cursor %d at the end", version, name, got)
			}
			c.Write(opGetMore("db.c.d", 0, id))
			expectDocuments(t, c, 8|1, `[]`)
			c.Write(opQuery(t, "db.c.d", 0, 0, 0, `{"a": {"$nosuch": 1}}`))
			expectDocuments(t, c, 8|2, `[{"$err":"unknown operator: $nosuch","code":2}]`)
			c.Write(opQuery(t, "db.c.d", 0, 0, 0, `{"$query": {}, "$explain": true}`))
			if r, err := readDocuments(t, c); err != nil || len(r.documents) != 1 || r.documents[0].Lookup("queryPlanner").Type == 0 {
				t.Errorf("%s %s: explain: %v %v", version, name, r, err)
			}
		}
	}
}

// expectDocuments reads an OP_REPLY and returns its cursor.
func expectDocuments(t *testing.T, c net.Conn, flags uint32, want string) int64 {
	t.Helper()
	r, err := readDocuments(t, c)
	if err != nil {
		t.Fatalf("want %s: %v", want, err)
	}
	texts := make([]string, len(r.documents))
	for i, doc := range r.documents {
		b, err := bson.MarshalExtJSON(doc, false)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(b)
	}
	if got := "[" + strings.Join(texts, ",") + "]"; got != want || r.flags != flags {
		t.Errorf("got  %s, flags %d\nwant %s, flags %d", got, r.flags, want, flags)
	}
	return r.cursor
}

// TestOpQuery is what an OP_QUERY gets: since version 5.1 it may only be what a connection begins
// with, and others are told why.
func TestOpQuery(t *testing.T) {
	const (
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
		{"db.c", `{"a": 1}`, 0, "ok", "5739101: OP_QUERY is no longer supported. " + upgrade, failed},
		{"c", `{}`, -1, "73: Invalid namespace specified 'c.'", "5739101: OP_QUERY is no longer supported. " + upgrade, failed},
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
				got = "closed"
			}
			wantFlags := test.flags
			if want == "ok" {
				wantFlags = awaits
			}
			if got != want || flags != wantFlags {
				t.Errorf("%s: %s on %s, %d:\ngot  %s, flags %d\nwant %s, flags %d", version, test.cmd, test.ns, test.toReturn, got, flags, want, wantFlags)
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
