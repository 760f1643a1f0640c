package server

// Compaction is what autoCompact has told a node to do in the background. There is nothing to gain
// from it here: documents are in memory, and what is deleted leaves no hole.
type Compaction struct{ FreeSpaceMB int64 }

// Compaction returns how the node compacts in the background, nil if it does not.
func (n *Node) Compaction() *Compaction { return n.compaction.Load() }

// SetCompaction starts compacting in the background, or stops it: nil.
func (n *Node) SetCompaction(c *Compaction) { n.compaction.Store(c) }
