package read

import (
	"cmp"
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/change"
	"allium/mongotest/internal/pipeline"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/srverr"
)

// streamOutput is what a change stream's pipeline yields. It checks that the pipeline leaves the
// events' tokens alone, and splits events that are larger than a document may be if the pipeline
// ends with $changeStreamSplitLargeEvent.
type streamOutput struct {
	pipeline.Iterator
	s     *changeStream
	split bool
}

func (o *streamOutput) Next() (bson.Raw, error) {
	s := o.s
	for len(s.fragments) == 0 { // again when the stream resumes after the last fragment
		doc, err := o.Iterator.Next()
		if err != nil || doc == nil {
			return doc, err
		}
		if err := o.checkToken(doc); err != nil {
			return nil, err
		}
		if o.split && (len(doc) > server.MaxBSONObjectSize || s.skip > 0) {
			s.fragments = splitEvent(doc, s.current)
			if s.skip > len(s.fragments) {
				return nil, srverr.New(srverr.ChangeStreamFatalError,
					"Attempted to resume a split event, but the event now has %d fragments", len(s.fragments))
			}
			s.fragments, s.skip = s.fragments[s.skip:], 0
		} else if len(doc) > server.MaxInternalBSONSize {
			return nil, server.TooLarge(doc)
		} else {
			return doc, nil
		}
	}
	f := s.fragments[0]
	s.fragments = s.fragments[1:]
	s.previous, s.last = s.last, f.token
	return f.doc, nil
}

func (o *streamOutput) checkToken(doc bson.Raw) error {
	if id := doc.Lookup("_id"); id.Type != bson.TypeEmbeddedDocument || !bson.Equal(id.Value, o.s.last) {
		found := "{}"
		if id.Type != 0 {
			found = bsontext.Document(bsondoc.Single("_id", id))
		}
		return srverr.New(srverr.ChangeStreamFatalError,
			"Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that point. Only transformations that retain the unmodified _id field are allowed. Expected: %s but found: %s",
			bsontext.Document(bsondoc.Single("_id", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: o.s.last})),
			found)
	}
	return nil
}

// splitEvent divides an event into fragments with some of its fields each, as the server does: the
// small fields first, as many as fit.
func splitEvent(doc bson.Raw, tok change.Token) []event {
	type field struct {
		name string
		v    bson.RawValue
	}
	var fields []field
	for k, v := range doc.All() {
		if k != "_id" {
			fields = append(fields, field{k, v})
		}
	}
	slices.SortStableFunc(fields, func(a, b field) int {
		return cmp.Or(cmp.Compare(len(a.v.Value)+len(a.name), len(b.v.Value)+len(b.name)), cmp.Compare(a.name, b.name))
	})
	var parts [][]field
	size := 0
	const frame = 200 // for _id and splitEvent
	for _, f := range fields {
		n := len(f.name) + len(f.v.Value) + 2
		if len(parts) == 0 || size+n > server.MaxBSONObjectSize-frame-len(tok.Key) {
			parts, size = append(parts, nil), 0
		}
		size += n
		parts[len(parts)-1] = append(parts[len(parts)-1], f)
	}
	var list []event
	for i, part := range parts {
		tok.Fragment = i + 1
		token := tok.Document()
		list = append(list, event{token: token, doc: bsondoc.Build(func(d *bsondoc.Builder) {
			d.Doc("_id", token)
			d.Doc("splitEvent", bsondoc.Build(func(d *bsondoc.Builder) {
				d.B = bson.AppendInt32(d.B, "fragment", int32(i+1))
				d.B = bson.AppendInt32(d.B, "of", int32(len(parts)))
			}))
			for _, f := range part {
				d.B = bson.AppendRawValue(d.B, f.name, f.v)
			}
		})})
	}
	return list
}
