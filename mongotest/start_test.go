package mongotest_test

import (
	"io"
	"net"
	"testing"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// command sends one command on the connection and returns the reply.
func command(t testing.TB, c net.Conn, doc bson.Raw) bson.Raw {
	t.Helper()
	msg := wire.AppendMsg(nil, wire.NextRequestID(), 0, 0)
	msg = wire.FinishMessage(append(msg, doc...), 0)
	if _, err := c.Write(msg); err != nil {
		t.Fatal(err)
	}
	return readReply(t, c)
}

func readReply(t testing.TB, c net.Conn) bson.Raw {
	t.Helper()
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c, head); err != nil {
		t.Fatal(err)
	}
	h, err := wire.ParseHeader(head, wire.DefaultMaxMessageSize)
	if err != nil {
		t.Fatal(err)
	}
	msg := append(head, make([]byte, h.Length-wire.HeaderLen)...)
	if _, err := io.ReadFull(c, msg[wire.HeaderLen:]); err != nil {
		t.Fatal(err)
	}
	m, err := wire.ParseMsg(msg)
	if err != nil {
		t.Fatal(err)
	}
	return m.Body
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func simple(name, db string) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendInt32(doc, name, 1)
	doc = bson.AppendString(doc, "$db", db)
	return bson.EndDocument(doc, at)
}

func TestStart(t *testing.T) {
	for name, opt := range map[string]mongotest.Option{"standalone": mongotest.Standalone(), "replica set": mongotest.ReplicaSet(3)} {
		t.Run(name, func(t *testing.T) {
			d := mongotest.Start(t, opt)
			primaries := 0
			for _, addr := range d.Hosts() {
				c := dial(t, addr)
				if !command(t, c, simple("ping", "admin")).Lookup("ok").AsBool() {
					t.Error("ping fails")
				}
				if command(t, c, simple("hello", "admin")).Lookup("isWritablePrimary").AsBool() {
					primaries++
				}
			}
			if primaries != 1 {
				t.Errorf("%d nodes accept writes, want 1", primaries)
			}
			d.Stop()
			if c, err := net.Dial("tcp", d.Hosts()[0]); err == nil {
				c.Close()
				t.Error("still listening after Stop")
			}
		})
	}
}
