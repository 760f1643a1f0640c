package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"allium"
	"allium/bson"
	"allium/internal/dump"
	"allium/mongoerr"
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

// contents returns what fills a deployment before it listens: what -data names, then what -seed
// names, then scripts.
func (f *serveFlags) contents(ctx context.Context, stderr io.Writer) ([]mongotest.Option, error) {
	var opts []mongotest.Option
	for _, path := range f.seed {
		opt, err := seedOption(path)
		if err != nil {
			return nil, fmt.Errorf("--seed: want a file or a folder: %w", err)
		}
		opts = append(opts, opt)
	}
	scripts, err := f.scriptOption(ctx, stderr)
	if err != nil {
		return nil, err
	}
	if f.data != "" {
		if err := f.openStore(); err != nil {
			return nil, err
		}
		opts = append([]mongotest.Option{mongotest.Prepare(func(d *mongotest.Deployment) error {
			return f.open(ctx, d, stderr)
		})}, opts...)
		if len(f.store.contents().Collections) > 0 {
			return opts, nil // the scripts have run
		}
	}
	return append(opts, scripts...), nil
}

// scriptOption returns the option for the folder of scripts, if there is one.
func (f *serveFlags) scriptOption(ctx context.Context, stderr io.Writer) ([]mongotest.Option, error) {
	if f.scripts == "" {
		return nil, nil
	}
	if info, err := os.Stat(f.scripts); err != nil || !info.IsDir() {
		if !f.given["init-scripts"] {
			return nil, nil
		}
		return nil, fmt.Errorf("--init-scripts %q: want a folder", f.scripts)
	}
	env := map[string]string{}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return []mongotest.Option{mongotest.Scripts(os.DirFS(f.scripts),
			mongotest.ScriptOptions{Database: f.initial.Database, Out: scriptOutput{f, stderr}, Env: env,
				Check: ctx.Err})},
		nil
}

// scriptOutput writes what scripts print to the error output, each line as one of the program's.
type scriptOutput struct {
	f      *serveFlags
	stderr io.Writer
}

func (o scriptOutput) Write(b []byte) (int, error) {
	o.f.say(o.stderr, slog.LevelInfo, "script", slog.String("says", strings.TrimSuffix(string(b), "\n")))
	return len(b), nil
}

// seedOption returns the option for a file or a folder.
func seedOption(path string) (mongotest.Option, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return mongotest.Seed(os.DirFS(path)), nil
	}
	return mongotest.SeedFile(os.DirFS(filepath.Dir(path)), filepath.Base(path)), nil
}

// open reads what -data names into a deployment that is about to start.
func (f *serveFlags) open(ctx context.Context, d *mongotest.Deployment, warnings io.Writer) error {
	if err := f.openStore(); err != nil {
		return err
	}
	err := inside(ctx, d, func(client *allium.Client, uri string) (err error) {
		// What the deployment starts with is not what somebody has set.
		if f.defaults, err = readParameters(ctx, client); err != nil {
			return err
		}
		return f.load(ctx, client, d, uri, warnings)
	})
	if err != nil {
		f.release()
		return fmt.Errorf("--data: %w", err)
	}
	return nil
}

// openStore opens the place of -data, unless it is open.
func (f *serveFlags) openStore() (err error) {
	if f.store != nil {
		return nil
	}
	if f.disk.create == nil {
		f.disk = realDisk
	}
	if f.store, err = openStore(f.data, f.disk); err != nil {
		f.store = nil
		return fmt.Errorf("--data: %w", err)
	}
	return nil
}

// inside calls a function with a client that may do everything in a deployment, whoever else can
// reach it.
func inside(ctx context.Context, d *mongotest.Deployment, f func(client *allium.Client, uri string) error) error {
	return d.Inside(func(uri string) error {
		client, err := allium.Open(uri, allium.ClientOptions{Dialer: d})
		if err != nil {
			return err
		}
		defer client.Close(context.WithoutCancel(ctx))
		return f(client, uri)
	})
}

// release gives the place of -data free.
func (f *serveFlags) release() {
	if f.store != nil {
		f.store.close()
		f.store = nil
	}
}

// keep writes what a deployment holds to the place of -data.
func (f *serveFlags) keep(d *mongotest.Deployment) (err error) {
	if f.store == nil {
		return nil
	}
	d.ClearFailures()
	ctx := context.Background() // the program's has ended: that is why
	err = inside(ctx, d, func(client *allium.Client, _ string) error {
		all, err := f.survey(ctx, client)
		if err != nil {
			return err
		}
		return f.store.replace(all, func(c *dump.Collection, w io.Writer) error {
			return dumpDocuments(ctx, client, c, w)
		})
	})
	if err != nil {
		return fmt.Errorf("--data: %w", err)
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

// survey lists what a deployment of the program's own holds, with its parameters.
func (f *serveFlags) survey(ctx context.Context, client *allium.Client) (*dump.Contents, error) {
	parameters, err := changedParameters(ctx, client, f.defaults)
	if err != nil {
		return nil, err
	}
	// What follows reads whole collections. Where it cannot be set, it is not so.
	_, _ = client.Database("admin").RunCommand(ctx,
		bson.D{{Key: setParameter, Value: 1}, {Key: "notablescan", Value: false}})
	all, err := surveyDeployment(ctx, client, choice{})
	if err != nil {
		return nil, err
	}
	all.Parameters = parameters
	return all, nil
}

// surveyDeployment lists what a deployment holds of what is chosen.
func surveyDeployment(ctx context.Context, client *allium.Client, chosen choice) (*dump.Contents, error) {
	all := &dump.Contents{}
	build, err := adminCommand(ctx, client, bson.D{{Key: "buildInfo", Value: 1}})
	if err != nil {
		return nil, err
	}
	all.Server, _ = build.Lookup("version").StringValue()
	names := []string{chosen.db}
	if chosen.db == "" {
		if names, err = client.ListDatabaseNames(ctx); err != nil {
			return nil, err
		}
	}
	if chosen.db == "" || chosen.db == "admin" {
		// Where mongorestore reads them in an archive: before everything else.
		if all.Collections, err = surveyAccounts(ctx, client); err != nil {
			return nil, err
		}
	}
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
	all.Collections = slices.DeleteFunc(all.Collections, func(c *dump.Collection) bool { return !chosen.takes(c) })
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
func dumpDocuments(ctx context.Context, client *allium.Client, c *dump.Collection, w io.Writer) error {
	cur, err := allium.CollectionOf[bson.Raw](client.Database(c.DB), c.Name).Find(ctx, bson.D{})
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

// load makes what the place of -data has, with its parameters.
func (f *serveFlags) load(ctx context.Context, client *allium.Client, d *mongotest.Deployment, uri string,
	warnings io.Writer) error {
	l := loader{client: client, store: f.store, root: f.root.name}
	if err := l.load(ctx); err != nil {
		return err
	}
	return f.restoreParameters(ctx, d, uri, f.store.contents().Parameters, warnings)
}

// A loader puts what a place has into a deployment, with its users and roles.
type loader struct {
	client *allium.Client
	store  dataStore
	choice
	root string // a user of the deployment who stays what he is; empty: none
	adds bool   // to collections that exist
}

func (l *loader) load(ctx context.Context) error {
	client := l.client
	all := &dump.Contents{}
	for _, c := range l.store.contents().Collections {
		if l.takes(c) {
			all.Collections = append(all.Collections, c)
		}
	}
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
		if l.adds && mongoerr.HasCode(err, namespaceExists) {
			return nil
		}
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
	err := l.store.documents(func(c *dump.Collection, doc bson.Raw) error {
		if !l.takes(c) {
			return nil
		}
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
	return accounts.merge(ctx, client, l.root)
}

// namespaceExists is the code of a collection that cannot be made because there is one.
const namespaceExists = 48

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
	_, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: doc.Lookup("_id")}}}},
		bson.D{{Key: "$set", Value: empty}},
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
