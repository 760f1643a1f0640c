package unified

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"allium"
	"allium/bson"
	"allium/internal/logging"
)

// observedLog is a message that a client has logged.
type observedLog struct {
	component string
	level     slog.Level
	data      bson.Raw // the message and its fields
}

// logLevels are the least severe levels to collect, by component.
type logLevels map[string]slog.Level

// maxLogDocument is the length of documents in messages that the tests need to compare whole
// replies.
const maxLogDocument = 10_000

// observeLogs makes the client collect log messages.
func (c *clientEntity) observeLogs(levels bson.Raw, opts *allium.ClientOptions) error {
	c.levels = logLevels{}
	for component, v := range levels.All() {
		s, _ := v.StringValue()
		level, ok := logging.ParseLevel(s)
		if !ok {
			return fmt.Errorf("log level %v is not known", v)
		}
		c.levels[strings.Clone(component)] = level
	}
	opts.Logger = slog.New(logCollector{c})
	opts.MaxLogDocumentLength = maxLogDocument
	return nil
}

// logCollector is the slog.Handler of a client.
type logCollector struct{ c *clientEntity }

func (h logCollector) Enabled(context.Context, slog.Level) bool { return true }
func (h logCollector) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h logCollector) WithGroup(string) slog.Handler            { return h }

func (h logCollector) Handle(_ context.Context, r slog.Record) error {
	m := observedLog{level: r.Level}
	data := bson.D{{Key: "message", Value: r.Message}}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "component" {
			m.component = a.Value.String()
		} else {
			data = append(data, bson.E{Key: a.Key, Value: fieldValue(a.Value)})
		}
		return true
	})
	if level, ok := h.c.levels[m.component]; !ok || r.Level < level {
		return nil
	}
	var err error
	if m.data, err = bson.Marshal(data); err != nil {
		m.data, _ = bson.Marshal(bson.D{{Key: "message", Value: "cannot be encoded: " + err.Error()}})
	}
	h.c.change(func() {
		if !h.c.off {
			h.c.logs = append(h.c.logs, m)
		}
	})
	return nil
}

// fieldValue returns what a field holds as BSON can have it.
func fieldValue(v slog.Value) any {
	switch v.Kind() {
	case slog.KindInt64:
		return v.Int64()
	case slog.KindUint64:
		return int64(v.Uint64())
	case slog.KindFloat64:
		return v.Float64()
	case slog.KindBool:
		return v.Bool()
	}
	return v.String()
}

// Logs are the log messages that a client is expected to write.
type Logs struct {
	Client      string     `bson:"client"`
	Messages    []bson.Raw `bson:"messages"`
	Ignore      []bson.Raw `bson:"ignoreMessages"`
	IgnoreExtra bool       `bson:"ignoreExtraMessages"`
}

// counted returns the log messages of a client that are not to be ignored. c.mu is held.
func (r *runner) counted(c *clientEntity, want *Logs) ([]observedLog, error) {
	var got []observedLog
next:
	for _, m := range c.logs {
		for _, ignore := range want.Ignore {
			err := r.matchLog(ignore, &m)
			if err == nil {
				continue next
			}
			if isBroken(err) {
				return nil, err
			}
		}
		got = append(got, m)
	}
	return got, nil
}

// checkLogs compares the log messages of a client with those that are expected.
func (r *runner) checkLogs(want *Logs) error {
	c, err := get[*clientEntity](r.entities, want.Client)
	if err != nil {
		return err
	}
	c.mu.Lock()
	got, err := r.counted(c, want)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	list := func() string {
		var b strings.Builder
		for _, m := range got {
			fmt.Fprintf(&b, "\n\t%s %v %v", m.component, m.level, m.data)
		}
		return b.String()
	}
	for i, doc := range want.Messages {
		if i == len(got) {
			return fmt.Errorf("%d messages expected, got %d:%s", len(want.Messages), len(got), list())
		}
		if err := r.matchLog(doc, &got[i]); err != nil {
			return fmt.Errorf("message %d: %w:%s", i, err, list())
		}
	}
	if len(got) > len(want.Messages) && !want.IgnoreExtra {
		return fmt.Errorf("%d messages expected, got %d:%s", len(want.Messages), len(got), list())
	}
	return nil
}

// redacted is what the driver writes in place of a failure that may hold secrets.
const redacted = "REDACTED"

// matchLog compares a log message with an expected one.
func (r *runner) matchLog(want bson.Raw, got *observedLog) error {
	a := &arguments{doc: want}
	level, ok := logging.ParseLevel(a.string("level"))
	if !ok || level != got.level {
		return fmt.Errorf("the level is %v", got.level)
	}
	if component := a.string("component"); component != got.component {
		return fmt.Errorf("the component is %s", got.component)
	}
	if is := a.bool("failureIsRedacted"); is != nil {
		failure, ok := got.data.Lookup("failure").StringValue()
		if !ok {
			return errors.New("there is no failure")
		}
		if strings.Contains(failure, redacted) != *is {
			return fmt.Errorf("the failure is %q", failure)
		}
	}
	if err := match(a.raw("data"), bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: got.data}, true,
		r.entities); err != nil {
		return err
	}
	return a.done()
}
