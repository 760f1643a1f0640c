package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGenerated makes the files out of the tables, and compares them with what is there.
func TestGenerated(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	made, err := files()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range made {
		have, err := os.ReadFile(outputs[i])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not what options.txt says: go run ./internal/optiongen", outputs[i])
		}
	}
	for _, bad := range []string{"type Find Find\n", "type Find Find merge\n", "Limit int\n", "\tLimit int\n"} {
		if _, err := parse(bad, map[string]string{}, true); err == nil {
			t.Errorf("%q is a table", bad)
		}
	}
}
