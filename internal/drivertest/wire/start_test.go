package wire

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/mongotest"
)

// trip is how long a message and its answer take in TestRoundTripsOfStart.
const trip = time.Second

// farDialer reaches a deployment that is far away: connecting takes a round trip, and so does each
// answer.
type farDialer struct{ d *mongotest.Deployment }

func (f farDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	time.Sleep(trip)
	c, err := f.d.DialContext(ctx, network, address)
	return &farConn{Conn: c}, err
}

type farConn struct {
	net.Conn
	asked atomic.Bool
}

func (c *farConn) Write(b []byte) (int, error) {
	c.asked.Store(true)
	return c.Conn.Write(b)
}

func (c *farConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.asked.Swap(false) {
		time.Sleep(trip)
	}
	return n, err
}

// farResolver knows one SRV name and takes a round trip for each question.
type farResolver struct{ host string }

func (r farResolver) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	time.Sleep(trip)
	return "", []*net.SRV{{Target: r.host + ".", Port: 27017}}, nil
}

func (r farResolver) LookupTXT(context.Context, string) ([]string, error) {
	time.Sleep(trip)
	return []string{"authSource=admin"}, nil
}

// From Open to the first reply a client takes no more round trips than the protocol demands: the
// monitor connects and says hello, then a connection of the pool does (and logs in), then the
// command goes out. (specification: Server Discovery and Monitoring, "a monitor ... MUST NOT"
// share its connection with operations; Authentication, speculative authentication.) A client that
// is to be warm dials the pool's connection beside the monitor's.
func TestRoundTripsOfStart(t *testing.T) {
	const (
		monitor = 2 // connect, hello
		pooled  = 2 // the same for the pool's connection
		command = 1
	)
	for _, tt := range []struct {
		name    string
		options []mongotest.Option
		uri     func(d *mongotest.Deployment) string
		trips   int
		warm    int // the same with ClientOptions.Warm
		why     string
	}{
		{"standalone", []mongotest.Option{mongotest.Standalone()}, nil, monitor + pooled + command, 4, ""},
		{"replica set", []mongotest.Option{mongotest.ReplicaSet(3)}, nil, monitor + pooled + command, 4, "its members are asked at the same time"},
		{"sharded cluster", []mongotest.Option{mongotest.Sharded(1, 2)}, nil, monitor + pooled + command, 4, ""},
		{"load balancer", []mongotest.Option{mongotest.LoadBalanced(1)}, nil, pooled + command, 3, "nothing is monitored"},
		{"SCRAM-SHA-256", []mongotest.Option{mongotest.Standalone(), mongotest.Auth("ada", "pencil")}, nil, monitor + pooled + command + 1, 5,
			"the first message of two goes with hello"},
		{"SCRAM-SHA-1", []mongotest.Option{mongotest.Standalone(), mongotest.Auth("ada", "pencil")},
			func(d *mongotest.Deployment) string { return d.URI() + "&authMechanism=SCRAM-SHA-1" }, monitor + pooled + command + 1, 5,
			"the first message of two goes with hello"},
		{"TLS", []mongotest.Option{mongotest.Standalone(), mongotest.TLS()}, nil, monitor + pooled + command + 2, 5, "TLS 1.3 takes one for each connection"},
		{"SRV", []mongotest.Option{mongotest.Standalone()}, func(d *mongotest.Deployment) string { return "mongodb+srv://db.example.test/?tls=false" },
			1 + monitor + pooled + command, 5, "both records are asked for at the same time"},
	} {
		start := func(t *testing.T, warm, trips int) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, append(tt.options, mongotest.InMemory())...)
				uri, o := d.URI(), allium.ClientOptions{Dialer: farDialer{d}, TLS: d.TLSConfig(), Warm: &warm}
				if tt.uri != nil {
					uri = tt.uri(d)
				}
				if tt.name == "SRV" {
					o.Resolver = farResolver{"a.db.example.test"}
					o.Dialer = renamed{farDialer{d}, d.Hosts()[0]}
				}
				start := time.Now()
				client, err := allium.Open(uri, o)
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(t.Context())
				if _, err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(start); got != time.Duration(trips)*trip {
					t.Errorf("%v round trips, want %d; %s", got.Seconds(), trips, tt.why)
				}
			})
		}
		t.Run(tt.name, func(t *testing.T) { start(t, 0, tt.trips) })
		t.Run(tt.name+", warm", func(t *testing.T) { start(t, 1, tt.warm) })
	}
}

// renamed connects to one address whatever it is asked for.
type renamed struct {
	farDialer
	address string
}

func (r renamed) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	return r.farDialer.DialContext(ctx, network, r.address)
}
