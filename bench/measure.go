package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
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
	// minute, and then until there are 100 of them or five minutes are over.
	Full bool
	// Memory also measures by how much each process grows.
	Memory bool
	// Heap is how many bytes the program holds beside what the drivers do while time is measured:
	// Go's collector runs when there is as much garbage as there is memory in use, so that it runs
	// the less often the more a program holds. Memory is measured without.
	Heap int
}

// ballast is what Plan.Heap asks for. Nobody looks at it, and it holds no pointers.
var ballast []byte

// carry makes ballast n bytes.
func carry(n int) {
	if len(ballast) != n {
		ballast = nil
		ballast = make([]byte, n)
	}
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
	// by how many bytes the process grew in a turn at most (with Plan.Memory), -1 where the kernel
	// does not tell
	Peak int64

	turns []time.Duration // wall time per operation, sorted
}

// Speed returns megabytes per second for operations of a size; the specification's megabyte is
// 1,000,000 bytes.
func (u *Usage) Speed(bytes int) float64 { return float64(bytes) / 1e6 / u.Wall.Seconds() }

// Percentile returns the wall time of an operation by the specification's algorithm (nearest rank).
func (u *Usage) Percentile(p int) time.Duration { return u.turns[max(len(u.turns)*p/100-1, 0)] }

// A Peer is a driver beside Allium.
type Peer string

// The peers.
const (
	Official Peer = "official" // the official Go driver
	C        Peer = "c"        // MongoDB's C driver
)

// Measurement is what the drivers need for a task; a peer that cannot do it is missing.
type Measurement struct {
	Task   Task
	Allium Usage
	Peers  map[Peer]*Usage
	Bare   *Usage // what Task.Bare needs; nil without one
	Floor  *Usage // what Task.Floor needs; nil without one
}

// A side is a driver that takes its turns at a task.
type side struct {
	n     int // operations of a turn
	take  func(n int) (turn, error)
	turns []turn
}

// sides returns Allium's side of a task and those of the peers that can do it.
func (t *Task) sides(peers []Peer, memory bool) (ours *side, theirs map[Peer]*side) {
	goSide := func(do func(int) error) *side {
		return &side{take: func(n int) (turn, error) { return take(t.Before, do, n, memory) }}
	}
	theirs = make(map[Peer]*side)
	for _, peer := range peers {
		switch {
		case peer == Official && t.Official != nil:
			theirs[peer] = goSide(t.Official)
		case peer == C && t.C != nil:
			theirs[peer] = &side{take: func(n int) (turn, error) {
				if t.Before != nil {
					if err := t.Before(); err != nil {
						return turn{}, err
					}
				}
				return t.C(n, memory)
			}}
		}
	}
	return goSide(t.Allium), theirs
}

// done reports whether so many rounds, in which the slowest driver took so long, are enough. In
// full they last a minute at least; after that 100 end it, or five minutes.
func (p *Plan) done(rounds int, took time.Duration) bool {
	if !p.Full {
		return rounds == p.Rounds
	}
	return rounds > 0 && (took >= fullLimit || took >= fullTime && rounds >= fullIterations)
}

// Measure lets the drivers take turns at a task.
func Measure(t Task, plan Plan, peers ...Peer) (Measurement, error) {
	m := Measurement{Task: t, Peers: make(map[Peer]*Usage)}
	defer t.done()
	carry(plan.Heap)
	ours, theirs := t.sides(peers, false)
	sides := append([]*side{ours}, slices.Collect(maps.Values(theirs))...)
	var bare *side
	if t.Bare != nil {
		bare = &side{take: func(n int) (turn, error) { return take(nil, t.Bare, n, false) }}
		sides = append(sides, bare)
	}
	var floor *side
	if t.Floor != nil {
		f, err := t.Floor()
		if err != nil {
			return m, fmt.Errorf("floor: %w", err)
		}
		defer f.Close()
		floor = &side{take: func(n int) (turn, error) { return take(f.Before, f.Do, n, false) }}
		sides = append(sides, floor)
	}
	for _, s := range sides {
		if s.n = t.Scale; plan.Full && t.Scale > 0 {
			continue
		}
		var err error
		if s.n, err = calibrate(s.take, plan.Length); err != nil {
			return m, err
		}
	}
	var took time.Duration // the slowest driver's
	for round := 0; ; round++ {
		if plan.done(round, took) {
			break
		}
		var longest time.Duration
		for _, s := range sides {
			r, err := s.take(s.n)
			if err != nil {
				return m, err
			}
			s.turns = append(s.turns, r)
			longest = max(longest, r.wall*time.Duration(s.n))
		}
		took += longest
	}
	m.Allium = summary(ours.turns)
	for peer, s := range theirs {
		u := summary(s.turns)
		m.Peers[peer] = &u
	}
	if bare != nil {
		u := summary(bare.turns)
		m.Bare = &u
	}
	if floor != nil {
		u := summary(floor.turns)
		m.Floor = &u
	}
	if !plan.Memory {
		return m, nil
	}
	return m, m.memory(t, plan, peers)
}

// memory gives each driver one more turn, of as many operations for all, and notes by how much its
// process grew.
func (m *Measurement) memory(t Task, plan Plan, peers []Peer) error {
	carry(0)
	ours, theirs := t.sides(peers, true)
	n := max(1, int(plan.Length/m.Allium.Wall))
	r, err := ours.take(n)
	m.Allium.Peak = r.peak
	for peer, s := range theirs {
		if err == nil {
			r, err = s.take(n)
			m.Peers[peer].Peak = r.peak
		}
	}
	return err
}

// turn is what one operation of a turn took.
type turn struct {
	wall, cpu     time.Duration
	allocs, bytes uint64
	calls         float64
	peak          int64
}

// calibrate returns how many operations take about length.
func calibrate(take func(n int) (turn, error), length time.Duration) (int, error) {
	if _, err := take(1); err != nil { // it connects, and fills caches
		return 0, err
	}
	for n := 1; ; n *= 4 {
		t, err := take(n)
		if err != nil {
			return 0, err
		}
		if t.wall*time.Duration(n) > length/8 {
			return max(1, int(length/t.wall)), nil
		}
	}
}

// take measures a turn of n operations. With memory, the process gives back what it does not need
// first, which makes the turn slower.
func take(before func() error, do func(int) error, n int, memory bool) (turn, error) {
	if before != nil {
		if err := before(); err != nil {
			return turn{}, err
		}
	}
	runtime.GC()
	if memory {
		debug.FreeOSMemory()
		forgetPeak()
	}
	resident := residentSet("VmRSS")
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
		calls: -1, peak: -1,
	}
	if peak := residentSet("VmHWM"); resident >= 0 && peak >= 0 {
		t.peak = peak - resident
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

// residentSet returns a figure of /proc/self/status in bytes, -1 where there is none.
func residentSet(name string) int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	for line := range bytes.Lines(data) {
		if field, value, _ := bytes.Cut(line, []byte(":")); string(field) == name {
			kB, err := strconv.ParseInt(string(bytes.Fields(value)[0]), 10, 64)
			if err != nil {
				return -1
			}
			return kB << 10
		}
	}
	return -1
}

// forgetPeak lets the peak of the resident set start again, where the kernel can do that.
func forgetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
