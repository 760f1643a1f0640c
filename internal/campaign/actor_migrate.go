package campaign

import (
	"context"
	"fmt"
	"slices"
	"time"

	"allium"
	"allium/bson"
	"allium/patterns/migrate"
)

// migrated is how many documents each step of the migrations changes.
const migrated = 10

// migration is what the programs that migrate have come to.
type migration struct {
	steps  int             // that there are by now
	active map[string]bool // programs in a function of a step whose context is alive
}

// each reports whether a step is one of each document, and not a transaction.
func each(step int) bool { return step%3 != 2 }

// stepsOf returns the first n steps. Each adds its number to each document, or, as a transaction,
// to one.
func (w *world) stepsOf(n int, who string, pause func(ctx context.Context)) (steps []migrate.Step) {
	for i := range n {
		add := bson.D{{Key: "$push", Value: bson.D{{Key: "steps", Value: i}}}}
		within := func(ctx context.Context) {
			w.mu.Lock()
			for other := range w.hist.migration.active {
				if other != who && ctx.Err() == nil && !w.plan.Real {
					defer w.violation("migrator: two programs are in a step at once")
				}
			}
			w.hist.migration.active[who] = true
			w.mu.Unlock()
			pause(ctx)
			w.mu.Lock()
			delete(w.hist.migration.active, who)
			w.mu.Unlock()
		}
		up := migrate.InTransaction(func(ctx context.Context, db *allium.Database) error {
			within(ctx)
			_, err := db.Collection("migrated").UpdateOne(ctx, byID("all"), add)
			return err
		})
		if each(i) {
			up = migrate.Each("migrated", func(ctx context.Context, _ bson.Raw) (any, error) {
				within(ctx)
				return add, nil
			}, migrate.EachOptions{Filter: bson.D{{Key: "each", Value: true}}, Batch: 3})
		}
		steps = append(steps, migrate.Step{Name: fmt.Sprintf("step %04d", i), Up: up})
	}
	return steps
}

// migrateOptions are those of programs that migrate, of which some are of an older release.
func (w *world) migrateOptions() migrate.Options {
	o := migrate.Options{AllowNewer: true, TTL: 20 * time.Second}
	if w.plan.Real {
		o.TTL = 2 * time.Second
	}
	return o
}

// migrate is a program that migrates at its start, sometimes with a step more than those before,
// and that may end at any moment.
func (a *actor) migrate() {
	a.mu.Lock()
	if a.r.IntN(3) == 0 {
		a.hist.migration.steps++
	}
	n := a.hist.migration.steps
	a.mu.Unlock()
	n = max(0, n-a.r.IntN(2))
	r := stream(a.plan.Seed, uint64(a.seq)<<32)
	steps := a.stepsOf(n, a.name(), func(ctx context.Context) { rest(ctx, about(r, a.world.plan.Think/20)) })
	limit := pick(a.r, []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute})
	if a.world.plan.Real {
		limit /= 10
	}
	_ = a.within("migrate", limit, a.r.IntN(2) == 0, func(ctx context.Context) error {
		_, err := migrate.Run(ctx, a.client().Database(dbName), steps, a.migrateOptions())
		return ended(ctx, err)
	})
}

// finishMigrations runs the steps that are left when all is quiet, and checks that each has taken
// effect once, in their order.
func (w *world) finishMigrations(ctx context.Context, cl *allium.Client) error {
	w.mu.Lock()
	n := w.hist.migration.steps
	w.stats.Migrated += n
	w.mu.Unlock()
	steps := w.stepsOf(n, "at the end", func(context.Context) {})
	if _, err := migrate.Run(ctx, cl.Database(dbName), steps, w.migrateOptions()); err != nil {
		return err
	}
	docs, err := allium.CollectionOf[struct {
		Each  bool  `bson:"each"`
		Steps []int `bson:"steps"`
	}](cl.Database(dbName), "migrated").All(ctx, bson.D{})
	if err != nil {
		return err
	}
	for _, d := range docs {
		var want []int
		for i := range n {
			if each(i) == d.Each {
				want = append(want, i)
			}
		}
		if !slices.Equal(d.Steps, want) {
			w.violation("migrator: the steps %v have taken effect on a document, instead of each once and in order", d.Steps)
		}
	}
	return nil
}

// prepareMigrations creates the documents that steps change.
func (w *world) prepareMigrations(ctx context.Context, db *allium.Database) error {
	docs := []bson.D{{{Key: "_id", Value: "all"}, {Key: "each", Value: false}, {Key: "steps", Value: bson.A{}}}}
	for i := range migrated {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "each", Value: true}, {Key: "steps", Value: bson.A{}}})
	}
	_, err := allium.CollectionOf[bson.D](db, "migrated").InsertMany(ctx, docs)
	return err
}
