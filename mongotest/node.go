package mongotest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/server"
)

// Node is a server process of a deployment: a standalone, a member, a mongos or a shard. Its
// methods are safe for concurrent use.
type Node struct {
	d     *Deployment
	index int
	n     *server.Node
	set   *replica.Set // that it is a member of; nil: none
}

// Addr returns the node's host:port.
func (n *Node) Addr() string { return n.n.Addr() }

// Connections returns how many connections the node has: what serverStatus calls
// connections.current. A client's monitoring takes up to two in addition to those of its pool.
func (n *Node) Connections() int {
	current, _ := n.n.Connections()
	return current
}

// SocketPath returns the node's Unix socket if the deployment was started with UnixSockets.
func (n *Node) SocketPath() string {
	if n.d.opts.socketDir == "" {
		return ""
	}
	_, port, _ := net.SplitHostPort(n.Addr())
	return filepath.Join(n.d.opts.socketDir, "mongodb-"+port+".sock")
}

// sockets returns the paths of the node's Unix sockets.
func (n *Node) sockets() (paths []string) {
	if path := n.SocketPath(); path != "" {
		paths = append(paths, path)
	}
	if n.d.opts.socket != "" && n.index == 0 && slices.Contains(n.d.nodes, n) {
		paths = append(paths, n.d.opts.socket)
	}
	return paths
}

func (n *Node) memberConfig() *replica.MemberConfig {
	if n.d.set == nil || n.set != n.d.set {
		return nil
	}
	c := n.d.opts.members[n.index].config()
	return &c
}

// serve makes the node accept connections.
func (n *Node) serve(l net.Listener) error {
	n.d.accept(l, n.n.Serve)
	for _, path := range n.sockets() {
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return &net.OpError{Op: "listen", Net: "unix", Addr: &net.UnixAddr{Name: path, Net: "unix"},
				Err: syscall.EADDRINUSE}
		}
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			os.Remove(path)
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		n.d.accept(l, n.n.Serve)
	}
	return nil
}

// relisten opens the node's address again.
func (n *Node) relisten() error {
	var l net.Listener
	var err error
	if n.d.mem != nil {
		l, err = n.d.mem.Listen(n.Addr())
	} else {
		_, port, _ := net.SplitHostPort(n.Addr())
		at, _ := strconv.Atoi(port)
		l, err = listenOn(n.d.opts.hosts(), at)
	}
	if err != nil {
		return fmt.Errorf("mongotest: listen again: %w", err)
	}
	return n.serve(l)
}

// Kill ends the process: its connections break, and new ones are refused. Its data is kept. If it
// was the primary, another member takes its place, after [ElectionDelay], if a majority is left.
func (n *Node) Kill() {
	n.n.Stop()
	if n.set != nil {
		n.set.Down(n.n)
	}
}

// Restart starts a killed node again on its address.
func (n *Node) Restart() error {
	n.n.Restart()
	if err := n.relisten(); err != nil {
		return err
	}
	if n.set != nil {
		n.set.Up(n.n)
	}
	return nil
}

// Hang makes the process stop without ending, as SIGSTOP does: its connections stay open, new ones
// are accepted, but nothing is answered until Resume. The other members of a replica set consider
// it dead: if it was the primary, another one takes its place, after [ElectionDelay], if a majority
// is left. Kill and Restart end it, too.
func (n *Node) Hang() {
	n.n.Net.Hang()
	if n.set != nil {
		n.set.Hang(n.n)
	}
}

// Resume ends Hang: the process goes on where it stopped. It answers what arrived meanwhile; a
// former primary is a secondary. Resume does nothing for a node that does not hang.
func (n *Node) Resume() {
	if !n.n.Net.Hangs() {
		return
	}
	if n.set != nil {
		n.set.Up(n.n)
	}
	n.n.Net.Resume()
}

// StepDown makes the node step down if it is the primary, whether or not another member is up to
// date. The node is not elected again within the period. See [Deployment.StepDown] for what
// clients see.
func (n *Node) StepDown(period time.Duration) {
	if n.set != nil {
		n.set.StepDown(nil, n.n, period, 0, true)
	}
}

// StepUp makes the node the primary. It is an error if the other members would not vote for it,
// because it has applied fewer writes than they have, or if it cannot become primary at all.
func (n *Node) StepUp() error {
	if n.set == nil {
		return fmt.Errorf("mongotest: %s is not a member of a replica set", n.Addr())
	}
	if err := n.set.StepUp(n.n); err != nil {
		return fmt.Errorf("mongotest: %w", err)
	}
	return nil
}

// Partition cuts the node off from the other members until Heal: clients still reach it, but it
// neither replicates nor votes. A primary steps down.
func (n *Node) Partition() {
	if n.set != nil {
		n.set.Isolate(n.n)
	}
}

// Heal ends Partition.
func (n *Node) Heal() {
	if n.set != nil {
		n.set.Join(n.n)
	}
}

// HoldBack makes a secondary stop applying writes until CatchUp: its reads are stale, and write
// concerns wait for it. If it becomes the primary, it has its own writes, and not those that it
// missed.
func (n *Node) HoldBack() {
	if n.set != nil {
		n.set.Hold(n.n)
	}
}

// CatchUp ends HoldBack.
func (n *Node) CatchUp() {
	if n.set != nil {
		n.set.Release(n.n)
	}
}

// SetLag makes the node apply writes with this delay while it is a secondary. 0 ends the delay,
// and brings the node up to date unless HoldBack is in effect.
func (n *Node) SetLag(lag time.Duration) {
	if n.set != nil {
		n.set.SetLag(n.n, lag)
	}
}
