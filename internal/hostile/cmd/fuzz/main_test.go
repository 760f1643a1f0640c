package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// Targets are found in all packages and modules, and each is run in its own module.
func TestTargets(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := targets(fstest.MapFS{
		"go.mod":                 file("module a\n"),
		"a_test.go":              file("package a\n\nfunc FuzzA(f *testing.F) {\n}\n"),
		"b/c/c_test.go":          file("package c\n\nfunc FuzzC(f *testing.F) {}\n\nfunc FuzzD(f *testing.F) {}\n"),
		"b/c/testdata/x_test.go": file("func FuzzNot(f *testing.F) {}\n"),
		"b/c/c.go":               file("func FuzzNot(f *testing.F) {}\n"),
		"m/go.mod":               file("module m\n"),
		"m/n/n_test.go":          file("// func FuzzNot(f)\nfunc FuzzN(f *testing.F) {}\n"),
		".git/x_test.go":         file("func FuzzNot(f *testing.F) {}\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []target{{".", ".", "FuzzA"}, {".", "b/c", "FuzzC"}, {".", "b/c", "FuzzD"}, {"m", "n", "FuzzN"}}
	if !slices.Equal(got, want) {
		t.Errorf("targets %v, want %v", got, want)
	}
	all, err := targets(os.DirFS("../../../.."))
	if err != nil || len(all) < 37 || !slices.Contains(all, target{"kerberos", "internal/gss", "FuzzTokens"}) {
		t.Errorf("%d targets of this repository: %v, %v", len(all), all, err)
	}
}

// read takes the last figures and the input that failed.
func TestRead(t *testing.T) {
	const figures = "fuzz: elapsed: 0s, gathering baseline coverage: 0/4 completed\nfuzz: elapsed: 3s, execs: 100 (33/sec), new interesting: 1 (total: 5)\n" +
		"fuzz: elapsed: 6s, execs: 250 (50/sec), new interesting: 2 (total: 6)\n"
	for out, want := range map[string]result{
		figures + "PASS\nok  \tallium/bson\t6.1s\n": {execs: "250", corpus: "6", verdict: "nothing"},
		figures + "--- FAIL: FuzzRaw (6.01s)\n    Failing input written to testdata/fuzz/FuzzRaw/0a1b\n    To re-run:\nFAIL\n": {execs: "250", corpus: "6", verdict: "`testdata/fuzz/FuzzRaw/0a1b`"},
		"# allium/bson\nx_test.go:1:1: syntax error\nFAIL\tallium/bson [build failed]\n":                                       {},
	} {
		if got := read(out); got != want {
			t.Errorf("%q: %+v, want %+v", out, got, want)
		}
	}
}

// runAll runs as many at once as it may, each once, and counts those that fail; none begins after
// an interrupt.
func TestRunAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []target{{".", "a", "FuzzA"}, {".", "b", "FuzzB"}, {".", "c", "FuzzC"}, {".", "d", "FuzzD"}, {".", "e", "FuzzE"}}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		var running, most, ran atomic.Int32
		var out strings.Builder
		failed := runAll(ctx, all, 2, func(u target) result {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			ran.Add(1)
			time.Sleep(time.Minute)
			return result{execs: "7", verdict: "nothing", failed: u.name == "FuzzB"}
		}, &out)
		if most.Load() != 2 || ran.Load() != 4 || failed != 1 || strings.Count(out.String(), "| 7 | - | nothing |\n") != 4 {
			t.Errorf("%d at once, %d ran, %d failed:\n%s", most.Load(), ran.Load(), failed, out.String())
		}
	})
}
