package server

import (
	"time"

	"allium/mongotest/internal/replica"
	"allium/mongotest/internal/srverr"
)

// NewSet returns a replica set without members over a data set.
func NewSet(name string, d *Data) *replica.Set {
	d.set = replica.New(name, d)
	return d.set
}

// JoinSet makes the node a member of a replica set.
func (n *Node) JoinSet(s *replica.Set, cfg replica.MemberConfig) {
	s.Add(n, cfg)
	n.set = s
}

// Started returns when the node's process started.
func (n *Node) Started() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.started
}

// IsPrimary reports whether the node takes writes.
func (n *Node) IsPrimary() bool { return n.set == nil || n.set.IsPrimary(n) }

// InterruptPrimaryWork ends what only a primary may do, running writes and open transactions, and
// returns when the interrupted commands have their replies.
func (n *Node) InterruptPrimaryWork(except replica.Waiter) {
	r, _ := except.(*Request)
	killed := n.killOperations(func(o *opInfo) bool {
		return (r == nil || o.op != r.op) && (o.cmd.Where == OnPrimary && o.cmd.Name != "replSetStepDown" || o.inTxn)
	}, srverr.New(srverr.InterruptedDueToReplStateChange, "operation was interrupted"))
	n.data.AbortTransactions()
	for _, o := range killed {
		<-o.ended
	}
}
