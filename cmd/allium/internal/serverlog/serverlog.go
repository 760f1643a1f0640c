// Package serverlog writes log lines in the JSON form that MongoDB's servers have since version
// 4.4, so that what reads theirs reads these.
//
//	{"t":{"$date":"2024-05-01T15:16:17.180+00:00"},"s":"I","c":"CONTROL","id":0,"ctx":"main",
//	 "msg":"ready","attr":{"hosts":"..."}}
package serverlog

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"
)

// The attributes that become fields of a line of their own.
const (
	Component = "c"   // NETWORK, COMMAND, CONTROL and so on; the default is CONTROL
	Context   = "ctx" // who did it; the default is "main"
)

// handler is what New returns.
type handler struct {
	mu    *sync.Mutex
	w     io.Writer
	attrs []slog.Attr
	group string
}

// New returns a handler that writes each line with one Write; all
// have the id 0, since those of servers number their sources. It is safe for concurrent use.
func New(w io.Writer) slog.Handler { return &handler{mu: new(sync.Mutex), w: w} }

// Enabled reports true for everything but what is for debugging.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// WithAttrs returns a handler whose lines have these attributes, too.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)
	return &next
}

// WithGroup returns a handler whose attributes have names that begin with the group's.
func (h *handler) WithGroup(name string) slog.Handler {
	next := *h
	next.group += name + "."
	return &next
}

// line has the fields of a line in the servers' order.
type line struct {
	T struct {
		Date string `json:"$date"`
	} `json:"t"`
	Severity  string         `json:"s"`
	Component string         `json:"c"`
	ID        int            `json:"id"`
	Context   string         `json:"ctx"`
	Msg       string         `json:"msg"`
	Attr      map[string]any `json:"attr,omitempty"`
}

// Handle writes a line.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	l := line{Severity: "I", Component: "CONTROL", Context: "main", Msg: r.Message, Attr: map[string]any{}}
	l.T.Date = r.Time.Format("2006-01-02T15:04:05.000-07:00")
	switch {
	case r.Level >= slog.LevelError:
		l.Severity = "E"
	case r.Level >= slog.LevelWarn:
		l.Severity = "W"
	case r.Level < slog.LevelInfo:
		l.Severity = "D1"
	}
	add := func(a slog.Attr) bool {
		switch v := a.Value.Resolve(); {
		case a.Key == Component:
			l.Component = v.String()
		case a.Key == Context:
			l.Context = v.String()
		case v.Kind() == slog.KindDuration:
			l.Attr[h.group+a.Key+"Millis"] = float64(v.Duration()) / float64(time.Millisecond)
		case v.Kind() == slog.KindInt64, v.Kind() == slog.KindUint64, v.Kind() == slog.KindFloat64,
			v.Kind() == slog.KindBool:
			l.Attr[h.group+a.Key] = v.Any()
		default:
			l.Attr[h.group+a.Key] = v.String()
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(l); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(b.Bytes())
	return err
}
