// Command jstests runs the server's own tests on mongotest and compares with the list of package
// jstests what passes.
//
//	go run ./mongotest/internal/jstests/cmd/jstests -root SNAPSHOT -run 'node jsrun.cjs'
//
// SNAPSHOT is a checkout of the server's public sources, of which the folders jstests and
// src/mongo/shell are read. The program that -run names takes the place of the server's shell: it
// is called with host:port and the file of a test, and with the folders in its environment (ROOT,
// SHELL_SRC), and ends with 0 if the test passes. In its handshake it says that it is the
// application "MongoDB Shell", as the shell does: tests of the profiler look for that. Each test
// has a deployment of its own, whose clock is the real one. The result is 1 if something is not as
// the list has it, which -update changes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"allium/mongotest"
	"allium/mongotest/internal/jstests"
)

// suites are the folders of tests that run on one deployment.
var suites = []string{"core", "aggregation", "change_streams"}

// needsSet finds the tests whose own tags ask for replication.
var needsSet = regexp.MustCompile(
	`requires_replication|uses_transactions|uses_change_streams|requires_majority_read_concern`)

type runner struct {
	root, program, version string
	limit                  time.Duration
}

func main() {
	var r runner
	flag.StringVar(&r.root, "root", "", "`folder` that has jstests and src/mongo/shell of the server")
	flag.StringVar(&r.program, "run", "", "`program`, with its arguments, that runs a test")
	flag.StringVar(&r.version, "version", "5.0", "server `version` to behave as")
	flag.DurationVar(&r.limit, "limit", time.Minute, "a test may take this `duration`")
	only := flag.String("only", "", "only tests whose path matches this regular `expression`")
	atOnce := flag.Int("at-once", 2, "how `many` tests run at a time")
	update := flag.String("update", "",
		"write the list anew to this `file`; what newly fails gets a reason that begins with ?")
	verbose := flag.Bool("v", false, "print each test")
	flag.Parse()
	if r.root == "" || r.program == "" {
		flag.Usage()
		os.Exit(2)
	}
	rows, changes, err := r.all(*only, *atOnce, *verbose)
	if err == nil && *update != "" {
		err = jstests.Write(*update, rows)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "jstests:", err)
		os.Exit(2)
	}
	count := map[jstests.Verdict]int{}
	for _, row := range rows {
		count[row.Verdict]++
	}
	fmt.Printf("%d tests: %d pass, %d cannot, %d are open; %d changes\n",
		len(rows), count[jstests.Passes], count[jstests.Cannot], count[jstests.Open], changes)
	if changes > 0 {
		os.Exit(1)
	}
}

// all runs the tests that match, and returns the list as it is now.
func (r *runner) all(only string, atOnce int, verbose bool) (rows []jstests.Row, changes int, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, 0, err
	}
	if rows, err = jstests.List(); err != nil {
		return nil, 0, err
	}
	files, err := r.files()
	if err != nil {
		return nil, 0, err
	}
	known := map[string]bool{}
	for _, row := range rows {
		known[row.File] = true
		if !slices.Contains(files, row.File) {
			fmt.Printf("%s: is in the list and not in the folder\n", row.File)
			changes++
		}
	}
	for _, file := range files {
		if !known[file] {
			rows = append(rows,
				jstests.Row{File: file, Verdict: jstests.Open, ReplSet: r.replSet(file), Reason: "? new"})
		}
	}
	slices.SortFunc(rows, func(a, b jstests.Row) int { return strings.Compare(a.File, b.File) })
	var wg sync.WaitGroup
	var mu sync.Mutex
	turn := make(chan struct{}, atOnce)
	for i := range rows {
		row := &rows[i]
		if !match.MatchString(row.File) || !slices.Contains(files, row.File) {
			continue
		}
		wg.Add(1)
		turn <- struct{}{}
		go func() {
			defer func() { <-turn; wg.Done() }()
			said, err := r.run(*row)
			mu.Lock()
			defer mu.Unlock()
			if verbose {
				fmt.Printf("%s: %s\n", row.File, said)
			}
			switch passes := err == nil; {
			case passes == (row.Verdict == jstests.Passes) && known[row.File]:
				return
			case passes:
				row.Verdict, row.Reason = jstests.Passes, ""
				fmt.Printf("%s: passes\n", row.File)
			default:
				row.Verdict, row.Reason = jstests.Open, "? "+said
				fmt.Printf("%s: fails: %s\n", row.File, said)
			}
			changes++
		}()
	}
	wg.Wait()
	return rows, changes, nil
}

// files returns the tests that there are.
func (r *runner) files() (files []string, err error) {
	top := filepath.Join(r.root, "jstests")
	for _, suite := range suites {
		err = errors.Join(err, filepath.WalkDir(filepath.Join(top, suite),
			func(path string, e fs.DirEntry, err error) error {
				if err == nil && e.IsDir() && e.Name() == "libs" {
					return fs.SkipDir
				}
				if err == nil && strings.HasSuffix(path, ".js") {
					path, err = filepath.Rel(top, path)
					files = append(files, filepath.ToSlash(path))
				}
				return err
			}))
	}
	return files, err
}

// replSet reports whether a test that the list does not have runs on a replica set.
func (r *runner) replSet(file string) bool {
	text, err := os.ReadFile(filepath.Join(r.root, "jstests", file))
	return err == nil && (strings.HasPrefix(file, "change_streams/") || strings.HasPrefix(file, "core/txns/") ||
		needsSet.Match(text))
}

// run runs a test, and returns the first line of what it says about its end.
func (r *runner) run(row jstests.Row) (said string, err error) {
	topology := mongotest.Standalone()
	if row.ReplSet {
		topology = mongotest.ReplicaSet(1)
	}
	d, err := mongotest.Open(mongotest.Version(r.version), topology)
	if err != nil {
		return "does not start: " + err.Error(), err
	}
	defer d.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), r.limit)
	defer cancel()
	words := append(strings.Fields(r.program), d.Hosts()[0], filepath.Join(r.root, "jstests", row.File))
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "QUIET=1", "ROOT="+r.root,
		"SHELL_SRC="+filepath.Join(r.root, "src", "mongo", "shell"))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "takes longer than " + r.limit.String(), ctx.Err()
	case err != nil:
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "FAILED") || strings.HasPrefix(line, "UNSUPPORTED") {
				return strings.TrimSpace(line), err
			}
		}
		return err.Error(), err
	}
	return "passes", nil
}
