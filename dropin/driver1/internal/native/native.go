// Package native is how packages gridfs and mongo/native reach what is inside of package mongo's
// types.
package native

import v2mongo "go.mongodb.org/mongo-driver/v2/mongo"

// Package mongo sets these. The arguments are its *Client, *Database and *Collection.
var (
	Client         func(client any) *v2mongo.Client
	WrapClient     func(client *v2mongo.Client) any
	Database       func(db any) *v2mongo.Database
	Collection     func(coll any) *v2mongo.Collection
	WrapCollection func(db any, coll *v2mongo.Collection) any
	WrapCursor     func(cursor *v2mongo.Cursor) any
	Failure        func(err error) error
)
