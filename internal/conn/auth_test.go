package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"allium/bson"
	"allium/internal/auth"
	"allium/internal/uri"
	"allium/mongoerr"
)

func authenticator(t *testing.T, connectionString string) *auth.Authenticator {
	t.Helper()
	c, err := uri.Parse(connectionString)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := auth.New(c.Credential, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// plainServer accepts the mechanism PLAIN with the password "open".
func plainServer(hellos, commands chan<- bson.Raw) func(*peer) {
	return func(p *peer) {
		doc, ok := p.hello()
		if !ok {
			return
		}
		hellos <- doc
		for {
			id, m, ok := p.read()
			if !ok {
				return
			}
			commands <- m.Body
			payload, _ := m.Body.Lookup("payload").Binary()
			p.reply(id, document(func(dst []byte) []byte {
				if m.Body.Lookup("saslStart").Type != 0 && !strings.HasSuffix(string(payload.Data), "\x00open") {
					dst = bson.AppendInt32(dst, "code", 18)
					dst = bson.AppendString(dst, "codeName", "AuthenticationFailed")
					dst = bson.AppendString(dst, "errmsg", "Authentication failed.")
					return bson.AppendDouble(dst, "ok", 0)
				}
				dst = bson.AppendInt32(dst, "conversationId", 1)
				dst = bson.AppendBool(dst, "done", true)
				dst = bson.AppendBinary(dst, "payload", 0, nil)
				return bson.AppendDouble(dst, "ok", 1)
			}))
		}
	}
}

func TestDialAuthenticates(t *testing.T) {
	hellos, commands := make(chan bson.Raw, 10), make(chan bson.Raw, 10)
	addr := fakeServer(t, plainServer(hellos, commands))
	c := dial(t, addr, &Config{Authenticator: authenticator(t, "mongodb://u:open@h/?authMechanism=PLAIN"), ServerAPI: &ServerAPI{Version: "1"}})
	if c.Mechanism() != "PLAIN" {
		t.Errorf("mechanism %q", c.Mechanism())
	}
	if doc := <-hellos; doc.Lookup("speculativeAuthenticate").Type != 0 {
		t.Error("the password in clear was sent ahead")
	}
	cmd := <-commands
	if db, _ := cmd.Lookup("$db").StringValue(); db != "$external" || cmd.Lookup("apiVersion").Type == 0 {
		t.Errorf("saslStart on %q: %x", db, []byte(cmd))
	}
	if err := c.Reauthenticate(t.Context()); err != nil {
		t.Errorf("reauthenticate: %v", err)
	}
	if !c.Alive() {
		t.Error("connection is closed")
	}
}

// TestReauthenticateKeepsTheLimit: the connect timeout bounds the steps of logging in again, and
// not what the connection is used for afterwards.
func TestReauthenticateKeepsTheLimit(t *testing.T) {
	hellos, commands := make(chan bson.Raw, 10), make(chan bson.Raw, 10)
	addr := fakeServer(t, plainServer(hellos, commands))
	c := dial(t, addr, &Config{Authenticator: authenticator(t, "mongodb://u:open@h/?authMechanism=PLAIN"), ConnectTimeout: time.Minute})
	for _, limit := range []time.Duration{0, time.Second, time.Hour} {
		c.SetTimeout(limit)
		if err := c.Reauthenticate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.limit != limit {
			t.Errorf("the limit of %v is %v afterwards", limit, c.limit)
		}
	}
}

func TestDialSpeculates(t *testing.T) {
	for in, want := range map[string]string{
		"mongodb://u:p@h/":                           "admin.u",
		"mongodb://u:p@h/db":                         "db.u",
		"mongodb://u:p@h/?authMechanism=SCRAM-SHA-1": "",
	} {
		hellos := make(chan bson.Raw, 1)
		addr := fakeServer(t, func(p *peer) {
			doc, _ := p.hello()
			hellos <- doc
		})
		if _, err := Dial(t.Context(), addr, &Config{Authenticator: authenticator(t, in)}); err == nil {
			t.Error("no error")
		}
		doc := <-hellos
		if got, _ := doc.Lookup("saslSupportedMechs").StringValue(); got != want {
			t.Errorf("%s: saslSupportedMechs %q, want %q", in, got, want)
		}
		if db, _ := doc.Lookup("speculativeAuthenticate", "db").StringValue(); db == "" {
			t.Errorf("%s: nothing is sent ahead", in)
		}
	}
}

func TestDialAuthenticationErrors(t *testing.T) {
	hellos, commands := make(chan bson.Raw, 10), make(chan bson.Raw, 10)
	addr := fakeServer(t, plainServer(hellos, commands))
	_, err := Dial(t.Context(), addr, &Config{Authenticator: authenticator(t, "mongodb://u:secret@h/?authMechanism=PLAIN")})
	ae, ok := errors.AsType[*mongoerr.AuthError](err)
	if !ok || ae.Mechanism != "PLAIN" || ae.Addr != addr {
		t.Errorf("error %T: %v", err, err)
	}
	if _, isNetwork := errors.AsType[*mongoerr.ConnectionError](err); isNetwork {
		t.Errorf("%v counts as a network error", err)
	}
	want := "authentication of user \"u\" of database \"$external\" with PLAIN: saslStart on " + addr + ": AuthenticationFailed (18): Authentication failed."
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}

	closing := fakeServer(t, func(p *peer) {
		p.hello()
		p.read()
	})
	cfg := &Config{Authenticator: authenticator(t, "mongodb://u:secret@h/?authMechanism=PLAIN")}
	_, err = Dial(t.Context(), closing, cfg)
	ce, ok := errors.AsType[*mongoerr.ConnectionError](err)
	if !ok || ce.Op != "authenticate" || !errors.Is(err, io.EOF) || mongoerr.HasLabel(err, mongoerr.LabelSystemOverloaded) {
		t.Errorf("error %T: %v", err, err)
	}

	synctest.Test(t, func(t *testing.T) {
		quiet := *cfg
		quiet.Dialer = pipeDialer(silent)
		_, err := Dial(shortContext(t), "silent:27017", &quiet)
		if te, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok || te.Phase != "connect (authenticate)" {
			t.Errorf("error %T: %v", err, err)
		}
	})
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("error %q", err)
	}
}

func TestArbitersAreNotAuthenticated(t *testing.T) {
	addr := fakeServer(t, func(p *peer) {
		p.hello(func(dst []byte) []byte {
			dst = bson.AppendString(dst, "setName", "rs")
			dst = bson.AppendBool(dst, "isWritablePrimary", false)
			return bson.AppendBool(dst, "arbiterOnly", true)
		})
		p.read()
	})
	c := dial(t, addr, &Config{Authenticator: authenticator(t, "mongodb://u:p@h/")})
	if c.Mechanism() != "" {
		t.Errorf("mechanism %q", c.Mechanism())
	}
}

// A hello that is refused is an error of authentication if there is a credential, else the server's
// own.
func TestRefusedHello(t *testing.T) {
	addr := fakeServer(t, func(p *peer) {
		id, _, _ := p.read()
		p.reply(id, document(func(dst []byte) []byte {
			dst = bson.AppendInt32(dst, "code", 11)
			dst = bson.AppendString(dst, "errmsg", "no such user")
			return bson.AppendDouble(dst, "ok", 0)
		}))
	})
	for in, want := range map[string]string{
		"mongodb://u:p@h/": `authentication of user "u" of database "admin": hello on ` + addr + ": UserNotFound (11): no such user",
		"mongodb://u:p@h/?authMechanism=SCRAM-SHA-256": `authentication of user "u" of database "admin" with SCRAM-SHA-256: hello on ` + addr + ": UserNotFound (11): no such user",
	} {
		_, err := Dial(t.Context(), addr, &Config{Authenticator: authenticator(t, in)})
		ae, ok := errors.AsType[*mongoerr.AuthError](err)
		if !ok || ae.Addr != addr || err.Error() != want {
			t.Errorf("%s: error %T: %v, want %s", in, err, err, want)
		}
	}
	_, err := Dial(t.Context(), addr, &Config{})
	if e, ok := err.(*mongoerr.ServerError); !ok || e.Code != 11 {
		t.Errorf("without a credential: error %T: %v", err, err)
	}
}

// dialTo is a dialer that reaches one server under every name.
type dialTo string

func (d dialTo) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", string(d))
}

// A member that is discovered on another machine does not get the password in clear, nor even a
// hello.
func TestPlainWithoutTLS(t *testing.T) {
	hellos, commands := make(chan bson.Raw, 10), make(chan bson.Raw, 10)
	cfg := Config{Authenticator: authenticator(t, "mongodb://u:open@h/?authMechanism=PLAIN"), RefuseCleartext: true, Dialer: dialTo(fakeServer(t, plainServer(hellos, commands)))}
	_, err := Dial(t.Context(), "db.example:27017", &cfg)
	if ae, ok := errors.AsType[*mongoerr.AuthError](err); !ok || ae.Mechanism != "PLAIN" || ae.Addr != "db.example:27017" {
		t.Errorf("error %T: %v", err, err)
	}
	if len(hellos) > 0 || len(commands) > 0 {
		t.Error("the server was talked to")
	}
	cfg.RefuseCleartext = false
	dial(t, "db.example:27017", &cfg)
}

// A connection that only monitors does not log in: its handshake asks for no mechanisms and sends
// nothing ahead, and nothing but hellos follow (specification: Authentication).
func TestMonitorsDoNotLogIn(t *testing.T) {
	for _, in := range []string{"mongodb://u:p@h/", "mongodb://u:p@h/?authMechanism=SCRAM-SHA-256", "mongodb://h/?authMechanism=MONGODB-X509"} {
		said := make(chan bson.Raw, 2)
		addr := fakeServer(t, func(p *peer) {
			for {
				id, m, ok := p.read()
				if !ok {
					return
				}
				said <- slices.Clone(m.Body)
				p.reply(id, document(func(dst []byte) []byte {
					return bson.AppendDouble(bson.AppendBool(dst, "helloOk", true), "ok", 1)
				}))
			}
		})
		c, err := DialMonitor(t.Context(), addr, &Config{Authenticator: authenticator(t, in)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Handshake(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.RoundTrip(t.Context(), c.AppendHello(nil, AwaitHello{})); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"isMaster", "hello"} {
			doc := <-said
			for name := range doc.All() {
				if name != want {
					t.Errorf("%s: message %d is %s", in, i, name)
				}
				break
			}
			if doc.Lookup("speculativeAuthenticate").Type != 0 || doc.Lookup("saslSupportedMechs").Type != 0 {
				t.Errorf("%s: message %d is about authentication: %v", in, i, doc)
			}
		}
	}
}
