package auth

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/mongoerr"
)

// oidcServer is a Transport to a server that knows which tokens are valid. Unlike server it may be
// used by several connections.
type oidcServer struct {
	addr  string
	delay time.Duration

	mu    sync.Mutex
	valid map[string]bool
	saw   []string // tokens, in order; "?" for a principal step
}

func (s *oidcServer) Addr() string       { return s.addr }
func (*oidcServer) Limit() time.Duration { return 0 }

func (s *oidcServer) RunCommand(ctx context.Context, db string, fill func([]byte) []byte) (bson.Raw, error) {
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
		return nil, &mongoerr.TimeoutError{Wrapped: ctx.Err()}
	}
	return s.answer(document(fill))
}

func (s *oidcServer) answer(cmd bson.Raw) (bson.Raw, error) {
	payload, _ := cmd.Lookup("payload").Binary()
	step := bson.Raw(payload.Data)
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := func(done bool, payload bson.Raw) bson.Raw {
		return document(func(dst []byte) []byte {
			return bson.AppendBinary(bson.AppendBool(dst, "done", done), "payload", bson.BinaryGeneric, payload)
		})
	}
	if step.Lookup("jwt").IsZero() {
		s.saw = append(s.saw, "?")
		return reply(false, document(func(dst []byte) []byte { return bson.AppendString(dst, "issuer", "i") })), nil
	}
	token, _ := step.Lookup("jwt").StringValue()
	s.saw = append(s.saw, strings.Clone(token))
	if !s.valid[token] {
		return nil, refusal()
	}
	return reply(true, nil), nil
}

// connect authenticates a connection with whatever the authenticator says ahead.
func (s *oidcServer) connect(ctx context.Context, a *Authenticator) (*Attempt, error) {
	t, err := a.Attempt(ctx, s.addr)
	if err != nil {
		return nil, err
	}
	hello := document(t.AppendHello)
	reply := document(func(dst []byte) []byte {
		if spec, ok := hello.Lookup("speculativeAuthenticate").Document(); ok {
			if r, err := s.answer(spec); err == nil {
				dst = bson.AppendDocument(dst, "speculativeAuthenticate", r)
			}
		}
		return dst
	})
	return t, t.Finish(ctx, s, reply)
}

func (s *oidcServer) tokens() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.saw, " ")
}

func oidcAuthenticator(t *testing.T, o *auth.OIDC, timeout time.Duration) *Authenticator {
	t.Helper()
	a, err := New(&auth.Credential{Mechanism: auth.MechanismOIDC, Source: "$external"}, Options{OIDC: o, CallbackTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Many connections at once: one call, one token, and nobody waits for another one's round trip.
func TestOIDCOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		a := oidcAuthenticator(t, &auth.OIDC{Callback: func(ctx context.Context, _ auth.OIDCParams) (auth.OIDCCredential, error) {
			calls++
			time.Sleep(2 * time.Second)
			return auth.OIDCCredential{AccessToken: "a"}, nil
		}}, 0)
		s := &oidcServer{addr: "s:1", delay: time.Second, valid: map[string]bool{"a": true}}
		start := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := s.connect(t.Context(), a); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if calls != 1 || time.Since(start) != 3*time.Second {
			t.Errorf("%d calls in %v, want one, and 2s for it and 1s for the round trips", calls, time.Since(start))
		}
	})
}

// When many connections find out at once that their token has expired, it is replaced once.
func TestOIDCReauthenticateTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called []time.Time
		a := oidcAuthenticator(t, &auth.OIDC{Callback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
			called = append(called, time.Now())
			return auth.OIDCCredential{AccessToken: string(rune('a' + len(called) - 1))}, nil
		}}, 0)
		s := &oidcServer{addr: "s:1", delay: time.Millisecond, valid: map[string]bool{"a": true}}
		var attempts []*Attempt
		for range 5 {
			attempt, err := s.connect(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			attempts = append(attempts, attempt)
		}
		if got := s.tokens(); got != "a a a a a" {
			t.Errorf("tokens %q", got)
		}
		s.valid = map[string]bool{"b": true}
		var wg sync.WaitGroup
		for _, attempt := range attempts {
			wg.Go(func() {
				if err := attempt.Reauthenticate(t.Context(), s); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := s.tokens(); got != "a a a a a b b b b b" {
			t.Errorf("tokens %q", got)
		}
		if len(called) != 2 || called[1].Sub(called[0]) < callbackPause {
			t.Errorf("calls at %v", called)
		}
	})
}

func TestOIDCTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		wait := func(ctx context.Context, _ auth.OIDCParams) (auth.OIDCCredential, error) {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			<-ctx.Done()
			return auth.OIDCCredential{}, ctx.Err()
		}
		s := &oidcServer{addr: "localhost:1", valid: map[string]bool{"a": true}}
		for _, test := range []struct {
			what  string
			oidc  *auth.OIDC
			limit time.Duration
			want  time.Duration
		}{
			{"no timeout", &auth.OIDC{Callback: wait}, 0, time.Minute},
			{"the client's timeout", &auth.OIDC{Callback: wait}, 3 * time.Second, 3 * time.Second},
			{"a person", &auth.OIDC{HumanCallback: wait}, 3 * time.Second, 5 * time.Minute},
		} {
			start := time.Now()
			_, err := s.connect(t.Context(), oidcAuthenticator(t, test.oidc, test.limit))
			if _, ok := errors.AsType[*mongoerr.AuthError](err); !ok || left != test.want || time.Since(start) != test.want {
				t.Errorf("%s: %v after %v, want %v; %v", test.what, left, time.Since(start), test.want, err)
			}
		}
		// The deadline of an operation ends the wait for a service, but not for a person; who gives
		// up ends both.
		for _, o := range []*auth.OIDC{{Callback: wait}, {HumanCallback: wait}} {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := s.connect(ctx, oidcAuthenticator(t, o, 0))
			cancel()
			if te, ok := errors.AsType[*mongoerr.TimeoutError](err); !ok || !errors.Is(err, context.DeadlineExceeded) || te.Addr != s.addr {
				t.Errorf("deadline of a second: %v", err)
			}
			if took, human := time.Since(start), o.HumanCallback != nil; (took > time.Second) != human {
				t.Errorf("deadline of a second, a person %v: took %v", human, took)
			}
			start = time.Now()
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if _, err := s.connect(ctx, oidcAuthenticator(t, o, 0)); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
				t.Errorf("cancelled: %v after %v", err, time.Since(start))
			}
		}
	})
}

// A connection that waits for the token of another one's callback gives up when its own time is
// over.
func TestOIDCWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := oidcAuthenticator(t, &auth.OIDC{Callback: func(ctx context.Context, _ auth.OIDCParams) (auth.OIDCCredential, error) {
			time.Sleep(10 * time.Second)
			return auth.OIDCCredential{AccessToken: "a"}, nil
		}}, 0)
		s := &oidcServer{addr: "s:1", valid: map[string]bool{"a": true}}
		go s.connect(t.Context(), a)
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.connect(ctx, a); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Minute)
		if _, err := s.connect(t.Context(), a); err != nil {
			t.Error(err)
		}
	})
}

// A person's connections that begin together ask once, and share the token.
func TestOIDCHumanTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		a := oidcAuthenticator(t, &auth.OIDC{HumanCallback: func(_ context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
			calls++
			time.Sleep(30 * time.Second)
			return auth.OIDCCredential{AccessToken: "a", RefreshToken: "r"}, nil
		}}, 0)
		s := &oidcServer{addr: "localhost:1", delay: time.Millisecond, valid: map[string]bool{"a": true}}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := s.connect(t.Context(), a); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestOIDCAllowedHosts(t *testing.T) {
	for _, test := range []struct {
		allowed []string
		addr    string
		want    bool
	}{
		{nil, "localhost:27017", true}, {nil, "127.0.0.1:27017", true}, {nil, "[::1]:27017", true}, {nil, "a.b.mongodb.net:27017", true},
		{nil, "A.MongoDB.net:27017", true}, {nil, "mongodb.net:27017", false}, {nil, "evilmongodb.net:27017", false}, {nil, "example.com:27017", false},
		{nil, "a.mongodb.net.example.com:27017", false}, {nil, "/tmp/mongodb-27017.sock", false}, {nil, "x.mongo.com:1", true},
		{[]string{}, "localhost:27017", false}, {[]string{"db.example"}, "DB.example:1", true}, {[]string{"*"}, "db.example:1", false},
		{[]string{"*.example"}, "db.example:1", true}, {[]string{".example"}, "db.example:1", false},
	} {
		o := &auth.OIDC{HumanCallback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) { return auth.OIDCCredential{}, nil }, AllowedHosts: test.allowed}
		if got := oidcAuthenticator(t, o, 0).current.Load().tokens.mayGo(test.addr); got != test.want {
			t.Errorf("%q may go to %s: %v", test.allowed, test.addr, got)
		}
	}
}

// A token that is cached already does not travel with the hello to a host that it must not go to.
func TestOIDCNoTokenAhead(t *testing.T) {
	a := oidcAuthenticator(t, &auth.OIDC{HumanCallback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
		return auth.OIDCCredential{AccessToken: "a"}, nil
	}}, 0)
	good := &oidcServer{addr: "localhost:1", valid: map[string]bool{"a": true}}
	if _, err := good.connect(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	evil := &oidcServer{addr: "evil.example:1", valid: map[string]bool{"a": true}}
	if _, err := evil.connect(t.Context(), a); err == nil || !strings.Contains(err.Error(), "AllowedHosts") || len(evil.saw) > 0 {
		t.Errorf("%v, server saw %q", err, evil.saw)
	}
}

// The metadata services of clouds, which here a local server stands in for.
func TestOIDCClouds(t *testing.T) {
	var got *http.Request
	status, body := 200, ""
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	defer service.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, service.Listener.Addr().String())
	}}}
	for _, test := range []struct {
		environment, user, body string
		host, query             string
		header                  map[string]string
	}{
		{"azure", "", `{"access_token": "abc", "expires_in": "3599"}`, "169.254.169.254", "api-version=2018-02-01&resource=https%3A%2F%2Fdb.example%2F%3Fa%26b",
			map[string]string{"Accept": "application/json", "Metadata": "true"}},
		{"azure", "my id", `{"access_token": "abc"}`, "169.254.169.254", "api-version=2018-02-01&client_id=my+id&resource=https%3A%2F%2Fdb.example%2F%3Fa%26b", nil},
		{"gcp", "", "abc\n", "metadata", "audience=https%3A%2F%2Fdb.example%2F%3Fa%26b", map[string]string{"Metadata-Flavor": "Google"}},
	} {
		status, body = 200, test.body
		callback := environmentCallback(test.environment, "https://db.example/?a&b", client)
		c, err := callback(t.Context(), auth.OIDCParams{Username: test.user})
		if err != nil || c.AccessToken != "abc" {
			t.Errorf("%s: %+v, %v", test.environment, c, err)
		}
		if got.Host != test.host || got.URL.RawQuery != test.query {
			t.Errorf("%s: asked %s %s", test.environment, got.Host, got.URL)
		}
		for name, want := range test.header {
			if v := got.Header.Get(name); v != want {
				t.Errorf("%s: header %s is %q", test.environment, name, v)
			}
		}
		status, body = 400, "no such identity"
		if _, err := callback(t.Context(), auth.OIDCParams{}); err == nil || !strings.Contains(err.Error(), "400") || !strings.Contains(err.Error(), body) {
			t.Errorf("%s: error %v", test.environment, err)
		}
	}
	status, body = 200, "<html>"
	if _, err := environmentCallback("azure", "", client)(t.Context(), auth.OIDCParams{}); err == nil {
		t.Error("azure: no error for a reply that is not JSON")
	}
}

// A name that no server answers to is a token's end only if the server says so.
func TestOIDCNetworkErrorKeepsToken(t *testing.T) {
	calls := 0
	a := oidcAuthenticator(t, &auth.OIDC{Callback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
		calls++
		return auth.OIDCCredential{AccessToken: "a"}, nil
	}}, 0)
	broken := &mongoerr.ConnectionError{Op: "authenticate", Wrapped: errors.New("reset")}
	attempt, _ := a.Attempt(t.Context(), "s:1")
	if err := attempt.Finish(t.Context(), brokenTransport{broken}, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
	s := &oidcServer{addr: "s:1", valid: map[string]bool{"a": true}}
	if _, err := s.connect(t.Context(), a); err != nil || calls != 1 || !slices.Equal(s.saw, []string{"a"}) {
		t.Errorf("%v, %d calls, server saw %q", err, calls, s.saw)
	}
}
