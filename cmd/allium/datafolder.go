package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A dataFolder is the folder of -data. It is laid out as mongodump lays out a dump, so that
// mongorestore reads it, and a dump can be served: DATABASE/COLLECTION.bson holds documents one
// after the other, DATABASE/COLLECTION.metadata.json the options and indexes, both perhaps
// compressed (.gz). Names are escaped as in a URL.
//
// Nothing is taken away that was not read: a folder that has anything else is refused. A new state
// is written beside the old one (folderNew). When all of it is on the disk the folder gets another
// name (folderReady), and from then on the new state is the one that counts: its files are moved to
// their places, now or by the next process that opens the folder, should this one end here.
type dataFolder struct {
	path   string // without symbolic links
	stored []*storedCollection
	known  map[string]bool // the files that were read, by their paths within the folder
	lock   *os.File
	rename func(from, to string) error // os.Rename, but in tests
}

// The names of what is the folder's own.
const (
	folderLock  = ".allium.lock"
	folderNew   = ".allium.new"
	folderReady = ".allium.ready"
	// folderGone lists, in a state that is ready, the files that the new state has no more.
	folderGone = "gone.json"
)

const (
	documentsSuffix = ".bson"
	metadataSuffix  = ".metadata.json"
	gzipSuffix      = ".gz"
)

// A storedCollection is a collection as the folder has it. Paths are those within the folder; they
// are empty if there is no such file.
type storedCollection struct {
	db, name            string
	documents, metadata string
}

// compressed reports whether a path is that of a compressed file.
func compressed(path string) bool { return strings.HasSuffix(path, gzipSuffix) }

// openFolder makes the folder if there is none, locks it, finishes what an earlier process could
// not, and looks at what there is. It fails if that is anything but a dump.
func openFolder(path string) (d *dataFolder, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	d = &dataFolder{path: path, rename: os.Rename}
	if d.lock, err = lockFile(filepath.Join(path, folderLock)); err != nil {
		return nil, fmt.Errorf("%s: another process uses it, or it cannot be locked: %w", path, err)
	}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if _, err := os.Stat(d.own(folderReady)); err == nil {
		if err := d.finish(); err != nil {
			return nil, err
		}
	}
	if err := os.RemoveAll(d.own(folderNew)); err != nil {
		return nil, err
	}
	return d, d.survey()
}

// close gives the folder free.
func (d *dataFolder) close() {
	os.Remove(d.lock.Name()) // while it is locked: whoever waits for it finds that it is gone
	d.lock.Close()
}

func (d *dataFolder) own(name string) string { return filepath.Join(d.path, name) }

// survey lists what the folder has.
func (d *dataFolder) survey() error {
	d.stored, d.known = nil, map[string]bool{}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == folderLock:
		case name == "lost+found" && e.IsDir(): // of a volume
		case name == "prelude.json" || name == "prelude.json.gz": // mongodump's words about the server
		case !e.IsDir():
			return d.foreign(name, "a dump has folders of databases here")
		default:
			if err := d.surveyDatabase(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// foreign is the error of what is not a dump's.
func (d *dataFolder) foreign(path, why string) error {
	return fmt.Errorf("%s holds %q, which is not part of a dump (%s): a folder is taken only if it is empty or can be read as a whole", d.path, path, why)
}

func (d *dataFolder) surveyDatabase(dir string) error {
	db, err := url.PathUnescape(dir)
	if err != nil {
		return d.foreign(dir, err.Error())
	}
	entries, err := os.ReadDir(filepath.Join(d.path, dir))
	if err != nil {
		return err
	}
	found := map[string]*storedCollection{}
	var names []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		plain := strings.TrimSuffix(e.Name(), gzipSuffix)
		base, isDocuments := strings.CutSuffix(plain, documentsSuffix)
		if !isDocuments {
			var ok bool
			if base, ok = strings.CutSuffix(plain, metadataSuffix); !ok {
				return d.foreign(path, "it has files named .bson and .metadata.json")
			}
		}
		name, err := url.PathUnescape(base)
		if err != nil {
			return d.foreign(path, err.Error())
		}
		if !e.Type().IsRegular() {
			return d.foreign(path, "it is no regular file")
		}
		if inner(db) {
			continue // it stays as it is
		}
		c := found[name]
		if c == nil {
			c = &storedCollection{db: db, name: name}
			found[name] = c
			names = append(names, name)
		}
		of := &c.metadata
		if isDocuments {
			of = &c.documents
		}
		if *of != "" {
			return d.foreign(path, "there is "+*of+", too")
		}
		*of = path
		d.known[path] = true
	}
	slices.Sort(names)
	for _, name := range names {
		d.stored = append(d.stored, found[name])
	}
	return nil
}

// of returns what the folder has of a collection, with no paths if that is nothing.
func (d *dataFolder) of(db, name string) *storedCollection {
	for _, c := range d.stored {
		if c.db == db && c.name == name {
			return c
		}
	}
	return &storedCollection{db: db, name: name}
}

// replace makes what write writes the content of the folder: to another folder, with paths as in
// this one. If it fails, everything is as it was.
func (d *dataFolder) replace(write func(dir string) error) error {
	fresh := d.own(folderNew)
	err := os.Mkdir(fresh, 0o700)
	if err == nil {
		err = write(fresh)
	}
	if err == nil {
		err = d.listGone(fresh)
	}
	if err == nil {
		err = syncTree(fresh)
	}
	if err == nil {
		err = d.rename(fresh, d.own(folderReady))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	if err := syncPath(d.path); err != nil {
		return err
	}
	return d.finish()
}

// listGone writes which files of the old state the new one has no more.
func (d *dataFolder) listGone(fresh string) error {
	gone := []string{}
	for path := range d.known {
		if _, err := os.Lstat(filepath.Join(fresh, path)); errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, filepath.ToSlash(path))
		}
	}
	slices.Sort(gone)
	text, err := json.Marshal(gone)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(fresh, folderGone), text, 0o600)
}

// finish moves the files of a state that is ready to their places. It can be done again, from
// wherever it was left.
func (d *dataFolder) finish() error {
	ready := d.own(folderReady)
	var gone []string
	text, err := os.ReadFile(filepath.Join(ready, folderGone))
	if errors.Is(err, fs.ErrNotExist) { // it had been finished but for that
		return os.RemoveAll(ready)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &gone); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(ready, folderGone), err)
	}
	dirs := map[string]bool{d.path: true}
	err = filepath.WalkDir(ready, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == ready {
			return err
		}
		rel, err := filepath.Rel(ready, path)
		if err != nil || rel == folderGone {
			return err
		}
		to := filepath.Join(d.path, rel)
		if e.IsDir() {
			dirs[to] = true
			return os.MkdirAll(to, 0o700)
		}
		return d.rename(path, to)
	})
	if err != nil {
		return err
	}
	for _, path := range gone {
		file := filepath.Join(d.path, filepath.FromSlash(path))
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = os.Remove(filepath.Dir(file)) // the database's, if nothing is left in it
	}
	for dir := range dirs {
		if err := syncPath(dir); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(ready); err != nil {
		return err
	}
	return syncPath(d.path)
}

// syncTree writes all files and folders below a folder, and itself, to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(path)
	})
}
