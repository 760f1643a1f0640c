// Package mongotest runs a MongoDB deployment inside the test process: a standalone, a replica set,
// a sharded cluster or a load-balanced one, in pure Go, with faults on demand. It speaks the wire
// protocol on loopback, so that any client can connect:
//
//	d := mongotest.Start(t, mongotest.ReplicaSet(3)) // ready when it returns; ends with the test
//	client, err := allium.Open(d.URI())
//
// A deployment behaves as the server version does that [Version] selects, and keeps its data in
// memory.
package mongotest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	_ "allium/mongotest/internal/commands" // the server's commands
	"allium/mongotest/internal/flavour"
	"allium/mongotest/internal/memnet"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/searchindex"
	"allium/mongotest/internal/server"
)

// TB is the part of testing.TB that a deployment needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Deployment is a running deployment. Its methods are safe for concurrent use.
type Deployment struct {
	opts   options
	cfg    *server.Config
	data   *server.Data
	set    *replica.Set
	nodes  []*Node
	shards []*Shard
	config *Shard
	mem    *memnet.Network // nil unless in memory
	tls    *certificates   // nil without TLS

	balancers []*server.Balancer // of LoadBalanced: in front of all mongoses, and of the first
	balanced  []string           // their addresses

	waiting  []waiting // before it runs
	running  bool
	insideMu sync.Mutex
	inside   atomic.Pointer[memnet.Network] // while a function of Inside runs
	done     chan struct{}                  // see Done
	doneOnce sync.Once
}

// Start starts a deployment and stops it when the test ends. A panic in the deployment fails the
// test.
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
	d := &Deployment{opts: o, done: make(chan struct{})}
	if err := d.start(); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

func (d *Deployment) start() error {
	o := &d.opts
	d.cfg = &server.Config{
		Version: release.DefaultVersion, Log: o.log, OnPanic: o.onPanic,
		Auth: o.user != "" || o.oidc != nil || o.acceptor != nil, OIDC: o.oidc, Kerberos: o.acceptor,
		Compressors: []string{"snappy", "zstd", "zlib"}, RequireLoadBalanced: o.kind == loadBalanced,
		NoScripting: o.noScripting,
	}
	d.cfg.Ended = func(*server.Node) {
		if !slices.ContainsFunc(d.nodes, func(n *Node) bool { return !n.n.Stopped() }) {
			d.doneOnce.Do(func() { close(d.done) })
		}
	}
	if o.snapshotCommands {
		d.cfg.Snapshots = &snapshots{d: d, byName: map[string]*Snapshot{}}
	}
	if o.search != nil || o.searchEngine != nil {
		d.cfg.Search = &searchindex.Indexes{Engine: o.searchEngine}
		if o.search != nil {
			d.cfg.Search.Build = *o.search
		}
	}
	if o.kind == dataLake {
		if o.user == "" {
			o.user, o.password = lakeUsers[0].Name, lakeUsers[0].Password
		}
		d.cfg.DataLake, d.cfg.Auth = true, true
	}
	if o.like != "" {
		like := flavour.Of(o.like)
		if like == nil {
			return fmt.Errorf("there is nothing to be like that is called %q: want one of %s", o.like,
				strings.Join(Likes(), ", "))
		}
		d.cfg.Like, o.version = like, cmp.Or(o.version, like.Version)
	}
	if o.version != "" {
		v, err := release.ParseVersion(o.version)
		if err != nil {
			return err
		}
		d.cfg.Version = v
	}
	if o.tls {
		var err error
		if d.tls, err = newCertificates(); err != nil {
			return fmt.Errorf("make certificates: %w", err)
		}
		d.cfg.TLS = d.tls.config
	}
	if o.inMemory {
		d.mem = &memnet.Network{}
	}
	d.data = server.NewData()
	if o.user != "" {
		if err := d.AddUser(User{Name: o.user, Password: o.password, DB: "admin",
			Roles: []string{"root"}}); err != nil {
			return err
		}
	}
	if o.kind == dataLake {
		for _, u := range lakeUsers {
			if err := d.AddUser(u); err != nil {
				return err
			}
		}
	}
	role, count := server.Standalone, 1
	switch o.kind {
	case replicaSet:
		if len(o.members) == 0 || len(o.members) > 50 {
			return fmt.Errorf("a replica set has 1 to 50 members, not %d", len(o.members))
		}
		role, count = server.Member, len(o.members)
		d.set = server.NewSet(cmp.Or(o.setName, "rs0"), d.data)
	case sharded, loadBalanced:
		if o.shards < 1 || o.mongoses < 1 {
			return fmt.Errorf("a sharded cluster needs at least one shard and one mongos, not %d and %d", o.shards,
				o.mongoses)
		}
		role, count = server.Mongos, o.mongoses
		d.data.SetShards(o.shards)
	}
	first := 0 // what clients connect to takes the first ports
	if o.kind == loadBalanced {
		first = 2
	}
	for i := range count {
		l, addr, err := d.listen(first + i)
		if err != nil {
			return err
		}
		n := &Node{d: d, index: i, n: server.NewNode(d.cfg, role, addr, d.data)}
		d.nodes = append(d.nodes, n)
		for _, p := range o.parameters {
			if err := n.n.SetParameter(p.name, p.value); err != nil {
				l.Close()
				return err
			}
		}
		if n.set = d.set; n.set != nil {
			n.n.JoinSet(d.set, o.members[i].config())
		}
		if err := n.serve(l); err != nil {
			return err
		}
	}
	if o.kind == loadBalanced {
		for i := range 2 {
			l, addr, err := d.listen(i)
			if err != nil {
				return err
			}
			d.balanced = append(d.balanced, addr)
			d.accept(l, func(l net.Listener) { d.balancers = append(d.balancers, server.Balance(l, d.behind(i))) })
		}
	}
	if role == server.Mongos {
		if err := d.startShards(first + count); err != nil {
			return err
		}
	}
	if o.kind == dataLake {
		if err := d.nodes[0].n.Load("test", "driverdata", lakeDocuments()); err != nil {
			return err
		}
	}
	if d.set != nil {
		if !d.set.Elect() {
			return errors.New("no member can become primary")
		}
		d.set.SetElectionDelay(o.electionDelay)
		for _, n := range d.nodes {
			n.SetLag(o.lag)
		}
	}
	return d.prepare()
}

// prepare runs what comes before a deployment accepts connections, and lets it accept them.
func (d *Deployment) prepare() error {
	for _, f := range d.opts.prepare {
		if err := f(d); err != nil {
			return err
		}
	}
	d.running = true
	for _, w := range d.waiting {
		w.serve(w.l)
	}
	d.waiting = nil
	return nil
}

// waiting is a listener that nobody accepts from before the deployment is prepared.
type waiting struct {
	l     net.Listener
	serve func(net.Listener)
}

// accept serves a listener, once the deployment is prepared.
func (d *Deployment) accept(l net.Listener, serve func(net.Listener)) {
	if all, ok := l.(several); ok {
		for _, l := range all {
			d.accept(l, serve)
		}
		return
	}
	if d.running {
		serve(l)
		return
	}
	d.waiting = append(d.waiting, waiting{l, serve})
}

// Inside calls a function with a connection string that leads into the deployment by
// [Deployment.DialContext], in memory, past its listeners: its connections need neither TLS nor a
// user, and may do everything. A client that the function opens with the deployment as its dialer
// has to be closed when it returns. The string is for the process that takes writes, or if there is
// none for one that can be read; the others are reached at their own addresses. Only one function
// runs at a time.
func (d *Deployment) Inside(f func(uri string) error) error {
	d.insideMu.Lock()
	defer d.insideMu.Unlock()
	network := &memnet.Network{}
	nodes := slices.Clone(d.nodes)
	for _, s := range d.sets() {
		nodes = append(nodes, s.nodes...)
	}
	// Of a deployment whose processes clients have ended the data is there, and these run for f.
	ended := !slices.ContainsFunc(d.nodes, func(n *Node) bool { return !n.n.Stopped() })
	for _, n := range nodes {
		if ended && n.n.Stopped() {
			n.n.Restart()
			if n.set != nil {
				n.set.Up(n.n)
			}
			defer n.Kill()
		}
		l, err := network.Listen(n.Addr())
		if err != nil {
			return err
		}
		defer l.Close()
		n.n.ServeOwn(l)
	}
	d.inside.Store(network)
	defer d.inside.Store(nil)
	to := d.Primary()
	if rest := d.Secondaries(); to == nil && len(rest) > 0 {
		to = rest[0]
	}
	if to == nil {
		return errors.New("mongotest: there is no node to connect to")
	}
	return f("mongodb://" + to.Addr() + "/?directConnection=true")
}

// behind returns the nodes behind a load balancer: all mongoses, or the first alone.
func (d *Deployment) behind(balancer int) []*server.Node {
	var nodes []*server.Node
	for _, n := range d.nodes {
		nodes = append(nodes, n.n)
	}
	if balancer > 0 {
		nodes = nodes[:1]
	}
	return nodes
}

// listen opens the listener of a node that has no address yet.
func (d *Deployment) listen(i int) (net.Listener, string, error) {
	port := 0
	if d.opts.port != 0 {
		port = d.opts.port + i
	}
	if d.mem != nil {
		if port == 0 {
			port = 27017 + i
		}
		addr := net.JoinHostPort("localhost", strconv.Itoa(port))
		l, err := d.mem.Listen(addr)
		return l, addr, err
	}
	hosts := d.opts.hosts()
	l, err := listenOn(hosts, port)
	if err != nil {
		return nil, "", err
	}
	_, bound, err := net.SplitHostPort(l.Addr().String())
	return l, net.JoinHostPort(cmp.Or(d.opts.advertise, hosts[0]), bound), err
}

// listenOn listens on a port of several hosts, or on a free one of all of them if the port is 0.
func listenOn(hosts []string, port int) (net.Listener, error) {
	const tries = 50
	for try := 1; ; try++ {
		var all several
		at := port
		for _, host := range hosts {
			l, err := listenTCP(net.JoinHostPort(host, strconv.Itoa(at)))
			if err != nil {
				all.Close()
				if port == 0 && at != 0 && try < tries && errors.Is(err, syscall.EADDRINUSE) {
					break // the others have another port in common
				}
				return nil, err
			}
			all = append(all, l)
			at = l.Addr().(*net.TCPAddr).Port
		}
		switch {
		case len(all) < len(hosts):
			continue
		case len(all) == 1:
			return all[0], nil
		}
		return all, nil
	}
}

// several are the listeners of one node. They are served one by one.
type several []net.Listener

func (s several) Accept() (net.Conn, error) { return nil, net.ErrClosed }

func (s several) Addr() net.Addr { return s[0].Addr() }

func (s several) Close() error {
	var err error
	for _, l := range s {
		err = errors.Join(err, l.Close())
	}
	return err
}

// listenTCP listens without multipath TCP, which Go asks for by default: it doubles what a listener
// costs, and nobody uses it on one machine. An address of one version of the protocol stands for
// that version alone, so that 0.0.0.0 and :: can both be there.
func listenTCP(addr string) (net.Listener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	network := "tcp"
	if at, err := netip.ParseAddrPort(addr); err == nil && at.Addr().Is4() {
		network = "tcp4"
	} else if err == nil {
		network = "tcp6"
	}
	return c.Listen(context.Background(), network, addr)
}

// Stop stops the deployment and waits for its goroutines to end. A second call does nothing.
func (d *Deployment) Stop() {
	for _, w := range d.waiting {
		w.l.Close()
	}
	if d.set != nil {
		d.set.Close()
	}
	for _, b := range d.balancers {
		b.Close()
	}
	// None waits for the commands of another.
	for _, n := range d.nodes {
		n.n.Close()
	}
	for _, s := range d.sets() {
		if s.set != nil {
			s.set.Close()
		}
		for _, n := range s.nodes {
			n.n.Close()
		}
	}
	for _, n := range d.nodes {
		n.n.Stop()
	}
	for _, s := range d.sets() {
		for _, n := range s.nodes {
			n.n.Stop()
		}
	}
	if d.data != nil {
		d.data.Close()
	}
}

// Done returns a channel that is closed when a client has ended the last of [Deployment.Nodes] that
// ran with the command shutdown, as db.shutdownServer() of a shell does. Safe for concurrent use.
func (d *Deployment) Done() <-chan struct{} { return d.done }

// Shutdown lets the commands that run at the moment end before it stops the deployment, but no
// longer than the context lasts: then they are interrupted, as by [Deployment.Stop]. New
// connections are refused from the beginning. The error is the context's, if commands were
// interrupted.
func (d *Deployment) Shutdown(ctx context.Context) error {
	defer d.Stop()
	for _, n := range d.nodes {
		n.RefuseConnections()
	}
	busy := func(n *Node) bool { return n.n.Busy() }
	for slices.ContainsFunc(d.nodes, busy) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
}

// Hosts returns the addresses (host:port) that a client connects to, in the order of the nodes; for
// a load-balanced deployment, the address of the load balancer.
func (d *Deployment) Hosts() []string {
	if len(d.balanced) > 0 {
		return d.balanced[:1:1]
	}
	var hosts []string
	for _, n := range d.nodes {
		hosts = append(hosts, n.Addr())
	}
	return hosts
}

// URI returns the connection string, with the credentials of Auth. The client of a deployment with
// TLS needs [Deployment.TLSConfig] too, that of one in memory [Deployment.DialContext].
func (d *Deployment) URI() string {
	var hosts []string
	for _, n := range d.nodes {
		if m := n.memberConfig(); m == nil || !m.Hidden {
			hosts = append(hosts, n.Addr())
		}
	}
	if len(d.balanced) > 0 {
		hosts = d.Hosts()
	}
	return d.uri(hosts)
}

// SingleMongosURI returns a connection string for the first mongos only: the address of the mongos
// for a sharded cluster, the address of a load balancer with nothing else behind it for a
// load-balanced one. For any other deployment it returns URI.
func (d *Deployment) SingleMongosURI() string {
	switch d.opts.kind {
	case sharded:
		return d.uri(d.Hosts()[:1])
	case loadBalanced:
		return d.uri(d.balanced[1:])
	}
	return d.URI()
}

func (d *Deployment) uri(hosts []string) string {
	u := "mongodb://"
	if d.opts.user != "" {
		u += url.UserPassword(d.opts.user, d.opts.password).String() + "@"
	}
	u += strings.Join(hosts, ",") + "/"
	q := url.Values{}
	if d.set != nil {
		q.Set("replicaSet", d.set.Name())
	}
	if d.opts.kind == loadBalanced {
		q.Set("loadBalanced", "true")
	}
	if d.opts.tls {
		q.Set("tls", "true")
	}
	if d.opts.user != "" {
		q.Set("authSource", "admin")
	}
	if len(q) > 0 {
		u += "?" + q.Encode()
	}
	return u
}

// DialContext connects to a node: in memory for a deployment with [InMemory] and within
// [Deployment.Inside], else as net.Dialer does. Clients accept it as a dialer.
func (d *Deployment) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if in := d.inside.Load(); in != nil {
		return in.DialContext(ctx, network, address)
	}
	if d.mem != nil {
		return d.mem.DialContext(ctx, network, address)
	}
	var nd net.Dialer
	return nd.DialContext(ctx, network, address)
}

// Nodes returns the nodes that a client connects to: the standalone, the members or the mongoses.
func (d *Deployment) Nodes() []*Node { return d.nodes }

// Node returns the node with this index.
func (d *Deployment) Node(i int) *Node { return d.nodes[i] }

// Primary returns the node that takes writes: of a replica set the primary, or nil if it has none
// now; of other deployments the first node.
func (d *Deployment) Primary() *Node {
	if d.set == nil {
		return d.nodes[0]
	}
	p := d.set.Primary()
	for _, n := range d.nodes {
		if n.n == p {
			return n
		}
	}
	return nil
}

// Secondaries returns the data-bearing members except the primary.
func (d *Deployment) Secondaries() []*Node {
	var list []*Node
	p := d.Primary()
	for _, n := range d.nodes {
		if m := n.memberConfig(); m != nil && !m.Arbiter && n != p {
			list = append(list, n)
		}
	}
	return list
}

// StepDown makes the primary step down for a minute; another member takes its place if one can,
// after [ElectionDelay]. Open transactions are aborted and running writes interrupted. As on a real
// server, writes that wait for their write concern get their replies first: the write is applied,
// and the reply's writeConcernError (11602) has the topologyVersion from before the step-down.
// StepDown does nothing without a primary.
func (d *Deployment) StepDown() {
	if p := d.Primary(); p != nil {
		p.StepDown(time.Minute)
	}
}

// ShiftClock moves the deployment's wall clock, which localTime, lastWriteDate and new timestamps
// follow. Documents that expire through it are deleted when it returns.
func (d *Deployment) ShiftClock(by time.Duration) { d.data.Clock.Shift(by) }

// TLSConfig returns the configuration of a client of a deployment with TLS: its certificate
// authority and a client certificate. It is nil without TLS. The caller may change it.
func (d *Deployment) TLSConfig() *tls.Config {
	if d.tls == nil {
		return nil
	}
	return d.tls.client()
}

// WriteTLSFiles writes the certificate authority and the client's certificate with its key as PEM
// files into the folder, for clients that want tlsCAFile and tlsCertificateKeyFile.
func (d *Deployment) WriteTLSFiles(dir string) (caFile, certKeyFile string, err error) {
	if d.tls == nil {
		return "", "", errors.New("mongotest: the deployment has no TLS")
	}
	caFile, certKeyFile = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "client.pem")
	if err := os.WriteFile(caFile, d.tls.authority.pem, 0o600); err != nil {
		return "", "", err
	}
	return caFile, certKeyFile, os.WriteFile(certKeyFile, d.tls.clientPEM, 0o600)
}
