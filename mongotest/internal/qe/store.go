package qe

import (
	"bytes"
	"crypto/rand"
	"slices"
	"strings"

	"allium/bson"
	"allium/internal/fle"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// Stored is a document as it is stored, and what is to be inserted into the state collections along
// with it.
type Stored struct {
	Doc       bson.Raw
	ESC, ECOC []bson.Raw
}

// Store returns next, a document that an insert or an update makes, with its payloads replaced by
// what is stored. old is the document before an update, nil for an insert. Its tags that belong to
// values which are no longer there go.
func (f *Fields) Store(state State, old, next bson.Raw) (Stored, error) {
	w := &writer{fields: f, state: state, counts: map[fle.Token]uint64{}}
	doc, err := w.replace(next, "")
	if err != nil {
		return Stored{}, err
	}
	gone := f.gone(old, doc)
	if len(w.tags) > 0 || len(gone) > 0 {
		doc = safeContent(doc, old, w.tags, gone)
	}
	return Stored{Doc: doc, ESC: w.esc, ECOC: w.ecoc}, nil
}

type writer struct {
	fields    *Fields
	state     State
	counts    map[fle.Token]uint64 // with what this document adds
	esc, ecoc []bson.Raw
	tags      []fle.Token
}

// replace returns doc with its payloads replaced.
func (w *writer) replace(doc bson.Raw, path string) (bson.Raw, error) {
	if !fle.Contains(doc) {
		return doc, nil
	}
	start, b := bson.BeginDocument(make([]byte, 0, len(doc)))
	for key, v := range doc.All() {
		at := key
		if path != "" {
			at = path + "." + key
		}
		switch v.Type {
		case bson.TypeEmbeddedDocument:
			inner, err := w.replace(v.Value, at)
			if err != nil {
				return nil, err
			}
			v.Value = inner
		case bson.TypeBinary:
			if kind, ok := fle.KindOf(v); ok && kind == fle.KindInsert {
				data, _ := fle.Data(v)
				stored, err := w.store(at, data)
				if err != nil {
					return nil, err
				}
				v = fle.Value(stored)
			}
		}
		b = bson.AppendRawValue(b, key, v)
	}
	return bson.EndDocument(b, start), nil
}

// store returns what is stored for a payload.
func (w *writer) store(path string, data []byte) ([]byte, error) {
	field := w.fields.Find(path)
	if field == nil {
		return nil, srverr.New(6726301, "Field '%s' is unexpected", path)
	}
	p, err := fle.ParseInsert(data)
	if err != nil {
		return nil, invalid("%v", err)
	}
	if field.Type != 0 && p.Type != field.Type {
		return nil, srverr.New(6726302, "Field '%s' has an unexpected type", path)
	}
	sets := p.Sets()
	counts := make([]uint64, len(sets))
	for i, set := range sets {
		n, ok := w.counts[set.ESC]
		if !ok {
			if n, err = w.state.count(set.ESC); err != nil {
				return nil, err
			}
		}
		n++
		w.counts[set.ESC], counts[i] = n, n
		w.esc = append(w.esc, bsondoc.Single("_id", ID(fle.Entry(fle.CountTag(set.ESC), n))))
		start, b := bson.BeginDocument(nil)
		b = bsondoc.Append(b, "_id", bson.NewObjectID(), "fieldName", path)
		w.ecoc = append(w.ecoc, bson.EndDocument(bson.AppendBinary(b, "value", bson.BinaryGeneric, set.State), start))
	}
	stored, tags, err := p.Store(counts, rand.Reader)
	if err != nil {
		return nil, invalid("%v", err)
	}
	w.tags = append(w.tags, tags...)
	return stored, nil
}

// gone returns the tags of the values of old that doc does not have.
func (f *Fields) gone(old, doc bson.Raw) [][]byte {
	var out [][]byte
	for _, field := range f.List {
		path := strings.Split(field.Path, ".")
		before := old.Lookup(path...)
		data, ok := fle.Data(before)
		if !ok || before.Equal(doc.Lookup(path...)) {
			continue
		}
		if s, ok, err := fle.ParseSealed(data); err == nil && ok && s.Indexed() {
			out = append(out, s.Tags()...)
		}
	}
	return out
}

// safeContent returns doc with other tags: those that it has, or in a replacement those of old,
// without gone, and with tags.
func safeContent(doc, old bson.Raw, tags []fle.Token, gone [][]byte) bson.Raw {
	v := doc.Lookup(SafeContent)
	if v.IsZero() && old != nil {
		v = old.Lookup(SafeContent)
	}
	start, list := bson.BeginDocument(nil)
	n := 0
	add := func(v bson.RawValue) {
		list = append(bson.AppendIndexHeader(list, v.Type, n), v.Value...)
		n++
	}
	kept, _ := v.Array()
	for v := range kept.Values() {
		b, ok := v.Binary()
		if !ok || !slices.ContainsFunc(gone, func(tag []byte) bool { return bytes.Equal(tag, b.Data) }) {
			add(v)
		}
	}
	for _, tag := range tags {
		add(ID(tag))
	}
	content := bson.RawValue{Type: bson.TypeArray, Value: bson.EndDocument(list, start)}
	has := !doc.Lookup(SafeContent).IsZero()
	at, b := bson.BeginDocument(nil)
	for key, v := range doc.All() {
		if key == SafeContent {
			v = content
		}
		b = bson.AppendRawValue(b, key, v)
	}
	if !has && n > 0 {
		b = bson.AppendRawValue(b, SafeContent, content)
	}
	return bson.EndDocument(b, at)
}
