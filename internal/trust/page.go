// Package trust keeps the numbers on the project's pages true: each stands behind the name of a
// fact, which is counted here, in the source, and a test compares.
//
//	There are <!--fuzz targets-->79 fuzz targets.
//
// A number that cannot be counted in the source, because it came of a run of hours or of programs
// that are not here, stands in runs.txt with the commit and the command of its run, from which the
// page prints its table. What docs/trust.md and README.md say has no other numbers.
package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// marked is a number and the name of its fact before it.
var marked = regexp.MustCompile(`<!--([a-z][a-zA-Z -]*)-->([0-9a-f][0-9a-f.,]*[0-9a-f]|[0-9])`)

// Fill returns a page with the values of its facts. A name that is no fact is an error.
func Fill(page string, facts map[string]string) (string, error) {
	var unknown error
	page = marked.ReplaceAllStringFunc(page, func(old string) string {
		name := marked.FindStringSubmatch(old)[1]
		value, ok := facts[name]
		if !ok {
			unknown = fmt.Errorf("there is no fact %q", name)
		}
		return "<!--" + name + "-->" + value
	})
	return page, unknown
}

// The pages' table of runs is between these lines.
const (
	runsBegin = "<!-- printed from internal/trust/runs.txt -->\n"
	runsEnd   = "<!-- until here -->\n"
)

// Pages are the files, from the root, whose numbers are looked at.
func Pages(root string) ([]string, error) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	return append(pages, filepath.Join(root, "README.md")), err
}

// Update fills all pages, and returns those that it changed.
func Update(root string) (changed []string, err error) {
	facts, err := Facts(root)
	if err != nil {
		return nil, err
	}
	runs, err := Runs()
	if err != nil {
		return nil, err
	}
	pages, err := Pages(root)
	if err != nil {
		return nil, err
	}
	for _, name := range pages {
		old, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		page, err := fillAll(string(old), facts, runs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if page != string(old) {
			changed = append(changed, name)
			if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}

// fillAll fills a page with the facts and, where its place is, the table of runs.
func fillAll(page string, facts map[string]string, runs []Run) (string, error) {
	before, rest, ok := strings.Cut(page, runsBegin)
	if ok {
		_, after, ok := strings.Cut(rest, runsEnd)
		if !ok {
			return "", fmt.Errorf("the table of runs has no end")
		}
		page = before + runsBegin + table(runs) + runsEnd + after
	}
	return Fill(page, facts)
}

func table(runs []Run) string {
	var b strings.Builder
	b.WriteString("\n| suite | at | on | commit of Allium | passed | failed | of these |\n|---|---|---|---|---|---|---|\n")
	for _, r := range runs {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(slices.Concat(r[:]), " | "))
	}
	b.WriteString("\n")
	return b.String()
}
