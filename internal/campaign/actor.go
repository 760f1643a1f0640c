package campaign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/encryption/kms"
	"allium/gridfs"
	"allium/internal/leaks"
	"allium/mongoerr"
	"allium/mongotest"
)

// actor is a goroutine that works on one client.
type actor struct {
	*world
	plan ActorPlan
	c    *allium.Client // of the operation in hand
	r    *rand.Rand     // of the operation in hand
	seq  int
}

// work is what an actor of each kind does once. It is called again and again.
var work = map[string]func(a *actor){
	"lister": (*actor).list, "bulk": (*actor).bulk, "weak": (*actor).weak, "counter": (*actor).count,
	"transaction": (*actor).transaction,
	"bank":        (*actor).transfer, "auditor": (*actor).audit, "inserter": (*actor).insert, "files": (*actor).file,
	"scanner": (*actor).scan,
	"causal":  (*actor).causal, "failing": (*actor).fail, "ending": (*actor).end, "careless": (*actor).careless,
	"many": (*actor).many, "odd": (*actor).odd,
	"keys": (*actor).keys, "tenant": (*actor).tenant, "saver": (*actor).save, "worker": (*actor).messages,
	"producer": (*actor).produce, "consumer": (*actor).consume, "migrator": (*actor).migrate,
}

// run works until the plan's length has passed.
func (a *actor) run() {
	if a.plan.Kind == "follower" {
		a.follow()
		return
	}
	for ; ; a.seq++ {
		a.begin()
		time.Sleep(about(a.r, a.world.plan.Think))
		if time.Since(a.start) > a.world.plan.Length {
			return
		}
		work[a.plan.Kind](a)
	}
}

func (a *actor) name() string { return fmt.Sprintf("%s %d.%d", a.plan.Kind, a.plan.ID, a.seq) }

// client returns the client of the operation in hand: sessions and cursors belong to one.
func (a *actor) client() *allium.Client { return a.c }

// begin prepares the next operation.
func (a *actor) begin() {
	a.c = a.clients[a.plan.Client].get()
	// Each operation has a stream of its own: what it draws depends on nothing that came before.
	a.r = stream(a.plan.Seed, uint64(a.seq))
}

func (a *actor) coll(name string) *allium.UntypedCollection {
	return a.client().Database(dbName).Collection(name)
}

// do calls the driver with a context that ends, by its deadline or by a cancel, and holds the
// call against it.
func (a *actor) do(what string, fn func(ctx context.Context) error) error {
	limits := []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second, 30 * time.Second,
		30 * time.Second, time.Minute}
	if a.world.plan.Real {
		limits = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second,
			5 * time.Second}
	}
	limit, cancels := pick(a.r, limits), a.r.IntN(8) == 0
	return a.within(what, limit, cancels, fn)
}

func (a *actor) within(what string, limit time.Duration, cancels bool, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	if cancels {
		cancel()
		ctx, cancel = context.WithCancel(context.Background())
		timer := time.AfterFunc(limit, cancel)
		defer timer.Stop()
	}
	defer cancel()
	watch := a.stopwatch()
	err := a.request(what, func() error { return fn(ctx) })
	took, grace := watch.took(), watch.grace()
	if took > limit+grace+max(cleanup[a.plan.Kind], cleanup[what]) {
		a.violation("%s %s with a limit of %v took %v: %v", a.plan.Kind, what, limit, took.Round(time.Millisecond), err)
	}
	a.judge(what, watch.start, err)
	a.log("%s: %s: %v", a.name(), what, err)
	return err
}

// cleanup says which work, by its kind or name, has to clean up when its context has ended, and how
// long the documents give the driver for it: to abort a transaction, which by hand two calls may
// try, AbortTransaction and End; to wait for chunks of a file and to delete them.
var cleanup = map[string]time.Duration{
	"transaction": 500 * time.Millisecond, byHand: time.Second, "bank": 500 * time.Millisecond,
	"auditor": 500 * time.Millisecond,
	"tenant":  500 * time.Millisecond, "worker": 500 * time.Millisecond,
	// 5 s each to store the position and to give the lease back; a second to note why a step
	// stopped.
	"consumer": 11 * time.Second, "migrator": 7 * time.Second,
	"files": 750 * time.Millisecond, "failing": 500 * time.Millisecond,
}

// byHand is the name of a transaction without Transact.
const byHand = "transaction by hand"

// rest pauses, at most until the context ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// judge holds an error of a call against the documented kinds.
func (a *actor) judge(what string, start time.Time, err error) {
	a.rotation.judge(a.plan.Kind+" "+what, start, err)
	kind := errorKind(err)
	if as[*mongoerr.AuthError](err) && a.clients[a.plan.Client].asks() {
		a.violation("%s %s: the password is refused although it could be asked for: %v", a.plan.Kind, what, err)
	}
	if a.plan.Kind == "keys" && kind == "" &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		kind = "context" // its methods return the end of a context as it is, as those of other packages do
	}
	a.mu.Lock()
	a.stats.Operations++
	a.stats.Work[a.plan.Kind]++
	if err != nil {
		a.stats.Failed++
		a.stats.Errors[kind]++
	}
	a.mu.Unlock()
	if kind == "" {
		a.violation("%s %s: an error of no documented kind: %T: %v", a.plan.Kind, what, err, err)
	}
	if err == nil {
		return
	}
	if name := leaks.Printed(err); name != "" {
		a.violation("%s %s: %s is in an error", a.plan.Kind, what, name)
	}
	if strings.Contains(fmt.Sprintf("%v", err), leaks.Document) {
		a.violation("%s %s: a document is in an error", a.plan.Kind, what)
	}
}

// errorKind returns the name of an error's type, "" if the documents have none for it.
func errorKind(err error) string {
	is := func(name string, ok bool) string {
		if ok {
			return name
		}
		return ""
	}
	for _, kind := range []string{
		is("none", err == nil),
		is("panic", errors.Is(err, errBomb)),
		is("Goexit", ownFailure(err)),
		is("given up", errors.Is(err, errGivesUp)),
		is("DecodeError", as[*mongoerr.DecodeError](err) || as[mongoerr.DecodeErrors](err)),
		is("TimeoutError", as[*mongoerr.TimeoutError](err)),
		is("BulkWriteError", as[*mongoerr.BulkWriteError](err)),
		is("WriteConcernError", as[*mongoerr.WriteConcernError](err)),
		is("WriteError", as[*mongoerr.WriteError](err)),
		is("ServerError", as[*mongoerr.ServerError](err)),
		is("AuthError", as[*mongoerr.AuthError](err)),
		is("PoolClearedError", as[*mongoerr.PoolClearedError](err)),
		is("SelectionError", as[*mongoerr.SelectionError](err)),
		is("ConnectionError", as[*mongoerr.ConnectionError](err)),
		is("kms.Error", as[*kms.Error](err)),
		is("ErrClientClosed", errors.Is(err, mongoerr.ErrClientClosed)),
		is("ErrNoDocuments", errors.Is(err, mongoerr.ErrNoDocuments)),
		is("fs.ErrNotExist", errors.Is(err, fs.ErrNotExist)),
		is("gridfs.CorruptError", as[*gridfs.CorruptError](err)),
	} {
		if kind != "" {
			return kind
		}
	}
	return ""
}

func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// wrote counts a write's outcome.
func (w *world) wrote(o outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch o {
	case acked, weak:
		w.stats.Acked++
	case unknown:
		w.stats.Unknown++
	}
}

// crewOf makes the plan's actors.
func (w *world) crewOf() (all []*actor) {
	for _, p := range w.plan.Actors {
		all = append(all, &actor{world: w, plan: p})
	}
	return all
}

// everybody runs the actors and the adversary to the end of the plan.
func (w *world) everybody() {
	var wg, followers sync.WaitGroup
	for _, a := range w.crewOf() {
		if a.plan.Kind == "follower" {
			followers.Go(a.run)
		} else {
			wg.Go(a.run)
		}
	}
	adv := &adversary{w: w, busy: map[*mongotest.Node]int{}}
	wg.Go(adv.run)
	wg.Wait()
	close(w.quiet)
	w.settle(&followers)
	followers.Wait()
}
