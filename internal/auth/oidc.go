package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/internal/flight"
	"allium/mongoerr"
)

const (
	// humanTimeout is how long a person has to log in.
	humanTimeout = 5 * time.Minute
	// callbackTimeout is how long a callback has if the client has no timeout.
	callbackTimeout = time.Minute
	// callbackPause is the time from one call of a callback to the next, at least.
	callbackPause = 100 * time.Millisecond
)

// tokens are a client's tokens and where they come from: what the specification calls the client
// cache. Safe for concurrent use.
type tokens struct {
	username string
	callback auth.OIDCCallback
	human    bool
	allowed  []string
	timeout  time.Duration

	login atomic.Int64 // when a person began to log in, in Unix nanoseconds; 0: nobody does

	turn chan struct{} // holds the right to call the callback
	last time.Time     // when it was called last; of whoever has the turn

	mu      sync.Mutex // of what follows
	access  string
	refresh string
	idp     *auth.IDPInfo
}

// newTokens checks the settings of MONGODB-OIDC.
func newTokens(c *auth.Credential, o *auth.OIDC, timeout time.Duration) (*tokens, error) {
	if o == nil {
		o = new(auth.OIDC)
	}
	t := &tokens{username: c.Username, callback: o.Callback, timeout: timeout, turn: make(chan struct{}, 1)}
	switch {
	case o.Callback != nil && o.HumanCallback != nil:
		return nil, errors.New("there are both a Callback and a HumanCallback")
	case o.AllowedHosts != nil && o.HumanCallback == nil:
		return nil, errors.New("AllowedHosts goes with a HumanCallback only")
	case o.HumanCallback != nil:
		t.callback, t.human, t.allowed = o.HumanCallback, true, o.AllowedHosts
		if t.allowed == nil {
			t.allowed = auth.DefaultOIDCHosts()
		}
	case o.Callback == nil:
		t.callback = environmentCallback(c.Properties["ENVIRONMENT"], c.Properties["TOKEN_RESOURCE"], MetadataClient)
	}
	if t.callback == nil {
		return nil, errors.New("there is neither an ENVIRONMENT nor a callback")
	}
	return t, nil
}

// mayGo reports whether tokens may be sent to the server at addr.
func (o *tokens) mayGo(addr string) bool {
	if !o.human {
		return true
	}
	host := addr
	if h, _, err := net.SplitHostPort(addr); err == nil {
		host = h
	}
	return HostAllowed(o.allowed, host)
}

// HostAllowed reports whether a host is one of those that patterns name: names, "*." and a domain
// for all names in it, or IP addresses.
func HostAllowed(patterns []string, host string) bool {
	host = strings.ToLower(host)
	for _, pattern := range patterns {
		pattern = strings.ToLower(pattern)
		if domain, ok := strings.CutPrefix(pattern, "*"); ok && strings.HasPrefix(domain, ".") {
			if len(host) > len(domain) && strings.HasSuffix(host, domain) {
				return true
			}
		} else if host == pattern {
			return true
		}
	}
	return false
}

// cached returns the access token, "" if there is none.
func (o *tokens) cached() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.access
}

// renewable returns what a new access token can be had with without a new conversation with the
// server.
func (o *tokens) renewable() (refresh string, idp *auth.IDPInfo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refresh, o.idp
}

// invalidate forgets an access token that a server refused, and the refresh token that came with it
// if that is of no use either. If there is another access token by now, it stays.
func (o *tokens) invalidate(access string, refreshToo bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.access == access {
		o.access = ""
		if refreshToo {
			o.refresh = ""
		}
	}
}

// get returns the access token that is cached, or has the callback make one.
func (o *tokens) get(ctx context.Context, idp *auth.IDPInfo, refresh string) (access string, isCached bool, err error) {
	if access := o.cached(); access != "" {
		return access, true, nil
	}
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
	if access := o.cached(); access != "" { // of the one who had the turn before
		return access, true, nil
	}
	c, err := o.call(ctx, auth.OIDCParams{Version: auth.OIDCVersion, Username: o.username, IDP: idp,
		RefreshToken: refresh})
	if err != nil {
		return "", false, fmt.Errorf("callback: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.access = c.AccessToken
	if o.human {
		o.idp, o.refresh = idp, c.RefreshToken
	}
	return c.AccessToken, false, nil
}

// call calls the callback.
func (o *tokens) call(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
	if wait := callbackPause - time.Since(o.last); wait > 0 && !o.last.IsZero() {
		pause := time.NewTimer(wait)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
			return auth.OIDCCredential{}, ctx.Err()
		}
	}
	defer func() { o.last = time.Now() }()
	timeout := o.timeout
	if o.human {
		// Nobody logs in within the timeout of an operation; only who gives up ends it.
		outer := ctx
		var giveUp context.CancelFunc
		ctx, giveUp = context.WithCancel(context.WithoutCancel(ctx))
		defer giveUp()
		defer context.AfterFunc(outer, func() {
			if !errors.Is(outer.Err(), context.DeadlineExceeded) {
				giveUp()
			}
		})()
		timeout = humanTimeout
		o.login.Store(time.Now().UnixNano())
		defer o.login.Store(0)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var c auth.OIDCCredential
	err := flight.Call(func() (err error) { // the goroutine may be the driver's
		c, err = o.callback(ctx, p)
		return err
	})
	switch {
	case err != nil:
		return c, err
	case c.AccessToken == "":
		return c, errors.New("it returned no access token")
	case c.ExpiresIn < 0:
		return c, fmt.Errorf("it returned a token that expires in %v", c.ExpiresIn)
	}
	return c, nil
}

// oidc is the mechanism MONGODB-OIDC on one connection.
type oidc struct {
	attempt *Attempt
	tokens  *tokens
}

func newOIDC(t *Attempt) (conversation, error) { return &oidc{t, t.id.tokens}, nil }

func (o *oidc) first(dst []byte) ([]byte, bool) {
	access := o.tokens.cached()
	if access == "" || !o.tokens.mayGo(o.attempt.addr) {
		return dst, false
	}
	o.attempt.access = access
	s := o.conversation(&jwtStep{access: access})
	s.canSpeculate = true
	return s.first(dst)
}

func (o *oidc) conversation(c saslClient) *saslConversation {
	return &saslConversation{mechanism: auth.MechanismOIDC, source: o.attempt.id.credential.Source, client: c,
		patient: o.tokens.human}
}

func (o *oidc) run(ctx context.Context, t Transport, speculative bson.Raw) error {
	if speculative.Lookup("done").AsBool() {
		return nil
	}
	o.attempt.access = ""
	switch {
	case !o.tokens.mayGo(t.Addr()):
		return errors.New("the host is none of OIDC.AllowedHosts, so that no token is sent to it")
	case o.tokens.human:
		return o.authenticateHuman(ctx, t)
	}
	access, isCached, err := o.token(ctx, t)
	if err != nil {
		return err
	}
	if err = o.oneStep(ctx, t, access, false); !isCached || !refused(err) {
		return err
	}
	if access, _, err = o.token(ctx, t); err != nil {
		return err
	}
	return o.oneStep(ctx, t, access, false)
}

// token returns an access token of a service.
func (o *oidc) token(ctx context.Context, t Transport) (access string, isCached bool, err error) {
	ctx, cancel := within(ctx, t)
	defer cancel()
	return o.tokens.get(ctx, nil, "")
}

// maxRestarts bounds how often the authentication of a person begins anew because another
// connection's token was refused.
const maxRestarts = 5

// authenticateHuman goes from the cheapest way to the dearest: the token that is there, one that
// can be had with a refresh token, a person who logs in.
func (o *oidc) authenticateHuman(ctx context.Context, t Transport) error {
	for range maxRestarts {
		if access := o.tokens.cached(); access != "" {
			if err := o.oneStep(ctx, t, access, false); !refused(err) {
				return err
			}
			continue
		}
		if refresh, idp := o.tokens.renewable(); refresh != "" {
			access, _, err := o.tokens.get(ctx, idp, refresh)
			if err == nil {
				err = o.oneStep(ctx, t, access, true)
			}
			if !refused(err) {
				return err
			}
			continue
		}
		s := &principalStep{oidc: o}
		err := o.conversation(s).run(ctx, t, nil)
		if !refused(err) || !s.isCached {
			return err
		}
		o.tokens.invalidate(o.attempt.access, false)
	}
	return errors.New("one token after the other was refused")
}

// oneStep authenticates with an access token, and forgets it if it is refused; renewed says that it
// was had with a refresh token.
func (o *oidc) oneStep(ctx context.Context, t Transport, access string, renewed bool) error {
	o.attempt.access = access
	err := o.conversation(&jwtStep{access: access}).run(ctx, t, nil)
	if refused(err) {
		o.tokens.invalidate(access, renewed)
	}
	return err
}

const codeAuthenticationFailed = 18

// refused reports whether a server did not accept a token.
func refused(err error) bool {
	e, ok := errors.AsType[*mongoerr.ServerError](err)
	return ok && e.Code == codeAuthenticationFailed
}

// renew forgets the token that the connection was authenticated with.
func (t *Attempt) renew() {
	if t.id.tokens != nil && t.access != "" {
		t.id.tokens.invalidate(t.access, false)
		t.access = ""
	}
}

// jwtStep sends an access token, and is done with that.
type jwtStep struct{ access string }

func (s *jwtStep) start(context.Context) ([]byte, error) { return jwtPayload(s.access), nil }

func (s *jwtStep) next(context.Context, []byte) ([]byte, error) { return nil, nil }

func (s *jwtStep) complete() bool { return true } // the server proves nothing

func jwtPayload(access string) []byte {
	start, dst := bson.BeginDocument(nil)
	return bson.EndDocument(bson.AppendString(dst, "jwt", access), start)
}

// principalStep asks the server for the identity provider before it sends an access token.
type principalStep struct {
	oidc     *oidc
	isCached bool // the token was there before the callback could be called
	sent     bool
}

func (s *principalStep) start(context.Context) ([]byte, error) {
	start, dst := bson.BeginDocument(nil)
	if name := s.oidc.tokens.username; name != "" {
		dst = bson.AppendString(dst, "n", name)
	}
	return bson.EndDocument(dst, start), nil
}

func (s *principalStep) next(ctx context.Context, challenge []byte) ([]byte, error) {
	idp := new(auth.IDPInfo)
	if err := bson.Unmarshal(challenge, idp); err != nil {
		return nil, fmt.Errorf("what the server says about the identity provider: %w", err)
	}
	access, isCached, err := s.oidc.tokens.get(ctx, idp, "")
	if err != nil {
		return nil, err
	}
	s.oidc.attempt.access, s.isCached, s.sent = access, isCached, true
	return jwtPayload(access), nil
}

func (s *principalStep) complete() bool { return s.sent }
