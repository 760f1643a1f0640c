package allium

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/cursor"
	"allium/internal/errcode"
	"allium/internal/exec"
	"allium/internal/option"
	"allium/internal/wire"
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

func (c *Client) listDatabases(ctx context.Context, nameOnly bool,
	opts []ListDatabasesOptions) ([]DatabaseInfo, error) {
	s := c.inherited()
	s.db = "admin"
	o := option.Merge(opts)
	op, err := s.op(ctx, &command.ListDatabases{Filter: o.Filter, NameOnly: nameOnly,
		AuthorizedDatabases: o.AuthorizedDatabases, Comment: o.Comment}, o.Timeout)
	if err != nil {
		return nil, op.Named(err)
	}
	var infos []DatabaseInfo
	op.Read = func(op *exec.Op, res exec.Result) error {
		v := res.Reply.Lookup("databases")
		list, ok := v.Array()
		if !ok {
			return op.Named(&mongoerr.ReplyError{Field: "databases", Type: v.Type, Want: "an array"})
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
func (db *Database) ListCollections(ctx context.Context,
	opts ...ListCollectionsOptions) (*Cursor[CollectionInfo], error) {
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
func (db *Database) Collections(ctx context.Context, opts ...ListCollectionsOptions) ([]*UntypedCollection, error) {
	names, err := db.ListCollectionNames(ctx, opts...)
	colls := make([]*UntypedCollection, len(names))
	for i, name := range names {
		colls[i] = db.Collection(name)
	}
	return colls, err
}

func (db *Database) listCollections(ctx context.Context, nameOnly bool, cur *cursor.Cursor,
	opts []ListCollectionsOptions) error {
	o, err := option.Merge(opts), db.err
	if err != nil {
		return db.failed(ctx, "listCollections", "", err)
	}
	op, err := db.op(ctx, &command.ListCollections{
		Filter: o.Filter, NameOnly: nameOnly, AuthorizedCollections: o.AuthorizedCollections, BatchSize: o.BatchSize,
		Comment: o.Comment, RawData: o.RawData,
	}, o.Timeout)
	if err == nil {
		// The server itself gives the comment to the getMores, which must not carry it
		// (specification: Enumerating Collections).
		err = cur.Prepare(&op,
			cursor.Reading{TimeoutMode: cursor.TimeoutMode(o.TimeoutMode), BatchSize: or(o.BatchSize, 0)})
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
	op, err := c.op(ctx, &command.ListIndexes{Collection: c.name, BatchSize: o.BatchSize, Comment: o.Comment,
		RawData: o.RawData}, o.Timeout)
	if err == nil {
		err = cur.Prepare(&op, cursor.Reading{TimeoutMode: cursor.TimeoutMode(o.TimeoutMode),
			BatchSize: or(o.BatchSize, 0), Comment: o.Comment})
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

// Entries of the catalog are what some program, driver or server version once stored, and some of
// it would be refused today, such as an expireAfterSeconds that is NaN. One odd field must not hide
// the entry, nor those behind it: what does not have the type that it should is left at its zero
// value. Only the name must be right. The bytes given to UnmarshalBSON are kept.

var errNoName = errors.New("entry of the catalog has no name")

// catalogEntry calls field with each field of an entry but its name, which it returns.
func catalogEntry(data bson.Raw, field func(key string, v bson.RawValue)) (name string, err error) {
	if err := wire.CheckDocument(data, 1); err != nil {
		return "", err
	}
	named := false
	for key, v := range data.All() {
		if key == "name" {
			name, named = v.StringValue()
		} else if field != nil {
			field(key, v)
		}
	}
	if !named {
		return "", errNoName
	}
	return name, nil
}

// switched returns a flag of the catalog. Servers take numbers for flags, and keep them.
func switched(v bson.RawValue) bool {
	if _, ok := v.Boolean(); ok || v.IsNumber() {
		return v.AsBool()
	}
	return false
}

// whole returns a number without its fraction, and the nearest there is if it is too large. NaN is
// no number.
func whole(v bson.RawValue) (int64, bool) {
	if n, ok := v.AsInt64(); ok {
		return n, true
	}
	f, ok := v.Double()
	if d, decimal := v.Decimal128(); decimal {
		f, ok = d.Float64(), true
	}
	switch {
	case !ok || math.IsNaN(f):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// documentIn returns an embedded document, nil if v is none.
func documentIn(v bson.RawValue) bson.Raw {
	d, _ := v.Document()
	return d
}

// text returns a string, "" if v is none.
func text(v bson.RawValue) string {
	s, _ := v.StringValue()
	return s
}

// UnmarshalBSON decodes one index of the reply to listIndexes. A field with another type than it
// should have stays zero.
func (i *IndexInfo) UnmarshalBSON(data []byte) (err error) {
	*i = IndexInfo{Raw: data}
	i.Name, err = catalogEntry(i.Raw, func(key string, v bson.RawValue) {
		switch key {
		case "key":
			if d, ok := v.Document(); ok {
				lenient := bson.Options{AllowInvalidUTF8: true}
				if lenient.Unmarshal(d, &i.Keys) != nil {
					i.Keys = nil
				}
			}
		case "unique":
			i.Unique = switched(v)
		case "sparse":
			i.Sparse = switched(v)
		case "hidden":
			i.Hidden = switched(v)
		case "expireAfterSeconds":
			i.ExpireAfter = expiry(v)
		}
	})
	return err
}

// expiry returns an age in seconds, the nearest there is if a Duration cannot hold it; nil if it is
// no number.
func expiry(v bson.RawValue) *time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	n, ok := whole(v)
	switch {
	case !ok:
		return nil
	case n > most:
		return new(time.Duration(math.MaxInt64))
	case n < -most:
		return new(time.Duration(math.MinInt64))
	}
	return new(time.Duration(n) * time.Second)
}

// UnmarshalBSON decodes one document of the result of $listSearchIndexes. A field with another type
// than it should have stays zero.
func (i *SearchIndexInfo) UnmarshalBSON(data []byte) (err error) {
	*i = SearchIndexInfo{Raw: data}
	i.Name, err = catalogEntry(i.Raw, func(key string, v bson.RawValue) {
		switch key {
		case "id":
			i.ID = text(v)
		case "type":
			i.Type = text(v)
		case "status":
			i.Status = text(v)
		case "queryable":
			i.Queryable = switched(v)
		case "latestDefinition":
			i.LatestDefinition = documentIn(v)
		}
	})
	return err
}

// named is an entry of which only the name is of interest.
type named struct {
	Name string `bson:"name"`
}

// names reads a cursor over entries of the catalog to its end.
func names(all []named, err error) ([]string, error) {
	list := make([]string, len(all))
	for i := range all {
		list[i] = all[i].Name
	}
	return list, err
}

// checkExpiry checks an age that is sent in whole seconds. The server's own message about one that
// it refuses does not name the option, and older servers take some that they cannot mean.
func checkExpiry(d *time.Duration, most int64) error {
	if d == nil || *d >= 0 && int64(*d/time.Second) <= most {
		return nil
	}
	if most == math.MaxInt64 {
		return fmt.Errorf("option ExpireAfter is %v, want 0 or more", *d)
	}
	return fmt.Errorf("option ExpireAfter is %v, want 0 or more and at most %d seconds, which are 68 years", *d, most)
}

// adminFields collects the fields of a command of the catalog, as far as they are set.
type adminFields bson.D

func (f *adminFields) add(set bool, key string, v any) {
	if set {
		*f = append(*f, bson.E{Key: key, Value: v})
	}
}

func (f *adminFields) value(key string, v any)  { f.add(v != nil, key, v) }
func (f *adminFields) str(key, v string)        { f.add(v != "", key, v) }
func (f *adminFields) int(key string, v int64)  { f.add(v != 0, key, v) }
func (f *adminFields) flag(key string, v *bool) { f.add(v != nil, key, v) }

// seconds adds a duration in whole seconds.
func (f *adminFields) seconds(key string, d *time.Duration) {
	if d != nil {
		f.add(true, key, int64(*d/time.Second))
	}
}

// images adds changeStreamPreAndPostImages.
func (f *adminFields) images(on *bool) {
	if on != nil {
		f.add(true, "changeStreamPreAndPostImages", bson.D{{Key: "enabled", Value: *on}})
	}
}

// document returns the fields as a Named command takes them: nil if there are none.
func (f adminFields) document() any {
	if f == nil {
		return nil
	}
	return bson.D(f)
}

// ValidationLevel says which documents a collection's validator applies to: "off" for none,
// "strict" for all that are inserted or updated, "moderate" for all but updates of documents that
// did not match before. The empty ValidationLevel leaves it to the server.
type ValidationLevel string

// ValidationAction says what happens to documents that do not match a collection's validator:
// "error" rejects the write, "warn" logs it, "errorAndLog" does both (server 8.1 and later). The
// empty ValidationAction leaves it to the server.
type ValidationAction string

// CreateCollectionOptions are the options of CreateCollection. The zero value of a field leaves it
// to the server.
type CreateCollectionOptions struct {
	// Capped bounds the collection to SizeInBytes and, if set, MaxDocuments. The server deletes the
	// oldest documents.
	Capped       bool
	SizeInBytes  int64
	MaxDocuments int64
	// Validator is a filter that documents must match. ValidationLevel says which documents it
	// applies to, ValidationAction what happens to documents that do not match.
	Validator        any
	ValidationLevel  ValidationLevel
	ValidationAction ValidationAction
	// Collation is the collection's default.
	Collation *Collation
	// ViewOn makes a view of this collection through Pipeline.
	ViewOn   string
	Pipeline any
	// TimeSeries makes a time series collection: a document with timeField, metaField, granularity
	// and so on.
	TimeSeries any
	// ExpireAfter makes the server delete documents of a time series or clustered collection when
	// they are this old.
	ExpireAfter *time.Duration
	// ClusteredIndex makes a clustered collection: a document with key, unique and name.
	ClusteredIndex any
	// PreAndPostImages makes the server keep document images for change streams.
	PreAndPostImages *bool
	// IDIndex describes the index on _id. It may have its own collation.
	IDIndex any
	// StorageEngine and IndexOptionDefaults hold options of the storage engine.
	StorageEngine       any
	IndexOptionDefaults any
	// EncryptedFields creates a collection for Queryable Encryption, with its state collections and
	// the index that it needs. Nil: the fields that the client's Encryption configures for the
	// collection, if any.
	EncryptedFields any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// CreateCollection creates a collection or a view. It is needed only to set options: the first
// insert creates a collection that does not exist.
func (db *Database) CreateCollection(ctx context.Context, name string, opts ...CreateCollectionOptions) error {
	o, err := option.Merge(opts), checkName("collection", name)
	if err == nil {
		err = checkExpiry(o.ExpireAfter, math.MaxInt64)
	}
	if err != nil {
		return db.failed(ctx, "create", name, err)
	}
	s := &steps{db: db, command: "create", name: name}
	fields, err := s.encryptedFields(ctx, o.EncryptedFields)
	switch {
	case err != nil:
		return err
	case fields != nil:
		return s.createEncrypted(ctx, fields, &o)
	}
	return db.admin(ctx, &command.Named{Command: "create", Target: name, Fields: o.fields()}, o.Timeout)
}

// fields returns the fields of the create command, nil if there are none.
func (o *CreateCollectionOptions) fields() any {
	var f adminFields
	f.add(o.Capped, "capped", true)
	f.int("size", o.SizeInBytes)
	f.int("max", o.MaxDocuments)
	f.value("validator", o.Validator)
	f.str("validationLevel", string(o.ValidationLevel))
	f.str("validationAction", string(o.ValidationAction))
	if o.Collation != nil {
		f.value("collation", o.Collation.raw())
	}
	f.str("viewOn", o.ViewOn)
	f.value("pipeline", o.Pipeline)
	f.value("timeseries", o.TimeSeries)
	f.seconds("expireAfterSeconds", o.ExpireAfter)
	f.value("clusteredIndex", o.ClusteredIndex)
	f.images(o.PreAndPostImages)
	f.value("idIndex", o.IDIndex)
	f.value("storageEngine", o.StorageEngine)
	f.value("indexOptionDefaults", o.IndexOptionDefaults)
	f.value("encryptedFields", o.EncryptedFields)
	f.value("comment", o.Comment)
	return f.document()
}

// ModifyCollectionOptions say what ModifyCollection changes. Zero fields change nothing.
type ModifyCollectionOptions struct {
	// Index changes an index.
	Index *IndexChange
	// Validator, ValidationLevel and ValidationAction are as in CreateCollectionOptions.
	Validator        any
	ValidationLevel  ValidationLevel
	ValidationAction ValidationAction
	// ViewOn and Pipeline redefine a view. Set both or neither.
	ViewOn   string
	Pipeline any
	// TimeSeries changes the granularity of a time series collection: a document such as
	// {granularity: "hours"}.
	TimeSeries any
	// ExpireAfter is the age at which documents of a time series or clustered collection are
	// deleted; NeverExpire turns expiration off.
	ExpireAfter *time.Duration
	NeverExpire bool
	// PreAndPostImages makes the server keep, or no longer keep, document images for change
	// streams.
	PreAndPostImages *bool
	// SizeInBytes and MaxDocuments are new bounds of a capped collection (server 6.0 and later). A
	// MaxDocuments of 0 lifts the bound on the number of documents; nil leaves it as it is.
	SizeInBytes  int64
	MaxDocuments *int64
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// IndexChange says how ModifyCollection changes the index with this name or these keys.
type IndexChange struct {
	Name string
	Keys any
	// ExpireAfter is the age at which documents are deleted, to the second. It may be 0 to
	// 2147483647 seconds, which are 68 years.
	ExpireAfter *time.Duration
	// Hidden hides the index from the query planner, or shows it again.
	Hidden *bool
	// PrepareUnique makes the index reject new duplicates; Unique makes it unique if none are left
	// (server 6.0 and later).
	PrepareUnique *bool
	Unique        *bool
}

// ModifyCollection changes options of a collection or a view with the command collMod.
func (db *Database) ModifyCollection(ctx context.Context, name string, opts ...ModifyCollectionOptions) error {
	o, err := option.Merge(opts), checkName("collection", name)
	if err == nil {
		err = checkExpiry(o.ExpireAfter, math.MaxInt64)
	}
	if err == nil && o.Index != nil {
		err = checkExpiry(o.Index.ExpireAfter, math.MaxInt32)
	}
	if err != nil {
		return db.failed(ctx, "collMod", name, err)
	}
	return db.admin(ctx, &command.Named{Command: "collMod", Target: name, Fields: o.fields()}, o.Timeout)
}

// fields returns the fields of the collMod command, nil if there are none.
func (o *ModifyCollectionOptions) fields() any {
	var f adminFields
	if i := o.Index; i != nil {
		var x adminFields
		x.str("name", i.Name)
		x.value("keyPattern", i.Keys)
		x.seconds("expireAfterSeconds", i.ExpireAfter)
		x.flag("hidden", i.Hidden)
		x.flag("prepareUnique", i.PrepareUnique)
		x.flag("unique", i.Unique)
		f.value("index", bson.D(x))
	}
	f.value("validator", o.Validator)
	f.str("validationLevel", string(o.ValidationLevel))
	f.str("validationAction", string(o.ValidationAction))
	f.str("viewOn", o.ViewOn)
	f.value("pipeline", o.Pipeline)
	f.value("timeseries", o.TimeSeries)
	f.seconds("expireAfterSeconds", o.ExpireAfter)
	f.add(o.NeverExpire, "expireAfterSeconds", "off")
	f.images(o.PreAndPostImages)
	f.int("cappedSize", o.SizeInBytes)
	if n := o.MaxDocuments; n != nil {
		f.add(true, "cappedMax", *n)
	}
	f.value("comment", o.Comment)
	return f.document()
}

// RenameOptions are the options of Rename.
type RenameOptions struct {
	// DropTarget drops an existing collection of the new name. Otherwise Rename fails if there is
	// one.
	DropTarget bool
	// Database is the database to move the collection to. Empty: the collection stays in its own.
	Database string
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// Rename renames the collection. c keeps the old name.
func (c *Collection[T]) Rename(ctx context.Context, name string, opts ...RenameOptions) error {
	o, err := option.Merge(opts), c.err
	if err == nil {
		err = checkName("collection", name)
	}
	if err != nil {
		return c.failed(ctx, "renameCollection", c.name, err)
	}
	if o.Database == "" {
		o.Database = c.db
	}
	f := adminFields{{Key: "to", Value: o.Database + "." + name}}
	f.add(o.DropTarget, "dropTarget", true)
	f.value("comment", o.Comment)
	admin := Database{inherited: c.inherited}
	admin.db = "admin"
	return admin.admin(ctx, &command.Named{Command: "renameCollection", Target: c.db + "." + c.name,
		Fields: f.document()}, o.Timeout)
}

// DropOptions are the options of Collection.Drop and Database.Drop.
type DropOptions struct {
	// EncryptedFields are the encrypted fields of a collection with Queryable Encryption, whose
	// state collections are dropped with it. Nil: those that the client's Encryption configures for
	// it, otherwise those that the server reports to such a client. Database.Drop needs none.
	EncryptedFields any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

func (o *DropOptions) fields() any {
	var f adminFields
	f.value("comment", o.Comment)
	return f.document()
}

// Drop deletes the collection with its indexes. A collection that does not exist is no error.
func (c *Collection[T]) Drop(ctx context.Context, opts ...DropOptions) error {
	o, err := option.Merge(opts), c.err
	if err != nil {
		return c.failed(ctx, "drop", c.name, err)
	}
	return (&steps{db: c.asDatabase(), command: "drop", name: c.name}).drop(ctx, &o)
}
