package mongo

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// A logHandler hands log messages to a LogSink.
type logHandler struct {
	sink  options.LogSink
	attrs []slog.Attr
}

func newLogHandler(o *options.LoggerOptions) *logHandler {
	if o.Sink != nil {
		return &logHandler{sink: o.Sink}
	}
	return &logHandler{sink: &jsonSink{w: os.Stderr}}
}

// Enabled implements slog.Handler: the client's levels are what counts.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var values []any
	add := func(a slog.Attr) bool {
		values = append(values, a.Key, a.Value.Resolve().Any())
		return true
	}
	values = append(values, "message", r.Message)
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	if r.Level >= slog.LevelError {
		h.sink.Error(nil, r.Message, values...)
		return nil
	}
	level := 0 // options.LogLevelInfo is 1; sinks count from 0
	if r.Level < slog.LevelInfo {
		level = int(options.LogLevelDebug) - 1
	}
	h.sink.Info(level, r.Message, values...)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{sink: h.sink, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup implements slog.Handler. Allium has no groups.
func (h *logHandler) WithGroup(string) slog.Handler { return h }

// A jsonSink writes messages as lines of JSON.
type jsonSink struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *jsonSink) write(level int, message string, keysAndValues []any) {
	line := map[string]any{"timestamp": time.Now().UnixNano(), "level": level, "message": message}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if key, ok := keysAndValues[i].(string); ok {
			line[key] = keysAndValues[i+1]
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = json.NewEncoder(s.w).Encode(line)
}

// Info implements options.LogSink.
func (s *jsonSink) Info(level int, message string, keysAndValues ...any) {
	s.write(level, message, keysAndValues)
}

// Error implements options.LogSink.
func (s *jsonSink) Error(err error, message string, keysAndValues ...any) {
	if err != nil {
		keysAndValues = append(keysAndValues, "error", err.Error())
	}
	s.write(int(options.LogLevelInfo)-1, message, keysAndValues)
}
