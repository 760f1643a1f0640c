package campaign

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/mongotest"
)

// Run runs a history and returns what came of it. A simulated one runs in a bubble, for which t
// must not be in a bubble already; trace keeps what happened.
func Run(t *testing.T, p *Plan, trace bool) (o *Outcome) {
	// Code of the program's that fails where it is nobody's error is told there.
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(before)
	if p.Real {
		running := runtime.NumGoroutine()
		o = play(p, trace)
		if left := goroutines(running); left != "" {
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
			w.rotation.end()
			w.lag.end()
			w.d.Stop()
		}
		return o
	}
	w.everybody()
	w.closeClients()
	w.rotation.end()
	if !p.Real {
		synctest.Wait()
		w.checkStacks()
	}
	w.checkConnections()
	w.lag.end()
	w.d.Stop()
	w.stats.Simulated = p.Length // with faults; what comes after is not counted
	return w.result()
}

// closeClients closes all clients, once.
func (w *world) closeClients() {
	if w.ended {
		return
	}
	w.ended = true
	for _, c := range w.clients {
		c.close()
		for _, u := range c.closed {
			u.check()
		}
	}
}

// checkConnections checks that the servers have no connection after all clients have been closed.
func (w *world) checkConnections() {
	left := 0
	for range 250 {
		if left = connections(w.d); left == 0 || !w.plan.Real {
			break
		}
		time.Sleep(20 * time.Millisecond) // the servers are still at it
	}
	if left != 0 {
		w.violation("the servers have %d connections after all clients have been closed", left)
	}
}

// connections returns how many connections the servers have.
func connections(d *mongotest.Deployment) (n int) {
	for _, node := range d.Nodes() {
		n += node.Connections()
	}
	return n
}

// checkStacks looks for goroutines of the driver after all clients have been closed.
func (w *world) checkStacks() {
	buf := make([]byte, 4<<20)
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if !strings.Contains(stack, "synctest bubble") || strings.Contains(stack, "allium/mongotest") ||
			strings.Contains(stack, "campaign.play") {
			continue
		}
		for _, pkg := range []string{"allium.(", "allium/internal/exec", "allium/internal/pool",
			"allium/internal/topology", "allium/internal/conn", "allium/internal/cursor"} {
			if strings.Contains(stack, pkg) {
				w.violation("a goroutine is left after Close: %s", stack)
				break
			}
		}
	}
}
