package bsoncore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"allium/bson"
)

// The texts are canonical Extended JSON, with a space behind the colons of documents.

// jsonString writes a string of JSON.
func jsonString(s string) string {
	text, _ := json.Marshal(s) // a string always has one
	return string(text)
}

// cut keeps the first n bytes of a text, all if n is negative, and reports whether it left some
// out.
func cut(s string, n int) (string, bool) {
	if n < 0 || len(s) <= n {
		return s, false
	}
	// Half a character is none.
	return strings.ToValidUTF8(s[:n], ""), true
}

// list writes a document or an array as far as n bytes need it, and cuts it there. It is empty if
// what is written is broken.
func list(b []byte, open, end string, n int, one func(e Element) string) (string, bool) {
	if l, _, ok := ReadLength(b); !ok || l < EmptyDocumentLength {
		return "", false
	}
	text := []byte(open)
	if err := walk(b, func(e Element) bool {
		if len(text) > len(open) {
			text = append(text, ',')
		}
		text = append(text, one(e)...)
		return n < 0 || len(text) <= n
	}); err != nil {
		return "", false
	}
	return cut(string(text)+end, n)
}

// String returns the document as Extended JSON, an empty text if it is broken.
func (d Document) String() string {
	text, _ := d.StringN(-1)
	return text
}

// StringN is String of at most n bytes, if n is not negative, and reports whether more was left
// out.
func (d Document) StringN(n int) (string, bool) { return list(d, "{", "}", n, Element.String) }

// String returns the array as Extended JSON, an empty text if it is broken.
func (a Array) String() string {
	text, _ := a.StringN(-1)
	return text
}

// StringN is String of at most n bytes, if n is not negative, and reports whether more was left
// out.
func (a Array) StringN(n int) (string, bool) {
	return list(a, "[", "]", n, func(e Element) string { return e.Value().String() })
}

// String returns the element as Extended JSON, without what is broken.
func (e Element) String() string {
	if len(e) < 1 {
		return ""
	}
	v, err := e.ValueErr()
	if err != nil {
		return ""
	}
	return jsonString(e.Key()) + ": " + v.String()
}

// StringN is String of at most n bytes, if n is not negative, and reports whether more was left
// out.
func (e Element) StringN(n int) (string, bool) { return cut(e.String(), n) }

// String returns the value as Extended JSON, an empty text if it is broken.
func (v Value) String() string {
	data, _, ok := readValue(v.Data, v.Type)
	if !ok {
		return ""
	}
	switch v.Type {
	case TypeEmbeddedDocument:
		return Document(data).String()
	case TypeArray:
		return Array(data).String()
	case TypeBoolean:
		return strconv.FormatBool(data[0] == 1)
	case TypeCodeWithScope:
		code, scope, _ := v.CodeWithScopeOK()
		return fmt.Sprintf(`{"$code":%s,"$scope":%s}`, code, scope)
	}
	text, err := bson.AppendExtJSONValue(nil, bson.RawValue{Type: bson.Type(v.Type), Value: data}, true)
	if err != nil {
		return ""
	}
	var b bytes.Buffer
	json.HTMLEscape(&b, text)
	return b.String()
}

// StringN is String of at most n bytes, if n is not negative, and reports whether more was left
// out.
func (v Value) StringN(n int) (string, bool) { return cut(v.String(), n) }

const malformed = "<malformed>"

// debug writes what of a document or an array can be read.
func debug(name, open, end string, b []byte, one func(e Element) string) string {
	if len(b) < EmptyDocumentLength {
		return malformed
	}
	length, _, _ := ReadInt32(b)
	out := name + "(" + strconv.Itoa(int(length)) + ")" + open
	rem := b[4:]
	for left := int(length) - 4; left > 1; {
		e, next, ok := ReadElement(rem)
		if !ok {
			return out + fmt.Sprintf("<malformed (%d)>", left) + end
		}
		out += one(e)
		left, rem = left-len(e), next
	}
	return out + end
}

// DebugString returns the document in a form that shows the types, as far as it can be read.
func (d Document) DebugString() string {
	return debug("Document", "{", "}", d, Element.DebugString)
}

// DebugString returns the array in a form that shows the types, as far as it can be read.
func (a Array) DebugString() string {
	first := true
	return debug("Array", "[", "]", a, func(e Element) string {
		text := e.Value().DebugString()
		if !first {
			text = "," + text
		}
		first = false
		return text
	})
}

// DebugString returns the element in a form that shows its type, as far as it can be read.
func (e Element) DebugString() string {
	key, err := e.KeyErr()
	switch {
	case len(e) < 1:
		return malformed
	case err != nil:
		return fmt.Sprintf("bson.Element{[%s]<malformed>}", Type(e[0]))
	}
	v, err := e.ValueErr()
	if err != nil {
		return fmt.Sprintf("bson.Element{[%s]\"%s\": <malformed>}", Type(e[0]), key)
	}
	return fmt.Sprintf("bson.Element{[%s]%s: %s}", Type(e[0]), jsonString(key), v)
}

// DebugString returns the value in a form that shows the types in it, as far as it can be read.
func (v Value) DebugString() string {
	switch v.Type {
	case TypeEmbeddedDocument:
		return Document(v.Data).DebugString()
	case TypeArray:
		return Array(v.Data).DebugString()
	case TypeCodeWithScope:
		if code, scope, ok := v.CodeWithScopeOK(); ok {
			return fmt.Sprintf(`{"$code":%s,"$scope":%s}`, code, scope.DebugString())
		}
		return malformed
	}
	if text := v.String(); text != "" {
		return text
	}
	return malformed
}
