// Command trust writes the numbers that the project's pages have of the source, and the table of
// suites that were run by hand:
//
//	go run ./internal/trust/cmd/trust
//
// It prints the pages that it changed. The tests of package trust fail for a page that it would
// change.
package main

import (
	"fmt"
	"os"

	"allium/internal/trust"
)

func main() {
	changed, err := trust.Update(".")
	for _, page := range changed {
		fmt.Println(page)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "trust:", err)
		os.Exit(1)
	}
}
