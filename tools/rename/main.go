// Command rename gives the driver the module path under which it is published.
//
//	go run ./tools/rename MODULE/PATH
//
// It rewrites, in the repository that it is run in, the module line and the requirements of every
// go.mod, the import paths of every Go file, and the paths that comments, strings and documents
// name; where a document says how to install what cannot be got, it says how to get it instead.
// The package itself keeps its name, allium. Run it again to choose another path. It prints the
// files that it changed.
package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: go run ./tools/rename MODULE/PATH")
		os.Exit(2)
	}
	changed, err := Rename(".", os.Args[1])
	for _, file := range changed {
		fmt.Println(file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
}

// element is what a module path may consist of.
var element = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._~-]*$`)

// checkPath refuses what package paths of the go command cannot be.
func checkPath(p string) error {
	if path.Clean(p) != p || path.IsAbs(p) {
		return fmt.Errorf("module path %q is not clean", p)
	}
	for e := range strings.SplitSeq(p, "/") {
		if !element.MatchString(e) || strings.HasSuffix(e, ".") {
			return fmt.Errorf("module path %q: %q cannot be an element of it", p, e)
		}
	}
	if p == "std" || p == "cmd" {
		return errors.New("module path belongs to Go itself: " + p)
	}
	return nil
}
