package topology

import (
	"context"
	"time"
)

// SRV makes a topology look for mongoses in DNS (specification: Polling SRV Records for mongos Discovery).
type SRV struct {
	// Lookup returns the addresses that DNS names now, valid ones only, in random order, and for how long the records
	// say that this holds.
	Lookup func(context.Context) (hosts []string, ttl time.Duration, err error)
	// MaxHosts is the greatest number of mongoses to use, 0 for all (srvMaxHosts).
	MaxHosts int
}
