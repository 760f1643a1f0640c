package netfault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// log is a Sender that notes what is written to it, and when.
type log struct {
	writes [][]byte
	paused []time.Duration
	chance uint64
	gone   bool // the client has hung up
}

func (l *log) Write(b []byte) (int, error) {
	l.writes = append(l.writes, bytes.Clone(b))
	return len(b), nil
}

func (l *log) Pause(ready <-chan struct{}, d time.Duration) bool {
	if l.gone {
		return false
	}
	if ready != nil {
		<-ready
	}
	l.paused = append(l.paused, d)
	return true
}

func (l *log) Chance() uint64 { return l.chance }

func TestWrite(t *testing.T) {
	reply := []byte("a reply")
	for _, test := range []struct {
		name    string
		faults  Faults
		chance  uint64
		gone    bool
		writes  []string // nil: not compared
		paused  []time.Duration
		dropped bool
	}{
		{name: "none", writes: []string{"a reply"}},
		{name: "latency", faults: Faults{Latency: time.Second}, writes: []string{"a reply"}, paused: []time.Duration{time.Second}},
		{name: "jitter", faults: Faults{Latency: time.Second, Jitter: 1000}, chance: 12_345, writes: []string{"a reply"}, paused: []time.Duration{time.Second + 345}},
		{name: "the client hangs up", faults: Faults{Latency: time.Second}, gone: true, dropped: true},
		{name: "trickle", faults: Faults{Trickle: time.Millisecond}, writes: []string{"a", " ", "r", "e", "p", "l", "y"}, paused: slicesOf(7, time.Millisecond)},
		{name: "dropped", faults: Faults{DropAfter: 3}, writes: []string{"a r"}, dropped: true},
		{name: "dropped after its end", faults: Faults{DropAfter: 30}, writes: []string{"a reply"}, dropped: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var n Network
			n.Set(test.faults)
			to := &log{chance: test.chance, gone: test.gone}
			err := n.Write(to, reply)
			if (err != nil) != test.dropped || err != nil && !errors.Is(err, ErrDropped) {
				t.Errorf("error %v", err)
			}
			if fmt.Sprintf("%s", to.writes) != fmt.Sprintf("%s", test.writes) || fmt.Sprint(to.paused) != fmt.Sprint(test.paused) {
				t.Errorf("wrote %q with pauses %v", to.writes, to.paused)
			}
		})
	}
}

func slicesOf[T any](n int, v T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// TestTimes: faults that hit so many replies end by themselves, and with them the way around.
func TestTimes(t *testing.T) {
	var n Network
	n.Set(Faults{Garbage: 9, Times: 2})
	for i := range 3 {
		to := &log{}
		if err := n.Write(to, []byte("reply")); err != nil {
			t.Fatal(err)
		}
		if want := []int{9, 9, 5}[i]; len(to.writes) != 1 || len(to.writes[0]) != want {
			t.Errorf("reply %d: %q", i, to.writes)
		}
	}
}

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Network
		n.Hold()
		if !n.Faulty() {
			t.Error("replies that are held go straight to the connection")
		}
		done := make(chan error)
		to := &log{}
		go func() { done <- n.Write(to, []byte("reply")) }()
		synctest.Wait()
		if len(to.writes) > 0 {
			t.Error("a reply was sent before Release")
		}
		n.Release()
		if err := <-done; err != nil || len(to.writes) != 1 {
			t.Errorf("%v, wrote %q", err, to.writes)
		}
		if n.Faulty() {
			t.Error("something is wrong after Release")
		}
	})
}

func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Network
		stop := make(chan struct{})
		if n.Hangs() || !n.Await(stop) {
			t.Error("it hangs from the start")
		}
		n.Hang()
		done := make(chan bool, 1)
		go func() { done <- n.Await(stop) }()
		synctest.Wait()
		select {
		case <-done:
			t.Error("Await did not wait")
		default:
		}
		n.Resume()
		if !<-done || n.Hangs() {
			t.Error("Resume does not end it")
		}
		n.Hang()
		go func() { done <- n.Await(stop) }()
		synctest.Wait()
		close(stop)
		if <-done {
			t.Error("a process that ended goes on")
		}
	})
}

// TestCutAfter: a connection breaks after its bytes, however they were spent. One that is made
// after the last of Times lives.
func TestCutAfter(t *testing.T) {
	var n Network
	n.Set(Faults{CutAfter: 10, Times: 1})
	far, near := net.Pipe()
	c := n.Wrap(near)
	go func() {
		far.Write([]byte("1234"))
		io.Copy(io.Discard, far)
	}()
	b := make([]byte, 100)
	if k, err := c.Read(b); k != 4 || err != nil {
		t.Fatalf("read %d, %v", k, err)
	}
	if k, err := c.Write([]byte("12345")); k != 5 || err != nil {
		t.Fatalf("wrote %d, %v", k, err)
	}
	if k, err := c.Write([]byte("12345")); k != 1 || !errors.Is(err, ErrDropped) {
		t.Errorf("wrote %d, %v after nine bytes of ten", k, err)
	}
	if _, err := near.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is still open: %v", err)
	}

	far, near = net.Pipe()
	go io.Copy(io.Discard, far)
	if k, err := n.Wrap(near).Write(make([]byte, 100)); k != 100 || err != nil {
		t.Errorf("the second connection: wrote %d, %v", k, err)
	}
	far.Close()
}

func TestRefuses(t *testing.T) {
	var n Network
	if n.Refuses() {
		t.Error("it refuses from the start")
	}
	if n.Set(Faults{Reset: true}); !n.Refuses() {
		t.Error("Reset does not refuse")
	}
	if n.Set(Faults{}); n.Refuses() || n.Faulty() {
		t.Error("it still refuses")
	}
}
