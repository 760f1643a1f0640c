package campaign

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/bson"
	"allium/gridfs"
)

// settle sees that all clients work again, lets the followers come to the end, waits until
// transactions and cursors that were left behind have expired, and checks what is there and that
// nothing else is left on the servers.
func (w *world) settle(followers *sync.WaitGroup) {
	w.checkTransactions()
	w.reconnect()
	pause := 2 * time.Minute // a transaction may live for one
	if w.plan.Real {
		pause = 2 * time.Second
	}
	time.Sleep(pause)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, c := range w.clients {
		if err := w.works(ctx, c.get()); err != nil {
			w.violation("a client when all is quiet: %v", err)
		}
	}
	w.checkRotated(ctx)
	c := w.observer()
	if err := c.open(); err != nil {
		w.violation("open a client when all is quiet: %v", err)
		return
	}
	defer func() {
		c.close()
		c.usage.check()
	}()
	w.checkEndings(ctx, c)
	w.drain(ctx, c.get())
	if err := w.drainChanges(ctx, c.get()); err != nil {
		w.violation("the consumer when all is quiet: %v", err)
	}
	if err := w.finishMigrations(ctx, c.get()); err != nil {
		w.violation("the migrations when all is quiet: %v", err)
	}
	db := c.get().Database(dbName)
	if _, err := allium.CollectionOf[bson.D](db, "events").InsertOne(ctx, byID(last)); err != nil {
		w.violation("an insert when all is quiet: %v", err)
	} else {
		w.mu.Lock()
		w.hist.inserted[last] = &inserted{outcome: acked, actor: -1}
		w.mu.Unlock()
	}
	followers.Wait()
	if !w.plan.Real {
		w.checkCursors(ctx)
		time.Sleep(33 * time.Minute) // an idle cursor may live for ten, in a session for thirty
	}
	err := w.check(ctx, db)
	if err == nil {
		err = w.checkEvents(ctx, db)
	}
	if err != nil {
		w.violation("a read when all is quiet: %v", err)
	}
	w.checkIdle(ctx, c)
}

// checkIdle checks that the clients, which nobody uses any more, hold nothing, that the servers
// have no connection of which a pool knows nothing, and that the servers' sessions end with the
// clients.
func (w *world) checkIdle(ctx context.Context, observer *client) {
	pause := time.Second
	if w.plan.Real {
		pause = 100 * time.Millisecond
	}
	time.Sleep(pause)
	before := w.openCursors(ctx, observer)
	quiet := time.Now() // what the followers used in the instant before does not count
	for _, c := range w.clients {
		if err := w.works(ctx, c.get()); err != nil {
			w.violation("a client when nobody else works: %v", err)
		}
	}
	time.Sleep(pause) // what is returned or closed in the background
	if n := w.openCursors(ctx, observer); n > before && !w.plan.Real {
		w.violation("clients that nobody disturbed left %d cursors", n-before)
	}
	known := 0
	for _, c := range append(w.clients[:len(w.clients):len(w.clients)], observer) {
		c.usage.idle()
		known += c.usage.connections()
		if w.plan.Topology != LB {
			known += 2 * len(w.d.Nodes()) // for monitoring
		}
	}
	if n := connections(w.d); n > known && !w.plan.Real { // in real time a server may be late
		w.violation("the servers have %d connections, the clients at most %d", n, known)
	}
	for _, c := range w.clients {
		w.checkSlots(ctx, c)
	}
	w.closeClients()
	if w.plan.Real {
		return
	}
	time.Sleep(6 * time.Minute) // the servers look through their sessions every five minutes
	if n := w.sessions(ctx, observer, quiet); n > 1 {
		w.violation("the servers have %d sessions of clients that have been closed", n-1)
	}
	// A client throws a session away when an attempt fails without a reply (specification: Driver
	// Sessions, "dirty"), and then the servers learn nothing.
	time.Sleep(36 * time.Minute)
	if n := w.sessions(ctx, observer, time.Time{}); n > 1 {
		w.violation("the servers have %d sessions after all have expired", n-1)
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	w.checkServers(late, observer.get())
}

// openCursors returns how many cursors the server that the observer asks has open.
func (w *world) openCursors(ctx context.Context, observer *client) int64 {
	if w.plan.Real {
		return 0
	}
	status, err := observer.get().Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus", Value: 1}})
	n, ok := status.Lookup("metrics", "cursor", "open", "total").AsInt64()
	if err != nil || !ok {
		w.violation("the cursors when all is quiet: %v", err)
	}
	return n
}

// sessions returns how many sessions the servers know that were used since a time. The observer
// asks in one of its own.
func (w *world) sessions(ctx context.Context, observer *client, since time.Time) (n int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	reply, err := observer.get().Database("admin").RunCommand(ctx, bson.D{{Key: "aggregate", Value: 1},
		{Key: "pipeline", Value: bson.A{bson.D{{Key: "$listLocalSessions",
			Value: bson.D{{Key: "allUsers", Value: true}}}}}},
		{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 10_000}}}})
	if err != nil {
		w.violation("a list of the sessions when all is quiet: %v", err)
		return 0
	}
	batch, _ := reply.Lookup("cursor", "firstBatch").Array()
	for v := range batch.Values() {
		doc, _ := v.Document()
		if used, _ := doc.Lookup("lastUse").DateTime(); used >= bson.NewDateTime(since) {
			n++
		}
	}
	return n
}

// works sees that a client works when nobody disturbs it. In real time the machine may: when this
// process had no processor for longer than a quarter of the clients' ConnectTimeout, it counts for
// nothing that connections were given up.
func (w *world) works(ctx context.Context, c *allium.Client) error {
	for range 50 {
		watch := w.stopwatch()
		err := w.calm(ctx, c)
		if err == nil || !w.plan.Real || watch.waited() < time.Second/4 {
			return err
		}
	}
	return errors.New("the machine is too busy")
}

// calm does a little of everything with a client that nobody disturbs.
func (w *world) calm(ctx context.Context, c *allium.Client) error {
	db := c.Database(dbName)
	static := allium.CollectionOf[bson.D](db, "static")
	cur, err := static.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(10))})
	if err != nil {
		return err
	}
	for range 25 {
		if !cur.Next(ctx) {
			return fmt.Errorf("a cursor ends: %w", cur.Err())
		}
	}
	if err := cur.Close(ctx); err != nil {
		return err
	}
	return c.Transact(ctx, func(ctx context.Context) error {
		_, err := allium.CollectionOf[bson.D](db, "calm").InsertOne(ctx, bson.D{{Key: "x", Value: 1}})
		return err
	})
}

// checkServers checks that the servers hold no cursor and no transaction: the followers have
// closed their streams, and what faults left behind has expired.
func (w *world) checkServers(ctx context.Context, c *allium.Client) {
	status, err := c.Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus", Value: 1}})
	if err != nil {
		w.violation("serverStatus when all is quiet: %v", err)
		return
	}
	for _, path := range [][]string{{"metrics", "cursor", "open", "total"}, {"transactions", "currentOpen"}} {
		if n, ok := status.Lookup(path...).AsInt64(); !ok || n != 0 {
			w.violation("the server still has %s = %d when all is quiet", strings.Join(path, "."), n)
		}
	}
}

// check compares what is there with what callers were told.
func (w *world) check(ctx context.Context, db *allium.Database) error {
	final := map[int][]int32{}
	for i := range lists {
		doc, err := allium.CollectionOf[listDoc](db, "lists").FindOne(ctx, byID(i))
		if err != nil {
			return err
		}
		final[i] = doc.Tokens
	}
	if err := w.readPatterns(ctx, db, final); err != nil {
		return err
	}
	w.mu.Lock()
	records, increments, own := slices.Clone(w.hist.records), slices.Clone(w.hist.increments), w.hist.own
	files := w.hist.files
	w.mu.Unlock()
	w.report(judgeLists(records, final))
	doc, err := allium.CollectionOf[bson.D](db, "counters").FindOne(ctx, byID("shared"))
	if err != nil {
		return err
	}
	w.report(judgeCounter(increments, number(doc, "n")))
	for id, c := range own {
		doc, err := allium.CollectionOf[bson.D](db, "counters").FindOne(ctx, byID(id))
		if err != nil {
			return err
		}
		if n := number(doc, "n"); n < c.acked || n > c.tried {
			w.violation("causal: a counter is at %d after %d acknowledged increments of %d", n, c.acked, c.tried)
		}
	}
	sum := int64(0)
	for i := range accounts {
		doc, err := allium.CollectionOf[bson.D](db, "accounts").FindOne(ctx, byID(i))
		if err != nil {
			return err
		}
		sum += number(doc, "balance")
	}
	if sum != accounts*opening {
		w.violation("bank: the accounts hold %d instead of %d", sum, accounts*opening)
	}
	if err := w.checkMany(ctx, db); err != nil {
		return err
	}
	return w.checkFiles(ctx, db, files)
}

// checkMany compares writes to many documents with what is there.
func (w *world) checkMany(ctx context.Context, db *allium.Database) error {
	cur, err := allium.CollectionOf[struct {
		Herd    *int    `bson:"herd"`
		Changes []int32 `bson:"changes"`
		N       int     `bson:"n"`
	}](db, "herds").Find(ctx, bson.D{})
	if err != nil {
		return err
	}
	herds := map[int][][]int32{}
	for doc, err := range cur.Seq(ctx) {
		if err != nil {
			return err
		}
		if doc.Herd == nil {
			continue
		}
		if doc.N != len(doc.Changes) {
			w.violation("many: a document was incremented %d times and has %d changes", doc.N, len(doc.Changes))
		}
		herds[*doc.Herd] = append(herds[*doc.Herd], doc.Changes)
	}
	there := map[string]bool{}
	heaps, err := allium.CollectionOf[eventDoc](db, "heaps").Find(ctx, bson.D{})
	if err != nil {
		return err
	}
	for doc, err := range heaps.Seq(ctx) {
		if err != nil {
			return err
		}
		there[doc.ID] = true
	}
	never, err := db.Collection("never").CountDocuments(ctx, bson.D{})
	if err == nil && never > 0 {
		w.violation("failing code: %d documents are there that could not be encoded", never)
	}
	w.mu.Lock()
	changes, all := slices.Clone(w.hist.changes), slices.Clone(w.hist.heaps)
	w.mu.Unlock()
	w.report(judgeChanges(changes, herds))
	w.report(judgeHeaps(all, there))
	return err
}

func (w *world) checkFiles(ctx context.Context, db *allium.Database, files map[bson.ObjectID]*file) error {
	bucket := gridfs.NewBucket(db)
	for id, f := range files {
		var got bytes.Buffer
		_, err := bucket.DownloadToStream(ctx, id, &got)
		if f.outcome == acked && (err != nil || sha256.Sum256(got.Bytes()) != f.sum) {
			w.violation("files: a file whose upload was acknowledged comes back with %d bytes, %v", got.Len(), err)
		}
		if err == nil && sha256.Sum256(got.Bytes()) != f.sum {
			w.violation("files: a file is not what was uploaded")
		}
	}
	return nil
}

func (w *world) report(found []string) {
	for _, text := range found {
		w.violation("%s", text)
	}
}

// checkEvents compares what followers received with what is there.
func (w *world) checkEvents(ctx context.Context, db *allium.Database) error {
	cur, err := allium.CollectionOf[bson.D](db, "events").Find(ctx, bson.D{})
	if err != nil {
		return err
	}
	docs, err := cur.All(ctx)
	if err != nil {
		return err
	}
	there := map[string]int{}
	for _, d := range docs {
		id, _ := d[0].Value.(string)
		there[id]++
	}
	w.mu.Lock()
	followers, all := slices.Clone(w.hist.followers), w.hist.inserted
	w.mu.Unlock()
	w.report(judgeInserts(all, there))
	for _, f := range followers {
		w.report(judgeFollower(f, all, there))
	}
	return nil
}

// judgeInserts compares what was acknowledged with what is there.
func judgeInserts(all map[string]*inserted, there map[string]int) (found []string) {
	for id, n := range there {
		if n > 1 {
			found = append(found, fmt.Sprintf("inserter: %s is there %d times", id, n))
		}
		if all[id] == nil {
			found = append(found, fmt.Sprintf("inserter: %s is there, which nobody inserted", id))
		}
	}
	for id, in := range all {
		if in.outcome == acked && there[id] == 0 {
			found = append(found, fmt.Sprintf("inserter: the acknowledged insert of %s is missing", id))
		}
	}
	return found
}

// judgeFollower checks that a follower has received each event once and in order.
func judgeFollower(f *followed, all map[string]*inserted, there map[string]int) (found []string) {
	seen := map[string]bool{}
	newest := map[int]int{} // by actor
	var before bson.Timestamp
	for i, id := range f.events {
		if seen[id] {
			found = append(found, fmt.Sprintf("%s received %s twice", f.name, id))
		}
		seen[id] = true
		if there[id] == 0 {
			found = append(found, fmt.Sprintf("%s received %s, which is not there", f.name, id))
		}
		if f.times[i].Compare(before) < 0 {
			found = append(found, fmt.Sprintf("%s received %s out of order", f.name, id))
		}
		before = f.times[i]
		// What one actor inserts in turn comes in that order, if it was acknowledged.
		if in := all[id]; in != nil && in.outcome == acked && in.actor >= 0 {
			if at, ok := newest[in.actor]; ok && in.seq < at {
				found = append(found, fmt.Sprintf("%s received %s after a later insert of the same actor", f.name, id))
			}
			newest[in.actor] = in.seq
		}
	}
	if !f.ended {
		return append(found, fmt.Sprintf("%s never reached the last event: %v", f.name, f.failed))
	}
	for id := range there {
		if !seen[id] {
			found = append(found, fmt.Sprintf("%s never received an event", f.name))
			break
		}
	}
	return found
}

// judgeCounter checks that acknowledged increments took place once each, and in the order in
// which they followed each other.
func judgeCounter(all []*increment, final int64) (found []string) {
	var done []*increment
	for _, i := range all {
		if i.outcome == acked {
			done = append(done, i)
		}
	}
	if int64(len(done)) > final || final > int64(len(all)) {
		found = append(found, fmt.Sprintf("counter: it is at %d after %d acknowledged increments of %d", final,
			len(done), len(all)))
	}
	slices.SortFunc(done, func(a, b *increment) int { return cmp.Compare(a.value, b.value) })
	var latest time.Time // the latest start of those with a smaller value
	for n, i := range done {
		if n > 0 && done[n-1].value == i.value {
			found = append(found,
				fmt.Sprintf("counter: %s and %s both got the value %d", done[n-1].name, i.name, i.value))
		}
		if i.end.Before(latest) {
			found = append(found, fmt.Sprintf("counter: %s got %d, more than an increment that began after it ended",
				i.name, i.value))
		}
		if i.start.After(latest) {
			latest = i.start
		}
	}
	return found
}
