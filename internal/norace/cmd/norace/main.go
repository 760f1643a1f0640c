// Command norace runs the tests that do not run, or not all they do, under the race detector, and
// no others:
//
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
)

func main() {
	elsewhere := flag.String("elsewhere", "", "`packages`, with commas between them, all of whose tests run without the race detector anyway")
	but := flag.String("but", "$.", "`pattern` of the tests that these packages leave out there")
	flag.Parse()
	status, err := run(strings.Split(*elsewhere, ","), *but, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "norace:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

func run(elsewhere []string, but string, args []string) (status int, err error) {
	left, err := regexp.Compile(but)
	if err != nil {
		return 1, err
	}
	found, err := norace.Tests(".")
	if err != nil {
		return 1, err
	}
	pkgs, names := choose(found, elsewhere, left)
	if len(names) == 0 {
		return 1, errors.New("no test uses package norace: is this the root of the module?")
	}
	fmt.Println(strings.Join(names, " "))
	cmd := exec.Command("go", append(append([]string{"test", "-run", "^(" + strings.Join(names, "|") + ")$"}, args...), pkgs...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// choose returns the packages and the names of the tests to run: all that were found, but of those
// packages that run elsewhere only what is left out there.
func choose(found map[string][]string, elsewhere []string, left *regexp.Regexp) (pkgs, names []string) {
	all := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		n := 0
		for _, name := range found[dir] {
			if !slices.ContainsFunc(elsewhere, func(pattern string) bool { return covers(pattern, dir) }) || left.MatchString(name) {
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
