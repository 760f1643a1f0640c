package allium_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"allium/bson"
	"allium/internal/wire"
)

// fakeServer answers hello as a standalone does, and leaves every other command to a function: it stands for servers that
// mongotest, which behaves, is not.
type fakeServer struct {
	listener net.Listener
	answer   func(name string, body bson.Raw, c net.Conn, requestID int32)
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
	hello    []byte // what hello is answered with
}

func startFake(t testing.TB, answer func(name string, body bson.Raw, c net.Conn, requestID int32)) *fakeServer {
	t.Helper()
	return startFakeWith(t, helloReply(), answer)
}

func startFakeWith(t testing.TB, hello []byte, answer func(name string, body bson.Raw, c net.Conn, requestID int32)) *fakeServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{listener: l, answer: answer, hello: hello}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(s.stop)
	return s
}

func (s *fakeServer) stop() {
	s.listener.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *fakeServer) uri() string {
	return "mongodb://" + s.listener.Addr().String() + "/?serverMonitoringMode=poll"
}

func (s *fakeServer) serve(c net.Conn) {
	defer c.Close()
	for {
		head := make([]byte, wire.HeaderLen)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		msg := append(head, make([]byte, binary.LittleEndian.Uint32(head)-wire.HeaderLen)...)
		if _, err := io.ReadFull(c, msg[wire.HeaderLen:]); err != nil {
			return
		}
		m, err := wire.ParseMsg(msg)
		if err != nil {
			return
		}
		id := int32(binary.LittleEndian.Uint32(head[4:]))
		name := ""
		for key := range m.Body.All() {
			name = key
			break
		}
		switch name {
		case "hello", "isMaster", "ismaster":
			c.Write(message(id, s.hello))
		case "endSessions", "killCursors":
			c.Write(message(id, okReply()))
		default:
			s.answer(name, m.Body, c, id)
		}
	}
}

// message returns an OP_MSG with a body.
func message(responseTo int32, body []byte) []byte {
	msg := wire.AppendMsg(nil, 1, responseTo, 0)
	return wire.FinishMessage(append(msg, body...), 0)
}

func okReply() []byte {
	start, d := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendInt32(d, "ok", 1), start)
}

func helloReply() []byte {
	start, d := bson.BeginDocument(nil)
	d = bson.AppendBool(d, "isWritablePrimary", true)
	d = bson.AppendBool(d, "helloOk", true)
	d = bson.AppendInt32(d, "maxBsonObjectSize", 16<<20)
	d = bson.AppendInt32(d, "maxMessageSizeBytes", 48_000_000)
	d = bson.AppendInt32(d, "maxWriteBatchSize", 100_000)
	d = bson.AppendInt32(d, "minWireVersion", 0)
	d = bson.AppendInt32(d, "maxWireVersion", 25)
	d = bson.AppendInt32(d, "ok", 1)
	return bson.EndDocument(d, start)
}

// nested returns a document that nests n levels deep.
func nested(n int) []byte {
	doc := []byte{5, 0, 0, 0, 0}
	for range n {
		start, d := bson.BeginDocument(nil)
		doc = bson.EndDocument(bson.AppendDocument(d, "a", doc), start)
	}
	return doc
}
