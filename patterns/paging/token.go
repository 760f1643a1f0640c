package paging

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"allium/bson"
)

// A token is base64url of a version, and then a body or, in a sealed token, a salt and the sealed
// body. A body is the flags, the hash of the query, and a document with the sort keys.
const (
	versionPlain  = 1
	versionSealed = 2

	flagBefore = 1
	flagTouch  = 2

	hashSize = 16
	saltSize = 16
	// maxToken bounds what is taken for a token, and what is made: a URL has no room for more.
	maxToken = 16 << 10
)

var encoding = base64.RawURLEncoding.Strict()

// token returns the token that leads to a position.
func (q *query) token(p position) (string, error) {
	var flags byte
	if p.before {
		flags |= flagBefore
	}
	if p.touch {
		flags |= flagTouch
	}
	body := append([]byte{flags}, q.hash[:]...)
	start, body := bson.BeginDocument(body)
	for i, v := range p.at {
		body = bson.AppendRawValue(body, strconv.Itoa(i), v)
	}
	body = bson.EndDocument(body, start)
	var b []byte
	if q.Seal != nil {
		b = q.Seal.seal(body)
	} else {
		b = append([]byte{versionPlain}, body...)
	}
	if encoding.EncodedLen(len(b)) > maxToken {
		return "", fmt.Errorf("sort keys of %s make a token of more than %d bytes: sort by shorter values",
			which(id(p.at)), maxToken)
	}
	return encoding.EncodeToString(b), nil
}

// open reads a token. Its text is from who knows where.
func (q *query) open(token string) (p position, err error) {
	if len(token) > maxToken {
		return p, fmt.Errorf("%w: it has %d bytes", ErrToken, len(token))
	}
	b, err := encoding.DecodeString(token)
	if err != nil || len(b) == 0 || strings.ContainsAny(token, "\r\n") { // which it passes over
		return p, fmt.Errorf("%w: it is not base64url", ErrToken)
	}
	var body []byte
	switch version := b[0]; {
	case version == versionPlain && q.Seal == nil:
		body = b[1:]
	case version == versionSealed && q.Seal != nil:
		if body, err = q.Seal.open(b); err != nil {
			return p, fmt.Errorf("%w: %w", ErrToken, err)
		}
	case version == versionPlain:
		return p, fmt.Errorf("%w: it is not sealed", ErrToken)
	case version == versionSealed:
		return p, fmt.Errorf("%w: it is sealed, and there is no seal to open it", ErrToken)
	default:
		return p, fmt.Errorf("%w: it has the version %d", ErrToken, version)
	}
	if len(body) < 1+hashSize || body[0]&^(flagBefore|flagTouch) != 0 {
		return p, fmt.Errorf("%w: it is cut off", ErrToken)
	}
	if [hashSize]byte(body[1:]) != q.hash {
		return p, ErrOtherQuery
	}
	doc := bson.Raw(body[1+hashSize:])
	if err := doc.Validate(); err != nil {
		return p, fmt.Errorf("%w: %w", ErrToken, err)
	}
	p = position{at: slices.Collect(doc.Values()), before: body[0]&flagBefore != 0, touch: body[0]&flagTouch != 0}
	if len(p.at) != len(q.keys) {
		return p, fmt.Errorf("%w: it has %d sort keys", ErrToken, len(p.at))
	}
	for i, v := range p.at {
		// Texts may be equal under the collation of the collection, which is not known here.
		elsewhere := i < len(q.prefix) && bson.Compare(v, q.prefix[i]) != 0 && !(text(v) && text(q.prefix[i]))
		if v.Type == bson.TypeArray || elsewhere {
			return p, fmt.Errorf("%w: it leads out of the list", ErrToken)
		}
	}
	return p, nil
}

// A Seal encrypts and authenticates tokens, with AES-256-GCM under a key that is derived for each
// token. It is safe for concurrent use.
type Seal struct{ keys [][]byte }

// NewSeal returns a seal with keys of the program's, each of 32 random bytes. Tokens are sealed
// with the first key, and opened with any: to change keys, put a new one in front, and leave the
// old one out when its tokens are too old to be used.
func NewSeal(keys ...[]byte) (*Seal, error) {
	if len(keys) == 0 {
		return nil, errors.New("seal has no key")
	}
	s := &Seal{}
	for i, k := range keys {
		if len(k) != 32 {
			return nil, fmt.Errorf("key %d of the seal has %d bytes, want 32", i, len(k))
		}
		s.keys = append(s.keys, slices.Clone(k))
	}
	return s, nil
}

// cipher derives the cipher and the nonce for a token from its salt.
func (s *Seal) cipher(key, salt []byte) (aead cipher.AEAD, nonce []byte) {
	derived, err := hkdf.Key(sha256.New, key, salt, "allium paging token", 32+12)
	if err == nil {
		var block cipher.Block
		if block, err = aes.NewCipher(derived[:32]); err == nil {
			aead, err = cipher.NewGCM(block)
		}
	}
	if err != nil {
		panic(err) // the sizes are right
	}
	return aead, derived[32:]
}

func (s *Seal) seal(body []byte) []byte {
	head := append([]byte{versionSealed}, make([]byte, saltSize)...)
	rand.Read(head[1:])
	aead, nonce := s.cipher(s.keys[0], head[1:])
	return aead.Seal(head, nonce, body, head[:1])
}

func (s *Seal) open(b []byte) ([]byte, error) {
	if len(b) < 1+saltSize {
		return nil, errors.New("it is cut off")
	}
	for _, key := range s.keys {
		aead, nonce := s.cipher(key, b[1:1+saltSize])
		if body, err := aead.Open(nil, nonce, b[1+saltSize:], b[:1]); err == nil {
			return body, nil
		}
	}
	return nil, errors.New("it is sealed with another key, or was changed")
}
