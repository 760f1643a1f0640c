// Command site builds the site of the documentation from the pages of the repository:
//
//	go -C tools/site run . -out /tmp/site      # then open /tmp/site/index.html
//
// It writes a folder of files that any server of files can serve, or a browser opens: a page for
// each document, with search, a page for each source file that a document links to, and one such
// tree for each version that has a tag. Nothing on the pages is loaded from elsewhere. A link or an
// anchor that leads nowhere fails the build.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "../..", "the repository's `folder`")
	out := flag.String("out", "site", "the `folder` to write, which must be empty or missing")
	flag.Parse()
	n, err := build(*root, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages: %s\n", n, filepath.Join(*out, "index.html"))
}

// build writes the site of all versions and returns how many pages it has.
func build(root, out string) (pages int, err error) {
	if old, err := os.ReadDir(out); err == nil && len(old) > 0 {
		return 0, fmt.Errorf("%s is not empty", out)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	all, err := versions(root)
	if err != nil {
		return 0, err
	}
	for _, v := range all {
		s, err := newSite(v, all)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", v.Name, err)
		}
		// What was wrong in a version that is out stays wrong in it.
		if problems := s.check(); v.current && len(problems) > 0 {
			return 0, errors.Join(problems...)
		}
		for name, text := range s.files {
			name = filepath.Join(out, filepath.FromSlash(v.Dir), filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return 0, err
			}
			if err := os.WriteFile(name, text, 0o644); err != nil {
				return 0, err
			}
		}
		pages += len(s.pages) + len(s.sources)
	}
	return pages, nil
}
