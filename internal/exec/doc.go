// Package exec is the driver's executor: the one loop that every operation goes through. It selects a server, checks a
// connection out, builds the message, sends it, judges the outcome, tells sessions and topology about it, and tries
// again where the specifications say so (Retryable Reads, Retryable Writes, Client Backpressure, Client Side
// Operations Timeout, Driver Sessions, Transactions). No other package has a retry, a session rule or a timeout rule.
package exec
