package session

import (
	"bytes"
	"sync/atomic"

	"allium/bson"
)

// ClusterTime is a cluster time as a server signed it: the $clusterTime document and its time.
type ClusterTime struct {
	Doc  bson.Raw
	Time bson.Timestamp
}

// ParseClusterTime copies a $clusterTime document. It returns nil if there is no time in it.
func ParseClusterTime(doc bson.Raw) *ClusterTime {
	return later(nil, doc)
}

// later copies a $clusterTime document that is later than t, which may be nil. It returns nil, and
// allocates nothing, if the document is not later or has no time in it.
func later(t *ClusterTime, doc bson.Raw) *ClusterTime {
	ts, ok := doc.Lookup("clusterTime").Timestamp()
	if !ok || t != nil && t.Time.Compare(ts) >= 0 {
		return nil
	}
	if len(doc) > usualClusterTime {
		return &ClusterTime{Doc: bytes.Clone(doc), Time: ts}
	}
	// On a replica set every write has a new time: one allocation for what servers send.
	own := new(struct {
		ClusterTime
		doc [usualClusterTime]byte
	})
	n := copy(own.doc[:], doc)
	own.ClusterTime = ClusterTime{Doc: own.doc[:n:n], Time: ts}
	return &own.ClusterTime
}

// usualClusterTime is room for a time with a signature, which has 88 bytes, and what makes a size
// of the allocator's of it.
const usualClusterTime = 96

// Clock is the newest cluster time that has been seen. The zero Clock has seen none. It is safe for
// concurrent use and takes no lock.
type Clock struct {
	now atomic.Pointer[ClusterTime]
}

// Now returns the newest cluster time, or nil.
func (c *Clock) Now() *ClusterTime { return c.now.Load() }

// Advance moves the clock forward to t; it never moves it back.
func (c *Clock) Advance(t *ClusterTime) {
	for t != nil {
		old := c.now.Load()
		if old != nil && old.Time.Compare(t.Time) >= 0 {
			return
		}
		if c.now.CompareAndSwap(old, t) {
			return
		}
	}
}

// AdvanceRaw is Advance for the $clusterTime document of a reply. It copies the document only if it
// is newer.
func (c *Clock) AdvanceRaw(doc bson.Raw) {
	c.Advance(later(c.now.Load(), doc))
}

// Newest returns the later of two cluster times, either of which may be nil.
func Newest(a, b *ClusterTime) *ClusterTime {
	if a == nil || b != nil && b.Time.Compare(a.Time) > 0 {
		return b
	}
	return a
}
