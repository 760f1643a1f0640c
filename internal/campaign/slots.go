package campaign

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"allium"
	"allium/bson"
)

// barrier lets commands go on when all are there, each with its connection.
type barrier struct {
	left atomic.Int32
	open chan struct{}
}

type together struct{}

// meetOthers is called by the listener for CommandStarted.
func meetOthers(ctx context.Context) {
	b, ok := ctx.Value(together{}).(*barrier)
	if !ok {
		return
	}
	if b.left.Add(-1) == 0 {
		close(b.open)
	}
	select {
	case <-b.open:
	case <-time.After(20 * time.Second):
	}
}

// checkSlots checks that a client that nobody uses has all of its slots: nothing is in use, and as
// many operations as a pool has connections can hold one at the same time.
func (w *world) checkSlots(ctx context.Context, c *client) {
	s := c.get().Stats()
	for _, p := range s.Pools {
		if p.InUse != 0 || !w.plan.Real && (p.Connecting != 0 || p.Draining != 0) {
			w.violation("client %d: a pool that nobody uses has %d connections in use, %d being made and %d that read off replies", c.id, p.InUse, p.Connecting, p.Draining)
		}
	}
	if s.Sessions.InUse != 0 || s.Operations != 0 || s.Cursors != 0 {
		w.violation("client %d: a client that nobody uses has %d sessions in use, %d operations in flight and %d cursors", c.id, s.Sessions.InUse, s.Operations, s.Cursors)
	}
	n := c.plan.MaxPool
	if w.plan.Real {
		n = min(n, 10)
	}
	b := &barrier{open: make(chan struct{})}
	b.left.Store(int32(n))
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, together{}, b), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var failed atomic.Int32
	for range n {
		all.Go(func() {
			if _, err := allium.CollectionOf[bson.D](c.get().Database(dbName), "static").FindOne(ctx,
				byID(1)); err != nil {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	if left := b.left.Load(); left > 0 || failed.Load() > 0 {
		w.violation("client %d: of %d connections at once %d could not be had, and %d operations failed", c.id, n,
			max(left, 0), failed.Load())
	}
}

// openTransactions asks each server for the transactions that it has open, as $currentOp shows
// them. Servers behind a load balancer answer no one who comes without it.
func (w *world) openTransactions(ctx context.Context) (all []bson.Raw) {
	if w.plan.Topology == LB || w.plan.Real {
		return nil
	}
	for _, n := range w.d.Nodes() {
		ops, err := w.currentOps(ctx, n.Addr(), "idleSessions")
		if err != nil {
			w.violation("the open transactions of a server when all is quiet: %v", err)
			continue
		}
		for v := range ops.Values() {
			doc, _ := v.Document()
			if kind, _ := doc.Lookup("type").StringValue(); kind == "idleSession" {
				all = append(all, doc)
			}
		}
	}
	return all
}

// checkTransactions is called when the faults are over and nobody works: a server may have a
// transaction open still, one whose end was lost.
func (w *world) checkTransactions() {
	time.Sleep(time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, doc := range w.openTransactions(ctx) {
		id, _ := doc.Lookup("lsid", "id").Binary()
		number, _ := doc.Lookup("transaction", "parameters", "txnNumber").AsInt64()
		why, known := w.openBecause(id.Data, number)
		w.log("transaction %d of %x is open: %s (%s)", number, id.Data, why, known)
		if why == "" {
			w.violation("a transaction is open on a server that could have been told: %s", known)
			continue
		}
		w.mu.Lock()
		w.stats.Open[why]++
		w.mu.Unlock()
	}
}

// openBecause returns why a transaction could stay open, "" if there is no reason, and what is
// known of its session.
func (w *world) openBecause(id []byte, number int64) (why, known string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for lsid, t := range w.txns {
		own, _ := bson.Raw(lsid).Lookup("id").Binary()
		if string(own.Data) != string(id) {
			continue
		}
		known = fmt.Sprintf("number %d of its session, whose newest is %d; sent %d commits and aborts of that, answered %t, lost %t",
			number, t.number, t.ending, t.answered, t.lost)
		switch {
		case t.number != number:
			why = "a newer transaction of its session was begun"
		case t.answered:
		case t.lost:
			why = "a command of it was not answered, or refused"
		}
		return why, known
	}
	return "", "nobody has seen its session"
}

// checkEndings lets contexts end in transactions, and programs close clients with open ones, while
// nothing else goes wrong: a second after the last call no server has a transaction open.
func (w *world) checkEndings(ctx context.Context, observer *client) {
	if w.plan.Real {
		return
	}
	if n := w.currentOpen(ctx, observer); n != 0 {
		w.violation("%d transactions are open after all have expired", n)
	}
	for i := range w.clients {
		a := &actor{world: w, plan: ActorPlan{ID: 200 + i, Kind: "ending", Client: i, Seed: w.plan.Seed + uint64(i)}}
		for ; a.seq < 8; a.seq++ {
			a.begin()
			if a.seq%4 == 3 {
				a.plan.Kind = "careless"
				a.careless()
				a.plan.Kind = "ending"
			} else {
				a.end()
			}
		}
	}
	time.Sleep(time.Second)
	if n := w.currentOpen(ctx, observer); n != 0 {
		w.violation("%d transactions are open a second after the last call of undisturbed clients", n)
	}
}

// currentOpen returns how many transactions are open, by all mongoses that the observer meets.
func (w *world) currentOpen(ctx context.Context, observer *client) (most int64) {
	for range 6 {
		status, err := observer.get().Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus", Value: 1}})
		n, ok := status.Lookup("transactions", "currentOpen").AsInt64()
		if err != nil || !ok {
			w.violation("the transactions when all is quiet: %v", err)
		}
		most = max(most, n)
	}
	return most
}
