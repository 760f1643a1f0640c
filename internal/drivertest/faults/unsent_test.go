package faults

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/mongotest"
)

// What a program does with a session whose transaction could not be ended because no server could
// be reached.
var unsentThen = []struct {
	name string
	then func(ctx context.Context, s *allium.Session, coll *allium.UntypedCollection)
}{
	{"nothing", func(context.Context, *allium.Session, *allium.UntypedCollection) {}},
	{"a read", func(ctx context.Context, s *allium.Session, coll *allium.UntypedCollection) {
		_, _ = coll.FindOne(allium.WithSession(ctx, s), bson.D{})
	}},
	{"a write", func(ctx context.Context, s *allium.Session, coll *allium.UntypedCollection) {
		_, _ = coll.InsertOne(allium.WithSession(ctx, s), bson.D{})
	}},
	{"a write that cannot be retried", func(ctx context.Context, s *allium.Session, coll *allium.UntypedCollection) {
		_, _ = coll.UpdateMany(allium.WithSession(ctx, s), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
	}},
	{"a command", func(ctx context.Context, s *allium.Session, coll *allium.UntypedCollection) {
		_, _ = s.Client().Database("db").RunCommand(allium.WithSession(ctx, s), bson.D{{Key: "ping", Value: 1}})
	}},
	{"an abort", func(ctx context.Context, s *allium.Session, coll *allium.UntypedCollection) {
		_ = s.AbortTransaction(ctx)
	}},
	{"a transaction in which nothing is done", func(_ context.Context, s *allium.Session, _ *allium.UntypedCollection) {
		_ = s.StartTransaction()
	}},
	{"a transaction in which nothing is done, committed", func(ctx context.Context, s *allium.Session, _ *allium.UntypedCollection) {
		_ = s.StartTransaction()
		_ = s.CommitTransaction(ctx)
	}},
	{"a transaction in which nothing is done, aborted", func(ctx context.Context, s *allium.Session, _ *allium.UntypedCollection) {
		_ = s.StartTransaction()
		_ = s.AbortTransaction(ctx)
	}},
	{"a transaction in which nothing can be done", func(ctx context.Context, s *allium.Session, coll *allium.UntypedCollection) {
		_ = s.StartTransaction()
		_, _ = coll.InsertOne(allium.WithSession(ctx, s), bson.D{})
	}},
	{"two of them and a read", func(ctx context.Context, s *allium.Session, coll *allium.UntypedCollection) {
		for range 2 {
			_ = s.StartTransaction()
			_, _ = coll.InsertOne(allium.WithSession(ctx, s), bson.D{})
			_ = s.AbortTransaction(ctx)
		}
		_, _ = coll.FindOne(allium.WithSession(ctx, s), bson.D{})
	}},
	{"Transact", func(ctx context.Context, s *allium.Session, coll *allium.UntypedCollection) {
		_ = s.Transact(ctx, func(ctx context.Context) error { _, err := coll.InsertOne(ctx, bson.D{}); return err })
	}},
}

// A transaction whose end could not be sent is not forgotten, whatever the program does with the
// session meanwhile: once a server can be reached and the session has ended, it is aborted.
func TestUnsentEndIsNotForgotten(t *testing.T) {
	ends := map[string]func(s *allium.Session, ctx context.Context, opts ...allium.EndTransactionOptions) error{
		"abort": (*allium.Session).AbortTransaction, "commit": (*allium.Session).CommitTransaction,
	}
	for kind, topology := range map[string]mongotest.Option{"replica set": mongotest.ReplicaSet(3),
		"sharded": mongotest.Sharded(2, 1)} {
		for end, ask := range ends {
			for _, row := range unsentThen {
				for _, back := range []bool{false, true} { // the servers can be reached again before the session ends
					t.Run(fmt.Sprintf("%s/%s/%s/%t", kind, end, row.name, back), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							d, client, log := rig.Bubble(t, allium.ClientOptions{}, topology)
							coll := client.Database("db").Collection("coll")
							if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
								t.Fatal(err)
							}
							s, err := client.StartSession()
							if err == nil {
								err = s.StartTransaction()
							}
							if err == nil {
								_, err = coll.InsertOne(allium.WithSession(t.Context(), s), bson.D{})
							}
							if err != nil {
								t.Fatal(err)
							}
							log.Reset()
							for _, n := range d.Nodes() {
								n.RefuseConnections()
								n.CloseConnections()
							}
							time.Sleep(time.Second) // the monitors see it
							over, cancel := context.WithCancel(t.Context())
							cancel()
							_ = ask(s, over)
							short, cancel := context.WithTimeout(t.Context(), time.Second)
							defer cancel()
							row.then(short, s, coll)
							if names := log.Names(); len(names) > 0 {
								t.Fatalf("%v were sent", names)
							}
							restore := func() {
								for _, n := range d.Nodes() {
									if err := n.AcceptConnections(); err != nil {
										t.Error(err)
									}
								}
								time.Sleep(2 * time.Second)
							}
							if back {
								restore()
							}
							_ = s.End(short)
							if !back {
								restore()
							}
							time.Sleep(5 * time.Second)
							observer, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d})
							if err != nil {
								t.Fatal(err)
							}
							defer observer.Close(context.Background())
							if n := openTransactions(t, observer); n != 0 {
								t.Errorf("%d transactions are open, with %v", n, log.Names())
							}
							if held := client.Stats().Sessions.InUse; held != 0 {
								t.Errorf("%d sessions are in use", held)
							}
							for _, pool := range client.Stats().Pools {
								if pool.InUse != 0 {
									t.Errorf("%d connections to %s are in use", pool.InUse, pool.Addr)
								}
							}
						})
					})
				}
			}
		}
	}
}
