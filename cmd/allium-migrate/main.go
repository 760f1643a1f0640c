// Command allium-migrate turns a program on the official MongoDB driver for Go, version 1 or 2,
// into one on Allium.
//
//	allium-migrate [-diff] [-w] [PACKAGES]
//
// It is run in the module of the program, and takes packages as the go command does; without any,
// those of the current folder and below. It prints how many calls it rewrites. With -diff it shows
// the changes, and only with -w it writes them. What has no counterpart stays, with a comment
// before it that begins with "allium-migrate:" and says what to do; what does not mean the same is
// told with file and line. docs/migrating.md describes the rewriting call by call.
//
// Where a package needs them, small functions that bridge the two ways of doing things go into a
// file of its own, allium_migrate.go, to be inlined or removed with time.
//
//	allium-migrate -check [-allium FOLDER] [PACKAGES]
//	allium-migrate -dropin [-allium FOLDER] [PACKAGES]
//
// do without rewriting: -check says which names of the official driver the packages use, with
// their tests and all that they import, and whether the drop-in has each; -dropin writes the lines
// that put the drop-in in its place into go.mod, builds and vets the packages, and puts everything
// back if that fails. The status is 0 if the drop-in has all, 3 if it lacks something, 4 if
// something was put back, 2 for wrong arguments and 1 for other failures. docs/dropin.md is about
// the drop-in.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"allium/internal/terminal"
)

func main() { os.Exit(run(os.Args[1:], ".", os.Stdout, os.Stderr)) }

// run runs the tool. All that it prints goes through the writers that it makes: names and comments
// in the sources that it reads must not steer a terminal.
func run(args []string, dir string, out, errs io.Writer) int {
	stdout, stderr := terminal.NewWriter(out), terminal.NewWriter(errs)
	defer stdout.Flush()
	defer stderr.Flush()
	return migrate(args, dir, stdout, stderr)
}

func migrate(args []string, dir string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("allium-migrate", flag.ContinueOnError)
	fs.SetOutput(stderr)
	diff := fs.Bool("diff", false, "show the changes")
	write := fs.Bool("w", false, "write the changes")
	module := fs.String("module", "allium", "the module `path` that Allium has")
	check := fs.Bool("check", false, "say what the module uses of the official driver, and whether the drop-in has it")
	dropin := fs.Bool("dropin", false, "put the drop-in in the official driver's place, if the module builds with it")
	folder := fs.String("allium", "", "the `folder` of Allium's sources, for -check and -dropin (default ../allium)")
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: allium-migrate [-diff] [-w] [packages]\n       allium-migrate -check|-dropin [-allium folder] [packages]")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		if err == flag.ErrHelp {
			return 0
		}
		return 2
	}
	patterns := fs.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if *check || *dropin {
		if *diff || *write || *check && *dropin {
			fs.Usage()
			return statusUsage
		}
		return checkModule(dir, patterns, *folder, *module, *dropin, stdout, stderr)
	}
	pkgs, err := load(dir, patterns)
	if err != nil {
		fmt.Fprintln(stderr, "allium-migrate:", err)
		return 1
	}
	var total statistics
	told := newNotices(dir)
	settings := clientSettings(pkgs)
	for _, p := range pkgs {
		for _, err := range p.errors {
			fmt.Fprintf(stderr, "allium-migrate: %v (what is there of types is used)\n", err)
		}
		tellTypes(p, told)
		files := rewrite(p, *module, settings, &total, told)
		for _, name := range slices.Sorted(mapKeys(files)) {
			before, _ := os.ReadFile(name)
			after := files[name]
			if bytes.Equal(before, after) {
				continue
			}
			total.files++
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				rel = name
			}
			if *diff {
				fmt.Fprint(stdout, unified(rel, string(before), string(after)))
			}
			if *write {
				if err := os.WriteFile(name, after, 0o644); err != nil {
					fmt.Fprintln(stderr, "allium-migrate:", err)
					return 1
				}
			}
			if !*diff {
				fmt.Fprintln(stdout, rel)
			}
		}
	}
	told.print(stderr)
	fmt.Fprintf(stderr, "%d uses of the official driver in %d files: %d rewritten, %d left with a comment\n",
		total.rewritten+total.left, total.files, total.rewritten, total.left)
	if !*write && total.files > 0 {
		fmt.Fprintln(stderr, "nothing is written without -w")
	}
	return 0
}

// statistics counts what was done.
type statistics struct{ files, rewritten, left int }

// unified returns the difference of two texts in the unified format, with three lines around each
// change.
func unified(name, before, after string) string {
	split := func(s string) []string { return slices.Collect(strings.Lines(s)) }
	a, b := split(before), split(after)
	const around = 3
	type line struct {
		op   byte
		text string
	}
	// The lines that are the same at both ends need no comparison.
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	// lengths[i][j] is how long the longest common subsequence of a[i:] and b[j:] is.
	lengths := make([][]int32, endA-start+1)
	for i := range lengths {
		lengths[i] = make([]int32, endB-start+1)
	}
	for i := endA - start - 1; i >= 0; i-- {
		for j := endB - start - 1; j >= 0; j-- {
			if a[start+i] == b[start+j] {
				lengths[i][j] = lengths[i+1][j+1] + 1
			} else {
				lengths[i][j] = max(lengths[i+1][j], lengths[i][j+1])
			}
		}
	}
	var lines []line
	for _, s := range a[:start] {
		lines = append(lines, line{' ', s})
	}
	for i, j := 0, 0; i < endA-start || j < endB-start; {
		switch {
		case i < endA-start && j < endB-start && a[start+i] == b[start+j]:
			lines = append(lines, line{' ', a[start+i]})
			i, j = i+1, j+1
		case j >= endB-start || i < endA-start && lengths[i+1][j] >= lengths[i][j+1]:
			lines = append(lines, line{'-', a[start+i]})
			i++
		default:
			lines = append(lines, line{'+', b[start+j]})
			j++
		}
	}
	for _, s := range a[endA:] {
		lines = append(lines, line{' ', s})
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", name, name)
	atA, atB := 1, 1
	for i := 0; i < len(lines); {
		if lines[i].op == ' ' {
			i, atA, atB = i+1, atA+1, atB+1
			continue
		}
		from := max(0, i-around)
		for j := from; j < i; j++ {
			atA, atB = atA-1, atB-1
		}
		to, same := i, 0
		for to < len(lines) && same <= 2*around {
			same++
			if lines[to].op != ' ' {
				same = 0
			}
			to++
		}
		to -= max(0, same-around)
		countA, countB := 0, 0
		for _, l := range lines[from:to] {
			if l.op != '+' {
				countA++
			}
			if l.op != '-' {
				countB++
			}
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", atA, countA, atB, countB)
		for _, l := range lines[from:to] {
			out.WriteByte(l.op)
			out.WriteString(l.text)
			if !strings.HasSuffix(l.text, "\n") {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
		i, atA, atB = to, atA+countA, atB+countB
	}
	return out.String()
}
