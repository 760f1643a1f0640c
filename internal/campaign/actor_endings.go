package campaign

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/event"
	"allium/internal/errcode"
	"allium/mongoerr"
	"allium/mongotest"
)

// traced is what the clients' command events told of the transactions of a session, by its lsid.
type traced struct {
	commits  int   // commitTransaction that were begun
	number   int64 // of the newest transaction
	ending   int   // commits and aborts of it that were begun
	answered bool  // the server did one of them
	lost     bool  // a command of it was not answered, or refused
}

// txnStarted, txnSucceeded and txnFailed note what becomes of transactions.
func (w *world) txnStarted(e *event.CommandStarted) {
	if _, ok := e.Command.Lookup("autocommit").Boolean(); !ok {
		return
	}
	id := string(e.Command.Lookup("lsid").Value)
	number, _ := e.Command.Lookup("txnNumber").AsInt64()
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.txns[id]
	if t == nil {
		t = &traced{}
		w.txns[id] = t
	}
	if t.number != number {
		*t = traced{commits: t.commits, number: number}
	}
	switch e.CommandName {
	case "commitTransaction":
		t.commits++
		t.ending++
	case "abortTransaction":
		t.ending++
	}
	w.inTxn[e.RequestID] = t
}

func (w *world) txnEnded(e event.CommandInfo, reply bson.Raw, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.inTxn[e.RequestID]
	if t == nil {
		return
	}
	delete(w.inTxn, e.RequestID)
	switch {
	case err != nil, leaves(reply):
		t.lost = true
	case e.CommandName == "commitTransaction" || e.CommandName == "abortTransaction":
		t.answered = true
	}
}

// leaves reports whether a reply says by the error of its write concern that the server leaves its
// place. A real one ends its transactions then, and no client finds another before it looks anew.
func leaves(reply bson.Raw) bool {
	code, _ := reply.Lookup("writeConcernError", "code").AsInt64()
	return code != 0 && errcode.Is(int32(code), errcode.StateChange)
}

// commits returns how often a session has begun to commit.
func (w *world) commits(s *allium.Session) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.txns[string(s.ID())]; t != nil {
		return t.commits
	}
	return 0
}

// A holdUp makes one command of a session late.
type holdUp struct {
	command string
	by      time.Duration
}

// hold makes the next command with this name of a session late.
func (w *world) hold(s *allium.Session, command string, by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if by > 0 {
		w.held[string(s.ID())] = holdUp{command, by}
	}
}

func (w *world) release(s *allium.Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, string(s.ID()))
}

// holdUp is the deployment's hook: it makes commands late.
func (w *world) holdUp(c *mongotest.Command) (bson.Raw, error) {
	w.mu.Lock()
	var by time.Duration
	if len(w.held) > 0 {
		id := string(c.Body.Lookup("lsid").Value)
		if h, ok := w.held[id]; ok && h.command == c.Name {
			by = h.by
			delete(w.held, id)
		}
	}
	w.mu.Unlock()
	time.Sleep(by)
	return nil, nil
}

var errGivesUp = errors.New("the simulated program gives up")

// Where the context of a transaction ends, how it does, and how the program runs the transaction.
var (
	endsAt = []string{"before the first command", "between commands", "under way", "swallowed",
		"as the function returns", "commit", "abort"}
	endsBy  = []string{"cancel", "deadline", "Timeout"}
	endsFor = []string{"Transact", "Transact of a session", "End alone", "abort and End", "commit again",
		"another operation"}
)

// end runs a transaction whose context ends at some step of it.
func (a *actor) end() {
	step, by, how := pick(a.r, endsAt), pick(a.r, endsBy), pick(a.r, endsFor)
	length := pick(a.r, []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second})
	lead := pick(a.r, []time.Duration{-time.Millisecond, 0, time.Millisecond, 15 * time.Millisecond})
	late := pick(a.r, []time.Duration{0, time.Millisecond, 60 * time.Millisecond, 700 * time.Millisecond})
	rec := a.note(2)
	rec.atomic = true
	opts := allium.TransactionOptions{ReadConcern: snapshot, WriteConcern: consistency.Majority()}
	hand := how != "Transact" && how != "Transact of a session"
	if hand && by == "Timeout" {
		by = "deadline"
	}
	began := now()
	// wait waits until a moment before the context ends.
	wait := func() { time.Sleep(time.Until(began.Add(length - lead))) }
	var used *allium.Session
	commits, swallowed := 0, false
	body := func(ctx context.Context) error {
		s := allium.SessionFrom(ctx)
		if used == nil {
			used, commits = s, a.commits(s)
		}
		rec.reads = nil
		for i, e := range rec.writes {
			if step == endsAt[i] {
				wait()
			}
			if i == 1 && step == "under way" || step == "swallowed" {
				a.hold(s, "update", late)
				wait()
			}
			_, err := a.coll("lists").UpdateOne(ctx, byID(e.list), push(e.token))
			a.release(s)
			if err != nil && step != "swallowed" {
				return err
			}
			swallowed = swallowed || err != nil
		}
		switch step {
		case "as the function returns":
			wait()
		case "commit":
			a.hold(s, "commitTransaction", late)
			wait()
		case "abort":
			a.hold(s, "abortTransaction", late)
			wait()
			return errGivesUp
		}
		return nil
	}
	bound := length + time.Millisecond + time.Second
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch by {
	case "cancel":
		defer time.AfterFunc(length, cancel).Stop()
	case "deadline":
		ctx, cancel = context.WithTimeout(context.Background(), length)
		defer cancel()
	default:
		opts.Timeout = &length
		bound += 2 * length // the abort has it once more, and End
	}
	longer := 5 * time.Second // what the program has time for once the context has ended
	what := fmt.Sprintf("%s, %s, %s", how, step, by)
	err := a.bounded(what, bound, func() error {
		if how == "Transact" {
			return a.client().Transact(ctx, body, opts)
		}
		s, err := a.client().StartSession()
		if err != nil {
			return err
		}
		used, commits = s, a.commits(s)
		defer s.End(ctx, allium.EndSessionOptions{Timeout: opts.Timeout})
		defer a.release(s)
		if !hand {
			return s.Transact(ctx, body, opts)
		}
		if err := s.StartTransaction(opts); err != nil {
			return err
		}
		committing := false
		if err = body(allium.WithSession(ctx, s)); err == nil {
			committing = true
			err = s.CommitTransaction(ctx)
		}
		if err == nil {
			return nil
		}
		after, cancel := context.WithTimeout(context.Background(), longer)
		defer cancel()
		switch how {
		case "abort and End":
			if s.InTransaction() {
				_ = s.AbortTransaction(ctx)
			}
		case "commit again":
			if committing && mongoerr.HasLabel(err, mongoerr.LabelUnknownTransactionCommit) ||
				committing && s.InTransaction() {
				return s.CommitTransaction(after)
			}
		case "another operation":
			if s.InTransaction() {
				_, _ = a.coll("static").FindOne(allium.WithSession(after, s), byID(1))
			}
		}
		return err
	}, longer)
	sent := used != nil && a.commits(used) > commits
	switch {
	case err == nil && step == "abort":
		a.violation("%s: a transaction was committed whose function had failed", what)
	case err == nil && !swallowed:
		a.set(rec, acked)
	case swallowed && sent: // an operation that never left has failed for the program alone
		a.mu.Lock()
		rec.atomic = false
		a.mu.Unlock()
		a.set(rec, unknown)
	case !sent:
		a.set(rec, absent)
	default:
		a.set(rec, unknown)
	}
}

// bounded is within for what has a context of its own: it takes at most limit, and longer if the
// program goes on behind the end of that context.
func (a *actor) bounded(what string, limit time.Duration, fn func() error, longer time.Duration) error {
	watch := a.stopwatch()
	err := a.request(what, fn)
	if took, grace := watch.took(), watch.grace(); took > limit+longer+grace {
		a.violation("%s %s with a limit of %v took %v: %v", a.plan.Kind, what, limit+longer,
			took.Round(time.Millisecond), err)
	}
	a.judge(what, watch.start, err)
	a.log("%s: %s: %v", a.name(), what, err)
	return err
}

// careless opens a client of its own, leaves transactions open on it and sessions without an end,
// and closes it.
func (a *actor) careless() {
	c := &client{w: a.world, id: 100 + a.plan.ID, plan: a.clients[a.plan.Client].plan}
	n, busy := 1+a.r.IntN(2), a.r.IntN(2) == 0
	late := pick(a.r, []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, time.Second})
	patience := pick(a.r, []time.Duration{0, 50 * time.Millisecond, 5 * time.Second, 5 * time.Second})
	damaged := a.rotation.damages()
	if err := c.open(); err != nil {
		if a.rotation.damages() == damaged && !a.rotation.broken() {
			a.violation("careless: %v", err)
		}
		return
	}
	a.c = c.get()
	var under sync.WaitGroup
	for i := range n {
		var s *allium.Session
		err := a.within("transaction that is left", 5*time.Second, false, func(ctx context.Context) (err error) {
			if s, err = c.get().StartSession(); err != nil {
				return err
			}
			if err := s.StartTransaction(); err != nil {
				return err
			}
			_, err = a.coll("left").InsertOne(allium.WithSession(ctx, s), bson.D{{Key: "by", Value: a.plan.ID}})
			return err
		})
		if err == nil && busy && i == 0 {
			a.hold(s, "insert", late)
			under.Go(func() {
				_ = a.request("command under way", func() error {
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					defer cancel()
					_, err := a.coll("left").InsertOne(allium.WithSession(ctx, s),
						bson.D{{Key: "by", Value: a.plan.ID}})
					return err
				})
				a.release(s)
			})
			time.Sleep(time.Millisecond)
		}
	}
	c.closeWithin(patience)
	under.Wait()
	c.usage.check()
}
