package soak

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// Stop is how a deployment stopped under load.
type Stop struct {
	Took time.Duration // of the clock on the wall
	// Ran is the time that threads of the process had a processor for, Waited the time for which
	// they had work and none, the longest wait of one thread. 0 where the system does not tell.
	Ran, Waited time.Duration
	// Queued is the longest time in which a goroutine had work and no thread.
	Queued time.Duration
}

func (s Stop) String() string {
	return fmt.Sprintf("%v (ran %v, a thread waited %v for a processor, a goroutine up to %v for a thread)",
		s.Took.Round(time.Millisecond), s.Ran.Round(time.Millisecond), s.Waited.Round(time.Millisecond),
		s.Queued.Round(time.Millisecond))
}

// slow is after how long a stop is looked into.
const slow = 500 * time.Millisecond

// threads is what the system tells of the threads of the process: by thread, the time that it ran
// and the time that it waited for a processor.
type threads map[string][2]time.Duration

func readThreads() threads {
	t := threads{}
	files, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text))
		if len(fields) < 2 {
			continue
		}
		ran, _ := strconv.ParseInt(fields[0], 10, 64)
		waited, _ := strconv.ParseInt(fields[1], 10, 64)
		t[f] = [2]time.Duration{time.Duration(ran), time.Duration(waited)}
	}
	return t
}

// since returns for how long threads ran since before was read, and the longest wait of one.
func (t threads) since(before threads) (ran, waited time.Duration) {
	for f, now := range t {
		then := before[f]
		ran += now[0] - then[0]
		waited = max(waited, now[1]-then[1])
	}
	return ran, waited
}

// latencies is how many goroutines have waited how long for a thread.
func latencies() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return &metrics.Float64Histogram{}
	}
	return s[0].Value.Float64Histogram()
}

// longest returns the lower bound of the longest wait that came between two readings.
func longest(before, after *metrics.Float64Histogram) time.Duration {
	for i := len(after.Counts) - 1; i >= 0; i-- {
		if after.Counts[i] > before.Counts[i] && !math.IsInf(after.Buckets[i], 0) {
			return time.Duration(after.Buckets[i] * float64(time.Second))
		}
	}
	return 0
}

// timed runs stop and measures it. If it is slow, all goroutines and a profile of the processor are
// written to files of the directory; an empty one: none.
func timed(dir string, stop func()) Stop {
	threadsBefore, latenciesBefore := readThreads(), latencies()
	begin := time.Now()
	done := make(chan struct{})
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		if dir == "" {
			return
		}
		timer := time.NewTimer(slow)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			look(dir, begin, done)
		}
	}()
	stop()
	s := Stop{Took: time.Since(begin)}
	s.Ran, s.Waited = readThreads().since(threadsBefore)
	s.Queued = longest(latenciesBefore, latencies())
	close(done)
	<-looked
	return s
}

// look writes what goroutines do now, and what uses the processor until done is closed.
func look(dir string, begin time.Time, done <-chan struct{}) {
	name := filepath.Join(dir, "stop-"+begin.UTC().Format("150405.000"))
	buf := make([]byte, 4<<20)
	_ = os.WriteFile(name+".goroutines", buf[:runtime.Stack(buf, true)], 0o644)
	f, err := os.Create(name + ".pprof")
	if err != nil {
		return
	}
	defer f.Close()
	if pprof.StartCPUProfile(f) == nil {
		<-done
		pprof.StopCPUProfile()
	}
}

// heapProfiles writes what the live heap consists of to files of a directory, every ten minutes:
// two of them tell what has grown. An empty directory: none.
type heapProfiles struct {
	dir  string
	next time.Duration
}

// write writes a profile if it is time for one. The caller has collected the garbage.
func (p *heapProfiles) write(at time.Duration) {
	if p.dir == "" || at < p.next {
		return
	}
	p.next = at.Truncate(10*time.Minute) + 10*time.Minute
	f, err := os.Create(filepath.Join(p.dir, fmt.Sprintf("heap-%02d.pprof", int(at.Minutes()))))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer f.Close()
	if err := pprof.Lookup("heap").WriteTo(f, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
