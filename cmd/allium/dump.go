package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"allium"
	"allium/bson"
)

// The folder of -data is laid out as mongodump lays out a dump, so that mongorestore reads it, and
// a dump can be served: DATABASE/COLLECTION.bson holds documents one after the other, and
// DATABASE/COLLECTION.metadata.json the options and indexes. Names are escaped as in a URL.
const (
	documentsSuffix = ".bson"
	metadataSuffix  = ".metadata.json"
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
		err := load(ctx, client, f.data)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the first time there is nothing
			return fmt.Errorf("--data: %w", err)
		}
	}
	if f.seed != "" {
		if err := seed(ctx, client, f.seed); err != nil {
			return fmt.Errorf("--seed: %w", err)
		}
	}
	return nil
}

// keep writes what a deployment holds to the folder of -data.
func (f *serveFlags) keep(uri string) error {
	if f.data == "" {
		return nil
	}
	ctx := context.Background() // the program's has ended: that is why
	client, err := allium.Open(uri)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	if err := dump(ctx, client, f.data); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	return nil
}

// seed inserts the documents of a file: {"db.collection": [{...}, ...], ...}.
func seed(ctx context.Context, client *allium.Client, path string) error {
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

// dump writes all collections to a folder, which is replaced as a whole: what was there before is
// lost only when everything is written.
func dump(ctx context.Context, client *allium.Client, dir string) error {
	fresh := filepath.Clean(dir) + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return err
	}
	names, err := client.ListDatabaseNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if inner(name) {
			continue
		}
		if err := dumpDatabase(ctx, client.Database(name), filepath.Join(fresh, url.PathEscape(name))); err != nil {
			return err
		}
	}
	old := filepath.Clean(dir) + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

func dumpDatabase(ctx context.Context, db *allium.Database, dir string) error {
	infos, err := allium.RunCursorCommand[bson.Raw](ctx, db, bson.D{{Key: "listCollections", Value: 1}})
	if err != nil {
		return err
	}
	list, err := infos.All(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, info := range list {
		name, _ := info.Lookup("name").StringValue()
		if strings.HasPrefix(name, "system.") {
			continue
		}
		m := metadata{}
		m.Type, _ = info.Lookup("type").StringValue()
		m.Options, _ = info.Lookup("options").Document()
		path := filepath.Join(dir, url.PathEscape(name))
		if m.Type == "" || m.Type == "collection" {
			if err := dumpCollection(ctx, db, name, path+documentsSuffix); err != nil {
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
		if err := os.WriteFile(path+metadataSuffix, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func dumpCollection(ctx context.Context, db *allium.Database, name, path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	defer func() {
		err = errors.Join(err, w.Flush(), file.Close())
	}()
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

// load reads a folder that dump, or mongodump, has written.
func load(ctx context.Context, client *allium.Client, dir string) error {
	databases, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, d := range databases {
		name, err := url.PathUnescape(d.Name())
		if err != nil || !d.IsDir() || inner(name) {
			continue
		}
		if err := loadDatabase(ctx, client.Database(name), filepath.Join(dir, d.Name())); err != nil {
			return err
		}
	}
	return nil
}

func loadDatabase(ctx context.Context, db *allium.Database, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*"+metadataSuffix))
	if err != nil {
		return err
	}
	var views []func() error
	slices.Sort(files)
	for _, file := range files {
		base := strings.TrimSuffix(filepath.Base(file), metadataSuffix)
		name, err := url.PathUnescape(base)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var m metadata
		if err := bson.UnmarshalExtJSON(text, &m); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		create := func() error {
			_, err := db.RunCommand(ctx, createCommand(name, m.Options))
			return err
		}
		if m.Type == "view" { // it needs the collection that it looks at
			views = append(views, create)
			continue
		}
		if err := create(); err != nil {
			return err
		}
		if err := loadCollection(ctx, db, name, filepath.Join(dir, base+documentsSuffix)); err != nil {
			return err
		}
		if err := createIndexes(ctx, db, name, m.Indexes); err != nil {
			return err
		}
	}
	for _, create := range views {
		if err := create(); err != nil {
			return err
		}
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
		if n, _ := index.Lookup("name").StringValue(); n == "_id_" {
			continue
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

func loadCollection(ctx context.Context, db *allium.Database, name, path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	coll := allium.CollectionOf[bson.Raw](db, name)
	r := bufio.NewReader(file)
	var docs []bson.Raw
	insert := func() error {
		if len(docs) == 0 {
			return nil
		}
		_, err := coll.InsertMany(ctx, docs)
		docs = docs[:0]
		return err
	}
	for {
		doc, err := readDocument(r)
		if err == io.EOF {
			return insert()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if docs = append(docs, doc); len(docs) == batch {
			if err := insert(); err != nil {
				return err
			}
		}
	}
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
