package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"allium/auth"
	"allium/mongoerr"
)

// asking is how an authenticator gets the credentials of a program that hands them out, because
// they change while it runs.
type asking struct {
	callback func(context.Context) (auth.Credential, error)
	// complete fills in a credential's defaults and checks it.
	complete func(*auth.Credential) (*auth.Credential, error)
	options  Options
	// turn lets one connection ask at a time; those that wait for it use what it got.
	turn chan struct{}
}

// NewAsking returns the authenticator of a program that hands out its credentials. The callback is
// called when there is none, which is so when the first connection is made, and when a server has
// refused the one that there is. complete is Config.Complete of package uri.
func NewAsking(callback func(context.Context) (auth.Credential, error),
	complete func(*auth.Credential) (*auth.Credential, error), o Options) *Authenticator {
	return &Authenticator{asking: &asking{callback: callback, complete: complete, options: o,
		turn: make(chan struct{}, 1)}}
}

// Asks reports whether the program hands out the credentials. One that a server refuses says
// nothing about the server then, nor about the connections that were made with another one.
func (a *Authenticator) Asks() bool { return a != nil && a.asking != nil }

// identity returns what to authenticate as on the server at addr.
func (a *Authenticator) identity(ctx context.Context, addr string) (*identity, error) {
	if id := a.current.Load(); id != nil {
		return id, nil
	}
	start := time.Now()
	id, err := a.ask(ctx)
	if err == nil {
		return id, nil
	}
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return nil, overtaken(addr, start, cause)
	}
	return nil, &mongoerr.AuthError{Addr: addr, Wrapped: fmt.Errorf("ClientOptions.Credentials: %w", err)}
}

// ask asks the program, unless another connection has done so meanwhile.
func (a *Authenticator) ask(ctx context.Context) (*identity, error) {
	x := a.asking
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }() // also if the callback panics
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if id := a.current.Load(); id != nil {
		return id, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(x.options.CallbackTimeout, callbackTimeout))
	defer cancel()
	handed, err := x.callback(ctx)
	if err != nil {
		return nil, err
	}
	c, err := x.complete(&handed)
	if err != nil {
		return nil, err
	}
	id, err := newIdentity(c, x.options)
	if err == nil {
		a.current.Store(id)
	}
	return id, err
}

// forget forgets what the program handed out if err says that a server refused it.
func (a *Authenticator) forget(id *identity, err error) {
	if a.asking != nil && refused(err) {
		a.current.CompareAndSwap(id, nil)
	}
}

// Again reports whether an authentication that ended in err is worth another attempt: a server
// refused what the program had handed out, and the program has been asked for another credential.
// The connection is then made anew, or t authenticates it again. If not, the error is the
// attempt's.
func (t *Attempt) Again(ctx context.Context, err error) (bool, error) {
	if t == nil || t.a.asking == nil || !refused(err) {
		return false, err
	}
	id, failed := t.a.identity(ctx, t.addr)
	if failed == nil {
		t.id, t.mechanism = id, cmp.Or(id.credential.Mechanism, t.mechanism)
		return true, nil
	}
	if e, ok := errors.AsType[*mongoerr.AuthError](failed); ok {
		failed = t.Error(t.mechanism, fmt.Errorf("%w; %w", errors.Unwrap(err), e.Wrapped))
	}
	return false, failed
}
