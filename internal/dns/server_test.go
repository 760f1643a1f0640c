package dns

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// zone holds the records that the suite's README asks for, and some more.
const zone = `
localhost.test.build.10gen.cc.            86400 IN A 127.0.0.1
localhost.sub.test.build.10gen.cc.        86400 IN A 127.0.0.1
_mongodb._tcp.test1.test.build.10gen.cc.  86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test1.test.build.10gen.cc.  86400 IN SRV 0 0 27018 localhost.test.build.10gen.cc.
_mongodb._tcp.test2.test.build.10gen.cc.  86400 IN SRV 0 0 27018 localhost.test.build.10gen.cc.
_mongodb._tcp.test2.test.build.10gen.cc.  86400 IN SRV 0 0 27019 localhost.test.build.10gen.cc.
_mongodb._tcp.test3.test.build.10gen.cc.  86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test5.test.build.10gen.cc.  86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test6.test.build.10gen.cc.  86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test7.test.build.10gen.cc.  86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test8.test.build.10gen.cc.  86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test10.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test11.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test12.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.build.10gen.cc.
_mongodb._tcp.test13.test.build.10gen.cc. 86400 IN SRV 0 0 27017 test.build.10gen.cc.
_mongodb._tcp.test14.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.not-test.build.10gen.cc.
_mongodb._tcp.test15.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.test.not-build.10gen.cc.
_mongodb._tcp.test16.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.test.build.not-10gen.cc.
_mongodb._tcp.test17.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.test.build.10gen.not-cc.
_mongodb._tcp.test18.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.sub.test.build.10gen.cc.
_mongodb._tcp.test19.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.evil.build.10gen.cc.
_mongodb._tcp.test19.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test20.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test21.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_customname._tcp.test22.test.build.10gen.cc. 86400 IN SRV 0 0 27017 localhost.test.build.10gen.cc.
_mongodb._tcp.test23.test.build.10gen.cc. 86400 IN SRV 0 0 8000 localhost.test.build.10gen.cc.
_mongodb._tcp.test24.test.build.10gen.cc. 86400 IN SRV 0 0 8000 localhost.test.build.10gen.cc.
test5.test.build.10gen.cc.  86400 IN TXT "replicaSet=repl0&authSource=thisDB"
test6.test.build.10gen.cc.  86400 IN TXT "replicaSet=repl0"
test6.test.build.10gen.cc.  86400 IN TXT "authSource=otherDB"
test7.test.build.10gen.cc.  86400 IN TXT "ssl=false"
test8.test.build.10gen.cc.  86400 IN TXT "authSource"
test10.test.build.10gen.cc. 86400 IN TXT "socketTimeoutMS=500"
test11.test.build.10gen.cc. 86400 IN TXT "replicaS" "et=rep" "l0"
test20.test.build.10gen.cc. 86400 IN TXT "loadBalanced=true"
test21.test.build.10gen.cc. 86400 IN TXT "loadBalanced=false"
test24.test.build.10gen.cc. 86400 IN TXT "loadBalanced=true"
_mongodb._tcp.ttl.example.com. 300 IN SRV 0 0 1 a.example.com.
_mongodb._tcp.ttl.example.com.  90 IN SRV 0 0 2 b.example.com.
_mongodb._tcp.ttl.example.com. 600 IN SRV 0 0 3 c.example.com.
`

// srvSuite adds the second record of test22, which the suite expects and its README lacks.
const srvSuite = `_customname._tcp.test22.test.build.10gen.cc. 86400 IN SRV 0 0 27018 localhost.test.build.10gen.cc.`

// nameServer serves the records of a zone file on loopback and returns a resolver that asks it.
// truncate makes it answer by TCP only.
func nameServer(t *testing.T, records string, truncate bool) System {
	t.Helper()
	answers := map[dns.Question][]dns.RR{}
	names := map[string]bool{}
	parser := dns.NewZoneParser(strings.NewReader(records), ".", "")
	for rr, ok := parser.Next(); ok; rr, ok = parser.Next() {
		h := rr.Header()
		q := dns.Question{Name: strings.ToLower(h.Name), Qtype: h.Rrtype, Qclass: h.Class}
		answers[q] = append(answers[q], rr)
		names[q.Name] = true
	}
	if err := parser.Err(); err != nil {
		t.Fatal(err)
	}
	handle := func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		q := r.Question[0]
		q.Name = strings.ToLower(q.Name)
		_, byUDP := w.LocalAddr().(*net.UDPAddr)
		switch {
		case truncate && byUDP:
			m.Truncated = true
		case !names[q.Name]:
			m.Rcode = dns.RcodeNameError
		default:
			m.Answer = answers[q]
		}
		w.WriteMsg(m)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: udp}, {Listener: tcp}} {
		started, ended := make(chan struct{}), make(chan struct{})
		s.Handler, s.NotifyStartedFunc = dns.HandlerFunc(handle), func() { close(started) }
		go func() {
			defer close(ended)
			s.ActivateAndServe()
		}()
		<-started
		t.Cleanup(func() {
			s.Shutdown()
			<-ended
		})
	}
	return System{Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		address := udp.LocalAddr().String()
		if strings.HasPrefix(network, "tcp") {
			address = tcp.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}

// mute is a connection to a name server that never hears of questions for TXT records.
type mute struct {
	net.Conn
	net.PacketConn
	text  *bool
	asked chan struct{} // closed when the question for the text was asked
	ended chan error    // why the wait for its answer ended
}

func (m mute) Write(b []byte) (int, error) {
	var q dns.Msg
	if err := q.Unpack(b); err != nil {
		return 0, err
	}
	if *m.text = q.Question[0].Qtype == dns.TypeTXT; *m.text {
		close(m.asked)
		return len(b), nil
	}
	<-m.asked
	return m.Conn.Write(b)
}

func (m mute) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	if *m.text {
		m.ended <- err
	}
	return n, err
}

func (m mute) Close() error                       { return m.Conn.Close() }
func (m mute) LocalAddr() net.Addr                { return m.Conn.LocalAddr() }
func (m mute) SetDeadline(t time.Time) error      { return m.Conn.SetDeadline(t) }
func (m mute) SetReadDeadline(t time.Time) error  { return m.Conn.SetReadDeadline(t) }
func (m mute) SetWriteDeadline(t time.Time) error { return m.Conn.SetWriteDeadline(t) }

// A lookup without servers does not leave a question behind that waits until the resolver gives up.
func TestLookupEndsWithItsContext(t *testing.T) {
	server := nameServer(t, zone, false)
	asked, ended := make(chan struct{}), make(chan error, 1)
	r := System{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := server.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return mute{Conn: nc, PacketConn: nc.(net.PacketConn), text: new(bool), asked: asked, ended: ended}, nil
	}}
	if _, err := Lookup(t.Context(), r, "", "nowhere.example.com"); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("unknown name: %v", err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the wait for the text ended with %v, want that its connection was closed", err)
	}
}
