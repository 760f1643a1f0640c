package auth

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"

	"github.com/xdg-go/stringprep"

	"allium/auth"
)

// Bounds on the iteration count that a server may ask for: the lower one keeps somebody in between
// from weakening the proof (RFC 7677, section 4), the upper one a server from keeping the client
// busy before it has proved anything. Servers ask for 10,000 (SHA-1) and 15,000 (SHA-256) unless
// they are told otherwise; what is recommended for passwords at rest is 600,000.
const (
	minIterations = 4096
	maxIterations = 1_000_000
)

var scramHashes = map[auth.Mechanism]func() hash.Hash{auth.MechanismScramSHA1: sha1.New,
	auth.MechanismScramSHA256: sha256.New}

// preparePasswords derives from the password what each SCRAM mechanism starts from.
func (id *identity) preparePasswords() error {
	c := &id.credential
	id.passwords = make(map[auth.Mechanism]string, 2)
	sum := md5.Sum([]byte(c.Username + ":mongo:" + string(c.Password)))
	id.passwords[auth.MechanismScramSHA1] = hex.EncodeToString(sum[:])
	prepared, err := stringprep.SASLprep.Prepare(string(c.Password))
	if err == nil {
		id.passwords[auth.MechanismScramSHA256] = prepared
	} else if c.Mechanism == auth.MechanismScramSHA256 {
		return errPreparePassword
	}
	return nil
}

// errPreparePassword says no more, since the error of SASLprep names characters of the password.
var errPreparePassword = errors.New("the password contains characters that SASLprep (RFC 4013) prohibits")

// scramKeys are what a password, a salt and an iteration count make.
type scramKeys struct{ client, server []byte }

type scramKeyID struct {
	mechanism      auth.Mechanism
	password, salt string
	iterations     int
}

// scramCache remembers derived keys, which take long to derive on purpose. A user has one salt per
// mechanism and member of the deployment at most.
type scramCache struct {
	mu   sync.Mutex
	keys map[scramKeyID]*scramKeys
}

const maxCachedKeys = 100

func (c *scramCache) get(ctx context.Context, id scramKeyID) (*scramKeys, error) {
	c.mu.Lock()
	keys, ok := c.keys[id]
	c.mu.Unlock()
	if ok {
		return keys, nil
	}
	newHash := scramHashes[id.mechanism]
	salted, err := saltedPassword(ctx, newHash, id)
	if err != nil {
		return nil, err
	}
	keys = &scramKeys{client: mac(newHash, salted, "Client Key"), server: mac(newHash, salted, "Server Key")}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys) >= maxCachedKeys || c.keys == nil {
		c.keys = make(map[scramKeyID]*scramKeys)
	}
	c.keys[id] = keys
	return keys, nil
}

// interruptible is how many iterations of a derivation run between two looks at the context: some
// milliseconds.
const interruptible = 4096

// saltedPassword is Hi of RFC 5802: PBKDF2 (RFC 8018) with HMAC and a key of one block. Package
// crypto/pbkdf2 cannot be interrupted.
func saltedPassword(ctx context.Context, newHash func() hash.Hash, id scramKeyID) ([]byte, error) {
	m := hmac.New(newHash, []byte(id.password))
	m.Write([]byte(id.salt))
	m.Write([]byte{0, 0, 0, 1})
	u := m.Sum(nil)
	salted := bytes.Clone(u)
	for i := 1; i < id.iterations; i++ {
		if i%interruptible == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		m.Reset()
		m.Write(u)
		u = m.Sum(u[:0])
		subtle.XORBytes(salted, salted, u)
	}
	return salted, nil
}

func mac(newHash func() hash.Hash, key []byte, text string) []byte {
	m := hmac.New(newHash, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// scram is the client of SCRAM-SHA-1 and SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel
// binding.
type scram struct {
	mechanism auth.Mechanism
	user      string // escaped
	password  string
	cache     *scramCache
	newNonce  func() string

	nonce       string
	firstBare   string
	step        int
	serverProof []byte
}

func newScram(id *identity, mechanism auth.Mechanism) (conversation, error) {
	password, ok := id.passwords[mechanism]
	if !ok {
		return nil, errPreparePassword
	}
	return &saslConversation{
		mechanism: mechanism,
		source:    id.credential.Source,
		client: &scram{
			mechanism: mechanism,
			user:      strings.NewReplacer("=", "=3D", ",", "=2C").Replace(id.credential.Username),
			password:  password,
			cache:     &id.keys,
			newNonce:  randomNonce,
		},
		skipEmptyExchange: true,
		canSpeculate:      true,
	}, nil
}

func randomNonce() string {
	var b [24]byte
	rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

const gs2Header = "n,,"

func (s *scram) start(context.Context) ([]byte, error) {
	s.nonce = s.newNonce()
	s.firstBare = "n=" + s.user + ",r=" + s.nonce
	return []byte(gs2Header + s.firstBare), nil
}

func (s *scram) next(ctx context.Context, challenge []byte) ([]byte, error) {
	s.step++
	switch s.step {
	case 1:
		return s.prove(ctx, string(challenge))
	case 2:
		return nil, s.verify(challenge)
	}
	return nil, errors.New("server sent more than SCRAM has")
}

func (s *scram) complete() bool { return s.step >= 2 }

// prove answers the server's first message.
func (s *scram) prove(ctx context.Context, serverFirst string) ([]byte, error) {
	nonce, salt, iterations, err := parseServerFirst(serverFirst)
	switch {
	case err != nil:
		return nil, err
	case !strings.HasPrefix(nonce, s.nonce) || len(nonce) == len(s.nonce):
		return nil, errors.New("server's nonce does not continue the client's")
	case iterations < minIterations:
		return nil, fmt.Errorf("server asks for %d iterations, at least %d are required", iterations, minIterations)
	case iterations > maxIterations:
		return nil, fmt.Errorf("server asks for %d iterations, at most %d are accepted", iterations, maxIterations)
	}
	keys, err := s.cache.get(ctx, scramKeyID{s.mechanism, s.password, salt, iterations})
	if err != nil {
		return nil, err
	}
	newHash := scramHashes[s.mechanism]
	withoutProof := "c=" + base64.StdEncoding.EncodeToString([]byte(gs2Header)) + ",r=" + nonce
	message := s.firstBare + "," + serverFirst + "," + withoutProof
	stored := newHash()
	stored.Write(keys.client)
	proof := mac(newHash, stored.Sum(nil), message)
	subtle.XORBytes(proof, proof, keys.client)
	s.serverProof = mac(newHash, keys.server, message)
	return []byte(withoutProof + ",p=" + base64.StdEncoding.EncodeToString(proof)), nil
}

func parseServerFirst(text string) (nonce, salt string, iterations int, err error) {
	malformed := errors.New("server's first message is malformed")
	r, rest, ok1 := strings.Cut(text, ",")
	s, rest, ok2 := strings.Cut(rest, ",")
	i, _, _ := strings.Cut(rest, ",")
	if !ok1 || !ok2 || !strings.HasPrefix(r, "r=") || !strings.HasPrefix(s, "s=") || !strings.HasPrefix(i, "i=") {
		return "", "", 0, malformed
	}
	raw, err := base64.StdEncoding.DecodeString(s[2:])
	if err != nil || len(raw) == 0 {
		return "", "", 0, malformed
	}
	if iterations, err = strconv.Atoi(i[2:]); err != nil {
		return "", "", 0, malformed
	}
	return r[2:], string(raw), iterations, nil
}

// verify checks that the server knows the password too.
func (s *scram) verify(serverFinal []byte) error {
	if text, ok := bytes.CutPrefix(serverFinal, []byte("e=")); ok {
		return fmt.Errorf("server refused: %q", text)
	}
	encoded, ok := bytes.CutPrefix(serverFinal, []byte("v="))
	encoded, _, _ = bytes.Cut(encoded, []byte(","))
	proof, err := base64.StdEncoding.DecodeString(string(encoded))
	if !ok || err != nil {
		return errors.New("server's last message is malformed")
	}
	if subtle.ConstantTimeCompare(proof, s.serverProof) != 1 {
		return errors.New("server's signature is wrong: it does not know the password")
	}
	return nil
}
