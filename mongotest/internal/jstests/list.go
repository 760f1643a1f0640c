// Package jstests has the list of the server's own tests: which of them pass on mongotest, and why
// the others do not. The tests themselves are not part of this repository: their licence is
// another.
package jstests

import (
	_ "embed"
	"fmt"
	"os"
	"strings"
)

// Verdict is what is known of a test.
type Verdict string

const (
	Passes Verdict = "passes"
	Cannot Verdict = "cannot" // it asks for what mongotest does not have, or is wrong
	Open   Verdict = "open"   // a server does what mongotest does not do yet
)

// Row is a test: a file below the folder of the tests.
type Row struct {
	File    string
	ReplSet bool // runs on a replica set of one member, not on a single server
	Verdict Verdict
	Reason  string // why it does not pass
}

//go:embed list.txt
var list string

// List returns the rows, in the order of the files' names.
func List() ([]Row, error) { return parse(list) }

// parse reads rows: file, deployment, verdict and reason, separated by blanks.
func parse(text string) ([]Row, error) {
	var rows []Row
	for n, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.SplitN(line, " ", 4)
		bad := func(format string, args ...any) error {
			return fmt.Errorf("line %d: %s: "+format, append([]any{n + 1, words[0]}, args...)...)
		}
		if len(words) < 3 {
			return nil, bad("want file, deployment and verdict")
		}
		r := Row{File: words[0], ReplSet: words[1] == "replset", Verdict: Verdict(words[2])}
		if len(words) > 3 {
			r.Reason = words[3]
		}
		switch {
		case !r.ReplSet && words[1] != "standalone":
			return nil, bad("deployment %q: want standalone or replset", words[1])
		case r.Verdict != Passes && r.Verdict != Cannot && r.Verdict != Open:
			return nil, bad("verdict %q: want passes, cannot or open", r.Verdict)
		case (r.Verdict == Passes) != (r.Reason == ""):
			return nil, bad("a reason stands with those that do not pass, and only there")
		case len(rows) > 0 && rows[len(rows)-1].File >= r.File:
			return nil, bad("stands behind %s: want each file once, in order", rows[len(rows)-1].File)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// Write writes rows to a file, in the form that List reads. What stands in front of the first row
// remains.
func Write(name string, rows []Row) error {
	var b strings.Builder
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	for _, r := range rows {
		deployment := "standalone"
		if r.ReplSet {
			deployment = "replset"
		}
		fmt.Fprintln(&b, strings.TrimSpace(strings.Join([]string{r.File, deployment, string(r.Verdict), r.Reason},
			" ")))
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}
