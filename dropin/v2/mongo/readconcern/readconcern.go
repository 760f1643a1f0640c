// Package readconcern has the read concerns: how durable and how current the data is that a read
// returns.
package readconcern

// A ReadConcern is sent with its level as it is. Without a level the server's default holds.
type ReadConcern struct {
	Level string
}

// Local is for the server's newest data, which may be rolled back.
func Local() *ReadConcern { return &ReadConcern{Level: "local"} }

// Majority is for data that a majority of the members has acknowledged.
func Majority() *ReadConcern { return &ReadConcern{Level: "majority"} }

// Linearizable is for data that reflects all acknowledged writes that ended before the read began.
func Linearizable() *ReadConcern { return &ReadConcern{Level: "linearizable"} }

// Available is as Local, but on a sharded cluster it may return orphaned documents.
func Available() *ReadConcern { return &ReadConcern{Level: "available"} }

// Snapshot is for data of a majority as of one point in time.
func Snapshot() *ReadConcern { return &ReadConcern{Level: "snapshot"} }
