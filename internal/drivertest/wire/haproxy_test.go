package wire

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// startHAProxy puts a real HAProxy in front of servers, connection by connection in turns, and
// returns its address.
func startHAProxy(t *testing.T, servers ...string) string {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("haproxy is not installed (Debian's package haproxy)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var config strings.Builder
	config.WriteString("defaults\n mode tcp\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n option redispatch 1\nlisten mongos\n bind fd@3\n balance roundrobin\n")
	for i, addr := range servers {
		fmt.Fprintf(&config, " server s%d %s\n", i, addr)
	}
	name := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(name, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-db", "-f", name)
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return l.Addr().String()
}

// Load Balancer Support with a real load balancer between the client and two mongoses: cursors and
// transactions stay with the mongos that they began on, and a mongos that fails costs only its own
// connections.
func TestHAProxy(t *testing.T) {
	d := testdeploy.Mock(t, "the addresses of mongoses", mongotest.LoadBalanced(2))
	addr := startHAProxy(t, d.Node(0).Addr(), d.Node(1).Addr())
	client := rig.Open(t, "mongodb://"+addr+"/?loadBalanced=true", allium.ClientOptions{PoolMonitor: &event.PoolMonitor{
		PoolCleared: func(e *event.PoolCleared) {
			if e.ServiceID == nil {
				t.Error("the pool was cleared for all services")
			}
		},
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	coll := client.Database("db").Collection("c")
	const n = 200
	docs := make([]bson.D, n)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}}
	}
	if _, err := coll.InsertMany(ctx, docs); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			cur, err := coll.Find(ctx, bson.M{"_id": bson.M{"$type": "number"}}, allium.FindOptions{BatchSize: new(int32(7))})
			if err != nil {
				t.Error(err)
				return
			}
			if all, err := cur.All(ctx); err != nil || len(all) != n {
				t.Errorf("%d documents: %v", len(all), err)
			}
		})
		wg.Go(func() {
			err := client.Transact(ctx, func(ctx context.Context) error {
				res, err := coll.InsertOne(ctx, bson.D{{Key: "in", Value: "transaction"}})
				if err != nil {
					return err
				}
				_, err = coll.FindOne(ctx, bson.D{{Key: "_id", Value: res.InsertedID}})
				return err
			})
			if err != nil {
				t.Errorf("transaction: %v", err)
			}
		})
	}
	wg.Wait()
	if count, err := coll.CountDocuments(ctx, bson.D{{Key: "in", Value: "transaction"}}); err != nil || count != 8 {
		t.Errorf("%d transactions are committed: %v", count, err)
	}
	d.Node(0).Kill()
	for range 20 {
		if _, err := coll.FindOne(ctx, bson.D{}); err != nil {
			t.Errorf("after a mongos was killed: %v", err)
		}
	}
}
