package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"allium"
	"allium/bson"
)

// fill reads what -data and -seed name into a deployment that has just started.
func (f *serveFlags) fill(ctx context.Context, uri string) error {
	if f.seed == "" && f.data == "" {
		return nil
	}
	client, err := allium.Open(uri)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	if f.data != "" {
		if f.folder, err = openFolder(f.data); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		if err := load(ctx, client, f.folder); err != nil {
			f.folder.close()
			return fmt.Errorf("--data: %w", err)
		}
	}
	if f.seed != "" {
		if err := seed(ctx, client, f.seed, f.folder); err != nil {
			return fmt.Errorf("--seed: %w", err)
		}
	}
	return nil
}

// keep writes what a deployment holds to the folder of -data.
func (f *serveFlags) keep(uri string) error {
	if f.folder == nil {
		return nil
	}
	defer f.folder.close()
	ctx := context.Background() // the program's has ended: that is why
	client, err := allium.Open(uri)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	err = f.folder.replace(func(dir string) error { return dump(ctx, client, f.folder, dir) })
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	return nil
}

// seed inserts the documents of a file: {"db.collection": [{...}, ...], ...}. Collections that a
// folder has, which may be nil, are as they were kept.
func seed(ctx context.Context, client *allium.Client, path string, folder *dataFolder) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	all, err := bson.ParseExtJSON(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for ns, v := range all.All() {
		db, coll, ok := strings.Cut(ns, ".")
		list, isArray := v.Array()
		if !ok || !isArray {
			return fmt.Errorf("%s: %q: want \"db.collection\" and an array of documents", path, ns)
		}
		if folder != nil && *folder.of(db, coll) != (storedCollection{db: db, name: coll}) {
			continue
		}
		var docs []bson.Raw
		for el := range list.Values() {
			doc, ok := el.Document()
			if !ok {
				return fmt.Errorf("%s: %q holds a %s, want documents", path, ns, el.Type)
			}
			docs = append(docs, doc)
		}
		if len(docs) == 0 {
			if err := client.Database(db).CreateCollection(ctx, coll); err != nil {
				return err
			}
			continue
		}
		if _, err := allium.CollectionOf[bson.Raw](client.Database(db), coll).InsertMany(ctx, docs); err != nil {
			return err
		}
	}
	return nil
}

// metadata is what a file of metadata holds.
type metadata struct {
	Options bson.Raw   `bson:"options"`
	Indexes []bson.Raw `bson:"indexes"`
	Type    string     `bson:"type"`
}

// inner reports whether a database is the server's own.
func inner(db string) bool { return db == "local" || db == "config" || db == "admin" }

// buckets is what the documents of a time series collection are stored in.
const buckets = "system.buckets."

// dump writes all collections below dir, each under the paths that it has in the folder.
func dump(ctx context.Context, client *allium.Client, d *dataFolder, dir string) error {
	names, err := client.ListDatabaseNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if inner(name) {
			continue
		}
		if err := dumpDatabase(ctx, client.Database(name), d, dir); err != nil {
			return err
		}
	}
	return nil
}

func dumpDatabase(ctx context.Context, db *allium.Database, d *dataFolder, dir string) error {
	infos, err := allium.RunCursorCommand[bson.Raw](ctx, db, bson.D{{Key: "listCollections", Value: 1}})
	if err != nil {
		return err
	}
	list, err := infos.All(ctx)
	if err != nil {
		return err
	}
	for _, info := range list {
		name, _ := info.Lookup("name").StringValue()
		if strings.HasPrefix(name, "system.") && name != "system.js" {
			continue
		}
		c := d.of(db.Name(), name)
		base := filepath.Join(url.PathEscape(db.Name()), url.PathEscape(name))
		if c.metadata == "" {
			c = &storedCollection{documents: base + documentsSuffix, metadata: base + metadataSuffix}
		} else if c.documents == "" { // it was a view
			c.documents = base + documentsSuffix
		}
		m := metadata{}
		m.Type, _ = info.Lookup("type").StringValue()
		m.Options, _ = info.Lookup("options").Document()
		if m.Type != "view" {
			from, path := name, c.documents
			if m.Type == "timeseries" {
				from = buckets + name
				if path = d.of(db.Name(), from).documents; path == "" {
					path = filepath.Join(url.PathEscape(db.Name()), url.PathEscape(from)) + documentsSuffix
				}
			}
			err := writeFile(filepath.Join(dir, path), func(w io.Writer) error { return dumpCollection(ctx, db, from, w) })
			if err != nil {
				return err
			}
			indexes, err := allium.RunCursorCommand[bson.Raw](ctx, db, bson.D{{Key: "listIndexes", Value: name}})
			if err != nil {
				return err
			}
			if m.Indexes, err = indexes.All(ctx); err != nil {
				return err
			}
		}
		text, err := bson.MarshalExtJSON(m, true)
		if err != nil {
			return err
		}
		err = writeFile(filepath.Join(dir, c.metadata), func(w io.Writer) error {
			_, err := w.Write(append(text, '\n'))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeFile makes a file, compressed if its name says so, and the folder that it is in.
func writeFile(path string, write func(w io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriter(file)
	if !compressed(path) {
		return errors.Join(write(buffered), buffered.Flush())
	}
	z := gzip.NewWriter(buffered)
	return errors.Join(write(z), z.Close(), buffered.Flush())
}

func dumpCollection(ctx context.Context, db *allium.Database, name string, w io.Writer) error {
	cur, err := allium.CollectionOf[bson.Raw](db, name).Find(ctx, bson.D{})
	if err != nil {
		return err
	}
	for doc, err := range cur.Seq(ctx) {
		if err != nil {
			return err
		}
		if _, err := w.Write(doc); err != nil {
			return err
		}
	}
	return nil
}

// load makes the collections that a folder has.
func load(ctx context.Context, client *allium.Client, d *dataFolder) error {
	// What belongs to another collection, or looks at one, is made after that.
	var later []func() error
	for _, c := range d.stored {
		db := client.Database(c.db)
		m, err := d.readMetadata(c)
		if err != nil {
			return err
		}
		restore := func() error {
			if c.metadata != "" {
				if _, err := db.RunCommand(ctx, createCommand(c.name, m.Options)); err != nil {
					return fmt.Errorf("%s: %w", c.metadata, err)
				}
			}
			if err := d.loadDocuments(ctx, db, c); err != nil {
				return fmt.Errorf("%s: %w", c.documents, err)
			}
			if err := createIndexes(ctx, db, c.name, m.Indexes); err != nil {
				return fmt.Errorf("%s: %w", c.metadata, err)
			}
			return nil
		}
		if m.Type == "view" || strings.HasPrefix(c.name, "system.") {
			later = append(later, restore)
			continue
		}
		if err := restore(); err != nil {
			return err
		}
	}
	for _, restore := range later {
		if err := restore(); err != nil {
			return err
		}
	}
	return nil
}

// readMetadata returns what the folder says about a collection: nothing if it has documents alone,
// as mongodump leaves those of the server's own collections.
func (d *dataFolder) readMetadata(c *storedCollection) (m metadata, err error) {
	if c.metadata == "" {
		return m, nil
	}
	err = d.read(c.metadata, func(r io.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return bson.UnmarshalExtJSON(text, &m)
	})
	return m, err
}

// read opens a file of the folder, compressed or not.
func (d *dataFolder) read(path string, read func(r io.Reader) error) error {
	file, err := os.Open(filepath.Join(d.path, path))
	if err != nil {
		return err
	}
	defer file.Close()
	var r io.Reader = bufio.NewReader(file)
	if compressed(path) {
		if r, err = gzip.NewReader(r); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := read(r); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// createCommand returns the command that creates a collection with options as a server lists them.
func createCommand(name string, options bson.Raw) bson.D {
	cmd := bson.D{{Key: "create", Value: name}}
	for key, v := range options.All() {
		if key != "uuid" && key != "create" {
			cmd = append(cmd, bson.E{Key: key, Value: v})
		}
	}
	return cmd
}

func createIndexes(ctx context.Context, db *allium.Database, name string, indexes []bson.Raw) error {
	var list bson.A
	for _, index := range indexes {
		if n, _ := index.Lookup("name").StringValue(); n == "_id_" || index.Lookup("clustered").AsBool() {
			continue // it came with the collection
		}
		spec := bson.D{}
		for key, v := range index.All() {
			if key != "ns" {
				spec = append(spec, bson.E{Key: key, Value: v})
			}
		}
		list = append(list, spec)
	}
	if len(list) == 0 {
		return nil
	}
	_, err := db.RunCommand(ctx, bson.D{{Key: "createIndexes", Value: name}, {Key: "indexes", Value: list}})
	return err
}

// batch is how many documents are inserted at once.
const batch = 1000

// loadDocuments inserts the documents that the folder has of a collection, as they are: the
// collection's validator may be younger than they.
func (d *dataFolder) loadDocuments(ctx context.Context, db *allium.Database, c *storedCollection) error {
	if c.documents == "" {
		return nil
	}
	coll := allium.CollectionOf[bson.Raw](db, c.name)
	return d.read(c.documents, func(file io.Reader) error {
		r := bufio.NewReader(file)
		var docs []bson.Raw
		insert := func() error {
			if len(docs) == 0 {
				return nil
			}
			_, err := coll.InsertMany(ctx, docs, allium.InsertManyOptions{BypassDocumentValidation: new(true)})
			for _, doc := range docs {
				if err == nil {
					err = restamp(ctx, coll, doc)
				}
			}
			docs = docs[:0]
			return err
		}
		for {
			doc, err := readDocument(r)
			if err == io.EOF {
				return insert()
			}
			if err != nil {
				return err
			}
			if docs = append(docs, doc); len(docs) == batch {
				if err := insert(); err != nil {
					return err
				}
			}
		}
	})
}

// restamp sets the empty timestamps of a document that was inserted: the server puts its time in
// their place.
func restamp(ctx context.Context, coll *allium.Collection[bson.Raw], doc bson.Raw) error {
	empty := bson.D{}
	for key, v := range doc.All() {
		if ts, ok := v.Timestamp(); ok && ts == (bson.Timestamp{}) && key != "_id" {
			empty = append(empty, bson.E{Key: key, Value: ts})
		}
	}
	if len(empty) == 0 {
		return nil
	}
	_, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: doc.Lookup("_id")}}}}, bson.D{{Key: "$set", Value: empty}},
		allium.UpdateOptions{BypassDocumentValidation: new(true)})
	return err
}

// maxDocument is the size of the largest document that a server takes, with room for its own
// fields.
const maxDocument = 16<<20 + 16<<10

// readDocument reads the next document of a file of documents; io.EOF says that there is none.
func readDocument(r *bufio.Reader) (bson.Raw, error) {
	head, err := r.Peek(4)
	if len(head) == 0 && err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	n := int(int32(uint32(head[0]) | uint32(head[1])<<8 | uint32(head[2])<<16 | uint32(head[3])<<24))
	if n < 5 || n > maxDocument {
		return nil, fmt.Errorf("a document has the length %d", n)
	}
	doc := make(bson.Raw, n)
	if _, err := io.ReadFull(r, doc); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return doc, doc.Validate()
}
