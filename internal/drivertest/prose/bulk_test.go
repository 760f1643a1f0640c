package prose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/drivertest/rig"
	"allium/internal/norace"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// counts are those of a result of the specification Bulk API.
type counts struct{ inserted, upserted, matched, modified, removed int64 }

func countsOf(r allium.BulkWriteResult) counts {
	return counts{r.InsertedCount, r.UpsertedCount, r.MatchedCount, r.ModifiedCount, r.DeletedCount}
}

// withoutIDs prints the documents of a collection without their _id, sorted.
func withoutIDs(t *testing.T, coll *allium.UntypedCollection) string {
	t.Helper()
	cur, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{Projection: rig.FieldOf("_id", 0)})
	if err != nil {
		t.Fatal(err)
	}
	all, err := cur.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, d := range all {
		parts := []string{}
		for _, e := range d {
			parts = append(parts, fmt.Sprintf("%s: %v", e.Key, e.Value))
		}
		slices.Sort(parts)
		lines = append(lines, "{"+strings.Join(parts, ", ")+"}")
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// bothOrders runs a test for an ordered and for an unordered bulk write.
func bothOrders(t *testing.T, f func(t *testing.T, o allium.BulkWriteOptions)) {
	t.Helper()
	t.Run("ordered", func(t *testing.T) { f(t, allium.BulkWriteOptions{}) })
	t.Run("unordered", func(t *testing.T) { f(t, allium.BulkWriteOptions{Unordered: true}) })
}

// TestProseBulkAPI holds the cases of the specification Bulk API (deprecated), "Detailed Test
// Cases", that have a result. What its builder does not let a caller say, such as an update without
// a selector, is an error of BulkWrite: TestProseBulkAPIRefuses.
func TestProseBulkAPI(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{}, testdeploy.ReplicaSet(1).Since("8.0"))
	one, two := rig.FieldOf("key", int32(1)), rig.FieldOf("key", int32(2))
	for _, tc := range []struct {
		name     string
		start    []bson.D
		run      rig.Writes
		want     counts
		upserted []int // the indexes of what was upserted
		after    string
		repeated *counts // what the same models do the second time
	}{
		{name: "INSERT 4", run: rig.Writes{rig.InsertOf(rig.FieldOf("x", int32(1)))}, want: counts{inserted: 1}, after: "{x: 1}"},
		{name: "INSERT 5", run: rig.Writes{rig.InsertOf(bson.D{})}, want: counts{inserted: 1}, after: "{}"},
		{name: "UPDATE 4", start: []bson.D{one, two}, run: rig.Writes{rig.UpdateOf(bson.D{}, rig.SetOf("x", int32(3)))},
			want: counts{matched: 2, modified: 2}, after: "{key: 1, x: 3} {key: 2, x: 3}"},
		{name: "UPDATE 5", start: []bson.D{one, two}, run: rig.Writes{rig.UpdateOf(one, rig.SetOf("x", int32(1))), rig.UpdateOf(two, rig.SetOf("x", int32(2)))},
			want: counts{matched: 2, modified: 2}, after: "{key: 1, x: 1} {key: 2, x: 2}"},
		{name: "UPDATE_ONE 4", start: []bson.D{one, two}, run: rig.Writes{rig.UpdateOneOf(one, rig.SetOf("key", int32(3)))},
			want: counts{matched: 1, modified: 1}, after: "{key: 2} {key: 3}"},
		{name: "REPLACE_ONE 4", start: []bson.D{one, one}, run: rig.Writes{rig.ReplaceOneOf(one, rig.FieldOf("key", int32(3)))},
			want: counts{matched: 1, modified: 1}, after: "{key: 1} {key: 3}"},
		{name: "UPSERT-UPDATE 1", run: rig.Writes{rig.UpdateOf(one, rig.SetOf("x", int32(1))), rig.UpsertOf(rig.UpdateOf(two, rig.SetOf("x", int32(2))))},
			want: counts{upserted: 1}, upserted: []int{1}, after: "{key: 2, x: 2}", repeated: &counts{matched: 1}},
		{name: "UPSERT-UPDATE 2", start: []bson.D{one, one}, run: rig.Writes{rig.UpsertOf(rig.UpdateOf(one, rig.SetOf("x", int32(1))))},
			want: counts{matched: 2, modified: 2}, after: "{key: 1, x: 1} {key: 1, x: 1}"},
		{name: "UPSERT-UPDATE_ONE 1", run: rig.Writes{rig.UpdateOneOf(one, rig.SetOf("x", int32(1))), rig.UpsertOf(rig.UpdateOneOf(two, rig.SetOf("x", int32(2))))},
			want: counts{upserted: 1}, upserted: []int{1}, after: "{key: 2, x: 2}"},
		{name: "UPSERT-UPDATE_ONE 2", start: []bson.D{one, one}, run: rig.Writes{rig.UpsertOf(rig.UpdateOneOf(one, rig.SetOf("x", int32(1))))},
			want: counts{matched: 1, modified: 1}, after: "{key: 1, x: 1} {key: 1}"},
		{name: "UPSERT-REPLACE_ONE 1", run: rig.Writes{rig.ReplaceOneOf(one, rig.FieldOf("x", int32(1))), rig.UpsertOf(rig.ReplaceOneOf(two, rig.FieldOf("x", int32(2))))},
			want: counts{upserted: 1}, upserted: []int{1}, after: "{x: 2}"},
		{name: "UPSERT-REPLACE_ONE 2", start: []bson.D{one, one}, run: rig.Writes{rig.UpsertOf(rig.ReplaceOneOf(one, rig.FieldOf("x", int32(1))))},
			want: counts{matched: 1, modified: 1}, after: "{key: 1} {x: 1}"},
		{name: "REMOVE 1", start: []bson.D{one, one}, run: rig.Writes{rig.RemoveOf(bson.D{})}, want: counts{removed: 2}},
		{name: "REMOVE 2", start: []bson.D{one, two}, run: rig.Writes{rig.RemoveOf(one)}, want: counts{removed: 1}, after: "{key: 2}"},
		{name: "REMOVE_ONE 2", start: []bson.D{one, one}, run: rig.Writes{rig.RemoveOneOf(bson.D{})}, want: counts{removed: 1}, after: "{key: 1}"},
		{name: "nModified", start: []bson.D{{{Key: "x", Value: int32(1)}}}, run: rig.Writes{rig.UpdateOf(bson.D{}, rig.SetOf("x", int32(1)))}, want: counts{matched: 1}, after: "{x: 1}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bothOrders(t, func(t *testing.T, o allium.BulkWriteOptions) {
				coll := emptied(t, p, tc.start...)
				res, err := coll.BulkWrite(t.Context(), tc.run.Of(coll), o)
				if err != nil {
					t.Fatal(err)
				}
				if got := countsOf(res); got != tc.want {
					t.Errorf("%+v, want %+v", got, tc.want)
				}
				checkUpserted(t, res, tc.upserted...)
				if got := withoutIDs(t, coll); got != tc.after {
					t.Errorf("the collection holds %s, want %s", got, tc.after)
				}
				if tc.repeated == nil {
					return
				}
				if res, err = coll.BulkWrite(t.Context(), tc.run.Of(coll), o); err != nil || countsOf(res) != *tc.repeated {
					t.Errorf("again: %+v, %v; want %+v", countsOf(res), err, *tc.repeated)
				}
			})
		})
	}
	t.Run("UPSERT-UPDATE 2: 16 MiB", func(t *testing.T) {
		norace.Skip(t, rig.Huge)
		bothOrders(t, func(t *testing.T, o allium.BulkWriteOptions) {
			coll := emptied(t, p)
			big := strings.Repeat("x", p.MaxDoc-64)
			if res, err := coll.BulkWrite(t.Context(), rig.Writes{rig.UpsertOf(rig.UpdateOf(one, rig.SetOf("x", big)))}.Of(coll), o); err != nil || res.UpsertedCount != 1 {
				t.Errorf("%+v, %v", countsOf(res), err)
			}
		})
	})
	t.Run("MIXED OPERATIONS, UNORDERED", func(t *testing.T) {
		coll := emptied(t, p, rig.FieldOf("a", int32(1)), rig.FieldOf("a", int32(2)))
		res, err := coll.BulkWrite(t.Context(), rig.Writes{rig.UpdateOf(rig.FieldOf("a", 1), rig.SetOf("b", 1)), rig.RemoveOf(rig.FieldOf("a", 2)), rig.InsertOf(rig.FieldOf("a", 3)),
			rig.UpsertOf(rig.UpdateOneOf(rig.FieldOf("a", 4), rig.SetOf("b", 4)))}.Of(coll), allium.BulkWriteOptions{Unordered: true})
		if err != nil || countsOf(res) != (counts{1, 1, 1, 1, 1}) {
			t.Errorf("%+v, %v", countsOf(res), err)
		}
		checkUpserted(t, res, 3)
		if len(res.InsertedIDs) != 1 || res.InsertedIDs[2] == nil {
			t.Errorf("inserted %v, want that of write 2", res.InsertedIDs)
		}
	})
	t.Run("MIXED OPERATIONS, ORDERED", func(t *testing.T) {
		coll := emptied(t, p)
		res, err := coll.BulkWrite(t.Context(), rig.Writes{rig.InsertOf(rig.FieldOf("a", 1)), rig.UpdateOneOf(rig.FieldOf("a", 1), rig.SetOf("b", 1)), rig.UpsertOf(rig.UpdateOneOf(rig.FieldOf("a", 2), rig.SetOf("b", 2))),
			rig.InsertOf(rig.FieldOf("a", 3)), rig.RemoveOf(rig.FieldOf("a", 3))}.Of(coll))
		if err != nil || countsOf(res) != (counts{2, 1, 1, 1, 1}) {
			t.Errorf("%+v, %v", countsOf(res), err)
		}
		checkUpserted(t, res, 2)
	})
	t.Run("ordered writes are sent as they come", func(t *testing.T) {
		coll := emptied(t, p)
		p.Recorder.Reset()
		if _, err := coll.BulkWrite(t.Context(), rig.Writes{rig.InsertOf(rig.FieldOf("a", 1)), rig.InsertOf(rig.FieldOf("a", 2)), rig.InsertOf(rig.FieldOf("a", 3)),
			rig.UpsertOf(rig.UpdateOneOf(rig.FieldOf("a", 2), rig.SetOf("a", 4))), rig.RemoveOneOf(rig.FieldOf("a", 1)), rig.InsertOf(rig.FieldOf("a", 5))}.Of(coll)); err != nil {
			t.Fatal(err)
		}
		p.CheckSent(t, "insert", "update", "delete", "insert")
	})
	t.Run("unordered writes are sent by kind", func(t *testing.T) {
		coll := emptied(t, p)
		p.Recorder.Reset()
		if _, err := coll.BulkWrite(t.Context(), rig.Writes{rig.InsertOf(rig.FieldOf("_id", 1)), rig.UpdateOneOf(rig.FieldOf("_id", 2), rig.SetOf("x", 1)), rig.RemoveOneOf(rig.FieldOf("_id", 3)),
			rig.InsertOf(rig.FieldOf("_id", 4)), rig.UpdateOneOf(rig.FieldOf("_id", 5), rig.SetOf("x", 1)), rig.RemoveOneOf(rig.FieldOf("_id", 6))}.Of(coll), allium.BulkWriteOptions{Unordered: true}); err != nil {
			t.Fatal(err)
		}
		p.CheckSent(t, "insert", "update", "delete")
	})
	t.Run("a retried list of models", func(t *testing.T) { // RE-RUNNING A BATCH is for builders: a list of models may be used again
		coll := emptied(t, p)
		models := rig.Writes{rig.InsertOf(bson.D{})}
		for i := range 2 {
			if res, err := coll.BulkWrite(t.Context(), models.Of(coll)); err != nil || res.InsertedCount != 1 {
				t.Errorf("run %d: %+v, %v", i, countsOf(res), err)
			}
		}
	})
}

// checkUpserted checks which writes upserted a document, each with an ObjectID.
func checkUpserted(t *testing.T, res allium.BulkWriteResult, want ...int) {
	t.Helper()
	if got := slices.Sorted(maps.Keys(res.UpsertedIDs)); !slices.Equal(got, want) {
		t.Errorf("writes %v upserted, want %v", got, want)
	}
	for i, id := range res.UpsertedIDs {
		if _, ok := id.(bson.ObjectID); !ok {
			t.Errorf("write %d upserted _id %v, want an ObjectID", i, id)
		}
	}
}

// The cases of the specification Bulk API that are errors before anything is sent.
func TestProseBulkAPIRefuses(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{}, testdeploy.ReplicaSet(1).Since("8.0"))
	p.Recorder.Reset()
	for name, m := range map[string]rig.Write{
		"INSERT 1":                     rig.InsertOf("foo"),
		"INSERT 1, INSERT 6":           rig.InsertOf([]bson.D{{}, {}}),
		"FIND 1, UPDATE 2":             rig.UpdateOf(nil, rig.SetOf("x", 1)),
		"UPDATE 1":                     rig.UpdateOf(bson.D{}, "foo"),
		"UPDATE 3":                     rig.UpdateOf(bson.D{}, rig.FieldOf("key", 1)),
		"UPDATE 3, mixed":              rig.UpdateOf(bson.D{}, bson.D{{Key: "key", Value: 1}, {Key: "$key", Value: 1}}),
		"UPDATE_ONE 1":                 rig.UpdateOneOf(bson.D{}, "foo"),
		"UPDATE_ONE 2":                 rig.UpdateOneOf(nil, rig.SetOf("x", 1)),
		"UPDATE_ONE 3":                 rig.UpdateOneOf(bson.D{}, rig.FieldOf("key", 1)),
		"UPDATE_ONE 3, mixed":          rig.UpdateOneOf(bson.D{}, bson.D{{Key: "key", Value: 1}, {Key: "$key", Value: 1}}),
		"REPLACE_ONE 1":                rig.ReplaceOneOf(bson.D{}, "foo"),
		"REPLACE_ONE 2":                rig.ReplaceOneOf(nil, rig.FieldOf("key", 1)),
		"REPLACE_ONE 3":                rig.ReplaceOneOf(bson.D{}, rig.FieldOf("$key", 1)),
		"REPLACE_ONE 3, mixed":         rig.ReplaceOneOf(bson.D{}, bson.D{{Key: "$key", Value: 1}, {Key: "key", Value: 1}}),
		"UPSERT-UPDATE 1, no selector": rig.UpsertOf(rig.UpdateOf(nil, rig.SetOf("x", 1))),
		"REMOVE 1":                     rig.RemoveOf(nil),
		"REMOVE_ONE 1":                 rig.RemoveOneOf(nil),
	} {
		t.Run(name, func(t *testing.T) {
			bothOrders(t, func(t *testing.T, o allium.BulkWriteOptions) {
				if _, err := p.Coll.BulkWrite(t.Context(), rig.Writes{rig.InsertOf(rig.FieldOf("x", 1)), m}.Of(p.Coll), o); err == nil || !strings.Contains(err.Error(), "write 1") && !strings.Contains(err.Error(), "document 1") {
					t.Errorf("%v, want an error that names write 1", err)
				}
			})
		})
	}
	t.Run("EMPTY BATCH", func(t *testing.T) {
		bothOrders(t, func(t *testing.T, o allium.BulkWriteOptions) {
			if _, err := p.Coll.BulkWrite(t.Context(), nil, o); err == nil {
				t.Error("no error")
			}
		})
	})
	p.CheckSent(t)
}

// The cases of the specification Bulk API that end in errors of the server.
func TestProseBulkAPIErrors(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{}, testdeploy.ReplicaSet(2))
	unique := func(t *testing.T) *allium.UntypedCollection {
		t.Helper()
		coll := emptied(t, p)
		if _, err := coll.CreateIndex(t.Context(), allium.IndexModel{Keys: rig.FieldOf("a", 1), Unique: true}); err != nil {
			t.Fatal(err)
		}
		return coll
	}
	failed := func(t *testing.T, err error) *mongoerr.BulkWriteError {
		t.Helper()
		var bulk *mongoerr.BulkWriteError
		if !errors.As(err, &bulk) {
			t.Fatalf("%v, want a BulkWriteError", err)
		}
		return bulk
	}
	withErrors := rig.Writes{rig.InsertOf(bson.D{{Key: "b", Value: 1}, {Key: "a", Value: 1}}), rig.UpsertOf(rig.UpdateOneOf(rig.FieldOf("b", 2), rig.SetOf("a", 1))),
		rig.UpsertOf(rig.UpdateOneOf(rig.FieldOf("b", 3), rig.SetOf("a", 2))), rig.UpsertOf(rig.UpdateOneOf(rig.FieldOf("b", 2), rig.SetOf("a", 1))), rig.InsertOf(bson.D{{Key: "b", Value: 4}, {Key: "a", Value: 3}}),
		rig.InsertOf(bson.D{{Key: "b", Value: 5}, {Key: "a", Value: 1}})}
	t.Run("UNORDERED BATCH WITH ERRORS", func(t *testing.T) {
		coll := unique(t)
		res, err := coll.BulkWrite(t.Context(), withErrors.Of(coll), allium.BulkWriteOptions{Unordered: true})
		if e := failed(t, err); !slices.Equal(slices.Sorted(slices.Values(rig.IndexesOf(e.WriteErrors))), []int{1, 3, 5}) {
			t.Errorf("writes %v failed, want 1, 3 and 5", rig.IndexesOf(e.WriteErrors))
		}
		if got := countsOf(res); got != (counts{inserted: 2, upserted: 1}) {
			t.Errorf("%+v", got)
		}
		checkUpserted(t, res, 2)
		if ids := slices.Sorted(maps.Keys(res.InsertedIDs)); !slices.Equal(ids, []int{0, 4}) {
			t.Errorf("inserted %v, want those of the writes 0 and 4", res.InsertedIDs)
		}
		values, err := allium.Distinct[int](t.Context(), coll, "a", bson.D{})
		if slices.Sort(values); err != nil || !slices.Equal(values, []int{1, 2, 3}) {
			t.Errorf("a has the values %v, %v", values, err)
		}
	})
	t.Run("ORDERED BATCH WITH ERRORS", func(t *testing.T) {
		coll := unique(t)
		res, err := coll.BulkWrite(t.Context(), withErrors.Of(coll))
		e := failed(t, err)
		if len(e.WriteErrors) != 1 || e.WriteErrors[0].Index != 1 || e.WriteErrors[0].Code != 11000 || e.WriteErrors[0].Message == "" {
			t.Errorf("%+v", e)
		}
		if got := countsOf(res); got != (counts{inserted: 1}) {
			t.Errorf("%+v", got)
		}
		if got := withoutIDs(t, coll); got != "{a: 1, b: 1}" {
			t.Errorf("the collection holds %s", got)
		}
	})
	t.Run("Handling Write Errors, indexes", func(t *testing.T) {
		coll := unique(t)
		res, err := coll.BulkWrite(t.Context(), rig.Writes{rig.InsertOf(rig.FieldOf("a", 1)), rig.InsertOf(rig.FieldOf("a", 2)), rig.UpdateOneOf(rig.FieldOf("a", 2), rig.SetOf("a", 1)), rig.RemoveOneOf(rig.FieldOf("a", 4))}.Of(coll))
		if e := failed(t, err); !slices.Equal(rig.IndexesOf(e.WriteErrors), []int{2}) || countsOf(res) != (counts{inserted: 2}) {
			t.Errorf("%+v, %+v", e, res)
		}
	})
	for name, unit := range map[string]int{"maxBsonObjectSize": 4 << 20, "maxMessageSizeBytes": 15 << 20} {
		t.Run("BATCH SPLITTING: "+name, func(t *testing.T) {
			norace.Skip(t, rig.Huge)
			bothOrders(t, func(t *testing.T, o allium.BulkWriteOptions) {
				coll := emptied(t, p)
				models, text := rig.Writes{}, strings.Repeat("x", unit)
				for i := range 6 {
					models = append(models, rig.InsertOf(bson.D{{Key: "_id", Value: i}, {Key: "a", Value: text}}))
				}
				models = append(models, rig.InsertOf(rig.FieldOf("_id", 0)), rig.InsertOf(rig.FieldOf("_id", 100)))
				res, err := coll.BulkWrite(t.Context(), models.Of(coll), o)
				want := int64(6)
				if o.Unordered {
					want = 7
				}
				e := failed(t, err)
				if len(e.WriteErrors) != 1 || e.WriteErrors[0].Index != 6 || e.WriteErrors[0].Code != 11000 || res.InsertedCount != want {
					t.Errorf("%d inserted, errors %+v", res.InsertedCount, e.WriteErrors)
				}
				if n, err := coll.CountDocuments(t.Context(), bson.D{}); n != want {
					t.Errorf("%d documents, %v", n, err)
				}
			})
		})
	}
	t.Run("W > 1 AGAINST STANDALONE", func(t *testing.T) {
		s := rig.StartRecorded(t, allium.ClientOptions{}, testdeploy.Standalone)
		coll := s.Coll.With(allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: 2}})
		bothOrders(t, func(t *testing.T, o allium.BulkWriteOptions) {
			if _, err := coll.BulkWrite(t.Context(), rig.Writes{rig.InsertOf(bson.D{})}.Of(coll), o); err == nil {
				t.Error("no error")
			}
		})
	})
	unsatisfiable := allium.CollectionOptions{WriteConcern: &consistency.WriteConcern{W: p.Deployment.Members() + 1, Timeout: time.Millisecond}}
	checkConcerns := func(t *testing.T, e *mongoerr.BulkWriteError, n int) {
		t.Helper()
		if len(e.WriteConcernErrors) != n {
			t.Errorf("%d write concern errors, want %d", len(e.WriteConcernErrors), n)
		}
		for _, wc := range e.WriteConcernErrors {
			if wc.Code != 64 && wc.Code != 100 || wc.Message == "" {
				t.Errorf("%+v", wc)
			}
		}
	}
	t.Run("WTIMEOUT PLUS DUPLICATE KEY ERROR", func(t *testing.T) {
		bothOrders(t, func(t *testing.T, o allium.BulkWriteOptions) {
			coll := emptied(t, p).With(unsatisfiable)
			res, err := coll.BulkWrite(t.Context(), rig.Writes{rig.InsertOf(rig.FieldOf("_id", 1)), rig.InsertOf(rig.FieldOf("_id", 1))}.Of(coll), o)
			e := failed(t, err)
			if !slices.Equal(rig.IndexesOf(e.WriteErrors), []int{1}) || countsOf(res) != (counts{inserted: 1}) {
				t.Errorf("%+v, %+v", e, res)
			}
			checkConcerns(t, e, 1)
		})
	})
	t.Run("WTIMEOUT WITH MULTIPLE OPERATIONS", func(t *testing.T) {
		bothOrders(t, func(t *testing.T, o allium.BulkWriteOptions) {
			coll := emptied(t, p).With(unsatisfiable)
			res, err := coll.BulkWrite(t.Context(), rig.Writes{rig.InsertOf(rig.FieldOf("_id", 1)), rig.RemoveOf(bson.D{})}.Of(coll), o)
			e := failed(t, err)
			if len(e.WriteErrors) != 0 || countsOf(res) != (counts{inserted: 1, removed: 1}) {
				t.Errorf("%+v, %+v", e, res)
			}
			checkConcerns(t, e, 2)
		})
	})
	t.Run("write concern errors that come before another error", func(t *testing.T) {
		coll := emptied(t, p).With(unsatisfiable)
		p.Deployment.FailCommand(t, mongotest.Fail{Commands: []string{"delete"}, Times: 1, Code: 13})
		_, err := coll.BulkWrite(t.Context(), rig.Writes{rig.UpdateOneOf(rig.FieldOf("_id", 1), rig.SetOf("x", 1)), rig.RemoveOneOf(bson.D{})}.Of(coll))
		e := failed(t, err)
		checkConcerns(t, e, 1)
		var server *mongoerr.ServerError
		if !errors.As(e.Err, &server) || server.Code != 13 {
			t.Errorf("%v, want the error 13", e.Err)
		}
	})
	t.Run("W = 0", func(t *testing.T) {
		for _, o := range []allium.BulkWriteOptions{{}, {Unordered: true}} {
			coll := emptied(t, p)
			res, err := coll.With(allium.CollectionOptions{WriteConcern: consistency.Unacknowledged()}).BulkWrite(t.Context(),
				rig.Writes{rig.InsertOf(rig.FieldOf("_id", 1)), rig.InsertOf(rig.FieldOf("_id", 1)), rig.InsertOf(rig.FieldOf("_id", 2))}.Of(coll), o)
			if err != nil || res.Acknowledged || countsOf(res) != (counts{}) {
				t.Errorf("%+v, %v", res, err)
			}
			want := int64(1)
			if o.Unordered {
				want = 2
			}
			awaitCount(t, p, want)
		}
	})
}

// MIXED OPERATIONS, AUTH of the specification Bulk API: what a user may not do ends an ordered bulk
// write, and what was done before is in the result.
func TestProseBulkAPIUnauthorized(t *testing.T) {
	p := rig.StartRecorded(t, allium.ClientOptions{}, testdeploy.ReplicaSet(1).Since("8.0"))
	p.Deployment.FailCommand(t, mongotest.Fail{Commands: []string{"delete"}, Times: 1, Code: 13})
	p.Recorder.Reset()
	res, err := p.Coll.BulkWrite(t.Context(), rig.Writes{rig.InsertOf(rig.FieldOf("_id", 1)), rig.RemoveOneOf(rig.FieldOf("_id", 1)), rig.InsertOf(rig.FieldOf("_id", 2))}.Of(p.Coll))
	var server *mongoerr.ServerError
	if !errors.As(err, &server) || server.Code != 13 || countsOf(res) != (counts{inserted: 1}) {
		t.Errorf("%+v, %v", res, err)
	}
	p.CheckSent(t, "insert", "delete")
}

// emptied returns db.coll with nothing in it but docs.
func emptied(t *testing.T, p *rig.Recorded, docs ...bson.D) *allium.UntypedCollection {
	t.Helper()
	if err := p.Coll.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(docs) > 0 {
		if _, err := p.Coll.InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
	}
	return p.Coll
}

// awaitCount waits until db.coll holds n documents.
func awaitCount(t *testing.T, p *rig.Recorded, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		got, err := p.Coll.CountDocuments(ctx, bson.D{})
		if err != nil || got > n {
			t.Fatalf("%d documents, %v; want %d", got, err, n)
		}
		if got == n {
			return
		}
	}
}
