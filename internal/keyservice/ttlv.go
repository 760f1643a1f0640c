package keyservice

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// KMIP messages are trees in the encoding TTLV: a tag of three bytes, a type, a length of four
// bytes and the value, padded to a multiple of eight ("KMIP Specification", section 9.1). This file
// reads and writes them; kmip.go gives them meaning.

// The types of an item.
const (
	typeStructure = 1
	typeInteger   = 2
	typeEnum      = 5
	typeBoolean   = 6
	typeText      = 7
	typeBytes     = 8
)

const (
	ttlvHeader = 8
	// maxTTLV bounds a response. A key of 96 bytes takes some 300.
	maxTTLV = 1 << 20
	// maxTTLVDepth bounds how deep structures lie in one another. Responses need five levels.
	maxTTLVDepth = 16
)

// item is a node of the tree: a structure has items, everything else a value.
type item struct {
	tag   uint32
	typ   byte
	value []byte
	items []item
}

func structure(tag uint32, items ...item) item {
	return item{tag: tag, typ: typeStructure, items: items}
}

func integer(tag uint32, v int32) item {
	return item{tag: tag, typ: typeInteger, value: binary.BigEndian.AppendUint32(nil, uint32(v))}
}

func enum(tag uint32, v uint32) item {
	return item{tag: tag, typ: typeEnum, value: binary.BigEndian.AppendUint32(nil, v)}
}

func boolean(tag uint32, v bool) item {
	var n uint64
	if v {
		n = 1
	}
	return item{tag: tag, typ: typeBoolean, value: binary.BigEndian.AppendUint64(nil, n)}
}

func text(tag uint32, v string) item { return item{tag: tag, typ: typeText, value: []byte(v)} }

func octets(tag uint32, v []byte) item { return item{tag: tag, typ: typeBytes, value: v} }

// append appends the item's encoding to dst.
func (i item) append(dst []byte) []byte {
	dst = append(dst, byte(i.tag>>16), byte(i.tag>>8), byte(i.tag), i.typ, 0, 0, 0, 0)
	start := len(dst)
	if i.typ == typeStructure {
		for _, child := range i.items {
			dst = child.append(dst)
		}
	} else {
		dst = append(dst, i.value...)
	}
	n := len(dst) - start
	binary.BigEndian.PutUint32(dst[start-4:], uint32(n))
	for ; n%8 != 0; n++ {
		dst = append(dst, 0)
	}
	return dst
}

var errTTLV = errors.New("malformed KMIP message")

// parseTTLV reads one item that fills data.
func parseTTLV(data []byte) (item, error) {
	i, rest, err := parseItem(data, 0)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%w: %d bytes follow its end", errTTLV, len(rest))
	}
	return i, err
}

func parseItem(data []byte, depth int) (i item, rest []byte, err error) {
	if depth > maxTTLVDepth {
		return item{}, nil, fmt.Errorf("%w: nested deeper than %d levels", errTTLV, maxTTLVDepth)
	}
	if len(data) < ttlvHeader {
		return item{}, nil, fmt.Errorf("%w: cut off in a header", errTTLV)
	}
	i.tag = uint32(data[0])<<16 | uint32(data[1])<<8 | uint32(data[2])
	i.typ = data[3]
	n := uint64(binary.BigEndian.Uint32(data[4:]))
	data = data[ttlvHeader:]
	padded := (n + 7) / 8 * 8
	if padded > uint64(len(data)) {
		return item{}, nil, fmt.Errorf("%w: item %06x is longer than what holds it", errTTLV, i.tag)
	}
	value := data[:n]
	rest = data[padded:]
	switch i.typ {
	case typeStructure:
		for len(value) > 0 {
			var child item
			if child, value, err = parseItem(value, depth+1); err != nil {
				return item{}, nil, err
			}
			i.items = append(i.items, child)
		}
	case typeInteger, typeEnum:
		if n != 4 {
			return item{}, nil, fmt.Errorf("%w: item %06x has a length of %d instead of 4", errTTLV, i.tag, n)
		}
		i.value = value
	default:
		i.value = value
	}
	return i, rest, nil
}

// find returns the first item with the tag, searched depth first in what i holds, and i itself.
func (i *item) find(tag uint32) (*item, bool) {
	if i.tag == tag {
		return i, true
	}
	for n := range i.items {
		if found, ok := i.items[n].find(tag); ok {
			return found, true
		}
	}
	return nil, false
}

// number returns the value of the first enumeration or integer with the tag.
func (i *item) number(tag uint32) (uint32, bool) {
	found, ok := i.find(tag)
	if !ok || found.typ != typeEnum && found.typ != typeInteger {
		return 0, false
	}
	return binary.BigEndian.Uint32(found.value), true
}

// text returns the value of the first text with the tag.
func (i *item) text(tag uint32) (string, bool) {
	found, ok := i.find(tag)
	if !ok || found.typ != typeText {
		return "", false
	}
	return string(found.value), true
}

// octets returns the value of the first byte string with the tag.
func (i *item) octets(tag uint32) ([]byte, bool) {
	found, ok := i.find(tag)
	if !ok || found.typ != typeBytes {
		return nil, false
	}
	return found.value, true
}
