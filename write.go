package allium

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"allium/bson"
	"allium/internal/command"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/mongoerr"
)

// UpdateOptions are the options of UpdateOne and UpdateMany. The zero value of a field leaves it to
// the server.
type UpdateOptions struct {
	// Upsert inserts a document if none matches.
	Upsert bool
	// ArrayFilters is a slice of documents that select the array elements which an update with
	// $[name] changes.
	ArrayFilters any
	// Sort determines which document UpdateOne changes if several match (server 8.0 and later).
	Sort any
	// BypassDocumentValidation lets the write store documents that a validator rejects.
	BypassDocumentValidation *bool
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Let defines variables for aggregation expressions.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// ReplaceOptions are the options of ReplaceOne. The zero value of a field leaves it to the server.
type ReplaceOptions struct {
	// Upsert inserts a document if none matches the filter.
	Upsert bool
	// Sort is an ordered document, such as bson.D{{Key: "age", Value: -1}}, and determines which
	// document is first.
	Sort any
	// BypassDocumentValidation lets the write store documents that a validator rejects.
	BypassDocumentValidation *bool
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Let defines variables for aggregation expressions.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// UpdateResult is the result of UpdateOne, UpdateMany and ReplaceOne.
type UpdateResult struct {
	MatchedCount  int64 // documents that the filter matched
	ModifiedCount int64 // documents that were changed
	UpsertedCount int64 // documents that were inserted, 0 or 1
	// UpsertedID is the _id of the inserted document, nil if there is none.
	UpsertedID any
	// Acknowledged is false if the write concern is unacknowledged; the counts are then 0.
	Acknowledged bool
}

// UpdateOne updates the first document that matches the filter. update is a document of update
// operators, such as bson.M{"$set": bson.M{"age": 37}}, or an aggregation pipeline.
//
// UpdateOne is retried once after a network error or a failover unless the client's RetryWrites is
// off, and is never applied twice.
func (c *Collection[T]) UpdateOne(ctx context.Context, filter, update any,
	opts ...UpdateOptions) (UpdateResult, error) {
	return c.update(ctx, command.UpdateStatement{Filter: filter, Update: update}, opts)
}

// UpdateMany updates all documents that match the filter. It is not retried after a network error.
func (c *Collection[T]) UpdateMany(ctx context.Context, filter, update any,
	opts ...UpdateOptions) (UpdateResult, error) {
	return c.update(ctx, command.UpdateStatement{Filter: filter, Update: update, Multi: true}, opts)
}

// ReplaceOne replaces the first document that matches the filter, except for its _id. It is retried
// like UpdateOne.
func (c *Collection[T]) ReplaceOne(ctx context.Context, filter any, replacement T,
	opts ...ReplaceOptions) (UpdateResult, error) {
	o := option.Merge(opts)
	if command.IsNil(&replacement) {
		return UpdateResult{}, c.failed(ctx, "update", c.name, fmt.Errorf("replacement: %w", mongoerr.ErrNilDocument))
	}
	return c.update(ctx, command.UpdateStatement{Filter: filter, Update: &replacement, Replacement: true},
		[]UpdateOptions{{
			Upsert: o.Upsert, Sort: o.Sort, BypassDocumentValidation: o.BypassDocumentValidation,
			Collation: o.Collation,
			Hint:      o.Hint,
			Let:       o.Let, Comment: o.Comment, RawData: o.RawData, Timeout: o.Timeout,
		}})
}

var errSortMany = errors.New("option Sort cannot be used with a write of many documents")

func (c *Collection[T]) update(ctx context.Context, s command.UpdateStatement,
	opts []UpdateOptions) (UpdateResult, error) {
	o := option.Merge(opts)
	if s.Multi && o.Sort != nil {
		return UpdateResult{}, c.failed(ctx, "update", c.name, errSortMany)
	}
	s.Upsert, s.ArrayFilters, s.Sort, s.Collation, s.Hint = o.Upsert, o.ArrayFilters, o.Sort, o.Collation.raw(), o.Hint
	cmd := &command.Update{
		Collection: c.name, Statements: []command.UpdateStatement{s}, Ordered: true,
		BypassDocumentValidation: o.BypassDocumentValidation, Let: o.Let, Comment: o.Comment, RawData: o.RawData,
	}
	w := writer{inherited: &c.inherited, err: c.err, timeout: o.Timeout}
	reply, acknowledged, err := w.one(ctx, cmd)
	res := UpdateResult{MatchedCount: reply.n, ModifiedCount: reply.modified, Acknowledged: acknowledged}
	if id, ok := reply.upserted[0]; ok {
		// The server counts an upserted document among those that matched.
		res.UpsertedID, res.UpsertedCount = id, 1
		res.MatchedCount--
	}
	return res, err
}

// Save changes the document that was read as before so that it becomes after, if nobody else has
// saved it meanwhile. It sends what differs and nothing else, fields that are cleared included, so
// that fields that T does not have stay. If there is no difference it sends nothing.
//
// version is the key of a field at the top that counts the changes: a whole number, 0 or missing at
// first. The filter has the version of before; Save raises it, in *after too once it is done. What
// *after had there before does not matter. If no document matches, because somebody else saved it
// or it has gone, the error is mongoerr.ErrConflict, and *after is as it was: read the document
// again. Every other write of such documents must raise the version, too.
//
//	page, err := pages.FindOne(ctx, bson.M{"_id": "home"})
//	edited := page
//	edited.Text = "Hello"
//	err = allium.Save(ctx, pages, "version", page, &edited)
//
// What before and *after share, such as the elements of a slice, must not be changed: Save would
// see no difference. Arrays are set as a whole. A document that differs in a field that updates
// cannot name is replaced: see bson.ErrNoPath. Save needs an acknowledged write concern, and does
// not upsert. It is retried like UpdateOne. With a *mongoerr.WriteConcernError the change was made,
// on fewer members than were asked for, and *after has the new version.
func Save[T any](ctx context.Context, c *Collection[T], version string, before T, after *T,
	opts ...UpdateOptions) error {
	if after == nil {
		return c.failed(ctx, "update", c.name, fmt.Errorf("Save: %w", mongoerr.ErrNilDocument))
	}
	s, err := newSaved(c.bson, version, &before, after)
	if err == nil && option.Merge(opts).Upsert {
		err = errors.New("Save does not upsert")
	}
	switch {
	case err != nil:
		return c.failed(ctx, "update", c.name, err)
	case s == nil:
		return nil
	}
	res, err := c.update(ctx, command.UpdateStatement{Filter: s.filter, Update: s.update, Replacement: s.replacement},
		opts)
	// With the error of a write concern alone, the document was changed, unless there was none.
	applied := failure.Applied(err)
	switch {
	case err != nil && !applied:
		return err
	case !res.Acknowledged:
		return c.failed(ctx, "update", c.name, errors.New(
			"Save needs an acknowledged write concern: whether it changed the document is not known"))
	case res.MatchedCount == 0 && applied:
		return failure.Join(err, mongoerr.ErrConflict)
	case res.MatchedCount == 0:
		return c.failed(ctx, "update", c.name, mongoerr.ErrConflict)
	}
	return cmp.Or(s.raise(after), err)
}

// saved is what Save writes.
type saved struct {
	bson        bson.Options
	filter      bson.D
	update      any
	replacement bool
	version     string
	next        bson.RawValue
	after       bson.Raw // as it will be
}

// newSaved returns what leads from before to after, which point to documents; nil if there is no
// difference.
func newSaved(o *bson.Options, version string, before, after any) (*saved, error) {
	s := &saved{version: version}
	if o != nil {
		s.bson = *o
	}
	old, err := s.bson.Marshal(before)
	if err != nil {
		return nil, err
	}
	if err := s.hasVersion(bson.Raw(old), reflect.TypeOf(before).Elem()); err != nil {
		return nil, err
	}
	now, err := s.bson.Marshal(after)
	if err != nil {
		return nil, err
	}
	if err := s.raised(bson.Raw(old).Lookup(version)); err != nil {
		return nil, err
	}
	id := bson.Raw(old).Lookup("_id")
	if id.IsZero() {
		return nil, errors.New("Save: the document has no _id")
	}
	byID := bson.D{{Key: "_id", Value: id}}
	if id.Type == bson.TypeEmbeddedDocument || id.Type == bson.TypeRegex { // no operators, no pattern
		byID[0].Value = bson.D{{Key: "$eq", Value: id}}
	}
	s.filter = append(byID, s.filter...)
	if s.after, err = s.with(now); err != nil {
		return nil, err
	}
	if old, err = s.with(old); err != nil { // so that the version is no difference
		return nil, err
	}
	update, err := s.bson.Diff(bson.Raw(old), s.after, bson.DiffOptions{AnyOrder: true})
	switch {
	case errors.Is(err, bson.ErrNoPath):
		s.update, s.replacement = s.after, true
		return s, nil
	case err != nil:
		return nil, err
	case len(update) == 0:
		return nil, nil
	}
	set, _ := update.Get("$set")
	fields, _ := set.(bson.D)
	update.Set("$set", append(fields, bson.E{Key: version, Value: s.next}))
	s.update = update
	return s, nil
}

// hasVersion reports a version that could not be counted.
func (s *saved) hasVersion(doc bson.Raw, t reflect.Type) error {
	if s.version == "" || s.version == "_id" || strings.Contains(s.version, ".") || s.version[0] == '$' {
		return fmt.Errorf("Save: %q cannot be the key of a version: want that of a field at the top", s.version)
	}
	if !doc.Lookup(s.version).IsZero() {
		return nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	shape, err := s.bson.ShapeOf(t)
	if err != nil || shape.Kind != bson.ShapeStruct {
		return err
	}
	if !slices.ContainsFunc(shape.Fields, func(f bson.ShapeField) bool { return f.Key == s.version || f.InlineMap }) {
		return fmt.Errorf("Save: %s has no field with the key %q", t, s.version)
	}
	return nil
}

// raised sets the condition for the version that was read, and the next one.
func (s *saved) raised(v bson.RawValue) error {
	n, isNumber := v.AsInt64()
	switch {
	case v.IsZero() || v.Type == bson.TypeNull:
	case !isNumber || v.Type != bson.TypeInt32 && v.Type != bson.TypeInt64:
		return fmt.Errorf("Save: the version is a BSON %s, want a whole number", v.Type)
	}
	if n == 0 {
		// Documents that nobody has saved yet may have no version.
		s.filter = bson.D{{Key: s.version, Value: bson.D{{Key: "$in", Value: bson.A{0, nil}}}}}
	} else {
		s.filter = bson.D{{Key: s.version, Value: v}}
	}
	var err error
	if v.Type == bson.TypeInt64 || n+1 > math.MaxInt32 {
		s.next, err = bson.MarshalValue(n + 1)
	} else {
		s.next, err = bson.MarshalValue(int32(n + 1))
	}
	return err
}

// with returns a document with the next version.
func (s *saved) with(doc bson.Raw) (bson.Raw, error) {
	start, out := bson.BeginDocument(make([]byte, 0, len(doc)+len(s.version)+16))
	found := false
	for key, v := range doc.All() {
		if key == s.version {
			v, found = s.next, true
		}
		out = bson.AppendRawValue(out, key, v)
	}
	if !found {
		out = bson.AppendRawValue(out, s.version, s.next)
	}
	return bson.EndDocument(out, start), nil
}

// raise sets the version of a document of the program's.
func (s *saved) raise(after any) error {
	o := s.bson
	o.ClearMaps, o.ClearStructs = false, false
	doc := s.after
	if reflect.TypeOf(after).Elem().Kind() != reflect.Slice { // a D or a Raw is decoded as a whole
		start, out := bson.BeginDocument(nil)
		doc = bson.EndDocument(bson.AppendRawValue(out, s.version, s.next), start)
	}
	return o.Unmarshal(doc, after)
}

// DeleteOptions are the options of DeleteOne and DeleteMany. The zero value of a field leaves it to
// the server.
type DeleteOptions struct {
	// Collation says how strings are compared.
	Collation *Collation
	// Hint is the index to use, by its name or its keys.
	Hint any
	// Let defines variables for aggregation expressions in the filter.
	Let any
	// Comment is any value. The server adds it to its logs and profiles.
	Comment any
	// RawData addresses the stored buckets of a time series collection (server 8.2 and later). It
	// is for the server's own tools, and may change or go at any time.
	RawData bool
	// Timeout bounds the operation; a pointer to 0 means no limit.
	Timeout *time.Duration
}

// DeleteResult is the result of DeleteOne and DeleteMany.
type DeleteResult struct {
	DeletedCount int64
	// Acknowledged is false if the write concern is unacknowledged; the count is then 0.
	Acknowledged bool
}

// DeleteOne deletes the first document that matches the filter. It is retried once after a network
// error or a failover unless the client's RetryWrites is off, and is never applied twice.
func (c *Collection[T]) DeleteOne(ctx context.Context, filter any, opts ...DeleteOptions) (DeleteResult, error) {
	return c.delete(ctx, command.DeleteStatement{Filter: filter}, opts)
}

// DeleteMany deletes all documents that match the filter. It is not retried after a network error.
func (c *Collection[T]) DeleteMany(ctx context.Context, filter any, opts ...DeleteOptions) (DeleteResult, error) {
	return c.delete(ctx, command.DeleteStatement{Filter: filter, Multi: true}, opts)
}

func (c *Collection[T]) delete(ctx context.Context, s command.DeleteStatement,
	opts []DeleteOptions) (DeleteResult, error) {
	o := option.Merge(opts)
	s.Collation, s.Hint = o.Collation.raw(), o.Hint
	cmd := &command.Delete{Collection: c.name, Statements: []command.DeleteStatement{s}, Ordered: true, Let: o.Let,
		Comment: o.Comment, RawData: o.RawData}
	w := writer{inherited: &c.inherited, err: c.err, timeout: o.Timeout}
	reply, acknowledged, err := w.one(ctx, cmd)
	return DeleteResult{DeletedCount: reply.n, Acknowledged: acknowledged}, err
}
