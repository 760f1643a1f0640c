package campaign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/leaks"
	"allium/mongotest"
)

// user and password are the planted credential of histories with authentication.
const (
	user     = "campaign"
	password = "swordfish-7f3a"
)

// Stats is what a history consisted of.
type Stats struct {
	Simulated  time.Duration
	Operations int            // calls of the driver by actors
	Failed     int            // those that returned an error
	Commands   int            // commands that the driver sent for them
	Faults     map[string]int // steps of the adversary, by kind
	Work       map[string]int // operations, by the actor's kind
	Acked      int            // writes that were acknowledged
	Unknown    int            // writes whose outcome the caller could not tell
	Events     int            // that followers received
	Handled    int            // changes that consumers handled or parked
	Migrated   int            // steps of migrations that took effect
	Errors     map[string]int // errors, by type
	Cursors    map[string]int // cursors that were left to the servers, by the reason
	Open       map[string]int // transactions that were, by the reason
	Rotated    map[string]int // complete rotations of certificates, by whose
	Refused    int            // operations that met a certificate while it had to be refused
	Asked      int            // passwords that clients asked for
}

func newStats() Stats {
	return Stats{Faults: map[string]int{}, Work: map[string]int{}, Errors: map[string]int{}, Cursors: map[string]int{},
		Open: map[string]int{}, Rotated: map[string]int{}}
}

// Add adds the figures of another history.
func (s *Stats) Add(o Stats) {
	s.Simulated += o.Simulated
	s.Operations += o.Operations
	s.Failed += o.Failed
	s.Commands += o.Commands
	s.Acked += o.Acked
	s.Unknown += o.Unknown
	s.Events += o.Events
	s.Handled += o.Handled
	s.Migrated += o.Migrated
	s.Refused += o.Refused
	s.Asked += o.Asked
	for _, m := range []struct{ to, from map[string]int }{{s.Faults, o.Faults}, {s.Work, o.Work}, {s.Errors, o.Errors},
		{s.Cursors, o.Cursors}, {s.Open, o.Open}, {s.Rotated, o.Rotated}} {
		for k, n := range m.from {
			m.to[k] += n
		}
	}
}

// Outcome is what came of a history.
type Outcome struct {
	Plan       *Plan
	Stats      Stats
	Violations []string // sorted; empty: all promises were kept
	Trace      []string // what happened, if it was asked for
}

// world is a history that runs.
type world struct {
	plan    *Plan
	d       *mongotest.Deployment
	start   time.Time
	clients []*client
	quiet   chan struct{} // closed when the faults are over
	trace   bool

	rotation *rotation // nil unless certificates are in files

	mu         sync.Mutex
	stats      Stats
	violations map[string]int
	lines      []string
	hist       history
	ended      bool   // all clients have been closed
	lag        *lag   // nil in simulated time
	password   string // the one that is right now
	cursors    map[int64]*cursor
	getMores   map[int64]int64    // cursors by the requests that are under way for them
	txns       map[string]*traced // by lsid
	inTxn      map[int64]*traced  // by the requests that are under way
	held       map[string]holdUp  // commands that will be late, by lsid
}

// violation notes that a promise was broken.
func (w *world) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.violations) < 50 || w.violations[text] > 0 {
		w.violations[text]++
	}
	w.logLocked("VIOLATION " + text)
}

func (w *world) log(format string, args ...any) {
	if !w.trace {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLocked(fmt.Sprintf(format, args...))
}

func (w *world) logLocked(text string) {
	if w.trace && len(w.lines) < 200_000 {
		w.lines = append(w.lines, fmt.Sprintf("%12v %s", time.Since(w.start).Round(time.Microsecond), text))
	}
}

// client is one of the clients; closeClient steps replace what is in it.
type client struct {
	w    *world
	id   int
	plan ClientPlan

	charges charges

	mu     sync.Mutex
	c      *allium.Client
	closed []*usage
	usage  *usage
}

// observer returns a client that takes no part in the history.
func (w *world) observer() *client {
	return &client{w: w, id: -1, plan: ClientPlan{MaxPool: 10, Heartbeat: 30 * time.Second}}
}

func (c *client) get() *allium.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.c
}

// usage counts a client's connections and commands by its events.
type usage struct {
	w        *world
	charges  *charges
	client   int
	most     int
	mu       sync.Mutex
	open     map[string]int
	out      map[string]map[int64]bool
	started  int
	finished int
	instant  time.Time // of the newest checkout, in simulated time
	spins    int       // checkouts at that instant
}

// mostAtOnce is how many checkouts may begin at one instant of simulated time. All actors together
// need some hundred; a call that tries again without a pause and without a bound needs any number.
const mostAtOnce = 10_000

// pace notes that a checkout begins. It holds up one of a call that does nothing else, so that the
// clock of a simulated history goes on.
func (u *usage) pace() {
	if u.w.plan.Real {
		return
	}
	u.mu.Lock()
	if now := time.Now(); !now.Equal(u.instant) {
		u.instant, u.spins = now, 0
	}
	u.spins++
	spins := u.spins > mostAtOnce
	u.mu.Unlock()
	if spins {
		u.w.violation("client %d: more than %d checkouts at one instant: a call tries again without a pause or a bound",
			u.client, mostAtOnce)
		time.Sleep(time.Second)
	}
}

func (u *usage) monitors(o *allium.ClientOptions) {
	count := func(addr string, d int) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.open[addr] += d
		if u.open[addr] > u.most {
			u.w.violation("client %d: more than %d connections in the pool of a server", u.client, u.most)
		}
	}
	o.PoolMonitor = &event.PoolMonitor{
		PoolReady:   func(*event.PoolReady) { u.charges.meet("PoolReady") },
		PoolCleared: func(*event.PoolCleared) { u.charges.meet("PoolCleared") },
		ConnectionCreated: func(e *event.ConnectionCreated) {
			count(e.Addr, 1)
			u.charges.meet("ConnectionCreated")
		},
		ConnectionReady: func(*event.ConnectionReady) { u.charges.meet("ConnectionReady") },
		ConnectionClosed: func(e *event.ConnectionClosed) {
			count(e.Addr, -1)
			u.charges.meet("ConnectionClosed")
		},
		ConnectionCheckOutStarted: func(*event.ConnectionCheckOutStarted) {
			u.pace()
			u.charges.meet("ConnectionCheckOutStarted")
		},
		ConnectionCheckedOut: func(e *event.ConnectionCheckedOut) {
			defer u.charges.meet("ConnectionCheckedOut") // the connection is checked in again then
			u.mu.Lock()
			defer u.mu.Unlock()
			if u.out[e.Addr] == nil {
				u.out[e.Addr] = map[int64]bool{}
			}
			if u.out[e.Addr][e.ConnectionID] {
				u.w.violation("client %d: a connection was checked out twice", u.client)
			}
			u.out[e.Addr][e.ConnectionID] = true
		},
		ConnectionCheckedIn: func(e *event.ConnectionCheckedIn) {
			defer u.charges.meet("ConnectionCheckedIn")
			u.mu.Lock()
			defer u.mu.Unlock()
			if !u.out[e.Addr][e.ConnectionID] {
				u.w.violation("client %d: a connection was returned that was not checked out", u.client)
			}
			delete(u.out[e.Addr], e.ConnectionID)
		},
	}
	o.CommandMonitor = &event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStarted) {
			u.w.search("a command event", e.Command)
			u.w.cursorAsked(e)
			u.mu.Lock()
			u.started++
			u.mu.Unlock()
			u.w.txnStarted(e)
			failsFor(ctx) // nothing is sent then, and the command ends with an error
			u.charges.meet("CommandStarted")
			meetOthers(ctx)
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			u.ended()
			u.w.cursorAnswered(u, e)
			u.w.txnEnded(e.CommandInfo, e.Reply, nil)
			u.charges.meet("CommandSucceeded")
		},
		Failed: func(_ context.Context, e *event.CommandFailed) {
			u.ended()
			u.w.cursorFailed(e)
			u.w.txnEnded(e.CommandInfo, nil, e.Failure)
			u.w.searchText("a command event", fmt.Sprint(e.Failure))
			u.charges.meet("CommandFailed")
		},
	}
	o.ServerMonitor = u.charges.serverMonitor()
	o.Logger = slog.New(failingHandler{u.charges})
	o.LogLevels = map[allium.LogComponent]slog.Level{allium.LogServerSelection: slog.LevelDebug,
		allium.LogTopology: slog.LevelDebug}
}

func (u *usage) ended() {
	u.mu.Lock()
	u.finished++
	u.mu.Unlock()
}

// idle is called when nobody uses the client: it has returned all of its connections.
func (u *usage) idle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for addr, out := range u.out {
		if len(out) != 0 {
			u.w.violation("client %d: %d connections to %s are checked out when nobody uses them", u.client, len(out),
				addr)
		}
	}
	if u.started != u.finished {
		u.w.violation("client %d: %d commands have started, %d have ended when nobody waits for one", u.client,
			u.started, u.finished)
	}
}

// connections returns how many connections the client's pools have.
func (u *usage) connections() (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, open := range u.open {
		n += open
	}
	return n
}

// left reports whether the client has no connection, and no command goes on.
func (u *usage) left() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, n := range u.open {
		if n != 0 {
			return false
		}
	}
	return u.started == u.finished
}

// gone is called a moment after Close has returned, while callers may still be on their way out:
// all connections are closed, also those that were in use, and no command goes on.
func (u *usage) gone() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for addr, n := range u.open {
		if n != 0 {
			u.w.violation("client %d: %d connections to %s are still open %v after Close", u.client, n, addr,
				afterClose)
		}
	}
	if n := u.started - u.finished; n != 0 {
		u.w.violation("client %d: %d commands still run %v after Close", u.client, n, afterClose)
	}
}

// afterClose is how long operations that Close has interrupted may take to end: as long as one that
// aborts its transaction.
const afterClose = 500 * time.Millisecond

// check is called when the client has been closed.
func (u *usage) check() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for addr, n := range u.open {
		if n != 0 {
			u.w.violation("client %d: %d connections to %s are open after Close", u.client, n, addr)
		}
	}
	for addr, out := range u.out {
		if len(out) != 0 {
			u.w.violation("client %d: %d connections to %s are checked out after Close", u.client, len(out), addr)
		}
	}
	if u.started != u.finished {
		u.w.violation("client %d: %d commands have started, %d have ended", u.client, u.started, u.finished)
	}
	u.w.mu.Lock()
	u.w.stats.Commands += u.started
	u.w.mu.Unlock()
}

// search looks for planted secrets in a document.
func (w *world) search(where string, doc bson.Raw) {
	w.searchText(where, string(doc))
}

func (w *world) searchText(where, text string) {
	if name := leaks.Find(text); name != "" {
		w.violation("%s is in %s", name, where)
	}
}

func (c *client) open() error {
	u := &usage{w: c.w, charges: &c.charges, client: c.id, most: c.plan.MaxPool, open: map[string]int{},
		out: map[string]map[int64]bool{}}
	o := allium.ClientOptions{
		Dialer: c.w.d, MaxPoolSize: &c.plan.MaxPool, HeartbeatInterval: &c.plan.Heartbeat,
		WriteConcern: consistency.Majority(), ReadConcern: &consistency.ReadConcern{Level: consistency.ReadMajority},
		MaxIdleTime: new(5 * time.Minute),
	}
	if c.plan.Timeout > 0 {
		o.Timeout = &c.plan.Timeout
	}
	if c.plan.Compress != "" {
		o.Compressors = []string{c.plan.Compress}
	}
	if c.plan.Polling {
		o.ServerMonitoringMode = allium.MonitoringPoll
	}
	switch {
	case c.w.rotation != nil:
		o.TLSFiles = &c.w.rotation.servers.files
	case c.w.plan.TLS:
		o.TLS = c.w.d.TLSConfig()
	}
	if c.w.plan.Real && c.id >= 0 { // the others set up and look, and have all the time
		o.ServerSelectionTimeout = new(5 * time.Second)
		o.ConnectTimeout = new(connectTimeout)
	}
	switch {
	case c.asks():
		o.Credentials = func(context.Context) (auth.Credential, error) {
			c.w.mu.Lock()
			c.w.stats.Asked++
			c.w.mu.Unlock()
			return *c.w.credential(), nil
		}
	case c.w.plan.Auth:
		o.Credential = c.w.credential()
	}
	u.monitors(&o)
	cl, err := allium.Open(c.w.d.URI(), o)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.c, c.usage = cl, u
	c.mu.Unlock()
	return nil
}

// asks reports whether the client asks for its password.
func (c *client) asks() bool { return c.w.plan.Auth && c.plan.Asks }

// credential returns the one that is right now.
func (w *world) credential() *auth.Credential {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &auth.Credential{Username: user, Password: auth.Secret(w.password), Source: "admin"}
}

// close closes the client as it is now, while operations run or not.
func (c *client) close() { c.closeWithin(5 * time.Second) }

func (c *client) closeWithin(patience time.Duration) {
	c.mu.Lock()
	cl, u := c.c, c.usage
	c.closed = append(c.closed, u)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	watch := c.w.stopwatch()
	err := c.w.request("Close", func() error { return cl.Close(ctx) })
	if took := watch.took(); took > patience+watch.grace() {
		c.w.violation("Close with a context of %v took %v", patience, took)
	}
	c.w.log("client %d closed: %v", c.id, err)
	// Its context may have ended, and an abort takes half a second more.
	const leave = afterClose + 100*time.Millisecond
	if !c.w.plan.Real {
		time.Sleep(leave)
	}
	for watch = c.w.stopwatch(); c.w.plan.Real && !u.left() && watch.took() < leave+watch.grace(); {
		time.Sleep(5 * time.Millisecond)
	}
	u.gone()
}

// stopwatch measures a call of the driver.
type stopwatch struct {
	w       *world
	start   time.Time
	lagging time.Duration
}

func (w *world) stopwatch() stopwatch {
	now := time.Now()
	return stopwatch{w, now, w.lag.upTo(now)}
}

// grace is how much later than its deadline a call may return: what the driver spends on telling
// a server to forget a cursor or a transaction. In real time every step of it takes a while, and
// as long as the machine had no processor for this process, it cannot return.
func (s stopwatch) grace() time.Duration {
	if s.w.plan.Real {
		return time.Second + s.waited()
	}
	return 100 * time.Millisecond
}

// waited returns how long the process has waited for a processor.
func (s stopwatch) waited() time.Duration { return s.w.lag.upTo(time.Now()) - s.lagging }

func (s stopwatch) took() time.Duration { return time.Since(s.start) }

func (p *Plan) options() []mongotest.Option {
	opts := []mongotest.Option{mongotest.ElectionDelay(p.Election), mongotest.ReplicationLag(p.Lag)}
	switch p.Topology {
	case ReplSet:
		opts = append(opts, mongotest.ReplicaSet(3))
	case Sharded:
		opts = append(opts, mongotest.Sharded(2, 3), mongotest.ShardMembers(3))
	case LB:
		opts = append(opts, mongotest.LoadBalanced(2), mongotest.ShardMembers(3))
	}
	if !p.Real {
		opts = append(opts, mongotest.InMemory())
	}
	if p.Auth {
		opts = append(opts, mongotest.Auth(user, password))
	}
	if p.TLS {
		opts = append(opts, mongotest.TLS())
	}
	return opts
}

// newWorld starts the deployment, the clients and what they work on.
func newWorld(p *Plan, trace bool) (*world, error) {
	d, err := mongotest.Open(p.options()...)
	if err != nil {
		return nil, err
	}
	w := &world{plan: p, d: d, start: time.Now(), quiet: make(chan struct{}), trace: trace, stats: newStats(),
		violations: map[string]int{}, password: password, cursors: map[int64]*cursor{}, getMores: map[int64]int64{},
		txns: map[string]*traced{}, inTxn: map[int64]*traced{}, held: map[string]holdUp{}}
	d.OnCommand(w.holdUp)
	w.hist.init()
	if p.Real {
		w.lag = startLag()
	}
	if p.rotates() {
		if w.rotation, err = newRotation(w); err != nil {
			return w, err
		}
	}
	for i, cp := range p.Clients {
		c := &client{w: w, id: i, plan: cp}
		if w.trace {
			c.charges.log = func(format string, args ...any) {
				w.log("client %d: %s", c.id, fmt.Sprintf(format, args...))
			}
		}
		if err := c.open(); err != nil {
			return w, err
		}
		w.clients = append(w.clients, c)
	}
	if w.rotation != nil {
		if err := w.rotation.begin(); err != nil {
			return w, err
		}
	}
	if err := w.prepare(); err != nil {
		return w, fmt.Errorf("prepare: %w", err)
	}
	return w, nil
}

const (
	lists    = 4
	accounts = 5
	opening  = 1000 // of an account
	static   = 300  // documents of the collection that scanners read
	dbName   = "campaign"
)

func (w *world) prepare() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a busy machine takes its time
	defer cancel()
	setup := w.observer()
	if err := setup.open(); err != nil {
		return err
	}
	defer func() {
		setup.close()
		setup.usage.check()
	}()
	c := setup.get()
	db := c.Database(dbName)
	if w.plan.Topology == Sharded {
		admin := c.Database("admin")
		for _, coll := range shardedColls {
			if _, err := admin.RunCommand(ctx, bson.D{{Key: "shardCollection", Value: dbName + "." + coll},
				{Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}}); err != nil {
				return err
			}
			for _, at := range splitPoints[coll] {
				if _, err := admin.RunCommand(ctx, bson.D{{Key: "split", Value: dbName + "." + coll},
					{Key: "middle", Value: bson.D{{Key: "_id", Value: at}}}}); err != nil {
					return err
				}
			}
		}
	}
	var docs []bson.D
	for i := range lists {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "tokens", Value: bson.A{}}})
	}
	if _, err := allium.CollectionOf[bson.D](db, "lists").InsertMany(ctx, docs); err != nil {
		return err
	}
	docs = nil
	for i := range accounts {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "balance", Value: opening}})
	}
	if _, err := allium.CollectionOf[bson.D](db, "accounts").InsertMany(ctx, docs); err != nil {
		return err
	}
	docs = nil
	for i := range static {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "text", Value: strings.Repeat("x", i)}})
	}
	if _, err := allium.CollectionOf[bson.D](db, "static").InsertMany(ctx, docs); err != nil {
		return err
	}
	docs = nil
	for _, a := range w.plan.Actors {
		docs = append(docs, bson.D{{Key: "_id", Value: a.ID}, {Key: "n", Value: 0}})
	}
	docs = append(docs, bson.D{{Key: "_id", Value: "shared"}, {Key: "n", Value: 0}})
	if _, err := allium.CollectionOf[bson.D](db, "counters").InsertMany(ctx, docs); err != nil {
		return err
	}
	if err := errors.Join(w.preparePatterns(ctx, db), w.prepareChanges(ctx, c),
		w.prepareMigrations(ctx, db)); err != nil {
		return err
	}
	odd, files := oddDocuments()
	for coll, docs := range map[string][]bson.D{"odd": odd, "fs.files": files, "heaps": {byID(taken)},
		"left": {byID("first")}, "herds": w.herds(), "events": {byID("first")}} {
		if _, err := allium.CollectionOf[bson.D](db, coll).InsertMany(ctx, docs); err != nil {
			return err
		}
	}
	return nil
}

// herds returns the documents that actors change all at once.
func (w *world) herds() (docs []bson.D) {
	docs = append(docs, byID("nobody's"))
	for _, a := range w.plan.Actors {
		for i := range herd {
			if a.Kind == "many" {
				docs = append(docs, bson.D{{Key: "_id", Value: fmt.Sprintf("d-%02d-%02d", i, a.ID)},
					{Key: "herd", Value: a.ID}, {Key: "n", Value: 0}, {Key: "changes", Value: bson.A{}}})
			}
		}
	}
	return docs
}

// splitPoints are where the sharded collections are split; moveChunk steps move what is between.
var splitPoints = map[string][]any{"static": {50, 150, 250}, "events": {"w-07", "w-1"}, "herds": {"d-04", "d-08"},
	"heaps": {"h-2", "h-5"}}

// shardedColls are the sharded collections.
var shardedColls = []string{"static", "events", "herds", "heaps"}

// result collects what came of it.
func (w *world) result() *Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := &Outcome{Plan: w.plan, Stats: w.stats, Trace: w.lines}
	for v, n := range w.violations {
		if n > 1 {
			v += fmt.Sprintf(" (%d times)", n)
		}
		o.Violations = append(o.Violations, v)
	}
	slices.Sort(o.Violations)
	return o
}
