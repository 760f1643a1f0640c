package auth

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"allium/auth"
	"allium/internal/uri"
	"allium/mongoerr"
)

// A vault hands out credentials, and counts.
type vault struct {
	answers []func(context.Context) (auth.Credential, error)
	asked   int
}

func (v *vault) next(ctx context.Context) (auth.Credential, error) {
	v.asked++
	return v.answers[min(v.asked, len(v.answers))-1](ctx)
}

func hands(c auth.Credential) func(context.Context) (auth.Credential, error) {
	return func(context.Context) (auth.Credential, error) { return c, nil }
}

// TestAsking makes connections one after another, as package conn does: an attempt that says so is
// made anew.
func TestAsking(t *testing.T) {
	sealed := errors.New("the vault is sealed")
	right, wrong := hands(auth.Credential{Username: "both", Password: "both"}), hands(auth.Credential{Username: "both", Password: "old"})
	fails := func(context.Context) (auth.Credential, error) { return auth.Credential{}, sealed }
	type outcome struct {
		asked int    // in all, after the connection
		err   string // "" for a connection that is authenticated
	}
	for name, tt := range map[string]struct {
		answers []func(context.Context) (auth.Credential, error)
		want    []outcome
	}{
		"right":          {[]func(context.Context) (auth.Credential, error){right}, []outcome{{1, ""}, {1, ""}, {1, ""}}},
		"old, then new":  {[]func(context.Context) (auth.Credential, error){wrong, right}, []outcome{{2, ""}, {2, ""}}},
		"another user":   {[]func(context.Context) (auth.Credential, error){wrong, hands(auth.Credential{Username: "sha1", Password: "sha1"})}, []outcome{{2, ""}, {2, ""}}},
		"always wrong":   {[]func(context.Context) (auth.Credential, error){wrong}, []outcome{{2, "Authentication failed"}, {4, "Authentication failed"}}},
		"wrong for long": {[]func(context.Context) (auth.Credential, error){wrong, wrong, wrong, right}, []outcome{{2, "Authentication failed"}, {4, ""}, {4, ""}}},
		"none":           {[]func(context.Context) (auth.Credential, error){fails, right}, []outcome{{1, "the vault is sealed"}, {2, ""}}},
		"none in place":  {[]func(context.Context) (auth.Credential, error){wrong, fails, right}, []outcome{{2, "Authentication failed.; ClientOptions.Credentials: the vault is sealed"}, {3, ""}}},
		"nonsense": {[]func(context.Context) (auth.Credential, error){hands(auth.Credential{Username: "both"}), right},
			[]outcome{{1, "ClientOptions.Credentials: mechanism SCRAM (default): there is no password"}, {2, ""}}},
		"another mechanism": {[]func(context.Context) (auth.Credential, error){wrong, hands(auth.Credential{Username: "ldap", Password: "open sesame", Mechanism: auth.MechanismPlain})},
			[]outcome{{2, ""}, {2, ""}}},
		"no Kerberos": {[]func(context.Context) (auth.Credential, error){hands(auth.Credential{Username: "u@R", Mechanism: auth.MechanismGSSAPI}), right},
			[]outcome{{1, "set ClientOptions.GSSAPI"}, {2, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, v := newServer(t), &vault{answers: tt.answers}
			a := NewAsking(v.next, new(uri.Config).Complete, Options{})
			for i, want := range tt.want {
				err := connect(t.Context(), s, a)
				if v.asked != want.asked || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
					t.Errorf("connection %d: asked %d times, %v; want %d, %q", i, v.asked, err, want.asked, want.err)
				}
				if _, ok := errors.AsType[*mongoerr.AuthError](err); err != nil && !ok {
					t.Errorf("connection %d: %T is no AuthError", i, err)
				}
				if strings.Contains(want.err, "sealed") && !errors.Is(err, sealed) {
					t.Errorf("connection %d: %v is not the callback's error", i, err)
				}
			}
		})
	}
}

func connect(ctx context.Context, s *server, a *Authenticator) error {
	attempt, err := connectOnce(ctx, s, a)
	if err != nil {
		var again bool
		if again, err = attempt.Again(ctx, err); again {
			_, err = connectOnce(ctx, s, a)
		}
	}
	return err
}

func connectOnce(ctx context.Context, s *server, a *Authenticator) (*Attempt, error) {
	attempt, err := a.Attempt(ctx, s.Addr())
	if err != nil {
		return nil, err
	}
	return attempt, attempt.Finish(ctx, s, s.hello(attempt))
}

// A connection that must be authenticated again takes the credential that there is by then.
func TestAskingReauthenticates(t *testing.T) {
	s := newServer(t)
	v := &vault{answers: []func(context.Context) (auth.Credential, error){
		hands(auth.Credential{Username: "both", Password: "both"}),
		hands(auth.Credential{Username: "sha256", Password: "sha256"}),
	}}
	a := NewAsking(v.next, new(uri.Config).Complete, Options{})
	attempt, err := a.Attempt(t.Context(), s.Addr())
	if err == nil {
		err = attempt.Finish(t.Context(), s, s.hello(attempt))
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(s.users, "admin.both")
	for range 2 {
		if err := attempt.Reauthenticate(t.Context(), s); err != nil || v.asked != 2 {
			t.Errorf("asked %d times, %v", v.asked, err)
		}
	}
}

// Connections that are made at once ask once, and again once when a server refuses what they have.
func TestAskingOnce(t *testing.T) {
	var asked atomic.Int32
	a := NewAsking(func(context.Context) (auth.Credential, error) {
		if asked.Add(1) == 1 {
			return auth.Credential{Username: "both", Password: "old"}, nil
		}
		return auth.Credential{Username: "both", Password: "both"}, nil
	}, new(uri.Config).Complete, Options{})
	var all, begun sync.WaitGroup
	begun.Add(8)
	for range 8 {
		s := newServer(t)
		all.Go(func() {
			attempt, err := a.Attempt(t.Context(), s.Addr())
			begun.Done()
			begun.Wait() // all have what is refused
			if err == nil {
				err = attempt.Finish(t.Context(), s, s.hello(attempt))
			}
			again, err := attempt.Again(t.Context(), err)
			if !again {
				t.Errorf("the attempt is not repeated: %v", err)
				return
			}
			if _, err := connectOnce(t.Context(), s, a); err != nil {
				t.Errorf("the second attempt: %v", err)
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

// A callback that panics, ends its goroutine or hangs leaves the next connection its turn.
func TestAskingGivesTurn(t *testing.T) {
	hanging := make(chan struct{})
	v := &vault{answers: []func(context.Context) (auth.Credential, error){
		func(context.Context) (auth.Credential, error) { panic("vault") },
		func(ctx context.Context) (auth.Credential, error) {
			close(hanging)
			<-ctx.Done()
			return auth.Credential{}, context.Cause(ctx)
		},
		hands(auth.Credential{Username: "both", Password: "both"}),
	}}
	a := NewAsking(v.next, new(uri.Config).Complete, Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is swallowed")
			}
		}()
		a.Attempt(t.Context(), "h:1")
	}()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { _, err := a.Attempt(ctx, "h:1"); ended <- err }()
	<-hanging
	go func() { _, err := a.Attempt(ctx, "h:1"); ended <- err }() // waits for its turn
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) || !isTimeout(err) {
			t.Errorf("%v is not a TimeoutError of the cancelled context", err)
		}
	}
	s := newServer(t)
	if _, err := connectOnce(t.Context(), s, a); err != nil {
		t.Error(err)
	}
}

func isTimeout(err error) bool {
	_, ok := errors.AsType[*mongoerr.TimeoutError](err)
	return ok
}
