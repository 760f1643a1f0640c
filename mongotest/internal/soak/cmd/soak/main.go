// Command soak keeps a deployment of mongotest under mixed load and reports its memory over time,
// and how long deployments take to stop at random moments:
//
//	go run ./mongotest/internal/soak/cmd/soak -d 1h
//
// It fails if a deployment needs more than two seconds to stop, or if a command fails that should
// not.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"allium/mongotest"
	"allium/mongotest/internal/soak"
)

// longestStop is how long a deployment may take to stop.
const longestStop = 2 * time.Second

func main() {
	duration := flag.Duration("d", 10*time.Minute, "how long")
	every := flag.Duration("every", 15*time.Second, "between two samples of the memory")
	stops := flag.Duration("stops", 5*time.Second, "between two deployments that are stopped under load")
	workers := flag.Int("workers", 6, "connections with load")
	sharded := flag.Bool("sharded", false, "a sharded cluster instead of a replica set")
	without := flag.String("without", "", "`names` of steps that are left out, separated by commas")
	seed := flag.Uint64("seed", rand.Uint64(), "of the random numbers")
	flag.Parse()
	cfg := soak.Config{Workers: *workers, Every: *every, Stops: *stops, Seed: *seed, Log: os.Stdout, Without: strings.Split(*without, ",")}
	if *sharded {
		cfg.Topology = mongotest.Sharded(2, 1)
	}
	fmt.Printf("seed %d\n", *seed)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, *duration)
	defer cancel()
	r, err := soak.Run(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	slices.Sort(r.Stops)
	fmt.Printf("%d commands; %+.1f MB of live heap an hour; %d stops, median %v, slowest %v\n",
		r.Commands, r.Growth()/1e6, len(r.Stops), r.Stops[len(r.Stops)/2], r.Slowest())
	for text, n := range r.Failed {
		fmt.Printf("%6d times: %s\n", n, text)
	}
	if r.Slowest() > longestStop || len(r.Failed) > 0 {
		os.Exit(1)
	}
}
