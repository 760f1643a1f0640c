package dump

import (
	"bufio"
	"bytes"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
	"strings"

	"allium/bson"
)

// An archive is the single file that mongodump --archive writes, compressed or not: a number, a
// document about the dump, one of metadata for each collection and a terminator; then blocks of
// documents. A block has a header, which names the collection, its documents and a terminator; the
// collections' blocks may alternate. Behind the last block of a collection there is one without
// documents, whose header has the sum of all of its documents.

// Magic is what an archive begins with.
var Magic = []byte{0x6d, 0xe2, 0x99, 0x81}

var (
	terminator = []byte{0xff, 0xff, 0xff, 0xff}
	archiveSum = crc64.MakeTable(crc64.ECMA)
)

const archiveVersion = "0.1"

// ArchiveHeader is the document about the dump. Parameters is Allium's own.
type ArchiveHeader struct {
	Concurrent int32    `bson:"concurrent_collections"`
	Version    string   `bson:"version"`
	Server     string   `bson:"server_version"`
	Tool       string   `bson:"tool_version"`
	Parameters bson.Raw `bson:"parameters,omitempty"`
}

// ArchiveMetadata is the document of metadata of a collection.
type ArchiveMetadata struct {
	DB         string `bson:"db"`
	Collection string `bson:"collection"`
	Metadata   string `bson:"metadata"`
	Size       int32  `bson:"size"`
	Type       string `bson:"type"`
}

// BlockHeader is the header of a block.
type BlockHeader struct {
	DB         string `bson:"db"`
	Collection string `bson:"collection"`
	EOF        bool   `bson:"EOF"`
	CRC        int64  `bson:"CRC"`
}

// IsArchive reports whether a file begins as an archive does, compressed or not.
func IsArchive(r io.Reader) bool {
	b, _, err := Unzipped(r)
	if err != nil {
		return false
	}
	head, _ := b.Peek(len(Magic))
	return bytes.Equal(head, Magic)
}

// ReadPrelude reads what stands before the blocks.
func ReadPrelude(r *bufio.Reader) (*Contents, error) {
	magic, err := r.Peek(len(Magic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.Equal(magic, Magic) {
		return nil, fmt.Errorf(
			"it is a file, and not one of mongodump --archive: name such a file, or the folder that mongodump wrote")
	}
	r.Discard(len(magic))
	doc, err := ReadDocument(r)
	if err != nil {
		return nil, err
	}
	var header ArchiveHeader
	if err := bson.Unmarshal(doc, &header); err != nil {
		return nil, err
	}
	if header.Version != archiveVersion {
		return nil, fmt.Errorf(
			"the archive has the version %q, and only %q can be read: restore it with the mongorestore that belongs to the mongodump", header.Version, archiveVersion)
	}
	all := &Contents{Parameters: header.Parameters, Server: header.Server}
	for {
		if end, err := atTerminator(r); err != nil || end {
			return all, err
		}
		if doc, err = ReadDocument(r); err != nil {
			return nil, err
		}
		var m ArchiveMetadata
		if err := bson.Unmarshal(doc, &m); err != nil {
			return nil, err
		}
		if m.DB == "" {
			return nil, fmt.Errorf(
				"the archive holds %q (mongodump --oplog), which only mongorestore --oplogReplay applies: restore it into a deployment, or dump without --oplog", m.Collection)
		}
		c := &Collection{DB: m.DB, Name: m.Collection, Metadata: []byte(m.Metadata),
			Bare: m.Type == "view" || m.Type == "timeseries"}
		if all.Of(c.DB, c.Name) != nil {
			return nil, fmt.Errorf("the archive holds %s twice", c.NS())
		}
		all.Collections = append(all.Collections, c)
		if m.Type == "timeseries" {
			all.Collections = append(all.Collections, &Collection{DB: m.DB, Name: Buckets + m.Collection})
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

// ReadBlocks reads the documents that stand behind the prelude, those of a collection in their
// order, and compares the sums of the collections that the prelude has announced.
func ReadBlocks(r *bufio.Reader, known *Contents, each func(c *Collection, doc bson.Raw) error) error {
	sums := map[*Collection]hash.Hash64{} // of those that have not ended
	for _, c := range known.Collections {
		sums[c] = crc64.New(archiveSum)
	}
	for {
		header, err := readHeader(r)
		if err == io.EOF {
			for c := range sums {
				if c.Bare {
					continue // mongodump ends views, but no time series
				}
				return fmt.Errorf("%s has no end: %w", c.NS(), io.ErrUnexpectedEOF)
			}
			return nil
		}
		if err != nil {
			return err
		}
		c := known.Of(header.DB, header.Collection)
		if c == nil || sums[c] == nil {
			return fmt.Errorf("%s.%s has documents where none were announced", header.DB, header.Collection)
		}
		if err := readBlock(r, func(doc bson.Raw) error {
			if header.EOF || c.Bare {
				return fmt.Errorf("%s has documents where there are none", c.NS())
			}
			sums[c].Write(doc)
			return each(c, doc)
		}); err != nil {
			return err
		}
		if header.EOF {
			if int64(sums[c].Sum64()) != header.CRC {
				return fmt.Errorf("%s is damaged: its sum is another", c.NS())
			}
			delete(sums, c)
		}
	}
}

// readHeader reads the header of the next block; io.EOF says that there is none.
func readHeader(r *bufio.Reader) (h BlockHeader, err error) {
	doc, err := ReadDocument(r)
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
			doc, err = ReadDocument(r)
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

// WriteArchive writes an archive with the documents that the function writes.
func WriteArchive(w io.Writer, all *Contents, documents func(c *Collection, w io.Writer) error) error {
	if _, err := w.Write(Magic); err != nil {
		return err
	}
	header := ArchiveHeader{Concurrent: 1, Version: archiveVersion, Server: all.Server, Tool: "allium",
		Parameters: all.Parameters}
	if err := WriteBSON(w, header); err != nil {
		return err
	}
	for _, c := range all.Collections {
		if strings.HasPrefix(c.Name, Buckets) {
			continue // the time series stands for it
		}
		m, err := c.Parse()
		if err != nil {
			return err
		}
		about := ArchiveMetadata{DB: c.DB, Collection: c.Name, Metadata: string(c.Metadata), Type: m.Type}
		if m.Type == "collection" {
			about.Type = "" // as mongodump has it
		}
		if err := WriteBSON(w, about); err != nil {
			return err
		}
	}
	if _, err := w.Write(terminator); err != nil {
		return err
	}
	for _, c := range all.Collections {
		if c.Bare && all.Of(c.DB, Buckets+c.Name) != nil {
			continue // a time series
		}
		b := &blockWriter{w: w, header: BlockHeader{DB: c.DB, Collection: c.Name}, sum: crc64.New(archiveSum)}
		if !c.Bare {
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

// A blockWriter writes the documents of a collection as a block, if there are any.
type blockWriter struct {
	w      io.Writer
	header BlockHeader
	sum    hash.Hash64
	begun  bool
}

func (b *blockWriter) Write(doc []byte) (int, error) {
	if !b.begun {
		b.begun = true
		if err := WriteBSON(b.w, b.header); err != nil {
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
	if err := WriteBSON(b.w, b.header); err != nil {
		return err
	}
	_, err := b.w.Write(terminator)
	return err
}
