// Command accept runs test suites of others, which were written for the official driver, with the
// official driver and with the drop-in, and prints both results and the processor time of both:
//
//	go run ./dropin/cmd/accept            # all suites
//	go run ./dropin/cmd/accept casbin     # those whose names have this in them
//	go run ./dropin/cmd/accept -compile   # compile the programs that it has no deployment for
//
// The suites come from the Go module proxy into a temporary folder, and are not changed but for the
// replace lines of their go.mod, of which those to folders beside the module are left out.
// Deployments are mongotest's; many suites want theirs at the port 27017. A suite in which a test
// fails that passes with the official driver makes the command fail, and a program that compiles
// with the official driver alone.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

var (
	keep    = flag.Bool("keep", false, "keep the temporary folder, and print its name")
	verbose = flag.Bool("v", false, "print what the tests print that fail with the drop-in")
	compile = flag.Bool("compile", false, "compile programs, their tests too, in place of running suites")
	limit   = flag.Duration("timeout", 10*time.Minute, "how long a suite may run, once for each driver")
)

func main() {
	flag.Parse()
	ok, err := run(context.Background(), flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "accept:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run runs the suites, and reports whether all passed.
func run(ctx context.Context, names []string) (bool, error) {
	root, err := moduleRoot()
	if err != nil {
		return false, err
	}
	temp, err := os.MkdirTemp("", "accept")
	if err != nil {
		return false, err
	}
	if *keep {
		fmt.Println(temp)
	} else {
		defer os.RemoveAll(temp)
	}
	chosen := func(module string) bool {
		return len(names) == 0 ||
			slices.ContainsFunc(names, func(n string) bool { return strings.Contains(module, n) })
	}
	if *compile {
		return compileAll(ctx, root, temp, chosen)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "suite\tofficial\tdrop-in\tofficial CPU\tdrop-in CPU\tratio")
	all, ran := true, 0
	for i, s := range suites {
		if !chosen(s.module) {
			continue
		}
		ran++
		official, ours, err := s.run(ctx, root, filepath.Join(temp, fmt.Sprint(i)))
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.module, err)
		}
		fmt.Fprintf(table, "%s@%s\t%v\t%v\t%v\t%v\t%.2f\n", s.module, s.version, official, ours,
			official.cpu.Round(time.Millisecond), ours.cpu.Round(time.Millisecond),
			float64(ours.cpu)/float64(max(official.cpu, 1)))
		for _, name := range ours.failed {
			if slices.Contains(official.failed, name) {
				continue
			}
			all = false
			fmt.Fprintf(os.Stderr, "%s: %s fails with the drop-in\n", s.module, name)
		}
		if lost := len(official.passed) - len(ours.passed); lost > 0 {
			all = false
			fmt.Fprintf(os.Stderr, "%s: %d tests fewer pass with the drop-in\n", s.module, lost)
		}
		if *verbose && len(ours.failed) > 0 {
			os.Stderr.Write(ours.output)
		}
	}
	if ran == 0 {
		return false, errors.New("no suite has such a name")
	}
	return all, table.Flush()
}

// compileAll compiles the programs that are chosen, with both drivers, and reports whether all do
// with the drop-in that do with the official driver.
func compileAll(ctx context.Context, root, temp string, chosen func(string) bool) (bool, error) {
	all, ran := true, 0
	for i, p := range programs {
		if !chosen(p.module) {
			continue
		}
		ran++
		source, err := download(ctx, p.module+"@"+p.version)
		if err != nil {
			return false, fmt.Errorf("%s: %w", p.module, err)
		}
		failed := map[string]error{}
		for _, with := range drivers(root) {
			dir := filepath.Join(temp, fmt.Sprint(i), with.name)
			if err := with.install(ctx, dir, source); err != nil {
				return false, fmt.Errorf("%s: %w", p.module, err)
			}
			packages := p.packages
			if len(packages) == 0 {
				packages = []string{"./..."}
			}
			// One analyzer that looks at little: the compiler's errors are what is asked for.
			args := append([]string{"vet", "-mod=mod", "-buildtag"}, packages...)
			_, failed[with.name] = command(ctx, dir, "go", args...)
			if err := os.RemoveAll(dir); err != nil && !*keep {
				return false, err
			}
		}
		switch {
		case failed["dropin"] == nil:
			fmt.Printf("%s@%s compiles\n", p.module, p.version)
		case failed["official"] != nil:
			fmt.Printf("%s@%s compiles with neither driver\n", p.module, p.version)
		default:
			all = false
			fmt.Fprintf(os.Stderr, "%s@%s does not compile with the drop-in: %v\n", p.module, p.version,
				failed["dropin"])
		}
	}
	if ran == 0 {
		return false, errors.New("no program has such a name")
	}
	return all, nil
}

// A driver is how a module is told to use it.
type driver struct {
	name  string
	edits []string // of go.mod
}

// drivers are the official one and the drop-in.
func drivers(root string) []driver {
	return []driver{{"official", nil}, {"dropin", []string{
		"-go=1.26.0", "-require=allium@v0.0.0", "-replace=allium=" + root,
		"-replace=go.mongodb.org/mongo-driver=" + filepath.Join(root, "dropin", "driver1"),
		"-replace=go.mongodb.org/mongo-driver/v2=" + filepath.Join(root, "dropin", "v2"),
	}}}
}

// install copies a module to dir, and makes it use the driver.
func (d driver) install(ctx context.Context, dir, source string) error {
	if err := copyTree(dir, source); err != nil {
		return err
	}
	out, err := command(ctx, dir, "go", "mod", "edit", "-json")
	if err != nil {
		return err
	}
	var mod struct {
		Go      string
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return err
	}
	edits := []string{"mod", "edit", "-go=" + cmp.Or(mod.Go, "1.16")}
	for _, r := range mod.Replace {
		if strings.HasPrefix(r.New.Path, ".") {
			edits = append(edits, "-dropreplace="+r.Old.Path)
		}
	}
	_, err = command(ctx, dir, "go", append(edits, d.edits...)...)
	return err
}

// moduleRoot returns the folder of Allium's module.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "allium").Output()
	return strings.TrimSpace(string(out)), err
}

// An outcome is what came of a suite.
type outcome struct {
	passed, failed []string
	cpu            time.Duration
	output         []byte
}

func (o outcome) String() string {
	if len(o.failed) == 0 {
		return fmt.Sprintf("%d pass", len(o.passed))
	}
	return fmt.Sprintf("%d pass, %d fail", len(o.passed), len(o.failed))
}

// attempts is how often a suite is run at most, with each driver, while a test fails: some have
// races of their own. The best run counts.
const attempts = 3

// run runs the suite with both drivers.
func (s suite) run(ctx context.Context, root, temp string) (official, ours outcome, err error) {
	source, err := download(ctx, s.module+"@"+s.version)
	if err != nil {
		return official, ours, err
	}
	outcomes := map[string]*outcome{"official": &official, "dropin": &ours}
	for _, with := range drivers(root) {
		dir, best := filepath.Join(temp, with.name), outcomes[with.name]
		if err := with.install(ctx, dir, source); err != nil {
			return official, ours, err
		}
		for range attempts {
			o, err := s.test(ctx, dir)
			if err != nil {
				return official, ours, fmt.Errorf("with the %s driver: %w", with.name, err)
			}
			if best.output == nil || len(o.failed) < len(best.failed) {
				*best = o
			}
			if len(o.failed) == 0 {
				break
			}
		}
	}
	return official, ours, nil
}

// test builds the tests of the suite in dir, and runs them.
func (s suite) test(ctx context.Context, dir string) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	environment := os.Environ()
	if s.deployment != nil {
		stop, env, err := s.deployment()
		if err != nil {
			return o, err
		}
		defer stop()
		environment = append(environment, env...)
	}
	for _, pkg := range s.packages {
		folder := filepath.Join(dir, pkg)
		program := filepath.Join(folder, "accept.test")
		if _, err := command(ctx, folder, "go", "test", "-mod=mod", "-vet=off", "-c", "-tags", s.tags, "-o", program,
			"."); err != nil {
			return o, err
		}
		cmd := exec.CommandContext(ctx, program, "-test.v", "-test.timeout="+limit.String())
		cmd.Dir, cmd.Env = folder, environment
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			return o, err
		}
		o.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		o.output = append(o.output, out...)
		for line := range bytes.Lines(out) {
			text := strings.TrimSpace(string(line))
			if name, ok := strings.CutPrefix(text, "--- PASS: "); ok {
				o.passed = append(o.passed, pkg+" "+strings.Fields(name)[0])
			}
			if name, ok := strings.CutPrefix(text, "--- FAIL: "); ok {
				o.failed = append(o.failed, pkg+" "+strings.Fields(name)[0])
			}
		}
		if err != nil && len(o.failed) == 0 {
			o.failed = append(o.failed, pkg+" (its process)")
		}
	}
	return o, nil
}

// download returns the folder of a module in the cache.
func download(ctx context.Context, module string) (string, error) {
	out, err := command(ctx, "", "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", err
	}
	return m.Dir, nil
}

// copyTree copies a folder, so that its files can be written.
func copyTree(to, from string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if d.IsDir() {
			mode = 0o755
		}
		return os.Chmod(path, mode)
	})
}

// command runs a program, and returns what it writes to its standard output.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, problems bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &problems
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, problems.Bytes())
	}
	return out.Bytes(), nil
}
