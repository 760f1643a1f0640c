package allium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/exec"
)

// ListDatabasesOptions are the options of ListDatabases and ListDatabaseNames.
type ListDatabasesOptions struct {
	// Filter says which databases are listed, by the fields of DatabaseInfo. Nil: all.
	Filter any
	// AuthorizedDatabases leaves out what the user may not see.
	AuthorizedDatabases *bool
	// Comment is any value that helps to find the operation in logs and profiles.
	Comment any
	// Timeout bounds the operation; a pointer to 0 means no bound.
	Timeout *time.Duration
}

// DatabaseInfo is what ListDatabases says about a database.
type DatabaseInfo struct {
	Name       string `bson:"name"`
	SizeOnDisk int64  `bson:"sizeOnDisk,truncate"` // in bytes
	Empty      bool   `bson:"empty"`
}

// ListDatabases lists the databases of the deployment (specification: Enumerating Databases).
func (c *Client) ListDatabases(ctx context.Context, opts ...ListDatabasesOptions) ([]DatabaseInfo, error) {
	return c.listDatabases(ctx, false, opts)
}

// ListDatabaseNames lists the names of the databases of the deployment.
func (c *Client) ListDatabaseNames(ctx context.Context, opts ...ListDatabasesOptions) ([]string, error) {
	infos, err := c.listDatabases(ctx, true, opts)
	names := make([]string, len(infos))
	for i := range infos {
		names[i] = infos[i].Name
	}
	return names, err
}

func (c *Client) listDatabases(ctx context.Context, nameOnly bool, opts []ListDatabasesOptions) ([]DatabaseInfo, error) {
	o, err := option(opts)
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	s := c.scope()
	s.db = "admin"
	op := exec.Op{Command: &command.ListDatabases{Filter: o.Filter, NameOnly: nameOnly, AuthorizedDatabases: o.AuthorizedDatabases, Comment: o.Comment}}
	if err := s.op(ctx, &op, o.Timeout); err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	op.Kind, op.Retryable = exec.Read, true // on the primary, whatever the client's read preference is
	res, err := s.run(ctx, &op)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	list, ok := res.Reply.Lookup("databases").Array()
	if !ok {
		return nil, errors.New("list databases: server's reply has no array of databases")
	}
	infos := []DatabaseInfo{}
	for v := range list.Values() {
		var info DatabaseInfo
		if err := v.Unmarshal(&info); err != nil {
			return nil, fmt.Errorf("list databases: decode: %w", err)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// ListCollectionsOptions are the options of ListCollections and ListCollectionNames.
type ListCollectionsOptions struct {
	// Filter says which collections are listed, by the fields of CollectionInfo. Nil: all.
	Filter any
	// AuthorizedCollections leaves out what the user may not see.
	AuthorizedCollections *bool
	// BatchSize is how many collections each reply holds at most.
	BatchSize int32
	// Comment is any value that helps to find the operation in logs and profiles.
	Comment any
	// RawData shows time series collections as they are stored (server 8.2 and later).
	RawData *bool
	// Timeout bounds the operation; a pointer to 0 means no bound.
	Timeout *time.Duration
}

// CollectionInfo is what ListCollections says about a collection.
type CollectionInfo struct {
	Name    string   `bson:"name"`
	Type    string   `bson:"type"` // "collection", "view" or "timeseries"
	Options bson.Raw `bson:"options"`
	Info    bson.Raw `bson:"info"` // readOnly and uuid
	IDIndex bson.Raw `bson:"idIndex"`
}

// ListCollections lists the collections and views of the database (specification: Enumerating Collections).
func (db *Database) ListCollections(ctx context.Context, opts ...ListCollectionsOptions) (*Cursor[CollectionInfo], error) {
	cur := &Cursor[CollectionInfo]{}
	if err := db.listCollections(ctx, false, &cur.cursor, opts); err != nil {
		return nil, err
	}
	return cur, nil
}

// ListCollectionNames lists the names of the collections and views of the database.
func (db *Database) ListCollectionNames(ctx context.Context, opts ...ListCollectionsOptions) ([]string, error) {
	type named struct {
		Name string `bson:"name"`
	}
	cur := &Cursor[named]{}
	if err := db.listCollections(ctx, true, &cur.cursor, opts); err != nil {
		return nil, err
	}
	all, err := cur.All(ctx)
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, err
}

func (db *Database) listCollections(ctx context.Context, nameOnly bool, cur *cursor, opts []ListCollectionsOptions) error {
	o, err := option(opts)
	if err == nil {
		err = db.err
	}
	if err != nil {
		return fmt.Errorf("list collections: %w", err)
	}
	op := exec.Op{KeepSession: true, KeepConn: true, Command: &command.ListCollections{
		Filter: o.Filter, NameOnly: nameOnly, AuthorizedCollections: o.AuthorizedCollections, BatchSize: o.BatchSize, Comment: o.Comment, RawData: o.RawData,
	}}
	if err := db.op(ctx, &op, o.Timeout); err != nil {
		return fmt.Errorf("list collections: %w", err)
	}
	op.Kind, op.Retryable, op.NoMaxTime = exec.Read, true, op.Deadline.IsZero()
	cur.batchSize, cur.comment = o.BatchSize, o.Comment
	res, err := db.run(ctx, &op)
	if err != nil {
		return err
	}
	return cur.open(db.client, &op, res)
}

// ListIndexesOptions are the options of ListIndexes.
type ListIndexesOptions struct {
	// BatchSize is how many indexes each reply holds at most.
	BatchSize int32
	// Comment is any value that helps to find the operation in logs and profiles.
	Comment any
	// RawData is for the buckets of a time series collection (server 8.2 and later).
	RawData *bool
	// Timeout bounds the operation; a pointer to 0 means no bound.
	Timeout *time.Duration
}

// IndexInfo is what ListIndexes says about an index. Raw holds all that the server told.
type IndexInfo struct {
	Name        string
	Keys        bson.D
	Unique      bool
	Sparse      bool
	Hidden      bool
	ExpireAfter *time.Duration
	Raw         bson.Raw
}

// UnmarshalBSON reads what listIndexes answers for one index.
func (i *IndexInfo) UnmarshalBSON(data []byte) error {
	var in struct {
		Name        string `bson:"name"`
		Key         bson.D `bson:"key"`
		Unique      bool   `bson:"unique"`
		Sparse      bool   `bson:"sparse"`
		Hidden      bool   `bson:"hidden"`
		ExpireAfter *int64 `bson:"expireAfterSeconds,truncate"`
	}
	if err := bson.Unmarshal(data, &in); err != nil {
		return err
	}
	*i = IndexInfo{Name: in.Name, Keys: in.Key, Unique: in.Unique, Sparse: in.Sparse, Hidden: in.Hidden, Raw: append(bson.Raw(nil), data...)}
	if in.ExpireAfter != nil {
		i.ExpireAfter = new(time.Duration(*in.ExpireAfter) * time.Second)
	}
	return nil
}

// ListIndexes lists the indexes of the collection (specification: Index Management). A collection that does not exist has
// none.
func (c *Collection[T]) ListIndexes(ctx context.Context, opts ...ListIndexesOptions) (*Cursor[IndexInfo], error) {
	o, err := option(opts)
	if err == nil {
		err = c.err
	}
	if err != nil {
		return nil, fmt.Errorf("list indexes: %w", err)
	}
	op := exec.Op{KeepSession: true, KeepConn: true, Command: &command.ListIndexes{Collection: c.name, BatchSize: o.BatchSize, Comment: o.Comment, RawData: o.RawData}}
	if err := c.op(ctx, &op, o.Timeout); err != nil {
		return nil, fmt.Errorf("list indexes: %w", err)
	}
	op.Kind, op.Retryable, op.NoMaxTime = exec.Read, true, op.Deadline.IsZero()
	cur := &Cursor[IndexInfo]{}
	cur.batchSize, cur.comment = o.BatchSize, o.Comment
	res, err := c.run(ctx, &op)
	if isNamespaceNotFound(err) {
		cur.closed = true
		return cur, nil
	}
	if err != nil {
		return nil, err
	}
	return cur, cur.open(c.client, &op, res)
}

func isNamespaceNotFound(err error) bool {
	var e *ServerError
	return errors.As(err, &e) && e.Code == 26
}

// DropIndexOptions are the options of DropIndex and DropIndexes.
type DropIndexOptions struct {
	// Comment is any value that helps to find the operation in logs and profiles.
	Comment any
	// RawData is for the buckets of a time series collection (server 8.2 and later).
	RawData *bool
	// Timeout bounds the operation; a pointer to 0 means no bound.
	Timeout *time.Duration
}

// DropIndex deletes the index with this name, or with these keys if index is a document.
func (c *Collection[T]) DropIndex(ctx context.Context, index any, opts ...DropIndexOptions) error {
	if index == "*" {
		return errors.New(`drop index: "*" drops all indexes: use DropIndexes`)
	}
	return c.dropIndexes(ctx, index, opts)
}

// DropIndexes deletes all indexes but that on _id.
func (c *Collection[T]) DropIndexes(ctx context.Context, opts ...DropIndexOptions) error {
	return c.dropIndexes(ctx, "*", opts)
}

func (c *Collection[T]) dropIndexes(ctx context.Context, index any, opts []DropIndexOptions) error {
	o, err := option(opts)
	if err == nil {
		err = c.err
	}
	if err != nil {
		return fmt.Errorf("drop index: %w", err)
	}
	return c.Database().admin(ctx, "drop index", &command.DropIndexes{Collection: c.name, Index: index, Comment: o.Comment, RawData: o.RawData}, o.Timeout)
}

// CreateCollectionOptions are the options of CreateCollection. The zero value of a field leaves it to the server.
type CreateCollectionOptions struct {
	// Capped keeps the collection at SizeInBytes and, if that is set, MaxDocuments, by deleting the oldest documents.
	Capped       bool
	SizeInBytes  int64
	MaxDocuments int64
	// Validator is a filter that documents must match; ValidationLevel is "off", "strict" or "moderate", ValidationAction "error"
	// or "warn".
	Validator        any
	ValidationLevel  string
	ValidationAction string
	// Collation is the collection's default.
	Collation *Collation
	// ViewOn makes a view of this collection through Pipeline.
	ViewOn   string
	Pipeline any
	// TimeSeries makes a time series collection: a document with timeField, metaField, granularity and so on.
	TimeSeries any
	// ExpireAfter makes the server delete documents of a time series or clustered collection when they are this old.
	ExpireAfter *time.Duration
	// ClusteredIndex makes a clustered collection: a document with key, unique and name.
	ClusteredIndex any
	// PreAndPostImages makes the server keep what change streams need for full documents before a change.
	PreAndPostImages *bool
	// StorageEngine and IndexOptionDefaults hold options of the storage engine.
	StorageEngine       any
	IndexOptionDefaults any
	// Comment is any value that helps to find the operation in logs and profiles.
	Comment any
	// Timeout bounds the operation; a pointer to 0 means no bound.
	Timeout *time.Duration
}

// CreateCollection creates a collection or a view. It is only needed for options: the first insert creates a collection
// that does not exist.
func (db *Database) CreateCollection(ctx context.Context, name string, opts ...CreateCollectionOptions) error {
	o, err := option(opts)
	if err == nil {
		err = checkName("collection", name)
	}
	if err != nil {
		return fmt.Errorf("create collection: %w", err)
	}
	return db.admin(ctx, "create collection", &command.Named{Command: "create", Target: name, Fields: o.fields()}, o.Timeout)
}

// fields returns the fields of the create command, nil if there are none.
func (o *CreateCollectionOptions) fields() any {
	var d bson.D
	add := func(set bool, key string, v any) {
		if set {
			d = append(d, bson.E{Key: key, Value: v})
		}
	}
	add(o.Capped, "capped", true)
	add(o.SizeInBytes != 0, "size", o.SizeInBytes)
	add(o.MaxDocuments != 0, "max", o.MaxDocuments)
	add(o.Validator != nil, "validator", o.Validator)
	add(o.ValidationLevel != "", "validationLevel", o.ValidationLevel)
	add(o.ValidationAction != "", "validationAction", o.ValidationAction)
	if o.Collation != nil {
		add(true, "collation", o.Collation.Document())
	}
	add(o.ViewOn != "", "viewOn", o.ViewOn)
	add(o.Pipeline != nil, "pipeline", o.Pipeline)
	add(o.TimeSeries != nil, "timeseries", o.TimeSeries)
	if o.ExpireAfter != nil {
		add(true, "expireAfterSeconds", int64(o.ExpireAfter.Seconds()))
	}
	add(o.ClusteredIndex != nil, "clusteredIndex", o.ClusteredIndex)
	if o.PreAndPostImages != nil {
		add(true, "changeStreamPreAndPostImages", bson.D{{Key: "enabled", Value: *o.PreAndPostImages}})
	}
	add(o.StorageEngine != nil, "storageEngine", o.StorageEngine)
	add(o.IndexOptionDefaults != nil, "indexOptionDefaults", o.IndexOptionDefaults)
	add(o.Comment != nil, "comment", o.Comment)
	if d == nil {
		return nil
	}
	return d
}
