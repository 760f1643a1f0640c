package topology

import (
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/pool"
)

// Each seed is dialed once beside its monitor: a member keeps that as its first connection; one
// that operations do not use does not, whatever the reason. Behind a load balancer nothing is
// dialed but connections.
func TestDialAhead(t *testing.T) {
	arbiter := func(b []byte) []byte {
		return bson.AppendBool(member(event.RSArbiter, "b:1", "a:1", "b:1")(b), "arbiterOnly", true)
	}
	stranger := func(b []byte) []byte {
		return bson.AppendString(bson.AppendBool(b, "isWritablePrimary", false), "setName", "other")
	}
	both := []string{"a:1", "b:1"}
	for name, tt := range map[string]struct {
		set  []string            // what a calls the members
		says func([]byte) []byte // what b says
		keep int64               // how many connections of b stay open besides those of its monitor
	}{
		"secondary": {both, member(event.RSSecondary, "b:1", "a:1", "b:1"), 1},
		"arbiter":   {both, arbiter, 0},
		"stranger":  {both[:1], stranger, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &fakeserver.Network{}
				a := newNode(network, "a:1", member(event.RSPrimary, "a:1", tt.set...))
				b := newNode(network, "b:1", tt.says)
				topo := connect(t, network, Config{SetName: "rs", Pool: pool.Config{Warm: 1, MaxPoolSize: 1}}, "a:1", "b:1")
				mustSelect(t, topo, write())
				synctest.Wait()
				pools := map[string]int{}
				for _, s := range topo.snapshot.Load().servers {
					pools[s.addr] = s.pool.Stats().Open
				}
				if pools["a:1"] != 1 || pools["b:1"] != int(tt.keep) {
					t.Errorf("connections: %v", pools)
				}
				// A monitor has one connection and one more that measures, once its server streams.
				if a.Open() != 3 || b.Open() > 2+tt.keep || b.Accepted() > 3 {
					t.Errorf("%d open to a, %d of %d to b", a.Open(), b.Open(), b.Accepted())
				}
			})
		})
	}
	t.Run("load balancer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			network := &fakeserver.Network{}
			n := newNode(network, "lb:1", func(b []byte) []byte {
				return bson.AppendObjectID(bson.AppendString(b, "msg", "isdbgrid"), "serviceId", bson.NewObjectID())
			})
			connect(t, network, Config{LoadBalanced: true, Pool: pool.Config{Warm: 2, Conn: &conn.Config{LoadBalanced: true}}}, "lb:1")
			time.Sleep(time.Minute)
			if n.Accepted() != 2 || n.Open() != 2 {
				t.Errorf("%d of %d connections are open", n.Open(), n.Accepted())
			}
		})
	})
}
