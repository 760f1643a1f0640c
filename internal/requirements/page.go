package requirements

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pageMark stands on a page before what is printed from the data.
const pageMark = "<!-- From here on the page is printed from internal/requirements/data: go run ./internal/requirements/cmd/trace -page -->\n"

// pages are the documents, from the root, and what is printed on each.
var pages = map[string]func(files []File) string{
	"docs/specs.md":           printed,
	"docs/specs-texts.md":     printedTexts,
	"docs/specs-not-asked.md": printedReasons,
}

// WritePages prints the files into the pages of the repository at root, behind their marks.
func WritePages(root string, files []File) error {
	for name, print := range pages {
		name = filepath.Join(root, filepath.FromSlash(name))
		old, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		page, err := fillPage(string(old), print(sorted(files)))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func fillPage(page, printed string) (string, error) {
	before, _, ok := strings.Cut(page, pageMark)
	if !ok {
		return "", errors.New("there is no line that says where the printed part begins")
	}
	return before + pageMark + printed, nil
}

// sorted returns the files by the names of their specifications.
func sorted(files []File) []File {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int {
		return strings.Compare(strings.ToLower(a.Spec), strings.ToLower(b.Spec))
	})
	return files
}

// printed returns the counts and where the driver differs.
func printed(files []File) string {
	var all Count
	for _, f := range files {
		all.Add(f.Count())
	}
	var b strings.Builder
	fmt.Fprintf(&b, `
## Sentence by sentence

The texts ask for more than their JSON tests look at. At commit `+"`%s`"+
		` of github.com/mongodb/specifications, %d texts
have %d sentences with MUST, SHOULD, SHALL or REQUIRED, and `+"`internal/requirements`"+
		` has a row for each: which function decides, and
which tests fail if it decides otherwise. %d are tested, %d are for the documentation to keep, in %d the driver differs, %d ask nothing of
it, %d are recommendations and choices that it leaves, and %d say again what another one says: [by text](specs-texts.md),
[and why](specs-not-asked.md).

`+"```"+`
go run ./internal/requirements/cmd/trace                      # the counts of each text, and rows that name what is not there
go run ./internal/requirements/cmd/trace -func exec.(*run).retries   # what a function has to keep
go run ./internal/requirements/cmd/trace -texts DIR           # what DIR, a checkout of the texts, has and the rows have not
go run ./internal/requirements/cmd/bite RW-                   # breaks the code of these rows, and sees that tests fail
`+"```"+`

`, Commit[:9], len(files), all.Rows, all.Tested, all.documented(), all.Differs, all.NotOurs, all.Choice, all.Same)

	b.WriteString("## Where the driver differs\n\nWhat it does otherwise than a text asks, or asks for by default, and why. The rows are named that say so; without one the text asks\nin other words than those.\n\n")
	b.WriteString("| text | what | why | rows |\n|---|---|---|---|\n")
	for _, f := range files {
		for _, d := range f.Deviations {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Spec, d.What, d.Why, strings.Join(d.Rows, ", "))
		}
	}

	return b.String()
}

// printedTexts returns the counts of each text.
func printedTexts(files []File) string {
	var b strings.Builder
	b.WriteString("\nA version is the date of the newest change that the text itself lists.\n\n")
	b.WriteString("| text | version | sentences | tested | documentation | differs | not ours | left | said again |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range files {
		c := f.Count()
		fmt.Fprintf(&b, "| [%s](https://github.com/mongodb/specifications/blob/%s/source/%s) | %s | %d | %d | %d | %d | %d | %d | %d |\n",
			f.Spec, Commit, f.Text, f.Changed, c.Rows, c.Tested, c.documented(), c.Differs, c.NotOurs, c.Choice, c.Same)
	}

	return b.String()
}

// printedReasons returns why the driver does not do what a sentence says.
func printedReasons(files []File) string {
	var b strings.Builder
	b.WriteString("\n## What is not asked of the driver\n\nThe reasons, each with how many sentences it is about.\n\n")
	reasons(&b, files, Other, Superseded)
	b.WriteString("\n## Recommendations that it leaves\n\n")
	reasons(&b, files, Option)
	return b.String()
}

// reasons prints the words of rows of some kinds, by their texts.
func reasons(b *strings.Builder, files []File, kinds ...Kind) {
	for _, f := range files {
		n := map[string]int{}
		var order []string
		for _, r := range f.Rows {
			if !slices.Contains(kinds, r.Kind) {
				continue
			}
			if n[r.Words]++; n[r.Words] == 1 {
				order = append(order, r.Words)
			}
		}
		for i, words := range order {
			order[i] = fmt.Sprintf("%s (%d)", words, n[words])
		}
		if len(order) > 0 {
			fmt.Fprintf(b, "- %s: %s.\n", f.Spec, strings.Join(order, "; "))
		}
	}
}
