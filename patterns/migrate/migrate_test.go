package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/norace"
	"allium/mongotest"
	"allium/patterns/lease"
	"allium/patterns/migrate"
)

// connect opens a client of a deployment that is in memory.
func connect(t *testing.T, d *mongotest.Deployment) *allium.Client {
	t.Helper()
	c, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func start(t *testing.T, opts ...mongotest.Option) (*mongotest.Deployment, *allium.Database) {
	t.Helper()
	d := mongotest.Start(t, append(opts, mongotest.InMemory())...)
	return d, connect(t, d).Database("app")
}

type item struct {
	ID any `bson:"_id"`
	N  int `bson:"n"`
}

// count is a step's function that no document may see twice: each call adds one.
func count(context.Context, item) (any, error) {
	return bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, nil
}

// insert inserts n documents.
func insert(t *testing.T, db *allium.Database, n int) {
	t.Helper()
	docs := make([]bson.D, n)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "n", Value: 0}}
	}
	if _, err := db.Collection("items").InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
}

// values returns how often each value of n is there.
func values(t *testing.T, db *allium.Database) map[int]int {
	t.Helper()
	all, err := allium.CollectionOf[item](db, "items").All(context.WithoutCancel(t.Context()), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]int{}
	for _, d := range all {
		got[d.N]++
	}
	return got
}

// counted is the migration of the tests with faults: steps of each kind, none of which may be
// done twice.
func counted(batch int) []migrate.Step {
	audit := func(what string) func(ctx context.Context, db *allium.Database) error {
		return func(ctx context.Context, db *allium.Database) error {
			_, err := db.Collection("audit").InsertOne(ctx, bson.D{{Key: "what", Value: what}})
			return err
		}
	}
	return []migrate.Step{
		{Name: "first", Up: migrate.InTransaction(audit("first"))},
		{Name: "count", Up: migrate.Each("items", count, migrate.EachOptions{Batch: batch})},
		{Name: "index", Up: migrate.Once(func(ctx context.Context, db *allium.Database) error {
			_, err := db.Collection("items").CreateIndex(ctx, allium.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}})
			return err
		})},
		{Name: "count again", Up: migrate.Each("items", count, migrate.EachOptions{Batch: batch})},
		{Name: "last", Up: migrate.InTransaction(audit("last"))},
	}
}

// TestFaults runs migrations by several programs at once, while programs die, members are killed,
// step down, hang and lose replies. In the end each document was changed by each step exactly once,
// and each transaction has taken effect once.
func TestFaults(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() || norace.Detecting {
		seeds = 4
	}
	for _, kind := range []struct {
		name string
		opts []mongotest.Option
	}{{"replica set", []mongotest.Option{mongotest.ReplicaSet(3)}}, {"sharded", []mongotest.Option{mongotest.Sharded(2, 2)}}} {
		for seed := range seeds {
			t.Run(fmt.Sprint(kind.name, " ", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { faults(t, seed, kind.opts) })
			})
		}
	}
}

func faults(t *testing.T, seed uint64, opts []mongotest.Option) {
	const documents = 60
	r := rand.New(rand.NewPCG(seed, 11))
	d, db := start(t, opts...)
	insert(t, db, documents)
	steps := counted(1 + r.IntN(9))
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	var finished, died, failed atomic.Int64
	var calm atomic.Bool // nobody dies any more: servers abort what the dead have left open after a minute
	var wg sync.WaitGroup
	for i := range 3 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			for ctx.Err() == nil {
				// A program: it lives for a while, and dies without a word when its time has come.
				c, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
				if err != nil {
					t.Error(err)
					return
				}
				alive, kill := context.WithCancel(ctx)
				timer := time.AfterFunc(time.Duration(r.IntN(20_000))*time.Millisecond, func() {
					if calm.Load() {
						return
					}
					died.Add(1)
					closed, now := context.WithCancel(context.Background())
					now()
					c.Close(closed)
					kill()
				})
				_, err = migrate.Run(alive, c.Database("app"), steps, migrate.Options{TTL: 5 * time.Second})
				timer.Stop()
				kill()
				c.Close(context.Background())
				if err == nil {
					finished.Add(1)
					return
				}
				failed.Add(1)
				time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	var seen atomic.Int64
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) { // so that there is something to disturb
		switch c.Name {
		case "update", "bulkWrite", "findAndModify", "commitTransaction", "createIndexes", "find":
			seen.Add(1)
			time.Sleep(time.Duration(100+seen.Load()*37%400) * time.Millisecond)
		}
		return nil, nil
	})
	for faults := 0; faults < 60; faults++ {
		select {
		case <-done:
		case <-time.After(time.Duration(200+r.IntN(4000)) * time.Millisecond):
		}
		switch n := d.Node(r.IntN(len(d.Nodes()))); r.IntN(5) {
		case 0:
			if len(d.Shards()) > 0 {
				n.CloseConnections()
			} else {
				d.StepDown()
			}
		case 1:
			n.Kill()
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
			if err := n.Restart(); err != nil {
				t.Error(err)
			}
		case 2:
			n.SetNetFaults(mongotest.NetFaults{DropAfter: 1, Times: 1 + r.IntN(3)})
		case 3:
			n.Hang()
			time.Sleep(time.Duration(r.IntN(8000)) * time.Millisecond)
			n.Resume()
		case 4:
			d.FailCommand(mongotest.Fail{Commands: []string{"commitTransaction", "update", "findAndModify"}[r.IntN(3):], Times: 1, Code: []int32{11602, 91, 112, 251}[r.IntN(4)]})
		}
	}
	calm.Store(true)
	for _, n := range d.Nodes() {
		n.SetNetFaults(mongotest.NetFaults{})
	}
	d.ClearFailures()
	<-done
	time.Sleep(2 * time.Minute) // who stepped down may be elected again
	judge(t, db, documents)
	list, err := migrate.List(ctx, db, steps)
	for _, s := range list {
		if s.State != migrate.Done || s.Changed || s.OutOfOrder {
			t.Errorf("%+v", s)
		}
	}
	if err != nil || finished.Load() != 3 {
		t.Errorf("%d programs finished, %v", finished.Load(), err)
	}
	t.Logf("%d died, %d runs failed or were cut short", died.Load(), failed.Load())
}

// judge compares what is there with what is promised.
func judge(t *testing.T, db *allium.Database, documents int) {
	t.Helper()
	if got := values(t, db); got[2] != documents || len(got) != 1 {
		t.Errorf("documents by how often they were changed: %v, want all %d twice", got, documents)
	}
	audits, err := db.Collection("audit").All(context.WithoutCancel(t.Context()), bson.D{})
	var what []string
	for _, a := range audits {
		v, _ := a.Get("what")
		what = append(what, fmt.Sprint(v))
	}
	slices.Sort(what)
	if !slices.Equal(what, []string{"first", "last"}) || err != nil {
		t.Errorf("transactions took effect: %v, %v", what, err)
	}
}

// TestDiesAtEachCommand lets a program die at its first command, in the next run at its second, and
// so on: before the command, or after it without the reply. Another one finishes the migration.
func TestDiesAtEachCommand(t *testing.T) {
	const documents = 7
	for _, after := range []bool{false, true} {
		died := 0
		for at := int64(1); ; at++ {
			reached := false
			synctest.Test(t, func(t *testing.T) {
				d, db := start(t, mongotest.ReplicaSet(1))
				insert(t, db, documents)
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				doomed, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, AppName: "doomed"})
				if err != nil {
					t.Fatal(err)
				}
				var n atomic.Int64
				die := func() { kill(); doomed.Close(ctx) }
				var deaths sync.WaitGroup
				defer deaths.Wait()
				d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
					if c.AppName != "doomed" || c.Name == "hello" || c.Name == "isMaster" && c.DB == "admin" || c.Name == "endSessions" || c.Name == "abortTransaction" {
						return nil, nil
					}
					if n.Add(1) == at {
						if after {
							d.Node(0).SetNetFaults(mongotest.NetFaults{DropAfter: 1, Times: 1})
							deaths.Go(func() { time.Sleep(time.Millisecond); die() })
							return nil, nil
						}
						deaths.Go(die)
						<-ctx.Done()
						return nil, errors.New("dead")
					}
					return nil, nil
				})
				_, err = migrate.Run(ctx, doomed.Database("app"), counted(3), migrate.Options{TTL: time.Second})
				reached = n.Load() >= at
				if reached && err != nil {
					died++
				}
				kill()
				doomed.Close(context.Background())
				d.Node(0).SetNetFaults(mongotest.NetFaults{})
				d.OnCommand(nil)
				if _, err := migrate.Run(t.Context(), db, counted(3)); err != nil {
					t.Errorf("after a death (%t) at command %d: %v", after, at, err)
				}
				judge(t, db, documents)
			})
			if !reached || t.Failed() {
				break
			}
		}
		if died < 20 {
			t.Errorf("%d deaths: the test looks in the wrong place", died)
		}
	}
}

// TestStandalone: without transactions each document is changed at least once, and those of a batch
// that was recorded are not seen again.
func TestStandalone(t *testing.T) {
	const documents = 20
	d, db := start(t)
	insert(t, db, documents)
	var seen []any
	steps := []migrate.Step{{Name: "count", Up: migrate.Each("items", func(ctx context.Context, i item) (any, error) { seen = append(seen, i.ID); return count(ctx, i) }, migrate.EachOptions{Batch: 5})}}
	d.FailCommand(mongotest.Fail{Commands: []string{"findAndModify"}, Namespace: "app.allium_migrations", Skip: 2, Code: 2})
	d.FailCommand(mongotest.Fail{Commands: []string{"update"}, Namespace: "app.items", Skip: 2, Code: 2})
	_, err := migrate.Run(t.Context(), db, steps)
	var failed *migrate.StepError
	if !errors.As(err, &failed) || failed.Step != "count" {
		t.Fatal(err)
	}
	d.ClearFailures()
	list, err := migrate.List(t.Context(), db, steps)
	if err != nil || list[0].State != migrate.Running || list[0].Documents != 10 || list[0].Error == "" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := migrate.Run(t.Context(), db, steps); err != nil {
		t.Fatal(err)
	}
	if got := values(t, db); got[0] != 0 {
		t.Errorf("%v", got)
	}
	if len(seen) > documents+5 {
		t.Errorf("the function saw %v", seen)
	}
	if _, err := migrate.Run(t.Context(), db, append(steps, migrate.Step{Name: "t", Up: migrate.InTransaction(func(context.Context, *allium.Database) error { return nil })})); err == nil || !strings.Contains(err.Error(), "standalone") {
		t.Errorf("a transaction on a standalone: %v", err)
	}
}

// TestEveryID: documents come in the order of their _id whatever types these have, and none is left
// out between batches.
func TestEveryID(t *testing.T) {
	ids := bson.A{nil, bson.MinKey{}, math.NaN(), math.Inf(-1), -1, int64(5), 2.5, bson.NewDecimal128FromInt64(7), math.Inf(1), "", "a", bson.Symbol("b"), bson.D{}, bson.D{{Key: "a", Value: 1}},
		bson.Binary{Data: []byte{1}}, bson.ObjectID{1}, bson.ObjectID{2}, false, true, bson.DateTime(0), bson.DateTime(9), bson.Timestamp{T: 1}, bson.JavaScript("x"), bson.MaxKey{}}
	for batch := 1; batch < 5; batch++ {
		_, db := start(t, mongotest.ReplicaSet(1))
		for _, i := range rand.Perm(len(ids)) {
			if _, err := db.Collection("items").InsertOne(t.Context(), bson.D{{Key: "_id", Value: ids[i]}, {Key: "n", Value: 0}}); err != nil {
				t.Fatal(err)
			}
		}
		n, err := db.Collection("items").CountDocuments(t.Context(), bson.D{})
		if err != nil || n < 20 {
			t.Fatalf("%d documents, %v", n, err)
		}
		report, err := migrate.Run(t.Context(), db, []migrate.Step{{Name: "count", Up: migrate.Each("items", count, migrate.EachOptions{Batch: batch})}})
		if err != nil || report[0].Documents != n || report[0].Modified != n {
			t.Errorf("batches of %d: %+v, %v", batch, report, err)
		}
		if got := values(t, db); got[1] != int(n) {
			t.Errorf("batches of %d: %v", batch, got)
		}
	}
}

// TestOrderAndNames: what was run must be what it was, and stand in the same order.
func TestOrderAndNames(t *testing.T) {
	nothing := migrate.Once(func(context.Context, *allium.Database) error { return nil })
	step := func(names ...string) (list []migrate.Step) {
		for _, n := range names {
			list = append(list, migrate.Step{Name: n, Up: nothing})
		}
		return list
	}
	each := func(o migrate.EachOptions) migrate.Work { return migrate.Each("items", count, o) }
	for _, c := range []struct {
		name string
		ran  []migrate.Step
		now  []migrate.Step
		opts migrate.Options
		want error
		runs int
	}{
		{"nothing new", step("a", "b"), step("a", "b"), migrate.Options{}, nil, 0},
		{"one more", step("a", "b"), step("a", "b", "c"), migrate.Options{}, nil, 1},
		{"one at a time", nil, step("a", "b", "c"), migrate.Options{Steps: 2}, nil, 2},
		{"renamed", step("a", "b"), step("a", "x"), migrate.Options{}, migrate.ErrChanged, 0},
		{"removed", step("a", "b"), step("b"), migrate.Options{AllowNewer: true, OutOfOrder: true}, nil, 0},
		{"removed in the middle", step("a", "b", "c"), step("a", "c", "d"), migrate.Options{AllowNewer: true}, migrate.ErrChanged, 0},
		{"an older program", step("a", "b"), step("a"), migrate.Options{}, migrate.ErrChanged, 0},
		{"an older program that is allowed", step("a", "b"), step("a"), migrate.Options{AllowNewer: true}, nil, 0},
		{"added before", step("b"), step("a", "b"), migrate.Options{}, migrate.ErrOutOfOrder, 0},
		{"added before and allowed", step("b"), step("a", "b"), migrate.Options{OutOfOrder: true}, nil, 1},
		{"another revision", step("a"), []migrate.Step{{Name: "a", Revision: "2", Up: nothing}}, migrate.Options{}, migrate.ErrChanged, 0},
		{"another kind", step("a"), []migrate.Step{{Name: "a", Up: migrate.InTransaction(nil)}}, migrate.Options{}, migrate.ErrChanged, 0},
		{"another filter", []migrate.Step{{Name: "a", Up: each(migrate.EachOptions{})}}, []migrate.Step{{Name: "a", Up: each(migrate.EachOptions{Filter: bson.D{{Key: "n", Value: 1}}})}}, migrate.Options{}, migrate.ErrChanged, 0},
		{"another batch", []migrate.Step{{Name: "a", Up: each(migrate.EachOptions{})}}, []migrate.Step{{Name: "a", Up: each(migrate.EachOptions{Batch: 5})}}, migrate.Options{}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, db := start(t, mongotest.ReplicaSet(1))
			if _, err := migrate.Run(t.Context(), db, c.ran); err != nil {
				t.Fatal(err)
			}
			done, err := migrate.Run(t.Context(), db, c.now, c.opts)
			if !errors.Is(err, c.want) || len(done) != c.runs {
				t.Errorf("%v, %v, want %v", done, err, c.want)
			}
		})
	}
	for what, steps := range map[string][]migrate.Step{"no name": {{Up: nothing}}, "twice": step("a", "a"), "nothing to do": {{Name: "a"}}, "a filter": {{Name: "a", Up: each(migrate.EachOptions{Filter: make(chan int)})}}} {
		if _, err := migrate.List(t.Context(), nil, steps); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestDown undoes steps, one of which is interrupted on the way.
func TestDown(t *testing.T) {
	d, db := start(t, mongotest.ReplicaSet(1))
	insert(t, db, 10)
	down := migrate.Each("items", func(context.Context, item) (any, error) {
		return bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: -1}}}}, nil
	}, migrate.EachOptions{Batch: 3})
	steps := []migrate.Step{{Name: "a", Up: migrate.Each("items", count)}, {Name: "b", Up: migrate.Each("items", count), Down: down}, {Name: "c", Up: migrate.Each("items", count), Down: down}}
	if _, err := migrate.Run(t.Context(), db, steps); err != nil {
		t.Fatal(err)
	}
	d.FailCommand(mongotest.Fail{Commands: []string{"update"}, Namespace: "app.items", Skip: 2, Code: 2})
	if done, err := migrate.Down(t.Context(), db, steps); err == nil {
		t.Errorf("%v", done)
	}
	d.ClearFailures()
	if _, err := migrate.Run(t.Context(), db, steps); err == nil || !strings.Contains(err.Error(), "being undone") {
		t.Errorf("run while a step is being undone: %v", err)
	}
	if done, err := migrate.Down(t.Context(), db, steps, migrate.Options{Steps: 2}); err != nil || len(done) != 2 || done[0].Name != "c" {
		t.Errorf("%v, %v", done, err)
	}
	if got := values(t, db); got[1] != 10 {
		t.Errorf("%v", got)
	}
	if _, err := migrate.Down(t.Context(), db, steps); !errors.Is(err, migrate.ErrNoDown) {
		t.Error(err)
	}
	if _, err := migrate.Run(t.Context(), db, steps); err != nil {
		t.Error(err)
	}
	if got := values(t, db); got[3] != 10 {
		t.Errorf("%v", got)
	}
}

// TestStaleHolder: a program that was suspended until others had taken over writes nothing more.
func TestStaleHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, db := start(t, mongotest.ReplicaSet(1))
		insert(t, db, 10)
		ready, resume := make(chan struct{}), make(chan struct{})
		var once sync.Once
		slow := migrate.Each("items", func(ctx context.Context, i item) (any, error) {
			once.Do(func() { close(ready); <-resume })
			return count(ctx, i)
		}, migrate.EachOptions{Batch: 4})
		result := make(chan error)
		go func() {
			_, err := migrate.Run(t.Context(), db, []migrate.Step{{Name: "count", Up: slow}})
			result <- err
		}()
		<-ready
		if err := migrate.Unlock(t.Context(), db); err != nil { // it is believed to be dead
			t.Fatal(err)
		}
		if _, err := migrate.Run(t.Context(), db, []migrate.Step{{Name: "count", Up: migrate.Each("items", count, migrate.EachOptions{Batch: 4})}}); err != nil {
			t.Fatal(err)
		}
		close(resume)
		if err := <-result; !errors.Is(err, lease.ErrLost) {
			t.Errorf("the program that was suspended: %v", err)
		}
		if got := values(t, db); got[1] != 10 {
			t.Errorf("%v", got)
		}
	})
}

// TestDryRun calls the functions of Each and writes nothing.
func TestDryRun(t *testing.T) {
	d, db := start(t, mongotest.ReplicaSet(1))
	insert(t, db, 10)
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		switch c.Name {
		case "update", "findAndModify", "insert", "delete", "createIndexes":
			t.Errorf("it writes: %s", c.Body)
		}
		return nil, nil
	})
	steps := counted(3)
	done, err := migrate.Run(t.Context(), db, steps, migrate.Options{DryRun: true})
	if err != nil || len(done) != len(steps) || done[1].Documents != 10 || done[1].Modified != 10 {
		t.Errorf("%+v, %v", done, err)
	}
	boom := errors.New("boom")
	_, err = migrate.Run(t.Context(), db, []migrate.Step{{Name: "x", Up: migrate.Each("items", func(_ context.Context, i item) (any, error) {
		if i.ID == int32(7) {
			return nil, boom
		}
		return nil, nil
	}, migrate.EachOptions{Batch: 2})}}, migrate.Options{DryRun: true})
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), "7") {
		t.Errorf("%v", err)
	}
}
