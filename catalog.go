package allium

import (
	"context"
	"errors"
	"fmt"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/errcode"
	"allium/internal/option"
	"allium/mongoerr"
)

// ListDatabasesOptions are the options of ListDatabases and ListDatabaseNames.
type ListDatabasesOptions struct {
	// Filter selects databases by the fields of DatabaseInfo. Nil: all.
	Filter any
	// AuthorizedDatabases leaves out databases that the user may not access.
	AuthorizedDatabases bool
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// DatabaseInfo describes a database in the result of ListDatabases.
type DatabaseInfo struct {
	Name       string `bson:"name"`
	SizeOnDisk int64  `bson:"sizeOnDisk,truncate"` // in bytes
	Empty      bool   `bson:"empty"`
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
	o, err := option.One(opts)
	if err != nil {
		return nil, s.failed("listDatabases", "", err)
	}
	op, err := s.op(ctx, &command.ListDatabases{Filter: o.Filter, NameOnly: nameOnly, AuthorizedDatabases: o.AuthorizedDatabases, Comment: o.Comment}, o.Timeout)
	if err != nil {
		return nil, op.Named(err)
	}
	res, err := s.run(ctx, &op)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	list, ok := res.Reply.Lookup("databases").Array()
	if !ok {
		return nil, op.Named(errors.New("server's reply has no array of databases"))
	}
	infos := []DatabaseInfo{}
	for v := range list.Values() {
		var info DatabaseInfo
		if err := v.Unmarshal(&info); err != nil {
			return nil, op.Named(fmt.Errorf("decode: %w", err))
		}
		infos = append(infos, info)
	}
	return infos, nil
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

// CollectionInfo describes a collection in the result of ListCollections.
type CollectionInfo struct {
	Name    string   `bson:"name"`
	Type    string   `bson:"type"` // "collection", "view" or "timeseries"
	Options bson.Raw `bson:"options"`
	Info    bson.Raw `bson:"info"` // readOnly and uuid
	IDIndex bson.Raw `bson:"idIndex"`
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
	type named struct {
		Name string `bson:"name"`
	}
	cur := &Cursor[named]{}
	if err := db.listCollections(ctx, true, &cur.cur, opts); err != nil {
		return nil, err
	}
	all, err := cur.All(ctx)
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, err
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
	o, err := option.One(opts)
	if err == nil {
		err = db.err
	}
	if err != nil {
		return db.failed("listCollections", "", err)
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
		return db.failed("listCollections", "", err)
	}
	res, err := db.run(ctx, &op)
	if err != nil {
		return err
	}
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
// description.
type IndexInfo struct {
	Name        string
	Keys        bson.D
	Unique      bool
	Sparse      bool
	Hidden      bool
	ExpireAfter *time.Duration
	Raw         bson.Raw
}

// UnmarshalBSON decodes one index of the reply to listIndexes.
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

// ListIndexes lists the indexes of the collection. A collection that does not exist has none.
func (c *Collection[T]) ListIndexes(ctx context.Context, opts ...ListIndexesOptions) (*Cursor[IndexInfo], error) {
	o, err := option.One(opts)
	if err == nil {
		err = c.err
	}
	if err != nil {
		return nil, c.failed("listIndexes", c.name, err)
	}
	cur := &Cursor[IndexInfo]{}
	op, err := c.op(ctx, &command.ListIndexes{Collection: c.name, BatchSize: o.BatchSize, Comment: o.Comment, RawData: o.RawData}, o.Timeout)
	if err == nil {
		err = cur.cur.Prepare(&op, cursor.Reading{TimeoutMode: cursor.TimeoutMode(o.TimeoutMode), BatchSize: or(o.BatchSize, 0), Comment: o.Comment})
	}
	if err != nil {
		return nil, c.failed("listIndexes", c.name, err)
	}
	res, err := c.run(ctx, &op)
	if mongoerr.HasCode(err, errcode.NamespaceNotFound) {
		return cur, nil
	}
	if err != nil {
		return nil, err
	}
	return cur, cur.cur.Open(ctx, c.client.cursors, &op, res)
}

// ListIndexNames lists the names of the indexes of the collection.
func (c *Collection[T]) ListIndexNames(ctx context.Context, opts ...ListIndexesOptions) ([]string, error) {
	cur, err := c.ListIndexes(ctx, opts...)
	if err != nil {
		return nil, err
	}
	all, err := cur.All(ctx)
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, err
}
