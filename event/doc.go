// Package event defines what a listener of the driver receives: the events of commands, connection
// pools, topologies and heartbeats, and the descriptions of servers and topologies that they carry.
//
// The structs are plain data. Descriptions are immutable once they are published and are shared by
// pointer between the driver and its listeners: read them as long as you like, from any goroutine,
// and never write to them.
//
// A listener is a struct of functions (CommandMonitor, PoolMonitor, ServerMonitor). A function that
// is nil costs nothing. Those of a CommandMonitor and a PoolMonitor are called on the goroutine
// where the event happens, from many at once, those of pools sometimes while the driver holds a
// lock, and then apart from that goroutine: they must be quick. Those of commands may call back
// into the client that they listen to, if the pool has another connection for that; those of pools
// must not. One that panics loses nothing of the driver's: on the caller's goroutine the panic goes
// on to the caller.
//
// The functions of a ServerMonitor are called one at a time for one client, and in the order of
// what happened, and so are the log messages of discovery among them (specification: SDAM Logging
// and Monitoring, "Event Order and Concurrency"). They are called on a goroutine of their own, and
// may call back into the client; only its Close waits for them. A panic is logged. A check of a
// server waits for its events to be delivered, for half a second at most.
package event
