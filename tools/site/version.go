package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"
)

// version is a state of the repository that has a tree of pages.
type version struct {
	Name    string // "main", or "v0.1.0"
	Dir     string // below the site's folder; "" for the work tree
	current bool
	files   fs.FS
}

// tagged is a tag of the driver's own, without candidates.
var tagged = regexp.MustCompile(`^v([0-9]+)\.([0-9]+)\.([0-9]+)$`)

// versions returns the work tree, and the versions that git has tags of, the newest first.
func versions(root string) ([]version, error) {
	list := []version{{Name: "main", current: true, files: os.DirFS(root)}}
	tags, err := git(root, "tag", "--list", "v*")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, tag := range strings.Fields(string(tags)) {
		if tagged.MatchString(tag) {
			names = append(names, tag)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Compare(numbers(b), numbers(a)) })
	for _, name := range names {
		archive, err := git(root, "archive", "--format=tar", name)
		if err != nil {
			return nil, err
		}
		files, err := untar(archive)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, version{Name: name, Dir: name, files: files})
	}
	return list, nil
}

func numbers(tag string) (n []int) {
	for _, s := range tagged.FindStringSubmatch(tag)[1:] {
		i, _ := strconv.Atoi(s)
		n = append(n, i)
	}
	return n
}

func git(root string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, &problems)
	}
	return out, nil
}

// untar returns the files of an archive.
func untar(archive []byte) (fs.FS, error) {
	files := fstest.MapFS{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files[path.Clean(header.Name)] = &fstest.MapFile{Data: text}
	}
}
