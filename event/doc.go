// Package event defines what a listener of the driver receives: the events of commands, connection
// pools, topologies and heartbeats, and the descriptions of servers and topologies that they carry.
//
// The structs are plain data. Descriptions are immutable once they are published and are shared by
// pointer between the driver and its listeners: read them as long as you like, from any goroutine,
// and never write to them.
//
// A listener is a struct of functions (CommandMonitor, PoolMonitor, ServerMonitor). A function that
// is nil costs nothing. Those of a CommandMonitor, and those of a PoolMonitor for checkouts and
// check-ins, are called on the goroutine of the operation, from many at once: they must be quick.
// Those of commands may call back into the client that they listen to, if the pool has another
// connection for that; those of checkouts must not. One that panics loses nothing of the driver's:
// on the caller's goroutine the panic goes on to the caller.
//
// The other functions of a PoolMonitor, which are told of pools and of connections that are made
// and closed, are called one at a time for one pool, and those of a ServerMonitor one at a time for
// one client; both in the order of what happened, and so are the log messages of pools and of
// discovery among them (specification: SDAM Logging and Monitoring, "Event Order and Concurrency").
// They are called on a goroutine of their own, while the driver holds no lock, and may call back
// into the client; only its Close waits for them. A panic is logged. A check of a server waits for
// its events to be delivered, for half a second at most, and a checkout or check-in for those of
// its pool, for a second at most.
//
// One that does not return holds up the events behind it, and nothing else: operations and checks
// go on without waiting. Up to 10,000 events of a pool, and as many of a topology, wait for it, and
// further ones are dropped. That is logged with slog.Error when it begins and, with how many they
// were, when it has ended, and counted in the field DroppedEvents of the client's statistics.
package event
