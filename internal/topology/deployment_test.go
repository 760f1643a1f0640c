package topology

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/conn"
	"allium/mongotest"
)

// The same with whole servers: mongotest deployments on a network in memory.

// deployment starts one, in the test's bubble.
func deployment(t *testing.T, opts ...mongotest.Option) *mongotest.Deployment {
	t.Helper()
	return mongotest.Start(t, append(opts, mongotest.InMemory())...)
}

func discover(t *testing.T, d *mongotest.Deployment, cfg Config) *Topology {
	t.Helper()
	cfg.Seeds = d.Hosts()
	cfg.LocalThreshold = DefaultLocalThreshold
	cfg.Pool.Conn = &conn.Config{Dialer: d, ConnectTimeout: 10 * time.Second}
	topo, err := New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	topo.Connect()
	t.Cleanup(func() { topo.Close(t.Context()) })
	return topo
}

// A thousand operations wait for an absent primary of a replica set. They cost one check per half
// second and server, and all of them proceed when there is a primary.
func TestDeploymentManyWaitForPrimary(t *testing.T) {
	for _, version := range []string{"4.2", "8.0"} { // polling and streaming
		synctest.Test(t, func(t *testing.T) {
			d := deployment(t, mongotest.ReplicaSet(3), mongotest.Version(version))
			for _, n := range d.Nodes() {
				n.Partition()
			}
			var mu sync.Mutex
			checks := map[string]int{}
			d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
				if c.Name == "hello" || c.Name == "isMaster" {
					mu.Lock()
					checks[c.Node.Addr()]++
					mu.Unlock()
				}
				return nil, nil
			})
			topo := discover(t, d, Config{SelectionTimeout: time.Minute})
			var wg sync.WaitGroup
			var served atomic.Int64
			for range 1000 {
				wg.Go(func() {
					s, _, err := topo.Select(t.Context(), write())
					if err == nil && s.Description().Kind == event.RSPrimary {
						served.Add(1)
					}
				})
			}
			time.Sleep(20 * time.Second)
			if served.Load() != 0 {
				t.Errorf("%d operations were served without a primary", served.Load())
			}
			for _, n := range d.Nodes() {
				n.Heal()
			}
			wg.Wait()
			if served.Load() != 1000 {
				t.Errorf("%d operations were served", served.Load())
			}
			mu.Lock()
			defer mu.Unlock()
			for addr, n := range checks {
				if n > 45 {
					t.Errorf("version %s: %s was checked %d times in 20 s", version, addr, n)
				}
			}
		})
	}
}

// A new primary is found within moments whatever happened to the old one.
func TestDeploymentFailover(t *testing.T) {
	for name, fail := range map[string]func(*mongotest.Node){
		"step down": func(n *mongotest.Node) { n.StepDown(time.Minute) },
		"kill":      func(n *mongotest.Node) { n.Kill() },
		"partition": func(n *mongotest.Node) { n.Partition() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := deployment(t, mongotest.ReplicaSet(3))
				topo := discover(t, d, Config{})
				s := mustSelect(t, topo, write())
				if err := ping(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				start := time.Now()
				fail(d.Primary())
				for {
					now := mustSelect(t, topo, write())
					if err := ping(t.Context(), now); now != s && err == nil {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestDeploymentSharded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deployment(t, mongotest.Sharded(1, 2))
		topo := discover(t, d, Config{})
		time.Sleep(time.Second) // both are known
		seen := map[string]bool{}
		for range 100 {
			s := mustSelect(t, topo, write())
			seen[s.Addr()] = true
			if err := ping(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		if topo.Description().Kind != event.Sharded || len(seen) != 2 {
			t.Errorf("used %v of %v", seen, topo.Description())
		}
	})
}

// A handshake of a connection for operations tells what the monitor does not know yet, and never
// what is older.
func TestDeploymentHandshakeUpdatesTopology(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deployment(t, mongotest.ReplicaSet(2))
		topo := discover(t, d, Config{Monitoring: MonitorPoll, HeartbeatInterval: time.Hour})
		s, _, err := topo.Select(t.Context(), write())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		old := *s.Description()
		d.StepDown()
		c, err := s.CheckOut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Return()
		now := s.Description()
		if now.Kind != event.RSSecondary || now.AverageRTT != old.AverageRTT || now.LastUpdate.IsZero() {
			t.Errorf("after a handshake with the old primary it is taken for %v of %v", now, now.LastUpdate)
		}
		s.handshaken(&old)
		if s.Description() != now {
			t.Error("an older reply counts")
		}
	})
}
