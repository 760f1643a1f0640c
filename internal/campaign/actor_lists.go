package campaign

import (
	"context"
	"math/rand/v2"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/mongoerr"
)

func byID(id any) bson.D { return bson.D{{Key: "_id", Value: id}} }

func push(token int32) bson.D {
	return bson.D{{Key: "$push", Value: bson.D{{Key: "tokens", Value: token}}}}
}

// note begins a record with n new tokens, each for a list that is drawn.
func (a *actor) note(n int) *record {
	a.mu.Lock()
	defer a.mu.Unlock()
	rec := &record{name: a.name(), outcome: unknown}
	for range n {
		a.hist.token++
		rec.writes = append(rec.writes, entry{a.r.IntN(lists), a.hist.token})
	}
	a.hist.records = append(a.hist.records, rec)
	return rec
}

func (a *actor) set(rec *record, o outcome) {
	a.mu.Lock()
	rec.outcome = o
	a.mu.Unlock()
	a.wrote(o)
}

// read reads a list.
func (a *actor) read(ctx context.Context, rec *record, list int) error {
	doc, err := allium.CollectionOf[listDoc](a.client().Database(dbName), "lists").FindOne(ctx, byID(list))
	if err == nil {
		rec.reads = append(rec.reads, seen{list, doc.Tokens})
	}
	return err
}

type listDoc struct {
	ID     int     `bson:"_id"`
	Tokens []int32 `bson:"tokens"`
}

// list pushes a token to a list, and reads one.
func (a *actor) list() {
	rec := a.note(1)
	e := rec.writes[0]
	err := a.do("update", func(ctx context.Context) error {
		res, err := a.coll("lists").UpdateOne(ctx, byID(e.list), push(e.token))
		if err == nil && (res.MatchedCount != 1 || res.ModifiedCount != 1) {
			a.violation("lister: an update of one list says that it matched %d and changed %d", res.MatchedCount,
				res.ModifiedCount)
		}
		return err
	})
	if err == nil {
		a.set(rec, acked)
	} else {
		a.set(rec, unknown)
	}
	look := a.note(0)
	if a.do("find", func(ctx context.Context) error { return a.read(ctx, look, a.r.IntN(lists)) }) == nil {
		a.set(look, absent)
	}
}

// weak pushes a token that only the primary acknowledges: a rollback may lose it.
func (a *actor) weak() {
	rec := a.note(1)
	e := rec.writes[0]
	coll := a.coll("lists").With(allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: 1}})
	err := a.do("update", func(ctx context.Context) error {
		_, err := coll.UpdateOne(ctx, byID(e.list), push(e.token))
		return err
	})
	switch {
	case err == nil:
		a.set(rec, weak)
	default:
		a.set(rec, unknown)
	}
}

// bulk pushes several tokens in a bulk write of the collection or of the client.
func (a *actor) bulk() {
	rec := a.note(1 + a.r.IntN(6))
	ofClient, unordered := a.r.IntN(2) == 0, a.r.IntN(2) == 0
	err := a.do("bulk write", func(ctx context.Context) error {
		lists := a.coll("lists")
		var models []allium.WriteModel
		for _, e := range rec.writes {
			models = append(models, lists.UpdateOneModel(byID(e.list), push(e.token)))
		}
		var res allium.BulkWriteResult
		var err error
		if ofClient {
			res, err = a.client().BulkWrite(ctx, models, allium.ClientBulkWriteOptions{Unordered: unordered})
		} else {
			res, err = lists.BulkWrite(ctx, models, allium.BulkWriteOptions{Unordered: unordered})
		}
		n := res.ModifiedCount
		if err == nil && n != int64(len(rec.writes)) {
			a.violation("bulk: %d statements succeeded, but the result says %d", len(rec.writes), n)
		}
		return err
	})
	if err == nil {
		a.set(rec, acked)
	} else {
		a.set(rec, unknown)
	}
}

// transaction reads and pushes to two lists, with Transact or step by step.
func (a *actor) transaction() {
	rec := a.note(2)
	rec.atomic = true
	opts := allium.TransactionOptions{ReadConcern: &consistency.ReadConcern{Level: consistency.ReadSnapshot},
		WriteConcern: consistency.Majority()}
	body := func(ctx context.Context) error {
		rec.reads = nil // of an attempt that failed
		for _, e := range rec.writes {
			if err := a.read(ctx, rec, e.list); err != nil {
				return err
			}
			if _, err := a.coll("lists").UpdateOne(ctx, byID(e.list), push(e.token)); err != nil {
				return err
			}
		}
		return a.read(ctx, rec, rec.writes[0].list)
	}
	what := "transaction"
	if a.r.IntN(2) == 0 {
		what = byHand
	}
	gives, o := a.r.IntN(6) == 0, unknown
	err := a.do(what, func(ctx context.Context) error {
		if what != byHand {
			return a.client().Transact(ctx, body, opts)
		}
		s, err := a.client().StartSession()
		if err != nil {
			o = absent
			return err
		}
		defer s.End(ctx)
		if err := s.StartTransaction(opts); err != nil {
			o = absent
			return err
		}
		o = absent // if its code fails
		err = body(allium.WithSession(ctx, s))
		if err != nil || gives {
			// What has not been committed is never there, whether the abort arrives or not.
			_ = s.AbortTransaction(ctx)
			return err
		}
		o = unknown
		for range 3 {
			if err = s.CommitTransaction(ctx); err == nil ||
				!mongoerr.HasLabel(err, mongoerr.LabelUnknownTransactionCommit) {
				break
			}
		}
		return err
	})
	if err == nil && o == unknown {
		o = acked
	}
	a.set(rec, o)
}

// count adds one to the counter that all counters share, and returns its value.
func (a *actor) count() {
	inc := &increment{name: a.name(), start: now(), outcome: unknown}
	a.mu.Lock()
	a.hist.increments = append(a.hist.increments, inc)
	a.mu.Unlock()
	var got bson.D
	err := a.do("findAndModify", func(ctx context.Context) (err error) {
		got, err = a.coll("counters").FindOneAndUpdate(ctx, byID("shared"), bson.D{{Key: "$inc",
			Value: bson.D{{Key: "n", Value: 1}}}}, allium.FindOneAndUpdateOptions{ReturnNew: true})
		return err
	})
	a.mu.Lock()
	inc.end = now()
	if err == nil {
		inc.outcome, inc.value = acked, number(got, "n")
	}
	a.mu.Unlock()
	a.wrote(inc.outcome)
}

// shuffled returns the numbers below n in an order that is drawn.
func shuffled(r *rand.Rand, n int) []int { return r.Perm(n) }
