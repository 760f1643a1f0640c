package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/mongotest"
)

// change is how a connection of a pool got from one state to another.
type change struct{ from, to, event string }

// ways are the changes as they are drawn: each must happen in pool, and nothing else may.
var ways = []struct {
	change
	path string
	bad  bool
	x, y int // of the text's middle
	text []string
}{
	{change{"", "being made", "ConnectionCreated"}, "M60 134 H137", false, 0, 0, nil},
	{change{"being made", "idle", "ConnectionReady"}, "M300 134 H397", false, 350, 110,
		[]string{"shook hands,", "logged in"}},
	{change{"idle", "in use", "ConnectionCheckedOut"}, "M560 118 H697", false, 630, 90,
		[]string{"checked out by", "one operation"}},
	{change{"in use", "idle", "ConnectionCheckedIn"}, "M700 150 H563", false, 630, 172, []string{"checked in"}},
	{change{"being made", "closed", "ConnectionClosed: error"}, "M220 168 V312 H397", true, 236, 240,
		[]string{"nobody answers,", "or the login fails"}},
	{change{"idle", "closed", "ConnectionClosed: error"}, "M420 168 V287", true, 0, 0, nil},
	{change{"idle", "closed", "ConnectionClosed: stale"}, "M455 168 V287", true, 0, 0, nil},
	{change{"idle", "closed", "ConnectionClosed: idle"}, "M490 168 V287", true, 0, 0, nil},
	{change{"idle", "closed", "ConnectionClosed: poolClosed"}, "M525 168 V287", true, 0, 0, nil},
}

// drawPool draws what becomes of a connection.
func drawPool(happened map[change]bool) (*drawing, error) {
	d := &drawing{title: "Connections of a pool", width: 960, height: 380}
	for _, w := range ways {
		if !happened[w.change] {
			return nil, fmt.Errorf("the picture of a pool shows what does not happen: %+v", w.change)
		}
	}
	if len(happened) != len(ways) {
		return nil, fmt.Errorf("the picture of a pool lacks a change: %v", happened)
	}
	d.text("pic-soft", "start", 20, 28, "Each server has a pool of up to maxPoolSize connections. At most maxConnecting (2) are being made at once; when all are in use,")
	d.text("pic-soft", "start", 20, 46, "operations wait in the order in which they came, as long as their Timeout and their context allow.")
	d.box("pic-box", 140, 100, 160, 68, "being made", "at most two at once")
	d.box("pic-box", 400, 100, 160, 68, "idle", "last used, first taken")
	d.box("pic-mark", 700, 100, 160, 68, "in use", "by one operation")
	d.box("pic-gone", 400, 290, 160, 44, "closed")
	for _, w := range ways {
		d.way(w.bad, w.path)
		for i, line := range w.text {
			d.text("pic-text", map[bool]string{true: "start", false: "middle"}[w.bad], w.x, w.y+16*i, line)
		}
	}
	for i, line := range []string{"error: its connection broke", "stale: the pool was cleared after an error",
		"idle: maxIdleTimeMS is over", "poolClosed: the client was closed"} {
		d.text("pic-text", "start", 580, 212+18*i, line)
	}
	d.rule("pic-line", "M572 200 V272")
	for i, line := range []string{"An operation whose time is up leaves a reply behind,",
		"which is read off before the connection is used again,", "for up to 3 s."} {
		d.text("pic-soft", "start", 580, 304+18*i, line)
	}
	return d, nil
}

// connections follows the connections of pools by their events.
type connections struct {
	mu      sync.Mutex
	state   map[int64]string
	changes map[change]bool
}

func (c *connections) move(id int64, to, event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes[change{c.state[id], to, event}] = true
	c.state[id] = to
}

// seen reports whether a connection was closed for a reason.
func (c *connections) seen(event string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.changes {
		if ch.event == event {
			return true
		}
	}
	return false
}

func (c *connections) monitor() *event.PoolMonitor {
	return &event.PoolMonitor{
		ConnectionCreated: func(e *event.ConnectionCreated) {
			c.move(e.ConnectionID, "being made", "ConnectionCreated")
		},
		ConnectionReady: func(e *event.ConnectionReady) { c.move(e.ConnectionID, "idle", "ConnectionReady") },
		ConnectionCheckedOut: func(e *event.ConnectionCheckedOut) {
			c.move(e.ConnectionID, "in use", "ConnectionCheckedOut")
		},
		ConnectionCheckedIn: func(e *event.ConnectionCheckedIn) {
			c.move(e.ConnectionID, "idle", "ConnectionCheckedIn")
		},
		ConnectionClosed: func(e *event.ConnectionClosed) {
			c.move(e.ConnectionID, "closed", "ConnectionClosed: "+e.Reason)
		},
	}
}

// pool makes the connections of a client go through all that can become of them, and returns the
// changes of their states.
func pool(ctx context.Context) (map[change]bool, error) {
	d, err := mongotest.Open()
	if err != nil {
		return nil, err
	}
	defer d.Stop()
	c := &connections{state: map[int64]string{}, changes: map[change]bool{}}
	unreachable := &flaky{}
	client, err := allium.Open(d.URI(), allium.ClientOptions{
		AppName: "pictures", MaxIdleTime: new(50 * time.Millisecond), PoolMonitor: c.monitor(), Dialer: unreachable,
		Timeout: new(5 * time.Second),
	})
	if err != nil {
		return nil, err
	}
	coll := client.Database("app").Collection("users")
	find := func() error {
		_, err := coll.CountDocuments(ctx, bson.D{})
		return err
	}
	both := func(first, second func() error) error {
		arrived, goOn := make(chan bool), make(chan bool)
		var once atomic.Bool
		d.OnCommand(func(cmd *mongotest.Command) (bson.Raw, error) {
			if cmd.AppName == "pictures" && cmd.Name == "aggregate" && once.CompareAndSwap(false, true) {
				arrived <- true
				<-goOn
			}
			return nil, nil
		})
		var one error
		done := make(chan bool)
		go func() { defer close(done); one = first() }()
		<-arrived
		two := second()
		close(goOn)
		<-done
		return errors.Join(one, two)
	}
	broken := func() error { // the pool is cleared, and the find repeated
		d.FailCommand(mongotest.Fail{Commands: []string{"aggregate"}, Times: 1, CloseConnection: true,
			AppName: "pictures"})
		return find()
	}
	err = errors.Join(find(), both(find, broken))
	for err == nil && !c.seen("ConnectionClosed: idle") {
		time.Sleep(60 * time.Millisecond)
		err = find()
	}
	unreachable.until(2)
	err = errors.Join(err, both(find, find), client.Close(ctx))
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes, err
}

// flaky is a dialer that fails some times.
type flaky struct {
	net.Dialer
	left atomic.Int32
}

func (f *flaky) until(n int32) { f.left.Store(n) }

func (f *flaky) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, errors.New("unreachable")
	}
	return f.Dialer.DialContext(ctx, network, address)
}
