package allium

import (
	"context"
	"sync"
	"time"

	"allium/internal/command"
	"allium/internal/exec"
	"allium/internal/topology"
)

// openCursors are the cursors that servers hold for a client, so that closing the client can free them.
type openCursors struct {
	mu  sync.Mutex
	all map[*cursor]openCursor
}

// openCursor says where a cursor is. It does not change while the cursor is open, unlike the cursor itself, which belongs to
// the goroutine that reads it.
type openCursor struct {
	id       int64
	db, coll string
	server   *topology.Server
	pinned   bool // only its own connection, which may be in use, can kill it
}

func (o *openCursors) add(c *cursor, at openCursor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*cursor]openCursor{}
	}
	o.all[c] = at
}

func (o *openCursors) remove(c *cursor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
}

// kill asks the servers to forget all open cursors. A server that does not answer is not waited for longer than
// endTimeout in all: servers forget idle cursors by themselves.
func (o *openCursors) kill(ctx context.Context, x *exec.Executor) {
	o.mu.Lock()
	all := o.all
	o.all = nil
	o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	for _, c := range all {
		if c.pinned || ctx.Err() != nil {
			continue
		}
		op := exec.Op{Command: &command.KillCursors{Collection: c.coll, ID: c.id}, DB: c.db, Kind: exec.Read, Server: c.server, NoMaxTime: true, NoSession: true}
		if res, err := x.RunClosing(ctx, &op); err == nil {
			res.Release()
		}
	}
}

// endTimeout bounds how long a closing client waits for servers, for its cursors and again for its sessions.
const endTimeout = 2 * time.Second
