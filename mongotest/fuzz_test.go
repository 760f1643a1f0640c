package mongotest_test

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// FuzzCommand sends any command that there is with any arguments: it is answered in time, an error
// has a message, and the connection can be used again. A panic fails the test that started the
// deployment.
func FuzzCommand(f *testing.F) {
	d := mongotest.Start(f, mongotest.ReplicaSet(1), mongotest.InMemory())
	c := dialHost(f, d)
	var names []string
	list := run(f, c, bson.D{{Key: "listCommands", Value: 1}, {Key: "$db", Value: "admin"}}).Lookup("commands")
	// What changes the deployment itself, or waits.
	skip := []string{"shutdown", "replSetStepDown", "replSetFreeze", "fsync", "fsyncUnlock", "configureFailPoint", "setParameter", "killSessions", "killAllSessions",
		"killAllSessionsByPattern", "killOp", "replSetAbortPrimaryCatchUp", "replSetMaintenance", "waitForFailPoint", "logout", "hello", "isMaster", "ismaster",
		"createUser", "updateUser", "setFeatureCompatibilityVersion", "sleep"}
	for name := range bson.Raw(list.Value).All() {
		if !slices.Contains(skip, name) {
			names = append(names, name)
		}
	}
	for i, name := range names {
		for _, args := range []bson.D{{}, {{Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "batchSize", Value: 1}, {Key: "cursor", Value: bson.D{}}},
			{{Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: bson.D{}}}}}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}}} {
			f.Add(uint(i), len(name)%2 == 0, []byte(doc(f, args)))
		}
	}
	f.Fuzz(func(t *testing.T, which uint, number bool, args []byte) {
		if bson.Raw(args).Validate() != nil || len(args) > 4000 {
			return
		}
		at, cmd := bson.BeginDocument(nil)
		if name := names[which%uint(len(names))]; number {
			cmd = bson.AppendInt32(cmd, name, 1)
		} else {
			cmd = bson.AppendString(cmd, name, "c")
		}
		for key, v := range bson.Raw(args).All() {
			if key == "$db" || key == "maxTimeMS" || key == "maxAwaitTimeMS" {
				continue
			}
			cmd = bson.AppendRawValue(cmd, key, v)
		}
		cmd = bson.AppendInt32(cmd, "maxTimeMS", 200)
		cmd = bson.EndDocument(bson.AppendString(cmd, "$db", []string{"t", "admin"}[len(args)%2]), at)
		c.SetDeadline(time.Now().Add(time.Minute))
		reply := command(t, c, cmd)
		if err := reply.Validate(); err != nil {
			t.Fatalf("%v is answered by no BSON: %v", bson.Raw(cmd), err)
		}
		if reply.Lookup("ok").IsZero() {
			t.Fatalf("%v is answered by %v", bson.Raw(cmd), reply)
		}
		if !reply.Lookup("ok").AsBool() {
			if text, _ := reply.Lookup("errmsg").StringValue(); text == "" { // some of the server's errors have no code
				t.Fatalf("%v is answered by %v", bson.Raw(cmd), reply)
			}
		}
	})
}

// FuzzMessage sends a node any bytes behind a header with the right length: it answers or closes
// the connection, and goes on answering others.
func FuzzMessage(f *testing.F) {
	d := mongotest.Start(f, mongotest.Standalone())
	ping := doc(f, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
	good := wire.FinishMessage(append(wire.AppendMsg(nil, 7, 0, 0), ping...), 0)
	packed, err := wire.AppendCompressed(nil, good, wire.Zlib, -1)
	if err != nil {
		f.Fatal(err)
	}
	for _, msg := range [][]byte{good, packed, good[:20], wire.AppendHeader(nil, 1, 0, wire.OpQuery), append(wire.AppendMsg(nil, 7, 0, wire.ChecksumPresent), ping...)} {
		f.Add(msg[4:], false)
		f.Add(msg, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, header bool) {
		if len(data) > 10_000 {
			return
		}
		msg := data
		if !header {
			msg = wire.FinishMessage(append(make([]byte, 4), data...), 0)
		}
		c := dialHost(t, d)
		c.SetDeadline(time.Now().Add(time.Minute))
		go func() {
			c.Write(msg)
			c.(*net.TCPConn).CloseWrite()
		}()
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the connection stays open after %x", msg)
		}
		c.Close()
		other := dialHost(t, d)
		other.SetDeadline(time.Now().Add(time.Minute))
		if reply := command(t, other, ping); !reply.Lookup("ok").AsBool() {
			t.Fatalf("another connection is answered %v", reply)
		}
		other.Close()
	})
}

func dialHost(t testing.TB, d *mongotest.Deployment) net.Conn {
	t.Helper()
	c, err := d.DialContext(t.Context(), "tcp", d.Hosts()[0])
	if err != nil {
		t.Fatal(err)
	}
	return c
}
