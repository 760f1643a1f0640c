package ocsp

import (
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"
)

// cache remembers conclusive responses until their next update, and which certificates no responder
// said anything about. It is safe for concurrent use.
type cache struct {
	mu      sync.Mutex
	entries map[certIdentifier]entry
}

type entry struct {
	response *ocsp.Response // nil: nothing was to be found out
	until    time.Time
}

const (
	// maxEntries bounds the cache: a deployment has a certificate for each server.
	maxEntries = 1000
	// pause is how long responders are left alone that said nothing.
	pause = 30 * time.Second
)

// put remembers a response, unless a later one is there.
func (c *cache) put(id certIdentifier, r *ocsp.Response) {
	if r.NextUpdate.IsZero() { // there may be news at any time
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.entries[id]; old.response == nil || r.NextUpdate.After(old.until) {
		c.set(id, entry{r, r.NextUpdate})
	}
}

// get returns the response that holds now, nil if there is none.
func (c *cache) get(id certIdentifier, now time.Time) *ocsp.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[id]
	if e.response == nil || !now.Before(e.until) {
		return nil
	}
	return e.response
}

func (c *cache) unanswered(id certIdentifier, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(id, entry{until: now.Add(pause)})
}

// mayAsk reports whether responders can be asked about a certificate, and whether their answer is
// worth waiting for: not if they said nothing the last time.
func (c *cache) mayAsk(id certIdentifier, now time.Time) (ask, wait bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[id]
	wait = !ok || e.response != nil
	return wait || !now.Before(e.until), wait
}

// set makes room by forgetting what is over, and if that is not enough, everything. The lock is
// held.
func (c *cache) set(id certIdentifier, e entry) {
	if len(c.entries) >= maxEntries {
		now := time.Now()
		for id, e := range c.entries {
			if !now.Before(e.until) {
				delete(c.entries, id)
			}
		}
		if len(c.entries) >= maxEntries {
			clear(c.entries)
		}
	}
	if c.entries == nil {
		c.entries = map[certIdentifier]entry{}
	}
	c.entries[id] = e
}
