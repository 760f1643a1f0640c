// Package requirements holds what the driver specifications ask for, sentence by sentence: which
// function keeps each requirement, and which test fails when it does not.
//
// The sentences themselves are not here, since their licence is another. A row has a sentence's
// fingerprint, so that a changed text shows, and says in words of its own what is asked for. The
// texts are the Markdown files of github.com/mongodb/specifications at [Commit]. Command trace
// compares them with the rows, and command bite breaks functions to see that the tests notice.
//
// # The files
//
// Each file in data has one specification, and each line one requirement:
//
//	spec CSOT
//	text client-side-operations-timeout/client-side-operations-timeout.md
//
//	section timeoutMS
//	CSOT-3 1f0a9c2b behaviour | exec.limit | exec.TestLimit | a negative limit is an error
//
// A row has an id, the fingerprint, a kind, and, between bars, the declarations that decide, the
// tests and our words. Lists have commas. A declaration or test is named by the end of its
// package's path, "exec.run", "session.(*Pool).Get", "drivertest/wire.TestOrder"; "allium" is the
// root. A name of a test may be followed by "#" and the name of a case. A JSON test is
// "json:" with folder and file: "json:transactions/pin-mongos". The rows stand in the text's order.
// A text in which the words bind in lower case, too, says "lowercase" in a line of its own. A line
// with "changed" has the date of the newest change that the text lists, and one with "deviation",
// between bars, the rows in which the driver differs, what it does, and why:
//
//	changed 2025-10-14
//	deviation CSOT-48 | late replies are read off | a timeout would cost a connection
//
// A deviation from what no sentence of the kind above says names no row.
package requirements

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Commit names the state of the texts that the rows are made of.
const Commit = "92b3c0b9287bfba1b0ec4084300858d05c654f8c"

// Kind says what a requirement asks of the driver.
type Kind string

// What rows are about. A row that binds the driver's code has a declaration and tests.
const (
	Behaviour     Kind = "behaviour"     // what the driver does
	API           Kind = "api"           // what the public API looks like
	Documentation Kind = "documentation" // what the documents say
	Test          Kind = "test"          // how to test; kept by the tests that are named
	Other         Kind = "other"         // about a server, another language or another product; the words say which
	Superseded    Kind = "superseded"    // a newer text asks for something else; the words say which
	Differs       Kind = "differs"       // the driver does something else; the words say why
	Same          Kind = "same"          // says again what another row has, whose id stands where the declarations do
	// a recommendation or a choice that the driver does not take; the words say why
	Option Kind = "option"
)

var kinds = []Kind{Behaviour, API, Documentation, Test, Other, Superseded, Differs, Same, Option}

// Row is one requirement.
type Row struct {
	ID      string
	Print   string // see [Sentence]
	Kind    Kind
	Where   []string // declarations that decide
	Tests   []string
	Words   string
	Section string
	Line    int
}

// Applicable reports whether the row asks something of the driver that a test can show.
func (r Row) Applicable() bool {
	return r.Kind == Behaviour || r.Kind == API || r.Kind == Test
}

// File is the rows of one specification.
type File struct {
	Name      string // of the file, without its folder
	Spec      string
	Text      string // path of the text below the folder source
	Lowercase bool   // "must" binds as MUST does
	Changed   string // when the text was changed last, by its own list of changes; "" without one
	Rows      []Row

	Deviations []Deviation
}

// Deviation says in what the driver differs from a text.
type Deviation struct {
	Rows      []string // their ids
	What, Why string
}

//go:embed data/*.txt
var data embed.FS

// Load returns all files, sorted by name.
func Load() ([]File, error) {
	names, err := fs.Glob(data, "data/*.txt")
	if err != nil {
		return nil, err
	}
	var files []File
	ids := map[string]string{}
	for _, name := range names {
		b, err := data.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := Parse(path.Base(name), b)
		if err != nil {
			return nil, err
		}
		for _, r := range f.Rows {
			if other, ok := ids[r.ID]; ok {
				return nil, fmt.Errorf("%s:%d: %s stands in %s, too", f.Name, r.Line, r.ID, other)
			}
			ids[r.ID] = f.Name
		}
		files = append(files, f)
	}
	for _, f := range files {
		for _, r := range f.Rows {
			if r.Kind == Same && ids[r.Where[0]] == "" {
				return nil, fmt.Errorf("%s:%d: there is no row %s", f.Name, r.Line, r.Where[0])
			}
		}
	}
	return files, nil
}

var (
	idForm    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*-[0-9]+$`)
	printForm = regexp.MustCompile(`^[0-9a-f]{8}(~[0-9]+)?$`)
)

// Parse reads one file. Errors name the line.
func Parse(name string, text []byte) (File, error) {
	f := File{Name: name}
	section, line := "", 0
	ids, prints := map[string]bool{}, map[string]bool{}
	s := bufio.NewScanner(bytes.NewReader(text))
	for s.Scan() {
		line++
		fail := func(format string, args ...any) (File, error) {
			return File{}, fmt.Errorf("%s:%d: %s", name, line, fmt.Sprintf(format, args...))
		}
		word, rest, _ := strings.Cut(s.Text(), " ")
		switch word {
		case "":
			if rest != "" {
				return fail("a line begins with a space")
			}
			continue
		case "spec":
			f.Spec = rest
			continue
		case "text":
			f.Text = rest
			continue
		case "lowercase":
			f.Lowercase = true
			continue
		case "changed":
			f.Changed = rest
			continue
		case "deviation":
			parts := strings.Split(rest, "|")
			if len(parts) != 3 || strings.TrimSpace(parts[1]) == "" || strings.TrimSpace(parts[2]) == "" {
				return fail("a deviation has rows, what and why between two bars")
			}
			f.Deviations = append(f.Deviations,
				Deviation{list(parts[0]), strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2])})
			continue
		case "section":
			section = rest
			continue
		}
		row, err := parseRow(s.Text())
		if err != nil {
			return fail("%v", err)
		}
		if ids[row.ID] || prints[row.Print] {
			return fail("%s or its fingerprint is there already", row.ID)
		}
		ids[row.ID], prints[row.Print] = true, true
		row.Section, row.Line = section, line
		f.Rows = append(f.Rows, row)
	}
	if err := s.Err(); err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	if f.Spec == "" || f.Text == "" {
		return File{}, fmt.Errorf("%s: no line begins with spec, or none with text", name)
	}
	return f, f.checkDeviations()
}

// checkDeviations wants each row in which the driver differs to be named by one deviation, and no
// other row by any.
func (f *File) checkDeviations() error {
	named := map[string]int{}
	for _, d := range f.Deviations {
		for _, id := range d.Rows {
			named[id]++
		}
	}
	for _, r := range f.Rows {
		switch n := named[r.ID]; {
		case r.Kind == Differs && n != 1:
			return fmt.Errorf("%s:%d: %s differs, and %d deviations name it", f.Name, r.Line, r.ID, n)
		case r.Kind != Differs && n > 0:
			return fmt.Errorf("%s:%d: a deviation names %s, which does not differ", f.Name, r.Line, r.ID)
		}
		delete(named, r.ID)
	}
	for id := range named {
		return fmt.Errorf("%s: a deviation names %s, which does not exist", f.Name, id)
	}
	return nil
}

func parseRow(text string) (Row, error) {
	parts := strings.Split(text, "|")
	if len(parts) != 4 {
		return Row{}, fmt.Errorf("a row has three bars, not %d", len(parts)-1)
	}
	head := strings.Fields(parts[0])
	if len(head) != 3 {
		return Row{}, errors.New("a row begins with id, fingerprint and kind")
	}
	r := Row{ID: head[0], Print: head[1], Kind: Kind(head[2]), Where: list(parts[1]), Tests: list(parts[2]),
		Words: strings.TrimSpace(parts[3])}
	switch {
	case !idForm.MatchString(r.ID):
		return Row{}, fmt.Errorf("%q is no id such as CSOT-3", r.ID)
	case !printForm.MatchString(r.Print):
		return Row{}, fmt.Errorf("%q is no fingerprint", r.Print)
	case !slices.Contains(kinds, r.Kind):
		return Row{}, fmt.Errorf("%q is none of the kinds %v", r.Kind, kinds)
	case r.Words == "":
		return Row{}, fmt.Errorf("%s has no words", r.ID)
	case r.Kind == Same && (len(r.Where) != 1 || !idForm.MatchString(r.Where[0])):
		return Row{}, fmt.Errorf("%s does not name the one row that it repeats", r.ID)
	case r.Kind == Behaviour && len(r.Where) == 0:
		return Row{}, fmt.Errorf("%s does not say what decides", r.ID)
	case r.Applicable() && len(r.Tests) == 0:
		return Row{}, fmt.Errorf("%s has no test", r.ID)
	}
	return r, nil
}

func list(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
