//go:build libmongocrypt

package libmongocrypt

import (
	"context"
	"fmt"
	"testing"

	"allium"
	"allium/bson"
	"allium/encryption"
)

const (
	benchDocuments = 1000
	benchFields    = 10
)

// encrypted returns documents with ten encrypted strings each, and what they were.
func (p *pair) encrypted(b *testing.B) (docs []bson.Raw, values [][]bson.RawValue) {
	b.Helper()
	for i := range benchDocuments {
		start, doc := bson.BeginDocument(nil)
		doc = bson.AppendInt32(doc, "_id", int32(i))
		var plain []bson.RawValue
		for f := range benchFields {
			v := single(b, fmt.Sprintf("value %d of document %d", f, i)).Lookup("v")
			sealed, err := p.ours.Encrypt(b.Context(), v, encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &p.key})
			if err != nil {
				b.Fatal(err)
			}
			doc = bson.AppendBinary(doc, fmt.Sprintf("field%d", f), sealed.Subtype, sealed.Data)
			plain = append(plain, v)
		}
		docs = append(docs, bson.EndDocument(doc, start))
		values = append(values, plain)
	}
	return docs, values
}

// automatic returns what decrypts the replies of a client.
func (p *pair) automatic(b *testing.B) allium.CommandCipher {
	b.Helper()
	cipher, err := p.auto.Attach(allium.EncryptionTarget{Client: p.client, Plain: func() (*allium.Client, error) { return p.client, nil }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cipher.Close() })
	return cipher
}

// BenchmarkDecrypt decrypts a thousand documents with ten fields each; an operation is all of them.
func BenchmarkDecrypt(b *testing.B) {
	p := newPair(b)
	docs, _ := p.encrypted(b)
	b.Run("allium", func(b *testing.B) {
		cipher := p.automatic(b)
		b.ReportAllocs()
		for b.Loop() {
			for _, doc := range docs {
				if _, err := cipher.Decrypt(context.Background(), doc); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("libmongocrypt", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, doc := range docs {
				if _, err := p.theirs.decrypt(doc); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkEncrypt encrypts the ten thousand values of those documents, one by one.
func BenchmarkEncrypt(b *testing.B) {
	p := newPair(b)
	_, values := p.encrypted(b)
	b.Run("allium", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, fields := range values {
				for _, v := range fields {
					if _, err := p.ours.Encrypt(context.Background(), v, encryption.EncryptOptions{Algorithm: encryption.Deterministic, KeyID: &p.key}); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
	})
	docs := make([]bson.Raw, 0, benchDocuments*benchFields)
	for _, fields := range values {
		for _, v := range fields {
			docs = append(docs, single(b, v))
		}
	}
	b.Run("libmongocrypt", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, doc := range docs {
				if _, err := p.theirs.encrypt(doc, p.key, string(encryption.Deterministic)); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
