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
		writes := make(rig.Writes, 1+r.IntN(12))
		unordered := r.IntN(4) == 0 // then of one kind only: a collection's bulk write changes the order of kinds
		for i := range writes {
			id := bson.D{{Key: "_id", Value: int32(r.IntN(8))}}
			kind := r.IntN(6)
			if unordered {
				kind = 0
			}
			switch kind {
			case 0:
				writes[i] = rig.InsertOf(id)
			case 1:
				writes[i] = rig.UpdateOneOf(id, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}}})
			case 2:
				writes[i] = rig.UpdateOf(bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(r.IntN(2))}}}})
			case 3:
				writes[i] = rig.ReplaceOneOf(id, bson.D{{Key: "r", Value: int32(i)}})
			case 4:
				writes[i] = rig.RemoveOneOf(bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: int32(r.IntN(8))}}}})
			case 5:
				writes[i] = rig.RemoveOf(bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: int32(r.IntN(8))}}}})
			}
			if (kind == 1 || kind == 3) && r.IntN(2) == 0 {
				writes[i] = rig.UpsertOf(writes[i])
			}
		}
		one, two := db.Collection(fmt.Sprint("one", seed)), db.Collection(fmt.Sprint("two", seed))
		a, errA := one.BulkWrite(t.Context(), writes.Of(one), allium.BulkWriteOptions{Unordered: unordered})
		b, errB := client.BulkWrite(t.Context(), writes.Of(two), allium.ClientBulkWriteOptions{Unordered: unordered, VerboseResults: true})
		var failedA *mongoerr.BulkWriteError
		var failedB *mongoerr.BulkWriteError
		errors.As(errA, &failedA)
		errors.As(errB, &failedB)
		if (failedA == nil) != (failedB == nil) || (errA == nil) != (errB == nil) {
			t.Fatalf("seed %d: %v and %v", seed, errA, errB)
		}
		if failedA != nil {
			if fmt.Sprint(rig.IndexesOf(failedA.WriteErrors)) != fmt.Sprint(rig.IndexesOf(failedB.WriteErrors)) {
				t.Errorf("seed %d: errors of %v and %v", seed, rig.IndexesOf(failedA.WriteErrors), rig.IndexesOf(failedB.WriteErrors))
			}
			if done := a.InsertedCount + a.MatchedCount + a.DeletedCount + a.UpsertedCount; done > 0 && !b.Acknowledged {
				t.Errorf("seed %d: %d documents were written, and there is no result", seed, done)
			}
		}
		if got, want := [5]int64{b.InsertedCount, b.MatchedCount, b.ModifiedCount, b.DeletedCount, b.UpsertedCount},
			[5]int64{a.InsertedCount, a.MatchedCount, a.ModifiedCount, a.DeletedCount, a.UpsertedCount}; got != want {
			t.Errorf("seed %d: counts %v of the client, %v of the collection", seed, got, want)
		}
		if fmt.Sprint(b.InsertedIDs) != fmt.Sprint(a.InsertedIDs) || fmt.Sprint(b.UpsertedIDs) != fmt.Sprint(a.UpsertedIDs) {
			t.Errorf("seed %d: inserted %v and %v, upserted %v and %v", seed, b.InsertedIDs, a.InsertedIDs, b.UpsertedIDs, a.UpsertedIDs)
		}
		var sum allium.UpdateResult
		for _, u := range b.Updates {
			sum.MatchedCount, sum.ModifiedCount, sum.UpsertedCount = sum.MatchedCount+u.MatchedCount, sum.ModifiedCount+u.ModifiedCount, sum.UpsertedCount+u.UpsertedCount
		}
		var deleted int64
		for _, d := range b.Deletes {
			deleted += d.DeletedCount
		}
		if sum.MatchedCount != b.MatchedCount || sum.ModifiedCount != b.ModifiedCount || sum.UpsertedCount != b.UpsertedCount || deleted != b.DeletedCount {
			t.Errorf("seed %d: the results of the writes sum up to %+v, %d deleted; the totals are %+v", seed, sum, deleted, b)
		}
		if x, y := contents(t, one), contents(t, two); x != y {
			t.Errorf("seed %d: the collections hold %s and %s", seed, x, y)
		}
	}
}

func contents(t *testing.T, coll *allium.UntypedCollection) string {
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
