package auth

import (
	"bytes"
	"context"
	"crypto/pbkdf2"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/mongoerr"
)

// The conversations that the specification and the RFCs print.
func TestScramVectors(t *testing.T) {
	tests := []struct {
		mechanism                                     auth.Mechanism
		nonce, first, serverFirst, final, serverFinal string
	}{
		{
			auth.MechanismScramSHA1, "fyko+d2lbbFgONRv9qkxdawL", "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
			"r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000",
			"c=biws,r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,p=MC2T8BvbmWRckDw8oWl5IVghwCY=",
			"v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0=",
		},
		{
			auth.MechanismScramSHA256, "rOprNGfwEbeRWgbNEkqO", "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
			"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
			"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
			"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
		},
	}
	for _, tt := range tests {
		a, err := New(&auth.Credential{Username: "user", Password: "pencil", Source: "admin", Mechanism: tt.mechanism}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := newScram(a.current.Load(), tt.mechanism)
		if err != nil {
			t.Fatal(err)
		}
		// It ends with the server's last payload, and may begin in the hello.
		opening, speculates := c.first(nil)
		at, dst := bson.BeginDocument(nil)
		body := bson.Raw(bson.EndDocument(append(dst, opening...), at))
		if skip, _ := body.Lookup("options", "skipEmptyExchange").Boolean(); !skip || !speculates {
			t.Errorf("%s: saslStart is %v, speculates %t", tt.mechanism, body, speculates)
		}
		client := c.(*saslConversation).client.(*scram)
		client.newNonce = func() string { return tt.nonce }
		first, err := client.start(t.Context())
		if err != nil || string(first) != tt.first {
			t.Errorf("%s: first message %q, %v", tt.mechanism, first, err)
		}
		final, err := client.next(t.Context(), []byte(tt.serverFirst))
		if err != nil || string(final) != tt.final {
			t.Errorf("%s: final message %q, %v", tt.mechanism, final, err)
		}
		if _, err := client.next(t.Context(), []byte(tt.serverFinal)); err != nil {
			t.Errorf("%s: %v", tt.mechanism, err)
		}
	}
}

// Prose test "SCRAM-SHA-256 and mechanism negotiation", steps 1 to 4.
func TestProseScramNegotiation(t *testing.T) {
	tests := []struct {
		step            int
		userInfo        string
		mech, want      auth.Mechanism
		wantServerError bool
	}{
		{2, "sha1:sha1", "", auth.MechanismScramSHA1, false},
		{2, "sha1:sha1", auth.MechanismScramSHA1, auth.MechanismScramSHA1, false},
		{2, "sha256:sha256", "", auth.MechanismScramSHA256, false},
		{2, "sha256:sha256", auth.MechanismScramSHA256, auth.MechanismScramSHA256, false},
		{2, "both:both", "", auth.MechanismScramSHA256, false},
		{2, "both:both", auth.MechanismScramSHA1, auth.MechanismScramSHA1, false},
		{2, "both:both", auth.MechanismScramSHA256, auth.MechanismScramSHA256, false},
		{3, "sha1:sha1", auth.MechanismScramSHA256, auth.MechanismScramSHA256, true},
		{3, "sha256:sha256", auth.MechanismScramSHA1, auth.MechanismScramSHA1, true},
		{3, "nobody:x", "", auth.MechanismScramSHA1, true},
		{3, "both:wrong", "", auth.MechanismScramSHA256, true},
		{4, "IX:IX", "", auth.MechanismScramSHA256, false},
		{4, "IX:I%C2%ADX", "", auth.MechanismScramSHA256, false},
		{4, "%E2%85%A8:IV", "", auth.MechanismScramSHA256, false},
		{4, "%E2%85%A8:I%C2%ADV", "", auth.MechanismScramSHA256, false},
		{4, "a%3Db%2Cc:x", auth.MechanismScramSHA1, auth.MechanismScramSHA1, false}, // characters that SCRAM escapes
	}
	for _, tt := range tests {
		for _, variant := range []string{"", "empty exchange", "no speculation"} {
			t.Run(fmt.Sprintf("step %d/%s/%s/%s", tt.step, tt.userInfo, tt.mech, variant), func(t *testing.T) {
				s := newServer(t)
				s.emptyExchange = variant == "empty exchange"
				s.noSpeculation = variant == "no speculation"
				in := "mongodb://" + tt.userInfo + "@localhost/"
				if tt.mech != "" {
					in += "?authMechanism=" + string(tt.mech)
				}
				mech, err := login(t, s, in)
				if mech != tt.want {
					t.Errorf("mechanism %s, want %s", mech, tt.want)
				}
				ae, isAuth := errors.AsType[*mongoerr.AuthError](err)
				se, isServer := errors.AsType[*mongoerr.ServerError](err)
				if tt.wantServerError {
					if !isAuth || !isServer || auth.Mechanism(ae.Mechanism) != tt.want || se.Code != 18 {
						t.Errorf("error %v", err)
					}
				} else if err != nil {
					t.Error(err)
				}
				if err == nil && variant == "" && mech == auth.MechanismScramSHA256 && slices.Contains(s.commands, "saslStart") {
					t.Errorf("commands %q: the first message was not sent ahead", s.commands)
				}
			})
		}
	}
}

// A server, or somebody in between, that does not keep to the rules.
func TestScramMisbehavior(t *testing.T) {
	onStep := func(n int, change func(string) string) func(int, string) string {
		return func(step int, payload string) string {
			if step == n {
				return change(payload)
			}
			return payload
		}
	}
	constant := func(s string) func(string) string { return func(string) string { return s } }
	tests := []struct {
		name   string
		change func(*server)
		want   string
	}{
		{"4095 iterations", func(s *server) { s.iterations = 4095 }, "at least 4096"},
		{"too many iterations", func(s *server) {
			s.tamper = onStep(1, func(p string) string { return strings.Replace(p, "i=4096", "i=1000001", 1) })
		}, "at most 1000000"},
		{"nonce of its own", func(s *server) { s.tamper = onStep(1, constant("r=abc,s=QUJD,i=4096")) }, "nonce"},
		{"nonce not continued", func(s *server) {
			s.tamper = onStep(1, func(p string) string { return strings.Replace(p, "server,", ",", 1) })
		}, "nonce"},
		{"malformed first message", func(s *server) { s.tamper = onStep(1, constant("hello")) }, "malformed"},
		{"extension", func(s *server) { s.tamper = onStep(1, func(p string) string { return "m=x," + p }) }, "malformed"},
		{"no salt", func(s *server) { s.tamper = onStep(1, constant("r=x,s=,i=4096")) }, "malformed"},
		{"iterations are no number", func(s *server) { s.tamper = onStep(1, constant("r=x,s=QUJD,i=many")) }, "malformed"},
		{"wrong signature", func(s *server) {
			s.tamper = onStep(2, constant("v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="))
		}, "does not know the password"},
		{"empty signature", func(s *server) { s.tamper = onStep(2, constant("v=")) }, "does not know the password"},
		{"no signature", func(s *server) { s.tamper = onStep(2, constant("")) }, "malformed"},
		{"error", func(s *server) { s.tamper = onStep(2, constant("e=other-error")) }, "other-error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			tt.change(s)
			_, err := login(t, s, "mongodb://both:both@localhost/?authMechanism=SCRAM-SHA-256")
			if _, ok := errors.AsType[*mongoerr.AuthError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// countingContext ends when it is asked for the nth time.
type countingContext struct {
	context.Context
	n int
}

func (c *countingContext) Err() error {
	if c.n--; c.n <= 0 {
		return context.Canceled
	}
	return nil
}

// A server that asks for many iterations keeps the client busy no longer than its context wants,
// and nothing is cached of it.
func TestScramDerivationIsInterrupted(t *testing.T) {
	id := scramKeyID{mechanism: auth.MechanismScramSHA256, password: "p", salt: "salt", iterations: maxIterations}
	ctx := &countingContext{Context: t.Context(), n: 3}
	var c scramCache
	if _, err := c.get(ctx, id); !errors.Is(err, context.Canceled) || ctx.n != 0 || len(c.keys) != 0 {
		t.Errorf("error %v, %d looks at the context left, %d keys cached", err, ctx.n, len(c.keys))
	}
	for mechanism, newHash := range scramHashes {
		for _, iterations := range []int{1, 2, interruptible, interruptible + 1} {
			id := scramKeyID{mechanism: mechanism, password: "p", salt: "salt", iterations: iterations}
			want, err := pbkdf2.Key(newHash, id.password, []byte(id.salt), iterations, newHash().Size())
			if err != nil {
				t.Fatal(err)
			}
			if got, err := saltedPassword(t.Context(), newHash, id); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, %d iterations: %x, %v, want %x", mechanism, iterations, got, err, want)
			}
		}
	}
}

func BenchmarkScramDerivation(b *testing.B) {
	id := scramKeyID{mechanism: auth.MechanismScramSHA256, password: "p", salt: "salt", iterations: 15_000}
	b.Run("interruptible", func(b *testing.B) {
		for b.Loop() {
			saltedPassword(b.Context(), scramHashes[id.mechanism], id)
		}
	})
	b.Run("crypto/pbkdf2", func(b *testing.B) {
		for b.Loop() {
			pbkdf2.Key(scramHashes[id.mechanism], id.password, []byte(id.salt), id.iterations, 32)
		}
	})
}

// scripted answers each command with the next of its replies, over and over.
type scripted struct{ replies []bson.Raw }

func (s *scripted) Addr() string       { return "server:27017" }
func (*scripted) Limit() time.Duration { return 0 }

func (s *scripted) RunCommand(context.Context, string, func([]byte) []byte) (bson.Raw, error) {
	r := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	return r, nil
}

func TestConversationEnds(t *testing.T) {
	step := func(payload string, done bool) bson.Raw { return (&server{}).reply(payload, done) }
	tests := []struct {
		name      string
		mechanism auth.Mechanism
		replies   []bson.Raw
		want      string
	}{
		{"done at once", auth.MechanismScramSHA256, []bson.Raw{step("", true)}, "malformed"},
		{"no payload", auth.MechanismScramSHA256, []bson.Raw{document(func(b []byte) []byte { return b })}, "no payload"},
		{"never done", auth.MechanismPlain, []bson.Raw{step("", false)}, "did not end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := New(&auth.Credential{Username: "u", Password: "p", Source: "admin", Mechanism: tt.mechanism}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			err = (&Attempt{a: a, id: a.current.Load(), mechanism: tt.mechanism}).Reauthenticate(t.Context(), &scripted{tt.replies})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	// A server that says done with its first, otherwise good message has not proved anything.
	s := newServer(t)
	a, _ := New(&auth.Credential{Username: "both", Password: "both", Source: "admin", Mechanism: auth.MechanismScramSHA256}, Options{})
	early := doneTransport{s}
	if err := (&Attempt{a: a, id: a.current.Load(), mechanism: auth.MechanismScramSHA256}).Reauthenticate(t.Context(), early); err == nil || !strings.Contains(err.Error(), "before it proved") {
		t.Errorf("error %v", err)
	}
}

// doneTransport says done in every reply.
type doneTransport struct{ *server }

func (d doneTransport) RunCommand(ctx context.Context, db string, fill func([]byte) []byte) (bson.Raw, error) {
	r, err := d.server.RunCommand(ctx, db, fill)
	if err != nil {
		return nil, err
	}
	payload, _ := r.Lookup("payload").Binary()
	return (&server{}).reply(string(payload.Data), true), nil
}

func TestPlainAndX509(t *testing.T) {
	s := newServer(t)
	if mech, err := login(t, s, "mongodb://ldap:open%20sesame@localhost/?authMechanism=PLAIN"); err != nil || mech != auth.MechanismPlain {
		t.Errorf("PLAIN: %s, %v", mech, err)
	}
	if _, err := login(t, s, "mongodb://ldap:wrong@localhost/?authMechanism=PLAIN"); err == nil {
		t.Error("PLAIN with a wrong password: no error")
	}
	for _, user := range []string{"", "CN%3Dclient@"} {
		for _, noSpeculation := range []bool{false, true} {
			s := newServer(t)
			s.noSpeculation = noSpeculation
			if mech, err := login(t, s, "mongodb://"+user+"localhost/?authMechanism=MONGODB-X509"); err != nil || mech != auth.MechanismX509 {
				t.Errorf("X.509: %s, %v", mech, err)
			}
			if got := len(s.commands); (got == 0) == noSpeculation {
				t.Errorf("X.509, no speculation %v: commands %q", noSpeculation, s.commands)
			}
		}
	}
}

func TestReauthenticate(t *testing.T) {
	s := newServer(t)
	a, err := New(&auth.Credential{Username: "both", Password: "both", Source: "admin"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := (&Attempt{a: a, id: a.current.Load(), mechanism: auth.MechanismScramSHA256}).Reauthenticate(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"saslStart", "saslContinue", "saslStart", "saslContinue", "saslStart", "saslContinue"}; !slices.Equal(s.commands, want) {
		t.Errorf("commands %q", s.commands)
	}
	if len(a.current.Load().keys.keys) != 1 {
		t.Errorf("%d keys were derived, want 1", len(a.current.Load().keys.keys))
	}
}

func TestNewErrors(t *testing.T) {
	for mech, want := range map[auth.Mechanism]string{auth.MechanismGSSAPI: `import "allium/kerberos" and set ClientOptions.GSSAPI`, auth.MechanismScramSHA256: "SASLprep"} {
		_, err := New(&auth.Credential{Username: "u", Password: "bad\x07word", Source: "admin", Mechanism: mech}, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "bad") {
			t.Errorf("%s: %v, want %q", mech, err, want)
		}
	}
	// A password that only SCRAM-SHA-1 can use is no reason to refuse before the server has said
	// what it has.
	a, err := New(&auth.Credential{Username: "sha1", Password: "bad\x07word", Source: "admin"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	s.users["admin.sha1"] = user{[]auth.Mechanism{auth.MechanismScramSHA1}, a.current.Load().passwords}
	attempt, err := a.Attempt(t.Context(), s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.Finish(t.Context(), s, s.hello(attempt)); err != nil {
		t.Error(err)
	}
}

// A network error stays one.
func TestNetworkErrors(t *testing.T) {
	broken := &mongoerr.ConnectionError{Op: "authenticate", Wrapped: errors.New("reset")}
	a, _ := New(&auth.Credential{Username: "u", Password: "p", Source: "admin", Mechanism: auth.MechanismScramSHA1}, Options{})
	err := (&Attempt{a: a, id: a.current.Load(), mechanism: auth.MechanismScramSHA1}).Reauthenticate(t.Context(), brokenTransport{broken})
	if _, isAuth := errors.AsType[*mongoerr.AuthError](err); isAuth || !errors.Is(err, broken) {
		t.Errorf("error %T %v", err, err)
	}
}

type brokenTransport struct{ err error }

func (brokenTransport) Addr() string         { return "" }
func (brokenTransport) Limit() time.Duration { return 0 }
func (b brokenTransport) RunCommand(context.Context, string, func([]byte) []byte) (bson.Raw, error) {
	return nil, b.err
}

func BenchmarkScramCachedKeys(b *testing.B) {
	c := scramCache{}
	for b.Loop() {
		if _, err := c.get(b.Context(), scramKeyID{auth.MechanismScramSHA256, "password", "salt", 15000}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestServerFirstMessage(t *testing.T) {
	const good = "r=nonce,s=QUJD,i=4096"
	for _, text := range []string{good, good + ",x=y"} {
		if nonce, salt, iterations, err := parseServerFirst(text); nonce != "nonce" || salt != "ABC" || iterations != 4096 || err != nil {
			t.Errorf("%q: %q, %q, %d, %v", text, nonce, salt, iterations, err)
		}
	}
	for _, text := range []string{"", "r=nonce", "r=nonce,s=QUJD", "m=x," + good, "x=nonce,s=QUJD,i=4096", "r=nonce,x=QUJD,i=4096", "r=nonce,s=QUJD,x=4096",
		"r=nonce,s=,i=4096", "r=nonce,s=QUJ,i=4096", "r=nonce,s=QUJD,i=", "r=nonce,s=QUJD,i=4096x", "s=QUJD,r=nonce,i=4096"} {
		if nonce, salt, iterations, err := parseServerFirst(text); err == nil {
			t.Errorf("%q: no error but %q, %q, %d", text, nonce, salt, iterations)
		}
	}
}

// Whatever a server says that does not know the password, it is not believed.
func FuzzScram(f *testing.F) {
	f.Add("r=nonceX,s=QUJD,i=4096", "v=AAAA")
	f.Add("r=nonceX,s=QUJD,i=4096,x=y", "e=no")
	f.Add("r=,s=,i=", "v=")
	f.Fuzz(func(t *testing.T, first, final string) {
		if _, _, iterations, err := parseServerFirst(first); err == nil && iterations > 2*minIterations && iterations <= maxIterations {
			return // takes long, as it should
		}
		a, err := New(&auth.Credential{Username: "user", Password: "pencil", Source: "admin", Mechanism: auth.MechanismScramSHA256}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := newScram(a.current.Load(), auth.MechanismScramSHA256)
		if err != nil {
			t.Fatal(err)
		}
		client := c.(*saslConversation).client.(*scram)
		client.newNonce = func() string { return "nonce" }
		if _, err := client.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.next(t.Context(), []byte(first)); err != nil {
			return
		}
		if _, err := client.next(t.Context(), []byte(final)); err == nil {
			t.Errorf("%q and %q are believed", first, final)
		}
	})
}
