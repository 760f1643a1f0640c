package allium

import (
	"context"
	"math"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/option"
)

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
	return admin.admin(ctx, &command.Named{Command: "renameCollection", Target: c.db + "." + c.name, Fields: f.document()}, o.Timeout)
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
