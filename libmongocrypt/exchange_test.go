//go:build libmongocrypt

package libmongocrypt

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption"
	"allium/encryption/kms"
	"allium/mongotest"
)

// pair is Allium and libmongocrypt with the same data key.
type pair struct {
	ours   *encryption.Client
	theirs *library
	key    bson.UUID
	client *allium.Client
	auto   allium.Encryption
}

func newPair(t testing.TB) *pair {
	t.Helper()
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	client, err := allium.Open(d.URI())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(t.Context()) })
	master := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, kms.LocalKeySize/8)
	zero := time.Duration(0)
	p := &pair{client: client, auto: encryption.Auto(automaticOptions(master))}
	p.ours, err = encryption.New(encryption.Options{
		KeyOptions: encryption.KeyOptions{
			KeyVaultClient: client,
			KeyVault:       "encryption.keys",
			KMS:            kms.Providers{"local": kms.Local{Key: master}},
			KeyExpiration:  &zero,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.ours.Close() })
	if p.key, err = p.ours.CreateDataKey(t.Context(), "local"); err != nil {
		t.Fatal(err)
	}
	key, err := p.ours.Key(t.Context(), p.key)
	if err != nil {
		t.Fatal(err)
	}
	if p.theirs, err = newLibrary(master, key.Raw); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.theirs.close)
	return p
}

// automaticOptions are those of a client whose replies are decrypted.
func automaticOptions(master []byte) encryption.AutoOptions {
	return encryption.AutoOptions{KeyOptions: encryption.KeyOptions{KeyVault: "encryption.keys", KMS: kms.Providers{"local": kms.Local{Key: master}}}}
}

// single returns {v: value}.
func single(t testing.TB, value any) bson.Raw {
	t.Helper()
	doc, err := bson.Marshal(bson.D{{Key: "v", Value: value}})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// values has one of each type that can be encrypted at random; deterministic says for which of them
// that is possible, too.
func values() []struct {
	v             any
	deterministic bool
} {
	return []struct {
		v             any
		deterministic bool
	}{
		{"", true}, {"text", true}, {strings.Repeat("long ", 1000), true}, {"日本語", true},
		{int32(0), true}, {int32(-1), true}, {int64(1) << 40, true},
		{bson.NewObjectID(), true}, {bson.Binary{Subtype: 0, Data: []byte("bytes")}, true}, {bson.Binary{Subtype: 4, Data: make([]byte, 16)}, true},
		{bson.DateTime(1234567890123), true}, {bson.Timestamp{T: 7, I: 9}, true}, {bson.Regex{Pattern: "a.b", Options: "i"}, true},
		{bson.JavaScript("f()"), true}, {bson.Symbol("s"), true}, {bson.DBPointer{DB: "db.c", Pointer: bson.NewObjectID()}, true},
		{1.5, false}, {true, false}, {bson.D{{Key: "a", Value: 1}}, false}, {bson.A{1, "b"}, false}, {bson.D{}, false},
	}
}

// What one of them encrypts, the other one decrypts; what is deterministic is the same to the byte.
func TestExchange(t *testing.T) {
	t.Logf("libmongocrypt %s", version())
	p := newPair(t)
	for i, c := range values() {
		for _, algorithm := range []encryption.Algorithm{encryption.Deterministic, encryption.Random} {
			t.Run(fmt.Sprintf("%d %T %s", i, c.v, algorithm[len(algorithm)-6:]), func(t *testing.T) {
				plain := single(t, c.v)
				theirs, theirErr := p.theirs.encrypt(plain, p.key, string(algorithm))
				ours, ourErr := p.ours.Encrypt(t.Context(), plain.Lookup("v"), encryption.EncryptOptions{Algorithm: algorithm, KeyID: &p.key})
				if algorithm == encryption.Deterministic && !c.deterministic {
					if theirErr == nil || ourErr == nil {
						t.Errorf("libmongocrypt: %v, Allium: %v", theirErr, ourErr)
					}
					return
				}
				if theirErr != nil || ourErr != nil {
					t.Fatalf("libmongocrypt: %v, Allium: %v", theirErr, ourErr)
				}
				sealed := single(t, ours)
				if algorithm == encryption.Deterministic && !bytes.Equal(sealed, theirs) {
					t.Errorf("ciphertext %v, want %v", sealed, theirs)
				}
				if got, err := p.theirs.decrypt(sealed); err != nil || !bytes.Equal(got, plain) {
					t.Errorf("libmongocrypt decrypts %v, %v, want %v", got, err, plain)
				}
				value, ok := theirs.Lookup("v").Binary()
				if !ok {
					t.Fatalf("libmongocrypt encrypts as %v", theirs)
				}
				if got, err := p.ours.Decrypt(t.Context(), value); err != nil || !got.Equal(plain.Lookup("v")) {
					t.Errorf("Allium decrypts %v, %v, want %v", got, err, plain.Lookup("v"))
				}
			})
		}
	}
}

// Both refuse what was changed, wherever.
func TestChanged(t *testing.T) {
	p := newPair(t)
	sealed, err := p.ours.Encrypt(t.Context(), "a text of some length", encryption.EncryptOptions{Algorithm: encryption.Random, KeyID: &p.key})
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed.Data {
		changed := bson.Binary{Subtype: sealed.Subtype, Data: bytes.Clone(sealed.Data)}
		changed.Data[i] ^= 0x40
		_, theirErr := p.theirs.decrypt(single(t, changed))
		_, ourErr := p.ours.Decrypt(t.Context(), changed)
		// The library passes over values of kinds that it does not know; in explicit decryption
		// that is an error for us.
		if i > 0 && theirErr == nil || ourErr == nil {
			t.Errorf("byte %d: libmongocrypt: %v, Allium: %v", i, theirErr, ourErr)
		}
	}
}
