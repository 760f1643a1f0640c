// Package native is how package mongo/native reaches what is inside of package mongo's types.
package native

import "allium"

// Package mongo sets these. The arguments are its *Client, *Collection and *Database.
var (
	Inner      func(client any) *allium.Client
	Wrap       func(client *allium.Client) any
	Collection func(coll any) (*allium.Database, string)
	Database   func(db any) *allium.Database
)
