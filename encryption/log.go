package encryption

import (
	"context"
	"log/slog"
	"time"

	"allium/internal/crypt"
	"allium/internal/keyservice"
	"allium/internal/logging"
)

// logger writes debug messages with the component "encryption", in the manner of the driver's own.
// They hold names, ids, durations and errors.
type logger struct{ to *slog.Logger }

func (l logger) enabled(ctx context.Context) bool {
	return l.to != nil && l.to.Enabled(ctx, slog.LevelDebug)
}

func (l logger) write(ctx context.Context, message string, err error, attrs ...slog.Attr) {
	if err != nil {
		attrs = append(attrs, slog.String("failure", err.Error()))
	}
	l.to.LogAttrs(ctx, slog.LevelDebug, message,
		append([]slog.Attr{slog.String("component", "encryption")}, attrs...)...)
}

// request tells of a request to a key service.
func (l logger) request(ctx context.Context, r keyservice.Request) {
	if !l.enabled(ctx) {
		return
	}
	message := "Key service request succeeded"
	if r.Err != nil {
		message = "Key service request failed"
	}
	l.write(ctx, message, r.Err, slog.String("provider", r.Provider), slog.String("endpoint", r.Endpoint),
		slog.Int("attempt", r.Attempt),
		logging.Millis("durationMS", r.Duration))
}

// keys tells what became of data keys.
func (l logger) keys(ctx context.Context, e crypt.KeyEvent) {
	if !l.enabled(ctx) {
		return
	}
	names := slog.Any("keys", e.Names())
	switch e.Kind {
	case crypt.KeysCached:
		l.write(ctx, "Data keys taken from the cache", nil, names)
	case crypt.KeysDropped:
		l.write(ctx, "Data keys dropped from the cache", nil, names)
	default:
		message := "Data keys fetched"
		if e.Err != nil {
			message = "Data keys not fetched"
		}
		l.write(ctx, message, e.Err, names, logging.Millis("durationMS", e.Duration))
	}
}

// schemas tells of a listing of collections.
func (l logger) schemas(ctx context.Context, namespaces []string, began time.Time, err error) {
	if !l.enabled(ctx) {
		return
	}
	message := "Schemas fetched"
	if err != nil {
		message = "Schemas not fetched"
	}
	l.write(ctx, message, err, slog.Any("namespaces", namespaces), logging.Millis("durationMS", time.Since(began)))
}

// warn tells of something that a user should look after.
func (l logger) warn(text string) {
	if l.to != nil {
		l.to.LogAttrs(context.Background(), slog.LevelWarn, text, slog.String("component", "encryption"))
	}
}
