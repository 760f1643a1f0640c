// Package owncode is for tests of what the driver does when code of the program's panics or ends
// its goroutine.
package owncode

import (
	"context"
	"log/slog"
	"strings"
)

// Ending runs f on a goroutine of its own, and says how that ended: by "panic", by "Goexit", or by
// its "call", which returned err.
func Ending(f func() error) (how string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				how = "panic"
			}
		}()
		how = "Goexit"
		err = f()
		how = "call"
	}()
	<-done
	return how, err
}

// Handler is a log handler that runs code for messages that begin with some words.
type Handler struct {
	Words string
	Code  func()
}

// Enabled reports true.
func (h Handler) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs returns h.
func (h Handler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup returns h.
func (h Handler) WithGroup(string) slog.Handler { return h }

// Handle runs the code.
func (h Handler) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, h.Words) {
		h.Code()
	}
	return nil
}
