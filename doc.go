// Package allium is a MongoDB driver.
//
// A Client connects to a deployment, a Database and a Collection name what is in it, and a collection knows the Go type of its
// documents:
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
// Filters, updates, sort orders and the like are any value that package bson encodes as a document: bson.M, bson.D where the
// order of the keys matters, a struct, or a bson.Raw. Documents come back as the collection's type. How Go values and BSON
// correspond is in the documentation of package bson.
//
// # Options
//
// Each operation takes one plain struct of options as its last argument, which is left out when not needed. The zero value of
// a field means "not set"; where zero means something else, the field is a pointer, as in
//
//	allium.FindOptions{Timeout: new(5 * time.Second), AllowDiskUse: new(true)}
//
// Read preference, read concern, write concern and timeout are inherited from the client by its databases, and from a database by its
// collections; With derives one that differs.
//
// # Time
//
// A context that ends makes the operation return at once, wherever it is: waiting for a server, for a connection or for
// a reply. The error is a *TimeoutError that says where, and is context.Canceled or context.DeadlineExceeded for errors.Is. The
// client and its connections stay usable.
//
// Beside that, a client, a database, a collection or an operation may have a Timeout, which the operation inherits from the
// innermost that has one. The earlier of it and the context's deadline ends the operation, and the error's Source says which it was.
// A Timeout does more than a deadline: within it, an operation is tried again as often as there is time, and socket timeout,
// maximum times and write concern timeouts do not count.
//
// # Sessions and transactions
//
// A session travels in the context, so that no call of a transaction can forget it:
//
//	err = client.Transact(ctx, func(ctx context.Context) error {
//		_, err := users.UpdateOne(ctx, filter, update)
//		return err
//	})
//
// # Errors
//
// Errors are values that work with errors.Is and errors.As. Package allium/mongoerr has their types, such as *mongoerr.ServerError, their
// classes, such as mongoerr.ErrNoDocuments, and mongoerr.IsTimeout, HasCode and HasLabel, which ask what several types can say. No
// message contains a password.
//
// # Retries
//
// Reads, and writes of at most one document per statement, are tried again once after a network
// error or a failover; a write is never applied twice. Within a Timeout, though not within a
// context's deadline alone, they are tried again as long as there is time. A write that waits
// for a majority when its primary steps down has been applied there; without a Timeout it may
// meet the same server at its one retry and fail with NotWritablePrimary (10107) all the same.
// Read it back before you write it again, or set a Timeout, within which the driver goes on
// until there is another primary. Not tried again are UpdateMany, DeleteMany and the messages of
// a bulk write that hold such a write, aggregations with $out or $merge, the batches of a cursor
// that follow the first, RunCommand, unacknowledged writes, and everything in a transaction but
// its commit and its abort.
//
// Every operation, those included, is tried again, after a wait that grows, when a server says that it is overloaded: twice at the
// most. The client's options change that or switch it off. A program that tries again by itself multiplies the attempts, and should
// bound them.
//
// # Events and logs
//
// ClientOptions.CommandMonitor, PoolMonitor and ServerMonitor are told what happens (package allium/event), and ClientOptions.Logger, a
// *slog.Logger, takes the same as messages; credentials are in neither.
//
// # Files
//
// Package allium/gridfs stores files of any size.
//
// # Testing
//
// Package allium/mongotest runs a deployment inside the test's process, so that tests need no server.
package allium
