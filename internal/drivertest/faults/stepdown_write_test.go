package faults

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/consistency"
	"allium/internal/drivertest/rig"
	"allium/internal/errcode"
	"allium/mongoerr"
	"allium/mongotest"
)

// What a user sees of a majority write that waits while its primary steps down, as doc.go and
// InsertOne tell it. The server answers it with ok: 1, the write concern error 11602 and the
// topologyVersion that the client knows already, so the retry goes to the same server, which takes
// no writes any more.
func TestWriteDuringStepDown(t *testing.T) {
	const delay = 10 * time.Second
	for name, timeout := range map[string]*time.Duration{
		"without a Timeout": nil, // fails, although the write was applied
		"with a Timeout":    new(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := mongotest.Start(t, mongotest.InMemory(), mongotest.ReplicaSet(3), mongotest.ElectionDelay(delay))
				log := &rig.Sent{}
				client, err := allium.Open(d.URI(), allium.ClientOptions{
					Dialer: d, CommandMonitor: log.Monitor(), WriteConcern: consistency.Majority(),
					// A stream would tell of the step-down at the same moment as the reply.
					ServerMonitoringMode: allium.MonitoringPoll,
				})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				coll := client.Database("db").Collection("coll")
				if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 0}}); err != nil {
					t.Fatal(err)
				}
				log.Reset()
				old := d.Primary()
				behind := d.Secondaries()
				for _, s := range behind {
					s.HoldBack()
				}
				began := time.Now()
				done := make(chan error, 1)
				go func() {
					opts := allium.InsertOneOptions{Timeout: timeout}
					_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, opts)
					done <- err
				}()
				synctest.Wait() // the write waits for its write concern
				d.StepDown()
				for _, s := range behind {
					s.CatchUp() // before the election: the write is kept
				}
				err = <-done
				took := time.Since(began)

				inserts := log.Of("insert")
				if len(inserts) < 2 {
					t.Fatalf("%d attempts, want a retry", len(inserts))
				}
				for i, e := range inserts {
					if i < 2 && e.Addr != old.Addr() {
						t.Errorf("attempt %d goes to %s, want the old primary, %s", i, e.Addr, old.Addr())
					}
					if i > 0 && !sameTransaction(e.Command, inserts[0].Command) {
						t.Errorf("attempt %d is not a retry of the first: %v", i, e.Command)
					}
				}
				switch {
				case timeout == nil:
					if !mongoerr.HasCode(err, errcode.NotWritablePrimary) || len(inserts) != 2 || took >= delay {
						t.Errorf("%d attempts within %v end in %v, want NotWritablePrimary at the one retry", len(inserts), took, err)
					}
				case err != nil || len(inserts) != 3 || took < delay:
					t.Errorf("%d attempts within %v end in %v, want success on the next primary", len(inserts), took, err)
				}
				time.Sleep(delay)
				synctest.Wait() // the election is at this very moment
				if p := d.Primary(); p == nil || p == old {
					t.Fatal("no other primary")
				}
				n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "_id", Value: 1}})
				if err != nil || n != 1 {
					t.Errorf("the new primary has %d of the documents, want 1: %v", n, err)
				}
			})
		})
	}
}

// sameTransaction reports whether two commands are attempts of one write.
func sameTransaction(a, b bson.Raw) bool {
	return !a.Lookup("txnNumber").IsZero() && bson.Compare(a.Lookup("txnNumber"), b.Lookup("txnNumber")) == 0 &&
		bson.Compare(a.Lookup("lsid"), b.Lookup("lsid")) == 0
}
