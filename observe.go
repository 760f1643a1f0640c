package allium

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"allium/internal/exec"
	"allium/internal/logging"
	"allium/stats"
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

// Stats returns what the client has open and is doing: its connection pools, sessions and cursors,
// the operations in flight, the last ones that were slow, and the last events of the deployment's
// discovery. It does no I/O and is cheap enough to call every second. It may be called after Close.
func (c *Client) Stats() stats.Client {
	var s stats.Client
	s.Pools, s.RecentEvents, s.DroppedEvents = c.topology.Stats()
	s.Sessions = c.sessions.Stats()
	s.Operations, s.OldestOperations = c.exec.InFlight(stats.Listed)
	s.SlowThreshold = max(c.exec.Slow.Threshold, 0)
	s.SlowOperations, s.RecentSlowOperations = c.exec.SlowOperations()
	s.Cursors, s.OldestCursors = c.cursors.Len(), c.cursors.Oldest(stats.Listed)
	if c.plain != nil {
		c.addPlain(&s)
	}
	return s
}

// addPlain adds what the client does that works for an Encryption. Unless it is a client of its
// own, it shares pools and sessions with c.
func (c *Client) addPlain(s *stats.Client) {
	p := c.plain.Stats()
	if c.internal != nil {
		s.Pools = append(s.Pools, p.Pools...)
		s.DroppedEvents += p.DroppedEvents
		s.Sessions.InUse += p.Sessions.InUse
		s.Sessions.Pooled += p.Sessions.Pooled
	}
	s.Operations += p.Operations
	s.OldestOperations = merge(s.OldestOperations, p.OldestOperations, func(a, b stats.Operation) int {
		return a.Started.Compare(b.Started)
	})
	s.SlowOperations += p.SlowOperations
	s.RecentSlowOperations = merge(s.RecentSlowOperations, p.RecentSlowOperations, func(a, b stats.SlowOperation) int {
		return b.Started.Add(b.Duration).Compare(a.Started.Add(a.Duration))
	})
	s.Cursors += p.Cursors
	s.OldestCursors = merge(s.OldestCursors, p.OldestCursors, func(a, b stats.Cursor) int {
		return a.Opened.Compare(b.Opened)
	})
}

// merge returns the first of two lists, in order, as many as a list may have.
func merge[T any](a, b []T, compare func(a, b T) int) []T {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, compare)
	return all[:min(len(all), stats.Listed)]
}

// slowByDefault is from when on an operation is listed as slow if the program has not said; it is
// the server's own default (slowms).
const slowByDefault = 100 * time.Millisecond

// slow returns which operations are slow, and how they are logged.
func (c *Client) slow(o *ClientOptions) exec.Slow {
	if o.SlowOperation <= 0 {
		if o.SlowOperation < 0 {
			return exec.Slow{}
		}
		return exec.Slow{Threshold: slowByDefault}
	}
	_, set := o.LogLevels[LogCommand]
	return exec.Slow{Threshold: o.SlowOperation, Log: func(ctx context.Context, message string, attrs ...slog.Attr) {
		switch {
		case c.log.Enabled(ctx, logging.Command, slog.LevelWarn):
			c.log.Log(ctx, logging.Command, slog.LevelWarn, message, attrs...)
		case o.Logger == nil && !set: // the program has asked for these, and not said where they go
			slog.LogAttrs(ctx, slog.LevelWarn, "allium: "+message, attrs...)
		}
	}}
}
