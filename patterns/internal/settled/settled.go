// Package settled is how the packages beside it use a database for what is theirs: what they read
// is the primary's, what they write is acknowledged by a majority, and options for the program's
// own types do not count, whatever the program has set for its collections.
package settled

import (
	"allium"
	"allium/bson"
	"allium/consistency"
)

// Database returns the database for reading and writing documents, and for its catalog.
func Database(db *allium.Database) *allium.Database {
	return db.With(allium.DatabaseOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Primary},
		ReadConcern: &consistency.ReadConcern{}, WriteConcern: consistency.Majority(), BSON: &bson.Options{}})
}

// Collection returns a collection of which a program reads only what a majority has: nothing that
// an election could undo.
func Collection[T any](coll allium.AnyCollection) *allium.Collection[T] {
	return Values[T](coll).With(allium.CollectionOptions{BSON: &bson.Options{}})
}

// Values is Collection for documents that have values of the program's in them, which are encoded
// and decoded as it has set.
func Values[T any](coll allium.AnyCollection) *allium.Collection[T] {
	return allium.As[T](
		coll).With(allium.CollectionOptions{ReadPreference: &consistency.ReadPreference{Mode: consistency.Primary},
		ReadConcern: &consistency.ReadConcern{Level: consistency.ReadMajority}, WriteConcern: consistency.Majority()})
}
