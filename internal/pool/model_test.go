package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/fakeserver"
	"allium/mongoerr"
)

// TestModel lets operations, failures and clears loose on a pool and compares what its events tell
// with what must hold at every moment, and what is left at the end with what must be left.
func TestModel(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { runModel(t, seed) }) })
	}
}

// model follows the life of every connection by the events.
type model struct {
	t             *testing.T
	max           int
	maxConnecting int

	mu         sync.Mutex
	state      map[int64]string // "making", "live" or "lent"
	lastID     int64
	out        int // checkouts that have started but not ended
	connecting int
}

func (m *model) move(id int64, to string, from ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is := m.state[id]
	ok := false
	for _, f := range from {
		ok = ok || f == is
	}
	if !ok {
		m.t.Errorf("connection %d goes from %q to %q", id, is, to)
	}
	if is == "making" {
		m.connecting--
	}
	if to == "" {
		delete(m.state, id)
	} else {
		m.state[id] = to
	}
	if to == "making" {
		m.connecting++
		if id != m.lastID+1 {
			m.t.Errorf("connection %d follows %d", id, m.lastID)
		}
		m.lastID = id
	}
	if m.connecting > m.maxConnecting {
		m.t.Errorf("%d connections are being made", m.connecting)
	}
	if len(m.state) > m.max {
		m.t.Errorf("%d connections", len(m.state))
	}
}

func (m *model) monitor() *event.PoolMonitor {
	checkout := func(n int) {
		m.mu.Lock()
		m.out += n
		m.mu.Unlock()
	}
	return &event.PoolMonitor{
		ConnectionCreated:         func(e *event.ConnectionCreated) { m.move(e.ConnectionID, "making", "") },
		ConnectionReady:           func(e *event.ConnectionReady) { m.move(e.ConnectionID, "live", "making") },
		ConnectionClosed:          func(e *event.ConnectionClosed) { m.move(e.ConnectionID, "", "making", "live") },
		ConnectionCheckOutStarted: func(*event.ConnectionCheckOutStarted) { checkout(1) },
		ConnectionCheckOutFailed:  func(*event.ConnectionCheckOutFailed) { checkout(-1) },
		ConnectionCheckedOut: func(e *event.ConnectionCheckedOut) {
			checkout(-1)
			m.move(e.ConnectionID, "lent", "live")
		},
		ConnectionCheckedIn: func(e *event.ConnectionCheckedIn) { m.move(e.ConnectionID, "live", "lent") },
	}
}

func runModel(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	m := &model{t: t, max: 1 + r.IntN(8), maxConnecting: 1 + r.IntN(3), state: map[int64]string{}}
	var inUse atomic.Int64
	random := func(n int) int { // the server's goroutines draw too
		m.mu.Lock()
		defer m.mu.Unlock()
		return r.IntN(n)
	}
	s := &fakeserver.Server{
		Accept: func(ctx context.Context, _ int64) error {
			time.Sleep(time.Duration(random(20)) * time.Millisecond)
			if random(10) == 0 {
				return errors.New("refused")
			}
			return ctx.Err()
		},
		Handle: func(req *fakeserver.Request) {
			switch {
			case req.IsHello() && random(20) == 0:
				req.Reply(fakeserver.Doc(func(b []byte) []byte { return bson.AppendInt32(b, "ok", 0) }))
				return
			case !req.IsHello() && random(10) == 0:
				req.Conn.Close()
				return
			case !req.IsHello():
				time.Sleep(time.Duration(random(60)) * time.Millisecond)
			}
			echo(req)
		},
	}
	var made atomic.Pointer[Pool] // its first connections are made before newPool returns
	cfg := Config{
		MaxPoolSize: m.max, MaxConnecting: m.maxConnecting, MinPoolSize: r.IntN(m.max + 1), Monitor: m.monitor(),
		ConnectFailed: func(f Failure) {
			if !mongoerr.HasLabel(f.Err, mongoerr.LabelSystemOverloaded) {
				for made.Load() == nil {
					time.Sleep(time.Millisecond)
				}
				made.Load().Clear(f.Err, false)
			}
		},
	}
	if r.IntN(2) == 0 {
		cfg.MaxIdleTime = 50 * time.Millisecond
	}
	interrupts := r.IntN(2) == 0
	p := newPool(t, s, cfg)
	made.Store(p)

	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 30 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+random(100))*time.Millisecond)
				c, err := p.CheckOut(ctx)
				if err == nil {
					// Operations that are interrupted have connections that do not count any more.
					if n := inUse.Add(1); n > int64(m.max) && !interrupts {
						t.Errorf("%d connections are in use", n)
					}
					if r, err := c.RoundTrip(ctx, fakeserver.Message("ping")); err == nil {
						r.Release()
					}
					inUse.Add(-1)
					c.Return()
				}
				cancel()
				time.Sleep(time.Duration(random(10)) * time.Millisecond)
			}
		})
	}
	stop := make(chan struct{})
	var clears sync.WaitGroup
	clears.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(20+random(200)) * time.Millisecond):
			}
			if random(2) == 0 {
				p.Clear(errors.New("cleared"), interrupts && random(2) == 0)
			}
			p.Ready()
		}
	})
	wg.Wait()
	close(stop)
	clears.Wait()
	p.Ready()
	time.Sleep(10 * time.Second) // longer than anything takes that may still be under way

	p.mu.Lock()
	if len(p.all) != len(p.idle) || len(p.attempts) != 0 || p.coming != 0 || p.draining != 0 || p.queue.n != 0 || p.queue.first != nil {
		t.Errorf("%d connections, %d idle, %d being made, %d draining, %d waiters", len(p.all), len(p.idle), len(p.attempts), p.draining, p.queue.n)
	}
	if cfg.MaxIdleTime > 0 && len(p.all) > cfg.MinPoolSize {
		t.Errorf("%d idle connections are left, the minimum is %d", len(p.all), cfg.MinPoolSize)
	}
	for i, c := range p.all {
		if c.index != i || c.removed || c.stale() || !c.Alive() || c.Owed() {
			t.Errorf("connection %d: %+v", i, c)
		}
	}
	idle := len(p.idle)
	p.mu.Unlock()
	p.Told()
	if p.Operations() != 0 || m.out != 0 {
		t.Errorf("%d operations, %d checkouts without an end", p.Operations(), m.out)
	}
	if m.connecting != 0 || len(m.state) != idle || s.Open() != int64(idle) {
		t.Errorf("events tell of %d connections, the server of %d, the pool of %d", len(m.state), s.Open(), idle)
	}
}
