// Package hostile holds the tests of what a server may do to a client that believes it: one that
// lies, floods, stalls or never stops. Whatever it does, operations return by the end of their
// context, Client.Close returns by the end of its own, and the work, the memory and the goroutines
// that the server can cause have a bound.
//
// The tests run in testing/synctest bubbles. CPU time is bounded by counting what a server can make
// the client do, connections and messages, in a span of virtual time; the cost of a single message
// is a benchmark's.
package hostile
