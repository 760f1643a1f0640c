package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// module is a module of the repository that others can get.
type module struct {
	dir       string // from the root of the repository, with slashes; "." is the driver
	path      string // as its go.mod has it
	published string // where it can be got: the same, but for the drop-ins, which have the official driver's path
	version   string
	sums      []string // lines for the go.sum of a module that requires it; what publish returns
}

// private is a go.mod of a module that is of use in this repository alone.
var private = regexp.MustCompile(`(?m)^module .*// not published\b`)

// modules returns the modules below dir that are published, the driver first.
func modules(dir, version string) ([]module, error) {
	files, err := command(dir, nil, "git", "ls-files", "-z", "--", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	var list []module
	for file := range strings.SplitSeq(strings.Trim(files, "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		if strings.Contains(file, "testdata/") || private.Match(text) {
			continue
		}
		mod, err := edit(filepath.Join(dir, filepath.FromSlash(path.Dir(file))), "-json")
		if err != nil {
			return nil, err
		}
		list = append(list, module{dir: path.Dir(file), path: mod.Module.Path})
	}
	slices.SortFunc(list, func(a, b module) int { return strings.Compare(a.dir, b.dir) })
	if len(list) == 0 || list[0].dir != "." {
		return nil, fmt.Errorf("%s: no go.mod", dir)
	}
	for i := range list {
		m := &list[i]
		m.published = slashed(list[0].path, m.dir)
		if m.version, err = versionOf(m.dir, version); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// major is a folder that is named after a major version, which the paths of modules end with from
// the second on.
var major = regexp.MustCompile(`(?:^|/)v([0-9]+)$`)

// versionOf returns the version that a module in dir has in a release. A path that ends in /v2 has
// versions v2 only: its minor version is a thousand times the release's major one, and its minor
// one.
func versionOf(dir, version string) (string, error) {
	m := major.FindStringSubmatch(dir)
	if m == nil {
		return version, nil
	}
	if m[1] == "0" || m[1] == "1" {
		return "", fmt.Errorf("no module can be published in a folder %s: the go command takes v%s for a wrong suffix",
			dir, m[1])
	}
	v := semantic.FindStringSubmatch(version)
	whole, _ := strconv.Atoi(v[1])
	minor, _ := strconv.Atoi(v[2])
	return fmt.Sprintf("v%s.%d.%s%s", m[1], 1000*whole+minor, v[3], v[4]), nil
}

// tag is the name that the go command looks for.
func (m module) tag() string {
	return slashed(path.Clean(major.ReplaceAllString(m.dir, "")), m.version)
}

// goMod is what "go mod edit -json" tells.
type goMod struct {
	Module  struct{ Path string }
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

// edit runs "go mod edit" on a module.
func edit(dir string, args ...string) (goMod, error) {
	var mod goMod
	out, err := command(dir, []string{"GOWORK=off", "GOFLAGS="}, "go", append([]string{"mod", "edit"}, args...)...)
	if err == nil && out != "" {
		err = json.Unmarshal([]byte(out), &mod)
	}
	return mod, err
}

// depend makes a nested module in tree require the driver by its version.
func (m module) depend(tree string, driver module) error {
	dir := filepath.Join(tree, filepath.FromSlash(m.dir))
	mod, err := edit(dir, "-json")
	if err != nil {
		return err
	}
	var args []string
	for _, r := range mod.Replace {
		if r.New.Version != "" {
			return fmt.Errorf("go.mod replaces %s by another module, which whoever gets this one would not have",
				r.Old.Path)
		}
		at := r.Old.Path
		if r.Old.Version != "" {
			at += "@" + r.Old.Version
		}
		args = append(args, "-dropreplace="+at)
	}
	requires := false
	for _, r := range mod.Require {
		switch {
		case r.Path == driver.path:
			requires = true
			args = append(args, "-require="+driver.path+"@"+driver.version)
		case strings.HasPrefix(r.Path, driver.path+"/"):
			return fmt.Errorf(
				"go.mod requires %s: a module that is published may require the driver, and no other module of this repository", r.Path)
		}
	}
	if len(args) > 0 {
		if _, err := edit(dir, args...); err != nil {
			return err
		}
	}
	if !requires {
		return nil
	}
	name := filepath.Join(dir, "go.sum")
	old, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(string(old), "\n"), func(s string) bool {
		return s == "" || strings.HasPrefix(s, driver.path+" ")
	})
	lines = append(lines, driver.sums...)
	slices.Sort(lines)
	return os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// publish puts the module in tree into a proxy, as GOPROXY=file:// wants it, and returns the lines
// of its sums.
func (m module) publish(tree, proxy string) (sums []string, err error) {
	files, err := m.files(tree)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(escape(m.published)), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	var hashes strings.Builder // of the files, as the go command adds them up
	prefix := m.published + "@" + m.version + "/"
	for _, f := range files {
		w, err := z.Create(prefix + f.name)
		if err == nil {
			_, err = w.Write(f.content)
		}
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&hashes, "%x  %s\n", sha256.Sum256(f.content), prefix+f.name)
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	mod, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(m.dir), "go.mod"))
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		"list": []byte(m.version + "\n"), m.version + ".info": []byte(`{"Version":"` + m.version + `"}`),
		m.version + ".mod": mod, m.version + ".zip": archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return nil, err
		}
	}
	line := func(what, sums string) string {
		sum := sha256.Sum256([]byte(sums))
		return fmt.Sprintf("%s %s%s h1:%s", m.published, m.version, what, base64.StdEncoding.EncodeToString(sum[:]))
	}
	return []string{line("", hashes.String()), line("/go.mod", fmt.Sprintf("%x  go.mod\n", sha256.Sum256(mod)))}, nil
}

// escape writes capital letters of a path as a proxy has them.
func escape(path string) string {
	return regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(path, func(s string) string {
		return "!" + strings.ToLower(s)
	})
}

type file struct {
	name    string // from the folder of the module, with slashes
	content []byte
}

// files returns the files of a module in tree by their names: those that git has, without those of
// modules below, and with the licence of the repository if it has none.
func (m module) files(tree string) ([]file, error) {
	out, err := command(filepath.Join(tree, filepath.FromSlash(m.dir)), nil, "git", "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.Trim(out, "\x00"), "\x00")
	var below []string // the folders of other modules
	for _, name := range names {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			below = append(below, path.Dir(name)+"/")
		}
	}
	var list []file
	for _, name := range names {
		if slices.ContainsFunc(below, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(m.dir), filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		list = append(list, file{name, content})
	}
	if !slices.Contains(names, "LICENSE") {
		content, err := os.ReadFile(filepath.Join(tree, "LICENSE"))
		if err != nil {
			return nil, err
		}
		list = append(list, file{"LICENSE", content})
	}
	slices.SortFunc(list, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return list, nil
}
