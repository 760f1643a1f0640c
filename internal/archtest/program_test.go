package archtest

import (
	"bytes"
	"debug/elf"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestNoPrograms wants no built program among the project's files. Where a module is one command,
// "go build" leaves it in the folder, and the next commit takes it along, tens of megabytes that a
// clone carries for ever.
func TestNoPrograms(t *testing.T) {
	top, checked := root(t), 0
	// What .gitignore names, and what is not the project's.
	outside := []string{".git", "dist", "results", "testdata/specifications"}
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if slices.Contains(outside, filepath.ToSlash(name)) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() {
			return nil
		}
		checked++
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		start := make([]byte, 8)
		n, err := io.ReadFull(f, start)
		if isProgram(start[:n]) {
			t.Errorf("%s is a built program: remove it, and build with -o", name)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		return err
	})
	if err != nil || checked < 1000 {
		t.Errorf("%d files checked, %v", checked, err)
	}
}

// isProgram reports whether a file that starts so is a program, an object or a library of one of
// the systems that Go builds for.
func isProgram(start []byte) bool {
	return slices.ContainsFunc([]string{
		elf.ELFMAG,                             // Linux and other Unix systems
		"\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", // Darwin
		"MZ",        // Windows
		"!<arch>\n", // archives of objects
		"\x00asm",   // WebAssembly
	}, func(magic string) bool { return bytes.HasPrefix(start, []byte(magic)) })
}

func TestProgramsAreFound(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := make([]byte, 8)
	f, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadFull(f, start); err != nil || !isProgram(start) {
		t.Errorf("this test's own program starts with %q, %v, and is not taken for one", start, err)
	}
	for _, text := range []string{"", "M", "package archtest", "#!/usr/bin/env bash", "\x89PNG\r\n\x1a\n"} {
		if isProgram([]byte(text)) {
			t.Errorf("%q is taken for a program", text)
		}
	}
}
