package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

// picky is a type that some documents do not fit, for reasons of each kind.
type picky struct {
	ID int   `bson:"_id"`
	N  int8  `bson:"n"`
	V  vague `bson:"v"`
}

type vague struct{ s string }

var errVague = errors.New("the program's own reason")

func (v *vague) UnmarshalBSONValue(_ byte, data []byte) error {
	if len(data) > 4+3 {
		return errVague
	}
	v.s = "fine"
	return nil
}

// misfits are fields that do not decode as picky's.
var misfits = []bson.E{{Key: "n", Value: "text"}, {Key: "n", Value: 1000}, {Key: "n", Value: 1.5}, {Key: "v", Value: "long text"}}

// oddCollection returns a collection in which the documents with these numbers, out of n, are odd.
func oddCollection(t *testing.T, n int, odd []int) *allium.Collection[picky] {
	t.Helper()
	db := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI()).Database("odd")
	fillOdd(t, db, n, odd)
	return allium.CollectionOf[picky](db, "c")
}

func fillOdd(t *testing.T, db *allium.Database, n int, odd []int) {
	t.Helper()
	for i := range n {
		doc := bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "v", Value: ""}}
		if slices.Contains(odd, i) {
			doc = bson.D{{Key: "_id", Value: i}, misfits[i%len(misfits)]}
		}
		if _, err := db.Collection("c").InsertOne(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
}

// reading is what was read of a cursor or a stream: "0 1 !2 3" has an odd document after the
// second.
type reading struct {
	t     *testing.T
	items []string
}

func (r *reading) document(id int) { r.items = append(r.items, fmt.Sprint(id)) }

// odd checks an error of a document that does not decode, and reports whether it is one.
func (r *reading) odd(err error) bool {
	r.t.Helper()
	e, ok := errors.AsType[*mongoerr.DecodeError](err)
	if !ok {
		return false
	}
	id := e.Document.Lookup("_id")
	if e.ResumeToken != nil {
		id = e.Document.Lookup("documentKey", "_id")
	}
	n, ok := id.AsInt64()
	if !ok || e.Namespace != "odd.c" {
		r.t.Fatalf("error has document %v of %q", e.Document, e.Namespace)
	}
	if _, ok := errors.AsType[*bson.DecodeError](err); !ok {
		r.t.Errorf("%v does not wrap the decoder's error", err)
	}
	if own := misfits[int(n)%len(misfits)].Key == "v"; errors.Is(err, errVague) != own {
		r.t.Errorf("%v: wraps the program's error: %v, want %v", err, !own, own)
	}
	if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, fmt.Sprintf("with _id %d: ", n)) || !strings.Contains(text, "odd.c") {
		r.t.Errorf("text is %q", text)
	}
	r.items = append(r.items, fmt.Sprint("!", n))
	return true
}

func (r *reading) want(n int, odd []int) {
	r.t.Helper()
	var want []string
	for i := range n {
		if slices.Contains(odd, i) {
			want = append(want, fmt.Sprint("!", i))
		} else {
			want = append(want, fmt.Sprint(i))
		}
	}
	if !slices.Equal(r.items, want) {
		r.t.Errorf("read %v, want %v", r.items, want)
	}
}

// cursorLoops are the ways to read a cursor to its end past odd documents.
var cursorLoops = map[string]func(ctx context.Context, r *reading, cur *allium.Cursor[picky]) error{
	"Next": func(ctx context.Context, r *reading, cur *allium.Cursor[picky]) error {
		for {
			for cur.Next(ctx) {
				r.document(cur.Current().ID)
			}
			if !r.odd(cur.Err()) {
				return cur.Err()
			}
			if cur.Current() != (picky{}) {
				r.t.Errorf("current document is %v", cur.Current())
			}
		}
	},
	"TryNext": func(ctx context.Context, r *reading, cur *allium.Cursor[picky]) error {
		for {
			switch {
			case cur.TryNext(ctx):
				r.document(cur.Current().ID)
			case r.odd(cur.Err()):
			case cur.Err() != nil || cur.ID() == 0:
				return cur.Err()
			}
		}
	},
	"Seq": func(ctx context.Context, r *reading, cur *allium.Cursor[picky]) error {
		for doc, err := range cur.Seq(ctx) {
			if err != nil && !r.odd(err) {
				return err
			}
			if err == nil {
				r.document(doc.ID)
			} else if doc != (picky{}) {
				r.t.Errorf("document beside an error is %v", doc)
			}
		}
		return nil
	},
	"several Seqs": func(ctx context.Context, r *reading, cur *allium.Cursor[picky]) error {
		for doc, err := range cur.Seq(ctx) {
			if !r.odd(err) {
				r.document(doc.ID)
			}
			break // which closes the cursor
		}
		for _, err := range cur.Seq(ctx) {
			return err
		}
		return errors.New("no error of a closed cursor")
	},
}

func oddPlaces(n int) [][]int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return [][]int{nil, {0}, {n - 1}, {0, 1}, {n / 2}, {1, 2, n - 2}, all}
}

// TestOddDocuments reads every document beside those that do not decode, wherever they stand in
// their batches, in each kind of loop over each kind of cursor.
func TestOddDocuments(t *testing.T) {
	const n = 7
	for _, odd := range oddPlaces(n) {
		c := oddCollection(t, n, odd)
		opens := map[string]func(batch int32) (*allium.Cursor[picky], error){
			"find": func(batch int32) (*allium.Cursor[picky], error) {
				return c.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: &batch, Sort: bson.D{{Key: "_id", Value: 1}}})
			},
			"aggregate": func(batch int32) (*allium.Cursor[picky], error) {
				return c.Aggregate(t.Context(), bson.A{bson.D{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}}}, allium.AggregateOptions{BatchSize: &batch})
			},
			"command": func(batch int32) (*allium.Cursor[picky], error) {
				return allium.RunCursorCommand[picky](t.Context(), c.Database(), bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: batch}})
			},
			"limit": func(batch int32) (*allium.Cursor[picky], error) {
				return c.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: &batch, Limit: n})
			},
		}
		for kind, open := range opens {
			for loop, run := range cursorLoops {
				for batch := int32(2); batch <= n+1; batch += 2 {
					t.Run(fmt.Sprintf("%v %s %s %d", odd, kind, loop, batch), func(t *testing.T) {
						cur, err := open(batch)
						if err != nil {
							t.Fatal(err)
						}
						r := &reading{t: t}
						err = run(t.Context(), r, cur)
						if loop == "several Seqs" {
							if err == nil || !strings.Contains(err.Error(), "closed") || len(r.items) != 1 {
								t.Errorf("%v, %v", r.items, err)
							}
							return
						}
						if err != nil {
							t.Fatal(err)
						}
						r.want(n, odd)
					})
				}
			}
			t.Run(fmt.Sprintf("%v %s All", odd, kind), func(t *testing.T) {
				cur, err := open(2)
				if err != nil {
					t.Fatal(err)
				}
				all, err := cur.All(t.Context())
				var errs mongoerr.DecodeErrors
				if errors.As(err, &errs) != (odd != nil) || len(all) != n-len(odd) || len(errs) != len(odd) {
					t.Fatalf("%v, %v", all, err)
				}
				for i, e := range errs {
					if r := (&reading{t: t}); !r.odd(e) || r.items[0] != fmt.Sprint("!", odd[i]) || e.Index != int64(odd[i]) {
						t.Errorf("error %d is %v", i, e)
					}
				}
			})
		}
	}
}

// An error that ends the iteration does so after odd documents, too, and All has both.
func TestOddDocumentBeforeOtherErrors(t *testing.T) {
	c := oddCollection(t, 6, []int{1})
	for loop, run := range cursorLoops {
		if loop == "several Seqs" {
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		cur, err := c.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(3))})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		r := &reading{t: t}
		if err := run(ctx, r, cur); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", loop, err)
		}
		r.want(3, []int{1})
		cur.Close(t.Context())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cur, err := c.Find(ctx, bson.D{}, allium.FindOptions{BatchSize: new(int32(3))})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	all, err := cur.All(ctx)
	if _, odd := errors.AsType[mongoerr.DecodeErrors](err); !odd || !errors.Is(err, context.Canceled) || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}

// A cursor that was closed after an odd document has ended.
func TestOddDocumentThenClose(t *testing.T) {
	c := oddCollection(t, 3, []int{0, 1, 2})
	cur, err := c.Find(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	if cur.Next(t.Context()) || !(&reading{t: t}).odd(cur.Err()) {
		t.Fatal(cur.Err())
	}
	cur.Close(t.Context())
	if _, odd := errors.AsType[*mongoerr.DecodeError](cur.Err()); cur.Next(t.Context()) || cur.Err() == nil || !odd {
		t.Errorf("after Close: %v", cur.Err())
	}
	if _, odd := errors.AsType[*mongoerr.DecodeError](cur.Err()); odd {
		t.Error("the closed cursor goes on")
	}
	s := rig.Watch(t, c, nil)
	fillOdd(t, c.Database(), 0, nil)
	if _, err := c.Database().Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 4}, misfits[0]}); err != nil {
		t.Fatal(err)
	}
	if s.Next(t.Context()) || !(&reading{t: t}).odd(s.Err()) {
		t.Fatal(s.Err())
	}
	s.Close(t.Context())
	if _, odd := errors.AsType[*mongoerr.DecodeError](s.Err()); s.Next(t.Context()) || !odd {
		t.Errorf("after Close: %v", s.Err())
	}
	if _, odd := errors.AsType[*mongoerr.DecodeError](s.Err()); odd {
		t.Error("the closed stream goes on")
	}
}

func TestOddDocumentTailable(t *testing.T) {
	db := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1)).URI()).Database("odd")
	if err := db.CreateCollection(t.Context(), "c", allium.CreateCollectionOptions{Capped: true, SizeInBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	odd := []int{0, 3, 4}
	fillOdd(t, db, 5, odd)
	for _, kind := range []allium.CursorType{allium.CursorTailable, allium.CursorTailableAwait} {
		cur, err := allium.CollectionOf[picky](db, "c").Find(t.Context(), bson.D{}, allium.FindOptions{CursorType: kind, BatchSize: new(int32(2))})
		if err != nil {
			t.Fatal(err)
		}
		r := &reading{t: t}
		for len(r.items) < 5 {
			if cur.Next(t.Context()) {
				r.document(cur.Current().ID)
			} else if cur.Err() != nil && !r.odd(cur.Err()) {
				t.Fatal(cur.Err())
			}
		}
		r.want(5, odd)
		cur.Close(t.Context())
	}
}

// TestOddReply covers the operations that return documents without a cursor.
func TestOddReply(t *testing.T) {
	for i := range misfits {
		c := oddCollection(t, i+1, []int{i})
		ctx, filter := t.Context(), bson.D{{Key: "_id", Value: i}}
		for name, run := range map[string]func() (picky, error){
			"FindOne": func() (picky, error) { return c.FindOne(ctx, filter) },
			"FindOneAndUpdate": func() (picky, error) {
				return c.FindOneAndUpdate(ctx, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}})
			},
			"ReturnNew": func() (picky, error) {
				return c.FindOneAndUpdate(ctx, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}, allium.FindOneAndUpdateOptions{ReturnNew: true})
			},
		} {
			doc, err := run()
			if !(&reading{t: t}).odd(err) || doc != (picky{}) {
				t.Errorf("%s: %v, %v", name, doc, err)
			}
		}
		doc, err := c.FindOneAndReplace(ctx, filter, picky{ID: i, N: 2, V: vague{}})
		if !(&reading{t: t}).odd(err) {
			t.Errorf("FindOneAndReplace: %v, %v", doc, err)
		}
		fillOdd(t, c.Database(), 0, nil)
		if _, err := c.Database().Collection("c").ReplaceOne(ctx, filter, bson.D{misfits[i]}); err != nil {
			t.Fatal(err)
		}
		if doc, err = c.FindOneAndDelete(ctx, filter); !(&reading{t: t}).odd(err) {
			t.Errorf("FindOneAndDelete: %v, %v", doc, err)
		}
		if n, err := c.CountDocuments(ctx, filter); n != 0 || err != nil {
			t.Errorf("%d left, %v", n, err)
		}
	}
}

func TestOddDistinct(t *testing.T) {
	c := oddCollection(t, 0, nil)
	values := []any{1, "text", 2.5, int64(1) << 40, 3, bson.D{{Key: "a", Value: 1}}}
	for i, v := range values {
		if _, err := c.Database().Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "x", Value: v}}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := allium.Distinct[int32](t.Context(), c, "x", bson.D{})
	slices.Sort(got)
	if !slices.Equal(got, []int32{1, 3}) {
		t.Errorf("%v, %v", got, err)
	}
	errs, ok := errors.AsType[mongoerr.DecodeErrors](err)
	if !ok || len(errs) != 4 {
		t.Fatal(err)
	}
	var odd []string
	for _, e := range errs {
		odd = append(odd, e.Value.String())
		if e.Namespace != "odd.c" || e.Document != nil {
			t.Errorf("%+v", e)
		}
	}
	if slices.Sort(odd); len(odd) != 4 || !slices.Contains(odd, `"text"`) {
		t.Errorf("odd values %v", odd)
	}
	if !strings.HasPrefix(err.Error(), "distinct odd.c: decode value ") || !strings.HasSuffix(err.Error(), " (and 3 more do not decode)") {
		t.Error(err)
	}
	if all, err := allium.Distinct[any](t.Context(), c, "x", bson.D{}); len(all) != len(values) || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// streamLoops are the ways to read n events past odd ones.
var streamLoops = map[string]func(ctx context.Context, r *reading, s *allium.ChangeStream[picky], n int) error{
	"Next": func(ctx context.Context, r *reading, s *allium.ChangeStream[picky], n int) error {
		for len(r.items) < n {
			if s.Next(ctx) {
				r.event(s.Current(), s)
			} else if !r.oddEvent(s.Current(), s.Err(), s) {
				return s.Err()
			}
		}
		return nil
	},
	"TryNext": func(ctx context.Context, r *reading, s *allium.ChangeStream[picky], n int) error {
		for len(r.items) < n {
			if s.TryNext(ctx) {
				r.event(s.Current(), s)
			} else if s.Err() != nil && !r.oddEvent(s.Current(), s.Err(), s) {
				return s.Err()
			}
		}
		return nil
	},
	"Seq": func(ctx context.Context, r *reading, s *allium.ChangeStream[picky], n int) error {
		for ev, err := range s.Seq(ctx) {
			if err == nil {
				r.event(ev, s)
			} else if !r.oddEvent(ev, err, s) {
				return err
			}
			if len(r.items) == n {
				return nil
			}
		}
		return errors.New("ended early")
	},
}

func (r *reading) event(e allium.ChangeEvent[picky], s *allium.ChangeStream[picky]) {
	r.t.Helper()
	r.document(e.FullDocument.ID)
	r.token(e, s)
}

func (r *reading) oddEvent(e allium.ChangeEvent[picky], err error, s *allium.ChangeStream[picky]) bool {
	r.t.Helper()
	odd, ok := errors.AsType[*mongoerr.DecodeError](err)
	if !ok || !r.odd(err) {
		return false
	}
	if string(odd.ResumeToken) != string(e.ID) || string(odd.Document) != string(e.Raw) || e.FullDocument != nil ||
		e.OperationType != allium.ChangeInsert || e.ClusterTime.IsZero() || e.Namespace != (allium.Namespace{DB: "odd", Collection: "c"}) {
		r.t.Errorf("event %+v, error %+v", e, odd)
	}
	r.token(e, s)
	return true
}

// token checks that the stream's token is behind the event: a stream that resumes there finds what
// follows.
func (r *reading) token(e allium.ChangeEvent[picky], s *allium.ChangeStream[picky]) {
	r.t.Helper()
	if string(e.ID) == "" || s.ResumeToken() == nil {
		r.t.Fatalf("event %v, token %v", e.ID, s.ResumeToken())
	}
}

// TestOddEvents reads every event of a change stream beside those whose documents do not decode,
// and resumes behind each.
func TestOddEvents(t *testing.T) {
	const n = 6
	for _, odd := range oddPlaces(n) {
		c := oddCollection(t, 0, nil)
		ctx, db := t.Context(), c.Database()
		start := rig.Watch(t, c, nil).ResumeToken()
		fillOdd(t, db, n, odd)
		for loop, run := range streamLoops {
			for _, batch := range []int32{1, 2, 50} {
				t.Run(fmt.Sprintf("%v %s %d", odd, loop, batch), func(t *testing.T) {
					o := allium.WatchOptions{ResumeAfter: start, BatchSize: &batch}
					r := &reading{t: t}
					if err := run(ctx, r, rig.Watch(t, c, nil, o), n); err != nil {
						t.Fatal(err)
					}
					r.want(n, odd)
				})
			}
		}
		// One event per stream, each resumed where the one before ended.
		for _, fromError := range []bool{false, true} {
			r, token := &reading{t: t}, start
			for len(r.items) < n {
				s := rig.Watch(t, c, nil, allium.WatchOptions{ResumeAfter: token})
				if err := streamLoops["Next"](ctx, r, s, len(r.items)+1); err != nil {
					t.Fatal(err)
				}
				token = s.ResumeToken()
				if e, ok := errors.AsType[*mongoerr.DecodeError](s.Err()); ok && fromError {
					token = e.ResumeToken
				}
				s.Close(ctx)
			}
			r.want(n, odd)
		}
	}
}
