package prose

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/fakeserver"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// The prose tests of the specification SOCKS5 Support: a table of connection strings, with and
// without TLS, and the same with the proxy as an option of the program. Behind the proxies,
// "localhost:12345" is a member of the replica set.
func TestProseSOCKS5(t *testing.T) {
	const mapped = "localhost:12345"
	for name, options := range map[string][]mongotest.Option{"plain": nil, "TLS": {mongotest.TLS()}} {
		t.Run(name, func(t *testing.T) {
			d := testdeploy.Mock(t, "certificates and a replica set behind a proxy", append(options, mongotest.ReplicaSet(3))...)
			targets := map[string]string{mapped: d.Hosts()[1]}
			closed := &fakeserver.SOCKS5{Username: "username", Password: "p4ssw0rd", Targets: targets} // the text's port 1080
			opened := &fakeserver.SOCKS5{Targets: targets}                                             // the text's port 1081
			for _, p := range []*fakeserver.SOCKS5{closed, opened} {
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(p.Close)
			}
			tlsOptions := ""
			if d.TLSConfig() != nil {
				ca, _, err := d.WriteTLSFiles(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				tlsOptions = "&tls=true&tlsCAFile=" + url.QueryEscape(ca)
			}
			set := strings.Join(d.Hosts(), ",")
			for i, tt := range []struct {
				hosts      string
				proxy      *fakeserver.SOCKS5
				user, pass string
				ok         bool
			}{
				{mapped, closed, "", "", false},
				{mapped, opened, "", "", true},
				{set, closed, "", "", false},
				{set, opened, "", "", true},
				{mapped, closed, "nonexistentuser", "badauth", false},
				{mapped, opened, "nonexistentuser", "badauth", true},
				{set, opened, "nonexistentuser", "badauth", true},
				{mapped, closed, "username", "p4ssw0rd", true},
				{mapped, opened, "", "", true},
				{set, closed, "username", "p4ssw0rd", true},
				{set, opened, "", "", true},
			} {
				for _, inString := range []bool{true, false} {
					t.Run(fmt.Sprintf("%d in the string %v", i+1, inString), func(t *testing.T) {
						t.Parallel()
						uri := fmt.Sprintf("mongodb://%s/?serverSelectionTimeoutMS=20000%s", tt.hosts, tlsOptions)
						if tt.hosts == mapped {
							uri += "&directConnection=true"
						}
						var o allium.ClientOptions
						if inString {
							uri += fmt.Sprintf("&proxyHost=localhost&proxyPort=%d", tt.proxy.Port())
							if tt.user != "" {
								uri += "&proxyUsername=" + tt.user + "&proxyPassword=" + tt.pass
							}
						} else {
							o.Proxy = &allium.Proxy{Host: "localhost", Port: tt.proxy.Port(), Username: tt.user, Password: auth.Secret(tt.pass)}
						}
						socksCase(t, uri, o, tt.hosts, tt.ok)
					})
				}
			}
		})
	}
}

// socksCase runs a hello, which must succeed without that any event speaks of the proxy, or fail
// because of it.
func socksCase(t *testing.T, uri string, o allium.ClientOptions, hosts string, ok bool) {
	events := &rig.AddrRecorder{}
	events.Listen(&o)
	if !ok {
		o.ServerSelectionTimeout = new(300 * time.Millisecond)
	}
	client := rig.Open(t, uri, o)
	reply, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}})
	if !ok {
		if err == nil || !strings.Contains(err.Error(), "SOCKS5 proxy") {
			t.Errorf("error %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if name, _ := reply.Lookup("setName").StringValue(); name == "" {
		t.Errorf("reply %v", reply)
	}
	if err := client.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for addr := range events.Seen() {
		if !strings.Contains(","+hosts+",", ","+addr+",") {
			t.Errorf("an event is about %s, the servers are %s", addr, hosts)
		}
	}
	if len(events.Seen()) == 0 {
		t.Error("there were no events")
	}
}

// A monitor and a connection for operations both go through the proxy, which alone knows what the
// server's name means.
func TestSOCKS5ResolvesNames(t *testing.T) {
	d := testdeploy.Mock(t, "a host that a proxy stands for")
	p := &fakeserver.SOCKS5{Targets: map[string]string{"db.invalid:27017": d.Hosts()[0]}}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	dialed := &dialRecorder{}
	client := rig.Open(t, "mongodb://db.invalid/", allium.ClientOptions{Proxy: &allium.Proxy{Host: "127.0.0.1", Port: p.Port()}, Dialer: dialed})
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(p.Requests()); n < 2 {
		t.Errorf("the proxy was asked %d times", n)
	}
	for _, r := range p.Requests() {
		if r.Address != "db.invalid:27017" || !r.Name {
			t.Errorf("the proxy was asked for %+v", r)
		}
	}
	// The program's dialer makes the way to the proxy.
	for addr := range dialed.Seen() {
		if addr != fmt.Sprintf("127.0.0.1:%d", p.Port()) {
			t.Errorf("%s was dialed", addr)
		}
	}
	if len(dialed.Seen()) == 0 {
		t.Error("the program's dialer was not used")
	}
}

// dialRecorder dials, and remembers where.
type dialRecorder struct{ rig.AddrRecorder }

func (r *dialRecorder) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	r.Add(address)
	return new(net.Dialer).DialContext(ctx, network, address)
}
