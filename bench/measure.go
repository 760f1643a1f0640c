package bench

import (
	"bytes"
	"cmp"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// Plan says how long tasks are measured.
type Plan struct {
	// Rounds is how often each driver takes its turn, and Length how long a turn takes, about.
	Rounds int
	Length time.Duration
	// Full measures as the specification says instead: iterations of a task's Scale, for at least a
	// minute or 100 of them, for each driver.
	Full bool
}

// What the specification says about the length of a measurement.
const (
	fullTime       = time.Minute
	fullIterations = 100
	fullLimit      = 5 * time.Minute
)

// Usage is what one driver needs for one operation of a task.
type Usage struct {
	Wall   time.Duration // the median of the turns
	CPU    time.Duration // processor time of the process, the garbage collector's included; the median
	Allocs uint64
	Bytes  uint64  // allocated
	Calls  float64 // system calls that read and write, -1 where they cannot be counted

	turns []time.Duration // wall time per operation, sorted
}

// Speed returns megabytes per second for operations of a size; the specification's megabyte is
// 1,000,000 bytes.
func (u *Usage) Speed(bytes int) float64 { return float64(bytes) / 1e6 / u.Wall.Seconds() }

// Percentile returns the wall time of an operation by the specification's algorithm (nearest rank).
func (u *Usage) Percentile(p int) time.Duration { return u.turns[max(len(u.turns)*p/100-1, 0)] }

// Measurement is what both drivers need for a task.
type Measurement struct {
	Task             Task
	Allium, Official Usage
}

// Measure lets the drivers take turns at a task.
func Measure(t Task, plan Plan) (Measurement, error) {
	m := Measurement{Task: t}
	sides := []func(int) error{t.Allium, t.Official}
	results := make([][]turn, len(sides))
	var n [2]int
	for i, do := range sides {
		if plan.Full && t.Scale > 0 {
			n[i] = t.Scale
			continue
		}
		var err error
		if n[i], err = calibrate(t.Before, do, plan.Length); err != nil {
			return m, err
		}
	}
	var took time.Duration // the slower driver's
	for round := 0; ; round++ {
		if !plan.Full && round == plan.Rounds || plan.Full && round > 0 && (round >= fullIterations || took >= fullTime && round >= plan.Rounds || took >= fullLimit) {
			break
		}
		var longest time.Duration
		for i, do := range sides {
			r, err := take(t.Before, do, n[i])
			if err != nil {
				return m, err
			}
			results[i] = append(results[i], r)
			longest = max(longest, r.wall*time.Duration(n[i]))
		}
		took += longest
	}
	m.Allium, m.Official = summary(results[0]), summary(results[1])
	return m, nil
}

// turn is what one operation of a turn took.
type turn struct {
	wall, cpu     time.Duration
	allocs, bytes uint64
	calls         float64
}

// calibrate returns how many operations take about length.
func calibrate(before func() error, do func(int) error, length time.Duration) (int, error) {
	for n := 1; ; n *= 4 {
		t, err := take(before, do, n)
		if err != nil {
			return 0, err
		}
		if t.wall*time.Duration(n) > length/8 {
			return max(1, int(length/t.wall)), nil
		}
	}
}

// take measures a turn of n operations.
func take(before func() error, do func(int) error, n int) (turn, error) {
	if before != nil {
		if err := before(); err != nil {
			return turn{}, err
		}
	}
	runtime.GC()
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	calls, cpu, start := systemCalls(), ProcessorTime(), time.Now()
	err := do(n)
	wall, cpu1, calls1 := time.Since(start), ProcessorTime(), systemCalls()
	runtime.ReadMemStats(&m1)
	count := uint64(n)
	t := turn{
		wall: max(wall/time.Duration(n), 1), cpu: max((cpu1-cpu)/time.Duration(n), 1),
		allocs: (m1.Mallocs - m0.Mallocs + count/2) / count, bytes: (m1.TotalAlloc - m0.TotalAlloc + count/2) / count,
		calls: -1,
	}
	if calls >= 0 {
		t.calls = float64(calls1-calls) / float64(n)
	}
	return t, err
}

func summary(turns []turn) Usage {
	middle := len(turns) / 2
	if len(turns)%2 == 0 {
		middle-- // as Percentile counts
	}
	by := func(less func(a, b turn) int) turn {
		return slices.SortedFunc(slices.Values(turns), less)[max(middle, 0)]
	}
	u := Usage{
		Wall:   by(func(a, b turn) int { return cmp.Compare(a.wall, b.wall) }).wall,
		CPU:    by(func(a, b turn) int { return cmp.Compare(a.cpu, b.cpu) }).cpu,
		Allocs: by(func(a, b turn) int { return cmp.Compare(a.allocs, b.allocs) }).allocs,
		Bytes:  by(func(a, b turn) int { return cmp.Compare(a.bytes, b.bytes) }).bytes,
		Calls:  by(func(a, b turn) int { return cmp.Compare(a.calls, b.calls) }).calls,
	}
	for _, t := range turns {
		u.turns = append(u.turns, t.wall)
	}
	slices.Sort(u.turns)
	return u
}

// systemCalls returns how many system calls of the process have read or written, -1 where the
// kernel does not tell.
func systemCalls() int64 {
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return -1
	}
	var n int64
	for line := range bytes.Lines(data) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		if s := string(name); s == "syscr" || s == "syscw" {
			v, _ := strconv.ParseInt(string(value), 10, 64)
			n += v
		}
	}
	return n
}
