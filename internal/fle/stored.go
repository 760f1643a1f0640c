package fle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"allium/bson"
)

// ErrMalformed is the reason for which bytes that claim to be an encrypted value cannot be read.
var ErrMalformed = errors.New("malformed ciphertext")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Sealed is a value that can be decrypted: KindDeterministic, KindRandom, KindUnindexed, KindInsert
// and the indexed kinds.
type Sealed struct {
	Kind   Kind
	KeyID  bson.UUID // of the one key, or of the one that opens the outer layer of a stored value with an index
	Type   bson.Type // of the value that is encrypted
	data   []byte
	sealed []byte // the ciphertext, or the server's for a value with an index
	blocks []byte // the metadata of a value with an index
}

// ParseSealed parses a value that can be decrypted. It reports false for the kinds that cannot be:
// placeholders and payloads of queries. The ciphertext is not looked at.
func ParseSealed(data []byte) (Sealed, bool, error) {
	if len(data) == 0 {
		return Sealed{}, false, malformed("no bytes")
	}
	s := Sealed{Kind: Kind(data[0]), data: data}
	switch s.Kind {
	case KindMarking, KindPlaceholder, KindFindEquality, KindFindRange, KindFindText:
		return Sealed{}, false, nil
	case KindInsert:
		p, err := ParseInsert(data)
		if err != nil {
			return Sealed{}, false, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		s.KeyID, s.Type = p.IndexKey, p.Type
		copy(s.KeyID[:], p.Value) // the user key's
		s.sealed = p.Value[len(s.KeyID):]
		return s, true, nil
	case KindDeterministic, KindRandom, KindUnindexed, KindUnindexedV1, KindIndexedEquality, KindIndexedRange,
		KindIndexedText:
	default:
		if s.Kind.obsolete() {
			return Sealed{}, false, ErrObsolete
		}
		return Sealed{}, false, malformed("%s is not known", s.Kind)
	}
	if len(data) < headerSize {
		return Sealed{}, false, malformed("%d bytes, too few for a %s", len(data), s.Kind)
	}
	copy(s.KeyID[:], data[1:])
	s.Type = bson.Type(data[headerSize-1])
	rest := data[headerSize:]
	var blocks uint64
	switch s.Kind {
	case KindIndexedEquality:
		blocks = 1
	case KindIndexedRange:
		if len(rest) < 1 {
			return Sealed{}, false, malformed("%d bytes, too few for a %s", len(data), s.Kind)
		}
		blocks, rest = uint64(rest[0]), rest[1:]
	case KindIndexedText:
		if len(rest) < 12 {
			return Sealed{}, false, malformed("%d bytes, too few for a %s", len(data), s.Kind)
		}
		blocks = uint64(binary.LittleEndian.Uint32(rest))
		substrings, suffixes := uint64(binary.LittleEndian.Uint32(rest[4:])),
			uint64(binary.LittleEndian.Uint32(rest[8:]))
		if blocks < 1+substrings+suffixes {
			return Sealed{}, false, malformed("%d tags, of which %d are for substrings and %d for suffixes", blocks,
				substrings, suffixes)
		}
		rest = rest[12:]
	default:
		// That the ciphertext is too short is told once the key is known.
		s.sealed = rest
		return s, true, nil
	}
	if blocks*blockSize > uint64(len(rest)) || len(rest)-int(blocks)*blockSize < ivSize+16+sealedSize(1) {
		return Sealed{}, false, malformed("%d bytes, too few for a %s with %d tags", len(data), s.Kind, blocks)
	}
	cut := len(rest) - int(blocks)*blockSize
	s.sealed, s.blocks = rest[:cut], rest[cut:]
	return s, true, nil
}

// Indexed reports whether s has an outer layer: Inner opens it.
func (s *Sealed) Indexed() bool { return s.blocks != nil }

// Inner decrypts what the server encrypted of a value with an index: key is the one with the id
// KeyID. It returns the value that the client encrypted, whose KeyID is the one to open it with.
func (s *Sealed) Inner(key *Key) (Sealed, error) {
	plain, err := openCTR(key.Tokens().ServerDataEncryption, s.sealed)
	if err != nil {
		return Sealed{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if len(plain) < 16+sealedSize(1) {
		return Sealed{}, malformed("the client's part has %d bytes", len(plain))
	}
	inner := Sealed{Kind: s.Kind, Type: s.Type, data: s.data, sealed: plain[16:]}
	copy(inner.KeyID[:], plain)
	return inner, nil
}

// Open decrypts s, which is not Indexed: key is the one with the id KeyID. A value that does not
// parse under its type is an error: it was made by somebody with the key who encrypted something
// else than BSON.
func (s *Sealed) Open(key *Key) (bson.RawValue, error) {
	if s.Indexed() {
		return bson.RawValue{}, malformed("the outer layer of an %s is not open", s.Kind)
	}
	// The value is decrypted where it stands in a document, so that the document can be validated.
	const before = 4 + 1 + 1
	doc := make([]byte, before, before+len(s.sealed)+1)
	doc[4] = byte(s.Type)
	var err error
	switch s.Kind {
	case KindDeterministic, KindRandom:
		doc, err = key.Open(doc, s.data[:headerSize], s.sealed)
	case KindUnindexed:
		doc, err = key.OpenQE(doc, s.data[:headerSize], s.sealed)
	case KindUnindexedV1:
		doc, err = key.openV1(doc, s.data[:headerSize], s.sealed)
	default:
		doc, err = key.OpenQE(doc, s.KeyID[:], s.sealed)
	}
	if errors.Is(err, ErrShort) || errors.Is(err, ErrPadding) {
		return bson.RawValue{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if errors.Is(err, ErrTag) {
		return bson.RawValue{}, fmt.Errorf("%w: the %s was changed or cut, or encrypted with another key than %s", err,
			s.Kind, s.KeyID)
	}
	if err != nil {
		return bson.RawValue{}, err
	}
	end := len(doc)
	doc = append(doc, 0)
	binary.LittleEndian.PutUint32(doc, uint32(len(doc)))
	if err := validate(s.Type, bson.Raw(doc)); err != nil {
		return bson.RawValue{}, err
	}
	return bson.RawValue{Type: s.Type, Value: doc[before:end:end]}, nil
}

// validate checks the document whose one element has a decrypted value. Its errors do not tell the
// value.
func validate(t bson.Type, doc bson.Raw) error {
	switch t {
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return malformed("a %s was encrypted", t)
	}
	n := 0
	if err := doc.Validate(); err == nil {
		for range doc.All() {
			n++
		}
	}
	if n != 1 {
		return malformed("what was encrypted is not a valid %s", t)
	}
	return nil
}

// The metadata of one tag: how often the value was counted before and under which contention
// factor, the tag, and zeros that show that the server's token fits.
const (
	countSize = ivSize + 16
	blockSize = countSize + 32 + countSize
)

// Tags returns the tags of a value with an index, in their order. They share the bytes of the
// value.
func (s *Sealed) Tags() [][]byte {
	out := make([][]byte, 0, len(s.blocks)/blockSize)
	for b := s.blocks; len(b) >= blockSize; b = b[blockSize:] {
		out = append(out, b[countSize:countSize+32:countSize+32])
	}
	return out
}

// Sets returns the token sets of p in the order of the tags of what is stored for it: of the value;
// of the edges; of the text, its substrings, suffixes and prefixes.
func (p *Insert) Sets() []TokenSet {
	switch {
	case p.Text != nil:
		out := append([]TokenSet{p.Text.Exact}, p.Text.Substrings...)
		return append(append(out, p.Text.Suffixes...), p.Text.Prefixes...)
	case p.Edges != nil:
		return p.Edges
	}
	return []TokenSet{p.TokenSet}
}

// Store returns what a server stores for p: a KindIndexedEquality, KindIndexedRange or
// KindIndexedText, and its tags. counts has for each of Sets how often it was inserted, this time
// included.
func (p *Insert) Store(counts []uint64, random io.Reader) (data []byte, tags []Token, err error) {
	sets := p.Sets()
	if len(counts) != len(sets) {
		return nil, nil, fmt.Errorf("%d counts for %d token sets", len(counts), len(sets))
	}
	kind := KindIndexedEquality
	switch {
	case p.Text != nil:
		kind = KindIndexedText
	case p.Edges != nil:
		kind = KindIndexedRange
		if len(sets) == 0 || len(sets) > 255 {
			return nil, nil, fmt.Errorf("a range value with %d edges", len(sets))
		}
	}
	data = header(nil, kind, p.IndexKey, p.Type)
	switch kind {
	case KindIndexedRange:
		data = append(data, byte(len(sets)))
	case KindIndexedText:
		data = binary.LittleEndian.AppendUint32(data, uint32(len(sets)))
		data = binary.LittleEndian.AppendUint32(data, uint32(len(p.Text.Substrings)))
		data = binary.LittleEndian.AppendUint32(data, uint32(len(p.Text.Suffixes)))
	}
	if data, err = sealCTR(data, p.ServerToken, p.Value, random); err != nil {
		return nil, nil, err
	}
	for i, s := range sets {
		var plain [16]byte
		binary.LittleEndian.PutUint64(plain[:], counts[i])
		binary.LittleEndian.PutUint64(plain[8:], uint64(p.Contention))
		if data, err = sealCTR(data, CountAndContention(s.Server), plain[:], random); err != nil {
			return nil, nil, err
		}
		tag := Tag(s.EDC, counts[i])
		tags = append(tags, tag)
		data = append(data, tag[:]...)
		if data, err = sealCTR(data, Zeros(s.Server), make([]byte, 16), random); err != nil {
			return nil, nil, err
		}
	}
	return data, tags, nil
}

// SealAnchor and OpenAnchor encrypt and decrypt the value of an anchor: the positions of the anchor
// and of the entry that it stands for. value is a CountValue or an AnchorPaddingValue.
func SealAnchor(value Token, anchor, entry uint64, random io.Reader) ([]byte, error) {
	var plain [16]byte
	binary.LittleEndian.PutUint64(plain[:], anchor)
	binary.LittleEndian.PutUint64(plain[8:], entry)
	return sealCTR(nil, value, plain[:], random)
}

// OpenAnchor is described with SealAnchor.
func OpenAnchor(value Token, data []byte) (anchor, entry uint64, err error) {
	plain, err := openCTR(value, data)
	if err != nil {
		return 0, 0, err
	}
	if len(plain) != 16 {
		return 0, 0, malformed("%d bytes of an anchor", len(plain))
	}
	return binary.LittleEndian.Uint64(plain), binary.LittleEndian.Uint64(plain[8:]), nil
}
