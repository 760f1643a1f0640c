// Package exec is the driver's executor: the one loop that every operation goes through. It selects
// a server, checks a connection out, builds the message, sends it, judges the outcome, tells
// sessions and topology about it, and tries again where the specifications say so (Retryable Reads,
// Retryable Writes, Client Backpressure, Client Side Operations Timeout, Driver Sessions,
// Transactions). How often an attempt is made, which session it carries and how long it may take is
// decided here; package cursor decides what follows for a cursor, and the public API when a whole
// transaction is repeated.
package exec
