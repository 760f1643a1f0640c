// Package event defines what a listener of the driver receives: the events of commands, connection
// pools, topologies and heartbeats, and the descriptions of servers and topologies that they carry.
//
// The structs are plain data. Descriptions are immutable once they are published and are shared by
// pointer between the driver and its listeners: read them as long as you like, from any goroutine,
// and never write to them.
//
// A listener is a struct of functions (CommandMonitor, PoolMonitor, ServerMonitor). A function that
// is nil costs nothing. The others are called on the goroutine where the event happens, sometimes
// while the driver holds a lock, and then apart from that goroutine: they must be quick. Those of
// pools and servers must not call back into the client that they listen to; those of commands may,
// if the pool has another connection for that. One that panics loses nothing of the driver's: on
// the caller's goroutine the panic goes on to the caller.
package event
