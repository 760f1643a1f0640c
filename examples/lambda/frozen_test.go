//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"

	"allium/mongotest"
)

// freeze suspends the function, as Lambda does between invocations, and returns what thaws it. What
// happens meanwhile, it learns afterwards.
func (f *function) freeze(t *testing.T) (thaw func()) {
	t.Helper()
	if err := f.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return func() {
		time.Sleep(3 * heartbeat) // longer than its monitors and idle connections rest
		if err := f.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitHeartbeat wants the monitors to go on after an invocation. The first one after a thaw may be
// answered before they have.
func (f *function) awaitHeartbeat(t *testing.T, before report) {
	t.Helper()
	for range 100 {
		if r := f.invoke(t, "later"); r.Heartbeats > before.Heartbeats {
			return
		}
		time.Sleep(heartbeat / 10)
	}
	t.Error("no heartbeat in ten intervals: the monitors stand still")
}

// TestFrozen freezes the function between calls: a suspended process must not break the monitors,
// or hand out connections that were closed meanwhile. Nothing that is sent fails; but the monitor
// may learn first that its own connection is closed, and then a write that waits for a new
// connection is retried, as Server Discovery and Monitoring has it.
func TestFrozen(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	f := start(t, d.URI()+"&heartbeatFrequencyMS=500")
	cold := f.invoke(t, "cold")

	thaw := f.freeze(t)
	thaw()
	if r := f.invoke(t, "frozen"); r.FailedCommands != 0 {
		t.Errorf("after it was frozen: %+v, before: %+v", r, cold)
	}
	f.awaitHeartbeat(t, cold)

	thaw = f.freeze(t)
	for _, n := range d.Nodes() {
		n.CloseConnections()
	}
	thaw()
	r := f.invoke(t, "closed")
	if r.FailedCommands != 0 {
		t.Errorf("a connection that the server had closed was handed out: %+v", r)
	}
	if r.OpenConnections < 1 {
		t.Errorf("connections: %+v", r)
	}
}

// TestFailoverWhileFrozen has another primary when the function thaws.
func TestFailoverWhileFrozen(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	f := start(t, d.URI()+"&heartbeatFrequencyMS=500")
	f.invoke(t, "cold")
	thaw := f.freeze(t)
	d.StepDown()
	thaw()
	f.invoke(t, "another-primary")
	thaw = f.freeze(t)
	old := d.Primary()
	old.Kill()
	thaw()
	f.awaitHeartbeat(t, f.invoke(t, "primary-gone"))
}
