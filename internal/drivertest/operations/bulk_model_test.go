package operations

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
)

// TestBulkWritesAgree runs the same random writes through the bulk write of a collection and
// through that of the client, which have no command in common, and compares everything that comes
// of them.
func TestBulkWritesAgree(t *testing.T) {
	client := rig.Open(t, testdeploy.Start(t, testdeploy.ReplicaSet(1).Since("8.0")).URI())
	db := client.Database("d")
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		models := make([]allium.WriteModel, 1+r.IntN(12))
		unordered := r.IntN(4) == 0 // then of one kind only: a collection's bulk write changes the order of kinds
		for i := range models {
			id := bson.D{{Key: "_id", Value: int32(r.IntN(8))}}
			kind := r.IntN(5)
			if unordered {
				kind = 0
			}
			switch kind {
			case 0:
				models[i] = allium.InsertModel{Document: id}
			case 1:
				models[i] = allium.UpdateModel{Filter: id, Update: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}}}, Upsert: r.IntN(2) == 0}
			case 2:
				models[i] = allium.UpdateModel{Filter: bson.D{}, Update: bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(r.IntN(2))}}}}, Many: true}
			case 3:
				models[i] = allium.ReplaceModel{Filter: id, Replacement: bson.D{{Key: "r", Value: int32(i)}}, Upsert: r.IntN(2) == 0}
			case 4:
				models[i] = allium.DeleteModel{Filter: bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: int32(r.IntN(8))}}}}, Many: r.IntN(2) == 0}
			}
		}
		one, two := db.Collection(fmt.Sprint("one", seed)), db.Collection(fmt.Sprint("two", seed))
		writes := make([]allium.ClientWrite, len(models))
		for i, m := range models {
			writes[i] = allium.ClientWrite{Database: "d", Collection: two.Name(), Model: m}
		}
		a, errA := one.BulkWrite(t.Context(), models, allium.BulkWriteOptions{Unordered: unordered})
		b, errB := client.BulkWrite(t.Context(), writes, allium.ClientBulkWriteOptions{Unordered: unordered, VerboseResults: true})
		var failedA *mongoerr.BulkWriteError
		var failedB *allium.ClientBulkWriteError
		errors.As(errA, &failedA)
		errors.As(errB, &failedB)
		if (failedA == nil) != (failedB == nil) || (errA == nil) != (errB == nil) {
			t.Fatalf("seed %d: %v and %v", seed, errA, errB)
		}
		if failedA != nil {
			if fmt.Sprint(rig.IndexesOf(failedA.WriteErrors)) != fmt.Sprint(rig.IndexesOf(failedB.WriteErrors)) {
				t.Errorf("seed %d: errors of %v and %v", seed, rig.IndexesOf(failedA.WriteErrors), rig.IndexesOf(failedB.WriteErrors))
			}
			if done := a.InsertedCount + a.MatchedCount + a.DeletedCount + a.UpsertedCount; done > 0 && failedB.PartialResult == nil {
				t.Errorf("seed %d: %d documents were written, and there is no partial result", seed, done)
			}
		}
		if got, want := [5]int64{b.InsertedCount, b.MatchedCount, b.ModifiedCount, b.DeletedCount, b.UpsertedCount},
			[5]int64{a.InsertedCount, a.MatchedCount, a.ModifiedCount, a.DeletedCount, a.UpsertedCount}; got != want {
			t.Errorf("seed %d: counts %v of the client, %v of the collection", seed, got, want)
		}
		inserted, upserted := map[int]any{}, map[int]any{}
		for i, v := range b.Verbose.Inserts {
			inserted[i] = v.InsertedID
		}
		for i, v := range b.Verbose.Updates {
			if v.Upserted {
				upserted[i] = v.UpsertedID
			}
		}
		if fmt.Sprint(inserted) != fmt.Sprint(a.InsertedIDs) || fmt.Sprint(upserted) != fmt.Sprint(a.UpsertedIDs) {
			t.Errorf("seed %d: inserted %v and %v, upserted %v and %v", seed, inserted, a.InsertedIDs, upserted, a.UpsertedIDs)
		}
		if x, y := contents(t, one), contents(t, two); x != y {
			t.Errorf("seed %d: the collections hold %s and %s", seed, x, y)
		}
	}
}

func contents(t *testing.T, coll *allium.Collection[bson.D]) string {
	t.Helper()
	cur, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := cur.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(all)
}
