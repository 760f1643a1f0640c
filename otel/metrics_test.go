package otel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	metrics "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"allium"
	"allium/bson"
	"allium/event"
	"allium/mongoerr"
	"allium/mongotest"
	"allium/otel"
	"allium/tracing"
)

// newMetrics returns metrics and what reads them.
func newMetrics(t testing.TB) (*otel.Metrics, *metrics.ManualReader) {
	t.Helper()
	reader := metrics.NewManualReader()
	m, err := otel.NewMetrics(metrics.NewMeterProvider(metrics.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	return m, reader
}

// read returns what was measured, a line each: the instrument, its attributes and the sum, or of a
// histogram the number of its values.
func read(t testing.TB, r *metrics.ManualReader) map[string]int64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := r.Collect(context.Background(), &data); err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, s := range data.ScopeMetrics {
		if s.Scope.Name != "allium" || s.Scope.Version != tracing.DriverVersion() {
			t.Errorf("scope %s %q", s.Scope.Name, s.Scope.Version)
		}
		for _, m := range s.Metrics {
			name := m.Name + " " + m.Unit
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					out[name+" "+text(p.Attributes)] = p.Value
				}
				if d.IsMonotonic != (m.Name == "db.client.connection.timeouts") {
					t.Errorf("%s is monotonic: %v", m.Name, d.IsMonotonic)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					out[name+" "+text(p.Attributes)] = int64(p.Count)
					if p.Sum < 0 || len(p.Bounds) != 9 {
						t.Errorf("%s: sum %v, bounds %v", m.Name, p.Sum, p.Bounds)
					}
				}
			default:
				t.Errorf("%s is a %T", m.Name, d)
			}
		}
	}
	return out
}

func text(s attribute.Set) string {
	var list []string
	for _, a := range s.ToSlice() {
		list = append(list, string(a.Key)+"="+a.Value.String())
	}
	return strings.Join(list, " ")
}

// check compares what was measured with lines, in which ADDR, HOST and PORT stand for the server.
func check(t *testing.T, got map[string]int64, addr string, want map[string]int64) {
	t.Helper()
	host, port, _ := strings.Cut(addr, ":")
	names := strings.NewReplacer("ADDR", addr, "HOST", host, "PORT", port)
	for line, n := range want {
		line = names.Replace(line)
		if v, ok := got[line]; !ok || v != n {
			t.Errorf("%s is %d (%v), want %d", line, v, ok, n)
		}
		delete(got, line)
	}
	for line, n := range got {
		t.Errorf("not expected: %s is %d", line, n)
	}
}

// TestMetrics has a client of one connection do what is measured.
func TestMetrics(t *testing.T) {
	d := mongotest.Start(t)
	m, reader := newMetrics(t)
	var heard []string // what the program's own listeners hear
	client, err := allium.Open(d.URI(), allium.ClientOptions{
		MaxPoolSize: new(1),
		CommandMonitor: m.CommandMonitor(&event.CommandMonitor{
			Started:   func(_ context.Context, e *event.CommandStarted) { heard = append(heard, "started "+e.CommandName) },
			Succeeded: func(_ context.Context, e *event.CommandSucceeded) { heard = append(heard, "succeeded "+e.CommandName) },
			Failed:    func(_ context.Context, e *event.CommandFailed) { heard = append(heard, "failed "+e.CommandName) },
		}),
		PoolMonitor: m.PoolMonitor(&event.PoolMonitor{
			ConnectionReady: func(*event.ConnectionReady) { heard = append(heard, "ready") },
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	db := client.Database("db")
	for i := range 3 {
		if _, err := db.Collection("coll").InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}}); err != nil {
			t.Fatal(err)
		}
	}
	cur, err := db.Collection("coll").Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(2))})
	if err != nil {
		t.Fatal(err)
	}
	for cur.Next(t.Context()) {
	}
	if err := errors.Join(cur.Err(), cur.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := db.RunCommand(t.Context(), bson.D{{Key: "noSuchCommand", Value: "coll"}}); err == nil {
		t.Fatal("a command that does not exist succeeded")
	}
	if _, err := db.Collection("coll").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 0}}); err == nil {
		t.Fatal("a duplicate was inserted")
	}
	var during map[string]int64
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "ping" {
			during = read(t, reader)
		}
		return nil, nil
	})
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	const operation = "db.client.operation.duration s "
	commands := map[string]int64{
		operation + "db.collection.name=coll db.namespace=db db.operation.name=insert db.system.name=mongodb server.address=HOST server.port=PORT":                         3,
		operation + "db.collection.name=coll db.namespace=db db.operation.name=find db.system.name=mongodb server.address=HOST server.port=PORT":                           1,
		operation + "db.collection.name=coll db.namespace=db db.operation.name=getMore db.system.name=mongodb server.address=HOST server.port=PORT":                        1,
		operation + "db.namespace=db db.operation.name=noSuchCommand db.response.status_code=59 db.system.name=mongodb error.type=59 server.address=HOST server.port=PORT": 1,
		"db.client.connection.max {connection} db.client.connection.pool.name=ADDR":                                                                                        1,
		"db.client.connection.idle.max {connection} db.client.connection.pool.name=ADDR":                                                                                   1,
		"db.client.connection.count {connection} db.client.connection.pool.name=ADDR db.client.connection.state=idle":                                                      0,
		"db.client.connection.count {connection} db.client.connection.pool.name=ADDR db.client.connection.state=used":                                                      1,
		"db.client.connection.pending_requests {request} db.client.connection.pool.name=ADDR":                                                                              0,
		"db.client.connection.create_time s db.client.connection.pool.name=ADDR":                                                                                           1,
		"db.client.connection.wait_time s db.client.connection.pool.name=ADDR":                                                                                             8,
		"db.client.connection.use_time s db.client.connection.pool.name=ADDR":                                                                                              7,
	}
	// The duplicate is an error of the operation; the command has succeeded.
	commands[operation+"db.collection.name=coll db.namespace=db db.operation.name=insert db.system.name=mongodb server.address=HOST server.port=PORT"]++
	check(t, during, d.Hosts()[0], commands)
	if err := client.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := read(t, reader)
	for line, n := range after {
		if strings.HasPrefix(line, "db.client.connection.") && strings.Contains(line, "{") && n != 0 {
			t.Errorf("of the closed client: %s is %d", line, n)
		}
	}
	for _, want := range []string{"ready", "started find", "succeeded getMore", "failed noSuchCommand"} {
		if !slices.Contains(heard, want) {
			t.Errorf("the program's own listeners heard %q, want %q", heard, want)
		}
	}
}

// TestPoolMetrics has the events that a client does not make at will.
func TestPoolMetrics(t *testing.T) {
	m, reader := newMetrics(t)
	p := m.PoolMonitor(nil)
	p.PoolCreated(&event.PoolCreated{Addr: "h:1", Options: event.PoolOptions{MaxPoolSize: 7, MinPoolSize: 2}})
	p.PoolCreated(&event.PoolCreated{Addr: "/tmp/s"}) // without limits
	for id := range int64(3) {
		p.ConnectionReady(&event.ConnectionReady{Addr: "h:1", ConnectionID: id})
	}
	p.ConnectionClosed(&event.ConnectionClosed{Addr: "h:1", ConnectionID: 99}) // which never was ready
	for id := range int64(2) {
		p.ConnectionCheckOutStarted(&event.ConnectionCheckOutStarted{Addr: "h:1"})
		p.ConnectionCheckedOut(&event.ConnectionCheckedOut{Addr: "h:1", ConnectionID: id})
	}
	p.ConnectionClosed(&event.ConnectionClosed{Addr: "h:1", ConnectionID: 0}) // in use
	for _, reason := range []string{event.CheckOutTimeout, event.CheckOutConnectionError, event.CheckOutPoolClosed} {
		p.ConnectionCheckOutStarted(&event.ConnectionCheckOutStarted{Addr: "h:1"})
		p.ConnectionCheckOutFailed(&event.ConnectionCheckOutFailed{Addr: "h:1", Reason: reason})
	}
	p.ConnectionCheckOutStarted(&event.ConnectionCheckOutStarted{Addr: "h:1"})
	other := m.PoolMonitor(nil) // of another client, whose connections have the same numbers
	other.ConnectionReady(&event.ConnectionReady{Addr: "h:1", ConnectionID: 1})
	check(t, read(t, reader), "h:1", map[string]int64{
		"db.client.connection.max {connection} db.client.connection.pool.name=ADDR":                                   7,
		"db.client.connection.idle.max {connection} db.client.connection.pool.name=ADDR":                              7,
		"db.client.connection.idle.min {connection} db.client.connection.pool.name=ADDR":                              2,
		"db.client.connection.count {connection} db.client.connection.pool.name=ADDR db.client.connection.state=idle": 2,
		"db.client.connection.count {connection} db.client.connection.pool.name=ADDR db.client.connection.state=used": 1,
		"db.client.connection.pending_requests {request} db.client.connection.pool.name=ADDR":                         1,
		"db.client.connection.timeouts {timeout} db.client.connection.pool.name=ADDR":                                 1,
		"db.client.connection.create_time s db.client.connection.pool.name=ADDR":                                      4,
		"db.client.connection.wait_time s db.client.connection.pool.name=ADDR":                                        2,
	})
	p.PoolClosed(&event.PoolClosed{Addr: "h:1"})
	if n := read(t, reader)["db.client.connection.max {connection} db.client.connection.pool.name=h:1"]; n != 0 {
		t.Errorf("the limit of a pool that is closed is still %d", n)
	}
}

// TestCommandMetrics has the commands whose first element is not a collection, and the errors.
func TestCommandMetrics(t *testing.T) {
	m, reader := newMetrics(t)
	c := m.CommandMonitor(nil)
	run := func(db, name string, value any, err error) {
		raw, merr := bson.Marshal(bson.D{{Key: name, Value: value}})
		if merr != nil {
			t.Fatal(merr)
		}
		info := event.CommandInfo{CommandName: name, DatabaseName: db, Addr: "/tmp/s"}
		c.Started(t.Context(), &event.CommandStarted{CommandInfo: info, Command: raw})
		if err != nil {
			c.Failed(t.Context(), &event.CommandFailed{CommandInfo: info, Failure: err})
		} else {
			c.Succeeded(t.Context(), &event.CommandSucceeded{CommandInfo: info})
		}
	}
	run("db", "dropUser", "ada", nil)
	run("admin", "aggregate", "coll", nil)
	run("db", "aggregate", 1, nil)
	run("db", "find", "coll", &mongoerr.ConnectionError{})
	run("db", "find", "coll", fmt.Errorf("attempt: %w", &mongoerr.ServerError{Code: 11600}))
	const operation = "db.client.operation.duration s "
	check(t, read(t, reader), "/tmp/s", map[string]int64{
		operation + "db.namespace=db db.operation.name=dropUser db.system.name=mongodb server.address=ADDR":                                                                    1,
		operation + "db.namespace=admin db.operation.name=aggregate db.system.name=mongodb server.address=ADDR":                                                                1,
		operation + "db.namespace=db db.operation.name=aggregate db.system.name=mongodb server.address=ADDR":                                                                   1,
		operation + "db.collection.name=coll db.namespace=db db.operation.name=find db.system.name=mongodb error.type=mongoerr.ConnectionError server.address=ADDR":            1,
		operation + "db.collection.name=coll db.namespace=db db.operation.name=find db.response.status_code=11600 db.system.name=mongodb error.type=11600 server.address=ADDR": 1,
	})
}

// broken is a provider that refuses instruments.
type broken struct{ noop.MeterProvider }

type brokenMeter struct{ noop.Meter }

func (broken) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

func (brokenMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errors.New("no counters")
}

func TestMetricsErrors(t *testing.T) {
	if _, err := otel.NewMetrics(broken{}); err == nil || !strings.Contains(err.Error(), "no counters") {
		t.Errorf("error %v", err)
	}
	if _, err := otel.NewMetrics(nil); err != nil { // the global provider
		t.Error(err)
	}
}

// The metrics of a client. Its own listeners, if it has any, are given to the two functions.
func ExampleNewMetrics() {
	deployment, err := mongotest.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer deployment.Stop()
	reader := metrics.NewManualReader() // a program has an exporter
	m, err := otel.NewMetrics(metrics.NewMeterProvider(metrics.WithReader(reader)))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	client, err := allium.Open(deployment.URI(), allium.ClientOptions{
		CommandMonitor: m.CommandMonitor(nil),
		PoolMonitor:    m.PoolMonitor(nil),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	if err := client.Ping(ctx); err != nil {
		fmt.Println(err)
	}
	var data metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &data); err != nil {
		fmt.Println(err)
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name, m.Unit)
	}
	// Unordered output:
	// db.client.operation.duration s
	// db.client.connection.count {connection}
	// db.client.connection.max {connection}
	// db.client.connection.idle.max {connection}
	// db.client.connection.pending_requests {request}
	// db.client.connection.create_time s
	// db.client.connection.wait_time s
	// db.client.connection.use_time s
}
