package bench

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"allium/internal/spectest"
)

// dataFolder returns the folder of the specification's data sets. The specifications are found as
// the tests of Allium find them.
func dataFolder() (string, error) {
	if found := spectest.Folder(); found != "" {
		dir := filepath.Join(found, "source", "benchmarking", "data")
		if _, err := os.Stat(dir); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("no data sets: set ALLIUM_SPECIFICATIONS to a clone of github.com/mongodb/specifications")
}

// readArchive returns the files of one of the specification's archives by their base names.
func readArchive(name string) (map[string][]byte, error) {
	byPath, err := readArchivePaths(name, func(string) bool { return true })
	files := make(map[string][]byte, len(byPath))
	for name, data := range byPath {
		files[path.Base(name)] = data
	}
	return files, err
}

// readArchivePaths returns the files of one of the specification's archives whose paths want
// accepts.
func readArchivePaths(name string, want func(path string) bool) (map[string][]byte, error) {
	dir, err := dataFolder()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	files := make(map[string][]byte)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if h.Typeflag == tar.TypeReg && want(h.Name) {
			if files[h.Name], err = io.ReadAll(r); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
}
