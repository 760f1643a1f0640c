package main

import (
	"allium/internal/patch"
	"os"
	"path/filepath"
	"testing"
)

// Every bug is still a change of one place of the code, so that the list cannot go out of date
// unseen.
func TestBugsFit(t *testing.T) {
	if len(bugs) < 20 {
		t.Errorf("%d bugs, want 20", len(bugs))
	}
	names := map[string]bool{}
	for _, b := range bugs {
		if names[b.name] {
			t.Errorf("two bugs are called %q", b.name)
		}
		names[b.name] = true
		for _, e := range b.edits {
			text, err := os.ReadFile(filepath.Join("../../../..", e.file))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := patch.Once(text, e.old, e.new); err != nil || e.old == e.new {
				t.Errorf("%s: %s: %v", b.name, e.file, err)
			}
		}
	}
}
