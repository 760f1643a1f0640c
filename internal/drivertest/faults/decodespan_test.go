package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/spantest"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// choosy does not decode what has the field odd, and runs what it is told to as it decodes.
type choosy struct{ Odd string }

var whileChoosyDecodes func() error

var errChoosy = errors.New("what is odd is not for me")

func (p *choosy) UnmarshalBSON(data []byte) error {
	if whileChoosyDecodes != nil {
		return whileChoosyDecodes()
	}
	if bson.Raw(data).Lookup("odd").IsZero() {
		return nil
	}
	return errChoosy
}

// TestSpansOfReplies: what is wrong with a reply, a document that does not decode above all, is in
// the span of its operation, as it is in the error of the call. That there is no document is not.
func TestSpansOfReplies(t *testing.T) {
	client, r, d := rig.Traced(t, allium.Tracing{Enabled: new(true)})
	ctx, db := t.Context(), client.Database("d")
	coll := allium.CollectionOf[choosy](db, "c")
	odd := bson.D{{Key: "odd", Value: "x"}}
	reset := func() {
		_ = coll.Drop(ctx)
		rig.Must(db.Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "odd", Value: "x"}}))
		r.Take()
	}
	set, none := bson.D{{Key: "$set", Value: bson.D{{Key: "y", Value: 1}}}}, bson.D{{Key: "x", Value: "none"}}
	var reply atomic.Pointer[bson.Raw] // of the command, in place of the server's
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "ping" || c.Name == "hello" {
			return nil, nil
		}
		if out := reply.Swap(nil); out != nil {
			return *out, nil
		}
		return nil, nil
	})
	broken := rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "d.c"}, {Key: "firstBatch", Value: "no batch"}}}}))
	databases := rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "databases", Value: bson.A{bson.D{{Key: "name", Value: 5}}}}}))
	write := rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 0}, {Key: "writeErrors", Value: bson.A{5}}}))
	stray := func(field string, indexes ...int) bson.Raw {
		list := bson.A{}
		for _, i := range indexes {
			list = append(list, bson.D{{Key: "index", Value: i}, {Key: "_id", Value: 1}, {Key: "code", Value: 1}, {Key: "errmsg", Value: "no"}})
		}
		return rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}, {Key: field, Value: list}}))
	}
	upsert := func(ctx context.Context) error {
		return rig.ErrorOf(coll.UpdateOne(ctx, none, set, allium.UpdateOptions{Upsert: true}))
	}
	insertMany := func(ctx context.Context) error { return rig.ErrorOf(coll.InsertMany(ctx, []choosy{{}, {}})) }
	ok := rig.Must(bson.Marshal(bson.D{{Key: "ok", Value: 1}}))
	for _, test := range []struct {
		name  string
		run   func(ctx context.Context) error
		reply bson.Raw
		want  any // what the error is, nil for none in the span
	}{
		{"FindOne", func(ctx context.Context) error { return rig.ErrorOf(coll.FindOne(ctx, odd)) }, nil, errChoosy},
		{"FindOneAndUpdate", func(ctx context.Context) error { return rig.ErrorOf(coll.FindOneAndUpdate(ctx, odd, set)) }, nil, errChoosy},
		{"FindOneAndReplace", func(ctx context.Context) error { return rig.ErrorOf(coll.FindOneAndReplace(ctx, odd, choosy{})) }, nil, errChoosy},
		{"FindOneAndDelete", func(ctx context.Context) error { return rig.ErrorOf(coll.FindOneAndDelete(ctx, odd)) }, nil, errChoosy},
		{"Distinct", func(ctx context.Context) error { return rig.ErrorOf(allium.Distinct[int](ctx, coll, "odd", bson.D{})) }, nil, mongoerr.DecodeErrors{}},
		{"ListDatabases", func(ctx context.Context) error { return rig.ErrorOf(client.ListDatabases(ctx)) }, databases, mongoerr.DecodeErrors{}},
		{"FindOne finds nothing", func(ctx context.Context) error { return rig.ErrorOf(coll.FindOne(ctx, none)) }, nil, nil},
		{"FindOneAndUpdate finds nothing", func(ctx context.Context) error { return rig.ErrorOf(coll.FindOneAndUpdate(ctx, none, set)) }, nil, nil},
		{"FindOneAndDelete finds nothing", func(ctx context.Context) error { return rig.ErrorOf(coll.FindOneAndDelete(ctx, none)) }, nil, nil},
		{"CountDocuments", func(ctx context.Context) error { return rig.ErrorOf(coll.CountDocuments(ctx, none)) }, nil, nil},

		{"FindOne, broken", func(ctx context.Context) error { return rig.ErrorOf(coll.FindOne(ctx, odd)) }, broken, ""},
		{"Find, broken", func(ctx context.Context) error { return rig.ErrorOf(coll.Find(ctx, odd)) }, broken, ""},
		{"Aggregate, broken", func(ctx context.Context) error { return rig.ErrorOf(coll.Aggregate(ctx, []bson.D{})) }, broken, ""},
		{"ListCollections, broken", func(ctx context.Context) error { return rig.ErrorOf(db.ListCollections(ctx)) }, broken, ""},
		{"ListIndexes, broken", func(ctx context.Context) error { return rig.ErrorOf(coll.ListIndexes(ctx)) }, broken, ""},
		{"Watch, broken", func(ctx context.Context) error { return rig.ErrorOf(coll.Watch(ctx, nil)) }, broken, ""},
		{"RunCursorCommand, broken", func(ctx context.Context) error {
			return rig.ErrorOf(db.RunCursorCommand(ctx, bson.D{{Key: "find", Value: "c"}}))
		}, broken, ""},
		{"CountDocuments, broken", func(ctx context.Context) error { return rig.ErrorOf(coll.CountDocuments(ctx, odd)) }, broken, ""},
		{"EstimatedDocumentCount, broken", func(ctx context.Context) error { return rig.ErrorOf(coll.EstimatedDocumentCount(ctx)) }, ok, ""},
		{"ListDatabases, broken", func(ctx context.Context) error { return rig.ErrorOf(client.ListDatabases(ctx)) }, ok, ""},
		{"Distinct, broken", func(ctx context.Context) error { return rig.ErrorOf(allium.Distinct[int](ctx, coll, "odd", bson.D{})) }, ok, ""},
		{"CreateSearchIndex, broken", func(ctx context.Context) error {
			return rig.ErrorOf(coll.CreateSearchIndex(ctx, allium.SearchIndexModel{Definition: bson.D{}}))
		}, ok, ""},
		{"InsertOne, broken", func(ctx context.Context) error { return rig.ErrorOf(db.Collection("c").InsertOne(ctx, bson.D{})) }, write, ""},
		{"UpdateMany, broken", func(ctx context.Context) error { return rig.ErrorOf(coll.UpdateMany(ctx, odd, set)) }, write, ""},
		{"InsertMany, broken", func(ctx context.Context) error { return rig.ErrorOf(db.Collection("c").InsertMany(ctx, []bson.D{{}})) }, write, ""},
		{"an upsert too many", upsert, stray("upserted", 1), "the same"},
		{"an upsert before the first", upsert, stray("upserted", -1), "the same"},
		{"an upsert twice", insertMany, stray("upserted", 1, 1), "the same"},
		{"a failure too many", upsert, stray("writeErrors", 1), "the same"},
		{"a failure twice", insertMany, stray("writeErrors", 1, 1), "the same"},
		{"a failure behind the last", insertMany, stray("writeErrors", 0, 2), "the same"},
	} {
		t.Run(test.name, func(t *testing.T) {
			reset()
			if test.reply != nil {
				reply.Store(&test.reply)
			}
			err := test.run(ctx)
			spans := r.Take()
			if len(spans) != 1 {
				t.Fatalf("spans are\n%s", spantest.Outline(spans))
			}
			s := spans[0]
			for _, below := range s.Nested {
				if len(below.Errors) > 0 {
					t.Errorf("the span of the command has %v", below.Errors)
				}
			}
			switch want := test.want.(type) {
			case nil:
				if len(s.Errors) > 0 || s.Attributes["exception.message"] != nil {
					t.Errorf("the span has %v", s.Errors)
				}
				if err != nil && !errors.Is(err, mongoerr.ErrNoDocuments) {
					t.Error(err)
				}
				return
			case error:
				if odd := (mongoerr.DecodeErrors{}); !errors.Is(err, want) && !errors.As(err, &odd) {
					t.Errorf("error %v, want %v", err, want)
				}
			}
			if len(s.Errors) != 1 || err == nil || !s.Ended {
				t.Fatalf("error %v, and the span has %v", err, s.Errors)
			}
			if test.want != "" && s.Errors[0].Error() != err.Error() {
				t.Errorf("the span has %v, want %v", s.Errors[0], err)
			}
			text, _ := s.Attributes["exception.message"].(string)
			stack, _ := s.Attributes["exception.stacktrace"].(string)
			if text != s.Errors[0].Error() || s.Attributes["exception.type"] != fmt.Sprintf("%T", s.Errors[0]) || !strings.Contains(stack, "goroutine") {
				t.Errorf("attributes %v", s.Attributes)
			}
		})
	}
}

// TestSpansAroundDecoding: the span of an operation, and its place in Stats, last until the
// documents are decoded, while the operation holds neither its session nor a connection; and they
// end when decoding panics. What iterates over a cursor decodes outside of operations.
func TestSpansAroundDecoding(t *testing.T) {
	d := testdeploy.Start(t, testdeploy.ReplicaSet(1))
	r := &spantest.Recorder{}
	client := rig.Open(t, d.URI(), allium.ClientOptions{Tracing: &allium.Tracing{Tracer: r, Enabled: new(true)}, MaxPoolSize: new(1)})
	ctx := t.Context()
	coll := allium.CollectionOf[choosy](client.Database("d"), "c")
	rig.Must(client.Database("d").Collection("c").InsertOne(ctx, bson.D{{Key: "odd", Value: "x"}}))
	defer func() { whileChoosyDecodes = nil }()
	inside := func() {
		t.Helper()
		phases := ""
		for _, op := range client.Stats().OldestOperations {
			phases += string(op.Phase)
		}
		if phases != "decoding" {
			t.Errorf("operations are %q, want one that decodes", phases)
		}
	}
	for name, run := range map[string]func(ctx context.Context) error{
		"FindOne": func(ctx context.Context) error { return rig.ErrorOf(coll.FindOne(ctx, bson.D{})) },
		"FindOneAndUpdate": func(ctx context.Context) error {
			return rig.ErrorOf(coll.FindOneAndUpdate(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "y", Value: 1}}}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.Take()
			if err := client.Transact(ctx, func(ctx context.Context) error {
				whileChoosyDecodes = func() error {
					inside()
					return rig.ErrorOf(client.Database("d").Collection("c").FindOne(ctx, bson.D{}))
				}
				return run(ctx)
			}); err != nil {
				t.Error(err)
			}
			whileChoosyDecodes = func() error { panic("choosy") }
			r.Take()
			func() {
				defer func() { _ = recover() }()
				_ = run(ctx)
			}()
			if spans := r.Take(); len(spans) != 1 || !spans[0].Ended || len(spans[0].Errors) != 1 {
				t.Errorf("after a panic: spans are\n%s", spantest.Outline(spans))
			}
			whileChoosyDecodes = nil
		})
	}
	whileChoosyDecodes = func() error { return errChoosy }
	cur := rig.Must(coll.Find(ctx, bson.D{}))
	r.Take()
	if cur.Next(ctx) || !errors.Is(cur.Err(), errChoosy) {
		t.Errorf("error %v, want %v", cur.Err(), errChoosy)
	}
	if spans := r.Take(); len(spans) > 0 {
		t.Errorf("spans are\n%s", spantest.Outline(spans))
	}
	cur.Close(ctx)
}

// TestSpansOfBatchesThatPanic: the span of an operation of several commands ends when code of the
// program's panics in it.
func TestSpansOfBatchesThatPanic(t *testing.T) {
	client, r, _ := rig.Traced(t, allium.Tracing{Enabled: new(true)})
	ctx, bad := t.Context(), coded{encode: func() { panic("coded") }}
	coll := allium.CollectionOf[coded](client.Database("d"), "c")
	for name, run := range map[string]func(){
		"InsertMany": func() { _, _ = coll.InsertMany(ctx, []coded{{}, bad}) },
		"BulkWrite":  func() { _, _ = coll.BulkWrite(ctx, []allium.WriteModel{coll.InsertOneModel(bad)}) },
		"Client.BulkWrite": func() {
			_, _ = client.BulkWrite(ctx, []allium.WriteModel{coll.InsertOneModel(bad)})
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			run()
		}()
		if spans := r.Take(); len(spans) != 1 || !spans[0].Ended || len(spans[0].Errors) != 1 {
			t.Errorf("%s: spans are\n%s", name, spantest.Outline(spans))
		}
	}
}
