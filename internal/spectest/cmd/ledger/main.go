// Command ledger runs the specifications' tests in the unified test format and prints a line per
// suite, a total, why tests failed, and every test that was skipped with its reason. Suites in
// other formats it lists with the package whose tests run them. Its exit status is 1 if any test
// failed, or if there is a suite that nobody runs.
//
//	go run ./internal/spectest/cmd/ledger [-v] [-json FILE] [-page] [-server VERSION]
//		[-serverless | -requireApiVersion] [-specifications FOLDER] [suite ...]
//
// A test runs on every topology that it allows, against a mongotest deployment of the newest server
// version that it allows, in a testing/synctest bubble. With -server it runs at that server version
// only ("4.4", "4.4.0"), and with "-server all" at each that mongotest has. With -serverless it
// runs on one mongos behind a load balancer, with TLS, compression, authentication and the Stable
// API, and with -requireApiVersion on a standalone server that answers only clients which declare a
// version of that. With $MONGODB_URI set, all run against that deployment.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"allium/internal/requirements"
	"allium/internal/spectest"
	"allium/internal/unified"
	"allium/mongotest"
)

func main() {
	testing.Init() // bubbles need a test to be in
	verbose := flag.Bool("v", false, "print every failure, not only how many there are of a kind")
	records := flag.String("json", "", "write a record per test to this `file`")
	server := flag.String("server", "", "run at this server `version` of mongotest, or at each if it is \"all\"")
	serverless := flag.Bool("serverless", false, "run with the settings of the specification Atlas Serverless Tests")
	requireAPI := flag.Bool("requireApiVersion", false,
		"run with a standalone server that requires authentication and a version of the Stable API")
	page := flag.Bool("page", false,
		"write the counts into "+spectest.Page+"; if others stand there, the exit status is 1")
	dir := flag.String("specifications", spectest.Folder(), "`folder` of the specifications")
	flag.Parse()
	if *dir == "" {
		fmt.Fprintf(os.Stderr, "ledger: no specifications found; get them with\n\n\tgit clone https://github.com/mongodb/specifications testdata/specifications\n"+
			"\tgit -C testdata/specifications checkout %s\n\nor set ALLIUM_SPECIFICATIONS to the folder of a checkout\n", requirements.Commit)
		os.Exit(2)
	}
	l := &ledger{verbose: *verbose, where: unified.Where{Serverless: *serverless, RequireAPI: *requireAPI}}
	if *serverless && *requireAPI {
		fmt.Fprintln(os.Stderr, "ledger: -serverless and -requireApiVersion exclude each other")
		os.Exit(2)
	}
	if *page && (*serverless || *requireAPI || *server != "" || os.Getenv("MONGODB_URI") != "" || flag.NArg() > 0) {
		fmt.Fprintln(os.Stderr,
			"ledger: the page has the counts of all suites on mongotest: -page goes with no other choice")
		os.Exit(2)
	}
	servers, err := versions(*server)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(2)
	}
	if uri := os.Getenv("MONGODB_URI"); uri != "" {
		if *server != "" || *serverless || *requireAPI {
			fmt.Fprintln(os.Stderr, "ledger: -server, -serverless and -requireApiVersion choose what mongotest is: they cannot be used with MONGODB_URI")
			os.Exit(2)
		}
		if l.where.On, err = unified.Connect(uri); err != nil {
			fmt.Fprintln(os.Stderr, "ledger:", err)
			os.Exit(2)
		}
	}
	if *records != "" {
		f, err := os.Create(*records)
		if err != nil {
			fmt.Fprintln(os.Stderr, "ledger:", err)
			os.Exit(2)
		}
		l.records = json.NewEncoder(f)
	}
	suites, err := spectest.Suites(*dir)
	if err == nil {
		suites, err = chosen(suites, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(2)
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "ledger", F: func(t *testing.T) {
		for _, l.where.Server = range servers {
			l.run(t, suites)
		}
		if l.where.On != nil {
			l.where.On.Stop()
		}
		if *page {
			l.failed = !l.page() || l.failed
		}
		if l.failed {
			os.Exit(1)
		}
		os.Exit(0)
	}}}, nil, nil)
}

// versions returns the server versions that -server means: one, "" for each test's newest, or all.
func versions(server string) ([]string, error) {
	if server == "" {
		return []string{""}, nil
	}
	if server != "all" {
		d, err := mongotest.Open(mongotest.Version(server), mongotest.InMemory())
		if err != nil {
			return nil, err
		}
		d.Stop()
		return []string{server}, nil
	}
	var all []string
	for _, v := range slices.Backward(mongotest.Versions()) {
		all = append(all, v[:strings.LastIndexByte(v, '.')])
	}
	return all, nil
}

// chosen returns the suites of these names, all if there are no names.
func chosen(all []spectest.Suite, names []string) ([]spectest.Suite, error) {
	if len(names) == 0 {
		return all, nil
	}
	var list []spectest.Suite
	for _, name := range names {
		i := slices.IndexFunc(all, func(s spectest.Suite) bool { return s.Name == strings.TrimSuffix(name, "/") })
		if i < 0 {
			return nil, fmt.Errorf("there is no suite %s", name)
		}
		list = append(list, all[i])
	}
	return list, nil
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

type ledger struct {
	verbose bool
	where   unified.Where
	records *json.Encoder
	failed  bool

	mu      sync.Mutex
	total   counts
	suites  map[string]spectest.Count
	reasons map[string]int // of failures
	skips   map[string]int
	notes   map[string]int // of tests that ran otherwise than they are written
}

const format = "%-52s %6v %6v %7v %7v %8v\n"

func (l *ledger) run(t *testing.T, suites []spectest.Suite) {
	l.suites = map[string]spectest.Count{}
	l.total, l.reasons, l.skips, l.notes = counts{}, map[string]int{}, map[string]int{}, map[string]int{}
	if l.where.Server != "" {
		fmt.Printf("\nserver %s\n", l.where.Server)
	}
	fmt.Printf(format, "suite", "files", "tests", "passed", "failed", "skipped")
	var elsewhere, unbuilt, nowhere []spectest.Suite
	for _, s := range suites {
		switch {
		case s.Passing():
			line := l.suite(t, &s)
			fmt.Printf(format, s.Name, line.files, line.tests, line.passed, line.failed, line.skipped)
			l.total.add(line)
			l.suites[s.Name] = spectest.Count{Passed: line.passed, Tests: line.tests, Skipped: line.skipped}
		case s.Runner != "":
			elsewhere = append(elsewhere, s)
		case s.Reason != "":
			unbuilt = append(unbuilt, s)
		default:
			nowhere = append(nowhere, s)
			l.total.failed++
		}
	}
	l.failed = l.failed || l.total.failed > 0
	fmt.Printf(format, "total", l.total.files, l.total.tests, l.total.passed, l.total.failed, l.total.skipped)
	list("failures, by what the runner does not know or by file:", l.reasons)
	list("skipped:", l.skips)
	list("run otherwise than written:", l.notes)
	if len(elsewhere) > 0 {
		fmt.Println("\nrun by go test:")
	}
	for _, s := range elsewhere {
		fmt.Printf("%6d files of %s: ./%s\n", len(s.Files), s.Name, s.Runner)
	}
	for _, s := range unbuilt {
		fmt.Printf("\nnot run: %d files of %s: %s\n", len(s.Files), s.Name, s.Reason)
	}
	for _, s := range nowhere {
		fmt.Printf("\nFAIL %s: %d files that are not in the unified format, and no package is known to run them\n",
			s.Name, len(s.Files))
	}
}

// page writes the counts into the page, and reports whether they were there.
func (l *ledger) page() bool {
	old, err := os.ReadFile(spectest.Page)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger: -page wants to run in the root of the repository:", err)
		return false
	}
	text := strings.ReplaceAll(string(old), "\r\n", "\n")
	page, err := spectest.Rewrite(text, l.suites)
	if err == nil && page != text {
		err = errors.New("other counts were there; they are mended")
		if e := os.WriteFile(spectest.Page, []byte(page), 0o644); e != nil {
			err = e
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "ledger: %s: %v\n", spectest.Page, err)
	}
	return err == nil
}

// list prints how often each of some things was there, the most frequent first.
func list(title string, of map[string]int) {
	if len(of) == 0 {
		return
	}
	fmt.Println("\n" + title)
	keys := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		if d := of[b] - of[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, k := range keys {
		fmt.Printf("%6d %s\n", of[k], k)
	}
}

// suite runs the files of one folder.
func (l *ledger) suite(t *testing.T, s *spectest.Suite) counts {
	line := counts{files: len(s.Files)}
	workers := runtime.GOMAXPROCS(0)
	if l.where.On != nil {
		workers = 1 // the tests of different files share collections and fail points
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, workers)
	for _, file := range s.Files {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			unified.RunFile(t, l.where, s.Name, file, func(o unified.Outcome) { l.report(&line, &o) })
		})
	}
	wg.Wait()
	return line
}

// record is what -json writes of a test.
type record struct {
	Suite    string `json:"suite"`
	File     string `json:"file"`
	Test     string `json:"test"`
	Topology string `json:"topology,omitempty"`
	Version  string `json:"version,omitempty"`
	Auth     bool   `json:"auth,omitempty"`
	Result   string `json:"result"` // "passed", "failed" or "skipped"
	Reason   string `json:"reason,omitempty"`
	Note     string `json:"note,omitempty"` // what was not as the test has it
}

func (l *ledger) report(line *counts, o *unified.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := record{Suite: o.Suite, File: o.File, Test: o.Test, Topology: o.Target.Topology, Version: o.Target.Version,
		Auth: o.Target.Auth, Result: "passed", Note: o.Note}
	line.tests++
	if o.Note != "" {
		l.notes[fmt.Sprintf("%s/%s %q: %s", o.Suite, o.File, o.Test, o.Note)]++
	}
	switch {
	case o.Skip != "":
		line.skipped++
		r.Result, r.Reason = "skipped", o.Skip
		l.skips[fmt.Sprintf("%s/%s %q: %s", o.Suite, o.File, o.Test, o.Skip)]++
	case o.Err == nil:
		line.passed++
	default:
		line.failed++
		r.Result, r.Reason = "failed", o.Err.Error()
		text, _, _ := strings.Cut(r.Reason, "\n")
		if _, what, ok := strings.Cut(text, "): "); ok && o.NotKnown() {
			l.reasons[what]++
		} else {
			l.reasons[o.Suite+"/"+o.File]++
		}
		if l.verbose {
			fmt.Printf("FAIL %s/%s %v %q: %s\n", o.Suite, o.File, o.Target, o.Test, text)
		}
	}
	if l.records != nil {
		if err := l.records.Encode(r); err != nil {
			fmt.Fprintln(os.Stderr, "ledger:", err)
		}
	}
}
