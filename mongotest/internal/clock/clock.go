// Package clock is the logical clock of a deployment.
package clock

import (
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
)

// Clock is a deployment's logical clock: every write gets a timestamp that is greater than all
// before it and follows the wall clock. Clients and members carry its time around ($clusterTime).
// Safe for concurrent use.
type Clock struct {
	shift   atomic.Int64           // what a test added to the wall clock, a time.Duration
	Shifted atomic.Pointer[func()] // called when a test moves the clock

	mu   sync.Mutex
	last bson.Timestamp
}

// Now returns the wall clock as the deployment sees it.
func (c *Clock) Now() time.Time {
	return time.Now().Add(time.Duration(c.shift.Load()))
}

// Shift moves the wall clock of the deployment by d.
func (c *Clock) Shift(d time.Duration) {
	c.shift.Add(int64(d))
	if f := c.Shifted.Load(); f != nil {
		(*f)()
	}
}

// Tick returns the timestamp for a new write.
func (c *Clock) Tick() bson.Timestamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := uint32(c.Now().Unix())
	if now > c.last.T {
		c.last = bson.Timestamp{T: now, I: 1}
	} else {
		c.last.I++
	}
	return c.last
}

// Last returns the newest timestamp known: given out here or heard of.
func (c *Clock) Last() bson.Timestamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// Advance makes sure that all later timestamps are greater than ts.
func (c *Clock) Advance(ts bson.Timestamp) {
	c.mu.Lock()
	if ts.Compare(c.last) > 0 {
		c.last = ts
	}
	c.mu.Unlock()
}
