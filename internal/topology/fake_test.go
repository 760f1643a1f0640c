package topology

import (
	"context"
	"sync"
	"testing"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/wire"
)

// node is a server in memory that answers hello like a MongoDB server, with the streaming protocol.
type node struct {
	*fakeserver.Server
	addr    string
	process bson.ObjectID

	mu      sync.Mutex
	fields  func([]byte) []byte // what hello says besides the usual
	old     bool                // no topologyVersion
	counter int64
	changed chan struct{}
	hellos  int
	times   []time.Time               // of hellos that were answered at once
	command func(*fakeserver.Request) // what happens to other commands
	before  func(*fakeserver.Request) bool
}

func newNode(network *fakeserver.Network, addr string, fields func([]byte) []byte) *node {
	n := &node{Server: &fakeserver.Server{}, addr: addr, process: bson.NewObjectID(), fields: fields, changed: make(chan struct{})}
	n.Server.Handle = n.handle
	network.Add(addr, n.Server)
	return n
}

// say changes what the server says about itself.
func (n *node) say(fields func([]byte) []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fields = fields
	n.counter++
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *node) reply() (bson.Raw, int64, chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	doc := fakeserver.Hello(func(b []byte) []byte {
		if n.fields != nil {
			b = n.fields(b)
		}
		if n.old {
			return b
		}
		at, b := bson.BeginDocumentElement(b, "topologyVersion")
		b = bson.AppendObjectID(b, "processId", n.process)
		b = bson.AppendInt64(b, "counter", n.counter)
		return bson.EndDocument(b, at)
	})
	return doc, n.counter, n.changed
}

func (n *node) handle(r *fakeserver.Request) {
	if n.before != nil && n.before(r) {
		return
	}
	if !r.IsHello() {
		if n.command != nil {
			n.command(r)
		} else {
			r.Reply(fakeserver.OK())
		}
		return
	}
	n.mu.Lock()
	n.hellos++
	n.mu.Unlock()
	doc, counter, changed := n.reply()
	await, ok := r.Body.Lookup("maxAwaitTimeMS").AsInt64()
	if !ok {
		n.mu.Lock()
		n.times = append(n.times, time.Now())
		n.mu.Unlock()
		r.Reply(doc)
		return
	}
	known, _ := r.Body.Lookup("topologyVersion", "counter").AsInt64()
	for {
		if counter == known {
			select {
			case <-changed:
			case <-time.After(time.Duration(await) * time.Millisecond):
			}
			doc, counter, changed = n.reply()
		}
		known = counter
		if r.Flags&wire.ExhaustAllowed == 0 {
			r.Reply(doc)
			return
		}
		if r.ReplyMore(doc) != nil {
			return
		}
	}
}

// member returns what a member of the replica set rs says.
func member(kind event.ServerKind, me string, hosts ...string) func([]byte) []byte {
	return func(b []byte) []byte {
		b = bson.AppendString(b, "setName", "rs")
		b = bson.AppendString(b, "me", me)
		b = bson.AppendInt32(b, "setVersion", 1)
		b = bson.AppendInt32(b, "logicalSessionTimeoutMinutes", 30)
		at, b := bson.BeginArrayElement(b, "hosts")
		for i, h := range hosts {
			b = bson.AppendStringValue(bson.AppendIndexHeader(b, bson.TypeString, i), h)
		}
		b = bson.EndDocument(b, at)
		if kind != event.RSPrimary {
			// The field stands a second time: the first one is what a standalone server says.
			b = bson.AppendBool(b, "isWritablePrimary", false)
		}
		if kind == event.RSSecondary {
			b = bson.AppendBool(b, "secondary", true)
		}
		return b
	}
}

// connect returns a connected topology. It is closed when the test ends, in the test's bubble.
func connect(t testing.TB, network *fakeserver.Network, cfg Config, seeds ...string) *Topology {
	t.Helper()
	cfg.Seeds = seeds
	if cfg.LocalThreshold == 0 {
		cfg.LocalThreshold = DefaultLocalThreshold
	}
	if cfg.Pool.Conn == nil {
		cfg.Pool.Conn = &conn.Config{ConnectTimeout: 10 * time.Second}
	}
	cfg.Pool.Conn.Dialer = network
	topo, err := New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	topo.Connect()
	t.Cleanup(func() {
		if err := topo.Close(context.Background()); err != nil {
			t.Error(err)
		}
		network.Wait()
	})
	return topo
}

func write() *Selection { return &Selection{Write: true} }

func mustSelect(t testing.TB, topo *Topology, sel *Selection) *Server {
	t.Helper()
	own := *sel
	s, _, err := topo.Select(t.Context(), &own)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ping(ctx context.Context, s *Server) error {
	c, err := s.CheckOut(ctx)
	if err != nil {
		return err
	}
	defer c.Return()
	r, err := c.RoundTrip(ctx, fakeserver.Message("ping"))
	if err != nil {
		s.HandleError(c, err)
		return err
	}
	r.Release()
	return nil
}
