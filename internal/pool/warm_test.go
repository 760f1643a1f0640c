package pool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
)

// newPausedPool is newPool, but that the pool is not ready.
func newPausedPool(t testing.TB, s *fakeserver.Server, cfg Config) *Pool {
	network := &fakeserver.Network{}
	network.Add("a:1", s)
	cfg.Conn = &conn.Config{Dialer: network, ConnectTimeout: 10 * time.Second}
	p := New("a:1", &cfg)
	t.Cleanup(func() {
		p.Close()
		network.Wait()
	})
	return p
}

// What is dialed ahead becomes the first connection, and is no connection before: it has no events,
// and the server is told nothing.
func TestDialAhead(t *testing.T) {
	for name, cfg := range map[string]Config{
		"minimum": {MinPoolSize: 1, MaxPoolSize: 10}, "warm": {Warm: 1, MaxPoolSize: 10}, "one at most": {Warm: 1, MaxPoolSize: 1}, "no limit": {Warm: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				s := &fakeserver.Server{Handle: func(r *fakeserver.Request) { requests++; echo(r) }}
				events := &recorder{}
				cfg.Monitor = events.monitor()
				p := newPausedPool(t, s, cfg)
				p.DialAhead()
				p.DialAhead() // once is enough
				events.expect(t, "ConnectionPoolCreated")
				if s.Open() != 1 || requests != 0 || p.Stats().Open != 0 {
					t.Errorf("%d sockets, %d requests, %+v before the pool is ready", s.Open(), requests, p.Stats())
				}
				p.Ready()
				events.expect(t, "ConnectionPoolCreated ConnectionPoolReady ConnectionCreated ConnectionReady")
				if c := mustCheckOut(t, p); c.ID != 1 || s.Accepted() != 1 {
					t.Errorf("connection %d of %d that were dialed", c.ID, s.Accepted())
				} else {
					c.Return()
				}
				p.DialAhead()
				synctest.Wait()
				if s.Accepted() != 1 {
					t.Error("a pool that is ready dials ahead")
				}
			})
		})
	}
}

// What is dialed ahead is closed as soon as the server cannot be used, whether the dial has ended
// or not; and nothing is dialed for a pool that is to have no connections before they are needed.
func TestDialAheadInVain(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  Config
		then func(*Pool)
		most int64
	}{
		"cleared":    {Config{Warm: 1}, func(p *Pool) { p.Clear(errors.New("no answer"), false) }, 1},
		"unusable":   {Config{Warm: 1}, (*Pool).Unusable, 1},
		"closed":     {Config{Warm: 1}, (*Pool).Close, 1},
		"not wanted": {Config{}, func(*Pool) {}, 0},
	} {
		for _, slow := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &fakeserver.Server{Handle: echo}
					s.Accept = func(ctx context.Context, n int64) error {
						if slow {
							<-ctx.Done()
						}
						return ctx.Err()
					}
					p := newPausedPool(t, s, tt.cfg)
					p.DialAhead()
					synctest.Wait()
					if s.Accepted() != tt.most {
						t.Errorf("%d were dialed", s.Accepted())
					}
					start := time.Now()
					tt.then(p)
					synctest.Wait()
					if s.Open() != 0 || time.Since(start) > 0 {
						t.Errorf("%d are open after %v", s.Open(), time.Since(start))
					}
				})
			})
		}
	}
}

// A dial ahead that fails, or takes too long, harms nobody: the pool dials as it would have.
func TestDialAheadFails(t *testing.T) {
	for name, tt := range map[string]struct {
		fails func(ctx context.Context) error
		ready time.Duration // when the pool becomes ready
		made  time.Duration // when it has its connection
	}{
		"refused":      {func(context.Context) error { return errors.New("refused") }, time.Second, time.Second},
		"hangs":        {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, time.Second, 10 * time.Second},
		"takes longer": {func(context.Context) error { time.Sleep(5 * time.Second); return nil }, time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeserver.Server{Handle: echo}
				s.Accept = func(ctx context.Context, n int64) error {
					if n == 1 {
						return tt.fails(ctx)
					}
					return nil
				}
				events := &recorder{}
				p := newPausedPool(t, s, Config{Warm: 1, MaxPoolSize: 1, Monitor: events.monitor()})
				start := time.Now()
				p.DialAhead()
				time.Sleep(tt.ready)
				p.Ready()
				mustCheckOut(t, p).Return()
				if got := time.Since(start); got != tt.made {
					t.Errorf("a connection after %v, want %v", got, tt.made)
				}
				created, closed := count[*event.ConnectionCreated](events), count[*event.ConnectionClosed](events)
				if created != 1 || closed != 0 || s.Open() != 1 {
					t.Errorf("%d created, %d closed, %d are open", created, closed, s.Open())
				}
			})
		})
	}
}

// A pool makes the connections that it is to have at first once.
func TestWarmOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeserver.Server{Handle: echo}
		p := newPool(t, s, Config{MinPoolSize: 1, Warm: 3})
		if err := p.Warm(t.Context()); err != nil || s.Open() != 3 {
			t.Fatalf("%d connections, %v", s.Open(), err)
		}
		for n, want := range []int64{2, 1, 1} {
			c := mustCheckOut(t, p)
			c.Close()
			c.Return()
			time.Sleep(10 * retryInterval)
			if s.Open() != want {
				t.Errorf("%d connections after %d broke, want %d", s.Open(), n+1, want)
			}
		}
		if err := p.Warm(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
