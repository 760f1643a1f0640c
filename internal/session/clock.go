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
	ts, ok := doc.Lookup("clusterTime").Timestamp()
	if !ok {
		return nil
	}
	return &ClusterTime{Doc: bytes.Clone(doc), Time: ts}
}

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
	ts, ok := doc.Lookup("clusterTime").Timestamp()
	if !ok {
		return
	}
	if old := c.now.Load(); old != nil && old.Time.Compare(ts) >= 0 {
		return
	}
	c.Advance(&ClusterTime{Doc: bytes.Clone(doc), Time: ts})
}

// Newest returns the later of two cluster times, either of which may be nil.
func Newest(a, b *ClusterTime) *ClusterTime {
	if a == nil || b != nil && b.Time.Compare(a.Time) > 0 {
		return b
	}
	return a
}
