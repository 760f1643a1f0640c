// Command growth shows how the driver's cost grows with what it is asked for: with goroutines and
// connections, members and mongoses, change streams, collections and the size of documents.
//
//	go -C bench run ./cmd/growth -markdown -svg ../docs/growth      # everything, two minutes
//	go -C bench run ./cmd/growth -run members                       # one part
//	go -C bench run ./cmd/growth -quick                             # without the greatest sizes
//
// The parts are goroutines, idle, members, mongoses, streams, collections and documents. Members
// and mongoses are simulated: a mongotest deployment and the client are in one process, on a
// network in memory and on the clock of a testing/synctest bubble, and what is measured holds both
// ends. Everything else runs over TCP against a server in a process of its own, on the same
// machine. With -svg, each part draws its pictures: PREFIX-part.svg and, where there is more to
// see, PREFIX-part-what.svg.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"allium/bench"
	"allium/bench/internal/table"
)

// settings are the flags.
type settings struct {
	parts    string
	length   time.Duration
	quick    bool
	markdown bool
	svg      string
}

// A part measures one kind of growth, prints its table and returns its pictures.
type part struct {
	name, about string
	run         func(settings, *bench.Env) ([]*plot, error)
}

var parts = []part{
	{"goroutines", "FindOne by goroutines that wait for nothing else, on pools of a size; the null server", goroutines},
	{"idle", "connections that have nothing to do: memory of the client for each; the null server", idle},
	{"members", "a client of a replica set, and what monitoring it takes in a minute; simulated, both ends", members},
	{"mongoses", "a client of a sharded cluster, and what monitoring it takes in a minute; simulated, both ends",
		mongoses},
	{"streams", "change streams that wait at the same time, and one event for all of them; mongotest", streams},
	{"collections", "ListCollectionNames of a database; mongotest", collections},
	{"documents", "InsertOne and FindOne of a document with one binary field; mongotest", documents},
}

func main() {
	bench.Child()
	simulate()
	var s settings
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	flag.StringVar(&s.parts, "run", "", "run only these parts, separated by commas: "+strings.Join(names, ", "))
	flag.DurationVar(&s.length, "time", time.Second, "how long each measurement of throughput takes")
	flag.BoolVar(&s.quick, "quick", false, "leave out the greatest sizes")
	flag.BoolVar(&s.markdown, "markdown", false, "print the tables as Markdown")
	flag.StringVar(&s.svg, "svg", "",
		"draw each part into `PREFIX`-part.svg, and further pictures of it into PREFIX-part-what.svg")
	flag.Parse()
	if err := run(s, names); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func run(s settings, names []string) (err error) {
	chosen := names
	if s.parts != "" {
		chosen = strings.Split(s.parts, ",")
	}
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return fmt.Errorf("-run: there is no part %q, only %s", name, strings.Join(names, ", "))
		}
	}
	fmt.Printf("%s %s/%s, GOMAXPROCS %d\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	for _, p := range parts {
		if slices.Contains(chosen, p.name) {
			if err := s.part(p); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// part runs one part with servers of its own, so that none of them has grown already.
func (s settings) part(p part) (err error) {
	env := &bench.Env{}
	defer func() { err = errors.Join(err, env.Close()) }()
	fmt.Printf("\n%s: %s\n\n", p.name, p.about)
	pictures, err := p.run(s, env)
	if err != nil || s.svg == "" {
		return err
	}
	for _, picture := range pictures {
		name := s.svg + "-" + p.name
		if picture.name != "" {
			name += "-" + picture.name
		}
		if err := os.WriteFile(name+".svg", picture.svg(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sizes returns those that are measured.
func (s settings) sizes(all ...int) []int {
	if s.quick {
		return all[:(len(all)+1)/2]
	}
	return all
}

func (s settings) table(heads ...string) *table.Table {
	return table.New(os.Stdout, s.markdown, heads...)
}

// memory returns the bytes of the heap and of the stacks that are in use, after a collection.
func memory() (heap, stack int64) {
	runtime.GC()
	runtime.GC() // the first leaves what lies in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse)
}

func each(total int64, n int) string { return fmt.Sprint(total / int64(n)) }
