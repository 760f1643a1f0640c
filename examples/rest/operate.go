package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"allium"
	"allium/otel"
)

// probes answer an orchestrator. The first two do not ask the database, which all copies of the
// service share: while it elects a primary, requests wait some seconds, and taking every copy out
// of service, or killing it, would help nobody.
//
//   - /livez: the process answers.
//   - /readyz: it has started, and is not ending.
//   - /healthz: the database answers. It is for people and alarms.
type probes struct {
	client *allium.Client
	ready  atomic.Bool
}

func (p *probes) register(mux *http.ServeMux) {
	for path, ok := range map[string]func(*http.Request) bool{
		"GET /livez":   func(*http.Request) bool { return true },
		"GET /readyz":  func(*http.Request) bool { return p.ready.Load() },
		"GET /healthz": p.healthy,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if !ok(r) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
	}
}

func (p *probes) healthy(r *http.Request) bool {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	err := p.client.Ping(ctx)
	if err != nil {
		slog.ErrorContext(ctx, "health check", "error", err) // it names servers: not for whoever asks
	}
	return err == nil
}

// telemetry is where traces and metrics go: those of the requests, and those of the client.
type telemetry struct {
	tracer *trace.TracerProvider
	meter  *metric.MeterProvider
	client *otel.Metrics
}

// export sends spans and metrics to the collector that the environment names, if it names one.
func export(ctx context.Context) (*telemetry, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		return newTelemetry(nil, nil)
	}
	spans, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	values, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, err
	}
	return newTelemetry([]trace.TracerProviderOption{trace.WithBatcher(spans)},
		[]metric.Option{metric.WithReader(metric.NewPeriodicReader(values))})
}

func newTelemetry(spans []trace.TracerProviderOption, values []metric.Option) (t *telemetry, err error) {
	t = &telemetry{tracer: trace.NewTracerProvider(spans...), meter: metric.NewMeterProvider(values...)}
	t.client, err = otel.NewMetrics(t.meter)
	return t, err
}
