package campaign

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Totals are the figures of several histories.
type Totals struct {
	Histories  int
	Violations int // histories with any
	Stats
}

// NewTotals returns totals of no history.
func NewTotals() *Totals { return &Totals{Stats: newStats()} }

// Count adds a history.
func (t *Totals) Count(o *Outcome) {
	t.Histories++
	if len(o.Violations) > 0 {
		t.Violations++
	}
	t.Add(o.Stats)
}

// Report writes the totals.
func (t *Totals) Report(w io.Writer) {
	fmt.Fprintf(w, "%d histories, %.1f hours, %d operations (%d failed), %d commands\n", t.Histories,
		t.Simulated.Hours(), t.Operations, t.Failed, t.Commands)
	fmt.Fprintf(w, "writes: %d acknowledged, %d of unknown outcome; events followed: %d, handled by consumers: %d; steps migrated: %d\n",
		t.Acked, t.Unknown, t.Events, t.Handled, t.Migrated)
	for _, m := range []struct {
		name string
		of   map[string]int
	}{{"faults", t.Faults}, {"rotations of certificates", t.Rotated}, {"operations", t.Work}, {"errors", t.Errors},
		{"cursors left to expire", t.Cursors}, {"transactions left to expire", t.Open}} {
		sum := 0
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(m.of)) {
			sum += m.of[k]
			parts = append(parts, fmt.Sprintf("%s %d", k, m.of[k]))
		}
		fmt.Fprintf(w, "%s: %d (%s)\n", m.name, sum, strings.Join(parts, ", "))
	}
	fmt.Fprintf(w, "operations that met a certificate while it had to be refused: %d\n", t.Refused)
	fmt.Fprintf(w, "histories with violations: %d\n", t.Violations)
}

// Describe writes what went wrong in a history, and what remains of its plan.
func (o *Outcome) Describe(w io.Writer) {
	p := o.Plan
	fmt.Fprintf(w, "history %d, %s, %v, mean pause %v, authentication %v, TLS %v, election %v, lag %v\n", p.Seed,
		p.Topology, p.Length, p.Think, p.Auth, p.TLS, p.Election, p.Lag)
	for i, c := range p.Clients {
		fmt.Fprintf(w, "  client %d: %+v\n", i, c)
	}
	for _, a := range p.Actors {
		fmt.Fprintf(w, "  %v\n", a)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(w, "  %v\n", s)
	}
	for _, v := range o.Violations {
		fmt.Fprintf(w, "  VIOLATION %s\n", v)
	}
}

// Seeds returns the seed of each history of a campaign in turn.
func Seeds(campaign uint64) func() uint64 {
	r := stream(campaign, 0)
	return r.Uint64
}

// Round makes a time readable.
func Round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
