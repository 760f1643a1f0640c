package prose

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
	"allium/internal/drivertest/rig"
	"allium/mongoerr"
	"allium/mongotest"
)

// The prose tests of the specification Authentication, tests/mongodb-oidc.md. The server is a
// mongotest with one identity provider, unless a test says otherwise, on which a token is any text
// that a user has.

// subtest runs a subtest on a clock of its own.
func subtest(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func TestProseOIDCMachine(t *testing.T) {
	good := rig.AccessToken(rig.TokenOf1)
	subtest(t, "1.1 callback is called during authentication", func(t *testing.T) {
		w := rig.StartOIDC(t)
		w.Find(t, w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, good)}), true)
		w.Called(t, 1)
	})
	subtest(t, "1.2 callback is called once for multiple connections", func(t *testing.T) {
		w := rig.StartOIDC(t)
		client := w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, good)})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 100 {
					w.Find(t, client, true)
				}
			})
		}
		wg.Wait()
		w.Called(t, 1)
	})
	subtest(t, "2.1 valid callback inputs", func(t *testing.T) {
		w := rig.StartOIDC(t)
		w.Find(t, w.Client(t, "test_user1", &auth.OIDC{Callback: w.Returning(t, good)}), true)
		if len(w.Params) != 1 || w.Params[0] != (auth.OIDCParams{Version: 1, Username: "test_user1"}) {
			t.Errorf("the callback got %+v", w.Params)
		}
	})
	subtest(t, "2.2 and 2.3 callback returns nothing", func(t *testing.T) {
		w := rig.StartOIDC(t)
		err := w.Find(t, w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, auth.OIDCCredential{})}), false)
		if ae, ok := errors.AsType[*mongoerr.AuthError](err); !ok || !strings.Contains(ae.Error(), "no access token") {
			t.Errorf("error %T: %v", err, err)
		}
		err = w.Find(t, w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, auth.OIDCCredential{AccessToken: rig.TokenOf1, ExpiresIn: -1})}), false)
		if _, ok := errors.AsType[*mongoerr.AuthError](err); !ok {
			t.Errorf("error %T: %v", err, err)
		}
		broken := errors.New("no network")
		callback := func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) { return good, broken }
		if err := w.Find(t, w.Client(t, "", &auth.OIDC{Callback: callback}), false); !errors.Is(err, broken) {
			t.Errorf("error %T: %v", err, err)
		}
	})
	subtest(t, "2.4 and 2.5 invalid configurations", func(t *testing.T) {
		callback := new(rig.OIDC).Returning(t, good)
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
		w := rig.StartOIDC(t)
		client := w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, good, rig.AccessToken("token 2"))})
		w.Find(t, client, true)
		w.Tokens(t, "test_user1", "token 2") // from here on the cached one is poison
		w.DropConnections(t, client)
		w.Calls.Store(1)
		w.Find(t, client, true)
		w.Called(t, 2)
	})
	subtest(t, "3.2 authentication failure without cached token", func(t *testing.T) {
		w := rig.StartOIDC(t)
		err := w.Find(t, w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, rig.AccessToken(rig.WrongToken))}), false)
		if se, ok := errors.AsType[*mongoerr.ServerError](err); !ok || se.Code != 18 || strings.Contains(err.Error(), rig.WrongToken) {
			t.Errorf("error %T: %v", err, err)
		}
		w.Called(t, 1)
	})
	subtest(t, "3.3 unexpected error does not clear the cache", func(t *testing.T) {
		w := rig.StartOIDC(t)
		client := w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, good)})
		w.FailCommand(mongotest.Fail{Commands: []string{"saslStart"}, Times: 1, Code: 20})
		w.Find(t, client, false)
		w.Called(t, 1)
		w.Find(t, client, true)
		w.Called(t, 1)
	})
	subtest(t, "4.1 reauthentication succeeds", func(t *testing.T) {
		w := rig.StartOIDC(t)
		client := w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, good)})
		w.Reauthentication("find")
		w.Find(t, client, true)
		w.Called(t, 2)
	})
	for command, name := range map[string]string{"find": "4.2 read commands fail if reauthentication fails", "insert": "4.3 write commands fail if reauthentication fails"} {
		subtest(t, name, func(t *testing.T) {
			w := rig.StartOIDC(t)
			client := w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, good, rig.AccessToken(rig.WrongToken))})
			do := func(ok bool) { w.Find(t, client, ok) }
			if command == "insert" {
				do = func(ok bool) { w.Insert(t, client, ok) }
			}
			do(true)
			w.Reauthentication(command)
			do(false)
			w.Called(t, 2)
		})
	}
	subtest(t, "4.4 speculative authentication is ignored on reauthentication", func(t *testing.T) {
		w := rig.StartOIDC(t)
		client := w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, good)})
		w.Find(t, client, true)
		w.DropConnections(t, client)
		w.Calls.Store(0)
		var started atomic.Int32 // without those that a hello carries
		w.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
			if c.Name == "saslStart" {
				started.Add(1)
			}
			return nil, nil
		})
		w.Insert(t, client, true)
		w.Called(t, 0)
		if n := started.Load(); n != 0 {
			t.Errorf("%d saslStart commands in spite of speculative authentication", n)
		}
		w.Reauthentication("insert")
		w.Insert(t, client, true)
		w.Called(t, 1)
		if started.Load() == 0 {
			t.Error("no saslStart command for the reauthentication")
		}
	})
	subtest(t, "4.5 reauthentication with a session", func(t *testing.T) {
		w := rig.StartOIDC(t)
		client := w.Client(t, "", &auth.OIDC{Callback: w.Returning(t, good)})
		w.Reauthentication("find")
		session, err := client.StartSession()
		if err != nil {
			t.Fatal(err)
		}
		defer session.End(t.Context())
		if _, err := client.Database("test").Collection("test").Find(allium.WithSession(t.Context(), session), bson.D{}); err != nil {
			t.Error(err)
		}
		w.Called(t, 2)
	})
}

// A token in a file, as ENVIRONMENT:test and ENVIRONMENT:k8s have it.
func TestProseOIDCEnvironments(t *testing.T) {
	w := rig.StartOIDC(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(rig.TokenOf1+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for environment, variable := range map[string]string{"test": "OIDC_TOKEN_FILE", "k8s": "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(variable, file)
		w.Find(t, rig.Open(t, w.URI("")+"&authMechanismProperties=ENVIRONMENT:"+environment, allium.ClientOptions{Dialer: w}), true)
		t.Setenv(variable, file+" that is not there")
		if err := w.Find(t, rig.Open(t, w.URI("")+"&authMechanismProperties=ENVIRONMENT:"+environment, allium.ClientOptions{Dialer: w}), false); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: error %v", environment, err)
		}
	}
}

func TestProseOIDCHuman(t *testing.T) {
	good := auth.OIDCCredential{AccessToken: rig.TokenOf1, RefreshToken: "refresh"}
	person := func(w *rig.OIDC, t *testing.T, user string, credentials ...auth.OIDCCredential) *allium.Client {
		return w.Client(t, user, &auth.OIDC{HumanCallback: w.Returning(t, credentials...)})
	}
	subtest(t, "1.1 single principal, implicit user name", func(t *testing.T) {
		w := rig.StartOIDC(t)
		w.Find(t, person(w, t, "", good), true)
	})
	subtest(t, "1.2 single principal, explicit user name", func(t *testing.T) {
		w := rig.StartOIDC(t)
		w.Find(t, person(w, t, "test_user1@example.com", good), true)
	})
	multiple := []mongotest.IdentityProvider{{Issuer: "https://one.example", ClientID: "one", Match: "^test_user1@"}, {Issuer: "https://two.example", ClientID: "two", Match: "^test_user2@"}}
	for i, token := range []string{rig.TokenOf1, rig.TokenOf2} {
		subtest(t, fmt.Sprintf("1.%d multiple principals, user %d", 3+i, 1+i), func(t *testing.T) {
			w := rig.StartOIDC(t, multiple...)
			w.Find(t, person(w, t, fmt.Sprintf("test_user%d@example.com", 1+i), rig.AccessToken(token)), true)
			if got, want := w.Params[0].IDP.Issuer, multiple[i].Issuer; got != want {
				t.Errorf("issuer %q, want %q", got, want)
			}
		})
	}
	subtest(t, "1.5 multiple principals, no user", func(t *testing.T) {
		w := rig.StartOIDC(t, multiple...)
		w.Find(t, person(w, t, "", good), false)
		w.Called(t, 0)
	})
	subtest(t, "1.6 allowed hosts", func(t *testing.T) {
		w := rig.StartOIDC(t)
		for _, hosts := range [][]string{{}, {"example.com"}, {"0.0.1", "*", ".0.0.1"}} {
			w.Find(t, w.Client(t, "", &auth.OIDC{HumanCallback: w.Returning(t, good), AllowedHosts: hosts}), false)
			uri := strings.Replace(w.URI(""), "?", "?ignored=example.com&", 1)
			w.Find(t, rig.Open(t, uri, allium.ClientOptions{Dialer: w, OIDC: &auth.OIDC{HumanCallback: w.Returning(t, good), AllowedHosts: hosts}}), false)
		}
		w.Called(t, 0)
	})
	subtest(t, "a login that takes longer than operations have", func(t *testing.T) {
		w := rig.StartOIDC(t)
		login := w.Returning(t, rig.AccessToken(rig.TokenOf1))
		client := rig.Open(t, w.URI("")+"&timeoutMS=2000", allium.ClientOptions{Dialer: w, OIDC: &auth.OIDC{
			HumanCallback: func(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
				time.Sleep(time.Minute)
				return login(ctx, p)
			},
		}})
		for range 2 {
			err := w.Find(t, client, false)
			if !mongoerr.IsTimeout(err) || !strings.Contains(err.Error(), "a login by OIDC.HumanCallback has been going on for") {
				t.Errorf("%v", err)
			}
		}
		time.Sleep(time.Minute)
		w.Find(t, client, true)
		if n := w.Calls.Load(); n != 1 {
			t.Errorf("%d logins", n)
		}
	})
	subtest(t, "a login that panics", func(t *testing.T) {
		w := rig.StartOIDC(t)
		client := w.Client(t, "", &auth.OIDC{HumanCallback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) { panic("no browser") }})
		if err := w.Find(t, client, false); err == nil || !strings.Contains(err.Error(), "no browser") {
			t.Errorf("%v", err)
		}
	})
	subtest(t, "1.8 machine identity provider with human callback", func(t *testing.T) {
		w := rig.StartOIDC(t, mongotest.IdentityProvider{Issuer: "https://machines.example"})
		w.Find(t, person(w, t, "test_machine", rig.AccessToken(rig.TokenOfMachine)), true)
		if idp := w.Params[0].IDP; idp.Issuer != "https://machines.example" || idp.ClientID != "" {
			t.Errorf("identity provider %+v", idp)
		}
	})
	subtest(t, "2.1 valid callback inputs", func(t *testing.T) {
		w := rig.StartOIDC(t)
		w.Find(t, person(w, t, "", good), true)
		p := w.Params[0]
		if p.Version != 1 || p.Username != "" || p.RefreshToken != "" || p.IDP == nil || p.IDP.Issuer != "https://idp.example" || p.IDP.ClientID != "abcd" ||
			!slices.Equal(p.IDP.RequestScopes, []string{"fizz", "buzz"}) {
			t.Errorf("the callback got %+v, identity provider %+v", p, p.IDP)
		}
	})
	subtest(t, "2.2 callback returns nothing", func(t *testing.T) {
		w := rig.StartOIDC(t)
		w.Find(t, person(w, t, "", auth.OIDCCredential{}), false)
	})
	subtest(t, "2.3 refresh token is passed to the callback", func(t *testing.T) {
		w := rig.StartOIDC(t)
		client := person(w, t, "", good)
		w.Find(t, client, true)
		w.Reauthentication("find")
		w.Find(t, client, true)
		w.Called(t, 2)
		if w.Params[0].RefreshToken != "" || w.Params[1].RefreshToken != "refresh" || w.Params[1].IDP.Issuer != "https://idp.example" {
			t.Errorf("the callback got %+v", w.Params)
		}
	})
	subtest(t, "3.1 speculative authentication with a cached token", func(t *testing.T) {
		w := rig.StartOIDC(t)
		client := person(w, t, "", good)
		w.DropConnections(t, client)
		w.FailCommand(mongotest.Fail{Commands: []string{"saslStart"}, Times: 1, Code: 18})
		w.Find(t, client, true)
	})
	subtest(t, "3.2 no speculative authentication without one", func(t *testing.T) {
		w := rig.StartOIDC(t)
		w.FailCommand(mongotest.Fail{Commands: []string{"saslStart"}, Times: 1, Code: 18})
		w.Find(t, person(w, t, "", good), false)
	})
	subtest(t, "4.1 reauthentication succeeds", func(t *testing.T) {
		w := rig.StartOIDC(t)
		var seen []string
		client := rig.Open(t, w.URI(""), allium.ClientOptions{Dialer: w, OIDC: &auth.OIDC{HumanCallback: w.Returning(t, good)}, CommandMonitor: &event.CommandMonitor{
			Started:   func(_ context.Context, e *event.CommandStarted) { seen = append(seen, "started "+e.CommandName) },
			Succeeded: func(_ context.Context, e *event.CommandSucceeded) { seen = append(seen, "succeeded "+e.CommandName) },
			Failed:    func(_ context.Context, e *event.CommandFailed) { seen = append(seen, "failed "+e.CommandName) },
		}})
		w.Find(t, client, true)
		w.Called(t, 1)
		seen = nil
		w.Reauthentication("find")
		w.Find(t, client, true)
		w.Called(t, 2)
		if want := []string{"started find", "failed find", "started find", "succeeded find"}; !slices.Equal(seen, want) {
			t.Errorf("events %q, want %q", seen, want)
		}
	})
	for name, second := range map[string]auth.OIDCCredential{
		"4.2 reauthentication succeeds without refresh token":    rig.AccessToken(rig.TokenOf1),
		"4.3 reauthentication succeeds after refresh has failed": {AccessToken: rig.TokenOf1, RefreshToken: "bad"},
	} {
		subtest(t, name, func(t *testing.T) {
			w := rig.StartOIDC(t)
			client := person(w, t, "", second)
			w.Find(t, client, true)
			w.Called(t, 1)
			w.Reauthentication("find")
			w.Find(t, client, true)
			w.Called(t, 2)
		})
	}
	subtest(t, "4.4 reauthentication fails", func(t *testing.T) {
		w := rig.StartOIDC(t)
		client := person(w, t, "", good, auth.OIDCCredential{AccessToken: rig.WrongToken, RefreshToken: "bad"})
		w.Find(t, client, true)
		w.Called(t, 1)
		w.Reauthentication("find")
		w.Find(t, client, false)
		w.Called(t, 3)
	})
}
