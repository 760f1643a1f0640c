package conn

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"strings"
)

var (
	errNeedPassword  = errors.New("the private key is encrypted and there is no tlsCertificateKeyFilePassword")
	errWrongPassword = errors.New("the private key cannot be decrypted: the password is wrong or the file is damaged")
)

// decryptKey returns a PEM block with a private key in clear, or nil if the block holds something
// else. It knows PKCS#8 (RFC 5958) encrypted by PBES2 (RFC 8018), which is what today's tools
// write, and the older encryption of PEM itself.
func decryptKey(block *pem.Block, password string) (*pem.Block, error) {
	//lint:ignore SA1019 this encryption is insecure by design, but such files are around
	legacy := x509.IsEncryptedPEMBlock(block)
	switch {
	case block.Type == "ENCRYPTED PRIVATE KEY":
		if password == "" {
			return nil, errNeedPassword
		}
		der, err := decryptPKCS8(block.Bytes, password)
		if err != nil {
			return nil, err
		}
		return &pem.Block{Type: "PRIVATE KEY", Bytes: der}, nil
	case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, nil
	case legacy:
		if password == "" {
			return nil, errNeedPassword
		}
		//lint:ignore SA1019 as above
		der, err := x509.DecryptPEMBlock(block, []byte(password))
		if err != nil {
			return nil, errWrongPassword
		}
		return &pem.Block{Type: block.Type, Bytes: der}, nil
	}
	return block, nil
}

// The structures of PBES2.
type (
	encryptedPrivateKeyInfo struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2Params  struct{ KDF, Scheme pkix.AlgorithmIdentifier }
	pbkdf2Params struct {
		Salt       []byte
		Iterations int
		KeyLength  int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
)

// prfs are the pseudo-random functions of PBKDF2, by object identifier. Without one it is HMAC with
// SHA-1.
var prfs = map[string]func() hash.Hash{
	"":                    sha1.New,
	"1.2.840.113549.2.7":  sha1.New,
	"1.2.840.113549.2.8":  sha256.New224,
	"1.2.840.113549.2.9":  sha256.New,
	"1.2.840.113549.2.10": sha512.New384,
	"1.2.840.113549.2.11": sha512.New,
}

// schemes are the ciphers of PBES2, by object identifier, all in CBC mode.
var schemes = map[string]struct {
	keyLength int
	newBlock  func(key []byte) (cipher.Block, error)
}{
	"2.16.840.1.101.3.4.1.2":  {16, aes.NewCipher},
	"2.16.840.1.101.3.4.1.22": {24, aes.NewCipher},
	"2.16.840.1.101.3.4.1.42": {32, aes.NewCipher},
	"1.2.840.113549.3.7":      {24, des.NewTripleDESCipher},
}

const maxKeyIterations = 10_000_000

func decryptPKCS8(der []byte, password string) ([]byte, error) {
	malformed := errors.New("the encrypted private key is malformed")
	var info encryptedPrivateKeyInfo
	if rest, err := asn1.Unmarshal(der, &info); err != nil || len(rest) > 0 {
		return nil, malformed
	}
	if !info.Algorithm.Algorithm.Equal(oidPBES2) {
		return nil, fmt.Errorf("encryption %v of the private key is not supported, only PBES2 is",
			info.Algorithm.Algorithm)
	}
	var params pbes2Params
	if _, err := asn1.Unmarshal(info.Algorithm.Parameters.FullBytes, &params); err != nil {
		return nil, malformed
	}
	if !params.KDF.Algorithm.Equal(oidPBKDF2) {
		return nil, fmt.Errorf("key derivation %v of the private key is not supported, only PBKDF2 is",
			params.KDF.Algorithm)
	}
	var kdf pbkdf2Params
	if _, err := asn1.Unmarshal(params.KDF.Parameters.FullBytes, &kdf); err != nil || kdf.Iterations < 1 ||
		kdf.Iterations > maxKeyIterations {
		return nil, malformed
	}
	prf, ok := prfs[kdf.PRF.Algorithm.String()]
	if !ok {
		return nil, fmt.Errorf("hash function %v of the private key is not supported", kdf.PRF.Algorithm)
	}
	scheme, ok := schemes[params.Scheme.Algorithm.String()]
	if !ok {
		return nil, fmt.Errorf("cipher %v of the private key is not supported, only AES and Triple-DES in CBC mode are",
			params.Scheme.Algorithm)
	}
	var iv []byte
	if _, err := asn1.Unmarshal(params.Scheme.Parameters.FullBytes, &iv); err != nil {
		return nil, malformed
	}
	key, err := pbkdf2.Key(prf, password, kdf.Salt, kdf.Iterations, scheme.keyLength)
	if err != nil {
		return nil, fmt.Errorf("derive the key of the private key: %w", err)
	}
	block, err := scheme.newBlock(key)
	if err != nil {
		return nil, err
	}
	if len(iv) != block.BlockSize() || len(info.Data) == 0 || len(info.Data)%block.BlockSize() != 0 {
		return nil, malformed
	}
	plain := make([]byte, len(info.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, info.Data)
	pad := int(plain[len(plain)-1])
	if pad < 1 || pad > block.BlockSize() {
		return nil, errWrongPassword
	}
	for _, c := range plain[len(plain)-pad:] {
		if int(c) != pad {
			return nil, errWrongPassword
		}
	}
	plain = plain[:len(plain)-pad]
	if _, err := x509.ParsePKCS8PrivateKey(plain); err != nil {
		return nil, errWrongPassword
	}
	return plain, nil
}
