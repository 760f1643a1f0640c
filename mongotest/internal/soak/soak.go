// Package soak keeps a deployment under mixed load for as long as one likes: writes, reads,
// aggregations, transactions, change streams, programs, large documents, collections that come and
// go. It reports the memory over time, and how long deployments take to stop at random moments.
package soak

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest"
)

// Config is what is run.
type Config struct {
	Topology mongotest.Option // of all deployments; nil: a replica set of three members
	Workers  int              // connections with load; 0: 6
	Every    time.Duration    // between two samples of the memory; 0: 15 seconds
	Stops    time.Duration    // between two deployments that are stopped under load; 0: 5 seconds
	Seed     uint64
	// Without names steps that are left out, to find what holds on to memory.
	Without []string
	Log     io.Writer // a line per sample; nil: none
	// Dumps is a directory for what goroutines do, and what uses the processor, while a stop takes
	// more than half a second, and for a profile of the live heap every ten minutes. Empty: none.
	Dumps string
	// Enough ends the run early: it is asked after each sample and stop. nil: it goes on until the
	// context ends.
	Enough func(*Report) bool
}

// Sample is the state at a moment at which no command runs.
type Sample struct {
	At         time.Duration // since the beginning
	Commands   int64         // so far
	Live       uint64        // bytes on the heap after a collection
	Resident   uint64        // bytes of the process; 0 where the system does not tell
	Goroutines int
}

// Report is what has been seen.
type Report struct {
	Samples  []Sample
	Commands int64
	// Failed are the errors of commands that should not fail, with how often each came.
	Failed map[string]int
	// Stops are the times that deployments took to stop under load, the last one that of the main
	// one.
	Stops []Stop
}

// Stop returns the stop that took longer than the given share of all: 0.5 is the median, 1 the
// slowest.
func (r *Report) Stop(share float64) Stop {
	list := slices.SortedFunc(slices.Values(r.Stops), func(a, b Stop) int { return cmp.Compare(a.Took, b.Took) })
	if len(list) == 0 {
		return Stop{}
	}
	return list[min(int(share*float64(len(list))), len(list)-1)]
}

// Live returns the least, the mean and the greatest live heap of the samples, in bytes.
func (r *Report) Live() (least, mean, greatest uint64) {
	if len(r.Samples) == 0 {
		return 0, 0, 0
	}
	least = r.Samples[0].Live
	for _, s := range r.Samples {
		least, greatest = min(least, s.Live), max(greatest, s.Live)
		mean += s.Live
	}
	return least, mean / uint64(len(r.Samples)), greatest
}

// Growth returns by how many bytes an hour the live heap grows: the slope of a line through the
// samples of the second half, by when the deployment keeps as much history as it ever will.
func (r *Report) Growth() float64 {
	list := r.Samples[len(r.Samples)/2:]
	n := float64(len(list))
	if n < 2 {
		return 0
	}
	var x, y, xx, xy float64
	for _, s := range list {
		h, b := s.At.Hours(), float64(s.Live)
		x, y, xx, xy = x+h, y+b, xx+h*h, xy+h*b
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// load is workers on a deployment.
type load struct {
	d      *mongotest.Deployment
	gate   sync.RWMutex // held for reading by steps, for writing while memory is measured
	done   chan struct{}
	wg     sync.WaitGroup
	count  atomic.Int64
	mu     sync.Mutex
	failed map[string]int
}

func start(cfg Config, seed uint64) (*load, error) {
	topology := cfg.Topology
	if topology == nil {
		topology = mongotest.ReplicaSet(3)
	}
	d, err := mongotest.Open(topology)
	if err != nil {
		return nil, err
	}
	l := &load{d: d, done: make(chan struct{}), failed: map[string]int{}}
	addr := d.Primary().Addr()
	for i := range cfg.Workers {
		w := &worker{l: l, addr: addr, db: "soak" + strconv.Itoa(i%3), rng: rand.New(rand.NewPCG(seed, uint64(i))),
			without: cfg.Without}
		l.wg.Go(w.run)
	}
	return l, nil
}

// stop stops the deployment while the workers go on, and returns how that went.
func (l *load) stop(dumps string) Stop {
	s := timed(dumps, l.d.Stop)
	close(l.done)
	l.wg.Wait()
	return s
}

func (l *load) fail(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed[text]++
}

// Run runs until the context ends.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Workers == 0 {
		cfg.Workers = 6
	}
	if cfg.Every == 0 {
		cfg.Every = 15 * time.Second
	}
	if cfg.Stops == 0 {
		cfg.Stops = 5 * time.Second
	}
	r := &Report{Failed: map[string]int{}}
	l, err := start(cfg, cfg.Seed)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	heap := heapProfiles{dir: cfg.Dumps}
	rng := rand.New(rand.NewPCG(cfg.Seed, 1<<32))
	sample, stops := time.NewTicker(cfg.Every), time.NewTicker(cfg.Stops)
	defer sample.Stop()
	defer stops.Stop()
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case <-sample.C:
			s := l.measure(begin, &heap)
			r.Samples = append(r.Samples, s)
			if cfg.Log != nil {
				fmt.Fprintf(cfg.Log, "%8s %9d commands %7.1f MB live %7.1f MB resident %4d goroutines\n",
					s.At.Round(time.Second), s.Commands,
					float64(s.Live)/1e6, float64(s.Resident)/1e6, s.Goroutines)
			}
		case <-stops.C:
			other, err := start(cfg, rng.Uint64())
			if err != nil {
				return nil, err
			}
			time.Sleep(time.Duration(rng.Int64N(int64(min(cfg.Stops, time.Second)))))
			r.stopped(cfg, other)
		}
		if cfg.Enough != nil && cfg.Enough(r) {
			running = false
		}
	}
	r.Commands = l.count.Load()
	r.stopped(cfg, l)
	return r, nil
}

func (r *Report) stopped(cfg Config, l *load) {
	s := l.stop(cfg.Dumps)
	if cfg.Log != nil && s.Took > slow {
		fmt.Fprintf(cfg.Log, "%s a slow stop: %v\n", time.Now().UTC().Format("15:04:05"), s)
	}
	r.Stops = append(r.Stops, s)
	for text, n := range l.failed {
		r.Failed[text] += n
	}
}

// measure lets the commands that run end, holds up others, and looks at the memory.
func (l *load) measure(begin time.Time, heap *heapProfiles) Sample {
	l.gate.Lock()
	defer l.gate.Unlock()
	runtime.GC()
	runtime.GC() // pools keep what they have over one collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	heap.write(time.Since(begin))
	return Sample{At: time.Since(begin), Commands: l.count.Load(), Live: m.HeapAlloc, Resident: resident(),
		Goroutines: runtime.NumGoroutine()}
}

// resident reads how much memory the process has, on Linux.
func resident() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// worker sends one command after the other on a connection of its own.
type worker struct {
	l    *load
	addr string
	db   string
	rng  *rand.Rand
	conn net.Conn

	without []string

	txn int64
}

func (w *worker) run() {
	defer func() {
		if w.conn != nil {
			w.conn.Close()
		}
	}()
	for {
		select {
		case <-w.l.done:
			return
		default:
		}
		// Commands wait for the transactions of others: what is measured has to wait for all of a
		// step.
		w.l.gate.RLock()
		err := w.step()
		w.l.gate.RUnlock()
		if err != nil {
			select {
			case <-w.l.done:
				return
			case <-time.After(time.Millisecond): // it may be stopping just now
			}
			if w.conn != nil {
				w.conn.Close()
				w.conn = nil
			}
		}
	}
}

// expected are codes of errors that load like this meets: a write conflict, a collection that
// another worker has dropped, a key that is there twice, the end of its time.
var expected = map[int32]bool{26: true, 112: true, 117: true, 175: true, 237: true, 246: true, 292: true, 251: true,
	11000: true, 11600: true, 91: true, 48: true,
	43: true, 46: true, 50: true, 24: true, 225: true, 286: true, 280: true, 28: true}

// command sends a command and returns its reply.
func (w *worker) command(d bson.D) (bson.Raw, error) {
	if w.conn == nil {
		c, err := net.Dial("tcp", w.addr)
		if err != nil {
			return nil, err
		}
		w.conn = c
	}
	doc, err := bson.Marshal(append(d, bson.E{Key: "$db", Value: w.db}))
	if err != nil {
		return nil, err
	}
	msg := wire.FinishMessage(append(wire.AppendMsg(nil, wire.NextRequestID(), 0, 0), doc...), 0)
	if _, err := w.conn.Write(msg); err != nil {
		return nil, err
	}
	head := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(w.conn, head); err != nil {
		return nil, err
	}
	h, err := wire.ParseHeader(head, wire.DefaultMaxMessageSize)
	if err != nil {
		return nil, err
	}
	msg = append(head, make([]byte, h.Length-wire.HeaderLen)...)
	if _, err := io.ReadFull(w.conn, msg[wire.HeaderLen:]); err != nil {
		return nil, err
	}
	m, err := wire.ParseMsg(msg)
	if err != nil {
		return nil, err
	}
	w.l.count.Add(1)
	if !m.Body.Lookup("ok").AsBool() {
		if code, _ := m.Body.Lookup("code").Int32(); !expected[code] {
			text, _ := m.Body.Lookup("errmsg").StringValue()
			w.l.fail(d[0].Key + ": " + text)
		}
	}
	return m.Body, nil
}
