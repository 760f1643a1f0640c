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
	dumps := flag.String(
		"dumps", "", "`directory` for goroutines and a profile of the processor while a stop is slow, and for profiles of the heap")
	seed := flag.Uint64("seed", rand.Uint64(), "of the random numbers")
	flag.Parse()
	cfg := soak.Config{Workers: *workers, Every: *every, Stops: *stops, Seed: *seed, Log: os.Stdout, Dumps: *dumps,
		Without: strings.Split(*without, ",")}
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
	least, mean, greatest := r.Live()
	fmt.Printf("%d commands; live heap %.1f to %.1f MB, on average %.1f MB, %+.1f MB an hour\n",
		r.Commands, float64(least)/1e6, float64(greatest)/1e6, float64(mean)/1e6, r.Growth()/1e6)
	fmt.Printf("%d stops\n median %v\n 99 %%   %v\nslowest %v\n", len(r.Stops), r.Stop(0.5), r.Stop(0.99), r.Stop(1))
	for text, n := range r.Failed {
		fmt.Printf("%6d times: %s\n", n, text)
	}
	if r.Stop(1).Took > longestStop || len(r.Failed) > 0 {
		os.Exit(1)
	}
}
