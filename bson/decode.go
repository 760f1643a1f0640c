package bson

import (
	"encoding/binary"
	"errors"
	"reflect"
	"unicode/utf8"
)

// A decoder is the state of decoding one document: the options, how deep it is, and the memory for
// what it makes.
type decoder struct {
	cfg   *config
	data  []byte // the whole input
	depth int
	holds int // pointers in interfaces that are being followed

	chunk     []byte // for strings: what is free of the chunk
	chunkSize int    // of the next chunk
	text      int    // how many bytes of strings were copied into chunks

	elems []elems

	treeState
	grown bool // something of treeState was used
	keys  keyTable

	floats slab[float64]
	int32s slab[int32]
	int64s slab[int64]
	ids    slab[ObjectID]

	// How the last value was decoded: most often the next one is of the same type.
	lastConfig *config
	lastType   reflect.Type
	lastDec    decFunc
}

// treeState is the state of decoding trees of D, M, A and any; see measure.
type treeState struct {
	window    string  // a copy of the tree that is being decoded, if most of it is text
	windowCap int     // the capacity of the slice that was copied
	found     []int32 // what measure found, in the order of the tree; see there
	next      int     // in found
	strings   slab[string]
	documents slab[D]
	arrays    slab[A]
	slots     block[E]
	cells     block[any]
}

// mostFound is how much room for what measure found a decoder keeps from one document to the next.
const mostFound = 16 << 10

// start makes d ready for decoding data.
func (d *decoder) start(cfg *config, data []byte) {
	d.cfg, d.data, d.depth, d.holds, d.chunkSize, d.text = cfg, data, 0, 0, firstChunk, 0
}

// stop lets go of everything that belongs to the document.
func (d *decoder) stop() {
	if len(d.elems) > 0 {
		clear(d.elems)
		d.elems = d.elems[:0]
	}
	if d.grown {
		found := d.found[:0]
		if cap(found) > mostFound {
			found = nil
		}
		d.treeState, d.grown = treeState{found: found}, false
	}
	d.cfg, d.data, d.chunk = nil, nil, nil
}

// enter returns the elements of the document or array at the start of b and its size. leave comes
// after it.
func (d *decoder) enter(b []byte) (body []byte, size int, err error) {
	if d.depth >= d.cfg.maxDepth {
		return nil, 0, errTooDeep
	}
	d.depth++
	return documentBody(b)
}

func (d *decoder) leave() { d.depth-- }

// enterCounted is enter for a value that must be of the type want. It counts the elements, and
// every frame at this level is in order then.
func (d *decoder) enterCounted(want, t Type, b []byte) (body []byte, n, size int, err error) {
	if t != want {
		return nil, 0, 0, errWrongType
	}
	if body, size, err = d.enter(b); err == nil {
		n, err = countElements(body)
	}
	return body, n, size, err
}

// documentBody returns the elements of the document or array at the start of b, and its size.
func documentBody(b []byte) (body []byte, size int, err error) {
	if len(b) < 5 {
		return nil, 0, errTruncated
	}
	n := int(int32(binary.LittleEndian.Uint32(b)))
	if n < 5 || n > len(b) || b[n-1] != 0 {
		_, _, err = ReadDocument(b)
		return nil, 0, err
	}
	return b[4 : n-1], n, nil
}

var (
	errKeyEnd    = errors.New("bson: key is not terminated")
	errOldBinary = errors.New("old binary: inner length does not match")
)

// keyLen returns the length of the key at the start of b, which must be valid UTF-8.
func (d *decoder) keyLen(b []byte) (int, error) {
	n, ascii := cstringLen(b)
	if n < 0 {
		return 0, errKeyEnd
	}
	if !ascii && !d.cfg.AllowInvalidUTF8 && !utf8.Valid(b[:n]) {
		return 0, errUTF8
	}
	return n, nil
}

// countElements returns how many elements body has. Every frame at this level is in order then.
func countElements(body []byte) (int, error) {
	n := 0
	for len(body) > 0 {
		k, _ := cstringLen(body[1:])
		if k < 0 {
			return 0, errKeyEnd
		}
		t := Type(body[0])
		body = body[k+2:]
		size := int(fixedSizes[t])
		if size == variableSize {
			var err error
			if size, err = valueSize(t, body); err != nil {
				return 0, err
			}
		} else if size > len(body) {
			return 0, errTruncated
		}
		body = body[size:]
		n++
	}
	return n, nil
}

const variableSize = 255

// fixedSizes is the size of the values of each type, or variableSize.
var fixedSizes = func() (sizes [256]uint8) {
	for i := range sizes {
		sizes[i] = variableSize
	}
	for size, types := range map[uint8][]Type{
		0:  {TypeUndefined, TypeNull, TypeMinKey, TypeMaxKey},
		1:  {TypeBoolean},
		4:  {TypeInt32},
		8:  {TypeDouble, TypeDateTime, TypeTimestamp, TypeInt64},
		12: {TypeObjectID},
		16: {TypeDecimal128},
	} {
		for _, t := range types {
			sizes[t] = size
		}
	}
	return sizes
}()

// stringValue decodes the value of a string.
func (d *decoder) stringValue(b []byte) (s string, n int, err error) {
	if len(b) < 5 {
		return "", 0, errTruncated
	}
	l := int(int32(binary.LittleEndian.Uint32(b)))
	if l < 1 || l > len(b)-4 || b[4+l-1] != 0 {
		_, err := valueSize(TypeString, b)
		return "", 0, err
	}
	v := b[4 : 4+l-1]
	if !d.cfg.AllowInvalidUTF8 && !validText(v) {
		return "", 0, errUTF8
	}
	return d.str(v), 4 + l, nil
}

// stringOrNull decodes what fits into a string; null is the empty one.
func (d *decoder) stringOrNull(t Type, b []byte, goType reflect.Type) (s string, n int, err error) {
	switch t {
	case TypeString, TypeSymbol:
		if s, n, err = d.stringValue(b); err == nil {
			return s, n, nil
		}
	case TypeNull, TypeUndefined:
		return "", 0, nil
	case TypeObjectID:
		if !d.cfg.ObjectIDAsHex {
			err = errWrongType
		} else if len(b) < 12 {
			err = errTruncated
		} else {
			return ObjectID(b[:12]).Hex(), 12, nil
		}
	case TypeBinary:
		var v []byte
		if v, n, err = plainBytes(t, b); err == nil {
			if d.cfg.AllowInvalidUTF8 || validText(v) {
				return d.str(v), n, nil
			}
			err = errUTF8
		}
	default:
		err = errWrongType
	}
	return "", 0, decodeErr(t, goType, err)
}

// validRegex is Regex that refuses invalid UTF-8 as the options say.
func (v RawValue) validRegex(d *decoder) (Regex, bool) {
	r, ok := v.Regex()
	return r, ok && (d.cfg.AllowInvalidUTF8 || utf8.ValidString(r.Pattern) && utf8.ValidString(r.Options))
}

// validDBPointer is DBPointer that refuses invalid UTF-8 as the options say.
func (v RawValue) validDBPointer(d *decoder) (DBPointer, bool) {
	p, ok := v.DBPointer()
	return p, ok && (d.cfg.AllowInvalidUTF8 || utf8.ValidString(p.DB))
}
