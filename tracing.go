package allium

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"allium/tracing"
)

// Tracing says where a client's spans go, and what they show (specification: OpenTelemetry). There
// is a span for each operation, below it one for each command that is sent for it, and one around
// the operations of a transaction.
type Tracing struct {
	// Tracer takes the spans; the module allium/otel makes one that hands them to OpenTelemetry.
	Tracer tracing.Tracer
	// Enabled switches tracing on or off. Nil: the environment variable
	// OTEL_GO_INSTRUMENTATION_MONGODB_ENABLED does, or else OTEL_INSTRUMENTATION_MONGODB_ENABLED;
	// tracing is on if its value is 1, true or yes, and off by default. A client without a Tracing
	// has no Tracer, and no variable makes one: the driver does not link OpenTelemetry.
	Enabled *bool
	// QueryTextMaxLength is how much of a command its span shows (db.query.text), in bytes of
	// Extended JSON. It may hold what users have entered; commands that carry credentials are never
	// shown. Zero: what the environment variable
	// OTEL_GO_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH says, or else
	// OTEL_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH; nothing is shown by default. A negative
	// number shows nothing whatever they say.
	QueryTextMaxLength int
}

// The specification names its variables OTEL_#{LANG}_...; the form without a language is for
// programs in several.
const (
	tracingPrefix       = "OTEL_INSTRUMENTATION_MONGODB_"
	tracingPrefixGo     = "OTEL_GO_INSTRUMENTATION_MONGODB_"
	tracingEnabled      = "ENABLED"
	tracingMaxQueryText = "QUERY_TEXT_MAX_LENGTH"
)

// settings returns the tracer, nil if tracing is off, and how much of a command its span shows. The
// warnings tell of variables that are ignored because of their values.
func (t *Tracing) settings(getenv func(string) string) (tracer tracing.Tracer, text int, warnings []string, err error) {
	if t == nil {
		return nil, 0, nil, nil
	}
	env := func(name string) (variable, value string) {
		for _, prefix := range []string{tracingPrefixGo, tracingPrefix} {
			if value = strings.TrimSpace(getenv(prefix + name)); value != "" {
				return prefix + name, value
			}
		}
		return "", ""
	}
	on := false
	if t.Enabled != nil {
		on = *t.Enabled
	} else {
		_, value := env(tracingEnabled)
		switch strings.ToLower(value) {
		case "1", "true", "yes":
			on = true
		}
	}
	switch {
	case !on:
		return nil, 0, nil, nil
	case t.Tracer == nil:
		return nil, 0, nil, errors.New("option Tracing has no Tracer")
	case t.QueryTextMaxLength != 0:
		return t.Tracer, max(t.QueryTextMaxLength, 0), nil, nil
	}
	if variable, value := env(tracingMaxQueryText); value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			warnings = append(warnings, fmt.Sprintf("%s is not a length: %q", variable, value))
		} else {
			text = n
		}
	}
	return t.Tracer, text, warnings, nil
}
