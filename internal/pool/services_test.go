package pool

import (
	"errors"
	"testing"
	"testing/synctest"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
)

// balanced is a pool of two connections to a load balancer that leads to the service, which may
// become another.
func balanced(t *testing.T, service *bson.ObjectID, monitor *event.PoolMonitor) *Pool {
	s := &fakeserver.Server{Handle: func(req *fakeserver.Request) {
		if !req.IsHello() {
			echo(req)
			return
		}
		req.Reply(fakeserver.Hello(func(b []byte) []byte { return bson.AppendObjectID(b, "serviceId", *service) }))
	}}
	return newPool(t, s, Config{LoadBalanced: true, MaxPoolSize: 2, Conn: &conn.Config{LoadBalanced: true}, Monitor: monitor})
}

// What is known of a service behind a load balancer is how many connections lead to it, and how
// often they were given up. It is forgotten with the last of them, so that services that come and
// go fill no memory (specification: Connection Monitoring and Pooling, "Load Balancer Mode").
func TestServicesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := bson.NewObjectID()
		p := balanced(t, &service, nil)
		known := func(conns int) {
			t.Helper()
			p.mu.Lock()
			defer p.mu.Unlock()
			g := p.services[service]
			if (g != nil) != (conns > 0) || g != nil && g.conns != conns || len(p.services) > 1 {
				t.Errorf("%d services are known, the last one as %+v, want %d connections", len(p.services), g, conns)
			}
		}
		a, b := mustCheckOut(t, p), mustCheckOut(t, p)
		known(2)
		a.Close()
		a.Return()
		known(1)
		p.ClearService(service, errors.New("boom"))
		known(1)
		b.Return()
		known(0)
		service = bson.NewObjectID()
		c := mustCheckOut(t, p)
		known(1)
		if c.Generation != 0 {
			t.Errorf("a service that nobody knew has the generation %d", c.Generation)
		}
		c.Return()
		p.Close()
		known(0)
	})
}

// An event of a pool that is cleared says for which service (specification: Connection Monitoring
// and Pooling, "Events").
func TestClearedNamesTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		service := bson.NewObjectID()
		p := balanced(t, &service, r.monitor())
		c := mustCheckOut(t, p)
		p.ClearService(service, errors.New("boom"))
		synctest.Wait()
		var cleared []*event.PoolCleared
		for _, e := range r.all() {
			if e, ok := e.(*event.PoolCleared); ok {
				cleared = append(cleared, e)
			}
		}
		if len(cleared) != 1 || cleared[0].ServiceID == nil || *cleared[0].ServiceID != service {
			t.Errorf("events %+v, want one of the service %s", cleared, service)
		}
		c.Return()
	})
}
