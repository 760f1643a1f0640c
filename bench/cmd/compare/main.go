// Command compare runs the benchmarks of Allium and the official Go driver side by side and prints a table.
//
// Both do the same work in the same process, in turns, so that what else the machine does hits both. The table has the
// median of the rounds; a ratio of 2 says that Allium is twice as fast.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"allium/bench"
)

func main() {
	prefix := flag.String("run", "", "run only the tasks whose names start with this, for example bson or bson/flat")
	rounds := flag.Int("rounds", 7, "how often each driver takes its turn")
	length := flag.Duration("time", 150*time.Millisecond, "how long a turn takes, about")
	cpu := flag.Bool("cpu", false, "measure processor time instead of wall time, for a machine that is busy with other things")
	markdown := flag.Bool("markdown", false, "print the table as Markdown")
	flag.Parse()
	if err := run(*prefix, max(*rounds, 1), *length, *cpu, *markdown); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(prefix string, rounds int, length time.Duration, cpu, markdown bool) error {
	clock, kind := wallTime, "wall time"
	if cpu {
		clock, kind = processorTime, "processor time"
	}
	tasks, err := bench.Tasks(prefix)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, GOMAXPROCS %d; %s, medians of %d rounds of %v\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.GOMAXPROCS(0), kind, rounds, length)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	format := "%s\t%s\t%s\t%s\t%s\t%s\t%s\n"
	if markdown {
		format = "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n"
	}
	fmt.Fprintf(w, format, "task", "Allium MB/s", "allocs/op", "official MB/s", "allocs/op", "ratio", "target")
	if markdown {
		fmt.Fprintf(w, format, "---", "---:", "---:", "---:", "---:", "---:", "---:")
	}
	for _, task := range tasks {
		ours, theirs, err := measure(task, rounds, length, clock)
		if err != nil {
			return fmt.Errorf("%s: %w", task.Name, err)
		}
		target := ""
		if task.Target > 0 {
			target = fmt.Sprintf(">= %g", task.Target)
		}
		fmt.Fprintf(w, format, task.Name,
			fmt.Sprintf("%.0f", ours.speed(task.Bytes)), fmt.Sprint(ours.allocs),
			fmt.Sprintf("%.0f", theirs.speed(task.Bytes)), fmt.Sprint(theirs.allocs),
			fmt.Sprintf("%.2f", theirs.perOp.Seconds()/ours.perOp.Seconds()), target)
		if !markdown {
			w.Flush()
		}
	}
	return w.Flush()
}

var started = time.Now()

func wallTime() time.Duration { return time.Since(started) }

// result is what one driver needs for one operation.
type result struct {
	perOp  time.Duration
	allocs uint64
}

// speed returns megabytes per second; the specification's megabyte is 1,000,000 bytes.
func (r result) speed(bytes int) float64 { return float64(bytes) / 1e6 / r.perOp.Seconds() }

func measure(task bench.Task, rounds int, length time.Duration, clock func() time.Duration) (ours, theirs result, err error) {
	sides := []func(int) error{task.Allium, task.Official}
	var n [2]int
	for i, do := range sides {
		if n[i], err = calibrate(do, length, clock); err != nil {
			return ours, theirs, err
		}
	}
	var results [2][]result
	for range rounds {
		for i, do := range sides {
			r, err := turn(do, n[i], clock)
			if err != nil {
				return ours, theirs, err
			}
			results[i] = append(results[i], r)
		}
	}
	return median(results[0]), median(results[1]), nil
}

// calibrate returns how many operations take about length.
func calibrate(do func(int) error, length time.Duration, clock func() time.Duration) (int, error) {
	for n := 1; ; n *= 4 {
		r, err := turn(do, n, clock)
		if err != nil {
			return 0, err
		}
		if took := r.perOp * time.Duration(n); took > length/8 {
			return max(1, int(length/max(r.perOp, 1))), nil
		}
	}
}

func turn(do func(int) error, n int, clock func() time.Duration) (result, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := clock()
	err := do(n)
	took := clock() - start
	runtime.ReadMemStats(&after)
	return result{
		perOp:  max(took/time.Duration(n), 1),
		allocs: (after.Mallocs - before.Mallocs + uint64(n)/2) / uint64(n),
	}, err
}

func median(results []result) result {
	slices.SortFunc(results, func(a, b result) int { return int(a.perOp - b.perOp) })
	return results[len(results)/2]
}
