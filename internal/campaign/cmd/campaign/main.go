// Command campaign runs histories of many clients against deployments that an adversary breaks,
// and checks that the driver keeps its promises:
//
//	go run ./internal/campaign/cmd/campaign -seed 7 -duration 1000h -topology replset
//	go run -race ./internal/campaign/cmd/campaign -real -duration 5m -topology lb
//	go run ./internal/campaign/cmd/campaign -topology replset -history 12345 -v
//
// A duration is simulated time, unless -real is set. The exit status is 1 if a history broke a
// promise, after it has been cut down to the steps and actors that matter. An interrupt ends the
// campaign after the history in hand.
package main

import (
	"crypto/rand"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"testing"
	"time"

	"allium/internal/campaign"
)

func main() {
	testing.Init()
	seed := flag.Uint64("seed", 0, "the campaign's seed; 0: a fresh one")
	history := flag.Uint64("history", 0, "run only the history with this seed")
	duration := flag.Duration("duration", 10*time.Hour, "how long: simulated time, or real time with -real")
	budget := flag.Duration("budget", 0, "stop after this much real time; 0: no bound")
	topology := flag.String("topology", "replset", "replset, sharded, lb or all")
	real := flag.Bool("real", false, "in real time on loopback TCP, for -race")
	dense := flag.Bool("dense", false, "only histories of five minutes, full of operations and faults")
	verbose := flag.Bool("v", false, "print what happens in each history")
	keep := flag.Bool("keep-going", false, "go on after a violation, without cutting it down")
	shrink := flag.Duration("shrink", 2*time.Minute, "how long to cut a failing history down")
	patience := flag.Duration("patience", 30*time.Minute,
		"how long a history may take before all goroutines are printed")
	flag.Parse()
	topologies := campaign.Topologies
	if *topology != "all" {
		topologies = []campaign.Topology{campaign.Topology(*topology)}
		if !slices.Contains(campaign.Topologies, topologies[0]) {
			fmt.Fprintf(os.Stderr, "campaign: no topology %q\n", *topology)
			os.Exit(2)
		}
	}
	if *seed == 0 {
		var b [8]byte
		rand.Read(b[:])
		*seed = binary.LittleEndian.Uint64(b[:]) >> 1
	}
	if !*real {
		runtime.GOMAXPROCS(1) // goroutines that wake at the same instant run one after the other
	}
	// A bubble needs a test to run in.
	testing.Main(func(_, _ string) (bool, error) {
		return true, nil
	}, []testing.InternalTest{{Name: "campaign", F: func(t *testing.T) {
		var broken []string
		for _, topology := range topologies {
			c := &run{t: t, topology: topology, seed: *seed, seeds: campaign.Seeds(*seed), duration: *duration,
				budget: *budget / time.Duration(len(topologies)),
				shrink: *shrink, patience: *patience, real: *real, verbose: *verbose, keep: *keep, dense: *dense,
				only: *history != 0}
			if c.only {
				c.seeds = func() uint64 { return *history }
			} else {
				fmt.Printf("%s, seed %d\n", topology, *seed)
			}
			if !c.all() {
				t.Fail()
			}
			broken = append(broken, c.broken...)
		}
		// Once more at the end, where a log that was cut still has it.
		for _, line := range broken {
			fmt.Println(line)
		}
	}}}, nil, nil)
}

// run is a campaign on one topology.
type run struct {
	t                                *testing.T
	topology                         campaign.Topology
	seed                             uint64 // of the campaign
	seeds                            func() uint64
	duration, budget, shrink         time.Duration
	patience                         time.Duration // for one history
	real, verbose, keep, dense, only bool
	broken                           []string // what was broken, and the commands that repeat it
}

// again returns the command that repeats the history with a seed.
func (c *run) again(seed uint64) string {
	return fmt.Sprintf("%s -history %d", c.command(), seed)
}

// command returns the command that runs such a campaign; what it takes its seed from follows.
func (c *run) command() string {
	flags := map[bool]string{true: " -real"}[c.real] + map[bool]string{true: " -dense"}[c.dense]
	return fmt.Sprintf("go run ./internal/campaign/cmd/campaign -topology %s%s", c.topology, flags)
}

// slice is how long a history in real time takes.
const slice = 20 * time.Second

func (c *run) plan(seed uint64) *campaign.Plan {
	if c.real {
		return campaign.NewPlan(seed, c.topology, slice)
	}
	if c.dense {
		return campaign.NewDensePlan(seed, c.topology)
	}
	return campaign.NewPlan(seed, c.topology, 0)
}

// play runs one history.
func (c *run) play(p *campaign.Plan) *campaign.Outcome {
	watchdog := time.AfterFunc(c.patience, func() {
		fmt.Printf("history %d on %s does not end\nagain: %s\n", p.Seed, p.Topology, c.again(p.Seed))
		buf := make([]byte, 16<<20)
		os.Stdout.Write(buf[:runtime.Stack(buf, true)])
		os.Exit(2)
	})
	defer watchdog.Stop()
	return campaign.Run(c.t, p, c.verbose)
}

// all runs histories until the time is over. It reports whether all promises were kept.
func (c *run) all() bool {
	start := time.Now()
	totals := campaign.NewTotals()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	defer signal.Stop(interrupted)
	var heap []uint64
	printed := start
	for totals.Histories == 0 || totals.Simulated < c.duration && (c.budget == 0 || time.Since(start) < c.budget) &&
		!c.only && len(interrupted) == 0 {
		o := c.play(c.plan(c.seeds()))
		totals.Count(o)
		if c.verbose {
			for _, line := range o.Trace {
				fmt.Println(line)
			}
		}
		if len(o.Violations) > 0 {
			o.Describe(os.Stdout)
			for _, v := range o.Violations {
				c.broken = append(c.broken, fmt.Sprintf("VIOLATION %s", v))
			}
			c.broken = append(c.broken, "again: "+c.again(o.Plan.Seed))
			fmt.Println(c.broken[len(c.broken)-1])
			if !c.keep {
				if c.shrink > 0 {
					fmt.Println("cut down to:")
					c.verbose = false
					campaign.Shrink(o, 3, time.Now().Add(c.shrink), c.play).Describe(os.Stdout)
				}
				break
			}
		}
		if totals.Histories%5 == 0 {
			heap = append(heap, live())
		}
		if time.Since(printed) > time.Minute {
			printed = time.Now()
			fmt.Printf("%v: %d histories, %.1f hours, %d operations, %d with violations\n",
				campaign.Round(time.Since(start)), totals.Histories, totals.Simulated.Hours(), totals.Operations,
				totals.Violations)
		}
	}
	fmt.Printf("took %v\n", campaign.Round(time.Since(start)))
	totals.Report(os.Stdout)
	ok := totals.Violations == 0
	if n := len(heap); n >= memorySamples {
		// What is alive between histories does not grow with their number.
		first, last := slices.Max(heap[:n/2]), slices.Min(heap[n/2:])
		fmt.Printf("memory in use: at most %d KB in the first half, at least %d KB in the second\n", first>>10,
			last>>10)
		if last > first+memoryGrowth {
			c.broken = append(c.broken, fmt.Sprintf("VIOLATION memory grows\nagain: %s -seed %d -duration %v -budget %v",
				c.command(), c.seed, c.duration, c.budget))
			fmt.Println(c.broken[len(c.broken)-1])
			ok = false
		}
	}
	return ok
}

// memoryGrowth is how much more may be in use after many histories than before: caches fill, and
// what a history has left behind is freed a moment later.
const memoryGrowth = 4 << 20

// memorySamples is from how many samples on growth is judged: with fewer, the first half is of the
// time when caches fill.
const memorySamples = 8

// live returns how many bytes are in use.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
