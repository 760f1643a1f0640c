package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/dump"
)

// A dataFolder is the folder of -data. It is laid out as mongodump lays out a dump, so that
// mongorestore reads it, and a dump can be served: DATABASE/COLLECTION.bson holds documents one
// after the other, DATABASE/COLLECTION.metadata.json the options and indexes, both perhaps
// compressed (.gz). Names of collections are escaped as in the query of a URL, and cut if they are
// long; the metadata has the whole name. Parameters, which mongodump does not know, are in a file
// of their own.
//
// Nothing is taken away that was not read: a folder that has anything else is refused. A new state
// is written beside the old one (folderNew). When all of it is on the disk the folder gets another
// name (folderReady), and from then on the new state is the one that counts: its files are moved to
// their places, now or by the next process that opens the folder, should this one end here.
type dataFolder struct {
	path  string // without symbolic links
	all   *dump.Contents
	files map[string]*keptFiles // by the names of the collections with their databases
	known map[string]bool       // the files that were read, by their paths within the folder
	lock  *os.File
	disk  disk
}

// keptFiles are the files of a collection, by their paths within the folder; empty if there is
// none.
type keptFiles struct{ documents, metadata string }

// The names of what is the folder's own.
const (
	folderLock       = ".allium.lock"
	folderNew        = ".allium.new"
	folderReady      = ".allium.ready"
	folderParameters = "parameters.json"
	// folderGone lists, in a state that is ready, the files that the new state has no more.
	folderGone = "gone.json"
)

// openFolder makes the folder if there is none, locks it, finishes what an earlier process could
// not, and looks at what there is. It fails if that is anything but a dump.
func openFolder(path string, disk disk) (d *dataFolder, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	d = &dataFolder{path: path, disk: disk}
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

func (d *dataFolder) close() { unlock(d.lock) }

func (d *dataFolder) contents() *dump.Contents { return d.all }

// unlock takes the file of a lock away while it is locked, and lets go: whoever waits for it finds
// that it is gone.
func unlock(lock *os.File) {
	os.Remove(lock.Name())
	lock.Close()
}

func (d *dataFolder) own(name string) string { return filepath.Join(d.path, name) }

// survey lists what the folder has.
func (d *dataFolder) survey() error {
	d.all, d.files, d.known = &dump.Contents{}, map[string]*keptFiles{}, map[string]bool{}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == folderLock:
		case name == "lost+found" && e.IsDir() && d.isEmpty(name): // of a volume
		case name == "prelude.json" || name == "prelude.json.gz": // mongodump's words about the server
		case name == folderParameters:
			d.known[name] = true
			err := d.read(name, func(r *bufio.Reader) error {
				text, err := io.ReadAll(r)
				if err == nil {
					d.all.Parameters, err = bson.ParseExtJSON(text)
				}
				return err
			})
			if err != nil {
				return err
			}
		case !e.IsDir() && isArchive(d.own(name)):
			return d.foreign(name, "it is an archive: name the file itself, and not its folder")
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

// isEmpty reports whether a folder has nothing in it that can be seen.
func (d *dataFolder) isEmpty(name string) bool {
	entries, err := os.ReadDir(d.own(name))
	return err != nil || len(entries) == 0
}

// foreign is the error of what is not a dump's.
func (d *dataFolder) foreign(path, why string) error {
	return fmt.Errorf(
		"%s holds %q, which is not part of a dump (%s): a folder is taken only if it is empty or can be read as a whole", d.path, path, why)
}

func (d *dataFolder) surveyDatabase(db string) error {
	entries, err := os.ReadDir(filepath.Join(d.path, db))
	if err != nil {
		return err
	}
	found := map[string]*keptFiles{}
	for _, e := range entries {
		path := filepath.Join(db, e.Name())
		plain := strings.TrimSuffix(e.Name(), dump.GzipSuffix)
		base, isDocuments := strings.CutSuffix(plain, dump.DocumentsSuffix)
		if !isDocuments {
			var ok bool
			if base, ok = strings.CutSuffix(plain, dump.MetadataSuffix); !ok {
				return d.foreign(path, "it has files named .bson and .metadata.json")
			}
		}
		if !e.Type().IsRegular() {
			return d.foreign(path, "it is no regular file")
		}
		files := found[base]
		if files == nil {
			files = &keptFiles{}
			found[base] = files
		}
		of := &files.metadata
		if isDocuments {
			of = &files.documents
		}
		if *of != "" {
			return d.foreign(path, "there is "+*of+", too")
		}
		*of = path
	}
	series := map[string]string{} // the names of the dump.Buckets of time series, by those of their files
	described := func(base string) int { return min(len(found[base].metadata), 1) }
	for _, base := range slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(described(b)-described(a), strings.Compare(a, b))
	}) {
		if err := d.surveyCollection(db, base, found[base], series); err != nil {
			return err
		}
	}
	return nil
}

// surveyCollection looks at the files of a collection, those with metadata before the others.
func (d *dataFolder) surveyCollection(db, base string, files *keptFiles, series map[string]string) error {
	path := cmp.Or(files.documents, files.metadata)
	c := &dump.Collection{DB: db, Bare: files.documents == "", Name: series[base]}
	name, cut, err := dump.NameOf(base)
	if err != nil {
		return d.foreign(path, err.Error())
	}
	if !cut {
		c.Name = name
	}
	if !cut && !restorable(db, c.Name) {
		d.files[c.NS()] = files
		return nil // it stays as it is
	}
	if files.metadata != "" {
		err := d.read(files.metadata, func(r *bufio.Reader) (err error) {
			c.Metadata, err = io.ReadAll(r)
			return err
		})
		if err != nil {
			return err
		}
		m, err := c.Parse()
		if err != nil {
			return fmt.Errorf("%s: %w", files.metadata, err)
		}
		if m.Name != "" {
			c.Name = m.Name
		}
		if m.Type == "timeseries" {
			series[dump.FileName(dump.Buckets+c.Name)] = dump.Buckets + c.Name
		}
	}
	if c.Name == "" {
		return d.foreign(path, "its name was cut, and no metadata has the whole")
	}
	if d.files[c.NS()] != nil {
		return d.foreign(path, "it holds "+c.NS()+", as another file does")
	}
	d.files[c.NS()] = files
	for _, path := range []string{files.documents, files.metadata} {
		if path != "" {
			d.known[path] = true
		}
	}
	d.all.Collections = append(d.all.Collections, c)
	return nil
}

// documents reads the files of documents.
func (d *dataFolder) documents(each func(c *dump.Collection, doc bson.Raw) error) error {
	for _, c := range d.all.Collections {
		if c.Bare {
			continue
		}
		err := d.read(d.files[c.NS()].documents, func(r *bufio.Reader) error {
			for {
				doc, err := dump.ReadDocument(r)
				if err == io.EOF {
					return nil
				}
				if err == nil {
					err = each(c, doc)
				}
				if err != nil {
					return err
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// read opens a file of the folder, compressed or not.
func (d *dataFolder) read(path string, read func(r *bufio.Reader) error) error {
	f, err := os.Open(d.own(path))
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	if dump.Compressed(path) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r = bufio.NewReader(z)
	}
	if err := read(r); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// replace writes to another folder, with paths as in this one, whose files take the places of those
// that are here.
func (d *dataFolder) replace(all *dump.Contents, documents func(c *dump.Collection, w io.Writer) error) error {
	fresh := d.own(folderNew)
	err := os.Mkdir(fresh, 0o700)
	if err == nil {
		err = d.writeAll(fresh, all, documents)
	}
	if err == nil {
		err = d.listGone(fresh)
	}
	if err == nil {
		err = syncDirs(fresh)
	}
	if err == nil {
		err = d.disk.rename(fresh, d.own(folderReady))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	if err := syncPath(d.path); err != nil {
		return err
	}
	return d.finish()
}

func (d *dataFolder) writeAll(dir string, all *dump.Contents,
	documents func(c *dump.Collection, w io.Writer) error) error {
	write := func(path string, text func(w io.Writer) error) error {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return d.disk.write(path, dump.Compressed(path), text)
	}
	for _, c := range all.Collections {
		files := d.files[c.NS()]
		if files == nil {
			files = &keptFiles{}
		}
		base := filepath.Join(c.DB, dump.FileName(c.Name))
		if c.Metadata != nil {
			err := write(cmp.Or(files.metadata, base+dump.MetadataSuffix), func(w io.Writer) error {
				_, err := w.Write(append(c.Metadata, '\n'))
				return err
			})
			if err != nil {
				return err
			}
		}
		if !c.Bare {
			err := write(cmp.Or(files.documents, base+dump.DocumentsSuffix), func(w io.Writer) error {
				return documents(c, w)
			})
			if err != nil {
				return err
			}
		}
	}
	if all.Parameters == nil {
		return nil
	}
	text, err := bson.MarshalExtJSONIndent(all.Parameters, false, "", "  ")
	if err != nil {
		return err
	}
	return write(folderParameters, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
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
	return d.disk.write(filepath.Join(fresh, folderGone), false, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
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
		return d.disk.rename(path, to)
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

// syncDirs writes the entries of all folders below a folder, and its own, to the disk.
func syncDirs(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return syncPath(path)
	})
}
