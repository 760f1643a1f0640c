// Package otel hands the spans and the metrics of a client to OpenTelemetry.
//
//	client, err := allium.Open(uri, allium.ClientOptions{
//		Tracing: &allium.Tracing{Tracer: otel.NewTracer(provider), Enabled: new(true)},
//	})
//
// Without Enabled, the environment variable OTEL_GO_INSTRUMENTATION_MONGODB_ENABLED decides.
// Metrics are on if a client is given the listeners of [Metrics].
package otel

import (
	"context"

	api "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"allium/tracing"
)

// scope is the name of the instrumentation scope: the module that is instrumented.
const scope = "allium"

// NewTracer returns a tracer whose spans go to provider, or to OpenTelemetry's global provider if
// it is nil. It is safe for concurrent use.
func NewTracer(provider trace.TracerProvider) tracing.Tracer {
	if provider == nil {
		provider = api.GetTracerProvider()
	}
	return tracer{provider.Tracer(scope, trace.WithInstrumentationVersion(tracing.DriverVersion()))}
}

type tracer struct{ tracer trace.Tracer }

// Start implements tracing.Tracer.
func (t tracer) Start(ctx context.Context, begin tracing.Begin) (context.Context, tracing.Span) {
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attributes(begin.Attributes)...)}
	if !begin.Time.IsZero() {
		opts = append(opts, trace.WithTimestamp(begin.Time))
	}
	ctx, s := t.tracer.Start(ctx, begin.Name, opts...)
	return ctx, span{s}
}

type span struct{ span trace.Span }

// SetAttributes implements tracing.Span.
func (s span) SetAttributes(list ...tracing.Attribute) { s.span.SetAttributes(attributes(list)...) }

// RecordError implements tracing.Span.
func (s span) RecordError(err error) {
	s.span.RecordError(err)
	s.span.SetStatus(codes.Error, err.Error())
}

// Within implements tracing.Span.
func (s span) Within(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, s.span)
}

// End implements tracing.Span.
func (s span) End() { s.span.End() }

func attributes(list []tracing.Attribute) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(list))
	for _, a := range list {
		switch v := a.Value.(type) {
		case string:
			out = append(out, attribute.String(a.Key, v))
		case int64:
			out = append(out, attribute.Int64(a.Key, v))
		}
	}
	return out
}
