//go:build unix

package main

import (
	"testing"
)

// Every process that was ended leaves the old state or the new one; some leave each.
func TestKills(t *testing.T) {
	counts, err := run(t.Context(), 30, 7, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + counts.String())
	for _, way := range []string{starting, serving, writing, full, orderly} {
		if counts[way] == nil {
			t.Errorf("no process was %s", way)
		}
	}
	if o := counts[serving]; o != nil && o.fresh > 0 {
		t.Errorf("a process that was killed while serving has kept %d states", o.fresh)
	}
	if o := counts[orderly]; o != nil && o.old > 0 {
		t.Errorf("a process that ended has not kept %d states", o.old)
	}
}

// A state that is neither is told.
func TestNeither(t *testing.T) {
	p := &place{last: writing, old: map[string]string{"find": "a"}, new: map[string]string{"find": "b"}}
	counts := report{}
	if err := p.compare(map[string]string{"find": "a b"}, counts); err == nil {
		t.Error("a third state is taken")
	}
	for _, state := range []string{"a", "b"} {
		if err := p.compare(map[string]string{"find": state}, counts); err != nil {
			t.Error(err)
		}
	}
	if o := counts[writing]; o.old != 1 || o.fresh != 1 {
		t.Errorf("%v", counts)
	}
	p.last = serving
	if err := p.compare(map[string]string{"find": "b"}, counts); err == nil {
		t.Error("a process that was killed while serving has kept its state")
	}
}
