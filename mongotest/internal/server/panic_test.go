package server

import (
	"io"
	"net"
	"strings"
	"testing"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/release"
)

func init() {
	Register(&Command{Name: "panicInATest", Needs: Free, Where: Anywhere, Run: func(*Request, []byte) ([]byte, error) { panic("oh no") }})
	Register(&Command{Name: "calmInATest", NoAuth: true, Where: Anywhere, Run: Nothing})
}

// A panic in a command is answered with an internal error, told to whoever started the deployment,
// and ends nothing else.
func TestPanic(t *testing.T) {
	var told any
	data := NewData()
	n := NewNode(&Config{Version: release.DefaultVersion, OnPanic: func(v any, stack []byte) {
		if told = v; !strings.Contains(string(stack), "panic_test.go") {
			t.Errorf("the stack does not lead to the panic:\n%s", stack)
		}
	}}, Standalone, "localhost:27017", data)
	client, server := net.Pipe()
	if !n.adopt(server, false) {
		t.Fatal("the connection was not taken")
	}
	send := func(name string) bson.Raw {
		msg := wire.AppendMsg(nil, wire.NextRequestID(), 0, 0)
		msg = append(msg, raw(t, bson.D{{Key: name, Value: 1}, {Key: "$db", Value: "admin"}})...)
		if _, err := client.Write(wire.FinishMessage(msg, 0)); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, wire.HeaderLen)
		if _, err := io.ReadFull(client, head); err != nil {
			t.Fatal(err)
		}
		h, err := wire.ParseHeader(head, MaxMessageSize)
		if err != nil {
			t.Fatal(err)
		}
		reply := append(head, make([]byte, h.Length-wire.HeaderLen)...)
		if _, err := io.ReadFull(client, reply[wire.HeaderLen:]); err != nil {
			t.Fatal(err)
		}
		m, err := wire.ParseMsg(reply)
		if err != nil {
			t.Fatal(err)
		}
		return m.Body
	}
	if code, _ := send("panicInATest").Lookup("code").AsInt64(); code != 1 || told != "oh no" {
		t.Errorf("code %d, told %v", code, told)
	}
	if !send("calmInATest").Lookup("ok").AsBool() {
		t.Error("the connection is of no use after the panic")
	}
	client.Close()
	n.Stop()
	data.Close()
}
