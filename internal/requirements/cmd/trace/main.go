// Command trace tells which requirement of the driver specifications is kept where, and by which
// test it is shown:
//
//	go run ./internal/requirements/cmd/trace                     # a table, and what names nothing
//	go run ./internal/requirements/cmd/trace -func exec.(*Executor).Run
//	go run ./internal/requirements/cmd/trace -texts DIR          # compares with the texts
//	go run ./internal/requirements/cmd/trace -texts DIR -draft crud/crud.md
//	go run ./internal/requirements/cmd/trace -page               # prints docs/specs*.md anew
//
// The texts are a checkout of github.com/mongodb/specifications:
//
//	git clone https://github.com/mongodb/specifications DIR
//	git -C DIR checkout COMMIT
//
// with the commit that the table names. On another one trace says which sentences are new, changed
// and gone. It exits with status 1 if something is amiss.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"allium/internal/requirements"
	"allium/internal/spectest"
)

func main() {
	texts := flag.String("texts", "", "`folder` of a checkout of github.com/mongodb/specifications")
	fn := flag.String("func", "", "`name` of a function, or a part of it: print what it keeps")
	draft := flag.String("draft", "", "`path` of a text below source: print rows to fill in for its sentences")
	page := flag.Bool("page", false, "print docs/specs*.md anew")
	flag.Parse()
	if *page {
		files, err := requirements.Load()
		if err == nil {
			err = requirements.WritePages(".", files)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "trace:", err)
			os.Exit(1)
		}
		return
	}
	amiss, err := run(os.Stdout, *texts, *fn, *draft)
	if err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
	if amiss > 0 {
		fmt.Printf("\n%d things are amiss\n", amiss)
		os.Exit(1)
	}
}

func run(w io.Writer, texts, fn, draft string) (amiss int, err error) {
	files, err := requirements.Load()
	if err != nil {
		return 0, err
	}
	if texts != "" {
		if _, err := os.Stat(filepath.Join(texts, "source", "driver-mantras.md")); err != nil {
			return 0, fmt.Errorf("%s is no checkout of the specifications, which has source/driver-mantras.md:"+
				" git clone https://github.com/mongodb/specifications, and check out %s", texts, requirements.Commit)
		}
	}
	switch {
	case fn != "":
		return 0, printFunc(w, files, fn)
	case draft != "" && texts == "":
		return 0, errors.New("a draft needs the texts: add -texts")
	case draft != "":
		return 0, printDraft(w, files, texts, draft)
	}
	if amiss, err = printDangling(w, files); err != nil {
		return amiss, err
	}
	sentences := map[string]int{}
	if texts != "" {
		n, err := printChanges(w, files, texts, sentences)
		if amiss += n; err != nil {
			return amiss, err
		}
	}
	printTable(w, files, sentences)
	return amiss, nil
}

// printFunc prints what a function keeps.
func printFunc(w io.Writer, files []requirements.File, name string) error {
	found := false
	for _, f := range files {
		for _, r := range f.Rows {
			if !slices.ContainsFunc(r.Where, func(where string) bool { return strings.Contains(where, name) }) {
				continue
			}
			found = true
			fmt.Fprintf(w, "%s (%s, %s): %s\n\t%s\n", r.ID, f.Text, r.Section, r.Words, strings.Join(r.Where, ", "))
			for _, t := range r.Tests {
				fmt.Fprintf(w, "\t%s\n", t)
			}
		}
	}
	if !found {
		return fmt.Errorf("no row names %s: names are such as \"exec.(*Executor).Run\"", name)
	}
	return nil
}

// printDangling prints what rows name and the source does not have.
func printDangling(w io.Writer, files []requirements.File) (int, error) {
	source, err := requirements.ReadSource(".", spectest.Folder())
	if err != nil {
		return 0, err
	}
	n := 0
	for _, err := range source.Check(files) {
		fmt.Fprintln(w, err)
		n++
	}
	return n, nil
}

// printChanges prints the differences between rows and texts, and notes how many sentences each
// text has.
func printChanges(w io.Writer, files []requirements.File, texts string, sentences map[string]int) (int, error) {
	amiss := 0
	rowed := map[string]bool{}
	for _, f := range files {
		rowed[f.Text] = true
		found, changed, err := read(texts, f.Text, f.Lowercase)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(w, "%s: gone, with its %d requirements\n", f.Text, len(f.Rows))
			amiss++
			continue
		}
		if err != nil {
			return amiss, err
		}
		if changed != f.Changed {
			fmt.Fprintf(w, "%s: its newest change is of %q, not of %q\n", f.Text, changed, f.Changed)
			amiss++
		}
		sentences[f.Text] = len(found)
		for _, c := range requirements.Compare(f.Rows, found) {
			amiss++
			switch {
			case c.Row == nil:
				fmt.Fprintf(w, "%s: new, %s (%s): %s\n", f.Text, c.Sentence.Print, c.Sentence.Section, c.Sentence.Text)
			case c.Sentence == nil:
				fmt.Fprintf(w, "%s: gone, %s (%s): our words: %s\n", f.Text, c.Row.ID, c.Row.Section, c.Row.Words)
			default:
				fmt.Fprintf(w, "%s: changed, %s is now %s (%s): %s\n\tour words: %s\n",
					f.Text, c.Row.ID, c.Sentence.Print, c.Sentence.Section, c.Sentence.Text, c.Row.Words)
			}
		}
	}
	below := filepath.Join(texts, "source")
	err := filepath.WalkDir(below, func(name string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" && filepath.Ext(name) != ".rst" {
			return err
		}
		rel, err := filepath.Rel(below, name)
		if err != nil || rowed[filepath.ToSlash(rel)] {
			return err
		}
		found, _, err := read(texts, rel, false)
		if len(found) > 0 {
			fmt.Fprintf(w, "%s: %d sentences and no file of rows\n", filepath.ToSlash(rel), len(found))
			amiss++
		}
		return err
	})
	return amiss, err
}

// read returns a text's sentences, and when it was changed last.
func read(texts, name string, lowercase bool) (found []requirements.Sentence, changed string, err error) {
	b, err := os.ReadFile(filepath.Join(texts, "source", filepath.FromSlash(name)))
	if err != nil {
		return nil, "", err
	}
	return requirements.Sentences(string(b), lowercase), requirements.Changed(string(b)), nil
}

// printTable prints a line per specification.
func printTable(w io.Writer, files []requirements.File, sentences map[string]int) {
	fmt.Fprintf(w, "%-34s %9s %5s %7s %7s %7s %6s %5s\n", "at "+requirements.Commit[:9], "sentences", "rows", "tested",
		"differs", "not ours", "choice", "same")
	var all requirements.Count
	total := 0
	line := func(name string, n int, c requirements.Count) {
		said := "-"
		if n > 0 {
			said = fmt.Sprint(n)
		}
		fmt.Fprintf(w, "%-34s %9s %5d %7d %7d %8d %6d %5d\n", name, said, c.Rows, c.Tested, c.Differs, c.NotOurs,
			c.Choice, c.Same)
	}
	for _, f := range files {
		c := f.Count()
		line(f.Spec, sentences[f.Text], c)
		all.Add(c)
		total += sentences[f.Text]
	}
	line("all", total, all)
}

// printDraft prints a row for each sentence that has none, below the sentence itself, which must
// not stay: no file with it can be parsed.
func printDraft(w io.Writer, files []requirements.File, texts, name string) error {
	file := requirements.File{Text: name}
	for _, f := range files {
		if f.Text == name {
			file = f
		}
	}
	found, changed, err := read(texts, name, file.Lowercase)
	if err != nil {
		return err
	}
	if file.Name == "" && changed != "" {
		fmt.Fprintf(w, "changed %s\n", changed)
	}
	known := map[string]bool{}
	for _, r := range file.Rows {
		known[r.Print] = true
	}
	section := ""
	for i, s := range found {
		if known[s.Print] {
			continue
		}
		if s.Section != section {
			section = s.Section
			fmt.Fprintf(w, "\nsection %s\n", section)
		}
		fmt.Fprintf(w, ">> %s\nX-%d %s kind | where | tests | words\n", s.Text, i+1, s.Print)
	}
	return nil
}
