// Command compare runs the benchmarks of Allium and the official Go driver side by side and prints
// a table.
//
//	go -C bench run ./cmd/compare -quick             # everything, in a few minutes
//	go -C bench run ./cmd/compare -run multi         # one group
//	go -C bench run ./cmd/compare -full -svg a.svg   # as long as the specification says
//
// Both do the same work in the same process, in turns, so that what else the machine does hits
// both. The servers are processes of their own: a mongotest, or what $MONGODB_URI names, and a null
// server with canned replies. The figures are medians of the turns. A speed ratio of 2 says that
// Allium is twice as fast, a CPU share of 0.5 that it takes half the processor time.
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
	prefix                string
	plan                  bench.Plan
	quick                 bool
	markdown, percentiles bool
	svg                   string
	files                 int
}

func main() {
	bench.Child()
	var s settings
	flag.StringVar(&s.prefix, "run", "", "run only the tasks whose names start with one of these, separated by commas, for example bson/flat,null")
	flag.IntVar(&s.plan.Rounds, "rounds", 7, "how often each driver takes its turn")
	flag.DurationVar(&s.plan.Length, "time", 150*time.Millisecond, "how long a turn takes, about")
	flag.BoolVar(&s.quick, "quick", false, "short turns and small parallel data sets")
	flag.BoolVar(&s.plan.Full, "full", false, "the specification's lengths: a minute or 100 iterations for each task and driver, and all files")
	flag.BoolVar(&s.markdown, "markdown", false, "print the tables as Markdown")
	flag.BoolVar(&s.percentiles, "percentiles", false, "also print the specification's percentiles of the time per operation")
	flag.StringVar(&s.svg, "svg", "", "also draw the comparison as a bar chart into this `file`")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(s settings) (err error) {
	s.plan.Rounds, s.files = max(s.plan.Rounds, 1), 20
	switch {
	case s.plan.Full:
		s.files = 100
	case s.quick:
		s.plan.Rounds, s.plan.Length, s.files = min(s.plan.Rounds, 3), min(s.plan.Length, 60*time.Millisecond), 4
	}
	env := &bench.Env{Files: s.files}
	defer func() { err = errors.Join(err, env.Close()) }()
	tasks, err := bench.Tasks(env, strings.Split(s.prefix, ",")...)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, GOMAXPROCS %d; medians of ", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	if s.plan.Full {
		fmt.Print("the specification's iterations\n\n")
	} else {
		fmt.Printf("%d rounds of %v\n\n", s.plan.Rounds, s.plan.Length)
	}
	t := table.New(os.Stdout, s.markdown, "task", "Allium MB/s", "official MB/s", "speed ratio", "aim", "CPU/op", "CPU/op", "CPU share", "aim",
		"allocs", "allocs", "bytes", "bytes", "calls", "calls")
	var all []bench.Measurement
	for _, task := range tasks {
		m, err := bench.Measure(task, s.plan)
		if err != nil {
			return fmt.Errorf("%s: %w", task.Name, err)
		}
		all = append(all, m)
		a, o := &m.Allium, &m.Official
		t.Row(task.Name, speed(a, task.Bytes), speed(o, task.Bytes), ratio(o.Wall, a.Wall), aim(">=", task.Target),
			table.Round(a.CPU), table.Round(o.CPU), ratio(a.CPU, o.CPU), aim("<=", task.CPU),
			fmt.Sprint(a.Allocs), fmt.Sprint(o.Allocs), fmt.Sprint(a.Bytes), fmt.Sprint(o.Bytes), calls(a), calls(o))
	}
	if err := t.End(); err != nil {
		return err
	}
	if err := pingPong(env, all, s); err != nil {
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
	if s.svg == "" {
		return nil
	}
	return os.WriteFile(s.svg, chart(all), 0o644)
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
		t.Row(c.Name, fmt.Sprintf("%.1f", c.Allium), fmt.Sprintf("%.1f", c.Official), fmt.Sprintf("%.2f", c.Allium/c.Official), fmt.Sprintf("%d of %d", c.Of-c.Missing, c.Of))
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
		}{{"Allium", &m.Allium}, {"official", &m.Official}} {
			cells := []string{m.Task.Name, side.name}
			for _, p := range which {
				cells = append(cells, table.Round(side.u.Percentile(p)))
			}
			t.Row(cells...)
		}
	}
	return t.End()
}

// pingPong sets the time of a find against that of a bare exchange of as many bytes.
func pingPong(env *bench.Env, all []bench.Measurement, s settings) error {
	for _, m := range all {
		if m.Task.Name != "null/find one" {
			continue
		}
		// What Allium's find one sends and gets, about.
		do, err := env.PingPong(170, 300)
		if err != nil {
			return err
		}
		bare, err := bench.Measure(bench.Task{Allium: do, Official: do}, s.plan)
		if err != nil {
			return err
		}
		b := min(bare.Allium.CPU, bare.Official.CPU)
		fmt.Printf("\nfind one, against a bare TCP ping-pong of as many bytes (%s CPU): Allium %s (%s times it, the aim is 2), official %s (%s times it)\n",
			table.Round(b), table.Round(m.Allium.CPU), ratio(m.Allium.CPU, b), table.Round(m.Official.CPU), ratio(m.Official.CPU, b))
	}
	return nil
}
