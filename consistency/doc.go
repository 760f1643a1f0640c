// Package consistency says how current and how durable the data are that operations read and write:
// the read preference, the read concern and the write concern. Clients, databases, collections and
// transactions have fields for each of them.
package consistency
