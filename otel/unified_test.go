package otel_test

import (
	"context"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"allium/internal/spantest"
	"allium/internal/spectest"
	"allium/internal/unified"
	"allium/otel"
	"allium/tracing"
)

// TestSpecifications runs the suites of the specification OpenTelemetry with the spans that the
// SDK exports: what a program's collector gets, not what the driver tells.
func TestSpecifications(t *testing.T) {
	suites, err := spectest.Suites(spectest.Find(t))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, suite := range suites {
		if !strings.HasPrefix(suite.Name, "open-telemetry/") {
			continue
		}
		for _, file := range suite.Files {
			t.Run(path.Join(suite.Name, filepath.Base(file)), func(t *testing.T) {
				where := unified.Where{Spans: func() spantest.Source { return newExported() }}
				unified.RunFile(t, where, suite.Name, file, func(o unified.Outcome) {
					if o.Err != nil {
						t.Errorf("%v: %s: %v", o.Target, o.Test, o.Err)
					}
					if o.Skip == "" {
						ran++
					}
				})
			})
		}
	}
	if ran < 60 {
		t.Errorf("only %d tests ran", ran)
	}
}

// exported is a tracer on the SDK, and the spans that it exports.
type exported struct {
	tracing.Tracer
	exporter *tracetest.InMemoryExporter

	mu    sync.Mutex
	begun []trace.SpanID // in their order: a bubble's clock gives many spans one time
	off   bool
}

func newExported() *exported {
	e := &exported{exporter: tracetest.NewInMemoryExporter()}
	e.Tracer = otel.NewTracer(sdk.NewTracerProvider(sdk.WithSyncer(e.exporter), sdk.WithSpanProcessor(order{e})))
	return e
}

// Stop implements spantest.Source.
func (e *exported) Stop() {
	e.mu.Lock()
	e.off = true
	e.mu.Unlock()
}

// Take implements spantest.Source.
func (e *exported) Take() []*spantest.Span {
	e.mu.Lock()
	defer e.mu.Unlock()
	byID := make(map[trace.SpanID]*spantest.Span)
	parents := make(map[trace.SpanID]trace.SpanID)
	for _, stub := range e.exporter.GetSpans() {
		s := &spantest.Span{Name: stub.Name, Attributes: make(map[string]any), Ended: true}
		for _, a := range stub.Attributes {
			s.Attributes[string(a.Key)] = a.Value.AsInterface()
		}
		byID[stub.SpanContext.SpanID()] = s
		parents[stub.SpanContext.SpanID()] = stub.Parent.SpanID()
	}
	var roots []*spantest.Span
	for _, id := range e.begun {
		s := byID[id]
		if s == nil {
			continue // not ended
		}
		if parent := byID[parents[id]]; parent != nil {
			parent.Nested = append(parent.Nested, s)
		} else if !parents[id].IsValid() {
			roots = append(roots, s)
		}
	}
	e.begun = nil
	e.exporter.Reset()
	return roots
}

// order notes the order in which spans begin.
type order struct{ e *exported }

func (o order) OnStart(_ context.Context, s sdk.ReadWriteSpan) {
	o.e.mu.Lock()
	defer o.e.mu.Unlock()
	if !o.e.off || s.Parent().IsValid() {
		o.e.begun = append(o.e.begun, s.SpanContext().SpanID())
	}
}

func (order) OnEnd(sdk.ReadOnlySpan)           {}
func (order) Shutdown(context.Context) error   { return nil }
func (order) ForceFlush(context.Context) error { return nil }
