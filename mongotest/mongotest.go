// Package mongotest runs a MongoDB deployment inside the test's own process: a standalone, a replica set, a sharded
// cluster or a load-balanced one, in pure Go, with faults on demand. It speaks the wire protocol on loopback, so that
// any client can connect:
//
//	d := mongotest.Start(t, mongotest.ReplicaSet(3))   // ready when it returns; ends with the test
//	client, err := allium.Open(d.URI())
//
// A deployment behaves as the server version that is chosen with [Version] does, and keeps its data in memory.
package mongotest

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"allium/mongotest/internal/server"
)

// TB is the part of testing.TB that a deployment needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Option chooses what Start starts.
type Option func(*options)

type options struct {
	kind    kind
	members []Member
	version string
	port    int
	log     *slog.Logger
	onPanic func(v any, stack []byte)
}

type kind int

const (
	standalone kind = iota
	replicaSet
)

// Standalone is a single mongod without replication. It is what Start starts when nothing else is asked for.
func Standalone() Option { return func(o *options) { o.kind, o.members = standalone, nil } }

// ReplicaSet is a replica set of n members with equal rights, named "rs0". See Members for anything else.
func ReplicaSet(n int) Option {
	return func(o *options) { o.kind, o.members = replicaSet, make([]Member, n) }
}

// Members is a replica set of these members.
func Members(members ...Member) Option {
	return func(o *options) { o.kind, o.members = replicaSet, members }
}

// Version chooses the server version: "4.2" to "8.2", with or without a patch level. The default is "8.0".
func Version(v string) Option { return func(o *options) { o.version = v } }

// Port makes the deployment listen on this port and those that follow instead of free ones.
func Port(first int) Option { return func(o *options) { o.port = first } }

// Log makes the deployment log every command.
func Log(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// Deployment is a running deployment. Its methods are safe for concurrent use.
type Deployment struct {
	cfg   *server.Config
	kind  kind
	set   *server.Set
	nodes []*server.Node
}

// Start starts a deployment and stops it when the test ends. A panic inside of the deployment fails the test.
func Start(t TB, opts ...Option) *Deployment {
	t.Helper()
	d, err := Open(append([]Option{func(o *options) {
		o.onPanic = func(v any, stack []byte) { t.Errorf("mongotest: panic in the deployment: %v\n%s", v, stack) }
	}}, opts...)...)
	if err != nil {
		t.Fatalf("mongotest: %v", err)
	}
	t.Cleanup(d.Stop)
	return d
}

// Open starts a deployment outside of a test. The caller must Stop it.
func Open(opts ...Option) (*Deployment, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	cfg := &server.Config{Version: server.DefaultVersion, Log: o.log, OnPanic: o.onPanic}
	if o.version != "" {
		v, err := server.ParseVersion(o.version)
		if err != nil {
			return nil, err
		}
		cfg.Version = v
	}
	d := &Deployment{cfg: cfg, kind: o.kind}
	if err := d.start(&o); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

func (d *Deployment) start(o *options) error {
	data := server.NewData()
	role, count := server.Standalone, 1
	if o.kind == replicaSet {
		if len(o.members) == 0 || len(o.members) > 50 {
			return fmt.Errorf("a replica set has 1 to 50 members, not %d", len(o.members))
		}
		role, count = server.Member, len(o.members)
		d.set = server.NewSet("rs0", data)
	}
	for i := range count {
		port := 0
		if o.port != 0 {
			port = o.port + i
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return err
		}
		n := server.NewNode(d.cfg, role, l.Addr().String(), data)
		d.nodes = append(d.nodes, n)
		if d.set != nil {
			d.set.Add(n, o.members[i].config())
		}
		n.Serve(l)
	}
	if d.set != nil && !d.set.Elect() {
		return errors.New("no member can become primary")
	}
	return nil
}

// Stop ends the deployment: when it returns, nothing of it runs any more. Calling it twice is harmless.
func (d *Deployment) Stop() {
	for _, n := range d.nodes {
		n.Stop()
	}
}

// Hosts returns the addresses (host:port) of what a client connects to, in the order of the members.
func (d *Deployment) Hosts() []string {
	var hosts []string
	for _, n := range d.nodes {
		hosts = append(hosts, n.Addr())
	}
	return hosts
}

// URI returns the connection string.
func (d *Deployment) URI() string {
	uri := "mongodb://" + strings.Join(d.Hosts(), ",") + "/"
	if d.set != nil {
		uri += "?replicaSet=" + d.set.Name()
	}
	return uri
}
