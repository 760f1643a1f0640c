package exec

import (
	"sync"
	"sync/atomic"
	"time"

	"allium/internal/command"
	"allium/internal/topology"
	"allium/stats"
)

// flights are the operations that have begun and not returned. The zero value is ready. It costs an
// operation two short critical sections and no memory of its own: entries are used again.
type flights struct {
	mu          sync.Mutex
	first, last *flight // in the order in which they began
	n           int
	free        *flight // linked by next
	spare       int     // how many are free
}

// maxSpare bounds how many entries a burst of operations leaves behind.
const maxSpare = 256

// flight is one operation in flight. The executor's lock guards all but what is atomic.
type flight struct {
	prev, next *flight
	cmd        command.Command
	db         string
	started    time.Time

	phase    atomic.Pointer[stats.Phase]
	server   atomic.Pointer[topology.Server]
	attempts atomic.Int32 // that failed
}

// What phase points to.
var (
	phaseSelection  = stats.PhaseSelection
	phaseCheckout   = stats.PhaseCheckout
	phaseEncryption = stats.PhaseEncryption
	phaseCommand    = stats.PhaseCommand
	phaseDecryption = stats.PhaseDecryption
	phaseDecoding   = stats.PhaseDecoding
	phaseBackoff    = stats.PhaseBackoff
)

// begin enters an operation.
func (fs *flights) begin(cmd command.Command, db string, started time.Time) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.free
	if f == nil {
		f = &flight{}
	} else {
		fs.free = f.next
		fs.spare--
	}
	f.cmd, f.db, f.started = cmd, db, started
	f.phase.Store(&phaseSelection)
	f.server.Store(nil)
	f.attempts.Store(0)
	f.prev, f.next = fs.last, nil
	if fs.last == nil {
		fs.first = f
	} else {
		fs.last.next = f
	}
	fs.last = f
	fs.n++
	return f
}

// end takes an operation out.
func (fs *flights) end(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.prev == nil {
		fs.first = f.next
	} else {
		f.prev.next = f.next
	}
	if f.next == nil {
		fs.last = f.prev
	} else {
		f.next.prev = f.prev
	}
	fs.n--
	f.cmd, f.prev, f.next = nil, nil, nil
	if fs.spare < maxSpare {
		f.next, fs.free = fs.free, f
		fs.spare++
	}
}

// InFlight returns how many operations are in flight, and the n of them that began first.
func (x *Executor) InFlight(n int) (int, []stats.Operation) {
	fs := &x.flights
	fs.mu.Lock()
	defer fs.mu.Unlock()
	out := make([]stats.Operation, 0, min(n, fs.n))
	for f := fs.first; f != nil && len(out) < n; f = f.next {
		o := stats.Operation{Command: f.cmd.Name(), Namespace: commandNamespace(f.cmd, f.db), Started: f.started,
			Phase: *f.phase.Load(), Attempts: int(f.attempts.Load())}
		if s := f.server.Load(); s != nil {
			o.Addr = s.Addr()
		}
		out = append(out, o)
	}
	return fs.n, out
}
