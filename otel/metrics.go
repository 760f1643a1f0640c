package otel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	api "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"allium/event"
	"allium/mongoerr"
	"allium/tracing"
)

// Metrics measures what clients do, as OpenTelemetry's semantic conventions for database clients
// say. It listens to a client's events:
//
//	metrics, err := otel.NewMetrics(provider)
//	...
//	client, err := allium.Open(uri, allium.ClientOptions{
//		CommandMonitor: metrics.CommandMonitor(nil),
//		PoolMonitor:    metrics.PoolMonitor(nil),
//	})
//
// The instruments are:
//
//	db.client.operation.duration           how long a command took, in seconds, with its
//	                                       database, collection, name and server; of one
//	                                       that failed also error.type
//	db.client.connection.count             connections, by state: idle or used
//	db.client.connection.max               the pool's limits: maxPoolSize, twice,
//	db.client.connection.idle.max          and minPoolSize. One that is not set
//	db.client.connection.idle.min          is not reported
//	db.client.connection.pending_requests  operations that wait for a connection
//	db.client.connection.timeouts          checkouts that ran out of time
//	db.client.connection.create_time       how long connections took to establish, in seconds
//	db.client.connection.wait_time         how long checkouts took, in seconds
//	db.client.connection.use_time          how long connections were checked out, in seconds
//
// Every attempt of an operation that is retried is measured, and every getMore. A pool is named by
// its server's address (host:port), so that the pools of several clients to one server are summed.
// error.type is the server's error code, else the type of the error, for example
// "mongoerr.ConnectionError". It is safe for concurrent use, by several clients.
type Metrics struct {
	duration                     metric.Float64Histogram
	count, limit                 metric.Int64UpDownCounter
	idleLimit, idleLeast         metric.Int64UpDownCounter
	pending                      metric.Int64UpDownCounter
	timeouts                     metric.Int64Counter
	createTime, waitTime, inTime metric.Float64Histogram
}

// NewMetrics returns metrics that go to provider, or to OpenTelemetry's global provider if it is
// nil. It is an error if the provider refuses an instrument.
func NewMetrics(provider metric.MeterProvider) (*Metrics, error) {
	if provider == nil {
		provider = api.GetMeterProvider()
	}
	b := builder{meter: provider.Meter(scope, metric.WithInstrumentationVersion(tracing.DriverVersion()))}
	m := &Metrics{
		duration: b.seconds("db.client.operation.duration", "Duration of database client operations."),
		count: b.upDown("db.client.connection.count", "{connection}",
			"The number of connections that are currently in the state that the attribute says."),
		limit: b.upDown("db.client.connection.max", "{connection}",
			"The maximum number of open connections allowed."),
		idleLimit: b.upDown("db.client.connection.idle.max", "{connection}",
			"The maximum number of idle open connections allowed."),
		idleLeast: b.upDown("db.client.connection.idle.min", "{connection}",
			"The minimum number of idle open connections allowed."),
		pending: b.upDown("db.client.connection.pending_requests", "{request}",
			"The number of current pending requests for an open connection."),
		createTime: b.seconds("db.client.connection.create_time", "The time it took to create a new connection."),
		waitTime: b.seconds("db.client.connection.wait_time",
			"The time it took to obtain an open connection from the pool."),
		inTime: b.seconds("db.client.connection.use_time",
			"The time between borrowing a connection and returning it to the pool."),
	}
	var err error
	m.timeouts, err = b.meter.Int64Counter("db.client.connection.timeouts", metric.WithUnit("{timeout}"),
		metric.WithDescription(
			"The number of connection timeouts that have occurred trying to obtain a connection from the pool."))
	if err = errors.Join(b.err, err); err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return m, nil
}

// builder makes instruments, and keeps the errors.
type builder struct {
	meter metric.Meter
	err   error
}

// buckets are those that the conventions recommend for the duration of operations, in seconds.
var buckets = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}

func (b *builder) seconds(name, text string) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text),
		metric.WithExplicitBucketBoundaries(buckets...))
	b.err = errors.Join(b.err, err)
	return h
}

func (b *builder) upDown(name, unit, text string) metric.Int64UpDownCounter {
	c, err := b.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(text))
	b.err = errors.Join(b.err, err)
	return c
}

// attempt identifies a command that is running.
type attempt struct {
	addr          string
	conn, request int64
}

// CommandMonitor returns a listener for the commands of one client. It passes events on to next,
// which may be nil.
func (m *Metrics) CommandMonitor(next *event.CommandMonitor) *event.CommandMonitor {
	if next == nil {
		next = &event.CommandMonitor{}
	}
	var collections sync.Map // by attempt: what only the first event tells
	ended := func(ctx context.Context, info *event.CommandInfo, took time.Duration, err error) {
		attrs := append(make([]attribute.KeyValue, 0, 8), attribute.String("db.system.name", "mongodb"),
			attribute.String("db.namespace", info.DatabaseName),
			attribute.String("db.operation.name", info.CommandName))
		if coll, ok := collections.LoadAndDelete(attempt{info.Addr, info.DriverConnectionID, info.RequestID}); ok {
			attrs = append(attrs, attribute.String("db.collection.name", coll.(string)))
		}
		attrs = append(attrs, server(info.Addr)...)
		attrs = append(attrs, failure(err)...)
		m.duration.Record(ctx, took.Seconds(), metric.WithAttributes(attrs...))
	}
	return &event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStarted) {
			if coll := collection(e); coll != "" {
				collections.Store(attempt{e.Addr, e.DriverConnectionID, e.RequestID}, coll)
			}
			if next.Started != nil {
				next.Started(ctx, e)
			}
		},
		Succeeded: func(ctx context.Context, e *event.CommandSucceeded) {
			ended(ctx, &e.CommandInfo, e.Duration, nil)
			if next.Succeeded != nil {
				next.Succeeded(ctx, e)
			}
		},
		Failed: func(ctx context.Context, e *event.CommandFailed) {
			ended(ctx, &e.CommandInfo, e.Duration, e.Failure)
			if next.Failed != nil {
				next.Failed(ctx, e)
			}
		},
	}
}

// onCollections are the commands whose first element names a collection. Others have names of users
// or roles there, for example.
var onCollections = map[string]bool{
	"aggregate": true, "collMod": true, "collStats": true, "compact": true, "count": true, "create": true,
	"createIndexes":       true,
	"createSearchIndexes": true, "delete": true, "distinct": true, "drop": true, "dropIndexes": true,
	"dropSearchIndex": true, "find": true,
	"findAndModify": true, "insert": true, "killCursors": true, "listIndexes": true, "mapReduce": true, "update": true,
	"updateSearchIndex": true, "validate": true,
}

// collection returns the collection that a command is about, "" if there is none.
func collection(e *event.CommandStarted) string {
	switch {
	case e.DatabaseName == "admin":
		return ""
	case e.CommandName == "getMore":
		coll, _ := e.Command.Lookup("collection").StringValue()
		return coll
	case onCollections[e.CommandName]:
		coll, _ := e.Command.Lookup(e.CommandName).StringValue()
		return coll
	}
	return ""
}

// server returns the attributes of an address, which may be a socket's path.
func server(addr string) []attribute.KeyValue {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return []attribute.KeyValue{attribute.String("server.address", addr)}
	}
	n, _ := strconv.Atoi(port)
	return []attribute.KeyValue{attribute.String("server.address", host), attribute.Int("server.port", n)}
}

// failure returns the attributes of an error.
func failure(err error) []attribute.KeyValue {
	if err == nil {
		return nil
	}
	if se, ok := errors.AsType[*mongoerr.ServerError](err); ok && se.Code != 0 {
		code := strconv.Itoa(int(se.Code))
		return []attribute.KeyValue{attribute.String("db.response.status_code", code),
			attribute.String("error.type", code)}
	}
	return []attribute.KeyValue{attribute.String("error.type", strings.TrimPrefix(fmt.Sprintf("%T", err), "*"))}
}

// pools is what one client's pools hold.
type pools struct {
	m *Metrics

	mu      sync.Mutex
	options map[string]event.PoolOptions // by address
	conns   map[conn]*use
}

type conn struct {
	addr string
	id   int64
}

// use is how a connection that is ready is used.
type use struct{ since time.Time } // when it was checked out, zero if it is idle

// PoolMonitor returns a listener for the pools of one client; another client needs another one. It
// passes events on to next, which may be nil.
func (m *Metrics) PoolMonitor(next *event.PoolMonitor) *event.PoolMonitor {
	if next == nil {
		next = &event.PoolMonitor{}
	}
	p := &pools{m: m, options: map[string]event.PoolOptions{}, conns: map[conn]*use{}}
	return &event.PoolMonitor{
		PoolReady: next.PoolReady, PoolCleared: next.PoolCleared, ConnectionCreated: next.ConnectionCreated,
		PoolCreated:               both(p.created, next.PoolCreated),
		PoolClosed:                both(p.closed, next.PoolClosed),
		ConnectionReady:           both(p.ready, next.ConnectionReady),
		ConnectionClosed:          both(p.connectionClosed, next.ConnectionClosed),
		ConnectionCheckOutStarted: both(p.started, next.ConnectionCheckOutStarted),
		ConnectionCheckOutFailed:  both(p.failed, next.ConnectionCheckOutFailed),
		ConnectionCheckedOut:      both(p.checkedOut, next.ConnectionCheckedOut),
		ConnectionCheckedIn:       both(p.checkedIn, next.ConnectionCheckedIn),
	}
}

// both returns a listener that calls two; the second may be nil.
func both[E any](first, second func(E)) func(E) {
	return func(e E) {
		first(e)
		if second != nil {
			second(e)
		}
	}
}

func pool(addr string) attribute.KeyValue {
	return attribute.String("db.client.connection.pool.name", addr)
}

func (p *pools) add(c metric.Int64UpDownCounter, addr string, n int64) {
	c.Add(context.Background(), n, metric.WithAttributes(pool(addr)))
}

func (p *pools) record(h metric.Float64Histogram, addr string, d time.Duration) {
	h.Record(context.Background(), d.Seconds(), metric.WithAttributes(pool(addr)))
}

// state adds connections in a state.
func (p *pools) state(addr, state string, n int64) {
	p.m.count.Add(context.Background(), n,
		metric.WithAttributes(pool(addr), attribute.String("db.client.connection.state", state)))
}

const (
	idle = "idle"
	used = "used"
)

// limits adds the limits of a pool, or takes them away.
func (p *pools) limits(addr string, o event.PoolOptions, sign int64) {
	if n := int64(o.MaxPoolSize); n != 0 {
		p.add(p.m.limit, addr, sign*n)
		p.add(p.m.idleLimit, addr, sign*n)
	}
	if n := int64(o.MinPoolSize); n != 0 {
		p.add(p.m.idleLeast, addr, sign*n)
	}
}

func (p *pools) created(e *event.PoolCreated) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.options[e.Addr] = e.Options
	p.limits(e.Addr, e.Options, 1)
}

func (p *pools) closed(e *event.PoolClosed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits(e.Addr, p.options[e.Addr], -1)
	delete(p.options, e.Addr)
}

func (p *pools) ready(e *event.ConnectionReady) {
	p.record(p.m.createTime, e.Addr, e.Duration)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn{e.Addr, e.ConnectionID}] = &use{}
	p.state(e.Addr, idle, 1)
}

func (p *pools) connectionClosed(e *event.ConnectionClosed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.conns[conn{e.Addr, e.ConnectionID}]
	if u == nil {
		return // it never was ready
	}
	delete(p.conns, conn{e.Addr, e.ConnectionID})
	if u.since.IsZero() {
		p.state(e.Addr, idle, -1)
	} else {
		p.state(e.Addr, used, -1)
	}
}

func (p *pools) started(e *event.ConnectionCheckOutStarted) { p.add(p.m.pending, e.Addr, 1) }

func (p *pools) failed(e *event.ConnectionCheckOutFailed) {
	p.add(p.m.pending, e.Addr, -1)
	if e.Reason == event.CheckOutTimeout {
		p.m.timeouts.Add(context.Background(), 1, metric.WithAttributes(pool(e.Addr)))
	}
}

func (p *pools) checkedOut(e *event.ConnectionCheckedOut) {
	p.add(p.m.pending, e.Addr, -1)
	p.record(p.m.waitTime, e.Addr, e.Duration)
	p.mu.Lock()
	defer p.mu.Unlock()
	if u := p.conns[conn{e.Addr, e.ConnectionID}]; u != nil && u.since.IsZero() {
		u.since = time.Now()
		p.state(e.Addr, idle, -1)
		p.state(e.Addr, used, 1)
	}
}

func (p *pools) checkedIn(e *event.ConnectionCheckedIn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u := p.conns[conn{e.Addr, e.ConnectionID}]; u != nil && !u.since.IsZero() {
		p.record(p.m.inTime, e.Addr, time.Since(u.since))
		u.since = time.Time{}
		p.state(e.Addr, used, -1)
		p.state(e.Addr, idle, 1)
	}
}
