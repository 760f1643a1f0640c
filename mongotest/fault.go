package mongotest

import (
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/netfault"
	"allium/mongotest/internal/server"
)

// Fail describes commands that fail, as the server's failCommand fail point does.
type Fail struct {
	Commands          []string      // names of the commands that fail
	Times             int           // how often; 0: until ClearFailures
	Skip              int           // how many commands pass first (Times is ignored then)
	Code              int32         // the error code of the reply; 0: the command does not fail
	Labels            []string      // errorLabels of the reply, in place of the server's own
	CloseConnection   bool          // the connection is closed instead of a reply
	WriteConcernError bson.D        // the command runs, and its reply has this writeConcernError
	Block             time.Duration // how long the command waits first
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
		dst = bsondoc.Append(dst, "blockConnection", true, "blockTimeMS", f.Block.Milliseconds())
	}
	if f.AppName != "" {
		dst = bson.AppendString(dst, "appName", f.AppName)
	}
	if f.Namespace != "" {
		dst = bson.AppendString(dst, "namespace", f.Namespace)
	}
	return bson.EndDocument(dst, at)
}

// FailCommand makes commands fail on every node of the deployment; Times and Skip count across all
// nodes.
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

// ClearFailures ends FailCommand on all nodes.
func (d *Deployment) ClearFailures() {
	for _, n := range d.nodes {
		n.n.ClearFailCommand()
	}
}

// NetFaults are the network faults of a node's connections. The zero value has none.
type NetFaults struct {
	Latency time.Duration // the delay of every reply
	// each reply is late by up to this much more: those of several connections overtake each other
	Jitter    time.Duration
	Trickle   time.Duration // replies are sent byte by byte, with this pause after each
	DropAfter int           // the connection is closed after this many bytes of a reply; 0: never
	CutAfter  int           // each connection closes after this many bytes from now, both ways together; 0: never
	Garbage   int           // this many random bytes are sent in place of a reply; 0: none
	Times     int           // DropAfter and Garbage hit this many replies, CutAfter this many connections; 0: all
	Reset     bool          // new connections are reset as soon as they are accepted
}

// SetNetFaults replaces the faults of the node's connections, of open ones too.
func (n *Node) SetNetFaults(f NetFaults) {
	n.n.Net.Set(netfault.Faults{Latency: f.Latency, Jitter: f.Jitter, Trickle: f.Trickle, DropAfter: f.DropAfter,
		CutAfter: f.CutAfter, Garbage: f.Garbage, Times: f.Times, Reset: f.Reset})
}

// HoldReplies lets commands run, but holds their replies until ReleaseReplies.
func (n *Node) HoldReplies() { n.n.Net.Hold() }

// ReleaseReplies sends the replies that HoldReplies held back.
func (n *Node) ReleaseReplies() { n.n.Net.Release() }

// CloseConnections closes all open connections of clients to the node.
func (n *Node) CloseConnections() { n.n.CloseConnections() }

// RefuseConnections makes the node refuse new connections until AcceptConnections. Open connections
// stay.
func (n *Node) RefuseConnections() { n.n.CloseListeners() }

// AcceptConnections ends RefuseConnections.
func (n *Node) AcceptConnections() error { return n.relisten() }

// Command is a command as a hook receives it before it runs. It is valid until the hook returns:
// copy what you keep.
type Command struct {
	Node       *Node
	Connection int32  // number of the connection on the node
	Name       string // as the client spelt it
	DB         string
	AppName    string
	Body       bson.Raw
	Sequences  []Sequence // fields that came as document sequences
}

// Sequence is a field of a command that was sent as a document sequence, beside the body.
type Sequence struct {
	ID   string // the field's name
	Docs []byte // its documents back to back; read them with bson.ReadDocument
}

// OnCommand registers a hook that is called with every command on every node before it runs, on the
// goroutine of its connection: a hook that blocks delays the command. A reply that the hook returns
// is sent in place of the server's, and needs "ok" too. An error closes the connection without a
// reply. If it returns neither, the command runs. Nil removes the hook.
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
		for _, s := range d.sets() {
			for _, n := range s.nodes {
				if n.n == c.Node {
					node = n
				}
			}
		}
		var sequences []Sequence
		for _, s := range c.Sequences {
			sequences = append(sequences, Sequence(s))
		}
		return hook(&Command{Node: node, Connection: c.Conn, Name: c.Name, DB: c.DB, AppName: c.AppName, Body: c.Body,
			Sequences: sequences})
	})
}
