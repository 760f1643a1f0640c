package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bench"
	"allium/bench/internal/table"
	"allium/event"
	"allium/mongotest"
)

// counting counts the connections that are ready.
func counting(n *atomic.Int64) *event.PoolMonitor {
	return &event.PoolMonitor{ConnectionReady: func(*event.ConnectionReady) { n.Add(1) }}
}

// simulateVariable is set in a process of this program that simulates one deployment: its kind, a
// space, and its size.
const simulateVariable = "ALLIUM_GROWTH_SIMULATE"

// simulate is the main function of such a process; in others it does nothing. Time in a bubble of
// synctest passes when everybody waits. Package testing has the only door to it, which ends the
// process.
func simulate() {
	what := os.Getenv(simulateVariable)
	if what == "" {
		return
	}
	test := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			kind, size, _ := strings.Cut(what, " ")
			n, err := strconv.Atoi(size)
			if err != nil {
				t.Fatal(err)
			}
			m, err := watch(kind, n)
			if err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(string(line))
		})
	}
	testing.Main(func(string, string) (bool, error) {
		return true, nil
	}, []testing.InternalTest{{Name: "simulation", F: test}}, nil, nil)
}

// simulated runs a simulation in a process of its own.
func simulated(kind string, n int) (m monitored, err error) {
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", simulateVariable, kind, n))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return m, fmt.Errorf("simulate %d %s: %w: %s", n, kind, err, out)
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	return m, json.Unmarshal(line, &m)
}

// metered counts what goes over the connections that it dials.
type metered struct {
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
	read, wrote atomic.Int64
}

func (m *metered) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := m.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: c, m: m}, nil
}

type meteredConn struct {
	net.Conn
	m *metered
}

func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.m.read.Add(int64(n))
	return n, err
}

func (c *meteredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.m.wrote.Add(int64(n))
	return n, err
}

// minutes is how long a deployment is watched.
const minutes = 10

// monitored is what a deployment of a size takes.
type monitored struct {
	Memory         int64 // of all servers, both ends
	Sent, Received int64 // in a minute
	Heartbeats     int64 // likewise
	CPU            time.Duration
	StepDown       time.Duration // until the last server's description is new, simulated
	Discovery      time.Duration // processor time until all servers are known
}

// watch has a client watch a deployment.
func watch(kind string, n int) (m monitored, err error) {
	option := mongotest.ReplicaSet(n)
	if kind == "mongoses" {
		option = mongotest.Sharded(1, n)
	}
	d, err := mongotest.Open(option, mongotest.InMemory())
	if err != nil {
		return m, err
	}
	defer d.Stop()
	ctx := context.Background()
	heap, stack := memory()
	meter := &metered{dial: d.DialContext}
	var beats, changed atomic.Int64
	cpu := bench.ProcessorTime()
	c, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: meter, ServerMonitor: &event.ServerMonitor{
		ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceeded) { beats.Add(1) },
		ServerDescriptionChanged: func(*event.ServerDescriptionChanged) { changed.Store(time.Now().UnixNano()) },
	}})
	if err != nil {
		return m, err
	}
	defer c.Close(ctx)
	if err := c.Ping(ctx); err != nil {
		return m, err
	}
	time.Sleep(time.Second)
	synctest.Wait()
	m.Discovery = bench.ProcessorTime() - cpu
	time.Sleep(time.Minute) // what the first minute makes is not what it keeps
	heapNow, stackNow := memory()
	m.Memory = heapNow - heap + stackNow - stack
	read, wrote, beat := meter.read.Load(), meter.wrote.Load(), beats.Load()
	cpu = bench.ProcessorTime()
	time.Sleep(minutes * time.Minute)
	synctest.Wait()
	m.CPU = (bench.ProcessorTime() - cpu) / minutes
	m.Received, m.Sent = (meter.read.Load()-read)/minutes, (meter.wrote.Load()-wrote)/minutes
	m.Heartbeats = (beats.Load() - beat) / minutes
	if kind == "members" {
		start := time.Now()
		d.StepDown()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		m.StepDown = time.Unix(0, changed.Load()).Sub(start)
	}
	return m, nil
}

// members watches replica sets.
func members(s settings, _ *bench.Env) ([]*plot, error) {
	return deployments(s, "members", s.sizes(3, 7, 15, 30, 50))
}

// mongoses watches sharded clusters.
func mongoses(s settings, _ *bench.Env) ([]*plot, error) {
	return deployments(s, "mongoses", s.sizes(2, 10, 50, 150, 500))
}

func deployments(s settings, what string, sizes []int) ([]*plot, error) {
	p := &plot{title: "Monitoring in a minute, for each of the " + what, x: what, y: "for each"}
	found := &plot{name: "discovery", title: "To discover, for each of the " + what, x: what, y: "for each"}
	heads := []string{what, "CPU/minute", "for each", "sent/minute", "received/minute", "for each", "hellos/minute",
		"memory for each", "CPU to discover", "for each"}
	if what == "members" {
		heads = append(heads, "step-down known after")
	}
	t := s.table(heads...)
	for _, n := range sizes {
		m, err := simulated(what, n)
		if err != nil {
			return nil, err
		}
		count := time.Duration(n)
		row := []string{fmt.Sprint(n), table.Round(m.CPU), table.Round(m.CPU / count), fmt.Sprint(m.Sent),
			fmt.Sprint(m.Received), each(m.Sent+m.Received, n),
			fmt.Sprint(m.Heartbeats), each(m.Memory, n), table.Round(m.Discovery), table.Round(m.Discovery / count)}
		if what == "members" {
			row = append(row, table.Round(m.StepDown))
		}
		t.Row(row...)
		p.add("CPU, µs", float64(n), float64(m.CPU)/float64(n)/1e3)
		p.add("bytes", float64(n), float64(m.Sent+m.Received)/float64(n))
		found.add("CPU, µs", float64(n), float64(m.Discovery)/float64(n)/1e3)
		found.add("memory, bytes", float64(n), float64(m.Memory)/float64(n))
	}
	return []*plot{p, found}, t.End()
}
