package server

import (
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/internal/wire"
)

// counters is what a node has done since it started, as serverStatus shows it.
type counters struct {
	requests                atomic.Int64
	in, out                 atomic.Int64 // bytes of messages
	wireIn, wireOut         atomic.Int64 // as they were sent: compressed ones as they are
	compressed, flattened   [4]traffic   // by wire.CompressorID
	inserts, queries        atomic.Int64
	updates, deletes        atomic.Int64
	getMores, otherCommands atomic.Int64
	stale                   atomic.Int64 // commands that a shard refused because of an outdated table
	commands                sync.Map     // *Command to *commandCounter
}

// traffic is the bytes that went into a compressor and came out of it.
type traffic struct{ in, out atomic.Int64 }

func (t *traffic) add(in, out int) {
	t.in.Add(int64(in))
	t.out.Add(int64(out))
}

func (t *traffic) append(dst []byte, name string) []byte {
	at, dst := bson.BeginDocumentElement(dst, name)
	dst = bson.AppendInt64(dst, "bytesIn", t.in.Load())
	dst = bson.AppendInt64(dst, "bytesOut", t.out.Load())
	return bson.EndDocument(dst, at)
}

type commandCounter struct{ total, failed, pipelines, arrayFilters atomic.Int64 }

// Changes is how many of a command's updates are pipelines, and how many have array filters.
type Changes struct{ Pipelines, ArrayFilters int64 }

// count notes a command that was answered, or failed.
func (n *Node) count(r *Request, failed bool) {
	c := r.Cmd
	if c == nil {
		return
	}
	v, ok := n.counters.commands.Load(c)
	if !ok {
		v, _ = n.counters.commands.LoadOrStore(c, &commandCounter{})
	}
	m := v.(*commandCounter)
	m.total.Add(1)
	if failed {
		m.failed.Add(1)
	}
	m.pipelines.Add(r.Changes.Pipelines)
	m.arrayFilters.Add(r.Changes.ArrayFilters)
	s := &n.counters
	switch {
	case r.Writes != nil:
		inserts, updates, deletes := r.Writes.Count()
		s.inserts.Add(int64(inserts))
		s.updates.Add(int64(updates))
		s.deletes.Add(int64(deletes))
	case c.Name == "find":
		s.queries.Add(1)
	case c.Name == "getMore":
		s.getMores.Add(1)
	default:
		s.otherCommands.Add(1)
	}
}

// AppendOpcounters appends the section opcounters of serverStatus.
func (n *Node) AppendOpcounters(dst []byte) []byte {
	s := &n.counters
	dst = bson.AppendInt64(dst, "insert", s.inserts.Load())
	dst = bson.AppendInt64(dst, "query", s.queries.Load())
	dst = bson.AppendInt64(dst, "update", s.updates.Load())
	dst = bson.AppendInt64(dst, "delete", s.deletes.Load())
	dst = bson.AppendInt64(dst, "getmore", s.getMores.Load())
	return bson.AppendInt64(dst, "command", s.otherCommands.Load())
}

// AppendNetwork appends the section network of serverStatus. bytesIn and bytesOut are those of
// messages before they are compressed.
func (n *Node) AppendNetwork(dst []byte) []byte {
	s := &n.counters
	dst = bson.AppendInt64(dst, "bytesIn", s.in.Load())
	dst = bson.AppendInt64(dst, "bytesOut", s.out.Load())
	dst = bson.AppendInt64(dst, "physicalBytesIn", s.wireIn.Load())
	dst = bson.AppendInt64(dst, "physicalBytesOut", s.wireOut.Load())
	dst = bson.AppendInt64(dst, "numSlowDNSOperations", 0)
	dst = bson.AppendInt64(dst, "numSlowSSLOperations", 0)
	dst = bson.AppendInt64(dst, "numRequests", s.requests.Load())
	at, dst := bson.BeginDocumentElement(dst, "compression")
	for _, name := range n.cfg.Compressors {
		for id := range s.compressed {
			if wire.CompressorID(id).String() != name {
				continue
			}
			one, d := bson.BeginDocumentElement(dst, name)
			d = s.compressed[id].append(d, "compressor")
			d = s.flattened[id].append(d, "decompressor")
			dst = bson.EndDocument(d, one)
		}
	}
	return bson.EndDocument(dst, at)
}

// AppendMetrics appends the section metrics of serverStatus: commands and cursors.
func (n *Node) AppendMetrics(dst []byte) []byte {
	at, dst := bson.BeginDocumentElement(dst, "commands")
	for _, c := range Commands() {
		if n.Lookup(c.Name) != c || c.Own {
			continue
		}
		m := &commandCounter{}
		if v, ok := n.counters.commands.Load(c); ok {
			m = v.(*commandCounter)
		}
		one, d := bson.BeginDocumentElement(dst, c.Name)
		if c.Changes {
			d = bson.AppendInt64(d, "arrayFilters", m.arrayFilters.Load())
		}
		d = bson.AppendInt64(d, "failed", m.failed.Load())
		if c.Changes {
			d = bson.AppendInt64(d, "pipeline", m.pipelines.Load())
		}
		d = bson.AppendInt64(d, "total", m.total.Load())
		dst = bson.EndDocument(d, one)
	}
	dst = bson.EndDocument(dst, at)
	at, dst = bson.BeginDocumentElement(dst, "cursor")
	open, dst := bson.BeginDocumentElement(dst, "open")
	dst = bson.AppendInt64(dst, "total", int64(n.cursors.count(time.Now())))
	dst = bson.EndDocument(dst, open)
	return bson.EndDocument(dst, at)
}

// count returns how many cursors are open, after those that have been idle for too long are closed.
func (t *cursorTable) count(now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked(now)
	return len(t.byID)
}
