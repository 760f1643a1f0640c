// Command norace runs the tests that do not run, or not all they do, under the race detector, and
// no others: those that use package norace, and all of packages in which no goroutines meet.
//
//	go test -race $(go run ./internal/norace/cmd/norace -concurrent)
//	go run ./internal/norace/cmd/norace -elsewhere ./gridfs,./internal/auth -but Alloc -- -v
//
// What stands behind two hyphens are flags of go test. The command is run at the root of the
// module, without the race detector.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"allium/internal/norace"
	"allium/internal/testuse"
)

func main() {
	concurrent := flag.Bool("concurrent", false, "print the packages that are for the race detector, and run nothing")
	elsewhere := flag.String(
		"elsewhere", "", "`packages`, with commas between them, all of whose tests run without the race detector anyway")
	but := flag.String("but", "$.", "`pattern` of the tests that these packages leave out there")
	flag.Parse()
	var status int
	var err error
	if *concurrent {
		err = show()
	} else {
		status, err = run(strings.Split(*elsewhere, ","), *but, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "norace:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

func show() error {
	concurrent, _, err := norace.Packages(".")
	for _, dir := range concurrent {
		fmt.Println("./" + dir)
	}
	if len(concurrent) == 0 && err == nil {
		return errors.New("no package with tests starts a goroutine: is this the root of the module?")
	}
	return err
}

func run(elsewhere []string, but string, args []string) (status int, err error) {
	left, err := regexp.Compile(but)
	if err != nil {
		return 1, err
	}
	found, err := testuse.Of(".", "norace")
	if err != nil {
		return 1, err
	}
	_, sequential, err := norace.Packages(".")
	if err != nil {
		return 1, err
	}
	whole := others(sequential, elsewhere)
	for _, dir := range sequential {
		delete(found, dir)
	}
	pkgs, names := choose(found, elsewhere, left)
	if len(names) == 0 {
		return 1, errors.New("no test uses package norace: is this the root of the module?")
	}
	fmt.Println(strings.Join(names, " "))
	for _, with := range [][]string{
		append(append([]string{"test", "-run", "^(" + strings.Join(names, "|") + ")$"}, args...), pkgs...),
		append(append([]string{"test"}, args...), whole...),
	} {
		cmd := exec.Command("go", with...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			status = max(status, exit.ExitCode())
		} else if err != nil {
			return 1, err
		}
	}
	return status, nil
}

// others returns the packages in folders but for those that run elsewhere.
func others(dirs, elsewhere []string) (pkgs []string) {
	for _, dir := range dirs {
		if !slices.ContainsFunc(elsewhere, func(pattern string) bool { return covers(pattern, dir) }) {
			pkgs = append(pkgs, "./"+dir)
		}
	}
	return pkgs
}

// choose returns the packages and the names of the tests to run: all that were found, but of those
// packages that run elsewhere only what is left out there.
func choose(found map[string][]string, elsewhere []string, left *regexp.Regexp) (pkgs, names []string) {
	all := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		n := 0
		for _, name := range found[dir] {
			if !slices.ContainsFunc(elsewhere, func(pattern string) bool { return covers(pattern, dir) }) ||
				left.MatchString(name) {
				all[name] = true
				n++
			}
		}
		if n > 0 {
			pkgs = append(pkgs, "./"+dir)
		}
	}
	return pkgs, slices.Sorted(maps.Keys(all))
}

// covers reports whether a pattern of packages, as the go command has them, covers a folder.
func covers(pattern, dir string) bool {
	below, all := strings.CutSuffix(pattern, "/...")
	if pattern == "" {
		return false
	}
	below = path.Clean(below)
	return dir == below || all && (below == "." || strings.HasPrefix(dir, below+"/"))
}
