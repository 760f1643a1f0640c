// Package native leads from package mongo to Allium's own API and back, so that a program can move
// on file by file. Both sides share connections, sessions, statistics and transactions: a context
// with a session of one side is a context with it for the other.
//
// The official driver has no such package: a program that imports it needs the drop-in.
package native

import (
	"allium"
	"go.mongodb.org/mongo-driver/internal/native"
	"go.mongodb.org/mongo-driver/mongo"
	v2native "go.mongodb.org/mongo-driver/v2/mongo/native"
)

// Client returns Allium's client inside of c. It lives as long as c: disconnect c, do not close it.
func Client(c *mongo.Client) *allium.Client { return v2native.Client(native.Client(c)) }

// FromClient returns a client of package mongo that uses Allium's client c. It encodes and decodes
// as version 2 without settings does. Disconnecting it closes c.
func FromClient(c *allium.Client) *mongo.Client {
	return native.WrapClient(v2native.FromClient(c)).(*mongo.Client)
}

// Database returns Allium's database inside of db, with its settings.
func Database(db *mongo.Database) *allium.Database { return v2native.Database(native.Database(db)) }

// Collection returns a collection as Allium's, with documents of type T and the settings of its
// database.
func Collection[T any](coll *mongo.Collection) *allium.Collection[T] {
	return v2native.Collection[T](native.Collection(coll))
}
