// Command randcmd runs random commands against mongotest and reports those that break a rule,
// shrunk:
//
//	go run ./mongotest/internal/randcmd/cmd/randcmd -d 10m
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"allium/mongotest/internal/randcmd"
)

func main() {
	duration := flag.Duration("d", time.Minute, "how long")
	seed := flag.Uint64("seed", rand.Uint64()>>16, "of the first case; the others follow")
	version := flag.String("version", "4.4.0", "of the server")
	sharded := flag.Bool("sharded", false, "a collection on two shards")
	each := flag.Int("each", 3, "how many findings of a rule are shown")
	flag.Parse()
	c, err := randcmd.Open(*version, *sharded)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rules := map[string]int{}
	cases := 0
	for end := time.Now().Add(*duration); time.Now().Before(end); cases++ {
		f, err := c.Run(*seed + uint64(cases))
		if err != nil {
			fmt.Fprintf(os.Stderr, "seed %d: %v\n", *seed+uint64(cases), err)
			os.Exit(1)
		}
		if f != nil {
			if rules[f.Rule]++; rules[f.Rule] <= *each {
				fmt.Println(f)
			}
		}
	}
	c.Close()
	fmt.Printf("%d cases from seed %d, %d commands\n", cases, *seed, c.Commands)
	for rule, n := range rules {
		fmt.Printf("%6d times: %s\n", n, rule)
	}
	if len(rules) > 0 {
		os.Exit(1)
	}
}
