// Package session holds the driver's logical sessions: the pool of server sessions, the cluster
// clock, and client sessions with causal consistency, snapshot reads and the transaction state
// machine (specifications: Driver Sessions, Causal Consistency, Snapshot Reads, Transactions).
//
// It does no I/O and selects no server: the executor asks it what to send, and tells it what came
// back.
package session
