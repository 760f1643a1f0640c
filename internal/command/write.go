package command

import (
	"encoding/binary"
	"errors"
	"fmt"

	"allium/bson"
	"allium/internal/wire"
)

func beginSequence(dst []byte, id string) (int, []byte) { return wire.BeginSequence(dst, id) }
func endSequence(dst []byte, at int) []byte             { return wire.EndSequence(dst, at) }

// putLength corrects the length of the document that starts at start and ends with dst.
func putLength(dst []byte, start int) {
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
}

// WriteReply is what insert, update and delete answer.
type WriteReply struct {
	N         int64
	NModified int64
	Upserted  []Upserted
	// WriteErrors holds the writeErrors array, zero if there is none, and WriteConcernError the document.
	WriteErrors       bson.Raw
	WriteConcernError bson.Raw
}

// Upserted is one inserted document of an update with upsert; Index is the statement's within its message.
type Upserted struct {
	Index int
	ID    bson.RawValue
}

// ParseWrite reads the reply of insert, update and delete. What it returns shares the reply's memory.
func ParseWrite(reply bson.Raw) (WriteReply, error) {
	var w WriteReply
	for key, v := range reply.All() {
		switch key {
		case "n":
			w.N, _ = v.AsInt64()
		case "nModified":
			w.NModified, _ = v.AsInt64()
		case "upserted":
			arr, _ := v.Array()
			for el := range arr.Values() {
				doc, _ := el.Document()
				i, ok := doc.Lookup("index").AsInt64()
				id := doc.Lookup("_id")
				if !ok || id.IsZero() {
					return w, errors.New("server's reply has an upserted element without index or _id")
				}
				w.Upserted = append(w.Upserted, Upserted{Index: int(i), ID: id})
			}
		case "writeErrors":
			w.WriteErrors, _ = v.Array()
		case "writeConcernError":
			w.WriteConcernError, _ = v.Document()
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
			return fmt.Errorf("update document begins with key %q: want update operators such as $set (to replace the document, use ReplaceOne)", key)
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

// appendUpdate appends an update or a replacement under key and checks it.
func appendUpdate(o *bson.Options, dst []byte, key string, v any, replacement bool) ([]byte, error) {
	if v == nil {
		return dst, fmt.Errorf("update: %w", ErrNilDocument)
	}
	at := len(dst)
	dst, err := appendValue(o, dst, key, v)
	if err != nil {
		return dst, err
	}
	raw := bson.RawValue{Type: bson.Type(dst[at]), Value: dst[at+1+len(key)+1:]}
	if replacement {
		return dst, checkReplacement(raw)
	}
	return dst, checkUpdate(raw)
}
