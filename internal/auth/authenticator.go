package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"allium/auth"
	"allium/bson"
	"allium/internal/failure"
	"allium/mongoerr"
)

// Transport runs commands on the connection that is authenticated.
type Transport interface {
	// Addr returns the address of the server.
	Addr() string
	// Limit bounds each step that asks others than the server, beside its context: for keys,
	// tokens and tickets. Zero: no bound.
	Limit() time.Duration
	// RunCommand runs the command whose elements fill appends, and returns the reply, which may be
	// kept. A reply that is an error is a *mongoerr.ServerError.
	RunCommand(ctx context.Context, db string, fill func(dst []byte) []byte) (bson.Raw, error)
}

// Authenticator authenticates the connections of one client. It is safe for concurrent use.
type Authenticator struct {
	// current is what connections authenticate as, nil until the program has been asked.
	current atomic.Pointer[identity]
	asking  *asking // nil: current never changes
}

// identity is a credential, and what has been derived from it and fetched for it.
type identity struct {
	credential auth.Credential
	keys       scramCache
	// passwords are what the SCRAM mechanisms derive their keys from.
	passwords map[auth.Mechanism]string
	tokens    *tokens  // of MONGODB-OIDC, else nil
	aws       *AWSKeys // of MONGODB-AWS, else nil
	// kerberos and resolver are those of GSSAPI, else nil.
	kerberos auth.GSSAPI
	resolver HostResolver
}

// Options are settings that are not part of a credential.
type Options struct {
	// OIDC is where the tokens of MONGODB-OIDC come from. Nil: from the credential's ENVIRONMENT.
	OIDC *auth.OIDC
	// AWS is where the keys of MONGODB-AWS come from. Nil: from the environment.
	AWS auth.AWSCallback
	// GSSAPI is what authenticates with GSSAPI. Nil: nothing does.
	GSSAPI auth.GSSAPI
	// Resolver looks up the canonical names of GSSAPI's hosts. Nil: net.DefaultResolver.
	Resolver HostResolver
	// CallbackTimeout bounds a callback for services. Zero: a minute.
	CallbackTimeout time.Duration
}

// New returns the authenticator of a credential that uri.Config.Validate has completed. It is an
// error if the mechanism is not there, or if it cannot work with the credential.
func New(credential *auth.Credential, o Options) (*Authenticator, error) {
	id, err := newIdentity(credential, o)
	if err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	a := new(Authenticator)
	a.current.Store(id)
	return a, nil
}

func newIdentity(credential *auth.Credential, o Options) (*identity, error) {
	id := &identity{credential: *credential}
	if err := id.prepare(&o); err != nil {
		return nil, err
	}
	return id, nil
}

// Waiting says what new connections wait for that no timeout of an operation ends, "" for nothing:
// a person who logs in (specification: Authentication, "MONGODB-OIDC": five minutes, whatever the
// timeouts).
func (a *Authenticator) Waiting() string {
	if a == nil {
		return ""
	}
	id := a.current.Load()
	if id == nil || id.tokens == nil {
		return ""
	}
	begun := id.tokens.login.Load()
	if begun == 0 {
		return ""
	}
	return fmt.Sprintf(
		"a login by OIDC.HumanCallback has been going on for %v; it has %v, whatever the operation's timeout, and later operations use it",
		time.Since(time.Unix(0, begun)).Round(time.Millisecond), humanTimeout)
}

func (id *identity) prepare(o *Options) (err error) {
	timeout := cmp.Or(o.CallbackTimeout, callbackTimeout)
	switch id.credential.Mechanism {
	case "", auth.MechanismScramSHA1, auth.MechanismScramSHA256:
		return id.preparePasswords()
	case auth.MechanismOIDC:
		id.tokens, err = newTokens(&id.credential, o.OIDC, timeout)
		return err
	case auth.MechanismAWS:
		id.aws = NewAWSKeys(o.AWS, timeout)
		return nil
	case auth.MechanismGSSAPI:
		if o.GSSAPI == nil {
			return errNoKerberos
		}
		id.kerberos, id.resolver = o.GSSAPI, o.Resolver
		if id.resolver == nil {
			id.resolver = net.DefaultResolver
		}
		return nil
	}
	if _, ok := mechanisms[id.credential.Mechanism]; !ok {
		return fmt.Errorf("mechanism %s is not available", id.credential.Mechanism)
	}
	return nil
}

// conversation is what one mechanism does on one connection.
type conversation interface {
	// first appends the elements of the conversation's first command, for speculativeAuthenticate.
	// ok is false if the mechanism has nothing to send ahead.
	first(dst []byte) (out []byte, ok bool)
	// run authenticates. speculative is the reply to what first appended, nil if there is none:
	// then run starts anew.
	run(ctx context.Context, t Transport, speculative bson.Raw) error
}

// mechanisms make the conversations of the mechanisms.
var mechanisms = map[auth.Mechanism]func(*Attempt) (conversation, error){
	auth.MechanismScramSHA1: func(t *Attempt) (conversation, error) {
		return newScram(t.id, auth.MechanismScramSHA1)
	},
	auth.MechanismScramSHA256: func(t *Attempt) (conversation, error) {
		return newScram(t.id, auth.MechanismScramSHA256)
	},
	auth.MechanismPlain: func(t *Attempt) (conversation, error) { return newPlain(t.id), nil },
	auth.MechanismX509: func(t *Attempt) (conversation, error) {
		return &x509{user: t.id.credential.Username}, nil
	},
	auth.MechanismOIDC:   newOIDC,
	auth.MechanismAWS:    newAWS,
	auth.MechanismGSSAPI: newGSSAPI,
}

// Attempt is the authentication of one connection. It stays with the connection, which may have to
// be authenticated again.
type Attempt struct {
	a         *Authenticator
	id        *identity
	addr      string
	mechanism auth.Mechanism // "" until it is negotiated
	ahead     conversation   // that began with the hello, nil if none did
	access    string         // the token that the connection was authenticated with, of MONGODB-OIDC
}

// Attempt begins the authentication of a connection to the server at addr. The error is a
// *mongoerr.AuthError, or a *mongoerr.TimeoutError if ctx ended while the program was asked for a
// credential.
func (a *Authenticator) Attempt(ctx context.Context, addr string) (*Attempt, error) {
	id, err := a.identity(ctx, addr)
	if err != nil {
		return nil, err
	}
	t := &Attempt{a: a, id: id, addr: addr, mechanism: id.credential.Mechanism}
	name := t.mechanism
	if name == "" {
		name = auth.MechanismScramSHA256 // what is speculated on
	}
	c, err := mechanisms[name](t)
	if err != nil && t.mechanism != "" {
		return nil, t.Error("", err)
	}
	if err == nil {
		t.ahead = c
	}
	return t, nil
}

// AppendHello appends what authentication adds to the handshake's hello.
func (t *Attempt) AppendHello(dst []byte) []byte {
	c := &t.id.credential
	if t.mechanism == "" {
		dst = bson.AppendString(dst, "saslSupportedMechs", c.Source+"."+c.Username)
	}
	if t.ahead == nil {
		return dst
	}
	start, out := bson.BeginDocumentElement(dst, "speculativeAuthenticate")
	out, ok := t.ahead.first(out)
	if !ok {
		return dst
	}
	return bson.EndDocument(out, start)
}

// Finish authenticates, given the server's reply to the hello. Errors other than those of the
// transport's network, and the end of ctx, which is a *mongoerr.TimeoutError, are
// *mongoerr.AuthError.
func (t *Attempt) Finish(ctx context.Context, tr Transport, hello bson.Raw) error {
	if t.mechanism == "" {
		t.mechanism = negotiate(hello)
	}
	speculative, _ := hello.Lookup("speculativeAuthenticate").Document()
	if t.ahead == nil || t.mechanism == auth.MechanismScramSHA1 && t.id.credential.Mechanism == "" {
		speculative = nil // it was not asked for, or is about the other mechanism
	}
	ahead := t.ahead
	t.ahead = nil
	return t.run(ctx, tr, ahead, speculative)
}

// Mechanism returns the name of the mechanism, "" before Finish if it is negotiated.
func (t *Attempt) Mechanism() auth.Mechanism { return t.mechanism }

// negotiate chooses the default mechanism out of those that a server says the user has.
func negotiate(hello bson.Raw) auth.Mechanism {
	if slices.Contains(failure.Strings(hello.Lookup("saslSupportedMechs")), string(auth.MechanismScramSHA256)) {
		return auth.MechanismScramSHA256
	}
	return auth.MechanismScramSHA1
}

// Reauthenticate authenticates the connection again, with the mechanism that it was authenticated
// with, after the server answered a command with the error 391 (ReauthenticationRequired). The
// errors are those of Finish.
func (t *Attempt) Reauthenticate(ctx context.Context, tr Transport) error {
	t.renew()
	err := t.run(ctx, tr, nil, nil)
	again, err := t.Again(ctx, err)
	if !again {
		return err
	}
	return t.run(ctx, tr, nil, nil)
}

// run has a conversation: the one that began with the hello if the server answered it, else a new
// one.
func (t *Attempt) run(ctx context.Context, tr Transport, ahead conversation, speculative bson.Raw) error {
	start, c := time.Now(), ahead
	if speculative == nil {
		var err error
		if c, err = mechanisms[t.mechanism](t); err != nil {
			return t.authError(err)
		}
	}
	err := c.run(ctx, tr, speculative)
	_, said := errors.AsType[*mongoerr.TimeoutError](err) // by the transport
	if cause := ctx.Err(); cause != nil && !said && errors.Is(err, cause) {
		// Over while a callback for tokens was at work.
		err = overtaken(tr.Addr(), start, cause)
	}
	return t.authError(err)
}

// overtaken is the error of an authentication whose context ended while the program was asked for a
// token or a credential.
func overtaken(addr string, start time.Time, cause error) error {
	return &mongoerr.TimeoutError{Phase: mongoerr.PhaseAuthentication, Source: mongoerr.SourceCancel,
		Elapsed: time.Since(start), Addr: addr, Wrapped: cause}
}

// authError says that authentication failed, unless err says that the network or the context did.
func (t *Attempt) authError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*mongoerr.ConnectionError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*mongoerr.TimeoutError](err); ok {
		return err
	}
	return t.Error(t.mechanism, err)
}

// Error returns the error of an authentication that err has ended.
func (t *Attempt) Error(mechanism auth.Mechanism, err error) *mongoerr.AuthError {
	t.a.forget(t.id, err)
	c := &t.id.credential
	return &mongoerr.AuthError{Addr: t.addr, Mechanism: string(mechanism), Username: c.Username, Source: c.Source,
		Wrapped: err}
}
