// Command nightly runs the tests that are for the night, those that use package nightly, in all
// modules below the working directory, and no others.
//
//	go run ./internal/nightly/cmd/nightly -timeout 60m
//
// Its arguments are flags of go test.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"allium/internal/nightly"
	"allium/internal/testuse"
)

func main() {
	commands, err := plan(".", os.Args[1:])
	status := 0
	for _, cmd := range commands {
		fmt.Println(cmd.Dir+":", strings.Join(cmd.Args[1:], " "))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		failed := cmd.Run()
		if exit := (*exec.ExitError)(nil); errors.As(failed, &exit) {
			status = max(status, exit.ExitCode())
		} else {
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nightly:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// plan returns a command for each module below root, or root itself, that has tests for the night.
func plan(root string, args []string) (commands []*exec.Cmd, err error) {
	err = filepath.WalkDir(root, func(dir string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || !e.IsDir():
			return err
		case dir != root && (e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".")):
			return filepath.SkipDir
		case !testuse.IsModule(dir):
			return nil
		}
		found, err := testuse.Of(dir, "nightly")
		if err != nil || len(found) == 0 {
			return err
		}
		pkgs, names := []string{}, map[string]bool{}
		for _, pkg := range slices.Sorted(maps.Keys(found)) {
			pkgs = append(pkgs, "./"+pkg)
			for _, name := range found[pkg] {
				names[name] = true
			}
		}
		list := slices.Sorted(maps.Keys(names))
		run := []string{"test", "-run", "^(" + strings.Join(list, "|") + ")$"}
		cmd := exec.Command("go", slices.Concat(run, args, pkgs)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), nightly.Variable+"=1")
		commands = append(commands, cmd)
		return nil
	})
	if err == nil && len(commands) == 0 {
		err = errors.New("no test uses package nightly: is this the root of the repository?")
	}
	return commands, err
}
