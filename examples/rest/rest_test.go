package main

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"allium/bson"
	"allium/mongotest"
)

// service is one that runs in the test's process.
type service struct {
	t      *testing.T
	base   string
	end    context.CancelFunc // as SIGTERM does
	ended  chan error
	spans  *tracetest.SpanRecorder
	values *metric.ManualReader
}

func start(t *testing.T, d *mongotest.Deployment) *service {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &service{
		t: t, base: "http://" + listener.Addr().String(), end: cancel, ended: make(chan error, 1),
		spans: tracetest.NewSpanRecorder(), values: metric.NewManualReader(),
	}
	tel, err := newTelemetry([]trace.TracerProviderOption{trace.WithSpanProcessor(s.spans)}, []metric.Option{metric.WithReader(s.values)})
	if err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- serve(ctx, listener, d.URI(), tel, 0) }()
	for s.status("GET", "/readyz", "") != http.StatusOK { // it waits in the listener's queue at first
		if t.Failed() {
			t.Fatal(<-s.ended)
		}
	}
	return s
}

// call sends a request and returns its status and body.
func (s *service) call(method, path, body string) (int, string) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Error(method, path, err)
		return 0, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Error(err)
	}
	return res.StatusCode, string(text)
}

func (s *service) status(method, path, body string) int {
	status, _ := s.call(method, path, body)
	return status
}

const book = `{"isbn": "9780134190440", "title": "The Go Programming Language", "cents": 3999}`

func TestRequests(t *testing.T) {
	s := start(t, mongotest.Start(t, mongotest.ReplicaSet(1)))
	if status, body := s.call("GET", "/books", ""); status != http.StatusOK || body != "[]\n" {
		t.Errorf("no books: %d %s", status, body)
	}
	status, body := s.call("POST", "/books", book)
	var added Book
	if err := json.Unmarshal([]byte(body), &added); status != http.StatusCreated || err != nil || added.ID.IsZero() {
		t.Fatalf("added: %d %s", status, body)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/books/" + added.ID.Hex(), "", http.StatusOK, added.Title},
		{"GET", "/books", "", http.StatusOK, added.Title},
		{"GET", "/books?after=" + added.ID.Hex(), "", http.StatusOK, "[]"},
		{"GET", "/books?after=x", "", http.StatusBadRequest, "error"},
		{"GET", "/books/x", "", http.StatusBadRequest, "error"},
		{"GET", "/books/" + bson.NewObjectID().Hex(), "", http.StatusNotFound, "no such book"},
		{"POST", "/books", book, http.StatusConflict, "already"},
		{"POST", "/books", `{"isbn": {"$ne": 1}, "title": "x"}`, http.StatusBadRequest, "error"},
		{"POST", "/books", `{"isbn": "1"}`, http.StatusBadRequest, "title"},
		{"DELETE", "/books", "", http.StatusMethodNotAllowed, ""},
		{"GET", "/healthz", "", http.StatusOK, ""},
	} {
		if status, body := s.call(c.method, c.path, c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %s: %d %s, want %d %s", c.method, c.path, c.body, status, body, c.status, c.want)
		}
	}
}

// The span of the client's operation is below that of the request, and its durations are counted.
func TestTelemetry(t *testing.T) {
	s := start(t, mongotest.Start(t, mongotest.ReplicaSet(1)))
	s.call("POST", "/books", book)
	s.end()
	if err := <-s.ended; err != nil { // the span of a request ends behind its answer
		t.Fatal(err)
	}
	spans := map[string]trace.ReadOnlySpan{}
	for _, span := range s.spans.Ended() {
		spans[span.Name()] = span
	}
	request, operation := spans["POST /books"], spans["insert shop.books"]
	if request == nil || operation == nil || operation.Parent().SpanID() != request.SpanContext().SpanID() {
		t.Errorf("spans: %v", slices.Collect(maps.Keys(spans)))
	}
	if spans["GET /readyz"] != nil {
		t.Error("a probe has a span")
	}
}

func TestMetrics(t *testing.T) {
	s := start(t, mongotest.Start(t, mongotest.ReplicaSet(1)))
	s.call("POST", "/books", book)
	var got metricdata.ResourceMetrics
	if err := s.values.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			names[m.Name] = true
		}
	}
	for _, want := range []string{"db.client.operation.duration", "db.client.connection.count", "http.server.request.duration"} {
		if !names[want] {
			t.Errorf("no metric %s: %v", want, names)
		}
	}
}

// While the set elects another primary requests wait, and the probes stay as they are. So they do
// when there is no database any more.
func TestElection(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(3))
	s := start(t, d)
	probe := func() {
		for _, path := range []string{"/livez", "/readyz"} {
			if got := s.status("GET", path, ""); got != http.StatusOK {
				t.Errorf("%s: %d", path, got)
			}
		}
	}
	var requests sync.WaitGroup
	for i := range 20 {
		requests.Go(func() {
			if i == 10 {
				d.StepDown()
			}
			body := strings.ReplaceAll(book, "9780134190440", bson.NewObjectID().Hex())
			if got := s.status("POST", "/books", body); got != http.StatusCreated {
				t.Errorf("in the election: %d", got)
			}
		})
	}
	probe()
	requests.Wait()
	if _, body := s.call("GET", "/books", ""); strings.Count(body, "isbn") != 20 {
		t.Errorf("after the election: %s", body)
	}
	d.Stop()
	probe()
	if got := s.status("GET", "/healthz", ""); got != http.StatusServiceUnavailable {
		t.Errorf("without a database: healthy, %d", got)
	}
}

// A request that runs when the service is told to end is answered. Nothing is left at the server.
func TestGracefulEnd(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	s := start(t, d)
	arrived, goOn := make(chan bool), make(chan bool)
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "insert" {
			arrived <- true
			<-goOn
		}
		return nil, nil
	})
	answer := make(chan int, 1)
	go func() { answer <- s.status("POST", "/books", book) }()
	<-arrived
	s.end()
	for s.listens() {
	}
	select {
	case err := <-s.ended:
		t.Errorf("it ended with a request unanswered: %v", err)
	default:
	}
	close(goOn)
	if got := <-answer; got != http.StatusCreated {
		t.Errorf("the request that ran: %d", got)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

func (s *service) listens() bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err == nil {
		conn.Close()
	}
	return err == nil
}
