package faults

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// bulkClaim is what a bulk write says that it did.
type bulkClaim struct {
	written []int // the indexes of the writes that inserted or upserted
	counted int64
	top     error // the error that ended it early
	refused int   // writes that the server refused
}

func claimOf(res allium.BulkWriteResult, err error) bulkClaim {
	c := bulkClaim{counted: res.InsertedCount + res.UpsertedCount, top: err}
	c.written = slices.AppendSeq(slices.Collect(maps.Keys(res.InsertedIDs)), maps.Keys(res.UpsertedIDs))
	if bulk, ok := errors.AsType[*mongoerr.BulkWriteError](err); ok {
		c.top, c.refused = bulk.Err, len(bulk.WriteErrors)
	}
	return c
}

// TestBulkWriteResultsUnderFaults runs random bulk writes while commands fail, and compares what
// their results say with what is there: all that is said to be written is, and unless an error
// ended the bulk write early, nothing else is.
func TestBulkWriteResultsUnderFaults(t *testing.T) {
	for name, retryWrites := range map[string]bool{"with retries": true, "without retries": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := testdeploy.Mock(t, "an in-memory network", mongotest.ReplicaSet(1), mongotest.InMemory())
				client := rig.Open(t, d.URI(), allium.ClientOptions{RetryWrites: &retryWrites, Dialer: d})
				ended := 0
				for seed := range uint64(200) {
					r := rand.New(rand.NewPCG(seed, 9))
					coll := client.Database("d").Collection(fmt.Sprint("c", seed))
					models := make(rig.Writes, 3+r.IntN(10))
					for i := range models {
						if models[i] = rig.InsertOf(rig.FieldOf("_id", i)); r.IntN(2) == 0 {
							models[i] = rig.UpsertOf(rig.UpdateOneOf(rig.FieldOf("_id", i), rig.SetOf("x", 1)))
						}
					}
					before := int64(r.IntN(2)) // one of the documents may be there already
					for range before {
						if _, err := coll.InsertOne(t.Context(), rig.FieldOf("_id", len(models)/2)); err != nil {
							t.Fatal(err)
						}
					}
					d.FailCommand(randomFail(r))
					var claim bulkClaim
					unordered := r.IntN(2) == 0
					if r.IntN(2) == 0 {
						claim = claimOf(coll.BulkWrite(t.Context(), models.Of(coll), allium.BulkWriteOptions{Unordered: unordered}))
					} else {
						claim = claimOf(client.BulkWrite(t.Context(), models.Of(coll), allium.ClientBulkWriteOptions{Unordered: unordered, VerboseResults: true}))
					}
					d.ClearFailures()
					there, err := allium.Distinct[int](t.Context(), coll, "_id", bson.D{})
					if err != nil {
						t.Fatal(err)
					}
					for _, i := range claim.written {
						if !slices.Contains(there, i) {
							t.Errorf("seed %d: write %d is said to have made a document", seed, i)
						}
					}
					if int64(len(claim.written)) != claim.counted {
						t.Errorf("seed %d: %d documents are counted, %d are named", seed, claim.counted, len(claim.written))
					}
					if claim.top != nil {
						ended++
					} else if n := int64(len(there)); n != claim.counted+before {
						t.Errorf("seed %d: there are %d documents, %d were there and %d are counted", seed, n, before, claim.counted)
					}
					if !unordered && claim.refused > 1 {
						t.Errorf("seed %d: an ordered bulk write went on after an error", seed)
					}
				}
				if ended == 0 || ended == 200 {
					t.Errorf("%d of the bulk writes were ended early", ended)
				}
			})
		})
	}
}

// randomFail makes some commands that write fail in one way.
func randomFail(r *rand.Rand) mongotest.Fail {
	f := mongotest.Fail{Commands: []string{"insert", "update", "bulkWrite"}, Times: 1 + r.IntN(3), Skip: r.IntN(4)}
	switch r.IntN(4) {
	case 0:
		f.CloseConnection = true
	case 1:
		f.Code, f.Labels = 91, []string{"RetryableWriteError"}
	case 2:
		f.Code = 13
	case 3:
		f.WriteConcernError = bson.D{{Key: "code", Value: 64}, {Key: "errmsg", Value: "waiting for replication timed out"}}
	}
	return f
}
