package unified

import (
	"errors"
	"fmt"
	"strings"

	"allium/bson"
)

// observedEvent is an event that a client has published, named as the format names it, with the
// fields that a test can ask for.
type observedEvent struct {
	name   string
	fields bson.Raw
	marks  marks
}

// marks are ids of which a test asks only whether they are there.
type marks struct {
	service *bson.ObjectID
	server  *int64
}

func newEvent(name string, fields bson.D, m *marks) observedEvent {
	raw, err := bson.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("event %s cannot be encoded: %v", name, err)) // the driver publishes BSON only
	}
	if m == nil {
		m = &marks{}
	}
	return observedEvent{name: name, fields: raw, marks: *m}
}

// eventTypes are the fields of events that tests can ask for, by type of event and name.
var eventTypes = map[string]map[string][]string{
	"command": {
		"commandStartedEvent":   {"command", "commandName", "databaseName", "hasServiceId", "hasServerConnectionId"},
		"commandSucceededEvent": {"reply", "commandName", "databaseName", "hasServiceId", "hasServerConnectionId"},
		"commandFailedEvent":    {"commandName", "databaseName", "hasServiceId", "hasServerConnectionId"},
	},
	"cmap": {
		"poolCreatedEvent":               nil,
		"poolReadyEvent":                 nil,
		"poolClearedEvent":               {"hasServiceId", "interruptInUseConnections"},
		"poolClosedEvent":                nil,
		"connectionCreatedEvent":         nil,
		"connectionReadyEvent":           nil,
		"connectionClosedEvent":          {"reason"},
		"connectionCheckOutStartedEvent": nil,
		"connectionCheckOutFailedEvent":  {"reason"},
		"connectionCheckedOutEvent":      nil,
		"connectionCheckedInEvent":       nil,
	},
	"sdam": {
		"serverDescriptionChangedEvent":   {"previousDescription", "newDescription"},
		"serverHeartbeatStartedEvent":     {"awaited"},
		"serverHeartbeatSucceededEvent":   {"awaited"},
		"serverHeartbeatFailedEvent":      {"awaited"},
		"topologyDescriptionChangedEvent": {"previousDescription", "newDescription"},
		"topologyOpeningEvent":            nil,
		"topologyClosedEvent":             nil,
	},
}

// of returns the events of a type that the client has published so far.
func (c *clientEntity) of(eventType string) []observedEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.published(eventType)
}

// published is of with c.mu held.
func (c *clientEntity) published(eventType string) []observedEvent {
	var out []observedEvent
	for _, e := range c.events {
		if _, ok := eventTypes[eventType][e.name]; ok {
			out = append(out, e)
		}
	}
	return out
}

// checkEvents compares the events of a client with those that are expected.
func (r *runner) checkEvents(want *Events) error {
	c, err := get[*clientEntity](r.entities, want.Client)
	if err != nil {
		return err
	}
	kind := want.kind()
	got := c.of(kind)
	list := func() string {
		var b strings.Builder
		for _, e := range got {
			fmt.Fprintf(&b, "\n\t%s %v", e.name, e.fields)
		}
		return b.String()
	}
	for i, doc := range want.Events {
		if i == len(got) {
			return fmt.Errorf("%d %s events expected, got %d:%s", len(want.Events), kind, len(got), list())
		}
		if err := r.matchEvent(doc, &got[i]); err != nil {
			return fmt.Errorf("event %d: %w:%s", i, err, list())
		}
	}
	if len(got) > len(want.Events) && !want.IgnoreExtra {
		return fmt.Errorf("%d %s events expected, got %d:%s", len(want.Events), kind, len(got), list())
	}
	return nil
}

// matchEvent compares an event with an expected one.
func (r *runner) matchEvent(want bson.Raw, got *observedEvent) error {
	for name, v := range want.All() {
		if name != got.name {
			return fmt.Errorf("%s expected, got %s", name, got.name)
		}
		fields, ok := v.Document()
		if !ok {
			return fmt.Errorf("expected event is %v", v)
		}
		for key, v := range fields.All() {
			switch key {
			case "hasServiceId":
				if there := got.marks.service != nil && !got.marks.service.IsZero(); v.AsBool() != there {
					return fmt.Errorf("%s: hasServiceId is %v", name, there)
				}
			case "hasServerConnectionId":
				if there := got.marks.server != nil && *got.marks.server > 0; v.AsBool() != there {
					return fmt.Errorf("%s: hasServerConnectionId is %v", name, there)
				}
			default:
				if err := match(v, got.fields.Lookup(key), true, r.entities); err != nil {
					return fmt.Errorf("%s: %s: %w", name, key, err)
				}
			}
		}
		return nil
	}
	return errors.New("the expected event has no name")
}

// countEvents counts the events that match. c.mu is held.
func (r *runner) countEvents(c *clientEntity, want bson.Raw) (n int, err error) {
	for i := range c.events {
		err := r.matchEvent(want, &c.events[i])
		if isBroken(err) {
			return 0, err
		}
		if err == nil {
			n++
		}
	}
	return n, nil
}
