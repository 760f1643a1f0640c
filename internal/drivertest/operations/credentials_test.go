package operations

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/event"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// rotating is a deployment with a user whose password changes.
type rotating struct {
	*mongotest.Deployment
	password atomic.Value // that the program knows
	sealed   atomic.Bool  // the program cannot get at it
	asked    atomic.Int32
	cleared  atomic.Int32 // pools
}

var errSealed = errors.New("the vault is sealed")

func startRotating(t *testing.T) *rotating {
	r := &rotating{Deployment: testdeploy.Mock(t, "an in-memory network", mongotest.Auth("root", "root"), mongotest.InMemory(), mongotest.ReplicaSet(1))}
	r.rotate(t, "first")
	r.password.Store("first")
	return r
}

// rotate gives the user another password at the server, which a program learns when it asks.
func (r *rotating) rotate(t *testing.T, password string) {
	t.Helper()
	if err := r.AddUser(mongotest.User{Name: "ada", Password: password, Roles: []string{"root"}}); err != nil {
		t.Fatal(err)
	}
}

// breakConnections closes those that there are, so that operations make new ones.
func (r *rotating) breakConnections() {
	for _, n := range r.Nodes() {
		n.CloseConnections()
	}
}

func (r *rotating) open(t *testing.T, o allium.ClientOptions) *allium.Client {
	t.Helper()
	o.Dialer, o.PoolMonitor = r, &event.PoolMonitor{PoolCleared: func(*event.PoolCleared) { r.cleared.Add(1) }}
	client, err := allium.Open("mongodb://"+strings.Join(r.Hosts(), ","), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return client
}

func (r *rotating) credentials(ctx context.Context) (auth.Credential, error) {
	r.asked.Add(1)
	if r.sealed.Load() {
		return auth.Credential{}, errSealed
	}
	return auth.Credential{Username: "ada", Password: auth.Secret(r.password.Load().(string))}, nil
}

// TestCredentials: a client asks once for all connections, and once more when the password is
// refused. What it cannot get says nothing about the connections that it has.
func TestCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRotating(t)
		client := r.open(t, allium.ClientOptions{Credentials: r.credentials})
		coll := client.Database("d").Collection("c")
		insert := func() error { _, err := coll.InsertOne(t.Context(), bson.D{}); return err }
		for range 3 {
			if err := insert(); err != nil {
				t.Fatal(err)
			}
		}
		if n := r.asked.Load(); n != 1 {
			t.Errorf("asked %d times, want 1", n)
		}

		r.rotate(t, "second")
		r.password.Store("second")
		r.breakConnections()
		if err := insert(); err != nil {
			t.Error(err)
		}
		if n := r.asked.Load(); n != 2 {
			t.Errorf("asked %d times, want 2", n)
		}

		// The one connection is in use: the next operation needs another one.
		r.rotate(t, "third")
		r.sealed.Store(true)
		r.cleared.Store(0)
		if _, err := coll.InsertMany(t.Context(), []bson.D{{}, {}, {}}); err != nil {
			t.Fatal(err)
		}
		cursor, err := coll.Find(t.Context(), bson.D{}, allium.FindOptions{BatchSize: new(int32(1))})
		if err != nil {
			t.Fatal(err)
		}
		defer cursor.Close(t.Context())
		for n := range 2 {
			hold, held := make(chan struct{}), make(chan struct{})
			var first sync.Once
			r.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
				if c.Name == "getMore" {
					first.Do(func() { close(held) })
					<-hold
				}
				return nil, nil
			})
			more := make(chan bool)
			go func() { more <- cursor.Next(t.Context()) && cursor.Next(t.Context()) }()
			<-held
			err = insert()
			refused, ok := errors.AsType[*mongoerr.AuthError](err)
			if !ok || !errors.Is(err, errSealed) || !strings.Contains(err.Error(), "ClientOptions.Credentials: the vault is sealed") {
				t.Errorf("operation %d: %v", n, err)
			}
			if ok && n == 0 && (refused.Username != "ada" || !strings.Contains(err.Error(), "AuthenticationFailed (18)")) {
				t.Errorf("operation %d: %v does not say whom the server refused", n, err)
			}
			close(hold)
			if !<-more {
				t.Errorf("operation %d: the connection that was there has failed: %v", n, cursor.Err())
			}
			r.OnCommand(nil)
		}
		if n := r.cleared.Load(); n != 0 {
			t.Errorf("the pool was cleared %d times", n)
		}
		r.sealed.Store(false)
		r.password.Store("third")
		r.breakConnections()
		if err := insert(); err != nil {
			t.Error(err)
		}
	})
}

// A retry that cannot authenticate says so, beside what made it necessary.
func TestRetryIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRotating(t)
		client := r.open(t, allium.ClientOptions{Credential: &auth.Credential{Username: "ada", Password: "first"}})
		coll := client.Database("d").Collection("c")
		for name, run := range map[string]func() error{
			"write": func() error { _, err := coll.InsertOne(t.Context(), bson.D{}); return err },
			"read":  func() error { _, err := coll.CountDocuments(t.Context(), bson.D{}); return err },
		} {
			r.rotate(t, "first")
			if err := run(); err != nil {
				t.Fatal(err)
			}
			r.rotate(t, "second")
			r.FailCommand(mongotest.Fail{Commands: []string{"insert", "aggregate"}, Times: 1, CloseConnection: true})
			err := run()
			lost, isLost := errors.AsType[*mongoerr.ConnectionError](err)
			refused, isRefused := errors.AsType[*mongoerr.AuthError](err)
			if !isLost || !isRefused || !strings.HasPrefix(err.Error(), lost.Error()) || !strings.Contains(err.Error(), "; the retry failed: "+refused.Error()) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Credentials excludes what it stands in place of.
func TestCredentialsOptions(t *testing.T) {
	hand := func(context.Context) (auth.Credential, error) { return auth.Credential{}, nil }
	for name, tt := range map[string]struct {
		o    allium.ClientOptions
		want string
	}{
		"Credential": {allium.ClientOptions{Credentials: hand, Credential: &auth.Credential{Username: "u", Password: "p"}}, "options Credential and Credentials exclude each other"},
		"OIDC": {allium.ClientOptions{Credentials: hand, OIDC: &auth.OIDC{Callback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
			return auth.OIDCCredential{}, nil
		}}}, "MONGODB-OIDC, which is not chosen"},
	} {
		if _, err := allium.Open("mongodb://u:p@a:1/", tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
