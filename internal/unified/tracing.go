package unified

import (
	"fmt"

	"allium"
	"allium/bson"
	"allium/internal/leaks"
	"allium/internal/spantest"
)

// maxQueryText is the length of commands in spans that the tests need to compare whole ones.
const maxQueryText = 1 << 20

// observeTracing makes the client collect spans.
func (c *clientEntity) observeTracing(d *Deployment, a *arguments, opts *allium.ClientOptions) {
	c.spans = &spantest.Recorder{}
	if d.spans != nil {
		c.spans = d.spans()
	}
	opts.Tracing = &allium.Tracing{Tracer: c.spans, Enabled: new(true), QueryTextMaxLength: -1}
	if a.is("enableCommandPayload") {
		opts.Tracing.QueryTextMaxLength = maxQueryText
	}
}

// Spans are the spans that a client is expected to tell.
type Spans struct {
	Client      string     `bson:"client"`
	IgnoreExtra bool       `bson:"ignoreExtraSpans"`
	Spans       []bson.Raw `bson:"spans"`
}

// expectedSpans reads what a test expects of the spans of one client, or of several.
func expectedSpans(v bson.RawValue) ([]Spans, error) {
	var list []Spans
	if v.IsZero() {
		return nil, nil
	}
	if _, ok := v.Array(); !ok {
		doc, _ := v.Document()
		list = make([]Spans, 1)
		return list, strict.Unmarshal(doc, &list[0])
	}
	for el := range rawArray(v) {
		var s Spans
		doc, _ := el.Document()
		if err := strict.Unmarshal(doc, &s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// checkSpans compares the spans of a client with those that are expected.
func (r *runner) checkSpans(want *Spans) error {
	c, err := get[*clientEntity](r.entities, want.Client)
	if err != nil {
		return err
	}
	if c.spans == nil {
		return broken("client %s does not observe tracing messages", want.Client)
	}
	got := c.spans.Take()
	for _, s := range got {
		if name := leaks.Find(said(s)); name != "" {
			return fmt.Errorf("%s is in span %q", name, s.Name)
		}
	}
	if err := r.matchSpans(want.Spans, got, want.IgnoreExtra); err != nil {
		return fmt.Errorf("%w; the spans are\n%s", err, spantest.Outline(got))
	}
	return nil
}

// said returns everything that a span and those below it tell.
func said(s *spantest.Span) string {
	text := fmt.Sprintf("%s %+v %v %+v", s.Name, s.Begin, s.Attributes, s.Errors)
	for _, n := range s.Nested {
		text += said(n)
	}
	return text
}

// matchSpans compares spans in their order. With extra set, there may be others in between.
func (r *runner) matchSpans(want []bson.Raw, got []*spantest.Span, extra bool) error {
	at := 0
	for _, doc := range want {
		a := &arguments{doc: doc}
		name, attributes, nested := a.string("name"), a.raw("attributes"), a.documents("nested")
		if err := a.done(); err != nil {
			return &brokenTest{err}
		}
		missing := fmt.Errorf("there is no span %q", name)
		for {
			if at == len(got) {
				return missing
			}
			err := r.matchSpan(name, attributes, nested, got[at], extra)
			at++
			if err == nil {
				break
			}
			if !extra || isBroken(err) {
				return err
			}
			if got[at-1].Name == name {
				missing = err
			}
		}
	}
	if at < len(got) && !extra {
		return fmt.Errorf("span %q is not expected", got[at].Name)
	}
	return nil
}

// matchSpan compares a span and those below it.
func (r *runner) matchSpan(name string, attributes bson.RawValue, nested []bson.Raw, s *spantest.Span,
	extra bool) error {
	if s.Name != name {
		return fmt.Errorf("span %q, expected %q", s.Name, name)
	}
	if !s.Ended {
		return fmt.Errorf("span %q has not ended", name)
	}
	if err := r.matchAttributes(attributes, s); err != nil {
		return fmt.Errorf("span %q: %w", name, err)
	}
	if err := r.matchSpans(nested, s.Nested, extra); err != nil {
		return fmt.Errorf("below span %q: %w", name, err)
	}
	return nil
}

// matchAttributes compares the attributes of a span. A span may have more than are expected.
func (r *runner) matchAttributes(want bson.RawValue, s *spantest.Span) error {
	all := bson.D{}
	for key, value := range s.Attributes {
		all = append(all, bson.E{Key: key, Value: value})
	}
	doc, err := bson.Marshal(all)
	if err != nil {
		return err
	}
	return match(want, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, true, r.entities)
}
