package logging

import (
	"encoding/json"
	"unicode/utf8"

	"allium/bson"
)

// Document returns a document as relaxed Extended JSON, cut to the greatest length that a message
// may hold. It costs no more than what it returns, however large the document is.
func (l *Logger) Document(doc bson.Raw) string { return Document(doc, l.maxDoc) }

// Document returns a document as relaxed Extended JSON, cut to limit bytes and marked with an
// ellipsis then.
func Document(doc bson.Raw, limit int) string {
	return truncate(string(appendDocument(nil, doc, false, limit, bson.DefaultMaxDepth)), limit)
}

// appendDocument stops soon after limit, and shows nothing below the given number of levels.
func appendDocument(dst []byte, doc bson.Raw, array bool, limit, levels int) []byte {
	if levels == 0 {
		return append(dst, "null"...)
	}
	open, end := byte('{'), byte('}')
	if array {
		open, end = '[', ']'
	}
	dst = append(dst, open)
	first := true
	for key, v := range doc.All() {
		if len(dst) > limit {
			return dst
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if !array {
			name, _ := json.Marshal(key) // a string cannot fail
			dst = append(append(dst, name...), ':')
		}
		if sub, ok := v.Document(); ok {
			dst = appendDocument(dst, sub, false, limit, levels-1)
		} else if sub, ok := v.Array(); ok {
			dst = appendDocument(dst, sub, true, limit, levels-1)
		} else if out, err := bson.AppendExtJSONValue(dst, start(v, limit), false); err == nil {
			dst = out
		} else {
			dst = append(dst, "null"...)
		}
	}
	return append(dst, end)
}

// start returns what a message of at most limit bytes can show of a value: the beginning of a long
// string or binary.
func start(v bson.RawValue, limit int) bson.RawValue {
	const length = 4 // what stands before a string's bytes
	switch {
	case len(v.Value)-length-1 <= limit:
		return v
	case v.Type == bson.TypeString:
		end := length + limit
		for end < len(v.Value)-1 && !utf8.RuneStart(v.Value[end]) {
			end++
		}
		short, err := bson.MarshalValue(string(v.Value[length:end]))
		if err != nil {
			return v
		}
		return short
	}
	if b, ok := v.Binary(); ok && len(b.Data) > limit {
		b.Data = b.Data[:limit]
		short, _ := bson.MarshalValue(b)
		return short
	}
	return v
}
