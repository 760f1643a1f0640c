package fle

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	ivSize  = aes.BlockSize
	tagSize = 32
)

// What is wrong with a ciphertext. That the tag does not fit says that the value was changed, cut,
// or encrypted with another key.
var (
	ErrTag     = errors.New("HMAC validation failure")
	ErrPadding = errors.New("error, ciphertext malformed padding")
	ErrShort   = errors.New("input ciphertext too small")
	//lint:ignore ST1005 the text is that of other drivers
	ErrEmpty = errors.New("input plaintext too small. Must be more than zero bytes.")
)

// sealedSize returns the length of the ciphertext of n bytes, for both ciphers with CBC.
func sealedSize(n int) int { return ivSize + (n/aes.BlockSize+1)*aes.BlockSize + tagSize }

// SealRandom encrypts plaintext as AEAD_AES_256_CBC_HMAC_SHA_512 with an initialization vector from
// random and appends the result to dst. aad is authenticated with it.
func (k *Key) SealRandom(dst, aad, plaintext []byte, random io.Reader) ([]byte, error) {
	var iv [ivSize]byte
	if _, err := io.ReadFull(random, iv[:]); err != nil {
		return dst, err
	}
	s := k.csfleState()
	defer k.csfle.Put(s)
	return s.seal(dst, iv[:], aad, plaintext, true)
}

// SealDeterministic is SealRandom with an initialization vector that follows from key, aad and
// plaintext.
func (k *Key) SealDeterministic(dst, aad, plaintext []byte) ([]byte, error) {
	s := k.csfleState()
	defer k.csfle.Put(s)
	s.iv.Reset()
	s.iv.Write(aad)
	s.length(s.iv, aad)
	s.iv.Write(plaintext)
	var iv [ivSize]byte
	copy(iv[:], s.iv.Sum(s.sum[:0]))
	return s.seal(dst, iv[:], aad, plaintext, true)
}

// Open decrypts what SealRandom and SealDeterministic made and appends it to dst.
func (k *Key) Open(dst, aad, ciphertext []byte) ([]byte, error) {
	s := k.csfleState()
	defer k.csfle.Put(s)
	return s.open(dst, aad, ciphertext, true)
}

// SealQE encrypts plaintext as Queryable Encryption does: AES-256-CBC with HMAC-SHA-256.
func (k *Key) SealQE(dst, aad, plaintext []byte, random io.Reader) ([]byte, error) {
	var iv [ivSize]byte
	if _, err := io.ReadFull(random, iv[:]); err != nil {
		return dst, err
	}
	s := k.qeState()
	defer k.qe.Put(s)
	return s.seal(dst, iv[:], aad, plaintext, false)
}

// OpenQE decrypts what SealQE made and appends it to dst.
func (k *Key) OpenQE(dst, aad, ciphertext []byte) ([]byte, error) {
	s := k.qeState()
	defer k.qe.Put(s)
	return s.open(dst, aad, ciphertext, false)
}

// openV1 decrypts what the first version of Queryable Encryption made, with AES-256 in counter
// mode, and appends it to dst.
func (k *Key) openV1(dst, aad, ciphertext []byte) ([]byte, error) {
	if len(ciphertext) <= ivSize+tagSize {
		//lint:ignore ST1005 the text is that of other drivers
		return dst, fmt.Errorf("%w. Must be at least %d bytes.", ErrShort, ivSize+tagSize+1)
	}
	s := k.qeState()
	defer k.qe.Put(s)
	sealed, tag := ciphertext[:len(ciphertext)-tagSize], ciphertext[len(ciphertext)-tagSize:]
	if !hmac.Equal(tag, s.mac(aad, sealed, false)) {
		return dst, ErrTag
	}
	start := len(dst)
	dst = append(dst, sealed[ivSize:]...)
	cipher.NewCTR(s.block, sealed[:ivSize]).XORKeyStream(dst[start:], dst[start:])
	return dst, nil
}

// length writes the length of aad in bits to h, big endian.
func (s *state) length(h io.Writer, aad []byte) {
	binary.BigEndian.PutUint64(s.sum[:8], 8*uint64(len(aad)))
	h.Write(s.sum[:8])
}

// mac returns the tag of iv and ciphertext, which sealed is. CSFLE adds the length of aad. The
// result is in s.
func (s *state) mac(aad, sealed []byte, withLength bool) []byte {
	s.tag.Reset()
	s.tag.Write(aad)
	s.tag.Write(sealed)
	if withLength {
		s.length(s.tag, aad)
	}
	return s.tag.Sum(s.sum[:0])[:tagSize]
}

func (s *state) seal(dst, iv, aad, plaintext []byte, withLength bool) ([]byte, error) {
	if len(plaintext) == 0 {
		return dst, ErrEmpty
	}
	start := len(dst)
	dst = append(dst, iv...)
	body := len(dst)
	dst = append(dst, plaintext...)
	pad := aes.BlockSize - len(plaintext)%aes.BlockSize
	for range pad {
		dst = append(dst, byte(pad))
	}
	encryptCBC(s.block, iv, dst[body:])
	return append(dst, s.mac(aad, dst[start:], withLength)...), nil
}

func (s *state) open(dst, aad, ciphertext []byte, withLength bool) ([]byte, error) {
	if least := sealedSize(1); len(ciphertext) < least {
		//lint:ignore ST1005 the text is that of other drivers
		return dst, fmt.Errorf("%w. Must be at least %d bytes.", ErrShort, least)
	}
	if len(ciphertext)%aes.BlockSize != 0 { // as are the vector and the tag
		return dst, fmt.Errorf("%w: it was cut: %d bytes are not a multiple of %d", ErrPadding, len(ciphertext),
			aes.BlockSize)
	}
	sealed, tag := ciphertext[:len(ciphertext)-tagSize], ciphertext[len(ciphertext)-tagSize:]
	if !hmac.Equal(tag, s.mac(aad, sealed, withLength)) {
		return dst, ErrTag
	}
	iv, body := sealed[:ivSize], sealed[ivSize:]
	start := len(dst)
	dst = append(dst, body...)
	decryptCBC(s.block, iv, dst[start:])
	pad := int(dst[len(dst)-1])
	if pad == 0 || pad > aes.BlockSize {
		clear(dst[start:])
		return dst[:start], ErrPadding
	}
	return dst[:len(dst)-pad], nil
}

// encryptCBC encrypts data, whole blocks, in place. The CBC of package cipher copies the key for
// every value, into memory that nobody clears.
func encryptCBC(block cipher.Block, iv, data []byte) {
	for ; len(data) > 0; data = data[aes.BlockSize:] {
		subtle.XORBytes(data, data[:aes.BlockSize], iv)
		block.Encrypt(data, data)
		iv = data[:aes.BlockSize]
	}
}

// decryptCBC undoes encryptCBC.
func decryptCBC(block cipher.Block, iv, data []byte) {
	for end := len(data); end > 0; end -= aes.BlockSize {
		at, before := data[end-aes.BlockSize:end], iv
		if end > aes.BlockSize {
			before = data[end-2*aes.BlockSize : end-aes.BlockSize]
		}
		block.Decrypt(at, at)
		subtle.XORBytes(at, at, before)
	}
}

// ctr is a block cipher in counter mode for short data. The counter mode of package cipher copies
// the key for every value. One goroutine uses it at a time.
type ctr struct {
	block           cipher.Block
	counter, stream [aes.BlockSize]byte
}

// xor encrypts or decrypts data in place.
func (c *ctr) xor(iv, data []byte) {
	copy(c.counter[:], iv)
	for len(data) > 0 {
		c.block.Encrypt(c.stream[:], c.counter[:])
		data = data[subtle.XORBytes(data, data, c.stream[:]):]
		for i := aes.BlockSize - 1; i >= 0; i-- {
			if c.counter[i]++; c.counter[i] != 0 {
				break
			}
		}
	}
}

// sealCTR encrypts plaintext with AES-256 in counter mode, without a tag, and appends the result to
// dst.
func sealCTR(dst []byte, key Token, plaintext []byte, random io.Reader) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, ivSize)...)
	if _, err := io.ReadFull(random, dst[start:]); err != nil {
		return dst[:start], err
	}
	iv := dst[start:]
	dst = append(dst, plaintext...)
	cipher.NewCTR(newBlock(key[:]), iv).XORKeyStream(dst[start+ivSize:], dst[start+ivSize:])
	return dst, nil
}

// openCTR decrypts what sealCTR made.
func openCTR(key Token, ciphertext []byte) ([]byte, error) {
	if len(ciphertext) <= ivSize {
		//lint:ignore ST1005 the text is that of other drivers
		return nil, fmt.Errorf("%w. Must be at least %d bytes.", ErrShort, ivSize+1)
	}
	out := make([]byte, len(ciphertext)-ivSize)
	cipher.NewCTR(newBlock(key[:]), ciphertext[:ivSize]).XORKeyStream(out, ciphertext[ivSize:])
	return out, nil
}

// WrapKey encrypts the material of a data key with a master key of KeySize bytes, as the local and
// the KMIP provider do.
func WrapKey(master, material []byte, random io.Reader) ([]byte, error) {
	k, err := NewKey(master)
	if err != nil {
		return nil, err
	}
	defer k.Clear()
	return k.SealRandom(nil, nil, material, random)
}

// UnwrapKey decrypts what WrapKey made.
func UnwrapKey(master, wrapped []byte) ([]byte, error) {
	k, err := NewKey(master)
	if err != nil {
		return nil, err
	}
	defer k.Clear()
	material, err := k.Open(nil, nil, wrapped)
	if errors.Is(err, ErrTag) {
		err = fmt.Errorf("%w: the wrapped data key was changed or cut, or wrapped with another master key", err)
	}
	return material, err
}
