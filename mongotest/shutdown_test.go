package mongotest_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// hangsUpOn sends a command and reports whether the connection is closed in the place of an answer.
func hangsUpOn(t *testing.T, c net.Conn, cmd bson.D) (closed bool, reply bson.Raw) {
	t.Helper()
	doc, err := bson.Marshal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	msg := append(wire.AppendMsg(nil, wire.NextRequestID(), 0, 0), doc...)
	if _, err := c.Write(wire.FinishMessage(msg, 0)); err != nil {
		t.Fatal(err)
	}
	var one [1]byte
	if _, err := io.ReadFull(c, one[:]); err != nil {
		return true, nil
	}
	return false, readReply(t, &unread{Conn: c, first: one[:]})
}

// unread is a connection of which a part has been read already.
type unread struct {
	net.Conn
	first []byte
}

func (u *unread) Read(b []byte) (int, error) {
	if len(u.first) > 0 {
		n := copy(b, u.first)
		u.first = u.first[n:]
		return n, nil
	}
	return u.Conn.Read(b)
}

// TestShutdown ends processes by the command, as a shell's db.shutdownServer() does: it closes the
// connection, new ones are refused, and the deployment is done with the last of them.
func TestShutdown(t *testing.T) {
	shutdown := func(more ...bson.E) bson.D {
		return append(bson.D{{Key: "shutdown", Value: 1}, {Key: "$db", Value: "admin"}}, more...)
	}
	for _, test := range []struct {
		name string
		role mongotest.Option
	}{
		{"standalone", mongotest.Standalone()}, {"single", mongotest.ReplicaSet(1)}, {"three", mongotest.ReplicaSet(3)}, {"mongoses", mongotest.Sharded(1, 2)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, test.role, mongotest.InMemory())
				left := slices.Clone(d.Nodes())
				for len(left) > 0 {
					n := d.Primary() // of a set the next one, as long as there is a majority
					if !slices.Contains(left, n) {
						n = left[0]
					}
					left = slices.DeleteFunc(left, func(other *mongotest.Node) bool { return other == n })
					select {
					case <-d.Done():
						t.Fatal("it is done, and nodes run")
					default:
					}
					if closed, reply := hangsUpOn(t, dialNode(t, d, n), shutdown(bson.E{Key: "force", Value: true})); !closed {
						t.Fatalf("%s answers %v", n.Addr(), reply)
					}
					time.Sleep(time.Minute) // an election
					if c, err := d.DialContext(t.Context(), "tcp", n.Addr()); err == nil {
						c.Close()
						t.Errorf("%s accepts connections", n.Addr())
					}
				}
				<-d.Done()
			})
		})
	}
	t.Run("nobody caught up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
			p := d.Primary()
			for _, n := range d.Secondaries() {
				n.HoldBack()
			}
			c := dialNode(t, d, p)
			ok(t, askText(t, c, "db", `{"insert": "c", "documents": [{}], "writeConcern": {"w": 1}}`))
			closed, reply := hangsUpOn(t, c, shutdown(bson.E{Key: "timeoutSecs", Value: 1}))
			if code, _ := reply.Lookup("code").AsInt64(); closed || code != 262 {
				t.Errorf("closed: %t, %v", closed, reply)
			}
			ok(t, run(t, dialNode(t, d, p), bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))
		})
	})
	t.Run("without the privilege", func(t *testing.T) {
		d := mongotest.Start(t, mongotest.Standalone(), mongotest.Auth("root", "secret"), mongotest.InMemory())
		if closed, reply := hangsUpOn(t, dialNode(t, d, d.Node(0)), shutdown()); closed || errorOf(reply) != "13: Command shutdown requires authentication" {
			t.Errorf("closed: %t, %v", closed, reply)
		}
	})
}
