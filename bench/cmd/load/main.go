// Command load puts both drivers under load and prints what their users would see: latencies at a
// fixed rate of operations, how a fresh client takes a rush, and what cancelled operations do to
// connections.
//
//	go -C bench run ./cmd/load              # everything, a few minutes
//	go -C bench run ./cmd/load -run cancel  # one part: rate, storm or cancel
//
// The rate is fixed beforehand and does not wait for slow answers (open loop): the latency of an
// operation counts from when it was due, so that time in a queue is part of it. The server is the
// null server in a process of its own, on the same machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"allium/bench"
	"allium/bench/internal/table"
)

// settings are the flags.
type settings struct {
	prefix   string
	rate     int
	length   time.Duration
	markdown bool
}

func main() {
	bench.Child()
	var s settings
	flag.StringVar(&s.prefix, "run", "", "run only the parts whose names start with this: rate, storm, cancel")
	flag.IntVar(&s.rate, "rate", 4000, "operations per second")
	flag.DurationVar(&s.length, "time", 4*time.Second, "how long each measurement takes")
	flag.BoolVar(&s.markdown, "markdown", false, "print the tables as Markdown")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(s settings) (err error) {
	env := &bench.Env{}
	defer func() { err = errors.Join(err, env.Close()) }()
	uri, _, err := env.Null()
	if err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, GOMAXPROCS %d\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	for _, part := range []struct {
		name string
		run  func(settings, string) error
	}{{"rate", rates}, {"storm", storm}, {"cancel", cancels}} {
		if strings.HasPrefix(part.name, s.prefix) {
			fmt.Println()
			if err := part.run(s, uri); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	return nil
}

// drivers opens a client of each.
var drivers = []struct {
	name string
	open func(uri string, pool int) (*client, error)
}{{"Allium", openAllium}, {"official", openOfficial}}

// rates measures latencies at a fixed rate.
func rates(s settings, uri string) error {
	idle := openLoop(func(context.Context) error { return nil }, 16, s.rate, s.length)
	fmt.Printf("%d operations per second for %v; to start an operation takes %s of processor time (in what follows) and is late by %s (p50), %s (p99)\n\n", s.rate, s.length,
		table.Round(idle.cpu/time.Duration(len(idle.latencies))), table.Round(idle.percentile(50)),
		table.Round(idle.percentile(99)))
	t := table.New(os.Stdout, s.markdown, "operation", "goroutines", "pool", "driver", "per second", "p50", "p99",
		"p99.9", "CPU/op", "errors", "connections")
	for _, operation := range []string{"FindOne", "InsertOne"} {
		for _, goroutines := range []int{1, 16, 256, 2000} {
			for _, pool := range []int{10, 100} {
				for _, d := range drivers {
					c, err := d.open(uri, pool)
					if err != nil {
						return err
					}
					do := c.findOne
					if operation == "InsertOne" {
						do = c.insertOne
					}
					if err := do(context.Background()); err != nil { // discovery is not what is measured
						return err
					}
					r := openLoop(do, goroutines, s.rate, s.length)
					t.Row(operation, fmt.Sprint(goroutines), fmt.Sprint(pool), d.name,
						fmt.Sprintf("%.0f", float64(len(r.latencies))/r.took.Seconds()),
						table.Round(r.percentile(50)), table.Round(r.percentile(99)), table.Round(r.percentile(99.9)),
						table.Round(r.cpu/time.Duration(max(len(r.latencies), 1))), fmt.Sprint(r.errors),
						fmt.Sprint(c.created.Load()))
					if err := c.close(); err != nil {
						return err
					}
				}
			}
		}
	}
	return t.End()
}

// outcome is what a run saw.
type outcome struct {
	latencies []time.Duration // sorted
	took, cpu time.Duration
	errors    int64
}

func (o *outcome) percentile(p float64) time.Duration {
	if len(o.latencies) == 0 {
		return 0
	}
	return o.latencies[min(int(float64(len(o.latencies))*p/100), len(o.latencies)-1)]
}

// openLoop lets goroutines do operations that are due at a fixed rate: a thread of its own says
// when, and whoever is free takes the next one.
func openLoop(do func(context.Context) error, goroutines, rate int, length time.Duration) outcome {
	type operation struct {
		i   int
		due time.Time
	}
	ctx := context.Background()
	runtime.GC()
	interval := time.Second / time.Duration(rate)
	total := int(length / interval)
	latencies := make([]time.Duration, total)
	var failed atomic.Int64
	var wg sync.WaitGroup
	cpu, start := bench.ProcessorTime(), time.Now().Add(10*time.Millisecond)
	operations := make(chan operation, total) // room for all: the rate does not wait for slow answers
	for range goroutines {
		wg.Go(func() {
			for op := range operations {
				if err := do(ctx); err != nil {
					failed.Add(1)
				}
				latencies[op.i] = time.Since(op.due)
			}
		})
	}
	wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(operations)
		for i := range total {
			due := start.Add(time.Duration(i) * interval)
			pause(time.Until(due))
			operations <- operation{i, due}
		}
	})
	wg.Wait()
	o := outcome{latencies: latencies, took: time.Since(start), cpu: bench.ProcessorTime() - cpu, errors: failed.Load()}
	slices.Sort(latencies)
	return o
}

// storm lets 2,000 goroutines rush at a client that has just been made.
func storm(s settings, uri string) error {
	const goroutines = 2000
	fmt.Printf("%d goroutines, one FindOne each, on a client that was just made, with a pool of 100\n\n", goroutines)
	t := table.New(os.Stdout, s.markdown, "driver", "all done after", "p50", "p99", "CPU/op", "errors", "connections")
	for round := range 3 {
		for _, d := range drivers {
			runtime.GC()
			cpu, start := bench.ProcessorTime(), time.Now()
			c, err := d.open(uri, 100)
			if err != nil {
				return err
			}
			latencies := make([]time.Duration, goroutines)
			var failed atomic.Int64
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					if err := c.findOne(context.Background()); err != nil {
						failed.Add(1)
					}
					latencies[g] = time.Since(start)
				})
			}
			wg.Wait()
			o := outcome{latencies: latencies, took: time.Since(start), cpu: bench.ProcessorTime() - cpu}
			slices.Sort(latencies)
			if round > 0 { // the first one warms up the process
				t.Row(d.name, table.Round(o.took), table.Round(o.percentile(50)), table.Round(o.percentile(99)),
					table.Round(o.cpu/goroutines), fmt.Sprint(failed.Load()), fmt.Sprint(c.created.Load()))
			}
			if err := c.close(); err != nil {
				return err
			}
		}
	}
	return t.End()
}

// cancels cancels a tenth of the operations somewhere on their way.
func cancels(s settings, uri string) error {
	const goroutines = 64
	fmt.Printf("%d goroutines, finds that take %v, a tenth of them cancelled at random, for %v\n\n", goroutines, slowBy,
		s.length)
	t := table.New(os.Stdout, s.markdown, "driver", "operations", "cancelled", "connections opened", "connections lost",
		"other errors", "CPU/op")
	for _, d := range drivers {
		c, err := d.open(uri, 100)
		if err != nil {
			return err
		}
		var done, cancelled, failed atomic.Int64
		cpu := bench.ProcessorTime()
		end := time.Now().Add(s.length)
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for time.Now().Before(end) {
					ctx, cancel := context.WithCancel(context.Background())
					if rand.IntN(10) == 0 {
						stop := time.AfterFunc(rand.N(slowBy), cancel)
						defer stop.Stop()
					}
					err := c.findSlow(ctx)
					done.Add(1)
					switch {
					case err == nil:
					case ctx.Err() != nil:
						cancelled.Add(1)
					default:
						failed.Add(1)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		lost := c.closed.Load() // before the client closes the rest
		t.Row(d.name, fmt.Sprint(done.Load()), fmt.Sprint(cancelled.Load()), fmt.Sprint(c.created.Load()),
			fmt.Sprint(lost), fmt.Sprint(failed.Load()),
			table.Round((bench.ProcessorTime()-cpu)/time.Duration(done.Load())))
		if err := c.close(); err != nil {
			return err
		}
	}
	return t.End()
}
