package unified

import (
	"context"
	"errors"
	"time"
)

// thread runs operations one after the other, beside the test.
type thread struct {
	work chan *Operation
	done chan struct{}
	err  error // of the first operation that failed; read it after done
}

func init() {
	registerEntity("thread", func(ctx context.Context, r *runner, _ *arguments) (any, error) {
		work := make(chan *Operation, 64)
		t := &thread{work: work, done: make(chan struct{})}
		r.threads = append(r.threads, t)
		go func() {
			defer close(t.done)
			for op := range work {
				if err := r.operation(ctx, op); err != nil && t.err == nil {
					t.err = err
				}
			}
		}()
		return t, nil
	})
}

// threadTimeout bounds the wait for a thread.
const threadTimeout = 10 * time.Second

// wait ends the thread, and returns what went wrong on it. A second wait returns the same.
func (t *thread) wait() error {
	if t.work != nil {
		close(t.work)
		t.work = nil
	}
	timer := time.NewTimer(threadTimeout)
	defer timer.Stop()
	select {
	case <-t.done:
		return t.err
	case <-timer.C:
		return errors.New("the thread does not end")
	}
}
