package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"testing"

	"allium/bench"
)

func TestMain(m *testing.M) {
	bench.Child()
	if os.Getenv(simulateVariable) != "" {
		simulate()
	}
	os.Exit(m.Run())
}

// An idle connection takes at most 6 kB of the client's memory, and no goroutine.
func TestIdleConnection(t *testing.T) {
	env := &bench.Env{}
	defer env.Close()
	uri, _, err := env.Null()
	if err != nil {
		t.Fatal(err)
	}
	const n = 300
	m, err := connect(env, uri, n)
	if err != nil {
		t.Fatal(err)
	}
	if each := (m.heap + m.stack) / n; each > 6000 {
		t.Errorf("an idle connection takes %d bytes", each)
	}
	if m.goroutines > 20 {
		t.Errorf("%d idle connections take %d goroutines", n, m.goroutines)
	}
}

// Each server says hello six times a minute, and what is sent for it does not grow with the number
// of servers.
func TestMonitoringTraffic(t *testing.T) {
	few, err := simulated("mongoses", 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind string
		n    int
	}{{"mongoses", 20}, {"members", 7}} {
		many, err := simulated(c.kind, c.n)
		if err != nil {
			t.Fatal(err)
		}
		if many.Heartbeats != int64(6*c.n) {
			t.Errorf("%d %s: %d hellos in a minute, want 6 of each", c.n, c.kind, many.Heartbeats)
		}
		if many.Sent != few.Sent/2*int64(c.n) {
			t.Errorf("%d %s: %d bytes sent in a minute, to 2 mongoses %d", c.n, c.kind, many.Sent, few.Sent)
		}
	}
}

// A picture is XML, also with a value of zero.
func TestPlot(t *testing.T) {
	p := &plot{title: "a & b", x: "x", y: "y"}
	p.add("one", 1, 0)
	p.add("one", 20_000, 5e9)
	d := xml.NewDecoder(bytes.NewReader(p.svg()))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
