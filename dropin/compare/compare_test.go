package compare

import (
	"bytes"
	"encoding/json"
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
func TestSame(t *testing.T) {
	t.Parallel()
	same(t, "./probe", "differences.txt", 1000)
}

// TestSameClient is TestSame about clients: on a replica set.
func TestSameClient(t *testing.T) {
	t.Parallel()
	// A server that says that it shuts down is looked at again when its next hello comes.
	same(t, "./clientprobe", "client.txt", 800, mongotest.Start(t, mongotest.ReplicaSet(1)).URI()+"&heartbeatFrequencyMS=500")
}

// TestSameRandom is TestSame about random calls: what they send and return is the same, without
// exceptions.
func TestSameRandom(t *testing.T) {
	t.Parallel()
	uri := mongotest.Start(t, mongotest.ReplicaSet(1)).URI()
	for seed := range uint64(2) {
		same(t, "./randomprobe", "random.txt", 1500, uri, fmt.Sprint(*randomSeed+seed), "1500")
	}
}

// TestWalks takes the same steps with both drivers, those of a table and random ones: what each
// returns is the same, but for what is listed.
func TestWalks(t *testing.T) {
	t.Parallel()
	// The four programs mostly wait, each on a deployment of its own.
	for _, version := range []struct{ name, program, list string }{
		{"v2", "./walkprobe", "walks.txt"},
		{"v1", "./walkprobe1", "walks1.txt"},
	} {
		t.Run(version.name, func(t *testing.T) {
			t.Parallel()
			args := func() []string {
				uri := mongotest.Start(t, mongotest.ReplicaSet(1)).URI() + "&heartbeatFrequencyMS=500"
				return []string{uri, fmt.Sprint(*randomSeed)}
			}
			beside(t, version.program, version.list, 2000, "", args)
		})
	}
}

// TestDeep compares each field of each event, and errors of connections. The program is the same
// for both versions: that of version 2 with other imports, and with testdata/deepprobe1 for what
// else differs.
func TestDeep(t *testing.T) {
	t.Parallel()
	for _, version := range []struct {
		name, program, list string
		overlay             func(*testing.T) string
	}{
		{"v2", "./deepprobe", "deep.txt", func(*testing.T) string { return "" }},
		{"v1", "./deepprobe1", "deep1.txt", func(t *testing.T) string { return forVersion1(t, "deepprobe") }},
	} {
		t.Run(version.name, func(t *testing.T) {
			t.Parallel()
			beside(t, version.program, version.list, 1000, version.overlay(t), func() []string {
				return []string{mongotest.Start(t, mongotest.ReplicaSet(1)).URI() + "&heartbeatFrequencyMS=500"}
			})
		})
	}
}

// TestSameMock compares what methods return for replies that no server sends, with a mock
// deployment: where the official driver panics, the drop-in must not.
func TestSameMock(t *testing.T) {
	t.Parallel()
	for _, version := range []struct{ name, program, list string }{
		{"v2", "./mockprobe", "mock.txt"},
		{"v1", "./mockprobe1", "mock1.txt"},
	} {
		t.Run(version.name, func(t *testing.T) {
			overlay := ""
			if version.name == "v1" {
				overlay = forVersion1(t, "mockprobe")
			}
			dir := t.TempDir()
			official := run(t, dir, version.program, "go.mod", nil, overlay)
			ours := run(t, dir, version.program, "dropin.mod", nil, overlay)
			if len(official) != len(ours) {
				t.Fatalf("of one alone are\n%s", strings.Join(alone(official, ours), "\n"))
			}
			for i := range official {
				what, was, _ := strings.Cut(official[i], "\t")
				_, is, _ := strings.Cut(ours[i], "\t")
				if is == "panic" {
					t.Errorf("panics: %s", what)
				}
				if was == "panic" {
					official[i] = ours[i]
				}
			}
			compare(t, official, ours, version.list, 2000)
		})
	}
}

// forVersion1 writes a program as one for version 1, and returns the overlay that has it as the
// package whose name has a 1 behind it.
func forVersion1(t *testing.T, program string) string {
	t.Helper()
	files, err := filepath.Glob(program + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	dir, folder := t.TempDir(), filepath.Join(moduleFolder(t), program+"1")
	replace := map[string]string{}
	for _, file := range files {
		source := file
		if filepath.Base(file) == "version.go" {
			source = "testdata/" + program + "1/version.go.txt"
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(dir, filepath.Base(file))
		text = bytes.ReplaceAll(text, []byte("go.mongodb.org/mongo-driver/v2/"), []byte("go.mongodb.org/mongo-driver/"))
		if err := os.WriteFile(target, text, 0o644); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(folder, filepath.Base(file))] = target
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func moduleFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// beside compares what a program prints with both modules, which run at the same time, each with
// arguments of its own.
func beside(t *testing.T, program, list string, least int, overlay string, args func() []string) {
	t.Helper()
	dir, first, second := t.TempDir(), args(), args()
	var official []string
	done := make(chan bool)
	go func() {
		defer close(done)
		official = run(t, dir, program, "go.mod", first, overlay)
	}()
	ours := run(t, dir, program, "dropin.mod", second, overlay)
	<-done
	compare(t, official, ours, list, least)
}

// TestSame1 is TestSame about the packages of version 1.
func TestSame1(t *testing.T) {
	t.Parallel()
	same(t, "./probe1", "differences1.txt", 2000)
}

// TestSameClient1 is TestSameClient about version 1.
func TestSameClient1(t *testing.T) {
	t.Parallel()
	same(t, "./clientprobe1", "client1.txt", 200, mongotest.Start(t, mongotest.ReplicaSet(1)).URI())
}

// same compares what a program prints, at least so many lines, with both modules.
func same(t *testing.T, program, listFile string, least int, args ...string) {
	dir := t.TempDir()
	compare(t, run(t, dir, program, "go.mod", args, ""), run(t, dir, program, "dropin.mod", args, ""), listFile, least)
}

// compare compares lines, at least so many, but for the differences that a file lists.
func compare(t *testing.T, official, ours []string, listFile string, least int) {
	t.Helper()
	if len(official) < least || len(official) != len(ours) {
		t.Errorf("the official driver prints %d lines, the drop-in %d; of one alone are\n%s", len(official), len(ours),
			strings.Join(alone(official, ours), "\n"))
		return
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

// alone returns what lines are about of which one of two sorted lists has more than the other.
func alone(official, ours []string) []string {
	var out []string
	for len(official) > 0 || len(ours) > 0 {
		first, second := "", ""
		if len(official) > 0 {
			first, _, _ = strings.Cut(official[0], "\t")
		}
		if len(ours) > 0 {
			second, _, _ = strings.Cut(ours[0], "\t")
		}
		switch {
		case len(ours) == 0 || len(official) > 0 && first < second:
			out, official = append(out, "official: "+official[0]), official[1:]
		case len(official) == 0 || second < first:
			out, ours = append(out, "drop-in:  "+ours[0]), ours[1:]
		default:
			official, ours = official[1:], ours[1:]
		}
	}
	return out
}

// run returns the sorted lines that a program prints, which may be built with an overlay, or none
// and an error of the test.
func run(t *testing.T, dir, source, modfile string, args []string, overlay string) []string {
	t.Helper()
	program := filepath.Join(dir, strings.TrimSuffix(modfile, ".mod")+".exe")
	if out, err := exec.Command("go", "build", "-modfile="+modfile, "-overlay="+overlay, "-o", program, source).CombinedOutput(); err != nil {
		t.Errorf("go build -modfile=%s: %v\n%s", modfile, err, out)
		return nil
	}
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v\n%s", program, err, out)
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	slices.Sort(lines)
	return lines
}
