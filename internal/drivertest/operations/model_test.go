package operations

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/norace"
	"allium/mongoerr"
	"allium/mongotest"
)

// The model: a few documents, each with a list that operations only ever append to, a token of its
// own each. What a list holds in the end, and what reads saw on the way, tells what became of each
// write:
//
//   - a write that was acknowledged is there once: no update is lost, none is applied twice;
//   - one that was aborted is not there, and was never read by others: no dirty read;
//   - one whose outcome is unknown is there once or not at all, and so are all others of its
//     transaction;
//   - a read saw a prefix of the list, then the transaction's own writes;
//   - the reads of a transaction saw all or nothing of another transaction.
//
// Steps of several clients are interleaved with faults, one after the other on one goroutine and in
// a bubble's time, so that a plan always runs in the same way and rapid can shrink it. Run more of
// them with
//
//	go test -run TestModelTransactions -rapid.checks 10000

func init() { flag.Set("rapid.checks", modelChecks) }

const modelChecks = "20" // what go test without a flag has time for

// stepKind is what a step of a plan does.
type stepKind int

const (
	stepBegin stepKind = iota
	stepWrite
	stepRead
	stepCommit
	stepAbort
	stepTransact // a whole transaction by Transact: writes to two lists and a read of each
	stepFault
)

// modelStep is a step of a plan.
type modelStep struct {
	Kind   stepKind
	Client int
	Key    int
	Other  int // the second list of Transact
	Fault  int
}

// GoString is how a failing plan is printed.
func (s modelStep) GoString() string {
	switch s.Kind {
	case stepFault:
		return faults[s.Fault].name
	case stepTransact:
		return fmt.Sprintf("client %d: transact on %d and %d", s.Client, s.Key, s.Other)
	}
	return fmt.Sprintf("client %d: %s %d", s.Client, [...]string{"begin", "write", "read", "commit", "abort"}[s.Kind], s.Key)
}

const (
	modelClients = 3
	modelKeys    = 3
)

func genStep() *rapid.Generator[modelStep] {
	return rapid.Custom(func(t *rapid.T) modelStep {
		// What a plan needs most is there twice.
		kind := rapid.SampledFrom([]stepKind{stepBegin, stepWrite, stepWrite, stepRead, stepCommit, stepAbort, stepTransact, stepFault, stepFault}).Draw(t, "kind")
		return modelStep{Kind: kind, Client: rapid.IntRange(0, modelClients-1).Draw(t, "client"), Key: rapid.IntRange(0, modelKeys-1).Draw(t, "key"),
			Other: rapid.IntRange(0, modelKeys-1).Draw(t, "other"), Fault: rapid.IntRange(0, len(faults)-1).Draw(t, "fault")}
	})
}

// faults are what goes wrong. None of them lies: an error that says that a transaction is gone only
// answers commands that can tell.
var faults = []struct {
	name string
	do   func(d *mongotest.Deployment)
}{
	{"step down", (*mongotest.Deployment).StepDown},
	{"close all connections", func(d *mongotest.Deployment) {
		for _, n := range d.Nodes() {
			n.CloseConnections()
		}
	}},
	{"restart a node", func(d *mongotest.Deployment) {
		if n := d.Primary(); n != nil {
			n.Kill()
			if err := n.Restart(); err != nil {
				panic(err)
			}
		}
	}},
	{"lose the next reply", func(d *mongotest.Deployment) {
		if n := d.Primary(); n != nil {
			n.SetNetFaults(mongotest.NetFaults{DropAfter: 1, Times: 1})
		}
	}},
	{"a write loses its connection", fail(mongotest.Fail{Commands: []string{"update"}, Times: 1, CloseConnection: true})},
	{"two writes lose their connections", fail(mongotest.Fail{Commands: []string{"update"}, Times: 2, CloseConnection: true})},
	{"a commit loses its connection", fail(mongotest.Fail{Commands: []string{"commitTransaction"}, Times: 1, CloseConnection: true})},
	{"two commits lose their connections", fail(mongotest.Fail{Commands: []string{"commitTransaction"}, Times: 2, CloseConnection: true})},
	{"a commit meets a shutdown", fail(mongotest.Fail{Commands: []string{"commitTransaction"}, Times: 1, Code: 91, Labels: []string{"RetryableWriteError"}})},
	{"commits are not confirmed", fail(mongotest.Fail{Commands: []string{"commitTransaction"}, Times: 2, WriteConcernError: bson.D{
		{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}})},
	{"a commit is slow", fail(mongotest.Fail{Commands: []string{"commitTransaction"}, Times: 1, Block: 10 * time.Second})},
	{"an abort loses its connection", fail(mongotest.Fail{Commands: []string{"abortTransaction"}, Times: 2, CloseConnection: true})},
	{"a write conflicts", fail(mongotest.Fail{Commands: []string{"update"}, Times: 1, Code: 112, Labels: []string{"TransientTransactionError"}})},
	{"a write meets an election", fail(mongotest.Fail{Commands: []string{"update"}, Times: 1, Code: 11602, Labels: []string{"RetryableWriteError"}})},
	{"a read meets an election", fail(mongotest.Fail{Commands: []string{"find"}, Times: 1, Code: 11602, Labels: []string{"TransientTransactionError"}})},
	{"a write is slow", fail(mongotest.Fail{Commands: []string{"update"}, Times: 1, Block: 10 * time.Second})},
}

func fail(f mongotest.Fail) func(*mongotest.Deployment) {
	return func(d *mongotest.Deployment) { d.FailCommand(f) }
}

// outcome is what the client learnt of a transaction, or of a write outside of one.
type outcome int

const (
	aborted outcome = iota
	unknown
	committed
)

func (o outcome) String() string { return [...]string{"aborted", "of unknown outcome", "committed"}[o] }

// entry is a token in a list.
type entry struct {
	key   int
	token int32
}

// saw is what a read saw of a list.
type saw struct {
	key  int
	list []int32
}

// record is what a client did in a transaction, or in one operation outside of one.
type record struct {
	name    string
	outcome outcome
	writes  []entry
	reads   []saw
}

// list is the document of the model.
type list struct {
	ID     int     `bson:"_id"`
	Tokens []int32 `bson:"tokens"`
}

// world runs a plan.
type world struct {
	d       *mongotest.Deployment
	actors  []*actor
	token   int32
	history []*record
}

// actor is a client with its session.
type actor struct {
	*world
	client *allium.Client
	coll   *allium.Collection[list]
	sess   *allium.Session
	txn    *record // nil outside of a transaction
}

// patience bounds an operation: a lock of another actor's transaction is not given up while it
// waits, since all take turns.
const patience = 3 * time.Second

func newWorld(kind mongotest.Option) (*world, error) {
	d, err := mongotest.Open(mongotest.InMemory(), kind)
	if err != nil {
		return nil, err
	}
	w := &world{d: d}
	for range modelClients {
		a, err := w.connect()
		if err != nil {
			return w, err
		}
		w.actors = append(w.actors, a)
	}
	for key := range modelKeys {
		if _, err := w.actors[0].coll.InsertOne(context.Background(), list{ID: key, Tokens: []int32{}}); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *world) connect() (*actor, error) {
	client, err := allium.Open(w.d.URI(), allium.ClientOptions{Dialer: w.d, HeartbeatInterval: new(500 * time.Millisecond),
		WriteConcern: consistency.Majority(), ReadConcern: &consistency.ReadConcern{Level: "majority"}})
	if err != nil {
		return nil, err
	}
	sess, err := client.StartSession(allium.SessionOptions{Transaction: allium.TransactionOptions{ReadConcern: &consistency.ReadConcern{Level: "snapshot"}}})
	return &actor{world: w, client: client, coll: allium.CollectionOf[list](client.Database("model"), "lists"), sess: sess}, err
}

func (w *world) close() {
	ctx := context.Background()
	for _, a := range w.actors {
		a.sess.End(ctx)
		a.client.Close(ctx)
	}
	w.d.Stop()
}

// run runs a plan and returns what is wrong with what came of it.
func (w *world) run(plan []modelStep) error {
	for _, s := range plan {
		a := w.actors[s.Client]
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		switch s.Kind {
		case stepBegin:
			a.begin()
		case stepWrite:
			a.write(ctx, s.Key)
		case stepRead:
			a.read(ctx, s.Key)
		case stepCommit:
			a.commit(ctx)
		case stepAbort:
			a.abort(ctx)
		case stepTransact:
			a.transact(ctx, s.Key, s.Other)
		case stepFault:
			faults[s.Fault].do(w.d)
		}
		cancel()
	}
	return w.check()
}

func (a *actor) note(name string) *record {
	r := &record{name: fmt.Sprintf("%s %d", name, len(a.history))}
	a.history = append(a.history, r)
	return r
}

func (a *actor) begin() {
	if a.txn != nil {
		return
	}
	if err := a.sess.StartTransaction(); err != nil {
		panic(err)
	}
	a.txn = a.note("transaction")
}

// push appends a new token to a list.
func (a *actor) push(ctx context.Context, r *record, key int, token int32) error {
	res, err := a.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: key}}, bson.M{"$push": bson.M{"tokens": token}})
	if err == nil && res.ModifiedCount != 1 {
		panic(fmt.Sprintf("%s: %+v", r.name, res))
	}
	return err
}

func (a *actor) look(ctx context.Context, r *record, key int) error {
	doc, err := a.coll.FindOne(ctx, bson.D{{Key: "_id", Value: key}})
	if err == nil {
		r.reads = append(r.reads, saw{key, doc.Tokens})
	}
	return err
}

func (a *actor) write(ctx context.Context, key int) {
	a.token++
	if a.txn == nil {
		r := a.note("write")
		r.writes = []entry{{key, a.token}}
		r.outcome = committed
		if a.push(ctx, r, key, a.token) != nil {
			r.outcome = unknown
		}
		return
	}
	a.txn.writes = append(a.txn.writes, entry{key, a.token})
	if a.push(allium.WithSession(ctx, a.sess), a.txn, key, a.token) != nil {
		a.abort(ctx)
	}
}

func (a *actor) read(ctx context.Context, key int) {
	if a.txn == nil {
		r := a.note("read")
		r.outcome = committed
		_ = a.look(ctx, r, key)
		return
	}
	if a.look(allium.WithSession(ctx, a.sess), a.txn, key) != nil {
		a.abort(ctx)
	}
}

func (a *actor) commit(ctx context.Context) {
	if a.txn == nil {
		return
	}
	r := a.txn
	a.txn = nil
	r.outcome = unknown
	for range 3 {
		err := a.sess.CommitTransaction(ctx)
		if err == nil {
			r.outcome = committed
			return
		}
		if !mongoerr.HasLabel(err, "UnknownTransactionCommitResult") {
			return
		}
	}
}

func (a *actor) abort(ctx context.Context) {
	if a.txn == nil {
		return
	}
	a.txn.outcome = aborted
	a.txn = nil
	if err := a.sess.AbortTransaction(ctx); err != nil {
		panic(err)
	}
}

func (a *actor) transact(ctx context.Context, one, two int) {
	if a.txn != nil {
		return
	}
	r := a.note("transact")
	a.token += 2
	r.writes = []entry{{one, a.token - 1}, {two, a.token}}
	r.outcome = committed
	err := a.sess.Transact(ctx, func(ctx context.Context) error {
		r.reads = nil // of an attempt that failed
		for _, w := range r.writes {
			if err := a.look(ctx, r, w.key); err != nil {
				return err
			}
			if err := a.push(ctx, r, w.key, w.token); err != nil {
				return err
			}
		}
		return a.look(ctx, r, one)
	})
	if err != nil {
		r.outcome = unknown
	}
}

// check lets everything settle and compares the lists with the history.
func (w *world) check() error {
	ctx := context.Background()
	w.d.ClearFailures()
	for _, n := range w.d.Nodes() {
		n.SetNetFaults(mongotest.NetFaults{})
	}
	for _, a := range w.actors {
		a.abort(ctx)
	}
	time.Sleep(2 * time.Minute) // transactions that were left behind expire
	reader, err := w.connect()
	if err != nil {
		return err
	}
	defer func() {
		reader.sess.End(ctx)
		reader.client.Close(ctx)
	}()
	final := map[int][]int32{}
	for key := range modelKeys {
		doc, err := reader.coll.FindOne(ctx, bson.D{{Key: "_id", Value: key}})
		if err != nil {
			return fmt.Errorf("final read: %w", err)
		}
		final[key] = doc.Tokens
	}
	return judge(w.history, final)
}

// judge compares what clients learnt with the final lists.
func judge(history []*record, final map[int][]int32) error {
	happened := map[*record]bool{}
	for _, r := range history {
		found := 0
		for _, e := range r.writes {
			n := 0
			for _, t := range final[e.key] {
				if t == e.token {
					n++
				}
			}
			if n > 1 {
				return fmt.Errorf("%s, %v: its write of %d to %d was applied %d times: %v", r.name, r.outcome, e.token, e.key, n, final[e.key])
			}
			found += n
		}
		switch {
		case r.outcome == committed && found != len(r.writes):
			return fmt.Errorf("%s was acknowledged, but of its writes %v only %d are there: %v", r.name, r.writes, found, final)
		case r.outcome == aborted && found != 0:
			return fmt.Errorf("%s was aborted, but of its writes %v %d are there: %v", r.name, r.writes, found, final)
		case found != 0 && found != len(r.writes):
			return fmt.Errorf("%s was applied in part: of its writes %v only %d are there: %v", r.name, r.writes, found, final)
		}
		happened[r] = found > 0
	}
	for _, r := range history {
		own := map[int32]bool{}
		for _, e := range r.writes {
			own[e.token] = true
		}
		seen := map[int]map[int32]bool{}
		for _, s := range r.reads {
			others := slices.DeleteFunc(slices.Clone(s.list), func(t int32) bool { return own[t] })
			if n := len(others); n > len(final[s.key]) || !slices.Equal(others, final[s.key][:n]) {
				return fmt.Errorf("%s read %v from %d, which others never left there: %v", r.name, s.list, s.key, final[s.key])
			}
			if seen[s.key] == nil {
				seen[s.key] = map[int32]bool{}
			}
			for _, t := range others {
				seen[s.key][t] = true
			}
			for i, t := range s.list { // own writes come last
				if own[t] && slices.ContainsFunc(s.list[i:], func(t int32) bool { return !own[t] }) {
					return fmt.Errorf("%s read %v from %d: a write of another's after its own", r.name, s.list, s.key)
				}
			}
		}
		for _, other := range history {
			if other == r || !happened[other] {
				continue
			}
			all, some := true, false
			for _, e := range other.writes {
				if seen[e.key] != nil {
					all = all && seen[e.key][e.token]
					some = some || seen[e.key][e.token]
				}
			}
			if some && !all {
				return fmt.Errorf("%s saw %s in part: writes %v, reads %v", r.name, other.name, other.writes, r.reads)
			}
		}
	}
	return nil
}

func TestModelTransactions(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); norace.Detecting && f.Value.String() == modelChecks {
		if err := f.Value.Set("5"); err != nil { // no two steps of a plan run at the same time
			t.Fatal(err)
		}
		defer f.Value.Set(modelChecks)
	}
	for name, kind := range map[string]mongotest.Option{"replicaset": mongotest.ReplicaSet(3), "sharded": mongotest.Sharded(1, 2)} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				plan := rapid.SliceOfN(genStep(), 1, 30).Draw(rt, "plan")
				var err error
				synctest.Test(t, func(*testing.T) {
					var w *world
					if w, err = newWorld(kind); w != nil {
						defer w.close()
					}
					if err == nil {
						err = w.run(plan)
					}
				})
				if err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// The judge finds what it is there to find.
func TestModelJudge(t *testing.T) {
	wrote := func(o outcome, entries ...entry) *record { return &record{name: "w", outcome: o, writes: entries} }
	read := func(reads ...saw) *record { return &record{name: "r", outcome: committed, reads: reads} }
	for name, tc := range map[string]struct {
		history []*record
		final   map[int][]int32
		want    bool
	}{
		"fine":          {[]*record{wrote(committed, entry{0, 1}, entry{1, 2}), read(saw{0, []int32{1}}, saw{1, []int32{2}})}, map[int][]int32{0: {1}, 1: {2}}, true},
		"lost":          {[]*record{wrote(committed, entry{0, 1})}, map[int][]int32{}, false},
		"twice":         {[]*record{wrote(unknown, entry{0, 1})}, map[int][]int32{0: {1, 1}}, false},
		"aborted":       {[]*record{wrote(aborted, entry{0, 1})}, map[int][]int32{0: {1}}, false},
		"in part":       {[]*record{wrote(unknown, entry{0, 1}, entry{1, 2})}, map[int][]int32{0: {1}}, false},
		"dirty read":    {[]*record{wrote(aborted, entry{0, 1}), read(saw{0, []int32{1}})}, map[int][]int32{}, false},
		"fractured":     {[]*record{wrote(committed, entry{0, 1}, entry{1, 2}), read(saw{0, []int32{1}}, saw{1, nil})}, map[int][]int32{0: {1}, 1: {2}}, false},
		"no prefix":     {[]*record{wrote(committed, entry{0, 1}), wrote(committed, entry{0, 2}), read(saw{0, []int32{2}})}, map[int][]int32{0: {1, 2}}, false},
		"own and other": {[]*record{wrote(committed, entry{0, 1}), {name: "t", outcome: committed, writes: []entry{{0, 2}}, reads: []saw{{0, []int32{1, 2}}}}}, map[int][]int32{0: {1, 2}}, true},
	} {
		if err := judge(tc.history, tc.final); (err == nil) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
