package allium

import (
	"context"
	"errors"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/errcode"
	"allium/internal/exec"
	"allium/internal/option"
	"allium/mongoerr"
)

// ListDatabasesOptions are the options of ListDatabases and ListDatabaseNames.
type ListDatabasesOptions struct {
	// Filter selects databases by the fields of DatabaseInfo. Nil: all.
	Filter any
	// AuthorizedDatabases says which databases are meant: with true those that the user may access,
	// with false all, which is an error for a user who may not list all. Nil: all if the user may
	// list all, or else those that the user may access.
	AuthorizedDatabases *bool
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// DatabaseInfo describes a database in the result of ListDatabases. A field that the server has
// with another type than it should have is zero.
type DatabaseInfo struct {
	Name       string `bson:"name"`
	SizeOnDisk int64  `bson:"sizeOnDisk,truncate,lenient"` // in bytes
	Empty      bool   `bson:"empty,lenient"`
}

// ListDatabases lists the databases of the deployment.
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

// Databases lists the databases of the deployment, as Client.Database returns them.
func (c *Client) Databases(ctx context.Context, opts ...ListDatabasesOptions) ([]*Database, error) {
	names, err := c.ListDatabaseNames(ctx, opts...)
	dbs := make([]*Database, len(names))
	for i, name := range names {
		dbs[i] = c.Database(name)
	}
	return dbs, err
}

func (c *Client) listDatabases(ctx context.Context, nameOnly bool, opts []ListDatabasesOptions) ([]DatabaseInfo, error) {
	s := c.scope()
	s.db = "admin"
	o := option.Merge(opts)
	op, err := s.op(ctx, &command.ListDatabases{Filter: o.Filter, NameOnly: nameOnly, AuthorizedDatabases: o.AuthorizedDatabases, Comment: o.Comment}, o.Timeout)
	if err != nil {
		return nil, op.Named(err)
	}
	var infos []DatabaseInfo
	op.Read = func(op *exec.Op, res exec.Result) error {
		list, ok := res.Reply.Lookup("databases").Array()
		if !ok {
			return op.Named(errors.New("server's reply has no array of databases"))
		}
		infos = []DatabaseInfo{}
		n := int64(0)
		var odd mongoerr.DecodeErrors
		for v := range list.Values() {
			infos = append(infos, DatabaseInfo{})
			if err := v.Unmarshal(&infos[len(infos)-1]); err != nil {
				infos = infos[:len(infos)-1]
				odd = append(odd, undecoded(op, n, documentIn(v), err))
			}
			n++
		}
		if odd == nil {
			return nil
		}
		return odd
	}
	res, err := s.run(ctx, &op)
	res.Release()
	return infos, err
}

// ListCollectionsOptions are the options of ListCollections and ListCollectionNames.
type ListCollectionsOptions struct {
	// Filter selects collections by the fields of CollectionInfo. Nil: all.
	Filter any
	// AuthorizedCollections leaves out collections that the user may not access.
	AuthorizedCollections bool
	// BatchSize is the maximum number of collections in each reply.
	BatchSize *int32
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData shows time series collections as they are stored (server 8.2 and later).
	// It is for the server's own tools, and may change or go at any time.
	RawData bool
	// TimeoutMode says what the timeout bounds.
	TimeoutMode TimeoutMode
	// Timeout bounds the operation and the life of its cursor, unless TimeoutMode says otherwise; a
	// pointer to 0 means no limit.
	Timeout *time.Duration
}

// CollectionInfo describes a collection in the result of ListCollections. A field that the server
// has with another type than it should have is zero.
type CollectionInfo struct {
	Name    string   `bson:"name"`
	Type    string   `bson:"type,lenient"` // "collection", "view" or "timeseries"
	Options bson.Raw `bson:"options,lenient"`
	Info    bson.Raw `bson:"info,lenient"` // readOnly and uuid
	IDIndex bson.Raw `bson:"idIndex,lenient"`
}

// ListCollections lists the collections and views of the database.
func (db *Database) ListCollections(ctx context.Context, opts ...ListCollectionsOptions) (*Cursor[CollectionInfo], error) {
	cur := &Cursor[CollectionInfo]{}
	if err := db.listCollections(ctx, false, &cur.cur, opts); err != nil {
		return nil, err
	}
	return cur, nil
}

// ListCollectionNames lists the names of the collections and views of the database.
func (db *Database) ListCollectionNames(ctx context.Context, opts ...ListCollectionsOptions) ([]string, error) {
	cur := &Cursor[named]{}
	if err := db.listCollections(ctx, true, &cur.cur, opts); err != nil {
		return nil, err
	}
	return names(cur.All(ctx))
}

// Collections lists the collections and views of the database, as Database.Collection returns them.
func (db *Database) Collections(ctx context.Context, opts ...ListCollectionsOptions) ([]*Collection[bson.D], error) {
	names, err := db.ListCollectionNames(ctx, opts...)
	colls := make([]*Collection[bson.D], len(names))
	for i, name := range names {
		colls[i] = db.Collection(name)
	}
	return colls, err
}

func (db *Database) listCollections(ctx context.Context, nameOnly bool, cur *cursor.Cursor, opts []ListCollectionsOptions) error {
	o, err := option.Merge(opts), db.err
	if err != nil {
		return db.failed(ctx, "listCollections", "", err)
	}
	op, err := db.op(ctx, &command.ListCollections{
		Filter: o.Filter, NameOnly: nameOnly, AuthorizedCollections: o.AuthorizedCollections, BatchSize: o.BatchSize, Comment: o.Comment, RawData: o.RawData,
	}, o.Timeout)
	if err == nil {
		// The server itself gives the comment to the getMores, which must not carry it
		// (specification: Enumerating Collections).
		err = cur.Prepare(&op, cursor.Reading{TimeoutMode: cursor.TimeoutMode(o.TimeoutMode), BatchSize: or(o.BatchSize, 0)})
	}
	if err != nil {
		return db.failed(ctx, "listCollections", "", err)
	}
	res, err := db.run(ctx, &op)
	if err != nil {
		return err
	}
	op.BSON = nil // the program's options are for its own types
	return cur.Open(ctx, db.client.cursors, &op, res)
}

// ListIndexesOptions are the options of ListIndexes.
type ListIndexesOptions struct {
	// BatchSize is the maximum number of indexes in each reply.
	BatchSize *int32
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the indexes of the buckets of a time series collection (server 8.2 and
	// later). It is for the server's own tools, and may change or go at any time.
	RawData bool
	// TimeoutMode says what the timeout bounds.
	TimeoutMode TimeoutMode
	// Timeout bounds the operation and the life of its cursor, unless TimeoutMode says otherwise; a
	// pointer to 0 means no limit.
	Timeout *time.Duration
}

// IndexInfo describes an index in the result of ListIndexes. Raw holds the server's whole
// description. A field with another type than it should have is zero, and in Raw.
type IndexInfo struct {
	Name   string
	Keys   bson.D
	Unique bool
	Sparse bool
	Hidden bool
	// ExpireAfter is when documents expire, the longest Duration if it is longer. It is nil if they
	// do not, and if the server has something there that is no number, such as a text or NaN: see
	// Raw.
	ExpireAfter *time.Duration
	Raw         bson.Raw
}

// ListIndexes lists the indexes of the collection. A collection that does not exist has none.
func (c *Collection[T]) ListIndexes(ctx context.Context, opts ...ListIndexesOptions) (*Cursor[IndexInfo], error) {
	cur := &Cursor[IndexInfo]{}
	if err := c.listIndexes(ctx, &cur.cur, opts); err != nil {
		return nil, err
	}
	return cur, nil
}

// ListIndexNames lists the names of the indexes of the collection.
func (c *Collection[T]) ListIndexNames(ctx context.Context, opts ...ListIndexesOptions) ([]string, error) {
	cur := &Cursor[named]{}
	if err := c.listIndexes(ctx, &cur.cur, opts); err != nil {
		return nil, err
	}
	return names(cur.All(ctx))
}

func (c *Collection[T]) listIndexes(ctx context.Context, cur *cursor.Cursor, opts []ListIndexesOptions) error {
	o, err := option.Merge(opts), c.err
	if err != nil {
		return c.failed(ctx, "listIndexes", c.name, err)
	}
	op, err := c.op(ctx, &command.ListIndexes{Collection: c.name, BatchSize: o.BatchSize, Comment: o.Comment, RawData: o.RawData}, o.Timeout)
	if err == nil {
		err = cur.Prepare(&op, cursor.Reading{TimeoutMode: cursor.TimeoutMode(o.TimeoutMode), BatchSize: or(o.BatchSize, 0), Comment: o.Comment})
	}
	if err != nil {
		return c.failed(ctx, "listIndexes", c.name, err)
	}
	res, err := c.run(ctx, &op)
	if mongoerr.HasCode(err, errcode.NamespaceNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	op.BSON = nil // the program's options are for its own types
	return cur.Open(ctx, c.client.cursors, &op, res)
}
