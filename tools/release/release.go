package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// release is one run of the command.
type release struct {
	version   string // "v0.1.0"
	out       string
	builder   string
	platforms []string
	rehearse  bool
	log       io.Writer

	commit  string // that is released, of a branch
	tree    string // a work tree with the commit that gets the tags
	modules []module
}

// semantic is a version as the go command wants it.
var semantic = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$`)

// run makes the release of the repository in dir.
func (r *release) run(dir string) (err error) {
	if !semantic.MatchString(r.version) {
		return fmt.Errorf("%q is no version such as v0.1.0", r.version)
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if _, err := os.Stat(r.out); err == nil {
		return fmt.Errorf("%s is there already", r.out)
	}
	if status, err := command(dir, nil, "git", "status", "--porcelain"); err != nil || status != "" {
		return errors.Join(err, fmt.Errorf("what is not committed is not released:\n%s", status))
	}
	if r.commit, err = command(dir, nil, "git", "rev-parse", "HEAD"); err != nil {
		return err
	}
	if r.modules, err = modules(dir, r.version); err != nil {
		return err
	}
	root := r.modules[0]
	if first, _, _ := strings.Cut(root.path, "/"); !strings.Contains(first, ".") {
		return fmt.Errorf("nobody can get a module called %s: go run ./tools/rename MODULE/PATH, and commit", root.path)
	}
	if err := changelog(dir, r.version); err != nil {
		return err
	}

	temp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer removeAll(temp)
	r.tree = filepath.Join(temp, "tree")
	if _, err := command(dir, nil, "git", "worktree", "add", "-q", "--detach", r.tree, r.commit); err != nil {
		return err
	}
	defer command(dir, nil, "git", "worktree", "remove", "--force", r.tree)
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	proxy := filepath.Join(r.out, "modules")
	for i, m := range r.modules {
		if i > 0 {
			if err := m.depend(r.tree, root); err != nil {
				return fmt.Errorf("%s: %w", m.dir, err)
			}
		}
		if r.modules[i].sums, err = m.publish(r.tree, proxy); err != nil {
			return fmt.Errorf("%s: %w", m.dir, err)
		}
		root = r.modules[0]
		fmt.Fprintln(r.log, "module", m.published, m.version)
	}
	if err := r.binaries(proxy, temp); err != nil {
		return err
	}
	if r.rehearse {
		return nil
	}
	return r.tag()
}

// tag commits what the modules need and tags the commit.
func (r *release) tag() error {
	if _, err := command(r.tree, nil, "git", "add", "-A"); err != nil {
		return err
	}
	if _, err := command(r.tree, nil, "git", "commit", "-q", "--allow-empty", "-m", "Release "+r.version,
		"-m", "The modules require each other by their versions. This commit is on no branch."); err != nil {
		return err
	}
	var tags []string
	for _, m := range r.modules {
		if _, err := command(r.tree, nil, "git", "tag", "-a", "-m", m.published+" "+m.version, m.tag()); err != nil {
			return err
		}
		tags = append(tags, m.tag())
	}
	fmt.Fprintf(r.log, "\nTo publish it:\n\n\tgit push origin %s\n\nand attach what is in %s to the release.\n",
		strings.Join(tags, " "), r.out)
	return nil
}

// changelog wants a section about the version.
func changelog(dir, version string) error {
	text, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	number, _, _ := strings.Cut(version[1:], "-") // that of the release that a candidate is for
	short := strings.TrimSuffix(number, ".0")
	head := regexp.MustCompile(`(?m)^## (` + regexp.QuoteMeta(number) + `|` + regexp.QuoteMeta(short) +
		`)([\s,].*)?$`).FindString(string(text))
	switch {
	case head == "":
		return fmt.Errorf("CHANGELOG.md has no section %q", "## "+number)
	case strings.Contains(head, "not released") && !strings.Contains(version, "-"):
		return fmt.Errorf("CHANGELOG.md says %q", strings.TrimSpace(head))
	}
	return nil
}

// command runs a program in a folder and returns what it prints, without the spaces around it.
func command(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, problems.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// removeAll removes a folder, the module caches in it too, which cannot be written to.
func removeAll(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(path, 0o755)
		}
		return nil
	})
	os.RemoveAll(dir)
}

// slashed joins the parts of a path in a repository; a folder "." is none.
func slashed(parts ...string) string { return path.Join(parts...) }
