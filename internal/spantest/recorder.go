// Package spantest records the spans of a client.
package spantest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"allium/tracing"
)

// A Source is a tracer whose spans can be looked at. It is safe for concurrent use.
type Source interface {
	tracing.Tracer
	// Take returns the spans without parents in the order in which they began, and forgets them.
	Take() []*Span
	// Stop keeps spans that begin later out of what Take returns.
	Stop()
}

// Recorder is a tracing.Tracer that keeps what it is told. It is safe for concurrent use.
type Recorder struct {
	mu    sync.Mutex
	roots []*Span
	off   bool
}

// Span is a recorded span.
type Span struct {
	Name       string
	Begin      tracing.Begin
	Attributes map[string]any
	Errors     []error
	Ended      bool
	Nested     []*Span

	r *Recorder
}

type current struct{}

// Start implements tracing.Tracer.
func (r *Recorder) Start(ctx context.Context, b tracing.Begin) (context.Context, tracing.Span) {
	s := &Span{Name: b.Name, Begin: b, Attributes: map[string]any{}, r: r}
	s.SetAttributes(b.Attributes...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if parent, ok := ctx.Value(current{}).(*Span); ok && parent.r == r {
		parent.Nested = append(parent.Nested, s)
	} else if !r.off {
		r.roots = append(r.roots, s)
	}
	return s.Within(ctx), s
}

// Stop implements Source.
func (r *Recorder) Stop() {
	r.mu.Lock()
	r.off = true
	r.mu.Unlock()
}

// Take implements Source.
func (r *Recorder) Take() []*Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	roots := slices.Clone(r.roots)
	r.roots = nil
	return roots
}

// SetAttributes implements tracing.Span.
func (s *Span) SetAttributes(attributes ...tracing.Attribute) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.alive("SetAttributes")
	for _, a := range attributes {
		switch a.Value.(type) {
		case string, int64:
		default:
			panic(fmt.Sprintf("attribute %s is a %T", a.Key, a.Value))
		}
		s.Attributes[a.Key] = a.Value
	}
}

// RecordError implements tracing.Span.
func (s *Span) RecordError(err error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.alive("RecordError")
	s.Errors = append(s.Errors, err)
}

// Within implements tracing.Span.
func (s *Span) Within(ctx context.Context) context.Context {
	return context.WithValue(ctx, current{}, s)
}

// End implements tracing.Span.
func (s *Span) End() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.alive("End")
	s.Ended = true
}

func (s *Span) alive(method string) {
	if s.Ended {
		panic(method + " of the span " + s.Name + ", which has ended")
	}
}

// Outline returns the names of spans, one to a line, those that are nested indented; it marks those
// that have failed or have not ended.
func Outline(spans []*Span) string {
	var b strings.Builder
	var add func(list []*Span, indent string)
	add = func(list []*Span, indent string) {
		for _, s := range list {
			b.WriteString(indent + s.Name)
			if len(s.Errors) > 0 {
				b.WriteString(" failed")
			}
			if !s.Ended {
				b.WriteString(" open")
			}
			b.WriteString("\n")
			add(s.Nested, indent+"  ")
		}
	}
	add(spans, "")
	return b.String()
}
