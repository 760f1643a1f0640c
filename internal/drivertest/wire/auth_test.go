package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/event"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// authDeployment has the users of the prose tests "SCRAM-SHA-256 and mechanism negotiation" (step
// 1), and two on $external.
func authDeployment(t *testing.T, opts ...mongotest.Option) *mongotest.Deployment {
	t.Helper()
	d := testdeploy.Mock(t, "an in-memory network", append(opts, mongotest.Auth("root", "root"), mongotest.InMemory())...)
	sha1, sha256 := []string{"SCRAM-SHA-1"}, []string{"SCRAM-SHA-256"}
	for _, u := range []mongotest.User{
		{Name: "sha1", Password: "sha1", Mechanisms: sha1, Roles: []string{"root"}},
		{Name: "sha256", Password: "sha256", Mechanisms: sha256, Roles: []string{"root"}},
		{Name: "both", Password: "both", Roles: []string{"root"}},
		{Name: "IX", Password: "IX", Mechanisms: sha256, Roles: []string{"root"}},
		{Name: "\u2168", Password: "\u2163", Mechanisms: sha256, Roles: []string{"root"}},
		{Name: "ldap", Password: "open sesame", DB: "$external", Roles: []string{"root"}},
	} {
		if err := d.AddUser(u); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// useDatabase runs a command that needs authentication.
func useDatabase(t *testing.T, d *mongotest.Deployment, uri string) error {
	t.Helper()
	return useDatabaseAs(t, d, uri, nil)
}

// useDatabaseAs is useDatabase with a credential that is given in code, unless it is nil.
func useDatabaseAs(t *testing.T, d *mongotest.Deployment, uri string, as *auth.Credential) error {
	t.Helper()
	client := rig.Open(t, uri, allium.ClientOptions{Dialer: d, TLS: d.TLSConfig(), Credential: as})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "usersInfo", Value: 1}})
	return err
}

// Authentication, prose test "SCRAM-SHA-256 and mechanism negotiation", steps 2 to 4, with the
// driver as a whole: with the credential in the connection string, and in code.
func TestProseAuthSCRAM(t *testing.T) {
	d := authDeployment(t)
	for _, tt := range []struct {
		step                 int
		user, password, mech string
		ok                   bool
	}{
		{2, "sha1", "sha1", "", true}, {2, "sha1", "sha1", "SCRAM-SHA-1", true},
		{2, "sha256", "sha256", "", true}, {2, "sha256", "sha256", "SCRAM-SHA-256", true},
		{2, "both", "both", "", true}, {2, "both", "both", "SCRAM-SHA-1", true}, {2, "both", "both", "SCRAM-SHA-256", true},
		{3, "sha1", "sha1", "SCRAM-SHA-256", false}, {3, "sha256", "sha256", "SCRAM-SHA-1", false},
		{3, "nobody", "x", "", false}, {3, "both", "wrong", "", false},
		{4, "IX", "IX", "", true}, {4, "IX", "I\u00adX", "", true},
		{4, "\u2168", "IV", "", true}, {4, "\u2168", "I\u00adV", "", true},
	} {
		check := func(t *testing.T, err error) {
			t.Helper()
			if tt.ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			se, isServer := errors.AsType[*mongoerr.ServerError](err)
			_, isAuth := errors.AsType[*mongoerr.AuthError](err)
			if !isAuth || !isServer || se.Code != 18 {
				t.Errorf("error %T: %v", err, err)
			}
		}
		name := fmt.Sprintf("step %d/%s %s %s", tt.step, tt.user, tt.password, tt.mech)
		t.Run(name+"/in the string", func(t *testing.T) {
			uri := "mongodb://" + url.UserPassword(tt.user, tt.password).String() + "@" + d.Hosts()[0] + "/admin"
			if tt.mech != "" {
				uri += "?authMechanism=" + tt.mech
			}
			check(t, useDatabase(t, d, uri))
		})
		t.Run(name+"/in code", func(t *testing.T) {
			check(t, useDatabaseAs(t, d, "mongodb://"+d.Hosts()[0], &auth.Credential{Username: tt.user, Password: auth.Secret(tt.password), Source: "admin", Mechanism: auth.Mechanism(tt.mech)}))
		})
	}
	// Negotiation selects SCRAM-SHA-256 for a user of both, wherever the credential comes from.
	var mu sync.Mutex
	var used []string
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		mu.Lock()
		defer mu.Unlock()
		body := c.Body
		if s, ok := body.Lookup("speculativeAuthenticate").Document(); ok {
			body = s
		}
		if m, ok := body.Lookup("mechanism").StringValue(); ok {
			used = append(used, m)
		}
		return nil, nil
	})
	if err := errors.Join(useDatabase(t, d, "mongodb://both:both@"+d.Hosts()[0]+"/admin"),
		useDatabaseAs(t, d, "mongodb://"+d.Hosts()[0], &auth.Credential{Username: "both", Password: "both"})); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(used) < 2 || slices.ContainsFunc(used, func(m string) bool { return auth.Mechanism(m) != auth.MechanismScramSHA256 }) {
		t.Errorf("the mechanisms used were %q", used)
	}
}

func TestAuthPlainAndX509(t *testing.T) {
	d := authDeployment(t, mongotest.TLS())
	if err := d.AddUser(mongotest.User{Name: d.ClientSubject(), DB: "$external", Roles: []string{"root"}}); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{
		"mongodb://ldap:open%20sesame@" + d.Hosts()[0] + "/?authMechanism=PLAIN",
		"mongodb://" + d.Hosts()[0] + "/?authMechanism=MONGODB-X509",
		"mongodb://" + url.PathEscape(d.ClientSubject()) + "@" + d.Hosts()[0] + "/?authMechanism=MONGODB-X509",
	} {
		if err := useDatabase(t, d, uri); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if err := useDatabase(t, d, "mongodb://ldap:wrong@"+d.Hosts()[0]+"/?authMechanism=PLAIN"); err == nil {
		t.Error("wrong password: no error")
	}
}

// A wrong password fails the operation at once; it is not tried again and again.
func TestWrongPasswordIsNotRetried(t *testing.T) {
	d := authDeployment(t)
	var attempts atomic.Int32
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		if c.Name == "saslStart" {
			attempts.Add(1)
		}
		return nil, nil
	})
	if err := useDatabase(t, d, "mongodb://both:wrong@"+d.Hosts()[0]+"/?authMechanism=SCRAM-SHA-1"); err == nil {
		t.Fatal("no error")
	}
	// One at most: the first message travels with the hello.
	if n := attempts.Load(); n > 1 {
		t.Errorf("%d attempts", n)
	}
}

// A server that wants a connection to be authenticated again gets that, and then the command once
// more.
func TestReauthentication(t *testing.T) {
	d := authDeployment(t)
	var commands []string
	var mu sync.Mutex
	refusals := 1
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		mu.Lock()
		defer mu.Unlock()
		if c.Name == "usersInfo" || strings.HasPrefix(c.Name, "sasl") {
			commands = append(commands, c.Name)
		}
		if c.Name == "usersInfo" && refusals > 0 {
			refusals--
			return bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 391}, {Key: "codeName", Value: "ReauthenticationRequired"}})
		}
		return nil, nil
	})
	uri := "mongodb://both:both@" + d.Hosts()[0] + "/?authMechanism=SCRAM-SHA-256"
	if err := useDatabase(t, d, uri); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	got := strings.Join(commands, " ")
	commands, refusals = nil, 2
	mu.Unlock()
	// The first saslContinue belongs to the handshake, whose first message travelled with the
	// hello.
	if want := "saslContinue usersInfo saslStart saslContinue usersInfo"; got != want {
		t.Errorf("commands: %s, want %s", got, want)
	}
	// If the second attempt is refused too, the program gets to know.
	err := useDatabase(t, d, uri)
	if e, ok := errors.AsType[*mongoerr.ServerError](err); !ok || e.Code != 391 {
		t.Errorf("error %v", err)
	}
}

// A connection that breaks while it is authenticated again clears the pool, as one that is being
// made does. The read is tried again on a new one.
func TestReauthenticationBreaks(t *testing.T) {
	d := authDeployment(t)
	var refusals, breaks atomic.Int32
	d.OnCommand(func(c *mongotest.Command) (bson.Raw, error) {
		switch {
		case c.Name == "find" && refusals.Add(-1) >= 0:
			return bson.Marshal(bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 391}, {Key: "codeName", Value: "ReauthenticationRequired"}})
		case c.Name == "saslStart" && breaks.Add(-1) >= 0:
			return nil, errors.New("broken")
		}
		return nil, nil
	})
	var cleared atomic.Int32
	client := rig.Open(t, "mongodb://both:both@"+d.Hosts()[0]+"/?authMechanism=SCRAM-SHA-256", allium.ClientOptions{Dialer: d,
		PoolMonitor: &event.PoolMonitor{PoolCleared: func(*event.PoolCleared) { cleared.Add(1) }}})
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	refusals.Store(1)
	breaks.Store(1)
	_, err := client.Database("db").Collection("coll").FindOne(t.Context(), bson.D{})
	if !errors.Is(err, mongoerr.ErrNoDocuments) || cleared.Load() != 1 {
		t.Errorf("error %v, the pool was cleared %d times", err, cleared.Load())
	}
}

// The password of PLAIN does not leave the machine in clear, unless the program says so.
func TestPlainWithoutTLS(t *testing.T) {
	const credential = "u:open%20sesame@"
	for _, tt := range []struct {
		hosts, options string
		o              allium.ClientOptions
		ok             bool
	}{
		{hosts: "db.example"},
		{hosts: "localhost,10.1.2.3:27018"},
		{hosts: "localhost", o: allium.ClientOptions{Proxy: &allium.Proxy{Host: "proxy.example"}}},
		{hosts: "db.example", o: allium.ClientOptions{AllowPlainWithoutTLS: true}, ok: true},
		{hosts: "db.example", options: "&tls=true", ok: true},
		{hosts: "db.example", o: allium.ClientOptions{TLS: &tls.Config{}}, ok: true},
		{hosts: "localhost,127.0.0.1:1,[::1]:2,%2Ftmp%2Fmongodb-1.sock", ok: true},
	} {
		client, err := allium.Open("mongodb://"+credential+tt.hosts+"/?authMechanism=PLAIN"+tt.options, tt.o)
		if err == nil {
			client.Close(t.Context())
		}
		if tt.ok != (err == nil) || err != nil && (!strings.Contains(err.Error(), "AllowPlainWithoutTLS") || strings.Contains(err.Error(), "sesame")) {
			t.Errorf("%s%s, %v: error %v", tt.hosts, tt.options, tt.o, err)
		}
	}
}
