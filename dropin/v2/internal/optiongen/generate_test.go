package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGenerated makes the builders out of their table, and compares them with builders.go.
func TestGenerated(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	table, err := os.ReadFile(filepath.Join(folder, "options.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(table)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(filepath.Join(folder, "builders.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("builders.go is not what options.txt says: go run ./internal/optiongen")
	}
	for _, bad := range []string{"type Find Find\n", "Limit int\n", "\tLimit int\n", "type Find Find a search\n\tLimit int\n"} {
		if _, err := generate([]byte(bad)); err == nil {
			t.Errorf("%q is a table", bad)
		}
	}
}
