package bson

import (
	"errors"
	"fmt"
)

// EncryptedValue is the content of a binary of subtype 6: the ciphertext of a value and what is
// needed to decrypt it.
type EncryptedValue struct {
	Algorithm    EncryptedAlgorithm
	KeyID        UUID   // the _id of the data key
	OriginalType Type   // of the value before it was encrypted
	Ciphertext   []byte // starts with the initialization vector
}

// EncryptedAlgorithm is the first byte of a binary of subtype 6.
type EncryptedAlgorithm byte

// Both are AEAD_AES_256_CBC_HMAC_SHA_512. Equal values have equal ciphertexts only if it is
// deterministic.
const (
	EncryptedDeterministic EncryptedAlgorithm = 1
	EncryptedRandom        EncryptedAlgorithm = 2
)

// encryptedMarking is the first byte of a value that is still to be encrypted.
const encryptedMarking = 0

const encryptedHead = 1 + 16 + 1

// ErrNotEncrypted is the error for a binary of subtype 6 that only marks a value to be encrypted:
// it holds plain text, which must never be stored.
var ErrNotEncrypted = errors.New("it is marked to be encrypted, but not encrypted")

// Encrypted returns the encrypted value in b. Its ciphertext shares the bytes of b. The formats of
// Queryable Encryption are an error.
func (b Binary) Encrypted() (EncryptedValue, error) {
	switch {
	case b.Subtype != BinaryEncrypted:
		return EncryptedValue{}, fmt.Errorf("bson: binary of subtype %d as an encrypted value: want subtype %d",
			b.Subtype, BinaryEncrypted)
	case len(b.Data) == 0:
		return EncryptedValue{}, errors.New("bson: binary without bytes as an encrypted value")
	case b.Data[0] == encryptedMarking:
		return EncryptedValue{}, fmt.Errorf("bson: binary as an encrypted value: %w", ErrNotEncrypted)
	}
	e := EncryptedValue{Algorithm: EncryptedAlgorithm(b.Data[0])}
	if e.Algorithm != EncryptedDeterministic && e.Algorithm != EncryptedRandom {
		return EncryptedValue{}, fmt.Errorf(
			"bson: binary as an encrypted value: format %d is not one of AEAD_AES_256_CBC_HMAC_SHA_512", b.Data[0])
	}
	if len(b.Data) < encryptedHead {
		return EncryptedValue{}, fmt.Errorf("bson: binary of %d bytes as an encrypted value: want at least %d",
			len(b.Data), encryptedHead)
	}
	copy(e.KeyID[:], b.Data[1:])
	e.OriginalType, e.Ciphertext = Type(b.Data[encryptedHead-1]), b.Data[encryptedHead:]
	return e, nil
}

// Binary returns e as a binary of subtype 6.
func (e EncryptedValue) Binary() Binary {
	data := make([]byte, 0, encryptedHead+len(e.Ciphertext))
	data = append(data, byte(e.Algorithm))
	data = append(data, e.KeyID[:]...)
	data = append(data, byte(e.OriginalType))
	return Binary{Subtype: BinaryEncrypted, Data: append(data, e.Ciphertext...)}
}
