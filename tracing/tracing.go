// Package tracing is what a client tells its spans to: an operation, each command that is sent for
// it, and each transaction (specification: OpenTelemetry). The module allium/otel implements Tracer
// on OpenTelemetry; the driver itself depends on nothing of it.
package tracing

import (
	"context"
	"time"

	"allium/internal/version"
)

// DriverVersion returns the version of the driver that the program was built with, such as "0.1.0",
// as the driver tells it to servers and as its instrumentation has it: "devel" for one that was
// built from a folder. It comes from the program's build information. It is safe for concurrent
// use.
func DriverVersion() string { return version.Driver() }

// Tracer begins spans. It is called by many goroutines.
type Tracer interface {
	// Start begins a span of the kind client, and returns it with a context in which it is the
	// current one. Its parent is the current span of ctx, if there is one.
	Start(ctx context.Context, begin Begin) (context.Context, Span)
}

// Begin is how a span begins.
type Begin struct {
	Name string
	// Time is when it begins. Zero: now.
	Time       time.Time
	Attributes []Attribute
}

// Span is a span that has begun. The driver calls its methods from one goroutine at a time.
type Span interface {
	// SetAttributes adds attributes, or replaces those of the same keys.
	SetAttributes(attributes ...Attribute)
	// RecordError says that what the span stands for has failed. The driver sets the attributes
	// exception.message, exception.type and exception.stacktrace beside it.
	RecordError(err error)
	// Within returns ctx with the span as its current one. It may be called after End.
	Within(ctx context.Context) context.Context
	// End ends the span. It is called once.
	End()
}

// Attribute is a field of a span. Its value is a string or an int64.
type Attribute struct {
	Key   string
	Value any
}
