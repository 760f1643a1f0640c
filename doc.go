// Package allium is a MongoDB driver. The repository's docs/guide.md goes through a small program
// for those who use MongoDB from Go for the first time.
//
// A Client connects to a deployment. A Database and a Collection are handles to its parts, and a
// collection knows the Go type of its documents:
//
//	client, err := allium.Open("mongodb://localhost:27017/?replicaSet=rs0")
//	defer client.Close(ctx)
//
//	type User struct {
//		Name string `bson:"name"`
//		Age  int    `bson:"age"`
//	}
//	users := allium.CollectionOf[User](client.Database("app"), "users")
//
//	_, err = users.InsertOne(ctx, User{Name: "Ada", Age: 36})
//	ada, err := users.FindOne(ctx, bson.M{"name": "Ada"})
//
//	cur, err := users.Find(ctx, bson.M{"age": bson.M{"$gte": 18}}, allium.FindOptions{Limit: 10})
//	for user, err := range cur.Seq(ctx) {
//		...
//	}
//
// # Documents
//
// Filters, updates and sort orders are values that package bson encodes as documents: bson.M,
// bson.D where the order of the keys matters, a struct, or a bson.Raw. Documents are decoded as the
// collection's type. Package bson describes how Go values and BSON correspond.
//
// # Options
//
// Each operation takes a struct of options as its last argument, which may be left out. The zero
// value of a field means "not set"; where zero is a meaningful setting, the field is a pointer, as
// in
//
//	allium.FindOptions{Timeout: new(5 * time.Second), AllowDiskUse: new(true)}
//
// Of several structs, a field has the value of the last that sets it, so that a function of the
// program's can pass on its caller's options behind its own defaults.
//
// Databases inherit read preference, read concern, write concern and timeout from the client, and
// collections from their database; With returns a copy with other settings.
//
// # Time
//
// An operation returns as soon as its context ends, whether it waits for a server, for a connection
// or for a reply. The error is a *mongoerr.TimeoutError that names the phase and matches
// context.Canceled or context.DeadlineExceeded. The client and its connections stay usable.
//
// In addition, a client, a database, a collection or an operation may have a Timeout; the innermost
// one applies. The earlier of it and the context's deadline ends the operation, and the error's
// Source says which. A Timeout is more than a deadline: an operation is retried as long as there is
// time, and socket timeout, maximum times and write concern timeouts are ignored.
//
// # Sessions and transactions
//
// A session travels in the context, so no operation of a transaction can miss it:
//
//	err = client.Transact(ctx, func(ctx context.Context) error {
//		_, err := users.UpdateOne(ctx, filter, update)
//		return err
//	})
//
// # Errors
//
// Errors work with errors.Is and errors.As. Package allium/mongoerr defines their types, such as
// *mongoerr.ServerError, their classes, such as mongoerr.ErrNoDocuments, and functions that work on
// all types: IsTimeout, HasCode and HasLabel. No message contains a password.
//
// # Retries
//
// Reads, and writes of at most one document per statement, are retried once after a network error
// or a failover; a write is never applied twice. Within a Timeout, but not within a context's
// deadline alone, they are retried as long as there is time. A write that waits for a majority when
// its primary steps down has been applied there; without a Timeout its one retry may meet the same
// server and fail with NotWritablePrimary (10107) nevertheless. Read it back before you write it
// again, or set a Timeout, within which the driver retries until there is another primary. Not
// retried are UpdateMany, DeleteMany and the messages of a bulk write that hold such a write,
// aggregations with $out or $merge, the batches of a cursor after the first, RunCommand,
// unacknowledged writes, and operations in a transaction except its commit and abort.
//
// When a server reports that it is overloaded, every operation, including those, is retried with
// backoff, at most twice. The client's options change or disable that. A program that retries by
// itself multiplies the attempts, and should bound them.
//
// # Events and logs
//
// ClientOptions.CommandMonitor, PoolMonitor and ServerMonitor are told what happens (package
// allium/event), and ClientOptions.Logger, a
// *slog.Logger, takes the same as messages; credentials are in neither.
//
// # Files
//
// Package allium/gridfs stores files of any size.
//
// # Testing
//
// Package allium/mongotest runs a deployment inside the test's process, so that tests need no
// server.
package allium
