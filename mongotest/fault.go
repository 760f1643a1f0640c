package mongotest

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/server"
)

// Fail describes how commands fail: the server's failCommand fail point (specification: server fail points).
type Fail struct {
	Commands          []string      // names of the commands that fail
	Times             int           // how often; 0: until the fail point is switched off
	Skip              int           // how many commands pass first (Times is ignored then)
	Code              int32         // the command fails with this error; 0: it does not
	Labels            []string      // errorLabels of the reply, in place of the server's own
	CloseConnection   bool          // the connection is closed instead of a reply
	WriteConcernError bson.D        // the command runs, and its reply has this writeConcernError
	Block             time.Duration // the command waits that long first
	AppName           string        // only clients with this application name; empty: all
	Namespace         string        // only commands on this collection ("db.coll"); empty: all
}

func (f Fail) data() bson.Raw {
	at, dst := bson.BeginDocument(nil)
	list, dst := bson.BeginArrayElement(dst, "failCommands")
	for i, c := range f.Commands {
		dst = bson.AppendStringValue(bson.AppendIndexHeader(dst, bson.TypeString, i), c)
	}
	dst = bson.EndDocument(dst, list)
	if f.Code != 0 {
		dst = bson.AppendInt32(dst, "errorCode", f.Code)
	}
	if f.Labels != nil {
		list, dst = bson.BeginArrayElement(dst, "errorLabels")
		for i, l := range f.Labels {
			dst = bson.AppendStringValue(bson.AppendIndexHeader(dst, bson.TypeString, i), l)
		}
		dst = bson.EndDocument(dst, list)
	}
	if f.CloseConnection {
		dst = bson.AppendBool(dst, "closeConnection", true)
	}
	if f.WriteConcernError != nil {
		doc, err := bson.Marshal(f.WriteConcernError)
		if err != nil {
			panic("mongotest: WriteConcernError cannot be encoded: " + err.Error())
		}
		dst = bson.AppendDocument(dst, "writeConcernError", doc)
	}
	if f.Block > 0 {
		dst = bson.AppendBool(dst, "blockConnection", true)
		dst = bson.AppendInt64(dst, "blockTimeMS", f.Block.Milliseconds())
	}
	if f.AppName != "" {
		dst = bson.AppendString(dst, "appName", f.AppName)
	}
	if f.Namespace != "" {
		dst = bson.AppendString(dst, "namespace", f.Namespace)
	}
	return bson.EndDocument(dst, at)
}

// FailCommand makes commands fail on every node of the deployment; Times and Skip count over all of them.
func (d *Deployment) FailCommand(f Fail) {
	var nodes []*server.Node
	for _, n := range d.nodes {
		nodes = append(nodes, n.n)
	}
	server.FailCommand(nodes, f.data(), f.Times, f.Skip)
}

// FailCommand makes commands fail on this node.
func (n *Node) FailCommand(f Fail) {
	server.FailCommand([]*server.Node{n.n}, f.data(), f.Times, f.Skip)
}

// ClearFailures switches FailCommand off on all nodes.
func (d *Deployment) ClearFailures() {
	for _, n := range d.nodes {
		n.n.ClearFailCommand()
	}
}

// NetFaults is what goes wrong on a node's connections. The zero value is: nothing.
type NetFaults struct {
	Latency   time.Duration // every reply comes that much later
	Trickle   time.Duration // replies are sent byte by byte, with this pause after each
	DropAfter int           // the connection is closed after so many bytes of a reply; 0: it is not
	Garbage   int           // so many random bytes are sent in place of a reply; 0: none
	Times     int           // DropAfter and Garbage hit so many replies; 0: all
	Reset     bool          // new connections are reset as soon as they are accepted
}

// SetNetFaults replaces what goes wrong on the node's connections, the open ones included.
func (n *Node) SetNetFaults(f NetFaults) {
	n.n.SetNetFaults(server.NetFaults{Latency: f.Latency, Trickle: f.Trickle, DropAfter: f.DropAfter, Garbage: f.Garbage, Times: f.Times, Reset: f.Reset})
}

// HoldReplies makes commands run but their replies wait until ReleaseReplies.
func (n *Node) HoldReplies() { n.n.HoldReplies() }

// ReleaseReplies sends the replies that HoldReplies held back.
func (n *Node) ReleaseReplies() { n.n.ReleaseReplies() }

// CloseConnections closes all connections that clients have to the node now.
func (n *Node) CloseConnections() { n.n.CloseConnections() }

// RefuseConnections makes the node refuse new connections until AcceptConnections; those there are go on.
func (n *Node) RefuseConnections() { n.n.CloseListeners() }

// AcceptConnections ends RefuseConnections.
func (n *Node) AcceptConnections() error { return n.relisten() }

// Command is a command as a hook sees it before it runs. Nothing of it may be kept after the hook returns: copy what
// you need.
type Command struct {
	Node       *Node
	Connection int32  // number of the connection on the node
	Name       string // as the client spelt it
	DB         string
	AppName    string
	Body       bson.Raw
	Sequences  []Sequence // fields that came as document sequences
}

// Sequence is a field of a command that came beside its body.
type Sequence struct {
	ID   string // the field's name
	Docs []byte // its documents back to back; read them with bson.ReadDocument
}

// OnCommand registers a function that sees every command on every node before it runs, on the goroutine of its
// connection: a hook that blocks delays the command. A reply that it returns answers the client in the server's place
// (with "ok" and all), an error closes the connection without a reply; with neither the command runs. Nil removes it.
func (d *Deployment) OnCommand(hook func(*Command) (reply bson.Raw, err error)) {
	if hook == nil {
		d.cfg.SetHook(nil)
		return
	}
	d.cfg.SetHook(func(c *server.Call) (bson.Raw, error) {
		var node *Node
		for _, n := range d.nodes {
			if n.n == c.Node {
				node = n
			}
		}
		var sequences []Sequence
		for _, s := range c.Sequences {
			sequences = append(sequences, Sequence(s))
		}
		return hook(&Command{Node: node, Connection: c.Conn, Name: c.Name, DB: c.DB, AppName: c.AppName, Body: c.Body, Sequences: sequences})
	})
}
