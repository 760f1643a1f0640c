package rig

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/internal/testdeploy"
	"allium/mongotest"
)

// Tokens of the users, and one of nobody.
const (
	TokenOf1, TokenOf2, TokenOfMachine = "token of test_user1", "token of test_user2", "token of test_machine"
	WrongToken                         = "token of nobody"
)

// OIDC is a deployment and what a client's callback saw.
type OIDC struct {
	*mongotest.Deployment
	Calls  atomic.Int32
	active atomic.Int32
	mu     sync.Mutex
	Params []auth.OIDCParams
}

// Tokens makes these the valid tokens of a user.
func (w *OIDC) Tokens(t *testing.T, user string, tokens ...string) {
	t.Helper()
	if err := w.AddUser(mongotest.User{Name: user, DB: "$external", Roles: []string{"root"},
		AccessTokens: tokens}); err != nil {
		t.Fatal(err)
	}
}

// Returning is a callback that returns the credentials in turn, and the last one from then on.
func (w *OIDC) Returning(t *testing.T, credentials ...auth.OIDCCredential) auth.OIDCCallback {
	return func(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
		if w.active.Add(1) > 1 {
			t.Error("the callback is called twice at once")
		}
		defer w.active.Add(-1)
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the callback has no deadline")
		}
		w.mu.Lock()
		w.Params = append(w.Params, p)
		w.mu.Unlock()
		n := int(w.Calls.Add(1))
		return credentials[min(n, len(credentials))-1], nil
	}
}

// URI is that of a client without a user's name.
func (w *OIDC) URI(user string) string {
	if user != "" {
		user = strings.ReplaceAll(user, "@", "%40") + "@"
	}
	return "mongodb://" + user + w.Hosts()[0] + "/?authMechanism=MONGODB-OIDC&retryReads=false"
}

// Client opens a client.
func (w *OIDC) Client(t *testing.T, user string, o *auth.OIDC) *allium.Client {
	t.Helper()
	return Open(t, w.URI(user), allium.ClientOptions{OIDC: o, Dialer: w})
}

// Find fails unless its outcome is as wanted.
func (w *OIDC) Find(t *testing.T, client *allium.Client, ok bool) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := client.Database("test").Collection("test").Find(ctx, bson.D{})
	if ok != (err == nil) {
		t.Errorf("find: %v, want success %v", err, ok)
	}
	return err
}

// Insert fails unless its outcome is as wanted.
func (w *OIDC) Insert(t *testing.T, client *allium.Client, ok bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := client.Database("test").Collection("test").InsertOne(ctx, bson.D{}); ok != (err == nil) {
		t.Errorf("insert: %v, want success %v", err, ok)
	}
}

// Called compares the number of calls of the callback.
func (w *OIDC) Called(t *testing.T, want int) {
	t.Helper()
	if got := int(w.Calls.Load()); got != want {
		t.Errorf("the callback was called %d times, want %d", got, want)
	}
}

// Reauthentication makes a command fail once, as an expired token does.
func (w *OIDC) Reauthentication(command string) {
	w.FailCommand(mongotest.Fail{Commands: []string{command}, Times: 1, Code: 391})
}

// DropConnections breaks the client's connection, by a command that fails.
func (w *OIDC) DropConnections(t *testing.T, client *allium.Client) {
	t.Helper()
	w.FailCommand(mongotest.Fail{Commands: []string{"find"}, Times: 1, CloseConnection: true})
	w.Find(t, client, false)
}

// StartOIDC starts a deployment with three users, each with a token.
func StartOIDC(t *testing.T, providers ...mongotest.IdentityProvider) *OIDC {
	t.Helper()
	if providers == nil {
		providers = []mongotest.IdentityProvider{{Issuer: "https://idp.example", ClientID: "abcd",
			RequestScopes: []string{"fizz", "buzz"}}}
	}
	w := &OIDC{Deployment: testdeploy.Mock(t, "an in-memory network", mongotest.Auth("root", "root"),
		mongotest.OIDC(providers...), mongotest.InMemory())}
	w.Tokens(t, "test_user1", TokenOf1)
	w.Tokens(t, "test_user2", TokenOf2)
	w.Tokens(t, "test_machine", TokenOfMachine)
	return w
}

// AccessToken is a credential that does not say when it expires.
func AccessToken(token string) auth.OIDCCredential { return auth.OIDCCredential{AccessToken: token} }
