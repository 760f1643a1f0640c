package example_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/otel"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Prometheus scrapes a program's metrics.
func Example_prometheus() {
	deployment, err := mongotest.Open()
	must(err)
	defer deployment.Stop()
	ctx := context.Background()

	registry := prometheus.NewRegistry()
	exporter, err := prometheusexporter.New(prometheusexporter.WithRegisterer(registry))
	must(err)
	metrics, err := otel.NewMetrics(metric.NewMeterProvider(metric.WithReader(exporter)))
	must(err)
	client, err := allium.Open(deployment.URI(), allium.ClientOptions{
		CommandMonitor: metrics.CommandMonitor(nil),
		PoolMonitor:    metrics.PoolMonitor(nil),
	})
	must(err)
	defer client.Close(ctx)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})) // a program has it at /metrics
	defer server.Close()

	_, err = client.Database("shop").Collection("orders").InsertOne(ctx, bson.D{{Key: "total", Value: 42}})
	must(err)
	reply, err := http.Get(server.URL)
	must(err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	must(err)
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, "{")
		switch {
		case name == "db_client_operation_duration_seconds_count":
			fmt.Print(name, " ", line[strings.LastIndex(line, " ")+1:])
			fmt.Println(strings.Contains(line, `db_collection_name="orders"`), strings.Contains(line, `db_operation_name="insert"`))
		case name == "db_client_connection_count":
			fmt.Print(name, " ", strings.Contains(line, `state="idle"`), line[strings.LastIndex(line, " "):])
		}
	}
	// Unordered output:
	// db_client_operation_duration_seconds_count 1
	// true true
	// db_client_connection_count true 1
	// db_client_connection_count false 0
}

// collector is what an OpenTelemetry collector is to a program: it takes traces and metrics by
// HTTP.
type collector struct {
	mu             sync.Mutex
	spans, metrics []string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	must(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.URL.Path {
	case "/v1/traces":
		var m collectortrace.ExportTraceServiceRequest
		must(proto.Unmarshal(body, &m))
		for _, s := range m.ResourceSpans[0].ScopeSpans[0].Spans {
			c.spans = append(c.spans, s.Name)
		}
	case "/v1/metrics":
		var m collectormetrics.ExportMetricsServiceRequest
		must(proto.Unmarshal(body, &m))
		for _, s := range m.ResourceMetrics[0].ScopeMetrics[0].Metrics {
			c.metrics = append(c.metrics, s.Name)
		}
	}
}

// A collector gets traces and metrics by OTLP. A program leaves the endpoints out: they are those
// of the environment variable OTEL_EXPORTER_OTLP_ENDPOINT.
func Example_otlp() {
	deployment, err := mongotest.Open()
	must(err)
	defer deployment.Stop()
	ctx := context.Background()
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()

	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(server.URL+"/v1/traces"))
	must(err)
	tracer := trace.NewTracerProvider(trace.WithBatcher(spans))
	values, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(server.URL+"/v1/metrics"))
	must(err)
	meter := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(values)))

	metrics, err := otel.NewMetrics(meter)
	must(err)
	client, err := allium.Open(deployment.URI(), allium.ClientOptions{
		Tracing:        &allium.Tracing{Tracer: otel.NewTracer(tracer), Enabled: new(true)},
		CommandMonitor: metrics.CommandMonitor(nil),
		PoolMonitor:    metrics.PoolMonitor(nil),
	})
	must(err)
	_, err = client.Database("shop").Collection("orders").InsertOne(ctx, bson.D{{Key: "total", Value: 42}})
	must(err)
	must(client.Close(ctx))
	must(tracer.Shutdown(ctx)) // sends what is left
	must(meter.Shutdown(ctx))

	slices.Sort(c.spans)
	fmt.Println(c.spans)
	fmt.Println(slices.Contains(c.metrics, "db.client.operation.duration"), slices.Contains(c.metrics, "db.client.connection.count"))
	// Output:
	// [endSessions endSessions admin insert insert shop.orders]
	// true true
}
