package requirements

import (
	"slices"
	"strings"
	"testing"
)

// TestMutants wants each kind of change, in the one function that is named, and a file that parses
// after each.
func TestMutants(t *testing.T) {
	const text = `package p

func (t *T[V]) f(a, b int) bool {
	if a < b && t.on {
		t.n = 3
		t.log("x")
	}
	t.n++
	go func() (int, bool) { return a, b == 2 }()
	return a == b
}

func f() { other() }
`
	want := []string{
		"a < b && t.on becomes !(a < b && t.on)", "a < b && t.on becomes a < b", "a < b && t.on becomes t.on",
		"a < b becomes a >= b", "a < b becomes a <= b", "t.n = 3 is left out", "3 becomes 4", `t.log("x") is left out`, "t.n++ is left out",
		"b == 2 becomes b != 2", "2 becomes 3", "a == b becomes !(a == b)", "a == b becomes a != b",
	}
	found, err := mutants([]byte(text), "(*T).f")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, m.What)
		if again, err := mutants(m.Text, "(*T).f"); err != nil || len(again) == 0 || string(m.Text) == text || !strings.Contains(string(m.Text), "other()") {
			t.Errorf("%s: %v, makes\n%s", m.What, err, m.Text)
		}
		if line := strings.Split(text, "\n")[m.Line-1]; !strings.Contains(line, strings.Fields(m.What)[0]) {
			t.Errorf("%s is not in line %d: %s", m.What, m.Line, line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if found, err := mutants([]byte(text), "g"); err != nil || len(found) > 0 {
		t.Errorf("of a function that is not there: %v, %v", found, err)
	}
}

// TestMutantsOfSource finds a function in its package's files.
func TestMutantsOfSource(t *testing.T) {
	s, err := ReadSource("../..", "")
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.Mutants("../..", "exec.(*run).choose")
	if err != nil || len(found) < 10 || found[0].File != "internal/exec/attempt.go" {
		t.Errorf("%d mutants, %v", len(found), err)
	}
	if _, err := s.Mutants("../..", "exec.(*run).none"); err == nil {
		t.Error("of a function that is not there: no error")
	}
}

// TestModule finds where the tests of packages of other modules run.
func TestModule(t *testing.T) {
	s, err := ReadSource("../..", "")
	if err != nil {
		t.Fatal(err)
	}
	for pkg, want := range map[string][2]string{
		"./internal/exec": {".", "./internal/exec"}, ".": {".", "."}, "./otel": {"./otel", "."}, "./otel/example": {"./otel/example", "."},
		"./interop/java": {"./interop", "./java"}, "./otelless": {".", "./otelless"},
	} {
		if dir, below := s.Module(pkg); dir != want[0] || below != want[1] {
			t.Errorf("%s: %s in %s, want %s in %s", pkg, below, dir, want[1], want[0])
		}
	}
}
