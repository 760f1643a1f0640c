// Command ledger runs the specifications' tests in the unified test format against mongotest and prints a line per suite, a
// total, and why tests failed. Its exit status is 1 if any did.
//
//	go run ./internal/spectest/cmd/ledger [-v] [-version 8.2] [suite ...]
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"allium/internal/spectest"
	"allium/internal/unified"
)

// suites are the folders below source whose tests have the unified format.
var suites = []string{
	"change-streams/tests/unified", "causal-consistency/tests", "client-backpressure/tests", "client-side-operations-timeout/tests",
	"collection-management/tests", "command-logging-and-monitoring/tests/logging", "command-logging-and-monitoring/tests/monitoring",
	"connection-monitoring-and-pooling/tests/logging", "crud/tests/unified", "gridfs/tests", "index-management/tests", "load-balancers/tests",
	"mongodb-handshake/tests/unified", "read-write-concern/tests/operation", "retryable-reads/tests/unified", "retryable-writes/tests/unified",
	"run-command/tests/unified", "server-discovery-and-monitoring/tests/unified", "server-selection/tests/logging", "sessions/tests",
	"transactions-convenient-api/tests/unified", "transactions/tests/unified", "unified-test-format/tests/valid-pass", "versioned-api/tests",
}

func main() {
	verbose := flag.Bool("v", false, "print every failure, not only how many there are of a kind")
	version := flag.String("version", "8.2", "server `version` of the deployments")
	dir := flag.String("specifications", spectest.Folder(), "`folder` of the specifications")
	flag.Parse()
	names := flag.Args()
	if len(names) == 0 {
		names = suites
	}
	if *dir == "" {
		fmt.Fprintln(os.Stderr, "ledger: no specifications found: set ALLIUM_SPECIFICATIONS")
		os.Exit(2)
	}
	os.Exit(run(*dir, *version, names, *verbose))
}

// counts are the numbers of one line.
type counts struct{ files, tests, passed, failed, skipped int }

func (c *counts) add(o counts) {
	c.files += o.files
	c.tests += o.tests
	c.passed += o.passed
	c.failed += o.failed
	c.skipped += o.skipped
}

// parallel is how many tests run at the same time.
const parallel = 24

func run(dir, version string, names []string, verbose bool) int {
	pool := &unified.Pool{Version: version}
	defer pool.Close()
	const format = "%-52s %6v %6v %7v %7v %8v\n"
	fmt.Printf(format, "suite", "files", "tests", "passed", "failed", "skipped")
	var total counts
	reasons := map[string]int{}
	for _, name := range names {
		files, err := filepath.Glob(filepath.Join(dir, "source", filepath.FromSlash(name), "*.json"))
		if err != nil || len(files) == 0 {
			fmt.Printf("%s: no files (%v)\n", name, err)
			total.failed++
			continue
		}
		line := counts{files: len(files)}
		var mu sync.Mutex
		for _, file := range files {
			unified.RunFile(pool, name, file, parallel, func(o unified.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				line.tests++
				switch {
				case o.Skip != "":
					line.skipped++
				case o.Err == nil:
					line.passed++
				default:
					line.failed++
					text, _, _ := strings.Cut(o.Err.Error(), "\n")
					if o.NotKnown() {
						reasons[text[strings.Index(text, ")")+1:]]++
					} else {
						reasons[o.Suite+"/"+o.File]++
					}
					if verbose {
						fmt.Printf("FAIL %s/%s %s %q: %s\n", o.Suite, o.File, o.Topology, o.Test, text)
					}
				}
			})
		}
		fmt.Printf(format, name, line.files, line.tests, line.passed, line.failed, line.skipped)
		total.add(line)
	}
	fmt.Printf(format, "total", total.files, total.tests, total.passed, total.failed, total.skipped)
	if total.failed == 0 {
		return 0
	}
	fmt.Println("\nfailures, by what the runner does not know yet or by file:")
	keys := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int { return reasons[b] - reasons[a] })
	for _, k := range keys {
		fmt.Printf("%6d %s\n", reasons[k], strings.TrimPrefix(k, ": "))
	}
	return 1
}
