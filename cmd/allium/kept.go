package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"allium"
	"allium/bson"
	"allium/internal/dump"
	"allium/mongotest"
)

// A dataStore is where -data keeps what a deployment holds: a folder or an archive, in the forms of
// mongodump.
type dataStore interface {
	// contents lists what there is, without documents.
	contents() *dump.Contents
	// documents calls the function with all documents, those of a collection in their order.
	documents(each func(c *dump.Collection, doc bson.Raw) error) error
	// replace makes these contents what there is, with the documents that the function writes. If
	// it fails, or the process ends in the middle, there is what was there before.
	replace(all *dump.Contents, documents func(c *dump.Collection, w io.Writer) error) error
	// close gives the place free.
	close()
}

// disk is how files are written, but in tests the system's.
type disk struct {
	create func(path string) (file, error)
	rename func(from, to string) error
}

type file interface {
	io.WriteCloser
	Sync() error
}

var realDisk = disk{
	// Nobody else reads it, and it is new.
	create: func(path string) (file, error) {
		return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	},
	rename: os.Rename,
}

// write makes a file that is on the disk when it returns.
func (d disk) write(path string, zip bool, write func(w io.Writer) error) (err error) {
	f, err := d.create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buffered := bufio.NewWriter(f)
	if zip {
		err = dump.Zipped(buffered, write)
	} else {
		err = write(buffered)
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// openStore opens the place that -data names, of which there may be nothing yet.
func openStore(path string, d disk) (dataStore, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		if strings.HasSuffix(strings.TrimSuffix(path, dump.GzipSuffix), archiveSuffix) {
			return openArchive(path, d)
		}
		return openFolder(path, d)
	case err != nil:
		return nil, err
	case info.IsDir():
		return openFolder(path, d)
	case info.Mode().IsRegular():
		return openArchive(path, d)
	}
	return nil, fmt.Errorf("%s is neither a folder nor a file", path)
}

// fill reads what -data and -seed name into a deployment that has just started.
func (f *serveFlags) fill(ctx context.Context, d *mongotest.Deployment, uri string, warnings io.Writer) error {
	if f.seed == "" && f.data == "" {
		return nil
	}
	client, err := allium.Open(uri)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	if f.data != "" {
		if f.disk.create == nil {
			f.disk = realDisk
		}
		if f.store, err = openStore(f.data, f.disk); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		// What the deployment starts with is not what somebody has set.
		if f.defaults, err = readParameters(ctx, client); err == nil {
			err = f.load(ctx, client, d, uri, warnings)
		}
		if err != nil {
			f.store.close()
			return fmt.Errorf("--data: %w", err)
		}
	}
	if f.seed != "" {
		if err := seed(ctx, client, f.seed, f.store); err != nil {
			if f.store != nil {
				f.store.close()
			}
			return fmt.Errorf("--seed: %w", err)
		}
	}
	return nil
}

// keep writes what a deployment holds to the place of -data.
func (f *serveFlags) keep(d *mongotest.Deployment, uri string) (err error) {
	if f.store == nil {
		return nil
	}
	defer f.store.close()
	defer func() {
		if err != nil {
			err = fmt.Errorf("--data: %w", err)
		}
	}()
	ctx := context.Background() // the program's has ended: that is why
	uri, self, err := f.keeper(d, uri)
	if err != nil {
		return err
	}
	client, err := openKeeper(ctx, uri)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	all, err := f.survey(ctx, client, self)
	if err != nil {
		return err
	}
	return f.store.replace(all, func(c *dump.Collection, w io.Writer) error {
		return dumpDocuments(ctx, client, c, self, w)
	})
}

// seed inserts the documents of a file: {"db.collection": [{...}, ...], ...}. Collections that a
// place has, which may be nil, are as they were kept.
func seed(ctx context.Context, client *allium.Client, path string, store dataStore) error {
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
		if store != nil && store.contents().Of(db, coll) != nil {
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

// unkept reports whether a database is left out: what is in it belongs to one process, or describes
// where data is.
func unkept(db string) bool { return db == "local" || db == "config" }

// restorable reports whether what a dump has of a collection is put into a deployment.
func restorable(db, name string) bool {
	return !unkept(db) && (!ownCollection(name) || accountsOf(db, name) != noAccounts)
}

// ownCollection reports whether a collection is one of the server's that is not kept.
func ownCollection(name string) bool {
	return strings.HasPrefix(name, "system.") && name != "system.js" && !strings.HasPrefix(name, dump.Buckets)
}

// survey lists what a deployment holds; self is a user whom nobody but keep knows.
func (f *serveFlags) survey(ctx context.Context, client *allium.Client, self string) (*dump.Contents, error) {
	all := &dump.Contents{}
	build, err := adminCommand(ctx, client, bson.D{{Key: "buildInfo", Value: 1}})
	if err != nil {
		return nil, err
	}
	all.Server, _ = build.Lookup("version").StringValue()
	if all.Parameters, err = changedParameters(ctx, client, f.defaults); err != nil {
		return nil, err
	}
	names, err := client.ListDatabaseNames(ctx)
	if err != nil {
		return nil, err
	}
	// What follows reads whole collections. Where it cannot be set, it is not so.
	_, _ = client.Database("admin").RunCommand(ctx, bson.D{{Key: setParameter, Value: 1}, {Key: "notablescan", Value: false}})
	for _, name := range names {
		if unkept(name) {
			continue
		}
		list, err := surveyDatabase(ctx, client.Database(name))
		if err != nil {
			return nil, err
		}
		all.Collections = append(all.Collections, list...)
	}
	accounts, err := surveyAccounts(ctx, client, self)
	if err != nil {
		return nil, err
	}
	// Where mongorestore reads them in an archive: before everything else.
	all.Collections = slices.Concat(accounts, all.Collections)
	return all, nil
}

func surveyDatabase(ctx context.Context, db *allium.Database) (all []*dump.Collection, err error) {
	infos, err := allium.RunCursorCommand[bson.Raw](ctx, db, bson.D{{Key: "listCollections", Value: 1}})
	if err != nil {
		return nil, err
	}
	list, err := infos.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, info := range list {
		name, _ := info.Lookup("name").StringValue()
		if ownCollection(name) || strings.HasPrefix(name, dump.Buckets) {
			continue
		}
		c := &dump.Collection{DB: db.Name(), Name: name}
		m := dump.Metadata{Name: name}
		m.Type, _ = info.Lookup("type").StringValue()
		m.Options, _ = info.Lookup("options").Document()
		c.Bare = m.Type == "view" || m.Type == "timeseries"
		if m.Type != "view" {
			indexes, err := allium.RunCursorCommand[bson.Raw](ctx, db, bson.D{{Key: "listIndexes", Value: name}})
			if err != nil {
				return nil, err
			}
			if m.Indexes, err = indexes.All(ctx); err != nil {
				return nil, err
			}
		}
		if c.Metadata, err = bson.MarshalExtJSON(m, true); err != nil {
			return nil, err
		}
		all = append(all, c)
		if m.Type == "timeseries" {
			all = append(all, &dump.Collection{DB: db.Name(), Name: dump.Buckets + name})
		}
	}
	return all, nil
}

// dumpDocuments writes the documents of a collection, one after the other.
func dumpDocuments(ctx context.Context, client *allium.Client, c *dump.Collection, self string, w io.Writer) error {
	filter := bson.D{}
	if c.DB == "admin" && c.Name == usersColl {
		filter = bson.D{{Key: "user", Value: bson.D{{Key: "$ne", Value: self}}}}
	}
	cur, err := allium.CollectionOf[bson.Raw](client.Database(c.DB), c.Name).Find(ctx, filter)
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

// load makes the collections that a place has, with its users, roles and parameters.
func (f *serveFlags) load(ctx context.Context, client *allium.Client, d *mongotest.Deployment, uri string, warnings io.Writer) error {
	all := f.store.contents()
	parsed := map[*dump.Collection]dump.Metadata{}
	for _, c := range all.Collections {
		m, err := c.Parse()
		if err != nil {
			return err
		}
		parsed[c] = m
	}
	create := func(c *dump.Collection) error {
		_, err := client.Database(c.DB).RunCommand(ctx, createCommand(c.Name, parsed[c].Options))
		if err != nil {
			err = fmt.Errorf("create %s: %w", c.NS(), err)
		}
		return err
	}
	accounts := &keptAccounts{}
	for _, c := range all.Collections {
		if accounts.has(c) || c.Bare && parsed[c].Type == "view" || strings.HasPrefix(c.Name, dump.Buckets) {
			continue
		}
		if err := create(c); err != nil {
			return err
		}
	}
	in := &inserter{client: client, waiting: map[*dump.Collection][]bson.Raw{}}
	err := f.store.documents(func(c *dump.Collection, doc bson.Raw) error {
		if accounts.has(c) {
			return accounts.add(c, doc)
		}
		return in.add(ctx, c, doc)
	})
	if err == nil {
		err = in.flush(ctx)
	}
	if err != nil {
		return err
	}
	for _, c := range all.Collections {
		if err := createIndexes(ctx, client.Database(c.DB), c.Name, parsed[c].Indexes); err != nil {
			return fmt.Errorf("indexes of %s: %w", c.NS(), err)
		}
	}
	for _, c := range all.Collections { // they look at the others
		if parsed[c].Type == "view" {
			if err := create(c); err != nil {
				return err
			}
		}
	}
	user, _, _ := strings.Cut(f.auth, ":")
	if err := accounts.merge(ctx, client, user); err != nil {
		return err
	}
	return f.restoreParameters(ctx, d, uri, all.Parameters, warnings)
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

// How much is inserted at once: so many documents, or so many bytes of one and more.
const (
	batch      = 1000
	batchBytes = 16 << 20
)

// An inserter inserts documents as they are: the validator of a collection may be younger than
// they.
type inserter struct {
	client  *allium.Client
	waiting map[*dump.Collection][]bson.Raw
	bytes   int
}

func (in *inserter) add(ctx context.Context, c *dump.Collection, doc bson.Raw) error {
	in.waiting[c] = append(in.waiting[c], doc)
	in.bytes += len(doc)
	if len(in.waiting[c]) == batch || in.bytes >= batchBytes {
		return in.flush(ctx)
	}
	return nil
}

func (in *inserter) flush(ctx context.Context) error {
	for c, docs := range in.waiting {
		if err := insertKept(ctx, in.client, c, docs); err != nil {
			return fmt.Errorf("%s: %w", c.NS(), err)
		}
	}
	clear(in.waiting)
	in.bytes = 0
	return nil
}

func insertKept(ctx context.Context, client *allium.Client, c *dump.Collection, docs []bson.Raw) error {
	coll := allium.CollectionOf[bson.Raw](client.Database(c.DB), c.Name)
	if _, err := coll.InsertMany(ctx, docs, allium.InsertManyOptions{BypassDocumentValidation: new(true)}); err != nil {
		return err
	}
	for _, doc := range docs {
		if err := restamp(ctx, coll, doc); err != nil {
			return err
		}
	}
	return nil
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

// sameDir returns the folder of a path whose symbolic links are followed as far as there is
// something.
func sameDir(path string) (string, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}
