package bson

import "errors"

// Elements returns the encoded elements of the document, without its length and terminator, for
// ReadElement. It returns nil if the document's frame is broken.
func (r Raw) Elements() []byte { return r.body() }

// ReadElement cuts the first element off b, which Raw.Elements returned or an earlier call left
// over. Use it where a loop over Raw.All does not do, as in walking two documents side by side. Key
// and value share b's memory.
//
//	for b := doc.Elements(); len(b) > 0; {
//		key, v, rest, err := bson.ReadElement(b)
//		...
//		b = rest
//	}
func ReadElement(b []byte) (key string, v RawValue, rest []byte, err error) {
	if len(b) == 0 {
		return "", RawValue{}, nil, errors.New("bson: no element left")
	}
	k, v, rest, err := readElement(b)
	return viewString(k), v, rest, err
}
