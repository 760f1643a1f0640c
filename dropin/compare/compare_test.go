package compare

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/differences.txt anew")

// TestSame builds the same program with the official driver and with the drop-in, and compares what
// it prints. Each line that differs is in testdata/differences.txt, with what the official driver
// prints and what the drop-in does; docs/dropin.md says why.
func TestSame(t *testing.T) {
	dir := t.TempDir()
	official, ours := run(t, dir, "go.mod"), run(t, dir, "dropin.mod")
	if len(official) < 1000 || len(official) != len(ours) {
		t.Fatalf("the official driver prints %d lines, the drop-in %d", len(official), len(ours))
	}
	var differ []string
	for i, line := range official {
		what, was, _ := strings.Cut(line, "\t")
		name, is, _ := strings.Cut(ours[i], "\t")
		if name != what {
			t.Fatalf("line %d is about %q with the official driver, about %q with the drop-in", i, what, name)
		}
		if was != is {
			differ = append(differ, what+"\n\tofficial: "+was+"\n\tdrop-in:  "+is+"\n")
		}
	}
	file := filepath.Join("testdata", "differences.txt")
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(differ, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	listed := string(want)
	for _, d := range differ {
		if !strings.Contains("\n"+listed, "\n"+d) {
			t.Errorf("differs, and is not listed: %s", d)
		}
		listed = strings.TrimPrefix(strings.Replace("\n"+listed, "\n"+d, "\n", 1), "\n")
	}
	if listed != "" {
		t.Errorf("is listed, and does not differ:\n%s", listed)
	}
}

// run returns the sorted lines that the probe prints.
func run(t *testing.T, dir, modfile string) []string {
	t.Helper()
	program := filepath.Join(dir, strings.TrimSuffix(modfile, ".mod")+".exe")
	if out, err := exec.Command("go", "build", "-modfile="+modfile, "-o", program, "./probe").CombinedOutput(); err != nil {
		t.Fatalf("go build -modfile=%s: %v\n%s", modfile, err, out)
	}
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	slices.Sort(lines)
	return lines
}
