// Command bite shows that the campaign bites: it builds the driver with one deliberate bug at a
// time, in an overlay that leaves the tree alone, and runs histories until one of them breaks a
// promise or the budget is spent: simulated ones, or those in real time if the bug shows there
// only.
//
//	go run ./internal/campaign/cmd/bite [-budget 5m] [-only NAME] [-v]
//
// It prints a row for each bug, and exits with status 1 if one of them was not found.
package main

import (
	"allium/internal/patch"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	budget := flag.Duration("budget", 5*time.Minute, "how long to look for each bug")
	only := flag.String("only", "", "look for the bug with this name only")
	seed := flag.Uint64("seed", 1, "the campaigns' seed")
	verbose := flag.Bool("v", false, "print what the campaigns print")
	flag.Parse()
	dir, err := os.MkdirTemp("", "bite")
	if err != nil {
		fail(err)
	}
	defer os.RemoveAll(dir)
	missed := 0
	for _, b := range bugs {
		if *only != "" && b.name != *only {
			continue
		}
		bin, err := b.build(dir)
		if err != nil {
			fail(fmt.Errorf("%s: %w", b.name, err))
		}
		start := time.Now()
		how, found := b.look(bin, *budget, *seed, *verbose)
		fmt.Printf("| %s | %s | %v | %s |\n", b.name, b.topology, time.Since(start).Round(time.Second), how)
		if !found {
			missed++
		}
	}
	if missed > 0 {
		fmt.Printf("%d not found\n", missed)
		os.RemoveAll(dir)
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bite:", err)
	os.Exit(2)
}

// build builds the campaign with the bug.
func (b bug) build(dir string) (bin string, err error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, e := range b.edits {
		path, err := filepath.Abs(e.file)
		if err != nil {
			return "", err
		}
		from := path
		if overlay.Replace[path] != "" {
			from = overlay.Replace[path]
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		bad, err := patch.Once(text, e.old, e.new)
		if err != nil {
			return "", fmt.Errorf("%s: %w: the list of bugs is out of date", e.file, err)
		}
		changed := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(e.file)))
		if err := os.WriteFile(changed, bad, 0o600); err != nil {
			return "", err
		}
		overlay.Replace[path] = changed
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return "", err
	}
	bin = filepath.Join(dir, "campaign")
	out, err := exec.Command("go", "build", "-overlay", file, "-o", bin,
		"./internal/campaign/cmd/campaign").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return bin, nil
}

// look runs the campaign and returns the first promise that it saw broken.
func (b bug) look(bin string, budget time.Duration, seed uint64, verbose bool) (how string, found bool) {
	mode := "-dense"
	if b.real {
		mode = "-real"
	}
	out, err := exec.Command(bin, "-topology", b.topology, "-seed", fmt.Sprint(seed), "-duration", "100000h", "-budget",
		budget.String(), "-shrink", "0", mode, "-patience", budget.String()).CombinedOutput()
	if verbose {
		os.Stdout.Write(out)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "not found", false
	case !errors.As(err, &exit):
		return err.Error(), false
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "VIOLATION "); ok {
			return shorten(text), true
		}
		if strings.HasSuffix(line, " does not end") {
			return line, true
		}
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return shorten(line), true
		}
	}
	return "the campaign ended with " + err.Error(), false
}

func shorten(text string) string {
	if r := []rune(text); len(r) > 110 {
		text = string(r[:110]) + "…"
	}
	return strings.ReplaceAll(text, "|", "/")
}
