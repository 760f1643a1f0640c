package trust

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// Run is a suite of others that somebody has run on mongotest: the suite, its version or commit,
// what it ran on, the commit of Allium, how many tests passed, how many failed, and what became of
// those.
type Run [7]string

//go:embed runs.txt
var runs string

// Runs returns the runs, in the order of the list.
func Runs() ([]Run, error) { return parseRuns(runs) }

func parseRuns(text string) ([]Run, error) {
	var list []Run
	for n, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, " | ")
		if len(fields) != len(Run{}) {
			return nil, fmt.Errorf("runs.txt:%d: %d fields, want %d", n+1, len(fields), len(Run{}))
		}
		for _, i := range []int{4, 5} {
			if _, err := strconv.Atoi(strings.ReplaceAll(fields[i], ",", "")); err != nil {
				return nil, fmt.Errorf("runs.txt:%d: %w", n+1, err)
			}
		}
		list = append(list, Run(fields))
	}
	return list, nil
}
