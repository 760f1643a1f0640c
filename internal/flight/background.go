package flight

import (
	"context"
	"sync"
	"time"
)

// Background is the work that callers left behind whose contexts had ended. The zero value is
// ready.
type Background struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed once nothing runs any more; nil before Close
	life    context.Context
	end     context.CancelFunc
}

// Run runs f in a goroutine of its own, with a context that ends when Close gives up waiting, and
// itself waits for f only so long. It reports false, and does nothing, after Close.
func (b *Background) Run(f func(ctx context.Context), grace time.Duration) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	if b.life == nil {
		b.life, b.end = context.WithCancel(context.Background())
	}
	b.running++
	b.mu.Unlock()
	done := make(chan struct{})
	Go(nil, func() {
		defer b.done()
		defer close(done)
		f(b.life)
	}, nil)
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	return true
}

func (b *Background) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running--; b.running == 0 && b.closed {
		close(b.idle)
	}
}

// Close waits until all has been done. When ctx ends before, it interrupts what is left.
func (b *Background) Close(ctx context.Context) {
	b.mu.Lock()
	b.closed = true
	if b.running == 0 {
		b.mu.Unlock()
		return
	}
	b.idle = make(chan struct{})
	b.mu.Unlock()
	defer b.end()
	select {
	case <-b.idle:
	case <-ctx.Done():
		b.end()
		<-b.idle
	}
}
