package qe

import (
	"crypto/rand"

	"allium/bson"
	"allium/internal/fle"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// Changes are what a compaction or a cleanup does to ESC. ECOC is empty afterwards.
type Changes struct {
	Read    int64
	Insert  []bson.Raw
	Replace []bson.Raw // by their _id
	Delete  []fle.Token
}

// tokens are those of one field, which the client sends.
type tokens struct {
	ecoc    fle.Token
	padding *fle.Token // fields with range or text queries
	bad     error      // why they cannot be used; a field of which ECOC has nothing needs none
}

// parseTokens parses compactionTokens or cleanupTokens.
func (f *Fields) parseTokens(doc bson.Raw) (map[string]tokens, error) {
	out := map[string]tokens{}
	for path, v := range doc.All() {
		field := f.Find(path)
		if field == nil {
			return nil, srverr.New(7294900, "Field '%s' is not an encrypted field of the collection", path)
		}
		var t tokens
		outer := v
		inner, ok := v.Document()
		if ok {
			outer = inner.Lookup("ecoc")
			padding, ok := tokenOf(inner.Lookup("anchorPaddingToken"))
			if !ok {
				t.bad = srverr.New(9346807, "The tokens of the field '%s' have no anchorPaddingToken", path)
			}
			t.padding = &padding
		}
		if t.ecoc, ok = tokenOf(outer); !ok && t.bad == nil {
			t.bad = srverr.New(6346801, "The token of the field '%s' is malformed", path)
		}
		out[path] = t
	}
	for _, field := range f.List {
		if t, ok := out[field.Path]; !ok || t.padding == nil && (field.Ranged || field.Text) {
			return nil, srverr.New(7294900, "There is no compaction token for the encrypted field '%s'", field.Path)
		}
	}
	return out, nil
}

func tokenOf(v bson.RawValue) (t fle.Token, ok bool) {
	b, ok := v.Binary()
	if !ok || len(b.Data) != len(t) {
		return t, false
	}
	return fle.Token(b.Data), true
}

// Compact returns what is to be done to ESC so that each token that ECOC has is counted by an
// anchor instead of entries. A cleanup puts the null anchor in place of all anchors. m counts the
// steps.
func (f *Fields) Compact(state State, ecoc []bson.Raw, tokensDoc bson.Raw, cleanup bool,
	m *work.Meter) (Changes, error) {
	byPath, err := f.parseTokens(tokensDoc)
	if err != nil {
		return Changes{}, err
	}
	c := &compaction{state: state, cleanup: cleanup, work: m}
	unique := map[string][]fle.State{}
	seen := map[fle.State]bool{}
	for _, doc := range ecoc {
		m.Do(sealSteps)
		path, _ := doc.Lookup("fieldName").StringValue()
		t, ok := byPath[path]
		if !ok {
			return Changes{}, srverr.New(7293603, "There is no token for the field '%s'", path)
		}
		if t.bad != nil {
			return Changes{}, t.bad
		}
		b, _ := doc.Lookup("value").Binary()
		s, err := fle.OpenState(t.ecoc, b.Data)
		if err != nil {
			return Changes{}, srverr.New(7293604, "The token for the field '%s' is wrong: %v", path, err)
		}
		if !seen[s] {
			seen[s] = true
			unique[path] = append(unique[path], s)
		}
	}
	for _, field := range f.List {
		list := unique[field.Path]
		pads := 0
		for _, s := range list {
			if err := c.token(s.ESC); err != nil {
				return Changes{}, err
			}
			if s.Leaf {
				pads += field.edges
			}
			pads += s.Size
		}
		// A value has as many tokens as any other value of the field could have: what others would
		// have is padded.
		if t := byPath[field.Path]; t.padding != nil && len(list) > 0 {
			if err := c.pad(*t.padding, pads-len(list)); err != nil {
				return Changes{}, err
			}
		}
	}
	return c.changes, nil
}

// sealSteps is how many steps it stands for to open or seal a value, or to make a token.
const sealSteps = 4

type compaction struct {
	state   State
	cleanup bool
	changes Changes
	work    *work.Meter
}

// token compacts the entries of one token.
func (c *compaction) token(esc fle.Token) error {
	p, err := c.state.locate(esc)
	if err != nil {
		return err
	}
	tag, value := fle.CountTag(esc), fle.CountValue(esc)
	for n := p.counted + 1; n <= p.entry; n++ {
		c.work.Do(sealSteps)
		c.changes.Read++
		c.changes.Delete = append(c.changes.Delete, fle.Entry(tag, n))
	}
	if c.cleanup {
		return c.collapse(tag, value, p, p.anchor)
	}
	if p.entry == p.counted {
		return nil
	}
	return c.anchor(&c.changes.Insert, tag, p.anchor+1, value, 0, p.entry)
}

// collapse makes the null anchor stand for the anchors up to the last.
func (c *compaction) collapse(tag, value fle.Token, p positions, last uint64) error {
	for n := p.firstFree; n <= p.anchor; n++ {
		c.work.Do(sealSteps)
		c.changes.Read++
		c.changes.Delete = append(c.changes.Delete, fle.Anchor(tag, n))
	}
	to := &c.changes.Insert
	if p.nullAnchor {
		to = &c.changes.Replace
	}
	return c.anchor(to, tag, 0, value, last, p.entry)
}

// anchor adds an anchor to list.
func (c *compaction) anchor(list *[]bson.Raw, tag fle.Token, n uint64, value fle.Token, anchor, entry uint64) error {
	c.work.Do(sealSteps)
	data, err := fle.SealAnchor(value, anchor, entry, rand.Reader)
	if err != nil {
		return err
	}
	start, b := bson.BeginDocument(nil)
	b = bson.AppendRawValue(b, "_id", ID(fle.Anchor(tag, n)))
	*list = append(*list, bson.EndDocument(bson.AppendBinary(b, "value", bson.BinaryGeneric, data), start))
	return nil
}

// pad adds n anchors that count nothing.
func (c *compaction) pad(root fle.Token, n int) error {
	tag, value := fle.AnchorPaddingKey(root), fle.AnchorPaddingValue(root)
	p, err := c.state.locateBy(tag, value, nil)
	if err != nil {
		return err
	}
	if c.cleanup {
		if p.anchor == 0 && n <= 0 {
			return nil
		}
		return c.collapse(tag, value, p, p.anchor+uint64(max(n, 0)))
	}
	for i := range max(n, 0) {
		if err := c.anchor(&c.changes.Insert, tag, p.anchor+1+uint64(i), value, 0, 0); err != nil {
			return err
		}
	}
	return nil
}
