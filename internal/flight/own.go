package flight

import (
	"log/slog"
	"runtime/debug"
	"sync"
)

// What the program's code can do to whoever calls it, besides returning: panic, and end the
// goroutine (runtime.Goexit, which t.FailNow is). On the program's own goroutine both go on to the
// program, and the driver's callers clean up by defer. What follows is for the goroutines of the
// driver, which must outlive both, and for code that is called where nothing may be left half done.

// Apart calls f on a goroutine of its own and waits for it. A panic becomes an error with its
// stack, and so does the end of the goroutine.
func Apart(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errExit
		defer func() { done <- err }()
		err = Call(f)
	}()
	return <-done
}

// Go runs f on a goroutine that wg waits for, if it is not nil. If f panics or ends the goroutine,
// failed is called with that as an error, last thing on the goroutine; without it the error is
// reported.
func Go(wg *sync.WaitGroup, f func(), failed func(error)) {
	run := func() {
		err := errExit
		defer func() {
			switch {
			case err == nil:
			case failed == nil:
				Report(err)
			default:
				if err := Apart(func() error { failed(err); return nil }); err != nil {
					Report(err)
				}
			}
		}()
		err = Call(func() error { f(); return nil })
	}
	if wg == nil {
		go run()
	} else {
		wg.Go(run)
	}
}

// Report logs what the program's code did on a goroutine of the driver's where it is nobody's
// error.
func Report(err error) {
	_ = Apart(func() error {
		slog.Error("allium: code of the program's failed on a goroutine of the driver's",
			slog.String("failure", err.Error()))
		return nil
	})
}

// Recovered makes an error of what recover returned.
func Recovered(v any) error {
	if p, ok := v.(*Panic); ok {
		return p // with the stack of where it began
	}
	return &Panic{Value: v, Stack: debug.Stack()}
}
