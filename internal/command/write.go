package command

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongoerr"
)

func beginSequence(dst []byte, id string) (int, []byte) { return wire.BeginSequence(dst, id) }
func endSequence(dst []byte, at int) []byte             { return wire.EndSequence(dst, at) }

// documentsIn returns the documents of a section that is a document sequence.
func documentsIn(section []byte) []byte {
	const kindAndSize = 1 + 4
	return section[kindAndSize+bytes.IndexByte(section[kindAndSize:], 0)+1:]
}

// documentSize returns the size of the document that b begins with.
func documentSize(b []byte) int { return int(binary.LittleEndian.Uint32(b)) }

// putLength corrects the length of the document that starts at start and ends with dst.
func putLength(dst []byte, start int) {
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
}

// WriteReply is what insert, update and delete answer.
type WriteReply struct {
	N         int64
	NModified int64
	Upserted  []Upserted
	// WriteErrors holds the writeErrors array, zero if there is none.
	WriteErrors bson.Raw
}

// Upserted is one inserted document of an update with upsert; Index is the statement's within its
// message.
type Upserted struct {
	Index int
	ID    bson.RawValue
}

// ParseWrite reads the reply of insert, update and delete. What it returns shares the reply's
// memory.
func ParseWrite(reply bson.Raw) (WriteReply, error) {
	var w WriteReply
	for key, v := range reply.All() {
		switch key {
		case "n":
			var ok bool
			if w.N, ok = v.AsInt64(); !ok {
				return w, &mongoerr.ReplyError{Field: key, Type: v.Type, Want: "a number"}
			}
		case "nModified":
			var ok bool
			if w.NModified, ok = v.AsInt64(); !ok {
				return w, &mongoerr.ReplyError{Field: key, Type: v.Type, Want: "a number"}
			}
		case "upserted":
			arr, ok := v.Array()
			if !ok {
				return w, &mongoerr.ReplyError{Field: key, Type: v.Type, Want: "an array"}
			}
			for el := range arr.Values() {
				doc, ok := el.Document()
				if !ok {
					return w, &mongoerr.ReplyError{Field: "element of upserted", Type: el.Type, Want: "a document"}
				}
				at := doc.Lookup("index")
				i, ok := at.AsInt64() // 0 if it is missing, as it may be where there is one statement
				if !ok && !at.IsZero() {
					return w, &mongoerr.ReplyError{Field: "upserted.index", Type: at.Type, Want: "a number"}
				}
				id := doc.Lookup("_id")
				if id.IsZero() {
					return w, &mongoerr.ReplyError{Field: "upserted._id", Want: "a value"}
				}
				w.Upserted = append(w.Upserted, Upserted{Index: int(i), ID: id})
			}
		case "writeErrors":
			var ok bool
			if w.WriteErrors, ok = v.Array(); !ok {
				return w, &mongoerr.ReplyError{Field: key, Type: v.Type, Want: "an array"}
			}
		}
	}
	return w, nil
}

// firstKey returns the first key of an encoded document, "" if it has none.
func firstKey(doc bson.Raw) string {
	for key := range doc.All() {
		return key
	}
	return ""
}

// checkUpdate checks an encoded update: a document of update operators or a pipeline.
func checkUpdate(v bson.RawValue) error {
	switch v.Type {
	case bson.TypeArray:
		for stage := range bson.Raw(v.Value).Values() {
			if stage.Type != bson.TypeEmbeddedDocument {
				return fmt.Errorf("update pipeline holds a %s, want documents", stage.Type)
			}
		}
		if bson.Raw(v.Value).IsEmpty() {
			return errors.New("update pipeline is empty")
		}
		return nil
	case bson.TypeEmbeddedDocument:
		key := firstKey(v.Value)
		if key == "" {
			return errors.New("update document is empty: want update operators such as $set")
		}
		if key[0] != '$' {
			return fmt.Errorf(
				"update document begins with key %q: want update operators such as $set (to replace the document, use ReplaceOne)", key)
		}
		return nil
	}
	return fmt.Errorf("update is a BSON %s, want a document or a pipeline", v.Type)
}

// checkReplacement checks an encoded replacement: a document without update operators.
func checkReplacement(v bson.RawValue) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return fmt.Errorf("replacement is a BSON %s, want a document", v.Type)
	}
	if key := firstKey(v.Value); key != "" && key[0] == '$' {
		return fmt.Errorf("replacement begins with key %q: update operators belong in UpdateOne", key)
	}
	return nil
}

// update appends an update or a replacement and checks it.
func (f *fields) update(key string, v any, replacement bool) {
	if f.err != nil {
		return
	}
	if IsNil(v) {
		what := "update"
		if replacement {
			what = "replacement"
		}
		f.err = fmt.Errorf("%s: %w", what, mongoerr.ErrNilDocument)
		return
	}
	at := len(f.dst)
	if replacement {
		f.dst, f.err = appendValue(f.bson, f.dst, key, v)
	} else {
		f.dst, f.err = appendPlaced(f.bson, f.dst, key, v, placeUpdate, "")
	}
	if f.err != nil {
		return
	}
	raw := bson.RawValue{Type: bson.Type(f.dst[at]), Value: f.dst[at+1+len(key)+1:]}
	if replacement {
		f.err = checkReplacement(raw)
	} else {
		f.err = checkUpdate(raw)
	}
}

// Check reports what is wrong with the statement's filter and update, so that a write of many
// messages fails before the first one is sent. It looks at the usual types directly and encodes
// others into scratch, which it returns.
func (s *UpdateStatement) Check(o *bson.Options, scratch []byte) ([]byte, error) {
	f := fields{bson: o, dst: scratch[:0]}
	f.checkFilter(s.Filter)
	f.hint(s.Hint)
	f.ordered("sort", s.Sort)
	if v, ok := s.Update.(bson.D); !ok || !s.fine(v) {
		f.update("u", s.Update, s.Replacement)
	}
	return f.dst, f.err
}

// fine reports whether update would find nothing wrong with v but for what its values are.
func (s *UpdateStatement) fine(v bson.D) bool {
	if s.Replacement {
		return v != nil && (len(v) == 0 || len(v[0].Key) == 0 || v[0].Key[0] != '$')
	}
	for i := range v {
		if v[i].Key == "$push" { // may hold a sort order
			return false
		}
	}
	return len(v) > 0 && len(v[0].Key) > 0 && v[0].Key[0] == '$'
}

// Check is UpdateStatement.Check for a delete.
func (s *DeleteStatement) Check(o *bson.Options, scratch []byte) ([]byte, error) {
	f := fields{bson: o, dst: scratch[:0]}
	f.checkFilter(s.Filter)
	f.hint(s.Hint)
	return f.dst, f.err
}

func (f *fields) checkFilter(v any) {
	switch v := v.(type) {
	case bson.D:
		if v != nil {
			return
		}
	case bson.M:
		if v != nil {
			return
		}
	}
	f.filter("filter", v)
}
