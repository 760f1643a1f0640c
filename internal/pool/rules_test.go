package pool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium/event"
	"allium/internal/conn"
	"allium/internal/fakeserver"
	"allium/internal/logging"
	"allium/mongoerr"
)

// A pool begins paused: whatever its minimum is, it makes nothing and hands nothing out until it is
// ready, and it is told to be ready before it makes a connection; and so each time that it was
// cleared (specification: Connection Monitoring and Pooling, "Creating a Connection Pool", "Marking
// a Connection Pool as Ready").
func TestPausedAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fakeserver.Network{}
		s := &fakeserver.Server{Handle: echo}
		network.Add("a:1", s)
		var r recorder
		p := New("a:1", &Config{MinPoolSize: 3, MaxPoolSize: 5, Monitor: r.monitor(), Conn: &conn.Config{Dialer: network}})
		defer network.Wait()
		defer p.Close()
		for round := range 3 {
			before := s.Accepted()
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := s.Accepted() - before; n != 0 {
				t.Errorf("round %d: %d connections are made while it is paused", round, n)
			}
			if _, err := p.CheckOut(t.Context()); !errors.Is(err, mongoerr.ErrPoolCleared) {
				t.Errorf("round %d: %v", round, err)
			}
			p.Ready()
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := s.Accepted() - before; n != 3 {
				t.Errorf("round %d: %d connections are made once it is ready", round, n)
			}
			p.Clear(errors.New("cleared"), false)
		}
		p.Told()
		ready, cleared := false, 0
		for _, e := range r.all() {
			switch e.(type) {
			case *event.PoolReady:
				ready = true
			case *event.PoolCleared:
				ready = false
				cleared++
			case *event.ConnectionCreated:
				if !ready {
					t.Error("a connection is created before the pool is told to be ready")
				}
			}
		}
		if cleared != 3 {
			t.Errorf("cleared %d times", cleared)
		}
	})
}

// logs is a slog.Handler that keeps the reasons of messages.
type logs struct {
	mu      sync.Mutex
	reasons map[string]map[string]bool // by message
}

func (l *logs) Enabled(context.Context, slog.Level) bool { return true }
func (l *logs) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logs) WithGroup(string) slog.Handler            { return l }
func (l *logs) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "reason" {
			if l.reasons[r.Message] == nil {
				l.reasons[r.Message] = map[string]bool{}
			}
			l.reasons[r.Message][a.Value.String()] = true
		}
		return true
	})
	return nil
}

// The reasons in messages are those of the specification Connection Monitoring and Pooling, word
// for word.
func TestReasonsInLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := &logs{reasons: map[string]map[string]bool{}}
		log, _ := logging.New(logging.Options{Handler: handler}, func(string) string { return "" })
		s := &fakeserver.Server{Handle: echo}
		p := newPool(t, s, Config{MaxPoolSize: 1, MaxIdleTime: time.Second, WaitQueueTimeout: time.Second, Log: log})
		idle := mustCheckOut(t, p)
		if _, err := p.CheckOut(t.Context()); err == nil { // time is up
			t.Error("two connections")
		}
		idle.Return()
		time.Sleep(time.Hour) // for too long
		broken := mustCheckOut(t, p)
		broken.Close()
		broken.Return()
		mustCheckOut(t, p).Return()
		p.Clear(errors.New("cleared"), false) // stale
		p.Ready()
		s.SetDown(true)
		if _, err := p.CheckOut(t.Context()); err == nil { // refused
			t.Error("a connection to a server that is down")
		}
		s.SetDown(false)
		p.Ready()
		mustCheckOut(t, p).Return()
		p.Close()
		if _, err := p.CheckOut(t.Context()); err == nil {
			t.Error("a connection of a closed pool")
		}
		p.Told()
		for message, want := range map[string][]string{
			"Connection closed": {"Connection became stale because the pool was cleared",
				"Connection has been available but unused for longer than the configured max idle time",
				"An error occurred while using the connection", "Connection pool was closed"},
			"Connection checkout failed": {"Wait queue timeout elapsed without a connection becoming available",
				"An error occurred while trying to establish a new connection", "Connection pool was closed"},
		} {
			for _, text := range want {
				if !handler.reasons[message][text] {
					t.Errorf("%s: no %q, but %v", message, text, handler.reasons[message])
				}
			}
			if len(handler.reasons[message]) != len(want) {
				t.Errorf("%s: %v", message, handler.reasons[message])
			}
		}
	})
}
