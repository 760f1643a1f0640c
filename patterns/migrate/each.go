package migrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/option"
	"allium/mongoerr"
	"allium/patterns/internal/again"
	"allium/patterns/lease"
)

// EachOptions are the options of Each.
type EachOptions struct {
	// Filter chooses the documents. Nil: all of the collection. It is part of what the step is
	// recorded by.
	Filter any
	// Batch is how many documents are read and changed together. Zero: 200. A transaction should
	// last much less than a minute, or servers abort it.
	Batch int
	// Pause is how long to wait between batches, for the sake of others.
	Pause time.Duration
}

// Each is work on each document of a collection: the function returns the update for it, such as
// {$set: {...}}, or nil to leave it as it is. Documents come in the order of their _id, in batches,
// and the step goes on behind the last batch if it was interrupted. Documents that are inserted
// meanwhile may be among them or not: the program that writes them writes the new form already.
//
// The package's documentation says what is promised. If the function fails the step stops, with the
// _id in the error. In a sharded collection the _id must be unique.
func Each[T any](collection string, f func(ctx context.Context, doc T) (update any, err error),
	opts ...EachOptions) Work {
	o := option.Merge(opts)
	if o.Filter == nil {
		o.Filter = bson.D{}
	}
	if o.Batch <= 0 {
		o.Batch = 200
	}
	return Work{kind: "each", collection: collection, filter: o.Filter, run: func(_ context.Context, j *job) error {
		e := &each{job: j, opts: o, coll: j.db.Collection(collection),
			change: func(ctx context.Context, raw bson.Raw) (any, error) {
				var doc T
				options := j.db.Settings().BSON
				if options == nil {
					options = new(bson.Options)
				}
				if err := options.Unmarshal(raw, &doc); err != nil {
					return nil, err
				}
				return f(ctx, doc)
			}}
		return e.run()
	}}
}

// each is work on the documents of a collection.
type each struct {
	*job
	opts   EachOptions
	coll   *allium.UntypedCollection
	change func(ctx context.Context, raw bson.Raw) (any, error)
}

func (e *each) run() error {
	for {
		end := false
		batch := func(ctx context.Context) (err error) {
			end, err = e.batch(ctx)
			return err
		}
		var err error
		if e.txns && !e.job.opts.DryRun {
			err = e.transact(batch)
		} else {
			err = batch(e.ctx)
		}
		if err != nil {
			return err
		}
		if e.report(); end {
			return nil
		}
		if e.opts.Pause > 0 {
			again.Pause(e.ctx, e.opts.Pause)
		}
		if e.ctx.Err() != nil {
			return context.Cause(e.ctx)
		}
	}
}

// batch changes the next documents and records how far it has come. In a transaction both take
// effect or neither, and what is read of the record is what holds when it commits.
func (e *each) batch(ctx context.Context) (end bool, err error) {
	rec := record{Last: e.status.Last, Documents: e.status.Documents, Modified: e.status.Modified}
	if !e.job.opts.DryRun {
		if rec, err = e.records().FindOne(ctx, e.mine()); errors.Is(err, mongoerr.ErrNoDocuments) {
			err = fmt.Errorf("%w: another program runs the step", lease.ErrLost)
		}
		if err != nil {
			return false, err
		}
	}
	filter := bson.D{{Key: "$and", Value: bson.A{e.opts.Filter, behind(rec.Last)}}}
	docs, err := allium.As[bson.Raw](e.coll).All(ctx, filter, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}},
		Limit: int64(e.opts.Batch), BatchSize: new(int32(e.opts.Batch))})
	if err != nil {
		return false, err
	}
	if len(docs) == 0 {
		if e.job.opts.DryRun {
			return true, nil
		}
		return true, e.finish(ctx)
	}
	var models []allium.WriteModel
	for _, doc := range docs {
		id := doc.Lookup("_id")
		update, err := e.change(ctx, doc)
		if err != nil {
			return false, fmt.Errorf("document %s: %w", id, err)
		}
		if update != nil {
			models = append(models,
				e.coll.UpdateOneModel(bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: id}}}}, update))
		}
		rec.Last = id
	}
	rec.Documents += int64(len(docs))
	rec.Modified += int64(len(models))
	if !e.job.opts.DryRun {
		if models != nil {
			if _, err := e.coll.BulkWrite(ctx, models); err != nil {
				return false, err
			}
		}
		err = e.write(ctx, bson.D{{Key: "$set",
			Value: bson.D{{Key: "last", Value: rec.Last}, {Key: "documents", Value: rec.Documents},
				{Key: "modified", Value: rec.Modified}, {Key: "token", Value: e.lease.Token()}}}}, &rec)
		if err != nil {
			return false, err
		}
	}
	e.status.Last, e.status.Documents, e.status.Modified = rec.Last, rec.Documents, rec.Modified
	return false, nil
}

// order are the types of BSON in the order in which servers sort them. Those of a line are compared
// with each other.
var order = [][]bson.Type{
	{bson.TypeMinKey}, {bson.TypeUndefined}, {bson.TypeNull},
	{bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128}, {bson.TypeString, bson.TypeSymbol},
	{bson.TypeEmbeddedDocument}, {bson.TypeBinary}, {bson.TypeObjectID}, {bson.TypeBoolean}, {bson.TypeDateTime},
	{bson.TypeTimestamp}, {bson.TypeRegex},
	{bson.TypeDBPointer}, {bson.TypeJavaScript}, {bson.TypeCodeWithScope}, {bson.TypeMaxKey},
}

// behind selects the documents whose _id stands behind one: a comparison alone would leave out
// those of other types.
func behind(id bson.RawValue) bson.D {
	if id.IsZero() {
		return bson.D{}
	}
	next := bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: id}}}}
	f, isDouble := id.Double()
	d, isDecimal := id.Decimal128()
	if isDouble && math.IsNaN(f) || isDecimal && d.IsNaN() { // NaN is less than every number, and compares with none
		next = bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: math.Inf(-1)}}}}
	}
	var later bson.A
	found := false
	for _, same := range order {
		for _, t := range same {
			if found {
				later = append(later, int32(int8(t)))
			}
		}
		for _, t := range same {
			found = found || t == id.Type
		}
	}
	if id.Type == bson.TypeMinKey || id.Type == bson.TypeNull || id.Type == bson.TypeUndefined {
		return bson.D{{Key: "_id", Value: bson.D{{Key: "$type", Value: later}}}}
	}
	if later == nil {
		return next
	}
	return bson.D{{Key: "$or", Value: bson.A{next, bson.D{{Key: "_id", Value: bson.D{{Key: "$type", Value: later}}}}}}}
}
