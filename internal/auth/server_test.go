package auth

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"allium/auth"
	"allium/bson"
	"allium/internal/failure"
	"allium/internal/uri"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// user is a user of the test server, with the passwords that its mechanisms start from.
type user struct {
	mechanisms []auth.Mechanism
	secrets    map[auth.Mechanism]string
}

// server is a Transport to a small server that knows SCRAM, PLAIN and X.509. Its conversation is
// strict: it checks the client's proof as RFC 5802 says.
type server struct {
	t          *testing.T
	users      map[string]user // by source.name
	iterations int
	// emptyExchange makes it end a conversation with an exchange of its own, as old servers do.
	emptyExchange bool
	// tamper changes what it says.
	tamper func(step int, payload string) string
	// noSpeculation makes it ignore speculativeAuthenticate.
	noSpeculation bool

	commands []string // that were run
	mech     auth.Mechanism
	message  string
	secret   string
	step     int
}

func (s *server) Addr() string       { return "server:27017" }
func (*server) Limit() time.Duration { return 0 }

func document(fill func([]byte) []byte) bson.Raw {
	start, dst := bson.BeginDocument(nil)
	return bson.EndDocument(fill(dst), start)
}

func (s *server) RunCommand(_ context.Context, db string, fill func([]byte) []byte) (bson.Raw, error) {
	cmd := document(fill)
	if err := cmd.Validate(); err != nil {
		s.t.Fatal(err)
	}
	for name := range cmd.All() {
		s.commands = append(s.commands, name)
		break
	}
	return s.answer(db, cmd)
}

// hello answers the hello with what an attempt appended.
func (s *server) hello(t *Attempt) bson.Raw {
	cmd := document(t.AppendHello)
	return document(func(dst []byte) []byte {
		if name, ok := cmd.Lookup("saslSupportedMechs").StringValue(); ok {
			if u, ok := s.users[name]; ok {
				list, out := bson.BeginArrayElement(dst, "saslSupportedMechs")
				for i, m := range append([]auth.Mechanism{"ARBITRARY"}, u.mechanisms...) {
					out = bson.AppendStringValue(bson.AppendIndexHeader(out, bson.TypeString, i), string(m))
				}
				dst = bson.EndDocument(out, list)
			}
		}
		if spec, ok := cmd.Lookup("speculativeAuthenticate").Document(); ok && !s.noSpeculation {
			db, _ := spec.Lookup("db").StringValue()
			if reply, err := s.answer(db, spec); err == nil {
				dst = bson.AppendDocument(dst, "speculativeAuthenticate", reply)
			}
		}
		return bson.AppendDouble(dst, "ok", 1)
	})
}

func refusal() error {
	return failure.NewServerError("saslContinue", "server:27017", document(func(dst []byte) []byte {
		dst = bson.AppendInt32(dst, "code", 18)
		dst = bson.AppendString(dst, "codeName", "AuthenticationFailed")
		return bson.AppendString(dst, "errmsg", "Authentication failed.")
	}))
}

func (s *server) reply(payload string, done bool) bson.Raw {
	if s.tamper != nil {
		payload = s.tamper(s.step, payload)
	}
	return document(func(dst []byte) []byte {
		dst = bson.AppendInt32(dst, "conversationId", 1)
		dst = bson.AppendBool(dst, "done", done)
		return bson.AppendBinary(dst, "payload", 0, []byte(payload))
	})
}

func (s *server) answer(db string, cmd bson.Raw) (bson.Raw, error) {
	payload, _ := cmd.Lookup("payload").Binary()
	switch {
	case cmd.Lookup("authenticate").Type != 0:
		if db != "$external" && db != "" {
			return nil, refusal()
		}
		return document(func(dst []byte) []byte { return bson.AppendString(dst, "user", "CN=client") }), nil
	case cmd.Lookup("saslStart").Type != 0:
		s.step = 1
		mech, _ := cmd.Lookup("mechanism").StringValue()
		s.mech = auth.Mechanism(mech)
		if s.mech == auth.MechanismPlain {
			parts := strings.Split(string(payload.Data), "\x00")
			if u := s.users[db+"."+parts[1]]; u.secrets[auth.MechanismPlain] != parts[2] {
				return nil, refusal()
			}
			return s.reply("", true), nil
		}
		if !cmd.Lookup("options", "skipEmptyExchange").AsBool() {
			s.t.Error("saslStart lacks skipEmptyExchange")
		}
		return s.scramFirst(db, string(payload.Data))
	case s.step == 1:
		s.step = 2
		return s.scramFinal(string(payload.Data))
	default:
		s.step++
		return s.reply("", true), nil
	}
}

func (s *server) scramFirst(db, first string) (bson.Raw, error) {
	bare, ok := strings.CutPrefix(first, "n,,")
	if !ok {
		s.t.Errorf("client's first message is %q", first)
	}
	name, nonce, _ := strings.Cut(bare, ",")
	name = strings.NewReplacer("=2C", ",", "=3D", "=").Replace(strings.TrimPrefix(name, "n="))
	u, ok := s.users[db+"."+name]
	if !ok || !slices.Contains(u.mechanisms, s.mech) {
		return nil, refusal()
	}
	s.secret = u.secrets[s.mech]
	serverFirst := fmt.Sprintf("%sserver,s=%s,i=%d", nonce, base64.StdEncoding.EncodeToString([]byte("salt of 16 bytes")), s.iterations)
	s.message = bare + "," + serverFirst
	return s.reply(serverFirst, false), nil
}

func (s *server) scramFinal(final string) (bson.Raw, error) {
	newHash := scramHashes[s.mech]
	withoutProof, encoded, _ := strings.Cut(final, ",p=")
	proof, _ := base64.StdEncoding.DecodeString(encoded)
	salted, _ := pbkdf2.Key(newHash, s.secret, []byte("salt of 16 bytes"), s.iterations, newHash().Size())
	h := newHash()
	h.Write(mac(newHash, salted, "Client Key"))
	stored := h.Sum(nil)
	message := s.message + "," + withoutProof
	key := mac(newHash, stored, message)
	for i := range proof {
		key[i] ^= proof[i]
	}
	h = newHash()
	h.Write(key)
	if !hmac.Equal(h.Sum(nil), stored) {
		return nil, refusal()
	}
	signature := mac(newHash, mac(newHash, salted, "Server Key"), message)
	return s.reply("v="+base64.StdEncoding.EncodeToString(signature), !s.emptyExchange), nil
}

// newServer returns a server with the users of the specification's prose tests.
func newServer(t *testing.T) *server {
	s := &server{t: t, iterations: 4096, users: map[string]user{}}
	add := func(name, pwd string, mechs ...auth.Mechanism) {
		id := &identity{credential: auth.Credential{Username: name, Password: auth.Secret(pwd)}}
		if err := id.preparePasswords(); err != nil {
			t.Fatal(err)
		}
		s.users["admin."+name] = user{mechs, id.passwords}
	}
	add("sha1", "sha1", auth.MechanismScramSHA1)
	add("sha256", "sha256", auth.MechanismScramSHA256)
	add("both", "both", auth.MechanismScramSHA1, auth.MechanismScramSHA256)
	add("IX", "IX", auth.MechanismScramSHA256)
	add("\u2168", "\u2163", auth.MechanismScramSHA256)
	add("a=b,c", "x", auth.MechanismScramSHA1, auth.MechanismScramSHA256)
	s.users["$external.ldap"] = user{[]auth.Mechanism{auth.MechanismPlain}, map[auth.Mechanism]string{auth.MechanismPlain: "open sesame"}}
	return s
}

// login authenticates over the server with a connection string.
func login(t *testing.T, s *server, connectionString string) (mechanism auth.Mechanism, err error) {
	t.Helper()
	c, err := uri.Parse(connectionString)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(c.Credential, Options{})
	if err != nil {
		t.Fatal(err)
	}
	attempt, err := a.Attempt(t.Context(), s.Addr())
	if err != nil {
		return "", err
	}
	err = attempt.Finish(t.Context(), s, s.hello(attempt))
	return attempt.Mechanism(), err
}
