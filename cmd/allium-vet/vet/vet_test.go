package vet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/packages"
)

// all runs every rule, so that the packages are loaded once. A folder of testdata is a module with
// the drivers of this repository: the mistakes compile, and the rules see the drivers' own types.
var all = &analysis.Analyzer{
	Name:     "all",
	Doc:      "runs all rules",
	Requires: []*analysis.Analyzer{sites},
	Run: func(pass *analysis.Pass) (any, error) {
		for _, rule := range Analyzers {
			p := *pass
			p.Analyzer = rule
			if _, err := rule.Run(&p); err != nil {
				return nil, err
			}
		}
		return nil, nil
	},
}

// TestRules wants each rule's findings in the folder of its name and nowhere else, and its fixes as
// the golden files have them.
func TestRules(t *testing.T) {
	all.Requires = nil
	patterns := []string{"./tasks"}
	seen := map[*analysis.Analyzer]bool{}
	for _, rule := range Analyzers {
		if _, err := os.Stat(filepath.Join("testdata", rule.Name, rule.Name+".go")); err != nil {
			t.Errorf("rule %s has no examples: %v", rule.Name, err)
		}
		patterns = append(patterns, "./"+rule.Name)
		for _, needed := range rule.Requires {
			if !seen[needed] {
				seen[needed] = true
				all.Requires = append(all.Requires, needed)
			}
		}
	}
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), all, patterns...)
}

// TestServer declares a version, and wants what this does not have.
func TestServer(t *testing.T) {
	set := func(v string) {
		if err := Operators.Flags.Set("server", v); err != nil {
			t.Fatal(err)
		}
	}
	set("5.0")
	defer set("")
	analysistest.Run(t, analysistest.TestData(), Operators, "./oldserver")
}

// TestFixesCompile checks the types of the examples with their fixes.
func TestFixesCompile(t *testing.T) {
	goldens, err := filepath.Glob(filepath.Join("testdata", "*", "*.golden"))
	if err != nil || len(goldens) == 0 {
		t.Fatal(goldens, err)
	}
	fixed := map[string][]byte{}
	var patterns []string
	for _, golden := range goldens {
		content, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		path, err := filepath.Abs(strings.TrimSuffix(golden, ".golden"))
		if err != nil {
			t.Fatal(err)
		}
		fixed[path] = content
		patterns = append(patterns, "./"+filepath.Base(filepath.Dir(path)))
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax, Dir: "testdata", Overlay: fixed, Env: append(os.Environ(), "GOWORK=off", "GOPROXY=off"),
	}, patterns...)
	if err != nil || len(pkgs) != len(goldens) {
		t.Fatal(pkgs, err)
	}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Errorf("%s: the fixes do not compile: %v", p.PkgPath, e)
		}
	}
}

// TestTable wants the table to say what the manual says of a few words.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		kind, name, version string
		missing             string
	}{
		{"stage", "$densify", "5.0", "servers have it since 5.1"},
		{"stage", "$densify", "5.1", ""},
		{"stage", "$match", "4.2", ""},
		{"expression", "$toUUID", "7.0.5", "servers have it since 8.0"},
		{"stage", "$changeStreamSplitLargeEvent", "6.0.9", ""},
		{"stage", "$changeStreamSplitLargeEvent", "6.0.8", "servers have it since 7.0"},
		{"filter", "$sampleRate", "4.4", ""},
	} {
		v, err := parseVersion(c.version)
		if err != nil || !known(c.kind, c.name) {
			t.Fatal(c, err)
		}
		if got := missingIn(v, c.kind, c.name); got != c.missing {
			t.Errorf("%s %s in %s: %q, want %q", c.kind, c.name, c.version, got, c.missing)
		}
	}
	for _, bad := range []string{"", "6", "6.x", "1.2.3.4"} {
		if _, err := parseVersion(bad); err == nil {
			t.Errorf("version %q is taken", bad)
		}
	}
	for name, want := range map[string]string{"$macth": "$match", "match": "$match", "$Match": "$match", "$mat": "", "$lookups": "$lookup", "$x": ""} {
		if got := nearest("stage", name); got != want {
			t.Errorf("nearest to %s: %q, want %q", name, got, want)
		}
	}
}
