package rig

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"allium/bson"
	"allium/event"
)

// AfterClusterTime returns the afterClusterTime of a command.
func AfterClusterTime(e *event.CommandStarted) bson.RawValue {
	return e.Command.Lookup("readConcern", "afterClusterTime")
}

// Sent records the commands of a client.
type Sent struct {
	mu   sync.Mutex
	List []*event.CommandStarted
}

// Monitor returns the listener that records.
func (s *Sent) Monitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStarted) {
		c := *e
		c.Command = append(bson.Raw(nil), e.Command...)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.List = append(s.List, &c)
	}}
}

// Of returns the commands with this name, all with "".
func (s *Sent) Of(name string) (list []*event.CommandStarted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.List {
		if name == "" || e.CommandName == name {
			list = append(list, e)
		}
	}
	return list
}

// Names returns the commands' names, in their order.
func (s *Sent) Names() (names []string) {
	for _, e := range s.Of("") {
		names = append(names, e.CommandName)
	}
	return names
}

// Reset forgets the commands.
func (s *Sent) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.List = nil
}

// SentCommand is what tests look at in a command that was sent. It holds no large
// documents.
type SentCommand struct {
	Name         string
	OperationID  int64
	Ops          int      // how many elements the array ops has
	Namespaces   []string // those of nsInfo
	WriteConcern bson.Raw
	FirstKey     string // of the first document in documents or ops
	Numbered     bool   // there is a txnNumber
	Body         bson.Raw
}

// Field returns a field of a command as text, "-" if it is not there.
func (c *SentCommand) Field(key string) string {
	v := c.Body.Lookup(key)
	if v.IsZero() {
		return "-"
	}
	if n, ok := v.AsInt64(); ok {
		return fmt.Sprint(n)
	}
	return v.String()
}

// Recorder remembers the commands of a client.
type Recorder struct {
	mu      sync.Mutex
	Sent    []SentCommand
	Replies []bson.Raw // of what succeeded
}

// Monitor returns the listener that remembers.
func (r *Recorder) Monitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStarted) {
			c := SentCommand{Name: e.CommandName, OperationID: e.OperationID,
				Numbered: !e.Command.Lookup("txnNumber").IsZero()}
			if len(e.Command) < 1<<20 {
				c.Body = append(bson.Raw(nil), e.Command...)
			}
			ops, _ := e.Command.Lookup("ops").Array()
			for op := range ops.Values() {
				if c.Ops == 0 {
					doc, _ := op.Document()
					doc, _ = doc.Lookup("document").Document()
					c.FirstKey = firstKeyOf(doc)
				}
				c.Ops++
			}
			nsInfo, _ := e.Command.Lookup("nsInfo").Array()
			for v := range nsInfo.Values() {
				doc, _ := v.Document()
				ns, _ := doc.Lookup("ns").StringValue()
				c.Namespaces = append(c.Namespaces, strings.Clone(ns))
			}
			documents, _ := e.Command.Lookup("documents").Array()
			for v := range documents.Values() {
				doc, _ := v.Document()
				c.FirstKey = firstKeyOf(doc)
				break
			}
			if wc, ok := e.Command.Lookup("writeConcern").Document(); ok {
				c.WriteConcern = append(bson.Raw(nil), wc...)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.Sent = append(r.Sent, c)
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.Replies = append(r.Replies, append(bson.Raw(nil), e.Reply...))
		},
	}
}

// Of returns the commands with this name.
func (r *Recorder) Of(name string) []SentCommand {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []SentCommand
	for _, c := range r.Sent {
		if c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// Reset forgets the commands.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Sent, r.Replies = nil, nil
}

func firstKeyOf(doc bson.Raw) string {
	for key := range doc.All() {
		return strings.Clone(key)
	}
	return ""
}
