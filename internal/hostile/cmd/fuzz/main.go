// Command fuzz runs all fuzz targets of the repository, each for a while:
//
//	go run ./internal/hostile/cmd/fuzz -time 3m [-only REGEXP] [-at-once 1] [-parallel 2] [-list]
//
// It prints a row of a table for each: the target, its package, how many inputs it has run, how
// many are in its corpus, and what was found. An input that fails a target lies in testdata/fuzz
// of its package afterwards, where "go test" runs it from then on. The exit status is 1 if there
// was one. An interrupt ends it after the targets in hand, which it ends as well if it comes from a
// terminal.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	each := flag.Duration("time", 3*time.Minute, "how long to run each target")
	only := flag.String("only", "", "run only targets whose package and name match this expression")
	atOnce := flag.Int("at-once", 1, "how many targets to run at the same time")
	parallel := flag.Int("parallel", 1, "how many processes to run for a target")
	list := flag.Bool("list", false, "print the targets and run none")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		fail(err)
	}
	all, err := targets(os.DirFS("."))
	if err != nil {
		fail(err)
	}
	all = slices.DeleteFunc(all, func(t target) bool { return !match.MatchString(t.String()) })
	if len(all) == 0 {
		fail(errors.New("no target: run it in the root of the repository"))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *list {
		for _, t := range all {
			fmt.Println(t)
		}
		return
	}
	failed := runAll(ctx, all, *atOnce, func(t target) result { return t.run(*each, *parallel) }, os.Stdout)
	if failed > 0 {
		fail(fmt.Errorf("%d targets failed", failed))
	}
}

// runAll runs targets, some at once, until there are none left or ctx ends. It writes a row for
// each as it ends, and returns how many failed.
func runAll(ctx context.Context, all []target, atOnce int, run func(target) result, out io.Writer) (failed int) {
	var mu sync.Mutex // of the output and the count
	var running sync.WaitGroup
	turns := make(chan struct{}, max(1, atOnce))
	for _, t := range all {
		turns <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-turns }()
			r := run(t)
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "| `%s` | `%s` | %s | %s | %s |\n", t.name, t.path(), cmp.Or(r.execs, "-"),
				cmp.Or(r.corpus, "-"), r.verdict)
			if r.failed {
				failed++
			}
		})
	}
	running.Wait()
	return failed
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "fuzz:", err)
	os.Exit(1)
}

// target is a fuzz target.
type target struct {
	module string // the folder of its go.mod
	dir    string // of its package, below that one
	name   string
}

func (t target) String() string { return t.path() + " " + t.name }

// path is the package's folder.
func (t target) path() string { return filepath.ToSlash(filepath.Join(t.module, t.dir)) }

var declared = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)

// targets returns all targets of all modules below a folder.
func targets(root fs.FS) (all []target, err error) {
	module := map[string]string{".": "."} // of each folder
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".":
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			module[path] = module[filepath.ToSlash(filepath.Dir(path))]
			if _, err := fs.Stat(root, path+"/go.mod"); err == nil {
				module[path] = path
			}
		case strings.HasSuffix(path, "_test.go"):
			text, err := fs.ReadFile(root, path)
			if err != nil {
				return err
			}
			folder := filepath.ToSlash(filepath.Dir(path))
			dir, err := filepath.Rel(module[folder], folder)
			if err != nil {
				return err
			}
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				all = append(all, target{module[folder], filepath.ToSlash(dir), m[1]})
			}
		}
		return nil
	})
	return all, err
}

// result is what came of a target.
type result struct {
	execs, corpus string // empty: unknown
	verdict       string
	failed        bool
}

// run runs a target. What goes wrong is printed to standard error as it is.
func (t target) run(each time.Duration, parallel int) result {
	// By default a minute goes into making each interesting input smaller, and none is run
	// meanwhile.
	cmd := exec.Command("go", "test", "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+each.String(),
		"-fuzzminimizetime=1s", fmt.Sprintf("-parallel=%d", parallel), "./"+t.dir)
	cmd.Dir = t.module
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	r := read(out.String())
	if err != nil {
		r.failed = true
		r.verdict = cmp.Or(r.verdict, err.Error())
		fmt.Fprintf(os.Stderr, "%s:\n", t)
		io.WriteString(os.Stderr, out.String())
	}
	return r
}

var (
	progress = regexp.MustCompile(`execs: (\d+) .*\(total: (\d+)\)`)
	input    = regexp.MustCompile(`Failing input written to (\S+)`)
)

// read reads what "go test" prints.
func read(out string) (r result) {
	if all := progress.FindAllStringSubmatch(out, -1); all != nil {
		last := all[len(all)-1]
		r.execs, r.corpus = last[1], last[2]
	}
	r.verdict = "nothing"
	switch m := input.FindStringSubmatch(out); {
	case m != nil:
		r.verdict = "`" + m[1] + "`"
	case strings.Contains(out, "FAIL"):
		r.verdict = "" // it did not come to running inputs
	}
	return r
}
