// Command compare runs the benchmarks of Allium, the official Go driver and MongoDB's C driver side
// by side and prints a table for each.
//
//	go -C bench run ./cmd/compare -quick             # everything, in a few minutes
//	go -C bench run ./cmd/compare -run multi         # one group
//	go -C bench run ./cmd/compare -full -svg a.svg   # as long as the specification says
//	go -C bench run ./cmd/compare -peers c -memory   # the C driver alone, with memory
//	go -C bench run ./cmd/compare -floor             # beside the floor, too
//
// The drivers do the same work in turns, so that what else the machine does hits all of them. The
// C driver has a process of its own and needs a C compiler, pkg-config and libmongoc (Debian's
// libmongoc-dev); where they are missing the program says so and goes on without. The servers are
// processes of their own: a mongotest, or what $MONGODB_URI names, and a null server with canned
// replies. The figures are medians of the turns. A speed ratio of 2 says that Allium is twice as
// fast, a CPU share of 0.5 that it takes half the processor time.
//
// An interrupt ends it after the task that runs, and what was measured until then is printed. How
// far it is stands on standard error.
//
// What a short operation takes depends much on whether client and server fall on the same core.
// With taskset -c 0 in front, all of them share one, and the figures of runs are alike.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"allium/bench"
	"allium/bench/internal/table"
)

// settings are the flags.
type settings struct {
	prefix                string
	plan                  bench.Plan
	quick                 bool
	markdown, percentiles bool
	svg, peers            string
	files, heap           int
	floor                 bool
}

func main() {
	bench.Child()
	var s settings
	flag.StringVar(&s.prefix, "run", "", "run only the tasks whose names start with one of these, separated by commas, for example bson/flat,null")
	flag.IntVar(&s.plan.Rounds, "rounds", 7, "how often each driver takes its turn")
	flag.DurationVar(&s.plan.Length, "time", 150*time.Millisecond, "how long a turn takes, about")
	flag.BoolVar(&s.quick, "quick", false, "short turns and small parallel data sets")
	flag.BoolVar(&s.plan.Full, "full", false, "the specification's lengths: for each task and driver at least a minute, and then up to 100 iterations or five minutes; and all files")
	flag.BoolVar(&s.markdown, "markdown", false, "print the tables as Markdown")
	flag.BoolVar(&s.percentiles, "percentiles", false,
		"also print the specification's percentiles of the time per operation")
	flag.StringVar(&s.peers, "peers", "official,c", "the drivers beside Allium, separated by commas: official, c")
	flag.BoolVar(&s.plan.Memory, "memory", false,
		"also measure by how much each process grows during a turn at most (Linux)")
	flag.IntVar(&s.heap, "heap", 128, "how many megabytes the program holds beside the drivers while time is measured; memory is measured without")
	flag.BoolVar(&s.floor, "floor", false,
		"also measure the floor: a program that makes the same exchanges with prepared messages")
	flag.StringVar(&s.svg, "svg", "", "also draw the comparison as a bar chart into this `file`")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(s settings) (err error) {
	s.plan.Rounds, s.plan.Heap, s.files = max(s.plan.Rounds, 1), max(s.heap, 0)<<20, 20
	switch {
	case s.plan.Full:
		s.files = 100
	case s.quick:
		s.plan.Rounds, s.plan.Length, s.files = min(s.plan.Rounds, 3), min(s.plan.Length, 60*time.Millisecond), 4
	}
	env := &bench.Env{Files: s.files}
	defer func() { err = errors.Join(err, env.Close()) }()
	peers, err := choosePeers(env, s.peers)
	if err != nil {
		return err
	}
	if s.floor {
		if err := env.WithFloors(); err != nil {
			return err
		}
	}
	tasks, err := bench.Tasks(env, strings.Split(s.prefix, ",")...)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, GOMAXPROCS %d, a heap of %d MB beside the drivers; medians of ", runtime.Version(),
		runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), s.plan.Heap>>20)
	if s.plan.Full {
		fmt.Print("the specification's iterations\n")
	} else {
		fmt.Printf("%d rounds of %v\n", s.plan.Rounds, s.plan.Length)
	}
	all, err := measure(tasks, s.plan, peers)
	if err != nil {
		return err
	}
	if s.floor {
		if err := tableFloor(all, s.markdown); err != nil {
			return err
		}
	}
	if slices.Contains(peers, bench.Official) {
		if err := tableOfficial(all, s.markdown); err != nil {
			return err
		}
	}
	if slices.Contains(peers, bench.C) {
		if err := tableC(all, s); err != nil {
			return err
		}
	}
	if err := bare(all, s); err != nil {
		return err
	}
	if err := composites(all, s.markdown); err != nil {
		return err
	}
	if s.percentiles {
		if err := percentiles(all, s.markdown); err != nil {
			return err
		}
	}
	if s.svg == "" || !slices.Contains(peers, bench.Official) {
		return nil
	}
	return os.WriteFile(s.svg, chart(all), 0o644)
}

// measure measures the tasks, and says on standard error how far it is. After an interrupt it ends
// with the task that runs, and what was measured is shown; a second one ends the program.
func measure(tasks []bench.Task, plan bench.Plan, peers []bench.Peer) (all []bench.Measurement, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	for i, task := range tasks {
		if ctx.Err() != nil {
			fmt.Fprintf(os.Stderr, "compare: interrupted: %d of %d tasks were measured\n", i, len(tasks))
			break
		}
		started := time.Now()
		m, err := bench.Measure(task, plan, peers...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", task.Name, err)
		}
		all = append(all, m)
		fmt.Fprintf(os.Stderr, "compare: %d of %d: %s, %v\n", i+1, len(tasks), task.Name,
			time.Since(started).Round(time.Second))
	}
	return all, nil
}

// choosePeers sets up the peers that are asked for. Without the C driver it goes on, and says so.
func choosePeers(env *bench.Env, list string) ([]bench.Peer, error) {
	var peers []bench.Peer
	for name := range strings.SplitSeq(list, ",") {
		switch peer := bench.Peer(name); peer {
		case bench.Official:
			peers = append(peers, peer)
		case bench.C:
			if err := env.WithC(); err != nil {
				fmt.Printf("without the C driver: %v\n", err)
				continue
			}
			peers = append(peers, peer)
		default:
			return nil, fmt.Errorf("-peers: there is no driver %q, only official and c", name)
		}
	}
	if len(peers) == 0 {
		return nil, errors.New("no driver to compare with")
	}
	return peers, nil
}

// tableOfficial sets Allium beside the official Go driver.
func tableOfficial(all []bench.Measurement, markdown bool) error {
	fmt.Println()
	t := table.New(os.Stdout, markdown, "task", "Allium MB/s", "official MB/s", "speed ratio", "aim", "CPU/op",
		"CPU/op", "CPU share", "aim",
		"allocs", "allocs", "bytes", "bytes", "calls", "calls")
	for i := range all {
		m := &all[i]
		a, o := &m.Allium, m.Peers[bench.Official]
		t.Row(m.Task.Name, speed(a, m.Task.Bytes), speed(o, m.Task.Bytes), ratio(o.Wall, a.Wall),
			aim(">=", m.Task.Target),
			table.Round(a.CPU), table.Round(o.CPU), ratio(a.CPU, o.CPU), aim("<=", m.Task.CPU),
			fmt.Sprint(a.Allocs), fmt.Sprint(o.Allocs), fmt.Sprint(a.Bytes), fmt.Sprint(o.Bytes), calls(a), calls(o))
	}
	return t.End()
}

// tableFloor sets Allium and the others beside the floor, by processor time.
func tableFloor(all []bench.Measurement, markdown bool) error {
	fmt.Println()
	t := table.New(os.Stdout, markdown, "task", "floor CPU/op", "Allium CPU/op", "C CPU/op", "official CPU/op",
		"Allium / floor", "C / floor", "Allium / C",
		"floor allocs", "Allium allocs", "floor calls", "Allium calls")
	for i := range all {
		m := &all[i]
		if m.Floor == nil {
			continue
		}
		a, f := &m.Allium, m.Floor
		row := []string{m.Task.Name, table.Round(f.CPU), table.Round(a.CPU), "none", "none", ratio(a.CPU, f.CPU), "",
			""}
		if c := m.Peers[bench.C]; c != nil {
			row[3], row[6], row[7] = table.Round(c.CPU), ratio(c.CPU, f.CPU), ratio(a.CPU, c.CPU)
		}
		if o := m.Peers[bench.Official]; o != nil {
			row[4] = table.Round(o.CPU)
		}
		t.Row(append(row, fmt.Sprint(f.Allocs), fmt.Sprint(a.Allocs), calls(f), calls(a))...)
	}
	return t.End()
}

// tableC sets Allium beside the C driver. A task that the C driver cannot do keeps its row.
func tableC(all []bench.Measurement, s settings) error {
	fmt.Println()
	heads := []string{"task", "Allium MB/s", "C MB/s", "speed ratio", "CPU/op", "CPU/op", "CPU share", "aim"}
	if s.plan.Memory {
		heads = append(heads, "memory", "memory")
	}
	t := table.New(os.Stdout, s.markdown, heads...)
	for i := range all {
		m := &all[i]
		if strings.HasPrefix(m.Task.Name, "bson/") {
			continue // the C program measures whole operations
		}
		a, c := &m.Allium, m.Peers[bench.C]
		row := []string{m.Task.Name, speed(a, m.Task.Bytes), "none", "", table.Round(a.CPU), "", "", ""}
		if c != nil {
			row = []string{m.Task.Name, speed(a, m.Task.Bytes), speed(c, m.Task.Bytes), ratio(c.Wall, a.Wall),
				table.Round(a.CPU), table.Round(c.CPU), ratio(a.CPU, c.CPU), aim("<=", m.Task.CPUOfC)}
			if s.plan.Memory {
				row = append(row, peak(a), peak(c))
			}
		}
		t.Row(row...)
	}
	return t.End()
}

func peak(u *bench.Usage) string {
	if u.Peak < 0 {
		return "?"
	}
	return fmt.Sprintf("%.1f MB", float64(u.Peak)/1e6)
}

func speed(u *bench.Usage, bytes int) string {
	if bytes == 0 {
		return fmt.Sprintf("%.0f op/s", 1/u.Wall.Seconds())
	}
	return fmt.Sprintf("%.3g", u.Speed(bytes))
}

func ratio(a, b time.Duration) string { return fmt.Sprintf("%.2f", a.Seconds()/b.Seconds()) }

func aim(sign string, v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%s %g", sign, v)
}

func calls(u *bench.Usage) string {
	if u.Calls < 0 {
		return "?"
	}
	return fmt.Sprintf("%.1f", u.Calls)
}

// composites prints the specification's composite scores.
func composites(all []bench.Measurement, markdown bool) error {
	scores := slices.DeleteFunc(bench.Composites(all), func(c bench.Composite) bool { return c.Missing == c.Of })
	if len(scores) == 0 {
		return nil
	}
	fmt.Println()
	t := table.New(os.Stdout, markdown, "composite", "Allium MB/s", "official MB/s", "ratio", "tasks")
	for _, c := range scores {
		official, share := "", ""
		if c.Official > 0 {
			official, share = fmt.Sprintf("%.1f", c.Official), fmt.Sprintf("%.2f", c.Allium/c.Official)
		}
		t.Row(c.Name, fmt.Sprintf("%.1f", c.Allium), official, share, fmt.Sprintf("%d of %d", c.Of-c.Missing, c.Of))
	}
	return t.End()
}

// percentiles prints the specification's percentiles of the time that an operation takes.
func percentiles(all []bench.Measurement, markdown bool) error {
	fmt.Println()
	which := []int{10, 25, 50, 75, 90, 95, 98, 99}
	heads := []string{"task", "driver"}
	for _, p := range which {
		heads = append(heads, fmt.Sprintf("p%d", p))
	}
	t := table.New(os.Stdout, markdown, heads...)
	for _, m := range all {
		for _, side := range []struct {
			name string
			u    *bench.Usage
		}{{"Allium", &m.Allium}, {"official", m.Peers[bench.Official]}, {"C", m.Peers[bench.C]}} {
			if side.u == nil {
				continue
			}
			cells := []string{m.Task.Name, side.name}
			for _, p := range which {
				cells = append(cells, table.Round(side.u.Percentile(p)))
			}
			t.Row(cells...)
		}
	}
	return t.End()
}

// bare sets the drivers beside a bare TCP connection that exchanges as many bytes, in turns with
// them.
func bare(all []bench.Measurement, s settings) error {
	all = slices.DeleteFunc(slices.Clone(all), func(m bench.Measurement) bool { return m.Bare == nil })
	if len(all) == 0 {
		return nil
	}
	fmt.Println()
	t := table.New(os.Stdout, s.markdown, "task", "bare exchange CPU/op", "driver", "CPU/op", "times the bare exchange",
		"aim")
	for i := range all {
		m := &all[i]
		b := m.Bare.CPU
		t.Row(m.Task.Name, table.Round(b), "Allium", table.Round(m.Allium.CPU), ratio(m.Allium.CPU, b), "<= 1.35")
		for _, peer := range []bench.Peer{bench.Official, bench.C} {
			if u := m.Peers[peer]; u != nil {
				t.Row("", "", string(peer), table.Round(u.CPU), ratio(u.CPU, b), "")
			}
		}
	}
	return t.End()
}
