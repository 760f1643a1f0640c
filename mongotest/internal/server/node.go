// Package server stands in for MongoDB processes: nodes that listen, read the wire protocol and
// answer commands, and the replica sets and clusters they form. The data lies in the
// store package. The commands are in the packages below mongotest/internal/commands; they register
// themselves in the table that dispatch.go uses. mongotest/DESIGN.md has drawings.
//
// A Node is a mongod or a mongos. The members of a replica set are nodes over one Data: documents
// are versioned by the time of their write, and a member sees them up to the position that it has
// applied.
package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/failpoint"
	"allium/mongotest/internal/flavour"
	"allium/mongotest/internal/netfault"
	"allium/mongotest/internal/planner"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/searchindex"
)

// Limits that hello announces and the server enforces.
const (
	MaxBSONObjectSize   = 16 << 20
	MaxMessageSize      = 48_000_000
	MaxWriteBatchSize   = 100_000
	MaxInternalBSONSize = MaxBSONObjectSize + 16<<10
)

// Config is what all nodes of a deployment share. It must not change after the first node is made.
type Config struct {
	Version     release.Version
	Compressors []string                   // offered, in the server's order of preference; nil: none
	TLS         *tls.Config                // nil: no TLS
	Auth        bool                       // commands need authentication
	OIDC        []account.IdentityProvider // nil: MONGODB-OIDC is off
	Search      *searchindex.Indexes       // nil: there are no search indexes
	NoScripting bool                       // no JavaScript, as --noscripting
	Kerberos    account.Kerberos           // nil: GSSAPI is off
	DataLake    bool                       // only reads; cursors have a namespace of their own
	Like        *flavour.Flavour           // nil: a server of MongoDB's
	Snapshots   Snapshots                  // nil: clients keep none
	// RequireLoadBalanced makes mongoses stand behind a load balancer: clients must say so in
	// hello.
	RequireLoadBalanced bool
	Log                 *slog.Logger
	// OnPanic is told of a panic in a command handler: a bug in the deployment, not in the client.
	OnPanic func(v any, stack []byte)
	// Ended is told of each node whose process a client has ended, after that. It may be nil.
	Ended func(n *Node)

	hook atomic.Pointer[Hook]
}

// Role is what kind of process a node is.
type Role int

// The roles.
const (
	Standalone Role = iota
	Member
	Mongos
)

// Node is one server process. Safe for concurrent use.
type Node struct {
	cfg       *Config
	role      Role
	addr      string // host:port, as in the replica set's configuration
	data      *Data
	set       *replica.Set // nil unless a member
	processID bson.ObjectID
	started   time.Time

	router   router // of a mongos
	tables   tables // of a mongos
	profiler profiler
	log      ramLog
	// compaction is that of autoCompact: see Compaction.
	compaction atomic.Pointer[Compaction]
	faults     failpoint.Node
	Net        netfault.Network // what goes wrong on it
	cursors    cursorTable

	Memory planner.Memory // of its planner

	lastConn atomic.Int32
	lastOp   atomic.Int32

	counters      counters
	usage         usage
	queryStats    queryStats
	establishment establishment

	verbosity  map[string]int32 // of components of the log that are set, by their paths
	fsyncLocks atomic.Int64     // fsync with lock; writes are not really held back

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[*Conn]struct{}
	closed    bool
	tvCounter int64
	tvChanged chan struct{} // closed when the topology version grows
	shutdown  chan struct{} // closed when the node stops
	wg        sync.WaitGroup

	params map[string]bson.RawValue // set with setParameter; guarded by mu
}

// NewNode returns a node that nobody can reach yet; see Serve.
func NewNode(cfg *Config, role Role, addr string, data *Data) *Node {
	n := &Node{
		cfg: cfg, role: role, addr: addr, data: data, processID: bson.NewObjectID(), started: time.Now(),
		conns: map[*Conn]struct{}{}, tvChanged: make(chan struct{}), shutdown: make(chan struct{}),
	}
	n.Memory.Parameter = n.Parameter
	n.cursors.node = n
	if role == Mongos {
		data.nodes = append(data.nodes, n)
	}
	return n
}

// Addr returns the node's address.
func (n *Node) Addr() string { return n.addr }

// Config returns what the deployment's nodes share. It must not be changed.
func (n *Node) Config() *Config { return n.cfg }

// Role returns what kind of process the node is.
func (n *Node) Role() Role { return n.role }

// Set returns the replica set that the node is a member of, nil if it is none.
func (n *Node) Set() *replica.Set { return n.set }

// ProcessID returns the id of the node's process, which another start changes.
func (n *Node) ProcessID() bson.ObjectID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.processID
}

// Faults returns the fail points that are set on the node.
func (n *Node) Faults() *failpoint.Node { return &n.faults }

// FsyncLocks returns how often fsync has locked the node, and for a mongos how often any mongos has
// locked the cluster. Writes are not really held back.
func (n *Node) FsyncLocks() *atomic.Int64 {
	if n.Role() == Mongos {
		return &n.data.fsyncLocks
	}
	return &n.fsyncLocks
}

// Cursors returns the cursors that clients have opened.
func (n *Node) Cursors() *cursorTable { return &n.cursors }

// Data returns the node's data set.
func (n *Node) Data() *Data { return n.data }

// Version returns the version that the node behaves as.
func (n *Node) Version() release.Version { return n.cfg.Version }

// Serve accepts connections until the listener or the node is closed. It returns at once.
func (n *Node) Serve(l net.Listener) { n.serve(l, false) }

// ServeOwn is Serve for connections of the deployment's own: without TLS, with all rights, and with
// nothing that goes wrong on the network.
func (n *Node) ServeOwn(l net.Listener) { n.serve(l, true) }

func (n *Node) serve(l net.Listener, own bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		l.Close()
		return
	}
	n.listeners = append(n.listeners, l)
	n.wg.Go(func() { n.accept(l, own) })
}

func (n *Node) accept(l net.Listener, own bool) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		if !n.adopt(nc, own) {
			netfault.Reset(nc)
		}
	}
}

// adopt serves a connection that was accepted for the node. It reports false if the node takes
// none.
func (n *Node) adopt(nc net.Conn, own bool) bool {
	if n.Net.Refuses() && !own {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	if tc, ok := nc.(*net.TCPConn); ok {
		tc.SetNoDelay(true)
	}
	if !own {
		nc = n.Net.Wrap(nc)
		if n.cfg.TLS != nil {
			nc = tls.Server(nc, n.cfg.TLS)
		}
	}
	c := newConn(n, nc)
	c.trusted = own
	n.conns[c] = struct{}{}
	n.wg.Go(func() {
		c.serve()
		n.mu.Lock()
		delete(n.conns, c)
		n.mu.Unlock()
	})
	return true
}

// Balancer hands the connections of one listener to several nodes in turn, as a load balancer does.
type Balancer struct {
	l     net.Listener
	nodes []*Node
	wg    sync.WaitGroup
}

// Balance starts a balancer.
func Balance(l net.Listener, nodes []*Node) *Balancer {
	b := &Balancer{l: l, nodes: nodes}
	b.wg.Go(b.accept)
	return b
}

func (b *Balancer) accept() {
	for next := 0; ; next++ {
		nc, err := b.l.Accept()
		if err != nil {
			return
		}
		taken := false
		for i := range b.nodes {
			if taken = b.nodes[(next+i)%len(b.nodes)].adopt(nc, false); taken {
				break
			}
		}
		if !taken {
			netfault.Reset(nc)
		}
	}
}

// Close stops accepting. Connections that nodes have taken stay open.
func (b *Balancer) Close() {
	b.l.Close()
	b.wg.Wait()
}

// Stop closes the listeners and all connections and waits until all of the node's goroutines have
// ended.
func (n *Node) Stop() {
	n.Close()
	n.wg.Wait()
	n.cursors.stop()
}

// Close is Stop without the wait: the commands that run look at the same time for their end.
func (n *Node) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.closed = true
		close(n.shutdown)
		for _, l := range n.listeners {
			l.Close()
		}
		n.listeners = nil
		for c := range n.conns {
			c.nc.Close()
		}
	}
}

// EndProcess ends the node's process as the command shutdown does: without an answer.
func (r *Request) EndProcess() {
	n := r.Node
	r.hangUp = true
	n.Close()
	go func() {
		n.Stop()
		if n.set != nil {
			n.set.Down(n)
		}
		if n.cfg.Ended != nil {
			n.cfg.Ended(n)
		}
	}()
}

// Restart makes a stopped node ready to serve again, as a new process: fresh process id, no
// connections.
func (n *Node) Restart() {
	n.Net.Resume()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = false
	n.tables.clear()
	n.shutdown = make(chan struct{})
	n.processID = bson.NewObjectID()
	n.tvCounter = 0
	n.started = time.Now()
}

// Stopped reports whether the node's process has ended.
func (n *Node) Stopped() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

func (n *Node) shutdownChan() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shutdown
}

// CloseConnections closes all connections that clients have now.
func (n *Node) CloseConnections() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		c.nc.Close()
	}
}

// CloseListeners makes the node refuse new connections; open ones stay open.
func (n *Node) CloseListeners() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.listeners {
		l.Close()
	}
	n.listeners = nil
}

// BumpTopology tells streaming clients that the next hello differs.
func (n *Node) BumpTopology() {
	n.mu.Lock()
	n.tvCounter++
	close(n.tvChanged)
	n.tvChanged = make(chan struct{})
	n.mu.Unlock()
}

type TopologyVersion struct {
	ProcessID bson.ObjectID
	Counter   int64
}

func (n *Node) TopologyVersion() (v TopologyVersion, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return TopologyVersion{n.processID, n.tvCounter}, n.tvChanged
}

func (v TopologyVersion) Append(dst []byte) []byte {
	at, dst := bson.BeginDocumentElement(dst, "topologyVersion")
	dst = bson.AppendObjectID(dst, "processId", v.ProcessID)
	dst = bson.AppendInt64(dst, "counter", v.Counter)
	return bson.EndDocument(dst, at)
}

// panicked reports a panic in a handler and returns the text for the reply.
func (n *Node) panicked(v any) string {
	stack := debug.Stack()
	if n.cfg.OnPanic != nil {
		n.cfg.OnPanic(v, stack)
	}
	return fmt.Sprintf("internal error: %v", v)
}
