package unified

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/binary"
	"slices"
	"strings"

	"allium/bson"
	"allium/encryption/kms"
	"allium/internal/fakekms"
	"allium/internal/keyservice"
)

// This file has the tests whose data keys only the real services of Azure and Google can unwrap.
// They run with another data key, and their expected ciphertexts are what the specification's
// formula gives for it.

// realKeys are the files whose tests compare with ciphertexts of such keys.
var realKeys = map[string]string{
	"azureKMS": "Azure", "gcpKMS": "Google", "accessToken-azure": "Azure", "accessToken-gcp": "Google",
}

// realPlaintext is the value that all of these tests encrypt.
const realPlaintext = "string0"

// otherMaterial returns the data key that takes the place of the real ones.
func otherMaterial() []byte {
	out := make([]byte, keyservice.KeySize)
	for i := range out {
		out[i] = byte(i)
	}
	return out
}

// ourKeys replaces the data keys that only the real services of Azure and Google can unwrap by
// other ones, which those of the tests can. Nothing but the key service sees the difference.
func ourKeys(ctx context.Context, docs []bson.Raw) ([]bson.Raw, error) {
	out := slices.Clone(docs)
	for i, doc := range docs {
		masterKey, ok := doc.Lookup("masterKey").Document()
		if !ok || doc.Lookup("keyMaterial").IsZero() {
			continue
		}
		provider, key, err := kms.MasterKeyFromBSON(masterKey)
		if err != nil {
			continue // the test wants it so
		}
		kind, _, _ := strings.Cut(provider, ":")
		if kind != "azure" && kind != "gcp" {
			continue
		}
		server, err := keyServices()
		if err != nil {
			return nil, err
		}
		providers := kms.Providers{
			"azure": kms.Azure{TenantID: fakekms.AzureTenantID, ClientID: fakekms.AzureClientID,
				ClientSecret: fakekms.AzureClientSecret},
			"gcp": kms.GCP{Email: fakekms.GCPEmail, PrivateKey: server.GCPPrivateKey()},
		}
		services, err := keyservice.New(keyservice.Config{Providers: providers, TLS: allTLS(providers, server),
			Dial: server.Dial})
		if err != nil {
			return nil, err
		}
		_, wrapped, err := services.Wrap(ctx, kind, key, otherMaterial())
		if err != nil {
			return nil, err
		}
		start, dst := bson.BeginDocument(nil)
		for name, v := range doc.All() {
			if name == "keyMaterial" {
				dst = bson.AppendBinary(dst, name, bson.BinaryGeneric, wrapped)
			} else {
				dst = bson.AppendRawValue(dst, name, v)
			}
		}
		out[i] = bson.EndDocument(dst, start)
	}
	return out, nil
}

// withOtherKey replaces every deterministic ciphertext in a test file by that of realPlaintext with
// the other data key.
func withOtherKey(doc bson.Raw) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	for name, v := range doc.All() {
		if sub, ok := v.Document(); ok {
			v.Value = withOtherKey(sub)
		} else if sub, ok := v.Array(); ok {
			v.Value = withOtherKey(sub)
		} else if b, ok := v.Binary(); ok && b.Subtype == bson.BinaryEncrypted && len(b.Data) > deterministicHeader &&
			b.Data[0] == 1 {
			v.Value = bson.AppendBinaryValue(nil, b.Subtype,
				deterministic(otherMaterial(), b.Data[:deterministicHeader], realPlaintext))
		}
		dst = bson.AppendRawValue(dst, name, v)
	}
	return bson.EndDocument(dst, start)
}

// deterministicHeader is how long what stands before a ciphertext is: its kind, the key's id, and
// the type of the value.
const deterministicHeader = 1 + 16 + 1

// deterministic encrypts a string by the formula of the specification, apart from the code that is
// tested (BSON Binary Encrypted; AEAD_AES_256_CBC_HMAC_SHA_512).
func deterministic(material, header []byte, s string) []byte {
	mac := func(key []byte, parts ...[]byte) []byte {
		h := hmac.New(sha512.New, key)
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	bits := binary.BigEndian.AppendUint64(nil, uint64(len(header))*8)
	text := bson.AppendStringValue(nil, s)
	iv := mac(material[64:], header, bits, text)[:aes.BlockSize]
	padding := aes.BlockSize - len(text)%aes.BlockSize
	text = append(text, bytes.Repeat([]byte{byte(padding)}, padding)...)
	block, err := aes.NewCipher(material[32:64])
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(text, text)
	tag := mac(material[:32], header, iv, text, bits)[:32]
	return slices.Concat(header, iv, text, tag)
}
