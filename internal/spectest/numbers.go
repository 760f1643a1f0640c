package spectest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Count is how many tests of some suites there are, each once per topology, and what came of them.
type Count struct{ Passed, Tests, Skipped int }

// Total is the name under which a page has the count of all suites.
const Total = "total"

// Page is the document that has the counts, from the root of the repository.
const Page = "docs/specs.md"

// counted is a count on a page: `crud` 10 of 12, 2 skipped. The name is a folder of the
// specifications or the beginning of its path, and stands for all suites in it.
var counted = regexp.MustCompile("`([a-z/-]+)` ([0-9]+) of ([0-9]+)(?:, ([0-9]+) skipped)?")

// bare is a count without a name, which nobody could check.
var bare = regexp.MustCompile("(?m)[^`\n]{0,2} ([0-9]+ of [0-9]+)")

// Counts returns the counts on a page, by their names. Rows that do not add up to the total are an
// error, and so are a name that is there twice and a count without a name.
func Counts(page string) (map[string]Count, error) {
	counts := map[string]Count{}
	var sum Count
	for _, m := range counted.FindAllStringSubmatch(page, -1) {
		var n [3]int
		for i := range n {
			n[i], _ = strconv.Atoi(m[2+i]) // nothing is skipped if nothing is said
		}
		c := Count{n[0], n[1], n[2]}
		if _, twice := counts[m[1]]; twice {
			return nil, fmt.Errorf("the count of %s is there twice", m[1])
		}
		counts[m[1]] = c
		if m[1] != Total {
			sum.Passed, sum.Tests, sum.Skipped = sum.Passed+c.Passed, sum.Tests+c.Tests, sum.Skipped+c.Skipped
		}
	}
	if m := bare.FindString(counted.ReplaceAllString(page, "")); m != "" {
		return nil, fmt.Errorf("a count has no name of a suite: %q", strings.TrimSpace(m))
	}
	if sum != counts[Total] {
		return nil, fmt.Errorf("the counts add up to %+v, and the page says %+v", sum, counts[Total])
	}
	return counts, nil
}

// Rewrite returns the page with the counts of these suites. A suite that no name on the page stands
// for is an error, and so is a name without a suite.
func Rewrite(page string, suites map[string]Count) (string, error) {
	used := map[string]bool{}
	var missing error
	page = counted.ReplaceAllStringFunc(page, func(old string) string {
		name := counted.FindStringSubmatch(old)[1]
		var c Count
		found := false
		for suite, of := range suites {
			if name != Total && suite != name && !strings.HasPrefix(suite, name+"/") {
				continue
			}
			found = true
			if name != Total {
				used[suite] = true
			}
			c.Passed, c.Tests, c.Skipped = c.Passed+of.Passed, c.Tests+of.Tests, c.Skipped+of.Skipped
		}
		if !found {
			missing = fmt.Errorf("no suite is called %s", name)
		}
		text := fmt.Sprintf("`%s` %d of %d", name, c.Passed, c.Tests)
		if c.Skipped > 0 {
			text += fmt.Sprintf(", %d skipped", c.Skipped)
		}
		return text
	})
	for suite := range suites {
		if !used[suite] {
			missing = fmt.Errorf("the page does not count %s", suite)
		}
	}
	if missing != nil {
		return "", missing
	}
	_, err := Counts(page)
	return page, err
}
