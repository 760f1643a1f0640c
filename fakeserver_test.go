package allium_test

import (
	"net"
	"sync"
	"testing"

	"allium/bson"
	"allium/internal/fakeserver"
)

// fakeServer answers hello as a standalone does, and leaves every other command to a function: it
// stands for servers that mongotest, which behaves, is not.
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
		name, id, m, err := fakeserver.Read(c)
		if err != nil {
			return
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
	return fakeserver.Reply(1, responseTo, 0, body)
}

func okReply() []byte { return fakeserver.OK() }

func helloReply() []byte { return fakeserver.Hello() }

// nested returns a document that nests n levels deep.
func nested(n int) []byte {
	doc := []byte{5, 0, 0, 0, 0}
	for range n {
		start, d := bson.BeginDocument(nil)
		doc = bson.EndDocument(bson.AppendDocument(d, "a", doc), start)
	}
	return doc
}
