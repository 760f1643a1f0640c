package unified

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"allium/internal/norace"
	"allium/internal/spectest"
	"allium/mongotest"
)

// real is the deployment of $MONGODB_URI, nil without one.
var real = sync.OnceValues(func() (*Deployment, error) {
	uri := os.Getenv("MONGODB_URI")
	if uri == "" {
		return nil, nil
	}
	d, err := Connect(uri)
	if err == nil {
		atEnd = d.Stop
	}
	return d, err
})

var atEnd = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	atEnd()
	os.Exit(code)
}

// TestSpecifications runs all suites that are meant to pass: with $MONGODB_URI against that
// deployment, one file after the other, as they share collections and fail points. Under the race
// detector a test runs on one of its topologies.
func TestSpecifications(t *testing.T) {
	suites, err := spectest.Suites(spectest.Find(t))
	if err != nil {
		t.Fatal(err)
	}
	on, err := real()
	if err != nil {
		t.Fatalf("the deployment of $MONGODB_URI: %v", err)
	}
	ran := 0
	for _, suite := range suites {
		if !suite.Passing() {
			continue
		}
		ran++
		for _, file := range suite.Files {
			t.Run(path.Join(suite.Name, filepath.Base(file)), func(t *testing.T) {
				if on == nil {
					t.Parallel()
				}
				runFile(t, Where{On: on, Single: norace.Detecting}, suite.Name, file)
			})
		}
	}
	if ran == 0 {
		t.Error("there are no suites")
	}
}

// runFile runs the tests of a file that is meant to pass.
func runFile(t *testing.T, where Where, suite, file string) {
	ran, why := 0, "the file has no tests"
	RunFile(t, where, suite, file, func(o Outcome) {
		if o.Skip == "" {
			ran++
		} else {
			why = o.Skip
		}
		if o.Err != nil {
			t.Errorf("%v: %s: %v", o.Target, o.Test, o.Err)
		}
	})
	if ran == 0 {
		t.Skip(why)
	}
}

// serverless are the suites that the specification Atlas Serverless Tests names.
var serverless = []string{
	"crud/tests/unified", "load-balancers/tests", "retryable-reads/tests/unified", "retryable-writes/tests/unified", "sessions/tests",
	"transactions/tests/unified", "versioned-api/tests",
}

// TestServerless runs the suites that a serverless deployment is tested with, with its settings.
func TestServerless(t *testing.T) {
	norace.Skip(t, "the tests are those of TestSpecifications, with other settings")
	if os.Getenv("MONGODB_URI") != "" {
		t.Skip("the settings are those of mongotest")
	}
	suites, err := spectest.Suites(spectest.Find(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range serverless {
		i := slices.IndexFunc(suites, func(s spectest.Suite) bool { return s.Name == name })
		if i < 0 {
			t.Errorf("there is no suite %s", name)
			continue
		}
		for _, file := range suites[i].Files {
			t.Run(path.Join(name, filepath.Base(file)), func(t *testing.T) {
				t.Parallel()
				runFile(t, Where{Serverless: true}, name, file)
			})
		}
	}
}

// TestRequiredAPIVersion runs suites with a standalone server that answers only clients which
// declare an API version: that of the Stable API with each version from 5.0 on, that of CRUD with
// the newest server that a test allows (specification: Stable API, "Testing with required API
// version"). All suites take minutes: command ledger runs them with -requireApiVersion, and with
// each version beside -server all.
func TestRequiredAPIVersion(t *testing.T) {
	norace.Skip(t, "the tests are those of TestSpecifications, with other settings")
	if os.Getenv("MONGODB_URI") != "" {
		t.Skip("the parameter is one of mongotest's")
	}
	suites, err := spectest.Suites(spectest.Find(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		if !s.Passing() {
			continue
		}
		var versions []string
		switch s.Name {
		case "versioned-api/tests":
			versions = slices.DeleteFunc(mongotest.Versions(), func(v string) bool { return compareVersions(v, "5.0") < 0 })
		case "crud/tests/unified":
			versions = []string{""}
		}
		for _, version := range versions {
			for _, file := range s.Files {
				t.Run(path.Join(s.Name, filepath.Base(file), version), func(t *testing.T) {
					t.Parallel()
					runFile(t, Where{RequireAPI: true, Server: version}, s.Name, file)
				})
			}
		}
	}
}
