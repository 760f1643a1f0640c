package faults

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// While no connection can be made through a load balancer, because its certificate is refused, an
// operation with a timeout tries again until that is over, and not as fast as it fails; once the
// certificate is good, the operation succeeds.
func TestRetriesBehindALoadBalancerPause(t *testing.T) {
	const timeout = 20 * time.Second
	for name, back := range map[string]time.Duration{"it stays bad": time.Hour, "it becomes good": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := testdeploy.Mock(t, "an in-memory network", mongotest.LoadBalanced(1), mongotest.InMemory(), mongotest.TLS())
				var checkouts atomic.Int32
				client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, TLS: d.TLSConfig(), Timeout: new(timeout), PoolMonitor: &event.PoolMonitor{
					ConnectionCheckOutStarted: func(*event.ConnectionCheckOutStarted) {
						if checkouts.Add(1) > 1000 {
							time.Sleep(timeout) // so that the test ends
						}
					}}})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close(context.Background())
				certificate := func(c mongotest.ServerCertificate) {
					if err := d.ReplaceCertificate(c); err != nil {
						t.Error(err)
					}
				}
				certificate(mongotest.ForeignCertificate)
				good := time.AfterFunc(back, func() { certificate(mongotest.ValidCertificate) })
				defer good.Stop()
				start := time.Now()
				_, err = client.Database("test").Collection("test").InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
				took := time.Since(start)
				if back < timeout {
					if err != nil || took < back || took > back+2*time.Second {
						t.Errorf("after %v: %v", took, err)
					}
				} else if !mongoerr.IsTimeout(err) || took != timeout {
					t.Errorf("after %v: %v, want a timeout after %v", took, err, timeout)
				}
				if got := checkouts.Load(); got < 10 || got > 200 {
					t.Errorf("%d attempts in %v", got, took)
				}
			})
		})
	}
}

// The same for the commits of Transact, which tries them again by itself, also for a client without
// a timeout.
func TestCommitsBehindALoadBalancerPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 20 * time.Second
		d := testdeploy.Mock(t, "an in-memory network", mongotest.LoadBalanced(1), mongotest.InMemory(), mongotest.TLS())
		var checkouts atomic.Int32
		client, err := allium.Open(d.URI(), allium.ClientOptions{Dialer: d, TLS: d.TLSConfig(), PoolMonitor: &event.PoolMonitor{
			ConnectionCheckOutStarted: func(*event.ConnectionCheckOutStarted) {
				if checkouts.Add(1) > 1000 {
					time.Sleep(limit) // so that the test ends
				}
			}}})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(context.Background())
		coll := client.Database("test").Collection("test")
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		start := time.Now()
		err = client.Transact(ctx, func(ctx context.Context) error {
			_, err := coll.InsertOne(ctx, bson.D{{Key: "x", Value: 1}})
			if err := d.ReplaceCertificate(mongotest.ForeignCertificate); err != nil {
				t.Error(err)
			}
			d.Node(0).CloseConnections()
			return err
		})
		if took := time.Since(start); !mongoerr.IsTimeout(err) || took != limit {
			t.Errorf("after %v: %v, want a timeout after %v", took, err, limit)
		}
		if !mongoerr.HasLabel(err, mongoerr.LabelUnknownTransactionCommit) {
			t.Errorf("%v does not say that the commit's outcome is unknown", err)
		}
		if got := checkouts.Load(); got < 20 || got > 400 {
			t.Errorf("%d attempts in %v", got, limit)
		}
		if err := d.ReplaceCertificate(mongotest.ValidCertificate); err != nil {
			t.Error(err)
		}
	})
}
