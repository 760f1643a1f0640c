package mongo

import (
	"context"
	"errors"
	"time"

	"allium"
	abson "allium/bson"
	"allium/consistency"
	"allium/mongoerr"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/internal/optionsutil"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

// A Database is a handle to a database. It is safe for concurrent use.
type Database struct {
	client *Client
	inner  *allium.Database
	name   string
	coder
	readPreference *readpref.ReadPref // nil for the primary
	quiet          bool               // writes are not acknowledged
}

// Pipeline is a list of stages.
type Pipeline []bson.D

// Client returns the client.
func (db *Database) Client() *Client { return db.client }

// Name returns the name.
func (db *Database) Name() string { return db.name }

// Collection returns the collection of a name.
func (db *Database) Collection(name string, opts ...options.Lister[options.CollectionOptions]) *Collection {
	o, _ := merged(opts)
	coll := &Collection{client: db.client, db: db, name: name, coder: db.coder, quiet: db.quiet}
	settings := coll.settings(o)
	if db.inner == nil {
		return coll
	}
	if settings == (allium.CollectionOptions{}) {
		coll.inner = allium.CollectionOf[abson.Raw](db.inner, name)
	} else {
		coll.inner = allium.CollectionOf[abson.Raw](db.inner, name, settings)
	}
	return coll
}

// Drop deletes the database.
func (db *Database) Drop(ctx context.Context) error {
	ctx, err := db.client.context(ctx)
	if err != nil {
		return err
	}
	err = db.inner.Drop(ctx)
	if mongoerr.HasCode(err, codeNamespaceNotFound) {
		return nil
	}
	return commandFailed(err)
}

// Aggregate runs a pipeline on the database itself.
func (db *Database) Aggregate(ctx context.Context, pipeline any,
	opts ...options.Lister[options.AggregateOptions]) (*Cursor, error) {
	return aggregate(ctx, db.client, db, "", db.coder, nil, pipeline, opts)
}

// Watch opens a change stream over the collections of the database.
func (db *Database) Watch(ctx context.Context, pipeline any,
	opts ...options.Lister[options.ChangeStreamOptions]) (*ChangeStream, error) {
	return watch(ctx, db.client, db.coder, db.inner, pipeline, opts)
}

// command encodes a command for RunCommand.
func (db *Database) command(ctx context.Context, cmd any,
	opts []options.Lister[options.RunCmdOptions]) (context.Context, abson.Raw, *readpref.ReadPref, error) {
	o, err := built(opts)
	if err != nil {
		return ctx, nil, nil, err
	}
	if cmd == nil {
		return ctx, nil, nil, ErrNilDocument
	}
	if ctx, err = db.client.context(ctx); err != nil {
		return ctx, nil, nil, err
	}
	if hasManyKeys(cmd) {
		return ctx, nil, nil, ErrMapForOrderedArgument{"cmd"}
	}
	doc, err := db.document(cmd)
	if err != nil {
		return ctx, nil, nil, err
	}
	if SessionFromContext(ctx) != nil && SessionFromContext(ctx).TransactionRunning() && o.ReadPreference != nil &&
		o.ReadPreference.Mode() != readpref.PrimaryMode {
		return ctx, nil, nil, errors.New("read preference in a transaction must be primary")
	}
	return ctx, doc, o.ReadPreference, nil
}

// RunCommand runs a command.
func (db *Database) RunCommand(ctx context.Context, runCommand any,
	opts ...options.Lister[options.RunCmdOptions]) *SingleResult {
	ctx, cmd, rp, err := db.command(ctx, runCommand, opts)
	if err != nil {
		return &SingleResult{err: err}
	}
	reply, err := db.inner.RunCommand(ctx, cmd, allium.RunCommandOptions{ReadPreference: readPreference(rp)})
	if err != nil && reply == nil {
		failed := failure(err)
		var command CommandError
		errors.As(failed, &command)
		return &SingleResult{err: failed, doc: command.Raw, coder: db.coder}
	}
	res := &SingleResult{doc: bson.Raw(reply), coder: db.coder}
	if err != nil {
		res.err = refusedBy(reply, err)
	}
	return res
}

// refusedBy is the error of a command that was run, and whose reply has errors of writes.
func refusedBy(reply abson.Raw, err error) error {
	var bulk *mongoerr.BulkWriteError
	e := WriteException{Raw: bson.Raw(reply)}
	if !errors.As(err, &bulk) {
		return failure(err)
	}
	for _, w := range bulk.WriteErrors {
		e.WriteErrors = append(e.WriteErrors, writeError(w))
	}
	for _, w := range bulk.WriteConcernErrors {
		e.WriteConcernError = writeConcernError(w)
	}
	e.Labels = append(e.Labels, bulk.Labels...)
	return e
}

var errNoCursor = errors.New("database response does not contain a cursor; try using RunCommand instead")

// RunCommandCursor runs a command that opens a cursor.
func (db *Database) RunCommandCursor(ctx context.Context, runCommand any,
	opts ...options.Lister[options.RunCmdOptions]) (*Cursor, error) {
	ctx, cmd, rp, err := db.command(ctx, runCommand, opts)
	if err != nil {
		return nil, err
	}
	cur, err := allium.RunCursorCommand[coding.View](ctx, db.inner, cmd,
		allium.RunCursorCommandOptions{ReadPreference: readPreference(rp), CursorType: commandCursorType(cmd)})
	if err != nil {
		if errors.Is(err, mongoerr.ErrNoCursor) {
			return nil, errNoCursor
		}
		return nil, commandFailed(err)
	}
	return newCursor(cur, db.coder), nil
}

// commandCursorType returns the type of the cursor that a find command opens.
func commandCursorType(cmd abson.Raw) allium.CursorType {
	switch {
	case !cmd.Lookup("tailable").AsBool():
		return ""
	case cmd.Lookup("awaitData").AsBool():
		return allium.CursorTailableAwait
	}
	return allium.CursorTailable
}

// CollectionSpecification describes a collection.
type CollectionSpecification struct {
	Name     string
	Type     string // "collection", "view" or "timeseries"
	ReadOnly bool
	UUID     *bson.Binary
	Options  bson.Raw
	IDIndex  IndexSpecification
}

// listed runs listCollections.
func (db *Database) listed(ctx context.Context, filter any,
	opts []options.Lister[options.ListCollectionsOptions]) (*allium.Cursor[coding.View], error) {
	o, err := built(opts)
	if err != nil {
		return nil, err
	}
	if ctx, err = db.client.context(ctx); err != nil {
		return nil, err
	}
	f, err := db.document(filter)
	if err != nil {
		return nil, err
	}
	start, cmd := abson.BeginDocument(nil)
	cmd = abson.AppendInt32(cmd, "listCollections", 1)
	cmd = abson.AppendDocument(cmd, "filter", f)
	if o.NameOnly != nil {
		cmd = abson.AppendBool(cmd, "nameOnly", *o.NameOnly)
	}
	at, cmd := abson.BeginDocumentElement(cmd, "cursor")
	if o.BatchSize != nil {
		cmd = abson.AppendInt32(cmd, "batchSize", *o.BatchSize)
	}
	cmd = abson.EndDocument(cmd, at)
	if o.AuthorizedCollections != nil {
		cmd = abson.AppendBool(cmd, "authorizedCollections", *o.AuthorizedCollections)
	}
	if rawData(o.Internal) {
		cmd = abson.AppendBool(cmd, "rawData", true)
	}
	// There is no read concern, and no preference but in a transaction: its own is the primary.
	cur, err := db.retried(ctx, abson.EndDocument(cmd, start),
		allium.RunCursorCommandOptions{BatchSize: o.BatchSize, ReadPreference: db.preferenceOf(ctx)})
	return cur, commandFailed(err)
}

// preferenceOf returns the database's read preference, for commands that RunCursorCommand sends.
func (db *Database) preferenceOf(ctx context.Context) *consistency.ReadPreference {
	if s := allium.SessionFrom(ctx); s != nil && s.InTransaction() {
		return nil
	}
	return readPreference(db.readPreference)
}

// retried runs a command that reads, and once more if the connection or the server fails.
func (db *Database) retried(ctx context.Context, cmd abson.Raw,
	o allium.RunCursorCommandOptions) (*allium.Cursor[coding.View], error) {
	cur, err := allium.RunCursorCommand[coding.View](ctx, db.inner, cmd, o)
	if err != nil && ctx.Err() == nil && isRetryable(err) &&
		(db.client.opts.RetryReads == nil || *db.client.opts.RetryReads) {
		if s := allium.SessionFrom(ctx); s == nil || !s.InTransaction() {
			return allium.RunCursorCommand[coding.View](ctx, db.inner, cmd, o)
		}
	}
	return cur, err
}

// isRetryable reports whether a read may be tried again (specification: Retryable Reads).
func isRetryable(err error) bool {
	var conn *mongoerr.ConnectionError
	if errors.As(err, &conn) || errors.Is(err, mongoerr.ErrPoolCleared) {
		return true
	}
	for _, code := range []int32{6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436} {
		if mongoerr.HasCode(err, code) {
			return true
		}
	}
	return false
}

func rawData(o optionsutil.Options) bool {
	b, _ := optionsutil.Value(o, "rawData").(bool)
	return b
}

// collectionUUIDs returns the UUIDs that package xoptions sets for the writes of a client.
func collectionUUIDs(o optionsutil.Options) (uuids [][]byte, isSet bool) {
	uuids, isSet = optionsutil.Value(o, coding.CollectionUUIDs).([][]byte)
	return uuids, isSet
}

// with returns the collection for one operation, whose commands have the fields that package
// xoptions sets.
func (coll *Collection) with(o optionsutil.Options) (*allium.Collection[abson.Raw], error) {
	fields, err := coll.commandFields(o)
	if err != nil || fields == nil {
		return coll.inner, err
	}
	return coll.inner.With(allium.CollectionOptions{CommandFields: fields}), nil
}

// commandFields returns the fields that package xoptions sets for an operation's commands, nil if
// there are none.
func (c coder) commandFields(o optionsutil.Options) (abson.Raw, error) {
	fields, _ := optionsutil.Value(o, coding.CommandFields).(bson.D)
	if len(fields) == 0 {
		return nil, nil
	}
	return c.document(fields)
}

// maxTime is an option of version 1: how long the server may work on a command.
func maxTime(o optionsutil.Options) time.Duration {
	d, _ := optionsutil.Value(o, coding.MaxTime).(time.Duration)
	return d
}

// ListCollections lists the collections that match a filter.
func (db *Database) ListCollections(ctx context.Context, filter any,
	opts ...options.Lister[options.ListCollectionsOptions]) (*Cursor, error) {
	cur, err := db.listed(ctx, filter, opts)
	if err != nil {
		return nil, err
	}
	return newCursor(cur, db.coder), nil
}

// ListCollectionSpecifications lists the collections that match a filter, with what is known of
// them.
func (db *Database) ListCollectionSpecifications(ctx context.Context, filter any,
	opts ...options.Lister[options.ListCollectionsOptions]) ([]CollectionSpecification, error) {
	cur, err := db.listed(ctx, filter, opts)
	if err != nil {
		return nil, err
	}
	docs, err := newCursor(cur, db.coder).documents(ctx)
	if err != nil {
		return nil, err
	}
	var out []CollectionSpecification
	for _, doc := range docs {
		var c struct {
			Name    string
			Type    string
			Options bson.Raw
			Info    struct {
				ReadOnly bool `bson:"readOnly"`
				UUID     *bson.Binary
			}
			IDIndex *indexDocument `bson:"idIndex"`
		}
		if err := bson.Unmarshal(doc, &c); err != nil {
			return nil, err
		}
		spec := CollectionSpecification{Name: c.Name, Type: c.Type, Options: c.Options, ReadOnly: c.Info.ReadOnly,
			UUID: c.Info.UUID}
		if c.IDIndex != nil {
			spec.IDIndex = c.IDIndex.specification()
		}
		if spec.IDIndex.Namespace == "" {
			spec.IDIndex.Namespace = db.name + "." + c.Name
		}
		out = append(out, spec)
	}
	return out, nil
}

// ListCollectionNames lists the names of the collections that match a filter.
func (db *Database) ListCollectionNames(ctx context.Context, filter any,
	opts ...options.Lister[options.ListCollectionsOptions]) ([]string, error) {
	cur, err := db.listed(ctx, filter, append(opts[:len(opts):len(opts)], options.ListCollections().SetNameOnly(true)))
	if err != nil {
		return nil, err
	}
	docs, err := newCursor(cur, db.coder).documents(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(docs))
	for i, doc := range docs {
		name, err := doc.LookupErr("name")
		if err != nil {
			return nil, err
		}
		names[i], _ = name.StringValueOK()
	}
	return names, nil
}

// CreateCollection creates a collection.
func (db *Database) CreateCollection(ctx context.Context, name string,
	opts ...options.Lister[options.CreateCollectionOptions]) error {
	o, err := built(opts)
	if err != nil {
		return err
	}
	if ctx, err = db.client.context(ctx); err != nil {
		return err
	}
	create, err := db.createOptions(o)
	if err != nil {
		return err
	}
	return commandFailed(db.inner.CreateCollection(ctx, name, create))
}

func (db *Database) createOptions(o *options.CreateCollectionOptions) (allium.CreateCollectionOptions, error) {
	create := allium.CreateCollectionOptions{
		Capped: set(o.Capped), SizeInBytes: set(o.SizeInBytes), MaxDocuments: set(o.MaxDocuments),
		Collation:        collated(o.Collation),
		ValidationLevel:  allium.ValidationLevel(set(o.ValidationLevel)),
		ValidationAction: allium.ValidationAction(set(o.ValidationAction)),
	}
	var err error
	optional := func(into *any, val any) {
		if err == nil && val != nil {
			*into, err = db.optional(val)
		}
	}
	optional(&create.Validator, o.Validator)
	optional(&create.StorageEngine, o.StorageEngine)
	optional(&create.ClusteredIndex, o.ClusteredIndex)
	optional(&create.EncryptedFields, o.EncryptedFields)
	if o.ChangeStreamPreAndPostImages != nil && err == nil {
		var images abson.Raw
		if images, err = db.document(o.ChangeStreamPreAndPostImages); err == nil {
			enabled := images.Lookup("enabled").AsBool()
			create.PreAndPostImages = &enabled
		}
	}
	if o.ExpireAfterSeconds != nil {
		d := time.Duration(*o.ExpireAfterSeconds) * time.Second
		create.ExpireAfter = &d
	}
	if o.DefaultIndexOptions != nil && err == nil {
		var index *options.DefaultIndexOptions
		if index, err = merged([]options.Lister[options.DefaultIndexOptions]{o.DefaultIndexOptions}); err == nil {
			var engine any
			if engine, err = db.optional(index.StorageEngine); err == nil {
				doc := abson.D{}
				if engine != nil {
					doc = append(doc, abson.E{Key: "storageEngine", Value: engine})
				}
				create.IndexOptionDefaults = doc
			}
		}
	}
	if o.TimeSeriesOptions != nil && err == nil {
		var t *options.TimeSeriesOptions
		if t, err = merged([]options.Lister[options.TimeSeriesOptions]{o.TimeSeriesOptions}); err == nil {
			doc := abson.D{{Key: "timeField", Value: t.TimeField}}
			if t.MetaField != nil {
				doc = append(doc, abson.E{Key: "metaField", Value: *t.MetaField})
			}
			if t.Granularity != nil {
				doc = append(doc, abson.E{Key: "granularity", Value: *t.Granularity})
			}
			if t.BucketMaxSpan != nil {
				doc = append(doc, abson.E{Key: "bucketMaxSpanSeconds", Value: int64(t.BucketMaxSpan.Seconds())})
			}
			if t.BucketRounding != nil {
				doc = append(doc, abson.E{Key: "bucketRoundingSeconds", Value: int64(t.BucketRounding.Seconds())})
			}
			create.TimeSeries = doc
		}
	}
	return create, err
}

// CreateView creates a view of a collection through a pipeline.
func (db *Database) CreateView(ctx context.Context, viewName, viewOn string, pipeline any,
	opts ...options.Lister[options.CreateViewOptions]) error {
	o, err := built(opts)
	if err != nil {
		return err
	}
	if ctx, err = db.client.context(ctx); err != nil {
		return err
	}
	stages, _, err := db.pipeline(pipeline)
	if err != nil {
		return err
	}
	return commandFailed(db.inner.CreateCollection(ctx, viewName,
		allium.CreateCollectionOptions{ViewOn: viewOn, Pipeline: stages, Collation: collated(o.Collation)}))
}

// GridFSBucket returns a bucket of files.
func (db *Database) GridFSBucket(opts ...options.Lister[options.BucketOptions]) *GridFSBucket {
	return newBucket(db, opts)
}
