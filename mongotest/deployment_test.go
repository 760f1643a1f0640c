package mongotest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// doc builds a document from keys and values.
func doc(t testing.TB, d bson.D) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func run(t testing.TB, c net.Conn, d bson.D) bson.Raw {
	t.Helper()
	return command(t, c, doc(t, d))
}

// ok fails the test unless the reply is a success.
func ok(t testing.TB, reply bson.Raw) bson.Raw {
	t.Helper()
	if !reply.Lookup("ok").AsBool() {
		t.Fatalf("reply is an error: %v", reply)
	}
	return reply
}

func dialNode(t *testing.T, d *mongotest.Deployment, n *mongotest.Node) net.Conn {
	t.Helper()
	c, err := d.DialContext(t.Context(), "tcp", n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func hello(t *testing.T, d *mongotest.Deployment, n *mongotest.Node) bson.Raw {
	t.Helper()
	return ok(t, run(t, dialNode(t, d, n), bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}))
}

func TestStepDown(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	old := d.Primary()
	before := hello(t, d, old)
	d.StepDown()
	now := d.Primary()
	if now == old || now == nil {
		t.Fatal("no new primary after a step-down")
	}
	after := hello(t, d, now)
	a, _ := before.Lookup("electionId").ObjectID()
	b, _ := after.Lookup("electionId").ObjectID()
	if bytes.Compare(a[:], b[:]) >= 0 {
		t.Errorf("electionId went from %v to %v", a, b)
	}
	if hello(t, d, old).Lookup("isWritablePrimary").AsBool() {
		t.Error("the old primary still says that it is")
	}
	if len(d.Secondaries()) != 2 {
		t.Error("want two secondaries")
	}
}

func TestStepDownCommand(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	p := d.Primary()
	c := dialNode(t, d, p)
	ok(t, run(t, c, bson.D{{Key: "replSetStepDown", Value: 60}, {Key: "$db", Value: "admin"}}))
	if d.Primary() == p {
		t.Error("still primary")
	}
	// Secondaries that lag are not electable, but force does not care.
	p = d.Primary()
	for _, s := range d.Secondaries() {
		s.HoldBack()
	}
	c = dialNode(t, d, p)
	ok(t, run(t, c, bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{}}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}}, {Key: "$db", Value: "x"}}))
	r := run(t, c, bson.D{{Key: "replSetStepDown", Value: 5}, {Key: "secondaryCatchUpPeriodSecs", Value: 0}, {Key: "$db", Value: "admin"}})
	if code, _ := r.Lookup("code").AsInt64(); code != 262 {
		t.Errorf("step-down without electable secondaries: %v", r)
	}
}

func TestKillAndRestart(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	p := d.Primary()
	c := dialNode(t, d, p)
	p.Kill()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("connection survives the kill")
	}
	if _, err := d.DialContext(t.Context(), "tcp", p.Addr()); err == nil {
		t.Error("killed node accepts connections")
	}
	now := d.Primary()
	if now == nil || now == p {
		t.Fatal("nobody took over")
	}
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	if !hello(t, d, p).Lookup("secondary").AsBool() {
		t.Error("restarted node is no secondary")
	}
	// Without a majority nobody is primary.
	now.Kill()
	d.Primary().Kill()
	if d.Primary() != nil {
		t.Error("a primary without a majority")
	}
	if err := now.Restart(); err != nil {
		t.Fatal(err)
	}
	if d.Primary() == nil {
		t.Error("no primary although two of three are back")
	}
}

func TestPartition(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	p := d.Primary()
	p.Partition()
	if now := d.Primary(); now == p || now == nil {
		t.Fatal("the majority elected nobody")
	}
	h := hello(t, d, p)
	if h.Lookup("isWritablePrimary").AsBool() || !h.Lookup("primary").IsZero() {
		t.Errorf("partitioned node says %v", h)
	}
	p.Heal()
	if hello(t, d, p).Lookup("primary").IsZero() {
		t.Error("healed node knows no primary")
	}
}

func TestHoldBack(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	s := d.Secondaries()
	s[0].HoldBack()
	c := dialNode(t, d, d.Primary())
	write := func(user string, w any, wtimeout int) bson.Raw {
		return ok(t, run(t, c, bson.D{{Key: "createUser", Value: user}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{}},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: w}, {Key: "wtimeout", Value: wtimeout}}}, {Key: "$db", Value: "x"}}))
	}
	if r := write("a", "majority", 0); !r.Lookup("writeConcernError").IsZero() {
		t.Errorf("a majority is there: %v", r)
	}
	if code, _ := write("b", 3, 1).Lookup("writeConcernError", "code").AsInt64(); code != 64 {
		t.Errorf("w: 3 with a member held back: code %d", code)
	}
	s[1].HoldBack()
	if code, _ := write("c", "majority", 1).Lookup("writeConcernError", "code").AsInt64(); code != 64 {
		t.Errorf("majority with two members held back: code %d", code)
	}
	lag := func(n *mongotest.Node) bson.RawValue { return hello(t, d, n).Lookup("lastWrite", "opTime", "ts") }
	if bson.Compare(lag(s[0]), lag(s[1])) >= 0 || bson.Compare(lag(s[1]), lag(d.Primary())) >= 0 {
		t.Error("positions are not in the order in which the members were held back")
	}
	done := make(chan bson.Raw)
	go func() { done <- write("d", 3, 0) }()
	s[0].CatchUp()
	s[1].CatchUp()
	if r := <-done; !r.Lookup("writeConcernError").IsZero() {
		t.Errorf("after catching up: %v", r)
	}
	if bson.Compare(lag(s[0]), lag(d.Primary())) != 0 {
		t.Error("did not catch up")
	}
}

// A primary has its own writes, even if it was held back as a secondary, and counts for their
// majority.
func TestHeldBackPrimary(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	for _, s := range d.Secondaries() {
		s.HoldBack()
	}
	old := d.Primary()
	d.StepDown()
	p := d.Primary()
	if p == nil || p == old {
		t.Fatal("no other primary")
	}
	c := dialNode(t, d, p)
	insert := append(insertOne("c", 1), bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "wtimeout", Value: 1}}})
	if r := ok(t, run(t, c, insert)); !r.Lookup("writeConcernError").IsZero() {
		t.Errorf("a majority is there, the new primary and the old one: %v", r)
	}
	if err := old.StepUp(); err != nil { // p is a secondary again, and still held back
		t.Fatal(err)
	}
	before := hello(t, d, p).Lookup("lastWrite", "opTime", "ts")
	ok(t, run(t, dialNode(t, d, d.Primary()), append(insertOne("c", 2), bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}})))
	if bson.Compare(before, hello(t, d, p).Lookup("lastWrite", "opTime", "ts")) != 0 {
		t.Error("held back, and applies writes of others")
	}
}

// A streaming hello is told at once that the primary stepped down.
func TestStreamingHello(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	p := d.Primary()
	c := dialNode(t, d, p)
	tv := ok(t, run(t, c, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})).Lookup("topologyVersion")
	msg := wire.AppendMsg(nil, wire.NextRequestID(), 0, wire.ExhaustAllowed)
	msg = append(msg, doc(t, bson.D{{Key: "hello", Value: 1}, {Key: "topologyVersion", Value: tv}, {Key: "maxAwaitTimeMS", Value: 600000}, {Key: "$db", Value: "admin"}})...)
	if _, err := c.Write(wire.FinishMessage(msg, 0)); err != nil {
		t.Fatal(err)
	}
	d.StepDown()
	for { // one reply for the step-down and one for the election, or one for both
		reply := readReply(t, c)
		if reply.Lookup("isWritablePrimary").AsBool() {
			t.Error("streamed hello says primary after the step-down")
		}
		me, _ := reply.Lookup("me").StringValue()
		if primary, ok := reply.Lookup("primary").StringValue(); ok && primary != me {
			break
		}
	}
}

func TestFailCommand(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	d.FailCommand(mongotest.Fail{Commands: []string{"ping"}, Times: 1, Code: 91, Labels: []string{"Mine"}})
	c := dialNode(t, d, d.Primary())
	ping := bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}
	r := run(t, c, ping)
	if code, _ := r.Lookup("code").AsInt64(); code != 91 {
		t.Errorf("reply %v", r)
	}
	if s, _ := r.Lookup("errorLabels", "0").StringValue(); s != "Mine" {
		t.Errorf("labels of %v", r)
	}
	ok(t, run(t, c, ping))
	d.FailCommand(mongotest.Fail{Commands: []string{"ping"}, CloseConnection: true})
	c.Write(wire.FinishMessage(append(wire.AppendMsg(nil, 1, 0, 0), doc(t, ping)...), 0))
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("connection ends with %v", err)
	}
	d.ClearFailures()
	ok(t, run(t, dialNode(t, d, d.Primary()), ping))
}

func TestNetFaults(t *testing.T) {
	d := mongotest.Start(t)
	n := d.Primary()
	ping := wire.FinishMessage(append(wire.AppendMsg(nil, 1, 0, 0), simple("ping", "admin")...), 0)
	n.SetNetFaults(mongotest.NetFaults{DropAfter: 10, Times: 1})
	c := dialNode(t, d, n)
	c.Write(ping)
	if b, _ := io.ReadAll(c); len(b) != 10 {
		t.Errorf("%d bytes before the drop, want 10", len(b))
	}
	c = dialNode(t, d, n)
	ok(t, run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))

	n.SetNetFaults(mongotest.NetFaults{Garbage: 100})
	c.Write(ping)
	if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
		t.Error(err)
	}
	n.SetNetFaults(mongotest.NetFaults{Trickle: time.Microsecond})
	c = dialNode(t, d, n)
	ok(t, run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))

	n.SetNetFaults(mongotest.NetFaults{Reset: true})
	if c, err := net.Dial("tcp", n.Addr()); err == nil {
		c.Write(ping)
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a connection that should be reset answers")
		}
		c.Close()
	}
	n.SetNetFaults(mongotest.NetFaults{})

	n.HoldReplies()
	c = dialNode(t, d, n)
	c.Write(ping)
	got := make(chan bson.Raw)
	go func() { got <- readReply(t, c) }()
	select {
	case <-got:
		t.Error("a held reply arrives")
	default:
	}
	n.ReleaseReplies()
	ok(t, <-got)

	n.RefuseConnections()
	if _, err := net.Dial("tcp", n.Addr()); err == nil {
		t.Error("connection is not refused")
	}
	if err := n.AcceptConnections(); err != nil {
		t.Fatal(err)
	}
	dialNode(t, d, n)
}

func TestOnCommand(t *testing.T) {
	d := mongotest.Start(t)
	var seen atomic.Int32
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		seen.Add(1)
		switch c.Name {
		case "hello":
			return doc(t, bson.D{{Key: "ok", Value: 1}, {Key: "mine", Value: true}}), nil
		case "buildInfo":
			return nil, errors.New("drop it")
		}
		return nil, nil
	})
	c := dialNode(t, d, d.Primary())
	ok(t, run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))
	if r := run(t, c, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}); !r.Lookup("mine").AsBool() {
		t.Errorf("reply %v is not the hook's", r)
	}
	c.Write(wire.FinishMessage(append(wire.AppendMsg(nil, 1, 0, 0), simple("buildInfo", "admin")...), 0))
	if b, _ := io.ReadAll(c); len(b) != 0 {
		t.Error("a dropped command is answered")
	}
	if n := seen.Load(); n != 3 {
		t.Errorf("hook saw %d commands, want 3", n)
	}
}

func TestLoadBalanced(t *testing.T) {
	d := mongotest.Start(t, mongotest.LoadBalanced(2))
	addr := d.Hosts()[0]
	ids := map[bson.ObjectID]bool{}
	for range 2 {
		c := dial(t, addr)
		r := ok(t, run(t, c, bson.D{{Key: "hello", Value: 1}, {Key: "loadBalanced", Value: true}, {Key: "$db", Value: "admin"}}))
		id, _ := r.Lookup("serviceId").ObjectID()
		ids[id] = true
	}
	if len(ids) != 2 {
		t.Errorf("two connections went to %d services", len(ids))
	}
	if r := run(t, dial(t, addr), bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}}); r.Lookup("ok").AsBool() {
		t.Error("a client that does not declare load balancing is served")
	}
}

// A cursor is known to its mongos only, whichever way a connection leads to it.
func TestLoadBalancedCursors(t *testing.T) {
	d := mongotest.Start(t, mongotest.LoadBalanced(2), mongotest.InMemory())
	connect := func(addr string) (net.Conn, bson.ObjectID) {
		c, err := d.DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		id, _ := ok(t, run(t, c, bson.D{{Key: "hello", Value: 1}, {Key: "loadBalanced", Value: true}, {Key: "$db", Value: "admin"}})).Lookup("serviceId").ObjectID()
		return c, id
	}
	u, err := url.Parse(d.SingleMongosURI())
	if err != nil {
		t.Fatal(err)
	}
	first, one := connect(u.Host)
	again, same := connect(u.Host)
	if one != same {
		t.Error("the balancer in front of a single mongos leads to several")
	}
	var other net.Conn
	for range 2 {
		if c, id := connect(d.Hosts()[0]); id != one {
			other = c
		}
	}
	for i := range int32(3) {
		ok(t, run(t, first, insertOne("c", i)))
	}
	id, _ := ok(t, run(t, first, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}, {Key: "$db", Value: "db"}})).Lookup("cursor", "id").AsInt64()
	getMore := bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 1}, {Key: "$db", Value: "db"}}
	if code, _ := run(t, other, getMore).Lookup("code").AsInt64(); code != 43 {
		t.Errorf("another mongos answers a getMore with code %d", code)
	}
	ok(t, run(t, again, getMore))
	start := append(insertOne("c", 9), bson.E{Key: "lsid", Value: testSession}, bson.E{Key: "txnNumber", Value: int64(1)},
		bson.E{Key: "startTransaction", Value: true}, bson.E{Key: "autocommit", Value: false})
	ok(t, run(t, first, start))
	more := append(insertOne("c", 10), bson.E{Key: "lsid", Value: testSession}, bson.E{Key: "txnNumber", Value: int64(1)}, bson.E{Key: "autocommit", Value: false})
	if code, _ := run(t, other, more).Lookup("code").AsInt64(); code != 251 {
		t.Errorf("another mongos goes on with a transaction: code %d", code)
	}
	ok(t, run(t, again, more))
}

func TestTLS(t *testing.T) {
	d := mongotest.Start(t, mongotest.TLS())
	if err := d.AddUser(mongotest.User{Name: d.ClientSubject(), DB: "$external"}); err != nil {
		t.Fatal(err)
	}
	cfg := d.TLSConfig()
	cfg.ServerName = "localhost"
	c, err := tls.Dial("tcp", d.Hosts()[0], cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := ok(t, run(t, c, bson.D{{Key: "authenticate", Value: 1}, {Key: "mechanism", Value: "MONGODB-X509"}, {Key: "$db", Value: "$external"}}))
	if s, _ := r.Lookup("user").StringValue(); s != d.ClientSubject() {
		t.Errorf("authenticated as %q", s)
	}
	if _, _, err := d.WriteTLSFiles(t.TempDir()); err != nil {
		t.Error(err)
	}
	if _, err := tls.Dial("tcp", d.Hosts()[0], &tls.Config{}); err == nil {
		t.Error("an unknown authority is accepted")
	}
}

// New connections see the certificate that has taken the old one's place, open ones go on.
func TestReplaceCertificate(t *testing.T) {
	d := mongotest.Start(t, mongotest.TLS())
	cfg := d.TLSConfig()
	cfg.ServerName, cfg.ClientSessionCache = "localhost", tls.NewLRUClientSessionCache(0)
	dial := func() (*tls.Conn, error) { return tls.Dial("tcp", d.Hosts()[0], cfg) }
	open, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	ping := bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}
	ok(t, run(t, open, ping)) // brings the session's ticket, too
	first := open.ConnectionState().PeerCertificates[0]
	for kind, want := range map[mongotest.ServerCertificate]string{
		mongotest.ExpiredCertificate: "expired", mongotest.ForeignCertificate: "unknown authority",
	} {
		if err := d.ReplaceCertificate(kind); err != nil {
			t.Fatal(err)
		}
		if c, err := dial(); err == nil {
			c.Close()
			t.Errorf("kind %d: the certificate is accepted", kind)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("kind %d: %v, want %q", kind, err, want)
		}
		ok(t, run(t, open, ping))
	}
	if err := d.ReplaceCertificate(mongotest.ValidCertificate); err != nil {
		t.Fatal(err)
	}
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.ConnectionState().PeerCertificates[0]; got.SerialNumber.Cmp(first.SerialNumber) == 0 || got.Equal(first) {
		t.Error("the old certificate is still shown")
	}
	if err := d.ReplaceCertificate(99); err == nil {
		t.Error("a kind that does not exist is accepted")
	}
	if err := mongotest.Start(t).ReplaceCertificate(mongotest.ValidCertificate); err == nil {
		t.Error("a deployment without TLS takes a certificate")
	}
}

// A program's own authorities take the place of the deployment's, one after the other: clients that
// have the new one's certificates get in, others do not, and those that are in stay.
func TestUseCertificate(t *testing.T) {
	d := mongotest.Start(t, mongotest.TLS())
	// Other deployments have authorities, and a certificate of each, which is one for clients.
	type identity struct {
		ca  []byte
		own tls.Certificate
	}
	var ids [2]identity
	for i := range ids {
		other := mongotest.Start(t, mongotest.TLS())
		file, _, err := other.WriteTLSFiles(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if ids[i].ca, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		ids[i].own = other.TLSConfig().Certificates[0]
	}
	one, two := &ids[0], &ids[1]
	pool := func(of ...*identity) *x509.CertPool {
		if of == nil {
			return nil
		}
		all := x509.NewCertPool()
		for _, id := range of {
			all.AppendCertsFromPEM(id.ca)
		}
		return all
	}
	ping := bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}
	try := func(trusts, own *identity) error {
		cfg := &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool(trusts), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
			return err
		}}
		if own != nil {
			cfg.Certificates = []tls.Certificate{own.own}
		}
		c, err := tls.Dial("tcp", d.Hosts()[0], cfg)
		if err != nil {
			return err
		}
		defer c.Close()
		request(t, c, 0, ping)
		_, err = c.Read(make([]byte, 1)) // with TLS 1.3 a client is refused after its handshake
		return err
	}
	open, err := tls.Dial("tcp", d.Hosts()[0], d.TLSConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	for _, step := range []struct {
		name        string
		shows       *identity
		clients     []*identity
		trusts, own *identity
		want        string
	}{
		{"no certificate is wanted", one, nil, one, nil, ""},
		{"an unknown authority", one, nil, two, nil, "unknown authority"},
		{"a certificate is wanted", one, []*identity{one}, one, one, ""},
		{"there is none", one, []*identity{one}, one, nil, "certificate required"},
		{"it is another authority's", one, []*identity{one}, one, two, "certificate"},
		{"both are accepted", two, []*identity{one, two}, two, one, ""},
	} {
		if err := d.UseCertificate(step.shows.own, pool(step.clients...)); err != nil {
			t.Fatal(err)
		}
		err := try(step.trusts, step.own)
		if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("%s: %v, want %q", step.name, err, step.want)
		}
	}
	ok(t, run(t, open, ping))
	if err := mongotest.Start(t).UseCertificate(one.own, nil); err == nil {
		t.Error("a deployment without TLS takes a certificate")
	}
}

func TestUnixSockets(t *testing.T) {
	d := mongotest.Start(t, mongotest.UnixSockets(t.TempDir()))
	c, err := net.Dial("unix", d.Node(0).SocketPath())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ok(t, command(t, c, simple("ping", "admin")))
}

func TestCompression(t *testing.T) {
	d := mongotest.Start(t)
	for _, name := range []string{"snappy", "zlib", "zstd"} {
		c := dialNode(t, d, d.Primary())
		ok(t, run(t, c, bson.D{{Key: "hello", Value: 1}, {Key: "compression", Value: bson.A{name}}, {Key: "$db", Value: "admin"}}))
		id, _ := wire.CompressorByName(name)
		msg := wire.FinishMessage(append(wire.AppendMsg(nil, 1, 0, 0), simple("ping", "admin")...), 0)
		comp, err := wire.AppendCompressed(nil, msg, id, -1)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(comp)
		head := make([]byte, wire.HeaderLen)
		if _, err := io.ReadFull(c, head); err != nil {
			t.Fatal(name, err)
		}
		h, _ := wire.ParseHeader(head, wire.DefaultMaxMessageSize)
		if h.OpCode != wire.OpCompressed {
			t.Errorf("%s: reply is not compressed", name)
		}
		rest := make([]byte, h.Length-wire.HeaderLen)
		io.ReadFull(c, rest)
		plain, err := wire.AppendDecompressed(nil, append(head, rest...), wire.DefaultMaxMessageSize)
		if err != nil {
			t.Fatal(name, err)
		}
		m, err := wire.ParseMsg(plain)
		if err != nil || !m.Body.Lookup("ok").AsBool() {
			t.Errorf("%s: %v, %v", name, m.Body, err)
		}
	}
}

// In memory, a deployment runs on the clock of a testing/synctest bubble.
func TestInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.ReplicaSet(3), mongotest.InMemory())
		c := dialNode(t, d, d.Primary())
		d.FailCommand(mongotest.Fail{Commands: []string{"ping"}, Block: time.Hour})
		start := time.Now()
		ok(t, run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}}))
		if took := time.Since(start); took != time.Hour {
			t.Errorf("blocked for %v, want an hour", took)
		}
		r := run(t, c, bson.D{{Key: "ping", Value: 1}, {Key: "maxTimeMS", Value: 100}, {Key: "$db", Value: "admin"}})
		if r.Lookup("ok").AsBool() {
			t.Log("failCommand blocks before maxTimeMS counts, as on the server")
		}
		c.Close()
		d.Stop()
	})
}

func TestStopEndsEverything(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	c, err := d.DialContext(context.Background(), "tcp", d.Primary().Addr())
	if err != nil {
		t.Fatal(err)
	}
	ok(t, command(t, c, simple("ping", "admin")))
	d.StepDown()
	d.Node(1).HoldReplies()
	d.Stop()
	c.Close()
}

// Bytes that are no messages close the connection and nothing else.
func TestMalformed(t *testing.T) {
	d := mongotest.Start(t)
	for _, b := range [][]byte{
		[]byte("GET / HTTP/1.1\r\n\r\n"),
		{0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0},
		{21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xdd, 7, 0, 0, 0, 0, 0, 0, 0},
		wire.FinishMessage(append(wire.AppendMsg(nil, 1, 0, 0), 5, 0, 0, 0, 1), 0),
		wire.FinishMessage(append(wire.AppendHeader(nil, 1, 0, wire.OpCompressed), 0xdd, 7, 0, 0, 0xff, 0xff, 0xff, 0x7f, 1, 2, 3), 0),
	} {
		c := dialNode(t, d, d.Primary())
		c.Write(b)
		if tc, ok := c.(*net.TCPConn); ok {
			tc.CloseWrite()
		}
		if got, _ := io.ReadAll(c); len(got) != 0 {
			t.Errorf("%q is answered with %q", b, got)
		}
	}
	ok(t, command(t, dialNode(t, d, d.Primary()), simple("ping", "admin")))
}
