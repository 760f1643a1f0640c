// Package topology discovers and monitors the servers of a deployment and selects one for each
// operation (specifications: Server Discovery and Monitoring, Server Monitoring, Server Selection,
// Max Staleness, Polling SRV Records for mongos Discovery, and the topology side of Load Balancer
// Support).
//
// What is known is an immutable snapshot behind an atomic pointer. The state machine (machine.go)
// is a pure function from one description and a server's news to the next description; suitability
// (suitable.go) is a pure function too. Monitors do the I/O and feed the state machine under the
// topology's lock, which is also held while a server's pool is cleared or made ready, so that
// no operation selects a server whose pool is still paused.
//
// Lock order: Topology.mu, then the locks of a pool or of a monitor. Neither is held during I/O.
package topology
