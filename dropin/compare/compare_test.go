package compare

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"allium/mongotest"
)

var (
	update     = flag.Bool("update", false, "write the lists of differences in testdata anew")
	randomSeed = flag.Uint64("seed", 1, "the first of the two seeds of TestSameRandom, and that of TestWalks")
)

// TestSame builds the same program with the official driver and with the drop-in, and compares what
// it prints about bson and options. Each line that differs is in testdata/differences.txt, with
// what the official driver prints and what the drop-in does; docs/dropin.md says why.
func TestSame(t *testing.T) { same(t, "./probe", "differences.txt", 1000) }

// TestSameClient is TestSame about clients: on a replica set.
func TestSameClient(t *testing.T) {
	// A server that says that it shuts down is looked at again when its next hello comes.
	same(t, "./clientprobe", "client.txt", 800, mongotest.Start(t, mongotest.ReplicaSet(1)).URI()+"&heartbeatFrequencyMS=500")
}

// TestSameRandom is TestSame about random calls: what they send and return is the same, without
// exceptions.
func TestSameRandom(t *testing.T) {
	uri := mongotest.Start(t, mongotest.ReplicaSet(1)).URI()
	for seed := range uint64(2) {
		same(t, "./randomprobe", "random.txt", 1500, uri, fmt.Sprint(*randomSeed+seed), "1500")
	}
}

// TestWalks takes the same steps with both drivers, those of a table and random ones: what each
// returns is the same, but for what is listed.
func TestWalks(t *testing.T) {
	same(t, "./walkprobe", "walks.txt", 2000, mongotest.Start(t, mongotest.ReplicaSet(1)).URI()+"&heartbeatFrequencyMS=500",
		fmt.Sprint(*randomSeed))
}

// TestSame1 is TestSame about the packages of version 1.
func TestSame1(t *testing.T) { same(t, "./probe1", "differences1.txt", 2000) }

// TestSameClient1 is TestSameClient about version 1.
func TestSameClient1(t *testing.T) {
	same(t, "./clientprobe1", "client1.txt", 200, mongotest.Start(t, mongotest.ReplicaSet(1)).URI())
}

// same compares what a program prints, at least so many lines, with both modules.
func same(t *testing.T, program, listFile string, least int, args ...string) {
	dir := t.TempDir()
	official, ours := run(t, dir, program, "go.mod", args), run(t, dir, program, "dropin.mod", args)
	if len(official) < least || len(official) != len(ours) {
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
	file := filepath.Join("testdata", listFile)
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

// run returns the sorted lines that a program prints.
func run(t *testing.T, dir, source, modfile string, args []string) []string {
	t.Helper()
	program := filepath.Join(dir, strings.TrimSuffix(modfile, ".mod")+".exe")
	if out, err := exec.Command("go", "build", "-modfile="+modfile, "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("go build -modfile=%s: %v\n%s", modfile, err, out)
	}
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	slices.Sort(lines)
	return lines
}
