package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Every module's tests for the night run, with the variable, and no others.
func TestPlan(t *testing.T) {
	root, all := t.TempDir(), fstest.MapFS{}
	const uses = "package x\n\nimport \"allium/internal/nightly\"\n\nfunc TestNAME(t *testing.T) { nightly.Only(t, \"dear\") }\n"
	for name, text := range map[string]string{
		"go.mod":                   "module x\n",
		"a_test.go":                strings.ReplaceAll(uses, "NAME", "A"),
		"in/b_test.go":             strings.ReplaceAll(uses, "NAME", "B") + "\nfunc TestEvery(t *testing.T) {}\n",
		"deep/module/go.mod":       "module y\n",
		"deep/module/in/c_test.go": strings.ReplaceAll(uses, "NAME", "C"),
		"quiet/go.mod":             "module z\n",
		"quiet/d_test.go":          "package x\n",
	} {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	if err := os.CopyFS(root, all); err != nil {
		t.Fatal(err)
	}
	commands, err := plan(root, []string{"-v"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range commands {
		dir, err := filepath.Rel(root, c.Dir)
		if err != nil || !slices.Contains(c.Env, "ALLIUM_NIGHTLY=1") {
			t.Errorf("%v, environment %q", err, c.Env)
		}
		got = append(got, filepath.ToSlash(dir)+": "+strings.Join(c.Args, " "))
	}
	want := []string{
		".: go test -run ^(TestA|TestB)$ -v ./. ./in",
		"deep/module: go test -run ^(TestC)$ -v ./in",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if _, err := plan(filepath.Join(root, "quiet"), nil); err == nil {
		t.Error("a repository without tests for the night has some")
	}
}

// The project's own: what .ci/nightly runs is not nothing, and nothing hides.
func TestProject(t *testing.T) {
	commands, err := plan("../../../..", nil)
	if err != nil || len(commands) < 2 {
		t.Errorf("%d modules have tests for the night, %v", len(commands), err)
	}
}
