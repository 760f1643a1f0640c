// Command apichange tells breaks of the public API from additions:
//
//	go run ./tools/apichange [-breaks] [COMMIT]
//
// It compares internal/archtest/testdata/api.txt, the golden list of exported symbols, with that of
// a commit; without one, with that of the last release's tag, or if there is none, of HEAD. A
// symbol that went or has another declaration, and a new method of an interface that was there, are
// breaks: the exit status is 1. With -breaks, which says that they are meant, it is not.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const golden = "internal/archtest/testdata/api.txt"

func main() {
	meant := flag.Bool("breaks", false, "breaks are meant: print them, and succeed")
	flag.Parse()
	breaks, err := run(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "apichange:", err)
		os.Exit(2)
	}
	if breaks > 0 && !*meant {
		os.Exit(1)
	}
}

func run(commit string) (breaks int, err error) {
	if commit == "" {
		commit = "HEAD"
		if tag, err := git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"); err == nil {
			commit = strings.TrimSpace(tag)
		}
	}
	old, err := git("show", commit+":"+golden)
	if err != nil {
		return 0, err
	}
	now, err := os.ReadFile(golden)
	if err != nil {
		return 0, err
	}
	added, gone := compare(old, string(now))
	for _, line := range gone {
		fmt.Println("break:   ", line)
	}
	for _, line := range added {
		fmt.Println("addition:", line)
	}
	fmt.Printf("since %s: %d additions, %d breaks\n", commit, len(added), len(gone))
	return len(gone), nil
}

// compare returns the symbols that one list has and the other has not. One whose declaration
// changed is in both: it went as what it was.
func compare(old, now string) (added, gone []string) {
	was, is := lines(old), lines(now)
	missing := func(from, in []string) (list []string) {
		for _, line := range from {
			if _, ok := slices.BinarySearch(in, line); !ok {
				list = append(list, line)
			}
		}
		return list
	}
	added, gone = missing(is, was), missing(was, is)
	// A method that is added to an interface which programs implement breaks them.
	added = slices.DeleteFunc(added, func(line string) bool {
		of, _, method := strings.Cut(line, " interface, ")
		_, there := slices.BinarySearch(was, of+" interface")
		if method && there {
			gone = append(gone, line)
		}
		return method && there
	})
	return added, gone
}

func lines(text string) []string {
	list := slices.DeleteFunc(strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), func(s string) bool {
		return s == "" || strings.HasPrefix(s, "#")
	})
	slices.Sort(list)
	return list
}

func git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Stderr = os.Stderr
	if args[0] == "describe" {
		cmd.Stderr = nil // it is no failure that nothing was released
	}
	out, err := cmd.Output()
	return string(out), err
}
