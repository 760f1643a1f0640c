package exec

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"allium/internal/failure"
	"allium/internal/logging"
	"allium/stats"
)

// Slow says which operations are slow.
type Slow struct {
	// Threshold is from when on an operation is remembered; 0 and less: none is.
	Threshold time.Duration
	// Log takes a message of each of them. It may be nil.
	Log func(ctx context.Context, message string, attrs ...slog.Attr)
}

// slowOnes are the last operations that were slow, however many there are. The zero value is ready.
type slowOnes struct {
	mu   sync.Mutex
	all  int64
	ring []stats.SlowOperation // the oldest at next once it is full
	next int
}

func (s *slowOnes) add(op stats.SlowOperation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	if len(s.ring) < stats.Listed {
		s.ring = append(s.ring, op)
		return
	}
	s.ring[s.next] = op
	s.next = (s.next + 1) % stats.Listed
}

// SlowOperations returns how many operations have been slow, and the last of them, the latest
// first.
func (x *Executor) SlowOperations() (int64, []stats.SlowOperation) {
	s := &x.slow
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Concat(s.ring[s.next:], s.ring[:s.next])
	slices.Reverse(out)
	return s.all, out
}

// tells is what one operation has to tell if it turns out to be slow. All of it is taken where the
// operation waits anyway, so that a quick one pays for one look at the clock.
type tells struct {
	began                                    time.Time
	slow                                     bool
	told                                     bool
	shape                                    string
	sent                                     int // attempts that came so far
	selection, checkout, encryption, backoff time.Duration
}

// slowFrom returns from when on the operation is slow, 0 if it never is: a getMore on a cursor that
// waits for news takes as long as there is none.
func (r *run) slowFrom() time.Duration {
	if r.op.Awaits {
		return 0
	}
	return r.x.Slow.Threshold
}

// exchanged notes a message that was answered, or not, while it is still there.
func (r *run) exchanged(msg []byte) {
	r.tells.sent++
	if t := r.slowFrom(); t > 0 && time.Since(r.tells.began) >= t {
		r.tells.slow = true
		r.tells.shape = shapeOf(r.op.Command.Name(), msg)
	}
}

// tell remembers and logs the operation if it was slow.
func (r *run) tell(ctx context.Context, err error) {
	t := &r.tells
	if limit := r.slowFrom(); limit <= 0 || t.told ||
		!t.slow && (err == nil && r.x.Cipher == nil || time.Since(t.began) < limit) {
		return
	}
	t.told = true
	op := stats.SlowOperation{
		Command: r.op.Command.Name(), Namespace: r.op.Namespace(), Addr: r.addr, Started: t.began,
		Duration:  time.Since(t.began),
		Selection: t.selection, Checkout: t.checkout, Encryption: t.encryption, Backoff: t.backoff,
		Attempts: t.sent, Shape: t.shape, Failure: failure.Outline(err),
	}
	r.x.slow.add(op)
	if r.x.Slow.Log == nil {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("commandName", op.Command), slog.String("namespace", op.Namespace),
		logging.Millis("durationMS", op.Duration))
	if op.Addr != "" {
		attrs = logging.Server(attrs, op.Addr)
	}
	for _, phase := range []struct {
		key string
		d   time.Duration
	}{{"selectionMS", op.Selection}, {"checkoutMS", op.Checkout}, {"encryptionMS", op.Encryption},
		{"backoffMS", op.Backoff}} {
		if phase.d > 0 {
			attrs = append(attrs, logging.Millis(phase.key, phase.d))
		}
	}
	attrs = append(attrs, slog.Int("attempts", op.Attempts))
	if op.Shape != "" {
		attrs = append(attrs, slog.String("shape", op.Shape))
	}
	if op.Failure != "" {
		attrs = append(attrs, slog.String("failure", op.Failure))
	}
	r.x.Slow.Log(ctx, "Slow operation", attrs...)
}
