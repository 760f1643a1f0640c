package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/bson"
	"go.mongodb.org/mongo-driver/bson/primitive"
	"go.mongodb.org/mongo-driver/internal/convert"
	"go.mongodb.org/mongo-driver/mongo/options"
	"go.mongodb.org/mongo-driver/mongo/readconcern"
	"go.mongodb.org/mongo-driver/mongo/readpref"
	"go.mongodb.org/mongo-driver/mongo/writeconcern"
	v2bson "go.mongodb.org/mongo-driver/v2/bson"
	v2mongo "go.mongodb.org/mongo-driver/v2/mongo"
)

// A Database is a handle to a database. It is safe for concurrent use.
type Database struct {
	inner          *v2mongo.Database
	client         *Client
	readConcern    *readconcern.ReadConcern
	writeConcern   *writeconcern.WriteConcern
	readPreference *readpref.ReadPref
}

// A Pipeline is the stages of an aggregation.
type Pipeline []bson.D

// pipelineOf returns what package mongo of version 2 takes for the same pipeline.
func pipelineOf(pipeline any) any {
	switch p := pipeline.(type) {
	case primitive.D:
		return convert.D(p) // for the error: one document is no pipeline
	case bson.Raw:
		return v2bson.Raw(p)
	case bson.ValueMarshaler:
		return valueMarshaler{p}
	}
	return pipeline
}

// valueMarshaler is a ValueMarshaler of version 2.
type valueMarshaler struct{ v bson.ValueMarshaler }

func (m valueMarshaler) MarshalBSONValue() (byte, []byte, error) {
	t, data, err := m.v.MarshalBSONValue()
	return byte(t), data, err
}

// Client returns the client.
func (db *Database) Client() *Client { return db.client }

// Name returns the name.
func (db *Database) Name() string { return db.inner.Name() }

// ReadConcern returns the read concern, an empty one if none was set.
func (db *Database) ReadConcern() *readconcern.ReadConcern { return db.readConcern }

// ReadPreference returns the read preference.
func (db *Database) ReadPreference() *readpref.ReadPref { return db.readPreference }

// WriteConcern returns the write concern, nil if none was set.
func (db *Database) WriteConcern() *writeconcern.WriteConcern { return db.writeConcern }

// Collection returns the collection of a name.
func (db *Database) Collection(name string, opts ...*options.CollectionOptions) *Collection {
	return &Collection{db.inner.Collection(name, with(opts, options.MergeCollectionOptions, convert.Collection)...), db}
}

// Drop deletes the database.
func (db *Database) Drop(ctx context.Context) error { return failure(db.inner.Drop(ctx)) }

// Aggregate runs a pipeline that needs no collection.
func (db *Database) Aggregate(ctx context.Context, pipeline any, opts ...*options.AggregateOptions) (*Cursor, error) {
	return newCursor(db.inner.Aggregate(ctx, pipelineOf(pipeline),
		with(opts, options.MergeAggregateOptions, convert.Aggregate)...))
}

// Watch opens a change stream over the database.
func (db *Database) Watch(ctx context.Context, pipeline any,
	opts ...*options.ChangeStreamOptions) (*ChangeStream, error) {
	return streamOf(db.inner.Watch(ctx, pipelineOf(pipeline),
		with(opts, options.MergeChangeStreamOptions, convert.ChangeStream)...))
}

// RunCommand runs a command.
func (db *Database) RunCommand(ctx context.Context, runCommand any, opts ...*options.RunCmdOptions) *SingleResult {
	return resultOf(db.inner.RunCommand(ctx, runCommand, with(opts, options.MergeRunCmdOptions, convert.RunCmd)...))
}

// RunCommandCursor runs a command that returns a cursor.
func (db *Database) RunCommandCursor(ctx context.Context, runCommand any,
	opts ...*options.RunCmdOptions) (*Cursor, error) {
	return newCursor(db.inner.RunCommandCursor(ctx, runCommand,
		with(opts, options.MergeRunCmdOptions, convert.RunCmd)...))
}

// CollectionSpecification describes a collection.
type CollectionSpecification struct {
	Name     string
	Type     string // "collection", "view" or "timeseries"
	ReadOnly bool
	UUID     *primitive.Binary
	Options  bson.Raw
	IDIndex  *IndexSpecification // nil if there is none
}

// UnmarshalBSON decodes what listCollections returns.
//
// Deprecated: use ListCollectionSpecifications.
func (cs *CollectionSpecification) UnmarshalBSON(data []byte) error {
	var doc struct {
		Name string
		Type string
		Info *struct {
			ReadOnly bool `bson:"readOnly"`
			UUID     *primitive.Binary
		}
		Options bson.Raw
		IDIndex *IndexSpecification `bson:"idIndex"`
	}
	if err := bson.Unmarshal(data, &doc); err != nil {
		return err
	}
	*cs = CollectionSpecification{Name: doc.Name, Type: doc.Type, Options: doc.Options, IDIndex: doc.IDIndex}
	if cs.Type == "" {
		cs.Type = "collection"
	}
	if doc.Info != nil {
		cs.ReadOnly, cs.UUID = doc.Info.ReadOnly, doc.Info.UUID
	}
	return nil
}

// ListCollections lists the collections that match a filter.
func (db *Database) ListCollections(ctx context.Context, filter any,
	opts ...*options.ListCollectionsOptions) (*Cursor, error) {
	return newCursor(db.inner.ListCollections(ctx, filter,
		with(opts, options.MergeListCollectionsOptions, convert.ListCollections)...))
}

// ListCollectionSpecifications describes the collections that match a filter.
func (db *Database) ListCollectionSpecifications(ctx context.Context, filter any,
	opts ...*options.ListCollectionsOptions) ([]*CollectionSpecification, error) {
	specs, err := db.inner.ListCollectionSpecifications(ctx, filter,
		with(opts, options.MergeListCollectionsOptions, convert.ListCollections)...)
	if err != nil {
		return nil, failure(err)
	}
	out := make([]*CollectionSpecification, len(specs))
	for i, s := range specs {
		out[i] = &CollectionSpecification{Name: s.Name, Type: s.Type, ReadOnly: s.ReadOnly, UUID: s.UUID,
			Options: bson.Raw(s.Options)}
		if s.IDIndex.Name != "" {
			out[i].IDIndex = indexOf(s.IDIndex)
		}
	}
	return out, nil
}

// ListCollectionNames lists the names of the collections that match a filter.
func (db *Database) ListCollectionNames(ctx context.Context, filter any,
	opts ...*options.ListCollectionsOptions) ([]string, error) {
	names, err := db.inner.ListCollectionNames(ctx, filter,
		with(opts, options.MergeListCollectionsOptions, convert.ListCollections)...)
	return names, failure(err)
}

// CreateCollection makes a collection.
func (db *Database) CreateCollection(ctx context.Context, name string, opts ...*options.CreateCollectionOptions) error {
	return failure(db.inner.CreateCollection(ctx, name,
		with(opts, options.MergeCreateCollectionOptions, convert.CreateCollection)...))
}

// CreateView makes a view.
func (db *Database) CreateView(ctx context.Context, viewName, viewOn string, pipeline any,
	opts ...*options.CreateViewOptions) error {
	return failure(db.inner.CreateView(ctx, viewName, viewOn, pipelineOf(pipeline),
		with(opts, options.MergeCreateViewOptions, convert.CreateView)...))
}

// A BSONAppender encodes documents.
//
// Deprecated: use a registry.
type BSONAppender interface {
	AppendBSON([]byte, any) ([]byte, error)
}

// A BSONAppenderFunc is a function that is a BSONAppender.
//
// Deprecated: use a registry.
type BSONAppenderFunc func([]byte, any) ([]byte, error)

// AppendBSON calls baf.
func (baf BSONAppenderFunc) AppendBSON(dst []byte, val any) ([]byte, error) { return baf(dst, val) }
