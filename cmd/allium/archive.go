package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"allium/bson"
)

// An archive is the single file that mongodump --archive writes, compressed or not: a number, a
// document about the dump, one of metadata for each collection and a terminator; then blocks of
// documents. A block has a header, which names the collection, its documents and a terminator; the
// collections' blocks may alternate. Behind the last block of a collection there is one without
// documents, whose header has the sum of all of its documents.
//
// A new state is written beside the old one and takes its name when it is on the disk.
type archive struct {
	path string // without symbolic links
	zip  bool
	all  *contents
	lock *os.File
	disk disk
	// aside are collections that no deployment gets, which stay as they are.
	aside     []*keptCollection
	asideDocs map[*keptCollection][]bson.Raw
}

// The names of what is the archive's own, as suffixes of its path.
const (
	archiveLock = ".allium.lock"
	archiveNew  = ".allium.new"
)

// archiveSuffix is what a path ends in that becomes an archive, if there is nothing yet.
const archiveSuffix = ".archive"

const gzipSuffix = ".gz"

var (
	archiveMagic = []byte{0x6d, 0xe2, 0x99, 0x81}
	terminator   = []byte{0xff, 0xff, 0xff, 0xff}
	archiveSum   = crc64.MakeTable(crc64.ECMA)
)

const archiveVersion = "0.1"

// archiveHeader is the document about the dump. Parameters is Allium's own.
type archiveHeader struct {
	Concurrent int32    `bson:"concurrent_collections"`
	Version    string   `bson:"version"`
	Server     string   `bson:"server_version"`
	Tool       string   `bson:"tool_version"`
	Parameters bson.Raw `bson:"parameters,omitempty"`
}

// archiveMetadata is the document of metadata of a collection.
type archiveMetadata struct {
	DB         string `bson:"db"`
	Collection string `bson:"collection"`
	Metadata   string `bson:"metadata"`
	Size       int32  `bson:"size"`
	Type       string `bson:"type"`
}

// blockHeader is the header of a block.
type blockHeader struct {
	DB         string `bson:"db"`
	Collection string `bson:"collection"`
	EOF        bool   `bson:"EOF"`
	CRC        int64  `bson:"CRC"`
}

// openArchive locks the archive and reads which collections it has. There may be no file yet.
func openArchive(path string, d disk) (a *archive, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if path, err = sameDir(path); err != nil {
		return nil, err
	}
	a = &archive{path: path, zip: compressed(path), all: &contents{}, disk: d}
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
		all, err := readPrelude(r)
		if err != nil {
			return err
		}
		a.all = &contents{parameters: all.parameters, server: all.server}
		for _, c := range all.collections {
			if restorable(c.db, c.name) {
				a.all.collections = append(a.all.collections, c)
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

func (a *archive) contents() *contents { return a.all }

// open calls the function with what is in the file.
func (a *archive) open(read func(r *bufio.Reader) error) error {
	f, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, zip, err := unzipped(f)
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

// readPrelude reads what stands before the blocks.
func readPrelude(r *bufio.Reader) (*contents, error) {
	magic, err := r.Peek(len(archiveMagic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.Equal(magic, archiveMagic) {
		return nil, fmt.Errorf("it is a file, and not one of mongodump --archive: name such a file, or the folder that mongodump wrote")
	}
	r.Discard(len(magic))
	doc, err := readDocument(r)
	if err != nil {
		return nil, err
	}
	var header archiveHeader
	if err := bson.Unmarshal(doc, &header); err != nil {
		return nil, err
	}
	if header.Version != archiveVersion {
		return nil, fmt.Errorf("the archive has the version %q, and only %q can be read: restore it with the mongorestore that belongs to the mongodump", header.Version, archiveVersion)
	}
	all := &contents{parameters: header.Parameters, server: header.Server}
	for {
		if end, err := atTerminator(r); err != nil || end {
			return all, err
		}
		if doc, err = readDocument(r); err != nil {
			return nil, err
		}
		var m archiveMetadata
		if err := bson.Unmarshal(doc, &m); err != nil {
			return nil, err
		}
		if m.DB == "" {
			return nil, fmt.Errorf("the archive holds %q (mongodump --oplog), which only mongorestore --oplogReplay applies: restore it into a deployment, or dump without --oplog", m.Collection)
		}
		c := &keptCollection{db: m.DB, name: m.Collection, metadata: []byte(m.Metadata), bare: m.Type == "view" || m.Type == "timeseries"}
		if all.of(c.db, c.name) != nil {
			return nil, fmt.Errorf("the archive holds %s twice", c.ns())
		}
		all.collections = append(all.collections, c)
		if m.Type == "timeseries" {
			all.collections = append(all.collections, &keptCollection{db: m.DB, name: buckets + m.Collection})
		}
	}
}

// atTerminator reports whether a terminator comes next, and reads it.
func atTerminator(r *bufio.Reader) (bool, error) {
	head, err := r.Peek(len(terminator))
	if len(head) == len(terminator) && bytes.Equal(head, terminator) {
		r.Discard(len(terminator))
		return true, nil
	}
	if err == io.EOF && len(head) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return false, err
}

func (a *archive) documents(each func(c *keptCollection, doc bson.Raw) error) error {
	err := a.open(func(r *bufio.Reader) error {
		if _, err := readPrelude(r); err != nil { // as before
			return err
		}
		sums := map[*keptCollection]hash.Hash64{} // of those that have not ended
		known := &contents{collections: slices.Concat(a.all.collections, a.aside)}
		for _, c := range known.collections {
			sums[c] = crc64.New(archiveSum)
		}
		a.asideDocs = map[*keptCollection][]bson.Raw{}
		for {
			header, err := readHeader(r)
			if err == io.EOF {
				for c := range sums {
					if c.bare {
						continue // mongodump ends views, but no time series
					}
					return fmt.Errorf("%s has no end: %w", c.ns(), io.ErrUnexpectedEOF)
				}
				return nil
			}
			if err != nil {
				return err
			}
			c := known.of(header.DB, header.Collection)
			if c == nil || sums[c] == nil {
				return fmt.Errorf("%s.%s has documents where none were announced", header.DB, header.Collection)
			}
			if err := readBlock(r, func(doc bson.Raw) error {
				if header.EOF || c.bare {
					return fmt.Errorf("%s has documents where there are none", c.ns())
				}
				sums[c].Write(doc)
				if !restorable(c.db, c.name) {
					a.asideDocs[c] = append(a.asideDocs[c], doc)
					return nil
				}
				return each(c, doc)
			}); err != nil {
				return err
			}
			if header.EOF {
				if int64(sums[c].Sum64()) != header.CRC {
					return fmt.Errorf("%s is damaged: its sum is another", c.ns())
				}
				delete(sums, c)
			}
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readHeader reads the header of the next block; io.EOF says that there is none.
func readHeader(r *bufio.Reader) (h blockHeader, err error) {
	doc, err := readDocument(r)
	if err != nil {
		return h, err
	}
	return h, bson.Unmarshal(doc, &h)
}

// readBlock reads documents and the terminator behind them.
func readBlock(r *bufio.Reader, each func(doc bson.Raw) error) error {
	for {
		end, err := atTerminator(r)
		if end {
			return nil
		}
		var doc bson.Raw
		if err == nil {
			doc, err = readDocument(r)
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = each(doc)
		}
		if err != nil {
			return err
		}
	}
}

func (a *archive) replace(all *contents, documents func(c *keptCollection, w io.Writer) error) error {
	whole := *all
	for _, c := range a.aside {
		if all.of(c.db, c.name) == nil {
			whole.collections = append(whole.collections, c)
		}
	}
	fresh := a.path + archiveNew
	err := a.disk.write(fresh, a.zip, func(w io.Writer) error {
		return writeArchive(w, &whole, func(c *keptCollection, w io.Writer) error {
			if all.of(c.db, c.name) == c {
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

func writeArchive(w io.Writer, all *contents, documents func(c *keptCollection, w io.Writer) error) error {
	if _, err := w.Write(archiveMagic); err != nil {
		return err
	}
	header := archiveHeader{Concurrent: 1, Version: archiveVersion, Server: all.server, Tool: "allium", Parameters: all.parameters}
	if err := writeBSON(w, header); err != nil {
		return err
	}
	for _, c := range all.collections {
		if strings.HasPrefix(c.name, buckets) {
			continue // the time series stands for it
		}
		m, err := c.parse()
		if err != nil {
			return err
		}
		about := archiveMetadata{DB: c.db, Collection: c.name, Metadata: string(c.metadata), Type: m.Type}
		if m.Type == "collection" {
			about.Type = "" // as mongodump has it
		}
		if err := writeBSON(w, about); err != nil {
			return err
		}
	}
	if _, err := w.Write(terminator); err != nil {
		return err
	}
	for _, c := range all.collections {
		if c.bare && all.of(c.db, buckets+c.name) != nil {
			continue // a time series
		}
		b := &blockWriter{w: w, header: blockHeader{DB: c.db, Collection: c.name}, sum: crc64.New(archiveSum)}
		if !c.bare {
			if err := documents(c, b); err != nil {
				return err
			}
		}
		if err := b.end(); err != nil {
			return err
		}
	}
	return nil
}

func writeBSON(w io.Writer, v any) error {
	doc, err := bson.Marshal(v)
	if err == nil {
		_, err = w.Write(doc)
	}
	return err
}

// A blockWriter writes the documents of a collection as a block, if there are any.
type blockWriter struct {
	w      io.Writer
	header blockHeader
	sum    hash.Hash64
	begun  bool
}

func (b *blockWriter) Write(doc []byte) (int, error) {
	if !b.begun {
		b.begun = true
		if err := writeBSON(b.w, b.header); err != nil {
			return 0, err
		}
	}
	b.sum.Write(doc)
	return b.w.Write(doc)
}

func (b *blockWriter) end() error {
	if b.begun {
		if _, err := b.w.Write(terminator); err != nil {
			return err
		}
	}
	b.header.EOF, b.header.CRC = true, int64(b.sum.Sum64())
	if err := writeBSON(b.w, b.header); err != nil {
		return err
	}
	_, err := b.w.Write(terminator)
	return err
}

// isArchive reports whether a file begins as an archive does.
func isArchive(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	r, _, err := unzipped(f)
	if err != nil {
		return false
	}
	head, _ := r.Peek(len(archiveMagic))
	return bytes.Equal(head, archiveMagic)
}

// gzipMagic is what compressed files begin with.
var gzipMagic = []byte{0x1f, 0x8b}

// unzipped returns a reader of what a file holds, compressed or not, and reports which.
func unzipped(r io.Reader) (*bufio.Reader, bool, error) {
	b := bufio.NewReader(r)
	if head, _ := b.Peek(2); !bytes.Equal(head, gzipMagic) {
		return b, false, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, true, err
	}
	return bufio.NewReader(z), true, nil
}

// zipped compresses what the function writes.
func zipped(w io.Writer, write func(w io.Writer) error) error {
	z := gzip.NewWriter(w)
	if err := write(z); err != nil {
		return err
	}
	return z.Close()
}
