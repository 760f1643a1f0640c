package operations

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// slowDialer takes a second for each connection, and reaches only the servers that it may.
type slowDialer struct {
	*mongotest.Deployment
	lost atomic.Value // the address of the server that it does not reach
}

func (d *slowDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if address == d.lost.Load() {
		return nil, errors.New("no route to host")
	}
	return d.Deployment.DialContext(ctx, network, address)
}

// TestReady: after Ready, each server that can be reached has its connections, on each topology,
// and no operation waits for one.
func TestReady(t *testing.T) {
	for name, topology := range map[string]mongotest.Option{
		"standalone": nil, "replica set": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(2, 1), "load balancer": mongotest.LoadBalanced(1), "a member is away": mongotest.ReplicaSet(3),
	} {
		ready := func(t *testing.T, least, warm int) {
			synctest.Test(t, func(t *testing.T) {
				options := []mongotest.Option{mongotest.InMemory()}
				if topology != nil {
					options = append(options, topology)
				}
				dialer := &slowDialer{Deployment: testdeploy.Mock(t, "an in-memory network", options...)}
				away := name == "a member is away"
				if away {
					dialer.lost.Store(dialer.Secondaries()[0].Addr())
				}
				client, err := allium.Open(dialer.URI(), allium.ClientOptions{Dialer: dialer, MinPoolSize: &least, Warm: &warm})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				if err := client.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, p := range client.Stats().Pools {
					if lost := away && p.Addr == dialer.lost.Load(); !lost && p.Open-p.Connecting < 5 || lost && p.Open != 0 {
						t.Errorf("%s has %d connections, %d of them being made", p.Addr, p.Open, p.Connecting)
					}
				}
				start := time.Now()
				if _, err := client.Database("d").Collection("c").InsertOne(t.Context(), bson.D{}); err != nil {
					t.Error(err)
				}
				if err := client.Ready(t.Context()); err != nil || time.Since(start) >= time.Second {
					t.Errorf("a client that is warm waits for %v, %v", time.Since(start), err)
				}
			})
		}
		t.Run(name, func(t *testing.T) { ready(t, 5, 0) })
		t.Run(name+", warm", func(t *testing.T) { ready(t, 0, 5) })
	}
}

// TestNotReady: Ready says why, and when it does not wait.
func TestNotReady(t *testing.T) {
	errLeft := errors.New("the program ends")
	for name, tt := range map[string]struct {
		min     int
		prepare func(d *slowDialer, client *allium.Client)
		want    error
		text    string
	}{
		"no minimum":         {0, func(*slowDialer, *allium.Client) {}, nil, ""},
		"closed":             {5, func(_ *slowDialer, c *allium.Client) { c.Close(context.Background()) }, mongoerr.ErrClientClosed, ""},
		"too little time":    {100, func(*slowDialer, *allium.Client) {}, errLeft, "connection checkout timed out"},
		"no server":          {5, func(d *slowDialer, _ *allium.Client) { d.lost.Store(d.Node(0).Addr()) }, nil, "no route to host"},
		"a member is silent": {5, func(d *slowDialer, _ *allium.Client) { d.Secondaries()[0].Hang() }, errLeft, "server selection timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &slowDialer{Deployment: testdeploy.Mock(t, "an in-memory network", mongotest.InMemory(), mongotest.ReplicaSet(3))}
				client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, MinPoolSize: &tt.min, ServerSelectionTimeout: new(3 * time.Second)})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				tt.prepare(d, client)
				ctx, cancel := context.WithTimeoutCause(t.Context(), 8*time.Second, errLeft)
				defer cancel()
				err = client.Ready(ctx)
				if (err == nil) != (tt.want == nil && tt.text == "") || tt.want != nil && !errors.Is(err, tt.want) || tt.text != "" && !strings.Contains(err.Error(), tt.text) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}
