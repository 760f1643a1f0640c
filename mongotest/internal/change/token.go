// Package change has the parts of change events that do not depend on where the events come from:
// resume tokens, and the descriptions of updates.
package change

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/store"
)

// Token is a place in the change log: {_data: "82..."} holds it as hexadecimal bytes that compare
// in the order of the events. A high water mark stands before all events of its time.
type Token struct {
	Ts         bson.Timestamp
	Event      bool // not a high water mark
	Index      int  // within a transaction
	Invalidate bool
	Uuid       [16]byte
	Fragment   int // of a split event, counted from 1; 0: the whole event
	Key        bson.Raw
}

// The bytes that introduce the token's parts, as in the server's own tokens.
const (
	tokenTimestamp = 0x82
	tokenZero      = 0x29
	tokenByte      = 0x2b // a positive number, doubled, in one byte; the following codes are for more bytes
	tokenBinary    = 0x5a
	tokenObject    = 0x46
	tokenFalse     = 0x6e
	tokenTrue      = 0x6f
	tokenEnd       = 0x04
)

func appendTokenNumber(b []byte, n int) []byte {
	if n == 0 {
		return append(b, tokenZero)
	}
	var be [8]byte
	binary.BigEndian.PutUint64(be[:], uint64(n)<<1)
	i := 0
	for be[i] == 0 {
		i++
	}
	b = append(b, byte(tokenByte-1+8-i))
	return append(b, be[i:]...)
}

// Document returns the token as the _id of an event.
func (t *Token) Document() bson.Raw {
	b := make([]byte, 0, 96)
	b = append(b, tokenTimestamp)
	b = binary.BigEndian.AppendUint32(b, t.Ts.T)
	b = binary.BigEndian.AppendUint32(b, t.Ts.I)
	b = appendTokenNumber(b, 1) // the format's version
	kind := 0
	if t.Event {
		kind = 128
	}
	b = appendTokenNumber(b, kind)
	b = appendTokenNumber(b, t.Index)
	if t.Invalidate {
		b = append(b, tokenTrue)
	} else {
		b = append(b, tokenFalse)
	}
	if t.Event {
		b = append(b, tokenBinary, 16, bson.BinaryUUID)
		b = append(b, t.Uuid[:]...)
		if t.Fragment > 0 {
			b = appendTokenNumber(b, t.Fragment)
		}
		if t.Key != nil {
			b = append(b, tokenObject)
			b = store.AppendKey(b, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: t.Key}, nil, false)
		}
	}
	b = append(b, tokenEnd)
	at, doc := bson.BeginDocument(make([]byte, 0, 2*len(b)+20))
	doc = bson.AppendString(doc, "_data", strings.ToUpper(hex.EncodeToString(b)))
	bits := typeBits{n: 6} // those of the three numbers in front
	bits.add(t.Key)
	if packed := bits.pack(); packed != nil {
		doc = bson.AppendBinary(doc, "_typeBits", bson.BinaryGeneric, packed)
	}
	return bson.EndDocument(doc, at)
}

// Before compares the token's place with an event's.
func (t *Token) Before(ts bson.Timestamp, index int, invalidate bool) bool {
	if c := t.Ts.Compare(ts); c != 0 {
		return c < 0
	}
	if !t.Event {
		return true
	}
	if t.Index != index {
		return t.Index < index
	}
	if t.Fragment > 0 && !invalidate {
		return true // the rest of it is still wanted
	}
	return !t.Invalidate && invalidate
}

// ParseToken reads a token that a client gives back.
func ParseToken(doc bson.Raw) (t Token, err error) {
	data := doc.Lookup("_data")
	s, ok := data.StringValue()
	if !ok {
		return t, srverr.New(40647, "Bad resume token: _data of missing or of wrong type. Expected string, got %s",
			TokenText(doc))
	}
	if v := doc.Lookup("_typeBits"); v.Type != 0 && v.Type != bson.TypeBinary {
		return t, srverr.New(40648, "Bad resume token: _typeBits of wrong type %s", TokenText(doc))
	}
	if s == "" {
		return t, srverr.New(40649, "invalid empty resume token")
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return t, srverr.New(srverr.FailedToParse, "resume token string was not a valid hex string")
	}
	p := tokenReader{b: b}
	p.expect(tokenTimestamp)
	if raw := p.take(8); raw != nil {
		t.Ts = bson.Timestamp{T: binary.BigEndian.Uint32(raw), I: binary.BigEndian.Uint32(raw[4:])}
	}
	version := p.number()
	kind := 128
	if version > 0 {
		kind = p.number()
	}
	t.Event = kind != 0
	t.Index = p.number()
	switch p.peek() {
	case tokenTrue:
		t.Invalidate = true
		p.take(1)
	case tokenFalse:
		p.take(1)
	}
	if p.peek() == tokenBinary {
		p.take(1)
		head := p.take(2)
		if raw := p.take(16); raw != nil && head != nil {
			copy(t.Uuid[:], raw)
		}
		if c := p.peek(); c >= tokenByte && c <= tokenByte+7 {
			t.Fragment = p.number()
		}
		if n := len(p.b); p.peek() == tokenObject && p.b[n-1] != tokenEnd && store.KeyEnd(p.b[1:]) < 0 {
			p.take(n + 1) // somebody has cut the key off; without its last byte the token does
		}
	}
	return t, p.err
}

// TokenText renders a document as the messages about tokens do, without the spaces inside of the
// braces.
func TokenText(doc bson.Raw) string {
	var parts []string
	for k, v := range doc.All() {
		text := bsontext.Value(v)
		if b, ok := v.Binary(); ok {
			text = "BinData(0, \"" + strings.ToUpper(hex.EncodeToString(b.Data)) + "\")"
		}
		parts = append(parts, k+": "+text)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// tokenReader reads a token's bytes and keeps the first error.
type tokenReader struct {
	b   []byte
	err error
}

func (p *tokenReader) take(n int) []byte {
	if p.err != nil {
		return nil
	}
	if len(p.b) < n {
		p.err = srverr.New(srverr.Overflow, "Invalid advance (%d) past end of buffer[%d] at offset: 0", n, len(p.b))
		return nil
	}
	out := p.b[:n]
	p.b = p.b[n:]
	return out
}

func (p *tokenReader) peek() byte {
	if p.err != nil || len(p.b) == 0 {
		return 0
	}
	return p.b[0]
}

func (p *tokenReader) expect(c byte) {
	if got := p.take(1); got != nil && !knownKeyType(got[0]) {
		p.err = srverr.New(50811, "Unknown type: %d", got[0])
	} else if got != nil && got[0] != c {
		p.err = srverr.New(srverr.InvalidResumeToken, "Bad resume token")
	}
}

// knownKeyType reports whether a value of the server's keys can begin with the byte.
func knownKeyType(c byte) bool {
	switch c {
	case 10, 15, 20, 60, 70, 80, 90, 100, 110, 111, 120, 130, 140, 150, 160, 170, 240:
		return true
	}
	return c >= 30 && c < 60 // numbers
}

func (p *tokenReader) number() int {
	c := p.take(1)
	switch {
	case c == nil:
		return 0
	case c[0] == tokenZero:
		return 0
	case c[0] < tokenByte || c[0] > tokenByte+7:
		p.err = srverr.New(srverr.InvalidResumeToken, "Bad resume token")
		return 0
	}
	n := 0
	for _, x := range p.take(int(c[0]) - tokenByte + 1) {
		n = n<<8 | int(x)
	}
	return n >> 1
}

// typeBits tell the types of values apart that the token's bytes do not: two bits for a number, one
// for a string.
type typeBits struct {
	b []byte
	n int
}

func (t *typeBits) bit(on bool) {
	for len(t.b) <= t.n/8 {
		t.b = append(t.b, 0)
	}
	if on {
		t.b[t.n/8] |= 1 << (t.n % 8)
	}
	t.n++
}

// add takes the values of a document, nested ones included.
func (t *typeBits) add(doc bson.Raw) {
	for v := range doc.Values() {
		switch v.Type {
		case bson.TypeInt32:
			t.bit(false)
			t.bit(false)
		case bson.TypeInt64:
			t.bit(false)
			t.bit(true)
		case bson.TypeDouble:
			t.bit(true)
			t.bit(false)
		case bson.TypeDecimal128:
			t.bit(true)
			t.bit(true)
		case bson.TypeString:
			t.bit(false)
		case bson.TypeSymbol:
			t.bit(true)
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			t.add(v.Value)
		}
	}
}

// pack returns the bits with their length in front, unless they are few enough; nil if they are all
// zero.
func (t *typeBits) pack() []byte {
	zero := true
	for _, b := range t.b {
		zero = zero && b == 0
	}
	switch {
	case zero:
		return nil
	case len(t.b) == 1 && t.b[0] < 0x80:
		return t.b
	}
	return append([]byte{0x80 | byte(min(len(t.b), 0x7f))}, t.b...)
}
