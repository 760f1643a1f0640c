package fle

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Token is a key that is derived from a data key's third 32 bytes, or from another token, with
// HMAC-SHA-256. A server that has one can find the values that it is for, and cannot derive those
// above it.
type Token [32]byte

// TextKind is a kind of token of a text field.
type TextKind uint64

// The order is that of the derivation.
const (
	TextExact     TextKind = 1
	TextSubstring TextKind = 2
	TextSuffix    TextKind = 3
	TextPrefix    TextKind = 4
)

// derive returns HMAC-SHA-256(t, data).
func (t Token) derive(data []byte) Token {
	h := hmac.New(sha256.New, t[:])
	h.Write(data)
	var out Token
	h.Sum(out[:0])
	return out
}

// number returns HMAC-SHA-256(t, n), n as 8 bytes. Two of five derivations are of this kind, each
// with a key that is used once: it is written out, since hmac.New allocates for a key.
func (t Token) number(n uint64) Token {
	var inner [sha256.BlockSize + 8]byte
	var outer [sha256.BlockSize + sha256.Size]byte
	copy(inner[:], t[:])
	copy(outer[:], t[:])
	for i := range sha256.BlockSize {
		inner[i] ^= 0x36
		outer[i] ^= 0x5c
	}
	binary.LittleEndian.PutUint64(inner[sha256.BlockSize:], n)
	sum := sha256.Sum256(inner[:])
	copy(outer[sha256.BlockSize:], sum[:])
	return sha256.Sum256(outer[:])
}

// Tokens are the roots that all tokens of a key are derived from.
type Tokens struct {
	EDC                  Token // for the data: the tags in documents
	ESC                  Token // for the state collection that counts
	ECOC                 Token // for the collection that remembers what to compact
	ServerDerivation     Token
	ServerDataEncryption Token // the server encrypts what it stores with it
}

// NewTokens derives the tokens of root, the last 32 bytes of a data key.
func NewTokens(root Token) Tokens {
	collections := root.number(1)
	return Tokens{
		EDC: collections.number(1), ESC: collections.number(2), ECOC: collections.number(4),
		ServerDerivation: root.number(2), ServerDataEncryption: root.number(3),
	}
}

// AnchorPadding returns the root of the tokens for the padding that compaction adds.
func (t Tokens) AnchorPadding() Token { return AnchorPadding(t.ESC) }

// AnchorPadding derives the root of the tokens for padding from an ESC token.
func AnchorPadding(esc Token) Token { return esc.derive(make([]byte, 17)) }

// AnchorPaddingKey and AnchorPaddingValue derive the tokens for the _id and the value of padding.
func AnchorPaddingKey(root Token) Token { return root.number(1) }

// AnchorPaddingValue is described with AnchorPaddingKey.
func AnchorPaddingValue(root Token) Token { return root.number(2) }

// FindSet is the tokens that a query looks for a value with.
type FindSet struct {
	EDC    Token // field d
	ESC    Token // field s
	Server Token // field l
}

// finder derives the tokens of values from the roots of a Tokens. It keeps the hashes that have
// taken the roots as their keys. One goroutine uses it at a time.
type finder struct {
	edc, esc, server hash.Hash
	sum              Token
	data             []byte // of one value
}

func (t *Tokens) finder() *finder {
	return &finder{edc: hmac.New(sha256.New, t.EDC[:]), esc: hmac.New(sha256.New, t.ESC[:]),
		server: hmac.New(sha256.New, t.ServerDerivation[:]), data: make([]byte, 0, 128)}
}

// find returns the tokens of the value data: the bytes of a BSON value, or the text of an edge.
func (f *finder) find(data []byte) FindSet {
	return FindSet{EDC: f.derive(f.edc, data), ESC: f.derive(f.esc, data), Server: f.derive(f.server, data)}
}

// edge and string return the bytes of an edge and of a BSON string, until the next is asked for.
func (f *finder) edge(s string) []byte {
	f.data = append(f.data[:0], s...)
	return f.data
}

// string is described with edge.
func (f *finder) string(s string) []byte {
	f.data = appendString(f.data[:0], s)
	return f.data
}

func (f *finder) derive(h hash.Hash, data []byte) Token {
	h.Reset()
	h.Write(data)
	h.Sum(f.sum[:0])
	return f.sum
}

// Find returns the tokens of the value data: the bytes of a BSON value, or the text of an edge.
func (t *Tokens) Find(data []byte) FindSet { return t.finder().find(data) }

// Text returns the roots of the tokens of kind.
func (t *Tokens) Text(kind TextKind) Tokens {
	k := uint64(kind)
	return Tokens{EDC: t.EDC.number(k), ESC: t.ESC.number(k), ServerDerivation: t.ServerDerivation.number(k)}
}

// With returns the tokens that a value is inserted with under a contention factor. Server has none.
func (s FindSet) With(contention uint64) FindSet {
	return FindSet{EDC: s.EDC.number(contention), ESC: s.ESC.number(contention), Server: s.Server}
}

// The tokens below are the server's.

// Tag returns the tag of the n-th occurrence, from 1, of a value: edc is that of FindSet.With.
func Tag(edc Token, n uint64) Token { return edc.number(1).number(n) }

// CountTag and CountValue derive the tokens for the _id and the value of what counts a value: esc
// is that of FindSet.With.
func CountTag(esc Token) Token { return esc.number(1) }

// CountValue is described with CountTag.
func CountValue(esc Token) Token { return esc.number(2) }

// Entry returns the _id of the entry at position n, from 1: tag is a CountTag.
func Entry(tag Token, n uint64) Token { return tag.number(n) }

// Anchor returns the _id of the anchor at position n; of the null anchor for 0. tag is a CountTag
// or an AnchorPaddingKey.
func Anchor(tag Token, n uint64) Token {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[8:], n)
	return tag.derive(b[:])
}

// CountAndContention and Zeros derive the tokens that the server encrypts the metadata of a stored
// value with: server is that of a FindSet.
func CountAndContention(server Token) Token { return server.number(1) }

// Zeros is described with CountAndContention.
func Zeros(server Token) Token { return server.number(2) }
