package account

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"strconv"
	"strings"

	"github.com/xdg-go/stringprep"

	"allium/mongotest/internal/srverr"
)

func sha1Hash() hash.Hash { return sha1.New() }

// prepare is SASLprep, as SCRAM-SHA-256 wants it of passwords.
func prepare(password string) (string, error) { return stringprep.SASLprep.Prepare(password) }

// scramCredentials are what the server keeps instead of a password (RFC 5802).
type scramCredentials struct {
	Iterations int
	Salt       []byte
	StoredKey  []byte
	ServerKey  []byte
}

func newSCRAMCredentials(h func() hash.Hash, password string, iterations int) scramCredentials {
	c := scramCredentials{Iterations: iterations, Salt: make([]byte, h().Size()-4)}
	rand.Read(c.Salt)
	salted, err := pbkdf2.Key(h, password, c.Salt, iterations, h().Size())
	if err != nil {
		panic(err) // only for parameters that are out of range
	}
	clientKey := mac(h, salted, "Client Key")
	sum := h()
	sum.Write(clientKey)
	c.StoredKey = sum.Sum(nil)
	c.ServerKey = mac(h, salted, "Server Key")
	return c
}

// HasPassword reports whether a password is the user's.
func (u *User) HasPassword(password string) bool {
	of := map[string]func() (func() hash.Hash, string){
		ScramSHA1: func() (func() hash.Hash, string) { return sha1Hash, legacyDigest(u.Name, password) },
		ScramSHA256: func() (func() hash.Hash, string) {
			prepared, _ := prepare(password)
			return sha256.New, prepared
		},
	}
	for mechanism, known := range u.Creds {
		h, secret := of[mechanism]()
		salted, err := pbkdf2.Key(h, secret, known.Salt, known.Iterations, h().Size())
		if err != nil {
			return false
		}
		return hmac.Equal(mac(h, salted, "Server Key"), known.ServerKey)
	}
	return u.Password != "" && u.Password == password
}

func mac(h func() hash.Hash, key []byte, text string) []byte {
	m := hmac.New(h, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// ScramServer is the server's side of a SCRAM conversation.
type ScramServer struct {
	hash  func() hash.Hash
	mech  string
	creds scramCredentials
	bare  string // client-first-message-bare
	first string // server-first-message
	nonce string
}

// ErrAuthentication is all that a client is told.
func ErrAuthentication() error {
	return srverr.New(srverr.AuthenticationFailed, "Authentication failed.")
}

// StartSCRAM answers the client's first message.
func StartSCRAM(accounts *Registry, mech, db string,
	payload []byte) (s *ScramServer, user *User, reply []byte, err error) {
	s = &ScramServer{hash: sha1Hash, mech: mech}
	if mech == ScramSHA256 {
		s.hash = sha256.New
	}
	gs2, rest, ok := strings.Cut(string(payload), ",")
	if !ok || gs2 != "n" && gs2 != "y" {
		return nil, nil, nil, ErrAuthentication()
	}
	authzid, bare, ok := strings.Cut(rest, ",")
	if !ok || authzid != "" {
		return nil, nil, nil, ErrAuthentication()
	}
	s.bare = bare
	parts := strings.Split(bare, ",")
	if len(parts) < 2 || !strings.HasPrefix(parts[0], "n=") || !strings.HasPrefix(parts[1], "r=") || len(parts[1]) < 3 {
		return nil, nil, nil, ErrAuthentication()
	}
	name := strings.NewReplacer("=2C", ",", "=3D", "=").Replace(parts[0][2:])
	user = accounts.Find(name, db)
	if user == nil {
		return nil, nil, nil, ErrAuthentication()
	}
	if s.creds, ok = user.Creds[mech]; !ok {
		return nil, nil, nil, ErrAuthentication()
	}
	own := make([]byte, 24)
	rand.Read(own)
	s.nonce = parts[1][2:] + base64.StdEncoding.EncodeToString(own)
	s.first = "r=" + s.nonce + ",s=" + base64.StdEncoding.EncodeToString(s.creds.Salt) + ",i=" +
		strconv.Itoa(s.creds.Iterations)
	return s, user, []byte(s.first), nil
}

// Finish checks the client's final message and returns the server's.
func (s *ScramServer) Finish(payload []byte) ([]byte, error) {
	text := string(payload)
	i := strings.LastIndex(text, ",p=")
	if i < 0 {
		return nil, ErrAuthentication()
	}
	withoutProof := text[:i]
	proof, err := base64.StdEncoding.DecodeString(text[i+3:])
	if err != nil || len(proof) != s.hash().Size() {
		return nil, ErrAuthentication()
	}
	binding, nonce, ok := strings.Cut(withoutProof, ",r=")
	if !ok || nonce != s.nonce || binding != "c=biws" && binding != "c=eSws" {
		return nil, ErrAuthentication()
	}
	authMessage := s.bare + "," + s.first + "," + withoutProof
	signature := mac(s.hash, s.creds.StoredKey, authMessage)
	clientKey := make([]byte, len(proof))
	for i := range proof {
		clientKey[i] = proof[i] ^ signature[i]
	}
	sum := s.hash()
	sum.Write(clientKey)
	if !hmac.Equal(sum.Sum(nil), s.creds.StoredKey) {
		return nil, ErrAuthentication()
	}
	return []byte("v=" + base64.StdEncoding.EncodeToString(mac(s.hash, s.creds.ServerKey, authMessage))), nil
}
