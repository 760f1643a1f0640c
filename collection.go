package allium

import (
	"time"

	"allium/bson"
	"allium/consistency"
)

// Collection is a handle to a collection whose documents are encoded from and decoded as T: a
// struct of the application, or bson.D, bson.M or bson.Raw. It is cheap to create and safe for
// concurrent use.
type Collection[T any] struct {
	scope
	name   string
	parent *Database
	err    error // an invalid name, reported by every operation
}

// CollectionOptions are settings of a collection that differ from its database's. Nil fields are
// inherited.
type CollectionOptions struct {
	// ReadPreference, ReadConcern and WriteConcern are inherited if they are nil.
	ReadPreference *consistency.ReadPreference
	ReadConcern    *consistency.ReadConcern
	WriteConcern   *consistency.WriteConcern
	// Timeout bounds each operation from start to finish; a pointer to 0 means no limit.
	Timeout *time.Duration
	// BSON configures encoding and decoding. Its UUID representation is inherited if it is not set.
	BSON *bson.Options
}

// CollectionOf returns the collection of this name with documents of type T. It does no I/O, and
// the collection need not exist.
//
//	users := allium.CollectionOf[User](client.Database("app"), "users")
func CollectionOf[T any](db *Database, name string, opts ...CollectionOptions) *Collection[T] {
	c := &Collection[T]{scope: db.scope, name: name, parent: db, err: checkName("collection", name)}
	if c.err == nil {
		c.err = db.err
	}
	for _, o := range opts {
		c = c.With(o)
	}
	return c
}

// Collection returns the collection of this name with documents of type bson.D.
func (db *Database) Collection(name string, opts ...CollectionOptions) *Collection[bson.D] {
	return CollectionOf[bson.D](db, name, opts...)
}

// With returns a collection that differs from c in the settings that are not nil.
func (c *Collection[T]) With(o CollectionOptions) *Collection[T] {
	d := *c
	d.scope = c.scope.inherit("collection", o.ReadPreference, o.ReadConcern, o.WriteConcern, o.Timeout, o.BSON)
	return &d
}

// Name returns the collection's name without its database.
func (c *Collection[T]) Name() string { return c.name }

// Database returns the database that the collection was made from, with the database's settings.
func (c *Collection[T]) Database() *Database { return c.parent }

// As returns the same collection, with the settings that c has, with documents of type V.
//
//	raw := allium.As[bson.Raw](users)
func As[V, T any](c *Collection[T]) *Collection[V] {
	return &Collection[V]{scope: c.scope, name: c.name, parent: c.parent, err: c.err}
}

// within returns the database with the collection's settings, for commands that are about the
// collection and addressed to its database.
func (c *Collection[T]) within() *Database {
	return &Database{scope: c.scope, err: checkName("database", c.db)}
}
