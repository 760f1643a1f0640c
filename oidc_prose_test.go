package allium_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/event"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// The prose tests of the specification Authentication, tests/mongodb-oidc.md. The server is a
// mongotest with one identity provider, unless a test says otherwise, on which a token is any text
// that a user has.

const (
	tokenOf1, tokenOf2, tokenOfMachine = "token of test_user1", "token of test_user2", "token of test_machine"
	wrongToken                         = "token of nobody"
)

// oidcWorld is a deployment and what a client's callback saw.
type oidcWorld struct {
	*mongotest.Deployment
	calls  atomic.Int32
	active atomic.Int32
	mu     sync.Mutex
	params []auth.OIDCParams
}

func startOIDC(t *testing.T, providers ...mongotest.IdentityProvider) *oidcWorld {
	t.Helper()
	if providers == nil {
		providers = []mongotest.IdentityProvider{{Issuer: "https://idp.example", ClientID: "abcd", RequestScopes: []string{"fizz", "buzz"}}}
	}
	w := &oidcWorld{Deployment: testdeploy.Mock(t, "an in-memory network", mongotest.Auth("root", "root"), mongotest.OIDC(providers...), mongotest.InMemory())}
	w.tokens(t, "test_user1", tokenOf1)
	w.tokens(t, "test_user2", tokenOf2)
	w.tokens(t, "test_machine", tokenOfMachine)
	return w
}

// tokens makes these the valid tokens of a user.
func (w *oidcWorld) tokens(t *testing.T, user string, tokens ...string) {
	t.Helper()
	if err := w.AddUser(mongotest.User{Name: user, DB: "$external", Roles: []string{"root"}, AccessTokens: tokens}); err != nil {
		t.Fatal(err)
	}
}

// returning is a callback that returns the credentials in turn, and the last one from then on.
func (w *oidcWorld) returning(t *testing.T, credentials ...auth.OIDCCredential) auth.OIDCCallback {
	return func(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
		if w.active.Add(1) > 1 {
			t.Error("the callback is called twice at once")
		}
		defer w.active.Add(-1)
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the callback has no deadline")
		}
		w.mu.Lock()
		w.params = append(w.params, p)
		w.mu.Unlock()
		n := int(w.calls.Add(1))
		return credentials[min(n, len(credentials))-1], nil
	}
}

func access(token string) auth.OIDCCredential { return auth.OIDCCredential{AccessToken: token} }

// uri is that of a client without a user's name.
func (w *oidcWorld) uri(user string) string {
	if user != "" {
		user = strings.ReplaceAll(user, "@", "%40") + "@"
	}
	return "mongodb://" + user + w.Hosts()[0] + "/?authMechanism=MONGODB-OIDC&retryReads=false"
}

func (w *oidcWorld) client(t *testing.T, user string, o *auth.OIDC) *allium.Client {
	t.Helper()
	return open(t, w.uri(user), allium.ClientOptions{OIDC: o, Dialer: w})
}

// find fails unless its outcome is as wanted.
func (w *oidcWorld) find(t *testing.T, client *allium.Client, ok bool) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := client.Database("test").Collection("test").Find(ctx, bson.D{})
	if ok != (err == nil) {
		t.Errorf("find: %v, want success %v", err, ok)
	}
	return err
}

func (w *oidcWorld) insert(t *testing.T, client *allium.Client, ok bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := client.Database("test").Collection("test").InsertOne(ctx, bson.D{}); ok != (err == nil) {
		t.Errorf("insert: %v, want success %v", err, ok)
	}
}

func (w *oidcWorld) called(t *testing.T, want int) {
	t.Helper()
	if got := int(w.calls.Load()); got != want {
		t.Errorf("the callback was called %d times, want %d", got, want)
	}
}

func (w *oidcWorld) reauthentication(command string) {
	w.FailCommand(mongotest.Fail{Commands: []string{command}, Times: 1, Code: 391})
}

// subtest runs a subtest on a clock of its own.
func subtest(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func TestProseOIDCMachine(t *testing.T) {
	good := access(tokenOf1)
	subtest(t, "1.1 callback is called during authentication", func(t *testing.T) {
		w := startOIDC(t)
		w.find(t, w.client(t, "", &auth.OIDC{Callback: w.returning(t, good)}), true)
		w.called(t, 1)
	})
	subtest(t, "1.2 callback is called once for multiple connections", func(t *testing.T) {
		w := startOIDC(t)
		client := w.client(t, "", &auth.OIDC{Callback: w.returning(t, good)})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 100 {
					w.find(t, client, true)
				}
			})
		}
		wg.Wait()
		w.called(t, 1)
	})
	subtest(t, "2.1 valid callback inputs", func(t *testing.T) {
		w := startOIDC(t)
		w.find(t, w.client(t, "test_user1", &auth.OIDC{Callback: w.returning(t, good)}), true)
		if len(w.params) != 1 || w.params[0] != (auth.OIDCParams{Version: 1, Username: "test_user1"}) {
			t.Errorf("the callback got %+v", w.params)
		}
	})
	subtest(t, "2.2 and 2.3 callback returns nothing", func(t *testing.T) {
		w := startOIDC(t)
		err := w.find(t, w.client(t, "", &auth.OIDC{Callback: w.returning(t, auth.OIDCCredential{})}), false)
		if ae, ok := errors.AsType[*mongoerr.AuthError](err); !ok || !strings.Contains(ae.Error(), "no access token") {
			t.Errorf("error %T: %v", err, err)
		}
		err = w.find(t, w.client(t, "", &auth.OIDC{Callback: w.returning(t, auth.OIDCCredential{AccessToken: tokenOf1, ExpiresIn: -1})}), false)
		if _, ok := errors.AsType[*mongoerr.AuthError](err); !ok {
			t.Errorf("error %T: %v", err, err)
		}
		broken := errors.New("no network")
		callback := func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) { return good, broken }
		if err := w.find(t, w.client(t, "", &auth.OIDC{Callback: callback}), false); !errors.Is(err, broken) {
			t.Errorf("error %T: %v", err, err)
		}
	})
	subtest(t, "2.4 and 2.5 invalid configurations", func(t *testing.T) {
		callback := new(oidcWorld).returning(t, good)
		for name, bad := range map[string]struct {
			properties string
			oidc       *auth.OIDC
		}{
			"2.4: a callback and an environment":          {"ENVIRONMENT:test", &auth.OIDC{Callback: callback}},
			"2.5: allowed hosts and an environment":       {"ENVIRONMENT:azure,TOKEN_RESOURCE:x", &auth.OIDC{AllowedHosts: []string{}}},
			"allowed hosts and a callback":                {"", &auth.OIDC{Callback: callback, AllowedHosts: []string{"localhost"}}},
			"two callbacks":                               {"", &auth.OIDC{Callback: callback, HumanCallback: callback}},
			"neither":                                     {"", nil},
			"nothing in it":                               {"", &auth.OIDC{}},
			"1.7: allowed hosts in the connection string": {"ALLOWED_HOSTS:%5B%22example.com%22%5D", &auth.OIDC{HumanCallback: callback}},
		} {
			uri := "mongodb://localhost/?authMechanism=MONGODB-OIDC"
			if bad.properties != "" {
				uri += "&authMechanismProperties=" + bad.properties
			}
			if client, err := allium.Open(uri, allium.ClientOptions{OIDC: bad.oidc}); err == nil {
				client.Close(t.Context())
				t.Errorf("%s: no error", name)
			}
		}
		if client, err := allium.Open("mongodb://u:p@localhost", allium.ClientOptions{OIDC: &auth.OIDC{Callback: callback}}); err == nil {
			client.Close(t.Context())
			t.Error("callback for another mechanism: no error")
		}
	})
	subtest(t, "3.1 authentication failure with cached token", func(t *testing.T) {
		w := startOIDC(t)
		client := w.client(t, "", &auth.OIDC{Callback: w.returning(t, good, access("token 2"))})
		w.find(t, client, true)
		w.tokens(t, "test_user1", "token 2") // from here on the cached one is poison
		w.dropConnections(t, client)
		w.calls.Store(1)
		w.find(t, client, true)
		w.called(t, 2)
	})
	subtest(t, "3.2 authentication failure without cached token", func(t *testing.T) {
		w := startOIDC(t)
		err := w.find(t, w.client(t, "", &auth.OIDC{Callback: w.returning(t, access(wrongToken))}), false)
		if se, ok := errors.AsType[*mongoerr.ServerError](err); !ok || se.Code != 18 || strings.Contains(err.Error(), wrongToken) {
			t.Errorf("error %T: %v", err, err)
		}
		w.called(t, 1)
	})
	subtest(t, "3.3 unexpected error does not clear the cache", func(t *testing.T) {
		w := startOIDC(t)
		client := w.client(t, "", &auth.OIDC{Callback: w.returning(t, good)})
		w.FailCommand(mongotest.Fail{Commands: []string{"saslStart"}, Times: 1, Code: 20})
		w.find(t, client, false)
		w.called(t, 1)
		w.find(t, client, true)
		w.called(t, 1)
	})
	subtest(t, "4.1 reauthentication succeeds", func(t *testing.T) {
		w := startOIDC(t)
		client := w.client(t, "", &auth.OIDC{Callback: w.returning(t, good)})
		w.reauthentication("find")
		w.find(t, client, true)
		w.called(t, 2)
	})
	for command, name := range map[string]string{"find": "4.2 read commands fail if reauthentication fails", "insert": "4.3 write commands fail if reauthentication fails"} {
		subtest(t, name, func(t *testing.T) {
			w := startOIDC(t)
			client := w.client(t, "", &auth.OIDC{Callback: w.returning(t, good, access(wrongToken))})
			do := func(ok bool) { w.find(t, client, ok) }
			if command == "insert" {
				do = func(ok bool) { w.insert(t, client, ok) }
			}
			do(true)
			w.reauthentication(command)
			do(false)
			w.called(t, 2)
		})
	}
	subtest(t, "4.4 speculative authentication is ignored on reauthentication", func(t *testing.T) {
		w := startOIDC(t)
		client := w.client(t, "", &auth.OIDC{Callback: w.returning(t, good)})
		w.find(t, client, true)
		w.dropConnections(t, client)
		w.calls.Store(0)
		var started atomic.Int32 // without those that a hello carries
		w.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
			if c.Name == "saslStart" {
				started.Add(1)
			}
			return nil, nil
		})
		w.insert(t, client, true)
		w.called(t, 0)
		if n := started.Load(); n != 0 {
			t.Errorf("%d saslStart commands in spite of speculative authentication", n)
		}
		w.reauthentication("insert")
		w.insert(t, client, true)
		w.called(t, 1)
		if started.Load() == 0 {
			t.Error("no saslStart command for the reauthentication")
		}
	})
	subtest(t, "4.5 reauthentication with a session", func(t *testing.T) {
		w := startOIDC(t)
		client := w.client(t, "", &auth.OIDC{Callback: w.returning(t, good)})
		w.reauthentication("find")
		session, err := client.StartSession()
		if err != nil {
			t.Fatal(err)
		}
		defer session.End(t.Context())
		if _, err := client.Database("test").Collection("test").Find(allium.WithSession(t.Context(), session), bson.D{}); err != nil {
			t.Error(err)
		}
		w.called(t, 2)
	})
}

// dropConnections breaks the client's connection, by a command that fails.
func (w *oidcWorld) dropConnections(t *testing.T, client *allium.Client) {
	t.Helper()
	w.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 1, CloseConnection: true})
	w.find(t, client, false)
}

// A token in a file, as ENVIRONMENT:test and ENVIRONMENT:k8s have it.
func TestProseOIDCEnvironments(t *testing.T) {
	w := startOIDC(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(tokenOf1+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for environment, variable := range map[string]string{"test": "OIDC_TOKEN_FILE", "k8s": "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(variable, file)
		w.find(t, open(t, w.uri("")+"&authMechanismProperties=ENVIRONMENT:"+environment, allium.ClientOptions{Dialer: w}), true)
		t.Setenv(variable, file+" that is not there")
		if err := w.find(t, open(t, w.uri("")+"&authMechanismProperties=ENVIRONMENT:"+environment, allium.ClientOptions{Dialer: w}), false); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: error %v", environment, err)
		}
	}
}

func TestProseOIDCHuman(t *testing.T) {
	good := auth.OIDCCredential{AccessToken: tokenOf1, RefreshToken: "refresh"}
	person := func(w *oidcWorld, t *testing.T, user string, credentials ...auth.OIDCCredential) *allium.Client {
		return w.client(t, user, &auth.OIDC{HumanCallback: w.returning(t, credentials...)})
	}
	subtest(t, "1.1 single principal, implicit user name", func(t *testing.T) {
		w := startOIDC(t)
		w.find(t, person(w, t, "", good), true)
	})
	subtest(t, "1.2 single principal, explicit user name", func(t *testing.T) {
		w := startOIDC(t)
		w.find(t, person(w, t, "test_user1@example.com", good), true)
	})
	multiple := []mongotest.IdentityProvider{{Issuer: "https://one.example", ClientID: "one", Match: "^test_user1@"}, {Issuer: "https://two.example", ClientID: "two", Match: "^test_user2@"}}
	for i, token := range []string{tokenOf1, tokenOf2} {
		subtest(t, fmt.Sprintf("1.%d multiple principals, user %d", 3+i, 1+i), func(t *testing.T) {
			w := startOIDC(t, multiple...)
			w.find(t, person(w, t, fmt.Sprintf("test_user%d@example.com", 1+i), access(token)), true)
			if got, want := w.params[0].IDP.Issuer, multiple[i].Issuer; got != want {
				t.Errorf("issuer %q, want %q", got, want)
			}
		})
	}
	subtest(t, "1.5 multiple principals, no user", func(t *testing.T) {
		w := startOIDC(t, multiple...)
		w.find(t, person(w, t, "", good), false)
		w.called(t, 0)
	})
	subtest(t, "1.6 allowed hosts", func(t *testing.T) {
		w := startOIDC(t)
		for _, hosts := range [][]string{{}, {"example.com"}, {"0.0.1", "*", ".0.0.1"}} {
			w.find(t, w.client(t, "", &auth.OIDC{HumanCallback: w.returning(t, good), AllowedHosts: hosts}), false)
			uri := strings.Replace(w.uri(""), "?", "?ignored=example.com&", 1)
			w.find(t, open(t, uri, allium.ClientOptions{Dialer: w, OIDC: &auth.OIDC{HumanCallback: w.returning(t, good), AllowedHosts: hosts}}), false)
		}
		w.called(t, 0)
	})
	subtest(t, "a login that takes longer than operations have", func(t *testing.T) {
		w := startOIDC(t)
		login := w.returning(t, access(tokenOf1))
		client := open(t, w.uri("")+"&timeoutMS=2000", allium.ClientOptions{Dialer: w, OIDC: &auth.OIDC{
			HumanCallback: func(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
				time.Sleep(time.Minute)
				return login(ctx, p)
			},
		}})
		for range 2 {
			err := w.find(t, client, false)
			if !mongoerr.IsTimeout(err) || !strings.Contains(err.Error(), "a login by OIDC.HumanCallback has been going on for") {
				t.Errorf("%v", err)
			}
		}
		time.Sleep(time.Minute)
		w.find(t, client, true)
		if n := w.calls.Load(); n != 1 {
			t.Errorf("%d logins", n)
		}
	})
	subtest(t, "a login that panics", func(t *testing.T) {
		w := startOIDC(t)
		client := w.client(t, "", &auth.OIDC{HumanCallback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) { panic("no browser") }})
		if err := w.find(t, client, false); err == nil || !strings.Contains(err.Error(), "no browser") {
			t.Errorf("%v", err)
		}
	})
	subtest(t, "1.8 machine identity provider with human callback", func(t *testing.T) {
		w := startOIDC(t, mongotest.IdentityProvider{Issuer: "https://machines.example"})
		w.find(t, person(w, t, "test_machine", access(tokenOfMachine)), true)
		if idp := w.params[0].IDP; idp.Issuer != "https://machines.example" || idp.ClientID != "" {
			t.Errorf("identity provider %+v", idp)
		}
	})
	subtest(t, "2.1 valid callback inputs", func(t *testing.T) {
		w := startOIDC(t)
		w.find(t, person(w, t, "", good), true)
		p := w.params[0]
		if p.Version != 1 || p.Username != "" || p.RefreshToken != "" || p.IDP == nil || p.IDP.Issuer != "https://idp.example" || p.IDP.ClientID != "abcd" ||
			!slices.Equal(p.IDP.RequestScopes, []string{"fizz", "buzz"}) {
			t.Errorf("the callback got %+v, identity provider %+v", p, p.IDP)
		}
	})
	subtest(t, "2.2 callback returns nothing", func(t *testing.T) {
		w := startOIDC(t)
		w.find(t, person(w, t, "", auth.OIDCCredential{}), false)
	})
	subtest(t, "2.3 refresh token is passed to the callback", func(t *testing.T) {
		w := startOIDC(t)
		client := person(w, t, "", good)
		w.find(t, client, true)
		w.reauthentication("find")
		w.find(t, client, true)
		w.called(t, 2)
		if w.params[0].RefreshToken != "" || w.params[1].RefreshToken != "refresh" || w.params[1].IDP.Issuer != "https://idp.example" {
			t.Errorf("the callback got %+v", w.params)
		}
	})
	subtest(t, "3.1 speculative authentication with a cached token", func(t *testing.T) {
		w := startOIDC(t)
		client := person(w, t, "", good)
		w.dropConnections(t, client)
		w.FailCommand(mongotest.Fail{Commands: []string{"saslStart"}, Times: 1, Code: 18})
		w.find(t, client, true)
	})
	subtest(t, "3.2 no speculative authentication without one", func(t *testing.T) {
		w := startOIDC(t)
		w.FailCommand(mongotest.Fail{Commands: []string{"saslStart"}, Times: 1, Code: 18})
		w.find(t, person(w, t, "", good), false)
	})
	subtest(t, "4.1 reauthentication succeeds", func(t *testing.T) {
		w := startOIDC(t)
		var seen []string
		client := open(t, w.uri(""), allium.ClientOptions{Dialer: w, OIDC: &auth.OIDC{HumanCallback: w.returning(t, good)}, CommandMonitor: &event.CommandMonitor{
			Started:   func(_ context.Context, e *event.CommandStarted) { seen = append(seen, "started "+e.CommandName) },
			Succeeded: func(_ context.Context, e *event.CommandSucceeded) { seen = append(seen, "succeeded "+e.CommandName) },
			Failed:    func(_ context.Context, e *event.CommandFailed) { seen = append(seen, "failed "+e.CommandName) },
		}})
		w.find(t, client, true)
		w.called(t, 1)
		seen = nil
		w.reauthentication("find")
		w.find(t, client, true)
		w.called(t, 2)
		if want := []string{"started find", "failed find", "started find", "succeeded find"}; !slices.Equal(seen, want) {
			t.Errorf("events %q, want %q", seen, want)
		}
	})
	for name, second := range map[string]auth.OIDCCredential{
		"4.2 reauthentication succeeds without refresh token":    access(tokenOf1),
		"4.3 reauthentication succeeds after refresh has failed": {AccessToken: tokenOf1, RefreshToken: "bad"},
	} {
		subtest(t, name, func(t *testing.T) {
			w := startOIDC(t)
			client := person(w, t, "", second)
			w.find(t, client, true)
			w.called(t, 1)
			w.reauthentication("find")
			w.find(t, client, true)
			w.called(t, 2)
		})
	}
	subtest(t, "4.4 reauthentication fails", func(t *testing.T) {
		w := startOIDC(t)
		client := person(w, t, "", good, auth.OIDCCredential{AccessToken: wrongToken, RefreshToken: "bad"})
		w.find(t, client, true)
		w.called(t, 1)
		w.reauthentication("find")
		w.find(t, client, false)
		w.called(t, 3)
	})
}
