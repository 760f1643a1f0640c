// Command surface prints which exported names of the official driver the drop-in has not, or has
// with another meaning, and how many of how many in each package. It runs in the folder of its
// module:
//
//	go -C dropin/compare run ./cmd/surface [-1] [-missing]
//
// It compares version 2, with -1 version 1. Its exit status is 1 if anything is missing or differs.
// With -missing it prints the list that surface/testdata/missing.txt or missing1.txt holds, and
// nothing else.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	"allium/dropin/compare/surface"
)

func main() {
	list := flag.Bool("missing", false, "print the list of missing names alone")
	first := flag.Bool("1", false, "compare version 1")
	flag.Parse()
	report := surface.V2Report
	if *first {
		report = surface.V1Report
	}
	r, err := report(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "surface:", err)
		os.Exit(2)
	}
	for _, name := range r.Missing {
		if *list {
			fmt.Println(name)
		} else {
			fmt.Println("missing:", name)
		}
	}
	if *list {
		return
	}
	for _, d := range r.Differs {
		fmt.Println("differs:", d)
	}
	for _, path := range slices.Sorted(maps.Keys(r.By)) {
		n := r.By[path]
		fmt.Printf("%-32s %5d of %5d names are there\n", path, n[1]-n[0], n[1])
	}
	fmt.Printf("%-32s %5d of %5d names are there, %d differ\n", "all", r.Total-r.Lacking, r.Total, len(r.Differs))
	if r.Lacking+len(r.Differs) > 0 {
		os.Exit(1)
	}
}
