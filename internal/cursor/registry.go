package cursor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"allium/internal/exec"
	"allium/internal/flight"
	"allium/internal/topology"
	"allium/stats"
)

// Registry knows the cursors that servers hold for a client, and what is still to be done about
// those that are closed, so that closing the client can see to both. It is safe for concurrent use.
type Registry struct {
	exec       *exec.Executor
	background flight.Background
	orphans    orphans

	mu  sync.Mutex             // guards all; held for nothing else
	all map[*Cursor]openCursor // nil once the registry is closed
}

// NewRegistry returns the registry of a client.
func NewRegistry(x *exec.Executor) *Registry {
	return &Registry{exec: x, all: map[*Cursor]openCursor{}}
}

// openCursor says where a cursor is. It does not change while the cursor is open, unlike the cursor
// itself, which belongs to the goroutine that reads it.
type openCursor struct {
	id       int64
	db, coll string
	server   *topology.Server
	pinned   bool // only its own connection, which may be in use, can kill it
	opened   time.Time
}

// Len returns how many cursors are open.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// Oldest returns the n cursors that were opened first, in that order.
func (r *Registry) Oldest(n int) []stats.Cursor {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.all))
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b openCursor) int { return a.opened.Compare(b.opened) })
	out := make([]stats.Cursor, min(n, len(all)))
	for i := range out {
		c := &all[i]
		out[i] = stats.Cursor{ID: c.id, Namespace: c.db + "." + c.coll, Addr: c.server.Addr(), Opened: c.opened}
	}
	return out
}

// add reports false, and does nothing, after Close: nobody would see to the cursor any more.
func (r *Registry) add(c *Cursor, at openCursor) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		return false
	}
	at.opened = time.Now()
	r.all[c] = at
	return true
}

func (r *Registry) remove(c *Cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, c)
}

// Unread takes over a cursor that nobody will read, of a command of the client's executor: its
// server is told later.
func (r *Registry) Unread(db, coll string, id int64, server *topology.Server) {
	r.orphans.add(&remains{exec: r.exec, openCursor: openCursor{id: id, db: db, coll: coll, server: server}}, false,
		errUnwound)
}

// Close asks the servers to forget all open cursors, and waits for what happens in the background,
// until ctx ends. For the open ones, a server that does not answer is not waited for longer than
// closeTimeout in all: servers forget idle cursors by themselves.
func (r *Registry) Close(ctx context.Context) {
	r.killAll(ctx)
	r.background.Close(ctx)
}

func (r *Registry) killAll(ctx context.Context) {
	r.mu.Lock()
	all := r.all
	r.all = nil
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	for _, c := range all {
		if c.pinned || ctx.Err() != nil {
			continue
		}
		left := remains{exec: r.exec, openCursor: c}
		left.kill(ctx, exec.Limit{})
	}
	r.orphans.close(ctx)
}

// closeTimeout bounds how long closing waits for servers.
const closeTimeout = 2 * time.Second
