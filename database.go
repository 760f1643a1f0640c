package allium

import (
	"context"
	"time"

	"allium/bson"
	"allium/consistency"
	"allium/internal/command"
	"allium/internal/option"
)

// Database is a handle to a database. It is cheap to create and safe for concurrent use.
type Database struct {
	scope
	err error // an invalid name, reported by every operation
}

// DatabaseOptions are settings of a database that differ from its client's. Nil fields are
// inherited.
type DatabaseOptions struct {
	// ReadPreference, ReadConcern and WriteConcern are inherited if they are nil.
	ReadPreference *consistency.ReadPreference
	ReadConcern    *consistency.ReadConcern
	WriteConcern   *consistency.WriteConcern
	// Timeout bounds each operation from start to finish; a pointer to 0 means no limit.
	Timeout *time.Duration
	// BSON configures encoding and decoding. Its UUID representation is inherited if it is not set.
	BSON *bson.Options
}

// Database returns the database of this name. It does no I/O, and the database need not exist.
func (c *Client) Database(name string, opts ...DatabaseOptions) *Database {
	db := &Database{scope: c.scope(), err: checkName("database", name)}
	db.db = name
	for _, o := range opts {
		db = db.With(o)
	}
	return db
}

// With returns a database that differs from db in the settings that are not nil.
func (db *Database) With(o DatabaseOptions) *Database {
	return &Database{scope: db.scope.inherit("database", o.ReadPreference, o.ReadConcern, o.WriteConcern, o.Timeout, o.BSON), err: db.err}
}

// Settings returns the settings that operations inherit from the database: its own, and those of
// its client. A field is nil if neither sets it. It is for packages that build on this one, such as
// allium/gridfs.
func (db *Database) Settings() DatabaseOptions {
	return option.Copy(DatabaseOptions{ReadPreference: db.readPreference, ReadConcern: db.readConcern, WriteConcern: db.writeConcern, Timeout: db.timeout, BSON: db.bson})
}

// Name returns the database's name.
func (db *Database) Name() string { return db.db }

// Client returns the client that the database belongs to.
func (db *Database) Client() *Client { return db.client }

// Drop deletes the database with all its collections.
func (db *Database) Drop(ctx context.Context, opts ...DropOptions) error {
	o := option.Merge(opts)
	return db.admin(ctx, &command.Named{Command: "dropDatabase", Fields: o.fields()}, o.Timeout)
}

// admin runs a write of the catalog, whose reply holds nothing of interest.
func (db *Database) admin(ctx context.Context, cmd command.Command, timeout *time.Duration) error {
	return db.adminWithin(ctx, cmd, nil, 0, timeout)
}

// adminWithin is admin for commands that take a maxTimeMS of the user's, which is put where
// maxTimeMS points to.
func (db *Database) adminWithin(ctx context.Context, cmd command.Command, maxTimeMS *int64, maxTimeOpt time.Duration, timeout *time.Duration) error {
	op, err := db.op(ctx, cmd, timeout)
	if db.err != nil {
		err = db.err
	}
	if err == nil && maxTimeMS != nil {
		err = maxTime(&op, maxTimeOpt, maxTimeMS)
	}
	if err != nil {
		return op.Named(err)
	}
	res, err := db.run(ctx, &op)
	if err != nil {
		return err
	}
	res.Release()
	return nil
}
