package fle

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"sync"
)

// KeySize is the length of a data key's material.
const KeySize = 96

// Key is a data key. Its methods are safe for concurrent use, but for Clear.
type Key struct {
	material [KeySize]byte
	blocks   [2]schedule // of CSFLE and of Queryable Encryption
	csfle    sync.Pool   // of *state
	qe       sync.Pool   // of *state
	root     sync.Once
	tokens   Tokens
	finders  sync.Pool // of *finder, of tokens
	ecoc     schedule  // of tokens.ECOC
}

// schedule is a block cipher with a key. There is one for all users of a key, since each holds a
// copy of the key, which cannot be overwritten.
type schedule struct {
	once sync.Once
	of   cipher.Block
}

func (s *schedule) get(key []byte) cipher.Block {
	s.once.Do(func() { s.of = newBlock(key) })
	return s.of
}

// ErrKeyLength is the reason for which there is no Key of some material.
var ErrKeyLength = errors.New("decrypted key is incorrect length")

// NewKey returns the key with a copy of material, which must be KeySize bytes.
func NewKey(material []byte) (*Key, error) {
	if len(material) != KeySize {
		return nil, fmt.Errorf("%w, expected: %d, got: %d", ErrKeyLength, KeySize, len(material))
	}
	k := new(Key)
	copy(k.material[:], material)
	return k, nil
}

// Clear overwrites the material. It is the caller's to see to that nobody uses k any more. What the
// garbage collector or the ciphers copied is out of reach.
func (k *Key) Clear() {
	clear(k.material[:])
	k.blocks = [2]schedule{}
	k.csfle, k.qe = sync.Pool{}, sync.Pool{}
	k.tokens = Tokens{}
	k.finders, k.ecoc = sync.Pool{}, schedule{}
}

// Tokens returns the tokens that are derived from k.
func (k *Key) Tokens() *Tokens {
	k.root.Do(func() { k.tokens = NewTokens(Token(k.material[64:])) })
	return &k.tokens
}

// finder returns what derives the tokens of values from k. It is given back to k.finders.
func (k *Key) finder() *finder {
	if f, ok := k.finders.Get().(*finder); ok {
		return f
	}
	return k.Tokens().finder()
}

// state is what takes time to set up for a key and does not hold a value.
type state struct {
	block cipher.Block
	tag   hash.Hash // of the ciphertext
	iv    hash.Hash // of the plaintext, for a deterministic IV; CSFLE only
	sum   [sha512.Size]byte
}

func (k *Key) csfleState() *state {
	if s, ok := k.csfle.Get().(*state); ok {
		return s
	}
	return &state{
		block: k.blocks[0].get(k.material[32:64]), tag: hmac.New(sha512.New, k.material[:32]),
		iv: hmac.New(sha512.New, k.material[64:]),
	}
}

func (k *Key) qeState() *state {
	if s, ok := k.qe.Get().(*state); ok {
		return s
	}
	return &state{block: k.blocks[1].get(k.material[:32]), tag: hmac.New(sha256.New, k.material[32:64])}
}

// newBlock returns AES-256 with key, which has 32 bytes.
func newBlock(key []byte) cipher.Block {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length is fixed
	}
	return block
}
