package mongo

import (
	"context"
	"errors"

	"allium"
	abson "allium/bson"
	"allium/mongoerr"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/coding"
)

var cursorTypes = map[options.CursorType]allium.CursorType{
	options.NonTailable: "", options.Tailable: allium.CursorTailable, options.TailableAwait: allium.CursorTailableAwait,
}

// Find finds the documents that match the filter.
func (coll *Collection) Find(ctx context.Context, filter any,
	opts ...options.Lister[options.FindOptions]) (*Cursor, error) {
	o, err := merged(opts)
	if err != nil {
		return nil, err
	}
	f, err := coll.document(filter)
	if err != nil {
		return nil, err
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return nil, err
	}
	a := arguments{coder: coll.coder}
	settings := allium.FindOptions{
		Sort: a.ordered(o.Sort, "sort"), Projection: a.optional(o.Projection), Skip: set(o.Skip), Limit: set(o.Limit),
		BatchSize:    o.BatchSize,
		MaxAwaitTime: set(o.MaxAwaitTime), Hint: a.hint(o.Hint), Collation: collated(o.Collation),
		Let: a.optional(o.Let), Comment: a.comment(o.Comment),
		Min: a.optional(o.Min), Max: a.optional(o.Max), AllowDiskUse: o.AllowDiskUse,
		AllowPartialResults: set(o.AllowPartialResults),
		NoCursorTimeout:     set(o.NoCursorTimeout), ReturnKey: set(o.ReturnKey), ShowRecordID: set(o.ShowRecordID),
		RawData: rawData(o.Internal), MaxTime: maxTime(o.Internal),
	}
	if o.CursorType != nil {
		settings.CursorType = cursorTypes[*o.CursorType]
	}
	if a.err != nil {
		return nil, a.err
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return nil, err
	}
	cur, err := allium.As[coding.View](inner).Find(ctx, f, settings)
	if err != nil {
		return nil, commandFailed(err)
	}
	return newCursor(cur, coll.coder), nil
}

// FindOne finds the first document that matches the filter.
func (coll *Collection) FindOne(ctx context.Context, filter any,
	opts ...options.Lister[options.FindOneOptions]) *SingleResult {
	o, err := merged(opts)
	if err != nil {
		return &SingleResult{err: err}
	}
	f, err := coll.document(filter)
	if err != nil {
		return &SingleResult{err: err}
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return &SingleResult{err: err}
	}
	a := arguments{coder: coll.coder}
	settings := allium.FindOneOptions{
		Sort: a.ordered(o.Sort, "sort"), Projection: a.optional(o.Projection), Skip: set(o.Skip), Hint: a.hint(o.Hint),
		Collation: collated(o.Collation),
		Comment:   a.comment(o.Comment), Min: a.optional(o.Min), Max: a.optional(o.Max),
		AllowPartialResults: set(o.AllowPartialResults),
		ReturnKey:           set(o.ReturnKey), ShowRecordID: set(o.ShowRecordID), RawData: rawData(o.Internal),
		MaxTime: maxTime(o.Internal),
	}
	if a.err != nil {
		return &SingleResult{err: a.err}
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return &SingleResult{err: err}
	}
	doc, err := inner.FindOne(ctx, f, settings)
	res := coll.single(doc, commandFailed(err))
	res.Acknowledged = false
	return res
}

// single is the result of an operation that returns one document, or has failed.
func (coll *Collection) single(doc abson.Raw, failed error) *SingleResult {
	if failed != nil {
		return &SingleResult{coder: coll.coder, err: failed, Acknowledged: !coll.quiet && failed == ErrNoDocuments}
	}
	return &SingleResult{coder: coll.coder, doc: bson.Raw(doc), Acknowledged: !coll.quiet}
}

// FindOneAndDelete deletes the first document that matches the filter, and returns it.
func (coll *Collection) FindOneAndDelete(ctx context.Context, filter any,
	opts ...options.Lister[options.FindOneAndDeleteOptions]) *SingleResult {
	o, err := built(opts)
	if err != nil {
		return &SingleResult{err: err}
	}
	f, err := coll.document(filter)
	if err != nil {
		return &SingleResult{err: err}
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return &SingleResult{err: err}
	}
	a := arguments{coder: coll.coder}
	settings := allium.FindOneAndDeleteOptions{
		Sort: a.ordered(o.Sort, "sort"), Projection: a.optional(o.Projection), Collation: collated(o.Collation),
		Hint: a.hint(o.Hint),
		Let:  a.optional(o.Let), Comment: a.comment(o.Comment), RawData: rawData(o.Internal),
		MaxTime: maxTime(o.Internal),
	}
	if a.err != nil {
		return &SingleResult{err: a.err}
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return &SingleResult{err: err}
	}
	doc, err := inner.FindOneAndDelete(ctx, f, settings)
	return coll.single(doc, failure(err))
}

// FindOneAndReplace replaces the first document that matches the filter, and returns it.
func (coll *Collection) FindOneAndReplace(ctx context.Context, filter any, replacement any,
	opts ...options.Lister[options.FindOneAndReplaceOptions]) *SingleResult {
	o, err := built(opts)
	if err != nil {
		return &SingleResult{err: err}
	}
	f, err := coll.document(filter)
	if err != nil {
		return &SingleResult{err: err}
	}
	r, err := coll.coder.replacement(replacement)
	if err != nil {
		return &SingleResult{err: err}
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return &SingleResult{err: err}
	}
	a := arguments{coder: coll.coder}
	settings := allium.FindOneAndReplaceOptions{
		ReturnNew: set(o.ReturnDocument) == options.After, Upsert: set(o.Upsert), Sort: a.ordered(o.Sort, "sort"),
		Projection:               a.optional(o.Projection),
		BypassDocumentValidation: yes(o.BypassDocumentValidation), Collation: collated(o.Collation),
		Hint: a.hint(o.Hint), Let: a.optional(o.Let),
		Comment: a.comment(o.Comment), RawData: rawData(o.Internal), MaxTime: maxTime(o.Internal),
	}
	if a.err != nil {
		return &SingleResult{err: a.err}
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return &SingleResult{err: err}
	}
	doc, err := inner.FindOneAndReplace(ctx, f, r, settings)
	return coll.single(doc, failure(err))
}

// FindOneAndUpdate updates the first document that matches the filter, and returns it.
func (coll *Collection) FindOneAndUpdate(ctx context.Context, filter any, update any,
	opts ...options.Lister[options.FindOneAndUpdateOptions]) *SingleResult {
	o, err := built(opts)
	if err != nil {
		return &SingleResult{err: err}
	}
	f, err := coll.document(filter)
	if err != nil {
		return &SingleResult{err: err}
	}
	u, err := coll.coder.update(update)
	if err != nil {
		return &SingleResult{err: err}
	}
	if ctx, err = coll.client.context(ctx); err != nil {
		return &SingleResult{err: err}
	}
	a := arguments{coder: coll.coder}
	settings := allium.FindOneAndUpdateOptions{
		ReturnNew: set(o.ReturnDocument) == options.After, Upsert: set(o.Upsert), Sort: a.ordered(o.Sort, "sort"),
		Projection:   a.optional(o.Projection),
		ArrayFilters: a.filters(o.ArrayFilters), BypassDocumentValidation: yes(o.BypassDocumentValidation),
		Collation: collated(o.Collation), Hint: a.hint(o.Hint),
		Let: a.optional(o.Let), Comment: a.comment(o.Comment), RawData: rawData(o.Internal),
		MaxTime: maxTime(o.Internal),
	}
	if a.err != nil {
		return &SingleResult{err: a.err}
	}
	inner, err := coll.with(o.Internal)
	if err != nil {
		return &SingleResult{err: err}
	}
	doc, err := inner.FindOneAndUpdate(ctx, f, u, settings)
	return coll.single(doc, failure(err))
}

// aggregate runs a pipeline on a collection or, if name is empty, on a database. run is Allium's
// way, nil for the command.
func aggregate(ctx context.Context, client *Client, db *Database, name string, c coder,
	run func(context.Context, any, allium.AggregateOptions) (*allium.Cursor[coding.View], error), pipeline any,
	opts []options.Lister[options.AggregateOptions]) (*Cursor, error) {
	o, err := merged(opts)
	if err != nil {
		return nil, err
	}
	if ctx, err = client.context(ctx); err != nil {
		return nil, err
	}
	stages, writes, err := c.pipeline(pipeline)
	if err != nil {
		return nil, err
	}
	a := arguments{coder: c}
	settings := allium.AggregateOptions{
		AllowDiskUse: o.AllowDiskUse, BatchSize: o.BatchSize, BypassDocumentValidation: yes(o.BypassDocumentValidation),
		Collation: collated(o.Collation),
		Comment:   a.comment(o.Comment), Hint: a.hint(o.Hint), Let: a.optional(o.Let), RawData: rawData(o.Internal),
		MaxTime: maxTime(o.Internal), MaxAwaitTime: set(o.MaxAwaitTime),
	}
	if a.err != nil {
		return nil, a.err
	}
	if writes && settings.BatchSize != nil && *settings.BatchSize == 0 {
		settings.BatchSize = nil
	}
	var cur *allium.Cursor[coding.View]
	if len(o.Custom) > 0 || run == nil {
		cur, err = customAggregate(ctx, db, name, c, stages, settings, o.Custom)
	} else {
		cur, err = run(ctx, stages, settings)
	}
	var concern *mongoerr.WriteConcernError
	switch {
	case err == nil:
		return newCursor(cur, c), nil
	case errors.As(err, &concern): // of a pipeline that writes
		return nil, *writeConcernError(concern)
	}
	return nil, commandFailed(err)
}

// customAggregate runs an aggregate as a command, with fields that the program adds.
func customAggregate(ctx context.Context, db *Database, name string, c coder, stages abson.RawValue,
	o allium.AggregateOptions, custom bson.M) (*allium.Cursor[coding.View], error) {
	var on any = name
	if name == "" {
		on = int32(1)
	}
	cursor := abson.D{}
	if o.BatchSize != nil {
		cursor = append(cursor, abson.E{Key: "batchSize", Value: *o.BatchSize})
	}
	cmd := abson.D{{Key: "aggregate", Value: on}, {Key: "pipeline", Value: stages}, {Key: "cursor", Value: cursor}}
	add := func(key string, v any, there bool) {
		if there {
			cmd = append(cmd, abson.E{Key: key, Value: v})
		}
	}
	add("allowDiskUse", set(o.AllowDiskUse), o.AllowDiskUse != nil)
	add("bypassDocumentValidation", set(o.BypassDocumentValidation), o.BypassDocumentValidation != nil)
	add("comment", o.Comment, o.Comment != nil)
	add("collation", collationDocument(o.Collation), o.Collation != nil)
	add("hint", o.Hint, o.Hint != nil)
	add("let", o.Let, o.Let != nil)
	for key, val := range custom {
		v, err := c.value(val)
		if err != nil {
			return nil, err
		}
		add(key, v, true)
	}
	doc, err := abson.Marshal(cmd)
	if err != nil {
		return nil, err
	}
	settings := allium.RunCursorCommandOptions{ReadPreference: db.preferenceOf(ctx), BatchSize: o.BatchSize,
		Comment: o.Comment}
	if endsWithWrite(stages) {
		return allium.RunCursorCommand[coding.View](ctx, db.inner, doc, settings)
	}
	return db.retried(ctx, doc, settings)
}

// collationDocument returns a collation as the server takes it.
func collationDocument(c *allium.Collation) abson.D {
	if c == nil {
		return nil
	}
	doc := abson.D{{Key: "locale", Value: c.Locale}}
	for _, f := range []struct {
		key   string
		value any
		there bool
	}{
		{"caseLevel", true, c.CaseLevel != nil}, {"caseFirst", string(c.CaseFirst), c.CaseFirst != ""},
		{"strength", int32(c.Strength), c.Strength != 0},
		{"numericOrdering", true, c.NumericOrdering != nil}, {"alternate", string(c.Alternate), c.Alternate != ""},
		{"maxVariable", string(c.MaxVariable), c.MaxVariable != ""}, {"normalization", true, c.Normalization != nil},
		{"backwards", true, c.Backwards != nil},
	} {
		if f.there {
			doc = append(doc, abson.E{Key: f.key, Value: f.value})
		}
	}
	return doc
}
