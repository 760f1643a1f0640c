package rig

import (
	"context"
	"errors"
	"maps"
	"net"
	"sync"
	"sync/atomic"

	"allium"
	"allium/event"
	"allium/mongotest"
)

// FaultyDialer fails while it is down.
type FaultyDialer struct {
	allium.Dialer
	Down atomic.Bool
}

func (d *FaultyDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Down.Load() {
		return nil, errors.New("the network is down")
	}
	return d.Dialer.DialContext(ctx, network, address)
}

// SeedDialer connects to a deployment in memory, where all names of the suite are localhost.
type SeedDialer struct{ Deployment *mongotest.Deployment }

func (s SeedDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	address = net.JoinHostPort("localhost", port)
	if port == "8000" {
		address = s.Deployment.Hosts()[0] // the load balancer
	}
	return s.Deployment.DialContext(ctx, network, address)
}

// AddrRecorder collects the addresses that events are about.
type AddrRecorder struct {
	mu    sync.Mutex
	addrs map[string]bool
}

// Add adds an address.
func (r *AddrRecorder) Add(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.addrs == nil {
		r.addrs = map[string]bool{}
	}
	r.addrs[addr] = true
}

// Seen returns the addresses.
func (r *AddrRecorder) Seen() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.addrs)
}

// Listen makes the listeners of o add the addresses of their events.
func (r *AddrRecorder) Listen(o *allium.ClientOptions) {
	o.CommandMonitor = &event.CommandMonitor{
		Started:   func(_ context.Context, e *event.CommandStarted) { r.Add(e.Addr) },
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) { r.Add(e.Addr) },
	}
	o.PoolMonitor = &event.PoolMonitor{ConnectionReady: func(e *event.ConnectionReady) { r.Add(e.Addr) }}
	o.ServerMonitor = &event.ServerMonitor{
		ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceeded) { r.Add(e.Addr) },
		ServerDescriptionChanged: func(e *event.ServerDescriptionChanged) { r.Add(e.NewDescription.Addr) },
	}
}
