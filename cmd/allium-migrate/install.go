package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// install writes the lines that put the drop-in in the official driver's place, builds and vets the
// packages, and puts everything back as it was if that fails: undone says that it did.
func (u *uses) install(dir string, patterns []string, allium, module string) (undone bool, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	work := ""
	if out, err := goOutput(dir, nil, "env", "GOWORK"); err != nil {
		return false, err
	} else if work = strings.TrimSpace(string(out)); work == "off" {
		work = ""
	}
	roots := []string{u.root}
	if work != "" {
		roots = append(roots, filepath.Dir(work))
	}
	before, err := takeSnapshot(roots)
	if err != nil {
		return false, err
	}
	defer before.remove()
	complaints := ""
	run := func(dir string, args ...string) error {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		cmd.WaitDelay = 5 * time.Second
		cmd.Env = append(os.Environ(), "GOFLAGS="+flagsWithoutMod())
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			if cause := ctx.Err(); cause != nil {
				err = errors.New("interrupted")
			}
			if complaints = ""; args[0] == "vet" && ctx.Err() == nil {
				complaints = out.String()
			}
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args[:min(2, len(args))], " "), err,
				strings.TrimSpace(out.String()))
		}
		return nil
	}
	write := func() (vet []string, err error) {
		require, replace := u.edits(allium, module)
		edit := []string{"mod", "edit", "-require=" + strings.Replace(require, " ", "@", 1)}
		for _, r := range replace {
			edit = append(edit, "-replace="+r[0]+"="+r[1])
		}
		if err := run(u.root, edit...); err != nil {
			return nil, err
		}
		if err := addSums(filepath.Join(u.root, "go.sum"), allium); err != nil {
			return nil, err
		}
		build := []string{"build"}
		vet = []string{"vet"}
		switch vendored := slices.ContainsFunc(roots, hasVendor); {
		case work != "" && vendored:
			if err := run(filepath.Dir(work), "work", "vendor"); err != nil {
				return nil, err
			}
		case work != "": // the go command changes no go.mod of a workspace
		case vendored:
			// A vendor folder needs a go.mod that says all of it.
			if err := run(dir, append([]string{"build", "-mod=mod", "-o", os.DevNull}, patterns...)...); err != nil {
				return nil, err
			}
			if err := run(u.root, "mod", "vendor"); err != nil {
				return nil, err
			}
		default:
			build, vet = append(build, "-mod=mod"), append(vet, "-mod=mod")
		}
		// The packages are not all of one program: what is built goes nowhere.
		if err := run(dir, append(append(build, "-o", os.DevNull), patterns...)...); err != nil {
			return nil, err
		}
		return append(vet, patterns...), nil
	}
	undo := func(err error) (bool, error) {
		if back := before.restore(); back != nil {
			return false, fmt.Errorf("%w\nand not all could be put back, which is kept in %s: %w", err, before.keep(),
				back)
		}
		return true, err
	}
	vet, err := write()
	if err != nil {
		return undo(err)
	}
	failed := run(dir, vet...)
	if failed == nil {
		return false, nil
	}
	undone, err = undo(failed)
	if !undone || complaints == "" {
		return undone, err
	}
	// What go vet says of the program with the official driver is no reason.
	after := complaints
	complaints = ""
	if run(dir, append([]string{"vet"}, patterns...)...) == nil || complaints == "" ||
		len(newLines(complaints, after)) > 0 {
		return true, fmt.Errorf("go vet says with the drop-in\n%s", strings.Join(newLines(complaints, after), "\n"))
	}
	if _, err := write(); err != nil {
		return undo(err)
	}
	return false, nil
}

// newLines returns what a run of go vet says that an earlier one does not. With trimmed paths the
// go command repeats what it said of the same files in another folder, with the names of that
// folder: a line is known by the name of its file, the place in it, and the text.
func newLines(before, after string) []string {
	key := func(line string) string {
		path, rest, _ := strings.Cut(strings.TrimSpace(line), ".go:")
		return filepath.Base(path) + ":" + rest
	}
	known := map[string]bool{}
	for line := range strings.Lines(before) {
		known[key(line)] = true
	}
	var list []string
	for line := range strings.Lines(after) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "#") && !known[key(line)] {
			list = append(list, trimmed)
		}
	}
	return list
}

func hasVendor(root string) bool {
	_, err := os.Stat(filepath.Join(root, "vendor", "modules.txt"))
	return err == nil
}

// addSums adds the checksums of what Allium needs to those of a module. They are the same lines
// that the go command would ask for.
func addSums(file, allium string) error {
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := map[string]bool{}
	for line := range strings.Lines(string(have)) {
		lines[strings.TrimSpace(line)] = true
	}
	out := bytes.NewBuffer(bytes.Clone(have))
	if len(have) > 0 && !bytes.HasSuffix(have, []byte("\n")) {
		out.WriteByte('\n')
	}
	for _, folder := range []string{"", "dropin/v2", "dropin/driver1"} {
		sums, err := os.ReadFile(filepath.Join(allium, filepath.FromSlash(folder), "go.sum"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for line := range strings.Lines(string(sums)) {
			if line = strings.TrimSpace(line); line != "" && !lines[line] {
				lines[line] = true
				out.WriteString(line + "\n")
			}
		}
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// A snapshot is the state of the files that the go command may change: go.mod, go.sum, go.work,
// go.work.sum, and the folder vendor.
type snapshot struct {
	temp  string
	files []original
	dirs  []original // vendor folders, copied
}

type original struct {
	path    string
	there   bool
	mode    fs.FileMode
	changed time.Time
	content []byte // of a file
	copied  string // of a folder: where the copy is
}

func takeSnapshot(roots []string) (*snapshot, error) {
	temp, err := os.MkdirTemp("", "allium-migrate-")
	if err != nil {
		return nil, err
	}
	s := &snapshot{temp: temp}
	seen := map[string]bool{}
	for _, root := range roots {
		if seen[root] {
			continue
		}
		seen[root] = true
		for _, name := range []string{"go.mod", "go.sum", "go.work", "go.work.sum"} {
			k := original{path: filepath.Join(root, name)}
			if info, err := os.Stat(k.path); err == nil {
				k.there, k.mode, k.changed = true, info.Mode(), info.ModTime()
				if k.content, err = os.ReadFile(k.path); err != nil {
					return s, err
				}
			}
			s.files = append(s.files, k)
		}
		k := original{path: filepath.Join(root, "vendor")}
		if info, err := os.Stat(k.path); err == nil && info.IsDir() {
			k.there, k.copied = true, filepath.Join(temp, fmt.Sprintf("vendor%d", len(s.dirs)))
			if err := copyFolder(k.copied, k.path); err != nil {
				return s, err
			}
		}
		s.dirs = append(s.dirs, k)
	}
	return s, nil
}

// restore puts everything back, byte for byte.
func (s *snapshot) restore() error {
	var all error
	for _, k := range s.files {
		now, err := os.ReadFile(k.path)
		switch {
		case !k.there:
			if err == nil {
				all = errors.Join(all, os.Remove(k.path))
			}
		case err != nil || !bytes.Equal(now, k.content):
			if err := os.WriteFile(k.path, k.content, k.mode.Perm()); err != nil {
				all = errors.Join(all, err)
				continue
			}
			all = errors.Join(all, os.Chmod(k.path, k.mode.Perm()), os.Chtimes(k.path, k.changed, k.changed))
		}
	}
	for _, k := range s.dirs {
		if !k.there {
			all = errors.Join(all, os.RemoveAll(k.path))
			continue
		}
		if err := os.RemoveAll(k.path); err != nil {
			all = errors.Join(all, err)
			continue
		}
		all = errors.Join(all, copyFolder(k.path, k.copied))
	}
	return all
}

// keep says where the copies are, and keeps them.
func (s *snapshot) keep() string {
	temp := s.temp
	s.temp = ""
	for i, k := range s.files {
		if k.there {
			os.WriteFile(filepath.Join(temp, fmt.Sprintf("%d-%s", i, filepath.Base(k.path))), k.content, 0o644)
		}
	}
	return temp
}

func (s *snapshot) remove() {
	if s.temp != "" {
		os.RemoveAll(s.temp)
	}
}

// copyFolder copies a folder with the modes and times of its files; links stay links.
func copyFolder(to, from string) error {
	type dir struct {
		path string
		info fs.FileInfo
	}
	var dirs []dir
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			dirs = append(dirs, dir{target, info})
			return os.MkdirAll(target, 0o755)
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
		return errors.Join(os.Chmod(target, info.Mode().Perm()), os.Chtimes(target, info.ModTime(), info.ModTime()))
	})
	for _, d := range slices.Backward(dirs) {
		err = errors.Join(err, os.Chmod(d.path, d.info.Mode().Perm()),
			os.Chtimes(d.path, d.info.ModTime(), d.info.ModTime()))
	}
	return err
}
