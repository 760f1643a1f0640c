package campaign

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Run runs a history and returns what came of it. A simulated one runs in a bubble, for which t
// must not be in a bubble already; trace keeps what happened.
func Run(t *testing.T, p *Plan, trace bool) (o *Outcome) {
	if p.Real {
		before := runtime.NumGoroutine()
		o = play(p, trace)
		if left := goroutines(before); left != "" {
			o.Violations = append(o.Violations, "goroutines are left: "+left)
		}
		return o
	}
	defer func() {
		// The bubble's end finds goroutines that wait for ever.
		if v := recover(); v != nil {
			if o == nil {
				o = &Outcome{Plan: p, Stats: newStats()}
			}
			o.Violations = append(o.Violations, fmt.Sprintf("goroutines are left: %v", v))
		}
	}()
	synctest.Test(t, func(*testing.T) { o = play(p, trace) })
	return o
}

// goroutines waits for those of a history to end, and returns the stacks of the others.
func goroutines(before int) string {
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// play runs a history from the first connection to the last check.
func play(p *Plan, trace bool) *Outcome {
	w, err := newWorld(p, trace)
	if err != nil {
		o := &Outcome{Plan: p, Stats: newStats(), Violations: []string{"the start: " + err.Error()}}
		if w != nil {
			w.closeClients()
			w.d.Stop()
		}
		return o
	}
	w.everybody()
	w.closeClients()
	if !p.Real {
		synctest.Wait()
		w.checkStacks()
	}
	w.d.Stop()
	w.stats.Simulated = time.Since(w.start)
	return w.result()
}

func (w *world) closeClients() {
	for _, c := range w.clients {
		c.close()
		for _, u := range c.closed {
			u.check()
		}
	}
}

// checkStacks looks for goroutines of the driver after all clients have been closed.
func (w *world) checkStacks() {
	buf := make([]byte, 4<<20)
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if !strings.Contains(stack, "synctest bubble") || strings.Contains(stack, "allium/mongotest") || strings.Contains(stack, "campaign.play") {
			continue
		}
		for _, pkg := range []string{"allium.(", "allium/internal/exec", "allium/internal/pool", "allium/internal/topology", "allium/internal/conn", "allium/internal/cursor"} {
			if strings.Contains(stack, pkg) {
				w.violation("a goroutine is left after Close: %s", stack)
				break
			}
		}
	}
}
