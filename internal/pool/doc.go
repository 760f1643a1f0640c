// Package pool keeps the connections to one server (specification: Connection Monitoring and
// Pooling).
//
// A checkout takes the connection that was returned last, or joins a fair queue. Connections are
// made by goroutines of their own, never by the operation that waits: when its time is up it leaves
// the queue, and the connection that is made meanwhile serves somebody else. The same goes for a
// connection on which a timed-out or cancelled operation has left a reply: it is read off in the
// background, within a bounded time, and the connection stays. Neither keeps anybody waiting: an
// attempt that may hang does not count for the next operation, and a connection that waits for a
// late reply is closed when a full pool needs its place.
//
// Every state of the pool is guarded by one mutex that is never held during I/O. Checkout and
// return of an idle connection are a push and a pop under it: no timer, no goroutine, no memory.
package pool
