// Command release makes a release out of the commit that is checked out:
//
//	go run ./tools/release [-n] [-out dist] [-platforms OS/ARCH,...] VERSION
//
// It gives every module of the repository the version, in a commit of its own that no branch has,
// and tags that commit once for each: the nested modules require the driver at VERSION and replace
// nothing, which is what somebody who gets them needs, while on the branch they go on replacing the
// driver by the folder that it is in. It puts all modules into a module proxy of files, installs
// the command allium from there for each platform, twice and from nothing the second time, and
// compares bit by bit; and it writes the archives, their checksums, a list of what is in them
// (CycloneDX) and a statement of how they were made (SLSA provenance, unsigned).
//
// It pushes nothing: it prints the command that does. With -n it makes no commit and no tags that
// stay. docs/releasing.md says what comes before and after.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	r := release{log: os.Stdout}
	flag.StringVar(&r.out, "out", "dist", "the `folder` that gets the artefacts; it must not exist")
	flag.BoolVar(&r.rehearse, "n", false, "rehearse: make no tags")
	flag.StringVar(&r.builder, "builder", "https://example.invalid/by-hand",
		"the `URI` of what runs this, for the provenance")
	platforms := flag.String(
		"platforms", "darwin/amd64,darwin/arm64,linux/amd64,linux/arm64,windows/amd64,windows/arm64",
		"the `platforms` that the command is built for")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./tools/release [flags] VERSION")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	r.version = flag.Arg(0)
	r.platforms = strings.Split(*platforms, ",")
	if err := r.run("."); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
