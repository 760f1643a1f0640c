package fle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"allium/bson"
)

// Contains reports whether doc has a binary of subtype 6 at any depth. It allocates nothing and
// reads each byte once at most. Where doc is malformed it reports true, so that those who read it
// closely find out.
func Contains(doc bson.Raw) bool {
	if len(doc) < 5 {
		return true
	}
	// A document within another starts with its length and ends with a NUL. Other than that its
	// elements lie among the others, so that no stack is needed to look at all of them.
	b := doc[4:]
	for depth := 1; depth > 0; {
		if len(b) == 0 {
			return true
		}
		t := bson.Type(b[0])
		b = b[1:]
		if t == 0 {
			depth--
			continue
		}
		key := bytes.IndexByte(b, 0)
		if key < 0 {
			return true
		}
		b = b[key+1:]
		size := 0
		switch t {
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			size = 4
			depth++
		case bson.TypeBinary:
			if len(b) < 5 || b[4] == bson.BinaryEncrypted {
				return true
			}
			size = 5 + int(int32(binary.LittleEndian.Uint32(b)))
		case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol, bson.TypeDBPointer:
			if len(b) < 4 {
				return true
			}
			size = 4 + int(int32(binary.LittleEndian.Uint32(b)))
			if t == bson.TypeDBPointer {
				size += 12
			}
		case bson.TypeCodeWithScope:
			if len(b) < 4 {
				return true
			}
			size = int(int32(binary.LittleEndian.Uint32(b)))
		case bson.TypeRegex:
			pattern := bytes.IndexByte(b, 0)
			if pattern < 0 {
				return true
			}
			options := bytes.IndexByte(b[pattern+1:], 0)
			if options < 0 {
				return true
			}
			size = pattern + options + 2
		case bson.TypeBoolean:
			size = 1
		case bson.TypeInt32:
			size = 4
		case bson.TypeDouble, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeInt64:
			size = 8
		case bson.TypeObjectID:
			size = 12
		case bson.TypeDecimal128:
			size = 16
		case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		default:
			return true
		}
		if size < 0 || size > len(b) {
			return true
		}
		b = b[size:]
	}
	return len(b) != 0
}

// A Replacer returns what takes the place of a binary of subtype 6, whose bytes are data, and
// whether anything does. The path is that of the element ("documents.0.ssn").
type Replacer func(data []byte) (v bson.RawValue, replaced bool, err error)

// Replace appends doc to dst with the binaries of subtype 6 replaced. An error says where. doc must
// be valid.
func Replace(dst []byte, doc bson.Raw, replace Replacer) ([]byte, error) {
	w := walker{replace: replace}
	return w.document(dst, doc)
}

// Each calls f for the bytes of every binary of subtype 6 in doc, which must be valid.
func Each(doc bson.Raw, f func(data []byte) error) error {
	w := walker{replace: func(data []byte) (bson.RawValue, bool, error) { return bson.RawValue{}, false, f(data) }}
	return w.each(doc)
}

// walker goes through a document.
type walker struct {
	replace Replacer
	path    []string
}

// PathError is an error about the value at Path in a document.
type PathError struct {
	Path string // "documents.0.ssn"
	Err  error
}

// Error returns the path and the error.
func (e *PathError) Error() string { return fmt.Sprintf("%s: %v", strconv.Quote(e.Path), e.Err) }

// Unwrap returns Err.
func (e *PathError) Unwrap() error { return e.Err }

func (w *walker) fail(key string, err error) error {
	return &PathError{Path: strings.Join(append(w.path, key), "."), Err: err}
}

func (w *walker) document(dst []byte, doc bson.Raw) ([]byte, error) {
	start, dst := bson.BeginDocument(dst)
	for b := doc.Elements(); len(b) > 0; {
		key, v, rest, err := bson.ReadElement(b)
		if err != nil {
			return dst, err
		}
		b = rest
		if data, ok := Data(v); ok {
			other, replaced, err := w.replace(data)
			if err != nil {
				return dst, w.fail(key, err)
			}
			if replaced {
				v = other
			}
		} else if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			if Contains(v.Value) {
				w.path = append(w.path, key)
				dst = bson.AppendHeader(dst, v.Type, key)
				if dst, err = w.document(dst, v.Value); err != nil {
					return dst, err
				}
				w.path = w.path[:len(w.path)-1]
				continue
			}
		}
		dst = bson.AppendRawValue(dst, key, v)
	}
	return bson.EndDocument(dst, start), nil
}

func (w *walker) each(doc bson.Raw) error {
	for b := doc.Elements(); len(b) > 0; {
		key, v, rest, err := bson.ReadElement(b)
		if err != nil {
			return err
		}
		b = rest
		if data, ok := Data(v); ok {
			if _, _, err := w.replace(data); err != nil {
				return w.fail(key, err)
			}
		} else if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
			w.path = append(w.path, key)
			if err := w.each(v.Value); err != nil {
				return err
			}
			w.path = w.path[:len(w.path)-1]
		}
	}
	return nil
}
