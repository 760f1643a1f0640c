package server

import (
	"runtime"
	"testing"
	"time"

	"allium/mongotest/internal/session"
)

// A command that gives up waiting for its session leaves alone both that one and the session of
// the command that the request serves next.
func TestWaitSessionGivesUp(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what it starts in the background runs after the next lines
	c := session.NewCatalog()
	use := func() *session.Session {
		s, _, err := c.Use(session.NewID(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	busy, next := use(), use()
	busy.Mu.Lock()
	r := &Request{Node: &Node{cfg: &Config{}}}
	r.Session, r.deadline = busy, time.Now().Add(-time.Second)
	if err := r.waitSession(); err == nil {
		t.Fatal("it got a session that another command has")
	}
	r.Session = next
	for range 100 {
		runtime.Gosched()
	}
	if !next.Mu.TryLock() {
		t.Error("the next command's session is taken")
	}
	busy.Mu.Unlock()
	for range 100 {
		runtime.Gosched()
	}
	if !busy.Mu.TryLock() {
		t.Error("the session that it waited for is taken")
	}
}
