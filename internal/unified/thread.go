package unified

import (
	"context"
	"errors"
	"sync"
	"time"
)

// thread runs operations one after the other, beside the test.
type thread struct {
	wake chan struct{} // there is work, or there will be no more
	done chan struct{}
	err  error // of the first operation that failed; read it after done

	mu    sync.Mutex
	work  []*Operation
	ended bool // there will be no more work
}

func init() {
	registerEntity("thread", func(ctx context.Context, r *runner, _ *arguments) (any, error) {
		t := &thread{wake: make(chan struct{}, 1), done: make(chan struct{})}
		r.threads = append(r.threads, t)
		go func() {
			defer close(t.done)
			for op := t.next(); op != nil; op = t.next() {
				if err := r.operation(ctx, op); err != nil && t.err == nil {
					t.err = err
				}
			}
		}()
		return t, nil
	})
}

// next waits for the next operation, and returns nil if there is none to come.
func (t *thread) next() *Operation {
	for {
		t.mu.Lock()
		if len(t.work) > 0 {
			op := t.work[0]
			t.work = t.work[1:]
			t.mu.Unlock()
			return op
		}
		ended := t.ended
		t.mu.Unlock()
		if ended {
			return nil
		}
		<-t.wake
	}
}

// run hands the thread an operation, and does not wait for it.
func (t *thread) run(op *Operation) error {
	return t.change(func() error {
		if t.ended {
			return errors.New("the thread has ended")
		}
		t.work = append(t.work, op)
		return nil
	})
}

func (t *thread) change(f func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() {
		select {
		case t.wake <- struct{}{}:
		default: // it will look at what there is anyway
		}
	}()
	return f()
}

// threadTimeout bounds the wait for a thread.
const threadTimeout = 10 * time.Second

// wait ends the thread, and returns what went wrong on it. A second wait returns the same.
func (t *thread) wait() error {
	t.change(func() error {
		t.ended = true
		return nil
	})
	timer := time.NewTimer(threadTimeout)
	defer timer.Stop()
	select {
	case <-t.done:
		return t.err
	case <-timer.C:
		return errors.New("the thread does not end")
	}
}
