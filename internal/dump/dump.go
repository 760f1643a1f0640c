// Package dump reads and writes the forms in which mongodump leaves data: files of documents, files
// of metadata, and archives, which have both for many collections. What is made of them is for
// others: `allium serve --data` keeps a deployment in them, fixtures are read from them, and
// `allium dump` and `allium restore` take them from and to any deployment.
package dump

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"strings"

	"allium/bson"
)

// A Collection is a collection of a dump, or the documents of one: those of a time series
// collection are in a collection of their own.
type Collection struct {
	DB, Name string
	// Metadata is a document in Extended JSON with the options and indexes; nil if nothing is known
	// but documents, as mongodump leaves collections of the server's own.
	Metadata []byte
	Bare     bool // it has no documents: a view, or a time series
}

// NS returns the collection's name with that of its database.
func (c *Collection) NS() string { return c.DB + "." + c.Name }

// Metadata is what the metadata of a collection says.
type Metadata struct {
	Options bson.Raw   `bson:"options"`
	Indexes []bson.Raw `bson:"indexes"`
	Name    string     `bson:"collectionName"`
	Type    string     `bson:"type"`
}

// Parse reads the metadata.
func (c *Collection) Parse() (m Metadata, err error) {
	if len(c.Metadata) == 0 {
		return m, nil
	}
	if err := bson.UnmarshalExtJSON(c.Metadata, &m); err != nil {
		return m, fmt.Errorf("the metadata of %s: %w", c.NS(), err)
	}
	return m, nil
}

// Contents is what a deployment has besides documents.
type Contents struct {
	Collections []*Collection
	Parameters  bson.Raw // Allium's own, of the deployment; nil if there are none
	Server      string   // the server's version
}

// Of returns what there is of a collection, or nil.
func (all *Contents) Of(db, name string) *Collection {
	for _, c := range all.Collections {
		if c.DB == db && c.Name == name {
			return c
		}
	}
	return nil
}

// Buckets is what the documents of a time series collection are stored in.
const Buckets = "system.buckets."

// The ends of the names of files.
const (
	DocumentsSuffix = ".bson"
	MetadataSuffix  = ".metadata.json"
	GzipSuffix      = ".gz"
)

// Compressed reports whether a path is that of a compressed file.
func Compressed(path string) bool { return strings.HasSuffix(path, GzipSuffix) }

// LongestName is how long the escaped name of a collection may be as a part of a file's name.
const LongestName = 238

// FileName returns the name of a collection's files, without suffixes. Names are escaped as in the
// query of a URL, and cut if they are long.
func FileName(name string) string {
	escaped := url.QueryEscape(name)
	if len(escaped) <= LongestName {
		return escaped
	}
	sum := sha1.Sum([]byte(name))
	return escaped[:208] + "%24" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// NameOf returns the name of the collection whose files have a name, without suffixes. cut is set
// if the name is not whole: the metadata has it.
func NameOf(base string) (name string, cut bool, err error) {
	if len(base) == LongestName && strings.Contains(base, "%24") {
		return "", true, nil
	}
	name, err = url.QueryUnescape(base)
	return name, false, err
}

// maxDocument is the size of the largest document that a server takes, with room for its own
// fields.
const maxDocument = 16<<20 + 16<<10

// ReadDocument reads the next document of a file of documents; io.EOF says that there is none.
func ReadDocument(r *bufio.Reader) (bson.Raw, error) {
	head, err := r.Peek(4)
	if len(head) == 0 && err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	n := int(int32(uint32(head[0]) | uint32(head[1])<<8 | uint32(head[2])<<16 | uint32(head[3])<<24))
	if n < 5 || n > maxDocument {
		return nil, fmt.Errorf("a document has the length %d", n)
	}
	doc := make(bson.Raw, n)
	if _, err := io.ReadFull(r, doc); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return doc, doc.Validate()
}

// WriteBSON writes a value as a document.
func WriteBSON(w io.Writer, v any) error {
	doc, err := bson.Marshal(v)
	if err == nil {
		_, err = w.Write(doc)
	}
	return err
}

// gzipMagic is what compressed files begin with.
var gzipMagic = []byte{0x1f, 0x8b}

// Unzipped returns a reader of what a file holds, compressed or not, and reports which.
func Unzipped(r io.Reader) (*bufio.Reader, bool, error) {
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

// Zipped compresses what the function writes.
func Zipped(w io.Writer, write func(w io.Writer) error) error {
	z := gzip.NewWriter(w)
	if err := write(z); err != nil {
		return err
	}
	return z.Close()
}
