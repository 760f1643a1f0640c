package allium

import (
	"context"
	"slices"

	"allium/bson"
	"allium/internal/scope"
)

// Scope is a part of the documents of a collection: those of a tenant, or those that are not marked
// as deleted. A collection that was made by Scoped reads and writes nothing else, whatever the
// filters, updates and pipelines that it is given. What cannot be kept within a scope is an error
// before anything is sent, of the class mongoerr.ErrScope.
//
//	orders := allium.CollectionOf[Order](db, "orders").Scoped(allium.Scope{
//		Filter:   bson.D{{Key: "tenant", Value: tenant}},
//		OnInsert: func(context.Context) bson.D { return bson.D{{Key: "tenant", Value: tenant}} },
//	})
//
// The filter is joined to that of every operation, stands first in every pipeline, and is checked
// by the driver in every document that is inserted or put in another's place. Changes of its fields
// are refused unless it is plain that the document stays in the scope. Refused are also stages that
// write ($out, $merge), that read collections for which the scope does not hold, or that nobody
// knows to be harmless; the commands that concern the collection as a whole, such as Drop and
// CreateIndex; RunCommand; and a Client.BulkWrite that mixes collections with and without scopes.
// The page docs/scopes.md has the list.
//
// A scope does not stop a program that wants to leave it: the client, and the collection without
// the scope, are the ways out.
type Scope struct {
	// Name lets Without lift the scope. One without a name cannot be lifted.
	Name string
	// Filter is the filter of the scope's documents. It is a document of fields with values (no
	// arrays, no regular expressions) or the operators $eq, $ne, $in, $nin and $exists; a value nil
	// means that the field is null or missing. Fields within documents have dotted paths, but do
	// not lead through arrays. Texts are compared byte by byte, unless the collection itself has
	// another collation. With no filter, the scope sets fields and bounds nothing.
	Filter any
	// OnInsert returns fields at the top that are set in every document that is inserted, and by
	// upserts with operators in $setOnInsert, in place of those that it has; in a replacement, only
	// the fields that Filter names. It is called once for each operation. It must be safe for
	// concurrent use.
	OnInsert func(ctx context.Context) bson.D
	// OnUpdate returns an update that is joined to every update, such as {$set: {changed: now},
	// $inc: {version: 1}}. In a pipeline it may have $set, $inc, $unset and $currentDate, in a
	// replacement $set of fields at the top. It is called once for each operation. It must be safe
	// for concurrent use.
	OnUpdate func(ctx context.Context) bson.D
	// Shared are the collections that pipelines may read whole, by $lookup, $graphLookup and
	// $unionWith: names in the same database, or database.collection. Without it, a pipeline reads
	// its own collection within the scope, and in a scope of a database the others as well.
	Shared []string
}

// compile returns the scope as operations use it.
func (s Scope) compile(o *bson.Options) (*scope.Scope, error) {
	return scope.New(scope.Options{Name: s.Name, Filter: s.Filter, OnInsert: s.OnInsert, OnUpdate: s.OnUpdate,
		Shared: slices.Clone(s.Shared), BSON: o})
}

// Scoped returns the collection within a scope, and within those that c has. Its Database is in the
// scope, too. It does no I/O; every operation reports a scope that is wrong.
func (c *Collection[T]) Scoped(s Scope) *Collection[T] {
	return &Collection[T]{c.scoped(s)}
}

// Scoped returns the collection within a scope. See Collection.Scoped.
func (c *UntypedCollection) Scoped(s Scope) *UntypedCollection {
	return &UntypedCollection{Collection[bson.D]{c.scoped(s)}}
}

func (c handle) scoped(s Scope) handle {
	one, err := s.compile(c.bson)
	if err != nil {
		return c.broken(err)
	}
	c.scopes = c.scopes.With(c.db, one, false)
	parent := *c.parent
	parent.scopes = parent.scopes.With(c.db, one, true)
	c.parent = &parent
	return c
}

// broken returns the collection as one whose operations fail.
func (c handle) broken(err error) handle {
	if c.err == nil {
		c.err = err
	}
	parent := *c.parent
	if parent.err == nil {
		parent.err = err
	}
	c.parent = &parent
	return c
}

// Scoped returns the database with all of its collections within a scope, those that are made from
// it afterwards. Operations of the database itself are refused unless they keep within the scope.
func (db *Database) Scoped(s Scope) *Database {
	scoped := *db
	one, err := s.compile(db.bson)
	if err == nil {
		scoped.scopes = db.scopes.With(db.db, one, true)
	} else if scoped.err == nil {
		scoped.err = err
	}
	return &scoped
}

// Without returns the collection without the scopes of this name, such as one that hides what is
// deleted. Every operation reports that there is none.
func (c *Collection[T]) Without(name string) *Collection[T] {
	return &Collection[T]{c.without(name)}
}

// Without returns the collection without the scopes of this name. See Collection.Without.
func (c *UntypedCollection) Without(name string) *UntypedCollection {
	return &UntypedCollection{Collection[bson.D]{c.without(name)}}
}

func (c handle) without(name string) handle {
	left, err := c.scopes.Without(name)
	if err != nil {
		return c.broken(err)
	}
	c.scopes = left
	parent := *c.parent
	if all, err := parent.scopes.Without(name); err == nil {
		parent.scopes = all
	}
	c.parent = &parent
	return c
}
