package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"allium"
	"allium/bench"
	"allium/bench/internal/nullserver"
	"allium/bench/internal/table"
	"allium/bson"
)

// open opens a client that is closed at the end.
func open(env *bench.Env, uri string, o allium.ClientOptions) (*allium.Client, func(), error) {
	c, err := allium.Open(uri, o)
	if err != nil {
		return nil, nil, err
	}
	if err := c.Ping(context.Background()); err != nil {
		return nil, nil, errors.Join(err, c.Close(context.Background()))
	}
	return c, func() { c.Close(context.Background()) }, nil
}

// goroutines lets goroutines find a document each, as fast as they can.
func goroutines(s settings, env *bench.Env) ([]*plot, error) {
	uri, _, err := env.Null()
	if err != nil {
		return nil, err
	}
	cost := &plot{title: "FindOne: processor time for an operation", x: "goroutines", y: "µs"}
	throughput := &plot{name: "throughput", title: "FindOne: operations per second", x: "goroutines", y: "per second"}
	latency := &plot{name: "latency", title: "FindOne: 99 % are faster than this", x: "goroutines", y: "ms"}
	fairness := &plot{name: "fairness", title: "FindOne: the longest wait, as a multiple of the mean", x: "goroutines",
		y: "times the mean"}
	t := s.table("pool", "goroutines", "per second", "CPU/op", "p50", "p99", "p99.9", "mean", "longest",
		"longest / mean", "longest / turn")
	for _, size := range s.sizes(1, 10, 100, 1000) {
		for _, n := range s.sizes(1, 10, 100, 1000, 5000, 20_000) {
			c, closeClient, err := open(env, uri, allium.ClientOptions{MaxPoolSize: &size})
			if err != nil {
				return nil, err
			}
			r, err := rush(c, n, s.length)
			closeClient()
			if err != nil {
				return nil, err
			}
			total := len(r.latencies)
			var sum time.Duration
			for _, l := range r.latencies {
				sum += l
			}
			at := func(q float64) time.Duration { return r.latencies[min(int(float64(total)*q), total-1)] }
			mean, longest := sum/time.Duration(total), r.latencies[total-1]
			cpu := r.cpu / time.Duration(total)
			// In a fair queue of n, who asks again waits for the others' turns: n operations.
			turn := time.Duration(float64(n) * r.took.Seconds() / float64(total) * 1e9)
			t.Row(fmt.Sprint(size), fmt.Sprint(n), fmt.Sprintf("%.0f", float64(total)/r.took.Seconds()),
				table.Round(cpu), table.Round(at(0.5)), table.Round(at(0.99)),
				table.Round(at(0.999)), table.Round(mean), table.Round(longest),
				fmt.Sprintf("%.1f", longest.Seconds()/mean.Seconds()),
				fmt.Sprintf("%.1f", longest.Seconds()/turn.Seconds()))
			pool, x := fmt.Sprintf("pool of %d", size), float64(n)
			cost.add(pool, x, float64(cpu.Nanoseconds())/1e3)
			throughput.add(pool, x, float64(total)/r.took.Seconds())
			latency.add(pool, x, at(0.99).Seconds()*1e3)
			fairness.add(pool, x, longest.Seconds()/mean.Seconds())
		}
	}
	return []*plot{cost, throughput, latency, fairness}, t.End()
}

// outcome is what a rush saw.
type outcome struct {
	latencies []time.Duration // sorted
	took, cpu time.Duration
}

// rush lets n goroutines find for a time, after each of them has done so once.
func rush(c *allium.Client, n int, length time.Duration) (outcome, error) {
	coll := allium.CollectionOf[nullserver.Sample](c.Database("db"), nullserver.One)
	filter := bson.D{{Key: "_id", Value: nullserver.FileID}}
	ctx := context.Background()
	var failed atomic.Pointer[error]
	var ready, done sync.WaitGroup
	var end time.Time
	begin := make(chan struct{})
	all := make([][]time.Duration, n)
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			if _, err := coll.FindOne(ctx, filter); err != nil {
				failed.Store(&err)
			}
			ready.Done()
			<-begin
			for failed.Load() == nil {
				at := time.Now()
				if at.After(end) {
					return
				}
				if _, err := coll.FindOne(ctx, filter); err != nil {
					failed.Store(&err)
				}
				all[i] = append(all[i], time.Since(at))
			}
		})
	}
	ready.Wait()
	runtime.GC()
	cpu, start := bench.ProcessorTime(), time.Now()
	end = start.Add(length)
	close(begin)
	done.Wait()
	o := outcome{took: time.Since(start), cpu: bench.ProcessorTime() - cpu, latencies: slices.Concat(all...)}
	if err := failed.Load(); err != nil {
		return o, *err
	}
	if len(o.latencies) == 0 {
		return o, errors.New("no operation ended in time: use a longer -time")
	}
	slices.Sort(o.latencies)
	return o, nil
}

// idle opens connections and leaves them alone.
func idle(s settings, env *bench.Env) ([]*plot, error) {
	uri, _, err := env.Null()
	if err != nil {
		return nil, err
	}
	p := &plot{title: "Memory of an idle connection", x: "connections", y: "bytes"}
	t := s.table("connections", "heap each", "stack each", "together", "goroutines", "opened in", "CPU to open one")
	for _, n := range s.sizes(100, 1000, 3000, 10_000) {
		m, err := connect(env, uri, n)
		if err != nil {
			return nil, err
		}
		t.Row(fmt.Sprint(n), each(m.heap, n), each(m.stack, n), each(m.heap+m.stack, n), fmt.Sprint(m.goroutines),
			table.Round(m.took),
			table.Round(m.cpu/time.Duration(n)))
		p.add("heap and stack", float64(n), float64(m.heap+m.stack)/float64(n))
	}
	return []*plot{p}, t.End()
}

// connected is what a client's connections that have nothing to do take.
type connected struct {
	heap, stack int64 // bytes
	goroutines  int
	took, cpu   time.Duration // until they were there
}

// connect opens n connections, measures, and closes them.
func connect(env *bench.Env, uri string, n int) (m connected, err error) {
	heap, stack := memory()
	before := runtime.NumGoroutine()
	start, cpu := time.Now(), bench.ProcessorTime()
	var opened atomic.Int64
	c, closeClient, err := open(env, uri,
		allium.ClientOptions{MinPoolSize: &n, MaxPoolSize: &n, PoolMonitor: counting(&opened)})
	if err != nil {
		return m, err
	}
	defer closeClient()
	for int(opened.Load()) < n {
		if time.Since(start) > time.Minute {
			return m, fmt.Errorf("%d of %d connections after a minute: the limit of open files is one reason",
				opened.Load(), n)
		}
		time.Sleep(time.Millisecond)
	}
	m.took, m.cpu = time.Since(start), bench.ProcessorTime()-cpu
	heapNow, stackNow := memory()
	m.heap, m.stack, m.goroutines = heapNow-heap, stackNow-stack, runtime.NumGoroutine()-before
	runtime.KeepAlive(c)
	return m, nil
}

// streams has change streams wait on one client, and then inserts one document.
func streams(s settings, env *bench.Env) ([]*plot, error) {
	uri, err := env.URI()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	p := &plot{title: "Change streams on one client", x: "streams", y: "for each stream"}
	t := s.table("streams", "client's memory each", "CPU to open one", "CPU of an event each", "all have it after",
		"CPU of a quiet second each")
	for _, n := range s.sizes(1, 10, 100, 1000, 4000, 10_000) {
		heap, stack := memory()
		c, closeClient, err := open(env, uri, allium.ClientOptions{MaxPoolSize: new(0), MaxConnecting: new(16)})
		if err != nil {
			return nil, err
		}
		coll := c.Database("growth").Collection("streams")
		cpu := bench.ProcessorTime()
		var wg sync.WaitGroup
		var got atomic.Int64
		all := make([]*allium.ChangeStream[bson.D], n)
		for i := range n {
			if all[i], err = coll.Watch(ctx, nil); err != nil {
				return nil, err
			}
		}
		opening := bench.ProcessorTime() - cpu
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		events := make(chan struct{}, n)
		for _, stream := range all {
			wg.Go(func() {
				for stream.Next(waiting) {
					got.Add(1)
					events <- struct{}{}
				}
			})
		}
		time.Sleep(time.Duration(n)*200*time.Microsecond + time.Second) // until all of them wait
		cpu = bench.ProcessorTime()
		time.Sleep(time.Second)
		quiet := bench.ProcessorTime() - cpu
		heapNow, stackNow := memory()
		cpu = bench.ProcessorTime()
		start := time.Now()
		if _, err := coll.InsertOne(ctx, bson.D{{Key: "text", Value: strings.Repeat("x", 100)}}); err != nil {
			return nil, err
		}
		for range n {
			select {
			case <-events:
			case <-time.After(time.Minute):
				return nil, fmt.Errorf("%d of %d streams got the event within a minute", got.Load(), n)
			}
		}
		took, eventCPU := time.Since(start), bench.ProcessorTime()-cpu
		cancel()
		wg.Wait()
		for _, stream := range all {
			stream.Close(ctx)
		}
		closeClient()
		t.Row(fmt.Sprint(n), each(heapNow-heap+stackNow-stack, n), table.Round(opening/time.Duration(n)),
			table.Round(eventCPU/time.Duration(n)), table.Round(took),
			table.Round(quiet/time.Duration(n)))
		p.add("memory, bytes", float64(n), float64(heapNow-heap+stackNow-stack)/float64(n))
		p.add("an event, ns", float64(n), float64(eventCPU)/float64(n))
	}
	return []*plot{p}, t.End()
}

// collections lists the collections of larger and larger databases.
func collections(s settings, env *bench.Env) ([]*plot, error) {
	uri, err := env.URI()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	c, closeClient, err := open(env, uri, allium.ClientOptions{})
	if err != nil {
		return nil, err
	}
	defer closeClient()
	db := c.Database("growth")
	p := &plot{title: "ListCollectionNames", x: "collections", y: "ns of the client's processor time for a collection"}
	t := s.table("collections", "took", "CPU for each", "allocations for each", "bytes for each")
	made := 0
	for _, n := range s.sizes(10, 100, 1000, 10_000, 100_000) {
		for ; made < n; made++ {
			if err := db.CreateCollection(ctx, fmt.Sprintf("collection%06d", made)); err != nil {
				return nil, err
			}
		}
		rounds := max(1, 20_000/n)
		runtime.GC()
		var m0, m1 runtime.MemStats
		runtime.ReadMemStats(&m0)
		cpu, start := bench.ProcessorTime(), time.Now()
		for range rounds {
			names, err := db.ListCollectionNames(ctx)
			if err != nil {
				return nil, err
			}
			if len(names) != n {
				return nil, fmt.Errorf("%d names, want %d", len(names), n)
			}
		}
		took, cpuTook := time.Since(start), bench.ProcessorTime()-cpu
		runtime.ReadMemStats(&m1)
		count := rounds * n
		perName := float64(cpuTook) / float64(count)
		t.Row(fmt.Sprint(n), table.Round(took/time.Duration(rounds)), fmt.Sprintf("%.0fns", perName),
			fmt.Sprintf("%.2f", float64(m1.Mallocs-m0.Mallocs)/float64(count)),
			fmt.Sprint((m1.TotalAlloc-m0.TotalAlloc)/uint64(count)))
		p.add("processor time", float64(n), perName)
	}
	return []*plot{p}, t.End()
}

// documents inserts and finds documents of a size.
func documents(s settings, env *bench.Env) ([]*plot, error) {
	uri, err := env.URI()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	c, closeClient, err := open(env, uri, allium.ClientOptions{})
	if err != nil {
		return nil, err
	}
	defer closeClient()
	type document struct {
		ID   int    `bson:"_id"`
		Data []byte `bson:"data"`
	}
	p := &plot{title: "InsertOne and FindOne: the client's processor time", x: "bytes of a document", y: "µs"}
	t := s.table("bytes", "insert took", "CPU", "allocated", "find took", "CPU", "allocated")
	for _, n := range s.sizes(100, 1000, 10_000, 100_000, 1_000_000, 16_700_000) {
		coll := allium.CollectionOf[document](c.Database("growth"), fmt.Sprint("documents", n))
		doc := document{Data: make([]byte, n)}
		rounds := max(8, min(2000, 20_000_000/n))
		row := []string{fmt.Sprint(n)}
		for _, op := range []struct {
			name string
			do   func(i int) error
		}{
			{"InsertOne", func(i int) error { doc.ID = i; _, err := coll.InsertOne(ctx, doc); return err }},
			{"FindOne", func(i int) error {
				found, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: i}})
				if err == nil && len(found.Data) != n {
					err = fmt.Errorf("%d bytes of %d", len(found.Data), n)
				}
				return err
			}},
		} {
			runtime.GC()
			var m0, m1 runtime.MemStats
			runtime.ReadMemStats(&m0)
			cpu, start := bench.ProcessorTime(), time.Now()
			for i := range rounds {
				if err := op.do(i); err != nil {
					return nil, err
				}
			}
			took, cpuTook := time.Since(start)/time.Duration(rounds), (bench.ProcessorTime()-cpu)/time.Duration(rounds)
			runtime.ReadMemStats(&m1)
			row = append(row, table.Round(took), table.Round(cpuTook),
				fmt.Sprint((m1.TotalAlloc-m0.TotalAlloc)/uint64(rounds)))
			p.add(op.name, float64(n), float64(cpuTook.Nanoseconds())/1e3)
		}
		t.Row(row...)
		if err := coll.Drop(ctx); err != nil {
			return nil, err
		}
	}
	return []*plot{p}, t.End()
}
