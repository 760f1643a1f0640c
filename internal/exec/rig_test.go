package exec

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/conn"
	"allium/internal/pool"
	"allium/internal/session"
	"allium/internal/topology"
	"allium/mongoerr"
	"allium/mongotest"
)

// rig is an executor over a deployment in memory whose servers answer as a script says. It lives in
// a bubble.
type rig struct {
	x        *Executor
	sessions session.Pool
	d        *mongotest.Deployment

	mu     sync.Mutex
	script []outcome // what the next commands meet; then they succeed
	seen   []sentCommand
}

// outcome is what becomes of one attempt.
type outcome struct {
	code    int32    // the server's error; 0: none
	labels  []string // of the reply
	drop    bool     // the connection breaks in place of a reply
	concern bool     // code is that of a write concern error
	delay   time.Duration
	base    any // baseBackoffMS
}

type sentCommand struct {
	name    string
	lsid    string
	txn     int64
	at      time.Time
	max     int64 // maxTimeMS
	addr    string
	concern string // the write concern, as w/wtimeout
	starts  bool   // startTransaction
	token   bool   // recoveryToken
}

// scripted are the commands that the script is for.
var scripted = []string{"find", "insert", "commitTransaction", "abortTransaction"}

var errDrop = errors.New("dropped")

func newRig(t *testing.T, cfg Config, topologyKind ...mongotest.Option) *rig {
	t.Helper()
	if topologyKind == nil {
		topologyKind = []mongotest.Option{mongotest.ReplicaSet(1)}
	}
	return newRigOn(t, cfg, false, topologyKind...)
}

// newRigOn is newRig, also behind a load balancer.
func newRigOn(t *testing.T, cfg Config, balanced bool, topologyKind ...mongotest.Option) *rig {
	t.Helper()
	r := &rig{d: mongotest.Start(t, append(topologyKind, mongotest.InMemory())...)}
	r.d.OnCommand(r.answer)
	topo, err := topology.New(&topology.Config{Seeds: r.d.Hosts(), LocalThreshold: topology.DefaultLocalThreshold, SelectionTimeout: 30 * time.Second,
		LoadBalanced: balanced, Pool: pool.Config{MaxPoolSize: 10, LoadBalanced: balanced, Conn: &conn.Config{Dialer: r.d, ConnectTimeout: 10 * time.Second, LoadBalanced: balanced}}})
	if err != nil {
		t.Fatal(err)
	}
	topo.Connect()
	t.Cleanup(func() { topo.Close(context.Background()) })
	cfg.Topology, cfg.Sessions, cfg.SelectionTimeout = topo, &r.sessions, 30*time.Second
	if cfg.Jitter == nil {
		cfg.Jitter = func() float64 { return 1 }
	}
	r.x = New(cfg)
	if _, _, err := topo.Select(t.Context(), &topology.Selection{Write: true}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return r
}

// answer plays the server.
func (r *rig) answer(c *mongotest.Command) (bson.Raw, error) {
	if !slices.Contains(scripted, c.Name) {
		return nil, nil
	}
	r.mu.Lock()
	s := sentCommand{name: c.Name, lsid: string(c.Body.Lookup("lsid").Value), at: time.Now(), addr: c.Node.Addr()}
	s.txn, _ = c.Body.Lookup("txnNumber").AsInt64()
	s.max, _ = c.Body.Lookup("maxTimeMS").AsInt64()
	s.starts, _ = c.Body.Lookup("startTransaction").Boolean()
	s.token = !c.Body.Lookup("recoveryToken").IsZero()
	if wc, ok := c.Body.Lookup("writeConcern").Document(); ok {
		w, _ := wc.Lookup("w").StringValue()
		ms, _ := wc.Lookup("wtimeout").AsInt64()
		s.concern = fmt.Sprintf("%s/%d", w, ms)
	}
	r.seen = append(r.seen, s)
	var o outcome
	if len(r.script) > 0 {
		o, r.script = r.script[0], r.script[1:]
	}
	r.mu.Unlock()
	time.Sleep(o.delay)
	if o.drop {
		return nil, errDrop
	}
	reply := bson.D{{Key: "ok", Value: 1}, {Key: "recoveryToken", Value: bson.D{{Key: "shard", Value: 1}}}}
	switch {
	case o.concern:
		reply = append(reply, bson.E{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: o.code}, {Key: "errmsg", Value: "scripted"}}})
	case o.code != 0:
		reply = bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: o.code}, {Key: "errmsg", Value: "scripted"}}
	}
	if o.base != nil {
		reply = append(reply, bson.E{Key: "baseBackoffMS", Value: o.base})
	}
	if o.labels != nil {
		reply = append(reply, bson.E{Key: "errorLabels", Value: o.labels})
	}
	return bson.Marshal(reply)
}

// play runs an operation against a script and returns the commands that were sent.
func (r *rig) play(ctx context.Context, op *Op, script ...outcome) ([]sentCommand, error) {
	return r.playing(script, func() error {
		res, err := r.x.Run(ctx, op)
		res.Release()
		return err
	})
}

// playing is play for what runs operations.
func (r *rig) playing(script []outcome, do func() error) ([]sentCommand, error) {
	r.mu.Lock()
	r.script, r.seen = slices.Clone(script), nil
	r.mu.Unlock()
	err := do()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen), err
}

// leaks says what an operation that has ended still holds: a connection, or an implicit session
// that is neither in the pool nor dirty. It empties the pool.
func (r *rig) leaks(sent []sentCommand, dirty bool) string {
	for _, d := range r.x.Topology.Description().Servers {
		if n := r.x.Topology.Server(d.Addr).Operations(); n != 0 {
			return "a connection"
		}
	}
	pooled := r.sessions.Drain()
	for _, s := range sent {
		if s.lsid != "" && !dirty && !slices.ContainsFunc(pooled, func(id bson.Raw) bool { return string(id) == s.lsid }) {
			return "a session"
		}
	}
	return ""
}

func commandNamed(t testing.TB, name string) command.Command {
	raw, err := bson.Marshal(bson.D{{Key: name, Value: "coll"}})
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := command.NewRun(nil, bson.Raw(raw))
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

func find(t testing.TB) *Op {
	return &Op{Command: commandNamed(t, "find"), DB: "db", Kind: Read, Retryable: true}
}
func insert(t testing.TB) *Op {
	return &Op{Command: commandNamed(t, "insert"), DB: "db", Kind: Write, Retryable: true}
}

func within(op *Op, d time.Duration) *Op {
	op.Limit = NewLimit(&d, "the timeout of the test")
	return op
}

func hasCode(err error, code int32) bool {
	var e *mongoerr.ServerError
	var w *mongoerr.WriteConcernError
	return errors.As(err, &e) && e.Code == code || errors.As(err, &w) && w.Code == code
}

const unlimited = math.MaxInt

// bodies returns the commands of a name as they were sent while do runs.
func (r *rig) bodies(t *testing.T, name string, do func()) (list []bson.Raw) {
	t.Helper()
	r.d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == name {
			r.mu.Lock()
			list = append(list, append(bson.Raw(nil), c.Body...))
			r.mu.Unlock()
		}
		return r.answer(c)
	})
	do()
	return list
}
