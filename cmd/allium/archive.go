package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"allium/bson"
	"allium/internal/dump"
)

// An archive is the file of -data, as mongodump --archive writes it, compressed or not.
//
// A new state is written beside the old one and takes its name when it is on the disk.
type archive struct {
	path string // without symbolic links
	zip  bool
	all  *dump.Contents
	lock *os.File
	disk disk
	// aside are collections that no deployment gets, which stay as they are.
	aside     []*dump.Collection
	asideDocs map[*dump.Collection][]bson.Raw
}

// The names of what is the archive's own, as suffixes of its path.
const (
	archiveLock = ".allium.lock"
	archiveNew  = ".allium.new"
)

// archiveSuffix is what a path ends in that becomes an archive, if there is nothing yet.
const archiveSuffix = ".archive"

// openArchive locks the archive and reads which collections it has. There may be no file yet.
func openArchive(path string, d disk) (a *archive, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if path, err = sameDir(path); err != nil {
		return nil, err
	}
	a = &archive{path: path, zip: dump.Compressed(path), all: &dump.Contents{}, disk: d}
	if a.lock, err = lockFile(path + archiveLock); err != nil {
		return nil, fmt.Errorf("%s: another process uses it, or it cannot be locked: %w", path, err)
	}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if err := os.Remove(path + archiveNew); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err = a.open(func(r *bufio.Reader) error {
		all, err := dump.ReadPrelude(r)
		if err != nil {
			return err
		}
		a.all = &dump.Contents{Parameters: all.Parameters, Server: all.Server}
		for _, c := range all.Collections {
			if restorable(c.DB, c.Name) {
				a.all.Collections = append(a.all.Collections, c)
			} else {
				a.aside = append(a.aside, c)
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return a, err
}

func (a *archive) close() { unlock(a.lock) }

func (a *archive) contents() *dump.Contents { return a.all }

// open calls the function with what is in the file.
func (a *archive) open(read func(r *bufio.Reader) error) error {
	f, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, zip, err := dump.Unzipped(f)
	if err == nil {
		a.zip = zip
		err = read(r)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a.path, err)
	}
	return nil
}

func (a *archive) documents(each func(c *dump.Collection, doc bson.Raw) error) error {
	err := a.open(func(r *bufio.Reader) error {
		if _, err := dump.ReadPrelude(r); err != nil { // as before
			return err
		}
		a.asideDocs = map[*dump.Collection][]bson.Raw{}
		known := &dump.Contents{Collections: slices.Concat(a.all.Collections, a.aside)}
		return dump.ReadBlocks(r, known, func(c *dump.Collection, doc bson.Raw) error {
			if !restorable(c.DB, c.Name) {
				a.asideDocs[c] = append(a.asideDocs[c], doc)
				return nil
			}
			return each(c, doc)
		})
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (a *archive) replace(all *dump.Contents, documents func(c *dump.Collection, w io.Writer) error) error {
	whole := *all
	for _, c := range a.aside {
		if all.Of(c.DB, c.Name) == nil {
			whole.Collections = append(whole.Collections, c)
		}
	}
	fresh := a.path + archiveNew
	err := a.disk.write(fresh, a.zip, func(w io.Writer) error {
		return dump.WriteArchive(w, &whole, func(c *dump.Collection, w io.Writer) error {
			if all.Of(c.DB, c.Name) == c {
				return documents(c, w)
			}
			for _, doc := range a.asideDocs[c] {
				if _, err := w.Write(doc); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err == nil {
		err = a.disk.rename(fresh, a.path)
	}
	if err != nil {
		if rest := os.Remove(fresh); !errors.Is(rest, fs.ErrNotExist) {
			err = errors.Join(err, rest)
		}
		return err
	}
	return syncPath(filepath.Dir(a.path))
}

// isArchive reports whether a file is an archive.
func isArchive(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return dump.IsArchive(f)
}
