package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
)

// Attempts to make a connection that hang, and connections that wait for a late reply, keep nobody
// from another connection.

// hang accepts a connection never.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// hangs returns a server whose first n connections hang.
func hangs(n int64) *fakeserver.Server {
	return &fakeserver.Server{Handle: echo, Accept: func(ctx context.Context, id int64) error {
		if id <= n {
			return hang(ctx)
		}
		return nil
	}}
}

// One attempt that hangs costs the first operation no more than the usual time, and later ones
// nothing, whoever it was made for.
func TestHungAttempt(t *testing.T) {
	for _, minimum := range []int{0, 1} {
		for _, limit := range []time.Duration{0, 50 * time.Millisecond, 500 * time.Millisecond} {
			t.Run(fmt.Sprintf("minPoolSize %d, contexts of %v", minimum, limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPool(t, hangs(1), Config{MinPoolSize: minimum})
					failed := 0
					start := time.Now()
					for range 10 {
						ctx, cancel := t.Context(), context.CancelFunc(func() {})
						if limit > 0 {
							ctx, cancel = context.WithTimeout(ctx, limit)
						}
						c, err := p.CheckOut(ctx)
						if err != nil {
							failed++
						} else {
							c.Return()
						}
						cancel()
					}
					if d := time.Since(start); failed > 1 || d > usual {
						t.Errorf("%d checkouts failed, and they took %v", failed, d)
					}
				})
			})
		}
	}
}

// A server that refuses connections, at once or after longer than usual, while earlier attempts
// hang is asked as often as operations wait, or once more for each that has another attempt
// meanwhile: each operation hears why. Nothing clears the pool here, as behind a load balancer.
func TestRefusedWhileOthersHang(t *testing.T) {
	for _, late := range []time.Duration{0, usual * 3 / 2} {
		for _, waiters := range []int64{1, 2, 5} {
			for hung := range int64(3) {
				t.Run(fmt.Sprintf("after %v, %d wait, %d attempts hang", late, waiters, hung), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						asked, heard := refuse(t, late, waiters, hung)
						most := waiters
						if late > usual {
							most *= 2
						}
						if asked > most || heard != waiters {
							t.Errorf("the server was asked %d times, and %d operations heard of it", asked, heard)
						}
					})
				})
			}
		}
	}
}

// refuse has operations wait for a server that refuses all connections late, but those that hang.
// It returns how often the server refused one, and how many operations were told.
func refuse(t *testing.T, late time.Duration, waiters, hung int64) (asked, heard int64) {
	refused := errors.New("refused")
	var refusals, told atomic.Int64
	p := newPool(t, &fakeserver.Server{Handle: echo, Accept: func(ctx context.Context, id int64) error {
		time.Sleep(late)
		if id <= hung || refusals.Add(1) > 1000 { // or it might never end
			return hang(ctx)
		}
		return refused
	}}, Config{MaxConnecting: 3})
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := p.CheckOut(ctx); errors.Is(err, refused) {
				told.Add(1)
			}
		})
	}
	all.Wait()
	return refusals.Load(), told.Load()
}

// TestNobodyWaitsInVain has connections that are made, refused, hang, or come late, and operations
// with little and much time, of which some leave a late reply behind. Whenever nothing more happens
// by itself, nobody waits without an attempt of its own that is on time while the pool could make
// another one.
func TestNobodyWaitsInVain(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { waitInVain(t, seed) }) })
	}
}

func waitInVain(t *testing.T, seed uint64) {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 31))
	random := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
	s := &fakeserver.Server{
		Accept: func(ctx context.Context, _ int64) error {
			switch random(6) {
			case 0:
				return hang(ctx)
			case 1:
				time.Sleep(time.Duration(random(3000)) * time.Millisecond)
			case 2:
				return errors.New("refused")
			}
			return ctx.Err()
		},
		Handle: func(req *fakeserver.Request) {
			if random(4) == 0 {
				time.Sleep(time.Duration(random(5000)) * time.Millisecond)
			}
			echo(req)
		},
	}
	cfg := Config{
		MaxPoolSize: random(7), MaxConnecting: 1 + random(3), WaitQueueTimeout: time.Duration(random(2)) * time.Second,
		Conn: &conn.Config{ConnectTimeout: time.Duration(random(2)) * 10 * time.Second},
	}
	if cfg.MaxPoolSize > 0 {
		cfg.MinPoolSize = random(int(cfg.MaxPoolSize))
	}
	p := newPool(t, s, cfg)
	var operations sync.WaitGroup
	for range 12 {
		operations.Go(func() {
			for range 10 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+random(1500))*time.Millisecond)
				var c *Conn
				var err error
				if random(2) == 0 {
					c, err = p.CheckOut(ctx)
				} else {
					c, err = p.CheckOutWithin(ctx, 0, time.Duration(random(2000))*time.Millisecond)
				}
				if err == nil {
					if reply, err := c.RoundTrip(ctx, fakeserver.Message("ping")); err == nil {
						reply.Release()
					}
					c.Return()
				}
				cancel()
				time.Sleep(time.Duration(random(300)) * time.Millisecond)
			}
		})
	}
	var over atomic.Bool
	go func() {
		operations.Wait()
		over.Store(true)
	}()
	for !over.Load() {
		time.Sleep(time.Duration(1+random(20)) * time.Millisecond)
		synctest.Wait()
		checkNobodyWaits(t, p)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.n != 0 || int(p.coming) > len(p.attempts) || p.inUse() != 0 {
		t.Errorf("%d wait, %d of %d attempts count, %d connections are in use", p.queue.n, p.coming, len(p.attempts), p.inUse())
	}
}

// checkNobodyWaits looks at what is, not at how the pool counts it.
func checkNobodyWaits(t *testing.T, p *Pool) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	making, draining := 0, 0
	for _, c := range p.all {
		switch {
		case c.making:
			making++
		case c.draining:
			draining++
		}
	}
	if making > int(p.maxConnecting()) {
		t.Errorf("%d connections are being made", making)
	}
	if making == int(p.maxConnecting()) || p.cfg.MaxPoolSize > 0 && len(p.all)-draining >= int(p.cfg.MaxPoolSize) {
		return
	}
	onTime := 0
	for _, c := range p.all {
		if c.making && time.Since(c.created) < usual {
			onTime++
		}
	}
	for w := p.queue.first; w != nil; w = w.next {
		switch {
		case w.making == nil:
			t.Errorf("an operation has waited %v without an attempt of its own; %d of %d connections are being made", time.Since(w.begun), making, len(p.all))
		case onTime == 0:
			t.Errorf("an operation has waited %v, and no attempt is on time; %d of %d connections are being made", time.Since(w.begun), making, len(p.all))
		}
		onTime--
	}
}

// What is being made and what waits for a late reply is not in use, in figures and in errors.
func TestInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeserver.Server{
			Handle: func(r *fakeserver.Request) {
				if r.Command != "silence" {
					echo(r)
				}
			},
			Accept: func(ctx context.Context, id int64) error {
				if id == 2 {
					return hang(ctx)
				}
				return nil
			},
		}
		p := newPool(t, s, Config{MaxPoolSize: 2, Conn: &conn.Config{ConnectTimeout: time.Second}})
		used := mustCheckOut(t, p)
		expect := func(connecting, draining int) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := p.CheckOut(ctx)
			cancel()
			want := fmt.Sprintf("1 by other operations, %d are being made and %d read a late reply; 0 more operations wait", connecting, draining)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
			if s := p.Stats(); s.InUse != 1 || s.Idle != 0 || s.Connecting != connecting || s.Draining != draining {
				t.Errorf("%+v", s)
			}
		}
		expect(1, 0)
		time.Sleep(2 * time.Second) // the attempt is given up
		other := mustCheckOut(t, p)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		other.RoundTrip(ctx, fakeserver.Message("silence"))
		cancel()
		s.Accept = func(context.Context, int64) error { time.Sleep(time.Minute); return nil }
		other.Return()
		if s := p.Stats(); s.InUse != 1 || s.Connecting != 0 || s.Draining != 1 {
			t.Errorf("%+v", s)
		}
		expect(1, 0) // in place of the one that reads a late reply
		used.Return()
	})
}

// The wait queue timeout is about the queue: it does not count while a connection is being made for
// the checkout.
func TestWaitQueueTimeoutAndEstablishment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeserver.Server{Handle: echo, Accept: func(context.Context, int64) error { time.Sleep(time.Second); return nil }}
		p := newPool(t, s, Config{MaxConnecting: 1, WaitQueueTimeout: 100 * time.Millisecond})
		start := time.Now()
		results := checkOuts(p, 2)
		if r := <-results[1]; !errors.Is(r.err, errWaitQueueTimeout) || time.Since(start) != 100*time.Millisecond {
			t.Errorf("a checkout for which no connection is being made: %+v, %v after %v", r.conn, r.err, time.Since(start))
		}
		r := <-results[0]
		if r.err != nil || time.Since(start) != time.Second {
			t.Fatalf("a checkout for which one is being made: %v after %v", r.err, time.Since(start))
		}
		r.conn.Return()
	})
}

// A checkout whose time in the queue is up leaves when what is being made for it goes to another
// one.
func TestDeserted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeserver.Server{Handle: echo, Accept: func(_ context.Context, id int64) error {
			if id == 2 {
				time.Sleep(300 * time.Millisecond)
			}
			return nil
		}}
		p := newPool(t, s, Config{MaxPoolSize: 2, MaxConnecting: 1, WaitQueueTimeout: 100 * time.Millisecond})
		used := mustCheckOut(t, p)
		start := time.Now()
		gone := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // its attempt passes to the third checkout
			_, err := p.CheckOutWithin(ctx, 0, 0)
			gone <- err
		}()
		synctest.Wait()
		patient := make(chan result, 1)
		go func() {
			c, err := p.CheckOutWithin(context.Background(), 0, 0)
			patient <- result{c, err}
		}()
		synctest.Wait()
		hasty := checkOuts(p, 1)[0]
		p.mu.Lock() // the attempt is the hasty one's
		first, last := p.queue.first, p.queue.last
		last.making, first.making.owner, first.making = first.making, last, nil
		p.mu.Unlock()
		cancel()
		<-gone
		if r := <-patient; r.err != nil || time.Since(start) != 300*time.Millisecond {
			t.Errorf("the patient checkout: %v after %v", r.err, time.Since(start))
		} else {
			defer r.conn.Return()
		}
		if r := <-hasty; !errors.Is(r.err, errWaitQueueTimeout) || time.Since(start) != 300*time.Millisecond {
			t.Errorf("the hasty checkout: %+v, %v after %v", r.conn, r.err, time.Since(start))
		}
		used.Return()
	})
}

// An operation's timeoutMS bounds every command of the handshake that is made for it. That tells
// nothing about the server, and whoever has more time gets another attempt.
func TestOperationBoundsHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var helloes atomic.Int32
		s := &fakeserver.Server{Handle: func(req *fakeserver.Request) {
			if req.IsHello() && helloes.Add(1) == 1 {
				return // never answered
			}
			echo(req)
		}}
		p := newPool(t, s, Config{MaxPoolSize: 1, Conn: &conn.Config{ConnectTimeout: time.Minute},
			ConnectFailed: func(f Failure) { t.Errorf("discovery is told of %v", f.Err) }})
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Millisecond)
		defer cancel()
		start := time.Now()
		waiting := make(chan result, 1)
		time.AfterFunc(50*time.Millisecond, func() {
			c, err := p.CheckOut(context.Background())
			waiting <- result{c, err}
		})
		if _, err := p.CheckOutWithin(ctx, 0, 100*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		r := <-waiting
		if r.err != nil || time.Since(start) != 100*time.Millisecond {
			t.Fatalf("%v after %v", r.err, time.Since(start))
		}
		r.conn.Return()
	})
}

// Of several connections that wait for late replies, the one that has waited longest gives up its
// place.
func TestLongestOwedGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		s := &fakeserver.Server{Handle: func(req *fakeserver.Request) {
			if req.IsHello() {
				echo(req)
			}
		}}
		p := newPool(t, s, Config{MaxPoolSize: 3, Monitor: r.monitor()})
		all := []*Conn{mustCheckOut(t, p), mustCheckOut(t, p), mustCheckOut(t, p)}
		for _, i := range []int{1, 0, 2} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			all[i].RoundTrip(ctx, fakeserver.Message("ping"))
			cancel()
			all[i].Return()
		}
		mustCheckOut(t, p).Return()
		var closed []int64
		for _, e := range r.all() {
			if c, ok := e.(*event.ConnectionClosed); ok {
				closed = append(closed, c.ConnectionID)
			}
		}
		if len(closed) != 1 || closed[0] != 2 {
			t.Errorf("connections %v were closed", closed)
		}
	})
}

// A connection that comes at the moment at which its checkout gives up is not lost.
func TestConnectionAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 1})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 { // select chooses either
			mustCheckOut(t, p).Return()
			p.mu.Lock()
			c := p.pop()
			p.mu.Unlock()
			w := &waiter{result: make(chan result, 1), begun: time.Now()}
			w.result <- result{conn: c}
			r := p.await(ended, w)
			if (r.conn == nil) != (r.err != nil) {
				t.Fatalf("%+v", r)
			}
			p.mu.Lock()
			if r.conn != nil {
				p.take(r.conn)
			}
			if len(p.idle) != 1 || p.inUse() != 0 {
				t.Fatalf("%d connections are idle, %d in use", len(p.idle), p.inUse())
			}
			p.mu.Unlock()
		}
	})
}

// Somebody hands a waiter a connection, and at the same moment it gives up. If its time in the
// queue is over, it has got one after all. If its context has ended, nobody wants the connection:
// it goes to the next one.
func TestConnectionAsTimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &fakeserver.Server{Handle: echo}, Config{MaxPoolSize: 1})
		for _, cancelled := range []bool{false, true} {
			mustCheckOut(t, p).Return()
			p.mu.Lock()
			c := p.pop()
			p.mu.Unlock()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			// It has left the queue: who hands over a connection removes it before.
			w := &waiter{patience: patience{limit: time.Second}, begun: time.Now(), result: make(chan result, 1)}
			got := make(chan result)
			go func() { got <- p.await(ctx, w) }()
			if cancelled {
				cancel()
				synctest.Wait()
			}
			time.Sleep(2 * time.Second)
			w.result <- result{conn: c}
			r := <-got
			switch {
			case cancelled && (r.conn != nil || !errors.Is(r.err, context.Canceled)):
				t.Errorf("cancelled: %v, %v", r.conn, r.err)
			case !cancelled && (r.conn != c || r.err != nil):
				t.Errorf("its time is over: %v, %v", r.conn, r.err)
			}
			p.mu.Lock()
			if r.conn != nil {
				p.take(r.conn)
			}
			if len(p.idle) != 1 || p.inUse() != 0 {
				t.Errorf("cancelled %v: %d connections are idle, %d in use", cancelled, len(p.idle), p.inUse())
			}
			p.mu.Unlock()
		}
	})
}

// A checkout whose time in the queue is up stays for the connection that is being made for it. When
// that is out of time in its turn, and nothing else is made for the checkout, it does not stay on:
// not even while discovery looks at the failure of another connection.
func TestOverdueAndDeserted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeserver.Server{Handle: echo, Accept: func(ctx context.Context, id int64) error {
			if id == 1 {
				time.Sleep(400 * time.Millisecond)
				return errors.New("refused")
			}
			return hang(ctx)
		}}
		looked := make(chan struct{})
		p := newPool(t, s, Config{MaxConnecting: 2, WaitQueueTimeout: 300 * time.Millisecond, ConnectFailed: func(Failure) {
			<-looked
		}})
		var others sync.WaitGroup
		others.Go(func() { // the first connection is made for this one
			if c, err := p.CheckOut(t.Context()); err == nil {
				c.Return()
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		others.Go(func() { // the second one for this, which leaves it to the third
			if c, err := p.CheckOutWithin(ctx, 0, 500*time.Millisecond); err == nil {
				c.Return()
			}
		})
		synctest.Wait()
		start := time.Now()
		others.Go(func() {
			time.Sleep(time.Minute)
			close(looked)
		})
		_, err := p.CheckOut(t.Context())
		if d := time.Since(start); d != 500*time.Millisecond || !errors.Is(err, errWaitQueueTimeout) {
			t.Errorf("the checkout ended after %v: %v", d, err)
		}
		p.mu.Lock()
		for _, c := range p.all {
			c.cancel()
		}
		p.mu.Unlock()
		others.Wait()
	})
}
